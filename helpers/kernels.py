"""Faster dropout and the choice of a kernel, for a CPU, and what a C library does with memory.

None of them changes what a model computes, up to rounding. What each gains is measured by
`tools/benchmarks/training.py`.
"""

import ctypes
import math
import platform

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Dropout):
    """`nn.Dropout`, faster on a CPU: it draws 16 random bits per feature.

    The probability p is rounded to a multiple of 1/65,536. The bits come from torch's own generator
    and are drawn by one thread, so that they do not depend on the number of threads.
    Used from the chapter multi_head on. Taught in: transformer_block.
    """

    def forward(self, x: Tensor) -> Tensor:
        dropped = round(2**16 * self.p)
        if not (self.training and 0 < dropped < 2**16 and x.device.type == "cpu"):
            return super().forward(x)
        draws = torch.empty(math.ceil(x.numel() / 4), dtype=torch.int64).random_(-(2**63), None)
        bits = draws.view(torch.int16)[: x.numel()].view(x.shape)  # −2¹⁵ to 2¹⁵ − 1
        return x * ((bits >= dropped - 2**15) * (2**16 / (2**16 - dropped))).to(x.dtype)


def fused_attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, start: int = 0, mask: Tensor | None = None
) -> Tensor:
    """`attention` by the kernel that is fastest for these tensors: (B, H, T, hs), no weights.

    start: how many of the keys come before the first query. Fewer heads in k and v are shared.
    """
    grouped = k.shape[1] < q.shape[1]
    # PyTorch's fused kernel for bfloat16 on a CPU goes backwards 2 to 4 times slower than the
    # formula written out.
    slow = q.dtype == torch.bfloat16 and q.requires_grad and q.device.type == "cpu"
    if slow and not (start or grouped or mask is not None):
        scores = q * q.shape[-1] ** -0.5 @ k.mT
        if causal:  # adding −∞ is faster than filling it in
            scores = scores + torch.full_like(scores[0, 0], -math.inf).triu(1)
        return F.softmax(scores, dim=-1) @ v
    if causal and start:  # the kernel's own mask would take the first query for token 0
        causal = False
        if q.shape[2] > 1:  # one new token may attend to all of them
            mask = q.new_ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(start)
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, enable_gqa=grouped)


def keep_freed_memory() -> None:
    """Let this process keep the memory of freed tensors for new ones, until it ends.

    Otherwise the C library of Linux returns each large piece at once, and the system clears every
    page before it hands it out again, which takes a tenth of a training step of GPTMini. The
    process then holds on to the largest amount of memory it has used. Does nothing where the C
    library is another one.
    """
    if platform.libc_ver()[0] == "glibc":
        library = ctypes.CDLL(None)
        library.mallopt(-4, 0)  # M_MMAP_MAX: never ask the system for a single piece
        library.mallopt(-1, -1)  # M_TRIM_THRESHOLD: never give memory back


def has_bf16(device: torch.device) -> bool:
    """Whether this hardware multiplies in bfloat16 faster than in float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    abilities = torch.cpu.get_capabilities() if device.type == "cpu" else {}
    # Intel's avx512_bf16 without AMX gains nothing: matrix products at 154 instead of 252 GFLOP/s,
    # a step of `headline` 2.1 s instead of 1.2 (tools/benchmarks/training.py; a Xeon, 2 cores).
    names = ("amx_bf16",) if "Intel" in abilities.get("cpu_name", "") else ("avx512_bf16",)
    return any(abilities.get(name, False) for name in names)
