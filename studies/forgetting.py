"""What does the Shakespeare model forget while it learns the prose of an encyclopedia?

The shipped model of characters (5 blocks, trained on the plays) is trained on articles. articles
and plays: the loss on 96 held-out windows of 96 characters of each, in nats per character. Ways:
all weights; all but the token table, which is also the head; LoRA on all linear layers of the
blocks, of rank 1, 4 and 16 with alpha 4, and of rank 16 with alpha 16; and all weights or LoRA with
a quarter of each batch from the plays. Each has the learning rate that the first trials chose, 0.001
for all weights and 0.01 for LoRA, and a half and a quarter of it.
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
LORA = {  # rank, alpha
    "LoRA, rank 1": (1, 4),
    "LoRA, rank 4": (4, 4),
    "LoRA, rank 16": (16, 4),
    "LoRA, rank 16, alpha 16": (16, 16),
    "LoRA, rank 4, old text": (4, 4),
}


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
    x = windows(ids, torch.linspace(0, len(ids) - T - 1, 96).long())
    return language_model_loss(model, x[:, :-1], x[:, 1:]).item()


def run(arm: str, seed: int, *, steps: int, size: int, part: float) -> dict[str, float]:
    model = copy.deepcopy(shipped()[0])
    if arm != "as it is":
        train_on_articles(model, arm, seed, steps, size, part)
    return {name: held_out(model, name) for name in ("articles", "plays")}


def train_on_articles(model: GPT, arm: str, seed: int, steps: int, size: int, part: float) -> None:
    torch.manual_seed(seed)
    if arm in LORA:
        parameters, rate = add_lora(model, *LORA[arm]), 1e-2
    else:
        parameters, rate = [*model.requires_grad_(True).parameters()], 1e-3
        if arm == "all but the table":
            model.token.requires_grad_(False)
            parameters = [p for p in parameters if p.requires_grad]
    old = size // 4 if arm.endswith("old text") else 0
    generator = torch.Generator().manual_seed(seed)  # the batches are alike in all arms

    def loss_of(step: int) -> Tensor:
        x = batch(size, old, generator)
        return language_model_loss(model, x[:, :-1], x[:, 1:])

    optimizer = torch.optim.AdamW(parameters, rate * part, betas=(0.9, 0.95), weight_decay=0.0)
    schedule = partial(wsd_schedule, warmup=4, decay_frac=0.5)
    minimize(loss_of, model, optimizer, steps, schedule, grad_clip=1.0)


def batch(size: int, old: int, generator: torch.Generator) -> Tensor:
    articles, plays = ids_of("articles", "train"), ids_of("plays", "train")
    starts = torch.randint(len(articles) - T - 1, (size,), generator=generator)
    new = windows(articles, starts[old:])
    return torch.cat((new, windows(plays, starts[:old] % (len(plays) - T - 1)))) if old else new


study = Study(
    arms=["as it is", "all weights", "all but the table", "all weights, old text", *LORA],
    settings={"steps": 24, "size": 8, "part": 1.0},
    variations=[{"part": 0.5}, {"part": 0.25}],
)
