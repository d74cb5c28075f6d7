"""What is each part of the recipe of 72 steps worth, in the recipe and at its sizes?

Four layers, C = 128, 64 characters, 24 texts a step, on the plays. "GPT-2" is the plain model,
"+ architecture" the fast model, both with AdamW, clipped at 1 after 5 steps of warm-up; "+ Muon" is
the whole recipe, from which the other arms take parts away (zeros: the initial ones). times: of all
learning rates; 1 is the best of the first trials. loss: on 50,000 held-out characters.
"""

from functools import partial
from typing import Any

import torch

from helpers.gpt import GPT, GPTConfig, fast_gpt
from helpers.optimizers import fast_optimizers
from helpers.training import estimate_loss, train, wsd_schedule
from studies import Study
from studies._plays import plays

ADAMW = {"GPT-2": 0.003, "+ architecture": 0.01}  # the learning rates
WITHOUT: dict[str, dict[str, Any]] = {
    "without rotary": {"position": "LearnedPosition"},
    "without QK norm": {"qk_norm": False},
    "without squared ReLU": {"mlp": "FeedForward"},
    "without convolution": {"convolution": None},
    "without either": {"position": "LearnedPosition", "convolution": None},  # rotary, convolution
}


def run(arm: str, seed: int, *, times: float) -> dict[str, float]:
    tokenizer, ids, held_out = plays(50_000)
    sizes = tokenizer.vocab_size, 64, 4, 4, 128
    optimizers: list[torch.optim.Optimizer]
    torch.manual_seed(seed)
    model = fast_gpt(*sizes, **WITHOUT.get(arm, {}))
    if arm == "GPT-2":
        model = GPT(GPTConfig(*sizes, bias=False))
    elif arm == "without zeros":
        model = GPT(model.config)
    elif arm == "only Muon and convolution":
        model = GPT(GPTConfig(*sizes, bias=False, tied=False, convolution=4))
    if arm in ADAMW:
        rate = ADAMW[arm] * times
        convolutions = [p for p in model.parameters() if p.dim() == 4]
        others = [p for p in model.parameters() if p.dim() < 4]
        groups: list[dict[str, Any]] = [{"params": others}]
        groups.append({"params": convolutions, "lr": 10 * rate})  # as in the recipe
        optimizers = [torch.optim.AdamW(groups, rate, betas=(0.9, 0.95), weight_decay=0.0)]
    else:
        optimizers = fast_optimizers(model, 0.05 * times, 0.01 * times, momentum=0.75)
    train(
        model, ids, steps=72, block_size=64, batch_size=24, optimizer=optimizers,
        schedule=partial(wsd_schedule, warmup=5 if arm in ADAMW else 1, decay_frac=0.8),
        grad_clip=1.0 if arm in ADAMW else None, generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {"loss": estimate_loss(model, held_out, block_size=64)}


study = Study(
    arms=[*ADAMW, "+ Muon", *WITHOUT, "without zeros", "only Muon and convolution"],
    settings={"times": 1.0},
    variations=[{"times": 0.5}, {"times": 2.0}],
)
