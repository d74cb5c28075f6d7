"""The exercises of chapter 02 beyond what their declaration says."""

import random

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


def by_choices(table, start, n):
    ids = [start]
    while len(ids) <= n:
        ids += random.choices(range(len(table)), table[ids[-1]].tolist())
    return ids[1:]


test_other_right_answers_are_right = accepted(
    (check.cross_entropy, one_by_one),
    (check.cross_entropy, lambda z, y: (z.logsumexp(-1) - at(z, y)).mean().item()),
    (check.logit_gradient, minus_one_at_targets),
    (check.best_reach, {10: np.int64(4), 100: torch.tensor(3.0), 1000: 2}),
    (check.generate, by_choices),
    (check.generate, lambda *given: torch.tensor(check.generate.right(*given))),
)


def by_autograd(logits, y):
    logits = logits.clone().requires_grad_()
    F.cross_entropy(logits.flatten(0, 1), y.flatten()).backward()
    return logits.grad


def seeded(*given):
    torch.manual_seed(0)
    return check.generate.right(*given)


def most_probable(table, start, n):
    return check.generate.right(F.one_hot(table.argmax(1)).float(), start, n)


test_other_mistakes_are_told = refused(
    (check.cross_entropy, lambda z, y: F.cross_entropy(z.mT, y), "torch's own"),
    (check.cross_entropy, lambda z, y: one_by_one(z, y).detach(), "no gradient"),
    (check.cross_entropy, lambda z, y: -at(z.softmax(-1).log().clamp(-99), y).mean(), "1000"),
    (check.logit_gradient, by_autograd, "`backward` computed it"),
    (check.logit_gradient, lambda z, y: (z.softmax(-1) - F.one_hot(y)) / y.numel(), "(y, V)`"),
    (check.best_reach, {**check.REACH, 10: 5}, "len(train_ids) // 10]"),
    (check.best_reach, {**check.REACH, 10: 1.75}, "look like losses"),
    (check.best_reach, dict.fromkeys(check.REACH, 7), "the longest context"),
    (check.best_reach, {part: k + 1 for part, k in check.REACH.items()}, "one too high"),
    (check.best_reach, {part: k - 1 for part, k in check.REACH.items()}, "one too low"),
    (check.generate, most_probable, "argmax"),
    (check.generate, lambda t, *given: check.generate.right(t**3, *given), "frequencies differ"),
    (check.generate, seeded, "Two calls"),
    (
        check.generate,
        lambda *given: [float(i) for i in check.generate.right(*given)],
        "whole numbers",
    ),
    (check.generate, lambda t, s, n: check.generate.right(t, s, max(n, 1)), "1, 0) should be []"),
)
