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
    clash="The means of the rows need to be a column, (T, 1): keepdim=True.",
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
    "The sign is the other way round: x minus the mean, please.": lambda x: mean(x) - x,
    "You divided by the mean: subtract it.": lambda x: x / mean(x),
    "You divided by the spread of the row, too: only subtract the mean.": (
        lambda x: (x - mean(x)) / spread(x),
        lambda x: (x - mean(x)) / spread(x, less=0),
    ),
    "You subtracted another middle (the median, or halfway between the smallest and the largest): "
    "the mean is the sum, divided by how many there are.": (
        lambda x: x - x.median(1, keepdim=True).values,
        lambda x: x - (x.amax(1, keepdim=True) + x.amin(1, keepdim=True)) / 2,
    ),
    "The mean of a row is its sum divided by C, by how many numbers it has: not by 2 (as in "
    "the example), by C − 1, or by T, the number of rows.": (
        lambda x: x - x.sum(1, keepdim=True) / 2,
        lambda x: x - x.sum(1, keepdim=True) / len(x),
        lambda x: x - x.sum(1, keepdim=True) / max(x.shape[1] - 1, 1),
        lambda x: x - mean(x[:, :2]),
    ),
    "You took off the means of the columns, too: only those of the rows.": lambda x: (
        x - mean(x) - (x - mean(x)).mean(0)
    ),
    "The table is on its side: give it back as (T, C), rows as rows.": lambda x: (x - mean(x)).T,
    "You gave back x itself: subtract the mean of each row.": torch.clone,
    "The means of the rows were laid along the columns: x is square here, so "
    "broadcasting found nothing wrong. Keep the dimension with keepdim=True.": lambda x: (
        x - x.mean(1)
    ),
}
