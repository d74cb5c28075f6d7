"""Which scheme of positions learns best, what does a model know without any, and does depth help?

Trained alike on Shakespeare (C = 64, four heads, 32 characters): without positions, with a learned
table whose initial numbers have a standard deviation of 1 (PyTorch's own) or of 0.02 (as most
reimplementations of GPT-2 have it), with sinusoidal vectors, with rotary queries and keys. The
model is one layer of causal attention, four of them, or four blocks with norms and feed-forward
networks. loss: on plays that were held out. last: the loss of the last character of 32; shuffled:
the same after characters 0 to 30 were shuffled. probe: by how many positions a linear map from a
token's last vector misses where the token is, in other texts; always naming the middle misses by 8.
"""

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import MultiHeadAttention
from helpers.gpt import Block, FeedForward
from helpers.positions import LearnedPosition, Rotary, SinusoidalPosition
from helpers.training import estimate_loss, train
from studies import Study
from studies._plays import plays

T, C, H, HELD_OUT = 32, 64, 4, 64_001


class CharModel(nn.Module):
    def __init__(self, n_symbols: int, rotary: bool, model: str):
        super().__init__()
        self.token = nn.Embedding(n_symbols, C)
        self.position: nn.Module = nn.Identity()
        self.layers = nn.ModuleList()
        for _ in range(1 if model == "one layer" else 4):
            layer = MultiHeadAttention(C, H, rotary=Rotary(C // H) if rotary else None)
            self.layers.append(Block(layer, FeedForward(C)) if model == "four blocks" else layer)
        self.norm = nn.LayerNorm(C) if model == "four blocks" else nn.Identity()
        self.lm_head = nn.Linear(C, n_symbols)

    def stream(self, ids: Tensor) -> Tensor:
        x = self.position(self.token(ids))
        for layer in self.layers:
            x = layer(x) if isinstance(layer, Block) else x + layer(x)
        return self.norm(x)

    def forward(self, ids: Tensor) -> Tensor:
        return self.lm_head(self.stream(ids))


def untrained(arm: str, seed: int, model: str) -> CharModel:
    """All arms have the same initial weights, except for the table of positions."""
    torch.manual_seed(seed)
    made = CharModel(plays(HELD_OUT)[0].vocab_size, arm.startswith("rotary"), model)
    if arm == "sinusoidal":
        made.position = SinusoidalPosition(C)
    elif arm.startswith("learned"):
        made.position = table = LearnedPosition(T, C)
        nn.init.normal_(table.weight, std=float(arm.split()[-1]))
    return made


def set_base(model: CharModel, base: float) -> None:
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.rotary = Rotary(C // H, base)


@cache
def trained(arm: str, seed: int, model: str, steps: int, rate: float) -> CharModel:
    made = untrained(arm, seed, model)
    if arm == "rotary, large base":
        set_base(made, 1e6)
    train(
        made, plays(HELD_OUT)[1], steps=steps, block_size=T, batch_size=32,
        optimizer=torch.optim.Adam(made.parameters(), lr=rate),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return made


@torch.no_grad()
def order_and_place(model: CharModel) -> dict[str, float]:
    """What the last prediction loses without order, and how well a token's position can be read."""
    rows = plays(HELD_OUT)[2][:-1].view(-1, T)[:, :T]
    rows, y = rows[:-1], rows[1:, 0]
    past = torch.rand(len(rows), T - 1, generator=torch.Generator().manual_seed(0)).argsort(1)
    shuffled = torch.cat([rows.gather(1, past), rows[:, -1:]], 1)
    losses = [F.cross_entropy(model(x)[:, -1], y).item() for x in (rows, shuffled)]
    x = torch.cat([(stream := model.stream(rows)), torch.ones(*stream.shape[:2], 1)], -1)
    here, half = torch.arange(T).expand(len(rows), -1).float(), len(rows) // 2
    weights = torch.linalg.lstsq(x[:half].flatten(0, 1), here[:half].reshape(-1, 1)).solution
    error = (x[half:] @ weights)[..., 0] - here[half:]
    return {"last": losses[0], "shuffled": losses[1], "probe": error.abs().mean().item()}


def run(arm: str, seed: int, *, model: str, steps: int, rate: float) -> dict[str, float]:
    made = trained(arm, seed, model, steps, rate)
    loss = estimate_loss(made, plays(HELD_OUT)[2], block_size=T, batch_size=500)
    return {"loss": loss, **order_and_place(made)}


study = Study(
    arms=["none", "learned, std 1", "learned, std 0.02", "sinusoidal", "rotary"],
    settings={"model": "one layer", "steps": 300, "rate": 0.01},
    variations=[
        {"steps": 1000},
        {"rate": 0.003},
        {"steps": 1000, "rate": 0.003},
        {"model": "four layers"},
        {"model": "four blocks", "rate": 0.003},
    ],
)
