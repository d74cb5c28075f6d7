"""One table or two: what does tying cost, once their initialisation suits both ends?

A small GPT on the plays (two layers, texts of 16 characters), tied and untied from the same initial
weights, 200 steps of AdamW with warm-up, learning-rate decay and gradient clipping. start: the
standard deviation of the tables at initialisation; width: C. loss: on 50,000 held-out characters.
"""

from functools import partial

import torch
from torch import nn

from helpers.gpt import GPT, GPTConfig
from helpers.optimizers import adamw
from helpers.training import cosine_schedule, estimate_loss, train
from studies import Study
from studies._plays import plays

T, HELD_OUT = 16, 50_000


def run(arm: str, seed: int, *, steps: int, start: float, width: int) -> dict[str, float]:
    tokenizer, ids, held_out = plays(HELD_OUT)
    torch.manual_seed(seed)
    model = GPT(GPTConfig(tokenizer.vocab_size, T, 2, 4, width))
    nn.init.normal_(model.token.weight, std=start)
    if arm == "untied":
        model.lm_head.weight = nn.Parameter(model.token.weight.detach().clone())
    train(
        model, ids, steps=steps, block_size=T, batch_size=32, grad_clip=1.0,
        optimizer=adamw(model, 0.01, weight_decay=0.0),
        schedule=partial(cosine_schedule, warmup=40, final=0.1),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {"loss": estimate_loss(model, held_out, block_size=T, batch_size=1024)}


study = Study(
    arms=["tied", "untied"],
    settings={"steps": 200, "start": 0.02, "width": 32},
    variations=[
        {"start": 0.1},
        {"start": 0.1, "steps": 600},
        {"start": 0.3},
        {"start": 0.1, "width": 128},
    ],
)
