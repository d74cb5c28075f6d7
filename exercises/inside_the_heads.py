"""The exercises on what heads do: a score for induction, a head at its mean, the verbs' heads."""

from collections.abc import Mapping

import torch

from exercises.check import (
    checked,
    diagnose,
    exercise,
    expect,
    normal,
    reported,
    same,
)

# --- a score for induction ------------------------------------------------------------------------


def attention_map(ids, seed):
    """(weights (T, T), ids): a causal map at random, and tokens, some of which occur again."""
    scores = 2 * normal(len(ids), len(ids), seed=seed)
    future = torch.ones(len(ids), len(ids), dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(-1), ids


def with_a_zero(seed):
    """A text in which one position gives no weight to what followed its token the last time."""
    weights, ids = attention_map([6, 1, 6, 1, 2, 6], seed)
    weights[3, 2] = 0
    return weights / weights.sum(-1, keepdim=True), ids


NONE = "If no token occurs twice, the score is 0.0."


@exercise(
    inputs=lambda draw: [
        attention_map([4, 7, 9, 4, 7, 9, 4], 1),
        attention_map([1, 2, 1, 3, 1, 5, 2, 1, 3, 2], 2),
        attention_map([5, 5, 5, 8, 5], 3),
        attention_map([0, 6, 2, 0, 3, 6, 0, 2], 4),
        attention_map([3, 1, 2], 5),
        attention_map([5, 5], 6),
        attention_map([8, 3, 1, 0, 4, 2], 7),
        with_a_zero(8),
        # Above 256 each number is an object of its own in Python.
        attention_map(torch.tensor([700, 900, 700, 800, 900, 700, 900]).tolist(), 9),
    ],
    why=[*[""] * 4, NONE, "", NONE, "", ""],
    error_hints={"None|ZeroDivisionError|NaN|empty": NONE},
    on_success="One score per head, for any text with repeated tokens.",
)
def induction_score(weights, ids):
    """induction_score(weights, ids): the mean weight on what followed a token the last time."""
    found = []
    for i, token in enumerate(ids):
        earlier = [j for j in range(i) if ids[j] == token]
        found += [weights[i, j + 1] for j in earlier[-1:]]
    return sum(found) / len(found) if found else 0.0


induction_score.slips("""
    You look at the earlier token itself. Induction looks at the token that *followed* it, one
    position later.
        j + 1 → j
    You take an earlier position of the token, but not the last one.
        earlier[-1:] → earlier[:1]
    You count all earlier positions of a token. Count only the last one.
        earlier[-1:] → earlier
    You leave out position 0, as `if j:` does. Write `if j is not None`.
        earlier[-1:] → earlier[-1:] if j
    You divide by the number of all positions. A token without an earlier occurrence has nothing to
    follow: leave it out of the mean.
        len(found) → len(ids)
    Rows and columns are swapped: weights[i, j] is the weight that position i gives to j.
        right(weights.T, ids)
    You leave out tokens that occur twice in a row. There j + 1 is i, and the weight that i gives to
    itself counts.
        range(i) → range(i - 1)
""")


# --- a head at its mean ---------------------------------------------------------------------------


@exercise(
    inputs=lambda draw: [
        (normal(2, 5, 12, seed=1), 1, 4),
        (normal(3, 4, 12, seed=2), 0, 3),
        (normal(1, 6, 8, seed=3), 3, 2),
        (normal(4, 1, 10, seed=4), 1, 5),
    ],
    on_success="The head still adds something, but the same for every token.",
)
def at_its_mean(gathered, head, hs):
    """at_its_mean(gathered, head, hs): one head's numbers at their mean over texts and tokens."""
    own = slice(head * hs, (head + 1) * hs)
    x = gathered.clone()
    x[..., own] = x[..., own].mean((0, 1))
    return x


at_its_mean.slips("""
    You set the head to 0. Set it to its mean.
        x[..., own].mean((0, 1)) → 0
    You took the mean over the head's features, too: each of its hs numbers has a mean of its own.
        .mean((0, 1)) → .mean()
    You took the mean over the tokens of each text alone. It goes over texts and tokens.
        .mean((0, 1)) → .mean(1, keepdim=True)
    You took the mean over the texts at each position alone. It goes over texts and tokens.
        .mean((0, 1)) → .mean(0)
    You took every H-th number. A head's hs numbers are side by side: head · hs to (head + 1) · hs.
        slice(head * hs, (head + 1) * hs) → slice(head, None, gathered.shape[-1] // hs)
    The head begins at head · hs. You begin at head.
        slice(head * hs, (head + 1) * hs) → slice(head, head + hs)
""")


@at_its_mean.also
def goes_back_into_the_model(answer):
    (x, *rest) = at_its_mean.inputs[0]
    changed = answer(x, *rest)
    expect(
        isinstance(changed, torch.Tensor) and changed.dtype == x.dtype,
        "The numbers are right, but the hook puts them back into the model: return a tensor of the "
        "same type as `gathered`.",
    )


# --- the verb's heads -----------------------------------------------------------------------------

# What each head costs for has and have, in nats, on the forty openings of section 6; worked out
# by the solution in the chapter, whose check fails if it no longer holds.
LOST = {(26, 0): 1.93, (27, 8): 0.66}


@checked
def needed(answer):
    """needed: the two heads of layers 26 and 27 that cost most, each with its cost in nats"""
    expect(
        isinstance(answer, Mapping) and len(answer) == 2,
        "Set needed to a dict of two heads: {(layer, head): nats, (layer, head): nats}.",
    )
    wanted = "A head is a pair of whole numbers, its cost a number: {(25, 3): 0.1, …}."
    heads, losses = reported(([*answer], [*answer.values()]), ([(26, 0)], [0.5]), wanted)
    found = dict(zip(heads, losses, strict=True))
    lost, want = [found.get(head) for head in LOST], [*LOST.values()]

    def near(those, by):
        return same(lost, those, by)

    def apart():
        return max(abs(a - b) for a, b in zip(lost, want, strict=True)) >= 0.011

    diagnose("""
        Layer first, then head: (26, 0) is head 0 of layer 26.
            {(head, layer) for layer, head in found} == set(LOST)
        (28, 7) attends to the subject. The question is which heads of layers 26 and 27 cost the
        most when they are ablated.
            set(found) == {(26, 0), (28, 7)}
        Both heads are in layers 26 and 27, and a layer has heads 0 to 8.
            not all(layer in (26, 27) and 0 <= head < 9 for layer, head in found)
        These are not the two heads that cost the most. For each of the 18 heads, the cost is the
        mean logit difference with all heads minus the mean logit difference without the head.
            set(found) != set(LOST)
        The right heads; change the sign: a cost is positive if the logit difference falls.
            near([-x for x in want], 0.02)
        The right heads; this is the sum: divide by the forty openings.
            near([40 * x for x in want], 0.02)
        The right heads, but their costs are swapped.
            near(want[::-1], 0.05)
        Nearly: give two decimals.
            apart() and near(want, 0.03)
        The right heads, but these are not the nats: the mean over the forty openings of
        (right verb − wrong verb), with all heads, minus the same without the head.
            apart()
    """)
    return "The head that *is* and *are* need is also the one that *has* and *have* need."
