"""What would more text, a wider model, more steps or weight decay buy?

A small GPT with the recipe of the chapter training (two layers, pieces from a vocabulary of 512,
windows of 64, 16 a step) learns from all 86 training articles, or from every sixteenth of them (6
articles); 32 or 96 numbers a token; 150 or 600 steps. `times` multiplies both learning rates;
`decay` is the weight decay of the matrices in the blocks, a fifth of that of the two tables.
bits: bits per character on the first 3,000 characters of each validation article; known: the same
on the first 5,000 characters of each of the six articles, which all arms have trained on.
"""

import math
from functools import partial

import torch

from helpers.gpt import fast_gpt
from helpers.optimizers import fast_optimizers
from helpers.training import estimate_loss, train, wsd_schedule
from studies import Study
from studies._articles import articles, stream

V, T = 512, 64
FEW = articles("train")[::16]


def bits(model: torch.nn.Module, documents: list[str]) -> float:
    """Bits per character of some texts."""
    ids = stream(documents, V)
    nats = estimate_loss(model, ids, block_size=T) * (len(ids) - 1)
    return nats / math.log(2) / sum(map(len, documents))


def run(arm: str, seed: int, *, steps: int, times: float, decay: float) -> dict[str, float]:
    ids = stream(FEW if arm.startswith("6") else articles("train"), V)
    torch.manual_seed(seed)
    model = fast_gpt(V, T, n_layer=2, n_head=4, n_embd=96 if arm.endswith("wide") else 32)
    rates = 0.05 * times, 0.01 * times
    muon, adamw = fast_optimizers(model, *rates, weight_decay=decay, momentum=0.75)
    others = adamw.param_groups[0]
    tables = {"params": [p for p in others["params"] if p.dim() == 2], "weight_decay": 5 * decay}
    others["params"] = [p for p in others["params"] if p.dim() < 2]
    adamw.add_param_group(tables | {"lr": rates[1]})
    train(
        model, ids, steps=steps, block_size=T, batch_size=16, optimizer=[muon, adamw],
        schedule=partial(wsd_schedule, warmup=5),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {
        "bits": bits(model, [document[:3000] for document in articles("validation")]),
        "known": bits(model, [document[:5000] for document in FEW]),
        "tokens": len(ids),
        "parameters": model.n_parameters(),
    }


study = Study(
    arms=["6 articles", "6 articles, wide", "86 articles", "86 articles, wide"],
    settings={"steps": 600, "times": 1.0, "decay": 0.0},
    variations=[{"steps": 150}, {"times": 0.3}, {"decay": 1.0}, {"steps": 150, "decay": 1.0}],
)
