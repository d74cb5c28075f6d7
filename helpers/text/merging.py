"""The two loops of byte-pair encoding: learning merges from words, applying them to one word."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

Pair = tuple[int, int]


def learn_merges(
    words: Sequence[tuple[list[int], int]], n_merges: int, first_id: int
) -> Iterator[Pair]:
    """Yield the most frequent pair of neighbours, merge it everywhere, and so on: up to n_merges.

    words: (ids, how often the word occurs), whose lists of ids are changed; first_id: the id of the
    first merged pair, the next ones count up.

    Nothing is counted twice: a merge changes the counts of its neighbours only, and the words that
    hold a pair are known. A heap gives the most frequent pair; its entries may be out of date, and
    then go back with the count of today.
    """
    counts: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[int]] = defaultdict(set)  # may name words that lost the pair
    for i, (ids, n) in enumerate(words):
        for pair in pairwise(ids):
            counts[pair] += n
            places[pair].add(i)
    heap = [(-n, pair) for pair, n in counts.items()]  # equally frequent: the smaller ids first
    heapq.heapify(heap)
    for new in range(first_id, first_id + n_merges):
        best = _most_frequent(heap, counts)
        if best is None:
            return
        yield best
        risen: set[Pair] = set()
        for i in places.pop(best):
            ids, n = words[i]
            for pair in pairwise(ids):
                counts[pair] -= n
            replace_pair(ids, best, new)
            for pair in pairwise(ids):
                counts[pair] += n
                if new in pair:
                    places[pair].add(i)
                    risen.add(pair)
        del counts[best]
        for pair in risen:
            heapq.heappush(heap, (-counts[pair], pair))


def _most_frequent(heap: list[tuple[int, Pair]], counts: Counter[Pair]) -> Pair | None:
    while heap:
        n, pair = heapq.heappop(heap)
        today = counts[pair]
        if today == -n and today > 0:
            return pair
        if today > 0:
            heapq.heappush(heap, (-today, pair))
    return None


def merge_word(ids: list[int], merges: Mapping[Pair, int]) -> list[int]:
    """Apply merges to the ids of one word, those learnt first first; the list is changed.

    merges: pair -> the id of both together, above 0, which rises in the order of learning.
    """
    while len(ids) > 1:
        found = list(map(merges.get, pairwise(ids)))
        try:
            first = min(filter(None, found))
        except ValueError:  # none of the pairs is one that was learnt
            break
        place = found.index(first)
        ids[place : place + 2] = [first]
    return ids


def replace_pair(ids: list[int], pair: Pair, new: int) -> None:
    """Put `new` for each occurrence of the pair in the list, from left to right, in place."""
    left, right = pair
    i = 0
    while True:
        try:
            i = ids.index(left, i, len(ids) - 1)  # C speed: most places hold something else
        except ValueError:
            return
        if ids[i + 1] == right:
            ids[i : i + 2] = [new]
        i += 1
