"""The exercises of chapter 07: position."""

import re
from functools import partial

import torch
import torch.nn.functional as F

from exercises.check import NotAttempted, NotYet, call, exercise, expect, fresh, normal, same
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


ALL = "Compare every number of every row, with its sign and at its place."
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
for name, (function, _) in JUDGED.items():
    function.__name__ = name


@exercise(
    inputs=[  # in the first order no row stays, and it is not its own inverse
        *((f, normal(5, 3, seed=71), torch.tensor([2, 0, 1, 4, 3])) for f, _ in JUDGED.values()),
        (heard, normal(4, 4, seed=70), torch.tensor([1, 0, 3, 2])),
        (JUDGED["row_4_changed"][0], normal(5, 3, seed=69), torch.tensor([1, 2, 3, 0, 4])),
    ],
    why=[*(why for _, why in JUDGED.values()), JUDGED["attention"][1],
         "Row 4 stays where it is in this order: use `order` as it is given."],
    praise="the outputs move with the inputs: equivariant, which is not invariant.",
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
    "You shuffle the shuffled output once more. Shuffling twice does not undo it: compare "
    "f(x[order]) with f(x)[order].": lambda f, x, order: close(f(x[order])[order], f(x)),
    "You shuffle the output only. The input of one side has to be shuffled, too: f(x[order]).":
        lambda f, x, order: close(f(x), f(x)[order]),
    "Attention gives equal outputs only up to rounding, because it adds in another order: compare "
    "with torch.allclose, not with == or torch.equal.":
        lambda f, x, order: torch.equal(f(x[order]), f(x)[order]),
    "You compare numbers that are always equal: one side has to be f of the shuffled rows, the "
    "other the shuffled rows of f(x).": lambda *_: True,
    "You say False to everything: attention without positions is equivariant.": lambda *_: False,
    "is_equivariant should return one True or False, and you have one for each number: "
    "torch.allclose gives one for whole tensors.": (
        lambda f, x, order: f(x[order]) == f(x)[order],
        lambda f, x, order: torch.isclose(f(x[order]), f(x)[order], atol=1e-6),
        lambda f, x, order: (f(x[order]) - f(x)[order]).abs() < 1e-6,
        lambda f, x, order: bool(f(x[order]) == f(x)[order])),
    "A few equal numbers are not enough: all have to be equal, `.all()`, not `.any()`.":
        lambda f, x, order: torch.isclose(f(x[order]), f(x)[order], atol=1e-6).any(),
    "Different outputs can have the same sum. Compare the outputs themselves.":
        (comparing(torch.sum), comparing(lambda y: y.sum(0))),
    "Different rows can have the same mean. Compare the rows themselves.":
        comparing(lambda y: y.mean(-1)),
    "Different rows can have the same length. Compare the rows themselves.":
        comparing(lambda y: y.norm(dim=-1)),
    "Which rows there are is not enough: they have to be in the right order. Do not sort.":
        comparing(lambda y: y.sort(0).values),
    "You compare the first row only. Compare all rows.": comparing(lambda y: y[0]),
    "You compare the last row only. Compare all rows.": comparing(lambda y: y[-1]),
    "You compare the first feature only. Compare all of them.": comparing(lambda y: y[:, 0]),
    "A negative difference is a difference: take `.abs()` before the maximum.":
        lambda f, x, order: bool((f(x[order]) - f(x)[order]).max() < 1e-5),
    "Your tolerance is too wide: a difference of 0.0002 is more than rounding. Take atol=1e-6.": (
        lambda f, x, order: close(f(x[order]), f(x)[order], 1e-2),
        lambda f, x, order: close(f(x[order]), f(x)[order], 1e-3)),
    "It is the other way round: True if the outputs are shuffled alike.":
        lambda f, x, order: not close(f(x[order]), f(x)[order]),
    "You shuffle the *features*. `x[order]` shuffles the rows.":
        lambda f, x, order: close(f(x[:, order]), f(x)[:, order]),
}  # fmt: skip


# --- 7.2: a learned table ---------------------------------------------------------------------


