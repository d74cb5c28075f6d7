"""The exercises of chapter 07 beyond what their declaration says."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises import position as check
from helpers.attention import attention
from helpers.positions import Rotary, half_split, sinusoidal

# --- other right answers ----------------------------------------------------------------------


def added(x, table):
    if x.shape[1] > len(table):
        raise ValueError(f"{x.shape[1]} tokens, {len(table)} positions")
    return x + table[: x.shape[1]]


def added_by_loops(x, table):
    if x.shape[1] > len(table):
        raise IndexError
    return torch.stack([torch.stack([row + table[t] for t, row in enumerate(seq)]) for seq in x])


def added_and_translated(x, table):
    try:
        return added_by_loops(x, table)
    except IndexError:
        raise ValueError(f"table {tuple(table.shape)}, x {tuple(x.shape)}") from None


def vectors_by_loop(T, C, base):
    table = np.zeros((T, C))
    for p in range(T):
        for i in range(C // 2):
            angle = p * base ** (-2 * i / C)
            table[p, 2 * i : 2 * i + 2] = np.sin(angle), np.cos(angle)
    return table


def by_complex_numbers(x, base):
    a, b = x.chunk(2, -1)
    angles = check.of(x, base)
    z = torch.complex(a, b) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat((z.real, z.imag), -1)


def by_halves_in_place(x, base):
    angles = torch.cat([check.of(x, base)] * 2, -1)
    swapped = x.roll(x.shape[-1] // 2, -1).clone()
    swapped[..., : x.shape[-1] // 2] *= -1
    return x * angles.cos() + swapped * angles.sin()


def fused(q, k, v):
    rotary = Rotary(q.shape[-1])
    return F.scaled_dot_product_attention(rotary(q), rotary(k), v, is_causal=True)


def token_by_token(q, k, v):
    "Only distances matter: all positions may be moved by 3."
    rotary, T = Rotary(q.shape[-1]), q.shape[-2]
    q, k = rotary(q, 3), rotary(k, 3)
    outs = [attention(q[:, :, t : t + 1], k[:, :, : t + 1], v[:, :, : t + 1])[0] for t in range(T)]
    return torch.cat(outs, 2)


def halves_by_index(weight, n_head):
    hs = len(weight) // n_head
    order = [h * hs + i for h in range(n_head) for start in (0, 1) for i in range(start, hs, 2)]
    return weight.numpy()[order]


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (check.is_equivariant, lambda f, x, o: (f(x[o]) - f(x)[o]).abs().max().item() < 1e-5),
        (check.is_equivariant, lambda f, x, o: ((f(x[o]) - f(x)[o]).abs() < 1e-5).all()),
        (check.is_equivariant, lambda f, x, o: np.allclose(f(x[o]), f(x)[o], atol=1e-6)),
        (check.is_equivariant, lambda f, x, o: np.bool_((f(x[o]) - f(x)[o]).norm() < 1e-5)),
        (check.is_equivariant, lambda f, x, o: torch.allclose(f(x[o])[o.argsort()], f(x), 1e-4)),
        (check.add_positions, added),
        (check.add_positions, added_and_translated),
        (check.position_vectors, vectors_by_loop),
        (check.position_vectors, sinusoidal),
        (check.position_vectors, lambda T, C, base: sinusoidal(T, C, base).double().tolist()),
        (check.rotate, by_complex_numbers),
        (check.rotate, by_halves_in_place),
        (check.rotate, lambda x, base: Rotary(x.shape[-1], base)(x)),
        (check.rotary_attention, fused),
        (check.rotary_attention, token_by_token),
        (check.to_halves, half_split),
        (check.to_halves, halves_by_index),
    ],
)
def test_another_right_answer_is_right(exercise, answer):
    report = exercise(answer)
    assert report.outcome == "right", report.message


# --- what else is told ------------------------------------------------------------------------


def instead(wrong):
    """`added`, but something else where the table is too short."""
    return lambda x, table: added(x, table) if x.shape[1] <= len(table) else wrong(x, table)


def raising(error):
    def wrong(x, table):
        raise error

    return instead(wrong)


def refusing(too_many):
    def answer(x, table):
        if too_many(x.shape[1], len(table)):
            raise ValueError(f"{x.shape[1]} tokens, {len(table)} positions")
        return x + table[: x.shape[1]]

    return answer


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refusing(lambda T, size: T >= size), "raise only when T > len(table)"),
        (refusing(lambda T, size: T > size + 1), "For 12 tokens and 11 rows you leave it to torch"),
        (instead(lambda x, t: x + t[: x.shape[1]]), "leave it to torch, which raises RuntimeError"),
        (instead(lambda x, t: x + t[torch.arange(x.shape[1])]), "raises IndexError"),
        (raising(KeyError("7 and 5")), "raises KeyError"),
        (raising(AssertionError("7 and 5")), "with AssertionError"),
        (raising(ValueError("too long")), "both numbers"),
        (raising(ValueError("7 tokens do not fit")), "both numbers"),
        (raising(ValueError("7 tokens, 5 rows")), "(12), and how many positions the table has"),
        (raising(ValueError("17 tokens, 15 rows")), "both numbers"),
        (instead(lambda x, t: "too long"), "raise a ValueError"),
        *((instead(silent), says) for says, silent in check.SILENT.items()),
    ],
)
def test_what_happens_where_the_table_ends(answer, words):
    report = check.add_positions(answer)
    assert report.outcome == "not yet" and words in report.message, report.message


def cut(right, parts):
    """The answer with some of its arguments cut off from the gradients."""
    return lambda *args: right(*(x.detach() if i in parts else x for i, x in enumerate(args)))


@torch.no_grad()
def ungraded(x, base):
    return check.turn(x, check.of(x, base))


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (check.add_positions, cut(added, {0})),
        (check.add_positions, cut(added, {1})),
        (check.add_positions, cut(added, {0, 1})),
        (check.rotate, ungraded),
        (check.rotate, lambda x, base: torch.tensor(by_complex_numbers(x, base).tolist())),
        *((check.rotary_attention, cut(fused, {part})) for part in range(3)),
    ],
)
def test_gradients_come_back(exercise, answer):
    assert "has the right values, but" in exercise(answer).message


@pytest.mark.parametrize(
    "measure",
    [
        lambda y: torch.stack((y.mean(-1), y.norm(dim=-1))),
        lambda y: y.amax(-1),
        lambda y: y.argmax(-1).float(),
        lambda y: y.sort(-1).values,
        torch.abs,
        lambda y: y @ y.T,
        lambda y: y[:3],
        lambda y: y[:, 1:],
    ],
)
def test_a_test_of_equivariance_that_compares_a_part_is_found(measure):
    assert check.is_equivariant(check.comparing(measure)).outcome == "not yet"


def test_a_test_of_equivariance_uses_the_order_that_it_is_given():
    def own_order(f, x, _):
        return check.is_equivariant.right(f, x, torch.arange(len(x)).roll(1))

    assert "use `order` as it is given" in check.is_equivariant(own_order).message


@pytest.mark.parametrize(
    ("exercise", "answer", "words"),
    [
        (check.rotate, lambda x, base: check.turn(x, check.of(x, 3 * base)), "keeps the lengths"),
        (check.rotate, lambda x, base: x.view(7, 11), "rotate raised RuntimeError"),
        (check.rotate, lambda x, base: tuple(x.chunk(2, -1)), "one tensor, but is a tuple of 2"),
        (check.position_vectors, lambda T, C, b: sinusoidal(T, C, 2 * b), "should be"),
        (
            check.rotary_attention,
            lambda q, k, v: (fused(q, k, v), check.scores(q, k)),
            "is a tuple of 2: return the first alone",
        ),
    ],
)
def test_other_mistakes_are_told_by_what_differs(exercise, answer, words):
    report = exercise(answer)
    assert report.outcome == "not yet" and words in report.message, report.message
