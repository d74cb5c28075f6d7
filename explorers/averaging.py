"""Mixing the past with one matrix: the weights, one row of them, and what comes out."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import traitlets

from explorers.base import Explorer, esm, in_range, read_only
from explorers.labels import sendable, short
from helpers.plots import BLUE, GREY, RED, Picture, heatmap, picture, verbatim, visible

LONGEST = 24  # tokens: more rows do not fit beside each other
WEIGHTINGS = ("mean", "decay", "last", "learned")


class AveragingExplorer(Explorer):
    """A (T, T) matrix that mixes the tokens: choose how it weighs them, and look at each row.

    tokens: T strings, 1 to 24 of them; values: T numbers, one per token, which are mixed;
    values_name: what the numbers are; learned: a (T, T) matrix of weights (array, tensor or lists)
    for the choice "learned", or None; weighting: "mean", "decay" (each step back counts `decay`
    times as much), "last" (only the `last` newest tokens, the present one included; 3 if there are
    so many) or "learned"; row: the output to look at, from 0 (negative counts from the end).
    Raises ValueError for lengths that differ, a matrix that is not (T, T), or a wrong choice.
    In the browser one can also change one token and lift the mask, and see which outputs change.
    The tokens, their values and the learned matrix stay what they are: the browser draws them once.
    """

    _esm: ClassVar[str] = esm("averaging")

    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    values = traitlets.List(traitlets.Float()).tag(sync=True)
    values_name = traitlets.Unicode().tag(sync=True)
    learned: Any = traitlets.List().tag(sync=True)
    weighting = traitlets.Unicode().tag(sync=True)
    decay = traitlets.Float().tag(sync=True)
    last = traitlets.Int().tag(sync=True)
    row = traitlets.Int().tag(sync=True)
    changed = traitlets.Int(-1).tag(sync=True)
    causal = traitlets.Bool(True).tag(sync=True)

    def __init__(
        self,
        tokens: Sequence[str],
        values: Any,
        *,
        values_name: str = "value",
        learned: Any = None,
        weighting: str = "mean",
        decay: float = 0.5,
        last: int | None = None,
        row: int = -1,
    ):
        names = [sendable(str(token)) for token in tokens]
        T = len(names)
        if not 1 <= T <= LONGEST:
            raise ValueError(f"the explorer shows 1 to {LONGEST} tokens, not {T}")
        super().__init__(
            tokens=names,
            values=_numbers(values, (T,), "values"),
            values_name=sendable(values_name),
            learned=[] if learned is None else _numbers(learned, (T, T), "learned"),
            weighting=weighting,
            decay=decay,
            last=min(3, T) if last is None else last,
            row=row + T if row < 0 else row,
        )

    @classmethod
    def example(cls) -> Self:
        return cls([f"word{i}" for i in range(LONGEST)], np.sin(range(LONGEST)))

    _given = read_only("tokens", "values", "values_name", "learned")

    @traitlets.validate("weighting")
    def _known(self, proposal: Any) -> Any:
        how = proposal.value
        if how not in WEIGHTINGS or (how == "learned" and not self.learned):
            raise traitlets.TraitError(
                f"weighting should be one of {', '.join(WEIGHTINGS)} (learned only together with "
                f"the matrix learned=...), not {how!r}"
            )
        return how

    _factor = in_range("a factor,", "decay", low=0, high=1)
    _newest = in_range("how many tokens,", "last", low=1, high=lambda self: len(self.tokens))
    _places = in_range(
        "a token (-1: none),", "changed", low=-1, high=lambda self: len(self.tokens) - 1
    )
    _rows = in_range("an output", "row", low=0, high=lambda self: len(self.tokens) - 1)

    def weights(self) -> np.ndarray:
        """The present (T, T) mixing matrix; row i holds the weights of output i."""
        if self.weighting == "learned":
            return np.array(self.learned)
        places = np.arange(len(self.tokens))
        distance = np.abs(places[:, None] - places)
        raw = {
            "mean": np.ones(distance.shape),
            "decay": self.decay**distance,
            "last": (distance < self.last).astype(float),
        }[self.weighting]
        raw = np.tril(raw) if self.causal else raw
        return raw / raw.sum(1, keepdims=True)

    def inputs(self) -> np.ndarray:
        """The values, the changed one raised by 1."""
        signal = np.array(self.values)
        if self.changed >= 0:
            signal[self.changed] += 1
        return signal

    def picture(self) -> Picture:
        """The matrix, the chosen row as bars, and the values before and after mixing."""
        weights, labels = self.weights(), [short(visible(token), 12) for token in self.tokens]
        T, i, names = len(labels), self.row, [verbatim(label) for label in labels]
        fig, (left, middle, right) = picture(
            f"A mixing matrix, one of its rows as bars, and the mixed values: {self.describe()}.",
            width=11,
            height=max(4, 1.2 + 0.19 * T),
            columns=3,
            width_ratios=[1.15, 0.8, 1.25],
        )
        shut = np.triu(np.ones((T, T), bool), 1) & (self.causal or self.weighting == "learned")
        heatmap(
            np.where(shut, np.nan, weights),
            ax=left,
            row_labels=labels,
            column_labels=labels,
            limits=(0, 1),
        )
        left.axhspan(i - 0.5, i + 0.5, fill=False, edgecolor=RED, linewidth=2)
        left.set(title="Weights", xlabel="token", ylabel="output")
        middle.barh(range(T), weights[i], color=BLUE)
        for j in range(T):
            if weights[i, j] >= 0.005:
                middle.text(weights[i, j], j, f" {weights[i, j]:.2f}", va="center", fontsize=8)
        middle.set(yticks=range(T), yticklabels=names, ylim=(T - 0.5, -0.5))
        middle.set(xlim=(0, 1.25), xticks=[0, 0.5, 1])
        middle.set(title=f"Row {i} ({names[i]}): sum {weights[i].sum():.2f}", xlabel="weight")
        signal, name = self.inputs(), verbatim(short(self.values_name, 20))
        right.plot(signal, "o", color=GREY, label=name, markerfacecolor="none")
        right.plot(weights @ signal, ".-", color=BLUE, label="after mixing")
        right.plot(i, (weights @ signal)[i], "D", color=RED, label=f"output {i}")
        right.set(xticks=range(T), xticklabels=names, title="Before and after")
        if max(map(len, labels)) > 2:
            right.tick_params(axis="x", rotation=90)
        fig.legend(loc="outside lower right", ncols=3, frameon=False)
        return fig

    def describe(self) -> str:
        """Weighting, row and output in one line."""
        how = {
            "mean": "mean of the past",
            "decay": f"decay {self.decay:.2f}",
            "last": f"last {self.last}",
            "learned": "learned weights",
        }[self.weighting]
        T = len(self.tokens)
        text = f"{how}, {T} token{'s' if T > 1 else ''}, row {self.row}"
        if self.weighting == "learned":  # trained numbers differ a little between machines
            return text
        return f"{text}: output {(self.weights() @ self.inputs())[self.row]:.2f}"


def _numbers(value: Any, shape: tuple[int, ...], name: str) -> list:
    """`value` as (nested) lists of finite numbers of the shape."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} should be numbers of shape {shape}, not {value!r:.60}") from None
    if array.shape != shape:
        raise ValueError(f"{name} should have shape {shape}, one per token, but has {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity")
    return array.tolist()
