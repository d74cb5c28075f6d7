"""Trained on 32 characters, tested on 256: what happens beyond 32, and what does fine-tuning mend?

The model of `position_schemes` with one layer. The last two arms are rotary with a base of
1,000,000: set after training, and from the first step. to 31, to 63, to 127, to 255: the loss at
positions 0–31, 32–63, 64–127, 128–255 of 256 characters; cropped: at the same positions 128–255, by
a model that sees only the last 32 characters; tuned to 31, tuned to 255 and tuned cropped: the same
after fine-tuning on texts of 256 characters, eight at a time.
"""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from helpers.training import train
from studies import Study
from studies._plays import plays
from studies.position_schemes import HELD_OUT, T, set_base, trained

FAR = 256
NAMES = ("to 31", "to 63", "to 127", "to 255")


@torch.no_grad()
def losses(model: nn.Module, starts: torch.Tensor, length: int) -> torch.Tensor:
    """(N, length) the losses at each position of held-out texts that begin at the N starts."""
    ids, positions = plays(HELD_OUT)[2], starts[:, None] + torch.arange(length)
    parts = [
        F.cross_entropy(model(ids[rows]).transpose(1, 2), ids[rows + 1], reduction="none")
        for rows in positions.split(12_800 // length)
    ]
    return torch.cat(parts)


def starts() -> torch.Tensor:
    """The starts of 249 texts of 256 characters, spread over the held-out plays."""
    step = len(plays(HELD_OUT)[2]) // 250
    return torch.arange(249) * step


def ranges(model: nn.Module) -> list[float]:
    by_position = losses(model, starts(), FAR).mean(0)
    return [part.mean().item() for part in by_position.split([32, 32, 64, 128])]


def cropped(model: nn.Module) -> float:
    """The loss at positions 128–255 of the same texts, from the last 32 characters alone."""
    positions = starts()[:, None] + torch.arange(128, FAR)
    return losses(model, positions.flatten() - (T - 1), T)[:, -1].mean().item()


def run(arm: str, seed: int, *, steps: int, rate: float, tuning: int) -> dict[str, float]:
    untuned = trained(arm.split(",")[0], seed, "one layer", steps, rate)
    large = arm == "rotary, large base"
    made = copy.deepcopy(trained(arm, seed, "one layer", steps, rate) if large else untuned)
    if arm == "rotary, base raised":
        set_base(made, 1e6)
    numbers = dict(zip(NAMES, ranges(made), strict=True)) | {"cropped": cropped(untuned)}
    train(
        made, plays(HELD_OUT)[1], steps=tuning, block_size=FAR, batch_size=8,
        optimizer=torch.optim.Adam(made.parameters(), lr=3e-3),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    after = ranges(made)
    return {
        **numbers,
        "tuned to 31": after[0],
        "tuned to 255": after[-1],
        "tuned cropped": cropped(made),
    }


study = Study(
    arms=["none", "sinusoidal", "rotary", "rotary, base raised", "rotary, large base"],
    settings={"steps": 300, "rate": 0.01, "tuning": 60},
    variations=[{"steps": 1000}, {"tuning": 180}],
)
