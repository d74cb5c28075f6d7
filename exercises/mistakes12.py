"""The right answers to the exercises of chapter 12, and what the known mistakes give."""

import math
from collections.abc import Callable
from typing import Any

import torch

Ranges = list[list[int]]
Words = list[str]


def cut(ids: list[int], starts: range, T: int, shift: int = 1) -> list[Ranges]:
    return [[ids[i : i + T], ids[i + shift : i + T + shift]] for i in starts]


def windows_right(ids: list[int], T: int, stride: int) -> list[Ranges]:
    """The pairs (x, y) of all whole windows."""
    return cut(ids, range(0, len(ids) - T, stride), T)


def windows_mistakes(ids: list[int], T: int, stride: int) -> dict[str, Any]:
    """Diagnosis → what it gives."""
    n, right = len(ids), windows_right(ids, T, stride)
    whole = range(0, max(0, n - T), stride)
    return {
        "The last y is too short: the window that begins at len(ids) − T has no last target. Begin "
        "no later than len(ids) − T − 1.": cut(ids, range(0, n - T + 1, stride), T),
        "You begin windows up to the end of the list; the last ones are cut short. A window needs "
        "T + 1 ids.": cut(ids, range(0, n, stride), T),
        "You begin windows up to the last id but one; the last ones are cut short. A window needs "
        "T + 1 ids.": cut(ids, range(0, n - 1, stride), T),
        "One window is missing: the last one may begin at len(ids) − T − 1, and the end of a range "
        "does not belong to it.": cut(ids, range(0, n - T - 1, stride), T),
        "One window is missing: their number is (len(ids) − T) / stride, rounded *up*, but `//` "
        "rounds down.": cut(ids, range(0, (n - T) // stride * stride, stride), T),
        "One window is missing: (len(ids) − T − 1) // stride is the number of the last one, "
        "counted from 0.": cut(ids, range(0, (n - T - 1) // stride * stride, stride), T),
        "y equals x. The targets are one id later.": cut(ids, whole, T, 0),
        "y begins where x ends. The targets are one id later, not T.": cut(ids, whole, T, T),
        "x has T + 1 ids and y is only the last of them? Each of the T places has its target.":
            [[ids[i : i + T], [ids[i + T]]] for i in whole],
        "You went on by one, not by `stride`.": cut(ids, range(0, n - T), T),
        "You went on by T, not by `stride`.": cut(ids, range(0, n - T, T), T),
        "x and y have changed places.": [[y, x] for x, y in right],
        "These are windows of T + 1 ids. Make x and y of each: all but the last, all but the "
        "first.": [ids[i : i + T + 1] for i in whole],
    }  # fmt: skip


def perplexity_right(losses: list[float], counts: list[int]) -> float:
    """Of the whole text: each token counts the same."""
    return math.exp(sum(map(math.prod, zip(losses, counts, strict=True))) / sum(counts))


def perplexity_mistakes(losses: list[float], counts: list[int]) -> dict[str, float]:
    """Diagnosis → what it gives."""
    pairs = list(zip(losses, counts, strict=True))
    mean, total = sum(losses) / len(losses), sum(loss * n for loss, n in pairs)
    whole = total / sum(counts)
    return {
        "Every batch counts the same in your mean, the small last one, too. Weight the losses by "
        "`counts`.": math.exp(mean),
        "That is the mean of the batches' perplexities. First the mean of the losses, weighted by "
        "`counts`, then one exponential.": sum(math.exp(loss) for loss in losses) / len(losses),
        "You took the mean of the perplexities, weighted. First the mean of the losses, then one "
        "exponential.": sum(math.exp(loss) * n for loss, n in pairs) / sum(counts),
        "That is the mean loss. The perplexity is e to it.": whole,
        "That is 2 to the loss, but the losses are in nats: `math.exp`.": 2**whole,
        "You divided by the number of batches, not by the number of tokens.":
            math.exp(total / len(losses)),
        "The mean loss in bits is no perplexity.": whole / math.log(2),
        "You forgot to divide the sum of the losses.": math.exp(sum(losses)),
    }  # fmt: skip


def scored_right(n: int, T: int, stride: int, by: int = 0, end: int = 1, stop: int = 1) -> Ranges:
    """(start, first, last) of each window; a mistake ends `by` tokens early, or too late."""
    found: Ranges = []
    start, done = 0, 0
    while done < n - stop and len(found) < 4 * n:
        last = min(start + T - by, n - end)
        found.append([start, done + 1, last])
        start, done = start + stride, last
    return found


def never_done(starts: range, n: int, T: int) -> Ranges:
    lasts = [min(s + T, n - 1) for s in starts]
    return [[s, done + 1, last] for s, done, last in zip(starts, [0, *lasts], lasts, strict=False)]


def scored_mistakes(n: int, T: int, stride: int) -> dict[str, Ranges]:
    """Diagnosis → what it gives."""
    right = scored_right(n, T, stride)
    starts = [start for start, _, _ in right]
    all_starts, overlap = range(0, n - 1, stride), T - stride
    return {
        "Tokens are scored twice: each window counts all that it predicts. Only what no earlier "
        "window has predicted counts.": [[s, s + 1, min(s + T, n - 1)] for s in starts],
        "The first window counts whole: nobody has predicted its first tokens.":
            [[s, s + 1 + overlap, min(s + T, n - 1)] for s in starts],
        "The last windows go beyond the text: the last token is n − 1.":
            [[s, first, s + T] for s, first, _ in right],
        "Your text ends with token n. The n tokens are numbered from 0, so the last is n − 1, both "
        "for `last` and for the end of the loop.": scored_right(n, T, stride, end=0, stop=0),
        "The last window is cut at n: `last` is at most n − 1, the number of the last token.":
            scored_right(n, T, stride, end=0),
        "You begin at token 0, which nothing predicts: the first `first` is 1.":
            [[s, first if s else 0, last] for s, first, last in right],
        "Each `first` is one too small: the token before it counts already for the window before "
        "(and token 0 is never predicted).": [[s, first - 1, last] for s, first, last in right],
        "A window that begins at s predicts up to s + T, not s + T − 1: it reads T tokens and has "
        "T targets.": scored_right(n, T, stride, by=1),
        "You left out the last window because it is not full. Every token counts.":
            [part for part in right if part[0] + T <= n - 1],
        "You went on after token n − 1 had been predicted: windows at the end have nothing left to "
        "score.": [[s, 1 if s == 0 else s + 1 + overlap, min(s + T, n - 1)] for s in all_starts],
        "Windows at the end are empty, such as (6, 8, 7) in scored(8, 4, 2). Not every start below "
        "n − 1 has a window: end once token n − 1 is predicted.": never_done(all_starts, n, T),
        "Windows at the end are empty, such as (6, 8, 7) in scored(8, 4, 2). Not every start below "
        "n has a window: end once token n − 1 is predicted.": never_done(range(0, n, stride), n, T),
        "These are the places of the inputs. The token predicted at place i is token i + 1.":
            [[s, first - 1, last - 1] for s, first, last in right],
        "`last` counts itself: it is the last token that is scored, not the one after it.":
            [[s, first, last + 1] for s, first, last in right],
        "Give the windows' starts, too: (start, first, last).": [part[1:] for part in right],
    }  # fmt: skip


def runs_of(words: Words, n: int) -> list[Words]:
    return [words[i : i + n] for i in range(len(words) - n + 1)]


def copied_right(some: Words, text: Words, n: int) -> float:
    """The share of the words of `some` in runs of n words that `text` has, too."""
    return share(some, n, runs_of(text, n).__contains__)


def share(
    some: Words, n: int, stands: Callable[[Words], bool], but: int = 0, step: int = 1
) -> float:
    starts = range(0, len(some) - n + 1 - but, step)
    places = {i + k for i in starts if stands(some[i : i + n]) for k in range(n)}
    return len(places) / max(1, len(some))


def jumping(some: Words, text: Words, n: int) -> float:
    i = words = 0
    while i + n <= len(some):
        found = some[i : i + n] in runs_of(text, n)
        i, words = i + (n if found else 1), words + n * found
    return words / len(some)


def copied_mistakes(some: Words, text: Words, n: int) -> dict[str, float]:
    """Diagnosis → what it gives; for a list that is not shorter than n."""
    size, runs, joined = len(some), runs_of(text, n), " ".join(text)
    has, right = runs.__contains__, copied_right(some, text, n)
    common = [run for run in runs_of(some, n) if run in runs]
    inside = {word for run in common for word in run}
    tails = [text[i : i + n] for i in range(len(text))]
    short = {j for i in range(size) if some[i : i + n] in tails for j in range(i, i + n)}
    return {
        "That is the share of the *runs*. Mark the words that lie in a run, and count them.":
            len(common) / (size - n + 1),
        "You counted words that occur anywhere in `text`. They must stand in a run of n neighbours "
        "that `text` has in the same order.": sum(word in text for word in some) / size,
        "The order in a run is ignored: compare the runs as they stand.":
            share(some, n, lambda run: sorted(run) in map(sorted, runs)),
        "Words in overlapping runs count twice or more (the share can exceed 1). Mark places, in a "
        "set for example, and count each once.": n * len(common) / size,
        "Only the first word of each run is counted. All its n words lie in it: mark the places i "
        "to i + n − 1.": len(common) / size,
        "You asked whether all of `some` stands in `text`. Ask it of every run of n words.":
            float(some in runs_of(text, size)),
        "Parts of words count in your search: *the end* is found inside *the endless*. Compare "
        "lists or tuples of words, not text.": share(some, n, lambda run: " ".join(run) in joined),
        "Words are joined without a space: *car pet* is found inside *carpet*. Compare lists or "
        "tuples of words.": share(some, n, lambda run: "".join(run) in "".join(text)),
        "Runs are joined without a space: *car pet* and *carp et* become the same. Compare lists "
        "or tuples of words.": share(some, n, lambda r: "".join(r) in ["".join(t) for t in runs]),
        "You look only where the first word of a run occurs first in `text` (`index`). It may "
        "occur again, and the run stand there.":
            share(some, n, lambda r: r[0] in text and r == text[(j := text.index(r[0])) : j + n]),
        "You jump behind each run that is found. The next run may overlap it: go on by one word.":
            jumping(some, text, n),
        "Runs of `some` begin at every word, not at every n-th.": share(some, n, has, step=n),
        "Runs of `text` begin at every word, not at every n-th.":
            share(some, n, runs[::n].__contains__),
        "That is the number of words. Divide by the length of `some`.": right * size,
        "You divided by the length of `text`. It is a share of `some`.": right * size / len(text),
        "The last run of `some` is forgotten: it begins at len(some) − n, and the end of a range "
        "does not belong to it.": share(some, n, has, 1),
        "The last run of `text` is forgotten: it begins at len(text) − n, and the end of a range "
        "does not belong to it.": share(some, n, runs[:-1].__contains__),
        "The last run of both lists is forgotten: it begins at len(…) − n, and the end of a range "
        "does not belong to it.": share(some, n, runs[:-1].__contains__, 1),
        "At the end of the lists your slices are shorter than n, and are compared, too. The last "
        "run begins at len(…) − n.": len(short & set(range(size))) / size,
        "Different words are counted. A word that stands in two places of `some` counts twice.":
            len(inside) / size,
        "A word of a common run is counted wherever it stands in `some`. Mark places, not words.":
            sum(word in inside for word in some) / size,
    }  # fmt: skip


def shuffled(n: int, seed: int) -> list[int]:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()


def batch_right(step: int, n: int, B: int, seed: int) -> list[int]:
    """The windows that step number `step` reads."""
    epoch, place = divmod(step, n // B)
    return shuffled(n, seed + epoch)[place * B : (place + 1) * B]


def batch_mistakes(step: int, n: int, B: int, seed: int) -> dict[str, Any]:
    """Diagnosis → what it gives."""
    epoch, place = divmod(step, n // B)
    part = slice(place * B, (place + 1) * B)
    longer, at = divmod(step, -(-n // B))
    first, after = shuffled(n, seed), shuffled(n, seed + epoch)
    early, begin = divmod(step * B, n)
    stream = [window for e in range(epoch + 2) for window in shuffled(n, seed + e)]
    goes_on = torch.Generator().manual_seed(seed)
    later = [torch.randperm(n, generator=goes_on).tolist() for _ in range(epoch + 1)][epoch]
    return {
        "Every epoch has the same order: seed the generator with `seed + epoch`.": first[part],
        "A new order for every step: then windows come twice in an epoch. Seed with `seed + epoch` "
        "and deal the order out.": shuffled(n, seed + step)[:B],
        "You always deal from the front: every step of an epoch reads the same batch.": after[:B],
        "What is left over at the end of an epoch is dropped: an epoch has `n // B` batches.":
            shuffled(n, seed + longer)[at * B : (at + 1) * B],
        "Places are counted without dropping the rest (`step * B` against n). An epoch has "
        "`n // B` batches: `divmod(step, n // B)`.": shuffled(n, seed + early)[begin : begin + B],
        "The rest of an epoch is filled up with windows of the next. It is dropped: an epoch has "
        "`n // B` whole batches.": stream[step * B : (step + 1) * B],
        "The epoch is `step // (n // B)`, not `step * B // n`: the rest of an epoch is dropped.":
            shuffled(n, seed + early)[part],
        "One generator, seeded once, goes on from epoch to epoch: an order then depends on those "
        "before it. Seed a new one with `seed + epoch`.": later[part],
        "The place goes on after the first epoch: it begins again at 0 with each.":
            first[step * B : (step + 1) * B],
        "The epoch is counted from 0: the first seed is `seed` itself.":
            shuffled(n, seed + 1 + epoch)[part],
        "Nothing is shuffled.": list(range(place * B, (place + 1) * B)),
        "You took every `n // B`-th window: deal B neighbours.": after[place :: n // B][:B],
        "The seed is not used.": shuffled(n, epoch)[part],
    }  # fmt: skip
