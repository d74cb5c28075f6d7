"""The exercises on judging: other right answers, and mistakes that no table names."""

from itertools import combinations, product

import numpy as np
import torch

from exercises import judging as check
from tests.answers import accepted, refused

mean, low, high = check.COUNTERS


def replaced(text, step, first):
    """Every step-th word from the first on becomes another."""
    found = text.split()
    return " ".join("thing" if i % step == first else w for i, w in enumerate(found))


def backwards(text):
    """The eighth word from the end, the sixteenth, and so on."""
    found = text.split()
    last = len(found) // 8 * 8
    return " ".join("thing" if i < last and (last - i) % 8 == 1 else w for i, w in enumerate(found))


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
    (check.disguise, backwards),
    (check.counters, [torch.tensor(mean), low + 0.002, high - 0.002, check.RIGHT]),
    (check.counters, (round(mean, 2), round(low, 2), round(high, 2), check.RIGHT)),
    (check.by_chance, by_sets),
    (check.by_chance, by_means),
)


def all_capitals(text):
    return text.upper()


def every_ninth(text):
    return replaced(text, 9, 8)


def from_the_first(text):
    return replaced(text, 8, 0)


def shortened(text):
    return " ".join(text.split()[1:])


test_other_mistakes_are_told_by_what_differs = refused(
    (check.causes, {"A": "b", "B": "d", "C": "f", "D": "a"}, "same articles"),
    (check.causes, {"A": "a", "B": "d", "C": "b", "D": "b"}, "harmless"),
    (check.causes, {"A": "a", "B": "c", "C": "f", "D": "b"}, "unshifted"),
    (check.causes, {"A": "a", "B": "e", "C": "f", "D": "b"}, "per token"),
    (check.causes, {"A": "a", "B": "b", "C": "f", "D": "b"}, "nearly twice"),
    (check.disguise, all_capitals, "Capitals"),
    (check.disguise, every_ninth, "eight in a row"),
    (check.disguise, from_the_first, "were changed"),
    (check.disguise, shortened, "one by one"),
    (check.counters, (-mean, -high, -low, check.RIGHT), "The sign"),
    (check.counters, (mean, mean - 0.3, mean + 0.3, check.RIGHT), "the interval is not"),
    (check.counters, (mean, high, low, check.RIGHT), "lower end"),
    (check.counters, (mean - 0.5, low - 0.5, high - 0.5, check.RIGHT), "The mean is not"),
    (check.counters, (mean, low, high, "three"), "Fewer bits"),
    (check.counters, (mean, low, high, "cannot tell"), "contain 0?"),
)
