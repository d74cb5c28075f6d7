"""The exercises on many machines: FLOPs, a mean loss, a divided network, a budget."""

from functools import partial

import torch

from exercises.check import exercise, normal

# --- 22.1: the work of a run ----------------------------------------------------------------------


@exercise(
    inputs=lambda draw: [
        (2, 16, 50, 8, 1000),
        (1, 8, 300, 64, 10),
        (12, 768, 50_257, 1024, 1),
        (3, 4, 5, 6, 7),
        (12, 768, 50_257, 1024, 1_000_000),
        *(tuple(draw.randint(2, 60) for _ in range(5)) for _ in range(3)),
    ],
    on_success="Three times the forward pass, for every token.",
    tolerance=1e-9,
)
def training_flops(layers, C, V, T, tokens):
    """training_flops(layers, C, V, T, tokens): operations of a training run."""
    return flops(layers, C, V, T, tokens)


def flops(layers, C, V, T, tokens, head=1, attention=4, passes=3, per_weight=2):
    weights = layers * 12 * C * C + head * V * C
    return passes * (per_weight * weights + attention * layers * T * C) * tokens


training_flops.mistake(
    "That is only the forward pass: the backward pass computes two products for each of its own.",
    partial(flops, passes=1),
)
training_flops.mistake(
    "That is twice the forward pass. The backward pass computes two products for each product of "
    "the forward pass, and the forward pass comes on top.",
    partial(flops, passes=2),
)
training_flops.mistake(
    "Each parameter of a matrix costs a multiplication and an addition: 2.",
    partial(flops, per_weight=1),
)
training_flops.mistake(
    "The head is missing: V·C more parameters in a matrix.",
    partial(flops, head=0),
)
training_flops.mistake(
    "Looking up a row of the token table takes no multiplication: only the head's V·C parameters "
    "count.",
    partial(flops, head=2),
)
training_flops.mistake(
    "The scores and the mean of the values are missing: 4·T·C per block.",
    partial(flops, attention=0),
)
training_flops.mistake(
    "That is the scores or the mean of the values, 2·T·C each, or half of both for the mask. "
    "Count both in full.",
    partial(flops, attention=2),
)
training_flops.mistake(
    "Each block attends: 4·T·C for each of them.",
    lambda layers, C, V, T, tokens: flops(layers, C, V, T, tokens, attention=4 / layers),
)
training_flops.mistake(
    "That is for one token.", lambda layers, C, V, T, tokens: flops(layers, C, V, T, 1)
)


# --- 22.2: the loss of all ------------------------------------------------------------------------


@exercise(
    inputs=lambda draw: [
        ([2.0, 4.0], [3, 1]),
        ([1.5], [7]),
        ([0.0, 3.0, 6.0], [1, 2, 5]),
        ([5.0, 1.0], [4, 4]),
        ([2.0, 2.0, 5.0], [3, 1, 4]),
        ([2.0, 2.0, 5.0], [3, 3, 4]),
        ([2.0, 9.0, 4.0], [3, 0, 1]),
        ([2.345678, 1.234567, 3.456789], [300, 4, 60]),
        *[
            ([draw.uniform(1, 6) for _ in range(n)], [draw.randint(1, 90) for _ in range(n)])
            for n in (2, 5)
        ],
    ],
    on_success="Every row counts once, whichever process had it.",
)
def joint_loss(losses, rows):
    """joint_loss(losses, rows): the mean over all rows of all processes."""
    return joint_sum(losses, rows) / sum(rows)


def joint_sum(losses, rows):
    return sum(loss * n for loss, n in zip(losses, rows, strict=True))


joint_loss.mistake(
    "That is the mean of the means: a process with one row counts as much as one with a hundred.",
    lambda losses, rows: sum(losses) / len(losses),
)
joint_loss.mistake("That is the sum over all rows: divide by their number.", joint_sum)
joint_loss.mistake(
    "Divide by the rows, not by the processes.",
    lambda losses, rows: joint_sum(losses, rows) / len(rows),
)
joint_loss.mistake(
    "A loss is a mean already: multiply it by its rows before you divide by all of them.",
    lambda losses, rows: sum(losses) / sum(rows),
)


# --- 22.3: a feed-forward network in pieces -------------------------------------------------------


def layer(B, C, hidden, n, seed):
    shapes = (B, C), (hidden, C), (C, hidden)
    return *(normal(*shape, seed=seed + i) for i, shape in enumerate(shapes)), n


@exercise(
    inputs=lambda draw: [
        layer(3, 4, 8, 2, 0),
        layer(1, 6, 6, 3, 10),
        layer(5, 2, 12, 4, 20),
        layer(2, 5, 7, 1, 30),
        layer(4, 4, 4, 2, 40),
    ],
    on_shape_error="Each process has some rows of `up` (hidden, C), and the same columns of `down` "
    "(C, hidden).",
    on_success="One sum is all that the processes have to exchange.",
    backward=True,
)
def in_pieces(x, up, down, n):
    """in_pieces(x, up, down, n): (n, B, C), what each process has; its sum over n is the whole."""
    return pieces(x, up, down, n)


def pieces(x, up, down, n, activation=torch.relu):
    pairs = zip(up.chunk(n), down.chunk(n, dim=1), strict=True)
    return torch.stack([activation(x @ rows.T) @ columns.T for rows, columns in pairs])


