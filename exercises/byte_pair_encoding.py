"""The exercises of chapter 11: byte-pair encoding."""

import math
from collections import Counter
from functools import partial
from itertools import combinations, pairwise, product

from torch import Tensor

from exercises.check import exercise, expect, fresh, plain


def has_floats(value):
    value = plain(value)
    if isinstance(value, (list, tuple)):
        return any(map(has_floats, value))
    return value.is_floating_point() if isinstance(value, Tensor) else isinstance(value, float)


def expect_whole_numbers(declared):
    """Ids are keys and places in lists, where 9.0 will not do for 9."""

    @declared.then
    def whole(answer):
        got = answer(*fresh(declared.inputs[0]))
        expect(not has_floats(got), "Ids are whole numbers (int), but yours are floats.")


# --- 11.1 -------------------------------------------------------------------------------------


@exercise(
    inputs=[
        ({(2, 2): 2, (1, 1, 1, 1, 3, 1): 4},),  # here all mistakes differ
        ({(1, 2, 1): 3, (2, 1): 4},),
        ({(7, 7, 7, 7): 2, (7, 8): 5, (8, 7, 7): 1},),
        ({(3, 4): 2, (4, 3): 3, (3,): 9, (): 1, (5, 3, 4, 3, 4): 1},),
        ({(300, 0, 301, 0): 2, (0, 301): 1, (301, 300, 300, 301, 0): 5},),
    ],
    praise="every pair, as often as its words occur.",
    tolerance=0,
)
def count(words):
    """count(words): how often each pair of neighbouring ids occurs."""
    pairs = Counter()
    for ids, n in words.items():
        for pair in pairwise(ids):
            pairs[pair] += n
    return pairs


def counting(pairs_of):
    """A count of other pairs: pairs_of makes them of one word."""
    return lambda words: Counter(
        pair for ids, n in words.items() for _ in range(n) for pair in pairs_of(ids)
    )


def without_overlaps(ids):
    i = 0
    while i < len(ids) - 1:
        yield ids[i], ids[i + 1]
        i += 2 if ids[i : i + 3] == (ids[i],) * 3 else 1


def count_once(words):
    return Counter(pair for ids in words for pair in pairwise(ids))


def count_without_a_beginning(words):
    pairs = {}
    for ids, n in words.items():
        for pair in pairwise(ids):
            pairs[pair] += n


