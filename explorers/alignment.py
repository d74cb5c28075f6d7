"""A text that becomes another, letter by letter: what each model attends to while it writes."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import traitlets

from explorers.attention_maps import CLOSE, Array, packed
from explorers.base import Explorer, esm, in_range, read_only
from explorers.labels import sendable
from helpers.plots import GREY, ORANGE, RED, Picture, heatmap, picture, verbatim, visible
from helpers.seq2seq import END

LONGEST_READ, LONGEST_WRITTEN = 30, 40  # letters without the end sign: what a phone has room for
MOST_PAIRS, MOST_MODELS = 8, 4
Answer = tuple[str, Any]  # what a model writes, and its weights or None


class AlignmentExplorer(Explorer):
    """Let a model write letter by letter, and see from which letters of the source it takes each.

    pairs: (source, what should be written), 1 to 8 of them, the sources all different and of at
    most 30 letters; models: name → for each pair (what it writes, weights), 1 to 4 models. Texts
    stand without the end sign, which the explorer adds. weights: (T + 1, S + 1) for T letters
    written (at most 40) and S read, a row for each letter and one for the end; rows sum to 1; None
    for a model that has one vector of the source and no attention.
    source, model: what is shown first, the first ones by default; step: how many letters are
    written at first, the end counted, all by default.
    Raises ValueError for texts, weights or choices that do not fit; TraitError when a trait is set
    to such a choice.
    """

    _esm: ClassVar[str] = esm("alignment")

    sources = traitlets.List(traitlets.Unicode()).tag(sync=True)
    targets = traitlets.List(traitlets.Unicode()).tag(sync=True)
    models = traitlets.List(traitlets.Unicode()).tag(sync=True)
    outputs = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)  # by model, pair
    has_attention = traitlets.List(traitlets.List(traitlets.Bool())).tag(sync=True)  # likewise
    weight_steps = traitlets.Bytes().tag(sync=True)  # all weights, one after the other
    source = traitlets.Unicode().tag(sync=True)
    model = traitlets.Unicode().tag(sync=True)
    step = traitlets.Int().tag(sync=True)

    def __init__(
        self,
        pairs: Sequence[tuple[str, str]],
        models: Mapping[str, Sequence[Answer]],
        *,
        source: str | None = None,
        model: str | None = None,
        step: int | None = None,
    ):
        sources, targets = _checked_pairs(pairs)
        if not 1 <= len(models) <= MOST_MODELS:
            raise ValueError(f"there should be 1 to {MOST_MODELS} models, not {len(models)}")
        names = [sendable(name) for name in models]
        if len(set(names)) < len(names):
            raise ValueError("two models have the same name: each should have its own")
        models = dict(zip(names, models.values(), strict=True))
        self._weights: dict[tuple[str, str], Array | None] = {}
        for name, answers in models.items():
            if len(answers) != len(sources):
                raise ValueError(f"{name} has {len(answers)} answers for {len(sources)} pairs")
            for read, answer in zip(sources, answers, strict=True):
                self._weights[name, read] = _checked_weights(name, read, *answer)
        found = self._weights.values()
        super().__init__(
            sources=sources,
            targets=targets,
            models=list(models),
            outputs=[[sendable(text) for text, _ in answers] for answers in models.values()],
            has_attention=[[self._weights[n, s] is not None for s in sources] for n in models],
            weight_steps=b"".join(packed(array) for array in found if array is not None),
            source=sources[0] if source is None else sendable(source),
            model=next(iter(models)) if model is None else sendable(model),
            step=LONGEST_WRITTEN + 1 if step is None else step,
        )
        self.step = min(self.step, len(self.text()))

    @classmethod
    def example(cls) -> Self:
        pairs = [("27 September 2016" + i * "x", 40 * "y") for i in range(8)]
        rows = [np.full((41, len(source) + 1), 1 / (len(source) + 1)) for source, _ in pairs]
        names = ["no attention", "additive", "dot product", "transformer"]
        return cls(pairs, {name: [(40 * "y", row) for row in rows] for name in names})

    _given = read_only("sources", "targets", "models", "outputs", "has_attention", "weight_steps")
    _steps = in_range("a number of letters,", "step", low=0, high=LONGEST_WRITTEN + 1)

    @traitlets.validate("source", "model")
    def _is_a_choice(self, proposal: Any) -> str:
        name, choices = proposal.trait.name, getattr(self, f"{proposal.trait.name}s")
        if proposal.value not in choices:
            raise traitlets.TraitError(
                f"{name} should be one of {', '.join(map(repr, choices))}, not {proposal.value!r}"
            )
        return str(proposal.value)

    @traitlets.observe("source", "model")
    def _stay_at_the_end(self, change: Any) -> None:
        """Whoever has seen a text written whole sees the next one so; else not beyond its end."""
        if change.old:
            before = {"model": self.model, "source": self.source, change.name: change.old}
            whole = self.step >= len(self.text(**before))
            now = len(self.text())
            self.step = now if whole else min(self.step, now)

    def text(self, model: str = "", source: str = "") -> str:
        """What a model (the chosen one if none is named) writes for a source, the end sign too."""
        answers = self.outputs[self.models.index(model or self.model)]
        return answers[self.sources.index(source or self.source)] + END

    def weights(self) -> Array | None:
        """What the letters written so far give to those of the source, (step, S + 1), or None."""
        found = self._weights[self.model, self.source]
        return None if found is None else found[: self.step]

    def picture(self) -> Picture:
        """All models beside each other, for the chosen source, up to the chosen letter."""
        right, read = self.targets[self.sources.index(self.source)] + END, self.source + END
        longest = max(len(self.text(name)) for name in self.models)
        fig, axes = picture(
            "What each model attends to while it writes: a row for each letter that it writes, a"
            f" column for each letter of the input. {self.describe()}.",
            width=2.75 * len(self.models),
            height=1.5 + 0.21 * max(longest, 8),
            columns=len(self.models),
            squeeze=False,
        )
        for ax, name in zip(axes[0], self.models, strict=True):
            text, weights = self.text(name), self._weights[name, self.source]
            shown = np.full((longest, len(read)), np.nan)
            rows = min(self.step, len(text))
            if weights is not None:
                shown[:rows] = weights[:rows]
            heatmap(shown, ax=ax, column_labels=list(read), limits=(0, 1))
            ax.set_aspect("auto")
            ax.tick_params(length=0, labelsize=8)
            ax.xaxis.tick_top()
            marks = ["" if right[i : i + 1] == text[i] else "✘ " for i in range(rows)]
            labels = [verbatim(mark + visible(text[i])) for i, mark in enumerate(marks)]
            ax.set_yticks(range(rows), labels, family="DejaVu Sans Mono")
            for label, mark in zip(ax.get_yticklabels(), marks, strict=True):
                if mark:
                    label.set(color=RED, fontweight="bold")
            if weights is None:
                ax.set_facecolor("#f3f4f6")
                words = "no weights:\none vector for\nall letters"
                look = {"ha": "center", "va": "center", "color": GREY}
                ax.text(0.5, 0.5, words, transform=ax.transAxes, **look)
            elif name == self.model and rows:
                ax.axhspan(rows - 1.5, rows - 0.5, fill=False, edgecolor=ORANGE, linewidth=2)
            so_far = visible(text[:rows])
            mark = "✔" if right.startswith(text[:rows]) else "✘"
            ax.set_title(verbatim(f"{name}\n{so_far} {mark}" if rows else f"{name}\n"), fontsize=10)
        axes[0, 0].set_ylabel("written")
        return fig

    def describe(self) -> str:
        """How many there are of what, and which is shown; nothing that a training decides."""
        count = f"{_number(len(self.models), 'model')}, {_number(len(self.sources), 'text')}"
        whole = self.step >= len(self.text())
        shown = "written to the end" if whole else f"up to letter {self.step}"
        return f"{count}: {self.source!r} by {self.model}, {shown}"


def _number(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _checked_pairs(pairs: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """The sources, and what should be written for each."""
    if not 1 <= len(pairs) <= MOST_PAIRS:
        raise ValueError(f"there should be 1 to {MOST_PAIRS} pairs, not {len(pairs)}")
    for read, right in pairs:
        for text, longest in ((read, LONGEST_READ), (right, LONGEST_WRITTEN)):
            if not 1 <= len(text) <= longest:
                raise ValueError(
                    f"{text!r} has {len(text)} letters, there should be 1 to {longest}"
                )
    sources = [sendable(read) for read, _ in pairs]
    if len(set(sources)) < len(sources):
        raise ValueError("two pairs have the same source: each should stand once")
    return sources, [sendable(right) for _, right in pairs]


def _checked_weights(model: str, read: str, text: str, weights: Any) -> Array | None:
    """The weights as float32 (T + 1, S + 1), or a ValueError that says what is wrong."""
    what = f"what {model} writes for {read!r}"
    if len(text) > LONGEST_WRITTEN:
        raise ValueError(f"{what} has {len(text)} letters, more than {LONGEST_WRITTEN}")
    if weights is None:
        return None
    if hasattr(weights, "detach"):
        weights = weights.detach().float().cpu()
    array = np.asarray(weights, dtype=np.float32)
    shape = (len(text) + 1, len(read) + 1)
    if array.shape != shape:
        raise ValueError(
            f"{what}: the weights have shape {array.shape}, not {shape}: "
            f"a row for each letter of {text!r} and one for the end, columns likewise"
        )
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"{what}: weights are numbers from 0 to 1; are these scores?")
    if np.abs(array.sum(-1) - 1).max() > CLOSE:
        raise ValueError(f"{what}: the rows of the weights do not sum to 1")
    return array
