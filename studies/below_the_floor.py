"""Does a large model stop at the loss E of the scaling law that `scaling_law` fits?

SmolLM2 reads passages of the validation plays, 2,000 characters each, which it may have met before.
nats: a character; a seed is a passage.
"""

import math

import torch

from helpers import data
from helpers.evaluation import bits_per_character, token_nll
from studies import Study
from studies._real import smollm2


def run(arm: str, seed: int, *, characters: int) -> dict[str, float]:
    model, tokenizer = smollm2()
    text = data.shakespeare("validation")
    start = seed * (len(text) - characters) // 7
    passage = text[start : start + characters]
    ids = torch.tensor([0, *tokenizer.encode(passage)])
    return {"nats": math.log(2) * bits_per_character(token_nll(model, ids), passage)}


study = Study(arms=["SmolLM2"], settings={"characters": 2000}, seeds=range(8))