count.mistakes = {
    "Each word was counted once. A word that occurs n times adds n for each of its pairs.":
        count_once,
    "The words were counted once, and as one long row: count inside each word, and add n.":
        lambda words: Counter(pairwise(i for ids in words for i in ids)),
    "You also counted pairs that reach from one word into the next. Count inside each word.":
        lambda words: Counter(pairwise(i for ids, n in words.items() for i in ids * n)),
    "A pair that stands twice in a word was counted once. Every place counts.":
        counting(lambda ids: set(pairwise(ids))),
    "You skipped overlapping pairs. In (7, 7, 7, 7) the pair (7, 7) stands at three places, "
    "and all count: that is how everybody counts.": counting(without_overlaps),
    "(1, 2) and (2, 1) are two different pairs: the order counts.":
        counting(lambda ids: map(tuple, map(sorted, pairwise(ids)))),
    "You went on by two ids. Pairs begin at every id: (1, 2, 1) holds (1, 2) and (2, 1).":
        counting(lambda ids: zip(ids[::2], ids[1::2], strict=False)),
    "A later word overwrote the count of an earlier one. Add to it: `+=`.":
        lambda words: {pair: n for ids, n in words.items() for pair in pairwise(ids)},
    "These are pairs at any distance. Only neighbours count.":
        counting(lambda ids: combinations(ids, 2)),
    "Single ids are counted, not pairs of neighbours.": counting(lambda ids: ids),
    "The last pair of each word is missing: a word of n ids has n − 1 pairs.":
        counting(lambda ids: pairwise(ids[:-1])),
    "The pair (last, first) is counted, too: at i = 0, `ids[i - 1]` is the last id.":
        counting(lambda ids: pairwise([*ids[-1:], *ids])),
    "Only the first word is counted: does `return` stand inside the loop?":
        lambda words: count.right(dict(list(words.items())[:1])),
    "Pairs that never occur are in it, with the count 0. Leave them out.": (
        lambda words: {
            pair: count.right(words)[pair]
            for pair in product({i for ids in words for i in ids}, repeat=2)
        },
        lambda words: {
            pair: count.right(words)[pair] for ids in words for pair in product(ids, repeat=2)
        },
    ),
    "The keys should be pairs such as (1, 2), tuples of two ids.": (
        counting(lambda ids: [f"{a} {b}" for a, b in pairwise(ids)]),
        counting(lambda ids: [f"{a}{b}" for a, b in pairwise(ids)]),
        counting(lambda ids: map(frozenset, pairwise(ids))),
    ),
    "Return the dictionary itself, not a list of its entries.": (
        lambda words: list(count.right(words).items()),
        lambda words: count.right(words).most_common(),
    ),
    "IndexError: the last id has no neighbour, so `ids[i + 1]` lies behind the end of the word.":
        counting(lambda ids: [(ids[i], ids[i + 1]) for i in range(len(ids))]),
    "KeyError: `+=` needs something to add to. A `Counter()` begins every count at 0.":
        count_without_a_beginning,
    "A list can be no key of a dictionary. Make the pair a tuple: (a, b).":
        counting(lambda ids: [list(pair) for pair in pairwise(ids)]),
}  # fmt: skip


# --- 11.2 -------------------------------------------------------------------------------------


@exercise(
    inputs=[
        ([1, 1, 1, 12, 2, 1, 1, 1, 1], (1, 1), 9),
        ([1, 2, 3, 1, 2], (1, 2), 9),
        ([4, 4, 4, 8, 4, 4], (4, 4), 9),
        ([5, 5, 5, 5, 5], (5, 5), 6),
        ([1, 2, 1, 3, 2, 1], (1, 2), 7),
        ([12, 3, 1, 23], (1, 2), 8),
        ([3, 1, 2, 4, 4, 1, 2, 2], (1, 2), 10),
        # Ranges make new objects: above 256, equal ids are not one and the same (`is`).
        ([*range(600, 604), *range(600, 603), 0], tuple(range(601, 603)), 1000),
        ([0, 1, 0, 0, 0, 1], (0, 0), 256),
        ([6, 1], (1, 6), 8),
        ([2], (2, 2), 5),
        ([], (1, 2), 5),
    ],
    praise="from left to right, and nothing replaced twice.",
    tolerance=0,
)
def replace(ids, pair, new):
    """replace(ids, pair, new): each occurrence of the pair becomes the id `new`."""
    out = []
    for i in ids:
        out.append(i)
        if out[-2:] == list(pair):
            out[-2:] = [new]
    return out


expect_whole_numbers(replace)


def replace_with(put):
    """Puts other things in the place of the pair than `new` alone."""
    return lambda ids, pair, new: [
        x for i in replace.right(ids, pair, None) for x in (put(pair, new) if i is None else [i])
    ]


def replace_overlapping(ids, pair, new):
    return [new if here == pair else here[0] for here in pairwise([*ids, None])]


def replace_from_the_right(ids, pair, new):
    return replace.right(ids[::-1], pair[::-1], new)[::-1]


def replace_first(ids, pair, new):
    for i, here in enumerate(pairwise(ids)):
        if here == pair:
            return [*ids[:i], new, *ids[i + 2 :]]
    return list(ids)


def replace_either_way(ids, pair, new):
    out = []
    for i in ids:
        out.append(i)
        if out[-2:] in (list(pair), list(pair[::-1])):
            out[-2:] = [new]
    return out


