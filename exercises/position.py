"""The exercises of the chapter on position."""

import torch
import torch.nn.functional as F

from exercises.check import checked, diagnose, exercise, expect, expect_no_helpers, normal, reported

# --- 7.1: four rotations, and what is wrong with them -------------------------------------------


def sign_lost(x, start=0):
    return turned(x, start, lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos))


def rounded(x, start=0):
    return turned(x, start, dtype=torch.bfloat16)


def from_zero(x, start=0):
    return turned(x, 0)


def neighbours(x, start=0):
    halves = turned(torch.cat((x[..., 0::2], x[..., 1::2]), -1), start).chunk(2, -1)
    return torch.stack(halves, -1).flatten(-2)


def turned(
    x,
    start,
    turn=lambda a, b, cos, sin: (a * cos - b * sin, a * sin + b * cos),
    dtype=torch.float32,
):
    """x (T, hs) with the positions start, start + 1, … in its pairs (i, i + hs/2)."""
    T, hs = x.shape
    positions = torch.arange(start, start + T).to(dtype).float()
    angle = positions[:, None] * 10_000 ** (-torch.arange(0, hs, 2) / hs)
    return torch.cat(turn(*x.chunk(2, -1), angle.cos(), angle.sin()), -1)


SUSPECTS = dict(zip("ABCD", (neighbours, rounded, sign_lost, from_zero), strict=True))
WRONG = {"A": "b", "B": "e", "C": "d", "D": "c"}


@checked
def wrong_turns(answer):
    """wrong_turns: what is wrong with each of four functions that should rotate, a letter each."""
    found = reported(
        answer,
        dict.fromkeys(SUSPECTS, "a"),
        'Set wrong_turns to a dictionary with a letter for each function, {"A": "a", "B": "a", …}.',
    )
    diagnose("""
        Each of the four should be one of the letters a to f.
            not set(found.values()) <= set("abcdef")
        None of the four agrees with `rotate` everywhere: try numbers other than 0 and positions
        far from 0.
            "a" in found.values()
        No value was turned in any of these tests: you only called the functions on x. Whether
        somebody also rotates values shows in the code that calls `rotate`.
            "f" in found.values()
        C turns a row of length 1 at position 1. How long is it afterwards?
            found["C"] != "d"
        D agrees with `rotate` as long as it starts at 0. Give both the same row, and start=5.
            found["D"] != "c"
        A keeps lengths, and its scores depend on distances alone: it is a good rotation, for
        whoever trained with it. Which numbers does it turn together? Try rows of the unit matrix.
            found["A"] == "e"
        B agrees with `rotate` near 0. Take the same row at positions 1,000 and 1,001, and compare.
            found["B"] == "b"
    """)
    right = sum(found[name] == letter for name, letter in WRONG.items())
    expect(right == 4, f"{right} of 4 are right. Test each function beside `rotate`, far from 0.")
    return "All four run without an error, and all four are right at position 0."


# --- 7.2: run the experiment and decide -------------------------------------------------------

BASES = (1e4, 1e5, 1e6, 1e7)


@checked
def best_base(answer):
    """best_base: the losses of four bases at positions 64 to 127, and the base you would choose."""
    losses, chosen = reported(
        answer,
        (dict.fromkeys(BASES, 2.9), 1e5),
        "Set best_base to a pair: the losses by base, and the base that you would choose, "
        "({1e4: 4.0, 1e5: 4.0, 1e6: 4.0, 1e7: 4.0}, 1e4).",
    )
    diagnose("""
        These are the numbers of the example. Measure the losses of the four models.
            set(losses.values()) == {4.0}
        This model cannot have these losses: its lowest are a little above 2, and guessing gives
        about 4.2. Take the mean over the positions: not the sum, and not e to the mean.
            not all(1.5 < loss < 4.5 for loss in losses.values())
        With its own base, 10,000, the model's loss is above the bigram's here. A lower loss
        means that you measured positions 0 to 31, on which it was trained, or a model trained
        on longer texts. Take positions 64 to 127 of 256.
            losses[1e4] <= 2.45
        Two of your losses are equal: did each model get its own base? `with_base(model, base)`
        returns a copy, and leaves the model as it is.
            len({round(loss, 6) for loss in losses.values()}) < 4
        These are not the losses of the trained model at positions 64 to 127. Take [64:128] of
        the 256 losses, and set each base with `with_base`, without training again.
            losses[1e4] - losses[1e6] <= 0.35
            losses[1e6] >= min(losses[1e5], losses[1e7])
        The second of the pair should be one of the four bases, not its loss or its index.
            chosen not in BASES
        You chose the base with the highest loss. Choose the lowest.
            chosen == max(BASES, key=losses.get)
    """)
    best = min(BASES, key=losses.get)
    expect(chosen == best, f"By your own numbers another base is better: {best:,.0f}.")
    return "Slower pairs stay longer within the angles that they showed in training."


