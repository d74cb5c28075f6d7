"""What the divisor of the scores does: their spread, the weights, their entropy and gradient."""

from typing import Any, ClassVar

import numpy as np
import traitlets

from explorers.base import Explorer, esm, read_only
from helpers.plots import BLUE, GREEN, GREY, ORANGE, RED, Picture, picture

QUERIES, KEYS, LARGEST = 32, 16, 1024  # random queries and keys; numbers in each
WIDTH = LARGEST  # C, the embedding width that the wrong divisor √C uses
SIZES = tuple(2**power for power in range(2, 11))  # head sizes 4 … 1024
DIVISORS = ("1", "√hs", "√C", "hs")
EDGE = 12  # the histogram ends at ±EDGE; what lies beyond is counted in its outermost bars
_LINES = {"1": (ORANGE, "-"), "√hs": (BLUE, "-"), "√C": (RED, "--"), "hs": (GREEN, ":")}


class ScalingExplorer(Explorer):
    """Move the head size, choose the divisor: scores, weights, entropy and gradient move together.

    head_size: d, a power of two from 4 to 1024; divisor: what the scores are divided by, "1"
    (nothing), "√hs", "√C" (the root of an embedding width C of 1024) or "hs"; row: which of 32
    random queries is shown, from 0; seed: of the random numbers, which stay the same while you
    move the sliders: a head of size d uses the first d numbers of each query and key.
    Raises ValueError for another head size, divisor, or row.
    """

    _esm: ClassVar[str] = esm("scaling")

    numbers = traitlets.Bytes().tag(sync=True)  # (QUERIES + KEYS, LARGEST) float32, sent once
    power = traitlets.Int(6, min=2, max=10).tag(sync=True)  # the head size is 2 ** power
    divisor = traitlets.Enum(DIVISORS, "√hs").tag(sync=True)
    row = traitlets.Int(0, min=0, max=QUERIES - 1).tag(sync=True)

    def __init__(
        self, head_size: int = 64, *, divisor: str = "√hs", row: int = 0, seed: int = 0
    ) -> None:
        if head_size not in SIZES:
            raise ValueError(f"head_size should be one of {SIZES}, not {head_size!r}")
        draw = np.random.default_rng(seed)
        vectors = draw.standard_normal((QUERIES + KEYS, LARGEST), dtype=np.float32)
        super().__init__(
            numbers=vectors.astype("<f4").tobytes(),
            power=SIZES.index(head_size) + 2,
            divisor=divisor,
            row=row,
        )

    _given = read_only("numbers")

    @property
    def head_size(self) -> int:
        """d, how many numbers a query and a key have at present."""
        return 2**self.power

    def scores(self, head_size: int | None = None, divisor: str | None = None) -> np.ndarray:
        """The (32, 16) divided scores at the present, or the given, head size and divisor."""
        d = head_size or self.head_size
        vectors = np.frombuffer(self.numbers, "<f4").reshape(-1, LARGEST)[:, :d].astype(float)
        by = {"1": 1.0, "√hs": d**0.5, "√C": WIDTH**0.5, "hs": float(d)}[divisor or self.divisor]
        return vectors[:QUERIES] @ vectors[QUERIES:].T / by

    def measures(self, head_size: int | None = None, divisor: str | None = None) -> dict[str, Any]:
        """Weights (32, 16), std of all scores, and for each of the 32 rows entropy and gradient.

        entropy: in nats, at most ln 16; gradient: the (Frobenius) norm of the softmax's Jacobian.
        """
        scores = self.scores(head_size, divisor)
        raised = np.exp(scores - scores.max(1, keepdims=True))
        w = raised / raised.sum(1, keepdims=True)
        squares = (w**2).sum(1)
        return {
            "weights": w,
            "std": float(scores.std()),
            "entropy": -(w * np.log(np.maximum(w, 1e-300))).sum(1),
            # subtle: ‖diag(w) − w wᵀ‖² written out, so that no 16 × 16 matrix is needed per row.
            "gradient": np.sqrt(np.maximum(0, squares - 2 * (w**3).sum(1) + squares**2)),
        }

    def picture(self) -> Picture:
        """The histogram of the scores, the weights of one query, and entropy against head size."""
        now = self.measures()
        fig, (left, middle, right) = picture(
            f"Histogram of the scores, weights of one query, entropy against d: {self.describe()}.",
            width=11,
            height=3.4,
            columns=3,
        )
        shown = np.clip(self.scores().ravel(), -EDGE + 0.01, EDGE - 0.01)
        colour, _ = _LINES[self.divisor]
        left.hist(shown, bins=np.linspace(-EDGE, EDGE, 49), color=colour)
        left.set(title=f"Scores: std {now['std']:.2f}", xlabel="score (end bars: all beyond)")
        left.set(ylabel="how many of 512", xlim=(-EDGE, EDGE))
        middle.bar(range(KEYS), now["weights"][self.row], color=colour)
        middle.set(title=f"Weights of query {self.row}", xlabel="key", ylim=(0, 1.02))
        middle.set(xticks=range(0, KEYS, 3))
        for name, (colour, style) in _LINES.items():
            line = [self.measures(d, name)["entropy"].mean() for d in SIZES]
            label = "no scaling" if name == "1" else f"÷ {name}"
            right.plot(SIZES, line, style, color=colour, label=label)
        right.plot(self.head_size, now["entropy"].mean(), "o", color=GREY, markersize=9)
        right.set(title="Mean entropy", xlabel="head size d", ylabel="nats", xscale="log")
        right.set(xticks=SIZES[::2], xticklabels=SIZES[::2], ylim=(0, 3))
        right.minorticks_off()
        right.legend(loc="upper right", bbox_to_anchor=(1, 0.75))
        return fig

    def describe(self) -> str:
        """Head size, divisor, spread and entropy in one line."""
        now = self.measures()
        return (
            f"head size {self.head_size}, divided by {self.divisor}: scores with std "
            f"{now['std']:.2f}, mean entropy {now['entropy'].mean():.2f}"
        )
