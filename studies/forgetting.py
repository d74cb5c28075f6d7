"""What does the Shakespeare model forget while it learns the prose of an encyclopedia?

The shipped model of characters (5 blocks, trained on the plays) is trained on articles. articles
and plays: the loss on 24 held-out windows of 96 characters of each, in nats per character. Arms:
the model as it is; all weights; LoRA of rank 1, 4 and 16 on all linear layers of the blocks; all
weights with a quarter of each batch from the plays. parameters: how many are trained. The learning
rates, 0.001 for all weights and 0.01 for LoRA, were chosen with one seed.
"""

import copy
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from helpers import data
from helpers.finetuning import add_lora
from helpers.formats.checkpoints import load_checkpoint
from helpers.gpt import GPT
from helpers.text import CharTokenizer
from studies import Study

T = 96
RANKS = {"LoRA, rank 1": 1, "LoRA, rank 4": 4, "LoRA, rank 16": 16}


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
    return cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten()).item()


def run(arm: str, seed: int, *, steps: int, size: int) -> dict[str, float]:
    model = copy.deepcopy(shipped()[0])
    trained = 0
    if arm != "as it is":
        torch.manual_seed(seed)
        old = size // 4 if arm == "all weights, old text" else 0
        if arm in RANKS:
            parameters = add_lora(model, RANKS[arm])
        else:
            parameters = list(model.requires_grad_(True).parameters())
        trained = sum(p.numel() for p in parameters)
        rate = 1e-2 if arm in RANKS else 1e-3
        generator = torch.Generator().manual_seed(seed)  # the batches are alike in all arms
        optimizer = torch.optim.AdamW(parameters, betas=(0.9, 0.95), weight_decay=0.0)
        for step in range(steps):
            x = batch(size, old, generator)
            loss = cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            # Warm-up in 4 steps, and decay in the second half.
            factor = min(1, (step + 1) / 4, 2 * (steps - step) / steps)
            optimizer.param_groups[0]["lr"] = rate * factor
            optimizer.step()
    losses = {name: held_out(model, name) for name in ("articles", "plays")}
    return {**losses, "parameters": trained}


def batch(size: int, old: int, generator: torch.Generator) -> Tensor:
    articles, plays = ids_of("articles", "train"), ids_of("plays", "train")
    starts = torch.randint(len(articles) - T - 1, (size,), generator=generator)
    new = windows(articles, starts[old:])
    return torch.cat((new, windows(plays, starts[:old] % (len(plays) - T - 1)))) if old else new


study = Study(
    arms=["as it is", "all weights", *RANKS, "all weights, old text"],
    settings={"steps": 24, "size": 8},
)
