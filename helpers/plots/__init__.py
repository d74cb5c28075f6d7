"""Figures in one style (course.mplstyle), one function for each kind.

Each returns a `Picture`, a Matplotlib figure that shows itself as the last line of a cell. `alt` is
the alternative text, a sentence; `width` and `height` are in inches. With `ax`, a function draws on
the axes of an existing `picture`. All but `diagram` take these options, too:

    xlabel, title, xlim …  as in `Axes.set`
    xticks, yticks         the values to mark, or value → label
    log                    the logarithmic axes: "x", "y" or "xy"
    hlines                 name → value, drawn as a dashed line; upright with vertical=False
    legend                 "above", "below", …, or "": where names are that fit at no line's end
"""

import io
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rcParams, style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.lines import Line2D

# The course's look, from the import of this module on; its font makes the same picture everywhere.
for font in sorted(Path(__file__).parent.glob("fonts/*.ttf")):
    fontManager.addfont(font)
style.use(Path(__file__).with_name("course.mplstyle"))
_CYCLE = rcParams["axes.prop_cycle"].by_key()["color"]
BLUE, GREEN, ORANGE, PINK, _, RED = _CYCLE  # RED, the accent, says: look here
GREY, INK, PAPER, SKY, MASKED = "#5d6675", "#1b2130", "#fffdf8", "#9cbce4", "#e3e1da"
# Of all maps, explorers' too: 0 is paper. What may not be looked at is MASKED.
WEIGHTS = LinearSegmentedColormap.from_list("", [PAPER, BLUE]).with_extremes(bad=MASKED)
SIGNED = LinearSegmentedColormap.from_list("", [RED, PAPER, BLUE]).with_extremes(bad=MASKED)


class Picture(Figure):
    """A figure, shown as a PNG in a notebook and as its alternative text elsewhere."""

    alt: str = ""

    def png(self) -> bytes:
        """Return the picture as PNG bytes, which are the same for equal pictures."""
        buffer = io.BytesIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a box stands there
            warnings.filterwarnings("ignore", "Creating legend")  # it takes its time: so be it
            if engine := self.get_layout_engine():
                engine.execute(self)  # once more than savefig does: maps with square cells need it
            self.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()

    def __repr__(self) -> str:
        return f"[picture] {self.alt}"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        shown = {"image/png": self.png(), "text/plain": repr(self)}
        return shown, {"image/png": {"alt": self.alt, "width": round(100 * self.get_figwidth())}}


def picture(
    alt: str, *, width: float = 7, height: float = 3.6, columns: int = 1, rows: int = 1, **axes: Any
) -> tuple[Picture, Any]:
    """Return an empty picture, and its axes (options: `Figure.subplots`): one, or an array."""
    if not alt.strip():
        raise ValueError("a picture needs its alternative text: say in a sentence what it shows")
    fig = Picture(figsize=(min(width, 8.6), height), layout="constrained")  # 8.6: what a page holds
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


def write_name(ax: Axes, place: Any, text: str, color: Any, **look: Any) -> None:
    """Write a name beside a place (x, y)."""
    ax.annotate(
        text, place, color=color, **{"xytext": (5, 5), "textcoords": "offset points"} | look
    )


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
        if (ticks := labels.pop(f"{side}ticks", None)) is not None:
            shown = _shown(ticks.values() if isinstance(ticks, Mapping) else ticks)
            axis.set_ticks([], minor=True)
            axis.set_ticks([*ticks], shown)
    ax.set(**labels)
    for (name, level), dashes in zip((hlines or {}).items(), cycle(("--", ":", "-."))):
        draw = ax.axhline if vertical else ax.axvline
        draw(level, color=GREY, linewidth=1.5, linestyle=dashes, label=name)
    handles, names = ax.get_legend_handles_labels()
    if not legend or len(names) < 2 - bool(hlines) or _name_at_ends(ax, handles, names):
        return
    if place := {"above": "outside upper center", "below": "outside lower center"}.get(legend):
        columns = max(1, int(ax.figure.get_figwidth() / (0.5 + 0.08 * max(map(len, names)))))
        ax.figure.legend(handles, names, loc=place, ncols=columns)
    else:
        ax.legend(loc=legend)


