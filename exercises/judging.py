"""The exercises on judging a model: what went wrong, what is hidden, which of two is better."""

import re
from itertools import combinations, product

from exercises.check import (
    WrongAnswer,
    call,
    checked,
    diagnose,
    diagnose_letters,
    exercise,
    expect,
    normal,
    reported,
    same,
)

# --- four results ---------------------------------------------------------------------------------

CAUSES = {"A": "a", "B": "d", "C": "f", "D": "b"}


@checked
def causes(answer):
    """causes: what happened in the evaluations A to D, a letter for each."""
    table = """
        A model that has never been asked to repeat its input is bad at it: unshifted targets
        cost many times as much as shifted ones. No row is that large.
            "c" in found.values()
        A token has about three characters, so bits per token are about three times as many. No row
        is that large.
            "e" in found.values()
        A is 0.69 times ours in every article, whatever the text. D follows no rule. Which of the
        two reads the same articles as we do?
            found["A"] == "b" or found["D"] == "a"
        C is a little lower than ours in each article. A fault would have to know the articles very
        well: which harmless setting lowers every loss by 0.02?
            found["C"] != "f"
        B is nearly twice ours. What happens to most of the tokens if two windows cover them?
            found["B"] != "d"
    """
    diagnose_letters(answer, CAUSES, "f", table)
    return "The mean alone would have hidden three of them. Ratios by article told."


# --- a leak in disguise ---------------------------------------------------------------------------

TEXTS = (
    "Adult aardvarks have only cheek teeth at the back of the jaw, which fall out and are not "
    "replaced. They have NO teeth in front!",
    "One, two, three, four; five six seven.",
    "one two three four five six seven eight",
    "one two three four five six seven eight nine",
)


@checked
def disguise(answer):
    """disguise(text): at most one word in eight is replaced, and no eight in a row are left."""
    drawn = [" ".join(f"w{abs(n):.6f}"[3:] for n in normal(41, seed=1).tolist())]
    for text in (*TEXTS, *drawn):
        changed = call(answer, text, name="disguise(text)")
        expect(isinstance(changed, str), "disguise should return the text, as one string.")
        old, new = (re.findall(r"\w+", some.lower()) for some in (text, changed))
        expect(
            len(old) == len(new),
            f"A text of {len(old)} words came back with {len(new)}. Replace words one by one, and "
            "leave the others.",
        )
        untouched = [a == b for a, b in zip(old, new, strict=True)]
        left = any(all(untouched[i : i + 8]) for i in range(len(old) - 7))
        if left and changed != text and old == new:
            raise WrongAnswer("Capitals and commas don't count: `words` ignores both.")
        expect(
            not left,
            f"In a text of {len(old)} words, eight in a row are as they were. Of any eight "
            "neighbours one has to change, of the first eight and the last eight as well.",
        )
        expect(
            untouched.count(False) <= len(old) // 8,
            f"{untouched.count(False)} of {len(old)} words were changed. It can be done with "
            f"{len(old) // 8}: let each of them break as many eights as possible.",
        )
    return "One word in eight, and the search is blind. Is the model?"


disguise.judges_code = True


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
        with `longest=3` and with `longest=2`, both with `memory=math.inf`, and subtract.
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
