"""Chapter 15: does SmolLM2 still read when a text is longer than the 8,192 tokens of its training?

The same 512 tokens of articles set one after the other, read with what stands before them: so much
that they end at 4,096 tokens, in the window, or at 10,240, beyond it. Once with the angles of its
training, once with their base times 4, so that the slowest pair turns a quarter as fast (as
"NTK-aware" scaling does). bits: a character of the 512 tokens; a seed is another place to begin.
"""

import math
from functools import cache

import torch
import torch.nn.functional as F

from helpers import data
from helpers.attention import MultiHeadAttention
from helpers.positions import Rotary
from studies import Study
from studies._real import smollm2

LONG, PIECE = 10_240, 512
ARMS = {"its own angles": 1.0, "base × 4": 4.0}


@cache
def stream(seed: int) -> torch.Tensor:
    """Articles from the seed-th third of the training part on, as one text: (LONG + 1,) ids."""
    articles = data.wikipedia("train")
    first = seed * len(articles) // 3
    ids: list[int] = []
    for title, words in (*articles[first:], *articles[:first]):
        ids += smollm2()[1].encode(f"{title}\n\n{words}\n\n")
        if len(ids) > LONG:
            break
    return torch.tensor(ids[: LONG + 1])


@torch.no_grad()
def run(arm: str, seed: int, *, tokens: int) -> dict[str, float]:
    model, tokenizer = smollm2()
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            part.rotary = Rotary(part.head_size, model.config.rotary_base * ARMS[arm])
    read = stream(seed)[-tokens - 1 :]
    cache, states = model.empty_cache(), torch.empty(0)
    for piece in read[:-1].split(PIECE):
        states = model.token(piece[None])
        for block, kept in zip(model.blocks, cache, strict=True):
            states = block(states, kept)
    asked = read[-PIECE:]  # logits where they are asked for alone
    nats = F.cross_entropy(model.head(model.norm(states))[0], asked, reduction="sum").item()
    return {"bits": nats / math.log(2) / len(tokenizer.decode(asked.tolist()))}


study = Study(arms=list(ARMS), settings={"tokens": LONG}, moved=[{"tokens": 4096}])