@exercise(
    inputs=[(normal(B, T, C, seed=72 + T), normal(size, C, seed=T))
            for B, T, C, size in
            ((2, 3, 4, 6), (3, 2, 5, 4), (4, 4, 4, 9), (1, 5, 2, 7), (2, 1, 3, 4), (2, 30, 2, 40))],
    clash="Take as many rows of the table as there are tokens, table[:T] with T = x.shape[1].",
    praise="and a sequence that does not fit is told so.",
    backward=True,
)  # fmt: skip
def add_positions(x, table):
    """add_positions(x, table): x (B, T, C) plus a row of the table for each position."""
    if x.shape[1] > len(table):
        raise ValueError(f"{x.shape[1]} tokens, but the table has {len(table)} positions")
    return x + table[: x.shape[1]]


def rows(x, table):
    return table[: x.shape[1]].expand_as(x)


add_positions.mistakes = {
    "You begin at position 1: the first token has position 0, the row table[0].":
        lambda x, table: x + table[1 : x.shape[1] + 1],
    "You take the *last* T rows of the table; positions count from its first row.":
        lambda x, table: x + table[len(table) - x.shape[1] :],
    "You count backwards: the first token has position 0, the row table[0].": (
        lambda x, table: x + rows(x, table).flip(1),
        lambda x, table: x + table.flip(0)[: x.shape[1]]),
    "You return the position vectors alone: add them to x.":
        (rows, lambda x, table: table[: x.shape[1]]),
    "Every token gets the same row: token t needs table[t].": (
        lambda x, table: x + table[0], lambda x, table: x + table[x.shape[1] - 1],
        lambda x, table: x + table[x.shape[1]], lambda x, table: x + table[-1],
        lambda x, table: x + table.mean(0), lambda x, table: x + rows(x, table).mean(1, True),
        lambda x, table: x + table.sum(0), lambda x, table: x + rows(x, table).sum(1, True)),
    "You put the position vectors *beside* x. They are added; the width C stays.":
        lambda x, table: torch.cat((x, rows(x, table)), -1),
    "You put the position vectors *behind* the tokens. They are added; there are still T.":
        lambda x, table: torch.cat((x, rows(x, table)), 1),
    "You multiply by the position vectors: add them.": lambda x, table: x * rows(x, table),
    "You subtract the position vectors: add them.": lambda x, table: x - rows(x, table),
    "You number the sequences of the batch: the positions run along dimension 1.":
        (lambda x, table: x + table[: len(x), None], lambda x, table: x + table[: len(x)]),
    "T is x.shape[1], the number of tokens; x.shape[2] is the width C.":
        lambda x, table: x + table[: x.shape[2]],
    "Some tokens get no position: add table[:T] to all of them.": (
        lambda x, table: torch.cat((x[:, :1] + table[0], x[:, 1:]), 1),
        lambda x, table: torch.cat((x[:, :-1], x[:, -1:] + table[x.shape[1] - 1]), 1),
        lambda x, table: torch.cat((x[:1] + rows(x[:1], table), x[1:]))),
    "You add the position vectors twice.": lambda x, table: x + 2 * rows(x, table),
    "You add the positions' *numbers*: add their vectors, the rows of the table.":
        lambda x, table: x + torch.arange(x.shape[1])[:, None],
    "You gave back x itself: add table[:T].": lambda x, table: x,
    "You add the whole table: take its first T rows, table[:T].": lambda x, table: x + table,
}  # fmt: skip


@add_positions.then
def the_end_of_the_table(answer):
    x, table = normal(2, 4, 3, seed=78), normal(4, 3, seed=79)
    try:
        got = call(answer, x, table, name="add_positions(x, table)")
        expect(same(got, x + table), "4 tokens and 4 rows: token t gets table[t] there, too.")
    except NotYet as problem:
        expect("ValueError" not in str(problem), "4 tokens fit into a table of 4 rows, positions "
               "0 to 3: raise only when T > len(table).")  # fmt: skip
        raise
    for T, size in ((7, 5), (12, 11)):
        _expect_overflow(answer, normal(2, T, 3, seed=78), normal(size, 3, seed=79))


