"""The right answers to the exercises of chapter 12, and what the known mistakes give."""

import math
from collections.abc import Callable
from typing import Any

import torch

Pairs = list[list[list[int]]]
Ranges = list[list[int]]


def cut(ids: list[int], starts: range, T: int, shift: int = 1) -> Pairs:
    return [[ids[i : i + T], ids[i + shift : i + T + shift]] for i in starts]


def windows_right(ids: list[int], T: int, stride: int) -> Pairs:
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
    shares = sum(math.exp(loss) * n for loss, n in pairs) / sum(counts)
    return {
        "Every batch counts the same in your mean, the small last one, too. Weight the losses by "
        "`counts`.": math.exp(mean),
        "That is the mean of the batches' perplexities. First the mean of the losses, weighted by "
        "`counts`, then one exponential.": sum(math.exp(loss) for loss in losses) / len(losses),
        "You took the mean of the perplexities, weighted. First the mean of the losses, then one "
        "exponential.": shares,
        "That is the mean loss. The perplexity is e to it.": total / sum(counts),
        "That is 2 to the loss, but the losses are in nats: `math.exp`.":
            2 ** (total / sum(counts)),
        "You divided by the number of batches, not by the number of tokens.":
            math.exp(total / len(losses)),
        "The mean loss in bits is no perplexity.": total / sum(counts) / math.log(2),
        "You forgot to divide the sum of the losses.": math.exp(sum(losses)),
    }  # fmt: skip


def scored_right(n: int, T: int, stride: int) -> Ranges:
    """(start, first, last) of each window: what no earlier one has predicted."""
    found, start, done = [], 0, 0
    while done < n - 1:
        last = min(start + T, n - 1)
        found.append([start, done + 1, last])
        start, done = start + stride, last
    return found


def scored_mistakes(n: int, T: int, stride: int) -> dict[str, Ranges]:
    """Diagnosis → what it gives."""
    right = scored_right(n, T, stride)
    starts = [start for start, _, _ in right]
    all_starts = range(0, n - 1, stride)
    overlap = T - stride
    return {
        "Tokens are scored twice: each window counts all that it predicts. Only what no earlier "
        "window has predicted counts.": [[s, s + 1, min(s + T, n - 1)] for s in starts],
        "The first window counts whole: nobody has predicted its first tokens.":
            [[s, s + 1 + overlap, min(s + T, n - 1)] for s in starts],
        "The last windows go beyond the text: the last token is n − 1.":
            [[s, first, s + T] for s, first, _ in right],
        "A window that begins at s predicts up to s + T, not s + T − 1: it reads T tokens and has "
        "T targets.": ended_early(n, T, stride),
        "You left out the last window because it is not full. Every token counts.":
            [part for part in right if part[0] + T <= n - 1],
        "You went on after token n − 1 had been predicted: windows at the end have nothing left to "
        "score.": [[s, 1 if s == 0 else s + 1 + overlap, min(s + T, n - 1)] for s in all_starts],
        "These are the places of the inputs. The token predicted at place i is token i + 1.":
            [[s, first - 1, last - 1] for s, first, last in right],
        "`last` counts itself: it is the last token that is scored, not the one after it.":
            [[s, first, last + 1] for s, first, last in right],
        "Give the windows' starts, too: (start, first, last).": [part[1:] for part in right],
    }  # fmt: skip


def ended_early(n: int, T: int, stride: int) -> Ranges:
    found: Ranges = []
    start, done = 0, 0
    while done < n - 1 and len(found) < 4 * n:
        last = min(start + T - 1, n - 1)
        found.append([start, done + 1, last])
        start, done = start + stride, last
    return found


def copied_right(some: list[str], text: list[str]) -> int:
    """The length of the longest common run of words."""
    return longest_by(some, text, lambda run: f" {' '.join(run)} " in f" {' '.join(text)} ")


def longest_by(some: list[str], text: list[str], stands: Callable[[list[str]], bool]) -> int:
    runs = [some[i:j] for i in range(len(some)) for j in range(i + 1, len(some) + 1)]
    return max((len(run) for run in runs if stands(run)), default=0)


