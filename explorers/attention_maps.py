"""What an attention explorer is given: checked with care, and packed for the browser."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorers.labels import sendable

Array = NDArray[np.float32]

# A weight travels as floor(60000 × weight) in 16 bits. The places where rounding to 3 (or 4)
# decimals turns over are whole steps of this grid, so no step straddles one: the decimals shown
# in the browser are those of the tensor.
STEPS = 60_000
CLOSE = 5e-3  # how far the sum of a row may be from 1: half precision rounds this much
LARGEST = 64_000_000  # weights in one explorer: 128 MB, more than a page should hold


def _array(values: Any, name: str) -> Array:
    """A tensor (on any device, with or without a gradient) or array as float32 (L, H, T, T)."""
    if hasattr(values, "detach"):
        values = values.detach().float().cpu()
    array = np.asarray(values, dtype=np.float32)
    if array.ndim not in (3, 4):
        raise ValueError(
            f"{name} has shape {array.shape}: give (layers, heads, T, T) or (heads, T, T); "
            f"a single (T, T) map is {name}[None]"
        )
    return array if array.ndim == 4 else array[None]


def _place(index: Any) -> str:
    return "layer {}, head {}, row {}".format(*index[:3])


def checked_tokens(tokens: Sequence[str]) -> list[str]:
    names = list(tokens)
    if not names:
        raise ValueError("there are no tokens: give at least one, and maps of shape (…, 1, 1)")
    for i, token in enumerate(names):
        if not isinstance(token, str):
            raise ValueError(
                f"tokens must be strings, but token {i} is {token!r}: decode each id by itself"
            )
    return [sendable(name) for name in names]


def checked_maps(maps: Any, T: int) -> Array:
    """The weights as (L, H, T, T), or a ValueError that says which mistake they look like."""
    array = _array(maps, "maps")
    if array.shape[2:] != (T, T):
        raise ValueError(
            f"maps has shape {array.shape}, but there are {T} tokens: "
            f"its last two dimensions must be {T} queries × {T} keys"
        )
    if 0 in array.shape:
        raise ValueError(f"maps has shape {array.shape}: there must be at least one layer and head")
    if array.size > LARGEST:
        raise ValueError(
            f"maps has {array.size:,} weights, more than the {LARGEST:,} that a browser takes "
            f"with ease: show fewer layers (maps[:2]) or a shorter text"
        )
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        raise ValueError(
            f"maps holds {array[tuple(bad[0])]} in {_place(bad[0])} ({len(bad)} such values): "
            f"softmax gives nan for a row in which every key is masked"
        )
    bad = np.argwhere(array < 0)
    if len(bad):
        raise ValueError(
            f"maps holds the negative weight {array[tuple(bad[0])]:.3g} in {_place(bad[0])}: "
            f"are these scores? Pass the weights, softmax(scores, dim=-1)"
        )
    sums = array.sum(-1)
    bad = np.argwhere(np.abs(sums - 1) > CLOSE)
    if len(bad):
        if np.allclose(array.sum(-2), 1, atol=CLOSE):
            cure = "its columns sum to 1: softmax ran over the queries; use softmax(scores, dim=-1)"
        elif sums.max() < 1 + CLOSE and not np.triu(array, 1).any():
            cure = "was the mask applied after softmax? Put -inf into the scores before it"
        else:
            cure = "pass the weights as softmax(scores, dim=-1) gives them, without dropout"
        raise ValueError(
            f"{_place(bad[0])} of maps sums to {sums[tuple(bad[0])]:.3f}, not 1: {cure}"
        )
    return array


def checked_scores(scores: Any, maps: Array) -> Array:
    """The scores, if they are what `maps` came from."""
    array = _array(scores, "scores")
    if array.shape != maps.shape:
        raise ValueError(
            f"scores has shape {array.shape}, but maps has {maps.shape}: they must agree"
        )
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        raise ValueError(
            f"scores holds {array[tuple(bad[0])]} in {_place(bad[0])}: "
            f"pass the scores from before the mask; the mask is seen in maps"
        )
    again = _softmax(np.where(maps > 0, array, -np.inf))
    off = np.abs(again - maps)
    if off.max() > 4 * CLOSE:
        worst = np.unravel_index(off.argmax(), off.shape)
        raise ValueError(
            f"scores and maps do not belong together: in {_place(worst)} softmax(scores) gives "
            f"{again[worst]:.3f} where maps has {maps[worst]:.3f}; pass the scores after scaling"
        )
    return array


def _softmax(scores: Array) -> Array:
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(grown / grown.sum(-1, keepdims=True))


def mask_of(maps: Array, scores: Array | None) -> NDArray[np.bool_]:
    """Where no head may look (T, T), to be told from where none happens to look."""
    future = np.triu(np.ones(maps.shape[2:], dtype=bool), 1)
    causal = future & (not maps[..., future].any())
    if scores is None:
        return causal
    nowhere = ~maps.any((0, 1))  # 0 in every head, though softmax by itself would not give 0
    return causal | (nowhere & (_softmax(scores) > 0).any((0, 1)))


def checked_mask(mask: Any, maps: Array) -> NDArray[np.bool_]:
    """Where no head may look (T, T), from a mask that is True where it may."""
    if hasattr(mask, "detach"):
        mask = mask.detach().cpu()
    may, size = np.asarray(mask), maps.shape[-1]
    if may.shape != (size, size) or may.dtype != bool:
        raise ValueError(
            f"mask has shape {may.shape} and type {may.dtype}: give {size} queries × {size} keys "
            f"of bool, True where a query may attend"
        )
    bad = np.argwhere((maps > 0) & ~may)
    if len(bad):
        raise ValueError(
            f"mask is False where maps has the weight {maps[tuple(bad[0])]:.3g}, in "
            f"{_place(bad[0])}: it must be True where a query may attend"
        )
    return ~may


def packed(maps: Array) -> bytes:
    """The weights in 16 bits each, right to the 4 decimals that are shown at most."""
    return np.floor(maps.astype(np.float64) * STEPS).astype("<u2").tobytes()