def _expect_overflow(answer, x, table):
    T, size = x.shape[1], len(table)
    try:
        got = answer(*fresh((x, table)))
    except ValueError as error:
        expect(
            {str(T), str(size)} <= set(re.findall(r"\d+", str(error))),
            "A ValueError is right. Let its message say both numbers: how many tokens came "
            f"({T}), and how many positions the table has ({size}).",
        )
        return
    except (AssertionError, NotImplementedError) as error:
        if type(error) is NotImplementedError and not str(error):
            raise NotAttempted from None
        kind = type(error).__name__
        raise NotYet(f"You test it, with {kind}: raise a ValueError instead.") from None
    except Exception as error:
        raise NotYet(
            f"For {T} tokens and {size} rows you leave it to torch, which raises "
            f"{type(error).__name__} and speaks of sizes, not of positions. Test T > len(table) "
            "first and raise a ValueError that says what to do."
        ) from None
    for says, silent in SILENT.items():
        expect(not same(got, silent(x, table)), f"{T} tokens, {size} rows: {says}: raise a "
               "ValueError.")  # fmt: skip
    raise NotYet(f"{T} tokens do not fit into a table of {size} rows: raise a ValueError.")


SILENT = {
    "you let the last tokens share the last row. The model would be wrong without a word":
        lambda x, table: x + table[torch.arange(x.shape[1]).clamp(max=len(table) - 1)],
    "you begin the table again, so a late token says that it is token 0":
        lambda x, table: x + table[torch.arange(x.shape[1]) % len(table)],
    "you leave tokens out without a word": lambda x, table: x[:, : len(table)] + table,
    "you leave the first tokens out without a word": lambda x, table: x[:, -len(table) :] + table,
    "you give the last tokens no position":
        lambda x, table: torch.cat((x[:, : len(table)] + table, x[:, len(table) :]), 1),
    "you give x back without a word": lambda x, table: x,
}  # fmt: skip


# --- 7.3 and 7.4: angles, as a table and as turns ---------------------------------------------


def angles(T, size, base, power=1.0, less=0):
    """Position · θ of each pair, (T, size / 2); power, less: what may go wrong in the exponent."""
    return torch.arange(T)[:, None] * base ** (-power * torch.arange(0, size, 2) / (size - less))


def of(x, base=10_000.0):
    """The angles for x (..., T, hs)."""
    return angles(*x.shape[-2:], base)


