"""What learned queries, keys and values are worth on the plays.

The model of the chapter (the logits of a bigram table, plus logits from what attention mixes from
`block` characters) with a head, with attention without projections (q = k = v = x), with one
learned matrix of weights for all texts, and with token-dependent weights: a learned score for each
distance, computed from the vector of the character that attends (the best average of the chapter
causal_averaging). A batch has 2,048 characters. `start` is what the embeddings of characters and
positions are multiplied by before the first step: large random rows match nothing but themselves.
"""

import math

import torch
from torch import Tensor, nn

from helpers.attention import Head, attention, causal_mask
from helpers.training import estimate_loss, train
from studies import Study
from studies._plays import LetterModel, plays

C = 32


class OneMatrix(nn.Module):
    def __init__(self, T: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(T, T))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        scores = self.scores[:n, :n].masked_fill(~causal_mask(n), -math.inf)
        return scores.softmax(-1) @ x


class TokenWeights(nn.Module):
    def __init__(self, T: int) -> None:
        super().__init__()
        self.scores = nn.Linear(C, T)

    def forward(self, x: Tensor) -> Tensor:
        place = torch.arange(x.shape[1])
        distance = (place[:, None] - place).clamp(min=0).expand(len(x), -1, -1)
        scores = self.scores(x).gather(-1, distance)
        return scores.masked_fill(~causal_mask(len(place)), -math.inf).softmax(-1) @ x


class Mirror(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return attention(x, x, x, causal_mask(x.shape[1]))[0]


def run(
    arm: str, seed: int, *, steps: int, rate: float, start: float, block: int
) -> dict[str, float]:
    tokenizer, ids, held_out = plays()
    torch.manual_seed(seed)
    model = LetterModel(tokenizer.vocab_size, nn.Identity, block, C)  # the same tables in all arms
    torch.manual_seed(100 + seed)
    model.layer = {
        "a head": lambda: Head(C, C),
        "one matrix": lambda: OneMatrix(block),
        "token-dependent weights": lambda: TokenWeights(block),
        "no projections": Mirror,
    }[arm]()
    model.token_embedding.weight.data *= start
    model.position_embedding.weight.data *= start
    train(
        model, ids, steps=steps, block_size=block, batch_size=2048 // block,
        optimizer=torch.optim.Adam(model.parameters(), lr=rate),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {"loss": estimate_loss(model, held_out, block_size=block, batch_size=256)}


study = Study(
    arms=["a head", "token-dependent weights", "one matrix", "no projections"],
    settings={"steps": 400, "rate": 0.01, "start": 0.3, "block": 16},
    variations=[{"start": 1.0}, {"rate": 0.003}, {"steps": 1200}, {"block": 64}],
)
