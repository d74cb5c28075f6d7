"""The exercises on judging a model: what is scored, what is copied, which of two is better."""

from itertools import combinations, product

from exercises.check import (
    WrongAnswer,
    call,
    checked,
    diagnose,
    exercise,
    expect_close,
    reported,
    same,
)

# --- what counts ----------------------------------------------------------------------------------


WINDOWS = [
    (9, 5, 2), (8, 4, 2), (9, 4, 4), (12, 4, 3), (5, 8, 3), (10, 3, 1), (2, 4, 2), (17, 8, 4),
]  # fmt: skip


@exercise(
    inputs=lambda draw: [
        *WINDOWS,
        *((draw.randint(8, 40), T, draw.randint(1, T)) for T in (3, 5, 9)),
    ],
    example=(8, 4, 2),
    on_success="Every token but the first is scored, and none twice.",
    tolerance=0,
)
def scored(n, T, stride):
    """scored(n, T, stride): (start, first, last) of each window of an overlapping evaluation."""
    found, start, done = [], 0, 0
    while done < n - 1:
        last = min(start + T, n - 1)
        found.append((start, done + 1, last))
        start, done = start + stride, last
    return found


scored.slips("""
    Tokens are scored twice: each window counts all that it predicts. Only what no earlier window
    has predicted counts.
        done + 1 → start + 1
    The last windows go beyond the text. The n tokens are numbered from 0, so the last is n − 1.
        done + 1, last → done + 1, start + T
    Each `first` is one too small: the token before it counts already for the window before (and
    token 0 is never predicted).
        done + 1 → done
        done + 1 → done or 1
    A window that begins at s predicts up to s + T, not s + T − 1: it has T tokens and T targets.
        right(n, T - 1, stride)
    The last window is missing. It need not be full: every token counts.
        [w for w in right(n, T, stride) if w[0] + T <= n - 1]
    You went on after token n − 1 had been predicted: windows at the end have nothing left to score.
        [(s, s + 1 + (T - stride) * (s > 0), min(s + T, n - 1)) for s in range(0, n - 1, stride)]
    These are positions inside the window. Give the numbers of the tokens in the text.
        done + 1, last → done + 1 - start, last - start
        done + 1, last → done - start, last - start - 1
    `last` counts itself: it is the last token that is scored, not the one after it.
        done + 1, last → done + 1, last + 1
""")


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
    ("a c x", "a b a c d", 2),
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
    inputs=lambda draw: [
        *((some.split(), text.split(), n) for some, text, n in COPIED),
        *((draw.choices("abcd", k=9), draw.choices("abcd", k=9), n) for n in (1, 2, 3)),
    ],
    example=(["the", "cat", "sat", "on", "the", "mat"], ["a", "cat", "sat", "on", "a", "mat"], 2),
    on_success="Every word in a common run, each counted once.",
)
def copied_fraction(some, text, n):
    """copied_fraction(some, text, n): the fraction of words in runs of n that the text has, too."""
    runs = {tuple(text[i : i + n]) for i in range(len(text) - n + 1)}
    found = set()
    for i in range(len(some) - n + 1):
        if tuple(some[i : i + n]) in runs:
            found |= set(range(i, i + n))
    return len(found) / max(1, len(some))


copied_fraction.slips("""
    That is the fraction of the *runs*. Mark the words that are in a run, and count them.
        set(range(i, i + n)) → {i} ; max(1, len(some)) → (len(some) - n + 1)
    You mark words. Mark positions: the same word may occur twice in `some`, in a run or outside of
    one.
        set(range(i, i + n)) → set(some[i : i + n])
        set(range(i, i + n)) → set(some[i : i + n]) ; len(found) → sum(w in found for w in some)
    You counted words that occur anywhere in `text`. They must be in a run of n neighbours that
    `text` has in the same order.
        sum(word in text for word in some) / len(some)
    You count only one word of each run. Mark all its n words, positions i to i + n − 1.
        set(range(i, i + n)) → {i}
    Words in overlapping runs count twice or more (the fraction can exceed 1). Mark positions, in a
    set for example, and count each once.
        set() → [] ; |= set(range(i, i + n)) → += range(i, i + n)
    Parts of words count in your search: *the end* is found inside *the endless*. Compare lists or
    tuples of words, not text.
        tuple(some[i : i + n]) in runs → " ".join(some[i : i + n]) in " ".join(text)
    You jump past each run that is found. The next run may overlap it: move by one word.
        in runs: → in runs and i not in found:
    You forgot the last run of `some`, of `text` or of both. It begins at len(…) − n, and the end of
    a range does not belong to it.
        len(some) - n + 1 → len(some) - n
        len(some) - n + 1 → len(some) - n ; len(text) - n + 1 → len(text) - n
    Your fraction is 0 where runs are found. Is a list compared with a tuple (`[1, 2] == (1, 2)` is
    False), or divided with `//`?
        0.0
    A list cannot be in a set. Make each run a tuple: tuple(text[i : i + n]).
        tuple(text[i : i + n]) → text[i : i + n]
""")


