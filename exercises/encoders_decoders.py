"""The exercises on encoders and decoders: padding, Bahdanau's score, what buys more, heads."""

import math

import torch
import torch.nn.functional as F

from exercises.check import (
    checked,
    diagnose,
    exercise,
    expect,
    expect_no_helpers,
    expect_no_loop,
    normal,
    reported,
    same,
)

# --- 21.1: nobody attends to padding --------------------------------------------------------------


@exercise(
    inputs=lambda draw: [
        (torch.tensor([3, 1]), 3),
        (torch.tensor([2, 5, 4]), 5),
        (torch.tensor([1, 2, 3, 4]), 4),
        (torch.tensor([2]), 6),
        (torch.tensor([0, 2]), 3),
        *((torch.tensor([draw.randint(1, S) for _ in range(B)]), S) for B, S in ((3, 7), (5, 6))),
    ],
    on_shape_error="`lengths[:, None]` is (B, 1): compared with (S,) it gives (B, S).",
    on_success="One row for each text, the same for all heads and queries.",
    tolerance=0,
)
def padding_mask(lengths, S):
    """padding_mask(lengths, S): (B, 1, 1, S), True where a key is no padding."""
    return (torch.arange(S) < lengths[:, None])[:, None, None]


padding_mask.slips("""
    It is the wrong way round: True where a key may be attended to, False where it is padding.
        ~right(lengths, S)
    You allow one position too many: a row of length 3 has positions 0, 1 and 2 (<, not <=).
        < → <=
    You mask the last token of each row. Positions count from 0, so position s is real if s <
    length.
        right(lengths - 1, S)
    That is (B, S). Heads and queries need a dimension each: (B, 1, 1, S).
        right(lengths, S)[:, 0, 0]
    The padding is at the end, not at the beginning: position s is real if s < length.
        right(lengths, S).flip(-1)
""")


@padding_mask.also
def is_a_mask(answer):
    mask = answer(*padding_mask.inputs[0])
    expect(
        isinstance(mask, torch.Tensor) and mask.dtype == torch.bool,
        "The right positions, but attention takes a bool tensor of torch: compare (`<`) or end "
        "with `.bool()`.",
    )


# --- 21.2: Bahdanau's score -----------------------------------------------------------------------


def states(T, S, C, A, seed, large=1.0):
    h, s, v = normal(T, C, seed=seed), normal(S, C, seed=seed + 1), normal(A, seed=seed + 4)
    return h, s, large * normal(A, C, seed=seed + 2), normal(A, C, seed=seed + 3), v


@exercise(
    inputs=lambda draw: [
        states(2, 3, 4, 5, 0),
        states(4, 4, 4, 4, 10),
        states(1, 6, 3, 2, 20),
        states(5, 2, 6, 3, 30),
        states(3, 1, 5, 2, 50),
        states(3, 3, 3, 7, 40, large=20.0),
    ],
    on_shape_error="W h is (T, A) and U s is (S, A). As (T, 1, A) and (S, A), they can be added. "
    "Weights are (T, S), times the states (S, C).",
    on_success="A hidden layer for each pair of states.",
    backward=True,
)
def additive_attention(h, states, W, U, v):
    """additive_attention(h, states, W, U, v): (T, C), what each decoder state finds."""
    scores = ((h @ W.T)[:, None] + states @ U.T).tanh() @ v
    return scores.softmax(-1) @ states


additive_attention.slips("""
    The tanh is missing, or is not applied to the sum, v · tanh(W h + U s). So h changes no weight.
        .tanh() →
    You applied tanh to each alone. Add first, v · tanh(W h + U s), or h changes no weight.
        ((h @ W.T)[:, None] + states @ U.T).tanh() →
        ; scores = → scores = ((h @ W.T)[:, None].tanh() + (states @ U.T).tanh())
    The activation function should be tanh.
        tanh() → relu()
    The softmax runs over the decoder's states. Each of them distributes its weight over the
    encoder's states, the last dimension of the scores (T, S).
        softmax(-1) → softmax(0)
    There is no softmax: scores are not weights yet.
        .softmax(-1) →
    The scores are divided by √A. Additive scores are not scaled: v can be as small as it needs.
        right(h, states, W, U, v / len(v) ** 0.5)
    Queries and keys are swapped: W makes queries of h, U makes keys of the states.
        right(h, states, U, W, v)
""")


@additive_attention.also
def at_once(answer):
    expect_no_helpers(answer, additive_attention.inputs[0])
    says = "The values are right. Now without a loop: q[:, None] + k is (T, S, A)."
    expect_no_loop(answer, states(2, 3, 4, 5, 0), states(6, 9, 7, 8, 0), says)


# --- 21.3: what helps more? -----------------------------------------------------------------------

# Words of 8 letters right, the mean of three seeds: four times as wide, three times as long, or
# attention. A test holds these numbers to the study.
HELPED = (0.3183, 0.2617, 0.9683)


