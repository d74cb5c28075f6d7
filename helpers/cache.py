"""What a model that writes need not work out twice: keys and values of the tokens it has read."""

import torch
from torch import Tensor


class KVCache:
    """Keys and values (B, H, S, hs) that one attention layer has made for the S tokens read so far.

    Starts empty. A model with L layers needs L of them, `model.empty_cache()`, which belong to that
    model and to one batch of texts. len(cache): S.

    Pope et al. 2022, "Efficiently Scaling Transformer Inference". Taught in chapter 10.
    """

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.keys is None else self.keys.shape[2]

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values (B, H, T, hs) of T new tokens; returns those of all tokens.

        Raises ValueError for another batch than the one in the cache.
        """
        if self.keys is None or self.values is None:
            self.keys, self.values = k, v
        elif len(k) != len(self.keys):
            raise ValueError(
                f"the cache belongs to a batch of {len(self.keys)} texts, but {len(k)} were given: "
                "start each batch with an empty cache"
            )
        else:
            self.keys = torch.cat((self.keys, k), dim=2)
            self.values = torch.cat((self.values, v), dim=2)
        return self.keys, self.values
