"""Surprises by any stride, choices, and means over texts drawn anew."""

import math

import pytest
import torch
from conftest import generator

from helpers.evaluation import bootstrap_means, token_nll
from helpers.gpt import GPT, GPTConfig


@pytest.fixture
def model():
    torch.manual_seed(0)
    return GPT(GPTConfig(12, block_size=8, n_layer=2, n_head=2, n_embd=16, dropout=0.5)).eval()


@pytest.mark.parametrize("stride", [None, 1, 3, 5, 8])
@pytest.mark.parametrize("n", [1, 2, 8, 9, 10, 17, 30])
def test_every_token_but_the_first_counts_once_in_the_first_window_that_predicts_it(
    model, stride, n
):
    ids = torch.randint(12, (n,), generator=generator(n))
    found, step = token_nll(model, ids, stride), stride or 8
    assert found.shape == (n - 1,)
    for i in range(1, n):
        start = next(s for s in range(0, n, step) if i <= s + 8)
        logits = model(ids[None, start:i])[0, -1]
        assert math.isclose(
            found[i - 1].item(), -logits.log_softmax(-1)[ids[i]].item(), rel_tol=1e-4
        )


@pytest.mark.parametrize("stride", [0, 9, -1])
def test_a_stride_outside_the_window_is_refused(model, stride):
    with pytest.raises(ValueError, match="between 1 and block_size 8"):
        token_nll(model, torch.arange(5), stride)


def test_a_model_that_was_trained_is_judged_without_dropout(model):
    ids = torch.arange(12)
    expected = token_nll(model, ids)
    assert torch.equal(token_nll(model.train(), ids), expected) and model.training


def test_resampled_means_have_the_spread_of_a_mean():
    values = torch.randn(50, generator=generator(0))
    means = bootstrap_means(values, 4000, generator(1))
    assert means.shape == (4000,) and abs(means.mean() - values.mean()) < 0.01
    assert math.isclose(means.std(), values.std(correction=0) / 50**0.5, rel_tol=0.05)
    assert bootstrap_means(torch.tensor([True]), 2).tolist() == [1.0, 1.0]
