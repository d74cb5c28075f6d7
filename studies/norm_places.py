"""Does pre-norm or post-norm train better, and what does warm-up change?

Stacks of blocks (attention and a feed-forward network; C = 32, 32 characters) on Shakespeare, all
from PyTorch's own initialisation: pre-norm x + f(norm(x)), post-norm norm(x + f(x)), each also with
a learning rate that rises from 0 during the first 60 steps. loss: on plays that were held out;
last: before training, the norm of the gradient of the last block's feed-forward network.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import MultiHeadAttention
from helpers.gpt import FeedForward
from helpers.training import estimate_loss, get_batch, train
from studies import Study
from studies._plays import plays

T, C, H, HELD_OUT, WARM_UP = 32, 32, 4, 64_001, 60


class Part(nn.Module):
    """A part of a block with its residual connection and its norm."""

    def __init__(self, part: nn.Module, place: str) -> None:
        super().__init__()
        self.part, self.place, self.norm = part, place, nn.LayerNorm(C)

    def forward(self, x: Tensor) -> Tensor:
        if self.place == "pre":
            return x + self.part(self.norm(x))
        return self.norm(x + self.part(x))


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
        self.norm = nn.LayerNorm(C) if place == "pre" else nn.Identity()

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token_embedding(ids) + self.position_embedding.weight[: ids.shape[1]]
        return self.logits(self.norm(self.parts(x)))


def last_gradient(model: Reader, ids: Tensor, seed: int) -> float:
    """The norm of the gradient of the last feed-forward network, before training."""
    x, y = get_batch(ids, T, 16, torch.Generator().manual_seed(100 + seed))
    F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
    length = model.parts[-1].part.up.weight.grad.norm().item()
    model.zero_grad()
    return length


def run(arm: str, seed: int, *, blocks: int, steps: int, rate: float) -> dict[str, float]:
    _, train_ids, held_out = plays(HELD_OUT)
    torch.manual_seed(seed)
    model = Reader(plays(HELD_OUT)[0].vocab_size, arm.split("-")[0], blocks)
    last = last_gradient(model, train_ids, seed)

    def share(step: int, steps: int) -> float:
        return min(1.0, (step + 1) / WARM_UP) if arm.endswith("warm-up") else 1.0

    train(
        model, train_ids, steps=steps, block_size=T, batch_size=16,
        optimizer=torch.optim.Adam(model.parameters(), lr=rate),
        schedule=share, generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {"loss": estimate_loss(model, held_out, block_size=T, batch_size=500), "last": last}


study = Study(
    arms=["pre-norm", "pre-norm, warm-up", "post-norm", "post-norm, warm-up"],
    settings={"blocks": 8, "steps": 100, "rate": 0.014},
    variations=[{"steps": 300}, {"rate": 0.004}, {"blocks": 2}],
)
