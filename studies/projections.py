"""What learned queries, keys and values are worth on the plays.

The model of the chapter (the logits of a bigram table, plus logits from what attention mixes from
16 characters) with attention without projections (q = k = v = x), with one learned matrix of
weights for all texts, and with a head. `start` is what the embeddings of characters and positions
are multiplied by before the first step: large random rows match nothing but themselves.
"""

import math

import torch
from torch import Tensor, nn

from helpers.attention import Head, attention, causal_mask
from helpers.training import estimate_loss, train
from studies import Study
from studies._plays import LetterModel, plays

T, C = 16, 32


class OneMatrix(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(T, T))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        scores = self.scores[:n, :n].masked_fill(~causal_mask(n), -math.inf)
        return scores.softmax(-1) @ x


class Mirror(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return attention(x, x, x, causal_mask(x.shape[1]))[0]


def run(arm: str, seed: int, *, steps: int, rate: float, start: float) -> dict[str, float]:
    tokenizer, ids, held_out = plays()
    torch.manual_seed(seed)
    model = LetterModel(tokenizer.vocab_size, nn.Identity, T, C)  # the same tables in all arms
    torch.manual_seed(100 + seed)
    model.layer = {
        "a head": lambda: Head(C, C),
        "one matrix": OneMatrix,
        "no projections": Mirror,
    }[arm]()
    model.token_embedding.weight.data *= start
    model.position_embedding.weight.data *= start
    train(
        model, ids, steps=steps, block_size=T, batch_size=128,
       
        optimizer=torch.optim.Adam(model.parameters(), lr=rate),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {"loss": estimate_loss(model, held_out, block_size=T, batch_size=1024)}


study = Study(
    arms=["a head", "one matrix", "no projections"],
    settings={"steps": 400, "rate": 0.01, "start": 0.3},
    variations=[{"start": 1.0}, {"start": 0.1}, {"rate": 0.003}, {"steps": 1200}],
)
