"""One head can learn to name the letters one and two positions back, but slowly; two heads of half
the size learn it at once. Weights that are the same for every text do not.

A text is 12 random letters out of 20. steps: when both questions were first answered at 95% (the
length of the run, if they never were); first: the accuracy for the harder question after 400
steps; last: after the whole run.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import Head, causal_mask
from studies import Study

LETTERS, T, C = 20, 12, 32


class Fixed(nn.Module):
    """A learned row of weights for each position, which does not depend on the letters."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(T, T))
        self.value = nn.Linear(C, C, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.scores.masked_fill(~causal_mask(T), -torch.inf).softmax(-1)
        return weights @ self.value(x)


class HeadList(nn.Module):
    def __init__(self, n_head: int) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Head(C, C // n_head) for _ in range(n_head))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([head(x) for head in self.heads], dim=-1)


class Recall(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.token_embedding, self.position_embedding = nn.Embedding(LETTERS, C), nn.Embedding(T, C)
        self.layer = layer
        self.previous, self.second = nn.Linear(C, LETTERS), nn.Linear(C, LETTERS)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        x = self.layer(self.token_embedding(ids) + self.position_embedding.weight)
        return self.previous(x)[:, 2:], self.second(x)[:, 2:]


LAYERS = {
    "fixed weights": Fixed,
    "one head": lambda: Head(C, C),
    "two heads": lambda: HeadList(2),
}


@torch.no_grad()
def lower_accuracy(model: nn.Module, texts: int) -> float:
    ids = torch.randint(LETTERS, (texts, T), generator=torch.Generator().manual_seed(1))
    pairs = zip(model(ids), (ids[:, 1:-1], ids[:, :-2]), strict=True)
    return min((logits.argmax(-1) == y).float().mean().item() for logits, y in pairs)


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    torch.manual_seed(seed)
    model, generator = Recall(LAYERS[arm]()), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, fused=True)
    reached, first = steps, 0.0
    for step in range(1, steps + 1):
        ids = torch.randint(LETTERS, (64, T), generator=generator)
        previous, second = model(ids)
        loss = F.cross_entropy(previous.flatten(0, 1), ids[:, 1:-1].flatten())
        loss = loss + F.cross_entropy(second.flatten(0, 1), ids[:, :-2].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 and reached == steps and lower_accuracy(model, 300) >= 0.95:
            reached = step
        if step == 400:
            first = lower_accuracy(model, 1000)
    return {"steps": reached, "first": first, "last": lower_accuracy(model, 1000)}


study = Study(
    arms=list(LAYERS),
    settings={"steps": 2000, "rate": 0.01},
    variations=[{"rate": 0.003}],
    seeds=(0, 1, 2, 3),
)
