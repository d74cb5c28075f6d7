"""Still pictures in one look: heat maps, curves, bars and arrows.

Every function returns a `Picture`, a plain Matplotlib figure that shows itself when it is the last
line of a cell. There is no pyplot state, so a chapter can run its cells in any order and leaves no
open figures behind. Draw your own with `picture()`::

    fig, ax = plots.picture("A parabola: it falls to 0 and rises again.")
    ax.plot(x, x**2)
    fig
"""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Okabe and Ito's palette (2008) without yellow: told apart with every kind of colour vision.
BLUE, ORANGE, GREEN, PINK, SKY, RED = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00",
)  # fmt: skip
GREY = "#6b7280"

_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # ships with Matplotlib: the same glyphs on every machine
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": "#374151",
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": "#374151",
    "ytick.labelcolor": "#374151",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e5e7eb",
    "lines.linewidth": 2,
    "legend.frameon": False,
    "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, PINK, SKY, RED]),
}


class Picture(Figure):
    """A figure that shows itself as a PNG in a notebook and as its alternative text elsewhere.

    The paper stays white in the dark theme too, so that colours mean the same in both.
    """

    alt: str = ""

    def png(self) -> bytes:
        """The picture as PNG bytes (without a version stamp, so equal pictures are equal files)."""
        buffer = io.BytesIO()
        with mpl.rc_context(_STYLE):
            self.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()

    def __repr__(self) -> str:
        return f"[picture] {self.alt}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"image/png": self.png(), "text/plain": repr(self)}


class _Axes(Axes):
    """Axes in the course's look, also for what is drawn after `picture()` has returned."""

    def set_title(self, *args: Any, **options: Any) -> Any:
        with mpl.rc_context(_STYLE):
            return super().set_title(*args, **options)

    def legend(self, *args: Any, **options: Any) -> Any:
        with mpl.rc_context(_STYLE):
            return super().legend(*args, **options)

    def plot(self, *args: Any, **options: Any) -> Any:
        with mpl.rc_context(_STYLE):
            return super().plot(*args, **options)


def picture(
    alt: str, *, width: float = 7, height: float = 3.6, columns: int = 1, rows: int = 1, **axes: Any
) -> tuple[Picture, Any]:
    """An empty picture and its axes in the course's look.

    alt: what the picture shows, in a sentence; width, height: inches; axes: passed to `subplots`.
    Returns (picture, axes), where axes is one `Axes` or an array of them as `subplots` gives it.
    """
    if not alt.strip():
        raise ValueError("a picture needs its alternative text: say in a sentence what it shows")
    axes.setdefault("subplot_kw", {"axes_class": _Axes})
    with mpl.rc_context(_STYLE):
        fig = Picture(figsize=(width, height), dpi=110, layout="constrained", facecolor="white")
        FigureCanvasAgg(fig)
        fig.alt = alt
        return fig, fig.subplots(rows, columns, **axes)


def visible(token: str) -> str:
    """A token with its white space made visible, for labels.

    >>> visible("to be"), visible(chr(10))
    ('to␣be', '⏎')
    """
    return token.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")


def draw_heatmap(
    ax: Axes,
    matrix: Any,
    *,
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    signed: bool = False,
    values: str | None = None,
    limits: tuple[float, float] | None = None,
    colour_bar: str | None = None,
) -> None:
    """Draw a (rows, columns) matrix on `ax`; the arguments are those of `heatmap`."""
    data = np.asarray(matrix, dtype=float)
    if data.ndim != 2:
        raise ValueError(f"a heat map needs a matrix with 2 dimensions, not shape {data.shape}")
    finite = data[np.isfinite(data)]  # a masked score is −∞: its cell stays white
    largest = np.abs(finite).max(initial=0.0)
    low, high = limits or ((-largest, largest) if signed else (finite.min(initial=0.0), largest))
    image = ax.imshow(
        np.where(np.isfinite(data), data, np.nan),
        cmap="RdBu_r" if signed else "viridis",
        vmin=low,
        vmax=high,
    )
    ax.grid(False)
    ax.spines[:].set_visible(False)
    for axis, labels in ((ax.yaxis, row_labels), (ax.xaxis, column_labels)):
        if labels is not None:
            # An escaped $ stays a dollar; two bare ones would begin a formula.
            shown = [visible(str(label)).replace("$", r"\$") for label in labels]
            axis.set_ticks(range(len(labels)), shown)
    if column_labels is not None and max(map(len, map(str, column_labels)), default=0) > 2:
        ax.tick_params(axis="x", rotation=90)
    if values is not None:
        for (i, j), value in np.ndenumerate(data):
            r, g, b, _ = image.cmap(image.norm(value)) if np.isfinite(value) else (1, 1, 1, 1)
            ink = "black" if 0.3 * r + 0.59 * g + 0.11 * b > 0.5 else "white"
            number = format(value, values).replace("inf", "∞").replace("-", "−")
            ax.text(j, i, number, ha="center", va="center", color=ink, fontsize=9)
    if colour_bar is not None:
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.9)
        bar.set_label(colour_bar)
        bar.outline.set_visible(False)


def heatmap(
    matrix: Any,
    alt: str,
    *,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    width: float = 5,
    height: float = 4,
    **options: Any,
) -> Picture:
    """A matrix as colours.

    matrix: (rows, columns) numbers; alt: alternative text; row_labels, column_labels: tokens;
    signed: True for a map centred on 0 (red positive, blue negative); values: a format such as
    ".2f" to write the numbers in; limits: (lowest, highest); colour_bar: its label and unit.
    Cells that are infinite or not a number stay white.
    """
    fig, ax = picture(alt, width=width, height=height)
    with mpl.rc_context(_STYLE):
        draw_heatmap(ax, matrix, **options)
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    return fig


def curves(
    lines: Mapping[str, Any],
    alt: str,
    *,
    xlabel: str,
    ylabel: str,
    title: str = "",
    levels: Mapping[str, float] | None = None,
    width: float = 7,
    height: float = 3.6,
) -> Picture:
    """Named curves on one pair of axes.

    lines: name → y values, or name → (x values, y values); levels: name → height of a dashed
    horizontal line, for a value that the curves should be compared with.
    """
    fig, ax = picture(alt, width=width, height=height)
    for name, line in lines.items():
        pair = line if isinstance(line, tuple) else (range(len(line)), line)
        ax.plot(*pair, label=name)
    for i, (name, level) in enumerate((levels or {}).items()):
        style = ("--", ":", "-.")[i % 3]
        ax.axhline(level, color=GREY, linewidth=1.5, linestyle=style, label=name)
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    ax.legend()
    return fig


def draw_arrow(ax: Axes, vector: Any, name: str, colour: str, start: Any = (0.0, 0.0)) -> None:
    """Draw a 2-D vector as an arrow from `start`, with its name at the tip."""
    (x0, y0), (dx, dy) = np.asarray(start, float), np.asarray(vector, float)
    ax.annotate(
        "",
        (x0 + dx, y0 + dy),
        (x0, y0),
        arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2, "shrinkA": 0,
                    "shrinkB": 0, "mutation_scale": 16},
    )  # fmt: skip
    ax.annotate(
        name, (x0 + dx, y0 + dy), xytext=(5, 5), textcoords="offset points",
        color=colour, fontweight="bold",
    )  # fmt: skip
