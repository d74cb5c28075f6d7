"""Figures in one style, one function for each kind.

    curves      named lines; `smoothed` for noisy ones
    heatmap     a matrix as colours; `heatmaps` for several
    bars        bars in order; `seeds` for the runs behind a mean
    histograms  distributions of numbers
    diagram     boxes and arrows, such as the parts of a model

Each returns a `Picture`, a Matplotlib figure that shows itself as the last line of a cell. `alt` is
the alternative text, a sentence; `width` and `height` are in inches. With `ax`, a function draws on
the axes of an existing `picture`. All but `diagram` take these options, too:

    xlabel, title, xlim …  as in `Axes.set`
    xticks, yticks         the values to mark, or value → label
    log                    the logarithmic axes: "x", "y" or "xy"
    hlines                 name → value, drawn as a dashed line; upright with vertical=False
    legend                 "above", "below", one of Matplotlib's places, or "" for none
"""

import io
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Okabe and Ito's palette (2008) without yellow: told apart with every kind of colour vision.
_CYCLE = BLUE, ORANGE, GREEN, PINK, SKY, RED = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00",
)  # fmt: skip
GREY, INK = "#6b7280", "#374151"

# The course's look, from the import of this module on.
mpl.rcParams.update({
    "font.family": "DejaVu Sans",  # ships with Matplotlib: the same glyphs on every machine
    "font.size": 10, "legend.frameon": False, "lines.linewidth": 2,
    "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": GREY,
    "axes.labelcolor": INK, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "xtick.color": GREY, "ytick.color": GREY,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": "#e5e7eb",
    "axes.prop_cycle": cycler(color=_CYCLE),
})  # fmt: skip


class Picture(Figure):
    """A figure, shown as a PNG in a notebook and as its alternative text elsewhere."""

    alt: str = ""

    def png(self) -> bytes:
        """Return the picture as PNG bytes, which are the same for equal pictures."""
        buffer = io.BytesIO()
        with warnings.catch_warnings():
            # A box stands for what the font lacks (Matplotlib's "last resort"), without ado.
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            if engine := self.get_layout_engine():
                engine.execute(self)  # once more than savefig does: maps with square cells need it
            self.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()

    def __repr__(self) -> str:
        return f"[picture] {self.alt}"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        shown = {"image/png": self.png(), "text/plain": repr(self)}
        return shown, {"image/png": {"alt": self.alt}}


def picture(
    alt: str, *, width: float = 7, height: float = 3.6, columns: int = 1, rows: int = 1, **axes: Any
) -> tuple[Picture, Any]:
    """Return an empty picture, and its axes (options: `Figure.subplots`): one, or an array."""
    if not alt.strip():
        raise ValueError("a picture needs its alternative text: say in a sentence what it shows")
    fig = Picture(figsize=(width, height), dpi=110, layout="constrained", facecolor="white")
    FigureCanvasAgg(fig)
    fig.alt = alt
    return fig, fig.subplots(rows, columns, **axes)


def visible(token: str) -> str:
    """Return a token with visible white space, for labels: "to be" becomes "to␣be"."""
    return token.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")


def verbatim(text: Any) -> str:
    """Return text for a label, with $ escaped, which would begin a formula."""
    return str(text).replace("$", r"\$")


def _shown(labels: Iterable[Any]) -> list[str]:
    return [verbatim(label) for label in labels]


def _number(value: Any, form: str) -> str:
    return format(value, form).replace("inf", "∞").replace("-", "−")


def write_name(ax: Axes, place: Any, text: str, color: str, **look: Any) -> None:
    """Write a name beside a place (x, y)."""
    look = {"xytext": (5, 5), "textcoords": "offset points", **look}
    ax.annotate(text, place, color=color, **look)


def _places(ax: Axes, labels: Collection[Any], vertical: bool = False) -> np.ndarray:
    """Label an axis; returns the positions 0, 1, …, from the top, or from the left (vertical)."""
    (ax.xaxis if vertical else ax.yaxis).set_ticks(range(len(labels)), _shown(labels))
    if not vertical:
        ax.set_ylim(len(labels) - 0.5, -0.5)
    return np.arange(len(labels))


