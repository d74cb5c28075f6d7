"""The exercises of chapter 13: windows, perplexity, what is scored, copies, batches by step."""

import math
import random
from functools import partial

import numpy as np
import torch

from exercises.check import NotYet, call, exercise, expect, expect_close

# --- 12.1 -------------------------------------------------------------------------------------


@exercise(
    inputs=[
        ([1, 2, 3, 4, 5, 6, 7, 8], 3, 2),
        ([1, 2, 3, 4, 5, 6], 2, 2),
        ([1, 2, 3, 4, 5, 6, 7], 3, 1),
        ([9, 8, 7, 6, 5, 4, 3, 2, 1], 4, 3),
        ([5, 6, 7, 8, 9], 2, 3),
        ([3, 3, 1, 3, 3, 1, 3, 0, 300], 2, 4),
        ([4, 8, 6], 1, 1),
        ([1, 2, 3], 3, 1),
        ([1, 2, 3, 4], 3, 5),
    ],
    praise="every whole window, and none that is short.",
    tolerance=0,
)
def windows_of(ids, T, stride):
    """windows_of(ids, T, stride): the pairs (x, y) of all whole windows."""
    starts = range(0, len(ids) - T, stride)
    return [(ids[i : i + T], ids[i + 1 : i + T + 1]) for i in starts]


def whole(n, T, stride):
    return range(0, n - T, stride)


def windows_at(starts=whole, shift=1):
    """With other starts, or another way from x to y."""
    return lambda ids, T, stride: [
        (ids[i : i + T], ids[i + shift : i + shift + T]) for i in starts(len(ids), T, stride)
    ]


