"""The exercises of chapter 02 beyond what their declaration says."""

import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises import language_modelling as check
from exercises.language_modelling import at, walk


def one_by_one(logits, y):
    total = 0.0
    for row, targets in zip(logits, y, strict=True):
        for z, target in zip(row, targets, strict=True):
            total = total - (z[target] - z.max() - (z - z.max()).exp().sum().log())
    return total / y.numel()


def in_numpy(logits, y):
    z = logits.numpy() - logits.numpy().max(-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(-1, keepdims=True))
    return -np.take_along_axis(logp, y.numpy()[..., None], -1).mean()


def by_choices(table, start, n):
    ids = [start]
    while len(ids) <= n:
        ids += random.choices(range(len(table)), table[ids[-1]].tolist())
    return ids[1:]


def by_autograd(logits, y):
    logits = logits.clone().requires_grad_()
    F.cross_entropy(logits.flatten(0, 1), y.flatten()).backward()
    return logits.grad


def in_place(logits, y):
    p = (
        logits.exp() / logits.exp().sum(-1, keepdim=True)
        if logits.max() < 80
        else logits.softmax(-1)
    )
    p = p.clone()
    for b in range(len(y)):
        for t in range(y.shape[1]):
            p[b, t, y[b, t]] -= 1
    return p.numpy() / y.numel()


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (check.cross_entropy, one_by_one),
        (check.cross_entropy, in_numpy),
        (check.cross_entropy, lambda z, y: (z.logsumexp(-1) - at(z, y)).mean().item()),
        (check.cross_entropy, lambda z, y: F.nll_loss(z.log_softmax(-1).mT, y)),
        (check.logit_gradient, in_place),
        (check.best_reach, {1: 5, 10: 4, 100: 3, 1000: 2}),
        (check.best_reach, {1: torch.tensor(5), 10: np.int64(4), 100: 3.0, 1000: 2}),
        (check.generate, by_choices),
        (check.generate, lambda *of: torch.tensor(walk(*of))),
    ],
)
def test_other_right_answers_are_right(exercise, answer):
    assert exercise(answer).outcome == "right", exercise(answer)


def seeded(function):
    def answer(*given):
        torch.manual_seed(0)
        return function(*given)

    return answer


def likeliest(table, start, n):
    return walk(F.one_hot(table.argmax(1)).float(), start, n)


def from_anywhere(table, start, n):
    return walk(table, int(torch.randint(len(table), ())), n)


@pytest.mark.parametrize(
    ("exercise", "answer", "words"),
    [
        (check.cross_entropy, lambda z, y: F.cross_entropy(z.mT, y), "torch's own"),
        (check.cross_entropy, lambda z, y: one_by_one(z, y).detach(), "no gradient"),
        (check.cross_entropy, lambda z, y: -at(z.softmax(-1).log().clamp(-99), y).mean(), "1000"),
        (check.logit_gradient, lambda z, y: z.softmax(-1).sum(), "should have shape (2, 3, 8)"),
        (check.logit_gradient, by_autograd, "`backward` computed it"),
        (check.logit_gradient, lambda z, y: (z.softmax(-1) - F.one_hot(y)) / y.numel(), "(y, V)`"),
        (check.best_reach, 5, "a dictionary"),
        (check.best_reach, {1: 5}, "nothing for 1000, 100, 10"),
        (check.best_reach, {**check.REACH, 10: 5}, "len(ids) // 10]"),
        (check.best_reach, {**check.REACH, 1: 1.63}, "look like losses"),
        (check.best_reach, {**check.REACH, 1: (5, 1.63)}, "a number belongs"),
        *((check.best_reach, wrong, says) for says, wrong in check.OTHERWISE.items()),
        (check.generate, likeliest, "argmax"),
        (check.generate, lambda t, *of: walk((t > 0).float(), *of), "equally often"),
        (check.generate, lambda t, *of: walk((99 * (t == 1) + t).softmax(1), *of), "softmax"),
        (check.generate, lambda t, *of: walk(t**3, *of), "frequencies differ"),
        (check.generate, seeded(walk), "Two calls"),
        (check.generate, lambda t, *of: walk(torch.ones_like(t), *of), "leaves no choice"),
        (check.generate, lambda t, s, n: [0, 2, 3, 1, 0, 2], "leaves no choice"),
        (check.generate, lambda t, *of: walk(t + 0.005, *of), "leaves no choice"),
        (check.generate, lambda *of: [float(i) for i in walk(*of)], "whole numbers"),
        (check.generate, lambda t, s, n: walk(t, s, max(n, 1)), "1, 0) should be []"),
        (check.generate, from_anywhere, "from the row of `start`"),
    ],
)  # fmt: skip
def test_other_mistakes_are_told(exercise, answer, words):
    report = exercise(answer)
    assert report.outcome == "not yet"
    assert words in report.message