def replace_walking(ids, pair, new, stop=1, rest=1, step=1, equal=lambda a, b: a == b):
    """By an index that ends `stop` before the end; the ids from there on are lost without rest."""
    out, i = [], 0
    while i < len(ids) - stop:
        here = i + 1 < len(ids) and all(map(equal, ids[i : i + 2], pair))
        out += [new] if here else ids[i : i + step]
        i += 2 if here else step
    return out + rest * ids[i:]


def replace_behind_the_end(ids, pair, new, lazily=False, kind=list):
    """Asks for `ids[i + 1]` at the last id, too; lazily: only if `ids[i]` fits."""
    ids, out, i = kind(ids), [], 0
    while i < len(ids):
        left, right = pair
        fits = ids[i] == left and ids[i + 1] == right
        here = fits if lazily else (ids[i], ids[i + 1]) == pair
        out.append(new if here else ids[i])
        i += 2 if here else 1
    return out


def replace_in_text(ids, pair, new):
    text = " ".join(map(str, ids)).replace("{} {}".format(*pair), str(new))
    return [int(number) for number in text.split()]


BEHIND = "IndexError: the last id has no neighbour, `ids[i + 1]` lies behind the end of the list."
replace.mistakes = {
    "After a match you went on by one id, so its right half was used again. Go on by two.":
        replace_overlapping,
    "After a match you went on by one id, so its right half was used again: go on by two. And the "
    "last id got lost.": lambda ids, pair, new: replace_overlapping(ids, pair, new)[:-1],
    "You went from right to left: then [5, 5, 5] becomes [5, 9], not [9, 5].":
        replace_from_the_right,
    "You replaced the first occurrence and stopped. Replace each.": replace_first,
    "You replaced (2, 1), too, where the pair is (1, 2). The order counts.": (
        replace_either_way,
        lambda ids, pair, new: replace.right(replace.right(ids, pair, new), pair[::-1], new),
    ),
    "You replaced (2, 1), where the pair is (1, 2). The order counts.":
        lambda ids, pair, new: replace.right(ids, pair[::-1], new),
    "The last id got lost: it has no neighbour to the right, and must be kept all the same.":
        partial(replace_walking, rest=0),
    "The last id comes twice where it is part of a pair: it is used up then.":
        lambda ids, pair, new: replace_walking(ids, pair, new, rest=0) + ids[-1:],
    "A pair at the very end stays: the last pair begins at len(ids) − 2.":
        partial(replace_walking, stop=2),
    "You always went on by two, so pairs that begin at an odd place stay. Without a match go on "
    "by one.": partial(replace_walking, step=2, stop=0),
    "You went on by two even without a match, and lost the ids between.": (
        lambda ids, pair, new: [
            new if tuple(ids[i : i + 2]) == pair else ids[i] for i in range(0, len(ids), 2)
        ],
        lambda ids, pair, new: [
            new if tuple(ids[i : i + 2]) == pair else ids[i] for i in range(0, len(ids) - 1, 2)
        ],
    ),
    "Each id of the pair is replaced wherever it stands. Only both together, as neighbours.":
        lambda ids, pair, new: [new if i in pair else i for i in ids],
    "Nothing was replaced. Is a list compared with a tuple? `[1, 2] == (1, 2)` is False: compare "
    "with `list(pair)`.": lambda ids, pair, new: ids,
    "The pair is still there: `new` comes in its place, not behind it.":
        replace_with(lambda pair, new: [*pair, new]),
    "The left half of the pair is still there: `new` stands for both.":
        replace_with(lambda pair, new: [pair[0], new]),
    "The right half of the pair is still there: `new` stands for both.":
        replace_with(lambda pair, new: [new, pair[1]]),
    "`new` comes twice for each pair: two ids become one.":
        replace_with(lambda pair, new: [new, new]),
    "The pair was taken out, but `new` was not put in.": replace_with(lambda pair, new: []),
    "You searched in text, where 12 3 holds 2 3. Compare whole ids.": replace_in_text,
    "`is` asks whether two numbers are the same object, which holds for small ones alone. Use ==.":
        partial(replace_walking, equal=lambda a, b: a is b),
    "`bytes` hold numbers up to 255, but ids go far beyond: work with the list.":
        lambda ids, pair, new: list(bytes(ids).replace(bytes(pair), bytes([new]))),
    BEHIND: (replace_behind_the_end, partial(replace_behind_the_end, lazily=True)),
}  # fmt: skip


