"""Attention, in the order in which it is taught: mask, one formula, one head, many heads, and the
cache with which a model that writes works nothing out twice.

`attention` is the formula written out, and returns its weights. `Head` and `MultiHeadAttention`
compute the same through PyTorch's fused kernel, which need not build the (T, T) matrix; when you
want to look at the weights, their method `weights` works them out with the formula.

Shapes: B sequences, H heads, T queries, S keys (S = T in self-attention), hs = head size,
C = n_embd = H · hs.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.positions import Rotary


def causal_mask(T: int, device: torch.device | str | None = None) -> Tensor:
    """Who may listen to whom when nobody may listen to the future.

    T: number of tokens, at least 1; device: where the mask is wanted (default: where tensors are
    made by default). Returns a boolean (T, T) tensor: entry [i, j] is True where token i may use
    token j, that is where j <= i (the lower triangle with its diagonal).
    Raises ValueError if T is not a whole number of at least 1.

    >>> causal_mask(3)
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])

    Source: the masked self-attention of Vaswani et al. (2017), "Attention Is All You Need", 3.2.3.
    Taught in chapter 03.
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

    q: (..., T, hs) queries; k: (..., S, hs) keys; v: (..., S, dv) values.
    mask: bool, True where a query may look at a key: (T, S) for all, or with as many dimensions
    as the scores (..., T, S), those of length 1 repeated.
    scale: what the scores are multiplied by; 1/√hs if None.
    Returns (out, weights): (..., T, dv) and (..., T, S), whose rows sum to 1.

    Raises ValueError for shapes that do not fit, a mask that is not bool or does not fit, and a
    query that may look at nothing (its softmax would be NaN).

    Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1. Taught in chapter 04.
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
        raise ValueError(f"a mask is a bool tensor, True where looking is allowed, not {given}")
    # subtle: (B, T, T) beside scores (B, H, T, T) would be read as one mask a head if B == H. So a
    # mask has two dimensions, or all of them.
    fits = mask.dim() in (2, scores.dim()) and all(
        m in (1, n) for m, n in zip(mask.shape, scores.shape[-mask.dim() :], strict=True)
    )
    if not fits:
        raise ValueError(
            f"scores of shape {tuple(scores.shape)} want a mask of shape "
            f"{tuple(scores.shape[-2:])}, one for all, or one with {scores.dim()} dimensions, each "
            f"1 or as long as that of the scores; not {tuple(mask.shape)}"
        )
    if not mask.any(dim=-1).all():
        raise ValueError("the mask leaves a query nothing to look at: its weights would be NaN")


class Linear(nn.Linear):
    """`nn.Linear`, but quick for the few tokens at a time that a model reads while it writes.

    Its weight, bias and numbers (up to rounding) are those of `nn.Linear`. The product of a row or
    two with a large matrix takes as long as the matrix takes to come from memory, and the routine
    behind `nn.Linear` reads it with one core, at a third of the speed that is to be had. Asked for
    two halves of the matrix as a batch of products, every core reads. Used from chapter 06 on;
    what it gains is measured by benchmarks/generation.py. Taught in chapter 11.
    """

    FEW = 4  # rows up to which it is quicker
    LARGE = 2**15  # numbers in the matrix from which it is

    def forward(self, x: Tensor) -> Tensor:
        w = self.weight
        few = x.numel() <= self.FEW * self.in_features and w.numel() >= self.LARGE
        here = x.dtype == w.dtype == torch.float32 and w.device.type == "cpu"
        fits = x.shape[-1:] == w.shape[1:] and len(w) % 2 == 0
        if torch.is_grad_enabled() or not (few and here and fits):
            return super().forward(x)
        columns = x.reshape(1, -1, self.in_features).mT.expand(2, -1, -1)
        halves = w.unflatten(0, (2, -1)).bmm(columns)  # (2, N / 2, rows)
        out = halves.flatten(0, 1).T.reshape(*x.shape[:-1], self.out_features)
        return out if self.bias is None else out + self.bias


