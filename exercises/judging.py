"""The exercises on judging a model: what is scored, what is copied, which of two is better."""

from functools import partial
from itertools import combinations, product

from exercises.check import (
    NotYet,
    call,
    checked,
    exercise,
    expect,
    expect_close,
    reported,
    same,
)

# --- what counts ----------------------------------------------------------------------------------


@exercise(
    inputs=[
        (9, 5, 2), (8, 4, 2), (9, 4, 4), (12, 4, 3), (5, 8, 3), (10, 3, 1), (2, 4, 2), (17, 8, 4)
    ],
    praise="Every token but the first is scored, and none twice.",
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


scored.mistakes = {
    "Tokens are scored twice: each window counts all that it predicts. Only what no earlier "
    "window has predicted counts.": scored_by(lambda s, first, last, *_: (s, s + 1, last)),
    "The first window counts in full: no earlier window has predicted its tokens.":
        scored_by(lambda s, first, last, n, T, stride: (s, s + 1 + T - stride, last)),
    "The last windows go beyond the text. The n tokens are numbered from 0, so the last is n − 1.":
        (scored_by(lambda s, first, last, n, T, stride: (s, first, s + T)),
         partial(scored.right, end=0, stop=0), partial(scored.right, end=0)),
    "You begin at token 0, which nothing predicts: the first `first` is 1.":
        scored_by(lambda s, first, last, *_: (s, first if s else 0, last)),
    "Each `first` is one too small: the token before it counts already for the window before "
    "(and token 0 is never predicted).": (
        scored_by(lambda s, first, last, *_: (s, first - 1, last)),
        scored_by(lambda s, first, last, *_: (s, first - 1 if s else 1, last)),
    ),
    "A window that begins at s predicts up to s + T, not s + T − 1: it reads T tokens and has "
    "T targets.": partial(scored.right, by=1),
    "The last window is missing. It need not be full: every token counts.": lambda n, T, stride:
        [part for part in scored.right(n, T, stride) if part[0] + T <= n - 1],
    "You moved the last window back so that it is full. Windows begin at 0, stride, 2 · stride, …":
        scored_by(lambda s, first, last, n, T, stride: (max(0, min(s, n - 1 - T)), first, last)),
    "You went on after token n − 1 had been predicted: windows at the end have nothing left to "
    "score.": lambda n, T, stride: [
        (s, s + 1 + (T - stride if s else 0), min(s + T, n - 1)) for s in range(0, n - 1, stride)],
    "Windows at the end are empty, such as (6, 8, 7) in scored(8, 4, 2). Not every start in the "
    "text has a window: end once token n − 1 is predicted.": (
        lambda n, T, stride: scored_to_no_end(n, T, range(0, n - 1, stride)),
        lambda n, T, stride: scored_to_no_end(n, T, range(0, n, stride))),
    "These are the positions of the inputs. The token predicted at position i is token i + 1.":
        scored_by(lambda s, first, last, *_: (s, first - 1, last - 1)),
    "These are positions inside the window. Give the numbers of the tokens in the text.":
        (scored_by(lambda s, first, last, *_: (s, first - s, last - s)),
         scored_by(lambda s, first, last, *_: (s, first - s - 1, last - s - 1))),
    "`last` counts itself: it is the last token that is scored, not the one after it.":
        scored_by(lambda s, first, last, *_: (s, first, last + 1)),
    "You give the number of tokens that count. Give the number of the last one.":
        scored_by(lambda s, first, last, *_: (s, first, last - first + 1)),
    "Your windows move by T or by one. They should move by `stride`.": (
        lambda n, T, stride: scored.right(n, T, T), lambda n, T, stride: scored.right(n, T, 1)),
    "You took T or the stride from the example. Use those that are given.": (
        lambda n, T, stride: scored.right(n, 4, stride),
        lambda n, T, stride: scored.right(n, T, 2), lambda n, T, stride: scored.right(n, 4, 2)),
    "Give the windows' starts, too: (start, first, last).":
        scored_by(lambda s, first, last, *_: (first, last)),
}  # fmt: skip


# --- what is copied -------------------------------------------------------------------------------

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
    inputs=[(some.split(), text.split(), n) for some, text, n in COPIED],
    praise="Every word in a common run, each counted once.",
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
    "That is the share of the *runs*. Mark the words that are in a run, and count them.":
        lambda some, text, n: len(common(some, text, n)) / (len(some) - n + 1),
    "You always take runs of 2. Take runs of n.":
        lambda some, text, n: copied_share.right(some, text, 2),
    "You look for runs of n + 1 words. Runs of n are enough.":
        lambda some, text, n: copied_share.right(some, text, n + 1),
    "Only the longest run is counted. All words that lie in a run of n count.":
        lambda some, text, n: max(
            (m for m in range(n, len(some) + 1) if common(some, text, m)), default=0) / len(some),
    "You counted words that occur anywhere in `text`. They must be in a run of n neighbours that "
    "`text` has in the same order.":
        lambda some, text, n: sum(word in text for word in some) / len(some),
    "The order in a run is ignored: compare the runs as they are.": (
        marking(lambda run, text, n: sorted(run) in map(sorted, runs_of(text, n))),
        marking(lambda run, text, n: set(run) in map(set, runs_of(text, n))),
    ),
    "Words in overlapping runs count twice or more (the share can exceed 1). Mark positions, in a "
    "set for example, and count each once.": (
        lambda some, text, n: n * len(common(some, text, n)) / len(some),
        lambda some, text, n: min(1, n * len(common(some, text, n)) / len(some)),
    ),
    "You count only one word of each run. Mark all its n words, positions i to i + n − 1.":
        lambda some, text, n: len(common(some, text, n)) / len(some),
    "You checked whether `text` has all of `some`. Check every run of n words.":
        lambda some, text, n: float(some in runs_of(text, len(some))),
    "Parts of words count in your search: *the end* is found inside *the endless*. Compare "
    "lists or tuples of words, not text.":
        marking(lambda run, text, n: " ".join(run) in " ".join(text)),
    "Words are joined without a space: *car pet* is found in *carpet* or in *carp et*. Compare "
    "lists or tuples of words.": (
        marking(lambda run, text, n: "".join(run) in "".join(text)),
        marking(lambda run, text, n: "".join(run) in map("".join, runs_of(text, n)))),
    "You look only where the first word of a run occurs first in `text` (`index`). It may occur "
    "again, with the run.": marking(where_first),
    "You jump past each run that is found. The next run may overlap it: move by one word.":
        jumping,
    "A run that `text` has once may occur in `some` twice: both are copies.": each_once,
    "Runs begin at every word, of `some` and of `text`, not at every n-th.": (
        lambda some, text, n: marking(step=n)(some, text, n),
        marking(lambda run, text, n: run in runs_of(text, n)[::n])),
    "That is the number of words. Divide by the length of `some`.":
        lambda some, text, n: right_share(some, text, n) * len(some),
    "You cut off the decimals: divide with `/`.":
        lambda some, text, n: right_share(some, text, n) // 1,
    "You divided by the length of `text`. It is a share of `some`.":
        lambda some, text, n: right_share(some, text, n) * len(some) / len(text),
    "You divided by the number of different words. Every word of `some` counts.":
        lambda some, text, n: right_share(some, text, n) * len(some) / len(set(some)),
    "That is the share of the words that are *not* copied.":
        lambda some, text, n: 1 - right_share(some, text, n),
    "You computed how much of `text` is in `some`. It is the other way round.":
        lambda some, text, n: right_share(text, some, n),
    "You forgot the last run of `some`, of `text` or of both. It begins at len(…) − n, and the end "
    "of a range does not belong to it.": (
        marking(last=0), marking(lambda run, text, n: run in runs_of(text[:-1], n)),
        marking(lambda run, text, n: run in runs_of(text[:-1], n), last=0)),
    "At the end of the lists your slices are shorter than n, but you compare them, too. The last "
    "run begins at len(…) − n.":
        lambda some, text, n: marking(lambda run, text, _: run in [
            text[i : i + n] for i in range(len(text))], last=n)(some, text, n),
    "You count different words. A word at two positions of `some` counts twice.":
        (lambda some, text, n: len(inside(some, text, n)) / len(some),
         lambda some, text, n: len(inside(some, text, n)) / len(set(some))),
    "You count a word of a common run wherever it occurs in `some`. Mark positions, not words.":
        lambda some, text, n: sum(w in inside(some, text, n) for w in some) / len(some),
    "You changed the words. Compare them as they are, with capitals and punctuation: no `lower`, "
    "no `strip`.": (
        changed(str.lower), changed(lambda word: word.strip(".,")),
        changed(lambda word: word.strip(".,").lower())),
    "Too few runs are found. Is a list compared with a tuple? `[1, 2] == (1, 2)` is False.":
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


# --- which is better ------------------------------------------------------------------------------

COUNTERS = (0.027, 0.019, 0.035)  # three pieces back − two, learning on: the mean, its interval
RIGHT = "two"
VERDICTS = ("three", "two", "cannot tell")


@checked
def counters(answer):
    """counters: the mean difference of two opponents, its interval, and who is better"""
    *found, verdict = reported(
        answer,
        (*COUNTERS, RIGHT),
        "Set counters to four things: the mean difference, the interval's lower and upper end, "
        'and your verdict, (-0.21, -0.33, -0.12, "three").',
    )
    mean, low, high = COUNTERS
    expect(
        not same(found, [-mean, -high, -low], 0.003),
        "The sign is reversed: take three − two, so that below 0 means fewer bits for three.",
    )
    expect(found[1] <= found[2], "The lower end of the interval comes first, then the upper one.")
    right = same(found, COUNTERS, 0.006)  # two decimals, and other draws
    expect(
        right or not same(found[0], mean, 0.004),
        "The mean is right, the interval is not: resample the ten *differences* with `interval`.",
    )
    expect(
        right,
        "These are not the numbers of three pieces back minus `learning`. (`count(3)` and "
        "`read_on(text, counts, 3)`, for each text of `exam`.)",
    )
    expect(verdict in VERDICTS, f"The verdict should be one of {', '.join(VERDICTS)}.")
    expect(verdict != "three", "Fewer bits are better, and three minus two is above 0.")
    expect(verdict == RIGHT, "Does the interval contain 0? If not, these ten articles decide.")
    return "A small difference, but a clear one: the articles agree."


@exercise(
    inputs=[  # quarters or 32nds, and 1, 2, 4 or 8: means are exact, so rounding decides nothing
        ([2.0, 1.5, 2.5, 1.0], [2.25, 2.0, 2.5, 1.25]),
        ([1.0, 2.0, 3.0, 2.0], [2.0, 1.5, 3.5, 2.0]),
        ([2.5, 2.0, 1.75, 3.0], [2.0, 1.75, 1.0, 2.5]),
        ([1.5, 1.75, 2.0, 3.5, 2.5, 1.0, 2.0, 1.5], [1.25, 2.5, 2.25, 4.0, 2.75, 0.75, 2.5, 1.0]),
        ([2.0], [1.0]),
        ([1.0, 2.0], [1.0, 2.0]),
        ([1.0, 2.0, 3.0, 4.0], [1.03125, 2.03125, 3.03125, 4.03125]),
        ([4.0, 1.0, 2.0, 2.5], [1.0, 1.5, 2.25, 3.5]),
    ],
    praise="You tried every way to swap the two models, the true one included.",
)
def by_chance(a, b):
    """by_chance(a, b): the share of swaps that make the mean difference as large or larger."""
    gaps = [x - y for x, y in zip(a, b, strict=True)]
    return share_of(gaps, swaps(len(gaps)))


def swaps(n):
    return list(product((1, -1), repeat=n))


def total(gaps, signs):
    return sum(sign * gap for sign, gap in zip(signs, gaps, strict=True))


def share_of(gaps, tried, as_large=lambda new, true: abs(new) >= abs(true), true=sum):
    return sum(as_large(total(gaps, signs), true(gaps)) for signs in tried) / len(tried)


def swapping(tried=swaps, gap=lambda x, y: x - y, **how):
    """With other swaps, other differences, or another question."""
    return lambda a, b: share_of(
        [gap(*both) for both in zip(a, b, strict=True)], tried(len(a)), **how
    )


def one_at_a_time(n):
    return [[-1 if i == j else 1 for i in range(n)] for j in range(n)]


def all_mixed(a, b):
    """Every number may go to either model, whatever its text."""
    both, true = a + b, abs(sum(a) - sum(b))
    parts = list(combinations(range(len(both)), len(a)))
    return sum(abs(2 * sum(both[i] for i in p) - sum(both)) >= true for p in parts) / len(parts)


by_chance.mistakes = {
    "You count only differences in the direction of the true one. Compare their sizes: `abs`.": (
        swapping(as_large=lambda new, true: new >= true),
        swapping(as_large=lambda new, true: new <= true),
    ),
    "As large as the true one counts, too: `>=`.":
        swapping(as_large=lambda new, true: abs(new) > abs(true)),
    "All 2 to the n ways count: the true one, with nothing swapped, and the one with all swapped, "
    "too.": tuple(
        lambda a, b, out=out: (by_chance.right(a, b) * 2 ** len(a) - 1) / (2 ** len(a) - out)
        for out in (0, 1)),
    "You swap one text at a time. Every set of texts may be swapped: 2 to the n ways.":
        (swapping(one_at_a_time), swapping(lambda n: [[1] * n, *one_at_a_time(n)])),
    "You shuffle all numbers. The two numbers of a text stay together; only which model each "
    "belongs to is swapped.": all_mixed,
    "You compare how many texts are better, not by how much.": (
        swapping(gap=lambda x, y: (x > y) - (x < y)),
        lambda a, b: sum(map(float.__gt__, a, b)) / len(a),
        lambda a, b: sum(map(float.__lt__, a, b)) / len(a)),
    "That is the number of such ways. Return their fraction of all ways.":
        lambda a, b: by_chance.right(a, b) * 2 ** len(a),
    "That is the fraction of ways with a *smaller* difference.":
        (lambda a, b: 1 - by_chance.right(a, b),
         swapping(as_large=lambda new, true: abs(new) <= abs(true))),
    "That is the mean difference. Return the fraction of swaps that give one as large.":
        (lambda a, b: (sum(a) - sum(b)) / len(a), lambda a, b: abs(sum(a) - sum(b)) / len(a)),
    "You compare sums with means: take either for both.":
        (swapping(true=lambda gaps: sum(gaps) / len(gaps)),
         swapping(true=lambda gaps: sum(gaps) * len(gaps))),
    "Your result is always 1. A swap changes the sign of a text's difference: take the size of the "
    "mean, not the mean of the sizes.": lambda a, b: 1.0,
}  # fmt: skip
