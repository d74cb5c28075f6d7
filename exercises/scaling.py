"""The exercises of the chapter on scaling."""

import math

import torch
from torch import nn

from exercises.check import (
    WrongAnswer,
    call,
    checked,
    diagnose,
    exercise,
    expect,
    normal,
    reported,
    tensor,
)

# --- 5.1 ----------------------------------------------------------------------------------------


def layer(C, hs, seed):
    """A layer with given numbers. Its bias is large, so an answer without it is wrong."""
    linear = nn.Linear(C, hs)
    with torch.no_grad():
        linear.weight.copy_(normal(hs, C, seed=seed) / C**0.5)
        linear.bias.copy_(normal(hs, seed=seed + 1))
    return linear


# hs smaller and larger than C; T equal to hs, where a forgotten transpose raises no error, and to
# C; a single token.
SIZES = [(2, 5, 12, 3), (3, 4, 6, 20), (1, 4, 8, 2), (2, 6, 4, 6), (3, 6, 6, 5), (1, 1, 5, 2)]


@exercise(
    inputs=lambda draw: [
        (normal(B, T, C, seed=seed), layer(C, hs, seed + 10), layer(C, hs, seed + 20))
        for seed, (B, T, C, hs) in enumerate(SIZES)
    ],
    on_success="Scaled by the head size, not by the width of x, and before the softmax.",
    on_shape_error="Transpose the keys first: q @ k.transpose(-2, -1) gives (B, T, T).",
    backward=True,
)
def head_weights(x, query, key):
    """head_weights(x, query, key): weights (B, T, T) of a head whose hs is not C."""
    q, k = query(x), key(x)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return scores.softmax(-1)


head_weights.slips("""
    The scale is missing: divide the scores by √hs, the square root of the length of a query.
        / q.shape[-1] ** 0.5 →
    The scores are divided by hs itself, the variance of q·k. But dividing by c divides the
    standard deviation by c: divide by the standard deviation, √hs.
        ** 0.5 →
    You divide by √C, the width of x. Divide by the root of the head size hs, the length of a
    query: q.shape[-1]. With √C, the weights of a small head are too flat.
        q.shape → x.shape
    You multiply by √hs, which makes large scores larger. Divide.
        / q → * q
    You scale after the softmax: the rows no longer sum to 1, and the softmax is as saturated as
    before. Divide the scores by √hs, before the softmax.
        / q.shape[-1] ** 0.5 → ; scores.softmax(-1) → scores.softmax(-1) / q.shape[-1] ** 0.5
    These are the scaled scores. The softmax over the last dimension is missing.
        .softmax(-1) →
    The softmax runs over dim -2: your columns sum to 1. Rows should: dim=-1.
        softmax(-1) → softmax(-2)
    Queries and keys are swapped: row i should belong to query i.
        query(x), key(x) → key(x), query(x)
    You reshape the keys to (B, hs, T), which mixes up their numbers. Swap the two dimensions:
    k.transpose(-2, -1).
        k.transpose(-2, -1) → k.reshape(len(x), -1, x.shape[1])
    You masked the future. No mask is needed here: every query attends to all keys.
        scores.softmax → (scores + torch.full_like(scores, -math.inf).triu(1)).softmax
""")

# --- 5.2 ----------------------------------------------------------------------------------------


@exercise(
    inputs=lambda draw: [
        (64, 0.5, 3.0),
        (9, 2.5, 2.0),
        (100, 0.1, 0.3),
        (7, 1.3, 0.4),
        (1, 2.0, 3.0),
        *((draw.randint(2, 200), draw.uniform(0.2, 3), draw.uniform(0.2, 3)) for _ in range(3)),
    ],
    example=(64, 1.0, 1.0),
    on_success="The divisor is the standard deviation of q·k: √d · std_q · std_k.",
)
def right_divisor(d, std_q, std_k):
    """right_divisor(d, std_q, std_k): the number that gives q·k a standard deviation of 1."""
    return math.sqrt(d) * std_q * std_k


