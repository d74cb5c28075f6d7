"""Attention in the order in which it is taught: mask, formula, one head, many heads, cache.

`attention` computes the formula step by step and returns its weights. `Head` and
`MultiHeadAttention` compute the same with PyTorch's fused kernel, which does not build the (T, T)
matrix; their method `weights` returns it.

Shapes: B sequences, H heads, T queries, S keys (S = T in self-attention), hs = head size,
C = n_embd = H · hs.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.kernels import Dropout, Linear
from helpers.positions import Rotary


def causal_mask(T: int, device: torch.device | str | None = None) -> Tensor:
    """Return the causal mask: which token may attend to which.

    Args:
        T: number of tokens, at least 1.
        device: where to make the mask; None: PyTorch's default device.

    Returns a boolean (T, T) tensor. Entry [i, j] is True where token i may attend to token j, that
    is where j <= i: the lower triangle with its diagonal.
    Raises ValueError if T is not a whole number of at least 1.

    >>> causal_mask(3)
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])

    Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3. Taught in: causal_averaging.
    """
    if isinstance(T, bool) or not isinstance(T, int) or T < 1:
        raise ValueError(
            f"a causal mask needs the number of tokens T, a whole number of at least 1, not {T!r}; "
            "for a tensor x of shape (B, T, C) pass x.shape[-2]"
        )
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention, written out: softmax(q kᵀ · scale) v.

    Args:
        q: queries (..., T, hs).
        k: keys (..., S, hs).
        v: values (..., S, dv).
        mask: bool, True where a query may attend to a key: (T, S) for all, or with as many
            dimensions as the scores (..., T, S), of which those of length 1 are repeated.
        scale: factor on the scores; None: 1/√hs.

    Returns (out, weights) of shapes (..., T, dv) and (..., T, S). Each row of weights sums to 1.
    Raises ValueError for shapes that do not fit, a mask that is not bool or does not fit, and a
    query without any key to attend to (its softmax would be NaN).

    Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1.
    Taught in: queries_keys_values.
    """
    _check_qkv(q, k, v)
    scores = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        _check_mask(mask, scores)
        scores = scores.masked_fill(~mask, -math.inf)
    weights = F.softmax(scores, dim=-1)
    return weights @ v, weights


def _check_qkv(q: Tensor, k: Tensor, v: Tensor) -> None:
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if min(q.dim(), k.dim(), v.dim()) < 2:
        raise ValueError(f"q, k and v need rows, one for each token, shape (..., T, hs): {shapes}")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"q and k need the same last dimension, k and v the same number of rows: {shapes}"
        )
    if 0 in k.shape[-2:]:
        raise ValueError(f"there must be at least one key of at least one number: {shapes}")
    try:
        # torch's own broadcast_shapes would import SymPy first, which takes two seconds.
        np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    except ValueError:
        raise ValueError(
            f"q, k and v need the same dimensions before the last two, or 1: {shapes}"
        ) from None


def _check_mask(mask: Tensor, scores: Tensor) -> None:
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        given = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise ValueError(f"a mask is a bool tensor, True where a query may attend, not {given}")
    # subtle: (B, T, T) beside scores (B, H, T, T) would be read as one mask a head if B == H. So a
    # mask has two dimensions, or all of them.
    fits = mask.dim() in (2, scores.dim()) and all(
        m in (1, n) for m, n in zip(mask.shape, scores.shape[-mask.dim() :], strict=True)
    )
    if not fits:
        raise ValueError(
            f"scores of shape {tuple(scores.shape)} need a mask of shape "
            f"{tuple(scores.shape[-2:])}, one for all, or one with {scores.dim()} dimensions, each "
            f"1 or as long as that of the scores; not {tuple(mask.shape)}"
        )
    if not mask.any(dim=-1).all():
        raise ValueError("the mask leaves a query no key to attend to: its weights would be NaN")


