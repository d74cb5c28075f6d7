"""The exercises on encoders and decoders: padding, Bahdanau's score, what buys more, heads."""

import math
from functools import partial

import torch
import torch.nn.functional as F

from exercises.check import (
    NotYet,
    checked,
    exercise,
    expect,
    expect_no_helpers,
    expect_no_loop,
    normal,
    reported,
    same,
)

# --- 17.1: nobody attends to padding --------------------------------------------------------------


def lengths(*numbers):
    return torch.tensor(numbers)


@exercise(
    inputs=[(lengths(3, 1), 3), (lengths(2, 5, 4), 5), (lengths(1, 2, 3, 4), 4), (lengths(2), 6),
            (lengths(0, 2), 3)],
    clash="`lengths[:, None]` is (B, 1): compared with (S,) it gives (B, S).",
    praise="One row for each text, the same for all heads and queries.",
    tolerance=0,
)  # fmt: skip
def padding_mask(lengths, S):
    """padding_mask(lengths, S): (B, 1, 1, S), True where a key is no padding."""
    return (torch.arange(S) < lengths[:, None])[:, None, None]


def places(lengths, S, compare=torch.lt, shape=lambda mask: mask[:, None, None], first=0):
    return shape(compare(torch.arange(first, first + S), lengths[:, None]))


padding_mask.mistakes = {
    "It is the wrong way round: True where a key may be attended to, False where it is padding.":
        partial(places, compare=torch.ge),
    "You allow one position too many: a row of length 3 has positions 0, 1 and 2 (<, not <=).":
        partial(places, compare=torch.le),
    "You mask the last token of each row. Positions count from 0, so position s is real if s < "
    "length.":
        partial(places, first=1),
    "That is (B, S). Heads and queries need a dimension each: (B, 1, 1, S).":
        partial(places, shape=lambda mask: mask),
    "The dimensions of length 1 are in the wrong order: (B, 1, 1, S), the keys last.":
        (partial(places, shape=lambda mask: mask[:, :, None, None]),
         partial(places, shape=lambda mask: mask[:, None, :, None]),
         partial(places, shape=lambda mask: mask[None, None])),
    "One dimension is missing: (B, 1, 1, S), for heads and for queries.":
        partial(places, shape=lambda mask: mask[:, None]),
    "The padding is at the end, not at the beginning: position s is real if s < length.":
        lambda lengths, S: places(lengths, S).flip(-1),
}  # fmt: skip


@padding_mask.then
def is_a_mask(answer):
    mask = answer(*padding_mask.inputs[0])
    expect(
        isinstance(mask, torch.Tensor) and mask.dtype == torch.bool,
        "The right positions, but attention takes a bool tensor of torch: compare (`<`) or end "
        "with `.bool()`.",
    )


# --- 17.2: Bahdanau's score -----------------------------------------------------------------------


def states(T, S, C, A, seed, large=1.0):
    h, s, v = normal(T, C, seed=seed), normal(S, C, seed=seed + 1), normal(A, seed=seed + 4)
    return h, s, large * normal(A, C, seed=seed + 2), normal(A, C, seed=seed + 3), v


@exercise(
    inputs=[states(2, 3, 4, 5, 0), states(4, 4, 4, 4, 10), states(1, 6, 3, 2, 20),
            states(5, 2, 6, 3, 30), states(3, 1, 5, 2, 50), states(3, 3, 3, 7, 40, large=20.0)],
    clash="q is (T, A), k is (S, A): q[:, None] + k is (T, S, A). Weights are (T, S), times the "
    "states (S, C).",
    praise="A hidden layer for each pair of states.",
    backward=True,
)  # fmt: skip
def additive_attention(h, states, W, U, v):
    """additive_attention(h, states, W, U, v): (T, C), what each decoder state finds."""
    return found(h, states, W, U, v)


