"""The exercises of the chapter on position."""

import torch
import torch.nn.functional as F

from exercises.check import (
    checked,
    exercise,
    expect,
    expect_no_helpers,
    normal,
    reported,
)
from helpers.attention import attention, causal_mask
from helpers.positions import Rotary, half_split

# --- 7.1: a test, tried on functions ----------------------------------------------------------


def heard(x):
    return (x @ x.T).softmax(-1) @ x


def numbered(x):
    """Attention over rows that carry their number in the first feature."""
    return heard(x + torch.arange(len(x))[:, None] * torch.eye(x.shape[1])[0])


def touching(row, feature, by):
    return lambda x: x + by * torch.eye(len(x))[row][:, None] * torch.eye(x.shape[1])[feature]


ALL = "Shuffle with `order`, and compare every number of every row, with its sign, at its position."
JUDGED = {  # name → (function, what to say about it)
    "attention": (heard, "Attention without positions is equivariant."),
    "attention_with_positions": (numbered, "The rows carry their numbers, so order matters."),
    "sorted_rows": (lambda x: x.sort(0).values, "The output is not shuffled as the input is."),
    "largest_of_all_rows": (lambda x: x.amax(0).expand_as(x), "All rows of the output are equal."),
    "twice_each_row": (lambda x: 2 * x, "Each row alone: the order does not matter."),
    "plus_row_number": (lambda x: x + torch.arange(len(x))[:, None], "Row t gets t added."),
    "mean_of_the_past": (lambda x: x.cumsum(0) / torch.arange(1, len(x) + 1)[:, None],
                         "Another order is another past."),
    "rounded_attention": (lambda x: heard(x) * (1 + 3e-7 * x[0, 0]), "Only rounding differs."),
    "plus_a_little": (lambda x: x + 2e-4 * torch.arange(len(x))[:, None],
                      "A difference of 0.0002 is not rounding: take a smaller tolerance."),
    "positions_then_LayerNorm": (lambda x: F.layer_norm(numbered(x), x.shape[-1:], eps=1e-9),
                                 "After LayerNorm all rows have one mean and length. " + ALL),
    "positions_then_RMSNorm": (lambda x: F.rms_norm(numbered(x), x.shape[-1:], eps=1e-9),
                               "After RMSNorm all rows have one length. " + ALL),
    "features_rolled": (lambda x: x.roll(int(x[:, 0].argmax()), -1), ALL),
    "odd_rows_negated": (lambda x: x * (-1) ** torch.arange(len(x))[:, None], ALL),
    "plus_first_number": (lambda x: x + x[0, 0], ALL),
    "minus_first_number": (lambda x: x - x[0, 0], ALL),
    **{f"row_{r}_changed": (touching(r, r % 3, (-1) ** r), ALL) for r in range(5)},
    **{f"feature_{c}_changed": (touching(3, c, 1), ALL) for c in range(3)},
}  # fmt: skip
OWN_X = "Ask about the `x` that is given: rows of zeros are 0 whatever they are multiplied by."


def times_row_number(x):
    """Equivariant where x is 0, and nowhere else."""
    return x * torch.arange(len(x))[:, None]


for name, (function, _) in JUDGED.items():
    function.__name__ = name


@exercise(
    inputs=[  # in the first order no row stays, and it is not its own inverse
        *((f, normal(5, 3, seed=71), torch.tensor([2, 0, 1, 4, 3])) for f, _ in JUDGED.values()),
        (heard, normal(4, 4, seed=70), torch.tensor([1, 0, 3, 2])),
        (JUDGED["row_4_changed"][0], normal(5, 3, seed=69), torch.tensor([1, 2, 3, 0, 4])),
        (times_row_number, torch.zeros(4, 3), torch.tensor([1, 2, 3, 0])),
    ],
    why=[*(why for _, why in JUDGED.values()), JUDGED["attention"][1],
         "Row 4 stays where it is in this order: use `order` as it is given.", OWN_X],
    praise="The outputs move with the inputs: equivariant, which is not invariant.",
)  # fmt: skip
def is_equivariant(f, x, order):
    """is_equivariant(f, x, order): does f give shuffled outputs for shuffled rows?"""
    return torch.allclose(f(x[order]), f(x)[order], atol=1e-6)


def close(a, b, atol=1e-6):
    return torch.allclose(a, b, atol=atol)


def comparing(measure):
    """The test that compares no more than `measure` of the two outputs."""
    return lambda f, x, order: close(measure(f(x[order])), measure(f(x)[order]), 1e-5)


