"""One head learns to find a value by its key; averages that do not compare cannot.

A text is eight tokens, each a key and its value ("c5": c has 5), all keys different, and then a
question ("c?"). Measured is the accuracy on 4,000 fresh texts. Fixed weights are one learned matrix
for all texts. Token-dependent weights are a learned score for each position, computed from the
vector of the token that attends (the last average of the chapter causal_averaging). `most frequent`
is the accuracy of naming the value that occurs most often in the text, without looking at the
question: the best that counting can do. Two arms ablate a part of the head: its positions, and its
projections (q = k = v = x). One arm does not average at all: a hidden layer of 512 on the nine
vectors side by side. One head meets e3 in its texts, but no question that e3 answers; `e3 asked` is
the accuracy on just these questions. `start`: the standard deviation of the initial embeddings.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import Head, attention, causal_mask
from studies import Study

KEYS, VALUES, C = 8, 8, 32
TOKENS, T = KEYS * VALUES + KEYS, KEYS + 1
NEVER_ASKED = "one head, e3 never asked"


def questions(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """n texts (n, 9) and their answers (n,)."""
    keys = torch.rand(n, KEYS, generator=generator).argsort(1)
    values = torch.randint(VALUES, (n, KEYS), generator=generator)
    asked = torch.randint(KEYS, (n, 1), generator=generator)
    question = KEYS * VALUES + keys.gather(1, asked)
    return torch.cat([keys * VALUES + values, question], 1), values.gather(1, asked)[:, 0]


def answered_by_e3(ids: Tensor, answers: Tensor) -> Tensor:
    """Which of n texts ask for e3, (n,)."""
    return (ids[:, -1] == KEYS * VALUES + "abcdefgh".index("e")) & (answers == 3 - 1)


class Recall(nn.Module):
    """Embeddings of tokens and positions, a layer that mixes them, logits for the last token."""

    def __init__(self, arm: str, start: float):
        super().__init__()
        self.token, self.position_embedding = nn.Embedding(TOKENS, C), nn.Embedding(T, C)
        self.token.weight.data *= start
        self.position_embedding.weight.data *= start
        self.readout = nn.Linear(C, VALUES)
        self.arm, self.head, self.position_scores = arm, Head(C, C), nn.Linear(C, T)
        self.fixed = nn.Parameter(torch.zeros(T, T))
        if arm == "hidden layer on all nine":  # made last: the other arms draw the same numbers
            self.hidden, self.back = nn.Linear(T * C, 512), nn.Linear(512, C)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token(ids)
        if self.arm != "no positions":
            x = x + self.position_embedding.weight
        if self.arm in ("one head", "no positions", NEVER_ASKED):
            return self.readout(self.head(x)[:, -1])
        if self.arm == "no projections":
            return self.readout(attention(x, x, x, causal_mask(T))[0][:, -1])
        if self.arm == "hidden layer on all nine":
            return self.readout(self.back(self.hidden(x.flatten(1)).relu()))
        scores = self.position_scores(x) if self.arm == "token-dependent weights" else self.fixed
        weights = scores.masked_fill(~causal_mask(T), -math.inf).softmax(-1)
        return self.readout((weights @ self.head.value(x))[:, -1])


def run(arm: str, seed: int, *, steps: int, rate: float, start: float) -> dict[str, float]:
    torch.manual_seed(seed)
    model = Recall(arm, start)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for _ in range(steps):
        ids, answers = questions(128, generator)
        if arm == NEVER_ASKED:
            kept = ~answered_by_e3(ids, answers)
            ids, answers = ids[kept], answers[kept]
        loss = F.cross_entropy(model(ids), answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ids, answers = questions(4000, torch.Generator().manual_seed(1000 + seed))
    with torch.no_grad():
        right = (model(ids).argmax(-1) == answers).float()
    e3 = answered_by_e3(ids, answers)
    common = F.one_hot(ids[:, :KEYS] % VALUES, VALUES).sum(1).argmax(-1)
    return {"accuracy": right.mean().item(), "e3 asked": right[e3].mean().item(),
            "all others": right[~e3].mean().item(),
            "most frequent": (common == answers).float().mean().item()}  # fmt: skip


study = Study(
    arms=[
        "one head",
        "no positions",
        "no projections",
        "token-dependent weights",
        "fixed weights",
        "hidden layer on all nine",
        NEVER_ASKED,
    ],
    settings={"steps": 600, "rate": 0.003, "start": 0.3},
    variations=[{"start": 1.0}, {"rate": 0.01}, {"steps": 1800}],
)