# Diagnosis → angles (T, size / 2) that are wrong; {size} is n_embd or hs.
WRONG_ANGLES = {
    "Your positions begin at 1: the first token has position 0.":
        lambda T, size, base: angles(T + 1, size, base)[1:],
    "Your pairs begin at 1: the first pair has i = 0, so that θ is 1.":
        (lambda T, size, base: angles(T, size, base) * base ** (-2 / size),
         lambda T, size, base: angles(T, size, base) * base ** (-1 / size)),
    "The exponent is −2i / {size}, you have −i / {size}: the 2 is missing.":
        lambda T, size, base: angles(T, size, base, power=0.5),
    "The exponent counts twice: i is the number of the *pair*, and torch.arange(0, {size}, 2) is "
    "already 2i.": lambda T, size, base: angles(T, size, base, power=2),
    "The exponent needs a minus sign: later pairs turn more slowly.":
        lambda T, size, base: angles(T, size, base, power=-1),
    "The exponent is divided by {size} itself, not by {size} − 2 or {size} − 1.":
        (lambda T, size, base: angles(T, size, base, less=2),
         lambda T, size, base: angles(T, size, base, less=1),
         lambda T, size, base: torch.arange(T)[:, None] * base ** -torch.linspace(0, 1, size // 2)),
    "The exponent is −2i / {size}: you do not divide by {size}.":
        (lambda T, size, base: angles(T, size, base, power=size),
         lambda T, size, base: angles(T, size, base, power=size / 2)),
    "The exponent is −2i / {size}: you divide by T.":
        lambda T, size, base: angles(T, size, base, power=size / T),
    "Your frequencies do not depend on base, the last argument.":
        (lambda T, size, base: angles(T, size, 10_000.0),
         lambda T, size, base: angles(T, size, torch.e)),
    "Your angles are in degrees, torch wants radians: position · θ is the angle as it is.":
        (lambda T, size, base: angles(T, size, base).deg2rad(),
         lambda T, size, base: angles(T, size, base).rad2deg()),
    "There is no 2π (and no π) in the formula: the angle is position · θ, in radians.":
        (lambda T, size, base: angles(T, size, base) * 2 * torch.pi,
         lambda T, size, base: angles(T, size, base) * torch.pi,
         lambda T, size, base: angles(T, size, base) / (2 * torch.pi)),
    "You divide the positions by T: they are 0, 1, 2, …, whatever T is.":
        (lambda T, size, base: angles(T, size, base) / T,
         lambda T, size, base: angles(T, size, base) / max(T - 1, 1)),
    "Every token has the same angles: each is the *position* times θ.":
        lambda T, size, base: angles(2, size, base)[1:].expand(T, -1),
    "All pairs turn alike: pair i has its own θ = base ** (-2 * i / {size}).":
        (lambda T, size, base: angles(T, size, 1.0),
         lambda T, size, base: angles(T, size, 1.0) / base),
    "The positions run backwards: the first token has position 0.":
        lambda T, size, base: angles(T, size, base).flip(0),
    "The pairs run backwards: the first pair is the fast one, θ = 1.":
        lambda T, size, base: angles(T, size, base).flip(1),
    "base is taken to the power of −2i / {size}: you multiply by it.":
        lambda T, size, base: torch.arange(T)[:, None] * -base * torch.arange(0, size, 2) / size,
}  # fmt: skip


def wrong_angles(size, use):
    """What an answer gives that makes a mistake in the angles, and uses them well."""
    for says, wrong in WRONG_ANGLES.items():
        yield (
            says.format(size=size),
            tuple(map(use, wrong if isinstance(wrong, tuple) else (wrong,))),
        )


def side_by_side(even, odd):
    return torch.stack((even, odd), -1).flatten(-2)


def waves(angle):
    return side_by_side(angle.sin(), angle.cos())


def columns(T, C, base, power):
    """A frequency of its own for each column."""
    angle = torch.arange(T)[:, None] * base ** (-power * torch.arange(C) / C)
    return torch.where(torch.arange(C) % 2 == 0, angle.sin(), angle.cos())


@exercise(
    inputs=[(5, 6, 50.0), (3, 8, 10_000.0), (6, 6, 20.0), (7, 2, 100.0), (1, 4, 9.0),
            (120, 10, 500.0)],
    clash="The angles are a column of positions, (T, 1), times a row of θ, (n_embd / 2,).",
    praise="the same table as in the paper of 2017.",
    tolerance=1e-3,
)  # fmt: skip
def position_vectors(T, n_embd, base):
    """position_vectors(T, n_embd, base): the sinusoidal table, (T, n_embd)."""
    return waves(angles(T, n_embd, base))


def with_angles(combine):
    """The mistake of doing something else with the right angles."""
    return lambda T, C, base: combine(angles(T, C, base))


position_vectors.mistakes = {
    "Sine and cosine are exchanged: the sine comes first, so that position 0 is "
    "(0, 1, 0, 1, …).": with_angles(lambda a: side_by_side(a.cos(), a.sin())),
    "All sines come before all cosines. Here they alternate: sine and cosine of pair 0, "
    "then of pair 1.": with_angles(lambda a: torch.cat((a.sin(), a.cos()), -1)),
    "All cosines come before all sines. Here they alternate: sine and cosine of pair 0, "
    "then of pair 1.": with_angles(lambda a: torch.cat((a.cos(), a.sin()), -1)),
    **dict(wrong_angles("n_embd", lambda wrong: lambda *given: waves(wrong(*given)))),
    "Sine and cosine of a pair need the *same* frequency: it depends on the pair, not on "
    "the column.": (partial(columns, power=1), partial(columns, power=2)),
    "There are sines only: the odd columns are cosines.":
        (with_angles(lambda a: side_by_side(a.sin(), a.sin())),
         with_angles(lambda a: side_by_side(a.sin(), 0 * a))),
    "There are cosines only: the even columns are sines.":
        (with_angles(lambda a: side_by_side(a.cos(), a.cos())),
         with_angles(lambda a: side_by_side(0 * a, a.cos()))),
    "These are the angles: take their sines and cosines.":
        (angles, with_angles(lambda a: side_by_side(a, a)),
         with_angles(lambda a: torch.cat((a, a), -1))),
    "You have only half of the columns: a sine *and* a cosine for each pair, n_embd in all.":
        (with_angles(torch.sin), with_angles(torch.cos)),
    "You have twice as many columns: n_embd / 2 pairs, each with a sine and a cosine.":
        tuple(lambda T, C, base, power=power: waves(angles(T, 2 * C, base, power))
              for power in (1, 2, 4)),
    "Your table lies on its side: it needs T rows and n_embd columns.":
        with_angles(lambda a: waves(a).T),
    "The pairs stand apart, (T, n_embd / 2, 2): write them out in a row with .flatten(-2).":
        with_angles(lambda a: torch.stack((a.sin(), a.cos()), -1)),
    "Sines and cosines stay as they are: you multiply the table by something.": (
        lambda T, C, base: waves(angles(T, C, base)) * C**0.5,
        lambda T, C, base: waves(angles(T, C, base)) / C**0.5),
    "The cosines have the wrong sign.": with_angles(lambda a: side_by_side(a.sin(), -a.cos())),
    "The sines have the wrong sign: the angle is +position · θ.": with_angles(lambda a: waves(-a)),
}  # fmt: skip


def turn(x, angle):
    """Pairs (i, i + hs/2) of x (..., T, hs), turned by angles (T, hs / 2)."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)


def neighbours(x):
    """x with the pairs (2i, 2i + 1) where the pairs (i, i + hs/2) should be."""
    return torch.cat((x[..., 0::2], x[..., 1::2]), -1)


def turn_neighbours(x, angle):
    return side_by_side(*turn(neighbours(x), angle).chunk(2, -1))


def turning(combine):
    """The mistake of doing something else with x and the right angles."""
    return lambda x, base: combine(x, of(x, base))


def with_parts(combine):
    """The mistake of combining the halves a and b with the cosines c and sines s otherwise."""
    return turning(
        lambda x, angle: torch.cat(combine(*x.chunk(2, -1), angle.cos(), angle.sin()), -1)
    )


def joined(join):
    """The mistake of putting the two turned halves together otherwise."""
    return turning(lambda x, angle: join(turn(x, angle).chunk(2, -1)))


def along(dim):
    """The mistake of taking dimension `dim` for the time, where there is one."""

    def mistake(x, base):
        dims = (dim, -2) if x.dim() > 2 else (0, 0)
        return turn(x.transpose(*dims), of(x.transpose(*dims), base)).transpose(*dims)

    return mistake


def time_from(T_of):
    """The mistake of taking T from a certain place in the shape of x."""
    return lambda x, base: turn(x, angles(T_of(x.shape), x.shape[-1], base))


@exercise(
    inputs=[(normal(*shape, seed=80 + len(shape)), base) for *shape, base in
            ((2, 3, 5, 6, 50.0), (5, 6, 50.0), (3, 4, 8, 10_000.0), (3, 2, 4, 4, 5.0),
             (2, 2, 1, 6, 20.0), (1, 2, 10.0), (1, 60, 2, 10.0))],
    why=["A rotation keeps the lengths of the vectors, and position 0 is not turned."] * 7,
    clash="The angles are (T, hs / 2), with T, hs = x.shape[-2:].",
    praise="every pair turned, every length kept.",
    backward=True,
)  # fmt: skip
def rotate(x, base):
    """rotate(x, base): x (..., T, hs) with each pair (i, i + hs/2) turned by its position."""
    return turn(x, of(x, base))


rotate.mistakes = {
    "You rotate neighbours, (0, 1), (2, 3), …: the interleaved layout. Here the pairs are "
    "(i, i + hs/2): use x.chunk(2, -1).": turning(turn_neighbours),
    "You turn the right pairs, but write them out as neighbours. Join the halves again: all "
    "first numbers, then all second ones, with torch.cat.": joined(lambda ab: side_by_side(*ab)),
    "You turn neighbours, and write them out as halves. The pairs are (i, i + hs/2): use "
    "x.chunk(2, -1).": turning(lambda x, angle: turn(neighbours(x), angle)),
    "The angles are written out for neighbours (repeat_interleave), but the pairs are halves: "
    "join them with torch.cat((angles, angles), -1).": turning(lambda x, angle: (
        x * side_by_side(angle, angle).cos()
        + turn(x, angle * 0 + torch.pi / 2) * side_by_side(angle, angle).sin())),
    "The halves have changed places: a·cos − b·sin comes first, then a·sin + b·cos.":
        joined(lambda ab: torch.cat(ab[::-1], -1)),
    "You turn backwards. The first of a pair becomes a·cos − b·sin, the second "
    "a·sin + b·cos.": turning(lambda x, angle: turn(x, -angle)),
    **dict(wrong_angles("hs", lambda wrong: lambda x, base: turn(x, wrong(*x.shape[-2:], base)))),
    "You *add* the angles to x. Rotary positions turn: each pair is rotated, and its length "
    "stays.": turning(lambda x, angle: x + torch.cat((angle, angle), -1)),
    "You *add* sines and cosines to x. Rotary positions turn each pair instead.":
        turning(lambda x, angle: x + torch.cat((angle.sin(), angle.cos()), -1)),
    "You add sines and cosines as in the sinusoidal table. Rotary positions turn each pair "
    "instead.": turning(lambda x, angle: x + waves(angle)),
    "This is a mirror, not a rotation: one of the two sines needs a minus sign, the one in "
    "a·cos − b·sin.": with_parts(lambda a, b, c, s: (a * c + b * s, a * s - b * c)),
    "Both sines have a plus sign: it is a·cos − b·sin and a·sin + b·cos.":
        with_parts(lambda a, b, c, s: (a * c + b * s, a * s + b * c)),
    "Both sines have a minus sign: it is a·cos − b·sin and a·sin + b·cos.":
        with_parts(lambda a, b, c, s: (a * c - b * s, b * c - a * s)),
    "The second number of each pair uses the first one after it was turned: keep the old "
    "values.": with_parts(lambda a, b, c, s: (a * c - b * s, (a * c - b * s) * s + b * c)),
    "Sine and cosine are exchanged: it is a·cos − b·sin and a·sin + b·cos.":
        with_parts(lambda a, b, c, s: (a * s - b * c, a * c + b * s)),
    "You only multiply by the cosines: a rotation also exchanges something between the two "
    "numbers of a pair.": with_parts(lambda a, b, c, s: (a * c, b * c)),
    "You multiply one half by the cosines, the other by the sines: a rotation needs both for "
    "each.": (with_parts(lambda a, b, c, s: (a * c, b * s)),
              with_parts(lambda a, b, c, s: (a * s, b * c))),
    "Only the first half is turned: the second becomes a·sin + b·cos.":
        with_parts(lambda a, b, c, s: (a * c - b * s, b)),
    "Only the second half is turned: the first becomes a·cos − b·sin.":
        with_parts(lambda a, b, c, s: (a, a * s + b * c)),
    "Half of the features are missing: join both halves with torch.cat.":
        (joined(lambda ab: ab[0]), joined(lambda ab: ab[1])),
    "The halves stand apart: join them along the last dimension, torch.cat(…, dim=-1).":
        (*(joined(lambda ab, dim=dim: torch.stack(ab, dim)) for dim in (-1, -2, 0)),
         *(joined(lambda ab, dim=dim: torch.cat(ab, dim)) for dim in (-2, 0))),
    "You turn each pair twice.": turning(lambda x, angle: turn(x, 2 * angle)),
    "The lengths of the vectors have changed: a rotation keeps them.":
        (turning(lambda x, angle: 2 * turn(x, angle)), turning(lambda x, angle: x + turn(x, angle)),
         turning(lambda x, angle: F.normalize(turn(x, angle), dim=-1))),
    "Nothing is turned: x comes back as it was.": lambda x, base: x,
    "The positions run along the wrong dimension: time is the last but one.":
        (along(-3), along(0)),
    "Every sequence begins at position 0: you count on from head to head, as if x were flat.":
        lambda x, base: rotate.right(x.flatten(0, -2), base).view(x.shape),
    "You take the first dimension for T. It may be the batch: T, hs = x.shape[-2:].":
        time_from(lambda shape: shape[0]),
    "You take dimension 1 for T. It may be the heads: T, hs = x.shape[-2:].":
        time_from(lambda shape: shape[1]),
    "You want a certain number of dimensions. Only the last two count: T, hs = x.shape[-2:].":
        (time_from(lambda shape: next(T for T, _ in [shape])),
         time_from(lambda shape: next(T for _, T, _ in [shape])),
         time_from(lambda shape: next(T for _, _, T, _ in [shape]))),
}  # fmt: skip


# --- 7.5: in attention ------------------------------------------------------------------------


def unchanged(x):
    return x


def turned(x):
    return turn(x, of(x))


def back(x):
    return turn(x, -of(x))


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


@exercise(
    inputs=[tuple(normal(*shape, seed=84 + 10 * i + shape[-2]) for i in range(3)) for shape in
            ((1, 2, 5, 4), (2, 1, 3, 6), (2, 3, 4, 8), (2, 2, 4, 4), (3, 3, 3, 2), (2, 3, 1, 4),
             (1, 1, 40, 4))],
    clash="q, k and v are (B, H, T, hs): the scores compare the last dimension, q @ k.mT.",
    praise="positions are in the scores, and only there.",
    backward=True,
)  # fmt: skip
def rotary_attention(q, k, v):
    """rotary_attention(q, k, v): causal attention with rotary positions, (B, H, T, hs)."""
    return attending()(q, k, v)


ALONE = "Rotate q and k, and leave v alone: "
rotary_attention.mistakes = {
    "You rotate the values too. Then the output depends on where the tokens stand, not "
    "only on how far apart: rotate q and k only.": attending(to_v=turned),
    "You rotate the queries only: the scores depend on distances only if the keys are "
    "rotated too.": attending(to_k=unchanged),
    "You rotate the keys only: the queries have to be rotated too.": attending(to_q=unchanged),
    ALONE + "you rotate the values only.": attending(unchanged, unchanged, turned),
    ALONE + "you rotate queries and values.": attending(turned, unchanged, turned),
    ALONE + "you rotate keys and values.": attending(unchanged, turned, turned),
    "Nothing is rotated, or all tokens alike: this is attention without positions.":
        attending(unchanged, unchanged),
    "You rotate the output: rotate the queries and keys before their dot product.":
        attending(unchanged, unchanged, then=turned),
    "The output is rotated once more: only q and k are.":
        (attending(then=turned), attending(then=back)),
    "The mask is missing: every token hears the future.": attending(mask=lambda T: None),
    "The mask is missing, and v is rotated: rotate q and k only, and pass causal_mask(T).":
        attending(to_v=turned, mask=lambda T: None),
    "The mask is missing, and so are rotations: rotate q and k, both of them.":
        (attending(unchanged, unchanged, mask=lambda T: None),
         attending(turned, unchanged, mask=lambda T: None),
         attending(unchanged, turned, mask=lambda T: None)),
    "The mask is the wrong way round: a token hears itself and the *past*.":
        attending(mask=lambda T: causal_mask(T).T),
    "The mask leaves a token nothing to hear: it is True where a token may look, and each token "
    "may look at itself.": attending(mask=lambda T: ~causal_mask(T)),
    "The mask has T rows and columns, T = q.shape[-2].": tuple(
        lambda q, k, v, dim=dim: attending(mask=lambda T: causal_mask(q.shape[dim]))(q, k, v)
        for dim in (0, 1, -1)),
    "`Rotary` wants the head size, hs = q.shape[-1].": (
        *(attending(lambda q, dim=dim: Rotary(q.shape[dim])(q)) for dim in (0, 1, -2)),
        attending(lambda q: Rotary(q.shape[1] * q.shape[-1])(q))),
    "The scores are not divided by √hs.": attending(scale=0),
    "The scores are divided by √hs twice: `attention` does it already.": attending(scale=-1),
    "The scores are multiplied by √hs: divide them.": attending(scale=0.5),
    "The scores are divided by √C (all heads together): each head has the size hs.":
        lambda q, k, v: attending(lambda q: turned(q) / q.shape[1] ** 0.5)(q, k, v),
    "You turn keys backwards: q and k turn the same way, by their own positions.":
        attending(to_k=back),
    "You turn queries backwards: q and k turn the same way, by their own positions.":
        attending(to_q=back),
    "You turn both backwards: use `Rotary` as it is, without a minus sign or a flip.":
        attending(back, back),
    "Queries and keys are counted differently: position 0 is the first token for both.":
        (attending(to_q=late), attending(to_k=late)),
    "You rotate twice: once is enough.":
        attending(lambda q: turned(turned(q)), lambda k: turned(turned(k))),
    "You rotate neighbours; `Rotary` turns the pairs (i, i + hs/2).":
        attending(lambda q: turn_neighbours(q, of(q)), lambda k: turn_neighbours(k, of(k))),
    "You add position vectors to q and k: rotary positions turn them, `Rotary(hs)(q)`.":
        attending(lambda q: q + waves(of(q)), lambda k: k + waves(of(k))),
    "The base is 10,000: use `Rotary(hs)` as it is.": tuple(
        attending(*[lambda x, base=base: turn(x, of(x, base))] * 2) for base in (100.0, 1000.0)),
    "q, k and v are mixed up: Rotary's queries, then its keys, then the values v.": (
        *(of_others(attending(), order) for order in
          ((1, 0, 2), (0, 0, 2), (1, 1, 2), (0, 1, 1), (0, 1, 0), (2, 2, 2), (0, 0, 0), (0, 2, 1))),
        *(of_others(attending(to_v=turned), order) for order in ((0, 1, 1), (0, 1, 0)))),
    "Heads and time are exchanged: tokens attend to tokens, within each head.": (
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
    "Every token hears the past evenly: the weights come from the scores of q and k.":
        attending(torch.zeros_like),
    "You gave back the values: each output is a weighted sum of them.": lambda q, k, v: v,
    "Keep the heads apart: the output has the shape (B, H, T, hs).":
        (attending(then=lambda out: out.transpose(1, 2)),
         attending(then=lambda out: out.transpose(1, 2).flatten(2)),
         attending(then=lambda out: out.mean(1)), attending(then=lambda out: out.sum(1))),
}  # fmt: skip


# --- 7.6: the other layout --------------------------------------------------------------------


@exercise(
    inputs=[(normal(H * hs, C, seed=90 + hs + C), H) for H, hs, C in
            ((3, 8, 4), (2, 6, 12), (4, 10, 7), (6, 6, 36), (1, 6, 5), (5, 4, 1), (3, 2, 5))],
    praise="a weight from one world now fits into the other.",
)  # fmt: skip
def to_halves(weight, n_head):
    """to_halves(weight, n_head): rows from interleaved pairs to two halves, in every head."""
    return half_split(weight, n_head)


def heads(weight, H):
    """(H, hs/2, 2, C): each head's pairs, and their members."""
    return weight.unflatten(0, (H, -1, 2))


to_halves.mistakes = {
    "You return the rows as they were.": (
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
        lambda weight, H: half_split(weight, len(weight) // H),
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
    "The result lies on its side: rows stay rows.": lambda weight, H: half_split(weight, H).T,
    "The second half of each head runs backwards: 0, 2, 4, … and then 1, 3, 5, …":
        lambda weight, H: torch.cat((heads(weight, H)[:, :, 0],
                                     heads(weight, H)[:, :, 1].flip(1)), 1).flatten(0, 1),
    "The rows run backwards: rows 0, 2, 4, … of each head come first, in this order.":
        (lambda weight, H: weight.flip(0), lambda weight, H: half_split(weight, H).flip(0),
         lambda weight, H: heads(weight, H).flip(1).transpose(1, 2).flatten(0, 2),
         lambda weight, H: heads(weight, H).flip(1, 2).transpose(1, 2).flatten(0, 2)),
    "Each half has changed its sign: rows only move.": (
        lambda weight, H: torch.cat((-heads(weight, H)[:, :, 1], heads(weight, H)[:, :, 0]), 1)
        .flatten(0, 1)),
}  # fmt: skip
