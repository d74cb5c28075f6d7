"""Two typewriters write the same text, one without a KV cache and one with it."""

from typing import Any, Self

import traitlets

from explorers.base import Explorer, esm, in_range
from helpers.plots import BLUE, MASKED, RED, Picture, picture, verbatim

ACROSS = 50  # letters in a line of the still picture


class CacheExplorer(Explorer):
    """Watch how much is computed for the same text without a KV cache, and with it.

    text: what a model has written, one token a letter, the prompt included; prompt: how many of its
    letters were given; blocks: of the model. work: how many tokens each of the two has processed,
    as long as it has more to write; speed: tokens a second.

    Raises ValueError for a prompt that is empty or leaves nothing to write, and for no blocks.
    """

    _esm = esm("cache")

    text = traitlets.Unicode().tag(sync=True)
    prompt = traitlets.Int().tag(sync=True)
    blocks = traitlets.Int().tag(sync=True)
    work = traitlets.Int().tag(sync=True)
    speed = traitlets.Int(20).tag(sync=True)

    @classmethod
    def example(cls) -> Self:
        said = "But soft, what light through yonder window breaks?\n"
        return cls(text="ROMEO:\n" + 4 * said, prompt=7, blocks=5, work=200)

    _letters = in_range("letters", "prompt", low=1, high=lambda self: len(self.text) - 1)
    _stack = in_range("a number of blocks", "blocks", low=1, high=100)
    _done = in_range("tokens processed,", "work", low=0, high=lambda self: self.totals()[0])

    def totals(self) -> tuple[int, int]:
        """The tokens processed for the whole text: without a cache, and with it."""
        end = len(self.text)
        return sum(range(self.prompt, end)), end - 1

    def counts(self) -> list[tuple[int, int, int]]:
        """Tokens processed, letters written, and columns in use: without a cache, and with it."""
        passes, left = self.prompt, self.work
        while passes <= left and passes < len(self.text):
            left, passes = left - passes, passes + 1
        fast = min(self.work, self.totals()[1])
        written = max(0, fast - self.prompt + 1)
        return [(self.work, passes - self.prompt, left), (fast, written, fast)]

    def describe(self) -> str:
        slow, fast = self.totals()
        letters = len(self.text) - self.prompt
        return f"{letters} letters: {slow:,} tokens processed without a cache, {fast:,} with it"

    def picture(self) -> Picture:
        """Both sheets; if nothing has been played, when the one with a cache has finished."""
        given = {"text": self.text, "prompt": self.prompt, "blocks": self.blocks}
        seen = self if self.work else type(self)(**given, work=self.totals()[1])
        lines = -(-len(self.text) // ACROSS)
        fig, axes = picture(self.describe(), width=9.6, height=0.8 + 0.5 * lines, columns=2)
        sheets = zip(axes, ("Without a cache", "With a cache"), seen.counts(), strict=True)
        for ax, title, (done, written, columns) in sheets:
            ax.set_title(f"{title}: {done:,} tokens processed, {written} letters", loc="left")
            ax.set(xlim=(-0.6, ACROSS), ylim=(lines - 0.3, -0.7))
            ax.set_axis_off()
            kept = BLUE if title == "With a cache" else RED
            for i, sign in enumerate(self.text[: self.prompt + written]):
                y, x = divmod(i, ACROSS)
                now = columns - 1 <= i < columns
                color = RED if now else kept if i < columns else MASKED
                cells = [y - 0.5 + 0.5 * b / self.blocks for b in range(self.blocks)]
                style: dict[str, Any] = {"s": 9, "marker": "s", "linewidths": 0}
                ax.scatter([x] * len(cells), cells, color=color, alpha=1 if now else 0.5, **style)
                letter = {"ha": "center", "va": "center", "family": "DejaVu Sans Mono"}
                ax.text(x, y + 0.15, verbatim(sign.replace("\n", "⏎")), fontsize=7.5, **letter)
        return fig
