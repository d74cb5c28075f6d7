"""How many heads, at equal width? And do trained heads look at different places?

The model of the chapter on many heads, on Shakespeare: a table of votes for the present character
and one layer of attention, C = 32, context 16. loss: on 50,000 held-out characters; before and
after: the mean distance of two heads' rows of weights (0 alike, 1 nothing in common), before
training and after; sharpened: before training, with all scores multiplied by the one factor that
makes the rows as sharp (as low in entropy, in the mean) as they are after it; least and most: how
much the loss rises when one head is taken away, for the head that is missed least and the one that
is missed most.
"""

from functools import cache

import torch
from torch import Tensor, nn

from helpers import data
from helpers.attention import MultiHeadAttention
from helpers.text import CharTokenizer
from helpers.training import estimate_loss, train
from studies import Study

T, C = 16, 32


class LetterModel(nn.Module):
    def __init__(self, n_symbols: int, n_head: int) -> None:
        super().__init__()
        self.own_votes = nn.Embedding(n_symbols, n_symbols)
        nn.init.zeros_(self.own_votes.weight)
        self.letter, self.place = nn.Embedding(n_symbols, C), nn.Embedding(T, C)
        self.layer = MultiHeadAttention(C, n_head)
        self.past_votes = nn.Linear(C, n_symbols)

    def tokens(self, ids: Tensor) -> Tensor:
        return self.letter(ids) + self.place.weight[: ids.shape[1]]

    def forward(self, ids: Tensor) -> Tensor:
        return self.own_votes(ids) + self.past_votes(self.layer(self.tokens(ids)))


@torch.no_grad()
def weights(model: LetterModel, ids: Tensor) -> Tensor:
    return model.layer.weights(model.tokens(ids))  # (B, H, T, T)


def distance(maps: Tensor) -> float:
    """The mean distance of two different heads; 0 for a head alone."""
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
    """How much the loss rises without each of the heads."""
    whole = model.layer.output.weight.detach().clone()
    hs, losses = C // model.layer.n_head, []
    for h in range(model.layer.n_head):
        model.layer.output.weight.data[:, h * hs : (h + 1) * hs] = 0
        losses.append(estimate_loss(model, ids, block_size=T, batch_size=1024))
        model.layer.output.weight.data.copy_(whole)
    before = estimate_loss(model, ids, block_size=T, batch_size=1024)
    return [loss - before for loss in losses]


@cache
def plays() -> tuple[int, Tensor, Tensor]:
    """How many symbols there are; the characters to train on; 50,000 that are held out."""
    tokenizer = CharTokenizer.from_text(data.shakespeare())
    train_ids = torch.tensor(tokenizer.encode(data.shakespeare("train")))
    held_out = torch.tensor(tokenizer.encode(data.shakespeare("validation")[:50_000]))
    return tokenizer.vocab_size, train_ids, held_out


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    n_symbols, train_ids, held_out = plays()
    stretches = held_out[: 100 * T].view(-1, T)
    torch.manual_seed(seed)
    model = LetterModel(n_symbols, int(arm.split()[0]))
    first = weights(model, stretches)
    train(
        model, train_ids, steps=steps, block_size=T, batch_size=64, learning_rate=rate,
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
    moved=[
        {"steps": 120},
        {"steps": 1200},
        {"rate": 0.01},
    ],
)