right_divisor.slips("""
    This is the variance of q·k. Divide by its square root, the standard deviation.
        right(d, std_q, std_k) ** 2
    You return √d, which is right for standard deviations of 1, or d, which is the variance then.
    Here they are std_q and std_k.
        math.sqrt(d)
        d
    You multiply by d where √d belongs: variances add up, standard deviations do not.
        math.sqrt(d) → d
    This is what q·k must be multiplied by. Return the divisor.
        1 / right(d, std_q, std_k)
    The √d is missing: d products add up.
        math.sqrt(d) * →
    You use only one of std_q and std_k. A product has the standard deviation std_q · std_k.
        * std_k →
        * std_q →
    `d ** 1 / 2` is d / 2, because powers come first: write d ** 0.5 or math.sqrt(d).
        math.sqrt(d) → d / 2
    Standard deviations are not added here: one product has std_q · std_k.
        std_q * std_k → (std_q + std_k)
    Variances add up in a sum. In a product they are multiplied: std_q² · std_k².
        math.sqrt(d * (std_q**2 + std_k**2))
""")

# --- 5.3 ------------------------------------------------------------------------------------------

# Heads of size 32 and 4 with a smaller initialisation instead of a divisor, at the learning rate
# 0.01. Over five seeds, the loss at size 32 was 0.16 to 0.19 above that of the head that divides,
# with a perplexity of 1.6 to 2.3 after 20 steps; at size 4 it was within 0.02 of it.
FACTOR = 32**-0.25


@checked
def start_or_steps(answer):
    """{"factor" of both matrices, "perplexity" after 20 steps, sizes where it "suffices"}"""
    factor, tokens, sizes = reported(
        answer,
        {"factor": 0.5, "perplexity": 2.0, "suffices": [4]},
        'Give a dictionary with a number for "factor", a number for "perplexity", and a list of '
        'sizes for "suffices".',
    ).values()
    factor = abs(factor)  # −f is as good: f · f is the same
    expect(
        abs(factor - 32**-0.5) > 0.002,
        "The queries *and* the keys are multiplied: with 1/√32 for each, the scores shrink by 32.",
    )
    expect(
        abs(factor - FACTOR) < 0.01 * FACTOR,
        f"Your factor multiplies the initial scores by {factor**2:.3g}, because it enters twice: "
        "with the queries and with the keys. Division by √32 multiplies them by 0.177.",
    )
    diagnose("""
        The perplexity is between 1 and 16. `train_head` returns the list of perplexities as its
        third result: take [2][20].
            not 1 <= tokens < 12
        That is the perplexity of a head that divides, or of a head of size 4. Give that of the
        head of size 32 without a divisor, with your factor.
            tokens >= 5
        That is too large for the higher learning rate: train with learning_rate=0.01.
            tokens >= 2.7
        This looks like the loss, which `train_head` returns second. The perplexities come third:
        take [2][20].
            tokens >= 2.33
        That is too small. Is it a head of size 32, with your factor, after 20 steps and not
        after 50?
            tokens <= 1.35
        "suffices" should be a list of the sizes 4 and 32, or of one of them.
            not set(sizes) <= {4, 32}
        Train the head of size 32 with the factor and with the divisor, both with
        learning_rate=0.01. The initial weights are the same, but the losses are more than 0.1
        apart.
            32 in sizes
        Train the head of size 4 with its own factor, 4 ** -0.25, and beside it
        train_head(2, 4, learning_rate=0.01): the losses are nearly the same.
            4 not in sizes
    """)
    return (
        "The divisor does two things: it makes the initial weights flat, and it makes the steps "
        "of the scores smaller. At head size 4, the steps are small enough without it."
    )


# --- 5.4 ----------------------------------------------------------------------------------------


def entropy(w):
    """Entropy of each row in nats: (..., T) to (...)."""
    return torch.special.entr(w).sum(-1)


