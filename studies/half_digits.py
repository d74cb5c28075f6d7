"""Half precision: is the loss the same when a model computes its products in bfloat16?

The fast model (two layers, C = 64, texts of 32 characters of the plays), 150 steps, computed in
float32, and with its matrix products in bfloat16; where the hardware does not have the format, it
is simulated, slowly, with the same roundings. rate: Muon's. loss: on 50,000 held-out characters,
computed in float32.
"""

import torch
from torch import Tensor

from helpers.gpt import fast_gpt
from helpers.optimizers import fast_optimizers
from helpers.training import (
    estimate_loss,
    get_batch,
    language_model_loss,
    minimize,
    wsd_schedule,
)
from studies import Study
from studies._plays import plays

T, C, HELD_OUT = 32, 64, 50_000


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    tokenizer, ids, held_out = plays(HELD_OUT)
    torch.manual_seed(seed)
    model = fast_gpt(tokenizer.vocab_size, T, 2, 4, C)
    generator = torch.Generator().manual_seed(seed)

    def loss_of(step: int) -> Tensor:
        x, y = get_batch(ids, T, 16, generator)
        with torch.autocast("cpu", torch.bfloat16, enabled=arm == "bf16"):
            return language_model_loss(model, x, y)

    optimizers = fast_optimizers(model, matrix_rate=rate, momentum=0.85)
    minimize(loss_of, model, optimizers, steps, wsd_schedule)
    return {"loss": estimate_loss(model, held_out, block_size=T, batch_size=512)}


study = Study(
    arms=["float32", "bf16"],
    settings={"steps": 150, "rate": 0.05},
    variations=[{"rate": 0.1}],
)
