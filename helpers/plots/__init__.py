"""Figures in one style, one function for each kind.

    curves      named lines; `smoothed` for noisy ones
    heatmap     a matrix as colours; `heatmaps` for several
    bars        bars in order; `seeds` for the runs behind a mean
    histograms  distributions of numbers
    trees       binary trees, such as the merges of a word
    diagram     boxes and arrows, such as the parts of a model

Each returns a `Picture`, a Matplotlib figure that shows itself as the last line of a cell; there is
no pyplot state. `alt` is the alternative text, a sentence; `width` and `height` are in inches. With
`ax`, a function draws on the axes of an existing picture::

    fig, (left, right) = plots.picture("Left: the schedule. Right: the loss.", columns=2)
    plots.curves({"cosine": shares}, ax=left, xlabel="step", ylabel="share of the rate")
    plots.curves({"loss": losses}, ax=right, xlabel="step", ylabel="loss in nats")
    fig

All but `diagram` take these options, too:

    xlabel, title, xlim …  as in `Axes.set`
    xticks, yticks         the values to mark, or value → label
    log                    the logarithmic axes: "x", "y" or "xy"
    hlines                 name → value, drawn as a dashed line
    legend                 "above", "below", one of Matplotlib's places, or "" for none
"""

import io
import textwrap
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, cycle, pairwise
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path

# Okabe and Ito's palette (2008) without yellow: told apart with every kind of colour vision.
_CYCLE = BLUE, ORANGE, GREEN, PINK, SKY, RED = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00",
)  # fmt: skip
GREY, _INK = "#6b7280", "#374151"

_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # ships with Matplotlib: the same glyphs on every machine
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": _INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e5e7eb",
    "lines.linewidth": 2,
    "legend.frameon": False,
    "axes.prop_cycle": cycler(color=_CYCLE),
}
_styled = mpl.rc_context(_STYLE)  # decorates what draws: the course's look, whoever calls


class Picture(Figure):
    """A figure, shown as a PNG in a notebook and as its alternative text elsewhere."""

    alt: str = ""

    def png(self) -> bytes:
        """Return the picture as PNG bytes, which are the same for equal pictures."""
        buffer = io.BytesIO()
        with mpl.rc_context(_STYLE), warnings.catch_warnings():
            # A box stands for what the font lacks (Matplotlib's "last resort"), without ado.
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            if engine := self.get_layout_engine():
                engine.execute(self)  # once more than savefig does: maps with square cells need it
            self.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()

    def __repr__(self) -> str:
        return f"[picture] {self.alt}"

    def metadata(self) -> dict[str, Any]:
        """Return the metadata of the PNG in a notebook's output: the alternative text."""
        return {"image/png": {"alt": self.alt}}

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"image/png": self.png(), "text/plain": repr(self)}, self.metadata()


class _Axes(Axes):
    """Axes in the course's style, also for what is drawn after `picture()` has returned."""

    set_title, legend = _styled(Axes.set_title), _styled(Axes.legend)
    plot = _styled(Axes.plot)


def picture(
    alt: str, *, width: float = 7, height: float = 3.6, columns: int = 1, rows: int = 1, **axes: Any
) -> tuple[Picture, Any]:
    """Return an empty picture and its axes in the course's style.

    Args:
        alt: the alternative text.
        width, height: in inches.
        columns, rows: numbers of axes.
        axes: other options of `Figure.subplots`.

    Returns (picture, axes); axes is one `Axes` or an array of them. Raises ValueError if alt is
    empty.
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
    """Return a token with visible white space, for labels.

    >>> visible("to be"), visible(chr(10))
    ('to␣be', '⏎')
    """
    return token.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")


def _check_names(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise ValueError unless all names are known."""
    for name in names:
        if name not in known:
            raise ValueError(
                f"{what} names {name!r}, which is none of {', '.join(map(str, known))}"
            )


def _check_few(what: str, names: Collection[str], most: int = len(_CYCLE)) -> None:
    """Raise ValueError for more names than colours."""
    if len(names) > most:
        raise ValueError(f"{what} has {len(names)} names; at most {most} can be told apart")


def verbatim(text: Any) -> str:
    """Return text for a label, with $ escaped, which would begin a formula."""
    return str(text).replace("$", r"\$")