def subsequence(some: list[str], text: list[str]) -> int:
    """The most words that are common in the same order, gaps allowed."""
    row = [0] * (len(text) + 1)
    for word in some:
        before = row
        row = [0] * (len(text) + 1)
        for j, other in enumerate(text, 1):
            row[j] = before[j - 1] + 1 if word == other else max(before[j], row[j - 1])
    return row[-1]


def copied_mistakes(some: list[str], text: list[str]) -> dict[str, int]:
    """Diagnosis → what it gives."""
    joined = " ".join(text)
    right = copied_right(some, text)
    run, best = 0, 0
    for word in some:
        run = run + 1 if word in text else 0
        best = max(best, run)
    lengths = (len(some), len(text))
    starts = [n for n in range(1, min(lengths) + 1) if some[:n] in _slices(text, n)]
    return {
        "Parts of words count in your search: *end* is found inside *endless*. Compare words, or "
        "put a space before and behind.": longest_by(some, text, lambda r: " ".join(r) in joined),
        "You counted common words. They must be neighbours in both, in the same order.":
            len(set(some) & set(text)),
        "You counted the words of `some` that occur in the text, wherever they stand.":
            sum(word in text for word in some),
        "You allow gaps: that is the longest common *subsequence*. A run has none.":
            subsequence(some, text),
        "Each word of your run is somewhere in the text, but they need not be neighbours there.":
            best,
        "Only runs from the first word of `some` are tried. A run can begin anywhere.":
            max(starts, default=0),
        "Only equal places are compared. The run may stand elsewhere in the text.":
            same_places(some, text),
        "That is the number of characters. Count words.": longest_characters(some, text),
        "One too few: the length of the run is its number of words.": max(0, right - 1),
        "One too many.": right + 1,
        "Always 0? Try `longest_copied(['now'], ['now'])`: it is 1.": 0,
    }  # fmt: skip


def same_places(some: list[str], text: list[str]) -> int:
    run, best = 0, 0
    for a, b in zip(some, text, strict=False):
        run = run + 1 if a == b else 0
        best = max(best, run)
    return best


def longest_characters(some: list[str], text: list[str]) -> int:
    runs = [some[i:j] for i in range(len(some)) for j in range(i + 1, len(some) + 1)]
    found = [" ".join(run) for run in runs if run in _slices(text, len(run))]
    return max(map(len, found), default=0)


def _slices(text: list[str], n: int) -> list[list[str]]:
    return [text[i : i + n] for i in range(len(text) - n + 1)]


def shuffled(n: int, seed: int) -> list[int]:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()


def batch_right(step: int, n: int, B: int, seed: int) -> list[int]:
    """The windows that step number `step` reads."""
    epoch, place = divmod(step, n // B)
    return shuffled(n, seed + epoch)[place * B : (place + 1) * B]


def batch_mistakes(step: int, n: int, B: int, seed: int) -> dict[str, Any]:
    """Diagnosis → what it gives."""
    epoch, place = divmod(step, n // B)
    longer, at = divmod(step, -(-n // B))
    first, after = shuffled(n, seed), shuffled(n, seed + epoch)
    return {
        "Every epoch has the same order: seed the generator with `seed + epoch`.":
            first[place * B : (place + 1) * B],
        "A new order for every step: then windows come twice in an epoch. Seed with `seed + epoch` "
        "and deal the order out.": shuffled(n, seed + step)[:B],
        "You always deal from the front: every step of an epoch reads the same batch.": after[:B],
        "What is left over at the end of an epoch is dropped: an epoch has `n // B` batches.":
            shuffled(n, seed + longer)[at * B : (at + 1) * B],
        "The place goes on after the first epoch: it begins again at 0 with each.":
            first[step * B : (step + 1) * B],
        "The epoch is counted from 0: the first seed is `seed` itself.":
            shuffled(n, seed + epoch + 1)[place * B : (place + 1) * B],
        "Nothing is shuffled.": list(range(place * B, (place + 1) * B)),
        "You took every `n // B`-th window of the order: deal B neighbours of it.":
            after[place :: n // B][:B],
        "The seed is not used.": shuffled(n, epoch)[place * B : (place + 1) * B],
    }  # fmt: skip
