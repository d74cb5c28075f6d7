"""What depth does to a stack of layers: the size of the stream, the gradient, the tokens."""

import functools
import math
from typing import Any, ClassVar

import numpy as np
import traitlets

from explorers.base import Explorer, esm, in_range
from helpers.plots import BLUE, GREY, RED, Picture, picture

WIDTH, TOKENS, DEEPEST = 32, 8, 48
DEPTHS = (2, 4, 8, 16, 32, 48)
NORMS = ("none", "pre", "post")
SCALES = (0.1, 0.25, 0.5, 1.0, 2.0)
_PLACES = DEEPEST + 1  # the stream is looked at before the first layer and after each one
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class DepthExplorer(Explorer):
    """A stack of up to 48 untrained layers: residual connections, norms, and the scale of layers.

    Args:
        depth: number of layers, one of 2, 4, 8, 16, 32, 48.
        skips: if True, a layer returns x + f(x), otherwise f(x) alone.
        norm: "none", "pre" (the input of f is normalised) or "post" (the stream itself is
            normalised after each layer).
        scale: size of the output of f, relative to its input, one of 0.1, 0.25, 0.5, 1, 2.
        layer: the layer whose numbers the table shows.

    The layers are feed-forward networks with ReLU, C = 32, and 8 random tokens go through them.
    Shown by layer: the size (root mean square) of the stream, the gradient that arrives there,
    relative to the one at the end, and the similarity of the tokens (mean cosine of two of them).
    Raises ValueError for other settings, and TraitError when a trait is set to one.
    """

    _esm: ClassVar[str] = esm("depth")

    numbers = traitlets.Bytes().tag(sync=True)  # all settings, as `_grid` has them, sent once
    depth_index = traitlets.Int(5).tag(sync=True)
    scale_index = traitlets.Int(3).tag(sync=True)
    skips = traitlets.Unicode("on").tag(sync=True)
    norm = traitlets.Unicode("none").tag(sync=True)
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

    @traitlets.validate("skips", "norm")
    def _is_a_choice(self, proposal: Any) -> str:
        choices = ("on", "off") if proposal.trait.name == "skips" else NORMS
        if proposal.value not in choices:
            raise traitlets.TraitError(
                f"{proposal.trait.name} should be one of {choices}, not {proposal.value!r}"
            )
        return str(proposal.value)

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
        """The size of the stream and the gradient, by layer."""
        now = self.measures()
        fig, axes = picture(
            f"Size of the stream and gradient by layer, on logarithmic axes: {self.describe()}.",
            width=9,
            height=3.2,
            columns=2,
        )
        for ax, name, colour, line in zip(
            axes, ("size", "gradient"), (BLUE, RED), ("-", "--"), strict=True
        ):
            ax.axvline(self.layer, color=GREY, linewidth=1, linestyle=":")
            ax.plot(now[name], line, color=colour)
            ax.plot([self.layer], [now[name][self.layer]], "o", color=GREY, clip_on=False)
            low, high = now[name].min(), now[name].max()
            ax.set(xlim=(0, DEEPEST), ylim=(min(low, -2) - 0.3, max(high, 2) + 0.3))
            ax.yaxis.set_major_formatter(lambda power, _: f"$10^{{{power:g}}}$")
            ax.yaxis.get_major_locator().set_params(integer=True)
            ax.set(xlabel="layers")
        axes[0].set(title="Size of the stream")
        axes[1].set(title="Gradient, relative to the end")
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
    draw = np.random.default_rng(0)
    C = WIDTH
    up = draw.standard_normal((DEEPEST, C, 4 * C)) * C**-0.5
    # ReLU lets half of the squares through: the 2 makes up for it (He et al. 2015).
    down = draw.standard_normal((DEEPEST, 4 * C, C)) * (2 / (4 * C)) ** 0.5
    x, at_the_end = draw.standard_normal((2, TOKENS, C))
    grid = np.zeros((2, len(NORMS), len(SCALES), 2 + len(DEPTHS), _PLACES))
    for skip in (0, 1):
        for n, norm in enumerate(NORMS):
            for s, scale in enumerate(SCALES):
                stack = _Stack(up, scale * down, skips=not skip, norm=norm)
                grid[skip, n, s] = stack.measure(x, at_the_end)
    return grid


class _Stack:
    """Layers forwards and backwards, written out, so that an explorer needs no torch."""

    def __init__(self, up: np.ndarray, down: np.ndarray, *, skips: bool, norm: str):
        self.up, self.down, self.skips, self.norm = up, down, skips, norm

    def measure(self, x: np.ndarray, at_the_end: np.ndarray) -> np.ndarray:
        """The rows of `_grid` for one setting."""
        rows = np.zeros((2 + len(DEPTHS), _PLACES))
        streams, backs = [x], []
        for layer in range(DEEPEST):
            x, back = self._layer(layer, x)
            streams.append(x)
            backs.append(back)
        rows[0] = [np.log10(_size(stream)) for stream in streams]
        rows[1] = [_alike(stream) for stream in streams]
        for row, depth in enumerate(DEPTHS, 2):
            gradient = at_the_end / _size(at_the_end)
            for layer in reversed(range(depth)):
                gradient = backs[layer](gradient)
                rows[row, layer] = np.log10(_size(gradient))
        return rows

    def _layer(self, layer: int, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """x after one layer, and the function that takes a gradient back through it."""
        up, down = self.up[layer], self.down[layer]
        read, back_in = _norm(x) if self.norm == "pre" else (x, _same)
        hidden = np.maximum(read @ up, 0)
        out = hidden @ down + (x if self.skips else 0)
        out, back_out = _norm(out) if self.norm == "post" else (out, _same)

        def back(gradient: np.ndarray) -> np.ndarray:
            gradient = back_out(gradient)
            inner = back_in((gradient @ down.T * (hidden > 0)) @ up.T)
            return inner + gradient if self.skips else inner

        return out, back


def _same(gradient: np.ndarray) -> np.ndarray:
    return gradient


def _norm(x: np.ndarray) -> tuple[np.ndarray, Any]:
    """LayerNorm without gain and shift, and its way back."""
    std = x.std(-1, keepdims=True)
    normed = (x - x.mean(-1, keepdims=True)) / std

    def back(gradient: np.ndarray) -> np.ndarray:
        along = (gradient * normed).mean(-1, keepdims=True) * normed
        return (gradient - gradient.mean(-1, keepdims=True) - along) / std

    return normed, back


def _size(x: np.ndarray) -> float:
    return float(np.sqrt((x**2).mean()))


def _alike(x: np.ndarray) -> float:
    """The mean cosine of two different tokens."""
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    cosines = unit @ unit.T
    return float((cosines.sum() - TOKENS) / (TOKENS * (TOKENS - 1)))