def sums_through_relu(x, up, down, n):
    pairs = zip(x.chunk(n, 1), up.chunk(n, 1), strict=True)
    return torch.stack([torch.relu(part @ columns.T) @ down.T for part, columns in pairs])


def every_nth(x, up, down, n):
    return torch.stack([torch.relu(x @ up[i::n].T) @ down[:, i::n].T for i in range(n)])


in_pieces.mistake(
    "These are already added up. Return what each of the n processes has, before they send.",
    lambda x, up, down, n: pieces(x, up, down, n).sum(0),
)
in_pieces.mistake(
    "The relu is missing: apply it in each piece, between the two products.",
    partial(pieces, activation=lambda x: x),
)
in_pieces.mistake(
    "The pieces are divided by n. They add up to the whole: it is a sum, not a mean.",
    lambda x, up, down, n: pieces(x, up, down, n) / n,
)
in_pieces.mistake(
    "Your relu comes too late: it belongs between the two products, not after the second.",
    lambda x, up, down, n: torch.relu(pieces(x, up, down, n, activation=lambda x: x)),
)
in_pieces.mistake(
    "This division would work, but it is not the one that the task asks for: process 0 has the "
    "first hidden features, process 1 the next.",
    every_nth,
)
in_pieces.mistake(
    "You cut the features of x, and apply relu to incomplete sums: relu(a) + relu(b) is not relu(a "
    "+ b). Cut the *rows* of `up`, the hidden features.",
    sums_through_relu,
)
in_pieces.mistake(
    "Each piece is the whole output: process i has only the i-th rows of `up`.",
    lambda x, up, down, n: pieces(x, up, down, 1).repeat(n, 1, 1),
)


# --- 22.4: a budget -------------------------------------------------------------------------------


def lowest(budget, A, alpha, B, beta):
    # Here the derivative of A / N^alpha + B · (6 · N / budget)^beta is 0.
    return (alpha * A / (beta * B) * (budget / 6) ** beta) ** (1 / (alpha + beta))


def law(rng):
    """A budget, and a law by which the best N is between 1e4 and 1e12."""
    while True:
        A, B = rng.uniform(3, 400), rng.uniform(3, 400)
        given = 10 ** rng.uniform(10, 20), A, rng.uniform(0.25, 0.5), B, rng.uniform(0.25, 0.5)
        if 1e4 < lowest(*given) < 1e12:
            return given


@exercise(
    inputs=lambda draw: [
        (1e18, 400.0, 0.34, 410.0, 0.28),
        (1e15, 10.0, 0.5, 40.0, 0.5),
        (6e12, 5.0, 0.3, 20.0, 0.45),
        (1e21, 90.0, 0.25, 30.0, 0.4),
        (6e8, 3.0, 0.4, 8.0, 0.35),
        (1.423e13, 5.24, 0.27, 77.45, 0.45),
        *(law(draw) for _ in range(3)),
    ],
    on_success="The law says where the next FLOP is spent best.",
    tolerance=0.02,
)
def best_split(budget, A, alpha, B, beta):
    """best_split(budget, A, alpha, B, beta): N, the parameters that make the loss lowest."""
    return lowest(budget, A, alpha, B, beta)


def losses_of(N, budget, A, alpha, B, beta):
    return A / N**alpha + B * (6 * N / budget) ** beta


def best_of(N):
    return lambda *given: N[losses_of(N, *given).argmin()]


MANY = torch.logspace(2, 14, 100_000, dtype=torch.float64)

best_split.mistake(
    "The 6 is missing: budget = 6·N·D.",
    lambda budget, A, alpha, B, beta: best_split.right(6 * budget, A, alpha, B, beta),
)
best_split.mistake(
    "That is D, the tokens: return N, the parameters. Or N and D are swapped in the law.",
    lambda budget, *law: budget / 6 / best_split.right(budget, *law),
)
best_split.mistake(
    "That is as many parameters as tokens, or a twentieth. The best N depends on the law: try many "
    "N.",
    lambda budget, A, alpha, B, beta: (budget / 6) ** 0.5,
    lambda budget, A, alpha, B, beta: (budget / 120) ** 0.5,
)
best_split.mistake(
    "That makes both terms equally large, which is not yet the lowest sum: try many N.",
    lambda budget, A, alpha, B, beta: (A / B * (budget / 6) ** beta) ** (1 / (alpha + beta)),
)
best_split.mistake(
    "alpha and beta are swapped: alpha belongs to N.",
    lambda budget, A, alpha, B, beta: best_split.right(budget, A, beta, B, alpha),
)
best_split.mistake(
    "That is the index of the lowest loss. Return the N at that index.",
    lambda *given: losses_of(MANY, *given).argmin(),
)
best_split.mistake(
    "That is the lowest loss. Return the N that has it.",
    lambda *given: losses_of(MANY, *given).min(),
)
best_split.mistake(
    "Your N are too far apart: each should be less than two per cent larger than the one before "
    "it (`torch.logspace` with many steps).",
    best_of(torch.logspace(2, 14, 100, dtype=torch.float64)),
    best_of(torch.linspace(100, 1e14, 100_000, dtype=torch.float64)),
)
