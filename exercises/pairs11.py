"""The right answers to the exercises of chapter 11, with parts that a mistake can exchange."""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise

from helpers.text.bpe import Pair, replace_pair

Ids = list[int]
Words = dict[tuple[int, ...], int]
Replace = Callable[[Ids, Pair, int], Ids]


def pair_counts(words: Words) -> dict[Pair, int]:
    """How often each pair of neighbours occurs."""
    pairs: Counter[Pair] = Counter()
    for ids, n in words.items():
        for pair in pairwise(ids):
            pairs[pair] += n
    return dict(pairs)


def replaced(ids: Ids, pair: Pair, new: int) -> Ids:
    """The pair replaced from left to right, without overlaps."""
    out = list(ids)
    replace_pair(out, pair, new)
    return out


def smaller_pair(pairs: Mapping[Pair, int]) -> Pair:
    """The most frequent pair, of equals the smaller."""
    return min(pairs, key=lambda pair: (-pairs[pair], pair))


def learnt(
    words: Words,
    n_merges: int,
    first_id: int,
    *,
    choose: Callable[[Mapping[Pair, int]], Pair] = smaller_pair,
    count: Callable[[Words], Mapping[Pair, int]] = pair_counts,
    replace: Replace = replaced,
    step: int = 1,
) -> list[Pair]:
    """The merges in order; the parts can be exchanged for mistaken ones."""
    merges: list[Pair] = []
    for k in range(n_merges):
        pairs = count(words)
        if not pairs:
            break
        best = choose(pairs)
        words = {
            tuple(replace(list(ids), best, first_id + step * k)): n for ids, n in words.items()
        }
        merges.append(best)
    return merges