# --- 11.3 -------------------------------------------------------------------------------------


def smaller_of_equals(pairs):
    """The most frequent pair, of equals the smaller."""
    return min(pairs, key=lambda pair: (-pairs[pair], pair))


@exercise(
    inputs=[
        ({(3, 3, 2, 4, 2, 4): 3, (2, 2, 2, 3): 4, (2, 4): 1}, 5, 300),  # most mistakes differ here
        ({(1, 2, 3): 2, (1, 2): 1}, 2, 10),
        ({(1, 2, 3): 1, (4, 2, 3): 4, (1, 2): 3}, 4, 20),
        ({(1, 2, 5, 1, 2): 2, (3, 4): 3, (6, 6, 6): 2}, 4, 80),
        ({(9, 8): 2, (5, 7): 2, (5, 6): 2}, 2, 30),
        ({(1, 9): 2, (2, 0): 2}, 2, 30),
        ({(7, 7, 7, 7): 2, (1, 2): 5}, 2, 70),
        ({(3, 3, 3, 3): 2, (3, 3, 4): 3, (4, 3, 3, 3): 1}, 3, 50),
        ({(3, 1, 2, 1, 2, 3, 1): 2, (2, 1, 2): 2, (3, 1): 1, (5, 1, 5): 1}, 5, 300),
        ({(6, 5, 5, 5): 3, (5, 5, 5): 1}, 3, 400),
        ({(1, 2): 3, (2, 5, 2): 1}, 9, 256),
        ({(1,): 4}, 3, 256),
        ({(1, 2, 3): 2}, 0, 256),
    ],
    praise="the merges that `tokenizers` would learn, ties and all.",
    tolerance=0,
)
def learn_ids(
    words, n_merges, first_id, choose=smaller_of_equals, count=count.right, replace=replace.right
):
    """learn_ids(words, n_merges, first_id): the pairs that are merged, in order."""
    merges = []
    for new in range(first_id, first_id + n_merges):
        pairs = count(words)
        if not pairs:
            break
        best = choose(pairs)
        words = {tuple(replace(list(ids), best, new)): n for ids, n in words.items()}
        merges.append(best)
    return merges


expect_whole_numbers(learn_ids)
learn = learn_ids.right


def learn_by(**parts):
    """With a mistake in one part."""
    return partial(learn, **parts)


def learn_without_an_end(choose):
    """What raises `choose` where no pair is left."""
    return lambda words, n, first: (
        found if len(found := learn(words, n, first)) == n else choose({})
    )