def found(
    h, states, W, U, v, bend=torch.tanh, weigh=lambda scores: scores.softmax(-1), scale=1.0,
    join=lambda q, k: q[:, None] + k, values=lambda states, U: states,
):  # fmt: skip
    scores = bend(join(h @ W.T, states @ U.T)) @ v * scale
    return weigh(scores) @ values(states, U)


def but(**changes):
    return partial(found, **changes)


additive_attention.mistakes = {
    "The tanh is missing, or is not applied to the sum, v · tanh(q + k). So the query changes "
    "no weight.":
        but(bend=lambda x: x),
    "You applied tanh to each alone. Add first: v · tanh(q + k), or the query changes no weight.":
        but(bend=lambda x: x, join=lambda q, k: q.tanh()[:, None] + k.tanh()),
    "The activation function should be tanh.": (but(bend=torch.relu), but(bend=torch.sigmoid)),
    "The softmax runs over the decoder's states. Each *query* distributes its weight over the "
    "encoder's states, the last dimension of the scores (T, S).":
        but(weigh=lambda scores: scores.softmax(0)),
    "There is no softmax: scores are not weights yet.": but(weigh=lambda scores: scores),
    "The scores are divided by √A. Additive scores are not scaled: v can be as small as it needs.":
        lambda h, states, W, U, v: found(h, states, W, U, v, scale=len(v) ** -0.5),
    "That is a product of query and key inside tanh. Additive: their sum.":
        but(join=lambda q, k: q[:, None] * k),
    "Queries and keys are swapped: W makes queries of h, U makes keys of the states.":
        lambda h, states, W, U, v: found(h, states, U, W, v),
    "The values should be the states themselves, not the keys made of them.":
        but(values=lambda states, U: states @ U.T),
    "That is the mean of all states. Weigh them by the softmax of the scores.":
        but(weigh=lambda scores: torch.full_like(scores, 1 / scores.shape[-1])),
}  # fmt: skip


@additive_attention.then
def at_once(answer):
    expect_no_helpers(answer, additive_attention.inputs[0])
    says = "The values are right. Now without a loop: q[:, None] + k is (T, S, A)."
    expect_no_loop(answer, states(2, 3, 4, 5, 0), states(6, 9, 7, 8, 0), says)


# --- 17.3: what buys more? ------------------------------------------------------------------------

# Words of 8 letters right, the mean of three seeds: four times as wide, three times as long, or
# looking back. A test holds these numbers to the study.
BOUGHT = (0.3183, 0.2617, 0.9683)
OTHERWISE = {
    "These are words of 12 letters. Take those of 8.": (0.0050, 0.0033, 0.7600),
    "These are the best seeds. Take the mean of the three.": (0.3300, 0.2750, 0.9900),
    "The first is width 64. Four times 32 is 128.": (0.1300, 0.2617, 0.9683),
    "The last has additive scores. The task asks for dot products.": (0.3183, 0.2617, 0.9367),
    "The last is as wide as the first. Change one thing at a time: looking back at width 32.":
        (0.3183, 0.2617, 0.9350),
    "The last is trained as long as the second. Change one thing at a time: 600 steps.":
        (0.3183, 0.2617, 1.0),
}  # fmt: skip


@checked
def bought(answer):
    """bought: three mean shares (wider, longer, looking back), and which of them bought most"""
    wanted = "Set bought to four things: three fractions, and your verdict."
    *numbers, verdict = reported(answer, (*BOUGHT, "wider"), wanted)
    expect(
        not same([number / 100 for number in numbers], BOUGHT, 2e-3),
        "These are percentages. Give fractions between 0 and 1.",
    )
    expect(
        not same([numbers[1], numbers[0], numbers[2]], BOUGHT, 2e-3),
        "The first two are swapped: wider, longer, looking back, in this order.",
    )
    expect(numbers != [round(one, 1) for one in BOUGHT], "Nearly: give two decimals.")
    if not same(numbers, BOUGHT, 2e-3):
        for says, others in OTHERWISE.items():
            expect(not same(numbers, others, 5e-4), says)
        raise NotYet(
            'These are not the means of "letters 8": one vector with width=128, one vector with '
            "steps=1800, dot product with nothing changed, in this order."
        )
    words = ("wider", "longer", "looking back")
    expect(verdict in words, 'The verdict should be "wider", "longer" or "looking back".')
    expect(verdict == "looking back", "Which of your three numbers is the largest?")
    return "After 600 steps the narrow one that looks back is right three times as often."


