"""How does the loss fall with the parameters and with the tokens of training?

Models from 3,000 to 450,000 parameters in their blocks (an arm's name: layers × width, heads of 16)
learn Shakespeare's plays, character by character, with the recipe of the chapter training_fast
(windows of 64 characters, 16 per step). `tokens`: characters processed, of the 4.3 million in the
training text. `times` multiplies the learning rates. loss: nats per character on the first 200,000
characters of the validation text. parameters: those in the blocks.
"""

from functools import partial

import torch

from helpers.gpt import fast_gpt
from helpers.optimizers import fast_optimizers
from helpers.training import estimate_loss, train, wsd_schedule
from studies import Study
from studies._plays import plays

B, T = 16, 64


def run(arm: str, seed: int, *, tokens: int, times: float) -> dict[str, float]:
    layers, width = map(int, arm.split(" × "))
    tokenizer, ids, held_out = plays(200_000)
    torch.manual_seed(seed)
    model = fast_gpt(tokenizer.vocab_size, T, n_layer=layers, n_head=width // 16, n_embd=width)
    train(
        model, ids, steps=tokens // (B * T), block_size=T, batch_size=B,
        optimizer=fast_optimizers(model, 0.04 * times, 0.01 * times, momentum=0.85),
        schedule=partial(wsd_schedule, warmup=10),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {
        "loss": estimate_loss(model, held_out, block_size=T),
        "parameters": sum(p.numel() for p in model.blocks.parameters()),
    }


study = Study(
    arms=["1 × 16", "2 × 32", "3 × 48", "4 × 64", "4 × 96"],
    settings={"tokens": 1_000_000, "times": 1.0},
    variations=[{"tokens": 125_000}, {"tokens": 250_000}, {"tokens": 500_000}, {"times": 0.5}],
)
