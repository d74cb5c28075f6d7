"""The exercises on real weights: other right answers, and mistakes that no table names."""

import numpy as np
import torch
from gguf import GGMLQuantizationType
from gguf.quants import quantize

from exercises import real_weights as check
from tests.answers import accepted, refused

before, middle, last = check.BITS


def by_library(weights):
    """What llama.cpp's own library packs."""
    row = np.array([weights], dtype=np.float32)
    return quantize(row, GGMLQuantizationType.Q4_1).tobytes()


def by_hand(weights):
    """No struct, and the levels by comparing."""
    low = np.float16(min(weights))
    scale = np.float16((max(weights) - min(weights)) / 15)
    levels = [min(range(16), key=lambda n: abs(low + scale * n - w)) for w in weights]
    halves = bytes(levels[i] | levels[i + 16] << 4 for i in range(16))
    return scale.tobytes() + low.tobytes() + halves


test_other_right_answers_are_right = accepted(
    (check.pack, by_library),
    (check.pack, by_hand),
    (check.dearer, (1.0, 1.11, 1.33, " Last")),
    (check.dearer, [torch.tensor(before), middle + 0.004, last - 0.004, check.RIGHT]),
    (check.dearer, (1.0064, 1.1114, 1.3246, check.RIGHT)),  # without the token 0 before it
    (check.wordings, ([1] * 6 + [0] * 2, [0] * 8, "first")),
    (check.wordings, ([0] * 9, [1] * 8 + [0], "second")),
    (check.wordings, ([1, 1, 1, 0, 0, 0, 0, 1], [1, 1, 0, 1, 1, 0, 0, 1], "cannot tell")),
)


def sixteen_steps(weights):
    scale = (max(weights) - min(weights)) / 16
    levels = [round((w - min(weights)) / (scale or 1)) for w in weights]
    packed = [a + 16 * b for a, b in zip(levels[:16], levels[16:], strict=True)]
    return check.struct.pack("<2e16B", scale, min(weights), *packed)


def never_equal(weights):
    assert [w / (max(weights) - min(weights)) for w in weights]
    return check.pack.right(weights)


def letters(A="c", B="d", C="e", D="a"):
    return {"A": A, "B": B, "C": C, "D": D}


test_other_mistakes_are_told_by_what_differs = refused(
    (check.pack, sixteen_steps, "15 steps"),
    (check.pack, lambda weights: list(check.pack.right(weights)), "should be b"),
    (check.pack, never_equal, "All weights of"),
    (check.verdict, letters(B="a"), "attends to itself"),
    (check.verdict, letters(B="f"), "text of one token"),
    (check.verdict, letters(B="b"), "Exchange two"),
    (check.verdict, letters(A="f"), "would show there"),
    (check.verdict, letters(C="c"), "how far apart"),
    (check.verdict, letters(A="e"), "no logit"),
    (check.dearer, [*(b * check.math.log(2) for b in check.BITS), "last"], "nats per character"),
    (check.dearer, [*(b * 600 / 140 for b in check.BITS), "last"], "bits per token"),
    (check.dearer, (last, middle, last, "last"), "stay rounded"),
    (check.dearer, (before, 1.2, last, "last"), "one at a time"),
    (check.dearer, (before, last, middle, "last"), "The second and the third are swapped"),
    (check.dearer, (before, middle, 1.4268, "last"), "both blocks are rounded"),
    (check.dearer, (before, 1.0510, 1.0321, "last"), "Round the three of `mlp`"),
    (check.dearer, (before, 1.0583, 1.3191, "last"), "Round the four of attention"),
    (check.dearer, (before, before, before, "last"), "Rounding changes nothing"),
    (check.dearer, (before, middle, last, "middle"), "More bits are worse"),
    (check.wordings, ([1, 0], [0, 0], "first"), "eight questions"),
    (check.wordings, ([1] * 8, [0] * 9, "first"), "same length"),
    (check.wordings, ([1] * 8, [2] * 8, "first"), "1 or 0"),
    (check.wordings, ([0] * 8, [0] * 8, "cannot tell"), "some"),
    (check.wordings, ([1] * 8, [0] * 8, "second"), "other wording got more"),
    (check.wordings, ([1] * 5 + [0] * 3, [0] * 8, "first"), "A coin"),
    (check.wordings, ([1] * 8, [0] * 8, "cannot tell"), "hardly luck"),
    (check.wordings, ([1] * 8, [0] * 8, "better"), "verdict should be"),
)