# --- 7.3: the other layout --------------------------------------------------------------------

LAYOUTS = [(3, 8, 4), (2, 6, 12), (4, 10, 7), (6, 6, 36), (1, 6, 5), (5, 4, 1), (3, 2, 5)]


@exercise(
    inputs=lambda draw: [(normal(H * hs, C, seed=90 + hs + C), H) for H, hs, C in LAYOUTS],
    example=(torch.arange(4.0)[:, None], 1),
    on_success="A weight from one world now fits into the other.",
)
def to_halves(weight, n_head):
    """to_halves(weight, n_head): rows from interleaved pairs to two halves, in every head."""
    pairs = weight.unflatten(0, (n_head, -1, 2))  # (H, hs/2, 2, C)
    return pairs.transpose(1, 2).flatten(0, 2)


to_halves.slips("""
    You return the rows in their old order.
        weight
    This is the way back, from two halves to interleaved pairs.
        -1, 2)) → 2, -1))
    You reorder all rows at once. Every head has its own pairs: split off the heads first.
        right(weight, 1)
    The heads are mixed: the rows of one head follow each other, so unflatten to (H, hs/2, 2).
        transpose(1, 2) → transpose(0, 1)
        weight.unflatten(0, (-1, 2, n_head)).permute(2, 1, 0, 3).flatten(0, 2)
    n_head is the number of heads, not their size: hs = len(weight) // n_head.
        torch.cat([torch.cat((p[0::2], p[1::2])) for p in weight.split(n_head)])
    These are the numbers of the rows: return the rows of `weight` in this order.
        right(torch.arange(len(weight))[:, None], n_head)[:, 0]
    Keep the shape (H·hs, C): join the heads' rows again with .flatten(0, 2).
        .flatten(0, 2) →
    Half of the rows are missing: first rows 0, 2, 4, … of a head, then rows 1, 3, 5, …
        weight[0::2]
    You reorder columns. A row of the weight makes one feature: move rows.
        torch.cat((weight[:, 0::2], weight[:, 1::2]), 1)
""")


# --- 7.4: rotary positions in attention -------------------------------------------------------

SHAPES = [(1, 2, 5, 6), (2, 1, 3, 8), (2, 3, 4, 8), (2, 2, 4, 4), (3, 3, 3, 2), (2, 3, 1, 4)]


@exercise(
    inputs=lambda draw: [
        tuple(normal(*shape, seed=84 + 10 * i + shape[-2]) for i in range(3))
        for shape in [*SHAPES, (1, 1, 40, 8)]
    ],
    example=tuple(normal(1, 1, 1, 4, seed=81 + i) for i in range(3)),
    on_shape_error="q, k and v are (B, H, T, hs): the scores compare the last dimension, q @ k.mT.",
    on_success="Positions are in the scores, and only there.",
    backward=True,
)
def rotary_attention(q, k, v):
    """rotary_attention(q, k, v): causal attention with rotary positions, (B, H, T, hs)."""
    T, hs = q.shape[-2:]
    angle = torch.arange(T)[:, None] * 10_000 ** (-torch.arange(0, hs, 2) / hs)
    cos, sin = angle.cos(), angle.sin()

    def rotated(x):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

    q, k = rotated(q), rotated(k)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


rotary_attention.slips("""
    You rotate the values too. Then the output depends on where the tokens are, not only on how
    far apart: rotate only q and k.
        (q, k, v, is → (q, k, rotated(v), is
    You rotate only the queries or only the keys: the scores depend on distances only if both are
    rotated.
        rotated(q), rotated(k) → rotated(q), k
        rotated(q), rotated(k) → q, rotated(k)
    Nothing is rotated, or all tokens alike: this is attention without positions.
        rotated(q), rotated(k) → q, k
    You rotate neighbours; the pairs here are (i, i + hs/2).
        x.chunk(2, -1) → (x[..., 0::2], x[..., 1::2])
        ; torch.cat → torch.stack ; b * cos), -1) → b * cos), -1).flatten(-2)
    A sign is wrong, so this is no rotation: (a, b) becomes (a cos − b sin, a sin + b cos).
        - b * sin → + b * sin
    θᵢ is 10000^(−2i/hs). The 2 is missing, or your base is 100, so that the pairs turn too fast.
        10_000 → 100
    The exponent of θ is −2i/hs, i = 0, 1, …: not +2i/hs, not twice that, and i not from 1.
        (-torch → (torch
        10_000 → 1e8
    The mask is missing: every token attends to the future.
        , is_causal=True →
    The mask is the wrong way round: a token attends to itself and the *past*.
        is_causal=True → attn_mask=torch.ones(T, T).triu() > 0
    The scores are not divided by √hs.
        is_causal=True → is_causal=True, scale=1.0
""")


@rotary_attention.also
def by_hand(answer):
    expect_no_helpers(answer, rotary_attention.inputs[0])
