"""The exercises of chapter 13 beyond what their declarations say."""

import math
from itertools import count, product

import numpy as np
import pytest
import torch

from exercises import gptmini as check

windows_of, perplexity, scored = (
    check.windows_of.right, check.perplexity.right, check.scored.right
)  # fmt: skip
copied_share, batch_of = check.copied_share.right, check.batch_of.right


def by_product(root, sign=1):
    """The perplexity as a root of the product of the tokens' probabilities."""
    return lambda losses, counts: root(
        math.prod(math.exp(sign * a) ** n for a, n in zip(losses, counts, strict=True)), sum(counts)
    )


def on_torchs_own_generator(step, n, B, seed):
    torch.manual_seed(seed + step // (n // B))
    place = step % (n // B)
    return torch.randperm(n)[place * B : (place + 1) * B].tolist()


def one_after_the_other(calls=count()):  # noqa: B008
    """Right as long as the steps are asked for in turn."""
    return lambda step, n, B, seed: batch_of(next(calls), n, B, seed)


ADD_FIRST = "Add the losses first"
EMPTY_TOO = "the empty one, too"


@pytest.mark.parametrize(
    ("exercise", "wrong", "words"),
    [
        (check.windows_of, lambda *given: [], "should be [([1, 2, 3], [2, 3, 4]), "),
        (check.windows_of, lambda *given: [[[1], [2]]], "but is [[[1], [2]]]"),
        (check.windows_of, lambda *given: 3, "but is 3"),
        (check.windows_of, lambda ids, T, stride: windows_of([*map(ids.index, ids)], T, stride),
         "should be"),
        (check.perplexity, by_product(lambda p, n: p ** (1 / n)), ADD_FIRST),
        (check.perplexity, by_product(lambda p, n: torch.tensor(p).log().div(n).exp()), ADD_FIRST),
        (check.perplexity, by_product(lambda p, n: p ** (-1 / n), -1), ADD_FIRST),
        (check.perplexity, by_product(lambda p, n: math.exp(-math.log(p) / n), -1), ADD_FIRST),
        (check.perplexity, by_product(lambda p, n: 1 / p ** (1 / n), -1), ADD_FIRST),
        (check.perplexity, by_product(lambda p, n: np.float64(p) ** (1 / n)), ADD_FIRST),
        (check.perplexity, lambda *given: min(99, perplexity(*given)), "should be 148.413"),
        (check.perplexity, lambda *given: round(perplexity(*given), 2), "should be"),
        (check.perplexity, lambda *given: [1.0, 2.0], "should have shape ()"),
        (check.scored, lambda *given: [[0, 1, 3]], "but is [[0, 1, 3]]"),
        (check.scored, lambda *given: 0, "but is 0"),
        (check.copied_share, lambda some, text, n: len(some) * copied_share(some, text, n)
         / len(some), f"division by zero. A list shorter than n has the share 0.0, {EMPTY_TOO}"),
        (check.copied_share, lambda some, text, n: copied_share(some, text, n) if some
         else math.nan, EMPTY_TOO),
        (check.copied_share, lambda some, text, n: copied_share(some, text, min(n, len(some))),
         "shorter than n has"),
        (check.copied_share, lambda *given: 1, "should be 0.750, but is 1"),
        (check.copied_share, lambda *given: 0, "No run is found"),
        (check.copied_share, lambda some, text, n: some, "should be numbers"),
        (check.batch_of, lambda step, n, B, seed: torch.randperm(n)[:B], "two different results"),
        (check.batch_of, one_after_the_other(), "two different results"),
        (check.batch_of, on_torchs_own_generator, "own generator has changed"),
        (check.batch_of, lambda step, n, B, seed: [0] * B, "should be"),
        (check.batch_of, lambda *given: 0, "but is 0"),
    ],
)  # fmt: skip
def test_other_mistakes_are_told_by_what_differs(exercise, wrong, words):
    report = exercise(wrong)
    assert report.outcome == "not yet" and words in report.message, report.message


def by_word(some, text, n):
    """Each word for itself: does one of the runs around it stand in the text?"""
    shares = torch.zeros(max(1, len(some)))
    for i, j in product(range(len(some) - n + 1), range(len(text) - n + 1)):
        if all(a == b for a, b in zip(some[i : i + n], text[j : j + n], strict=True)):
            shares[i : i + n] = 1
    return shares.mean()


def by_epochs(step, n, B, seed):
    batches = []
    for epoch in range(step // (n // B) + 1):
        generator = torch.Generator().manual_seed(seed + epoch)
        batches += list(torch.randperm(n, generator=generator).split(B))[: n // B]
    return batches[step]


@pytest.mark.parametrize(
    ("exercise", "right"),
    [
        (check.windows_of, lambda ids, T, stride: [
            [torch.tensor(ids[i : i + T]), np.array(ids[i + 1 : i + T + 1])]
            for i in range(0, len(ids), stride) if i + T < len(ids)]),
        (check.windows_of, lambda *given: np.array(windows_of(*given))),
        (check.perplexity, lambda losses, counts: (
            torch.tensor(losses) @ torch.tensor(counts, dtype=torch.float) / sum(counts)).exp()),
        (check.perplexity, lambda losses, counts: np.exp(np.average(losses, weights=counts))),
        (check.perplexity, lambda losses, counts: math.prod(
            math.exp(a) ** (n / sum(counts)) for a, n in zip(losses, counts, strict=True))),
        (check.scored, lambda *given: tuple(scored(*given))),
        (check.scored, lambda *given: torch.tensor(scored(*given))),
        (check.scored, lambda *given: [np.array(part) for part in scored(*given)]),
        (check.copied_share, by_word),
        (check.copied_share, lambda *given: np.float32(copied_share(*given))),
        (check.batch_of, lambda *given: torch.tensor(batch_of(*given))),
        (check.batch_of, lambda *given: tuple(batch_of(*given))),
        (check.batch_of, lambda *given: [np.int64(i) for i in batch_of(*given)]),
        (check.batch_of, by_epochs),
    ],
)  # fmt: skip
def test_other_right_answers_are_right(exercise, right):
    assert exercise(right).outcome == "right", exercise(right).message
