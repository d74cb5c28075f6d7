"""The exercises on many machines: the work of a run, joint losses, split matrices, a budget."""

import math
from functools import partial

import torch

from exercises.check import exercise, normal

# --- 18.1: the work of a run ----------------------------------------------------------------------


@exercise(
    inputs=[(2, 16, 50, 8, 1000), (1, 8, 300, 64, 10), (12, 768, 50_257, 1024, 1), (3, 4, 5, 6, 7),
            (12, 768, 50_257, 1024, 1_000_000)],
    praise="Three times the forward pass, for every token.",
    tolerance=1e-9,
)  # fmt: skip
def training_flops(layers, C, V, T, tokens):
    """training_flops(layers, C, V, T, tokens): operations of a training run."""
    return work(layers, C, V, T, tokens)


def work(layers, C, V, T, tokens, block=12, head=1, attention=4, passes=3, two=2):
    parameters = layers * block * C * C + head * V * C
    return passes * (two * parameters + attention * layers * T * C) * tokens


def with_(**changes):
    return partial(work, **changes)


training_flops.mistakes = {
    "That is only the forward pass: backward makes two products for each of its own.":
        with_(passes=1),
    "That is twice the forward pass. Backward makes two products for each of forward's, and "
    "forward itself is the third.": with_(passes=2),
    "Backward is twice forward, so the two are three times forward, not four.": with_(passes=4),
    "Each number of a matrix costs a multiplication and an addition: 2.": with_(two=1),
    "The head is missing: V·C more numbers that each token is multiplied with.": with_(head=0),
    "In a table a row is looked up, and nothing is multiplied: only the head's V·C numbers count.":
        (with_(head=2),
         lambda layers, C, V, T, tokens: work(layers, C, V, T, tokens, head=1 + T / V),
         lambda layers, C, V, T, tokens: work(layers, C, V, T, tokens, head=2 + T / V)),
    "There is one head, after the last layer, not one in each.":
        lambda layers, C, V, T, tokens: work(layers, C, V, T, tokens, head=layers),
    "Each layer has its 12·C² numbers.":
        lambda layers, C, V, T, tokens: work(layers, C, V, T, tokens, block=12 / layers),
    "The scores and the mean of the values are missing: 4·T·C per layer.": with_(attention=0),
    "That is the scores or the mean of the values, 2·T·C each, or half of both for the mask. "
    "Count both in full.": with_(attention=2),
    "For one token there are T scores of products of C numbers: 4·T·C per layer, neither 4·T² nor "
    "4·T²·C.":
        (lambda layers, C, V, T, tokens: work(layers, C, V, T, tokens, attention=4 * T / C),
         lambda layers, C, V, T, tokens: work(layers, C, V, T, tokens, attention=4 * T)),
    "Attention goes backward, too: all of the forward pass counts three times.":
        lambda layers, C, V, T, tokens: work(layers, C, V, T, tokens, attention=4 / 3),
    "Each layer attends: 4·T·C for each of them.":
        lambda layers, C, V, T, tokens: work(layers, C, V, T, tokens, attention=4 / layers),
    "4·T·C are operations already, multiplications and additions: no further 2.":
        with_(attention=8),
    "A block has 12·C² numbers in its matrices: 4 in attention, 8 in the feed-forward part.":
        (with_(block=8), with_(block=4), with_(block=10)),
    "That is for one token.": lambda layers, C, V, T, tokens: work(layers, C, V, T, 1),
    "You count T times too many tokens: `tokens` is already all of them.":
        lambda layers, C, V, T, tokens: work(layers, C, V, T, tokens * T),
}  # fmt: skip


# --- 18.2: the loss of all ------------------------------------------------------------------------


@exercise(
    inputs=[([2.0, 4.0], [3, 1]), ([1.5], [7]), ([0.0, 3.0, 6.0], [1, 2, 5]), ([5.0, 1.0], [4, 4]),
            ([2.0, 2.0, 5.0], [3, 1, 4]), ([2.0, 2.0, 5.0], [3, 3, 4]),
            ([2.345678, 1.234567, 3.456789], [300, 4, 60])],
    praise="Every row counts once, wherever it was read.",
)  # fmt: skip
def joint_loss(losses, rows):
    """joint_loss(losses, rows): the mean over all rows of all processes."""
    return mean(losses, rows)