# --- 17.4: cross-attention in many heads ----------------------------------------------------------


def read(B, T, S, C, H, heard, seed, large=0.7):
    """heard: for each text how many of its places are no padding, or which."""
    matrices = [large * normal(C, C, seed=seed + n) for n in range(4)]
    mask = torch.tensor(
        [[s in (range(h) if isinstance(h, int) else h) for s in range(S)] for h in heard]
    )
    return normal(B, T, C, seed=seed + 4), normal(B, S, C, seed=seed + 5), mask, *matrices, H


@exercise(
    inputs=[read(2, 3, 5, 8, 2, (5, 3), 0), read(3, 4, 4, 12, 3, (4, 2, 1), 10),
            read(1, 2, 6, 8, 4, (4,), 20), read(2, 5, 2, 6, 2, (1, 2), 30),
            read(2, 3, 3, 16, 4, (2, 3), 40), read(2, 3, 4, 8, 2, ((0, 2, 3), (1, 3)), 50),
            read(2, 1, 4, 8, 2, (4, 2), 70), read(2, 3, 1, 8, 2, (1, 1), 80),
            read(2, 6, 3, 8, 2, (1, 1), 60, large=7.0)],
    clash="Queries are (B, H, T, hs), keys and values (B, H, S, hs), the mask (B, 1, 1, S).",
    praise="There is one output for each query.",
    backward=True,
)  # fmt: skip
def cross_heads(x, source, mask, Wq, Wk, Wv, Wo, n_head):
    """cross_heads(x, source, mask, Wq, Wk, Wv, Wo, n_head): (B, T, C)."""
    return heard(x, source, mask, Wq, Wk, Wv, Wo, n_head)