@contextmanager
def _drawn(
    alt: str,
    *,
    ax: Any = None,
    width: float = 7,
    height: float = 3.6,
    vertical: bool = True,
    log: str = "",
    hlines: Mapping[str, float] | None = None,
    legend: str = "best",
    **labels: Any,
) -> Iterator[Any]:
    """The axes to draw on, given or new; afterwards adds scales, ticks, labels, lines, legend."""
    ax = picture(alt, width=width, height=height)[1] if ax is None else ax
    yield ax
    ax.set(**{f"{side}scale": "log" for side in log})
    for side, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        ticks = labels.pop(f"{side}ticks", None)
        if ticks is not None:
            shown = _shown(ticks.values() if isinstance(ticks, Mapping) else ticks)
            axis.set_ticks([], minor=True)
            axis.set_ticks(list(ticks), shown)
    ax.set(**labels)
    for (name, level), dashes in zip((hlines or {}).items(), cycle(("--", ":", "-."))):
        draw = ax.axhline if vertical else ax.axvline
        draw(level, color=GREY, linewidth=1.5, linestyle=dashes, label=name)
    handles, names = ax.get_legend_handles_labels()
    if legend in ("above", "below"):
        side, room = {"above": "upper", "below": "lower"}[legend], ax.figure.get_figwidth()
        wide = [0.5 + 0.08 * len(name) for name in names]  # in inches
        columns = len(names) if sum(wide) < room else max(1, int(room / max(wide)))
        look = {"loc": f"outside {side} center", "ncols": columns, "columnspacing": 1.2}
        ax.figure.legend(handles, names, **look)
    elif legend and (hlines or len(names) > 1):
        ax.legend(loc=legend)


def heatmap(
    matrix: Any,  # (rows, columns)
    alt: str = "",
    *,
    row_labels: Sequence[Any] | None = None,  # tokens
    column_labels: Sequence[Any] | None = None,
    signed: bool = False,  # colours centred on 0: red positive, blue negative
    values: Any = None,  # written in: a format of the numbers (".2f"), or a matrix of texts
    limits: tuple[float, float] | None = None,  # (lowest, highest) of the colours
    colorbar: str | None = None,  # its label
    **options: Any,
) -> Picture:
    """Draw a matrix as colours; cells that are infinite or NaN stay white."""
    data = np.asarray(matrix, dtype=float)
    with _drawn(alt, **({"width": 5, "height": 4} | options)) as ax:
        finite = data[np.isfinite(data)]  # a masked score is −∞: its cell stays white
        low, high = limits or (finite.min(initial=0.0), finite.max(initial=0.0))
        if signed and limits is None:
            low, high = -max(-low, high), max(-low, high)
        shown = np.where(np.isfinite(data), data, np.nan)
        image = ax.imshow(shown, "RdBu_r" if signed else "viridis", vmin=low, vmax=high)
        ax.grid(False)
        ax.spines[:].set_visible(False)
        for axis, names in ((ax.yaxis, row_labels), (ax.xaxis, column_labels)):
            if names is not None:
                axis.set_ticks(range(len(names)), _shown(visible(str(name)) for name in names))
        if column_labels is not None and max(map(len, map(str, column_labels)), default=0) > 2:
            ax.tick_params(axis="x", rotation=90)
        if values is not None:
            written = np.asarray(values)
            for (i, j), value in np.ndenumerate(data):
                r, g, b, _ = image.cmap(image.norm(value)) if np.isfinite(value) else (1, 1, 1, 1)
                ink = "black" if 0.3 * r + 0.59 * g + 0.11 * b > 0.5 else "white"
                text = _number(value, values) if isinstance(values, str) else str(written[i, j])
                ax.text(j, i, text, ha="center", va="center", color=ink, fontsize=9)
        if colorbar is not None:
            bar = ax.figure.colorbar(image, ax=ax, shrink=0.9, label=colorbar)
            bar.outline.set_visible(False)
        return ax.figure


def heatmaps(
    matrices: Mapping[str, Any], alt: str, *, ylabel: str = "", height: float = 3.4, **options: Any
) -> Picture:
    """Draw several matrices side by side: title → (rows, columns); options as of `heatmap`."""
    size = {"width": options.pop("width", 3.2 * len(matrices)), "height": height}
    fig, axes = picture(alt, **size, columns=len(matrices), squeeze=False)
    for ax, (title, matrix) in zip(axes[0], matrices.items(), strict=True):
        heatmap(matrix, ax=ax, title=title, **options)
        if max(np.shape(matrix)) > 12:
            ax.tick_params(length=0, labelsize=7)
    axes[0, 0].set_ylabel(ylabel)
    return fig


def curves(
    lines: Mapping[str, Any],  # name → y values, or name → (x values, y values)
    alt: str = "",
    *,
    xlabel: str,
    ylabel: str,
    styles: Mapping[str, Any] | None = None,  # name → "--", "C0o" … or options of `plot`
    axvspan: Mapping[str, tuple[float, float]] | None = None,  # name → (from, to) in x, grey
    **options: Any,
) -> Picture:
    """Draw named curves on one pair of axes."""
    with _drawn(alt, xlabel=xlabel, ylabel=ylabel, **options) as ax:
        for name, line in lines.items():
            pair = line if isinstance(line, tuple) else (range(len(line)), line)
            style = (styles or {}).get(name, {})
            short, look = ([style], {}) if isinstance(style, str) else ([], style)
            ax.plot(*pair, *short, label=name, **look)
        for name, (start, end) in (axvspan or {}).items():
            ax.axvspan(start, end, color="#e5e7eb", linewidth=0, zorder=0, label=name)
        return ax.figure


