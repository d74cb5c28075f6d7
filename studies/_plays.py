"""What several studies share: the plays as ids, and the model of letters of the chapters
queries_keys_values to multi_head."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from helpers import data
from helpers.text import CharTokenizer


@cache
def plays(held_out: int | None = None) -> tuple[CharTokenizer, Tensor, Tensor]:
    """The tokenizer, the ids of the plays to train on, and those of the validation plays, or of
    their first `held_out` characters."""
    tokenizer = CharTokenizer.from_text(data.shakespeare())
    texts = data.shakespeare("train"), data.shakespeare("validation")[:held_out]
    ids, held_out_ids = (torch.tensor(tokenizer.encode(text)) for text in texts)
    return tokenizer, ids, held_out_ids


class LetterModel(nn.Module):
    """Logits of a bigram table plus logits from what a layer mixes from at most T characters."""

    layer: Any  # a head, many of them, or a rival

    def __init__(self, V: int, layer: Callable[[], nn.Module], T: int, C: int):
        super().__init__()
        self.bigram_logits = nn.Embedding(V, V)
        nn.init.zeros_(self.bigram_logits.weight)
        self.token_embedding, self.position_embedding = nn.Embedding(V, C), nn.Embedding(T, C)
        self.layer = layer()
        self.context_logits = nn.Linear(C, V)

    def tokens(self, ids: Tensor) -> Tensor:
        return self.token_embedding(ids) + self.position_embedding.weight[: ids.shape[1]]

    def forward(self, ids: Tensor) -> Tensor:
        return self.bigram_logits(ids) + self.context_logits(self.layer(self.tokens(ids)))
