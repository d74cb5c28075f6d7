"""How many heads, at equal width? And do trained heads attend to different positions?

The model of the chapter multi_head, on Shakespeare: a bigram table and one layer of attention,
C = 32, context 16. loss: on 50,000 held-out characters; before and after: the mean distance of two
heads' rows of weights (0 equal, 1 no key in common), before training and after it; sharpened:
before training, with all scores multiplied by the one factor that gives the rows the mean entropy
that they have after training; least and most: how much the loss rises when one head is ablated,
for the head that matters least and for the head that matters most.
"""

import torch
from torch import Tensor

from helpers.attention import MultiHeadAttention
from helpers.training import estimate_loss, train
from studies import Study
from studies._plays import LetterModel, plays

T, C, HELD_OUT = 16, 32, 50_000


@torch.no_grad()
def weights(model: LetterModel, ids: Tensor) -> Tensor:
    return model.layer.weights(model.tokens(ids))  # (B, H, T, T)


def distance(maps: Tensor) -> float:
    """The mean distance of two different heads; 0 for a single head."""
    H = maps.shape[1]
    table = (maps[:, :, None] - maps[:, None]).abs().sum(-1).mean((0, 3)) / 2
    return table.sum().item() / max(H * (H - 1), 1)


def sharpened(maps: Tensor, like: Tensor) -> Tensor:
    """The maps with their scores times the factor that gives them the mean entropy of `like`."""

    def entropy(rows: Tensor) -> float:
        return torch.special.entr(rows).sum(-1).mean().item()

    low, high = 0.0, 1000.0
    for _ in range(50):
        factor = (low + high) / 2
        sharp = (maps.log() * factor).softmax(-1)
        low, high = (factor, high) if entropy(sharp) > entropy(like) else (low, factor)
    return sharp


def harm(model: LetterModel, ids: Tensor) -> list[float]:
    """How much the loss rises when each of the heads is ablated."""
    whole = model.layer.output.weight.detach().clone()
    hs, losses = C // model.layer.n_head, []
    for h in range(model.layer.n_head):
        model.layer.output.weight.data[:, h * hs : (h + 1) * hs] = 0
        losses.append(estimate_loss(model, ids, block_size=T, batch_size=1024))
        model.layer.output.weight.data.copy_(whole)
    before = estimate_loss(model, ids, block_size=T, batch_size=1024)
    return [loss - before for loss in losses]


def untrained(n_head: int) -> LetterModel:
    V = plays(HELD_OUT)[0].vocab_size
    return LetterModel(V, lambda: MultiHeadAttention(C, n_head), T, C)


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    _, train_ids, held_out = plays(HELD_OUT)
    stretches = held_out[: 100 * T].view(-1, T)
    torch.manual_seed(seed)
    model = untrained(int(arm.split()[0]))
    first = weights(model, stretches)
    train(
        model, train_ids, steps=steps, block_size=T, batch_size=64,
        optimizer=torch.optim.Adam(model.parameters(), lr=rate),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    last, missed = weights(model, stretches), harm(model, held_out[:8_001])
    return {
        "loss": estimate_loss(model, held_out, block_size=T, batch_size=1024),
        "before": distance(first),
        "sharpened": distance(sharpened(first, last)),
        "after": distance(last),
        "least": min(missed),
        "most": max(missed),
    }


study = Study(
    arms=["1 head", "2 heads", "4 heads", "8 heads", "32 heads"],
    settings={"steps": 400, "rate": 0.02},
    variations=[
        {"steps": 120},
        {"steps": 1200},
        {"rate": 0.01},
    ],
)
