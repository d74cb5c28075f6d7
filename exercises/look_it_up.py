"""The exercise of the reference "Look it up"."""

import torch

from exercises.check import exercise, normal


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
