"""Heads that start exactly alike move together for a long time; a difference of a billionth in one
number of one head grows until it is as large as the numbers themselves.

The model of `number_of_heads` with four heads whose matrices are equal, in double precision. after
50: the largest difference between the heads' query matrices after 50 steps; last: after the whole
run; steps: when it first was above 0.1 (the length of the run, if it never was).
"""

import torch

from helpers.training import adamw, get_batch, language_model_loss
from studies import Study
from studies._plays import LetterModel, plays
from studies.number_of_heads import HELD_OUT, untrained

T, C, H = 16, 32, 4


def make_alike(model: LetterModel) -> None:
    layer = model.layer
    with torch.no_grad():
        for part in (layer.query, layer.key, layer.value):
            rows = part.weight.view(H, C // H, C)
            rows.copy_(rows[:1].clone().expand_as(rows))
        bands = layer.output.weight.view(C, H, C // H)
        bands.copy_(bands[:, :1].clone().expand_as(bands))


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    _, train_ids, _ = plays(HELD_OUT)
    torch.manual_seed(seed)
    model = untrained(H).double()
    make_alike(model)
    if arm == "a billionth apart":
        model.layer.query.weight.data[0, 0] += 1e-9
    optimizer, generator = adamw(model, rate), torch.Generator().manual_seed(seed)
    reached, after = steps, list[float]()
    for step in range(1, steps + 1):
        loss = language_model_loss(model, *get_batch(train_ids, T, 64, generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rows = model.layer.query.weight.detach().view(H, C // H, C)
        after.append((rows - rows[:1]).abs().max().item())
        if reached == steps and after[-1] > 0.1:
            reached = step
    return {"after 50": after[49], "last": after[-1], "steps": reached}


study = Study(
    arms=["alike", "a billionth apart"],
    settings={"steps": 250, "rate": 0.02},
    moved=[{"rate": 0.01}],
)
