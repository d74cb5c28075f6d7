"""helpers.gpt: the parts, the block and the whole model, in every combination."""

import copy
import itertools
import json
import math
from dataclasses import asdict

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from helpers.attention import MultiHeadAttention
from helpers.gpt import (
    GPT,
    Block,
    FeedForward,
    GPTConfig,
    ShortConvolution,
    SquaredReLU,
    SwiGLU,
)
from helpers.hooks import attention_maps

SIZES = {"vocab_size": 11, "block_size": 7, "n_layer": 2, "n_head": 4, "n_embd": 16}
PARTS = {
    "position": ("LearnedPosition", "SinusoidalPosition", "Rotary", None),
    "norm": ("LayerNorm", "RMSNorm"),
    "mlp": ("FeedForward", "SquaredReLU", "SwiGLU"),
    "n_kv_head": (None, 1, 2),
    "qk_norm": (False, True),
    "convolution": (None, 1, 3),
    "bias": (True, False),
    "tied": (True, False),
}
# 7 has no factor in common with how many there are of each: all pairs occur.
SOME = [dict(zip(PARTS, values, strict=True)) for values in itertools.product(*PARTS.values())][::7]
combinations = st.fixed_dictionaries({name: st.sampled_from(PARTS[name]) for name in PARTS})
MANY = settings(max_examples=40)


