"""The exercises on fast training beyond what their declarations say: right and wrong answers."""

import torch

from exercises import training_fast as check
from tests.answers import accepted, refused


def from_shapes(n_layer, n_embd, vocab_size, tokens, seconds, peak):
    shapes = 4 * [(n_embd, n_embd)] + [(n_embd, 4 * n_embd), (4 * n_embd, n_embd)]
    matrices = n_layer * shapes + [(n_embd, vocab_size)]
    forward = sum(2 * rows * columns for rows, columns in matrices) * tokens
    return torch.tensor(3 * forward / (seconds * peak), dtype=torch.float64)


def by_stacking(gradients, sizes):
    weights = torch.tensor(sizes) / sum(sizes)
    return torch.tensordot(weights, torch.stack(gradients), dims=1)


PAIR = ["Rotary", "QK norm"]

test_other_right_answers_are_right = accepted(
    (check.mfu, from_shapes),
    (check.accumulated, by_stacking),
    (check.nan_hunt, [25, 12, "C"]),
    (check.taken_out, (PAIR, 1.9, [1.871, 1.866])),
    (check.taken_out, (["convolution", "squared ReLU"], 2.0, (2.09, 2.06))),
)

test_other_mistakes_are_told_by_what_differs = refused(
    (check.mfu, lambda *a: 1.5 * check.mfu.right(*a), "mfu(4, 128, 65, 1536, 0.1, "),
    (check.accumulated, lambda gs, n: 2 * check.accumulated.right(gs, n), "at index [0, 0]"),
    (check.nan_hunt, (25, 12, "f"), "letters a to e"),
    (check.nan_hunt, (1, 12, "c"), "Count the others"),
    (check.nan_hunt, (25, 14, "c"), "a convolution is no matrix"),
    (check.nan_hunt, (25, 0, "c"), "constant in the denominator"),
    (check.nan_hunt, (25, 12, "a"), "A rate of 0"),
    (check.nan_hunt, (25, 12, "b"), "that one is 4.23"),
    (check.nan_hunt, (25, 12, "d"), "rows of the token table"),
    (check.nan_hunt, (25, 12, "e"), "sums of squares"),
    (check.nan_hunt, (24, 12, "c"), "Count again"),
    (check.taken_out, (["rotary", "convolution"], 2.0, [2.39, 2.40]), "Take another"),
    (check.taken_out, (PAIR, 1.9, [1.93, 1.91]), "Run the race"),
    (check.taken_out, (PAIR, 1.9, [1.87, 1.87]), "two losses"),
    (check.taken_out, (["Muon", "rotary"], 1.9, [2.1, 2.2]), "Take out two of rotary, qk norm"),
    (check.taken_out, (["convolution", "QK norm"], 1.9, [1.88, 1.86]), "far from 1.87"),
)
