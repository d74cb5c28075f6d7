"""The exercises of chapter 07: each known mistake gets its diagnosis, other right answers pass."""

import pytest
import torch

from exercises import position as check
from helpers.attention import attention, causal_mask
from helpers.positions import Rotary, half_split, rotary_angles, sinusoidal

# --- other right answers ----------------------------------------------------------------------


def overflow(x, table):
    if x.shape[1] > len(table):
        raise ValueError(f"{x.shape[1]} tokens, {len(table)} positions")


def added(x, table):
    overflow(x, table)
    return x + table[: x.shape[1]]


def vectors_by_loop(T, C, base):
    table = torch.zeros(T, C)
    for p in range(T):
        for i in range(C // 2):
            angle = torch.tensor(p * base ** (-2 * i / C))
            table[p, 2 * i], table[p, 2 * i + 1] = angle.sin(), angle.cos()
    return table


def turn(x, angles):
    a, b = x.chunk(2, -1)
    c, s = angles.cos(), angles.sin()
    return torch.cat((a * c - b * s, a * s + b * c), -1)


def all_angles(x, base):
    return rotary_angles(x.shape[-2], x.shape[-1], base)


def by_complex_numbers(x, base):
    a, b = x.chunk(2, -1)
    angles = all_angles(x, base)
    z = torch.complex(a, b) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat((z.real, z.imag), -1)


def with_weights(q, k, v):
    rotary = Rotary(q.shape[-1])
    return attention(rotary(q), rotary(k), v, causal_mask(q.shape[-2]))


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("is_equivariant", lambda f, x, o: (f(x[o]) - f(x)[o]).abs().max().item() < 1e-5),
        ("is_equivariant", lambda f, x, o: ((f(x[o]) - f(x)[o]).abs() < 1e-5).all()),
        ("add_positions", added),
        ("position_vectors", vectors_by_loop),
        ("position_vectors", sinusoidal),
        ("rotate", by_complex_numbers),
        ("rotate", lambda x, base: Rotary(x.shape[-1], base)(x)),
        ("rotary_attention", with_weights),
        ("to_halves", half_split),
    ],
)
def test_another_right_answer_is_right(name, answer):
    report = getattr(check, name)(answer)
    assert report.outcome == "right", report.message


# --- mistakes ---------------------------------------------------------------------------------


def close(a, b):
    return torch.allclose(a, b, atol=1e-6)


def angles(T, C, base, *, first=0, power=1.0):
    p = torch.arange(first, first + T)[:, None]
    return p * base ** (-power * torch.arange(0, C, 2) / C)


def table(angle):
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(-2)


def own_frequency(T, C, base):
    angle = torch.arange(T)[:, None] * base ** (-torch.arange(C) / C)
    return torch.where(torch.arange(C) % 2 == 0, angle.sin(), angle.cos())


def interleaved(x, base):
    a, b, g = x[..., 0::2], x[..., 1::2], all_angles(x, base)
    return torch.stack((a * g.cos() - b * g.sin(), a * g.sin() + b * g.cos()), -1).flatten(-2)


def turned(x, base):
    return turn(x, all_angles(x, base)).chunk(2, -1)


def as_neighbours(x, base):
    return torch.stack(turned(x, base), -1).flatten(-2)


def overwritten(x, base):
    a, b = (part.clone() for part in x.chunk(2, -1))
    g = all_angles(x, base)
    a = a * g.cos() - b * g.sin()
    b = a * g.sin() + b * g.cos()
    return torch.cat((a, b), -1)


def pieces(x, base):
    a, b = x.chunk(2, -1)
    g = all_angles(x, base)
    return a, b, g.cos(), g.sin()


def mirror(x, base):
    a, b, c, s = pieces(x, base)
    return torch.cat((a * c + b * s, a * s - b * c), -1)


def both_plus(x, base):
    a, b, c, s = pieces(x, base)
    return torch.cat((a * c + b * s, a * s + b * c), -1)


def by_head(x, base):
    if x.dim() == 2:
        return turn(x, all_angles(x, base))
    return by_complex_numbers(x.transpose(-3, -2), base).transpose(-3, -2)


def attend(turn_q=True, turn_k=True, turn_v=False, mask=True, scale=None, backwards=False):
    def answer(q, k, v):
        r = Rotary(q.shape[-1])
        g = rotary_angles(q.shape[-2], q.shape[-1])
        q = r(q) if turn_q else q
        k = turn(k, -g) if backwards else r(k) if turn_k else k
        m = causal_mask(q.shape[-2]) if mask else None
        return attention(q, k, r(v) if turn_v else v, m, scale=scale)[0]

    return answer