def seeded(seed=0, **changes):
    """A small model whose weights are large enough to make every part matter."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GPT(GPTConfig(**{**SIZES, **changes}))
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.3 * torch.randn(p.shape))
    return model


def ids(B=2, T=7, V=11, seed=0):
    return torch.randint(V, (B, T), generator=torch.Generator().manual_seed(seed))


def near(a, b, tolerance=1e-5):
    return a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=tolerance)


# --- the feed-forward parts -----------------------------------------------------------------------


def gelu(x):
    return F.gelu(x, approximate="tanh")


ACTIVATIONS = {FeedForward: gelu, SquaredReLU: lambda x: F.relu(x) ** 2}


@pytest.mark.parametrize("mlp", ACTIVATIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_a_feed_forward_part_is_an_activation_between_two_linear_maps(mlp, bias):
    part, x = mlp(6, bias=bias), torch.randn(2, 3, 6)
    assert part.up.weight.shape == (24, 6) and part.down.weight.shape == (6, 24)
    assert (part.up.bias is not None) is bias
    assert near(part(x), part.down(ACTIVATIONS[mlp](part.up(x))))
    assert mlp(6, 10).up.weight.shape == (10, 6)


def test_swiglu_is_gated():
    part, x = SwiGLU(6), torch.randn(2, 3, 6)
    gate = part.gate(x)
    assert near(part(x), part.down(gate * gate.sigmoid() * part.up(x)))


@pytest.mark.parametrize("C", [24, 384])
def test_swiglu_is_as_large_as_feed_forward(C):
    def count(part):
        return sum(p.numel() for p in part.parameters())

    assert count(SwiGLU(C, bias=False)) == count(FeedForward(C, bias=False)) == 8 * C * C


# --- the block ------------------------------------------------------------------------------------


def test_a_block_communicates_then_computes_and_adds_both():
    block = Block(MultiHeadAttention(8, 2), FeedForward(8), nn.RMSNorm)
    x = torch.randn(2, 5, 8)
    y = x + block.attention(block.attention_norm(x))
    assert near(block(x), y + block.mlp(block.mlp_norm(y)))
    assert isinstance(block.mlp_norm, nn.RMSNorm)


# --- the short convolution ------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 4])
def test_a_short_convolution_adds_a_weighted_sum_of_the_last_tokens(width):
    part, x = ShortConvolution(6, width), torch.randn(2, 5, 6)
    assert torch.equal(part(x), x)  # at first
    nn.init.normal_(part.weight)
    want = x.clone()
    for t in range(5):
        for back in range(min(width, t + 1)):  # the last weight is this token's own
            want[:, t] += x[:, t - back] * part.weight[:, 0, 0, width - 1 - back]
    assert near(part(x), want)


def test_only_the_mlp_reads_through_the_convolution():
    block = Block(MultiHeadAttention(8, 2), FeedForward(8), convolution=ShortConvolution(8, 3))
    nn.init.normal_(block.convolution.weight)
    x = torch.randn(2, 5, 8)
    y = x + block.attention(block.attention_norm(x))
    assert near(block(x), y + block.mlp(block.convolution(block.mlp_norm(y))))


# --- the whole model ------------------------------------------------------------------------------


def parameters_by_formula(
    *, position, norm, mlp, n_kv_head, qk_norm, convolution, bias, tied,
    vocab_size, block_size, n_layer, n_head, n_embd,
):  # fmt: skip
    C, wide = n_embd, n_embd * (n_kv_head or n_head) // n_head
    gain = 2 * C if norm == "LayerNorm" else C
    attention = 2 * C * C + 2 * C * wide + bias * (2 * C + 2 * wide)
    hidden = 8 * math.ceil(C / 3) if mlp == "SwiGLU" else 4 * C
    ups = 2 if mlp == "SwiGLU" else 1
    feed_forward = (ups + 1) * C * hidden + bias * (ups * hidden + C)
    tables = vocab_size * C * (1 if tied else 2) + (position == "LearnedPosition") * block_size * C
    block = 2 * gain + attention + feed_forward + (convolution or 0) * C
    return tables + n_layer * block + gain


def test_the_number_of_parameters_is_the_formulas_and_gpt2s():
    with torch.device("meta"):  # shapes only
        assert GPT(GPTConfig(50257, 1024, 12, 12, 768)).n_parameters() == 124_439_808
        for parts in SOME:
            model = GPT(GPTConfig(**SIZES, **parts))
            assert model.n_parameters() == parameters_by_formula(**parts, **SIZES), parts


@MANY
@given(parts=combinations, t=st.integers(0, 6), seed=st.integers(0, 99))
def test_no_logit_hears_the_future(parts, t, seed):
    model, x = seeded(seed, **parts), ids(seed=seed)
    changed = x.clone()
    changed[:, t] = (changed[:, t] + 1) % 11
    before, after = model(x), model(changed)
    assert before.shape == (2, 7, 11)
    assert torch.equal(before[:, :t], after[:, :t])
    assert ((before[:, t:] - after[:, t:]).abs().amax(-1) > 1e-7).all()


@MANY
@given(parts=combinations, seed=st.integers(0, 99))
def test_texts_of_a_batch_never_mix_and_shorter_ones_agree(parts, seed):
    model, x = seeded(seed, **parts), ids(3, seed=seed)
    whole = model(x)
    for b in range(3):
        assert near(model(x[b : b + 1]), whole[b : b + 1], 1e-4)
    for T in range(1, 7):
        assert near(model(x[:, :T]), whole[:, :T], 1e-4)


@MANY
@given(parts=combinations, seed=st.integers(0, 99))
def test_a_config_makes_the_same_model_again(parts, seed):
    model = seeded(seed, **parts)
    twin = GPT(GPTConfig(**json.loads(json.dumps(asdict(model.config)))))
    twin.load_state_dict(model.state_dict())
    assert twin.config == model.config
    assert torch.equal(model(ids()), twin(ids()))


@MANY
@given(parts=combinations)
def test_every_parameter_learns(parts):
    model = seeded(**parts)
    model(ids()).square().sum().backward()
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        # A bias of all keys moves all scores of a query alike, unless what follows bends them.
        if not name.endswith("key.bias"):
            assert p.grad.abs().max() > 0, name


def test_the_initial_loss_is_nearly_that_of_a_guess():
    for parts in SOME[::6]:
        torch.manual_seed(0)
        large = {**SIZES, "vocab_size": 50, "n_embd": 32}
        model, x = GPT(GPTConfig(**large, **parts)), ids(8, V=50)
        loss = F.cross_entropy(model(x).flatten(0, 1), ids(8, V=50, seed=1).flatten())
        assert loss.item() == pytest.approx(math.log(50), abs=0.1), parts


def test_what_adds_to_the_stream_starts_smaller():
    torch.manual_seed(0)
    model = GPT(GPTConfig(50, 8, n_layer=8, n_head=2, n_embd=64))
    for name, p in model.named_parameters():
        if name.endswith("bias"):
            assert (p == 0).all(), name
        elif p.dim() == 2:
            want = 0.02 / 4 if name.endswith(("output.weight", "down.weight")) else 0.02
            assert p.std().item() == pytest.approx(want, rel=0.15), name


def test_without_positions_the_order_before_a_token_does_not_matter_in_one_block():
    one = seeded(position=None, n_layer=1)
    x = torch.tensor([[1, 2, 3, 4], [3, 1, 2, 4]])
    assert near(one(x)[0, -1], one(x)[1, -1])
    for position in ("LearnedPosition", "SinusoidalPosition", "Rotary"):
        logits = seeded(position=position, n_layer=1)(x)
        assert not near(logits[0, -1], logits[1, -1], 1e-3), position


def test_dropout_works_in_training_only():
    model, x = seeded(dropout=0.3), ids()
    assert not near(model(x), model(x), 1e-3)
    model.eval()
    assert torch.equal(model(x), model(x))


@MANY
@given(parts=combinations)
def test_attention_maps_can_be_seen(parts):
    model, x = seeded(**parts), ids(1)
    maps = attention_maps(model, x)
    assert maps.shape == (2, 4, 7, 7)
    assert near(maps.sum(-1), torch.ones(2, 4, 7)) and torch.equal(maps, maps.tril())
    first = model.blocks[0]
    stream = model.token(x)
    if model.position is not None:
        stream = model.position(stream)
    assert near(first.attention.weights(first.attention_norm(stream))[0], maps[0])
    assert model.training


# --- the cache (its use in writing: test_sampling.py) ---------------------------------------------


@MANY
@given(parts=combinations, cuts=st.sets(st.integers(1, 6)), seed=st.integers(0, 99))
def test_reading_in_pieces_is_reading_at_once(parts, cuts, seed):
    """However a text is cut, the logits are those of the whole text."""
    model, x = seeded(seed, **parts), ids(seed=seed)
    cache, pieces = model.empty_cache(), []
    for start, end in itertools.pairwise([0, *sorted(cuts), 7]):
        assert all(len(layer) == start for layer in cache)
        pieces.append(model(x[:, start:end], cache))
    assert near(torch.cat(pieces, dim=1), model(x), 1e-4)


@MANY
@given(
    parts=combinations,
    padding=st.lists(st.integers(0, 6), min_size=2, max_size=2),
    cuts=st.sets(st.integers(1, 6)),
    seed=st.integers(0, 99),
)
def test_padding_at_the_left_changes_nothing(parts, padding, cuts, seed):
    """However the batch is cut, the logits of each text are those of the text alone."""
    model, x = seeded(seed, **parts), ids(seed=seed)
    lengths, cache = torch.tensor(padding), model.empty_cache()
    pieces = [
        model(x[:, start:end], cache, lengths)
        for start, end in itertools.pairwise([0, *sorted(cuts), 7])
    ]
    for text, logits, n in zip(x, torch.cat(pieces, dim=1), padding, strict=True):
        assert near(logits[n:], model(text[None, n:])[0], 1e-4)


def test_padding_is_for_causal_attention_and_a_mask_for_all_other():
    x, padding = torch.zeros(2, 7, 16), torch.tensor([0, 1])
    for causal, more in (
        (False, {"padding": padding}),
        (True, {"mask": x[:, None, :1, :7] > 1}),
    ):
        with pytest.raises(ValueError, match="padding is for causal self-attention, a mask for"):
            MultiHeadAttention(16, 4, causal=causal)(x, **more)


def test_a_cache_holds_the_shared_heads_only():
    model = seeded(n_kv_head=2)
    cache = model.empty_cache()
    model(ids(), cache)
    assert cache[0].keys.shape == cache[1].values.shape == (2, 2, 7, 4)


@torch.no_grad()
def test_a_cropped_cache_continues_from_there():
    model, x, other = seeded(), ids(), ids(seed=1)
    cache = model.empty_cache()
    model(x, cache)
    for length in (-1, 8):
        with pytest.raises(ValueError, match=f"of 7 tokens, the first {length}"):
            cache[0].crop(length)
    for layer in cache:
        layer.crop(3)
    after = model(other[:, :4], cache)
    assert near(after, model(torch.cat((x[:, :3], other[:, :4]), dim=1))[:, 3:], 1e-4)
    assert len(cache[0]) == 7
    model = seeded(convolution=4)
    cache = model.empty_cache()
    model(x, cache)
    with pytest.raises(ValueError, match="of 7 tokens, the first 3"):
        cache[0].crop(3)


def test_a_cache_with_less_space_takes_no_more():
    model = seeded()
    cache = model.empty_cache(max_tokens=4)
    with pytest.raises(ValueError, match="space for 4 tokens, not for 5"):
        model(ids(T=5), cache)
    assert model(ids(T=4), cache).shape == (2, 4, 11)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_head": 3}, "n_embd 16 cannot be split evenly over 3 heads"),
        ({"n_kv_head": 3}, "n_head 4 cannot be split evenly over 3 heads"),
        ({"n_kv_head": 8}, "n_head 4 cannot be split evenly over 8 heads"),
        ({"norm": "BatchNorm"}, "norm should be one of .*'RMSNorm'.*, not 'BatchNorm'"),
        ({"mlp": None}, "mlp should be one of .*'SwiGLU'.*, not None"),
        ({"position": "learned"}, "position should be one of .*'Rotary', None.*, not 'learned'"),
    ],
)
def test_settings_that_do_not_fit_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        GPT(GPTConfig(**{**SIZES, **changes}))


@pytest.mark.parametrize("position", ["LearnedPosition", "Rotary"])
def test_more_tokens_than_the_window_are_refused(position):
    model = seeded(position=position)
    with pytest.raises(ValueError, match=r"8 tokens, but the model reads 7 at once: crop"):
        model(ids(T=8))
    cache = model.empty_cache()
    model(ids(T=5), cache)
    with pytest.raises(ValueError, match="8 tokens, but the model reads 7 at once"):
        model(ids(T=3), cache)
    assert [len(layer) for layer in cache] == [5, 5]  # nothing was read
    assert model(ids(T=2), cache).shape == (2, 2, 11)


@torch.no_grad()
def test_a_cache_of_another_batch_is_refused():
    model = seeded()
    cache = model.empty_cache()
    model(ids(2, 3), cache)
    assert near(model(ids(2, 3), copy.deepcopy(cache)), model(ids(2, 3), cache))
    with pytest.raises(ValueError, match="the cache is of 2 texts, but these are 1"):
        model(ids(1, 1), cache)


def test_settings_reach_the_parts():
    model = seeded(norm="RMSNorm", norm_eps=0.25, hidden=20, head_size=6, position="Rotary",
                   rotary_base=500.0, n_kv_head=2)  # fmt: skip
    block = model.blocks[1]
    assert {m.eps for m in model.modules() if isinstance(m, nn.RMSNorm)} == {0.25}
    assert block.mlp.up.weight.shape == (20, 16)
    assert block.attention.query.weight.shape == (24, 16)
    assert block.attention.value.weight.shape == (12, 16)
    assert block.attention.output.weight.shape == (16, 24)
    assert (block.attention.rotary.head_size, block.attention.rotary.base) == (6, 500.0)
