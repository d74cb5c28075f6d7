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
    """A quantised matrix (N, C): codes · scale + minimum, block by block.

    Attributes:
        codes: uint8 (N, C), from 0 to 2^bits − 1.
        scale, minimum: float32 (N, C / BLOCK).

    Taught in: real_weights.
    """

    codes: Tensor
    scale: Tensor
    minimum: Tensor

    def matrix(self) -> Tensor:
        """The float32 matrix (N, C) that the codes stand for."""
        blocks = self.codes.unflatten(-1, (-1, BLOCK))
        return (blocks * self.scale[..., None] + self.minimum[..., None]).flatten(-2)


def quantize(matrix: Tensor, bits: int) -> QuantizedTensor:
    """Round a matrix (N, C) to 2^bits levels in each block, evenly spaced from its least number to
    its greatest.

    Raises ValueError for a C that is no multiple of BLOCK, for bits that are not 1, 2 … 8, and for
    numbers that are not finite, or so large that float32 cannot hold their differences. With 4 bits
    the format Q4_1 of llama.cpp. Taught in: real_weights.
    """
    if bits not in range(1, 9) or isinstance(bits, bool):
        raise ValueError(f"bits should be 1 to 8, not {bits!r}")
    if matrix.dim() != 2 or matrix.shape[1] % BLOCK:
        raise ValueError(
            f"a matrix of shape {tuple(matrix.shape)} cannot be cut into rows of blocks of {BLOCK}"
        )
    if matrix.is_complex():
        raise ValueError(f"a matrix of {matrix.dtype} has no least and greatest numbers")
    if not matrix.isfinite().all():
        raise ValueError("there are numbers that are not finite: no scale fits them")
    blocks = matrix.float().unflatten(-1, (-1, BLOCK))
    least, greatest = blocks.aminmax(dim=-1)
    scale = (greatest - least) / (2**bits - 1)
    if not scale.isfinite().all():
        raise ValueError("there are numbers too large for float32: no scale fits them")
    steps = (blocks - least[..., None]) / torch.where(scale > 0, scale, 1)[..., None]
    levels = steps.round().clamp(max=2**bits - 1)  # a tiny scale is itself rounded
    return QuantizedTensor(levels.to(torch.uint8).flatten(-2), scale, least)


class QuantizedLinear(nn.Module):
    """x (…, C) times a matrix (N, C) of 4-bit blocks, which stays in them: (…, N).

    fast: compute in bfloat16 with PyTorch's kernel for 4-bit weights, which wants a multiple of 16
    for N, or write the matrix out and multiply in float32; if None, what is faster on this machine.
    Raises ValueError for codes above 15, for blocks whose parts do not belong together, and for
    fast with another N. Taught in: real_weights.
    """

    def __init__(self, blocks: QuantizedTensor, fast: bool | None = None):
        super().__init__()
        codes, scale, minimum = blocks.codes, blocks.scale, blocks.minimum
        shapes = [tuple(part.shape) for part in (codes, scale, minimum)]
        if codes.dtype != torch.uint8 or shapes[1:] != 2 * [_blocks_of(codes)]:
            raise ValueError(
                f"blocks hold uint8 codes (N, C) and a scale and a minimum (N, C / {BLOCK}), but "
                f"these are {codes.dtype} and shapes {shapes}"
            )
        if codes.numel() and codes.max() > 15:
            raise ValueError(f"codes of 4 bits are 0 to 15, but one is {codes.max()}")
        self.out_features, self.in_features = codes.shape
        if fast and self.out_features % 16:
            raise ValueError(f"the kernel wants a multiple of 16 rows, not {self.out_features}")
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
        if x.shape[-1] != self.in_features:
            raise ValueError(f"this layer reads {self.in_features} features, not {x.shape[-1]}")
        if not self.fast:
            return F.linear(x, self.blocks().matrix())
        rows = x.reshape(-1, self.in_features).bfloat16()
        out = torch._weight_int4pack_mm_for_cpu(rows, self.packed, BLOCK, self.scale_and_value)
        return out.view(*x.shape[:-1], self.out_features).type_as(x)

    def blocks(self) -> QuantizedTensor:
        """The blocks again: half a block stands in the lower four bits, half in the upper."""
        if self.fast:
            raise ValueError("the kernel's order is its own: QuantizedLinear(blocks, fast=False)")
        codes = torch.cat((self.packed & 15, self.packed >> 4), dim=-1).flatten(-2)
        return QuantizedTensor(codes, self.scale, self.minimum)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, fast={self.fast}"


def _blocks_of(codes: Tensor) -> tuple[int, int] | None:
    """The shape of the scales of such a matrix, None if it cannot be cut into blocks."""
    if codes.dim() != 2 or codes.shape[1] % BLOCK:
        return None
    return (codes.shape[0], codes.shape[1] // BLOCK)


def has_kernel() -> bool:
    """Does this machine have a kernel for 4-bit weights that is faster than writing them out?

    Explained in: real_weights.
    """
    return torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


class HalfLinear(nn.Module):
    """x (…, C) times a matrix (N, C) in float16: (…, N), in the type of x.

    For logits: float16 rounds to eleven bits, bfloat16 to eight. Raises ValueError for numbers
    that are too large for float16. Explained in: real_weights.
    """

    def __init__(self, matrix: Tensor):
        super().__init__()
        self.matrix, self.shape = matrix.half(), matrix.shape
        if self.matrix.isinf().any() and not matrix.isinf().any():
            raise ValueError(f"the matrix holds {matrix.abs().max():.3g}: too large for float16")

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x.half(), self.matrix).to(x.dtype)


class HalfEmbedding(HalfLinear):
    """A table of embeddings (V, C) in float16, whose rows come as float32: ids → (…, C).

    Explained in: real_weights.
    """

    @property
    def num_embeddings(self) -> int:
        """V, as a `torch.nn.Embedding` calls it."""
        return len(self.matrix)

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.matrix).float()
