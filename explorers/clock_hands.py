"""Rotary positions as clocks: each pair of features is a hand that turns with the position."""

import math
from typing import Any

import torch
import traitlets

from explorers.base import Explorer, esm, in_range, read_only
from helpers import plots
from helpers.positions import Rotary, rotary_angles


class ClockHands(Explorer):
    """Turn a query and a key by their positions, and see what their score depends on.

    q, k: one query and one key of the same even size hs, at most 8, in the half-split layout of
    `Rotary`: features i and i + hs/2 are the pair of clock i. query, key: their positions, 0 to
    `longest`; log_base: of the frequencies, 1 to 7 for a base of 10 to 10,000,000.
    """

    _esm = esm("clock_hands")

    q = traitlets.List(traitlets.Float(), [1.0, 0.8, 0.9, 1.1, 0.3, -0.4, 0.2, 0.5]).tag(sync=True)
    k = traitlets.List(traitlets.Float(), [0.9, 1.0, 0.7, 1.2, -0.2, 0.3, 0.6, 0.1]).tag(sync=True)
    query = traitlets.Int(9).tag(sync=True)
    key = traitlets.Int(4).tag(sync=True)
    longest = traitlets.Int(60).tag(sync=True)
    log_base = traitlets.Float(4.0).tag(sync=True)

    _given = read_only("q", "k", "longest")
    _places = in_range("a position", "query", "key", low=0, high=lambda self: self.longest)
    _power = in_range("the base as a power of ten,", "log_base", low=1, high=7)

    @property
    def base(self) -> float:
        """The base of the frequencies."""
        return 10**self.log_base

    def score(self, query: int | None = None, key: int | None = None) -> float:
        """q · k / √hs after both were turned: at the present positions, or at those given."""
        rotary = Rotary(len(self.q), self.base)
        q = rotary(torch.tensor([self.q]), self.query if query is None else query)
        k = rotary(torch.tensor([self.k]), self.key if key is None else key)
        return (q @ k.T).item() / math.sqrt(len(self.q))

    def scores(self) -> torch.Tensor:
        """The score at every distance from −longest to longest, query's position − key's."""
        distances = range(-self.longest, self.longest + 1)
        return torch.tensor([self.score(max(d, 0), max(-d, 0)) for d in distances])

    def describe(self) -> str:
        return (
            f"{len(self.q) // 2} clocks, query at {self.query}, key at {self.key}: "
            f"score {self.score():.2f}"
        )

    def picture(self) -> plots.Picture:
        pairs = len(self.q) // 2
        fig, axes = plots.picture(
            f"{pairs} clocks, one for each pair of features: the hand of the query at position "
            f"{self.query} and of the key at position {self.key}; the score is {self.score():.2f}. "
            f"Below, the score at every distance; a dot at distance {self.query - self.key}.",
            width=max(5.0, 1.9 * pairs),
            height=4.8,
            columns=pairs,
            rows=2,
            squeeze=False,
            height_ratios=[3, 2],
        )
        steps = rotary_angles(2, 2 * pairs, self.base)[1].tolist()
        hands: list[tuple[str, list[float], int, str, Any]] = [
            ("q", self.q, self.query, plots.BLUE, "-"),
            ("k", self.k, self.key, plots.RED, "--"),
        ]
        longest = max(
            math.hypot(v[i], v[i + pairs]) for v in (self.q, self.k) for i in range(pairs)
        )
        for i, ax in enumerate(axes[0]):
            turn = torch.linspace(0, 2 * math.pi, 100)
            ax.plot(turn.sin(), turn.cos(), color=plots.GREY, linewidth=1)
            ax.plot([0, 0], [0.9, 1], color=plots.GREY, linewidth=1)  # twelve o'clock, (1, 0)
            angles = []
            for name, vector, place, colour, style in hands:
                a, b = vector[i], vector[i + pairs]
                angle = math.atan2(b, a) + place * steps[i]
                length = 0.95 * math.hypot(a, b) / (longest or 1.0)
                x, y = length * math.sin(angle), length * math.cos(angle)
                ax.plot([0, x], [0, y], style, color=colour, linewidth=2.5)
                ink = plots.BLUE if name == "q" else "#b93a10"  # text needs a darker red
                tip = 1.13 * math.sin(angle), 1.13 * math.cos(angle)
                ax.text(*tip, name, color=ink, ha="center", va="center", weight="bold")
                angles.append(angle)
            wedge = (math.degrees(angles[0] - angles[1]) + 180) % 360 - 180
            arc = angles[1] + math.radians(wedge) * torch.linspace(0, 1, 50)
            between = torch.stack([arc.sin(), arc.cos()], dim=1) * 0.76
            ax.fill(*torch.cat([torch.zeros(1, 2), between]).T, color=plots.ORANGE, alpha=0.45)
            ax.set(title=f"pair {i}", xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal")
            degrees = f"{wedge:.0f}°".replace("-", "−")
            ax.set_xlabel(f"{math.degrees(steps[i]):.3g}° per step\n{degrees} from k to q")
            ax.set(xticks=[], yticks=[])
            ax.grid(False)
            ax.spines[:].set_visible(False)
        wide, *others = axes[1]  # one picture as wide as all the dials
        for ax in others:
            ax.remove()
        wide.set_subplotspec(wide.get_gridspec()[1, :])
        distance, scores = self.query - self.key, self.scores()
        wide.plot(range(-self.longest, self.longest + 1), scores, color=plots.GREY, linewidth=1.5)
        wide.plot([distance], scores[distance + self.longest], "o", color=plots.BLUE, markersize=9)
        wide.set(xlabel="distance: position of the query − position of the key", ylabel="score")
        wide.margins(x=0.02)
        return fig
