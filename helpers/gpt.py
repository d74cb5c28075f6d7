"""The whole model: one GPT, built from interchangeable parts.

    GPT(GPTConfig(65, 256, n_layer=6, n_head=6, n_embd=384))      the shape of GPT-2; and today's:
    GPT(GPTConfig(..., norm="RMSNorm", mlp="SwiGLU", position="Rotary", bias=False))

Shapes: B sequences, T tokens, V = vocab_size tokens, C = n_embd.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import KVCache, MultiHeadAttention
from helpers.kernels import Dropout
from helpers.positions import LearnedPosition, Rotary, SinusoidalPosition


class FeedForward(nn.Module):
    """Linear → GELU → Linear → dropout, for each token alone. hidden: 4 · C if None.

    The GELU is the tanh form of GPT-2 (Hendrycks and Gimpel 2016). Taught in: transformer_block.
    """

    def __init__(
        self, n_embd: int, hidden: int | None = None, *, bias: bool = True, dropout: float = 0.0
    ):
        super().__init__()
        hidden = hidden or 4 * n_embd
        self.up = nn.Linear(n_embd, hidden, bias=bias)
        self.down = nn.Linear(hidden, n_embd, bias=bias)
        self.dropout = Dropout(dropout)

    def activation(self, x: Tensor) -> Tensor:
        return F.gelu(x, approximate="tanh")

    def forward(self, x: Tensor) -> Tensor:
        x = self.activation(self.up(x))  # (B, T, hidden)
        return self.dropout(self.down(x))  # (B, T, C)


class SquaredReLU(FeedForward):
    """`FeedForward` with max(0, x)². So et al. 2021, "Primer". Explained in: transformer_block."""

    def activation(self, x: Tensor) -> Tensor:
        positive = F.relu(x)
        return positive * positive  # backward of square() is a power, several times slower


class SwiGLU(nn.Module):
    """down(silu(gate(x)) · up(x)), then dropout. Taught in: transformer_block.

    hidden: 8/3 · C if None, rounded up to a multiple of 8: as many weights as `FeedForward`.
    Shazeer 2020, "GLU Variants Improve Transformer".
    """

    def __init__(
        self, n_embd: int, hidden: int | None = None, *, bias: bool = True, dropout: float = 0.0
    ):
        super().__init__()
        hidden = hidden or 8 * math.ceil(n_embd / 3)
        self.gate = nn.Linear(n_embd, hidden, bias=bias)
        self.up = nn.Linear(n_embd, hidden, bias=bias)
        self.down = nn.Linear(hidden, n_embd, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = F.silu(self.gate(x)) * self.up(x)  # (B, T, hidden)
        return self.dropout(self.down(x))  # (B, T, C)


class ShortConvolution(nn.Module):
    """Causal convolution over the last `width` tokens, feature by feature: x + conv(x).

    The weights start at 0, so that it starts as the identity. So et al. 2021, "Primer"; Peng et al.
    2023, "RWKV" ("token shift"); Allen-Zhu 2025 ("Canon layers"). Taught in: training_fast.
    """

    def __init__(self, n_embd: int, width: int = 4):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_embd, 1, 1, width))  # as F.conv2d needs it

    def forward(self, x: Tensor, cache: KVCache | None = None) -> Tensor:
        if x.shape[1] == 0:
            return x
        past = self.weight.shape[-1] - 1
        if cache is None or cache.conv_state is None:
            window = F.pad(x, (0, 0, past, 0))  # (B, past + T, C), zeros before the first token
        else:
            window = torch.cat((cache.conv_state, x), dim=1)  # (B, past + T, C)
        if cache is not None:
            cache.conv_state = window[:, window.shape[1] - past :].clone()
        # (B, T, C) is already how convolutions of pictures, C × 1 × T here, are computed fastest.
        picture = window.transpose(1, 2).unsqueeze(2)  # (B, C, 1, past + T)
        return x + F.conv2d(picture, self.weight, groups=x.shape[-1]).squeeze(2).transpose(1, 2)


class Block(nn.Module):
    """Pre-norm transformer block: x + attention(norm(x)), then x + mlp(norm(x)).

    convolution: what the input of mlp goes through. Vaswani et al. 2017; Radford et al. 2019,
    "GPT-2". Taught in: transformer_block; the convolution in: training_fast.
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        mlp: nn.Module,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
        convolution: ShortConvolution | None = None,
    ):
        super().__init__()
        n_embd = attention.query.in_features
        self.attention_norm, self.attention = norm(n_embd), attention
        self.mlp_norm, self.convolution, self.mlp = norm(n_embd), convolution, mlp

    def forward(
        self, x: Tensor, cache: KVCache | None = None, padding: Tensor | None = None
    ) -> Tensor:
        start = 0 if cache is None else len(cache)
        x = x + self.attention(self.attention_norm(x), cache=cache, padding=padding)  # (B, T, C)
        h = self.mlp_norm(x)  # (B, T, C)
        if self.convolution is not None:
            if padding is not None:  # before the first token of a text, a convolution finds zeros
                index = torch.arange(start, start + x.shape[1], device=x.device)
                h = h.masked_fill((index < padding[:, None])[..., None], 0)
            h = self.convolution(h, cache)
        return x + self.mlp(h)


NORMS = {"LayerNorm": nn.LayerNorm, "RMSNorm": nn.RMSNorm}
MLPS = {"FeedForward": FeedForward, "SquaredReLU": SquaredReLU, "SwiGLU": SwiGLU}
POSITIONS = ("LearnedPosition", "SinusoidalPosition", "Rotary", None)


