"""Type a word, see its nearest neighbours; or compute a − b + c with words."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from textwrap import fill
from typing import Any, ClassVar, Self

import numpy as np
import traitlets

from explorers.base import Explorer, esm, read_only
from explorers.labels import sendable, short
from explorers.packed import name_of, packed_words
from helpers import data
from helpers.plots import BLUE, GREY, Picture, picture, verbatim, visible

LONGEST = 60  # characters of input that are looked at


class WordExplorer(Explorer):
    """Nearest neighbours by cosine, and analogies a − b + c, in a table of word vectors.

    words: V different strings, the most frequent first (suggestions prefer frequent words);
    vectors: (V, d) numbers; word: looked up first; analogy: first a, b, c; mode: "neighbours" or
    "analogy"; exclude: leave the query words out of the answers to an analogy; count: how many
    answers. Raises ValueError for tables that do not fit together. A word that the table does not
    hold is no error: the explorer says so and suggests spellings.
    """

    _esm: ClassVar[str] = esm("word")

    # No echo of what the browser just said: the answer is all it waits for.
    mode = traitlets.Enum(["neighbours", "analogy"], "neighbours").tag(sync=True, echo_update=False)
    word = traitlets.Unicode().tag(sync=True, echo_update=False)
    a = traitlets.Unicode().tag(sync=True, echo_update=False)
    b = traitlets.Unicode().tag(sync=True, echo_update=False)
    c = traitlets.Unicode().tag(sync=True, echo_update=False)
    exclude = traitlets.Bool(False).tag(sync=True, echo_update=False)
    answer = traitlets.Dict().tag(sync=True)
    count = traitlets.Int().tag(sync=True)
    file = traitlets.Unicode().tag(sync=True)  # of the table, for pages that have no kernel

    def __init__(
        self,
        words: Sequence[str],
        vectors: Any,
        *,
        word: str = "cat",
        analogy: Sequence[str] = ("king", "man", "woman"),
        mode: str = "neighbours",
        exclude: bool = False,
        count: int = 10,
    ):
        table = np.asarray(vectors, dtype=np.float32)
        if table.ndim != 2 or len(table) != len(words):
            raise ValueError(
                f"vectors should have shape (number of words, d): there are {len(words)} words, "
                f"but the shape is {table.shape}"
            )
        if not np.isfinite(table).all():
            raise ValueError("vectors holds NaN or infinity; every entry should be a number")
        self._latest: dict[str, Any] = {}
        self._words, self._vectors = [sendable(word) for word in words], table
        self._row = {w: i for i, w in enumerate(self._words)}
        if len(self._row) != len(self._words):
            twice = Counter(self._words).most_common(1)[0][0]
            raise ValueError(f"each word should be there once, but {twice!r:.80} is there again")
        if not 1 <= count <= 50:
            raise ValueError(f"count should be between 1 and 50, not {count}")
        if len(analogy) != 3:
            raise ValueError(f"an analogy needs three words a, b, c, not {analogy!r}")
        lengths = np.linalg.norm(table, axis=1, keepdims=True)
        self._directions = table / np.where(lengths > 0, lengths, 1)
        rows: dict[str, list[int]] = defaultdict(list)
        for i, known in enumerate(self._words):
            for piece in set(_pieces(known)):
                rows[piece].append(i)
        self._pieces = {piece: np.array(ids) for piece, ids in rows.items()}
        self._letters = np.array([len(w) for w in self._words])
        a, b, c = analogy
        file = name_of(packed_words(self._words, table))
        super().__init__(
            mode=mode, word=word, a=a, b=b, c=c, exclude=exclude, count=count, file=file
        )
        self._look_up()
        self.observe(self._look_up, ["mode", "word", "a", "b", "c", "exclude"])

    @classmethod
    def example(cls) -> Self:
        return cls(*data.glove())

    _given = read_only("count", "file")

    @traitlets.validate("word", "a", "b", "c")
    def _sendable(self, proposal: Any) -> str:
        return sendable(proposal.value)

    @traitlets.validate("answer")
    def _is_ours(self, proposal: Any) -> dict[str, Any]:
        if proposal.value is not self._latest:
            raise traitlets.TraitError("answer cannot be set: set word, or a, b and c")
        return dict(self._latest)

    def _look_up(self, _: Any = None) -> None:
        self._latest = self._answer()
        self.answer = self._latest

    def _answer(self) -> dict[str, Any]:
        """What the browser draws: a title, rows (word, cosine, is a query word), or messages."""
        names = ["word"] if self.mode == "neighbours" else ["a", "b", "c"]
        query = {name: self._known(getattr(self, name)) for name in names}
        answer: dict[str, Any] = {"title": "", "rows": [], "messages": [], "mode": self.mode}
        for name, word in query.items():
            if word not in self._row:
                answer["messages"].append(self._unknown(name, word))
        if answer["messages"]:
            return answer
        rows = [self._row[word] for word in query.values()]
        shown = {name: short(word, 30) for name, word in query.items()}
        if self.mode == "neighbours":
            aim, left_out = self._vectors[rows[0]], rows
            answer["title"] = "nearest to “{word}” by cosine (excluding “{word}”)".format(**shown)
        else:
            aim = self._vectors[rows[0]] - self._vectors[rows[1]] + self._vectors[rows[2]]
            left_out = rows if self.exclude else []
            answer["title"] = "nearest to “{a}” − “{b}” + “{c}” by cosine".format(**shown)
        length = float(np.linalg.norm(aim))
        if length == 0:
            return self._nothing(
                "The result is the zero vector: it points nowhere, so it has no cosine."
            )
        others = len(self._words) - len(set(left_out))
        if not others:
            return self._nothing("The table has no other word.")
        cosines = self._directions @ (aim / length)
        cosines[left_out] = -np.inf
        best = _largest(cosines, min(self.count, others))
        answer["rows"] = [[self._words[i], round(float(cosines[i]), 4), i in rows] for i in best]
        return answer

    def _nothing(self, why: str) -> dict[str, Any]:
        message = {"input": "word", "text": why, "suggestions": []}
        return {"title": "", "rows": [], "messages": [message], "mode": self.mode}

    def _known(self, typed: str) -> str:
        """The word that was meant: as typed if the table holds it, else without case and blanks."""
        return typed if typed in self._row else typed.strip().lower()[:LONGEST]

    def _unknown(self, name: str, word: str) -> dict[str, Any]:
        if not word:
            return {"input": name, "text": "Type a word.", "suggestions": []}
        near = self._suggest(word)
        text = f"“{visible(word)}” is not among the {len(self._words):,} words of this table."
        return {"input": name, "text": text, "suggestions": near}

    def _suggest(self, word: str, count: int = 5) -> list[str]:
        """Known words that share the most pairs of letters with `word` (Dice's coefficient)."""
        pieces = set(_pieces(word))
        found = [self._pieces[piece] for piece in pieces if piece in self._pieces]
        if not found:
            return []
        shared = np.bincount(np.concatenate(found), minlength=len(self._words))
        likeness = 2 * shared / (len(pieces) + self._letters + 1)
        return [self._words[i] for i in _largest(likeness, count) if likeness[i] > 0.3]

    def picture(self) -> Picture:
        """The present answer as bars with their cosines."""
        rows = self._latest["rows"]
        fig, ax = picture(self.describe(), width=6.4, height=0.9 + 0.27 * max(len(rows), 3))
        if not rows:
            ax.set_axis_off()
            said = "\n".join(fill(m["text"], 70) for m in self._latest["messages"])
            ax.text(0, 0.5, verbatim(said), va="center")
            return fig
        labels = [
            short(visible(word), 24) + (" (query)" if asked else "") for word, _, asked in rows
        ]
        values = [value for _, value, _ in rows]
        bars = ax.barh(range(len(rows)), values, color=[GREY if r[2] else BLUE for r in rows])
        ax.bar_label(bars, [f"{v:.3f}" for v in values], padding=4)
        ax.set_yticks(range(len(rows)), [verbatim(label) for label in labels])
        ax.invert_yaxis()
        ax.set(xlim=(min(0, *values), 1.12), xlabel="cosine")
        ax.set(title=verbatim(self._latest["title"]))
        return fig

    def describe(self) -> str:
        """The question and the first three answers, or what is wrong with the question."""
        if not self._latest["rows"]:
            return " ".join(message["text"] for message in self._latest["messages"])
        first = ", ".join(short(visible(row[0]), 30) for row in self._latest["rows"][:3])
        return f"{self._latest['title']}: {first} …"


def _pieces(word: str) -> list[str]:
    """The pairs of neighbouring characters of a word, its two ends included.

    >>> _pieces("cat")
    ['^c', 'ca', 'at', 't$']
    """
    marked = f"^{word}$"
    return [marked[i : i + 2] for i in range(len(marked) - 1)]


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    """The places of the largest values, largest first, equal ones in their order of place."""
    count = min(count, len(values))
    if count == 0:
        return np.arange(0)
    least = np.partition(values, -count)[-count]  # sorting all 30,000 would take ten times longer
    places = np.flatnonzero(values >= least)
    return places[np.argsort(-values[places], kind="stable")][:count]
