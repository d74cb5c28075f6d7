"""helpers.positions: each scheme against its definition, and the property it is made for."""

import pytest
import torch
from conftest import normal

from helpers.positions import (
    LearnedPosition,
    Rotary,
    half_split,
)


@pytest.mark.parametrize(("T", "start"), [(9, 0), (1, 8), (4, 5), (100, 0)])
def test_a_position_past_the_table_is_explained(T, start):
    with pytest.raises(ValueError, match=rf"{T + start} tokens.*0 to 7 only.*last 8 tokens"):
        LearnedPosition(8, 6)(torch.zeros(1, T, 6), start)


def test_rotary_remembers_angles_but_not_wrongly():
    rotary, long, short = Rotary(8), normal(1, 1, 40, 8), normal(1, 1, 4, 8)
    first = rotary(short)
    rotary(long)
    assert torch.equal(rotary(short), first)
    assert torch.equal(rotary(long), Rotary(8)(long))
    assert not rotary.state_dict(), "angles are worked out, never stored with the weights"


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_rotary_keeps_the_type_and_takes_its_angles_in_full_precision(dtype):
    x, rotary = normal(1, 1, 600, 8), Rotary(8)
    turned = rotary(x.to(dtype))
    assert turned.dtype == dtype
    # In bfloat16 the position 599 itself would be rounded to 600, a whole radian away.
    torch.testing.assert_close(turned.float(), rotary(x), atol=0.06, rtol=0.0)


def interleaved_rotary(x, base=10_000.0):
    """An independent rotation in the other layout: pairs (0, 1), (2, 3), … as complex numbers."""
    T, hs = x.shape[-2:]
    theta = torch.tensor([base ** (-2 * i / hs) for i in range(hs // 2)])
    turn = torch.polar(torch.ones(T, hs // 2), torch.arange(T)[:, None] * theta)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turn).flatten(-2)


@pytest.mark.parametrize(("n_head", "hs"), [(1, 2), (1, 8), (3, 4), (4, 6)])
def test_half_split_lets_our_rotary_use_interleaved_weights(n_head, hs):
    C, T = 10, 7
    x, wq, wk = normal(2, T, C), normal(n_head * hs, C, seed=1), normal(n_head * hs, C, seed=2)
    bias = normal(n_head * hs, seed=3)

    def scores(wq, wk, bias, turn):
        q, k = ((x @ w.T + bias).unflatten(-1, (n_head, hs)).transpose(1, 2) for w in (wq, wk))
        return turn(q) @ turn(k).transpose(-2, -1)

    want = scores(wq, wk, bias, interleaved_rotary)
    converted = [half_split(w, n_head) for w in (wq, wk, bias)]
    torch.testing.assert_close(scores(*converted, Rotary(hs)), want, atol=1e-3, rtol=1e-4)
    if hs > 2:  # with one pair the layouts are the same
        assert not torch.allclose(scores(wq, wk, bias, Rotary(hs)), want, atol=0.1)


def test_rotary_can_be_trained_after_it_was_used_without_gradients():
    rotary, x = Rotary(4), torch.randn(1, 1, 3, 4)
    with torch.inference_mode():
        without = rotary(x).clone()
    x.requires_grad_()
    rotary(x).sum().backward()
    assert x.grad is not None and torch.equal(rotary(x).detach(), without)
