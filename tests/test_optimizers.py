"""Optimisers against references, schedules at their corners, the recipe."""

import math

import pytest
import torch
from conftest import generator, normal
from torch import nn

from helpers.gpt import GPT, GPTConfig, fast_gpt
from helpers.optimizers import Muon, fast_optimizers, newton_schulz
from helpers.training import cosine_schedule, train, wsd_schedule


def model():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return GPT(GPTConfig(11, 8, n_layer=2, n_head=2, n_embd=8))


@pytest.fixture
def precise(monkeypatch):
    """Without the rounding to bfloat16, what should agree agrees to many digits."""
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)


@pytest.mark.parametrize("shape", [(6, 5), (3, 12), (2, 4, 3)])
def test_the_polynomial_is_applied_to_the_singular_values(precise, shape):
    x = normal(*shape)
    u, values, vh = torch.linalg.svd(x, full_matrices=False)
    values = values / values.square().sum(-1, keepdim=True).sqrt()
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    torch.testing.assert_close(newton_schulz(x), u * values[..., None, :] @ vh, rtol=0, atol=1e-4)


@pytest.mark.parametrize("able", [True, False])
def test_half_the_digits_are_taken_only_where_the_hardware_has_them(able, monkeypatch):
    monkeypatch.setattr("helpers.optimizers.has_bf16", lambda device: able)
    x = normal(6, 5)
    u, _, vh = torch.linalg.svd(x, full_matrices=False)
    off = (turned := u.T @ newton_schulz(x) @ vh.T) - turned.diag().diag()
    assert newton_schulz(x).dtype == torch.float32
    assert (off.abs().max() < 1e-5) is not able  # rounding mixes the directions a little


def test_a_stack_is_its_matrices_one_by_one():
    x = normal(2, 3, 6, 4)
    whole = newton_schulz(x)
    assert whole.shape == x.shape and whole.dtype == x.dtype
    for i in range(2):
        for j in range(3):
            assert (whole[i, j] - newton_schulz(x[i, j])).abs().max() < 0.03
    assert newton_schulz(x.double()).dtype == torch.float64


SHAPES = [(6, 6), (4, 6), (6, 6), (9, 4), (4, 6)]


def parameters():
    return [nn.Parameter(normal(*shape, seed=i)) for i, shape in enumerate(SHAPES)]


def steps(optimizer, params, n=4):
    for step in range(n):
        for i, p in enumerate(params):
            p.grad = normal(*p.shape, seed=100 * step + i)
        optimizer.step()
    return params


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_muon_is_pytorchs(precise, decay):
    ours = steps(Muon(params := parameters(), 0.1, 0.9, decay), params)
    theirs = torch.optim.Muon(params := parameters(), lr=0.1, momentum=0.9, weight_decay=decay)
    for a, b in zip(ours, steps(theirs, params), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-4)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4)])
def test_muon_refuses_what_is_no_matrix(shape):
    with pytest.raises(ValueError, match=r"steps matrices; shape .* belongs to AdamW") as error:
        Muon([nn.Parameter(normal(3, 3)), nn.Parameter(torch.zeros(shape))])
    assert str(shape) in str(error.value)


def test_cosine_at_its_corners():
    assert cosine_schedule(110, 110, warmup=10, final=0.2) == 0.2
    assert cosine_schedule(500, 110, warmup=10, final=0.2) == 0.2  # and no rise again
    assert cosine_schedule(3, 4, warmup=4) == 1.0
    assert cosine_schedule(3, 4, warmup=8) == 0.5


def test_wsd_at_its_corners():
    assert wsd_schedule(100, 100, warmup=10, decay_frac=0.5) == 0
    assert wsd_schedule(0, 10, warmup=0) == 1.0
    assert wsd_schedule(9, 10, warmup=0, decay_frac=0) == 1.0
    assert wsd_schedule(5, 10, warmup=1, decay_frac=1) == 0.5


def fast():
    torch.manual_seed(0)
    return fast_gpt(11, 8, n_layer=2, n_head=2, n_embd=16)


def test_the_recipe_learns_a_pattern():
    gpt, data = fast(), torch.arange(300) % 7
    losses = train(gpt, data, steps=60, block_size=8, batch_size=8, optimizer=fast_optimizers(gpt),
                   schedule=wsd_schedule, generator=generator(0))  # fmt: skip
    assert losses[0] == pytest.approx(math.log(11))
    assert losses[-1] < 0.2