is_equivariant.mistakes = {
    "You test whether the output stays the *same* when the rows are shuffled. That is invariance. "
    "Equivariant means that the output is shuffled in the same way: compare f(x[order]) with "
    "f(x)[order].": lambda f, x, order: close(f(x[order]), f(x)),
    "One side is shuffled the other way round: compare f(x[order]) with f(x)[order].":
        lambda f, x, order: close(f(x[order])[order], f(x)),
    "You compute f of the same rows on both sides. One side is f(x[order]), the other f(x)[order].":
        lambda f, x, order: close(f(x), f(x)[order]),
    "Attention gives equal outputs only up to rounding, because it adds in another order: compare "
    "with torch.allclose, not with == or torch.equal.":
        lambda f, x, order: torch.equal(f(x[order]), f(x)[order]),
    "You return True for everything. Compare f of the shuffled rows with the shuffled rows of "
    "f(x).":
        lambda *_: True,
    "You return False for everything, but attention without positions is equivariant.":
        lambda *_: False,
    "You return a True or False for each number. Return one for whole tensors: torch.allclose "
    "gives one.": (
        lambda f, x, order: f(x[order]) == f(x)[order],
        lambda f, x, order: torch.isclose(f(x[order]), f(x)[order], atol=1e-6),
        lambda f, x, order: (f(x[order]) - f(x)[order]).abs() < 1e-6,
        lambda f, x, order: bool(f(x[order]) == f(x)[order])),
    "A few equal numbers are not enough: all have to be equal, `.all()`, not `.any()`.":
        lambda f, x, order: torch.isclose(f(x[order]), f(x)[order], atol=1e-6).any(),
    "Different outputs can have the same sum, mean or length. Compare the outputs themselves.":
        (comparing(torch.sum), comparing(lambda y: y.sum(0)), comparing(lambda y: y.mean(-1)),
         lambda f, x, order: bool((f(x[order]) - f(x)[order]).mean() < 1e-5),
         comparing(lambda y: y.norm(dim=-1))),
    "You return True where the output has the same rows in another order. They have to be shuffled "
    "as the input is.":
        comparing(lambda y: y.sort(0).values),
    "You compare only one row, or only one feature. Compare all of them.":
        (comparing(lambda y: y[0]), comparing(lambda y: y[-1]), comparing(lambda y: y[:, 0])),
    "A negative difference is a difference: take `.abs()` before the maximum.":
        lambda f, x, order: bool((f(x[order]) - f(x)[order]).max() < 1e-5),
    "Your tolerance is too wide: a difference of 0.0002 is more than rounding. Take atol=1e-6.": (
        lambda f, x, order: close(f(x[order]), f(x)[order], 1e-2),
        lambda f, x, order: close(f(x[order]), f(x)[order], 1e-3)),
    "It is the wrong way round: return True if the outputs are shuffled alike.":
        lambda f, x, order: not close(f(x[order]), f(x)[order]),
    "You shuffle in an order of your own. Use `order`, on both sides.": tuple(
        lambda f, x, order, own=own: close(f(x[own(order)]), f(x)[own(order)])
        for own in (lambda order: order.sort().values.flip(0),
                    lambda order: order.sort().values.roll(1),
                    lambda order: order.sort().values.roll(-1),
                    lambda order: torch.cat((torch.tensor([1, 0]), order.sort().values[2:])))),
    OWN_X: lambda f, x, order: is_equivariant.right(f, torch.randn_like(x), order),
    "You shuffle the *features*. `x[order]` shuffles the rows.":
        lambda f, x, order: close(f(x[:, order]), f(x)[:, order]),
}  # fmt: skip


# --- 7.2: run the experiment and decide -------------------------------------------------------

BASES = (1e4, 1e5, 1e6, 1e7)


