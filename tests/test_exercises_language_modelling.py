"""The exercises of chapter 02 beyond what their declaration says."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from exercises import language_modelling as check
from tests.answers import accepted, refused


def at(values, y):
    return values.gather(-1, y[..., None])[..., 0]


def one_by_one(logits, y):
    total = 0.0
    for row, targets in zip(logits, y, strict=True):
        for z, target in zip(row, targets, strict=True):
            total = total - (z[target] - z.max() - (z - z.max()).exp().sum().log())
    return total / y.numel()


def minus_one_at_targets(logits, y):
    p = logits.softmax(-1)
    for b in range(len(y)):
        for t in range(y.shape[1]):
            p[b, t, y[b, t]] -= 1
    return p.numpy() / y.numel()


test_other_right_answers_are_right = accepted(
    (check.cross_entropy, one_by_one),
    (check.cross_entropy, lambda z, y: one_by_one(z, y).item()),
    (check.logit_gradient, minus_one_at_targets),
    (check.best_reach, {10: np.int64(4), 100: torch.tensor(3.0), 1000: 2}),
)


def by_autograd(logits, y):
    logits = logits.clone().requires_grad_()
    F.cross_entropy(logits.flatten(0, 1), y.flatten()).backward()
    return logits.grad


test_other_mistakes_are_told = refused(
    (check.cross_entropy, lambda z, y: F.cross_entropy(z.mT, y), "did the repair"),
    (check.cross_entropy, lambda z, y: (z.logsumexp(-1) - at(z, y)).mean(), "did the repair"),
    (check.broken_training, {**check.FAULTS, "A": 4}, "level"),
    (check.broken_training, {**check.FAULTS, "D": 3}, "twice"),
    (check.broken_training, {**check.FAULTS, "B": 4}, "2.47"),
    (check.broken_training, {**check.FAULTS, "C": 5, "D": 3}, "before the first"),
    (check.broken_training, {**check.FAULTS, "C": 4}, "begins like"),
    (check.cross_entropy, lambda z, y: one_by_one(z, y).detach(), "no gradient"),
    (check.cross_entropy, lambda z, y: -at(z.softmax(-1).log().clamp(-99), y).mean(), "1000"),
    (check.logit_gradient, by_autograd, "`backward` computed it"),
    (check.logit_gradient, lambda z, y: (z.softmax(-1) - F.one_hot(y)) / y.numel(), "(y, V)`"),
    (check.best_reach, {**check.REACH, 10: 5}, "len(train_ids) // 10]"),
    (check.best_reach, {**check.REACH, 10: 1.75}, "look like losses"),
    (check.best_reach, dict.fromkeys(check.REACH, 7), "the longest context"),
    (check.best_reach, {part: k + 1 for part, k in check.REACH.items()}, "one too high"),
    (check.best_reach, {part: k - 1 for part, k in check.REACH.items()}, "one too low"),
)


def test_each_fault_shows_in_its_run():
    """What the exercise's hints and diagnoses say of the curves."""
    ids = torch.multinomial(1 / torch.arange(1.0, 70), 50_000, replacement=True)
    runs = check.broken_runs(ids, 69)
    first, last = ({name: run[i] for name, run in runs.items()} for i in (0, -1))
    assert abs(first["A"] - math.log(69)) < 0.01 and last["A"] > 3.26
    assert last["B"] < 0.1 and first["D"] > 10
    assert first["C"] == first["in order"] and last["C"] > 1 + min(runs["C"])
