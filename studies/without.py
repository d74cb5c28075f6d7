"""What does a small GPT lose without its positions, its mask, its residuals?

The model at the top of the ladder (studies/ladder.py) whole, and with one thing taken out, trained
alike. loss: on plays that were held out, as usual, all places of a chunk at once; honest: the same
when only the past is shown.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    held_out = plays(HELD_OUT)[2]
    learned = trained(lambda: model(arm), seed, steps, rate)
    return {
        "loss": estimate_loss(learned, held_out, block_size=T, batch_size=1024),
        "honest": honest(learned, held_out),
    }


study = Study(
    arms=["whole", "no positions", "no residuals", "no mask"],
    settings={"steps": 400, "rate": 0.01},
    variations=[{"rate": 0.003}, {"steps": 1200}],
)