@checked
def best_base(answer):
    """best_base: the losses of four bases at the places 64 to 127, and the base you would take."""
    powers = isinstance(answer, (list, tuple)) and answer and isinstance(answer[0], dict)
    expect(
        not powers or set(answer[0]) != {4, 5, 6, 7},
        "Your keys are 4, 5, 6, 7. They should be the bases: 1e4, 1e5, 1e6, 1e7.",
    )
    losses, chosen = reported(
        answer,
        (dict.fromkeys(BASES, 2.9), 1e5),
        "Set best_base to a pair: the losses, base → loss, and the base that you would take, "
        "({1e4: 4.0, 1e5: 4.0, 1e6: 4.0, 1e7: 4.0}, 1e4).",
    )
    expect(
        set(losses.values()) != {4.0},
        "These are the numbers of the example. Measure the losses of the four readers.",
    )
    expect(
        all(1.5 < loss < 4.5 for loss in losses.values()),
        "Such a reader cannot have these losses: its best are a little above 2, and guessing gets "
        "about 4.2. Take the mean over the positions: not the sum, and not e to the mean.",
    )
    expect(
        losses[1e4] > 2.45,
        "With its own base, 10,000, the reader's loss is above the bigram's here. A lower loss "
        "means that you measured positions 0 to 31, on which it was trained, or a reader trained "
        "on longer texts. Take positions 64 to 127 of 256.",
    )
    expect(
        len({round(loss, 6) for loss in losses.values()}) == 4,
        "Two of your losses are equal: did each reader get its own base? `with_base(model, base)` "
        "returns a copy, and leaves the model as it is.",
    )
    expect(
        losses[1e4] - losses[1e6] > 0.35 and losses[1e6] < min(losses[1e5], losses[1e7]),
        "These are not the losses of the trained reader at positions 64 to 127. Take [64:128] of "
        "the 256 losses, and put in each base with `with_base`, without training again.",
    )
    best = min(BASES, key=losses.__getitem__)
    expect(
        chosen in BASES,
        "The second of the pair should be one of the four bases, not its loss or its index.",
    )
    expect(
        chosen != max(BASES, key=losses.__getitem__),
        "You chose the base with the highest loss. Choose the lowest.",
    )
    expect(chosen == best, f"By your own numbers another base is better: {best:,.0f}.")
    return "Slower clocks stay longer on the part of the dial that they know."


# --- 7.3: the other layout --------------------------------------------------------------------


@exercise(
    inputs=[(normal(H * hs, C, seed=90 + hs + C), H) for H, hs, C in
            ((3, 8, 4), (2, 6, 12), (4, 10, 7), (6, 6, 36), (1, 6, 5), (5, 4, 1), (3, 2, 5))],
    praise="A weight from one world now fits into the other.",
)  # fmt: skip
def to_halves(weight, n_head):
    """to_halves(weight, n_head): rows from interleaved pairs to two halves, in every head."""
    return half_split(weight, n_head)


def heads(weight, H):
    """(H, hs/2, 2, C): each head's pairs, and their members."""
    return weight.unflatten(0, (H, -1, 2))


