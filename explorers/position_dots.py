"""The dot products of sinusoidal position vectors: which positions are similar."""

import math
from typing import Any

import torch
import traitlets

from explorers.base import Explorer, esm, in_range
from helpers import plots
from helpers.positions import sinusoidal

LONGEST, WIDEST = 128, 512


class PositionDots(Explorer):
    """PE(p) · PE(r) for all pairs of positions, and one row of it as a curve.

    length: how many positions, 8 to 128; n_embd: the width C, a power of two from 2 to 512; base:
    of the frequencies, 10 to 10,000,000; p, r: the chosen positions, 20 and 26 or the last.

    Raises ValueError for values out of range, and TraitError when a trait is set to one.
    """

    _esm = esm("position_dots")

    length = traitlets.Int(64).tag(sync=True)
    log_width = traitlets.Int(5).tag(sync=True)
    log_base = traitlets.Float(4.0).tag(sync=True)
    p = traitlets.Int(20).tag(sync=True)
    r = traitlets.Int(26).tag(sync=True)

    def __init__(
        self,
        length: int = 64,
        n_embd: int = 32,
        base: float = 10_000.0,
        *,
        p: int | None = None,
        r: int | None = None,
    ):
        if not 2 <= n_embd <= WIDEST or n_embd & (n_embd - 1):
            raise ValueError(f"n_embd should be 2, 4, 8, … or {WIDEST}, but is {n_embd}")
        if not 10 <= base <= 1e7:
            raise ValueError(f"base should be 10 to 10,000,000, but is {base}")
        super().__init__(
            length=length,
            log_width=n_embd.bit_length() - 1,
            log_base=math.log10(base),
            p=min(20, length - 1) if p is None else p,
            r=min(26, length - 1) if r is None else r,
        )

    _many = in_range("how many positions,", "length", low=8, high=LONGEST)
    _width = in_range("the width C as a power of two,", "log_width", low=1, high=9)
    _places = in_range("a position", "p", "r", low=0, high=lambda self: self.length - 1)
    _power = in_range("the base as a power of ten,", "log_base", low=1, high=7)

    @traitlets.observe("length")
    def _stay_inside(self, _: Any) -> None:
        """Fewer positions: what was chosen beyond the last becomes the last."""
        self.p, self.r = min(self.p, self.length - 1), min(self.r, self.length - 1)

    def dots(self) -> torch.Tensor:
        """PE(p) · PE(r) for all p and r: (length, length)."""
        table = sinusoidal(self.length, 2**self.log_width, 10**self.log_base)
        return table @ table.T

    def describe(self) -> str:
        return (
            f"{self.length} positions, width {2**self.log_width}, base {10**self.log_base:.0f}: "
            f"PE({self.p}) · PE({self.r}) = {self.dots()[self.p, self.r]:.2f}"
        )

    def picture(self) -> plots.Picture:
        fig, (left, right) = plots.picture(
            f"Dot products of {self.length} sinusoidal position vectors: equal along diagonals, "
            f"largest on the main one; beside it the row of position {self.p} as a curve.",
            width=9,
            height=3.8,
            columns=2,
        )
        dots = self.dots()
        high = dots.max().item()
        plots.heatmap(dots, ax=left, signed=True, limits=(-high, high))
        left.axhspan(self.p - 0.5, self.p + 0.5, fill=False, edgecolor=plots.INK, linewidth=1)
        left.plot([self.r], [self.p], "s", color="none", markeredgecolor=plots.RED, markersize=8)
        left.set(title="PE(p) · PE(r)", xlabel="position r", ylabel="position p")
        right.plot(dots[self.p], color=plots.BLUE)
        right.plot([self.r], dots[self.p, self.r], "o", color=plots.RED)
        right.axvline(self.p, color=plots.GREY, linestyle="--", linewidth=1)
        right.set(title=f"Row p = {self.p}", xlabel="position r", ylabel=f"PE({self.p}) · PE(r)")
        return fig