@copied_fraction.also
def of_short_lists(answer):
    short = ("now", "now", 2), ("a b", "c a b", 3), ("a b c", "a b", 3), ("", "a b", 2), ("", "", 1)
    for a, b, n in short:
        what = f"copied_fraction({a.split()}, {b.split()}, {n})"
        rule = "A list shorter than n gives the fraction 0.0" + (
            "." if a else ", the empty one, too: divide only if there are words."
        )
        try:
            found = call(answer, a.split(), b.split(), n, name=what)
            expect_close(found, 0.0, what)
        except WrongAnswer as error:
            raise WrongAnswer(f"{str(error).rstrip('.')}. {rule}") from None


# --- which is better ------------------------------------------------------------------------------

COUNTERS = (0.027, 0.019, 0.035)  # adaptive counts, three tokens − two: the mean, its interval
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

    def near(*those, by):
        return same(found, those, by)

    diagnose("""
        The sign is reversed: take three − two, so that below 0 means fewer bits for three.
            near(-COUNTERS[0], -COUNTERS[2], -COUNTERS[1], by=0.003)
        The lower end of the interval comes first, then the upper one.
            found[1] > found[2]
        The mean is right, the interval is not: resample the ten *differences* with `interval`.
            not near(*COUNTERS, by=0.006) and near(COUNTERS[0], *found[1:], by=0.004)
        The mean is not that of three tokens of context minus two. Count with `longest=3`, measure
        with `longest=3` and with `longest=2`, both with `adapt=True`, and subtract.
            not near(*COUNTERS, by=0.006)
        The verdict should be one of three, two, cannot tell.
            verdict not in VERDICTS
        Fewer bits are better, and three minus two is above 0.
            verdict == "three"
        Does the interval contain 0? If not, these ten articles decide.
            verdict != RIGHT
    """)
    return "A small difference, but a clear one: the articles agree."


@exercise(
    # Quarters or 32nds, and 1, 2, 4 or 8: means are exact, so rounding decides nothing.
    inputs=lambda draw: [
        ([2.0, 1.5, 2.5, 1.0], [2.25, 2.0, 2.5, 1.25]),
        ([1.0, 2.0, 3.0, 2.0], [2.0, 1.5, 3.5, 2.0]),
        ([2.5, 2.0, 1.75, 3.0], [2.0, 1.75, 1.0, 2.5]),
        ([1.5, 1.75, 2.0, 3.5, 2.5, 1.0, 2.0, 1.5], [1.25, 2.5, 2.25, 4.0, 2.75, 0.75, 2.5, 1.0]),
        ([2.0], [1.0]),
        ([1.0, 2.0], [1.0, 2.0]),
        ([1.0, 2.0, 3.0, 4.0], [1.03125, 2.03125, 3.03125, 4.03125]),
        ([4.0, 1.0, 2.0, 2.5], [1.0, 1.5, 2.25, 3.5]),
        *[tuple([draw.randint(4, 16) / 4 for _ in range(n)] for _ in range(2)) for n in (4, 8, 8)],
    ],
    example=([1.0, 2.0], [2.0, 4.0]),
    on_success="You tried every way to swap the two models, the true one included.",
)
def by_chance(a, b):
    """by_chance(a, b): the fraction of swaps that make the mean difference as large."""
    gaps = [x - y for x, y in zip(a, b, strict=True)]
    swaps = product((1, -1), repeat=len(gaps))
    new = [sum(sign * gap for sign, gap in zip(signs, gaps, strict=True)) for signs in swaps]
    return sum(abs(total) >= abs(sum(gaps)) for total in new) / len(new)


def all_shuffled(a, b):
    """Every number may go to either model, whatever its text."""
    both, true = a + b, abs(sum(a) - sum(b))
    parts = list(combinations(range(len(both)), len(a)))
    return sum(abs(2 * sum(both[i] for i in p) - sum(both)) >= true for p in parts) / len(parts)


by_chance.slips("""
    You count only differences in the direction of the true one. Compare their sizes: `abs`.
        abs(total) >= abs(sum(gaps)) → total >= sum(gaps)
        abs(total) >= abs(sum(gaps)) → total <= sum(gaps)
    As large as the true one counts, too: `>=`.
        >= → >
    All 2 to the n ways count: the true one, with nothing swapped, and the one with all swapped,
    too.
        right(a, b) - 1 / 2 ** len(a)
        (right(a, b) * 2 ** len(a) - 1) / (2 ** len(a) - 1)
    You swap one text at a time. Every set of texts may be swapped: 2 to the n ways.
        for signs in swaps → for signs in swaps if sum(signs) == len(a) - 2
    You shuffle all numbers. The two numbers of a text stay together; only which model each belongs
    to is swapped.
        all_shuffled(a, b)
    That is the mean difference. Return the fraction of swaps that give one as large.
        (sum(a) - sum(b)) / len(a)
        abs(sum(a) - sum(b)) / len(a)
    Your result is always 1. A swap changes the sign of a text's difference: take the size of the
    mean, not the mean of the sizes.
        1.0
""")