def _shown(labels: Iterable[Any]) -> list[str]:
    return [verbatim(label) for label in labels]


def _number(value: Any, form: str) -> str:
    return format(value, form).replace("inf", "∞").replace("-", "−")


def _name(ax: Axes, place: Any, text: str, colour: str, **look: Any) -> None:
    """Write a name beside a place (x, y)."""
    look = {"xytext": (5, 5), "textcoords": "offset points", **look}
    ax.annotate(text, place, color=colour, **look)


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
    with mpl.rc_context(_STYLE):
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
            line = {"color": GREY, "linewidth": 1.5, "linestyle": dashes, "label": name}
            (ax.axhline if vertical else ax.axvline)(level, **line)
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
    matrix: Any,
    alt: str = "",
    *,
    row_labels: Sequence[Any] | None = None,
    column_labels: Sequence[Any] | None = None,
    signed: bool = False,
    values: Any = None,
    limits: tuple[float, float] | None = None,
    colorbar: str | None = None,
    **options: Any,
) -> Picture:
    """Draw a matrix as colours; cells that are infinite or NaN stay white.

    Args:
        matrix: (rows, columns) numbers.
        row_labels, column_labels: tokens.
        signed: whether the colours are centred on 0 (red positive, blue negative).
        values: a format such as ".2f" to write the numbers in, or a matrix of what to write.
        limits: (lowest, highest) of the colours.
        colorbar: the label of the colour bar; None: no colour bar.

    Raises ValueError if the matrix does not have 2 dimensions.
    """
    data = np.asarray(matrix, dtype=float)
    if data.ndim != 2:
        raise ValueError(f"a heat map needs a matrix with 2 dimensions, not shape {data.shape}")
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
            written = None if isinstance(values, str) else np.asarray(values)
            for (i, j), value in np.ndenumerate(data):
                r, g, b, _ = image.cmap(image.norm(value)) if np.isfinite(value) else (1, 1, 1, 1)
                ink = "black" if 0.3 * r + 0.59 * g + 0.11 * b > 0.5 else "white"
                text = _number(value, values) if written is None else str(written[i, j])
                ax.text(j, i, text, ha="center", va="center", color=ink, fontsize=9)
        if colorbar is not None:
            bar = ax.figure.colorbar(image, ax=ax, shrink=0.9, label=colorbar)
            bar.outline.set_visible(False)
        return ax.figure


def heatmaps(
    matrices: Mapping[str, Any], alt: str, *, ylabel: str = "", height: float = 3.4, **options: Any
) -> Picture:
    """Draw several matrices side by side.

    Args:
        matrices: title → (rows, columns) numbers.
        ylabel: of the first map.
        options: those of `heatmap`, or title → the option for that map. Without `limits`, each map
            has its own colours.
    """
    size = {"width": options.pop("width", 3.2 * len(matrices)), "height": height}
    fig, axes = picture(alt, **size, columns=len(matrices), squeeze=False)
    for ax, (title, matrix) in zip(axes[0], matrices.items(), strict=True):
        own = {k: v[title] if isinstance(v, Mapping) else v for k, v in options.items()}
        heatmap(matrix, ax=ax, title=title, **own)
        if max(np.shape(matrix)) > 12:
            ax.tick_params(length=0, labelsize=7)
    axes[0, 0].set_ylabel(ylabel)
    return fig


def curves(
    lines: Mapping[str, Any],
    alt: str = "",
    *,
    xlabel: str,
    ylabel: str,
    styles: Mapping[str, Any] | None = None,
    axvspan: Mapping[str, tuple[float, float]] | None = None,
    **options: Any,
) -> Picture:
    """Draw named curves on one pair of axes.

    Args:
        lines: name → y values, or name → (x values, y values).
        styles: name → a format string of Matplotlib ("--", "o", "C0o--") or a mapping of options.
        axvspan: name → (from, to) in x, a grey span.

    Raises ValueError if `styles` names a curve that does not exist.
    """
    _check_names("styles", styles or {}, lines)
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
    """Return the moving average of values (n,), for `curves`: (steps, means), (n − width + 1,).

    Each mean of `width` values stands at the middle of its steps. Raises ValueError if n < width.
    """
    numbers = np.asarray(values, dtype=float)
    if not 1 <= width <= len(numbers):
        raise ValueError(f"{len(numbers)} values have no mean of {width} neighbours")
    means = np.convolve(numbers, np.full(width, 1 / width), mode="valid")
    return np.arange(len(means)) + (width - 1) / 2, means