windows_of.mistakes = {
    "The last y is too short: the window that begins at len(ids) − T has no last target. Begin "
    "no later than len(ids) − T − 1.": windows_at(lambda n, T, stride: range(0, n - T + 1, stride)),
    "You begin windows up to the end of the list; the last ones are cut short. A window needs "
    "T + 1 ids.": windows_at(lambda n, T, stride: range(0, n, stride)),
    "You begin windows up to the last id but one; the last ones are cut short. A window needs "
    "T + 1 ids.": windows_at(lambda n, T, stride: range(0, n - 1, stride)),
    "One window is missing: the last one may begin at len(ids) − T − 1, and the end of a range "
    "does not belong to it.": windows_at(lambda n, T, stride: range(0, n - T - 1, stride)),
    "One window is missing: their number is (len(ids) − T) / stride, rounded *up*, but `//` "
    "rounds down.": windows_at(lambda n, T, stride: range(0, (n - T) // stride * stride, stride)),
    "One window is missing: you end a stride too early. (len(ids) − T − 1) // stride is the number "
    "of the last one, counted from 0.":
        windows_at(lambda n, T, stride: range(0, (n - T - 1) // stride * stride, stride)),
    "The first window begins at 0.": windows_at(lambda n, T, stride: range(stride, n - T, stride)),
    "y equals x. The targets are one id later.": windows_at(shift=0),
    "y begins where x ends. The targets are one id later, not T.": (
        lambda ids, T, stride: windows_at(shift=T)(ids, T, stride),
        lambda ids, T, stride: windows_at(lambda n, T, s: range(0, n - 2 * T + 1, s), T)(
            ids, T, stride),
    ),
    "y is `stride` later than x. The targets are one id later.":
        lambda ids, T, stride: windows_at(shift=stride)(ids, T, stride),
    "y is two ids later than x. The targets are one id later.": windows_at(shift=2),
    "x has T + 1 ids and y is only the last of them? Each of the T places has its target.": (
        lambda ids, T, stride: [
            (ids[i : i + T], [ids[i + T]]) for i in whole(len(ids), T, stride)],
        lambda ids, T, stride: [
            (ids[i : i + T], ids[i + T]) for i in whole(len(ids), T, stride)],
    ),
    "You went on by one, not by `stride`.": windows_at(lambda n, T, stride: range(n - T)),
    "You went on by T, not by `stride`.": windows_at(lambda n, T, stride: range(0, n - T, T)),
    "x and y have changed places.": lambda ids, T, stride: [
        (y, x) for x, y in windows_of.right(ids, T, stride)],
    "These are windows of T + 1 ids. Make x and y of each: all but the last, all but the first.":
        lambda ids, T, stride: [ids[i : i + T + 1] for i in whole(len(ids), T, stride)],
    "x and y are one id too short: a window has T + 1 ids.": lambda ids, T, stride: [
        (x[:-1], y[:-1]) for x, y in windows_of.right(ids, T, stride)],
    "All x come first, then all y. Return one pair (x, y) for each window.":
        lambda ids, T, stride: [
            [*part] for part in zip(*windows_of.right(ids, T, stride), strict=True)],
    "These are the starts. Return the windows themselves.":
        lambda ids, T, stride: list(whole(len(ids), T, stride)),
}  # fmt: skip


# --- 12.2 -------------------------------------------------------------------------------------


@exercise(
    inputs=[
        ([math.log(4), math.log(2)], [2, 2]),
        ([2.0, 2.5, 4.5], [16, 16, 2]),
        ([3.25], [10]),
        ([1.0, 5.0, 3.0, 0.5], [1, 2, 3, 40]),
    ],
    praise="each token counts the same, whatever batch it was in.",
)
def perplexity(losses, counts):
    """perplexity(losses, counts): of a text whose batches have these mean losses and sizes."""
    total = sum(loss * n for loss, n in zip(losses, counts, strict=True))
    return math.exp(total / sum(counts))


def mean(values, counts):
    return sum(value * n for value, n in zip(values, counts, strict=True)) / sum(counts)


perplexity.mistakes = {
    "Every batch counts the same in your mean, the small last one, too. Weight the losses by "
    "`counts`.": lambda losses, counts: math.exp(sum(losses) / len(losses)),
    "That is the mean of the batches' perplexities. First the mean of the losses, weighted by "
    "`counts`, then one exponential.":
        lambda losses, counts: sum(map(math.exp, losses)) / len(losses),
    "You took the mean of the perplexities, weighted. First the mean of the losses, then one "
    "exponential.": lambda losses, counts: mean(map(math.exp, losses), counts),
    "That is the mean loss. The perplexity is e to it.": mean,
    "That is the mean of the batches' losses. Weight them by `counts`, and take e to it.":
        lambda losses, counts: sum(losses) / len(losses),
    "That is 2 to the loss, but the losses are in nats: `math.exp`.":
        (lambda losses, counts: 2 ** mean(losses, counts),
         lambda losses, counts: 2 ** (sum(losses) / len(losses))),
    "You divided by the number of batches, not by the number of tokens.":
        lambda losses, counts: math.exp(mean(losses, counts) * sum(counts) / len(counts)),
    "The mean loss in bits is no perplexity.":
        lambda losses, counts: mean(losses, counts) / math.log(2),
    "You forgot to divide the sum of the losses.":
        (lambda losses, counts: math.exp(sum(losses)),
         lambda losses, counts: math.exp(mean(losses, counts) * sum(counts))),
    "Each loss is a mean already. You divided by its batch's tokens instead of multiplying.":
        lambda losses, counts: math.exp(
            sum(loss / n for loss, n in zip(losses, counts, strict=True)) / sum(counts)),
    "You divided by the tokens, but did not multiply by them: each loss is a mean.":
        lambda losses, counts: math.exp(sum(losses) / sum(counts)),
    "The sign is wrong: a perplexity is 1 or more.":
        lambda losses, counts: math.exp(-mean(losses, counts)),
    "You weighted all batches by the first count. Each loss belongs to its own.":
        lambda losses, counts: math.exp(sum(losses) * counts[0] / sum(counts)),
    "That is the perplexity of the last batch alone.":
        lambda losses, counts: math.exp(losses[-1]),
    "That is the perplexity of the first batch alone.":
        lambda losses, counts: math.exp(losses[0]),
    "That is the logarithm. The perplexity is e to the mean loss.":
        lambda losses, counts: math.log(mean(losses, counts)),
}  # fmt: skip
TOO_LONG = (
    "Right for short texts, but for 10 batches of 2,000 tokens at 5 nats a power or product leaves "
    "the range of a float. Add the losses first, divide, and take one exponential, at the end."
)


@perplexity.then
def of_a_long_text(answer):
    try:
        found = call(answer, [5.0] * 10, [2000] * 10, name="perplexity")
    except NotYet as error:  # shorter texts raise nothing
        raise NotYet(f"{TOO_LONG} ({error})") from None
    expect(0 < float(found) < math.inf, TOO_LONG)
    expect_close(found, math.exp(5), "perplexity([5.0] * 10, [2000] * 10)")


# --- 12.3 -------------------------------------------------------------------------------------


@exercise(
    inputs=[
        (9, 5, 2), (8, 4, 2), (9, 4, 4), (12, 4, 3), (5, 8, 3), (10, 3, 1), (2, 4, 2), (17, 8, 4)
    ],
    praise="every token but the first is scored, and none twice.",
    tolerance=0,
)  # fmt: skip
def scored(n, T, stride, by=0, end=1, stop=1):
    """scored(n, T, stride): (start, first, last) of each window of an overlapping evaluation."""
    found, start, done = [], 0, 0
    while done < n - stop and len(found) < 4 * n:  # a mistake, `by` tokens early, might not end
        last = min(start + T - by, n - end)
        found.append((start, done + 1, last))
        start, done = start + stride, last
    return found


def scored_by(part):
    """Each window by itself: `part` makes of it what is returned."""
    return lambda n, T, stride: [
        part(s, first, last, n, T, stride) for s, first, last in scored.right(n, T, stride)
    ]


def scored_to_no_end(n, T, starts):
    lasts = [min(s + T, n - 1) for s in starts]
    return [(s, done + 1, last) for s, done, last in zip(starts, [0, *lasts], lasts, strict=False)]


EMPTY = "Windows at the end are empty, such as (6, 8, 7) in scored(8, 4, 2). Not every start below "
scored.mistakes = {
    "Tokens are scored twice: each window counts all that it predicts. Only what no earlier "
    "window has predicted counts.": scored_by(lambda s, first, last, *_: (s, s + 1, last)),
    "The first window counts whole: nobody has predicted its first tokens.":
        scored_by(lambda s, first, last, n, T, stride: (s, s + 1 + T - stride, last)),
    "The last windows go beyond the text: the last token is n − 1.":
        scored_by(lambda s, first, last, n, T, stride: (s, first, s + T)),
    "Your text ends with token n. The n tokens are numbered from 0, so the last is n − 1, both "
    "for `last` and for the end of the loop.": partial(scored.right, end=0, stop=0),
    "The last window is cut at n: `last` is at most n − 1, the number of the last token.":
        partial(scored.right, end=0),
    "You begin at token 0, which nothing predicts: the first `first` is 1.":
        scored_by(lambda s, first, last, *_: (s, first if s else 0, last)),
    "Each `first` is one too small: the token before it counts already for the window before "
    "(and token 0 is never predicted).": (
        scored_by(lambda s, first, last, *_: (s, first - 1, last)),
        scored_by(lambda s, first, last, *_: (s, first - 1 if s else 1, last)),
    ),
    "A window that begins at s predicts up to s + T, not s + T − 1: it reads T tokens and has "
    "T targets.": partial(scored.right, by=1),
    "You left out the last window because it is not full. Every token counts.": lambda n, T, stride:
        [part for part in scored.right(n, T, stride) if part[0] + T <= n - 1],
    "You moved the last window back so that it is full. Windows begin at 0, stride, 2 · stride, …":
        scored_by(lambda s, first, last, n, T, stride: (max(0, min(s, n - 1 - T)), first, last)),
    "You went on after token n − 1 had been predicted: windows at the end have nothing left to "
    "score.": lambda n, T, stride: [
        (s, s + 1 + (T - stride if s else 0), min(s + T, n - 1)) for s in range(0, n - 1, stride)],
    EMPTY + "n − 1 has a window: end once token n − 1 is predicted.":
        lambda n, T, stride: scored_to_no_end(n, T, range(0, n - 1, stride)),
    EMPTY + "n has a window: end once token n − 1 is predicted.":
        lambda n, T, stride: scored_to_no_end(n, T, range(0, n, stride)),
    "These are the places of the inputs. The token predicted at place i is token i + 1.":
        scored_by(lambda s, first, last, *_: (s, first - 1, last - 1)),
    "These are places inside the window. Give the numbers of the tokens in the text.":
        (scored_by(lambda s, first, last, *_: (s, first - s, last - s)),
         scored_by(lambda s, first, last, *_: (s, first - s - 1, last - s - 1))),
    "`last` counts itself: it is the last token that is scored, not the one after it.":
        scored_by(lambda s, first, last, *_: (s, first, last + 1)),
    "You give how many tokens count. Asked is the number of the last one.":
        scored_by(lambda s, first, last, *_: (s, first, last - first + 1)),
    "Your windows go on by T, without overlap. They go on by `stride`.":
        lambda n, T, stride: scored.right(n, T, T),
    "Your windows go on by one. They go on by `stride`.":
        lambda n, T, stride: scored.right(n, T, 1),
    "Give the windows' starts, too: (start, first, last).":
        scored_by(lambda s, first, last, *_: (first, last)),
}  # fmt: skip


# --- 12.4 -------------------------------------------------------------------------------------

COPIED = (
    ("one two three four two two three four", "two three four three four five six", 2),
    ("a b x a b y a", "z a b z", 2),
    ("one two three four five six", "five six one two seven three four five", 3),
    ("the cat sat on the mat", "a cat sat on a mat", 2),
    ("b c d", "a b c d e", 3),
    ("a b c d", "a b d c x", 3),
    ("x y z", "p q r", 2),
    ("the end is near", "the endless end is there", 2),
    ("my car pet ran", "my carpet or carp et ran", 2),
    ("a car pet", "no carp et", 2),
    ("on on on", "on on the on", 2),
    ("a c", "a b a c d", 2),
    ("c b a d", "a b c d", 2),
    ("x x b c", "b c x", 2),
    ("b c x", "a b c", 2),
    ("x b c", "a b c", 2),
    ("x y c", "a b c", 2),
    ("a b a", "b c", 1),
    ("The Cat sat on", "the cat Sat on", 2),
    ("on the mat, he said", "on the mat he said.", 2),
    ("a b c a b x y", "b c d a b e x y", 2),
    ("a b c d a b c d e", "q a b c d e q", 4),
)


@exercise(
    inputs=[
        *((some.split(), text.split(), n) for some, text, n in COPIED),
        (["so", "on\n"], ["so", "on", " so", "on\n"], 2),
    ],
    praise="every word in a common run, each counted once.",
)
def copied_share(some, text, n):
    """copied_share(some, text, n): the share of the words in runs of n that the text has, too."""
    runs = {tuple(text[i : i + n]) for i in range(len(text) - n + 1)}
    found = set()
    for i in range(len(some) - n + 1):
        if tuple(some[i : i + n]) in runs:
            found |= set(range(i, i + n))
    return len(found) / max(1, len(some))


def runs_of(words, n):
    return [words[i : i + n] for i in range(len(words) - n + 1)]


def marking(stands=lambda run, text, n: run in runs_of(text, n), last=1, step=1):
    """Marks the words of each run of which it is true that it `stands` in the text."""

    def share(some, text, n):
        starts = range(0, len(some) - n + last, step)
        found = (range(i, i + n) for i in starts if stands(some[i : i + n], text, n))
        return len({i for run in found for i in run if i < len(some)}) / len(some)

    return share


def changed(word):
    """Looks at changed words."""
    return lambda some, text, n: copied_share.right([*map(word, some)], [*map(word, text)], n)


def common(some, text, n):
    return [run for run in runs_of(some, n) if run in runs_of(text, n)]


def inside(some, text, n):
    return {word for run in common(some, text, n) for word in run}


def where_first(run, text, n):
    return run[0] in text and text[(i := text.index(run[0])) : i + n] == run


def jumping(some, text, n):
    i = words = 0
    while i + n <= len(some):
        found = some[i : i + n] in runs_of(text, n)
        i, words = i + (n if found else 1), words + n * found
    return words / len(some)


def each_once(some, text, n):
    """A run of the text is used up when it is found."""
    left, places = runs_of(text, n), set()
    for i, run in enumerate(runs_of(some, n)):
        if run in left:
            left.remove(run)
            places |= {*range(i, i + n)}
    return len(places) / len(some)


def right_share(some, text, n):
    return copied_share.right(some, text, n)


copied_share.mistakes = {
    "That is the share of the *runs*. Mark the words that lie in a run, and count them.":
        lambda some, text, n: len(common(some, text, n)) / (len(some) - n + 1),
    "You always take runs of 2. Take runs of n.":
        lambda some, text, n: copied_share.right(some, text, 2),
    "You counted words that occur anywhere in `text`. They must stand in a run of n neighbours "
    "that `text` has in the same order.":
        lambda some, text, n: sum(word in text for word in some) / len(some),
    "The order in a run is ignored: compare the runs as they stand.": (
        marking(lambda run, text, n: sorted(run) in map(sorted, runs_of(text, n))),
        marking(lambda run, text, n: set(run) in map(set, runs_of(text, n))),
    ),
    "Words in overlapping runs count twice or more (the share can exceed 1). Mark places, in a "
    "set for example, and count each once.": (
        lambda some, text, n: n * len(common(some, text, n)) / len(some),
        lambda some, text, n: min(1, n * len(common(some, text, n)) / len(some)),
    ),
    "Only the first word of each run is counted. All its n words lie in it: mark the places i "
    "to i + n − 1.": lambda some, text, n: len(common(some, text, n)) / len(some),
    "You asked whether all of `some` stands in `text`. Ask it of every run of n words.":
        lambda some, text, n: float(some in runs_of(text, len(some))),
    "Parts of words count in your search: *the end* is found inside *the endless*. Compare "
    "lists or tuples of words, not text.":
        marking(lambda run, text, n: " ".join(run) in " ".join(text)),
    "Words are joined without a space: *car pet* is found inside *carpet*. Compare lists or "
    "tuples of words.": marking(lambda run, text, n: "".join(run) in "".join(text)),
    "Runs are joined without a space: *car pet* and *carp et* become the same. Compare lists "
    "or tuples of words.":
        marking(lambda run, text, n: "".join(run) in map("".join, runs_of(text, n))),
    "You look only where the first word of a run occurs first in `text` (`index`). It may "
    "occur again, and the run stand there.": marking(where_first),
    "You jump behind each run that is found. The next run may overlap it: go on by one word.":
        jumping,
    "A run that `text` has once may stand in `some` twice: both are copies.": each_once,
    "Runs of `some` begin at every word, not at every n-th.":
        lambda some, text, n: marking(step=n)(some, text, n),
    "Runs of `text` begin at every word, not at every n-th.":
        marking(lambda run, text, n: run in runs_of(text, n)[::n]),
    "That is the number of words. Divide by the length of `some`.":
        lambda some, text, n: right_share(some, text, n) * len(some),
    "You divided by the length of `text`. It is a share of `some`.":
        lambda some, text, n: right_share(some, text, n) * len(some) / len(text),
    "You divided by the number of different words. Each place of `some` counts.":
        lambda some, text, n: right_share(some, text, n) * len(some) / len(set(some)),
    "That is the share of the words that are *not* copied.":
        lambda some, text, n: 1 - right_share(some, text, n),
    "You asked how much of `text` stands in `some`. Ask it the other way round.":
        lambda some, text, n: right_share(text, some, n),
    "The last run of `some` is forgotten: it begins at len(some) − n, and the end of a range "
    "does not belong to it.": marking(last=0),
    "The last run of `text` is forgotten: it begins at len(text) − n, and the end of a range "
    "does not belong to it.": marking(lambda run, text, n: run in runs_of(text[:-1], n)),
    "The last run of both lists is forgotten: it begins at len(…) − n, and the end of a range "
    "does not belong to it.": marking(lambda run, text, n: run in runs_of(text[:-1], n), last=0),
    "At the end of the lists your slices are shorter than n, and are compared, too. The last "
    "run begins at len(…) − n.":
        lambda some, text, n: marking(lambda run, text, _: run in [
            text[i : i + n] for i in range(len(text))], last=n)(some, text, n),
    "Different words are counted. A word that stands in two places of `some` counts twice.":
        lambda some, text, n: len(inside(some, text, n)) / len(some),
    "A word of a common run is counted wherever it stands in `some`. Mark places, not words.":
        lambda some, text, n: sum(w in inside(some, text, n) for w in some) / len(some),
    "Capitals are no matter of taste here: *The* and *the* are two words. Leave out `lower()`.":
        changed(str.lower),
    "Words are compared as they stand, with all their signs. Leave out `strip()`.":
        (changed(str.strip), changed(lambda word: word.strip(".,\n"))),
    "Words are compared as they stand: leave out `strip()` and `lower()`.":
        changed(lambda word: word.strip(".,\n").lower()),
    "No run is found anywhere. Is a list compared with a tuple? `[1, 2] == (1, 2)` is False.":
        lambda some, text, n: 0.0,
    "A list cannot be in a set. Make each run a tuple: tuple(text[i : i + n]).":
        lambda some, text, n: {text[i : i + n] for i in range(len(text) - n + 1)},
}  # fmt: skip


@copied_share.then
def of_short_lists(answer):
    for a, b, n in (
        ("now", "now", 2), ("a b", "c a b", 3), ("a b c", "a b", 3), ("", "a b", 2), ("", "", 1)
    ):  # fmt: skip
        what = f"copied_share({a.split()}, {b.split()}, {n})"
        rule = "A list shorter than n has the share 0.0" + (
            "." if a else ", the empty one, too: divide only if there are words."
        )
        try:
            found = call(answer, a.split(), b.split(), n, name=what)
            expect_close(found, 0.0, what)
        except NotYet as error:
            raise NotYet(f"{str(error).rstrip('.')}. {rule}") from None


# --- 12.5 -------------------------------------------------------------------------------------


@exercise(
    # Some steps reach n, and not every next one is later.
    inputs=[
        (22, 9, 2, 2), *((step, 10, 3, 7) for step in (3, 0, 1, 2, 8, 13, 25, 4)),
        (5, 12, 4, 0), (11, 12, 4, 1), (4, 5, 5, 3), (10, 9, 2, 2),
    ],
    praise="the same batch whenever you ask, so that resuming needs the step alone.",
    tolerance=0,
)  # fmt: skip
def batch_of(step, n, B, seed):
    """batch_of(step, n, B, seed): the windows that a step reads, as a function of the step."""
    epoch, place = divmod(step, n // B)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch))
    return order[place * B : (place + 1) * B].tolist()


def shuffled(n, seed):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()


def dealt(
    epoch=lambda step, n, B: step // (n // B),
    place=lambda step, n, B: step % (n // B),
    order=lambda n, seed, epoch: shuffled(n, seed + epoch),
):
    """With another epoch, place, or order."""

    def batch(step, n, B, seed):
        begin = place(step, n, B) * B
        return order(n, seed, epoch(step, n, B))[begin : begin + B]

    return batch


def with_one_generator(n, seed, epoch):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randperm(n, generator=generator) for _ in range(epoch + 1)][epoch].tolist()


def by_random(n, seed, epoch):
    order = list(range(n))
    random.Random(seed + epoch).shuffle(order)
    return order


def from_place(take):
    """Takes something else out of the right order."""
    return lambda step, n, B, seed: take(
        shuffled(n, seed + step // (n // B)), step % (n // B), n, B
    )


batch_of.mistakes = {
    "Every epoch has the same order: seed the generator with `seed + epoch`.":
        dealt(order=lambda n, seed, epoch: shuffled(n, seed)),
    "A new order for every step: then windows come twice in an epoch. Seed with `seed + epoch` "
    "and deal the order out.": (
        lambda step, n, B, seed: shuffled(n, seed + step)[:B],
        dealt(epoch=lambda step, n, B: step),
    ),
    "You always deal from the front: every step of an epoch reads the same batch.":
        from_place(lambda order, place, n, B: order[:B]),
    "What is left over at the end of an epoch is dropped: an epoch has `n // B` batches.":
        dealt(lambda step, n, B: step // -(-n // B), lambda step, n, B: step % -(-n // B)),
    "An epoch has `n // B` steps, not n: `step // n` counts windows as if they were batches.": (
        dealt(epoch=lambda step, n, B: step // n),
        dealt(lambda step, n, B: step // n, lambda step, n, B: step % n),
        lambda step, n, B, seed: shuffled(n, seed + step // n)[step * B % n : step * B % n + B],
    ),
    "An epoch has `n // B` steps, not B.":
        (dealt(epoch=lambda step, n, B: step // B),
         dealt(lambda step, n, B: step // B, lambda step, n, B: step % B)),
    "The steps are counted from 0: the first batch is that of step 0.":
        lambda step, n, B, seed: batch_of.right(step - 1, n, B, seed),
    "Places are counted without dropping the rest (`step * B` against n). An epoch has "
    "`n // B` batches: `divmod(step, n // B)`.": lambda step, n, B, seed: shuffled(
        n, seed + step * B // n)[step * B % n : step * B % n + B],
    "The rest of an epoch is filled up with windows of the next. It is dropped: an epoch has "
    "`n // B` whole batches.": lambda step, n, B, seed: [
        window for epoch in range(step // (n // B) + 2) for window in shuffled(n, seed + epoch)
    ][step * B : (step + 1) * B],
    "The epoch is `step // (n // B)`, not `step * B // n`: the rest of an epoch is dropped.":
        dealt(epoch=lambda step, n, B: step * B // n),
    "One generator, seeded once, goes on from epoch to epoch: an order then depends on those "
    "before it. Seed a new one with `seed + epoch`.": dealt(order=with_one_generator),
    "The place goes on after the first epoch: it begins again at 0 with each.": (
        dealt(lambda step, n, B: 0, lambda step, n, B: step),
        dealt(place=lambda step, n, B: step),
    ),
    "The epoch is counted from 0: the first seed is `seed` itself.":
        dealt(order=lambda n, seed, epoch: shuffled(n, seed + epoch + 1)),
    "Nothing is shuffled.": dealt(order=lambda n, seed, epoch: list(range(n))),
    "You took every `n // B`-th window: deal B neighbours.":
        from_place(lambda order, place, n, B: order[place :: n // B][:B]),
    "Neighbouring batches overlap: batch number `place` begins at place · B.":
        from_place(lambda order, place, n, B: order[place : place + B]),
    "The last batches come first: deal the order out from the front.":
        from_place(lambda order, place, n, B: order[(k := n // B - 1 - place) * B : (k + 1) * B]),
    "The batch is sorted. Its windows come in the order in which they are dealt.":
        from_place(lambda order, place, n, B: sorted(order[place * B : (place + 1) * B])),
    "The batches are shuffled, not the windows: neighbours would always come together.":
        lambda step, n, B, seed: [
            shuffled(n // B, seed + step // (n // B))[step % (n // B)] * B + i for i in range(B)],
    "The seed is not used.": dealt(order=lambda n, seed, epoch: shuffled(n, epoch)),
    "The seed is multiplied by the epoch. Add them: `seed + epoch`.":
        dealt(order=lambda n, seed, epoch: shuffled(n, seed * epoch)),
    "Windows are drawn here: some come twice, others never. Deal out a `torch.randperm`.":
        lambda step, n, B, seed: torch.randint(n, (B,), generator=torch.Generator().manual_seed(
            seed + step // (n // B))).tolist(),
    "A good order, but not the one asked for: `torch.randperm(n, generator=…)`, with a "
    "`torch.Generator()`.": (
        dealt(order=by_random),
        dealt(order=lambda n, seed, epoch: np.random.default_rng(seed + epoch).permutation(n)),
        dealt(order=lambda n, seed, epoch: np.random.RandomState(seed + epoch).permutation(n)),
    ),
}  # fmt: skip


@batch_of.then
def leaves_others_draws_alone(answer):
    before = torch.get_rng_state()
    call(answer, 0, 10, 3, 7, name="batch_of")
    expect(
        torch.equal(before, torch.get_rng_state()),
        "torch's own generator has changed: whatever else draws from it (dropout) would notice. "
        "Seed a `torch.Generator()` of your own.",
    )
