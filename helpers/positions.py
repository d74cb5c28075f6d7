"""Positions of tokens: learned and sinusoidal vectors, rotary queries and keys.

Shapes: B sequences, H heads, T tokens, C = n_embd, hs = head size.
"""

import torch
from torch import Tensor, nn


class LearnedPosition(nn.Embedding):
    """Learned positions: a trained vector for every position, added to the token's embedding.

    Args:
        block_size: number of positions.
        n_embd: C.

    Called with x (B, T, C) and the position of its first token (see `positions_from`), returns x
    plus the vectors of its positions. Raises ValueError for a position that the table does not
    hold.

    Taught in: position.
    """

    def __init__(self, block_size: int, n_embd: int):
        super().__init__(block_size, n_embd)

    def forward(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        positions, end = positions_from(start, x.shape[-2])
        block_size = self.num_embeddings
        if end > block_size:
            raise ValueError(
                f"{end} tokens, but the table has positions 0 to {block_size - 1} only: "
                f"crop the input to its last {block_size} tokens or train with a larger block_size"
            )
        return x + self.weight[positions]


def sinusoidal(T: int, n_embd: int, base: float = 10_000.0) -> Tensor:
    """Return fixed position vectors of sines and cosines, (T, n_embd).

    Args:
        T: number of positions.
        n_embd: C, even.
        base: of the frequencies.

    Entry (p, 2i) is sin(p · θᵢ), entry (p, 2i + 1) is cos(p · θᵢ), where θᵢ = base^(−2i / n_embd).

    Raises ValueError for an odd n_embd and for a base that is not above 0.

    Vaswani et al. 2017, section 3.5. Taught in: position.
    """
    angles = rotary_angles(T, n_embd, base)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)


class SinusoidalPosition(nn.Module):
    """Sinusoidal positions: adds the vectors of `sinusoidal` to the embeddings.

    Args:
        n_embd: C, even.
        base: of the frequencies.

    Called with x (B, T, C) and the position of its first token (see `positions_from`), returns
    (B, T, C), for any T. Raises ValueError for x of another width. Taught in: position.
    """

    def __init__(self, n_embd: int, base: float = 10_000.0):
        super().__init__()
        self.n_embd, self.base = n_embd, base

    def forward(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        if x.shape[-1] != self.n_embd:  # a width of 1 would be stretched without a word
            raise ValueError(
                f"SinusoidalPosition({self.n_embd}) cannot be added to vectors of size "
                f"{x.shape[-1]}"
            )
        positions, end = positions_from(start, x.shape[-2])
        return x + sinusoidal(end, self.n_embd, self.base).to(x)[positions]

    def extra_repr(self) -> str:
        return f"{self.n_embd}, base={self.base:g}"


def rotary_angles(T: int, head_size: int, base: float = 10_000.0) -> Tensor:
    """Return the angle p · θᵢ in radians for each position p and pair i, (T, head_size / 2).

    Args:
        T: number of positions.
        head_size: hs, even.
        base: of the frequencies θᵢ = base^(−2i / hs).

    Raises ValueError for an odd head_size and for a base that is not above 0.
    Taught in: position.
    """
    if head_size < 2 or head_size % 2:
        raise ValueError(f"features are rotated in pairs: {head_size} is not an even number")
    if not base > 0:
        raise ValueError(f"base is raised to a power and has to be above 0, but is {base}")
    theta = base ** (-torch.arange(0, head_size, 2) / head_size)
    return torch.arange(T)[:, None] * theta


class Rotary(nn.Module):
    """Rotary positions: rotates each pair of features of a query or key by position · frequency.

    Args:
        head_size: hs, even.
        base: of the frequencies θᵢ = base^(−2i / hs).

    The pairs are (i, i + hs/2), the half-split layout of Llama and GPT-NeoX; `half_split` converts
    weights from the interleaved layout.
    Called with x (B, H, T, hs) and the position of its first token (see `positions_from`), returns
    the same shape. Raises ValueError for vectors of another size, an odd head_size, or a start
    below 0.

    Su et al. 2021, "RoFormer". Taught in: position.
    """

    def __init__(self, head_size: int, base: float = 10_000.0):
        super().__init__()
        self.head_size, self.base = head_size, base
        rotary_angles(0, head_size, base)  # checks both
        self._cos = self._sin = torch.empty(0, device="cpu")

    def angles(self, T: int) -> Tensor:
        """Return the angles of positions 0 to T − 1, (T, hs / 2); subclasses may replace it."""
        return rotary_angles(T, self.head_size, self.base)

    def forward(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        if x.shape[-1] != self.head_size:
            raise ValueError(f"Rotary({self.head_size}) cannot turn vectors of size {x.shape[-1]}")
        positions, end = positions_from(start, x.shape[-2])
        if len(self._cos) < end or self._cos.device != x.device:
            # Computed in full precision, for twice as many positions, and kept where x is.
            with torch.inference_mode(False):  # it may be needed in training, too
                angles = self.angles(max(end, 2 * len(self._cos))).to(x.device)
                signed = torch.cat((-angles.sin(), angles.sin()), -1)
                self._cos, self._sin = angles.cos().repeat(1, 2), signed
        cos, sin = self._cos[positions].to(x), self._sin[positions].to(x)
        if isinstance(positions, Tensor):  # (B, T, hs), the same for each head
            cos, sin = cos[:, None], sin[:, None]
        # With x = (first, second): (first · cos − second · sin, second · cos + first · sin).
        return x * cos + x.roll(self.head_size // 2, dims=-1) * sin

    def extra_repr(self) -> str:
        return f"{self.head_size}, base={self.base:g}"


def positions_from(start: int | Tensor, T: int) -> tuple[slice | Tensor, int]:
    """Return the positions of T tokens in a row, as an index of a table, and the length it needs.

    Args:
        start: the position of the first token: a number for all sequences, or (B,), int64, one for
            each. Only in the latter may it be below 0: tokens before position 0 are padding, and
            get position 0.
        T: number of tokens.

    Raises ValueError for a number below 0. Explained in: kv_cache.
    """
    if isinstance(start, Tensor):
        positions = start[:, None] + torch.arange(T, device=start.device)
        return positions.clamp(min=0), max(int(start.max()) + T, 1)
    if start < 0:  # a slice would count from the end
        raise ValueError(f"start is the position of the first token, 0 or more, not {start}")
    return slice(start, start + T), start + T


def half_split(weight: Tensor, n_head: int) -> Tensor:
    """Reorder a query or key projection from interleaved pairs to two halves.

    Args:
        weight: (H · hs, C), or a bias (H · hs,), in which rows 2i and 2i + 1 of a head are a pair.
        n_head: H.

    Returns the rows in the order that `Rotary` expects: i and i + hs/2 are a pair.
    Raises ValueError if the rows cannot be split into n_head heads of even size.
    Taught in: position.
    """
    if weight.shape[0] % (2 * n_head):
        raise ValueError(f"{weight.shape[0]} rows are not {n_head} heads of an even size")
    pairs = weight.unflatten(0, (n_head, -1, 2))  # head, pair, member
    return pairs.transpose(1, 2).flatten(0, 2)
