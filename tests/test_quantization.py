"""helpers.quantization: blocks of few bits, and layers that compute from them."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import normal
from gguf import GGMLQuantizationType
from gguf.quants import dequantize
from gguf.quants import quantize as gguf_quantize

from helpers.quantization import (
    BLOCK,
    HalfEmbedding,
    HalfLinear,
    QuantizedLinear,
    has_kernel,
    quantize,
)


@pytest.mark.parametrize("bits", range(1, 9))
def test_no_number_is_further_off_than_half_a_step(bits):
    matrix = normal(6, 3 * BLOCK)
    blocks = quantize(matrix, bits)
    assert blocks.codes.dtype == torch.uint8 and blocks.codes.max() == 2**bits - 1
    step = blocks.scale.repeat_interleave(BLOCK, dim=1)
    assert ((blocks.matrix() - matrix).abs() <= 0.501 * step).all()


def test_four_bits_round_as_llama_cpp_does():
    """The library holds scale and minimum in float16, so that a few numbers round the other way."""
    matrix = normal(64, 8 * BLOCK)
    kind = GGMLQuantizationType.Q4_1
    theirs = dequantize(gguf_quantize(matrix.numpy(), kind), kind)
    ours = quantize(matrix, 4).matrix().numpy()
    step = quantize(matrix, 4).scale.max().item()
    assert np.abs(ours - theirs).max() < 1.1 * step
    assert (np.abs(ours - theirs) < 0.01).mean() > 0.99


def test_the_smallest_numbers_stay_on_the_levels():
    matrix = torch.arange(BLOCK)[None] * 1e-45  # the scale is rounded to one digit
    assert quantize(matrix, 4).codes.max() == 15


@pytest.mark.parametrize("shape", [(BLOCK,), (1, BLOCK), (2, 5, BLOCK), (40, BLOCK), (0, BLOCK)])
def test_written_out_the_layer_is_exact(shape):
    blocks, x = quantize(normal(16, BLOCK), 4), normal(*shape, seed=1)
    layer = QuantizedLinear(blocks, fast=False)
    assert torch.equal(layer.blocks().codes, blocks.codes)
    assert torch.equal(layer(x), F.linear(x, blocks.matrix()))
    assert layer.packed.numel() == 16 * BLOCK // 2  # two numbers a byte


@pytest.mark.skipif(not has_kernel(), reason="this machine has no kernel for 4-bit weights")
@pytest.mark.parametrize(("rows", "columns"), [(16, 32), (576, 1536), (192, 576), (1536, 576)])
@pytest.mark.parametrize("T", [1, 3, 70])
def test_the_kernel_computes_the_same_but_for_bfloat16s_rounding(rows, columns, T):
    blocks, x = quantize(normal(rows, columns), 4), normal(2, T, columns, seed=1)
    want, got = F.linear(x, blocks.matrix()), QuantizedLinear(blocks, fast=True)(x)
    assert got.dtype == torch.float32 and got.shape == want.shape
    assert (got - want).abs().max() < 0.02 * want.abs().max()


def test_a_table_in_float16():
    table, ids = normal(50, 32), torch.tensor([[3, 49], [0, 3]])
    embedding = HalfEmbedding(table)
    assert embedding(ids).dtype == torch.float32
    torch.testing.assert_close(embedding(ids), table[ids], atol=2e-3, rtol=0)
    x = normal(2, 7, 32, seed=1)
    logits = HalfLinear(table)(x)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, x @ table.T, atol=0.05, rtol=0)
