"""helpers.attention: the mask, the formula, one head and many, against PyTorch's own."""

import pytest
import torch
from conftest import near, normal, visible
from torch import nn

from helpers.attention import MultiHeadAttention, attention, causal_mask
from helpers.kernels import Dropout
from helpers.positions import Rotary


def qkv(*leading, T=5, S=7, hs=4, dv=3, seed=0):
    return (
        normal(*leading, T, hs, seed=seed),
        normal(*leading, S, hs, seed=seed + 1),
        normal(*leading, S, dv, seed=seed + 2),
    )


@pytest.mark.parametrize(
    "mask",
    [
        torch.ones(5, 7),
        torch.ones(3, 5, 7) > 0,  # beside (B, H, T, S) it would broadcast silently when B == H
        torch.arange(5)[:, None].expand(5, 7) != 2,
    ],
)
def test_a_mask_is_bool_fits_and_leaves_each_query_a_key(mask):
    with pytest.raises(ValueError, match="a mask is bool, has 2 or 4 dimensions and leaves"):
        attention(*qkv(3, 3), mask)


def theirs(ours):
    """torch.nn.MultiheadAttention with the weights of `ours`."""
    C, bias = ours.query.in_features, ours.query.bias is not None
    other = nn.MultiheadAttention(C, ours.n_head, bias=bias, batch_first=True)
    inputs = (ours.query, ours.key, ours.value)
    with torch.no_grad():
        other.in_proj_weight.copy_(torch.cat([layer.weight for layer in inputs]))
        other.out_proj.weight.copy_(ours.output.weight)
        if bias:
            other.in_proj_bias.copy_(torch.cat([layer.bias for layer in inputs]))
            other.out_proj.bias.copy_(ours.output.bias)
    return other


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("C", "H"), [(8, 1), (12, 3)])
def test_self_attention_is_pytorchs_with_the_same_weights(C, H, bias):
    ours = visible(lambda: MultiHeadAttention(C, H, bias=bias))
    x = normal(2, 5, C)
    out, maps = theirs(ours)(x, x, x, attn_mask=~causal_mask(5), average_attn_weights=False)
    assert near(ours(x), out)
    assert near(ours.weights(x), maps)


@pytest.mark.parametrize("causal", [True, False])
def test_cross_attention_is_pytorchs_and_never_causal(causal):
    ours = visible(lambda: MultiHeadAttention(8, 2, causal=causal))
    x, source = normal(2, 5, 8), normal(2, 7, 8, seed=1)
    out, maps = theirs(ours)(x, source, source, average_attn_weights=False)
    assert near(ours(x, source), out) and out.shape == (2, 5, 8)  # the length of the queries
    assert near(ours.weights(x, source), maps) and maps.shape == (2, 2, 5, 7)


def test_dropout_draws_anew_and_from_torchs_generator():
    x, layer = normal(4, 6, 10).transpose(1, 2), Dropout(0.5)
    torch.manual_seed(1)
    first, second = layer(x), layer(x)
    torch.manual_seed(1)
    assert torch.equal(layer(x), first) and not torch.equal(first, second)
    assert torch.equal(first[first != 0], 2 * x[first != 0])


def test_dropout_silences_each_place_alike():
    torch.manual_seed(0)  # four numbers come from one draw: none of the four is special
    silenced = Dropout(0.2)(torch.ones(100_000, 4)) == 0
    assert ((silenced.double().mean(0) - 0.2).abs() < 0.006).all()
    together = silenced.double().T.corrcoef() - torch.eye(4)
    assert together.abs().max() < 0.02


def test_dropout_works_in_training_only():
    layer = visible(lambda: MultiHeadAttention(8, 2, dropout=0.5))
    x = normal(2, 5, 8)
    torch.manual_seed(0)
    assert not near(layer(x), layer(x), 1e-3)
    layer.eval()
    assert near(layer(x), layer(x), 0)
    assert near(layer.weights(x), layer.train().weights(x), 0)  # the maps are without dropout
    for kind in (torch.float32, torch.bfloat16):  # two ways through the kernels
        layer, x = layer.to(kind), x.to(kind)
        out, whole = layer.train()(x), layer.eval()(x)
        stays = out != 0  # the output is dropped, and nothing before it
        assert 0.2 < stays.float().mean() < 0.8
        assert near(out[stays].float(), 2 * whole[stays].float(), 0.02)


def test_rotary_positions_turn_queries_and_keys_and_leave_the_values():
    layer = visible(lambda: MultiHeadAttention(8, 2, rotary=Rotary(4)))
    plain = visible(lambda: MultiHeadAttention(8, 2))
    x = normal(2, 5, 8)
    for ours, bare, turned in zip(layer.project(x), plain.project(x), (1, 1, 0), strict=True):
        assert near(ours, layer.rotary(bare) if turned else bare)
