"""A GPT learns two pages by heart: which checkpoint is best, and does a shorter plan beat it?

Chapter 10's live run: a small GPT (two blocks, C = 64, dropout 0.05) on the first 4,000 characters
of the plays, with AdamW at a peak learning rate of 0.01, 60 steps of warm-up, cosine decay and
clipping. The arms differ in the length that the schedule is planned for. best, at: the lowest
validation loss of the evaluations every 30 steps, and its step; end: the last one. right: how often
the first guess is right; shocks: how often the true character gets less than 0.001; words: the
fraction of the words of four letters or more, in 64 texts of 250 characters, that are in the plays.
"""

import copy
import re
from functools import cache, partial

import torch

from helpers import data
from helpers.gpt import GPT, GPTConfig
from helpers.optimizers import adamw
from helpers.sampling import generate
from helpers.training import cosine_schedule, estimate_loss, evaluating, train
from studies import Study
from studies._plays import plays

T = 16


def run(arm: str, seed: int, *, rate: float, weight_decay: float) -> dict[str, float]:
    tokenizer, ids, held_out = plays(10_000)
    steps = int(arm.split()[0])
    torch.manual_seed(seed)
    model = GPT(GPTConfig(tokenizer.vocab_size, T, 2, 4, 64, dropout=0.05))
    losses, kept = {}, model

    def look(step: int, _: float) -> None:
        nonlocal kept
        if (step + 1) % 30 == 0:
            losses[step + 1] = estimate_loss(model, held_out, block_size=T, batch_size=1024)
            if losses[step + 1] == min(losses.values()):
                kept = copy.deepcopy(model)

    train(
        model, ids[:4000], steps=steps, block_size=T, batch_size=32,
        schedule=partial(cosine_schedule, warmup=60), optimizer=adamw(model, rate, weight_decay),
        grad_clip=1.0, generator=torch.Generator().manual_seed(seed), callback=look,
    )  # fmt: skip
    best = min(losses, key=losses.__getitem__)
    numbers = {"best": losses[best], "at": best, "end": losses[steps]}
    for name, one in (("best", kept), ("end", model)):
        with evaluating(one), torch.no_grad():
            p = one(held_out[:9984].view(-1, T)).softmax(-1)
        y = held_out[1:9985].view(-1, T, 1)
        numbers[f"right, {name}"] = (p.argmax(-1, True) == y).float().mean().item()
        numbers[f"shocks, {name}"] = (p.gather(-1, y) < 0.001).float().mean().item()
        starts = torch.tensor([tokenizer.encode("\n")] * 64)
        texts = generate(one, starts, 250, generator=torch.Generator().manual_seed(5))
        found = [w for row in texts for w in words(tokenizer.decode(row.tolist()))[1:-1]]
        numbers[f"words, {name}"] = sum(w in known() for w in found) / max(1, len(found))
    return numbers


def words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z']{4,}", text)


@cache
def known() -> set[str]:
    return set(words(data.shakespeare()))


study = Study(
    arms=["600 steps", "240 steps", "120 steps"],
    settings={"rate": 0.01, "weight_decay": 0.1},
    variations=[{"weight_decay": 0.0}, {"weight_decay": 1.0}, {"weight_decay": 3.0}],
)
