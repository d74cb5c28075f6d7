"""What a model that writes need not work out twice: keys and values of the tokens it has read."""

from torch import Tensor


class KVCache:
    """Keys and values (B, H, S, hs) that one attention layer has made for the S tokens read so far.

    Starts empty. A model with L layers needs L of them, `model.empty_cache()`, which belong to that
    model and to one batch of texts. len(cache): S.

    Pope et al. 2022, "Efficiently Scaling Transformer Inference". Taught in chapter 10.
    """

    def __init__(self) -> None:
        self._room: Tensor | None = None  # (2, B, H, more than S, hs): keys, values
        self._length = 0

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

        Raises ValueError for another batch than the one in the cache.
        """
        old, end = self._room, self._length + k.shape[2]
        if old is not None and len(k) != old.shape[1]:
            raise ValueError(
                f"the cache belongs to a batch of {old.shape[1]} texts, but {len(k)} were given: "
                "start each batch with an empty cache"
            )
        if old is None or end > old.shape[3]:
            # Twice the room that is needed: copying everything for each token would be slow.
            self._room = k.new_empty(2, *k.shape[:2], 2 * end, k.shape[3])
            if old is not None:
                self._room[:, :, :, : self._length] = old[:, :, :, : self._length]
        room = self._room
        assert room is not None
        room[0, :, :, self._length : end] = k
        room[1, :, :, self._length : end] = v
        self._length = end
        return room[0, :, :, :end], room[1, :, :, :end]

    def crop(self, length: int) -> None:
        """Forget all tokens but the first `length`. Raises ValueError if there are fewer."""
        if not 0 <= length <= self._length:
            raise ValueError(f"the cache holds {self._length} tokens, so not the first {length}")
        self._length = length
