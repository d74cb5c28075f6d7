"""What does the Shakespeare model forget while it learns the prose of an encyclopedia?

The shipped model of characters (5 blocks, trained on the plays) is trained on articles. articles
and plays: the loss on 24 held-out windows of 96 characters of each, in nats per character. Arms:
the model as it is; all weights, the token table included; the same with a quarter of each batch
from the plays; LoRA of rank 4 and 16 on all linear layers of the blocks, with alpha 4. The
learning rates are 0.001 for all weights and 0.01 for LoRA, which a trial with one seed chose, or
the half (1/2) or the quarter (1/4) of it.
"""

import copy
from functools import cache, partial

import torch
from torch import Tensor

from helpers import data
from helpers.finetuning import add_lora
from helpers.formats.checkpoints import load_checkpoint
from helpers.gpt import GPT
from helpers.text import CharTokenizer
from helpers.training import language_model_loss, minimize, wsd_schedule
from studies import Study

T = 96
WAYS = ["all weights", "old text", "LoRA 4"]


@cache
def shipped() -> tuple[GPT, CharTokenizer]:
    read = load_checkpoint(data.checkpoint("shakespeare-gpt"))
    assert isinstance(read.model, GPT) and isinstance(read.tokenizer, CharTokenizer)
    return read.model, read.tokenizer


@cache
def ids_of(name: str, split: str) -> Tensor:
    """400,000 characters to train on or 100,000 to test on, without those unknown to the model."""
    _, tokenizer = shipped()
    if name == "plays":
        text = data.shakespeare(split)
    else:
        text = " ".join(article for _, article in data.wikipedia(split)[:20])
    known = set(tokenizer.symbols)
    text = "".join(symbol for symbol in text if symbol in known)
    return torch.tensor(tokenizer.encode(text[: 400_000 if split == "train" else 100_000]))


def windows(ids: Tensor, starts: Tensor) -> Tensor:
    return torch.stack([ids[start : start + T + 1] for start in starts])


@torch.no_grad()
def held_out(model: GPT, name: str) -> float:
    ids = ids_of(name, "validation")
    x = windows(ids, torch.linspace(0, len(ids) - T - 1, 24).long())
    return language_model_loss(model, x[:, :-1], x[:, 1:]).item()


def run(arm: str, seed: int, *, steps: int, size: int) -> dict[str, float]:
    model = copy.deepcopy(shipped()[0])
    if arm != "as it is":
        way, _, part = arm.partition(", 1/")
        train_on_articles(model, way, seed, steps, size, int(part or 1))
    return {name: held_out(model, name) for name in ("articles", "plays")}


def train_on_articles(
    model: GPT, way: str, seed: int, steps: int, size: int, divided_by: int
) -> None:
    torch.manual_seed(seed)
    rate = 1e-3
    if way.startswith("LoRA"):
        parameters, rate = add_lora(model, rank=int(way[5:]), alpha=4), 1e-2
    else:
        parameters = [*model.requires_grad_(True).parameters()]
    generator = torch.Generator().manual_seed(seed)  # the batches are alike in all arms

    def loss_of(step: int) -> Tensor:
        x = batch(size, size // 4 if way == "old text" else 0, generator)
        return language_model_loss(model, x[:, :-1], x[:, 1:])

    optimizer = torch.optim.AdamW(parameters, rate / divided_by, betas=(0.9, 0.95), weight_decay=0)
    schedule = partial(wsd_schedule, warmup=4, decay_frac=0.5)
    minimize(loss_of, model, optimizer, steps, schedule, grad_clip=1.0)


def batch(size: int, old: int, generator: torch.Generator) -> Tensor:
    articles, plays = ids_of("articles", "train"), ids_of("plays", "train")
    starts = torch.randint(len(articles) - T - 1, (size,), generator=generator)
    new = windows(articles, starts[old:])
    return torch.cat((new, windows(plays, starts[:old] % (len(plays) - T - 1)))) if old else new


study = Study(
    arms=[
        "as it is",
        *(way + part for way in WAYS for part in ("", ", 1/2", ", 1/4")),
        "LoRA 16",
    ],
    settings={"steps": 24, "size": 8},
)
