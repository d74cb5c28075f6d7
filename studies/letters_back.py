"""One head learns to name the letters 1, 2 … `letters` positions back badly, or not at all; as many
heads of a fraction of its size learn it at once. A hidden layer behind the one head helps with two
letters, and much less with eight.

A text is 16 random letters out of 20. mean and lowest: the accuracy over all questions and on the
worst of them. Then one head after the other is ablated. own: the accuracy on the question that this
hurts most, for the head where it hurts least; others: the lowest accuracy on any other question;
jobs: how many different questions are hurt most.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import Head
from studies import Study

LETTERS, T, C = 20, 16, 32


class Recite(nn.Module):
    def __init__(self, arm: str, letters: int) -> None:
        super().__init__()
        self.letters, n_head = letters, letters if arm == "a head for each letter" else 1
        self.token, self.position = nn.Embedding(LETTERS, C), nn.Embedding(T, C)
        self.heads = nn.ModuleList(Head(C, C // n_head) for _ in range(n_head))
        self.readout: nn.Module = nn.Linear(C, letters * LETTERS)
        if arm == "one head, hidden layer":
            hidden = nn.Linear(C, 4 * C), nn.ReLU(), nn.Linear(4 * C, letters * LETTERS)
            self.readout = nn.Sequential(*hidden)

    def forward(self, ids: Tensor) -> Tensor:  # (B, T - letters, letters, LETTERS)
        x = self.token(ids) + self.position.weight
        logits = self.readout(torch.cat([head(x) for head in self.heads], dim=-1))
        return logits[:, self.letters :].unflatten(-1, (self.letters, LETTERS))


def letters_before(ids: Tensor, letters: int) -> Tensor:
    """The letters 1, 2 … positions back, for every token that has that many before it."""
    return ids.unfold(1, letters, 1)[:, :-1].flip(-1)


@torch.no_grad()
def accuracies(model: Recite) -> list[float]:
    ids = torch.randint(LETTERS, (1000, T), generator=torch.Generator().manual_seed(1))
    correct = model(ids).argmax(-1) == letters_before(ids, model.letters)
    return correct.float().mean((0, 1)).tolist()


def run(arm: str, seed: int, *, letters: int, steps: int, rate: float) -> dict[str, float]:
    torch.manual_seed(seed)
    model, generator = Recite(arm, letters), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for _ in range(steps):
        ids = torch.randint(LETTERS, (64, T), generator=generator)
        logits = model(ids)
        loss = F.cross_entropy(logits.flatten(0, 2), letters_before(ids, letters).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    whole, own, others, jobs = accuracies(model), [], [1.0], set()
    for values in [p for name, p in model.named_parameters() if name.endswith("value.weight")]:
        kept = values.data.clone()
        values.data.zero_()
        left = accuracies(model)
        values.data.copy_(kept)
        jobs.add(left.index(min(left)))
        own.append(min(left))
        others += sorted(left)[1:]
    measures = {"mean": sum(whole) / letters, "lowest": min(whole)}
    return measures | {"own": max(own), "others": min(others), "jobs": len(jobs)}


study = Study(
    arms=["one head", "one head, hidden layer", "a head for each letter"],
    settings={"letters": 8, "steps": 400, "rate": 0.01},
    variations=[{"letters": 2}, {"letters": 4}, {"rate": 0.003}, {"steps": 1600}],
)
