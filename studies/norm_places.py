"""Which deep stacks learn: with residual connections, with norms, with both, and in which order?

Stacks of blocks (attention and a feed-forward network; C = 32, 32 characters) on Shakespeare, all
from PyTorch's own initialisation: pre-norm x + f(norm(x)), post-norm norm(x + f(x)), each also with
a learning rate that rises from 0 during the first 60 steps; no norm x + f(x), no residual
f(norm(x)), neither f(x). loss: on plays that were held out, and ln V if training broke; hears: by
how much the probability of a next character differs at most after two texts.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from helpers.attention import MultiHeadAttention
from helpers.gpt import FeedForward
from helpers.training import estimate_loss, train
from studies import Study
from studies._plays import plays

T, C, H, HELD_OUT, WARM_UP = 32, 32, 4, 64_001, 60
TEXTS = "To be, or not to be, that is the", "zz?!qX,zzzzzzzzQ,Q,Q,Q;;;;;;;;;;"


class Part(nn.Module):
    """A part of a block with its residual connection and its norm."""

    def __init__(self, part: nn.Module, place: str) -> None:
        super().__init__()
        self.part, self.place, self.norm = part, place, nn.LayerNorm(C)

    def forward(self, x: Tensor) -> Tensor:
        if self.place == "post":
            return self.norm(x + self.part(x))
        out = self.part(x if self.place in ("no norm", "neither") else self.norm(x))
        return out if self.place in ("no residual", "neither") else x + out


class Reader(nn.Module):
    parts: Any  # attention and feed-forward in turn

    def __init__(self, n_symbols: int, place: str, blocks: int) -> None:
        super().__init__()
        self.token_embedding, self.position_embedding = (
            nn.Embedding(n_symbols, C),
            nn.Embedding(T, C),
        )
        self.logits = nn.Linear(C, n_symbols)
        parts = [
            part
            for _ in range(blocks)
            for part in (MultiHeadAttention(C, H), FeedForward(C, bias=False))
        ]
        self.parts = nn.Sequential(*(Part(part, place) for part in parts))
        self.norm = nn.Identity() if place == "post" else nn.LayerNorm(C)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token_embedding(ids) + self.position_embedding.weight[: ids.shape[1]]
        return self.logits(self.norm(self.parts(x)))


@torch.no_grad()
def hears(model: Reader) -> float:
    """The largest difference between the two predictions after TEXTS."""
    ids = torch.tensor([plays(HELD_OUT)[0].encode(text) for text in TEXTS])
    one, other = model(ids)[:, -1].softmax(-1)
    return (one - other).abs().max().item()


def run(arm: str, seed: int, *, blocks: int, steps: int, rate: float) -> dict[str, float]:
    _, train_ids, held_out = plays(HELD_OUT)
    torch.manual_seed(seed)
    model = Reader(plays(HELD_OUT)[0].vocab_size, arm.split("-")[0], blocks)

    def share(step: int, steps: int) -> float:
        return min(1.0, (step + 1) / WARM_UP) if arm.endswith("warm-up") else 1.0

    try:
        train(
            model, train_ids, steps=steps, block_size=T, batch_size=16,
            optimizer=torch.optim.Adam(model.parameters(), lr=rate),
            schedule=share, generator=torch.Generator().manual_seed(seed),
        )  # fmt: skip
    except FloatingPointError:  # a run whose loss became nan counts as guessing
        return {"loss": math.log(len(model.logits.bias)), "hears": 0.0}
    loss = estimate_loss(model, held_out, block_size=T, batch_size=500)
    return {"loss": loss, "hears": hears(model)}


study = Study(
    arms=["pre-norm", "pre-norm, warm-up", "post-norm", "post-norm, warm-up",
          "no norm", "no residual", "neither"],
    settings={"blocks": 8, "steps": 100, "rate": 0.014},
    variations=[{"steps": 300}, {"rate": 0.004}, {"blocks": 2}],
)  # fmt: skip
