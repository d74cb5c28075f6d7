"""The exercises of chapter 01 beyond what their declaration says."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises import words_as_vectors as check
from exercises.words_as_vectors import aim, best, cosines, hot, lengths, top, unit


def by_recursion(a, b):
    return a[0] * b[0] + by_recursion(a[1:], b[1:]) if len(a) else 0.0


def sorted_in_numpy(E, i, k):
    order = np.argsort(cosines(E, i).numpy(), kind="stable")[::-1]
    return order[order != i][:k]


def the_first_that_is_free(E, a, b, c):
    order = (E @ aim(E, a, b, c) / lengths(E)).argsort(descending=True).tolist()
    return next(i for i in order if i not in (a, b, c))


def scattered(ids, V):
    return torch.zeros(*ids.shape, V).scatter_(-1, ids[..., None], 1)


def filled_flat(ids, V):
    out = torch.zeros(ids.numel(), V)
    out[torch.arange(ids.numel()), ids.flatten()] = 1
    return out.reshape(*ids.shape, V)


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (check.dot, lambda a, b: (a * b).sum()),
        (check.dot, lambda a, b: sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))),
        (check.dot, lambda a, b: np.sum(a.numpy() * b.numpy())),
        (check.dot, by_recursion),
        (check.cosine, lambda a, b: F.cosine_similarity(a, b, dim=0)),
        (check.cosine, lambda a, b: torch.nan_to_num(a @ b / (a.norm() * b.norm()))),
        (check.cosine, lambda a, b: float(a @ b) / (math.hypot(*a) * math.hypot(*b) or 1.0)),
        (check.cosine_matrix, lambda A, B: F.cosine_similarity(A[:, None], B[None], dim=-1)),
        (check.cosine_matrix, lambda A, B: (A @ B.T / lengths(A)[:, None] / lengths(B)).numpy()),
        (check.nearest, lambda E, i, k: top(unit(E) @ E[i], k, [i]).tolist()),
        (check.nearest, lambda E, i, k: list(sorted_in_numpy(E, i, k))),
        (check.nearest, sorted_in_numpy),
        (check.analogy, lambda E, a, b, c: int(check.analogy.right(E, a, b, c))),
        (check.analogy, the_first_that_is_free),
        (check.one_hot, lambda ids, V: torch.eye(V)[ids]),
        (check.one_hot, scattered),
        (check.one_hot, filled_flat),
        (check.one_hot, lambda ids, V: torch.from_numpy(np.eye(V, dtype="f")[ids.numpy()])),
    ],
)  # fmt: skip
def test_other_right_answers_are_right(exercise, answer):
    assert exercise(answer).outcome == "right", exercise(answer)


def cosine_in_a_loop(A, B):
    return torch.stack([torch.stack([check.cosine.right(a, b) for b in B]) for a in A])


def hot_in_a_loop(ids, V):
    return torch.eye(V)[torch.tensor([int(i) for i in ids.flatten()])].reshape(*ids.shape, V)


@pytest.mark.parametrize(
    ("exercise", "answer", "words"),
    [
        (check.dot, lambda a, b: a @ b, "ready-made"),
        (check.dot, torch.dot, "ready-made"),
        (check.dot, lambda a, b: torch.einsum("i,i", a, b), "ready-made"),
        (check.dot, lambda a, b: np.dot(a.numpy(), b.numpy()), "ready-made"),
        (check.dot, lambda a, b: a.numpy() @ b.numpy(), "ready-made"),
        (check.dot, lambda a, b: (a * b)[:5].sum(), "should be"),
        (check.dot, lambda a, b: a.mul_(b).sum(), "in place"),
        (check.dot, lambda a, b: print(end=""), "forget `return`"),
        (check.cosine, lambda a, b: float(a @ b) / float(a.norm() * b.norm()), "ZeroDivision"),
        (check.cosine, lambda a, b: a @ b / (a.norm() * b.norm() + 0.5), "should be"),
        (check.cosine_matrix, lambda A, B: A / A.norm(dim=1) @ B, "keepdim=True"),
        (check.cosine_matrix, cosine_in_a_loop, "a loop computes them"),
        (check.nearest, lambda E, i, k: cosines(E, i).topk(k + 1).indices[1:], "point the same"),
        (check.nearest, lambda E, i, k: cosines(E, i).topk(k), "two things"),
        (check.analogy, lambda *of: best(of[0], aim(*of), [])[None], "should have shape ()"),
        (check.one_hot, lambda ids, V: hot(ids, V).long(), ".float()"),
        (check.one_hot, lambda ids, V: hot(ids, V).bool(), ".float()"),
        (check.one_hot, lambda ids, V: hot(ids, V).tolist(), ".float()"),
        (check.one_hot, lambda ids, V: torch.from_numpy(np.eye(V)[ids.numpy()]), "of 64 bits"),
        (check.one_hot, F.one_hot, "torch's own"),
        (check.one_hot, lambda ids, V: F.one_hot(ids, V).double(), "torch's own"),
        (check.one_hot, hot_in_a_loop, "a loop sets them"),
        (check.one_hot, lambda ids, V: hot(ids.reshape(-1, ids.shape[-1]), V), "should have shape"),
    ],
)  # fmt: skip
def test_other_mistakes_are_told(exercise, answer, words):
    report = exercise(answer)
    assert report.outcome == "not yet"
    assert words in report.message
