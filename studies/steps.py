"""Warm-up, cosine decay of the learning rate, clipping, weight decay: what does each contribute?

A small GPT (two blocks, C = 32, sequences of 16 characters, untied) is trained on the plays with
AdamW, first at a learning rate that is too high: at a constant learning rate; with 40 steps of
warm-up; with cosine decay to a tenth; with both; with both and the gradient clipped to norm 1; with
both and a weight decay of 1. characters: how many of the plays it is trained on, None for all.
early, late: the mean loss of the batches 40 to 60 and of the last 20; loss: on 50,000 held-out
characters; length: the norm of a matrix at the end.
"""

from functools import partial

import torch

from helpers.gpt import GPT, GPTConfig
from helpers.optimizers import adamw
from helpers.training import cosine_schedule, estimate_loss, train
from studies import Study
from studies._plays import plays

T, C, HELD_OUT = 16, 32, 50_000


def run(
    arm: str, seed: int, *, steps: int, rate: float, characters: int | None
) -> dict[str, float]:
    tokenizer, ids, held_out = plays(HELD_OUT)
    torch.manual_seed(seed)
    model = GPT(GPTConfig(tokenizer.vocab_size, T, 2, 4, C, tied=False))
    warmup = 40 if "warm-up" in arm else 0
    schedule = partial(cosine_schedule, warmup=warmup, final=0.1 if "cosine" in arm else 1.0)
    losses = train(
        model, ids[:characters], steps=steps, block_size=T, batch_size=32, schedule=schedule,
        optimizer=adamw(model, rate, weight_decay=1.0 if "weight decay" in arm else 0.0),
        grad_clip=1.0 if "clipping" in arm else None,
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {
        "loss": estimate_loss(model, held_out, block_size=T, batch_size=1024),
        "early": sum(losses[40:60]) / 20,
        "late": sum(losses[-20:]) / 20,
        "length": model.blocks[0].mlp.up.weight.norm().item(),  # type: ignore
    }


study = Study(
    arms=[
        "constant",
        "warm-up",
        "cosine",
        "warm-up, cosine",
        "warm-up, cosine, clipping",
        "warm-up, cosine, weight decay",
    ],
    settings={"steps": 200, "rate": 0.06, "characters": None},
    variations=[{"rate": 0.01}, {"steps": 600}, {"rate": 0.02}, {"rate": 0.02, "characters": 4000}],
)