def rotated_output(q, k, v):
    return Rotary(q.shape[-1])(attention(q, k, v, causal_mask(q.shape[-2]))[0])


def guarded(wrong):
    def answer(x, table):
        overflow(x, table)
        return wrong(x, table)

    return answer


def raising(error):
    def answer(x, table):
        if x.shape[1] > len(table):
            raise error
        return x + table[: x.shape[1]]

    return answer


def too_careful(x, table):
    if x.shape[1] >= len(table):
        raise ValueError(f"{x.shape[1]} tokens, {len(table)} positions")
    return x + table[: x.shape[1]]


def half_covered(x, table):
    out = x.clone()
    T = min(x.shape[1], len(table))
    out[:, :T] += table[:T]
    return out


def per_sequence(x, table):
    overflow(x, table)
    return x + table[: len(x), None]


MUTANTS = [
    ("is_equivariant", lambda f, x, o: close(f(x[o]), f(x)), "That is invariance"),
    ("is_equivariant", lambda f, x, o: close(f(x[o])[o], f(x)), "Shuffling twice"),
    ("is_equivariant", lambda f, x, o: torch.equal(f(x[o]), f(x)[o]), "torch.allclose"),
    ("is_equivariant", lambda f, x, o: True, "always equal"),
    ("is_equivariant", lambda f, x, o: close(f(x), f(x)), "always equal"),
    ("is_equivariant", lambda f, x, o: False, "You say False to everything"),
    ("is_equivariant", lambda f, x, o: f(x[o]) == f(x)[o], "one True or False"),
    ("is_equivariant", lambda f, x, o: close(f(x)[:1], x[:1]), "the answer is"),
    ("is_equivariant", lambda f, x, o: close(f(x[o])[0], f(x)[o][0]), "changes row 1 alone"),
    ("is_equivariant", lambda f, x, o: close(f(x[o])[-1], f(x)[o][-1]), "changes row 1 alone"),
    ("add_positions", guarded(lambda x, t: x + t.roll(-1, 0)[: x.shape[1]]), "begin at position 1"),
    ("add_positions", guarded(lambda x, t: x + t[len(t) - x.shape[1] :]), "*last* T rows"),
    ("add_positions", guarded(lambda x, t: t[: x.shape[1]].expand_as(x)), "add them to x"),
    ("add_positions", guarded(lambda x, t: x + t[0]), "the same row"),
    (
        "add_positions",
        guarded(lambda x, t: torch.cat((x, t[: x.shape[1]].expand_as(x)), -1)),
        "*beside* x",
    ),
    ("add_positions", guarded(lambda x, t: x * t[: x.shape[1]]), "You multiply"),
    ("add_positions", per_sequence, "number the sequences"),
    ("add_positions", too_careful, "only when T > len(table)"),
    ("add_positions", lambda x, t: x + t[torch.arange(x.shape[1]).clamp(max=len(t) - 1)], "share"),
    ("add_positions", lambda x, t: x + t[torch.arange(x.shape[1]) % len(t)], "begin the table"),
    ("add_positions", lambda x, t: x[:, : len(t)] + t[: x.shape[1]], "leave tokens out"),
    ("add_positions", half_covered, "no position"),
    ("add_positions", lambda x, t: x + t[: x.shape[1]], "leave it to torch"),
    ("add_positions", lambda x, t: x + t[torch.arange(x.shape[1])], "raises IndexError"),
    ("add_positions", raising(ValueError("too long")), "both numbers"),
    ("add_positions", raising(KeyError("7 and 5")), "raises KeyError"),
    ("add_positions", raising(AssertionError("7 and 5")), "with an AssertionError"),
    (
        "position_vectors",
        lambda T, C, base: torch.stack(
            (angles(T, C, base).cos(), angles(T, C, base).sin()), -1
        ).flatten(-2),
        "exchanged",
    ),
    (
        "position_vectors",
        lambda T, C, base: torch.cat((angles(T, C, base).sin(), angles(T, C, base).cos()), -1),
        "All sines come before",
    ),
    ("position_vectors", lambda T, C, b: table(angles(T, C, b, first=1)), "begin at 1"),
    ("position_vectors", lambda T, C, b: table(angles(T, C, b, power=0.5)), "the 2 is missing"),
    ("position_vectors", lambda T, C, b: table(angles(T, C, b, power=2)), "counts twice"),
    ("position_vectors", lambda T, C, b: table(angles(T, C, b, power=-1)), "minus sign"),
    ("position_vectors", own_frequency, "*same* frequency"),
    (
        "position_vectors",
        lambda T, C, b: angles(T, C, b).sin().repeat_interleave(2, -1),
        "sines only",
    ),
    ("position_vectors", lambda T, C, b: sinusoidal(T, C, b).T, "should have shape"),
    ("position_vectors", lambda T, C, b: sinusoidal(T, C), "third argument"),
    ("position_vectors", lambda T, C, b: sinusoidal(T, C, 2 * b), "should be"),
    ("rotate", interleaved, "interleaved layout"),
    ("rotate", lambda x, b: turn(x, -all_angles(x, b)), "backwards"),
    ("rotate", lambda x, b: turn(x, angles(*x.shape[-2:], b, first=1)), "begin at 1"),
    ("rotate", lambda x, b: x + torch.cat([all_angles(x, b)] * 2, -1), "*add* the angles"),
    (
        "rotate",
        lambda x, b: x + torch.cat((all_angles(x, b).sin(), all_angles(x, b).cos()), -1),
        "*add* sines",
    ),
    ("rotate", lambda x, b: x + sinusoidal(*x.shape[-2:], b), "sinusoidal table"),
    ("rotate", lambda x, b: turn(x, angles(*x.shape[-2:], b, power=0.5)), "you have −i / hs"),
    ("rotate", lambda x, b: turn(x, angles(*x.shape[-2:], b, power=2)), "counts twice"),
    ("rotate", lambda x, b: turn(x, angles(*x.shape[-2:], b, power=-1)), "minus sign: later"),
    ("rotate", mirror, "mirror"),
    ("rotate", as_neighbours, "write them out as neighbours"),
    ("rotate", lambda x, b: torch.cat(turned(x, b)[::-1], -1), "changed places"),
    ("rotate", both_plus, "Both sines"),
    ("rotate", overwritten, "keep the old"),
    ("rotate", lambda x, b: x * torch.cat([all_angles(x, b).cos()] * 2, -1), "only multiply"),
    ("rotate", by_head, "wrong dimension"),
    ("rotate", lambda x, b: 2 * turn(x, all_angles(x, b)), "lengths of the vectors"),
    ("rotate", lambda x, b: turn(x, torch.deg2rad(all_angles(x, b))), "should be"),
    ("rotate", lambda x, b: Rotary(x.shape[-1])(x), "second argument"),
    ("rotate", lambda x, b: x, "should be"),
    ("rotary_attention", attend(turn_v=True), "rotate the values too"),
    ("rotary_attention", attend(turn_k=False), "queries only"),
    ("rotary_attention", attend(turn_q=False), "keys only"),
    ("rotary_attention", attend(turn_q=False, turn_k=False), "Nothing is rotated"),
    ("rotary_attention", rotated_output, "rotate the output"),
    ("rotary_attention", attend(mask=False), "The mask is missing"),
    ("rotary_attention", attend(scale=1.0), "not divided"),
    ("rotary_attention", attend(backwards=True), "keys backwards"),
    ("to_halves", lambda w, H: w.clone(), "as they were"),
    (
        "to_halves",
        lambda w, H: w.unflatten(0, (H, 2, -1)).transpose(1, 2).flatten(0, 2),
        "the way back",
    ),
    ("to_halves", lambda w, H: torch.cat((w[0::2], w[1::2])), "all rows at once"),
    ("to_halves", lambda w, H: w.unflatten(0, (-1, 2)).flip(1).flatten(0, 1), "reverse the order"),
    (
        "to_halves",
        lambda w, H: half_split(w, H).unflatten(0, (H, 2, -1)).flip(1).flatten(0, 2),
        "second members",
    ),
    ("to_halves", lambda w, H: w.flip(0), "should be"),
]


@pytest.mark.parametrize(("name", "mutant", "diagnosis"), MUTANTS)
def test_a_classic_mistake_is_named(name, mutant, diagnosis):
    report = getattr(check, name)(mutant)
    assert report.outcome == "not yet" and diagnosis in report.message, report.message


def test_reordering_columns_is_named_where_it_fits():
    def columns(weight, n_head):
        if weight.shape[0] == weight.shape[1]:
            return half_split(weight.T, n_head).T
        return half_split(weight, n_head)

    assert "You reorder columns" in check.to_halves(columns).message
