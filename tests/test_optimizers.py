"""Optimisers against references, schedules at their corners, the recipe."""

import math
from dataclasses import asdict

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from helpers.gpt import GPT, GPTConfig, fast_gpt
from helpers.optimizers import Muon, adamw, fast_optimizers, newton_schulz
from helpers.training import cosine_schedule, train, wsd_schedule


def numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def model():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return GPT(GPTConfig(11, 8, n_layer=2, n_head=2, n_embd=8))


# --- adamw ----------------------------------------------------------------------------------------


def test_only_matrices_and_tables_decay():
    gpt = model()
    names = {p: name for name, p in gpt.named_parameters()}
    decayed, others = adamw(gpt, 0.01, 0.2).param_groups
    assert decayed["weight_decay"] == 0.2 and others["weight_decay"] == 0
    assert all(p.dim() == 2 for p in decayed["params"])
    assert {names[p] for p in others["params"]} == {
        name for name in names.values() if name.endswith("bias") or "norm" in name
    }
    assert len(decayed["params"]) + len(others["params"]) == len(names)  # each once, tied or not
    assert all(group["lr"] == 0.01 for group in (decayed, others))


def test_adamw_steps_as_the_formula_says():
    layer, rate, decay, (b1, b2) = nn.Linear(3, 2), 0.1, 0.5, (0.8, 0.9)
    optimizer = adamw(layer, rate, decay, (b1, b2))
    want = {p: p.detach().clone() for p in layer.parameters()}
    average = {p: torch.zeros_like(p) for p in want}
    square = {p: torch.zeros_like(p) for p in want}
    for step in range(1, 4):
        for number, p in enumerate(want):
            p.grad = g = numbers(*p.shape, seed=step + 10 * number)
            average[p] = b1 * average[p] + (1 - b1) * g
            square[p] = b2 * square[p] + (1 - b2) * g * g
            mean, spread = average[p] / (1 - b1**step), square[p] / (1 - b2**step)
            kept = 1 - rate * decay if p.dim() == 2 else 1
            want[p] = kept * want[p] - rate * mean / (spread.sqrt() + 1e-8)
        optimizer.step()
    for p, value in want.items():
        torch.testing.assert_close(p.detach(), value)


# --- orthogonal -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(8, 8), (4, 12), (6, 1), (64, 16)])
def test_singular_values_come_near_one(shape):
    for seed in range(5):
        values = torch.linalg.svdvals(newton_schulz(numbers(*shape, seed=seed)))
        assert values.min() > 0.5 and values.max() < 1.25


@pytest.fixture
def precise(monkeypatch):
    """Without the rounding to bfloat16, what should agree agrees to many digits."""
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)


@pytest.mark.parametrize("shape", [(6, 5), (3, 12), (2, 4, 3)])
def test_the_polynomial_is_applied_to_the_singular_values(precise, shape):
    x = numbers(*shape)
    u, values, vh = torch.linalg.svd(x, full_matrices=False)
    values = values / values.square().sum(-1, keepdim=True).sqrt()
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    torch.testing.assert_close(newton_schulz(x), u * values[..., None, :] @ vh, rtol=0, atol=1e-4)


@pytest.mark.parametrize("able", [True, False])
def test_half_the_digits_are_taken_only_where_the_hardware_has_them(able, monkeypatch):
    monkeypatch.setattr("helpers.optimizers.has_bf16", lambda device: able)
    x = numbers(6, 5)
    u, _, vh = torch.linalg.svd(x, full_matrices=False)
    off = (turned := u.T @ newton_schulz(x) @ vh.T) - turned.diag().diag()
    assert newton_schulz(x).dtype == torch.float32
    assert (off.abs().max() < 1e-5) is not able  # rounding mixes the directions a little


def test_nothing_stays_nothing():
    assert (newton_schulz(torch.zeros(2, 3, 4)) == 0).all()


def test_a_stack_is_its_matrices_one_by_one():
    x = numbers(2, 3, 6, 4)
    whole = newton_schulz(x)
    assert whole.shape == x.shape and whole.dtype == x.dtype
    for i in range(2):
        for j in range(3):
            assert (whole[i, j] - newton_schulz(x[i, j])).abs().max() < 0.03
    assert newton_schulz(x.double()).dtype == torch.float64


# --- Muon -----------------------------------------------------------------------------------------

SHAPES = [(6, 6), (4, 6), (6, 6), (9, 4), (4, 6)]


def parameters():
    return [nn.Parameter(numbers(*shape, seed=i)) for i, shape in enumerate(SHAPES)]


def steps(optimizer, params, n=4):
    for step in range(n):
        for i, p in enumerate(params):
            p.grad = numbers(*p.shape, seed=100 * step + i)
        optimizer.step()
    return params


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_muon_is_pytorchs(precise, decay):
    ours = steps(Muon(params := parameters(), 0.1, 0.9, decay), params)
    theirs = torch.optim.Muon(params := parameters(), lr=0.1, momentum=0.9, weight_decay=decay)
    for a, b in zip(ours, steps(theirs, params), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-4)


