"""Attention in the order in which it is taught: mask, formula, one head, many heads, cache.

Shapes: B sequences, H heads, T queries, S keys (S = T in self-attention), hs = head size,
C = n_embd. Masks are bool, True where a query may attend to a key.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.kernels import Dropout, fused_attention
from helpers.positions import Rotary


def causal_mask(T: int, device: torch.device | str | None = None) -> Tensor:
    """Which token may attend to which: (T, T), True where j <= i. Taught in: causal_averaging.

    >>> causal_mask(3)
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])
    """
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention, written out: softmax(q kᵀ · scale) v.

    Args:
        q, k, v: (..., T, hs), (..., S, hs), (..., S, dv).
        mask: (T, S), or as many dimensions as the scores (..., T, S).
        scale: factor on the scores; None: 1/√hs.

    Returns (out, weights): (..., T, dv) and (..., T, S). Each row of weights sums to 1.
    Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1. Taught in: queries_keys_values.
    """
    scores = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        _check_mask(mask, scores.dim())
        scores = scores.masked_fill(~mask, -math.inf)
    weights = F.softmax(scores, dim=-1)
    return weights @ v, weights


def _check_mask(mask: Tensor, dims: int) -> None:
    # subtle: (B, T, T) beside scores (B, H, T, T) would be read as one mask a head if B == H.
    if mask.dtype != torch.bool or mask.dim() not in (2, dims) or not mask.any(dim=-1).all():
        raise ValueError(
            f"a mask is bool, has 2 or {dims} dimensions and leaves each query a key to attend to"
        )


class Head(nn.Module):
    """One head of self-attention: (B, T, C) → (B, T, hs). Taught in: queries_keys_values."""

    def __init__(self, n_embd: int, head_size: int, *, causal: bool = True):
        super().__init__()
        self.causal = causal
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.query(x), self.key(x), self.value(x)  # (B, T, hs)
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)

    def weights(self, x: Tensor) -> Tensor:
        """The attention weights (B, 1, T, T)."""
        q, k = self.query(x), self.key(x)
        mask = causal_mask(x.shape[-2], x.device) if self.causal else None
        return attention(q, k, k, mask)[1].unsqueeze(-3)