to_halves.mistakes = {
    "You return the rows in their old order.": (
        lambda weight, H: weight,
        lambda weight, H: weight.unflatten(0, (H, 2, -1)).flatten(0, 2)),
    "This is the way back, from two halves to interleaved pairs.":
        lambda weight, H: weight.unflatten(0, (H, 2, -1)).transpose(1, 2).flatten(0, 2),
    "You reorder all rows at once. Every head has its own pairs: split off the heads "
    "first.": lambda weight, H: half_split(weight, 1),
    "The second members of the pairs come first: move rows 0, 2, 4, … of each head to its "
    "front.": lambda weight, H: heads(weight, H).flip(2).transpose(1, 2).flatten(0, 2),
    "You keep the pairs but reverse the order inside them.":
        lambda weight, H: heads(weight, H).flip(2).flatten(0, 2),
    "The heads are mixed: the rows of one head follow each other, so unflatten to (H, hs/2, 2).":
        (lambda weight, H: heads(weight, H).permute(1, 2, 0, 3).flatten(0, 2),
         lambda weight, H: heads(weight, H).transpose(0, 1).flatten(0, 2),
         lambda weight, H: heads(weight, H).permute(2, 1, 0, 3).flatten(0, 2),
         lambda weight, H: weight.unflatten(0, (-1, 2, H)).permute(2, 1, 0, 3).flatten(0, 2),
         lambda weight, H: weight.unflatten(0, (-1, H)).transpose(0, 1).flatten(0, 1)),
    "n_head is the number of heads, not their size: hs = len(weight) // n_head.":
        (lambda weight, H: half_split(weight, len(weight) // H),
         lambda weight, H: torch.cat([torch.cat((p[0::2], p[1::2])) for p in weight.split(H)])),
    "You reorder by fours, as in the example: a head has hs = len(weight) // n_head rows.":
        lambda weight, H: half_split(weight, len(weight) // 4),
    "These are the numbers of the rows: return the rows, `weight[numbers]`.":
        lambda weight, H: half_split(torch.arange(len(weight))[:, None], H)[:, 0],
    "Only the first head is reordered: every head has its own pairs.":
        lambda weight, H: torch.cat((half_split(weight[: len(weight) // H], 1),
                                     weight[len(weight) // H :])),
    "Keep the shape (H·hs, C): join the heads' rows again with .flatten(0, 2).":
        (lambda weight, H: half_split(weight, H).unflatten(0, (H, -1)),
         lambda weight, H: heads(weight, H).transpose(1, 2), heads,
         lambda weight, H: half_split(weight, H).unflatten(0, (-1, 2))),
    "Half of the rows are missing: first rows 0, 2, 4, … of a head, then rows 1, 3, 5, …":
        (lambda weight, H: weight[0::2], lambda weight, H: weight[1::2]),
    "You reorder columns. A row of the weight makes one feature: move rows.":
        (lambda weight, H: half_split(weight.T, H).T,
         lambda weight, H: half_split(weight.T, 1).T,
         lambda weight, H: torch.cat((weight[:, 0::2], weight[:, 1::2]), 1)),
    "Your result is transposed: rows stay rows.": lambda weight, H: half_split(weight, H).T,
    "Rows run backwards: first rows 0, 2, 4, … of a head, then rows 1, 3, 5, … of it.":
        (lambda weight, H: torch.cat((heads(weight, H)[:, :, 0],
                                      heads(weight, H)[:, :, 1].flip(1)), 1).flatten(0, 1),
         lambda weight, H: weight.flip(0), lambda weight, H: half_split(weight, H).flip(0),
         lambda weight, H: heads(weight, H).flip(1).transpose(1, 2).flatten(0, 2),
         lambda weight, H: heads(weight, H).flip(1, 2).transpose(1, 2).flatten(0, 2)),
    "You changed signs. Rows only move.": (
        lambda weight, H: torch.cat((-heads(weight, H)[:, :, 1], heads(weight, H)[:, :, 0]), 1)
        .flatten(0, 1)),
}  # fmt: skip


# --- 7.4: rotary positions in attention -------------------------------------------------------


def angles(T, size, base, power=1.0):
    """Position · θ of each pair, (T, size / 2); power: what may go wrong in the exponent."""
    return torch.arange(T)[:, None] * base ** (-power * torch.arange(0, size, 2) / size)


def of(x, base=10_000.0, power=1.0):
    """The angles for x (..., T, hs)."""
    return angles(*x.shape[-2:], base, power)


def side_by_side(even, odd):
    return torch.stack((even, odd), -1).flatten(-2)


def waves(angle):
    return side_by_side(angle.sin(), angle.cos())


def turn(x, angle):
    """Pairs (i, i + hs/2) of x (..., T, hs), turned by angles (T, hs / 2)."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)


def neighbours(x):
    """x with the pairs (2i, 2i + 1) where the pairs (i, i + hs/2) should be."""
    return torch.cat((x[..., 0::2], x[..., 1::2]), -1)


def turn_neighbours(x, angle):
    return side_by_side(*turn(neighbours(x), angle).chunk(2, -1))


def unchanged(x):
    return x


def turned(x):
    return turn(x, of(x))


def back(x):
    return turn(x, -of(x))


def mirrored(x, first, second):
    """turn with other signs: (a cos ± b sin, ± a sin + b cos)."""
    (a, b), angle = x.chunk(2, -1), of(x)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat((a * cos + first * b * sin, second * a * sin + b * cos), -1)


def late(x):
    """Turned as if the first token had position 1."""
    return turn(x, of(x) + angles(2, x.shape[-1], 10_000.0)[1])


def attending(
    to_q=turned, to_k=turned, to_v=unchanged, mask=causal_mask, scale=-0.5, then=unchanged
):
    """Attention that does this to its parts; the scores are multiplied by hs to the power scale."""
    return lambda q, k, v: then(
        attention(to_q(q), to_k(k), to_v(v), mask(q.shape[-2]), scale=q.shape[-1] ** scale)[0]
    )


def of_others(right, order):
    """The mistake of passing q, k and v in another order, or one of them twice."""
    return lambda *qkv: right(*(qkv[i] for i in order))


def masked(scores, fill):
    return scores.masked_fill(~causal_mask(scores.shape[-1]), fill)


def scores(q, k):
    return turned(q) @ turned(k).mT / q.shape[-1] ** 0.5


def itself_or_later(T):
    return causal_mask(T).T


def with_mask(hidden, fill):
    """Attention whose scores are filled in where `hidden` is True: rows may lose all of theirs."""
    return lambda q, k, v: scores(q, k).masked_fill(hidden(q.shape[-2]), fill).softmax(-1) @ v


@exercise(
    inputs=[tuple(normal(*shape, seed=84 + 10 * i + shape[-2]) for i in range(3)) for shape in
            ((1, 2, 5, 6), (2, 1, 3, 8), (2, 3, 4, 8), (2, 2, 4, 4), (3, 3, 3, 2), (2, 3, 1, 4),
             (1, 1, 40, 8))],
    clash="q, k and v are (B, H, T, hs): the scores compare the last dimension, q @ k.mT.",
    praise="Positions are in the scores, and only there.",
    backward=True,
)  # fmt: skip
def rotary_attention(q, k, v):
    """rotary_attention(q, k, v): causal attention with rotary positions, (B, H, T, hs)."""
    return F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)


def by_power(power):
    """Turned with another exponent in θ."""
    return attending(*[lambda x: turn(x, of(x, power=power))] * 2)


rotary_attention.mistakes = {
    "You rotate the values too. Then the output depends on where the tokens are, not only on how "
    "far apart: rotate only q and k.": attending(to_v=turned),
    "You rotate only the queries or only the keys: the scores depend on distances only if both are "
    "rotated.": (attending(to_k=unchanged), attending(to_q=unchanged)),
    "Rotate q and k, both of them, and leave v alone.": (
        attending(unchanged, unchanged, turned), attending(turned, unchanged, turned),
        attending(unchanged, turned, turned)),
    "Nothing is rotated, or all tokens alike: this is attention without positions.":
        attending(unchanged, unchanged),
    "You rotate the output: rotate the queries and keys before their dot product.":
        attending(unchanged, unchanged, then=turned),
    "The output is rotated once more: only q and k are.":
        (attending(then=turned), attending(then=back)),
    "The mask is missing: every token attends to the future.": attending(mask=lambda T: None),
    "The mask is missing, and v is rotated: rotate q and k only, and pass causal_mask(T).":
        attending(to_v=turned, mask=lambda T: None),
    "The mask is missing, and so are rotations: rotate q and k, both of them.":
        (attending(unchanged, unchanged, mask=lambda T: None),
         attending(turned, unchanged, mask=lambda T: None),
         attending(unchanged, turned, mask=lambda T: None)),
    "The mask is the wrong way round: a token attends to itself and the *past*.":
        attending(mask=lambda T: causal_mask(T).T),
    "The mask leaves a token nothing to attend to: each attends to itself and what came before it.":
        (
        attending(mask=lambda T: ~causal_mask(T)), with_mask(causal_mask, -torch.inf),
        with_mask(causal_mask, -1e9), with_mask(itself_or_later, -torch.inf),
        with_mask(itself_or_later, -1e9)),
    "The mask shows each token the next one: nothing above the diagonal is allowed.":
        attending(mask=lambda T: torch.ones(T, T).tril(1).bool()),
    "The mask has T rows and columns, T = q.shape[-2].": tuple(
        lambda q, k, v, dim=dim: attending(mask=lambda T: causal_mask(q.shape[dim]))(q, k, v)
        for dim in (0, 1, -1)),
    "The angles are made for the head size, hs = q.shape[-1].": (
        *(attending(lambda q, dim=dim: Rotary(q.shape[dim])(q)) for dim in (0, 1, -2)),
        attending(lambda q: Rotary(q.shape[1] * q.shape[-1])(q))),
    "The scores are not divided by √hs.": attending(scale=0),
    "The scores are divided by hs, or twice by √hs: by √hs, once.": attending(scale=-1),
    "The scores are multiplied by √hs: divide them.": attending(scale=0.5),
    "The scores are divided by √T: divide by √hs, hs = q.shape[-1].":
        lambda q, k, v: attending(lambda x: turned(x) / q.shape[-2] ** 0.5, scale=0)(q, k, v),
    "The scores are divided by √C (all heads together): each head has the size hs.":
        lambda q, k, v: attending(lambda q: turned(q) / q.shape[1] ** 0.5)(q, k, v),
    "Queries or keys turn backwards: both turn the same way, each by its own position.":
        (attending(to_k=back), attending(to_q=back)),
    "You turn both backwards: position t turns by +tθ, so (a, b) becomes (a cos − b sin, a sin + b "
    "cos).":
        attending(back, back),
    "Queries and keys are counted differently: position 0 is the first token for both.":
        (attending(to_q=late), attending(to_k=late)),
    "You rotate twice: once is enough.":
        attending(lambda q: turned(turned(q)), lambda k: turned(turned(k))),
    "You rotate neighbours; the pairs here are (i, i + hs/2).":
        attending(lambda q: turn_neighbours(q, of(q)), lambda k: turn_neighbours(k, of(k))),
    "You add position vectors to q and k: rotary positions turn them.":
        (attending(*[lambda x: x + waves(of(x))] * 2),
         attending(*[lambda x: x + torch.cat((of(x).sin(), of(x).cos()), -1)] * 2)),
    "A sign is wrong, so that nothing is turned: (a, b) becomes (a cos − b sin, a sin + b cos).":
        tuple(attending(*[lambda x, s=s: mirrored(x, *s)] * 2) for s in ((1, 1), (-1, -1))),
    "θᵢ is 10000^(−2i/hs). The 2 is missing, or your base is 100, so that the clocks are too fast.":
        by_power(0.5),
    "The exponent of θ is −2i/hs, i = 0, 1, …: not +2i/hs, not twice that, and i not from 1.": (
        by_power(-1), by_power(2),
        attending(*[lambda x: turn(x, of(x) * 10_000 ** (-2 / x.shape[-1]))] * 2)),
    "All your pairs turn alike: pair i turns by θᵢ = 10000^(−2i/hs) per position.": by_power(0),
    "The base is 10,000: θᵢ = 10000^(−2i/hs).": tuple(
        attending(*[lambda x, base=base: turn(x, of(x, base))] * 2) 
        for base in (1000.0, 500.0, 1e5, 1e6)),
    "q, k and v are mixed up: the turned queries, then the turned keys, then the values v.": (
        *(of_others(attending(), order) for order in
          ((1, 0, 2), (0, 0, 2), (1, 1, 2), (0, 1, 1), (0, 1, 0), (2, 2, 2), (0, 0, 0), (0, 2, 1))),
        *(of_others(attending(to_v=turned), order) for order in ((0, 1, 1), (0, 1, 0)))),
    "Heads and time are swapped: tokens attend to tokens, within each head.": (
        lambda *qkv: attending(*[unchanged] * 2)(*(x.transpose(1, 2) for x in qkv)).transpose(1, 2),
        lambda *qkv: attending()(*(x.transpose(1, 2) for x in qkv)).transpose(1, 2),
        lambda q, k, v: attending(*[unchanged] * 2)(
            *(x.transpose(1, 2) for x in (turned(q), turned(k), v))).transpose(1, 2)),
    "These are the weights: return the output, the weighted values.":
        lambda q, k, v: masked(scores(q, k), -torch.inf).softmax(-1),
    "The softmax runs over the wrong dimension: each *row* of the weights sums to 1, dim=-1.":
        (lambda q, k, v: masked(scores(q, k), -torch.inf).softmax(-2) @ v,
         lambda q, k, v: masked(scores(q, k), -torch.inf).softmax(1) @ v),
    "The softmax is missing.": lambda q, k, v: masked(scores(q, k), 0) @ v,
    "In the softmax 0 still has a weight: fill in −∞ before it, not 0.":
        lambda q, k, v: masked(scores(q, k), 0).softmax(-1) @ v,
    "You set weights to 0 after the softmax, so the rows do not sum to 1: mask the scores with "
    "−∞ before it.": lambda q, k, v: masked(scores(q, k).softmax(-1), 0) @ v,
    "You add the values to the output: attention is their weighted sum alone.":
        lambda q, k, v: attending()(q, k, v) + v,
    "Every token averages the past evenly: the weights come from the scores of q and k.":
        attending(torch.zeros_like),
    "You returned the values: each output is a weighted sum of them.": lambda q, k, v: v,
    "Keep the heads apart: the output has the shape (B, H, T, hs).":
        (attending(then=lambda out: out.transpose(1, 2)),
         attending(then=lambda out: out.transpose(1, 2).flatten(2)),
         attending(then=lambda out: out.mean(1)), attending(then=lambda out: out.sum(1))),
}  # fmt: skip


@rotary_attention.then
def by_hand(answer):
    expect_no_helpers(answer, rotary_attention.inputs[0])
