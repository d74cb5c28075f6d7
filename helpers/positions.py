"""Positions of tokens: learned and sinusoidal vectors, rotary queries and keys.

Shapes: B sequences, H heads, T tokens, C = n_embd, hs = head size. `start` is the position of the
first token: a number, or (B,) for texts with padding at the left, where it may be below 0.
"""

import torch
from torch import Tensor, nn


def positions_from(start: int | Tensor, T: int) -> tuple[slice | Tensor, int]:
    """The positions of T tokens as an index of a table, and the length that the table needs.

    Tokens before position 0 are padding, and get position 0. Explained in: kv_cache.
    """
    if isinstance(start, Tensor):
        positions = start[:, None] + torch.arange(T, device=start.device)  # (B, T)
        return positions.clamp(min=0), max(int(start.max()) + T, 1)
    if start < 0:  # a slice would count from the end
        raise ValueError(f"start is the position of the first token, 0 or more, not {start}")
    return slice(start, start + T), start + T


class LearnedPosition(nn.Embedding):
    """Adds a trained vector for each position: (B, T, C) → (B, T, C). Taught in: position."""

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
        return x + self.weight[positions]  # (B, T, C) + (T, C), or (B, T, C)


def sinusoidal(T: int, n_embd: int, base: float = 10_000.0) -> Tensor:
    """Sines and cosines of p · θᵢ side by side, θᵢ = base^(−2i / C): (T, C).

    Vaswani et al. 2017, section 3.5. Taught in: position.
    """
    angles = rotary_angles(T, n_embd, base)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)


class SinusoidalPosition(nn.Module):
    """Adds the vectors of `sinusoidal`, for any T: (B, T, C) → (B, T, C). Taught in: position."""

    def __init__(self, n_embd: int, base: float = 10_000.0):
        super().__init__()
        self.n_embd, self.base = n_embd, base

    def forward(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        positions, end = positions_from(start, x.shape[-2])
        return x + sinusoidal(end, self.n_embd, self.base).to(x)[positions]


def rotary_angles(T: int, head_size: int, base: float = 10_000.0) -> Tensor:
    """The angle p · θᵢ of each position p and pair i, θᵢ = base^(−2i / hs): (T, hs / 2).

    Taught in: position.
    """
    if head_size % 2:
        raise ValueError(f"features are rotated in pairs: {head_size} is not an even number")
    theta = base ** (-torch.arange(0, head_size, 2) / head_size)
    return torch.arange(T)[:, None] * theta  # (T, 1) · (hs / 2,)


class Rotary(nn.Module):
    """Rotates each pair (i, i + hs/2) of a query's or key's features by position · frequency.

    (B, H, T, hs) → (B, H, T, hs). The pairs are those of Llama and GPT-NeoX; `half_split` reorders
    weights whose pairs are neighbours. Su et al. 2021, "RoFormer". Taught in: position.
    """

    def __init__(self, head_size: int, base: float = 10_000.0):
        super().__init__()
        self.head_size, self.base = head_size, base
        rotary_angles(0, head_size)  # an odd size is refused here
        self._cos = self._sin = torch.empty(0, device="cpu")

    def angles(self, T: int) -> Tensor:
        """The angles of positions 0 to T − 1, (T, hs / 2); subclasses may replace it."""
        return rotary_angles(T, self.head_size, self.base)

    def forward(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        positions, end = positions_from(start, x.shape[-2])
        if len(self._cos) < end or self._cos.device != x.device:
            # Computed in full precision, for twice as many positions, and kept where x is.
            with torch.inference_mode(False):  # it may be needed in training, too
                angles = self.angles(max(end, 2 * len(self._cos))).to(x.device)
                signed = torch.cat((-angles.sin(), angles.sin()), -1)
                self._cos, self._sin = angles.cos().repeat(1, 2), signed
        cos, sin = self._cos[positions].to(x), self._sin[positions].to(x)  # (T, hs)
        if isinstance(positions, Tensor):  # (B, T, hs), the same for each head
            cos, sin = cos[:, None], sin[:, None]
        # With x = (first, second): (first · cos − second · sin, second · cos + first · sin).
        return x * cos + x.roll(self.head_size // 2, dims=-1) * sin


def half_split(weight: Tensor, n_head: int) -> Tensor:
    """Reorder a query or key projection from interleaved pairs (2i, 2i + 1) to (i, i + hs/2).

    weight: (H · hs, C), or a bias (H · hs,). Taught in: position.
    """
    pairs = weight.unflatten(0, (n_head, -1, 2))  # head, pair, member
    return pairs.transpose(1, 2).flatten(0, 2)
