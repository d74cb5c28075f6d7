"""Which scheme of positions learns best, and does the initialisation of a learned table decide it?

One layer of causal attention on Shakespeare (C = 64, four heads, 32 characters), trained alike:
without positions, with a learned table whose initial numbers have a standard deviation of 1
(PyTorch's own) or of 0.02 (as most reimplementations of GPT-2 have it), with sinusoidal vectors,
with rotary queries and keys. loss: on plays that were held out.
"""

import torch
from torch import Tensor, nn

from helpers.attention import MultiHeadAttention
from helpers.positions import LearnedPosition, Rotary, SinusoidalPosition
from helpers.training import estimate_loss, train
from studies import Study
from studies._plays import plays

T, C, H, HELD_OUT = 32, 64, 4, 64_001


class CharModel(nn.Module):
    def __init__(self, n_symbols: int, position: nn.Module | None, rotary: Rotary | None) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_symbols, C)
        self.position = position or nn.Identity()
        self.layer = MultiHeadAttention(C, H, rotary=rotary)
        self.logits = nn.Linear(C, n_symbols)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.position(self.embedding(ids))
        return self.logits(x + self.layer(x))


def untrained(arm: str, seed: int) -> CharModel:
    """All arms have the same initial weights, except for the table of positions."""
    torch.manual_seed(seed)
    rotary = Rotary(C // H) if arm == "rotary" else None
    model = CharModel(
        plays(HELD_OUT)[0].vocab_size,
        SinusoidalPosition(C) if arm == "sinusoidal" else None,
        rotary,
    )
    if arm.startswith("learned"):
        model.position = LearnedPosition(T, C)
        nn.init.normal_(model.position.weight, std=float(arm.split()[-1]))
    return model


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    _, train_ids, held_out = plays(HELD_OUT)
    model = untrained(arm, seed)
    train(
        model, train_ids, steps=steps, block_size=T, batch_size=32,
        optimizer=torch.optim.Adam(model.parameters(), lr=rate),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {"loss": estimate_loss(model, held_out, block_size=T, batch_size=500)}


study = Study(
    arms=["none", "learned, std 1", "learned, std 0.02", "sinusoidal", "rotary"],
    settings={"steps": 300, "rate": 0.01},
    variations=[{"steps": 1000}, {"rate": 0.003}, {"steps": 1000, "rate": 0.003}],
)
