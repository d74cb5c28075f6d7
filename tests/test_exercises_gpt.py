"""The exercises of chapter 09: other right answers, and mistakes that no table names."""

from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises import gpt as check


def by_eigenvectors(matrix):
    if matrix.shape[0] > matrix.shape[1]:
        return by_eigenvectors(matrix.T).T
    values, vectors = torch.linalg.eigh(matrix @ matrix.T)
    return vectors @ torch.diag(values.rsqrt()) @ vectors.T @ matrix


def clip_in_two_steps(gradients, longest):
    length = torch.linalg.vector_norm(torch.stack([g.norm() for g in gradients]))
    return tuple(g if length <= longest else g / length * longest for g in gradients)


def clip_as_torch_does(gradients, longest):
    parameters = [torch.zeros_like(g) for g in gradients]
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = g.clone()
    torch.nn.utils.clip_grad_norm_(parameters, longest)
    return [p.grad for p in parameters]


def surprises_by_loops(logits, ids):
    B, T, _ = logits.shape
    log_p = logits.log_softmax(-1)
    return [[-log_p[b, t, ids[b, t + 1]].item() for t in range(T - 1)] for b in range(B)]


def mixed_by_items(rungs):
    steps = enumerate(pairwise(rungs), 1)
    return [i for i, (a, b) in steps if len({name for name, _ in a.items() ^ b.items()}) > 1]


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (check.fast_parameters, lambda *a: torch.tensor(check.fast_parameters.right(*a))),
        (check.fast_parameters, lambda *a: np.int64(check.fast_parameters.right(*a))),
        (check.surprises, surprises_by_loops),
        (check.surprises, lambda z, i: F.cross_entropy(z[:, :-1].mT, i[:, 1:], reduction="none")),
        (check.surprises, lambda z, i: check.surprises.right(z.double(), i).numpy()),
        (check.clip, clip_in_two_steps),
        (check.clip, clip_as_torch_does),
        (check.clip, lambda gs, c: [g.numpy() for g in check.clip.right(gs, c)]),
        (check.decay_groups, lambda m: list(map(tuple, check.decay_groups.right(m)))),
        (check.equalised, by_eigenvectors),
        (check.equalised, lambda m: check.equalised.right(m.double()).numpy()),
        (check.unfuse, lambda w: w.T.reshape(3, len(w), len(w))),
        (check.unfuse, lambda w: [torch.nn.Parameter(p.T) for p in w.split(len(w), 1)]),
        (check.mixed_steps, mixed_by_items),
        (check.mixed_steps, lambda r: np.array(check.mixed_steps.right(r), dtype=np.int64)),
    ],
)
def test_other_right_answers_are_right(exercise, answer):
    report = exercise(answer)
    assert report.outcome == "right", report.message


@pytest.mark.parametrize(
    ("exercise", "stub"),
    [
        (check.decay_groups, lambda m: (..., ...)),
        (check.clip, lambda g, _: [...] * len(g)),
        (check.unfuse, lambda w: (..., ..., ...)),
    ],
)
def test_a_placeholder_inside_is_not_attempted(exercise, stub):
    assert exercise(stub).outcome == "not attempted"


def shortened_in_place(gradients, longest):
    share = min(1.0, longest / torch.cat([g.flatten() for g in gradients]).norm().item())
    for g in gradients:
        g *= share
    return gradients


def clipped_without_0(gradients, longest):
    length = torch.cat([g.flatten() for g in gradients]).norm().item()
    return [g * (longest / length if longest / length < 1 else 1) for g in gradients]


@pytest.mark.parametrize(
    ("exercise", "answer", "words"),
    [
        (check.surprises, lambda z, i: check.surprises.right(z.clamp(-99, 99), i), "should be"),
        (check.surprises, lambda z, i: F.cross_entropy(z, i), "raised"),
        (check.surprises, lambda z, i: z.log_softmax(-1).gather(-1, i[:, 1:])[..., 0], "raised"),
        (check.clip, lambda gs, c: check.clip.right(gs, c)[:2], "should be 3 tensors, but is"),
        (check.clip, lambda gs, c: check.clip.right(gs, c * 2), "entry 0 of clip([[6], [[8]]]"),
        (check.clip, clipped_without_0, "ZeroDivisionError"),
        (check.clip, shortened_in_place, "work on a new list"),
        (check.decay_groups, lambda m: ("weight", "bias"), "should be (['weight'], ['bias'])"),
        (check.decay_groups, lambda m: tuple(map(set, check.decay_groups.right(m))), "should be"),
        (check.equalised, lambda m: (p := torch.linalg.svd(m))[0] @ p[2], "`full_matrices=False`"),
        (
            check.unfuse,
            lambda w: [w, w, w],
            "entry 0 of unfuse(c_attn) for c_attn",
        ),
        (check.mixed_steps, lambda r: [1], "should be"),
    ],
)
def test_other_mistakes_are_told_by_what_differs(exercise, answer, words):
    report = exercise(answer)
    assert report.outcome == "not yet"
    assert words in report.message
