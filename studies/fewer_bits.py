"""What does rounding a real model's weights cost?

SmolLM2's matrices, which come in blocks of 32 numbers of 4 bits, are rounded once more: to 8, 3 and
2 bits in such blocks, and to 8 and 4 bits with one scale for a whole row instead of one for 32
numbers. The table of embeddings stays. bits: a character, on the first 1,500 characters of a
validation article; a seed is an article.
"""

from functools import cache

import torch
from torch import nn

from helpers import data
from helpers.evaluation import bits_per_character, token_nll
from helpers.formats.gguf import gguf
from helpers.gpt import GPT
from helpers.quantization import quantize
from studies import Study
from studies._real import openings, smollm2

ARMS = {  # bits of the rounding
    "4, as it comes": 0,
    "8": 8,
    "3": 3,
    "2": 2,
    "8, a scale a row": 8,
    "4, a scale a row": 4,
}


def in_rows(matrix: torch.Tensor, bits: int) -> torch.Tensor:
    least, greatest = matrix.aminmax(dim=1, keepdim=True)
    step = (greatest - least) / (2**bits - 1)
    return ((matrix - least) / step).round() * step + least


@cache
def coarser(arm: str) -> GPT:
    if not (bits := ARMS[arm]):
        return smollm2()[0]
    model = gguf(data.smollm2()).model
    for part in model.blocks.modules():
        if isinstance(part, nn.Linear):
            matrix = part.weight.detach()
            rounded = in_rows(matrix, bits) if "row" in arm else quantize(matrix, bits).matrix()
            part.weight.data = rounded
    return model


def run(arm: str, seed: int, *, characters: int) -> dict[str, float]:
    text = openings(characters)[seed]
    ids = torch.tensor([0, *smollm2()[1].encode(text)])
    return {"bits": bits_per_character(token_nll(coarser(arm), ids), text)}


study = Study(arms=list(ARMS), settings={"characters": 1500}, seeds=range(10))
