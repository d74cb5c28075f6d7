"""Chapter 09: what does a small GPT lose without its positions, its mask, its residuals?

The model at the top of the ladder (studies/ladder.py) whole, and with one thing taken out, trained
alike. loss: on plays that were held out, as usual, all places of a chunk at once; honest: the same
when only the past is shown; words: of the words with three letters and more in 3,840 characters
that the model writes, the share that the plays have.
"""

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers import data
from helpers.training import estimate_loss
from studies import Study
from studies._plays import plays
from studies.ladder import HELD_OUT, Rung, T, four_heads, layer, trained


def model(arm: str) -> nn.Module:
    one = layer(
        lambda: four_heads(causal=arm != "no mask"),
        feed=True,
        residual=arm != "no residuals",
        norm=True,
    )
    return Rung([one] * 2, place=arm != "no positions", norm=True)


@torch.no_grad()
def honest(model: nn.Module, ids: Tensor) -> float:
    """The mean surprise where each prediction is made from the characters before it alone."""
    x, y = ids[: 1000 * T].view(-1, T), ids[1 : 1000 * T + 1].view(-1, T)
    losses = [F.cross_entropy(model(x[:, : t + 1])[:, -1], y[:, t]).item() for t in range(T)]
    return sum(losses) / T


@cache
def known() -> set[str]:
    return set(words(data.shakespeare("train")))


def words(text: str) -> list[str]:
    letters = "".join(c if c.isalpha() else " " for c in text.lower())
    return [word for word in letters.split() if len(word) >= 3]


@torch.no_grad()
def written(model: nn.Module, rows: int = 32, length: int = 120) -> list[str]:
    tokenizer = plays(HELD_OUT)[0]
    generator = torch.Generator().manual_seed(1)
    ids = torch.tensor([tokenizer.encode("\n")]).repeat(rows, 1)
    for _ in range(length):
        chances = model(ids[:, -T:])[:, -1].softmax(-1)
        ids = torch.cat([ids, torch.multinomial(chances, 1, generator=generator)], 1)
    return [tokenizer.decode(row) for row in ids]


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    held_out = plays(HELD_OUT)[2]
    learned = trained(lambda: model(arm), seed, steps, rate)
    found = [word for row in written(learned) for word in words(row)]
    return {
        "loss": estimate_loss(learned, held_out, block_size=T, batch_size=1024),
        "honest": honest(learned, held_out),
        "words": sum(word in known() for word in found) / max(1, len(found)),
    }


study = Study(
    arms=["whole", "no positions", "no residuals", "no mask"],
    settings={"steps": 400, "rate": 0.01},
    moved=[{"rate": 0.003}],
)
