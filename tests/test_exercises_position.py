"""The exercises on position beyond what their declaration says."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises import position as check
from helpers.positions import Rotary, half_split
from tests.answers import accepted, refused


def rotated(x, first=0):
    T, hs = x.shape[-2:]
    angle = torch.arange(first, first + T)[:, None] * 10_000 ** (-torch.arange(0, hs, 2) / hs)
    z = torch.complex(*x.chunk(2, -1)) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat((z.real, z.imag), -1)


def fused(q, k, v, rotated=rotated):
    return F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)


def in_steps(q, k, v):
    "Only distances matter: all positions may be moved by 3."
    scores = rotated(q, 3) @ rotated(k, 3).mT / q.shape[-1] ** 0.5
    past = torch.ones_like(scores).tril().bool()
    return scores.masked_fill(~past, -torch.inf).softmax(-1) @ v


LOSSES = {1e4: 2.9, 1e5: 2.6, 1e6: 2.4, 1e7: 2.5}


test_another_right_answer_is_right = accepted(
    (check.is_equivariant, lambda f, x, o: ((f(x[o]) - f(x)[o]).abs() < 1e-5).all()),
    (check.is_equivariant, lambda f, x, o: np.bool_((f(x[o]) - f(x)[o]).norm() < 1e-5)),
    (check.best_base, [{int(b): torch.tensor(x) for b, x in LOSSES.items()}, 10**6]),
    (check.to_halves, half_split),
    (check.rotary_attention, fused),
    (check.rotary_attention, in_steps),
)


@pytest.mark.parametrize(
    "measure",
    [
        lambda y: torch.stack((y.mean(-1), y.norm(dim=-1))),
        torch.abs,
        lambda y: y[:3],
        lambda y: y[:, 1:],
    ],
)
def test_a_test_of_equivariance_that_compares_a_part_is_found(measure):
    def compares_a_part(f, x, order):
        return torch.allclose(measure(f(x[order])), measure(f(x)[order]), atol=1e-5)

    assert check.is_equivariant(compares_a_part).outcome == "not yet"


@pytest.mark.parametrize(
    ("own_x", "own_order"),
    [
        (torch.randn_like, lambda order: order),
        (lambda x: x + 1, lambda order: order),
        (lambda x: x, lambda order: order.sort().values.roll(2)),
    ],
)
def test_a_test_of_equivariance_uses_what_it_is_given(own_x, own_order):
    def on_own(f, x, order):
        return check.is_equivariant.right(f, own_x(x), own_order(order))

    assert check.is_equivariant(on_own).outcome == "not yet"


test_other_mistakes_are_told = refused(
    (check.best_base, (LOSSES, LOSSES[1e6]), "one of the four bases"),
    (check.best_base, ({b: 64 * x for b, x in LOSSES.items()}, 1e6), "not the sum"),
    (check.best_base, ({**LOSSES, 1e4: 2.2}, 1e6), "positions 0 to 31"),
    (check.best_base, ({1e4: 2.9, 1e5: 2.8, 1e6: 2.66, 1e7: 3.1}, 1e6), "training again"),
    (check.best_base, ({**LOSSES, 1e5: 2.4}, 1e6), "Two of your losses are equal"),
    (check.best_base, (dict.fromkeys(LOSSES, 4.0), 1e4), "the numbers of the example"),
    (check.best_base, (LOSSES, 1e4), "highest loss"),
    (check.best_base, (LOSSES, 1e7), "another base is better: 1,000,000"),
    (check.rotary_attention, lambda q, k, v: fused(q, k, v, Rotary(q.shape[-1])), "`helpers`"),
)
