"""The exercises on what heads do: a score for induction, a head at its mean, the verbs' heads."""

import math
from collections.abc import Mapping
from functools import partial

import torch

from exercises.check import NotAttempted, NotYet, checked, exercise, expect, normal, plain, same

# --- 16.1: a score for induction ------------------------------------------------------------------


def looked(ids, seed):
    """(weights (T, T), ids): a causal map at random, and tokens some of which come again."""
    scores = 2 * normal(len(ids), len(ids), seed=seed)
    ahead = torch.ones(len(ids), len(ids), dtype=torch.bool).triu(1)
    return scores.masked_fill(ahead, -torch.inf).softmax(-1), ids


def nothing_found(seed):
    """A text in which one place gives nothing at all to what followed its token the last time."""
    weights, ids = looked([6, 1, 6, 1, 2, 6], seed)
    weights[3, 2] = 0
    return weights / weights.sum(-1, keepdim=True), ids


def score(
    weights, ids, pick=lambda earlier: earlier[-1:], step=1, every=False, total=False,
    turned=False, twice=False, apart=0, before=False,
):  # fmt: skip
    """The mean weight on what followed the last earlier place of a token, or a mistaken one."""
    found = []
    for i, token in enumerate(ids):
        earlier = [j for j in range(i - apart) if ids[j] == token]
        if twice and ids.count(token) != 2:
            continue
        places = [j + step for j in pick(earlier) if j + step < (i if before else len(ids))]
        found += [weights[j, i] if turned else weights[i, j] for j in places]
        if every and not earlier:
            found.append(torch.tensor(0.0))
    if not found:
        return 0.0
    return sum(found) if total else sum(found) / len(found)


NONE = "If no token occurs twice, the score is 0.0."


@exercise(
    inputs=[looked([4, 7, 9, 4, 7, 9, 4], 1), looked([1, 2, 1, 3, 1, 5, 2, 1, 3, 2], 2),
            looked([5, 5, 5, 8, 5], 3), looked([0, 6, 2, 0, 3, 6, 0, 2], 4), looked([3, 1, 2], 5),
            looked([5, 5], 6), looked([8, 3, 1, 0, 4, 2], 7), nothing_found(8),
            # Above 256 each number is an object of its own in Python.
            looked(torch.tensor([700, 900, 700, 800, 900, 700, 900]).tolist(), 9)],
    why=[*[""] * 4, NONE, "", NONE, "", ""],
    meaning={"None|ZeroDivisionError|NaN|empty": NONE},
    praise="One score per head, for any text with repeated tokens.",
)  # fmt: skip
def induction_score(weights, ids):
    """induction_score(weights, ids): the mean weight on what followed a token the last time."""
    return score(weights, ids)


induction_score.mistakes = {
    "You look at the earlier token itself. Induction looks at the token that *followed* it, one "
    "position later.": partial(score, step=0),
    "You look at the token before the earlier one, not at the one after it.":
        partial(score, step=-1),
    "You take an earlier position of the token, but not the last one.":
        (partial(score, pick=lambda earlier: earlier[:1]),
         partial(score, pick=lambda earlier: earlier[-2:][:1])),
    "You count all earlier positions of a token. Count only the last one.":
        partial(score, pick=lambda earlier: earlier),
    "You count only tokens that occur exactly twice, as section 4 did. Here a token may occur more "
    "often: each position but its first counts.": partial(score, twice=True),
    "You leave out position 0, as `if j:` does. Write `if j is not None`.":
        partial(score, pick=lambda earlier: [j for j in earlier[-1:] if j]),
    "You divide by the number of all positions. A token without an earlier occurrence has nothing "
    "to follow: leave it out of the mean.": partial(score, every=True),
    "This is the sum. Divide by the number of positions that count.": partial(score, total=True),
    "Rows and columns are swapped: weights[i, j] is the weight that position i gives to j.":
        partial(score, turned=True),
    "Your score is always 0. For each position i look for *earlier* positions of its token, j < i, "
    "and collect weights[i, j + 1].": lambda weights, ids: 0.0,
    "You leave out tokens that occur twice in a row. There j + 1 is i, and the weight that i gives "
    "to itself counts.": (
        partial(score, apart=1), partial(score, before=True)),
}  # fmt: skip


# --- 16.2: a head at its mean ---------------------------------------------------------------------


def mean_of(
    gathered, head, hs, dims=(0, 1), how=torch.mean, zero=False, strided=False, others=False
):
    """What a head has gathered, its numbers replaced by their mean over texts and tokens."""
    x = gathered.clone()
    H = x.shape[-1] // hs
    mine = torch.zeros(x.shape[-1], dtype=torch.bool)
    mine[range(head, x.shape[-1], H) if strided else range(head * hs, head * hs + hs)] = True
    if others:
        mine = ~mine
    x[..., mine] = 0 if zero else how(x[..., mine], dims, keepdim=True)
    return x


