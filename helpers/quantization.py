"""Weights in a few bits: blocks of 32 whole numbers with a scale and a minimum, and layers that
compute from them.

A model that writes reads every weight once for each token, so that its speed is that of the memory:
fewer bytes are worth more than exact products.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BLOCK = 32  # numbers that share a scale and a minimum: llama.cpp's choice


@dataclass
class QuantizedTensor:
    """A matrix (N, C): codes · scale + minimum, block by block. Taught in: real_weights."""

    codes: Tensor  # uint8 (N, C), from 0 to 2^bits − 1
    scale: Tensor  # float32 (N, C / BLOCK)
    minimum: Tensor  # the same

    def matrix(self) -> Tensor:
        """The float32 matrix (N, C) that the codes stand for."""
        blocks = self.codes.unflatten(-1, (-1, BLOCK))  # (N, C / BLOCK, BLOCK)
        return (blocks * self.scale[..., None] + self.minimum[..., None]).flatten(-2)


def quantize(matrix: Tensor, bits: int) -> QuantizedTensor:
    """Round a matrix (N, C) to 2^bits levels in each block, evenly spaced from its least number to
    its greatest. With 4 bits the format Q4_1 of llama.cpp. Taught in: real_weights.
    """
    if not 1 <= bits <= 8:  # a byte would wrap
        raise ValueError(f"bits should be 1 to 8, not {bits}")
    blocks = matrix.float().unflatten(-1, (-1, BLOCK))  # (N, C / BLOCK, BLOCK)
    least, greatest = blocks.aminmax(dim=-1)  # (N, C / BLOCK)
    scale = (greatest - least) / (2**bits - 1)
    steps = (blocks - least[..., None]) / torch.where(scale > 0, scale, 1)[..., None]
    levels = steps.round().clamp(max=2**bits - 1)  # a tiny scale is itself rounded
    return QuantizedTensor(levels.to(torch.uint8).flatten(-2), scale, least)


class QuantizedLinear(nn.Module):
    """x (…, C) times a matrix (N, C) of 4-bit blocks, which stays in them: (…, N).

    fast: compute in bfloat16 with PyTorch's kernel for 4-bit weights, which wants a multiple of 16
    for N, or write the matrix out and multiply in float32; if None, what is faster on this machine.
    Explained in: real_weights.
    """

    def __init__(self, blocks: QuantizedTensor, fast: bool | None = None):
        super().__init__()
        codes, scale, minimum = blocks.codes, blocks.scale, blocks.minimum
        if codes.numel() and codes.max() > 15:
            raise ValueError(f"codes of 4 bits are 0 to 15, but one is {codes.max()}")
        self.out_features, self.in_features = codes.shape
        self.fast = has_kernel() and self.out_features % 16 == 0 if fast is None else fast
        if self.fast:
            # The kernel's numbers are −8 to 7: what it adds is the value of our 8.
            pairs = torch.stack((scale, minimum + 8 * scale), dim=-1)
            self.scale_and_value = pairs.transpose(0, 1).bfloat16().contiguous()
            packed = torch._convert_weight_to_int4pack_for_cpu(codes.int(), 1)
            # A copy lies where the int32 numbers were: else each layer leaves a hole of that size.
            self.packed = packed.clone()
        else:
            first, second = codes.unflatten(-1, (-1, 2, BLOCK // 2)).unbind(-2)
            self.packed, self.scale, self.minimum = first | second << 4, scale, minimum

    @property
    def shape(self) -> torch.Size:
        """(N, C), as that of a matrix."""
        return torch.Size((self.out_features, self.in_features))

    def forward(self, x: Tensor) -> Tensor:
        if not self.fast:
            return F.linear(x, self.blocks().matrix())
        rows = x.reshape(-1, self.in_features).bfloat16()  # (B · T, C)
        out = torch._weight_int4pack_mm_for_cpu(rows, self.packed, BLOCK, self.scale_and_value)
        return out.view(*x.shape[:-1], self.out_features).type_as(x)

    def blocks(self) -> QuantizedTensor:
        """The blocks again, unless fast: half of one in the lower four bits, half in the upper."""
        codes = torch.cat((self.packed & 15, self.packed >> 4), dim=-1).flatten(-2)
        return QuantizedTensor(codes, self.scale, self.minimum)


def has_kernel() -> bool:
    """Is there a kernel for 4-bit weights here that is faster than writing them out?

    Explained in: real_weights.
    """
    return torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


class HalfLinear(nn.Module):
    """x (…, C) times a matrix (N, C) in float16: (…, N), in the type of x.

    For logits: float16 rounds to eleven bits, bfloat16 to eight. Explained in: real_weights.
    """

    def __init__(self, matrix: Tensor):
        super().__init__()
        self.matrix, self.shape = matrix.half(), matrix.shape

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x.half(), self.matrix).to(x.dtype)


class HalfEmbedding(HalfLinear):
    """A table of embeddings (V, C) in float16, whose rows come as float32: ids → (…, C).

    Explained in: real_weights.
    """

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.matrix).float()
