"""The exercises on many machines: FLOPs, a mean loss, a divided network, a budget."""

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
    weights = layers * 12 * C * C + V * C
    return 3 * (2 * weights + 4 * layers * T * C) * tokens


training_flops.slips("""
    That is only the forward pass: the backward pass computes two products for each of its own.
        3 * →
    That is twice the forward pass. The backward pass computes two products for each product of the
    forward pass, and the forward pass comes on top.
        3 * → 2 *
    Each parameter of a matrix costs a multiplication and an addition: 2.
        2 * weights → weights
    The head is missing: V·C more parameters in a matrix.
        + V * C →
    Looking up a row of the token table takes no multiplication: only the head's V·C parameters
    count.
        + V * C → + 2 * V * C
    The scores and the mean of the values are missing: 4·T·C per block.
        + 4 * layers * T * C →
    That is the scores or the mean of the values, 2·T·C each, or half of both for the mask. Count
    both in full.
        4 * → 2 *
    Each block attends: 4·T·C for each of them.
        4 * layers → 4
    That is for one token.
        right(layers, C, V, T, 1)
""")


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
    return sum(loss * n for loss, n in zip(losses, rows, strict=True)) / sum(rows)


joint_loss.slips("""
    That is the mean of the means: a process with one row counts as much as one with a hundred.
        sum(losses) / len(losses)
    That is the sum over all rows: divide by their number.
        / sum(rows) →
    Divide by the rows, not by the processes.
        / sum(rows) → / len(rows)
    A loss is a mean already: multiply it by its rows before you divide by all of them.
        loss * n → loss
""")


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
    The pieces are divided by n. They add up to the whole: it is a sum, not a mean.
        right(x, up, down, n) / n
    Your relu comes too late: it belongs between the two products, not after the second.
        torch.relu(x @ rows.T) @ columns.T → torch.relu(x @ rows.T @ columns.T)
    This division would work, but it is not the one that the task asks for: process 0 has the first
    hidden features, process 1 the next.
        torch.stack([torch.relu(x @ up[i::n].T) @ down[:, i::n].T for i in range(n)])
    You cut the features of x, and apply relu to incomplete sums: relu(a) + relu(b) is not relu(a
    + b). Cut the *rows* of `up`, the hidden features.
        sums_through_relu(x, up, down, n)
    Each piece is the whole output: process i has only the i-th rows of `up`.
        right(x, up, down, 1).repeat(n, 1, 1)
""")


# --- 22.4: a budget -------------------------------------------------------------------------------


def law(rng):
    """A budget, and a law by which the best N is between 1e4 and 1e12."""
    while True:
        A, B = rng.uniform(3, 400), rng.uniform(3, 400)
        given = 10 ** rng.uniform(10, 20), A, rng.uniform(0.25, 0.5), B, rng.uniform(0.25, 0.5)
        if 1e4 < best_split.right(*given) < 1e12:
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
    # Here the derivative of A / N^alpha + B · (6 · N / budget)^beta is 0.
    return (alpha * A / (beta * B) * (budget / 6) ** beta) ** (1 / (alpha + beta))


def losses_of(N, budget, A, alpha, B, beta):
    return A / N**alpha + B * (6 * N / budget) ** beta


MANY = torch.logspace(2, 14, 100_000, dtype=torch.float64)
FEW = torch.logspace(2, 14, 100, dtype=torch.float64)
EVEN = torch.linspace(100, 1e14, 100_000, dtype=torch.float64)

best_split.slips("""
    The 6 is missing: budget = 6·N·D.
        budget / 6 → budget
    That is D, the tokens: return N, the parameters. Or N and D are swapped in the law.
        budget / 6 / right(budget, A, alpha, B, beta)
    That is as many parameters as tokens, or a twentieth. The best N depends on the law: try many N.
        (budget / 6) ** 0.5
        (budget / 120) ** 0.5
    That makes both terms equally large, which is not yet the lowest sum: try many N.
        alpha * A / (beta * B) → A / B
    alpha and beta are swapped: alpha belongs to N.
        right(budget, A, beta, B, alpha)
    That is the index of the lowest loss. Return the N at that index.
        losses_of(MANY, budget, A, alpha, B, beta).argmin()
    That is the lowest loss. Return the N that has it.
        losses_of(MANY, budget, A, alpha, B, beta).min()
    Your N are too far apart: each should be less than two per cent larger than the one before it
    (`torch.logspace` with many steps).
        FEW[losses_of(FEW, budget, A, alpha, B, beta).argmin()]
        EVEN[losses_of(EVEN, budget, A, alpha, B, beta).argmin()]
""")
