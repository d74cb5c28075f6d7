"""The exercises on position beyond what their declaration says."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises import position as check
from helpers.positions import Rotary, half_split

# --- other right answers ----------------------------------------------------------------------


def turned(x, first=0):
    T, hs = x.shape[-2:]
    angle = torch.arange(first, first + T)[:, None] * 10_000 ** (-torch.arange(0, hs, 2) / hs)
    z = torch.complex(*x.chunk(2, -1)) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat((z.real, z.imag), -1)


def fused(q, k, v, turned=turned):
    return F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)


def in_steps(q, k, v):
    scores = turned(q) @ turned(k).mT / q.shape[-1] ** 0.5
    past = torch.ones_like(scores).tril().bool()
    return scores.masked_fill(~past, -torch.inf).softmax(-1) @ v


def token_by_token(q, k, v):
    "Only distances matter: all positions may be moved by 3."
    q, k, t = turned(q, 3), turned(k, 3), range(q.shape[-2])
    outs = [F.scaled_dot_product_attention(q[:, :, [i]], k[:, :, : i + 1], v[:, :, : i + 1])
            for i in t]  # fmt: skip
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
        (check.rotary_attention, fused),
        (check.rotary_attention, token_by_token),
        (check.rotary_attention, in_steps),
        (check.to_halves, half_split),
        (check.to_halves, halves_by_index),
    ],
)
def test_another_right_answer_is_right(exercise, answer):
    report = exercise(answer)
    assert report.outcome == "right", report.message


# --- what else is told ------------------------------------------------------------------------


def cut(right, parts):
    """The answer with some of its arguments cut off from the gradients."""
    return lambda *args: right(*(x.detach() if i in parts else x for i, x in enumerate(args)))


@pytest.mark.parametrize("part", range(3))
def test_gradients_come_back(part):
    assert "has the right values, but" in check.rotary_attention(cut(fused, {part})).message


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


@pytest.mark.parametrize("own", [torch.randn_like, torch.rand_like, lambda x: x + 1])
def test_a_test_of_equivariance_asks_about_the_x_that_it_is_given(own):
    def on_own_x(f, x, order):
        return check.is_equivariant.right(f, own(x), order)

    assert check.is_equivariant(on_own_x).outcome == "not yet"


def test_a_test_of_equivariance_uses_the_order_that_it_is_given():
    def own_order(f, x, _):
        return check.is_equivariant.right(f, x, torch.arange(len(x)).roll(2))

    assert "order" in check.is_equivariant(own_order).message


LOSSES = {1e4: 2.9, 1e5: 2.6, 1e6: 2.4, 1e7: 2.5}


def test_the_best_base_is_a_matter_of_ones_own_numbers():
    assert check.best_base((LOSSES, 1e6)).outcome == "right"
    in_tensors = [{int(base): torch.tensor(x) for base, x in LOSSES.items()}, 10**6]
    assert check.best_base(in_tensors).outcome == "right"
    assert check.best_base((..., 1e6)).outcome == "not attempted"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (LOSSES, "to a pair"),
        ((1e6, LOSSES), "to a pair"),
        ((LOSSES, LOSSES[1e6]), "one of the four bases"),
        (({1e4: 2.9}, 1e4), "nothing for 100000, 1e+06, 1e+07"),
        (({b: 64 * x for b, x in LOSSES.items()}, 1e6), "not the sum"),
        (({**LOSSES, 1e4: 2.2}, 1e6), "positions 0 to 31"),
        (({1e4: 2.92, 1e5: 2.91, 1e6: 2.66, 1e7: 3.06}, 1e6), "without training again"),
        (({**LOSSES, 1e5: 2.4}, 1e6), "Two of your losses are equal"),
        ((dict(zip((4, 5, 6, 7), LOSSES.values(), strict=True)), 6), "Your keys are 4, 5, 6, 7"),
        ((dict.fromkeys(LOSSES, 4.0), 1e4), "the numbers of the example"),
        ((LOSSES, 1e4), "highest loss"),
        ((LOSSES, 1e7), "another base is better: 1,000,000"),
    ],
)
def test_a_base_that_does_not_follow_from_the_losses(answer, words):
    report = check.best_base(answer)
    assert report.outcome == "not yet" and words in report.message, report.message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda q, k, v: (fused(q, k, v), check.scores(q, k)), "return the first alone"),
        (lambda q, k, v: fused(q, k, v, Rotary(q.shape[-1])), "`helpers` computes"),
    ],
)
def test_other_mistakes_are_told_by_what_differs(answer, words):
    report = check.rotary_attention(answer)
    assert report.outcome == "not yet" and words in report.message, report.message
