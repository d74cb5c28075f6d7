"""How large should the vocabulary of a small model be?

The live model of the chapter gptmini (four layers, C = 96, 8 windows of 128 tokens a step) with
vocabularies of 512, 2,048 and 8,192 tokens, all learned from the training articles. bits: bits per
character on the first 6,000 characters of each validation article; characters: read in training;
flops: 6 for each parameter in matrices and token.
"""

import math

import torch

from helpers.gpt import fast_gpt
from helpers.optimizers import fast_optimizers
from helpers.training import estimate_loss, train, wsd_schedule
from studies import Study
from studies._articles import articles, stream

T, BATCH = 128, 8


def run(arm: str, seed: int, *, steps: int) -> dict[str, float]:
    V = int(arm)
    ids, held_out = (
        stream([document[:most] for document in articles(split)], V)
        for split, most in (("train", None), ("validation", 6000))
    )
    torch.manual_seed(seed)
    model = fast_gpt(V, T, n_layer=4, n_head=4, n_embd=96)
    train(
        model, ids, steps=steps, block_size=T, batch_size=BATCH, schedule=wsd_schedule,
        optimizer=fast_optimizers(model, matrix_rate=0.05, momentum=0.75),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    nats = estimate_loss(model, held_out, block_size=T) * (len(held_out) - 1)
    characters = sum(len(document[:6000]) for document in articles("validation"))
    tokens = steps * BATCH * T
    return {
        "bits": nats / math.log(2) / characters,
        "characters": tokens * sum(map(len, articles("train"))) / len(ids),
        "flops": 6 * tokens * (12 * 4 * 96**2 + V * 96),
    }


study = Study(
    arms=["512", "2048", "8192"],
    settings={"steps": 150},
    variations=[{"steps": 100}, {"steps": 300}],
)
