"""The exercises of chapter 12: each known mistake gets its diagnosis, other right answers pass."""

import math
from difflib import SequenceMatcher

import numpy as np
import pytest
import torch

from helpers.checks import chapter12 as check
from helpers.checks.mistakes12 import batch_right, copied_right, scored_right, subsequence


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
    (lambda ids, T, s: [], "should be"),
    (lambda ids, T, s: 3, "should be a list"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "fragment"), WINDOWS)
def test_mistakes_in_windows(wrong, fragment):
    says(check.windows_of(wrong), fragment)


def weighted(losses, counts):
    return sum(a * n for a, n in zip(losses, counts, strict=True)) / sum(counts)


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


def one_less(n, T, stride):
    found, start, done = [], 0, 0
    while done < n - 1:
        last = min(start + T - 1, n - 1)
        found.append((start, done + 1, last))
        start, done = start + stride, last
    return found


SCORES = [
    (by_window(lambda s, n, T, _: (s, s + 1, min(s + T, n - 1))), "scored twice"),
    (by_window(lambda s, n, T, stride: (s, s + 1 + T - stride, min(s + T, n - 1))), "nobody has"),
    (beyond, "beyond the text"),
    (one_less, "not s + T − 1"),
    (whole_windows, "because it is not full"),
    (all_starts, "after token n − 1"),
    (lambda *a: [(s, f - 1, k - 1) for s, f, k in scored_right(*a)], "places of the inputs"),
    (lambda *a: [(s, f, k + 1) for s, f, k in scored_right(*a)], "`last` counts itself"),
    (lambda *a: [(f, k) for _, f, k in scored_right(*a)], "the windows' starts, too"),
    (lambda *a: [], "should be"),
    (lambda *a: 0, "should be a list"),
]


@pytest.mark.parametrize(("wrong", "fragment"), SCORES)
def test_mistakes_in_scoring(wrong, fragment):
    says(check.scored(wrong), fragment)


def longest(some, text, stands):
    runs = [some[i:j] for i in range(len(some)) for j in range(i + 1, len(some) + 1)]
    return max((len(run) for run in runs if stands(run, text)), default=0)


def inside(run, text):
    return any(text[i : i + len(run)] == run for i in range(len(text)))


def first_only(some, text):
    return max((n for n in range(1, len(some) + 1) if inside(some[:n], text)), default=0)


def same_places(some, text):
    best = run = 0
    for a, b in zip(some, text, strict=False):
        run = run + 1 if a == b else 0
        best = max(best, run)
    return best


def somewhere(some, text):
    best = run = 0
    for word in some:
        run = run + 1 if word in text else 0
        best = max(best, run)
    return best


def characters(some, text):
    runs = [some[i:j] for i in range(len(some)) for j in range(i + 1, len(some) + 1)]
    return max((len(" ".join(run)) for run in runs if inside(run, text)), default=0)


COPIES = [
    (lambda some, text: longest(some, text, lambda r, t: " ".join(r) in " ".join(t)), "endless"),
    (lambda some, text: len(set(some) & set(text)), "counted common words"),
    (lambda some, text: sum(word in text for word in some), "wherever they stand"),
    (subsequence, "subsequence"),
    (somewhere, "need not be neighbours"),
    (first_only, "from the first word"),
    (same_places, "Only equal places"),
    (characters, "number of characters"),
    (lambda some, text: max(0, copied_right(some, text) - 1), "One too few"),
    (lambda some, text: copied_right(some, text) + 1, "One too many"),
    (lambda some, text: 0, "Always 0"),
    (lambda some, text: 1, "should be"),
    (lambda some, text: some, "should"),
]


@pytest.mark.parametrize(("wrong", "fragment"), COPIES)
def test_mistakes_in_copies(wrong, fragment):
    says(check.longest_copied(wrong), fragment)


def order(n, seed):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()


def dealt(n, B, place, seed):
    return order(n, seed)[place * B : (place + 1) * B]


def with_the_rest(step, n, B, seed):
    epoch, place = divmod(step, math.ceil(n / B))
    return dealt(n, B, place, seed + epoch)


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
    (lambda step, n, B, seed: torch.randperm(n)[:B].tolist(), "two different batches"),
    (on_the_global_generator, "own generator has changed"),
    (lambda step, n, B, seed: [0] * B, "should be"),
    (lambda step, n, B, seed: 0, "should be a list"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "fragment"), BATCHES)
def test_mistakes_in_batches(wrong, fragment):
    says(check.batch_of(wrong), fragment)


def by_matcher(some, text):
    found = SequenceMatcher(None, some, text, autojunk=False).find_longest_match()
    return found.size


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
    assert check.longest_copied(by_matcher).outcome == "right"
    assert check.longest_copied(lambda a, b: longest(a, b, inside)).outcome == "right"
    assert check.batch_of(by_epochs).outcome == "right"
    assert check.batch_of(lambda *given: tuple(batch_right(*given))).outcome == "right"


NAMES = ["windows_of", "perplexity", "scored", "longest_copied", "batch_of"]


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
