"""The exercises on fast training beyond what their declarations say: right and wrong answers."""

import torch

from exercises import training_fast as check
from tests.answers import accepted, refused


def by_eigenvectors(matrix):
    if matrix.shape[0] > matrix.shape[1]:
        return by_eigenvectors(matrix.T).T
    values, vectors = torch.linalg.eigh(matrix @ matrix.T)
    return vectors @ torch.diag(values.rsqrt()) @ vectors.T @ matrix


def from_shapes(n_layer, n_embd, vocab_size, tokens, seconds, peak):
    shapes = 4 * [(n_embd, n_embd)] + [(n_embd, 4 * n_embd), (4 * n_embd, n_embd)]
    matrices = n_layer * shapes + [(n_embd, vocab_size)]
    forward = sum(2 * rows * columns for rows, columns in matrices) * tokens
    return torch.tensor(3 * forward / (seconds * peak), dtype=torch.float64)


def by_stacking(gradients, sizes):
    weights = torch.tensor(sizes) / sum(sizes)
    return torch.tensordot(weights, torch.stack(gradients), dims=1)


def by_sorting(steps, fixed, per_text):
    runs = sorted((n * (fixed + per_text * B), B) for B, n in steps.items())
    return [runs[0][1], runs[0][0]]


def through_singular_values(matrix, a, b, c, rounds):
    U, s, Wt = torch.linalg.svd(matrix, full_matrices=False)
    s = s / matrix.norm()
    for _ in range(rounds):
        s = a * s + b * s**3 + c * s**5
    return U * s @ Wt


test_other_right_answers_are_right = accepted(
    (check.equalised, by_eigenvectors),
    (check.mfu, from_shapes),
    (check.accumulated, by_stacking),
    (check.fastest_batch, by_sorting),
    (check.newton_schulz, through_singular_values),
)


def not_turned_back(matrix, a, b, c, rounds):
    x = check.newton_schulz.right(matrix, a, b, c, rounds)
    return x.T if matrix.shape[0] > matrix.shape[1] else x


test_other_mistakes_are_told_by_what_differs = refused(
    (check.equalised, lambda m: (p := torch.linalg.svd(m))[0] @ p[2], "`full_matrices=False`"),
    (check.mfu, lambda *a: 1.5 * check.mfu.right(*a), "mfu(4, 128, 65, 1536, 0.1, "),
    (check.accumulated, lambda gs, n: 2 * check.accumulated.right(gs, n), "at index [0, 0]"),
    (check.fastest_batch, lambda *a: check.fastest_batch.right(*a)[0], "one of the two values"),
    (check.newton_schulz, not_turned_back, "shape"),
)