@exercise(
    inputs=[(normal(2, 5, 12, seed=1), 1, 4), (normal(3, 4, 12, seed=2), 0, 3),
            (normal(1, 6, 8, seed=3), 3, 2), (normal(4, 1, 10, seed=4), 1, 5)],
    praise="The head still adds something, but the same for every token.",
)  # fmt: skip
def at_its_mean(gathered, head, hs):
    """at_its_mean(gathered, head, hs): one head's numbers at their mean over texts and tokens."""
    return mean_of(gathered, head, hs)


def begun_at_head(gathered, head, hs):
    x, mine = gathered.clone(), slice(head, head + hs)
    x[..., mine] = x[..., mine].mean((0, 1))
    return x


at_its_mean.mistakes = {
    "You set the head to 0. Set it to its mean.": partial(mean_of, zero=True),
    "You took the mean over the head's features, too: each of its hs numbers has a mean of its "
    "own.": partial(mean_of, dims=(0, 1, 2)),
    "You took the mean over the tokens of each text alone. It goes over texts and tokens.":
        partial(mean_of, dims=1),
    "You took the mean over the texts at each position alone. It goes over texts and tokens.":
        partial(mean_of, dims=0),
    "You took the mean over the features of each token. It goes over texts and tokens.":
        partial(mean_of, dims=2),
    "You took every H-th number. A head's hs numbers are side by side: head · hs to (head + 1) · "
    "hs.": partial(mean_of, strided=True),
    "You changed the other heads. Change only this one.": partial(mean_of, others=True),
    "You changed all heads. Change only this one.":
        lambda gathered, head, hs: mean_of(gathered, 0, gathered.shape[-1]),
    "That is the sum over texts and tokens. Take their mean.":
        partial(mean_of, how=torch.sum),
    "You changed another head. Heads count from 0: head · hs to (head + 1) · hs.":
        (lambda gathered, head, hs: mean_of(gathered, 0, hs),
         lambda gathered, head, hs: mean_of(gathered, head - 1, hs)),
    "The head begins at head · hs. You begin at head.": begun_at_head,
}  # fmt: skip


@at_its_mean.then
def goes_back_into_the_model(answer):
    (x, *rest) = at_its_mean.inputs[0]
    changed = answer(x, *rest)
    expect(
        isinstance(changed, torch.Tensor) and changed.dtype == x.dtype,
        "The numbers are right, but the hook puts them back into the model: return a tensor of the "
        "same type as `gathered`.",
    )


# --- 16.3: the verb's heads -----------------------------------------------------------------------

# What has and have lose without a head, in nats, on the forty beginnings of section 6; worked out
# by the solution in the chapter, whose check fails if it no longer holds.
LOST = {(26, 0): 1.93, (27, 8): 0.66}


@checked
def needed(answer):
    """needed: the two heads of layers 26 and 27 that cost most, each with the nats that are lost"""
    if answer is ...:
        raise NotAttempted
    expect(
        isinstance(answer, Mapping) and len(answer) == 2,
        "Set needed to a dict of two heads: {(layer, head): nats, (layer, head): nats}.",
    )
    if any(value is ... for value in answer.values()):
        raise NotAttempted
    try:
        found = {
            (float(plain(layer) + 0), float(plain(head) + 0)): float(plain(lost) + 0)
            for (layer, head), lost in answer.items()
        }
    except (TypeError, ValueError, RuntimeError):
        raise NotYet(
            "A head is a pair of whole numbers, its loss a number: {(25, 3): 0.1, …}."
        ) from None
    turned = {(head, layer) for layer, head in found}
    expect(turned != set(LOST), "Layer first, then head: (26, 0) is head 0 of layer 26.")
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
        "These are not the two heads without which has and have lose most. For each of the 18 "
        "heads: the mean preference with all heads, less that without it.",
    )
    lost, want = [found[head] for head in LOST], list(LOST.values())
    for times, says in ((-1, "change the sign: a loss is what all heads have more"),
                        (1 / math.log(2), "these are bits: the logits' differences are nats"),
                        (40, "this is the sum: divide by the forty beginnings")):  # fmt: skip
        expect(not same(lost, [times * x for x in want], 0.02), f"The right heads; {says}.")
    expect(not same(lost, want[::-1], 0.05), "The right heads, but their losses are swapped.")
    apart = max(abs(a - b) for a, b in zip(lost, want, strict=True))
    expect(apart < 0.011 or not same(lost, want, 0.03), "Nearly: give two decimals.")
    expect(
        apart < 0.011,
        "The right heads, but these are not the nats: the mean over the forty beginnings of "
        "(right verb − wrong verb), with all heads, less the same without the head.",
    )
    return "The head that *is* and *are* need is also the one that *has* and *have* need."
