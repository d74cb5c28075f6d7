"""What the known mistakes of chapter 11's exercises give."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise

from exercises.pairs11 import Ids, Pair, Replace, Words, learnt, pair_counts, replaced


def count_without_overlaps(words: Words) -> dict[Pair, int]:
    pairs: Counter[Pair] = Counter()
    for ids, n in words.items():
        last: Pair | None = None
        for pair in pairwise(ids):
            overlaps = pair == last and pair[0] == pair[1]
            last = None if overlaps else pair
            pairs[pair] += 0 if overlaps else n
    return dict(pairs)


def count_mistakes(words: Words) -> dict[str, Mapping[Pair, int]]:
    """Diagnosis → what it gives."""
    right = pair_counts(words)
    row = [i for ids in words for i in ids]
    repeated = [i for ids, n in words.items() for _ in range(n) for i in ids]
    per_word: dict[Pair, int] = {}
    for ids, n in words.items():
        for pair in set(pairwise(ids)):
            per_word[pair] = per_word.get(pair, 0) + n
    by_size: Counter[Pair] = Counter()
    for (a, b), n in right.items():
        by_size[min(a, b), max(a, b)] += n
    chunks: Counter[Pair] = Counter()
    for ids, n in words.items():
        for i in range(0, len(ids) - 1, 2):
            chunks[ids[i], ids[i + 1]] += n
    overwritten = {pair: n for ids, n in words.items() for pair in pairwise(ids)}
    return {
        "Each word was counted once. A word that occurs n times adds n for each of its pairs.":
            Counter(pair for ids in words for pair in pairwise(ids)),
        "The words were counted once, and as one long row: count inside each word, and add n.":
            Counter(pairwise(row)),
        "You also counted pairs that reach from one word into the next. Count inside each word.":
            Counter(pairwise(repeated)),
        "A pair that stands twice in a word was counted once. Every place counts.": per_word,
        "You skipped overlapping pairs. In (7, 7, 7, 7) the pair (7, 7) stands at three places, "
        "and all count: that is how everybody counts.": count_without_overlaps(words),
        "(1, 2) and (2, 1) are two different pairs: the order counts.": by_size,
        "You went on by two ids. Pairs begin at every id: (1, 2, 1) holds (1, 2) and (2, 1).":
            chunks,
        "A later word overwrote the count of an earlier one. Add to it: `+=`.": overwritten,
    }  # fmt: skip


def replaced_overlapping(ids: Ids, pair: Pair, new: int) -> Ids:
    return [new if (a, b) == pair else a for a, b in pairwise([*ids, -1])]


def replaced_from_the_right(ids: Ids, pair: Pair, new: int) -> Ids:
    return replaced(ids[::-1], (pair[1], pair[0]), new)[::-1]


def replaced_once(ids: Ids, pair: Pair, new: int) -> Ids:
    for i, here in enumerate(pairwise(ids)):
        if here == pair:
            return [*ids[:i], new, *ids[i + 2 :]]
    return ids


def replaced_either_way(ids: Ids, pair: Pair, new: int) -> Ids:
    out: Ids = []
    for i in ids:
        out.append(i)
        if len(out) > 1 and set(out[-2:]) == set(pair) and sorted(out[-2:]) == sorted(pair):
            out[-2:] = [new]
    return out


def replaced_without_the_last(ids: Ids, pair: Pair, new: int) -> Ids:
    """The loop ends at the last but one: a last id that is in no pair gets lost."""
    out: Ids = []
    i = 0
    while i < len(ids) - 1:
        here = (ids[i], ids[i + 1]) == pair
        out.append(new if here else ids[i])
        i += 2 if here else 1
    return out


def replace_mistakes(ids: Ids, pair: Pair, new: int) -> dict[str, Ids]:
    """Diagnosis → what it gives."""
    doubled = [x for i in replaced(ids, pair, -1) for x in ([*pair, new] if i == -1 else [i])]
    return {
        "After a match you went on by one id, so its right half was used again. Go on by two.":
            replaced_overlapping(ids, pair, new),
        "You went from right to left: then [5, 5, 5] becomes [5, 9], not [9, 5].":
            replaced_from_the_right(ids, pair, new),
        "You replaced the first occurrence and stopped. Replace each.":
            replaced_once(ids, pair, new),
        "You replaced (2, 1), too, where the pair is (1, 2). The order counts.":
            replaced_either_way(ids, pair, new),
        "The last id got lost: it has no neighbour to the right, and must be kept all the same.":
            replaced_without_the_last(ids, pair, new),
        "Nothing was replaced.": ids,
        "The pair is still there: `new` comes in its place, not behind it.": doubled,
        "The pair was taken out, but `new` was not put in.":
            [i for i in replaced(ids, pair, -1) if i != -1],
    }  # fmt: skip


def first_met(pairs: Mapping[Pair, int]) -> Pair:
    return max(pairs, key=pairs.__getitem__)


def learn_mistakes(words: Words, n: int, first: int) -> dict[str, list[Pair]]:
    """Diagnosis → what it gives."""
    counts = pair_counts(words)
    ranked = sorted(counts, key=lambda pair: (-counts[pair], pair))
    learn = partial(learnt, words, n, first)
    return {
        "You counted once and took the most frequent pairs. Merge one, then count anew: a merge "
        "makes new pairs and takes others away.": ranked[:n],
        "Of equally frequent pairs you took the one that was met first. Take the smaller one, or "
        "the order of the words decides.": learn(choose=first_met),
        "Of equally frequent pairs you took the larger one. Take the smaller one: with `max` the "
        "tie goes the wrong way, use `min` with the count made negative.":
            learn(choose=lambda pairs: max(pairs, key=lambda pair: (pairs[pair], pair))),
        "You took the rarest pair. The most frequent one goes first.":
            learn(choose=lambda pairs: min(pairs, key=lambda pair: (pairs[pair], pair))),
        "Each word was counted once. A word that occurs n times adds n for each of its pairs.":
            learn(count=lambda words: Counter(p for ids in words for p in pairwise(ids))),
        "Overlapping pairs should all be counted: (3, 3, 3, 3) holds (3, 3) three times.":
            learn(count=count_without_overlaps),
        "In replacing, the right half of a match was used again (see exercise 11.2).":
            learn(replace=replaced_overlapping),
        "Only the first occurrence in a word was replaced.": learn(replace=replaced_once),
        "Every merge got the same id. The ids count up from first_id.": learn(step=0),
        "You stopped after the first merge.": learnt(words, min(n, 1), first),
    }  # fmt: skip


def _spelled(merges: Mapping[Pair, int]) -> dict[tuple[int, ...], int]:
    """What each merged id is made of."""
    parts: dict[int, tuple[int, ...]] = {}
    for (a, b), new in sorted(merges.items(), key=lambda item: item[1]):
        parts[new] = parts.get(a, (a,)) + parts.get(b, (b,))
    return {piece: new for new, piece in parts.items()}


def longest_match(ids: Ids, merges: Mapping[Pair, int]) -> Ids:
    pieces, out, i = _spelled(merges), [], 0
    while i < len(ids):
        ends = [j for j in range(len(ids), i + 1, -1) if tuple(ids[i:j]) in pieces]
        out.append(pieces[tuple(ids[i : ends[0]])] if ends else ids[i])
        i = ends[0] if ends else i + 1
    return out


def encoded_by(
    ids: Ids,
    merges: Mapping[Pair, int],
    choose: Callable[[list[Pair]], Pair],
    replace: Replace = replaced,
) -> Ids:
    while known := [pair for pair in pairwise(ids) if pair in merges]:
        best = choose(known)
        ids = replace(ids, best, merges[best])
    return ids


def encode_mistakes(ids: Ids, merges: Mapping[Pair, int]) -> dict[str, Ids]:
    """Diagnosis → what it gives."""
    known = [pair for pair in pairwise(ids) if pair in merges]
    rank = merges.__getitem__
    one = min(known, key=rank, default=None)
    listed = ids
    for pair, new in merges.items():
        listed = replaced(listed, pair, new)
    return {
        "That is the longest match. BPE does not ask for the longest piece: the merge that was "
        "learnt first goes first.": longest_match(ids, merges),
        "You merged the pair that comes first in the word. The one that was learnt first (with "
        "the smallest new id) goes first, wherever it stands.":
            encoded_by(ids, merges, lambda known: known[0]),
        "You merged the pair that comes last in the word. The one that was learnt first goes "
        "first.": encoded_by(ids, merges, lambda known: known[-1]),
        "You took the merge that was learnt last. The one with the smallest new id goes first.":
            encoded_by(ids, merges, lambda known: max(known, key=rank)),
        "You stopped after one merge. A merge makes new pairs: look again until none is known.":
            replaced(ids, one, merges[one]) if one else ids,
        "You went through the merges as the dictionary lists them. The new ids tell the order in "
        "which they were learnt.": listed,
        "The right half of a match was used again (see exercise 11.2).":
            encoded_by(ids, merges, lambda known: min(known, key=rank), replaced_overlapping),
        "Nothing was merged.": ids,
    }  # fmt: skip


def bits_mistakes(loss: float, n: int, text: str) -> dict[str, float]:
    """Diagnosis → what it gives."""
    c, ln2, n_bytes = len(text), math.log(2), len(text.encode())
    return {
        "These are nats per character. One bit is ln 2 ≈ 0.69 nats: divide by it.": loss * n / c,
        "These are bits per token. Tokens cannot be compared: divide the whole text's surprise by "
        "its characters.": loss / ln2,
        "You multiplied by ln 2. A nat is more than a bit, so there are more bits than nats.":
            loss * ln2 * n / c,
        "You multiplied by characters per token. It is tokens per character: each token's "
        "surprise is shared by its characters.": loss / ln2 * c / n,
        "That is the surprise of the whole text. Divide by its characters.": loss / ln2 * n,
        "That is per byte: `text.encode()` is longer than the text where a character takes more "
        "than one byte.": loss / ln2 * n / n_bytes,
        "You divided by the characters, but did not multiply by the tokens: the loss is a mean.":
            loss / ln2 / c,
        "That is the perplexity per token.": math.exp(loss),
        "The mean of n − 1 predictions? Here every one of the n tokens was predicted.":
            loss / ln2 * (n - 1) / c,
        "Math.log2 of the loss is no change of unit: divide by `math.log(2)`.":
            math.log2(loss) * n / c,
    }  # fmt: skip