def bars(
    series: Mapping[str, Any],
    alt: str = "",
    *,
    labels: Sequence[Any],
    values: str | None = None,
    highlight: Collection[str] = (),
    vertical: bool = False,
    **options: Any,
) -> Picture:
    """Draw bars, the first one on top.

    Args:
        series: name → (n,) lengths; several names give bars side by side.
        labels: n names of the bars.
        values: a format such as ".2f" to write the lengths at the bars.
        highlight: the labels of the bars in another colour.
        vertical: whether the bars are vertical.

    Raises ValueError if there are not n lengths, more than six series, or an unknown `highlight`.
    """
    _check_names("highlight", highlight, labels)
    _check_few("series", series)
    with _drawn(alt, vertical=vertical, **options) as ax:
        place, thick = _places(ax, labels, vertical), 0.8 / len(series)
        for i, (name, lengths) in enumerate(series.items()):
            at = place + thick * (i - (len(series) - 1) / 2)
            numbers = np.asarray(lengths, dtype=float)
            if numbers.shape != (len(labels),):
                raise ValueError(
                    f"{name!r} should have a length for each of {len(labels)} labels, but has "
                    f"shape {numbers.shape}"
                )
            look = {"hatch": ("", "//", "..")[i % 3], "label": name if len(series) > 1 else ""}
            colour = [ORANGE if label in highlight else _CYCLE[i] for label in labels]
            draw = ax.bar if vertical else ax.barh
            drawn = draw(at, numbers, thick, color=colour, edgecolor="white", **look)
            if values is not None:
                ax.bar_label(drawn, [_number(v, values) for v in numbers], padding=3, fontsize=9)
                ax.margins(**{"y" if vertical else "x": 0.15})  # room for the numbers
        ax.grid(axis="x" if vertical else "y", visible=False)
        return ax.figure


def seeds(
    runs: Mapping, alt: str = "", paired: bool = False, vertical: bool = False, **options: Any
) -> Picture:
    """Draw a dot for each seed and a tick at the mean of each setting.

    Args:
        runs: setting → the results of its seeds.
        paired: whether to join the dots of one seed.
        vertical: whether the settings are numbers: x, with the results as y and the means joined.

    Raises ValueError if `paired` settings have different numbers of seeds.
    """
    results = [np.asarray(numbers, dtype=float) for numbers in runs.values()]
    if paired and len(set(map(len, results))) > 1:
        raise ValueError(f"paired settings need equally many seeds, not {[*map(len, results)]}")
    means = [numbers.mean() for numbers in results]
    defaults = {"height": 3, "xticks": list(runs) if vertical else None}
    with _drawn(alt, vertical=vertical, **(defaults | options)) as ax:
        place = list(runs) if vertical else _places(ax, runs)

        def draw(at: Any, numbers: Any, *style: str, **look: Any) -> None:
            ax.plot(*((at, numbers) if vertical else (numbers, at)), *style, **look)

        for one_seed in np.stack(results, axis=1) if paired else ():
            draw(place, one_seed, color="#d1d5db", linewidth=1)
        if vertical:
            draw(place, means, color=BLUE, linewidth=1.5)
        every = np.repeat(place, [*map(len, results)])
        dot = {"color": SKY, "markersize": 8, "alpha": 0.8, "label": "one seed"}
        draw(every, np.concatenate(results), "o", **dot)
        if len(every) > len(place):
            tick = {"color": BLUE, "markersize": 14, "markeredgewidth": 2.5, "label": "mean"}
            draw(place, means, "_" if vertical else "|", **tick)
        return ax.figure


