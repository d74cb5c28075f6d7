"""Does training with a smaller learning rate forget less, and does it learn less, too?

As the study `forgetting`, with the same batches: the Shakespeare model is trained on articles, at
smaller learning rates than in that study. There, the rates are 0.001 for all weights and 0.01 for
LoRA. Then LoRA can be compared with all weights at a similar gain.
"""

import copy

import torch
from torch.nn.functional import cross_entropy

from helpers.finetuning import add_lora
from studies import Study
from studies.forgetting import batch, held_out, shipped

LORA = "LoRA, rank 16, rate 0.005"
RATES = {"all weights, rate 0.0003": 3e-4, "all weights, rate 0.0006": 6e-4, LORA: 5e-3}


def run(arm: str, seed: int, *, steps: int, size: int) -> dict[str, float]:
    model = copy.deepcopy(shipped()[0])
    torch.manual_seed(seed)
    if arm == LORA:
        parameters = add_lora(model, 16)
    else:
        parameters = list(model.requires_grad_(True).parameters())
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(parameters, betas=(0.9, 0.95), weight_decay=0.0)
    for step in range(steps):
        x = batch(size, 0, generator)
        loss = cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        factor = min(1, (step + 1) / 4, 2 * (steps - step) / steps)
        optimizer.param_groups[0]["lr"] = RATES[arm] * factor
        optimizer.step()
    return {name: held_out(model, name) for name in ("articles", "plays")}


study = Study(arms=[*RATES], settings={"steps": 24, "size": 8})
