"""The exercises of chapter 11 beyond what their declarations say."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch

from exercises import byte_pair_encoding as check

count, replace, learn = check.count.right, check.replace.right, check.learn_ids.right
encode, bits = check.encode_ids.right, check.bits.right


def count_from_call_to_call(words, pairs=Counter()):  # noqa: B006
    for ids, n in words.items():
        for pair in pairwise(ids):
            pairs[pair] += n
    return pairs


def replace_in_place(ids, pair, new):
    for i in range(len(ids) - 2, -1, -1):
        if tuple(ids[i : i + 2]) == pair:
            ids[i : i + 2] = [new]
    return ids


def encode_for_ever(ids, merges):
    known = [pair for pair in pairwise(ids) if pair in merges]
    while known:
        ids = replace(ids, known[0], merges[known[0]])
    return ids


@pytest.mark.parametrize(
    ("exercise", "wrong", "words"),
    [
        (check.count, lambda words: {**count(words), (9, 9): 1}, "should have no entry (9, 9)"),
        (check.count, lambda words: {}, "lacks (2, 2), which should be 2"),
        (check.count, lambda words: {pair: n + 1 for pair, n in count(words).items()},
         "[(2, 2)] should be 2, but is 3"),
        (check.count, count_from_call_to_call, "two different results in two calls"),
        (check.replace, replace_in_place, "changed its input"),
        (check.replace, lambda *given: str(replace(*given)), "2, 9, 9], but is '[9"),
        (check.replace, lambda *given: list(map(float, replace(*given))), "whole numbers"),
        (check.replace, lambda *given: np.array(replace(*given), float), "whole numbers"),
        (check.replace, lambda ids, pair, new: set(ids), "but is {1, 2, 12}"),
        (check.replace, lambda ids, pair, new: replace([i % 256 for i in ids], pair, new),
         "1000"),
        (check.learn_ids, lambda *given: [(1, 2, 3)], "but is [(1, 2, 3)]"),
        (check.learn_ids, lambda *given: learn(*given)[:1][0], "but is (2, 2)"),
        (check.learn_ids, lambda words, n, first: words.clear() or [], "changed its input"),
        (check.encode_ids, encode_for_ever, "does a loop never end?"),
        (check.encode_ids, lambda ids, merges: ids.clear() or [], "changed its input"),
        (check.encode_ids, lambda *given: (encode(*given), 1), "but is ([2, 60, 64, 63, 5], 1)"),
        (check.encode_ids, lambda *given: torch.tensor(encode(*given)) * 1.0, "whole numbers"),
        (check.bits, lambda loss, n, text: 2.0, "should be"),
        (check.bits, lambda loss, n, text: (loss, n), "should have shape ()"),
    ],
)  # fmt: skip
def test_other_mistakes_are_told_by_what_differs(exercise, wrong, words, monkeypatch):
    monkeypatch.setattr("exercises.check.SECONDS", 0.5)
    report = exercise(wrong)
    assert report.outcome == "not yet" and words in report.message, report.message


def replace_in_a_string(ids, pair, new):
    """Characters are ids, too."""
    return [*map(ord, "".join(map(chr, ids)).replace("".join(map(chr, pair)), chr(new)))]


def encode_in_the_order_of_learning(ids, merges):
    """One pass: what a merge makes is used by later ones only."""
    for pair in sorted(merges, key=merges.get):
        ids = replace(ids, pair, merges[pair])
    return tuple(ids)


@pytest.mark.parametrize(
    ("exercise", "right"),
    [
        (check.count, lambda words: dict(reversed(count(words).items()))),
        (check.count, lambda words: {
            tuple(map(np.int64, pair)): torch.tensor(n) for pair, n in count(words).items()}),
        (check.replace, lambda *given: np.array(replace(*given), dtype=int)),
        (check.replace, lambda *given: torch.tensor(replace(*given), dtype=int)),
        (check.replace, lambda *given: [np.int64(i) for i in replace(*given)]),
        (check.replace, replace_in_a_string),
        (check.learn_ids, lambda *given: [list(pair) for pair in learn(*given)]),
        (check.learn_ids, lambda *given: [torch.tensor(pair) for pair in learn(*given)]),
        (check.encode_ids, encode_in_the_order_of_learning),
        (check.bits, lambda loss, n, text: np.float32(loss * n / len(text) * math.log2(math.e))),
        (check.bits, lambda loss, n, text: torch.tensor(bits(loss, n, text))),
    ],
)  # fmt: skip
def test_other_right_answers_are_right(exercise, right):
    assert exercise(right).outcome == "right", exercise(right).message


@pytest.mark.parametrize("exercise", [check.replace, check.learn_ids, check.encode_ids])
def test_a_placeholder_inside_is_not_attempted(exercise):
    assert exercise(lambda *given: [...]).outcome == "not attempted"
