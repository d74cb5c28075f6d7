"""Boxes and arrows, such as the parts of a model."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path

from helpers.plots import BLUE, GREY, PAPER, Picture, picture, write_name

_BOX, _RING = np.array([0.74, 0.23]), np.array([0.13, 0.13])  # half width and height, in inches
_GRID, _ROUND = np.array([1.8, 0.7]), "round,pad=0,rounding_size=0.1"  # from box to box; corners


def diagram(
    boxes: Mapping[str, tuple[float, float]],  # name → (column, row), row 0 at the bottom
    alt: str,
    *,
    arrows: Sequence[Sequence[str]],  # (from, to) or (from, to, label)
    streams: Mapping[str, tuple[str, str]] | None = None,  # name → (first box, last box)
    frames: Mapping[str, Sequence[str]] | None = None,  # label → the boxes that it surrounds
    colors: Mapping[str, str] | None = None,  # box → colour
) -> Picture:
    """Draw boxes and arrows, from the bottom to the top.

    What follows a # in a name is not shown, so that two boxes can have one label; a symbol alone
    (×) stands in a circle. A stream joins two boxes of a column by a thick line like the residual
    stream; an arrow from it starts beside the other box, an arrow to it is added (+) there.
    """
    streams, frames, colors = streams or {}, frames or {}, colors or {}
    at = {name: np.asarray(place) * _GRID for name, place in boxes.items()}
    shown = {name: name.partition("#")[0].strip() for name in boxes}
    half = {name: _BOX if shown[name][1:] or shown[name].isalnum() else _RING for name in boxes}

    def end(name: str, other: str) -> tuple[np.ndarray, np.ndarray]:
        """Centre and half size of a box, or of the point of a stream beside the other box."""
        if name in streams:
            return np.array([at[streams[name][0]][0], at[other][1]]), _RING
        return at[name], half[name]

    (left, bottom), (right, top) = _corners(at.values()) + _BOX * [[-1.5, -2.2], [1.5, 2.2]]
    fig, ax = picture(alt, width=right - left, height=top - bottom)
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    ax.axis("off")
    for label, inside in frames.items():
        joined = [end(b, a)[0] for a, b, *_ in arrows if a in inside and b in streams]
        low, high = _corners([*(at[name] for name in inside), *joined])
        _draw_box(ax, (low + high) / 2, (high - low) / 2 + _BOX + 0.13, "none", facecolor="#f1eee4")
        write_name(ax, high + _BOX + 0.13, label, GREY, xytext=(-2, 4), ha="right", weight="bold")
    for first, last in streams.values():
        _draw_path(ax, _route(at[first], at[last], half[first], half[last]), BLUE, 5)
    for a, b, *note in arrows:
        (start, size), (goal, goal_size) = end(a, b), end(b, a)
        path = _route(start, goal, 0 * size if a in streams else size, goal_size)
        _draw_path(ax, path, GREY, 1.2)
        level = {"ha": "center", "xytext": (0, 4)} if start[1] == goal[1] else {"xytext": (5, -3)}
        write_name(ax, (path[-2] + path[-1]) / 2, "".join(note), GREY, fontsize=9.5, **level)
        if b in streams:
            _draw_ring(ax, goal, "+", BLUE)
    for name, place in at.items():
        color = colors.get(name, GREY)
        if half[name] is _RING:
            _draw_ring(ax, place, shown[name], color)
        else:
            _draw_box(ax, place, _BOX, color, facecolor=PAPER if color == GREY else (color, 0.2))
            ax.text(*place, textwrap.fill(shown[name], 17), ha="center", va="center")
    return fig


def _corners(points: Iterable[np.ndarray]) -> np.ndarray:
    """The lower left and the upper right corner of the smallest rectangle around points."""
    stacked = np.stack(list(points))
    return np.stack([stacked.min(axis=0), stacked.max(axis=0)])


def _route(start: Any, goal: Any, size: Any, goal_size: Any) -> np.ndarray:
    """Points from the edge of one box to that of another: straight, or with two corners."""
    across, up = np.sign(goal - start)
    way = np.array([0, up] if up else [across, 0])
    start, goal = start + way * size, goal - way * goal_size
    if not (across and up):
        return np.array([start, goal])
    corner = goal[1] - up * (_GRID[1] / 2 - _BOX[1])
    return np.array([start, (start[0], corner), (goal[0], corner), goal])


def _draw_path(ax: Axes, points: np.ndarray, color: str, width: float) -> None:
    look: dict[str, Any] = {"color": color, "linewidth": width, "mutation_scale": 7 + 2.5 * width}
    ax.add_patch(FancyArrowPatch(path=Path(points), arrowstyle="-|>", joinstyle="round", **look))


def _draw_box(ax: Axes, center: Any, half: Any, color: str, **look: Any) -> None:
    look = {"facecolor": "none", "edgecolor": color, "boxstyle": _ROUND, "linewidth": 1, **look}
    ax.add_patch(FancyBboxPatch(center - half, *(2 * half), **look))


def _draw_ring(ax: Axes, center: Any, sign: str, color: str) -> None:
    look = {"facecolor": PAPER, "edgecolor": color, "linewidth": 1.8, "zorder": 3}
    ax.add_patch(Circle(center, _RING[0], **look))
    ax.text(
        center[0], center[1], sign, color=color, fontsize=13, zorder=4, ha="center", va="center"
    )