def smoothed(values: Any, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the moving average of values (n,), for `curves`: (middle of the steps, mean)."""
    numbers = np.asarray(values, dtype=float)
    means = np.lib.stride_tricks.sliding_window_view(numbers, width).mean(axis=1)
    return np.arange(len(means)) + (width - 1) / 2, means


def bars(
    series: Mapping[str, Any],  # name → (n,) lengths; several names give bars side by side
    alt: str = "",
    *,
    labels: Sequence[Any],  # n names of the bars
    values: str | None = None,  # a format (".2f") of the lengths, written at the bars
    highlight: Collection[str] = (),  # labels of the bars in another colour
    vertical: bool = False,
    **options: Any,
) -> Picture:
    """Draw bars, the first one on top."""
    with _drawn(alt, vertical=vertical, **options) as ax:
        place, thick = _places(ax, labels, vertical), 0.8 / len(series)
        for i, (name, lengths) in enumerate(series.items()):
            at = place + thick * (i - (len(series) - 1) / 2)
            numbers = np.asarray(lengths, dtype=float)
            look = {"hatch": ("", "//", "..")[i % 3], "label": name if len(series) > 1 else ""}
            color = [ORANGE if label in highlight else _CYCLE[i] for label in labels]
            draw = ax.bar if vertical else ax.barh
            drawn = draw(at, numbers, thick, color=color, edgecolor="white", **look)
            if values is not None:
                ax.bar_label(drawn, [_number(v, values) for v in numbers], padding=3, fontsize=9)
                ax.margins(**{"y" if vertical else "x": 0.15})  # room for the numbers
        ax.grid(axis="x" if vertical else "y", visible=False)
        return ax.figure


def seeds(
    runs: Mapping[str, Any], alt: str = "", *, paired: bool = False, **options: Any
) -> Picture:
    """Draw a dot for each seed and a tick at the mean of each setting: name → results.

    paired: whether to join the dots of one seed.
    """
    results = [np.asarray(numbers, dtype=float) for numbers in runs.values()]
    with _drawn(alt, vertical=False, **({"height": 3} | options)) as ax:
        place = _places(ax, runs)
        for one_seed in np.stack(results, axis=1) if paired else ():
            ax.plot(one_seed, place, color="#d1d5db", linewidth=1)
        every = np.repeat(place, [*map(len, results)])
        dot = {"color": SKY, "markersize": 8, "alpha": 0.8, "label": "one seed"}
        ax.plot(np.concatenate(results), every, "o", **dot)
        if len(every) > len(place):
            tick = {"color": BLUE, "markersize": 14, "markeredgewidth": 2.5, "label": "mean"}
            ax.plot([numbers.mean() for numbers in results], place, "|", **tick)
        return ax.figure


def histograms(
    samples: Mapping[str, Any],  # name → numbers of any shape
    alt: str = "",
    *,
    bins: int = 60,
    limits: tuple[float, float] | None = None,  # of the bins; None: those of the numbers
    **options: Any,
) -> Picture:
    """Draw histograms with the same bins."""
    with _drawn(alt, **options) as ax:
        numbers = [np.ravel(sample) for sample in samples.values()]
        edges = np.histogram_bin_edges(np.concatenate(numbers), bins, limits)
        for color, name, sample in zip(cycle(_CYCLE), samples, numbers):
            look = {"facecolor": (color, 0.3), "edgecolor": color, "linewidth": 1.5}
            ax.hist(sample, edges, histtype="stepfilled", label=name, **look)
        return ax.figure


def draw_arrow(ax: Axes, vector: Any, name: str, color: str) -> None:
    """Draw a 2-D vector as an arrow from the origin, with its name beyond the tip."""
    x, y = np.asarray(vector, float)
    arrow = {"color": color, "linewidth": 2, "mutation_scale": 16, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", **arrow})
    ha, va = "right" if x < 0 else "left", "top" if y < 0 else "baseline"
    offset = -5 if x < 0 else 5, -5 if y < 0 else 5
    write_name(ax, (x, y), name, color, xytext=offset, weight="bold", ha=ha, va=va)


from helpers.plots.diagram import diagram as diagram  # noqa: E402 (it draws with the above)
