"""What depth does to a stack of layers: the size of the stream, the gradient, the tokens."""

import functools
import itertools
import math
from typing import Any, ClassVar

import numpy as np
import torch
import traitlets

from explorers.base import Explorer, esm, in_range
from helpers.plots import BLUE, RED, Picture, picture

WIDTH, TOKENS, DEEPEST = 32, 8, 48
DEPTHS = (2, 4, 8, 16, 32, 48)
NORMS = ("none", "pre", "post")
SCALES = (0.1, 0.25, 0.5, 1.0, 2.0)
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class DepthExplorer(Explorer):
    """A stack of up to 48 untrained layers: residual connections, norms, and the scale of layers.

    Args:
        depth: number of layers, one of 2, 4, 8, 16, 32, 48.
        skips: if True, a layer returns x + f(x), otherwise f(x) alone.
        norm: "none", "pre" (the input of f is normalised) or "post" (the stream itself is
            normalised after each layer).
        scale: size of the output of f, relative to its input, one of 0.1, 0.25, 0.5, 1, 2.
        layer: the layer whose numbers are shown beside those of the ends.

    The layers are feed-forward networks with ReLU, C = 32, and 8 random tokens go through them.
    Shown by layer: the size (root mean square) of the stream, the gradient that arrives there,
    relative to the one at the end, and the similarity of the tokens (mean cosine of two of them).
    Raises ValueError for other settings, and TraitError when a trait is set to one.
    """

    _esm: ClassVar[str] = esm("depth")

    numbers = traitlets.Bytes().tag(sync=True)  # all settings, as `_grid` has them, sent once
    depth_index = traitlets.Int(5).tag(sync=True)
    scale_index = traitlets.Int(3).tag(sync=True)
    skips = traitlets.Enum(("on", "off"), "on").tag(sync=True)
    norm = traitlets.Enum(NORMS, "none").tag(sync=True)
    layer = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        depth: int = 48,
        *,
        skips: bool = True,
        norm: str = "none",
        scale: float = 1.0,
        layer: int = 0,
    ) -> None:
        for name, value, choices in (
            ("depth", depth, DEPTHS),
            ("scale", scale, SCALES),
            ("skips", skips, (True, False)),
        ):
            if value not in choices:
                raise ValueError(f"{name} should be one of {choices}, not {value!r}")
        super().__init__(
            numbers=_grid().astype("<f4").tobytes(),
            depth_index=DEPTHS.index(depth),
            scale_index=SCALES.index(scale),
            skips="on" if skips else "off",
            norm=norm,
            layer=layer,
        )

    _depths = in_range(f"a place in {DEPTHS},", "depth_index", low=0, high=len(DEPTHS) - 1)
    _scales = in_range(f"a place in {SCALES},", "scale_index", low=0, high=len(SCALES) - 1)
    _layers = in_range("a place on the way up,", "layer", low=0, high=lambda self: self.depth)

    @traitlets.observe("depth_index")
    def _stay_inside(self, _: Any) -> None:
        """Fewer layers: whoever looked beyond the last looks at the last."""
        self.layer = min(self.layer, self.depth)

    @property
    def depth(self) -> int:
        """How many layers the stack has at present."""
        return DEPTHS[self.depth_index]

    def measures(self) -> dict[str, np.ndarray]:
        """By place, before the first layer to after the last: size, gradient, cosine.

        Size and gradient are powers of ten, because many are too large or too small to write out.
        """
        place = (int(self.skips == "off"), NORMS.index(self.norm), self.scale_index)
        rows, shown = _grid()[place], self.depth + 1
        return {
            "size": rows[0, :shown],
            "gradient": rows[2 + self.depth_index, :shown],
            "cosine": rows[1, :shown],
        }

    def picture(self) -> Picture:
        """Two towers, a slab for each layer: as bright as what is left, vermilion where it grew."""
        now = self.measures()
        alt = f"Size of the stream and gradient, two towers of layers: {self.describe()}."
        fig, axes = picture(alt, width=6, height=4, columns=2)
        for ax, name in zip(axes, ("size", "gradient"), strict=True):
            for place, power in enumerate(now[name]):
                left = float(np.clip(1 + power / 6, 0, 1))  # paper at 10⁻⁶, vermilion at 10³
                color = RED if power >= 1 else BLUE
                ax.barh(place, 1, 0.8, left=-0.5, color=color, alpha=left)
            for y, va, power in (
                (-1, "top", now[name][0]),
                (self.depth + 1, "bottom", now[name][-1]),
            ):
                ax.text(0, y, in_powers(power), ha="center", va=va)
            ax.set(xlim=(-1.5, 1.5), ylim=(-6, DEEPEST + 6))
            ax.set_axis_off()
        axes[0].set_title("Stream ↑", loc="center")
        axes[1].set_title("Gradient ↓", loc="center")
        return fig

    def describe(self) -> str:
        """The settings, and what comes out at either end."""
        now = self.measures()
        return (
            f"{self.depth} layers, skips {self.skips}, norm {self.norm}, scale "
            f"{SCALES[self.scale_index]:g}: size at the end {in_powers(now['size'][-1])}, gradient "
            f"at the start {in_powers(now['gradient'][0])}, cosine {now['cosine'][-1]:.2f}"
        )