learn_ids.mistakes = {
    "You counted once and took the most frequent pairs. Merge one, then count anew: a merge "
    "makes new pairs and takes others away.": (
        lambda words, n, first: sorted(
            pairs := count.right(words), key=lambda pair: (-pairs[pair], pair)
        )[:n],
        lambda words, n, first: [pair for pair, _ in count.right(words).most_common(n)],
    ),
    "Of equally frequent pairs you took the one with the smaller sum. Take the smaller pair, as "
    "Python compares tuples: (1, 9) before (2, 0).":
        learn_by(choose=lambda pairs: min(pairs, key=lambda pair: (-pairs[pair], sum(pair)))),
    "Of equally frequent pairs you took the one that was met first. Take the smaller one, or "
    "the order of the words decides.": learn_by(choose=lambda pairs: max(pairs, key=pairs.get)),
    "Of equally frequent pairs you took the larger one. Take the smaller one: with `max` the "
    "tie goes the wrong way, use `min` with the count made negative.":
        learn_by(choose=lambda pairs: max(pairs, key=lambda pair: (pairs[pair], pair))),
    "You took the rarest pair. The most frequent one goes first.": (
        learn_by(choose=lambda pairs: min(pairs, key=lambda pair: (pairs[pair], pair))),
        learn_by(choose=lambda pairs: min(pairs, key=pairs.get)),
    ),
    "You took the smallest pair, however frequent it is. The most frequent goes first.":
        learn_by(choose=min),
    "Each word was counted once. A word that occurs n times adds n for each of its pairs.":
        learn_by(count=count_once),
    "After the first merge the words have lost their counts: keep n beside the new ids.":
        lambda words, n, first: (head := learn(words, min(n, 1), first)) and head + learn(
            {tuple(replace.right(ids, head[0], first)): 1 for ids in words}, n - 1, first + 1),
    "A pair that stands twice in a word was counted once. Every place counts.":
        learn_by(count=counting(lambda ids: set(pairwise(ids)))),
    "Overlapping pairs should all be counted: (3, 3, 3, 3) holds (3, 3) three times.":
        learn_by(count=counting(without_overlaps)),
    "In replacing, the right half of a match was used again (see exercise 11.2).":
        learn_by(replace=replace_overlapping),
    "In replacing, the last id of a word got lost (see exercise 11.2).":
        learn_by(replace=partial(replace_walking, rest=0)),
    "Only the first occurrence in a word was replaced.": learn_by(replace=replace_first),
    "The same pair is merged again and again: it was not replaced in the words. Are the new words "
    "kept? Is a list compared with a tuple (`[1, 2] == (1, 2)` is False)?":
        learn_by(replace=lambda ids, pair, new: ids),
    "Every merge got the same id. The ids count up from first_id.":
        lambda words, n, first: learn(
            words, n, first, replace=lambda ids, pair, _: replace.right(ids, pair, first)),
    "The first new id is first_id itself, not first_id + 1.":
        lambda words, n, first: learn(words, n, first + 1),
    "Your new ids count up from 256. They count up from first_id.":
        lambda words, n, first: learn(words, n, 256),
    "You stopped after the first merge.": lambda words, n, first: learn(words, min(n, 1), first),
    "One merge is missing: n_merges of them, please.":
        lambda words, n, first: learn(words, max(n - 1, 0), first),
    "There is one merge too many: n_merges of them, please.":
        lambda words, n, first: learn(words, n + 1, first),
    "You stopped when no pair occurred twice any more. Stop when no pair is left.":
        lambda words, n, first: learn(words, n, first, count=lambda words: (
            pairs if max((pairs := count.right(words)).values(), default=0) > 1 else {})),
    "Return the pairs alone, as a list in order: (1, 2), then (10, 3).": (
        lambda words, n, first: {pair: first + i for i, pair in enumerate(learn(words, n, first))},
        lambda words, n, first: [
            (pair, first + i) for i, pair in enumerate(learn(words, n, first))],
    ),
    "No pair is left at the end, and there is no best one of none: stop then, `if not pairs: "
    "break`.": (
        learn_without_an_end(min),
        learn_without_an_end(max),
        learn_without_an_end(lambda pairs: sorted(pairs)[0]),
    ),
    BEHIND: (
        learn_by(count=counting(lambda ids: [(ids[i], ids[i + 1]) for i in range(len(ids))])),
        *(learn_by(replace=partial(replace_behind_the_end, lazily=lazily, kind=kind))
          for lazily in (False, True) for kind in (list, tuple)),
    ),
}  # fmt: skip


# --- 11.4 -------------------------------------------------------------------------------------


