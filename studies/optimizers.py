"""What does Muon buy over AdamW, and AdamW over gradient descent with momentum, at each rate?

A small GPT on the plays (two layers, C = 64, texts of 32 characters, GPT-2's initialisation,
untied, without biases), 150 steps, warmup-stable-decay. Only the steps of the matrices in the
blocks differ: AdamW at the rate 0.003, or Muon at 0.05; all else takes AdamW's steps at 0.01.
"momentum" is gradient descent with momentum 0.9 at 0.03 for all parameters. times: what these rates
(0.01 aside) are multiplied by. loss: on 50,000 held-out characters.
"""

import torch
from torch.optim import SGD, AdamW, Optimizer

from helpers.gpt import GPT, GPTConfig
from helpers.optimizers import Muon
from helpers.training import estimate_loss, train, wsd_schedule
from studies import Study
from studies._plays import plays

T, C, HELD_OUT = 32, 64, 50_000


def optimizers(arm: str, model: GPT, times: float) -> list[Optimizer]:
    if arm == "momentum":
        return [SGD(model.parameters(), lr=0.03 * times, momentum=0.9)]
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    chosen = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in chosen]
    for_others = AdamW(others, lr=0.01, betas=(0.9, 0.95), weight_decay=0.0)
    if arm == "Muon":
        return [for_others, Muon(matrices, 0.05 * times, momentum=0.85)]
    return [for_others, AdamW(matrices, lr=0.003 * times, betas=(0.9, 0.95), weight_decay=0.0)]


def run(arm: str, seed: int, *, steps: int, times: float) -> dict[str, float]:
    tokenizer, ids, held_out = plays(HELD_OUT)
    torch.manual_seed(seed)
    model = GPT(GPTConfig(tokenizer.vocab_size, T, 2, 4, C, tied=False, bias=False))
    train(
        model, ids, steps=steps, block_size=T, batch_size=16, schedule=wsd_schedule,
        optimizer=optimizers(arm, model, times),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {"loss": estimate_loss(model, held_out, block_size=T, batch_size=512)}


study = Study(
    arms=["momentum", "AdamW", "Muon"],
    settings={"steps": 150, "times": 1.0},
    variations=[{"times": 0.3}, {"times": 3.0}, {"steps": 450}],
)
