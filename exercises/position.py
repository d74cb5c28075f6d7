"""The exercises of the chapter on position."""

import torch
import torch.nn.functional as F

from exercises.check import checked, diagnose, exercise, expect, expect_no_helpers, normal, reported

# --- 7.1: a test, tried on functions ----------------------------------------------------------


def attend(x):
    return (x @ x.T).softmax(-1) @ x


def numbered(x):
    """Attention over rows that carry their number in the first feature."""
    return attend(x + torch.arange(len(x))[:, None] * torch.eye(x.shape[1])[0])


def changing(row, feature, by):
    return lambda x: x + by * torch.eye(len(x))[row][:, None] * torch.eye(x.shape[1])[feature]


ALL = "Permute with `order`, and compare every number of every row, with its sign, at its position."
JUDGED = {  # name → (function, what to say about it)
    "attention": (attend, "Attention without positions is equivariant."),
    "attention_with_positions": (numbered, "The rows carry their numbers, so order matters."),
    "sorted_rows": (lambda x: x.sort(0).values, "The output is not permuted as the input is."),
    "largest_of_all_rows": (lambda x: x.amax(0).expand_as(x), "All rows of the output are equal."),
    "twice_each_row": (lambda x: 2 * x, "Each row alone: the order does not matter."),
    "plus_row_number": (lambda x: x + torch.arange(len(x))[:, None], "Row t gets t added."),
    "mean_of_the_past": (
        lambda x: x.cumsum(0) / torch.arange(1, len(x) + 1)[:, None],
        "Another order is another past.",
    ),
    "rounded_attention": (lambda x: attend(x) * (1 + 3e-7 * x[0, 0]), "Only rounding differs."),
    "plus_a_little": (
        lambda x: x + 2e-4 * torch.arange(len(x))[:, None],
        "A difference of 0.0002 is not rounding: take a smaller tolerance.",
    ),
    "positions_then_LayerNorm": (
        lambda x: F.layer_norm(numbered(x), x.shape[-1:], eps=1e-9),
        "After LayerNorm all rows have one mean and length. " + ALL,
    ),
    "positions_then_RMSNorm": (
        lambda x: F.rms_norm(numbered(x), x.shape[-1:], eps=1e-9),
        "After RMSNorm all rows have one length. " + ALL,
    ),
    "features_rolled": (lambda x: x.roll(int(x[:, 0].argmax()), -1), ALL),
    "odd_rows_negated": (lambda x: x * (-1) ** torch.arange(len(x))[:, None], ALL),
    "almost_zero": (
        lambda x: 3e-7 * x[0, 0] + 0 * x,
        "Near 0, rounding needs `atol`.",
    ),
    "one_entry_changed": (changing(3, 1, 7e-5), ALL),
    "plus_first_number": (lambda x: x + x[0, 0], ALL),
    "minus_first_number": (lambda x: x - x[0, 0], ALL),
    **{f"row_{r}_changed": (changing(r, r % 3, (-1) ** r), ALL) for r in range(5)},
    **{f"feature_{c}_changed": (changing(3, c, 1), ALL) for c in range(3)},
}


def times_row_number(x):
    """Equivariant where x is 0, and nowhere else."""
    return x * torch.arange(len(x))[:, None]


for name, (function, _) in JUDGED.items():
    function.__name__ = name


def unnamed(draw):
    """Functions whose names say nothing about them: of attention, and of one that changes a row."""
    for f in (lambda x: attend(x) / 2, changing(draw.randrange(5), draw.randrange(3), 2)):
        f.__name__ = "another_function"
        order = [*range(5)]
        while any(i == j for i, j in enumerate(order)):
            draw.shuffle(order)
        yield f, normal(5, 3, seed=draw.randrange(10**6)), torch.tensor(order)


# In the first order no row stays, and it is not its own inverse. With other numbers rounding may be
# larger, so a secret does not change these.
EQUIVARIANT = [
    *((f, normal(5, 3, seed=71), torch.tensor([2, 0, 1, 4, 3])) for f, _ in JUDGED.values()),
    (attend, normal(4, 4, seed=70), torch.tensor([1, 0, 3, 2])),
    (
        JUDGED["row_4_changed"][0],
        normal(5, 3, seed=69),
        torch.tensor([1, 2, 3, 0, 4]),
    ),
    (times_row_number, torch.zeros(4, 3), torch.tensor([1, 2, 3, 0])),
]


@exercise(
    inputs=lambda draw: [*EQUIVARIANT, *unnamed(draw)],
    example=(JUDGED["twice_each_row"][0], normal(3, 2, seed=72), torch.tensor([2, 0, 1])),
    why=[
        *(why for _, why in JUDGED.values()),
        JUDGED["attention"][1],
        "Row 4 stays where it is in this order: use `order` as it is given.",
        "Ask about the `x` that is given: rows of zeros are 0 whatever they are multiplied by.",
    ],
    on_success="The outputs move with the inputs: equivariant, which is not invariant.",
)
def is_equivariant(f, x, order):
    """is_equivariant(f, x, order): does f give permuted outputs for permuted rows?"""
    return torch.allclose(f(x[order]), f(x)[order], atol=1e-6)


is_equivariant.slips("""
    You test whether the output stays the *same* when the rows are permuted. That is invariance.
    Equivariant means that the output is permuted in the same way: compare f(x[order]) with
    f(x)[order].
        f(x)[order] → f(x)
    One side is permuted the other way round: compare f(x[order]) with f(x)[order].
        f(x[order]), f(x)[order] → f(x[order])[order], f(x)
    You permute the *features*. `x[order]` permutes the rows.
        f(x[order]), f(x)[order] → f(x[:, order]), f(x)[:, order]
    Attention gives equal outputs only up to rounding, because it adds in another order: compare
    with torch.allclose, not with == or torch.equal.
        torch.equal(f(x[order]), f(x)[order])
    You return a True or False for each number. Return one for whole tensors: torch.allclose
    gives one.
        f(x[order]) == f(x)[order]
        allclose → isclose
        bool(f(x[order]) == f(x)[order])
    Different outputs can have the same sum, mean or length. Compare the outputs themselves.
        torch.allclose(f(x[order]).sum(), f(x)[order].sum(), atol=1e-5)
        torch.allclose(f(x[order]).sum(0), f(x)[order].sum(0), atol=1e-5)
    You take the mean of the differences, in which one that is too large may be lost: take the
    largest.
        bool((f(x[order]) - f(x)[order]).abs().mean() < 1e-5)
    A negative difference is a difference: take `.abs()` before the maximum.
        bool((f(x[order]) - f(x)[order]).max() < 1e-5)
    Your tolerance is too wide: a difference of 0.0002 is more than rounding. Take atol=1e-6.
        1e-6 → 1e-3
    It is the wrong way round: return True if the outputs are permuted in the same way.
        not right(f, x, order)
""")


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