class Head(nn.Module):
    """One head of self-attention.

    Args:
        n_embd: width C of the input.
        head_size: width hs of queries, keys and values.
        causal: if True, a token attends only to itself and to earlier tokens.

    Shape: (B, T, C) → (B, T, hs). Raises ValueError for an input of another width.
    Taught in: queries_keys_values.
    """

    def __init__(self, n_embd: int, head_size: int, *, causal: bool = True):
        super().__init__()
        self.causal = causal
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        _check_width(x, self.query.in_features)
        q, k, v = self.query(x), self.key(x), self.value(x)
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)

    def weights(self, x: Tensor) -> Tensor:
        """The attention weights (B, 1, T, T)."""
        _check_width(x, self.query.in_features)
        q, k = self.query(x), self.key(x)
        mask = causal_mask(x.shape[-2], x.device) if self.causal else None
        return attention(q, k, k, mask)[1].unsqueeze(-3)


class KVCache:
    """The keys and values that one attention layer has computed for the tokens processed so far.

    Args:
        max_tokens: how many tokens it has space for, at least 1.

    A model with L layers needs L of them, `model.empty_cache()`, which belong to that model and to
    one batch of texts. The space is taken when the first tokens arrive. `len(cache)` is the number
    of tokens S in it. `conv_state` is what a `ShortConvolution` of the same block keeps, and
    `model` the number of the `GPT` that filled the cache.

    Pope et al. 2022, "Efficiently Scaling Transformer Inference". Taught in: kv_cache.
    """

    def __init__(self, max_tokens: int):
        if max_tokens < 1:
            raise ValueError(f"a cache needs space for at least 1 token, not {max_tokens}")
        self.max_tokens, self.length = max_tokens, 0
        self.conv_state: Tensor | None = None
        self.model: int | None = None
        self._buffer: tuple[Tensor, Tensor] | None = None  # keys, values: (B, H, max_tokens, hs)

    def __len__(self) -> int:
        return self.length

    @property
    def keys(self) -> Tensor | None:
        """(B, H, S, hs), or None while the cache is empty."""
        return None if self._buffer is None else self._buffer[0][:, :, : self.length]

    @property
    def values(self) -> Tensor | None:
        """(B, H, S, hs), or None while the cache is empty."""
        return None if self._buffer is None else self._buffer[1][:, :, : self.length]

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values (B, H, T, hs) of T new tokens; returns those of all tokens.

        Raises ValueError for another batch than that in the cache, for other heads, and for more
        tokens than there is space for.
        """
        if self._buffer is None:
            B, H, _, hs = k.shape
            size = (B, H, self.max_tokens, hs)
            self._buffer = k.new_empty(size), v.new_empty(size)
        keys, values = self._buffer
        if (k.shape[1], k.shape[3]) != (keys.shape[1], keys.shape[3]):
            raise ValueError(
                f"the cache is of a model with {keys.shape[1]} heads of size {keys.shape[3]}, but "
                f"these are {k.shape[1]} of size {k.shape[3]}: each model needs its own "
                "empty_cache()"
            )
        if len(k) != len(keys):
            raise ValueError(
                f"the cache belongs to a batch of {len(keys)} texts, but {len(k)} were given: "
                "start each batch with an empty cache"
            )
        end = self.length + k.shape[2]
        if end > self.max_tokens:
            raise ValueError(f"the cache has space for {self.max_tokens} tokens, not for {end}")
        keys[:, :, self.length : end], values[:, :, self.length : end] = k, v
        self.length = end
        return keys[:, :, :end], values[:, :, :end]

    def crop(self, length: int) -> None:
        """Drop all tokens but the first `length`.

        Raises ValueError if there are fewer, and where a convolution has kept its last inputs:
        those before them are gone.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"the cache holds {self.length} tokens, so not the first {length}")
        if self.conv_state is not None and length < self.length:
            raise ValueError(
                "the cache of a model with convolutions cannot be cropped: process the tokens "
                "again with an empty_cache()"
            )
        self.length = length

    def repeat(self, n: int) -> None:
        """Repeat each row n times, for n texts that begin with the same tokens."""
        k, v = (t.repeat_interleave(n, dim=0) for t in (self.keys, self.values))  # type: ignore[union-attr]
        self.length, self._buffer = 0, None
        self.append(k, v)
        if self.conv_state is not None:
            self.conv_state = self.conv_state.repeat_interleave(n, dim=0)