@exercise(
    inputs=[
        # In the first two most mistakes differ.
        ([2, 5, 5, 3, 5, 5, 1, 3, 5],
         {(5, 3): 62, (5, 63): 66, (1, 3): 63, (3, 60): 64, (5, 5): 60, (5, 1): 65}),
        ([1, 1, 3, 2, 4, 2, 1, 2, 2],
         {(2, 2): 62, (60, 2): 66, (62, 5): 67, (2, 67): 68, (1, 2): 63, (1, 3): 60}),
        ([1, 2, 3], {(2, 3): 10, (1, 2): 11, (11, 3): 12}),
        ([1, 2, 3], {(1, 2): 10, (2, 3): 11, (10, 3): 12}),
        ([2, 2, 2, 1, 2, 2, 2], {(2, 2): 30, (30, 2): 33, (2, 1): 31}),
        ([4, 4, 4, 4, 4], {(4, 4): 20, (20, 4): 21}),
        ([1, 2, 1, 2, 3, 1], {(2, 1): 30, (1, 30): 31, (2, 3): 32, (31, 32): 33}),
        ([5, 6, 7, 8], {(7, 8): 41, (6, 41): 42, (5, 6): 40}),
        ([3, 2, 1, 3, 2, 3, 2, 2, 1], {(1, 3): 53, (2, 1): 51, (3, 2): 52, (3, 51): 54}),
        ([1, 5, 3, 4, 3, 4], {(3, 4): 63, (1, 5): 62, (5, 3): 61, (4, 3): 60, (3, 60): 64}),
        ([*range(600, 604), *range(601, 603)], {(602, 603): 700, (601, 602): 702, (600, 601): 701}),
        ([0, 0, 1], {(0, 1): 256, (0, 256): 257}),
        ([1, 2], {(2, 1): 9}),
        ([3], {(3, 3): 9}),
        ([], {(3, 3): 9}),
        ([1, 2], {}),
    ],
    praise="what was learnt first goes first, wherever it stands.",
    tolerance=0,
)  # fmt: skip
def encode_ids(ids, merges, choose=None, replace=replace.right):
    """encode_ids(ids, merges): the ids of one word after all merges, in the order of learning."""
    while known := [pair for pair in pairwise(ids) if pair in merges]:
        first = choose(known, merges) if choose else min(known, key=merges.get)
        ids = replace(ids, first, merges[first])
    return list(ids)


expect_whole_numbers(encode_ids)
encode = encode_ids.right


def encode_by(choose=None, **parts):
    """With a mistake in one part."""
    return partial(encode, choose=choose, **parts)


def encode_as_listed(ids, merges, order=list, again=True):
    """Through the merges in this order, again and again until none is known, or once."""
    before = None
    while ids != before:
        before = ids
        for pair in order(merges):
            ids = replace.right(ids, pair, merges[pair])
        if not again:
            break
    return ids


def encode_one_merge(ids, merges):
    known = [pair for pair in pairwise(ids) if pair in merges]
    first = min(known, key=merges.get, default=())
    return replace.right(ids, first, merges.get(first))


def encode_what_was_known(ids, merges):
    known = {pair for pair in pairwise(ids) if pair in merges}
    for pair in sorted(known, key=merges.get):
        ids = replace.right(ids, pair, merges[pair])
    return ids


def encode_in_one_walk(ids, merges):
    out = []
    for i in ids:
        pair = (*out[-1:], i)
        out[-1 if pair in merges else len(out) :] = [merges.get(pair, i)]
    return out


def encode_by_longest_match(ids, merges):
    parts = {}
    for (a, b), new in sorted(merges.items(), key=lambda item: item[1]):
        parts[new] = parts.get(a, (a,)) + parts.get(b, (b,))
    pieces = {piece: new for new, piece in parts.items()}
    out, i = [], 0
    while i < len(ids):
        ends = [j for j in range(len(ids), i + 1, -1) if tuple(ids[i:j]) in pieces]
        out.append(pieces[tuple(ids[i : ends[0]])] if ends else ids[i])
        i = ends[0] if ends else i + 1
    return out


