"""How many of SmolLM2's 270 heads can be taken away before it reads worse?

The heads that mattered least when each was taken away alone (study one_head_off, on three articles)
go first; or those that mattered most; or heads by chance. loss: nats a token on the first 256
tokens of another validation article; a seed is an article, and a draw of the heads by chance.
"""

import random
from statistics import mean

import torch

from helpers.evaluation import token_nll
from helpers.hooks import ablate_heads
from studies import Study, results
from studies._real import openings, smollm2


def order(arm: str, seed: int) -> list[tuple[int, int]]:
    """All heads, the first to go first."""
    heads = [(layer, head) for layer in range(30) for head in range(9)]
    if arm == "by chance":
        return random.Random(seed).sample(heads, len(heads))
    alone = results("one_head_off")
    lost = {head: mean(alone.values("{}.{}".format(*head), "text").values()) for head in heads}
    return sorted(heads, key=lambda head: lost[head], reverse=arm == "most first")


def run(arm: str, seed: int, *, heads: int) -> dict[str, float]:
    model, tokenizer = smollm2()
    ids = torch.tensor([0, *tokenizer.encode(openings(2000)[3 + seed])[:256]])
    with torch.no_grad(), ablate_heads(model, order(arm, seed)[:heads]):
        return {"loss": token_nll(model, ids).mean().item()}


study = Study(
    arms=["least first", "by chance", "most first"],
    settings={"heads": 0},
    variations=[{"heads": heads} for heads in (14, 27, 54, 81, 108)],
)
