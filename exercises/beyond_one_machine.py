"""The exercises on many machines: a bill, four twins, unequal parts, a divided layer, a size."""

import torch

from exercises.check import (
    checked,
    diagnose,
    diagnose_letters,
    exercise,
    normal,
    reported,
)

# --- the bill of a run ----------------------------------------------------------------------------

PEAK = 989e12
WORK = 6 * 70e9 * 1.4e12  # FLOPs that the MFU counts
BILL = {
    "days": WORK * (22 / 18) / (1000 * 400e12) / 86_400,
    "MFU": 400e12 * (18 / 22) / PEAK,
    "Llama": 6 * 70e9 * 15e12 / (6.4e6 * 3600 * PEAK),
}


@checked
def bill(answer):
    """bill: the days and the MFU of the plan, and the MFU of Llama 3 70B"""
    found = reported(
        answer, BILL, 'Set bill to three numbers, {"days": 17, "MFU": 0.4, "Llama": 0.4}.'
    )
    days, mfu, llama = (found[key] for key in BILL)

    def near(number, wanted):
        return abs(number - wanted) < 0.015 * wanted

    diagnose("""
        Give an MFU as a fraction of 1: 0.4, not 40.
            max(mfu, llama) > 2
        These days are right for 6 FLOPs per parameter and token. How many does a GPU execute that
        computes the activations again?
            near(days, BILL["days"] * 18 / 22)
        The days are not right: how many FLOPs are executed, and how many per second by all GPUs?
            not near(days, BILL["days"])
        That is the part of the peak at which the GPUs work, repeated work included. The MFU counts
        6 FLOPs per parameter and token, however many were executed.
            near(mfu, 400e12 / PEAK)
        The MFU is a fraction of the peak, 989 · 10¹² FLOPs per second, not of 400 · 10¹².
            near(mfu, 18 / 22) or near(llama, BILL["Llama"] * PEAK / 400e12)
        The MFU of the plan is not right: 6 FLOPs for each parameter and token, divided by what all
        GPUs could do at their peak in these days.
            not near(mfu, BILL["MFU"])
        The MFU of Llama is not right: 6 · 70 · 10⁹ · 15 · 10¹², divided by what all GPUs together
        could do at their peak in 6.4 million hours of 3,600 seconds.
            abs(llama - BILL["Llama"]) > 0.02 * BILL["Llama"]
    """)
    return "Two bills, one of them paid. The card's hours include what we can't see."


# --- four twins -----------------------------------------------------------------------------------


@checked
def twins(answer):
    """twins: what happened in the runs A to D, a letter for each"""
    table = """
        The losses of A are those of the one process, in both: both have seen all of its rows.
            found["A"] != "a"
        B and C end apart, so no amount of averaging has kept them together. Which faults can do
        that, and which of them shows before the first step?
            not {found["B"], found["C"]} <= {"b", "c"}
        Look at step 1, before any gradient could be averaged. With the same initial weights, the
        mean of the two losses is the loss of the one process. Where is it not?
            found["B"] == "c" and found["C"] == "b"
        In D the weights stay together to the last digit, so the gradients are averaged and the
        beginnings alike. But the mean of the losses at step 1 is not the one process's.
            found["D"] != "d"
    """
    diagnose_letters(answer, {"A": "a", "B": "b", "C": "c", "D": "d"}, "f", table)
    return (
        "Only D is sound: other texts, equally good. And a sum in place of the mean would have "
        "changed nothing here, since AdamW divides each step by the size of its gradients."
    )


# --- unequal parts --------------------------------------------------------------------------------


def part(rows, T, total, n, seed):
    return normal(rows, T, seed=seed).abs(), normal(rows, T, seed=seed + 1) > -0.5, total, n


@exercise(
    inputs=lambda draw: [
        (torch.tensor([[2.0, 5.0, 1.0]]), torch.tensor([[True, False, True]]), 12, 4),
        part(3, 4, 40, 2, 0),
        part(2, 5, 9, 1, 10),
        part(1, 3, 300, 8, 20),
        part(4, 2, 20, 3, 30),
    ],
    on_success="Now the mean of the processes is the mean over all target tokens.",
    backward=True,
)
def local_loss(nll, kept, total, n):
    """local_loss(nll, kept, total, n): a loss whose mean over n processes is that of all tokens."""
    return n * (nll * kept).sum() / total


local_loss.slips("""
    That is this process's own mean: among the processes, a token of a short part counts more.
        (nll * kept).sum() / kept.sum()
    The processes will divide by n when they average: multiply by n first.
        n * →
    They divide by n once more, so this is too small by a factor of n squared.
        n * (nll * kept).sum() / total → (nll * kept).sum() / (n * total)
    The padding counts: only the tokens that `kept` marks have a target.
        nll * kept → nll
    Divide by the target tokens of all processes, `total`.
        / total →
""")


