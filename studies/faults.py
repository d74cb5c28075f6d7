"""Each fault of a training loop has a face: what do its loss curves look like?

A small GPT (that of the study `steps`) is trained on the plays with AdamW at a peak learning rate
of 0.01, with 20 steps of warm-up and cosine decay: as it should be, and with one fault in each arm.
"training 20" and so on: the mean loss of the 20 batches up to that step; "held-out 20": on 10,000
held-out characters, measured by the same faulty code.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from helpers.gpt import GPT, GPTConfig
from helpers.optimizers import adamw
from helpers.training import cosine_schedule, get_batch
from studies import Study
from studies._plays import plays

T, C = 16, 32


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    tokenizer, ids, held_out = plays(10_000)
    torch.manual_seed(seed)
    model = GPT(GPTConfig(tokenizer.vocab_size, T, 2, 4, C, tied=False))
    peak = 10 * rate if arm == "rate times ten" else rate
    optimizer = adamw(model, peak, weight_decay=0.0)
    numbers: dict[str, float] = {}
    losses: list[float] = []

    def loss_on(stream: Tensor, B: int, generator: torch.Generator) -> Tensor:
        x, y = get_batch(stream, T, B, generator)
        y = x if arm == "targets not shifted" else y
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten())

    batches = torch.Generator().manual_seed(seed)
    for step in range(steps):
        if arm == "same batch":
            batches.manual_seed(seed)
        if arm == "optimizer made anew":
            optimizer = adamw(model, peak, weight_decay=0.0)
        for group in optimizer.param_groups:
            group["lr"] = peak * cosine_schedule(step, steps, warmup=20)
        loss = loss_on(ids, 32, batches)
        if arm != "no zero_grad":
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % 20 == 0:
            with torch.no_grad():
                held = loss_on(held_out, 600, torch.Generator().manual_seed(0)).item()
            numbers[f"training {step + 1}"] = sum(losses[-20:]) / 20
            numbers[f"held-out {step + 1}"] = held
    return numbers


study = Study(
    arms=[
        "sound",
        "no zero_grad",
        "targets not shifted",
        "same batch",
        "rate times ten",
        "optimizer made anew",
    ],
    settings={"steps": 200, "rate": 0.01},
)