class Dropout(nn.Dropout):
    """`nn.Dropout`, but quick on a CPU: 16 random bits for a number, not a draw of its own.

    So p is the nearest of 65,536 shares. Drawn from torch's own generator; one thread draws, so the
    numbers do not depend on how many there are. Used from chapter 06 on; what it gains is measured
    by benchmarks/training.py. Taught in chapter 08.
    """

    def forward(self, x: Tensor) -> Tensor:
        dropped = round(2**16 * self.p)
        if not (self.training and 0 < dropped < 2**16 and x.device.type == "cpu"):
            return super().forward(x)
        draws = torch.empty(math.ceil(x.numel() / 4), dtype=torch.int64).random_(-(2**63), None)
        bits = draws.view(torch.int16)[: x.numel()].view(x.shape)  # −2¹⁵ to 2¹⁵ − 1
        return x * ((bits >= dropped - 2**15) * (2**16 / (2**16 - dropped))).to(x.dtype)


class Head(nn.Module):
    """One head of self-attention: communication between tokens.

    n_embd: C, the width of the input; head_size: hs, the width of queries, keys and values;
    causal: may a token look at earlier tokens and itself only?

    Called with x (B, T, C), gives (B, T, hs). Raises ValueError for x of another width.
    Taught in chapter 04.
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
        """Who looks at whom: (B, 1, T, T), a map for the one head."""
        _check_width(x, self.query.in_features)
        q, k = self.query(x), self.key(x)
        mask = causal_mask(x.shape[-2], x.device) if self.causal else None
        return attention(q, k, k, mask)[1].unsqueeze(-3)


class KVCache:
    """Keys and values (B, H, S, hs) that one attention layer has made for the S tokens read so far,
    and what a `ShortConvolution` beside it has read of them.

    Starts empty. A model with L layers needs L of them, `model.empty_cache()`, which belong to that
    model and to one batch of texts. len(cache): S. model: the number of the `GPT` that wrote it.

    Pope et al. 2022, "Efficiently Scaling Transformer Inference". Taught in chapter 11.
    """

    def __init__(self) -> None:
        self.model: int | None = None
        self._room: Tensor | None = None  # (2, B, H, more than S, hs): keys, values
        self._length = 0
        self.convolved: Tensor | None = None  # (B, S, C): what a convolution of the block has read

    def __len__(self) -> int:
        return self._length

    @property
    def keys(self) -> Tensor | None:
        """(B, H, S, hs), or None while the cache is empty."""
        return None if self._room is None else self._room[0, :, :, : self._length]

    @property
    def values(self) -> Tensor | None:
        """(B, H, S, hs), or None while the cache is empty."""
        return None if self._room is None else self._room[1, :, :, : self._length]

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values (B, H, T, hs) of T new tokens; returns those of all tokens.

        Raises ValueError for another batch than that in the cache, and for other heads.
        """
        old, end = self._room, self._length + k.shape[2]
        if old is not None and (k.shape[1], k.shape[3]) != (old.shape[2], old.shape[4]):
            raise ValueError(
                f"the cache is of a model with {old.shape[2]} heads of {old.shape[4]} numbers, but "
                f"these are {k.shape[1]} of {k.shape[3]}: each model needs its own empty_cache()"
            )
        if old is not None and len(k) != old.shape[1]:
            raise ValueError(
                f"the cache belongs to a batch of {old.shape[1]} texts, but {len(k)} were given: "
                "start each batch with an empty cache"
            )
        differentiated = torch.is_grad_enabled() and k.requires_grad  # then `old` has to stay
        if old is None or end > old.shape[3] or differentiated:
            # Twice the room that is needed: copying everything for each token would be slow.
            self._room = k.new_empty(2, *k.shape[:2], 2 * end, k.shape[3])
            if old is not None:
                self._room[:, :, :, : self._length] = old[:, :, :, : self._length]
        room = self._room
        assert room is not None
        room[:, :, :, self._length : end] = torch.stack((k, v))
        self._length = end
        keys, values = room[:, :, :, :end]
        return keys, values

    def crop(self, length: int) -> None:
        """Forget all tokens but the first `length`. Raises ValueError if there are fewer."""
        if not 0 <= length <= self._length:
            raise ValueError(f"the cache holds {self._length} tokens, so not the first {length}")
        self._length = length
        if self.convolved is not None:
            self.convolved = self.convolved[:, :length]


