"""What each way to use the past is worth, on the same plays, batches and steps.

The sentences of the chapter causal_averaging that this tests: the mean of the past alone is worse
than the bigram model; added to the logits of the present character, it is better; weights that
decay with the distance, or are learned, are better than the mean; token-dependent weights are
better than any one matrix; a table for each position is a little better than those; and what limits
all of these is that logits are only added up: a fixed window with one hidden layer (Bengio et al.
2003) of the same size is far ahead of them, and a hidden layer on the *mean* of the past gains far
less.

Tables of logits start at zero and are trained at the learning rate 0.05, models with a hidden layer
at 0.01. Changed: both learning rates × 0.3, and the number of steps × 3.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import causal_mask
from helpers.training import estimate_loss, train
from studies import Study
from studies._plays import plays

T = 16  # tokens in a row
BACK = torch.arange(T)[:, None] - torch.arange(T)  # distance from token i back to token j


def rows(weights: Tensor) -> Tensor:
    """Each row divided by its sum."""
    return weights / weights.sum(1, keepdim=True)


WEIGHTS = {
    "mean": rows(torch.ones(T, T).tril()),
    "decay 0.5": rows((0.5**BACK).tril()),
    "last 2": rows(torch.ones(T, T).tril() - torch.ones(T, T).tril(-2)),
}


def logit_table(V: int) -> nn.Embedding:
    """A table of logits that starts at zero: a uniform distribution."""
    table = nn.Embedding(V, V)
    nn.init.zeros_(table.weight)
    return table


class Averager(nn.Module):
    """Logits averaged with fixed, learned or token-dependent weights, with or without those of the
    present token."""

    def __init__(self, V: int, weights: str, present: bool = True):
        super().__init__()
        self.weights = weights
        self.logits = logit_table(V)
        self.bigram_logits = logit_table(V) if present else None
        if weights == "learned":
            self.scores = nn.Parameter(torch.zeros(T, T))
        elif weights == "token-dependent":
            self.scores = nn.Parameter(torch.zeros(V, T))

    def forward(self, ids: Tensor) -> Tensor:
        n = ids.shape[1]
        if self.weights in WEIGHTS:
            weights = WEIGHTS[self.weights][:n, :n]
        else:
            if self.weights == "learned":
                scores = self.scores[:n, :n]
            else:
                back = BACK[:n, :n].clamp(min=0).expand(len(ids), n, n)
                scores = self.scores[ids].gather(-1, back)
            weights = scores.masked_fill(~causal_mask(n), -torch.inf).softmax(-1)
        mixed = weights @ self.logits(ids)
        return mixed if self.bigram_logits is None else mixed + self.bigram_logits(ids)


class Tables(nn.Module):
    """A table of logits for each of the last positions; one alone is the bigram model."""

    def __init__(self, V: int, reach: int):
        super().__init__()
        self.tables = nn.ModuleList(logit_table(V) for _ in range(reach))

    def forward(self, ids: Tensor) -> Tensor:
        n = ids.shape[1]
        return sum(F.pad(t(ids), (0, 0, d, 0))[:, :n] for d, t in enumerate(self.tables))  # type: ignore[return-value]


class Window(nn.Module):
    """The vectors of the last characters side by side, one hidden layer, logits."""

    def __init__(self, V: int, reach: int, width: int = 16, hidden: int = 128):
        super().__init__()
        self.reach, self.vectors = reach, nn.Embedding(V, width)
        self.hidden, self.out = nn.Linear(reach * width, hidden), nn.Linear(hidden, V)

    def forward(self, ids: Tensor) -> Tensor:
        x = F.pad(self.vectors(ids), (0, 0, self.reach - 1, 0))  # zeros before the first
        x = x.unfold(1, self.reach, 1).flatten(2)
        return self.out(self.hidden(x).tanh())


class HiddenBag(nn.Module):
    """The present character's vector and the mean of the past, one hidden layer, logits."""

    def __init__(self, V: int, width: int = 16, hidden: int = 160):
        super().__init__()
        self.vectors = nn.Embedding(V, width)
        self.hidden, self.out = nn.Linear(2 * width, hidden), nn.Linear(hidden, V)

    def forward(self, ids: Tensor) -> Tensor:
        n, x = ids.shape[1], self.vectors(ids)
        return self.out(self.hidden(torch.cat([x, WEIGHTS["mean"][:n, :n] @ x], -1)).tanh())


MAKERS = {
    "mean of the past": lambda V: Averager(V, "mean", present=False),
    "bigram": lambda V: Tables(V, 1),
    "present + mean": lambda V: Averager(V, "mean"),
    "present + decay 0.5": lambda V: Averager(V, "decay 0.5"),
    "present + last 2": lambda V: Averager(V, "last 2"),
    "present + learned": lambda V: Averager(V, "learned"),
    "present + token-dependent": lambda V: Averager(V, "token-dependent"),
    "a table for each of 4 positions": lambda V: Tables(V, 4),
    "hidden layer on present + mean": lambda V: HiddenBag(V),
    "hidden layer on the last 4": lambda V: Window(V, 4),
}


RATE, WITH_HIDDEN_LAYER = 0.05, 0.01


def run(arm: str, seed: int, steps: int, rate_times: float) -> dict[str, float]:
    tokenizer, known, new = plays()
    rate = rate_times * (WITH_HIDDEN_LAYER if arm.startswith("hidden") else RATE)
    torch.manual_seed(seed)
    model = MAKERS[arm](tokenizer.vocab_size)
    train(model, known, steps=steps, block_size=T, batch_size=128,
          optimizer=torch.optim.Adam(model.parameters(), lr=rate),
          generator=torch.Generator().manual_seed(seed))  # fmt: skip
    parts = {"loss": new, "training text": known[: len(new)]}
    return {
        **{name: estimate_loss(model, part, block_size=T, batch_size=1024)
           for name, part in parts.items()},
        "parameters": sum(p.numel() for p in model.parameters()),
    }  # fmt: skip


study = Study(
    arms=list(MAKERS),
    settings={"steps": 400, "rate_times": 1.0},
    variations=[{"rate_times": 0.3}, {"steps": 1200}],
)
