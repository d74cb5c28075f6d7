"""Does a larger batch save as many steps as it costs texts?

A small GPT on the plays (two layers, C = 32, texts of 16 characters), AdamW without weight decay at
a constant rate. Each arm is the number of texts in a batch. steps: until the loss on 8,000
held-out characters, measured every five steps, is below 2.6 nats; texts: steps times texts in a
batch.
"""

import math

import torch

from helpers.gpt import GPT, GPTConfig
from helpers.optimizers import adamw
from helpers.training import estimate_loss, get_batch, language_model_loss
from studies import Study
from studies._plays import plays

T, HELD_OUT, TARGET = 16, 8_000, 2.6


def run(arm: str, seed: int, *, rate: float) -> dict[str, float]:
    tokenizer, ids, held_out = plays(HELD_OUT)
    batch_size = int(arm.split()[0])
    torch.manual_seed(seed)
    model = GPT(GPTConfig(tokenizer.vocab_size, T, 2, 4, 32, tied=False))
    optimizer = adamw(model, rate, weight_decay=0.0)
    generator = torch.Generator().manual_seed(seed)
    step, loss = 0, math.inf
    while loss > TARGET:
        x, y = get_batch(ids, T, batch_size, generator)
        optimizer.zero_grad()
        language_model_loss(model, x, y).backward()
        optimizer.step()
        step += 1
        if step % 5 == 0:
            loss = estimate_loss(model, held_out, block_size=T)
    return {"steps": step, "texts": step * batch_size}


study = Study(
    arms=["4 texts", "8 texts", "16 texts", "32 texts", "64 texts", "128 texts"],
    settings={"rate": 0.005},
    variations=[{"rate": 0.01}],
)
