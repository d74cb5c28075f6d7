"""A window of block_size + 1 characters over a text, and the training examples that it holds."""

from typing import Any, Self

import traitlets
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from explorers.base import Explorer, esm, read_only
from explorers.labels import sendable
from helpers import plots
from helpers.text import CharTokenizer

LONGEST_TEXT = 20_000
LARGEST_BLOCK = 16  # more columns than this do not fit beside the explanations
_MARGIN = 6  # characters of the stream shown on each side of the window


class WindowExplorer(Explorer):
    """Slide a window over a text: one chunk holds block_size examples of context → target.

    text: what to look at, at most 20,000 characters; tokenizer: gives the ids, by default one built
    from the text; start: the place of the window's first character; block_size: T, 1 to 16, by
    default 8 if so many fit. What lies beyond the ends later on is shown as the nearest that fits.

    Raises TypeError or ValueError when the text is no text or too short or long for the window, or
    the window does not fit at `start`.
    """

    _esm = esm("window")

    text = traitlets.Unicode().tag(sync=True)
    ids = traitlets.List(traitlets.Int()).tag(sync=True)
    start = traitlets.Int(0).tag(sync=True)
    block_size = traitlets.Int(8).tag(sync=True)
    largest_block = traitlets.Int(LARGEST_BLOCK).tag(sync=True)
    selected = traitlets.Int(0).tag(sync=True)  # the example in the light: t

    def __init__(
        self,
        text: str,
        tokenizer: CharTokenizer | None = None,
        *,
        start: int = 0,
        block_size: int | None = None,
        selected: int | None = None,
    ):
        if not isinstance(text, str):
            raise TypeError(f"text should be a str, not a {type(text).__name__}")
        if not 2 <= len(text) <= LONGEST_TEXT:
            raise ValueError(
                f"text should have 2 to {LONGEST_TEXT} characters, but has {len(text)}: "
                "pass a piece of it, such as text[:1000]"
            )
        if block_size is None:
            block_size = max(1, min(8, len(text) - 1 - start))
        largest = min(LARGEST_BLOCK, len(text) - 1)
        if not 1 <= block_size <= largest:
            raise ValueError(f"block_size should be 1 to {largest} here, but is {block_size}")
        if not 0 <= start <= len(text) - block_size - 1:
            raise ValueError(
                f"start should be 0 to {len(text) - block_size - 1}, so that block_size + 1 = "
                f"{block_size + 1} characters of the {len(text)} are left, but is {start}"
            )
        t = block_size // 2 if selected is None else selected
        if not 0 <= t < block_size:
            raise ValueError(f"selected should be 0 to {block_size - 1}, but is {t}")
        tokenizer = tokenizer or CharTokenizer.from_text(text)
        super().__init__(
            text=sendable(text), ids=tokenizer.encode(text), start=start, block_size=block_size,
            largest_block=largest, selected=t,
        )  # fmt: skip

    @classmethod
    def example(cls) -> Self:
        line = "First Citizen:\nBefore we proceed any further, hear me speak.\n\n"
        return cls(10 * line, start=9, block_size=LARGEST_BLOCK)

    _given = read_only("text", "ids", "largest_block")

    def _window(self) -> tuple[int, int, int]:
        """(start, T, t) brought into range: sliders may move one before the other."""
        size = min(max(self.block_size, 1), self.largest_block)
        start = min(max(self.start, 0), len(self.text) - size - 1)
        return start, size, min(max(self.selected, 0), size - 1)

    def examples(self) -> list[tuple[str, str]]:
        """The (context, target) pairs of the present window, shortest context first."""
        start, size, _ = self._window()
        chunk = self.text[start : start + size + 1]
        return [(chunk[: t + 1], chunk[t + 1]) for t in range(size)]

    def describe(self) -> str:
        start, size, _ = self._window()
        chunk = self.text[start : start + size + 1]
        return f"start {start}, block_size {size}: {chunk!r} holds {size} examples"

    def picture(self) -> plots.Picture:
        start, size, selected = self._window()
        chunk = self.text[start : start + size + 1]
        fig, ax = plots.picture(
            f"The chunk {chunk!r} as x and y, and its {size} examples of context and target.",
            width=7.5,
            height=1.6 + 0.28 * size,
        )
        first = max(0, start - _MARGIN)
        for place in range(first, min(len(self.text), start + size + 1 + _MARGIN)):
            column = place - start
            self._cell(ax, column, -4, self.text[place], inside=0 <= column <= size)
        for t in range(size):
            self._cell(ax, t, -2.6, chunk[t], colour=plots.BLUE if t <= selected else None)
            self._cell(ax, t, -1.6, chunk[t + 1], colour=plots.RED if t == selected else None)
            for column in range(t + 2):
                colour = plots.RED if column > t else plots.BLUE
                self._cell(ax, column, t, chunk[column], colour=colour if t == selected else None)
                if column > t:
                    ax.add_patch(_box(column, t, edgecolor=plots.RED, linewidth=1.5, fill=False))
            ax.text(size + 1.4, t, f"t = {t}: {t + 1} known, predict the next", va="center")
        for row, name in ((-4, "text"), (-2.6, "x"), (-1.6, "y"), (0, "examples")):
            ax.text(first - start - 0.9, row, name, ha="right", va="center", fontweight="bold")
        ax.set(xlim=(-_MARGIN - 4.2, max(size + 1 + _MARGIN, size + 12)), ylim=(size, -5))
        ax.axis("off")
        return fig

    @staticmethod
    def _cell(
        ax: Axes, column: int, row: float, token: str, *, inside: bool = True, colour: Any = None
    ) -> None:
        if inside:
            ax.add_patch(_box(column, row, facecolor=colour or "#eef2f7", edgecolor="white"))
        ink = "white" if colour else ("#1f2937" if inside else plots.GREY)
        ax.text(
            column, row, plots.verbatim(plots.visible(token)), ha="center", va="center", color=ink,
            family="DejaVu Sans Mono",
        )  # fmt: skip


def _box(column: float, row: float, **style: Any) -> Rectangle:
    return Rectangle((column - 0.46, row - 0.44), 0.92, 0.88, **style)
