"""Checks of chapter 00, start here."""

from typing import Any

from exercises.check import call, checked, expect_close, normal


@checked
def average(answer: Any) -> str:
    """average(numbers): the mean of a list of numbers."""
    for numbers in ([2.0, 4.0, 9.0], [5.0], [3.0, 3.0, 9.0], [-1.0, 1.0, -6.0, 4.0]):
        total = sum(numbers)
        mistakes = {
            "This is the sum: divide it by how many numbers there are, `len(numbers)`.": total,
            "You divide by one too few: divide by `len(numbers)`.": (
                total / max(len(numbers) - 1, 1)
            ),
            "This is the number in the middle (the median), not the mean.": (
                sorted(numbers)[len(numbers) // 2]
            ),
        }
        got = call(answer, numbers, name="average")
        expect_close(got, total / len(numbers), f"average({numbers})", mistakes=mistakes)
    return "The mean, also of one number and of negative ones."


@checked
def centre(answer: Any) -> str:
    """centre(x): (T, C) → (T, C), minus the mean of each row."""
    for T, C, seed in ((4, 4, 1), (3, 5, 2), (2, 1, 3)):
        x = normal(T, C, seed=seed) + 2
        means = x.mean(1, keepdim=True)
        mistakes = {
            "You subtracted the mean of each *column*: take the mean over dim=1.": x - x.mean(0),
            "You subtracted one mean from everything: each row has its own, so use dim=1.": (
                x - x.mean()
            ),
            "These are the means themselves: subtract them from x.": means,
            "You subtracted the sum of the row: take the mean.": x - x.sum(1, keepdim=True),
            "The sign is the other way round: x minus the mean, please.": means - x,
        }
        if T == C:
            mistakes[
                "The means of the rows were laid along the columns: x is square here, so "
                "broadcasting found nothing wrong. Keep the dimension with keepdim=True."
            ] = x - x.mean(1)
        expect_close(call(answer, x, name="centre"), x - means, "centre(x)", mistakes=mistakes)
    return "Every row has the mean 0, on square tables and on others."
