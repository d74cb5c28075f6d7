"""Warm-up, the fall of the rate, clipping, weight decay: what does each do to the curve?

A small GPT (two layers, C = 32, texts of 16 characters, untied) on the plays, stepped by AdamW at a
rate that is too high for it to begin with: always the full rate; with 40 steps of warm-up; with
half a cosine down to a tenth; with both; with both and clipping at 1; with both and decay 1.
characters: how many of the plays it reads, None for all. early, late: the mean loss of the batches
40 to 60 and of the last 20; loss: on 50,000 held-out characters; length: of a matrix at the end.
"""

from functools import partial

import torch

from helpers.gpt import GPT, GPTConfig
from helpers.training import adamw, cosine, estimate_loss, train
from studies import Study
from studies._plays import plays

T, C, HELD_OUT = 16, 32, 50_000


def run(
    arm: str, seed: int, *, steps: int, rate: float, characters: int | None
) -> dict[str, float]:
    tokenizer, ids, held_out = plays(HELD_OUT)
    torch.manual_seed(seed)
    model = GPT(GPTConfig(tokenizer.vocab_size, T, 2, 4, C, tied=False))
    warmup = 0 if arm in ("full rate", "fall") else 40
    schedule = partial(cosine, warmup=warmup, final=1.0 if arm in ("full rate", "warm-up") else 0.1)
    losses = train(
        model, ids[:characters], steps=steps, block_size=T, batch_size=32, schedule=schedule,
        optimizer=adamw(model, rate, weight_decay=1.0 if arm == "both, decay" else 0.0),
        grad_clip=1.0 if arm == "both, clipped" else None,
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {
        "loss": estimate_loss(model, held_out, block_size=T, batch_size=1024),
        "early": sum(losses[40:60]) / 20,
        "late": sum(losses[-20:]) / 20,
        "length": model.blocks[0].mlp.up.weight.norm().item(),  # type: ignore
    }


study = Study(
    arms=["full rate", "warm-up", "fall", "both", "both, clipped", "both, decay"],
    settings={"steps": 200, "rate": 0.06, "characters": None},
    variations=[{"rate": 0.01}, {"steps": 600}, {"rate": 0.02}, {"rate": 0.02, "characters": 4000}],
)