class MultiHeadAttention(nn.Module):
    """Multi-head attention: several heads in one batched computation, and an output projection.

    Args:
        n_embd: width C of input and output.
        n_head: number of heads H.
        causal: if True, a token attends only to itself and to earlier tokens.
        bias: whether the four linear maps have a bias.
        rotary: rotates queries and keys by their positions; None: no rotary positions.
        dropout: probability with which output features are set to 0 in training (a CPU has no fast
            kernel that also drops attention weights).
        n_kv_head: heads of keys and values, each shared by n_head / n_kv_head heads of queries
            (grouped-query attention); None: n_head.
        head_size: size hs of a head; None: C / H.
        qk_norm: whether queries and keys are normalised to the length √hs.

    Called with x (B, T, C), computes self-attention (B, T, C). Called with x and source (B, S, C),
    computes cross-attention: queries from x, keys and values from source, never causal. With a
    cache, x are the tokens that follow those in the cache. With a mask (B, 1, 1, S), True for keys
    that are not padding, the other keys get no weight; causal self-attention takes no mask. With
    padding (B,), int64, causal self-attention treats so many tokens at the beginning of each text,
    those in the cache included, as padding: no other token attends to them, and positions are
    counted from the first token after them.

    Raises ValueError if H does not divide C and no head_size is given, if n_kv_head does not divide
    H, for inputs of another width, for x and source with different B, for a mask that does not fit,
    and for padding where attention is not causal.

    Vaswani et al. 2017, section 3.2.2. Taught in: multi_head.
    """

    def __init__(
        self,
        n_embd: int,
        n_head: int,
        *,
        causal: bool = True,
        bias: bool = False,
        rotary: Rotary | None = None,
        dropout: float = 0.0,
        n_kv_head: int | None = None,
        head_size: int | None = None,
        qk_norm: bool = False,
    ):
        super().__init__()
        self.n_head, self.n_kv_head = n_head, n_head if n_kv_head is None else n_kv_head
        self.head_size = _split(n_embd, n_head, "n_embd") if head_size is None else head_size
        _split(n_head, self.n_kv_head, "n_head")
        self.causal, self.dropout = causal, Dropout(dropout)
        self.rotary, self.qk_norm = rotary, qk_norm
        of_queries, of_keys = n_head * self.head_size, self.n_kv_head * self.head_size
        self.query = Linear(n_embd, of_queries, bias=bias)
        self.key = Linear(n_embd, of_keys, bias=bias)
        self.value = Linear(n_embd, of_keys, bias=bias)
        self.output = Linear(of_queries, n_embd, bias=bias)

    def forward(
        self,
        x: Tensor,
        source: Tensor | None = None,
        cache: KVCache | None = None,
        mask: Tensor | None = None,
        padding: Tensor | None = None,
    ) -> Tensor:
        start = 0 if cache is None else len(cache)
        causal = self.causal and source is None
        if mask is not None:
            _check_padding(mask, x if source is None else source, causal)
        q, k, v = self.project(x, source, start if padding is None else start - padding)
        if cache is not None:
            k, v = cache.append(k, v)
        if padding is not None:
            if not causal:
                raise ValueError("padding is for causal self-attention; elsewhere give a mask")
            causal, mask = False, _left_padded_mask(padding, start, k.shape[2])
        out = _attend(q, k, v, causal, start, mask)
        out = self.output(out.transpose(1, 2).flatten(2))  # (B, H, T, hs) → (B, T, C)
        return self.dropout(out)

    def weights(
        self, x: Tensor, source: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """The attention weights (B, H, T, S), without dropout."""
        q, k, v = self.project(x, source)
        k, v = (t.repeat_interleave(self.n_head // self.n_kv_head, dim=1) for t in (k, v))
        causal = self.causal and source is None
        if mask is not None:
            _check_padding(mask, x if source is None else source, causal)
        if causal:
            mask = causal_mask(x.shape[1], x.device)
        return attention(q, k, v, mask)[1]

    def project(
        self, x: Tensor, source: Tensor | None = None, start: int | Tensor = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, T, hs), keys and values (B, n_kv_head, S, hs), normed and rotated.

        start: the position of the first token of x, or of that of each text, (B,).
        """
        source = x if source is None else source
        for given in (x, source):
            _check_width(given, self.query.in_features)
        if len(x) != len(source):
            raise ValueError(
                f"each of the {len(x)} sequences needs a source of its own, not {len(source)}"
            )
        q = self.split(self.query(x))
        k, v = self.split(self.key(source)), self.split(self.value(source))
        if self.qk_norm:
            q, k = (F.rms_norm(t, (self.head_size,)) for t in (q, k))
        if self.rotary is not None:
            q, k = self.rotary(q, start), self.rotary(k, start)
        return q, k, v

    def split(self, x: Tensor) -> Tensor:
        """(B, T, C) → (B, H, T, hs): splits the features over the heads."""
        return x.unflatten(-1, (-1, self.head_size)).transpose(1, 2)

    def extra_repr(self) -> str:
        return (
            f"n_head={self.n_head}, n_kv_head={self.n_kv_head}, head_size={self.head_size}, "
            f"causal={self.causal}, qk_norm={self.qk_norm}, dropout={self.dropout.p}"
        )


def _split(whole: int, heads: int, name: str) -> int:
    if heads < 1 or whole % heads:
        choose = "n_head" if name == "n_embd" else "n_kv_head"
        raise ValueError(
            f"{name} {whole} cannot be split evenly over {heads} heads: choose {choose} among "
            f"{[n for n in range(1, whole + 1) if whole % n == 0]}"
        )
    return whole // heads


def _check_width(x: Tensor, n_embd: int) -> None:
    if x.dim() != 3 or x.shape[-1] != n_embd:
        raise ValueError(f"attention needs x of shape (B, T, {n_embd}), not {tuple(x.shape)}")


def _check_padding(mask: Tensor, source: Tensor, causal: bool) -> None:
    if causal:
        raise ValueError(
            "a causal layer takes no padding mask: at the end, no token of the text attends to "
            "padding; for padding at the beginning, give its length as padding"
        )
    B, S, _ = source.shape
    if mask.dtype != torch.bool or mask.shape != (B, 1, 1, S):
        raise ValueError(
            f"a padding mask is bool, shape {(B, 1, 1, S)}, one entry for each key, not "
            f"{tuple(mask.shape)} of {mask.dtype}"
        )
    if not mask.any(dim=-1).all():
        raise ValueError("a row is all padding: its queries have no key to attend to")


def _left_padded_mask(padding: Tensor, start: int, S: int) -> Tensor:
    """(B, 1, T, S) for the queries `start` to S − 1: causal, and without the first keys of a row.

    A token of the padding attends to itself, so that its softmax is a number.
    """
    key = torch.arange(S, device=padding.device)
    query = key[start:, None]
    real = key >= padding[:, None, None, None]
    return (key <= query) & (real | (key == query))


def _attend(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, start: int, mask: Tensor | None = None
) -> Tensor:
    """`attention` by the kernel that is fastest for these tensors: (B, H, T, hs), no weights.

    start: how many of the keys come before the first query. Fewer heads in k and v are shared.
    """
    grouped = k.shape[1] < q.shape[1]
    # PyTorch's fused kernel for bfloat16 on a CPU goes backwards 2 to 4 times slower than the
    # formula written out (benchmarks/training.py).
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
