"""The ladder of the fast recipe: what does each change bring, one at a time?

Two layers, C = 64, texts of 32 characters of the plays, 16 in a batch, warmup-stable-decay. The
first rung is GPT-2's model, untied and without biases, stepped by AdamW; each rung keeps the
changes of those before it. "outputs at zero" brings all of `fast_gpt`'s initialisation. rate: of
AdamW; with Muon, of all parameters that Muon does not step. loss: on 50,000 held-out characters;
seconds: of the steps.
"""

import time
from typing import Any

import torch

from helpers.gpt import GPT, GPTConfig, fast_gpt
from helpers.optimizers import adamw, fast_optimizers
from helpers.training import estimate_loss, train, wsd_schedule
from studies import Study
from studies._plays import plays

T, C, HELD_OUT = 32, 64, 50_000
RUNGS = [
    "GPT-2, untied",
    "+ rotary",
    "+ normalised q, k",
    "+ squared ReLU",
    "+ outputs at zero",
    "+ Muon",
    "+ convolution",
]


def built(rung: int, symbols: int) -> GPT:
    sizes = symbols, T, 2, 4, C
    parts: dict[str, Any] = {"bias": False, "tied": False}
    parts |= {"position": "Rotary"} if rung >= 1 else {}
    parts |= {"qk_norm": True} if rung >= 2 else {}
    parts |= {"mlp": "SquaredReLU"} if rung >= 3 else {}
    if rung < 4:
        return GPT(GPTConfig(*sizes, **parts))
    return fast_gpt(*sizes, convolution=4 if rung == 6 else None)


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    tokenizer, ids, held_out = plays(HELD_OUT)
    rung = RUNGS.index(arm)
    torch.manual_seed(seed)
    model = built(rung, tokenizer.vocab_size)
    began = time.perf_counter()
    train(
        model, ids, steps=steps, block_size=T, batch_size=16, schedule=wsd_schedule,
        optimizer=fast_optimizers(model, matrix_rate=0.05, momentum=0.85, other_rate=rate)
        if rung >= 5 else adamw(model, rate, weight_decay=0.0),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    seconds = time.perf_counter() - began
    loss = estimate_loss(model, held_out, block_size=T, batch_size=512)
    return {"loss": loss, "seconds": seconds}


study = Study(
    arms=RUNGS,
    settings={"steps": 150, "rate": 0.01},
    variations=[{"rate": 0.003}, {"steps": 450}],
)