def _name_at_ends(ax: Axes, handles: Sequence[Any], names: Sequence[str]) -> bool:
    """Write names at the right ends of their lines, apart; False if not all of them end there."""
    ax.get_xlim()  # now the scales are known
    lines = [it for it in handles if isinstance(it, Line2D) and it.get_linestyle() != "None"]
    paths = [(it.get_transform() - ax.transAxes).transform(it.get_xydata()) for it in lines]
    ends = np.array([max(path.tolist(), default=[0, 0]) for path in paths])
    k, gap = np.arange(len(lines)), 13 / 72 * ax.figure.dpi / ax.get_window_extent().height
    if len(lines) < len(handles) or min(ends[:, 0]) < 0.93 or max(map(len, names)) > 36:
        return False
    order = np.argsort(ends[:, 1])
    places = np.maximum.accumulate(ends[order, 1] - gap * k)  # each beyond the last one
    for i, y in zip(order, np.minimum(places, 1 - gap * k[-1]) + gap * k, strict=True):
        ink = 0.75 * np.array(to_rgb(lines[i].get_color())) + 0.25 * np.array(to_rgb(INK))
        write_name(ax, (1, y), names[i], ink, xytext=(5, 0), xycoords="axes fraction", va="center")
    return True


def heatmap(
    matrix: Any,  # (rows, columns)
    alt: str = "",
    *,
    row_labels: Sequence[Any] | None = None,  # tokens
    column_labels: Sequence[Any] | None = None,
    signed: bool = False,  # colours centred on 0: blue positive, vermilion negative
    values: Any = None,  # written in: a format of the numbers (".2f"), or a matrix of texts
    limits: tuple[float, float] | None = None,  # (lowest, highest) of the colours
    colorbar: str | None = None,  # its label
    **options: Any,
) -> Picture:
    """Draw a matrix as colours, 0 as paper; cells that are infinite or NaN are grey."""
    data = np.asarray(matrix, dtype=float)
    with _drawn(alt, **({"width": 5, "height": 4} | options)) as ax:
        finite = np.append(data[np.isfinite(data)], 0.0)  # a masked score is −∞
        most = abs(finite).max()
        low, high = limits or ((-most, most) if signed else (finite.min(), finite.max()))
        shown = np.where(np.isfinite(data), data, np.nan)
        image = ax.imshow(shown, SIGNED if signed else WEIGHTS, vmin=low, vmax=high)
        ax.grid(False)
        ax.spines[:].set_visible(False)
        for draw, (n, m) in ((ax.vlines, data.shape), (ax.hlines, data.shape[::-1])):
            draw(np.arange(1, m) - 0.5, -0.5, n - 0.5, PAPER, linewidth=1.5 * (max(n, m) < 17))
        for axis, names in ((ax.yaxis, row_labels), (ax.xaxis, column_labels)):
            if names is not None:
                axis.set_ticks(range(len(names)), _shown(visible(str(name)) for name in names))
        if column_labels is not None:
            cell = min(ax.get_window_extent().size / data.shape[::-1]) / ax.figure.dpi  # in inches
            longest = max(map(len, map(str, column_labels)), default=0)
            ax.tick_params(axis="x", rotation=90 * (0.075 * longest > cell))
        if values is not None:
            written, (r, g, b, _) = np.asarray(values), image.to_rgba(image.get_array()).T
            dark = (0.3 * r + 0.59 * g + 0.11 * b).T < 0.55
            for (i, j), value in np.ndenumerate(data):
                ink = PAPER if dark[i, j] else INK if value else GREY
                text = _number(value, values) if isinstance(values, str) else str(written[i, j])
                ax.text(j, i, text, ha="center", va="center", color=ink, fontsize=9)
        if colorbar is not None:
            bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, aspect=24, label=colorbar)
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
            ax.axvspan(start, end, color="#f1eee4", linewidth=0, zorder=0)
            ax.text(start, 1.01, name, transform=ax.get_xaxis_transform(), color=GREY)
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
            color = [RED if label in highlight else _CYCLE[i] for label in labels]
            draw = ax.bar if vertical else ax.barh
            drawn = draw(at, numbers, thick, color=color, edgecolor=PAPER, **look)
            if values is not None:
                ax.bar_label(drawn, [_number(v, values) for v in numbers], padding=3, fontsize=9)
                ax.margins(**{"y" if vertical else "x": 0.15})  # room for the numbers
        ax.grid(axis="x" if vertical else "y", visible=False)
        return ax.figure


def seeds(
    runs: Mapping[str, Any], alt: str = "", *, paired: bool = False, **options: Any
) -> Picture:
    """Draw a dot for each seed (paired: joined) and a tick at the mean of each: name → results."""
    results = [np.asarray(numbers, dtype=float) for numbers in runs.values()]
    with _drawn(alt, vertical=False, **({"height": 3} | options)) as ax:
        place = _places(ax, runs)
        for one_seed in np.stack(results, axis=1) if paired else ():
            ax.plot(one_seed, place, color=MASKED, linewidth=1)
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
        edges = np.histogram_bin_edges(np.hstack([*map(np.ravel, samples.values())]), bins, limits)
        for color, (name, sample) in zip(cycle(_CYCLE), samples.items()):
            look = {"facecolor": (color, 0.3), "edgecolor": color, "linewidth": 1.5}
            ax.hist(np.ravel(sample), edges, histtype="stepfilled", label=name, **look)
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
