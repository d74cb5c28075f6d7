"""One head learns to find a value by its key; weights that do not compare cannot.

A text is eight tokens, each a key and its value ("c5": c has 5), all keys different, and then a
question ("c?"). What is counted is the share of 4,000 fresh questions that are answered rightly.
Fixed weights are one learned matrix for all texts; weights by listener are a learned score for each
place, from the vector of the token that listens (the chapter causal_averaging's last model). `most
frequent` is the share that is reached by naming the value that occurs most often in the text,
without looking at the question: the ceiling of whoever cannot find. Two arms take something from
the head: its places, and its projections (q = k = v = x). One does not average at all: a hidden
layer of 512 on the nine vectors side by side. `start`: the standard deviation of the first tables.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import Head, attention, causal_mask
from studies import Study

KEYS, VALUES, C = 8, 8, 32
TOKENS, T = KEYS * VALUES + KEYS, KEYS + 1


def questions(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """n texts (n, 9) and their answers (n,)."""
    keys = torch.rand(n, KEYS, generator=generator).argsort(1)
    values = torch.randint(VALUES, (n, KEYS), generator=generator)
    asked = torch.randint(KEYS, (n, 1), generator=generator)
    question = KEYS * VALUES + keys.gather(1, asked)
    return torch.cat([keys * VALUES + values, question], 1), values.gather(1, asked)[:, 0]


class Recall(nn.Module):
    """Tokens and places, something that brings home the past, and votes of the last token."""

    def __init__(self, arm: str, start: float):
        super().__init__()
        self.token, self.position_embedding = nn.Embedding(TOKENS, C), nn.Embedding(T, C)
        self.token.weight.data *= start
        self.position_embedding.weight.data *= start
        self.votes = nn.Linear(C, VALUES)
        self.arm, self.head, self.places = arm, Head(C, C), nn.Linear(C, T)
        self.fixed = nn.Parameter(torch.zeros(T, T))
        if arm == "hidden layer on all nine":  # made last: the other arms draw the same numbers
            self.hidden, self.back = nn.Linear(T * C, 512), nn.Linear(512, C)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token(ids)
        if self.arm != "no places":
            x = x + self.position_embedding.weight
        if self.arm in ("one head", "no places"):
            return self.votes(self.head(x)[:, -1])
        if self.arm == "no projections":
            return self.votes(attention(x, x, x, causal_mask(T))[0][:, -1])
        if self.arm == "hidden layer on all nine":
            return self.votes(self.back(self.hidden(x.flatten(1)).relu()))
        scores = self.places(x) if self.arm == "weights by listener" else self.fixed
        weights = scores.masked_fill(~causal_mask(T), -math.inf).softmax(-1)
        return self.votes((weights @ self.head.value(x))[:, -1])


def run(arm: str, seed: int, *, steps: int, rate: float, start: float) -> dict[str, float]:
    torch.manual_seed(seed)
    model = Recall(arm, start)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for _ in range(steps):
        ids, answers = questions(128, generator)
        loss = F.cross_entropy(model(ids), answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ids, answers = questions(4000, torch.Generator().manual_seed(1000 + seed))
    with torch.no_grad():
        right = (model(ids).argmax(-1) == answers).float().mean()
    common = F.one_hot(ids[:, :KEYS] % VALUES, VALUES).sum(1).argmax(-1)
    return {"accuracy": right.item(),
            "most frequent": (common == answers).float().mean().item()}  # fmt: skip


study = Study(
    arms=[
        "one head",
        "no places",
        "no projections",
        "weights by listener",
        "fixed weights",
        "hidden layer on all nine",
    ],
    settings={"steps": 600, "rate": 0.003, "start": 0.3},
    variations=[{"start": 1.0}, {"rate": 0.01}, {"steps": 1800}],
)