# Seed, T, S, size of the scores, target: the divisors lie between 0.002 and 600.
SEARCHES = [
    (1, 8, 16, 8.0, 2.3),
    (2, 5, 9, 0.05, 1.2),
    (3, 1, 4, 30.0, 0.7),
    (4, 20, 6, 1.0, 1.7),
    (5, 4, 8, 1.0, 2.07),
    (6, 6, 12, 50.0, 0.6),
    (7, 3, 10, 500.0, 1.8),
]
TINY = 0.004 * normal(4, 7, seed=8)  # of others the divisor may be below 0.001
# What has the target as its value, instead of the mean entropy of the rows of scores / divisor.
OTHER_TARGETS = {
    "Multiplied by your number, the scores have the right entropy. The divisor is 1 over it.": (
        lambda s, d: entropy((s * d).softmax(-1)).mean()
    ),
    "Your entropy hits the target in bits (log2). The target is in nats: use log.": (
        lambda s, d: entropy((s / d).softmax(-1)).mean() / math.log(2)
    ),
    "You took the entropy of the averaged weights. Take each row's entropy, then the mean.": (
        lambda s, d: entropy((s / d).softmax(-1).mean(0))
    ),
    "The target is the mean entropy of the rows, not their sum.": (
        lambda s, d: entropy((s / d).softmax(-1)).sum()
    ),
    "Your softmax runs over the queries (dim 0). Each row is a distribution: dim=-1.": (
        lambda s, d: entropy((s / d).softmax(0)).mean()
    ),
}
TOO_EXACT = (
    " An entropy in float32 may never come within 1e-12 of the target: halve 60 times, or allow "
    "more than that."
)


@checked
def find_divisor(answer):
    """find_divisor(scores, target): the divisor that gives the rows this mean entropy, in nats."""
    given = [
        *((normal(*sizes, seed=i) * size, target) for i, *sizes, size, target in SEARCHES),
        (TINY, 1.0),
    ]
    tried = [(scores.double(), target, divisor(answer, scores, target)) for scores, target in given]
    off = [i for i, one in enumerate(tried) if not hits(mean_entropy, *one)]
    if off:
        often, says = max(
            (sum(hits(measure, *tried[i]) for i in off), says)
            for says, measure in OTHER_TARGETS.items()
        )
        try:
            expect(2 * often <= len(off), says)
            say_where_it_ends(answer, *given[off[0]], tried[off[0]][2])
        except WrongAnswer as wrong:
            wrong.failed = answer, given[off[0]]
            raise
    return "Sharp enough and flat enough, for scores of any size."


find_divisor.judges_code = True


def mean_entropy(scores, divisor):
    return entropy((scores / divisor).softmax(-1)).mean()


def hits(measure, scores, target, divisor):
    return abs(measure(scores, divisor) - target) < 0.005


def divisor(answer, scores, target):
    """What the answer finds: a positive number."""
    try:
        got = call(answer, scores, target, name="find_divisor")
    except WrongAnswer as problem:
        endless = "seconds" in str(problem)
        raise WrongAnswer(f"{problem}{TOO_EXACT if endless else ''}") from None
    got = tensor(got, "find_divisor(...)")
    expect(got.numel() == 1, "find_divisor should return one number.")
    found = float(got)
    expect(
        math.isfinite(found) and found > 0,
        f"A divisor is a positive finite number, but yours is {found:.3g}.",
    )
    return found


def say_where_it_ends(answer, scores, target, found):
    """Raise what the result of a search that missed the target shows."""
    reached = float(mean_entropy(scores.double(), found))
    flat = reached > target
    easy = normal(8, 16, seed=1)
    sharper, flatter = (divisor(answer, easy, nats) for nats in (1.5, 2.5))
    expect(
        not (
            sharper > flatter * 1.0001 or (flat and found > 999) or (not flat and found < 0.00101)
        ),
        "Your search runs away from the target. Where the weights are too flat, the divisor is too "
        "large: lower `high`. Where they are too sharp, raise `low`. If you do that already, "
        "check your entropy: a sum along each row, positive, and not NaN where a weight is 0.",
    )
    where = (
        f"For a target of {target} your divisor {found:.4g} gives a mean entropy of {reached:.3f}, "
        f"too {'flat: divide by less' if flat else 'sharp: divide by more'}."
    )
    expect(sharper != flatter, f"{where} Two targets give the same divisor: use `target`.")
    if divisor(answer, scores, target * 0.98) != found:
        raise WrongAnswer(where)
    further = target / 2 if flat else (target + math.log(scores.shape[1])) / 2
    end = ("below", "low = 0.001") if flat else ("above", "high = 1000")
    expect(
        abs(divisor(answer, scores, further) / found - 1) > 0.001,
        f"{where} Your search never gets {end[0]} that: begin with {end[1]}, and take more steps.",
    )
    raise WrongAnswer(f"{where} Your search stops too early: take more steps.")
