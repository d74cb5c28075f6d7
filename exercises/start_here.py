"""The exercises of the chapter "Start here"."""

import torch

from exercises.check import exercise, normal


@exercise(
    inputs=[([2.0, 4.0, 9.0],), ([5.0],), ([3.0, 3.0, 9.0],), ([-1.0, 1.0, -6.0, 4.0],)],
    praise="The mean, also of one number and of negative ones.",
)
def average(numbers):
    """average(numbers): the mean of a list of numbers."""
    return sum(numbers) / len(numbers)


average.mistakes = {
    "This is the sum: divide it by how many numbers there are, `len(numbers)`.": sum,
    "You divide by one too few: divide by `len(numbers)`.": lambda numbers: (
        sum(numbers) / max(len(numbers) - 1, 1)
    ),
    "You divide by one too many: divide by `len(numbers)`.": lambda numbers: (
        sum(numbers) / (len(numbers) + 1)
    ),
    "This is the number in the middle (the median), not the mean.": lambda numbers: sorted(numbers)[
        len(numbers) // 2
    ],
    "You cut off the decimals: divide with `/`.": lambda numbers: sum(numbers) // len(numbers),
}


def mean(x):
    return x.mean(1, keepdim=True)


def spread(x, less=1):
    """The standard deviation of each row, as a column; of one number it is NaN, and no warning."""
    return (x - mean(x)).norm(dim=1, keepdim=True) / (x.shape[1] - less) ** 0.5


@exercise(
    inputs=[(normal(T, C, seed=seed) + 2,) for seed, (T, C) in enumerate([(4, 4), (3, 5), (2, 1)])],
    praise="Every row has the mean 0, on square tables and on others.",
    clash="The row means must be a column, (T, 1): use keepdim=True.",
)
def centre(x):
    """centre(x): (T, C) → (T, C), minus the mean of each row."""
    return x - mean(x)


centre.mistakes = {
    "You subtracted the mean of each *column*: take the mean over dim=1.": lambda x: x - x.mean(0),
    "You subtracted one mean from everything: each row has its own, so use dim=1.": (
        lambda x: x - x.mean(),
        lambda x: x - x[0].mean(),
    ),
    "These are the means themselves: subtract them from x.": (mean, lambda x: x.mean(1)),
    "You subtracted the sum of the row: take the mean.": lambda x: x - x.sum(1, keepdim=True),
    "The sign is reversed: subtract the mean from x.": lambda x: mean(x) - x,
    "You divided by the mean: subtract it.": lambda x: x / mean(x),
    "You also divided by the row's standard deviation. Only subtract the mean.": (
        lambda x: (x - mean(x)) / spread(x),
        lambda x: (x - mean(x)) / spread(x, less=0),
    ),
    "You subtracted the median, or the midpoint of the smallest and the largest. The mean is the "
    "sum divided by the number of entries.": (
        lambda x: x - x.median(1, keepdim=True).values,
        lambda x: x - (x.amax(1, keepdim=True) + x.amin(1, keepdim=True)) / 2,
    ),
    "Divide the sum of a row by C, the number of its entries: not by 2 (as in the example), by C − "
    "1, or by T, the number of rows.": (
        lambda x: x - x.sum(1, keepdim=True) / 2,
        lambda x: x - x.sum(1, keepdim=True) / len(x),
        lambda x: x - x.sum(1, keepdim=True) / max(x.shape[1] - 1, 1),
    ),
    "You took the mean of the first two columns only. Take it over all C of them.": (
        lambda x: x - mean(x[:, :2]),
        lambda x: x - (x[:, :1] + x[:, 1:2]) / 2,
    ),
    "You subtracted the column means, too. Subtract only the row means.": lambda x: (
        x - mean(x) - (x - mean(x)).mean(0)
    ),
    "Your result is transposed. Return it as (T, C), with rows as rows.": lambda x: (x - mean(x)).T,
    "You returned x itself. Subtract the mean of each row.": torch.clone,
    "The row means were broadcast along the columns. No error was raised because x is square. Keep "
    "the dimension with keepdim=True.": lambda x: x - x.mean(1),
}
