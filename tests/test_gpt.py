"""helpers.gpt: the parts, the block and the whole model, in every combination."""

import copy
import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from conftest import generator, near, visible
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
combinations = st.fixed_dictionaries({name: st.sampled_from(PARTS[name]) for name in PARTS})
MANY = settings(max_examples=40)


def seeded(seed=0, **changes):
    return visible(lambda: GPT(GPTConfig(**{**SIZES, **changes})), seed, 0.3)


def ids(B=2, T=7, V=11, seed=0):
    return torch.randint(V, (B, T), generator=generator(seed))


# --- the short convolution ------------------------------------------------------------------------


def test_only_the_mlp_reads_through_the_convolution():
    block = Block(MultiHeadAttention(8, 2), FeedForward(8), convolution=ShortConvolution(8, 3))
    nn.init.normal_(block.convolution.weight)
    x = torch.randn(2, 5, 8)
    y = x + block.attention(block.attention_norm(x))
    assert near(block(x), y + block.mlp(block.convolution(block.mlp_norm(y))))


# --- the whole model ------------------------------------------------------------------------------


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
@given(parts=combinations)
def test_every_parameter_learns(parts):
    model = seeded(**parts)
    model(ids()).square().sum().backward()
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        # A bias of all keys moves all scores of a query alike, unless what follows bends them.
        if not name.endswith("key.bias"):
            assert p.grad.abs().max() > 0, name


@settings(max_examples=10)
@given(parts=combinations)
def test_the_initial_loss_is_nearly_that_of_a_guess(parts):
    torch.manual_seed(0)
    model, x = GPT(GPTConfig(50, 7, 2, 4, 32, **parts)), ids(8, V=50)
    loss = F.cross_entropy(model(x).flatten(0, 1), ids(8, V=50, seed=1).flatten())
    assert loss.item() == pytest.approx(math.log(50), abs=0.1)


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
