"""The exercises of the chapter on scaling."""

import math

import torch
from torch import nn

from exercises.check import checked, diagnose, exercise, expect, normal, reported

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

C = 256  # the width that the authors of the five heads had in mind


def head(divisor=lambda hs: hs**0.5, after=lambda hs: 1):
    """A head without a mask whose scores, and then its weights, are divided by functions of hs."""

    def weights(q, k):
        hs = q.shape[-1]
        return (q @ k.transpose(-2, -1) / divisor(hs)).softmax(-1) / after(hs)

    return weights


FAULTS = {
    "right": head(),
    "√C": head(lambda hs: C**0.5),
    "always 8": head(lambda hs: 8),
    "twice": head(lambda hs: hs),
    "after": head(lambda hs: 1, lambda hs: hs**0.5),
}
HEADS = dict(zip("ABCDE", ("always 8", "after", "right", "twice", "√C"), strict=True))
heads = {letter: FAULTS[fault] for letter, fault in HEADS.items()}


def measured(weights, hs):
    """The standard deviation of the scores behind these weights, and the sum of a row."""
    found = weights(normal(200, hs, seed=1), normal(16, hs, seed=2)).double().log()
    return (found - found.mean(-1, keepdim=True)).std().item(), found.exp().sum(-1).mean().item()


@checked
def what_is_wrong(answer):
    """{"A": "right" or what is wrong with it, … "E": …} of the five in `heads`."""
    names = ", ".join(f'"{fault}"' for fault in FAULTS)
    wanted = f"Give a dictionary with one of {names} for each of the letters A to E."
    said = reported(answer, dict(HEADS), wanted)
    known = {fault.lower(): fault for fault in FAULTS}
    for letter, fault in HEADS.items():
        named = said[letter].strip().replace("c", "C") if "√" in said[letter] else said[letter]
        expect(named.lower() in known, f"{wanted} (For {letter}, yours has {said[letter]!r}.)")
        claimed = FAULTS[known[named.lower()]]
        at = max(
            (16, 64, 256), key=lambda hs: abs(math.log(size(heads[letter], hs) / size(claimed, hs)))
        )
        ours, theirs = measured(heads[letter], at), measured(claimed, at)
        expect(
            known[named.lower()] == fault,
            f"Head {letter} is not what you say. At hs = {at}, the scores behind its weights have "
            f"a standard deviation of {ours[0]:.2f}, and its rows sum to {ours[1]:.2f}. With "
            f'"{known[named.lower()]}" it would be {theirs[0]:.2f} and {theirs[1]:.2f}.',
        )
    return (
        "At hs = 64, A passes every test, and at hs = 256 = C, so does E: one size proves nothing."
    )


def size(weights, hs):
    return measured(weights, hs)[0]
