"""What is each part of a GPT worth, one change at a time?

From the bigram table to two blocks on Shakespeare (16 characters, C = 32): each version adds one
part to the version before it, and all are trained alike, from PyTorch's own initialisation. The
usual comparison takes the first three steps at once ("+ one head") and credits attention with all
of them. loss: on plays that were held out.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from helpers.attention import Head, MultiHeadAttention
from helpers.gpt import FeedForward
from helpers.positions import LearnedPosition
from helpers.training import estimate_loss, train
from studies import Study
from studies._plays import plays

T, C, HELD_OUT = 16, 32, 50_001
V = plays(HELD_OUT)[0].vocab_size


class Layer(nn.Module):
    """Attention, and what has been added to it so far."""

    def __init__(self, attend: nn.Module, feed: bool, residual: bool, norm: bool):
        super().__init__()
        self.parts = nn.ModuleList([attend, FeedForward(C)] if feed else [attend])
        self.norms = nn.ModuleList(nn.LayerNorm(C) if norm else nn.Identity() for _ in self.parts)
        self.residual = residual

    def forward(self, x: Tensor) -> Tensor:
        for norm, part in zip(self.norms, self.parts, strict=True):
            x = x + part(norm(x)) if self.residual else part(norm(x))
        return x


class Rung(nn.Module):
    """Token table, positions or none, layers, norm or none, head.

    The layers are initialised last: what two versions share starts with the same weights.
    """

    def __init__(
        self, make_layers: Sequence[Callable[[], nn.Module]], place: bool = True, norm: bool = False
    ):
        super().__init__()
        self.token = nn.Embedding(V, C)
        self.head = nn.Linear(C, V, bias=False)
        self.place = LearnedPosition(T, C) if place else nn.Identity()
        self.layers = nn.Sequential(*(make() for make in make_layers))
        self.norm = nn.LayerNorm(C) if norm else nn.Identity()

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.norm(self.layers(self.place(self.token(ids)))))


def four_heads(output: bool = True, causal: bool = True) -> MultiHeadAttention:
    heads = MultiHeadAttention(C, 4)
    heads.causal = causal
    if not output:
        heads.output = nn.Identity()  # type: ignore[assignment]
    return heads


def layer(
    attend: Callable[[], nn.Module] = four_heads,
    feed: bool = False,
    residual: bool = False,
    norm: bool = False,
) -> Callable[[], nn.Module]:
    return lambda: Layer(attend(), feed, residual, norm)


RUNGS: dict[str, Callable[[], nn.Module]] = {
    "bigram table": lambda: nn.Embedding(V, V),
    "+ width 32": lambda: Rung([], place=False),
    "+ positions": lambda: Rung([]),
    "+ one head": lambda: Rung([layer(lambda: Head(C, C))]),
    "+ four heads": lambda: Rung([layer(lambda: four_heads(output=False))]),
    "+ output projection": lambda: Rung([layer()]),
    "+ feed-forward": lambda: Rung([layer(feed=True)]),
    "+ residual connections": lambda: Rung([layer(feed=True, residual=True)]),
    "+ norms": lambda: Rung([layer(feed=True, residual=True, norm=True)], norm=True),
    "+ second block": lambda: Rung([layer(feed=True, residual=True, norm=True)] * 2, norm=True),
}


def trained(make: Callable[[], nn.Module], seed: int, steps: int, rate: float) -> nn.Module:
    torch.manual_seed(seed)
    model = make()
    train(
        model, plays(HELD_OUT)[1], steps=steps, block_size=T, batch_size=32,
        optimizer=torch.optim.Adam(model.parameters(), lr=rate),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return model


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    model = trained(RUNGS[arm], seed, steps, rate)
    return {"loss": estimate_loss(model, plays(HELD_OUT)[2], block_size=T, batch_size=1024)}


study = Study(
    arms=list(RUNGS),
    settings={"steps": 600, "rate": 0.01},
    variations=[{"rate": 0.003}, {"steps": 1800}],
)