def in_powers(power: Any) -> str:
    """10 ** power in two digits, as people write it.

    >>> in_powers(0.5), in_powers(-7.3)
    ('3.2', '5.0·10⁻⁸')
    """
    power = round(float(power), 6)  # so that 0.1 is not one digit longer when it comes as 0.09999…
    if -2 <= power < 3:
        return f"{10**power:.{max(0, 1 - math.floor(power))}f}"
    whole = math.floor(power)
    digits = f"{10 ** (power - whole):.1f}"
    if digits == "10.0":
        digits, whole = "1.0", whole + 1
    return f"{digits}·10{str(whole).translate(_SUPERSCRIPTS)}"


@functools.cache
def _grid() -> np.ndarray:
    """Every setting measured: (skips on/off, norm, scale, what, place).

    what: 0 size and 2 … 7 gradient for each depth, as powers of ten; 1 the tokens' cosine.
    """
    draw, C = np.random.default_rng(0), WIDTH
    up = torch.tensor(draw.standard_normal((DEEPEST, C, 4 * C)) * C**-0.5)
    # ReLU lets half of the squares through: the 2 makes up for it (He et al. 2015).
    down = torch.tensor(draw.standard_normal((DEEPEST, 4 * C, C)) * (2 / (4 * C)) ** 0.5)
    x, end = torch.tensor(draw.standard_normal((2, TOKENS, C)))
    end = (end / end.square().mean().sqrt()).expand(len(SCALES), -1, -1)
    # All scales at once: (scales, tokens, C).
    scales = torch.tensor(SCALES, dtype=torch.float64)[:, None, None]
    grid = np.zeros((2, len(NORMS), len(SCALES), 2 + len(DEPTHS), DEEPEST + 1))
    for skips, norm in itertools.product(("on", "off"), NORMS):
        streams = [x.expand(end.shape).requires_grad_()]
        for layer in range(DEEPEST):
            read = _normed(streams[-1]) if norm == "pre" else streams[-1]
            out = scales * ((read @ up[layer]).relu() @ down[layer])
            out = out + streams[-1] if skips == "on" else out
            streams.append(_normed(out) if norm == "post" else out)
        rows = grid[int(skips == "off"), NORMS.index(norm)]
        for place, stream in enumerate(streams):
            rows[:, 0, place], rows[:, 1, place] = _size(stream), _cosine(stream)
        for row, depth in enumerate(DEPTHS, 2):
            found = torch.autograd.grad(streams[depth], streams[:depth], end, retain_graph=True)
            for place, gradient in enumerate(found):
                rows[:, row, place] = _size(gradient)
    return grid


def _normed(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=0)


def _size(x: torch.Tensor) -> torch.Tensor:
    """The root mean square over tokens and features, as a power of ten."""
    return x.square().mean((-2, -1)).sqrt().log10().detach()


def _cosine(x: torch.Tensor) -> torch.Tensor:
    """The mean cosine of two different tokens."""
    unit = x / x.norm(dim=-1, keepdim=True)
    return ((unit @ unit.mT).sum((-2, -1)).detach() - TOKENS) / (TOKENS * (TOKENS - 1))