class MultiHeadAttention(nn.Module):
    """Several heads in one batched computation, and an output projection: (B, T, C) → (B, T, C).

    With source (B, S, C), keys and values come from there (cross-attention, never causal). With a
    cache, x are the tokens that follow those in it. A mask (B, 1, 1, S) is False for keys that are
    padding; where attention is causal, padding (B,) is the number of such tokens at the beginning
    of each text. Vaswani et al. 2017, section 3.2.2. Taught in: multi_head.
    """

    def __init__(
        self,
        n_embd: int,
        n_head: int,
        *,
        causal: bool = True,  # a token attends only to itself and to earlier tokens
        bias: bool = False,
        rotary: Rotary | None = None,  # rotates queries and keys by their positions
        dropout: float = 0.0,  # of output features: no CPU kernel drops attention weights fast
        n_kv_head: int | None = None,  # fewer: shared by the queries (grouped-query attention)
        head_size: int | None = None,  # hs; None: C / H
        qk_norm: bool = False,  # queries and keys are normalised to the length √hs
    ):
        super().__init__()
        n_kv_head = n_kv_head or n_head
        if head_size is None and n_embd % n_head:
            raise ValueError(f"n_embd {n_embd} cannot be split evenly over {n_head} heads")
        if n_head % n_kv_head:
            raise ValueError(f"n_head {n_head} cannot be split evenly over {n_kv_head} heads")
        self.n_head, self.n_kv_head = n_head, n_kv_head
        self.head_size = hs = head_size or n_embd // n_head
        self.causal, self.rotary, self.qk_norm = causal, rotary, qk_norm
        self.dropout = Dropout(dropout)
        self.query = nn.Linear(n_embd, n_head * hs, bias=bias)
        self.key = nn.Linear(n_embd, n_kv_head * hs, bias=bias)
        self.value = nn.Linear(n_embd, n_kv_head * hs, bias=bias)
        self.output = nn.Linear(n_head * hs, n_embd, bias=bias)

    def forward(
        self,
        x: Tensor,
        source: Tensor | None = None,
        cache: "KVCache | None" = None,
        mask: Tensor | None = None,
        padding: Tensor | None = None,
    ) -> Tensor:
        start = 0 if cache is None else len(cache)  # tokens before these
        causal = self.causal and source is None
        q, k, v = self.project(x, source, start if padding is None else start - padding)
        if cache is not None:
            k, v = cache.append(k, v)  # (B, n_kv_head, S, hs), those of all tokens
        if (mask is not None and causal) or (padding is not None and not causal):
            raise ValueError("padding is for causal self-attention, a mask for all other attention")
        if mask is not None:
            _check_mask(mask, q.dim())
        if padding is not None:
            causal, mask = False, _left_padded_mask(padding, start, k.shape[2])  # (B, 1, T, S)
        out = fused_attention(q, k, v, causal, start, mask)  # (B, H, T, hs)
        out = self.output(out.transpose(1, 2).flatten(2))  # (B, T, C)
        return self.dropout(out)

    def weights(
        self, x: Tensor, source: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """The attention weights (B, H, T, S), without dropout."""
        q, k, v = self.project(x, source)  # (B, H, T, hs), (B, n_kv_head, S, hs) twice
        k, v = (t.repeat_interleave(self.n_head // self.n_kv_head, dim=1) for t in (k, v))
        if self.causal and source is None:
            if mask is not None:
                raise ValueError("causal self-attention takes no mask")
            mask = causal_mask(x.shape[1], x.device)
        return attention(q, k, v, mask)[1]

    def project(
        self, x: Tensor, source: Tensor | None = None, start: int | Tensor = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, T, hs), keys and values (B, n_kv_head, S, hs), normed and rotated.

        start: the position of the first token of x, or of that of each text, (B,).
        """
        source = x if source is None else source
        q, k = self.split(self.query(x)), self.split(self.key(source))
        v = self.split(self.value(source))
        if self.qk_norm:
            q, k = F.rms_norm(q, (self.head_size,)), F.rms_norm(k, (self.head_size,))
        if self.rotary is not None:
            q, k = self.rotary(q, start), self.rotary(k, start)
        return q, k, v

    def split(self, x: Tensor) -> Tensor:
        """(B, T, C) → (B, H, T, hs): splits the features over the heads."""
        return x.unflatten(-1, (-1, self.head_size)).transpose(1, 2)


class KVCache:
    """The keys and values that one attention layer has computed for the tokens processed so far.

    A model with L layers needs L of them, `model.empty_cache()`, for one batch of texts. `len` is
    the number of tokens in it. `conv_state` is what a `ShortConvolution` of the same block keeps.
    Pope et al. 2022, "Efficiently Scaling Transformer Inference". Taught in: kv_cache.
    """

    def __init__(self, max_tokens: int):
        self.max_tokens, self.length = max_tokens, 0
        self.keys: Tensor | None = None  # (B, H, S, hs), as are the values
        self.values: Tensor | None = None
        self.conv_state: Tensor | None = None  # (B, width − 1, C)
        self._buffer: Tensor | None = None  # keys and values: (2, B, H, max_tokens, hs)

    def __len__(self) -> int:
        return self.length

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values (B, H, T, hs) of T new tokens; returns those of all tokens."""
        B, H, T, hs = k.shape
        if self._buffer is None:
            self._buffer = k.new_empty(2, B, H, self.max_tokens, hs)
        end = self.length + T
        if end > self.max_tokens:  # one token past the end would be lost without a word
            raise ValueError(f"the cache has space for {self.max_tokens} tokens, not for {end}")
        if B != self._buffer.shape[1]:
            raise ValueError(f"the cache is of {self._buffer.shape[1]} texts, but these are {B}")
        self._buffer[0, :, :, self.length : end] = k
        self._buffer[1, :, :, self.length : end] = v
        keys, values = self._buffer[:, :, :, :end]
        self.length, self.keys, self.values = end, keys, values
        return keys, values

    def crop(self, length: int) -> None:
        """Drop all tokens but the first `length`. What a convolution keeps cannot be cropped."""
        if not 0 <= length <= self.length or (self.conv_state is not None and length < self.length):
            raise ValueError(f"of {self.length} tokens, the first {length} cannot be kept alone")
        if self._buffer is not None:
            self.length, (self.keys, self.values) = length, self._buffer[:, :, :, :length]

    def repeat(self, n: int) -> None:
        """Repeat each row n times, for n texts that begin with the same tokens."""
        k, v = (t.repeat_interleave(n, dim=0) for t in (self.keys, self.values))  # type: ignore[union-attr]
        self.length, self._buffer = 0, None
        self.append(k, v)
        if self.conv_state is not None:
            self.conv_state = self.conv_state.repeat_interleave(n, dim=0)


def _left_padded_mask(padding: Tensor, start: int, S: int) -> Tensor:
    """(B, 1, T, S) for the queries `start` to S − 1: causal, without the first keys of a row.

    A token of the padding attends to itself, so that its softmax is a number.
    """
    key = torch.arange(S, device=padding.device)
    query = key[start:, None]
    real = key >= padding[:, None, None, None]
    return (key <= query) & (real | (key == query))
