"""What happens to a real model past its window, and which repair helps?

SmolLM2's file states a window of 8,192 tokens and a rotary base of 100,000. The model processes the
first 12,288 tokens of an article: as it comes; with four times the base; with every position
divided by 1.5, so that the last one is inside the window. start, window, just past and past: the
mean loss in nats per token at the positions 0–4,095, 4,096–8,191, 8,192–10,239 and 10,240–12,287.
"cropped" is the model as it comes, which for the positions from 8,192 on processes only the last
6,144 tokens. A seed is an article: the three longest of the training articles.
"""

from functools import cache

import torch
import torch.nn.functional as F

from helpers import data
from helpers.positions import Rotary
from studies import Study
from studies._real import smollm2

READ, WINDOW, CROPPED = 12_288, 8_192, 6_144
PARTS = {"start": 4096, "window": 4096, "just past": 2048, "past": 2048}
ARMS = {  # the base times this, the positions divided by that
    "as it comes": (1, 1),
    "base × 4": (4, 1),
    "positions / 1.5": (1, 1.5),
    "cropped": (1, 1),
}


class Squeezed(Rotary):
    """Rotary positions, each divided by the same number."""

    def __init__(self, head_size: int, base: float, by: float):
        super().__init__(head_size, base)
        self.by = by

    def angles(self, T: int) -> torch.Tensor:
        return super().angles(T) / self.by


def article(seed: int) -> torch.Tensor:
    """(READ + 1,): the special token 0, then the first tokens of an article."""
    longest = sorted((text for _, text in data.wikipedia("train")), key=len)[-1 - seed]
    return torch.tensor([0, *smollm2()[1].encode(longest)])[: READ + 1]


@cache
@torch.no_grad()
def losses(seed: int, times: float, by: float, first: int) -> torch.Tensor:
    """The loss at each position from `first` on, by a model that processes no token before it.

    By the blocks alone, since the model refuses more than its window, and with the logits of 1,024
    tokens at a time.
    """
    model, ids = smollm2()[0], article(seed)[first:]
    config = model.config
    rotary = Squeezed(config.n_embd // config.n_head, times * config.rotary_base, by)
    x = model.token(ids[None, :-1])
    for block in model.blocks:
        block.attention.rotary = rotary  # type: ignore[union-attr]
        x = block(x)
    pieces = zip(model.norm(x)[0].split(1024), ids[1:].split(1024), strict=True)
    return torch.cat([F.cross_entropy(model.lm_head(x), y, reduction="none") for x, y in pieces])


def run(arm: str, seed: int) -> dict[str, float]:
    found = losses(seed, *ARMS[arm], 0)
    if arm == "cropped":
        late = losses(seed, *ARMS[arm], READ - CROPPED)
        found = torch.cat((found[:WINDOW], late[WINDOW - READ :]))
    parts = found.split(list(PARTS.values()))
    return {name: part.mean().item() for name, part in zip(PARTS, parts, strict=True)}


study = Study(arms=list(ARMS), settings={})