# --- a feed-forward network in pieces -------------------------------------------------------------


def layer(B, C, hidden, n, seed):
    shapes = (B, C), (hidden, C), (C, hidden)
    return *(normal(*shape, seed=seed + i) for i, shape in enumerate(shapes)), n


@exercise(
    inputs=lambda draw: [
        layer(3, 4, 8, 2, 0),
        layer(1, 6, 6, 3, 10),
        layer(5, 2, 12, 4, 20),
        layer(2, 5, 7, 1, 30),
    ],
    on_shape_error="Each process has some rows of `up` (hidden, C), and the same columns of `down` "
    "(C, hidden).",
    on_success="One sum is all that the processes have to exchange.",
    backward=True,
)
def in_pieces(x, up, down, n):
    """in_pieces(x, up, down, n): (n, B, C), what each process has; its sum over n is the whole."""
    pairs = zip(up.chunk(n), down.chunk(n, dim=1), strict=True)
    return torch.stack([torch.relu(x @ rows.T) @ columns.T for rows, columns in pairs])


def sums_through_relu(x, up, down, n):
    pairs = zip(x.chunk(n, 1), up.chunk(n, 1), strict=True)
    return torch.stack([torch.relu(part @ columns.T) @ down.T for part, columns in pairs])


in_pieces.slips("""
    These are already added up. Return what each of the n processes has, before they send.
        right(x, up, down, n).sum(0)
    The relu is missing: apply it in each piece, between the two products.
        torch.relu →
    Your relu comes too late: it belongs between the two products, not after the second.
        torch.relu(x @ rows.T) @ columns.T → torch.relu(x @ rows.T @ columns.T)
    This division would work, but it is not the one that the task asks for: process 0 has the first
    hidden features, process 1 the next.
        torch.stack([torch.relu(x @ up[i::n].T) @ down[:, i::n].T for i in range(n)])
    You cut the features of x, and apply relu to incomplete sums: relu(a) + relu(b) is not relu(a
    + b). Cut the *rows* of `up`, the hidden features.
        sums_through_relu(x, up, down, n)
""")


# --- the cheapest model ---------------------------------------------------------------------------

GRID = torch.logspace(2, 14, 100_000, dtype=torch.float64)


def costs(N, gap, used, A, alpha, B, beta):
    """(tokens, FLOPs) with which N parameters come to the loss; infinite where they never do."""
    left = gap - A / N**alpha
    tokens = torch.where(left > 0, (B / left.clamp(min=1e-300)) ** (1 / beta), torch.inf)
    return tokens, 6 * N * tokens + 2 * N * used


@exercise(
    inputs=lambda draw: [
        (0.002, 0, 1.0, 0.5, 1.0, 0.5),
        (0.23, 0, 5.24, 0.27, 77.45, 0.45),
        (0.23, 1e8, 5.24, 0.27, 77.45, 0.45),
        (0.4, 1e13, 400.0, 0.34, 410.0, 0.28),
        (draw.uniform(0.1, 0.3), 1e9, 30.0, 0.4, 80.0, 0.5),
    ],
    on_success="Whoever will use a model a lot trains a small one for long.",
    tolerance=0.02,
)
def cheapest(gap, used, A, alpha, B, beta):
    """cheapest(gap, used, A, alpha, B, beta): N, the cheapest to train and to use."""
    return GRID[costs(GRID, gap, used, A, alpha, B, beta)[1].argmin()]


def without_inf(gap, used, A, alpha, B, beta):
    tokens = (B / (gap - A / GRID**alpha)) ** (1 / beta)
    return GRID[(6 * GRID * tokens + 2 * GRID * used).argmin()]


cheapest.slips("""
    The use is missing: 2·N FLOPs for each token that the model will ever process.
        costs(GRID, gap, used → costs(GRID, gap, 0
    Using costs 2·N FLOPs per token, the forward pass alone; 6·N are for training.
        costs(GRID, gap, used → costs(GRID, gap, 3 * used
    That is the number of training tokens. Return N.
        costs(right(gap, used, A, alpha, B, beta), gap, used, A, alpha, B, beta)[0]
    Those are the FLOPs. Return the N that has the fewest.
        costs(GRID, gap, used, A, alpha, B, beta)[1].min()
    alpha and beta are swapped: alpha belongs to N.
        costs(GRID, gap, used, A, alpha, B, beta) → costs(GRID, gap, used, A, beta, B, alpha)
    A model that is too small never comes to this loss: what the law leaves for the text is
    below 0 there, a power of it is NaN, and `argmin` finds NaN first. Leave these N out.
        without_inf(gap, used, A, alpha, B, beta)
""")
