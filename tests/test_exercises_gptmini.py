"""The exercises of chapter 12: each known mistake gets its diagnosis, other right answers pass."""

import math
from itertools import product

import numpy as np
import pytest
import torch

from exercises import gptmini as check
from exercises.mistakes12 import batch_right, copied_right, scored_right


def says(report, fragment):
    assert report.outcome == "not yet" and fragment in report.message, report.message


def windows(starts, x=lambda ids, i, T: ids[i : i + T], y=lambda ids, i, T: ids[i + 1 : i + T + 1]):
    return lambda ids, T, stride: [
        (x(ids, i, T), y(ids, i, T)) for i in starts(len(ids), T, stride)
    ]


def whole(n, T, stride):
    return range(0, n - T, stride)


WINDOWS = [
    (windows(lambda n, T, s: range(0, n - T + 1, s)), "The last y is too short"),
    (windows(lambda n, T, s: range(0, n, s)), "up to the end of the list"),
    (windows(lambda n, T, s: range(0, n - 1, s)), "up to the last id but one"),
    (windows(lambda n, T, s: range(0, n - T - 1, s)), "One window is missing"),
    (windows(whole, y=lambda ids, i, T: ids[i : i + T]), "y equals x"),
    (windows(whole, y=lambda ids, i, T: ids[i + T : i + 2 * T]), "y begins where x ends"),
    (windows(whole, y=lambda ids, i, T: [ids[i + T]]), "Each of the T places"),
    (windows(lambda n, T, s: range(n - T)), "went on by one"),
    (windows(lambda n, T, s: range(0, n - T, T)), "went on by T"),
    (lambda ids, T, s: [(ids[i + 1 : i + T + 1], ids[i : i + T]) for i in whole(len(ids), T, s)],
     "changed places"),
    (lambda ids, T, s: [ids[i : i + T + 1] for i in whole(len(ids), T, s)], "windows of T + 1"),
    (lambda ids, T, s: windows(lambda *_: range(0, (len(ids) - T) // s * s, s))(ids, T, s),
     "rounds down"),
    (lambda ids, T, s: windows(lambda *_: range(0, (len(ids) - T - 1) // s * s, s))(ids, T, s),
     "number of the last one"),
    (lambda ids, T, s: [], "should be [([1, 2], [2, 3]), ([3, 4], [4, 5])], but is []"),
    (lambda ids, T, s: [[[1], [2]]], "but is [([1], [2])]"),
    (lambda ids, T, s: 3, "should be a list"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "fragment"), WINDOWS)
def test_mistakes_in_windows(wrong, fragment):
    says(check.windows_of(wrong), fragment)


def weighted(losses, counts):
    return sum(a * n for a, n in zip(losses, counts, strict=True)) / sum(counts)


def by_product(root, sign=1.0):
    return lambda losses, counts: root(
        math.prod(math.exp(sign * a) ** n for a, n in zip(losses, counts, strict=True)), sum(counts)
    )


PERPLEXITIES = [
    (lambda losses, counts: math.exp(sum(losses) / len(losses)), "Every batch counts the same"),
    (lambda losses, counts: sum(map(math.exp, losses)) / len(losses), "the batches' perplexities"),
    (lambda losses, counts: weighted(map(math.exp, losses), counts), "weighted. First the mean"),
    (weighted, "That is the mean loss"),
    (lambda losses, counts: 2 ** weighted(losses, counts), "2 to the loss"),
    (lambda losses, counts: math.exp(weighted(losses, counts) * sum(counts) / len(counts)),
     "by the number of batches"),
    (lambda losses, counts: weighted(losses, counts) / math.log(2), "in bits"),
    (lambda losses, counts: math.exp(sum(losses)), "forgot to divide"),
    (by_product(lambda p, n: p ** (1 / n)), "Add the losses first"),
    (by_product(lambda p, n: torch.tensor(p).log().div(n).exp(), 1.0), "Add the losses first"),
    (by_product(lambda p, n: p ** (-1 / n), -1.0), "Add the losses first"),
    (by_product(lambda p, n: math.exp(-math.log(p) / n), -1.0), "Add the losses first"),
    (by_product(lambda p, n: 1 / p ** (1 / n), -1.0), "Add the losses first"),
    (lambda losses, counts: math.exp(weighted(losses, counts) * sum(counts)) ** (1 / sum(counts)),
     "Add the losses first"),
    (lambda losses, counts: min(99, math.exp(weighted(losses, counts))), "should be 148.413"),
    (lambda losses, counts: 7.0, "should be"),
    (lambda losses, counts: [1.0, 2.0], "should have shape ()"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "fragment"), PERPLEXITIES)
def test_mistakes_in_perplexities(wrong, fragment):
    says(check.perplexity(wrong), fragment)


def by_window(part):
    """A list of what `part` says of the window that begins at a place."""
    return lambda n, T, stride: [part(s, n, T, stride) for s, _, _ in scored_right(n, T, stride)]


def whole_windows(n, T, stride):
    return [part for part in scored_right(n, T, stride) if part[0] + T <= n - 1]


def beyond(n, T, stride):
    return [(s, first, s + T) for s, first, _ in scored_right(n, T, stride)]


def all_starts(n, T, stride):
    return [
        (s, s + 1 + (T - stride if s else 0), min(s + T, n - 1)) for s in range(0, n - 1, stride)
    ]


def in_a_loop(go_on, last, done=0):
    def scored(n, T, stride):
        found, start, before = [], 0, done
        while go_on(start, before, n):
            end = last(start, T, n)
            found.append((start, before + 1, end))
            start, before = start + stride, end
        return found

    return scored


def to_the_end(start, T, n):
    return min(start + T, n - 1)


SCORES = [
    (by_window(lambda s, n, T, _: (s, s + 1, min(s + T, n - 1))), "scored twice"),
    (by_window(lambda s, n, T, stride: (s, s + 1 + T - stride, min(s + T, n - 1))), "nobody has"),
    (beyond, "beyond the text"),
    (in_a_loop(lambda s, d, n: d < n - 1, lambda s, T, n: min(s + T - 1, n - 1)), "not s + T − 1"),
    (in_a_loop(lambda s, d, n: d < n, lambda s, T, n: min(s + T, n)), "ends with token n."),
    (in_a_loop(lambda s, d, n: d < n - 1, lambda s, T, n: min(s + T, n)), "is cut at n"),
    (in_a_loop(lambda s, d, n: s < n - 1, to_the_end), "start below n − 1 has"),
    (in_a_loop(lambda s, d, n: s < n, to_the_end), "start below n has"),
    (in_a_loop(lambda s, d, n: d < n - 1, to_the_end, done=-1), "begin at token 0"),
    (lambda *a: [(s, f - 1, k) for s, f, k in scored_right(*a)], "one too small"),
    (whole_windows, "because it is not full"),
    (all_starts, "after token n − 1"),
    (lambda *a: [(s, f - 1, k - 1) for s, f, k in scored_right(*a)], "places of the inputs"),
    (lambda *a: [(s, f, k + 1) for s, f, k in scored_right(*a)], "`last` counts itself"),
    (lambda *a: [(f, k) for _, f, k in scored_right(*a)], "the windows' starts, too"),
    (lambda *a: [], "should be [(0, 1, 4), (2, 5, 6), (4, 7, 7)], but is []"),
    (lambda *a: [[0, 1, 3]], "but is [(0, 1, 3)]"),
    (lambda *a: 0, "should be a list"),
]


@pytest.mark.parametrize(("wrong", "fragment"), SCORES)
def test_mistakes_in_scoring(wrong, fragment):
    says(check.scored(wrong), fragment)


def runs(words, n, step=1):
    return [words[i : i + n] for i in range(0, len(words) - n + 1, step)]


def marking(stands, starts=lambda size, n: range(size - n + 1)):
    """An answer that marks the places of each run that stands in the text."""

    def copied_share(some, text, n):
        found = [i for i in starts(len(some), n) if stands(some[i : i + n], text, n)]
        places = {j for i in found for j in range(i, i + n)}
        return sum(j in places for j in range(len(some))) / max(1, len(some))

    return copied_share


def counting(result):
    """An answer made of how many runs of `some` stand in the text."""
    return lambda some, text, n: result(sum(r in runs(text, n) for r in runs(some, n)), some, n)


def inside(run, text, n):
    return run in runs(text, n)


def where_first(run, text, n):
    start = text.index(run[0]) if run[0] in text else len(text)
    return text[start : start + n] == run


def jumping(some, text, n):
    i = words = 0
    while i <= len(some) - n:
        step = n if inside(some[i : i + n], text, n) else 1
        words, i = words + (n if inside(some[i : i + n], text, n) else 0), i + step
    return words / len(some)


def copied(some, text, n):
    return {word for run in runs(some, n) if inside(run, text, n) for word in run}


def to_the_last_but_one(size, n):
    return range(size - n)


COPIES = [
    (counting(lambda found, some, n: found / (len(some) - n + 1)), "share of the *runs*"),
    (lambda some, text, n: sum(w in text for w in some) / len(some), "occur anywhere"),
    (marking(lambda r, t, n: set(r) in map(set, runs(t, n))), "order in a run"),
    (counting(lambda found, some, n: n * found / len(some)), "overlapping runs count twice"),
    (counting(lambda found, some, n: found / len(some)), "Only the first word"),
    (lambda some, text, n: float(f" {' '.join(some)} " in f" {' '.join(text)} "), "all of `some`"),
    (marking(lambda r, t, n: " ".join(r) in " ".join(t)), "*the endless*"),
    (marking(lambda r, t, n: "".join(r) in "".join(t)), "inside *carpet*"),
    (marking(lambda r, t, n: "".join(r) in map("".join, runs(t, n))), "*carp et*"),
    (marking(where_first), "occurs first"),
    (jumping, "jump behind"),
    (marking(inside, lambda size, n: range(0, size - n + 1, n)), "Runs of `some` begin"),
    (marking(lambda r, t, n: r in runs(t, n, n)), "Runs of `text` begin"),
    (lambda some, text, n: copied_right(some, text, n) * len(some), "number of words"),
    (lambda some, text, n: copied_right(some, text, n) * len(some) / len(text), "length of `text`"),
    (marking(inside, to_the_last_but_one), "last run of `some`"),
    (marking(lambda r, t, n: inside(r, t[:-1], n)), "last run of `text`"),
    (marking(lambda r, t, n: inside(r, t[:-1], n), to_the_last_but_one), "last run of both"),
    (marking(lambda r, t, n: r in [t[i : i + n] for i in range(len(t))], lambda m, n: range(m)),
     "slices are shorter"),
    (lambda some, text, n: len(copied(some, text, n)) / len(some), "Different words"),
    (lambda some, text, n: sum(w in copied(some, text, n) for w in some) / len(some),
     "wherever it stands in `some`"),
    (lambda some, text, n: len(some) * copied_right(some, text, n) / len(some),
     "division by zero. A list shorter than n has the share 0.0, the empty one, too"),
    (lambda some, text, n: copied_right(some, text, n) if some else math.nan, "the empty one, too"),
    (lambda some, text, n: copied_right(some, text, min(n, len(some))), "shorter than n has"),
    (lambda some, text, n: 1, "should be 0.5, but is 1.0"),
    (lambda some, text, n: some, "should"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "fragment"), COPIES)
def test_mistakes_in_copies(wrong, fragment):
    says(check.copied_share(wrong), fragment)


def order(n, seed):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()


def dealt(n, B, place, seed):
    return order(n, seed)[place * B : (place + 1) * B]


def with_the_rest(step, n, B, seed):
    epoch, place = divmod(step, math.ceil(n / B))
    return dealt(n, B, place, seed + epoch)


def with_one_generator(step, n, B, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(step // (n // B) + 1):
        shuffled = torch.randperm(n, generator=generator)
    return shuffled.split(B)[step % (n // B)]


def on_the_global_generator(step, n, B, seed):
    torch.manual_seed(seed + step // (n // B))
    place = step % (n // B)
    return torch.randperm(n)[place * B : (place + 1) * B].tolist()


BATCHES = [
    (lambda step, n, B, seed: dealt(n, B, step % (n // B), seed), "the same order"),
    (lambda step, n, B, seed: order(n, seed + step)[:B], "for every step"),
    (lambda step, n, B, seed: order(n, seed + step // (n // B))[:B], "from the front"),
    (with_the_rest, "left over"),
    (lambda step, n, B, seed: dealt(n, B, step, seed), "begins again at 0"),
    (lambda step, n, B, seed: dealt(n, B, step % (n // B), seed + 1 + step // (n // B)),
     "counted from 0"),
    (lambda step, n, B, seed: list(range(step % (n // B) * B, (step % (n // B) + 1) * B)),
     "Nothing is shuffled"),
    (lambda step, n, B, seed: order(n, seed + step // (n // B))[step % (n // B) :: n // B][:B],
     "deal B neighbours"),
    (lambda step, n, B, seed: dealt(n, B, step % (n // B), step // (n // B)), "seed is not used"),
    (lambda step, n, B, seed: order(n, seed + step * B // n)[(k := step * B % n) : k + B],
     "without dropping the rest"),
    (lambda step, n, B, seed: [w for e in range(9) for w in order(n, seed + e)][step * B :][:B],
     "filled up with windows of the next"),
    (lambda step, n, B, seed: dealt(n, B, step % (n // B), seed + step * B // n),
     "not `step * B // n`"),
    (with_one_generator, "goes on from epoch to epoch"),
    (lambda step, n, B, seed: torch.randperm(n)[:B].tolist(), "two different batches"),
    (on_the_global_generator, "own generator has changed"),
    (lambda step, n, B, seed: [0] * B, "should be"),
    (lambda step, n, B, seed: 0, "should be a list"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "fragment"), BATCHES)
def test_mistakes_in_batches(wrong, fragment):
    says(check.batch_of(wrong), fragment)


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


def test_other_right_answers_are_right():
    assert check.windows_of(
        lambda ids, T, stride: [
            [torch.tensor(ids[i : i + T]), np.array(ids[i + 1 : i + T + 1])]
            for i in range(0, len(ids), stride)
            if i + T < len(ids)
        ]
    ).outcome == "right"  # fmt: skip
    assert check.perplexity(
        lambda losses, counts: (
            torch.tensor(losses) @ torch.tensor(counts, dtype=torch.float) / sum(counts)
        ).exp()
    ).outcome == "right"  # fmt: skip
    assert check.scored(lambda *given: tuple(map(tuple, scored_right(*given)))).outcome == "right"
    assert check.scored(lambda *a: torch.tensor(scored_right(*a))).outcome == "right"
    assert check.scored(lambda *a: [np.array(part) for part in scored_right(*a)]).outcome == "right"
    assert check.perplexity(lambda a, n: np.exp(np.average(a, weights=n))).outcome == "right"
    assert check.perplexity(
        lambda losses, counts: math.prod(
            math.exp(a) ** (n / sum(counts)) for a, n in zip(losses, counts, strict=True)
        )
    ).outcome == "right"  # fmt: skip
    assert check.copied_share(by_word).outcome == "right"
    assert check.copied_share(marking(inside)).outcome == "right"
    assert check.copied_share(lambda *a: np.float32(copied_right(*a))).outcome == "right"
    assert check.batch_of(lambda *a: torch.tensor(batch_right(*a))).outcome == "right"
    assert check.batch_of(by_epochs).outcome == "right"
    assert check.batch_of(lambda *given: tuple(batch_right(*given))).outcome == "right"


NAMES = ["windows_of", "perplexity", "scored", "copied_share", "batch_of"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "garbage",
    [None, 3, "text", lambda: 1, lambda *a: "x", lambda *a: math.nan, lambda *a: [[None]]],
)
def test_garbage_is_not_yet(name, garbage):
    assert getattr(check, name)(garbage).outcome == "not yet"


@pytest.mark.parametrize("name", NAMES)
def test_a_placeholder_inside_is_not_attempted(name):
    assert getattr(check, name)(lambda *a: ...).outcome == "not attempted"