def histograms(
    samples: Mapping[str, Any],
    alt: str = "",
    *,
    bins: int = 60,
    limits: tuple[float, float] | None = None,
    marks: Mapping[str, float] | None = None,
    **options: Any,
) -> Picture:
    """Draw histograms with the same bins.

    Args:
        samples: name → numbers of any shape.
        bins: number of bins.
        limits: (low, high) of the bins; None: the smallest and the largest number.
        marks: name → number, marked by a coloured line.

    Raises ValueError for more than six names or three marks.
    """
    _check_few("samples", samples)
    _check_few("marks", marks or {}, most=3)
    with _drawn(alt, **options) as ax:
        numbers = [np.ravel(sample) for sample in samples.values()]
        edges = np.histogram_bin_edges(np.concatenate(numbers), bins, limits)
        for colour, name, sample in zip(_CYCLE, samples, numbers, strict=False):
            look = {"facecolor": (colour, 0.3), "edgecolor": colour, "linewidth": 1.5}
            ax.hist(sample, edges, histtype="stepfilled", label=name, **look)
        for colour, (name, mark) in zip((RED, GREEN, PINK), (marks or {}).items(), strict=False):
            ax.axvline(mark, color=colour, linewidth=2.5, label=name)
        return ax.figure


def trees(
    roots: Sequence[Any],
    alt: str = "",
    *,
    heights: Mapping[str, float] | None = None,
    **options: Any,
) -> Picture:
    """Draw binary trees side by side, leaves at the bottom, one colour per tree.

    Args:
        roots: each a label, or a pair of subtrees: ("n", ("e", "w")).
        heights: the joined labels under a node ("new") → its height; None: one above its subtrees.
    """
    leaves: list[str] = []
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # names stand before lines

    def grow(tree: Any, colour: str) -> tuple[str, float, float]:
        """Draw a tree; returns its joined labels and the position (x, y) of its top."""
        if isinstance(tree, str):
            leaves.append(tree)
            return tree, len(leaves) - 1.0, 0.0
        (left, x, low), (right, end, high) = (grow(half, colour) for half in tree)
        top = heights[left + right] if heights else max(low, high) + 1
        ax.plot((x, x, end, end), (low, top, top, high), color=colour)
        look: dict[str, Any] = {"xytext": (0, 4), "ha": "center", "weight": "bold", "bbox": paper}
        _name(ax, ((x + end) / 2, top), verbatim(visible(left + right)), _INK, **look)
        return left + right, (x + end) / 2, top

    with _drawn(alt, **options) as ax:
        for root, colour in zip(roots, cycle(_CYCLE), strict=False):
            first = len(leaves)
            _, x, top = grow(root, colour)
            if top == 0:
                ax.plot(x, 0, "o", color=colour)
            if first:
                ax.axvline(first - 0.5, color="#d1d5db", linewidth=1, linestyle=":")
        ax.set_xticks(range(len(leaves)), _shown(map(visible, leaves)))
        ax.tick_params(axis="x", length=0, labelsize=11)
        ax.grid(axis="x", visible=False)
        ax.set_xlim(-0.6, len(leaves) - 0.4)
        ax.set_ylim(0, 1.12 * ax.dataLim.y1 if ax.dataLim.y1 else 1)
        return ax.figure


def draw_points(ax: Axes, points: Mapping[str, Any], colour: str = _INK, marker: str = "o") -> None:
    """Draw points (x, y) of a plane, each with its name beside it."""
    paper = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
    for name, point in points.items():
        ax.plot(*point, marker, color=colour)
        _name(ax, tuple(point), name, colour, bbox=paper)


def draw_arrow(ax: Axes, vector: Any, name: str, colour: str, start: Any = (0.0, 0.0)) -> None:
    """Draw a 2-D vector as an arrow from `start`, with its name beyond the tip."""
    base, step = np.asarray(start, float), np.asarray(vector, float)
    tip, (left, down) = tuple(base + step), step < 0
    look = {"arrowstyle": "-|>", "color": colour, "linewidth": 2, "mutation_scale": 16}
    ax.annotate("", tip, tuple(base), arrowprops={**look, "shrinkA": 0, "shrinkB": 0})
    beyond = {"ha": "right" if left else "left", "va": "top" if down else "baseline"}
    _name(ax, tip, name, colour, xytext=tuple(np.where(step < 0, -5, 5)), weight="bold", **beyond)


_BOX, _RING = np.array([0.72, 0.26]), np.array([0.15, 0.15])  # half width and height, in inches
_GRID, _ROUND = np.array([1.8, 0.85]), "round,pad=0,rounding_size=0.08"  # from box to box; corners


