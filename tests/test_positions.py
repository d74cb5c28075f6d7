"""helpers.positions: each scheme against its definition, and the property it is made for."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.positions import (
    LearnedPosition,
    Rotary,
    SinusoidalPosition,
    half_split,
    rotary_angles,
    sinusoidal,
)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


positions = st.integers(0, 400)
bases = st.sampled_from([10.0, 500.0, 10_000.0, 1_000_000.0])
sizes = st.sampled_from([2, 4, 6, 16, 64])


# --- learned ----------------------------------------------------------------------------------


def test_learned_positions_add_one_row_of_the_table_to_every_sequence():
    learned, x = LearnedPosition(8, 6), normal(3, 5, 6)
    for b in range(3):
        for t in range(5):
            assert torch.equal(learned(x)[b, t], x[b, t] + learned.weight[t])


def test_learned_positions_can_start_later():
    learned, x = LearnedPosition(8, 6), normal(2, 8, 6)
    assert torch.equal(learned(x[:, 3:], start=3), learned(x)[:, 3:])


@pytest.mark.parametrize(("T", "start"), [(9, 0), (1, 8), (4, 5), (100, 0)])
def test_a_position_past_the_table_is_explained(T, start):
    with pytest.raises(ValueError, match=rf"{T + start} tokens.*0 to 7 only.*last 8 tokens"):
        LearnedPosition(8, 6)(torch.zeros(1, T, 6), start)


def test_the_last_position_of_the_table_can_be_used_and_is_trained():
    learned = LearnedPosition(8, 6)
    learned(torch.zeros(2, 8, 6)).sum().backward()
    assert torch.equal(learned.weight.grad, torch.full((8, 6), 2.0))


# --- sinusoidal -------------------------------------------------------------------------------


@pytest.mark.parametrize(("T", "n_embd", "base"), [(1, 2, 1e4), (7, 6, 1e4), (50, 16, 100.0)])
def test_sinusoidal_is_its_formula(T, n_embd, base):
    table = sinusoidal(T, n_embd, base)
    assert table.shape == (T, n_embd) and table.dtype == torch.float32
    for p in range(T):
        for i in range(n_embd // 2):
            angle = p * base ** (-2 * i / n_embd)
            assert table[p, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-5)
            assert table[p, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(p=positions, distance=positions, n_embd=sizes, base=bases)
def test_the_dot_product_of_two_sinusoidal_vectors_tells_their_distance_only(
    p, distance, n_embd, base
):
    table = sinusoidal(p + distance + 1, n_embd, base)
    dot = table[p] @ table[p + distance]
    assert dot.item() == pytest.approx((table[0] @ table[distance]).item(), abs=5e-3)
    assert (table[p] @ table[p]).item() == pytest.approx(n_embd / 2, rel=1e-4)


def test_sinusoidal_positions_are_added_and_can_start_later():
    module, x = SinusoidalPosition(6), normal(2, 9, 6)
    assert torch.equal(module(x), x + sinusoidal(9, 6))
    assert torch.equal(module(x[:, 4:], start=4), module(x)[:, 4:])
    assert not list(module.parameters())
    assert module(x.double()).dtype == torch.float64


def test_sinusoidal_positions_do_not_stretch():
    with pytest.raises(ValueError, match="size 1"):
        SinusoidalPosition(6)(torch.zeros(2, 3, 1))


# --- rotary -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("T", "hs", "base"), [(5, 2, 1e4), (6, 8, 1e4), (9, 16, 100.0)])
def test_rotary_turns_each_pair_by_its_angle(T, hs, base):
    x = normal(2, 3, T, hs, seed=T)
    turned = Rotary(hs, base)(x)
    for p in range(T):
        for i in range(hs // 2):
            angle = p * base ** (-2 * i / hs)
            pair = torch.complex(x[..., p, i], x[..., p, i + hs // 2])
            want = pair * complex(math.cos(angle), math.sin(angle))
            got = torch.complex(turned[..., p, i], turned[..., p, i + hs // 2])
            torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(p=positions, r=positions, shift=positions, hs=sizes, base=bases, seed=st.integers(0, 9))
def test_a_rotary_score_depends_on_the_distance_only(p, r, shift, hs, base, seed):
    q, k, rotary = normal(1, hs, seed=seed), normal(1, hs, seed=seed + 10), Rotary(hs, base)

    def score(p, r):
        return (rotary(q, p) @ rotary(k, r).T).item()

    assert score(p + shift, r + shift) == pytest.approx(score(p, r), abs=2e-3 * hs**0.5)


@settings(max_examples=30, deadline=None)
@given(p=positions, hs=sizes, base=bases)
def test_rotary_keeps_lengths(p, hs, base):
    x = normal(4, hs, seed=p)
    turned = Rotary(hs, base)(x, p)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1), rtol=1e-4, atol=1e-5)


def test_rotary_leaves_position_0_alone():
    x = normal(2, 3, 1, 8)
    assert torch.equal(Rotary(8)(x), x)


@pytest.mark.parametrize("start", [0, 1, 5, 6])
def test_rotary_can_start_later_as_a_cache_needs_it(start):
    """Rotating token by token, or a tail of the sequence, gives what rotating it whole gives."""
    x, rotary = normal(2, 3, 7, 8), Rotary(8)
    assert torch.equal(Rotary(8)(x[..., start:, :], start), rotary(x)[..., start:, :])
    one_by_one = [Rotary(8)(x[..., t : t + 1, :], t) for t in range(7)]
    assert torch.equal(torch.cat(one_by_one, dim=-2), rotary(x))


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


def test_gradients_flow_through_a_rotation():
    x = normal(1, 1, 5, 6).double().requires_grad_()
    rotary = Rotary(6)
    assert torch.autograd.gradcheck(lambda x: rotary(x, 2), (x,))


# --- the two layouts --------------------------------------------------------------------------


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


def test_half_split_only_moves_rows():
    rows = torch.arange(12)
    assert half_split(rows, 2).tolist() == [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]
    weight = normal(12, 5)
    assert torch.equal(half_split(weight, 2), weight[half_split(rows, 2)])


# --- what cannot be done ----------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize(
    "make", [Rotary, lambda n: sinusoidal(4, n), lambda n: rotary_angles(4, n)]
)
def test_an_odd_size_cannot_be_paired(make, size):
    with pytest.raises(ValueError, match="in pairs"):
        make(size)


@pytest.mark.parametrize("module", [LearnedPosition(8, 6), SinusoidalPosition(6), Rotary(6)])
def test_positions_start_at_0(module):
    with pytest.raises(ValueError, match="0 or more, not -1"):
        module(torch.zeros(1, 3, 6), -1)


def test_rotary_can_be_trained_after_it_was_used_without_gradients():
    rotary, x = Rotary(4), torch.randn(1, 1, 3, 4)
    with torch.inference_mode():
        without = rotary(x).clone()
    x.requires_grad_()
    rotary(x).sum().backward()
    assert x.grad is not None and torch.equal(rotary(x).detach(), without)
