"""What a model's attention did is recorded without changing the model."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers.hooks import AttentionRecorder, attention_maps


class SelfAttention(nn.Module):
    """A stand-in for the course's attention: fused, batched, causal, without returning weights."""

    def __init__(self, C: int = 12, n_head: int = 3, **options):
        super().__init__()
        self.n_head, self.options = n_head, options
        self.qkv, self.dropout = nn.Linear(C, 3 * C), nn.Dropout(0.5)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_head, C // self.n_head).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, **({"is_causal": True} | self.options))
        return self.dropout(y.transpose(1, 2).reshape(B, T, C))


class Model(nn.Module):
    def __init__(self, layers: int = 2, **options):
        super().__init__()
        self.embedding = nn.Embedding(20, 12)
        self.layers = nn.ModuleList(SelfAttention(**options) for _ in range(layers))

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in reversed(self.layers):  # executed in another order than registered
            x = x + layer(x)
        return x


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Model().eval()


IDS = torch.tensor([3, 1, 4, 1, 5])


def by_hand(attention, x):
    T, hs = x.shape[1], x.shape[2] // attention.n_head
    q, k, _ = attention.qkv(x).view(1, T, 3, attention.n_head, hs).permute(2, 0, 3, 1, 4)
    scores = q @ k.mT / math.sqrt(hs)
    masked = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf)
    return masked.softmax(-1)


def test_the_maps_are_those_by_hand_in_order_of_execution(model):
    before = model(IDS[None])
    with torch.no_grad(), AttentionRecorder() as seen:
        assert torch.equal(model(IDS[None]), before)
    assert seen.maps.shape == (2, 3, 5, 5)
    x = model.embedding(IDS[None])
    for level, attention in enumerate(reversed(model.layers)):
        torch.testing.assert_close(seen.maps[level], by_hand(attention, x)[0])
        x = x + attention(x)


def test_attention_maps_leaves_the_model_as_it_was(model):
    model.train()
    model.layers[0].eval()
    maps = attention_maps(model, IDS)
    assert model.training and model.layers[1].training and not model.layers[0].training
    assert not maps.requires_grad and torch.equal(maps, attention_maps(model, IDS[None]))
    assert torch.equal(maps, attention_maps(model, IDS.tolist()))
    with pytest.raises(IndexError):
        attention_maps(model, torch.tensor([99]))
    assert model.training and not model.layers[0].training


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_masks_of_both_kinds_are_understood(dtype):
    torch.manual_seed(0)
    window = torch.ones(5, 5, dtype=torch.bool).tril().triu(-1)
    mask = window if dtype == torch.bool else torch.zeros(5, 5).masked_fill(~window, -math.inf)
    maps = attention_maps(Model(is_causal=False, attn_mask=mask), IDS)
    assert ((maps > 0) == window).all()
    torch.testing.assert_close(maps.sum(-1), torch.ones(2, 3, 5))


def test_weights_times_values_are_the_fused_output_with_shared_keys_a_scale_and_a_bias():
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 4, 5, 8), torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)
    bias = torch.randn(5, 5)
    with AttentionRecorder() as seen:
        y = F.scaled_dot_product_attention(q, k, v, bias, scale=0.3, enable_gqa=True)
    torch.testing.assert_close(seen.maps[0] @ v[0].repeat_interleave(2, 0), y[0])
