"""The exercises of the chapter "Start here"."""

import torch

from exercises.check import exercise, normal


@exercise(
    inputs=lambda draw: [
        *(([2.0, 4.0, 9.0],), ([5.0],), ([3.0, 3.0, 9.0],), ([-1.0, 1.0, -6.0, 4.0],)),
        *(([draw.randint(-90, 90) / 10 for _ in range(n)],) for n in (3, 1, 6)),
    ],
    on_success="The mean, also of one number and of negative ones.",
)
def average(numbers):
    """average(numbers): the mean of a list of numbers."""
    return sum(numbers) / len(numbers)


average.slips("""
    This is the sum: divide it by how many numbers there are, `len(numbers)`.
        / len(numbers) →
    You divide by one too few: divide by `len(numbers)`.
        len(numbers) → max(len(numbers) - 1, 1)
    This is the number in the middle (the median), not the mean.
        sorted(numbers)[len(numbers) // 2]
    You cut off the decimals: divide with `/`.
        / → //
""")


@exercise(
    inputs=lambda draw: [
        (normal(T, C, seed=seed) + 2,) for seed, (T, C) in enumerate([(4, 4), (3, 5), (2, 1)])
    ],
    example=(torch.tensor([[1.0, 3.0], [10.0, 20.0]]),),
    on_success="Every row has the mean 0, on square tables and on others.",
    on_shape_error="The row means must be a column, (T, 1): use keepdim=True.",
)
def centre(x):
    """centre(x): (T, C) → (T, C), minus the mean of each row."""
    return x - x.mean(1, keepdim=True)


centre.slips("""
    You subtracted the mean of each *column*: take the mean over dim=1.
        1, keepdim=True → 0
    You subtracted one mean from everything: each row has its own, so use dim=1.
        1, keepdim=True →
    The row means were broadcast along the columns. No error was raised because x is square. Keep
    the dimension with keepdim=True.
        , keepdim=True →
    These are the means themselves: subtract them from x.
        x - x.mean → x.mean
        x.mean(1)
    You subtracted the sum of the row: take the mean.
        x.mean → x.sum
    The sign is reversed: subtract the mean from x.
        -right(x)
    You also divided by the row's standard deviation. Only subtract the mean.
        right(x) / x.std(1, keepdim=True, correction=0)
    Your result is transposed. Return it as (T, C), with rows as rows.
        right(x).T
""")
