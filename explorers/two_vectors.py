"""Two arrows to drag: what the dot product, the cosine and the projection say about them."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import traitlets

from explorers.base import Explorer, esm
from helpers.plots import BLUE, GREEN, GREY, ORANGE, RED, Picture, draw_arrow, picture

REACH = 6.0  # the drawing shows -REACH … REACH on both axes


class TwoVectors(Explorer):
    """Two arrows in the plane: drag their tips, or move them with arrow keys or the sliders.

    a, b: the first position of each arrow, two numbers between -6 and 6; they are kept in steps
    of 0.1, so that a right angle can be met exactly. Raises ValueError for anything else.
    The dot product, both lengths, cosine, angle and the projection of b on a follow live.
    """

    _esm: ClassVar[str] = esm("two_vectors")

    ax = traitlets.Float().tag(sync=True)
    ay = traitlets.Float().tag(sync=True)
    bx = traitlets.Float().tag(sync=True)
    by = traitlets.Float().tag(sync=True)

    def __init__(self, a: Sequence[float] = (4.0, 1.0), b: Sequence[float] = (2.0, 3.0)):
        (ax, ay), (bx, by) = _point(a, "a"), _point(b, "b")
        super().__init__(ax=ax, ay=ay, bx=bx, by=by)

    @traitlets.validate("ax", "ay", "bx", "by")
    def _on_the_plane(self, proposal: Any) -> float:
        name, value = proposal.trait.name, proposal.value
        if not abs(value) <= REACH:  # NaN fails this too
            raise traitlets.TraitError(f"{name} goes from -{REACH:g} to {REACH:g}, not to {value}")
        return round(value, 1)

    def measures(self) -> dict[str, float]:
        """Dot product, lengths, cosine, angle in degrees, projection of b on a's direction.

        What needs the direction of a zero vector is NaN: such a vector points nowhere.
        """
        tenths = [round(10 * v) for v in (self.ax, self.ay, self.bx, self.by)]
        dot = (tenths[0] * tenths[2] + tenths[1] * tenths[3]) / 100  # exactly 0 at a right angle
        length_a, length_b = math.hypot(self.ax, self.ay), math.hypot(self.bx, self.by)
        lengths = length_a * length_b
        cosine = max(-1.0, min(1.0, dot / lengths)) if lengths else math.nan
        return {
            "dot": dot,
            "length_a": length_a,
            "length_b": length_b,
            "cosine": cosine,
            "angle": math.degrees(math.acos(cosine)) if lengths else math.nan,
            "projection": dot / length_a if length_a else math.nan,
        }

    def picture(self) -> Picture:
        """Both arrows and the projection of b on the line of a."""
        seen = self.measures()
        alt = f"Two arrows from the origin: {self.describe()}."
        fig, ax = picture(alt, width=4.6, height=4.6)
        ax.axhline(0, color=GREY, linewidth=0.8)
        ax.axvline(0, color=GREY, linewidth=0.8)
        if seen["length_a"]:
            share = seen["projection"] / seen["length_a"]
            foot = (share * self.ax, share * self.ay)
            ink = GREEN if seen["dot"] >= 0 else RED
            ax.plot([0, foot[0]], [0, foot[1]], color=ink, linewidth=6, alpha=0.45)
            ax.plot([self.bx, foot[0]], [self.by, foot[1]], color=GREY, linestyle="--", linewidth=1)
        draw_arrow(ax, (self.ax, self.ay), "a", BLUE)
        draw_arrow(ax, (self.bx, self.by), "b", ORANGE)
        ax.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH), aspect="equal")
        ax.set(xlabel="first entry", ylabel="second entry")
        title = f"a·b = {seen['dot']:.2f}, {self._angle()}"
        ax.set_title(title.replace("-", "−"))
        return fig

    def describe(self) -> str:
        """Both vectors, their dot product and angle in one line."""
        return (
            f"a=({self.ax:.1f}, {self.ay:.1f}), b=({self.bx:.1f}, {self.by:.1f}): "
            f"dot product {self.measures()['dot']:.2f}, {self._angle()}"
        )

    def _angle(self) -> str:
        angle = self.measures()["angle"]
        return "no angle" if math.isnan(angle) else f"angle {angle:.1f}°"


def _point(value: Any, name: str) -> tuple[float, float]:
    try:
        x, y = (float(v) for v in value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} should be two numbers such as (2.0, 1.0), not {value!r}"
        ) from None
    return x, y
