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
class Blocks:
    """A matrix (N, C) in whole numbers: number · scale + minimum, block by block.

    numbers: uint8 (N, C), from 0 to 2^bits − 1; scale, minimum: float32 (N, C / BLOCK).
    Taught in chapter 15.
    """

    numbers: Tensor
    scale: Tensor
    minimum: Tensor

    def matrix(self) -> Tensor:
        """The float32 numbers that the blocks stand for: (N, C)."""
        blocks = self.numbers.unflatten(-1, (-1, BLOCK))
        return (blocks * self.scale[..., None] + self.minimum[..., None]).flatten(-2)


def to_blocks(matrix: Tensor, bits: int) -> Blocks:
    """Round a matrix (N, C) to 2^bits levels in each block, evenly spaced from its least number to
    its greatest.

    Raises ValueError for a C that is no multiple of BLOCK, for bits outside 1 to 8, and for numbers
    that are not finite. With 4 bits the format Q4_1 of llama.cpp. Taught in chapter 15.
    """
    if not 1 <= bits <= 8:
        raise ValueError(f"bits should be 1 to 8, not {bits}")
    if matrix.dim() != 2 or matrix.shape[1] % BLOCK:
        raise ValueError(
            f"a matrix of shape {tuple(matrix.shape)} cannot be cut into rows of blocks of {BLOCK}"
        )
    if not matrix.isfinite().all():
        raise ValueError("there are numbers that are not finite: no scale fits them")
    blocks = matrix.float().unflatten(-1, (-1, BLOCK))
    least, greatest = blocks.aminmax(dim=-1)
    scale = (greatest - least) / (2**bits - 1)
    steps = (blocks - least[..., None]) / torch.where(scale > 0, scale, 1)[..., None]
    return Blocks(steps.round().to(torch.uint8).flatten(-2), scale, least)


class BlockLinear(nn.Module):
    """x (…, C) times a matrix (N, C) of 4-bit blocks, which stays in them: (…, N).

    fast: compute in bfloat16 with PyTorch's kernel for 4-bit weights, which wants a multiple of 16
    for N, or write the matrix out and multiply in float32; if None, what is faster on this machine.
    Raises ValueError for numbers above 15. Taught in chapter 15.
    """

    def __init__(self, blocks: Blocks, fast: bool | None = None):
        super().__init__()
        numbers, scale, minimum = blocks.numbers, blocks.scale, blocks.minimum
        if numbers.max() > 15:
            raise ValueError(f"numbers of 4 bits are 0 to 15, but one is {numbers.max()}")
        self.out_features, self.in_features = numbers.shape
        self.fast = has_kernel() and self.out_features % 16 == 0 if fast is None else fast
        if self.fast:
            # The kernel's numbers are −8 to 7: what it adds is the value of our 8.
            pairs = torch.stack((scale, minimum + 8 * scale), dim=-1)
            self.scale_and_value = pairs.transpose(0, 1).bfloat16().contiguous()
            packed = torch._convert_weight_to_int4pack_for_cpu(numbers.int(), 1)
            # A copy lies where the int32 numbers were: else each layer leaves a hole of that size.
            self.packed = packed.clone()
        else:
            first, second = numbers.unflatten(-1, (-1, 2, BLOCK // 2)).unbind(-2)
            self.packed, self.scale, self.minimum = first | second << 4, scale, minimum

    @property
    def shape(self) -> torch.Size:
        """(N, C), as that of a matrix."""
        return torch.Size((self.out_features, self.in_features))

    def forward(self, x: Tensor) -> Tensor:
        if not self.fast:
            return F.linear(x, self.blocks().matrix())
        rows = x.reshape(-1, self.in_features).bfloat16()
        out = torch._weight_int4pack_mm_for_cpu(rows, self.packed, BLOCK, self.scale_and_value)
        return out.view(*x.shape[:-1], self.out_features).type_as(x)

    def blocks(self) -> Blocks:
        """The blocks again: half a block stands in the lower four bits, half in the upper."""
        if self.fast:
            raise ValueError("the kernel's order is its own: BlockLinear(blocks, fast=False)")
        numbers = torch.cat((self.packed & 15, self.packed >> 4), dim=-1).flatten(-2)
        return Blocks(numbers, self.scale, self.minimum)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, fast={self.fast}"


def has_kernel() -> bool:
    """Does this machine have a kernel for 4-bit weights that is faster than writing them out?

    Taught in chapter 15.
    """
    return torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


class HalfLinear(nn.Module):
    """x (…, C) times a matrix (N, C) in float16: (…, N), in the type of x.

    For logits: float16 rounds to eleven bits, bfloat16 to eight. Taught in chapter 15.
    """

    def __init__(self, matrix: Tensor):
        super().__init__()
        self.matrix, self.shape = matrix.half(), matrix.shape

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x.half(), self.matrix).to(x.dtype)


class HalfEmbedding(HalfLinear):
    """A table of embeddings (V, C) in float16, whose rows come as float32: ids → (…, C).

    Taught in chapter 15.
    """

    @property
    def num_embeddings(self) -> int:
        """V, as a `torch.nn.Embedding` calls it."""
        return len(self.matrix)

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.matrix).float()