@checked
def helped(answer):
    """helped: three mean shares (wider, longer, attention), and which of them helped most"""
    wanted = "Set helped to four things: three fractions, and your verdict."
    *numbers, verdict = reported(answer, (*HELPED, "wider"), wanted)

    def near(*those, by=5e-4):
        return same(numbers, those, by)

    diagnose("""
        These are percentages. Give fractions between 0 and 1.
            near(*(100 * one for one in HELPED), by=0.01)
        The first two are swapped: wider, longer, attention, in this order.
            near(HELPED[1], HELPED[0], HELPED[2], by=2e-3)
        Nearly: give two decimals.
            numbers == [round(one, 1) for one in HELPED]
        These are words of 12 letters. Take those of 8.
            near(0.0050, 0.0033, 0.7600)
        These are the best seeds. Take the mean of the three.
            near(0.3300, 0.2750, 0.9900)
        The last has additive scores. The task asks for dot products.
            near(0.3183, 0.2617, 0.9367)
        The last is as wide as the first. Change one thing at a time: attention at width 32.
            near(0.3183, 0.2617, 0.9350)
        The last is trained as long as the second. Change one thing at a time: 600 steps.
            near(0.3183, 0.2617, 1.0)
        These are not the means of "letters 8": one vector with width=128, one vector with
        steps=1800, dot product with nothing changed, in this order.
            not near(*HELPED, by=2e-3)
        The verdict should be "wider", "longer" or "attention".
            verdict not in ("wider", "longer", "attention")
        Which of your three numbers is the largest?
            verdict != "attention"
    """)
    return "Attention at width 32 is right three times as often as one vector of width 128."


# --- 21.4: cross-attention in many heads ----------------------------------------------------------


def layer(B, T, S, C, H, real, seed, large=0.7):
    """real: for each text how many of its positions are no padding, or which."""
    matrices = [large * normal(C, C, seed=seed + n) for n in range(4)]
    mask = torch.tensor(
        [[s in (range(r) if isinstance(r, int) else r) for s in range(S)] for r in real]
    )
    return normal(B, T, C, seed=seed + 4), normal(B, S, C, seed=seed + 5), mask, *matrices, H


@exercise(
    inputs=lambda draw: [
        layer(2, 3, 5, 8, 2, (5, 3), 0),
        layer(3, 4, 4, 12, 3, (4, 2, 1), 10),
        layer(1, 2, 6, 8, 4, (4,), 20),
        layer(2, 5, 2, 6, 2, (1, 2), 30),
        layer(2, 3, 3, 16, 4, (2, 3), 40),
        layer(2, 3, 4, 8, 2, ((0, 2, 3), (1, 3)), 50),
        layer(2, 1, 4, 8, 2, (4, 2), 70),
        layer(2, 3, 1, 8, 2, (1, 1), 80),
        layer(2, 6, 3, 8, 2, (1, 1), 60, large=7.0),
    ],
    on_shape_error="Queries are (B, H, T, hs), keys and values (B, H, S, hs), the mask (B, 1, 1, "
    "S).",
    on_success="There is one output for each query.",
    backward=True,
)
def cross_heads(x, source, mask, Wq, Wk, Wv, Wo, n_head):
    """cross_heads(x, source, mask, Wq, Wk, Wv, Wo, n_head): (B, T, C)."""

    def split(x, W):
        return F.linear(x, W).unflatten(-1, (n_head, -1)).transpose(1, 2)

    q, k, v = split(x, Wq), split(source, Wk), split(source, Wv)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    mask = mask[:, None, None]
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
    out = (weights @ v).transpose(1, 2).flatten(2)
    return F.linear(out, Wo)


cross_heads.slips("""
    Padding gets weight, because `mask` is not used.
        .masked_fill(~mask, -math.inf) →
    `masked_fill` fills where its mask is True, and that should be the padding: `~mask`.
        ~mask → mask
        ~mask, -math.inf → mask, -1e9
    You set the weights, or the values, of padding to 0 *after* the softmax: the rest no longer sums
    to 1. Set the scores to −∞ before it.
        scores.masked_fill(~mask, -math.inf).softmax(-1) → scores.softmax(-1) * mask
    Padding of 0 still gets weight: its score is 0, and e⁰ is 1. Set its *scores* to −∞.
        scores.masked_fill(~mask, -math.inf) → (scores * mask)
    The scores are not divided by √hs.
        / math.sqrt(q.shape[-1]) →
    `view` or `reshape` straight to (B, H, T, hs) mixes the tokens: split the last dimension, then
    transpose.
        .unflatten(-1, (n_head, -1)).transpose(1, 2) → .reshape(len(x), n_head, x.shape[1], -1)
    The heads are put together without a transpose back: that mixes the tokens.
        .transpose(1, 2).flatten(2) → .reshape(x.shape)
    You apply a matrix as x @ W. Apply each as x @ W.T, or F.linear(x, W).
        right(x, source, mask, Wq.T, Wk.T, Wv.T, Wo.T, n_head)
    That is self-attention of x: keys and values come from the source.
        right(x, x, torch.ones(x.shape[:2], dtype=torch.bool), Wq, Wk, Wv, Wo, n_head)
""")


@cross_heads.also
def heads_at_once(answer):
    expect_no_helpers(answer, cross_heads.inputs[0])
    says = "The values are right. Now without a loop over heads: let them be a dimension."
    expect_no_loop(answer, layer(2, 3, 5, 8, 2, (5, 3), 0), layer(2, 3, 5, 16, 4, (5, 3), 0), says)
