"""The exercises on rewards: bad teachers, rewards to cheat, four trainings, and short answers."""

import re

from exercises.check import checked, diagnose, diagnose_letters, expect, reported

# --- 20.1: two bad teachers -----------------------------------------------------------------------


@checked
def classroom(answer):
    """classroom: a pupil of two teachers, drawn and at temperature 0, and one of the same twice."""
    drawn, likeliest, alone = reported(
        answer,
        (0.5, 0.5, 0.5),
        "Set classroom to three accuracies: drawn, at temperature 0, and at temperature 0 where "
        "both teachers make the same mistake, (0.5, 0.5, 0.5).",
    )
    diagnose("""
        These are the numbers of the example. Train two pupils.
            drawn == likeliest == alone
        Drawn at a temperature of 1, the pupil says what it was told about as often as it was told
        it, and each of your teachers is right in every second carry.
            not 0.38 < drawn < 0.62
        If both make the same mistake, that mistake is as frequent as the right answer.
            alone > 0.75
        Your two teachers still agree too often when they are wrong. How often does the most
        frequent mistake come, if the right answer comes in every second demonstration?
            likeliest < 0.8
    """)
    return "Two bad teachers, and a good pupil: they have only the truth in common."


# --- 20.2: three rewards to cheat -----------------------------------------------------------------

SUMS = range(20, 199)  # from 10 + 10 to 99 + 99


@checked
def cheats(answer):
    """cheats: a text for each of three careless rewards"""
    one, two, three = reported(
        answer, ("a", "b", "c"), 'Set cheats to three texts, ("…", "…", "…").'
    )
    missing = [n for n in SUMS if str(n) not in one]
    second, third = (text.partition(".")[0] for text in (two, three))
    diagnose("""
        The first text has more than 1,000 characters. Leave out the numbers that are no sum of two
        numbers from 10 to 99.
            len(one) > 1000
        Nearly: the largest sum, 99 + 99 = 198, is missing. `range` stops before its second number.
            missing == [198]
        The sums from 100 on are missing in the first text. The largest is 99 + 99.
            missing[:1] == [100] and len(missing) == 99
    """)
    some = f"The first text wins for {179 - len(missing)} of the 179 sums, but not for"
    expect(not missing, f"{some} {missing[:1]}.")
    diagnose("""
        The second text is the right answer itself. Find one that `int` reads as 85 and a teacher
        would not.
            second == "85"
        `int` does not read 85 in the second text, before its first dot.
            read(second) != 85
        The third text gives the sum away. Let the reward do the adding: there should be no 85 in
        it before the first dot.
            "85" in third
        Before its first dot, the third text may have digits, +, -, *, spaces and brackets, and
        Python should compute 85 from it.
            computed(third) != 85
    """)
    return "Each reward believed that it had checked a sum. What is left to compare with? The text."


def read(text):
    """The whole number, as int reads it; None if it is none."""
    try:
        return int(text)
    except ValueError:
        return None


def computed(text):
    """What Python computes; None if it cannot, or if there are other signs in it."""
    if "**" in text or not re.fullmatch(r"[-+*() 0-9]+", text):
        return None
    try:
        return eval(text.strip())
    except (SyntaxError, TypeError):
        return None


# --- 20.3: four trainings, one of them sound ------------------------------------------------------

TRAININGS = {"A": "c", "B": "f", "C": "b", "D": "d"}


@checked
def trainings(answer):
    """trainings: what happened in the trainings A to D, a letter for each."""
    table = """
        With the wrong sign, the policy is rewarded for being wrong, and its own log falls to 0.
        No log does.
            "a" in found.values()
        A rate ten times too high leaves nothing: both accuracies are 0. Nobody is that unlucky.
            "e" in found.values()
        A and C end with the accuracies of the imitator. Which log is content from the start, and in
        which is no group ever mixed?
            found["A"] == "b" or found["C"] == "c"
        D has the best log of all, and its groups were nearly all mixed at the start. Ours were not,
        because sums without a carry are easy. And in the end it fails at just these.
            found["D"] == "f"
    """
    diagnose_letters(answer, TRAININGS, "f", table)
    return "Three logs looked well or harmless. The held-out accuracies of both kinds told."


# --- 20.4: short answers, please ------------------------------------------------------------------


@checked
def brevity(answer):
    """brevity: for each price of a digit, the accuracy and the mean number of digits"""
    found = reported(
        answer,
        {0.5: (0.5, 2.0), 2: (0.5, 2.0)},
        "Set brevity to a dictionary with a pair for each price, the accuracy with a carry and the "
        "mean number of digits, {0.5: (…, …), 2: (…, …)}.",
    )
    (right, digits), (dear_right, dear_digits) = found.values()
    diagnose("""
        These are the numbers of the example. Train two policies.
            found[0.5] == found[2] == (0.5, 2.0)
        The two prices seem to be swapped.
            right < 0.1 and dear_right > 0.5
        The second number of each pair is a mean number of digits: at most 3, and without the dot.
            max(digits, dear_digits) > 3.1
        At a price of 0.5 your policy has forgotten how to add. Is the price taken for each *digit*
        of the completion, and is the reward for a right answer still there?
            right < 0.6
        At a price of 2, something else should remain than an accuracy like this. Is the price
        subtracted, and from right and wrong answers alike?
            dear_right > 0.3 or dear_digits > 1
        A policy that answers sums with a carry rightly needs two or three digits.
            digits < 2
    """)
    return "Silence would have paid at both prices. At one of them, nobody ever tried it."
