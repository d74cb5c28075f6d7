"""What does decay gain, at which learning rate, and does it gain more in a longer run?

A small GPT (that of the study `steps`; width 96 is the GPT of chapter 09, with its 12 sequences of
64 characters a step) is trained on the plays with AdamW and 40 steps of warm-up: then at a constant
learning rate, along half a cosine to a tenth, or at a constant rate and in the last 30% in a
straight line to zero. loss: on 50,000 held-out characters.
"""

from functools import partial

import torch

from helpers.gpt import GPT, GPTConfig
from helpers.optimizers import adamw
from helpers.training import cosine_schedule, estimate_loss, train, wsd_schedule
from studies import Study
from studies._plays import plays

SCHEDULES = {
    "constant": partial(cosine_schedule, warmup=40, final=1.0),
    "cosine": partial(cosine_schedule, warmup=40, final=0.1),
    "to zero at the end": partial(wsd_schedule, warmup=40, decay_frac=0.3),
}


def run(
    arm: str, seed: int, *, steps: int, rate: float, width: int, weight_decay: float
) -> dict[str, float]:
    tokenizer, ids, held_out = plays(50_000)
    T, B = (16, 32) if width == 32 else (64, 12)
    torch.manual_seed(seed)
    model = GPT(GPTConfig(tokenizer.vocab_size, T, 2, 4, width, tied=width == 96))
    train(
        model, ids, steps=steps, block_size=T, batch_size=B, schedule=SCHEDULES[arm],
        optimizer=adamw(model, rate, weight_decay=weight_decay), grad_clip=None,
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {"loss": estimate_loss(model, held_out, block_size=T, batch_size=256)}


LONG = {"steps": 1000}
study = Study(
    arms=[*SCHEDULES],
    settings={"steps": 200, "rate": 0.01, "width": 32, "weight_decay": 0.0},
    variations=[
        {"rate": 0.003}, {"rate": 0.03}, LONG, LONG | {"rate": 0.003}, LONG | {"rate": 0.03},
        LONG | {"weight_decay": 0.1}, LONG | {"weight_decay": 1.0},
        *(LONG | {"width": 96, "rate": rate} for rate in (0.002, 0.005)),
    ],
)  # fmt: skip