@_styled
def diagram(
    boxes: Mapping[str, tuple[float, float]] | Sequence[str | Sequence[str]],
    alt: str,
    *,
    arrows: Sequence[Sequence[str]] | None = None,
    streams: Mapping[str, tuple[str, str]] | None = None,
    frames: Mapping[str, Sequence[str]] | None = None,
    colours: Mapping[str, str] | None = None,
) -> Picture:
    """Draw boxes and arrows, from the bottom to the top.

    Args:
        boxes: name → (column, row), row 0 at the bottom; or the rows from bottom to top, each a
            name or a list of names. What follows a # is not shown, so that two boxes can have one
            label; a symbol alone (×) stands in a circle.
        arrows: (from, to) or (from, to, label); without, each box of a row points at all of the
            next.
        streams: name → (first box, last box) of one column, joined by a thick line like the
            residual stream. An arrow from a stream starts on it beside the other box; an arrow to a
            stream is added (+) there.
        frames: label → the boxes that it surrounds.
        colours: box → colour.

    Raises ValueError for a box that does not exist.
    """
    if not isinstance(boxes, Mapping):
        rows: list[Sequence[str]] = [[row] if isinstance(row, str) else row for row in boxes]
        arrows = arrows or [(a, b) for low, high in pairwise(rows) for a in low for b in high]
        boxes = {n: (i - len(row) / 2, j) for j, row in enumerate(rows) for i, n in enumerate(row)}
    arrows, streams, frames, colours = arrows or (), streams or {}, frames or {}, colours or {}
    _check_names("arrows", chain(*(arrow[:2] for arrow in arrows)), {**boxes, **streams})
    _check_names("streams", chain(*streams.values()), boxes)
    _check_names("frames", chain(*frames.values()), boxes)
    _check_names("colours", colours, boxes)
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
        _draw_box(ax, (low + high) / 2, (high - low) / 2 + _BOX + 0.13, GREY, linestyle="--")
        _name(ax, high + _BOX + 0.13, label, GREY, xytext=(-2, 3), ha="right", weight="bold")
    for first, last in streams.values():
        _draw_path(ax, _route(at[first], at[last], half[first], half[last]), BLUE, 4)
    for a, b, *note in arrows:
        (start, size), (goal, goal_size) = end(a, b), end(b, a)
        path = _route(start, goal, 0 * size if a in streams else size, goal_size)
        _draw_path(ax, path, _INK, 1.4)
        level = {"ha": "center", "xytext": (0, 4)} if start[1] == goal[1] else {"xytext": (5, -3)}
        _name(ax, (path[-2] + path[-1]) / 2, "".join(note), _INK, fontsize=9, **level)
        if b in streams:
            _draw_ring(ax, goal, "+", BLUE)
    for name, place in at.items():
        colour = colours.get(name, GREY)
        if half[name] is _RING:
            _draw_ring(ax, place, shown[name], colour)
        else:
            _draw_box(ax, place, _BOX, colour, facecolor=0.15 * np.array(to_rgb(colour)) + 0.85)
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


def _draw_path(ax: Axes, points: np.ndarray, colour: str, width: float) -> None:
    look: dict[str, Any] = {"color": colour, "linewidth": width, "mutation_scale": 8 + 3 * width}
    ax.add_patch(FancyArrowPatch(path=Path(points), arrowstyle="-|>", joinstyle="round", **look))


def _draw_box(ax: Axes, centre: Any, half: Any, colour: str, **look: Any) -> None:
    look = {"facecolor": "none", "edgecolor": colour, "boxstyle": _ROUND, "linewidth": 1.4, **look}
    ax.add_patch(FancyBboxPatch(centre - half, *(2 * half), **look))


def _draw_ring(ax: Axes, centre: Any, sign: str, colour: str) -> None:
    look = {"facecolor": "white", "edgecolor": colour, "linewidth": 1.8, "zorder": 3}
    ax.add_patch(Circle(centre, _RING[0], **look))
    middle: dict[str, Any] = {"xytext": (0, 0), "ha": "center", "va": "center_baseline"}
    _name(ax, centre, sign, colour, fontsize=13, zorder=4, **middle)
