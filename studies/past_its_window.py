"""Chapter 15: what becomes of a model beyond the length it was trained for, and what helps?

SmolLM2 was trained to read up to 8,192 tokens. It reads 10,240 of long articles, one after the
other: as it is; with the base of its angles four times as large; and with all positions halved.
near: bits a token at the places 4,096 to 8,191; far: at 8,192 to 10,239; a seed is another text.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from helpers import data
from helpers.positions import Rotary
from studies import Study
from studies._real import smollm2


class Halved(Rotary):
    """Position p turns as p / 2 does."""

    def angles(self, T: int) -> Tensor:
        return super().angles(T) / 2


def run(arm: str, seed: int, *, length: int) -> dict[str, float]:
    model, tokenizer = smollm2()
    base = model.config.rotary_base
    articles = [text for _, text in data.wikipedia("train")][8 * seed : 8 * seed + 8]
    ids = torch.tensor([tokenizer.encode("\n\n".join(articles))[: length + 1]])
    larger = 4 if arm == "base × 4" else 1
    for block in model.blocks:
        rotary = Halved(64, base) if arm == "positions / 2" else Rotary(64, larger * base)
        block.get_submodule("attention").rotary = rotary
    surprise, cache, model.block_size = [], model.empty_cache(), length
    with torch.no_grad():
        for start in range(0, length, 1024):
            logits = model(ids[:, start : start + 1024], cache)[0]
            y = ids[0, start + 1 : start + 1025]
            surprise.append(F.cross_entropy(logits, y, reduction="none"))
    bits = torch.cat(surprise) / math.log(2)
    return {"near": bits[4096:8192].mean().item(), "far": bits[8192:].mean().item()}


study = Study(
    arms=["as it is", "base × 4", "positions / 2"], settings={"length": 10_240}, seeds=range(3)
)