def mean(losses, rows):
    return sum(loss * n for loss, n in zip(losses, rows, strict=True)) / sum(rows)


joint_loss.mistakes = {
    "That is the mean of the means: a process with one row counts as much as one with a hundred.":
        lambda losses, rows: sum(losses) / len(losses),
    "That is the sum over all rows: divide by their number.":
        lambda losses, rows: sum(loss * n for loss, n in zip(losses, rows, strict=True)),
    "Divide by the rows, not by the processes.":
        lambda losses, rows: sum(loss * n for loss, n in zip(losses, rows, strict=True))
        / len(rows),
    "Each loss belongs to the rows of its own process: keep the order of both lists.": (
        lambda losses, rows: mean(losses, rows[::-1]),
        lambda losses, rows: mean(sorted(losses), sorted(rows)),
        lambda losses, rows: mean(sorted(losses), rows)),
    "A loss is a mean already: multiply it by its rows before you divide by all of them.":
        lambda losses, rows: sum(losses) / sum(rows),
    "That is the sum of the means.": lambda losses, rows: sum(losses),
    "You divide by the rows. Multiply by them: a process with more rows counts more.":
        lambda losses, rows: sum(loss / n for loss, n in zip(losses, rows, strict=True))
        / sum(1 / n for n in rows),
}  # fmt: skip


# --- 18.3: a feed-forward part in pieces ----------------------------------------------------------


def layers_of(B, C, hidden, n, seed):
    return normal(B, C, seed=seed), normal(hidden, C, seed=seed + 1), normal(
        C, hidden, seed=seed + 2), n  # fmt: skip


@exercise(
    inputs=[layers_of(3, 4, 8, 2, 0), layers_of(1, 6, 6, 3, 10), layers_of(5, 2, 12, 4, 20),
            layers_of(2, 5, 7, 1, 30), layers_of(4, 4, 4, 2, 40)],
    clash="Of `up` (hidden, C) each process has some rows, of `down` (C, hidden) the same columns.",
    praise="One sum is all that the processes have to exchange.",
    backward=True,
)  # fmt: skip
def in_pieces(x, up, down, n):
    """in_pieces(x, up, down, n): (n, B, C), what each process has; its sum over n is the whole."""
    pairs = zip(up.chunk(n), down.chunk(n, dim=1), strict=True)
    return torch.stack([torch.relu(x @ rows.T) @ columns.T for rows, columns in pairs])


def pieces(x, up, down, n, bend=torch.relu, scale=1.0, whole=False, mixed=False):
    downs = down.chunk(n, dim=1)
    if mixed:
        downs = downs[1:] + downs[:1]
    parts = [bend(x @ u.T) @ d.T * scale for u, d in zip(up.chunk(n), downs, strict=True)]
    return torch.stack(parts).sum(0) if whole else torch.stack(parts)


in_pieces.mistakes = {
    "These are already added up. Return what each of the n processes has, before they send.":
        partial(pieces, whole=True),
    "The relu is missing: apply it in each piece, between the two products.":
        partial(pieces, bend=lambda x: x),
    "The pieces are divided by n. They add up to the whole: it is a sum, not a mean.":
        lambda x, up, down, n: pieces(x, up, down, n, scale=1 / n),
    "Your relu comes too late: it belongs between the two products, not after the second.":
        lambda x, up, down, n: torch.relu(pieces(x, up, down, n, bend=lambda x: x)),
    "A process uses its own rows of `up` with another's columns of `down`.":
        partial(pieces, mixed=True),
    "This division would work, but it is not the one that the task asks for: process 0 has the "
    "first hidden features, process 1 the next.": (
        lambda x, up, down, n: torch.stack(
            [torch.relu(x @ up[i::n].T) @ down[:, i::n].T for i in range(n)]),
        lambda *given: pieces(*given).flip(0)),
    "Each piece is an nth of the whole output, and no matrix is divided: process i has only the "
    "i-th rows of `up`.":
        lambda x, up, down, n: torch.stack([pieces(x, up, down, 1, whole=True) / n] * n),
    "You cut the features of x, and apply relu to incomplete sums: relu(a) + relu(b) is not relu(a "
    "+ b). Cut the *rows* of `up`, the hidden features.":
        lambda x, up, down, n: torch.stack([torch.relu(part @ columns.T) @ down.T for part, columns
                                            in zip(x.chunk(n, 1), up.chunk(n, 1), strict=True)]),
    "Each piece is the whole output: process i has only the i-th rows of `up`.":
        lambda x, up, down, n: torch.stack([pieces(x, up, down, 1, whole=True)] * n),
}  # fmt: skip


