"""A compass of words: two words for each axis, and every word flies to its place between them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import traitlets

from explorers.base import ModelExplorer, esm, read_only
from explorers.labels import sendable, short
from explorers.packed import packed_words, rounded_units, units
from helpers import data
from helpers.plots import BLUE, GREY, INK, RED, Picture, picture, verbatim, visible

NAMED = 5000  # only the most frequent words are named unasked
CORE = 1.6  # standard deviations: nearer to the middle no word is named unasked
NEIGHBOURS = 10


class CompassExplorer(ModelExplorer):
    """Words at their dot products with two directions, and the neighbours of one of them.

    words: V different strings, the most frequent first; vectors: (V, d) numbers, which are made
    unit vectors; axes: the words left, right, down and up: the directions are right − left and
    up − down, as unit vectors; word: which is looked at, "" for none. Raises ValueError for tables
    that do not fit together and for words that the table does not hold; TraitError when a trait is
    set to such.
    """

    _esm: ClassVar[str] = esm("gpt", "compass")
    _css = ModelExplorer._css + Path(__file__).with_suffix(".css").read_text(encoding="utf-8")

    axes = traitlets.List(traitlets.Unicode(), minlen=4, maxlen=4).tag(sync=True)
    word = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        words: Sequence[str],
        vectors: Any,
        axes: Sequence[str] = ("machine", "animal", "war", "love"),
        word: str = "dog",
    ):
        table = np.asarray(vectors, dtype=np.float32)
        if table.ndim != 2 or len(table) != len(words) or not np.isfinite(table).all():
            raise ValueError(
                f"vectors should be (number of words, d) finite numbers: there are {len(words)} "
                f"words, and the shape is {table.shape}"
            )
        self._words, self._units = [sendable(word) for word in words], rounded_units(table)
        self._row = {word: i for i, word in enumerate(self._words)}
        if len(self._row) < len(words):
            raise ValueError(
                f"each word should be there once, but only {len(self._row)} of {len(words)} differ"
            )
        weights = packed_words(self._words, table)
        super().__init__(weights, axes=list(axes), word=word)

    @classmethod
    def example(cls) -> Self:
        return cls(*data.glove())

    _given = read_only("file", "megabytes")

    @traitlets.validate("axes", "word")
    def _known(self, proposal: Any) -> Any:
        given = [sendable(word) for word in np.atleast_1d(np.array(proposal.value, dtype=object))]
        for word in given:
            if word not in self._row and (word or proposal.trait.name == "axes"):
                raise traitlets.TraitError(
                    f"“{short(word, 30)}” is not among the {len(self._words):,} words of this table"
                )
        if proposal.trait.name == "word":
            return given[0]
        rows = self._units[[self._row[word] for word in given]]
        if (rows[::2] == rows[1::2]).all(1).any():
            raise traitlets.TraitError(f"a direction needs two different words, not {given}")
        return given

    def projections(self) -> np.ndarray:
        """Of all words on the two directions, (V, 2)."""
        left, right, down, up = (self._units[self._row[word]] for word in self.axes)
        return self._units @ units(np.stack([right - left, up - down])).T

    def neighbours(self) -> list[tuple[str, float]]:
        """The words with the largest cosines with the one that is looked at, and these."""
        if not self.word:
            return []
        cosines = self._units @ self._units[self._row[self.word]]
        cosines[self._row[self.word]] = -np.inf
        best = np.argsort(-cosines, kind="stable")[: min(NEIGHBOURS, len(cosines) - 1)]
        return [(self._words[i], float(cosines[i])) for i in best]

    def describe(self) -> str:
        """The axes, and the word that is looked at with its two numbers."""
        left, right, down, up = (short(visible(word), 30) for word in self.axes)
        said = f"{left} – {right}, {down} – {up}"
        if not self.word:
            return said
        x, y = self.projections()[self._row[self.word]]
        return f"{said}: “{short(visible(self.word), 30)}” is at {x:.2f}, {y:.2f}"

    def picture(self) -> Picture:
        """The cloud of all words, the names of some, and the shadows of one."""
        at = self.projections()
        reach = 1.06 * np.abs(at).max(0)
        fig, ax = picture(self.describe(), width=8.6, height=5.2)
        ax.scatter(*at[::4].T, s=2, color="#c4c8cf", linewidth=0, antialiased=False)
        ax.axhline(0, color=GREY, linewidth=0.8)
        ax.axvline(0, color=GREY, linewidth=0.8)
        asked = [self.word] if self.word else []
        out = np.hypot(*(at[:NAMED] / at.std(0)).T)
        order = np.argsort(0.2 * np.log(np.arange(len(out)) + 30) - out)
        outer = [self._words[i] for i in order[out[order] > CORE]]
        outer = [word for word in outer if word.isalpha() and len(word) > 2]
        placed: list[tuple[float, float, int]] = []
        for word in [*asked, *self.axes, *outer]:
            (x, y), name = at[self._row[word]] / reach, short(visible(word), 16)
            n, look = len(name), {"ha": "center", "va": "bottom", "fontsize": 10}
            if abs(x) + 0.013 * n > 1 or any(
                abs(x - u) < 0.013 * (n + m) and abs(y - v) < 0.075 for u, v, m in placed
            ):
                continue
            placed.append((x, y, n))
            color = RED if word in asked else BLUE if word in self.axes else INK
            ax.text(*at[self._row[word]], verbatim(name), color=color, **look)
        for x, y in at[[self._row[word] for word in asked]]:
            ax.plot([x, x, 0], [0, y, y], "--o", color=RED, markersize=4)
        left, right, down, up = (verbatim(short(visible(word), 30)) for word in self.axes)
        ax.set(xlim=(-reach[0], reach[0]), ylim=(-reach[1], reach[1]))
        ax.set(xlabel=f"← {left}        {right} →", ylabel=f"← {down}        {up} →")
        ax.grid(visible=False)
        return fig