def split(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def heard(
    x, source, mask, Wq, Wk, Wv, Wo, n_head, linear=F.linear, by=lambda q, x: q.shape[-1] ** 0.5,
    split=split, merge=lambda out: out.transpose(1, 2).flatten(2), out=True, causal=False,
    used=lambda mask: mask, of=lambda x, source: (x, source, source), fill=-math.inf,
    weigh=lambda scores, mask: scores.softmax(-1),
):  # fmt: skip
    q, k, v = (split(linear(t, W), n_head)
               for t, W in zip(of(x, source), (Wq, Wk, Wv), strict=True))  # fmt: skip
    scores = q @ k.mT / by(q, x)
    scores = scores.masked_fill(~used(mask)[:, None, None], fill)
    if causal:
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(ahead, -math.inf)
    y = merge(weigh(scores, mask[:, None, None]) @ v)
    return linear(y, Wo) if out else y


def strided(x, heads):
    return x.unflatten(-1, (-1, heads)).permute(0, 3, 1, 2)


def normalised(weights):
    return weights / weights.sum(-1, keepdim=True)


def otherwise(**changes):
    return partial(heard, **changes)


cross_heads.mistakes = {
    "Padding gets weight, because `mask` is not used.":
        otherwise(used=torch.ones_like),
    "`masked_fill` fills where its mask is True, and that should be the padding: `~mask`.":
        (otherwise(used=lambda mask: ~mask), otherwise(used=lambda mask: ~mask, fill=-1e9)),
    "You set the weights, or the values, of padding to 0 *after* the softmax: the rest no longer "
    "sums to 1. Set the scores to −∞ before it.": otherwise(
        used=torch.ones_like, weigh=lambda scores, mask: scores.softmax(-1) * mask),
    "Padding of 0 still gets weight: its score is 0, and e⁰ is 1. Set its *scores* to −∞.": (
        otherwise(fill=0.0),
        lambda x, source, mask, *rest: heard(
            x, source * mask[..., None], torch.ones_like(mask), *rest)),
    "exp of a large score is infinite, and ∞/∞ is NaN. `softmax` subtracts the largest score "
    "first.":
        (otherwise(weigh=lambda scores, mask: normalised(scores.exp())),
         otherwise(used=torch.ones_like,
                   weigh=lambda scores, mask: normalised(scores.exp() * mask))),
    "You subtract the largest score while padding is still among the scores. Where padding has it, "
    "e to all others rounds to 0, and 0/0 is NaN: set padding's scores to −∞ before that.":
        otherwise(used=torch.ones_like, weigh=lambda scores, mask: normalised(
            (scores - scores.amax(-1, keepdim=True)).exp() * mask)),
    "You use a causal mask. The whole source is there, so cross-attention needs none.":
        otherwise(causal=True),
    "The scores are not divided by √hs.": otherwise(by=lambda q, x: 1),
    "The scores are divided by hs. It is √hs.": otherwise(by=lambda q, x: q.shape[-1]),
    "The scores are divided by √C. A head has hs = C / n_head numbers: √hs.":
        otherwise(by=lambda q, x: x.shape[-1] ** 0.5),
    "You use one head: split the features into n_head of them.":
        otherwise(split=lambda x, heads: x[:, None]),
    "Your heads take every n_head-th feature. Neighbouring features make a head: unflatten(-1, "
    "(n_head, -1)).": (
        otherwise(split=strided),
        otherwise(split=strided, merge=lambda out: out.permute(0, 2, 3, 1).flatten(2))),
    "You use another number of heads. n_head is how many there are, not how many numbers each has: "
    "unflatten(-1, (n_head, -1)).": otherwise(
        split=lambda x, heads: x.unflatten(-1, (-1, heads)).transpose(1, 2)),
    "`view` or `reshape` straight to (B, H, T, hs) mixes the tokens: split the last dimension, "
    "then transpose.": otherwise(
        split=lambda x, heads: x.reshape(len(x), heads, x.shape[1], -1)),
    "The heads are put together without a transpose back: that mixes the tokens.":
        otherwise(merge=lambda out: out.reshape(len(out), out.shape[2], -1)),
    "The output matrix is missing: `Wo` mixes the heads.": otherwise(out=False),
    "You apply a matrix as x @ W. Apply each as x @ W.T, or F.linear(x, W).": (
        otherwise(linear=torch.matmul),
        lambda x, source, mask, Wq, *rest: heard(x, source, mask, Wq.T, *rest),
        lambda x, source, mask, Wq, Wk, Wv, Wo, n: heard(x, source, mask, Wq, Wk, Wv, Wo.T, n)),
    "That is self-attention of x: keys and values come from the source.":
        (lambda x, source, mask, *rest: heard(
            x, x, torch.ones(x.shape[:2], dtype=torch.bool), *rest),
         otherwise(of=lambda x, source: (x, x, x))),
    "Keys *and* values come from the source.": (
        otherwise(of=lambda x, source: (x, x, source)),
        otherwise(of=lambda x, source: (x, source, x))),
    "It is the wrong way round: queries come from x, keys and values from the source.":
        (lambda x, source, mask, *rest: heard(
            source, x, torch.ones(x.shape[:2], dtype=torch.bool), *rest),
         otherwise(of=lambda x, source: (source, x, x))),
    "Keys and values are swapped: Wk makes keys, Wv values.":
        lambda x, source, mask, Wq, Wk, Wv, *rest: heard(x, source, mask, Wq, Wv, Wk, *rest),
}  # fmt: skip


@cross_heads.then
def heads_at_once(answer):
    expect_no_helpers(answer, cross_heads.inputs[0])
    says = "The values are right. Now without a loop over heads: let them be a dimension."
    expect_no_loop(answer, read(2, 3, 5, 8, 2, (5, 3), 0), read(2, 3, 5, 16, 4, (5, 3), 0), says)
