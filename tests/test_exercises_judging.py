"""The exercises on judging: other right answers, and mistakes that no table names."""

from itertools import combinations, product

import numpy as np
import torch

from exercises import judging as check
from tests.answers import accepted, refused

copied_fraction = check.copied_fraction.right
mean, low, high = check.COUNTERS


# As the chapter looks for runs: in text, with a space on both sides.
by_spaces = check.copied_fraction.slip(
    "tuple(some[i : i + n]) in runs → "
    """f" {' '.join(some[i : i + n])} " in f" {' '.join(text)} \""""
)


def by_sets(a, b):
    """The texts that are swapped, as sets."""
    gaps, large = np.array(a) - np.array(b), 0
    for k in range(len(a) + 1):
        for those in combinations(range(len(a)), k):
            large += abs(gaps.sum() - 2 * gaps[list(those)].sum()) >= abs(gaps.sum()) - 1e-9
    return large / 2 ** len(a)


def by_means(a, b):
    """Means are compared, each rounded in its own way."""
    n, gaps = len(a), np.array(a) - np.array(b)
    rows = list(product((1, -1), repeat=n))
    true = abs(sum(a) / n - sum(b) / n)
    return sum(abs((row * gaps).mean()) >= true for row in rows) / len(rows)


test_other_right_answers_are_right = accepted(
    (check.copied_fraction, by_spaces),
    (check.counters, [torch.tensor(mean), low + 0.002, high - 0.002, check.RIGHT]),
    (check.counters, (round(mean, 2), round(low, 2), round(high, 2), check.RIGHT)),
    (check.by_chance, by_sets),
    (check.by_chance, by_means),
)


def divided_by_none(some, text, n):
    return len(some) * copied_fraction(some, text, n) / len(some)


def short_runs(some, text, n):
    return copied_fraction(some, text, min(n, len(some)))


test_other_mistakes_are_told_by_what_differs = refused(
    (check.copied_fraction, divided_by_none, "division by zero. A list shorter than n gives"),
    (check.copied_fraction, short_runs, "shorter than n gives"),
    (check.counters, (mean, low, high), "four things"),
    (check.counters, (-mean, -high, -low, check.RIGHT), "The sign"),
    (check.counters, (mean, mean - 0.3, mean + 0.3, check.RIGHT), "the interval is not"),
    (check.counters, (mean, high, low, check.RIGHT), "lower end"),
    (check.counters, (mean - 0.5, low - 0.5, high - 0.5, check.RIGHT), "The mean is not"),
    (check.counters, (mean, low, high, "three"), "Fewer bits"),
    (check.counters, (mean, low, high, "cannot tell"), "contain 0?"),
)
