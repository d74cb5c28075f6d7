"""Do bfloat16 or compiled kernels change what a model learns, and how fast?

A small GPT learns Shakespeare's plays for 300 steps: as PyTorch runs it, in bfloat16 (whether the
hardware is made for it or not), and compiled by `torch.compile`, which needs a C++ compiler.
loss: nats per character on the first 50,000 characters of the validation text. milliseconds: the
fastest of the last 270 steps, on the machine that is named. first: seconds of the first step, with
the compilation.
"""

import time

import torch

from helpers.gpt import GPT, GPTConfig
from helpers.optimizers import adamw
from helpers.training import estimate_loss, get_batch, language_model_loss
from studies import Study
from studies._plays import plays

B, T = 16, 128


def run(arm: str, seed: int, *, steps: int) -> dict[str, float]:
    tokenizer, ids, held_out = plays(50_000)
    torch.manual_seed(seed)
    model = GPT(GPTConfig(tokenizer.vocab_size, T, n_layer=4, n_head=4, n_embd=128))
    called = torch.compile(model) if arm == "compiled" else model
    optimizer, batches = adamw(model, 0.001), torch.Generator().manual_seed(seed)
    seconds = []
    for _ in range(steps):
        x, y = get_batch(ids, T, B, batches)
        start = time.perf_counter()
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=arm == "bfloat16"):
            loss = language_model_loss(called, x, y)  # type: ignore[arg-type]
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    return {
        "loss": estimate_loss(model, held_out, block_size=T),
        "milliseconds": 1000 * min(seconds[30:]),
        "first": seconds[0],
    }


study = Study(arms=["as it is", "bfloat16", "compiled"], settings={"steps": 300})
