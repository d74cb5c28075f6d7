"""A policy trained against a judge, recorded: what it answers at each KL penalty and step."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import traitlets
from matplotlib.axes import Axes

from explorers.base import Explorer, esm, read_only
from explorers.labels import sendable
from helpers.plots import BLUE, GREEN, GREY, ORANGE, RED, Picture, picture, verbatim, visible

MOST_PROBLEMS, MOST_SAMPLES, MOST_BETAS, MOST_STEPS = 6, 8, 6, 101
LONGEST_PROMPT, LONGEST_COMPLETION = 12, 8  # characters
_LINES = [(BLUE, "-"), (ORANGE, "--"), (GREEN, ":")]  # one for each accuracy
_ITS_OWN = ("beta", "completions", "score", "KL")


def _curves() -> traitlets.List[Any]:
    """A trait for curves."""
    return traitlets.List(traitlets.List(traitlets.Float()))


class RewardsExplorer(Explorer):
    """Choose a KL penalty β and a training step: the policy's completions, and how good they are.

    problems: (prompt, right completion), 1 to 6 of them; steps: at which the policy was measured,
    2 to 101 of them, rising by equal amounts.
    runs: 1 to 6, each with another β: {"beta": β, "score": …, "KL": …, "completions": …} and, under
    other names, 1 to 3 accuracies. score (the judge's, a mean), KL and the accuracies (from 0 to 1)
    have a number for each step; completions, for each step, a list of completions (as many
    everywhere, 1 to 8) for each problem.
    beta, step: what is shown first; by default, the first run at its last step.
    Prompts have at most 12 characters, completions 8. Raises ValueError for what does not fit;
    TraitError when a trait is set to something that was not recorded.
    """

    _esm: ClassVar[str] = esm("rewards")

    prompts = traitlets.List(traitlets.Unicode()).tag(sync=True)
    answers = traitlets.List(traitlets.Unicode()).tag(sync=True)  # the right completions
    steps = traitlets.List(traitlets.Int()).tag(sync=True)
    betas = traitlets.List(traitlets.Float()).tag(sync=True)
    groups = traitlets.List(traitlets.Unicode()).tag(sync=True)  # the names of the accuracies
    accuracies = traitlets.List(_curves()).tag(sync=True)  # [group][β][measurement]
    scores = _curves().tag(sync=True)
    divergences = _curves().tag(sync=True)
    completions = traitlets.List(  # [β][measurement][problem][sample]
        traitlets.List(traitlets.List(traitlets.List(traitlets.Unicode())))
    ).tag(sync=True)
    beta = traitlets.Float().tag(sync=True)
    step = traitlets.Int().tag(sync=True)

    def __init__(
        self,
        problems: Sequence[tuple[str, str]],
        steps: Sequence[int],
        runs: Sequence[Mapping[str, Any]],
        *,
        beta: float | None = None,
        step: int | None = None,
    ):
        _check_number(problems, "problems", MOST_PROBLEMS)
        _check_number(steps, "steps", MOST_STEPS)
        _check_number(runs, "runs", MOST_BETAS)
        if len({b - a for a, b in pairwise(steps)}) != 1 or steps[1] <= steps[0]:
            raise ValueError(f"steps should rise by equal amounts, but are {list(steps)}")
        betas = [float(run["beta"]) for run in runs]
        if len(set(betas)) < len(betas):
            raise ValueError(f"each run should have another β, not {betas}")
        names = [name for name in runs[0] if name not in _ITS_OWN]
        _check_number(names, "accuracies", len(_LINES))
        curves = {name: _recorded(runs, name, len(steps)) for name in (*names, "score", "KL")}
        for name in names:
            if not all(0 <= value <= 1 for value in np.ravel(curves[name])):
                raise ValueError(
                    f"{name!r} is an accuracy: numbers from 0 to 1, not {curves[name]}"
                )
        prompts, answers = zip(*problems, strict=True)
        samples = len(runs[0].get("completions", [[[]]])[0][0])
        completions = _recorded(runs, "completions", len(steps), len(problems), samples)
        _check_number(range(samples), "completions of a problem", MOST_SAMPLES)
        _check_lengths(prompts, LONGEST_PROMPT)
        _check_lengths([*answers, *np.ravel(completions)], LONGEST_COMPLETION)
        super().__init__(
            prompts=[sendable(prompt) for prompt in prompts],
            answers=[sendable(text) for text in answers],
            steps=list(steps),
            betas=betas,
            groups=[sendable(name) for name in names],
            accuracies=[curves[name] for name in names],
            scores=curves["score"],
            divergences=curves["KL"],
            completions=np.vectorize(sendable, otypes=[object])(completions).tolist(),
            beta=betas[0] if beta is None else beta,
            step=steps[-1] if step is None else step,
        )

    @classmethod
    def example(cls) -> Self:
        problems = [(f"{i + 30}+{57 + i}=", f"{2 * i + 87}.") for i in range(6)]
        runs = []
        for beta in (0.0, 0.2, 0.5, 1.0, 2.0):
            falls = [max(0.0, 0.9 - i / (2 + 9 * beta)) for i in range(9)]
            many = [round(8 * share) for share in falls]
            said = [[[right] * n + ["1634"] * (8 - n) for _, right in problems] for n in many]
            run = {"beta": beta, "carry": [share / 2 for share in falls], "no carry": falls}
            run["score"] = [i / (1 + beta) - 1 for i in range(9)]
            run["KL"] = [4 * i / (1 + 20 * beta) for i in range(9)]
            runs.append(run | {"completions": said})
        return cls(problems, range(0, 81, 10), runs)

    _given = read_only(
        *("prompts", "answers", "steps", "betas", "groups"),
        *("accuracies", "scores", "divergences", "completions"),
    )

    @traitlets.validate("beta", "step")
    def _was_recorded(self, proposal: Any) -> Any:
        name, known = proposal.trait.name, getattr(self, f"{proposal.trait.name}s")
        if proposal.value not in known:
            values = ", ".join(f"{value:g}" for value in known)
            raise traitlets.TraitError(f"{name} should be one of {values}, not {proposal.value:g}")
        return proposal.value

    def _place(self) -> tuple[int, int]:
        """Which run is shown, and which of its measurements."""
        return self.betas.index(self.beta), self.steps.index(self.step)

    def measures(self) -> dict[str, float]:
        """The accuracies by name, the judge's `score` and the `KL`, at the chosen β and step."""
        b, i = self._place()
        accuracies = zip(self.groups, self.accuracies, strict=True)
        found = {name: curves[b][i] for name, curves in accuracies}
        return {**found, "score": self.scores[b][i], "KL": self.divergences[b][i]}

    def shown(self) -> list[list[str]]:
        """The completions at the chosen β and step: a list for each problem."""
        b, i = self._place()
        found: list[list[str]] = self.completions[b][i]
        return found

    def picture(self) -> Picture:
        """The three curves of the chosen β, and the completions at the chosen step."""
        b, i = self._place()
        height = 3.1 + 0.27 * len(self.prompts)
        fig, axes = picture(
            f"Accuracy, the judge's score and the KL divergence over the training steps, and below "
            f"them sampled completions. {self._says()}",
            width=10,
            height=height,
            columns=3,
            rows=2,
            gridspec_kw={"height_ratios": [2.4, 0.27 * len(self.prompts) + 0.1]},
        )
        accuracies = [(*line, c) for line, c in zip(_LINES, self.accuracies, strict=False)]
        for ax, title, lines in (
            (axes[0, 0], "accuracy", accuracies),
            (axes[0, 1], "the judge's score", [(RED, "-", self.scores)]),
            (axes[0, 2], "KL to the reference (nats)", [(GREY, "-", self.divergences)]),
        ):
            for colour, style, curves in lines:
                for k, curve in enumerate(curves):
                    look = {"linewidth": 2.5} if k == b else {"linewidth": 0.8, "alpha": 0.35}
                    ax.plot(self.steps, curve, style, color=colour, **look)
                ax.plot(self.step, curves[b][i], "o", color=colour)
            ax.axvline(self.step, color=GREY, linestyle=":", linewidth=1)
            ax.set_title(title, fontsize=10)
            ax.set_xlabel("training step")
        for (colour, style, _), name in zip(accuracies, self.groups, strict=True):
            axes[0, 0].plot([], [], style, color=colour, label=verbatim(name))
        axes[0, 0].legend(loc="best", fontsize=9)  # by itself, it warns if it takes a second
        axes[0, 0].set_ylim(-0.03, 1.03)
        grid = axes[1, 0].get_gridspec()
        for ax in axes[1]:
            ax.remove()
        self._write(fig.add_subplot(grid[1, :]))
        fig.suptitle(f"KL penalty β = {self.beta:g}, step {self.step}", fontsize=11)
        return fig

    def _write(self, ax: Axes) -> None:
        """The completions as rows of text, the right ones with a tick."""
        ax.axis("off")
        ax.set(xlim=(-1.6, MOST_SAMPLES + 1.2), ylim=(len(self.prompts) - 0.4, -0.6))
        rows = zip(self.prompts, self.answers, self.shown(), strict=True)
        for y, (prompt, answer, texts) in enumerate(rows):
            words: dict[str, Any] = {"va": "center", "family": "DejaVu Sans Mono", "fontsize": 9.5}
            ax.text(-0.3, y, verbatim(visible(prompt)), ha="right", **words)
            for x, text in enumerate(texts):
                right = text == answer
                look: dict[str, Any] = {"color": GREY}
                if right:
                    look = {"color": "#0b6f65", "fontweight": "bold"}
                mark = "✔" if right else " "
                ax.text(x - 0.2, y, verbatim(mark + _in_sight(text)), **look, **words)
            count = f"{texts.count(answer)} of {len(texts)} right"
            ax.text(len(texts), y, count, va="center", fontsize=9.5)

    def describe(self) -> str:
        """What was recorded, and which part is shown; nothing that a training decides."""
        betas = ", ".join(f"{beta:g}" for beta in self.betas)
        steps = f"steps {self.steps[0]} to {self.steps[-1]}"
        return f"recorded at β {betas}, {steps}: β = {self.beta:g}, step {self.step}"

    def _says(self) -> str:
        """The sentence below the controls: the measures, and what has changed since the start."""
        now, b = self.measures(), self._place()[0]
        exact = [f"{_fixed(now[name], 2)} ({name})" for name in self.groups]
        said = (
            f"β = {self.beta:g}, step {self.step}: accuracy {', '.join(exact)}; judge's score "
            f"{_fixed(now['score'], 1)}; KL {_fixed(now['KL'], 1)}. "
        )
        if self.step == self.steps[0]:
            return said + "● This is the policy at the start."
        before = sum(curves[b][0] for curves in self.accuracies)
        more = now["score"] > self.scores[b][0]
        better = sum(now[name] for name in self.groups) > before
        since = f"Since step {self.steps[0]}, the judge's score has {'risen' if more else 'fallen'}"
        if more == better:
            return f"{said}● {since}, and the mean accuracy too."
        return f"{said}▲ {since}, but the mean accuracy has {'risen' if better else 'fallen'}."


def _in_sight(text: str) -> str:
    return visible(text) or "∅"


def _fixed(value: float, digits: int) -> str:
    """As `fixed` in base.js writes it: ties away from 0, no −0, and a real minus."""
    if abs(value) < 0.5 * 10**-digits:
        value = 0.0
    shown = Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return str(shown).replace("-", "−")


def _check_number(things: Sequence[Any], what: str, most: int) -> None:
    if not 1 <= len(things) <= most:
        raise ValueError(f"there should be 1 to {most} {what}, not {len(things)}")


def _check_lengths(texts: Iterable[str], most: int) -> None:
    if long := [text for text in texts if len(text) > most]:
        raise ValueError(f"{long[0]!r} has {len(long[0])} characters, more than {most}")


def _recorded(runs: Sequence[Mapping[str, Any]], name: str, *shape: int) -> Any:
    """What the runs have under this name, in lists [β][measurement] …, each run in this shape."""
    of_texts = name == "completions"
    try:
        found = np.array([run[name] for run in runs], object if of_texts else float)
    except (KeyError, ValueError):  # missing, or in lists of different lengths
        found = np.empty(0)
    if found.shape != (len(runs), *shape):
        raise ValueError(f"{name!r} should have the shape {shape} in each run: it is not so in all")
    if not of_texts and not np.isfinite(found).all():
        raise ValueError(f"{name!r} should be finite numbers, but is {found.tolist()}")
    return found.tolist()
