"""The exercises on scaling beyond what their declarations say: other answers, right and wrong."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises import check as frame
from exercises import scaling as check
from exercises.scaling import mean_entropy
from tests.answers import accepted, refused


def from_the_weights(x, query, key):
    q, k = (F.linear(x, layer.weight, layer.bias) for layer in (query, key))
    return torch.einsum("btd,bsd->bts", q, k).div(len(query.weight) ** 0.5).softmax(-1)


def bisect(measure=mean_entropy, *, low=1e-3, high=1e3, steps=60, middle=None, swap=False):
    """A search with the mean entropy or something else; middle: of low and high."""

    def answer(scores, target):
        a, b = low, high
        for _ in range(steps):
            m = middle(a, b) if middle else math.sqrt(a * b)
            a, b = (m, b) if (measure(scores, m) < target) != swap else (a, m)
        return m

    return answer


def half(a, b):
    return (a + b) / 2


def until_near(by):
    def answer(scores, target):
        a, b, reached = 1e-4, 1e4, math.inf
        while abs(reached - target) > by:
            m = math.sqrt(a * b)
            reached = float(mean_entropy(scores, m))
            a, b = (m, b) if reached < target else (a, m)
        return m

    return answer


def run_32(**other):
    return {"factor": 32**-0.25, "perplexity": 1.9, "suffices": [4], **other}


test_other_ways_are_right_too = accepted(
    (check.head_weights, from_the_weights),
    (check.right_divisor, lambda d, a, b: torch.tensor(d).sqrt() * a * b),
    (check.right_divisor, lambda d, a, b: np.float32(a) * np.sqrt(d) * b),
    (check.start_or_steps, {"factor": 0.42, "perplexity": 1.6, "suffices": (4,)}),
    (check.start_or_steps, run_32(factor=-0.4204, perplexity=torch.tensor(2), suffices=4)),
    (check.find_divisor, bisect()),
    (check.find_divisor, bisect(low=1e-9, high=1e6, steps=100, middle=half)),
    (check.find_divisor, lambda s, t: torch.tensor([bisect()(s.double(), t)])),
    (check.find_divisor, until_near(1e-4)),
)


def cut_weights(x, query, key):
    q, k = (F.linear(x, layer.weight.data, layer.bias.data) for layer in (query, key))
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)


test_other_mistakes_are_told_by_what_differs = refused(
    (check.head_weights, lambda x, q, k: (q(x) @ k(x)).softmax(-1), "Transpose the keys first"),
    (check.head_weights, cut_weights, "gradient reaches one of its tensors"),
    (check.start_or_steps, run_32(factor=32**-0.5), "the scores shrink by 32"),
    (check.start_or_steps, run_32(factor=0.6), "by 0.36, because it enters twice"),
    (check.start_or_steps, run_32(perplexity=2.52), "looks like the loss"),
    (check.start_or_steps, run_32(perplexity=13.5), "as its third result"),
    (check.start_or_steps, run_32(perplexity=3.4), "too large for the higher learning rate"),
    (check.start_or_steps, run_32(perplexity=6.1), "of a head that divides"),
    (check.start_or_steps, run_32(perplexity=1.1), "That is too small"),
    (check.start_or_steps, run_32(suffices=[4, 32]), "more than 0.1 apart"),
    (check.start_or_steps, run_32(suffices=[]), "its own factor"),
    (check.find_divisor, bisect(lambda s, d: -mean_entropy(s, d)), "runs away"),
    (check.find_divisor, bisect(swap=True), "runs away"),
    (check.find_divisor, bisect(low=1, high=5000), "begin with low = 0.001"),
    (check.find_divisor, bisect(steps=15, middle=half), "take more steps"),
    (check.find_divisor, lambda s, t: bisect()(s, t) * 1.05, "too flat: divide by less"),
    (check.find_divisor, lambda s, t: s.std(), "use `target`"),
    (check.find_divisor, lambda s, t: -1.0, "positive finite number"),
)


@pytest.mark.parametrize(("says", "measure"), check.OTHER_TARGETS.items())
def test_a_search_for_something_else_is_named(says, measure):
    small, large = (float(measure(torch.eye(4, 6), d)) for d in (0.1, 10.0))
    report = check.find_divisor(bisect(measure, low=1e-6, high=1e6, swap=small > large))
    assert (report.outcome, report.message) == ("not yet", says)
    assert len(check.find_divisor.failed_input) == 2


def test_a_search_that_wants_to_be_too_exact_is_ended(monkeypatch):
    monkeypatch.setattr(frame, "SECONDS", 0.3)
    report = check.find_divisor(until_near(1e-12))
    assert "Is there an infinite loop?" in report.message
    assert "never come within 1e-12" in report.message
