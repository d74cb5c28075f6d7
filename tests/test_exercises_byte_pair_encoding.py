"""The exercises of chapter 11: each known mistake gets its diagnosis, other right answers pass."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch

from exercises import byte_pair_encoding as check
from exercises.mistakes11 import longest_match, replaced_overlapping
from exercises.pairs11 import learnt, pair_counts, replaced
from helpers.text.bpe import merge_word


def says(report, fragment):
    assert report.outcome == "not yet" and fragment in report.message, report.message


def counting(one):
    """A counter of pairs made of what one word adds."""

    def count(words):
        pairs = Counter()
        for ids, n in words.items():
            one(pairs, ids, n)
        return pairs

    return count


def once_a_place(pairs, ids, n):
    pairs.update(pairwise(ids))


def once_a_word(pairs, ids, n):
    pairs.update(dict.fromkeys(pairwise(ids), n))


def sorted_pairs(pairs, ids, n):
    for a, b in pairwise(ids):
        pairs[min(a, b), max(a, b)] += n


def in_steps_of_two(pairs, ids, n):
    for i in range(0, len(ids) - 1, 2):
        pairs[ids[i], ids[i + 1]] += n


def overwriting(pairs, ids, n):
    for pair in pairwise(ids):
        pairs[pair] = n


def without_overlaps(pairs, ids, n):
    i = 0
    while i < len(ids) - 1:
        pairs[ids[i], ids[i + 1]] += n
        i += 2 if ids[i : i + 3] == (ids[i],) * 3 else 1


def with_zeros(pairs, ids, n):
    for a in ids:
        for b in ids:
            pairs[a, b] += n * sum((a, b) == pair for pair in pairwise(ids)) / (ids.count(a) or 1)


def as_strings(pairs, ids, n):
    for a, b in pairwise(ids):
        pairs[f"{a} {b}"] += n


def across(words):
    return Counter(pairwise(i for ids, n in words.items() for _ in range(n) for i in ids))


def one_row(words):
    return Counter(pairwise(i for ids in words for i in ids))


COUNTS = [
    (counting(once_a_place), "Each word was counted once"),
    (counting(once_a_word), "Every place counts"),
    (counting(sorted_pairs), "the order counts"),
    (counting(in_steps_of_two), "went on by two"),
    (counting(overwriting), "overwrote"),
    (counting(without_overlaps), "skipped overlapping"),
    (across, "from one word into the next"),
    (one_row, "as one long row"),
    (counting(with_zeros), "no such pair occurs"),
    (counting(as_strings), "the keys should be pairs"),
    (lambda words: list(pair_counts(words).items()), "should be a dictionary"),
    (lambda words: {}, "lacks the pair (1, 2), which occurs 3 times"),
    (lambda words: {pair: n + 1 for pair, n in pair_counts(words).items()}, "should count"),
]


@pytest.mark.parametrize(("wrong", "fragment"), COUNTS)
def test_mistakes_in_counting(wrong, fragment):
    says(check.count(wrong), fragment)


def from_the_right(ids, pair, new):
    return replaced(ids[::-1], (pair[1], pair[0]), new)[::-1]


def first_only(ids, pair, new):
    for i, here in enumerate(pairwise(ids)):
        if here == pair:
            return [*ids[:i], new, *ids[i + 2 :]]
    return list(ids)


def either_way(ids, pair, new):
    return replaced(replaced(ids, pair, new), (pair[1], pair[0]), new)


def loses_the_last(ids, pair, new):
    out, i = [], 0
    while i < len(ids) - 1:
        here = (ids[i], ids[i + 1]) == pair
        out.append(new if here else ids[i])
        i += 2 if here else 1
    return out


def as_text(ids, pair, new):
    """Digits, too, get replaced: the pair 1 2 in 12."""
    text = " ".join(map(str, ids)).replace("{} {}".format(*pair), str(new))
    return [int(number) for number in text.split()]


def again_and_again(ids, pair, new):
    """Replaces in place."""
    for i in range(len(ids) - 2, -1, -1):
        if tuple(ids[i : i + 2]) == pair:
            ids[i : i + 2] = [new]
    return ids


REPLACEMENTS = [
    (replaced_overlapping, "Go on by two"),
    (from_the_right, "from right to left"),
    (first_only, "stopped. Replace each"),
    (either_way, "The order counts"),
    (loses_the_last, "The last id got lost"),
    (as_text, "should be [12, 3, 1, 23]"),
    (again_and_again, "changed its input"),
    (lambda ids, pair, new: list(ids), "Nothing was replaced"),
    (lambda ids, pair, new: [i for i in replaced(ids, pair, 0) if i], "was not put in"),
    (lambda ids, pair, new: str(replaced(ids, pair, new)), "should be a list of ids"),
    (lambda ids, pair, new: [float(i) for i in replaced(ids, pair, new)], "whole numbers"),
    (lambda ids, pair, new: {i for i in ids}, "should be a list of ids, but is a set"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "fragment"), REPLACEMENTS)
def test_mistakes_in_replacing(wrong, fragment):
    says(check.replace(wrong), fragment)


def learner(**parts):
    return lambda words, n, first: learnt(words, n, first, **parts)


def most_common(pairs):
    return Counter(pairs).most_common(1)[0][0]


def largest_id(pairs):
    return max(pairs, key=lambda pair: (pairs[pair], pair))


def rarest(pairs):
    return min(pairs, key=lambda pair: (pairs[pair], pair))


def all_at_once(words, n, first):
    counts = pair_counts(words)
    return sorted(counts, key=lambda pair: (-counts[pair], pair))[:n]


def with_the_ids(words, n, first):
    return {pair: first + i for i, pair in enumerate(learnt(words, n, first))}


LEARNERS = [
    (learner(choose=lambda pairs: max(pairs, key=pairs.get)), "met first"),
    (learner(choose=most_common), "met first"),
    (learner(choose=largest_id), "the larger one"),
    (learner(choose=rarest), "the rarest pair"),
    (learner(count=counting(once_a_place)), "Each word was counted once"),
    (learner(count=counting(without_overlaps)), "three times"),
    (learner(replace=replaced_overlapping), "right half"),
    (learner(replace=first_only), "Only the first occurrence"),
    (learner(step=0), "same id"),
    (all_at_once, "counted once and took"),
    (lambda words, n, first: learnt(words, min(n, 1), first), "after the first merge"),
    (lambda words, n, first: learnt(words, n, 256), "should be"),
    (lambda words, n, first: learnt(words, n + 1, first), "should be"),
    (with_the_ids, "should be a list of pairs, but is a dict"),
    (lambda words, n, first: [(1, 2, 3)], "should hold pairs"),
    (lambda words, n, first: learnt(words, n, first)[0], "list of ids, but is a int"),
]


@pytest.mark.parametrize(("wrong", "fragment"), LEARNERS)
def test_mistakes_in_learning(wrong, fragment):
    says(check.learn_ids(wrong), fragment)


def encoder(choose, replace=replaced):
    def wrong(ids, merges):
        while known := [pair for pair in pairwise(ids) if pair in merges]:
            best = choose(known, merges)
            ids = replace(ids, best, merges[best])
        return list(ids)

    return wrong


def earliest(known, merges):
    return min(known, key=merges.get)


def as_listed(ids, merges):
    for pair, new in merges.items():
        ids = replaced(ids, pair, new)
    return ids


def one_merge(ids, merges):
    known = [pair for pair in pairwise(ids) if pair in merges]
    return replaced(ids, earliest(known, merges), merges[earliest(known, merges)]) if known else ids


ENCODERS = [
    (longest_match, "longest match"),
    (encoder(lambda known, merges: known[0]), "comes first in the word"),
    (encoder(lambda known, merges: known[-1]), "comes last in the word"),
    (encoder(lambda known, merges: max(known, key=merges.get)), "learnt last"),
    (encoder(earliest, replaced_overlapping), "right half"),
    (as_listed, "as the dictionary lists them"),
    (one_merge, "after one merge"),
    (lambda ids, merges: ids, "Nothing was merged"),
    (lambda ids, merges: (merge_word(list(ids), merges), 1), "whole numbers"),
    (lambda ids, merges: ids.clear() or [], "changed its input"),
]


@pytest.mark.parametrize(("wrong", "fragment"), ENCODERS)
def test_mistakes_in_encoding(wrong, fragment):
    says(check.encode_ids(wrong), fragment)


LN2 = math.log(2)
BITS = [
    (lambda loss, n, text: loss * n / len(text), "nats per character"),
    (lambda loss, n, text: loss / LN2, "bits per token"),
    (lambda loss, n, text: loss * LN2 * n / len(text), "multiplied by ln 2"),
    (lambda loss, n, text: loss / LN2 * len(text) / n, "characters per token"),
    (lambda loss, n, text: loss / LN2 * n, "the whole text"),
    (lambda loss, n, text: loss / LN2 * n / len(text.encode()), "per byte"),
    (lambda loss, n, text: loss / LN2 / len(text), "multiply by the tokens"),
    (lambda loss, n, text: math.exp(loss), "perplexity"),
    (lambda loss, n, text: loss / LN2 * (n - 1) / len(text), "n − 1"),
    (lambda loss, n, text: math.log2(loss) * n / len(text), "log2"),
    (lambda loss, n, text: 2.0, "should be"),
    (lambda loss, n, text: (loss, n), "should have shape ()"),
]


@pytest.mark.parametrize(("wrong", "fragment"), BITS)
def test_mistakes_in_bits(wrong, fragment):
    says(check.bits(wrong), fragment)


def in_order_of_learning(ids, merges):
    """One pass through the merges, sorted: what a merge makes is used by later ones only."""
    for pair in sorted(merges, key=merges.get):
        ids = replaced(ids, pair, merges[pair])
    return tuple(ids)


def test_other_right_answers_are_right():
    assert check.count(lambda words: dict(reversed(pair_counts(words).items()))).outcome == "right"
    assert check.replace(lambda *a: np.array(replaced(*a), dtype=int)).outcome == "right"
    assert check.replace(lambda *a: torch.tensor(replaced(*a), dtype=int)).outcome == "right"
    assert check.learn_ids(lambda *a: [list(pair) for pair in learnt(*a)]).outcome == "right"
    assert check.encode_ids(in_order_of_learning).outcome == "right"
    assert check.bits(lambda loss, n, text: loss * n / len(text) * math.log2(math.e)).outcome == (
        "right"
    )


@pytest.mark.parametrize("name", ["count", "replace", "learn_ids", "encode_ids", "bits"])
@pytest.mark.parametrize(
    "garbage", [None, 3, "text", lambda: 1, lambda *a: "x", lambda *a: math.nan, lambda *a: [[1]]]
)
def test_garbage_is_not_yet(name, garbage):
    assert getattr(check, name)(garbage).outcome == "not yet"


@pytest.mark.parametrize("name", ["replace", "learn_ids", "encode_ids"])
def test_a_placeholder_inside_is_not_attempted(name):
    assert getattr(check, name)(lambda *a: [...]).outcome == "not attempted"