def encode_asking_for_all(ids, merges, rank):
    while len(ids) > 1:
        first = min(pairwise(ids), key=partial(rank, merges))
        ids = replace.right(ids, first, merges[first])
    return ids


encode_ids.mistakes = {
    "That is the longest match. BPE does not ask for the longest piece: the merge that was "
    "learnt first goes first.": encode_by_longest_match,
    "You merged the pair that comes first in the word. The one that was learnt first (with "
    "the smallest new id) goes first, wherever it stands.": (
        encode_by(lambda known, merges: known[0]),
        encode_by(lambda known, merges: known[0], replace=replace_first),
    ),
    "You walked through the word once, from left to right, and merged what is known. The merge "
    "that was learnt first (with the smallest new id) goes first, wherever it stands.":
        encode_in_one_walk,
    "You merged the pair that comes last in the word. The one that was learnt first goes "
    "first.": encode_by(lambda known, merges: known[-1]),
    "You took the merge that was learnt last. The one with the smallest new id goes first.": (
        encode_by(lambda known, merges: max(known, key=merges.get)),
        partial(encode_as_listed, order=lambda merges: sorted(merges, key=merges.get)[::-1]),
        partial(encode_as_listed, again=False,
                order=lambda merges: sorted(merges, key=merges.get)[::-1]),
    ),
    "You took the smallest pair: `min(known)` compares the pairs themselves. Compare their new "
    "ids: `key=merges.get`.": encode_by(lambda known, merges: min(known)),
    "You took the largest pair: `max(known)` compares the pairs themselves. The one with the "
    "smallest new id goes first.": encode_by(lambda known, merges: max(known)),
    "You took the pair that is most frequent in the word. Counts belong to learning: here the one "
    "with the smallest new id goes first.":
        encode_by(lambda known, merges: max(known, key=known.count)),
    "You stopped after one merge. A merge makes new pairs: look again until none is known.":
        encode_one_merge,
    "You looked for known pairs only once. A merge makes new pairs: look again after each.":
        encode_what_was_known,
    "You went through the merges as the dictionary lists them. The new ids tell the order in "
    "which they were learnt.": (encode_as_listed, partial(encode_as_listed, again=False)),
    "You went through the merges in the order of their pairs. The new ids tell the order in which "
    "they were learnt.": partial(encode_as_listed, order=sorted, again=False),
    "The right half of a match was used again (see exercise 11.2).":
        encode_by(replace=replace_overlapping),
    "The last id got lost where it is in no pair (see exercise 11.2).":
        encode_by(replace=partial(replace_walking, rest=0)),
    "You replaced from right to left (see exercise 11.2).":
        encode_by(replace=replace_from_the_right),
    "Nothing was merged.": lambda ids, merges: ids,
    "No known pair is left at the end, and there is no smallest of none: stop then.":
        lambda ids, merges: min([], key=merges.get),
    "A single id has no pair, and there is no smallest of none: nothing is left to merge then.":
        lambda ids, merges: found if len(found := encode(ids, merges)) > 1 else min([], key=len),
    "Not every pair was learnt. Look only at those of which `pair in merges` is true.":
        tuple(partial(encode_asking_for_all, rank=rank) for rank in (dict.get, dict.__getitem__)),
    "A list can be no key of a dictionary, so it cannot be looked up in `merges`: make it a tuple.":
        lambda ids, merges: [ids[i : i + 2] in merges for i in range(len(ids) - 1)] and ids,
    BEHIND: (
        lambda ids, merges: [(ids[i], ids[i + 1]) in merges for i in range(len(ids))],
        *(encode_by(replace=partial(replace_behind_the_end, lazily=lazily))
          for lazily in (False, True)),
    ),
}  # fmt: skip


# --- 11.5 -------------------------------------------------------------------------------------

LN2 = math.log(2)