# --- 18.4: a budget -------------------------------------------------------------------------------


@exercise(
    inputs=[(1e18, 400.0, 0.34, 410.0, 0.28), (1e15, 10.0, 0.5, 40.0, 0.5),
            (6e12, 5.0, 0.3, 20.0, 0.45), (1e21, 90.0, 0.25, 30.0, 0.4),
            (6e8, 3.0, 0.4, 8.0, 0.35), (1.423e13, 5.24, 0.27, 77.45, 0.45)],
    praise="The law says where the next operation is spent best.",
    tolerance=0.02,
)  # fmt: skip
def best_split(budget, A, alpha, B, beta):
    """best_split(budget, A, alpha, B, beta): N, the parameters that make the loss lowest."""
    return split(budget, A, alpha, B, beta)


def split(budget, A, alpha, B, beta, six=6.0):
    """Where the derivative of A / N^alpha + B · (six · N / budget)^beta is 0."""
    return (alpha * A / (beta * B) * (budget / six) ** beta) ** (1 / (alpha + beta))


def tried(N, budget, A, alpha, B, beta):
    return A / N**alpha + B * (6 * N / budget) ** beta


MANY = torch.logspace(2, 14, 100_000, dtype=torch.float64)
COARSE = [torch.logspace(2, 14, n, dtype=torch.float64) for n in (13, 50, 100, 200, 500)]
COARSE.append(torch.linspace(100, 1e14, 100_000, dtype=torch.float64))

best_split.mistakes = {
    "The 6 is missing: budget = 6·N·D.": partial(split, six=1.0),
    "That is D, the tokens: return N, the parameters. Or N and D are swapped in the law.":
        lambda budget, *law: budget / 6 / split(budget, *law),
    "That is as many parameters as tokens, or a twentieth. The best N depends on the law: try many "
    "N.": (
        lambda budget, A, alpha, B, beta: math.sqrt(budget / 6),
        lambda budget, A, alpha, B, beta: math.sqrt(budget / 120)),
    "That makes both terms equally large, which is not yet the lowest sum: try many N.":
        lambda budget, A, alpha, B, beta: (A / B * (budget / 6) ** beta) ** (1 / (alpha + beta)),
    "alpha and beta are swapped: alpha belongs to N.":
        lambda budget, A, alpha, B, beta: split(budget, A, beta, B, alpha),
    "In the formula the exponent of budget / 6 is beta / (alpha + beta): yours has alpha on top.":
        lambda budget, A, alpha, B, beta: (alpha * A / (beta * B) * (budget / 6) ** alpha)
        ** (1 / (alpha + beta)),
    "That is the index of the lowest loss. Return the N at that index.":
        lambda *given: tried(MANY, *given).argmin(),
    "That is the lowest loss. Return the N that has it.": lambda *given: tried(MANY, *given).min(),
    "Your N are too far apart: each should be less than two per cent larger than the one before "
    "it (`torch.logspace` with many steps).":
        tuple(lambda *given, N=N: N[tried(N, *given).argmin()] for N in COARSE),
    "A and B are swapped: A belongs to N.":
        lambda budget, A, alpha, B, beta: split(budget, B, alpha, A, beta),
    "That is an end of the range that was tried: is a term missing, or D not budget / (6·N)?":
        (lambda *_: 1e14, lambda *_: 100.0),
}  # fmt: skip