def test_muon_leaves_what_has_no_gradient():
    a, b = (nn.Parameter(numbers(3, 3, seed=i)) for i in range(2))
    before = b.detach().clone()
    a.grad = numbers(3, 3)
    optimizer = Muon([a, b], weight_decay=0.5)
    optimizer.step()
    assert torch.equal(b, before) and b not in optimizer.state
    optimizer.zero_grad()
    before = a.detach().clone()
    optimizer.step()
    assert torch.equal(a, before)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4)])
def test_muon_refuses_what_is_no_matrix(shape):
    with pytest.raises(ValueError, match=r"steps matrices; shape .* belongs to AdamW") as error:
        Muon([nn.Parameter(numbers(3, 3)), nn.Parameter(torch.zeros(shape))])
    assert str(shape) in str(error.value)


# --- schedules ------------------------------------------------------------------------------------


def test_cosine_at_its_corners():
    shares = [cosine_schedule(step, 110, warmup=10, final=0.2) for step in range(111)]
    assert shares[0] == pytest.approx(0.1) and shares[9] == 1.0
    assert shares[10] == 1.0 and shares[60] == pytest.approx(0.6) and shares[110] == 0.2
    assert shares[:10] == sorted(shares[:10])
    assert shares[10:] == sorted(shares[10:], reverse=True)
    assert cosine_schedule(500, 110, warmup=10, final=0.2) == 0.2  # and no rise again
    assert cosine_schedule(0, 10) == 1.0
    assert cosine_schedule(10, 10) == pytest.approx(0.1)
    assert cosine_schedule(3, 4, warmup=4) == 1.0
    assert cosine_schedule(3, 4, warmup=8) == 0.5
    assert cosine_schedule(5, 10, final=0) == pytest.approx(0.5)


def test_wsd_at_its_corners():
    shares = [wsd_schedule(step, 100, warmup=10, decay_frac=0.5) for step in range(101)]
    assert shares[0] == pytest.approx(0.1) and shares[9] == 1.0
    assert set(shares[9:51]) == {1.0}
    assert shares[75] == pytest.approx(0.5) and shares[99] == pytest.approx(0.02)
    assert shares[100] == 0
    assert wsd_schedule(0, 10, warmup=0) == 1.0
    assert wsd_schedule(9, 10, warmup=0, decay_frac=0) == 1.0
    assert wsd_schedule(0, 1) == pytest.approx(0.1)
    assert wsd_schedule(5, 10, warmup=1, decay_frac=1) == 0.5


@given(
    steps=st.integers(1, 500),
    where=st.floats(0, 1),
    warmup=st.integers(0, 600),
    share=st.floats(0, 1),
)
def test_a_share_is_above_zero_and_at_most_one(steps, where, warmup, share):
    step = min(steps - 1, int(where * steps))
    assert 0 < wsd_schedule(step, steps, warmup, share) <= 1
    assert 0 <= cosine_schedule(step, steps, warmup, share) <= 1
    if step >= warmup:
        assert cosine_schedule(step, steps, warmup, share) >= share - 1e-9


# --- the recipe -----------------------------------------------------------------------------------


def fast():
    torch.manual_seed(0)
    return fast_gpt(11, 8, n_layer=2, n_head=2, n_embd=16)


def test_the_fast_model_starts_as_a_guess_and_its_blocks_as_nothing():
    gpt = fast()
    ids = torch.arange(8)[None]
    assert (gpt(ids) == 0).all()
    x = numbers(1, 8, 16)
    assert all(torch.equal(block(x), x) for block in gpt.blocks)
    assert not [m for m in gpt.modules() if isinstance(m, nn.Linear) and m.bias is not None]
    assert GPTConfig(**asdict(gpt.config)) == gpt.config


def test_the_fast_optimisers_share_the_parameters_without_overlap():
    gpt = fast()
    muon, other = fast_optimizers(gpt, 0.03, 0.005, 0.2, 0.9)
    groups = [p for o in (muon, other) for group in o.param_groups for p in group["params"]]
    assert len(groups) == len({id(p) for p in groups}) == len(list(gpt.parameters()))
    assert isinstance(muon, Muon) and isinstance(other, torch.optim.AdamW)
    inside = {id(p) for p in gpt.blocks.parameters()}
    assert all(id(p) in inside for group in muon.param_groups for p in group["params"])
    assert {group["lr"] for group in muon.param_groups} == {0.03}
    assert {group["weight_decay"] for group in muon.param_groups} == {0.2}
    assert {group["momentum"] for group in muon.param_groups} == {0.9}
    assert [(g["lr"], g["weight_decay"]) for g in other.param_groups] == [(0.005, 0), (0.05, 0)]
    convolutions = [block.convolution.weight for block in gpt.blocks]
    assert [*map(id, other.param_groups[1]["params"])] == [*map(id, convolutions)]
    without = fast_gpt(11, 8, n_layer=2, n_head=2, n_embd=16, convolution=None)
    assert len(fast_optimizers(without)[1].param_groups) == 1


def test_the_recipe_learns_a_pattern():
    gpt, data = fast(), torch.arange(300) % 7
    losses = train(gpt, data, steps=60, block_size=8, batch_size=8, optimizer=fast_optimizers(gpt),
                   schedule=wsd_schedule, generator=torch.Generator().manual_seed(0))  # fmt: skip
    assert losses[0] == pytest.approx(math.log(11))
    assert losses[-1] < 0.2