@exercise(
    inputs=[
        (3.0, 9, "Löwe 🦉!"),
        (math.log(2), 6, "abc"),
        (1.25, 5, "a tale of two"),
        (2.25, 11, "  Two lines,\nand ÉT É.\n\n"),
        (0.5, 1, "x"),
    ],
    praise="a measure that does not ask how the text was cut.",
)
def bits(loss, n_tokens, text):
    """bits(loss, n_tokens, text): bits per character from a mean loss in nats per token."""
    return loss / math.log(2) * n_tokens / len(text)


def bits_for(measure):
    """For each of other units: `measure` counts them in the text."""
    return lambda loss, n, text: loss / LN2 * n / measure(text)


bits.mistakes = {
    "These are nats per character. One bit is ln 2 ≈ 0.69 nats: divide by it.":
        lambda loss, n, text: loss * n / len(text),
    "These are bits per token. Tokens cannot be compared: divide the whole text's surprise by "
    "its characters.": lambda loss, n, text: loss / LN2,
    "You multiplied by ln 2. A nat is more than a bit, so there are more bits than nats.":
        lambda loss, n, text: loss * LN2 * n / len(text),
    "You divided by ln 10: those are decimal digits. A bit is ln 2 nats.":
        lambda loss, n, text: loss / math.log(10) * n / len(text),
    "You multiplied by characters per token. It is tokens per character: each token's "
    "surprise is shared by its characters.": lambda loss, n, text: loss / LN2 * len(text) / n,
    "You multiplied by characters per token, and stayed with nats. It is tokens per character, and "
    "a bit is ln 2 nats.": lambda loss, n, text: loss * len(text) / n,
    "That is the surprise of the whole text. Divide by its characters.":
        lambda loss, n, text: loss / LN2 * n,
    "That is the surprise of the whole text, in nats. Divide by its characters, and by ln 2.":
        lambda loss, n, text: loss * n,
    "That is per byte: `text.encode()` is longer than the text where a character takes more "
    "than one byte.": bits_for(lambda text: len(text.encode())),
    "That is per word. Divide by the number of characters, `len(text)`.":
        bits_for(lambda text: len(text.split())),
    "White space at the ends is text, too: it was predicted. Divide by `len(text)`.":
        bits_for(lambda text: len(text.strip())),
    "White space is text, too: it was predicted. Divide by `len(text)`.":
        (bits_for(lambda text: len("".join(text.split()))),
         bits_for(lambda text: len(text.replace(" ", "")))),
    "You counted different characters. Each place counts: `len(text)`.":
        bits_for(lambda text: len(set(text))),
    "You divided by the characters, but did not multiply by the tokens: the loss is a mean.":
        lambda loss, n, text: loss / LN2 / len(text),
    "You divided by the tokens. The loss is a mean, so multiply by them.":
        lambda loss, n, text: loss / LN2 / n / len(text),
    "These are tokens per character. What surprise does each bring?":
        lambda loss, n, text: n / len(text),
    "That is the perplexity per token.": lambda loss, n, text: math.exp(loss),
    "That is a perplexity. Bits are the surprise itself: no exponential.": (
        lambda loss, n, text: math.exp(loss * n / len(text)),
        lambda loss, n, text: 2 ** (loss / LN2 * n / len(text)),
        lambda loss, n, text: math.exp(loss) * n / len(text),
        lambda loss, n, text: 2**loss * n / len(text),
    ),
    "The mean of n − 1 predictions? Here every one of the n tokens was predicted.":
        lambda loss, n, text: loss / LN2 * (n - 1) / len(text),
    "`math.log2` of the loss is no change of unit: divide by `math.log(2)`.":
        (lambda loss, n, text: math.log2(loss) * n / len(text),
         lambda loss, n, text: math.log2(loss * n) / len(text)),
    "You cut off the decimals: divide with `/`.":
        (lambda loss, n, text: loss / LN2 * n // len(text),
         lambda loss, n, text: loss / LN2 * (n // len(text))),
}  # fmt: skip
