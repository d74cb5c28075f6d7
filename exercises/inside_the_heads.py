"""The exercises on what heads do: a score for induction, a head at its mean, the verbs' heads."""

from collections.abc import Mapping
from functools import partial

import torch

from exercises.check import NotAttempted, checked, exercise, expect, normal, reported, same

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
    return score(weights, ids)


def score(weights, ids, pick=lambda earlier: earlier[-1:], step=1, mean_over_all=False, apart=0):
    """pick: of the earlier positions of a token those that count; apart: leave the next ones out"""
    found = []
    for i, token in enumerate(ids):
        earlier = [j for j in range(i - apart) if ids[j] == token]
        found += [weights[i, j + step] for j in pick(earlier)]
    return sum(found) / (len(ids) if mean_over_all else len(found)) if found else 0.0


induction_score.mistake(
    "You look at the earlier token itself. Induction looks at the token that *followed* it, one "
    "position later.",
    partial(score, step=0),
)
induction_score.mistake(
    "You take an earlier position of the token, but not the last one.",
    partial(score, pick=lambda earlier: earlier[:1]),
)
induction_score.mistake(
    "You count all earlier positions of a token. Count only the last one.",
    partial(score, pick=lambda earlier: earlier),
)
induction_score.mistake(
    "You leave out position 0, as `if j:` does. Write `if j is not None`.",
    partial(score, pick=lambda earlier: [j for j in earlier[-1:] if j]),
)
induction_score.mistake(
    "You divide by the number of all positions. A token without an earlier occurrence has nothing "
    "to follow: leave it out of the mean.",
    partial(score, mean_over_all=True),
)
induction_score.mistake(
    "Rows and columns are swapped: weights[i, j] is the weight that position i gives to j.",
    lambda weights, ids: score(weights.T, ids),
)
induction_score.mistake(
    "You leave out tokens that occur twice in a row. There j + 1 is i, and the weight that i gives "
    "to itself counts.",
    partial(score, apart=1),
)


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
    return replaced(gathered, slice(head * hs, (head + 1) * hs))


def replaced(gathered, features, by=lambda x: x.mean((0, 1))):
    x = gathered.clone()
    x[..., features] = by(x[..., features])
    return x


def replaced_by(by):
    return lambda gathered, head, hs: replaced(gathered, slice(head * hs, head * hs + hs), by)


at_its_mean.mistake("You set the head to 0. Set it to its mean.", replaced_by(torch.zeros_like))
at_its_mean.mistake(
    "You took the mean over the head's features, too: each of its hs numbers has a mean of its "
    "own.",
    replaced_by(torch.mean),
)
at_its_mean.mistake(
    "You took the mean over the tokens of each text alone. It goes over texts and tokens.",
    replaced_by(lambda x: x.mean(1, keepdim=True)),
)
at_its_mean.mistake(
    "You took the mean over the texts at each position alone. It goes over texts and tokens.",
    replaced_by(lambda x: x.mean(0)),
)
at_its_mean.mistake(
    "You took every H-th number. A head's hs numbers are side by side: head · hs to (head + 1) · "
    "hs.",
    lambda gathered, head, hs: replaced(gathered, slice(head, None, gathered.shape[-1] // hs)),
)
at_its_mean.mistake(
    "The head begins at head · hs. You begin at head.",
    lambda gathered, head, hs: replaced(gathered, slice(head, head + hs)),
)


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
    if any(value is ... for value in answer.values()):
        raise NotAttempted
    wanted = "A head is a pair of whole numbers, its cost a number: {(25, 3): 0.1, …}."
    heads, losses = reported(([*answer], [*answer.values()]), ([(26, 0)], [0.5]), wanted)
    found = dict(zip(heads, losses, strict=True))
    swapped = {(head, layer) for layer, head in found}
    expect(swapped != set(LOST), "Layer first, then head: (26, 0) is head 0 of layer 26.")
    expect(
        set(found) != {(26, 0), (28, 7)},
        "(28, 7) attends to the subject. The question is which heads of layers 26 and 27 cost the "
        "most when they are ablated.",
    )
    expect(
        all(layer in (26, 27) and 0 <= head < 9 for layer, head in found),
        "Both heads are in layers 26 and 27, and a layer has heads 0 to 8.",
    )
    expect(
        set(found) == set(LOST),
        "These are not the two heads that cost the most. For each of the 18 heads, the cost is the "
        "mean logit difference with all heads minus the mean logit difference without the head.",
    )
    lost, want = [found[head] for head in LOST], list(LOST.values())
    wrong = (
        (-1, "change the sign: a cost is positive if the logit difference falls"),
        (40, "this is the sum: divide by the forty openings"),
    )
    for times, says in wrong:
        expect(not same(lost, [times * x for x in want], 0.02), f"The right heads; {says}.")
    expect(not same(lost, want[::-1], 0.05), "The right heads, but their costs are swapped.")
    apart = max(abs(a - b) for a, b in zip(lost, want, strict=True))
    expect(apart < 0.011 or not same(lost, want, 0.03), "Nearly: give two decimals.")
    expect(
        apart < 0.011,
        "The right heads, but these are not the nats: the mean over the forty openings of "
        "(right verb − wrong verb), with all heads, minus the same without the head.",
    )
    return "The head that *is* and *are* need is also the one that *has* and *have* need."