@dataclass(frozen=True)
class GPTConfig:
    """The settings of a GPT, as they stand in files (`asdict`). Taught in: gpt."""

    vocab_size: int  # V, tokens in the vocabulary
    block_size: int  # longest context, in tokens
    n_layer: int
    n_head: int
    n_embd: int  # C, width of the residual stream
    norm: str = "LayerNorm"  # one of NORMS
    norm_eps: float | None = None  # None: the default of the class
    mlp: str = "FeedForward"  # one of MLPS
    hidden: int | None = None  # inner width of the mlp; None: the default of the class
    position: str | None = "LearnedPosition"  # one of POSITIONS
    rotary_base: float = 10_000.0
    n_kv_head: int | None = None  # heads of keys and values; None: n_head
    head_size: int | None = None  # None: C / n_head
    qk_norm: bool = False  # whether queries and keys are normalised
    convolution: int | None = None  # width of a `ShortConvolution` in each block
    bias: bool = True  # of the linear maps in blocks
    dropout: float = 0.0
    tied: bool = True  # whether lm_head shares the weights of the token embedding

    def __post_init__(self) -> None:
        for name, known in (("norm", NORMS), ("mlp", MLPS), ("position", POSITIONS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} should be one of {[*known]}, not {getattr(self, name)!r}")


class GPT(nn.Module):
    """A decoder-only transformer: token ids (B, T) → logits (B, T, V).

    Called with a cache (see `empty_cache`), ids are the tokens that follow those in the cache. With
    padding (B,), the first padding[b] tokens of text b, those in the cache included, are padding:
    no other token attends to them, and position 0 comes after them. Each call with the same cache
    needs the same padding. Radford et al. 2018, 2019. Taught in: gpt.
    """

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.config, self.block_size = config, config.block_size
        self.token = nn.Embedding(config.vocab_size, config.n_embd)
        self.position: nn.Module | None = None  # rotary positions work inside attention
        if config.position == "LearnedPosition":
            self.position = LearnedPosition(config.block_size, config.n_embd)
        elif config.position == "SinusoidalPosition":
            self.position = SinusoidalPosition(config.n_embd)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(_block(config) for _ in range(config.n_layer))
        self.norm = _norm(config)(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        if config.tied:
            self.lm_head.weight = self.token.weight
        self._init_weights()

    def _init_weights(self) -> None:
        """GPT-2's: normal with std 0.02, smaller for the layers that add to the residual stream."""
        for name, p in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(p)
            elif name.endswith(("output.weight", "down.weight")):
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * len(self.blocks)))
            elif p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(
        self,
        ids: Tensor,
        cache: Sequence[KVCache] | None = None,
        padding: Tensor | None = None,
    ) -> Tensor:
        start = len(cache[0]) if cache else 0  # tokens before these
        end = start + ids.shape[1]
        if end > self.block_size:
            raise ValueError(
                f"{end} tokens, but the model reads {self.block_size} at once: crop them"
            )
        x = self.token(ids)  # (B, T, C)
        if self.position is not None:
            x = self.position(x, start if padding is None else start - padding)  # (B, T, C)
        x = self.dropout(x)
        for i, block in enumerate(self.blocks):
            x = block(x, cache[i] if cache else None, padding)  # (B, T, C)
        return self.lm_head(self.norm(x))  # (B, T, V)

    def empty_cache(self, max_tokens: int | None = None) -> list[KVCache]:
        """An empty `KVCache` per block, to be given to each call, for block_size tokens."""
        return [KVCache(max_tokens or self.block_size) for _ in self.blocks]

    def n_parameters(self) -> int:
        """Number of trainable parameters; the shared table of a tied model counts once."""
        return sum(p.numel() for p in self.parameters())


def _norm(config: GPTConfig) -> Callable[[int], nn.Module]:
    eps = {} if config.norm_eps is None else {"eps": config.norm_eps}
    return lambda width: NORMS[config.norm](width, **eps)


def _block(config: GPTConfig) -> Block:
    attention = MultiHeadAttention(
        config.n_embd,
        config.n_head,
        n_kv_head=config.n_kv_head,
        head_size=config.head_size,
        qk_norm=config.qk_norm,
        bias=config.bias,
        dropout=config.dropout,
    )
    if config.position == "Rotary":
        attention.rotary = Rotary(attention.head_size, config.rotary_base)
    mlp = MLPS[config.mlp](config.n_embd, config.hidden, bias=config.bias, dropout=config.dropout)
    width = config.convolution
    convolution = None if width is None else ShortConvolution(config.n_embd, width)
    return Block(attention, mlp, _norm(config), convolution)


def fast_gpt(
    vocab_size: int,
    block_size: int,
    n_layer: int,
    n_head: int,
    n_embd: int,
    **settings: Any,
) -> GPT:
    """An untied GPT with rotary positions, QK norm, squared ReLU and short convolutions.

    settings: of `GPTConfig`, where they should differ. What adds to the residual stream and the
    output head start with zeros, so that every block starts as the identity and all next tokens
    are equally likely. Jordan et al. 2024, "modded-nanogpt". Taught in: training_fast.
    """
    chosen = dict(
        mlp="SquaredReLU", position="Rotary", qk_norm=True, convolution=4, bias=False, tied=False
    )
    sizes = (vocab_size, block_size, n_layer, n_head, n_embd)
    model = GPT(GPTConfig(*sizes, **{**chosen, **settings}))
    for name, p in model.named_parameters():
        if name.endswith(("output.weight", "down.weight", "lm_head.weight")):
            nn.init.zeros_(p)
        elif name == "token.weight":
            nn.init.normal_(p)
        elif p.dim() == 2:
            bound = p.shape[1] ** -0.5
            nn.init.uniform_(p, -bound, bound)
    return model