class MultiHeadAttention(nn.Module):
    """Several heads side by side in one batched computation, mixed by an output projection.

    n_embd: C, the width of input and output; n_head: H; causal: may a token look at earlier tokens
    and itself only?; bias: of the four linear maps; rotary: rotates queries and keys by their
    positions (chapter 07); dropout: of the output, in training (a CPU has no fast kernel that drops
    weights as well); n_kv_head: heads of keys and values, each shared by n_head / n_kv_head
    queries; head_size: hs, C / H if None; qk_norm: bring queries and keys to the length √hs.

    Called with x (B, T, C), gives (B, T, C): self-attention. Called with x and source (B, S, C),
    the queries come from x, keys and values from source: cross-attention, which is never causal.
    Called with x and a cache, x are the tokens that follow those in the cache (chapter 11).
    Called with a mask (B, 1, 1, S), True for the keys that are no padding, the others get no
    weight (chapter 17); a layer that is causal, and has no source, takes none.

    Raises ValueError if H does not divide C and no head_size is given, if n_kv_head does not divide
    H, for inputs of another width, for x and source with different B, and for a mask that does not
    fit.

    Vaswani et al. 2017, section 3.2.2. Taught in chapter 06.
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
    ) -> Tensor:
        start = 0 if cache is None else len(cache)
        causal = self.causal and source is None
        if mask is not None:
            _check_padding(mask, x if source is None else source, causal)
        q, k, v = self.project(x, source, start)
        if cache is not None:
            k, v = cache.append(k, v)
        out = _attend(q, k, v, causal, start, mask)
        out = self.output(out.transpose(1, 2).flatten(2))  # (B, H, T, hs) → (B, T, C)
        return self.dropout(out)

    def weights(
        self, x: Tensor, source: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Who looks at whom: (B, H, T, S), one map per head, without dropout."""
        q, k, v = self.project(x, source)
        k, v = (t.repeat_interleave(self.n_head // self.n_kv_head, dim=1) for t in (k, v))
        causal = self.causal and source is None
        if mask is not None:
            _check_padding(mask, x if source is None else source, causal)
        if causal:
            mask = causal_mask(x.shape[1], x.device)
        return attention(q, k, v, mask)[1]

    def project(
        self, x: Tensor, source: Tensor | None = None, start: int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, T, hs), keys and values (B, n_kv_head, S, hs), normed and rotated.

        start: the position of the first token of x.
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
        """(B, T, C) → (B, H, T, hs): the features are split over the heads, never the time."""
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
        raise ValueError(f"attention wants x of shape (B, T, {n_embd}), not {tuple(x.shape)}")


def _check_padding(mask: Tensor, source: Tensor, causal: bool) -> None:
    if causal:
        raise ValueError(
            "a causal layer takes no mask for padding: at the end of a text nobody hears it"
        )
    B, S, _ = source.shape
    if mask.dtype != torch.bool or mask.shape != (B, 1, 1, S):
        raise ValueError(
            f"a mask for padding is bool, shape {(B, 1, 1, S)}, one entry for each key, not "
            f"{tuple(mask.shape)} of {mask.dtype}"
        )
    if not mask.any(dim=-1).all():
        raise ValueError("a row is all padding: it leaves its queries nothing to look at")


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
        if q.shape[2] > 1:  # one new token may look at all of them
            mask = q.new_ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(start)
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, enable_gqa=grouped)
