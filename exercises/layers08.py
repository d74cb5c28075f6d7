"""Layers of chapter 08 to try `is_tokenwise` on."""

import torch
from torch import Tensor, nn

from exercises.mistakes08 import standardised
from helpers.attention import MultiHeadAttention


class _Table(nn.Module):
    """Adds a row of a table to each place: tokens are changed, but do not meet."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.arange(x.shape[1])[:, None]


class _Move(nn.Module):
    """Place `end` also hears place `start`, all of it or one feature; share: how much of it."""

    def __init__(self, start: int, end: int, feature: int | None = None, share: float = 1.0):
        super().__init__()
        self.start, self.end, self.share = start, end, share
        self.features = slice(None) if feature is None else slice(feature, feature + 1)

    def forward(self, x: Tensor) -> Tensor:
        out = x.clone()
        out[:, self.end, self.features] += self.share * x[:, self.start, self.features]
        return out


class Recorder(nn.Module):
    """Changes nothing, and keeps the (T, C) of what it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: set[tuple[int, ...]] = set()

    def forward(self, x: Tensor) -> Tensor:
        self.shapes.add(tuple(x.shape[-2:]))
        return x.clone()


class _OverTime(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return standardised(x, dim=1)


def tokenwise_layers() -> list[tuple[str, nn.Module, bool, str]]:
    """(name, layer of width 8, is it token by token?, why), to try `is_tokenwise` on."""
    own = "A token may change the output at its own place, and here it changes no other."
    return [
        ("nn.Identity()", nn.Identity(), True, own),
        ("nn.Linear(8, 8)", nn.Linear(8, 8), True, own),
        ("nn.LayerNorm(8)", nn.LayerNorm(8), True, own),
        ("a table of places, added", _Table(), True,
         "The places are treated differently, but no token changes another one."),
        ("attention", MultiHeadAttention(8, 2), False, "Later tokens hear earlier ones."),
        ("a norm over the time", _OverTime(), False, "Every token moves the mean of all."),
        ("a layer in which place 0 hears the last token", _Move(-1, 0), False,
         "Do you change every token, the last one as well, and look at every place?"),
        ("a layer in which the last place hears token 0", _Move(0, -1), False,
         "Do you change every token, token 0 as well, and look at every place?"),
        ("a layer in which place 2 hears token 1", _Move(1, 2), False,
         "Only one token changes only one other place. Do you change every token in turn?"),
        ("a norm, then attention", nn.Sequential(nn.LayerNorm(8), MultiHeadAttention(8, 2)), False,
         "One number added to all features of a token is taken away by the norm. Put quite "
         "different numbers into the token."),
        *(
            (f"a layer in which only feature {feature} hears another token",
             _Move(1, 0, feature, share), False,
             "Do you look at every feature, and at changes up and down? (.abs() before .amax)")
            for feature in (7, 3, 0, 5) for share in (1.0, -1.0)
        ),
    ]  # fmt: skip
