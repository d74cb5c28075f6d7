"""Is the most likely text like real text? And what does each way to choose make of a text?

The shipped GPT continues 50 characters of plays that it was not trained on; the seed decides which
12 stretches, and the dice. nats: the mean surprise of the model at the characters of the
continuation; real is how the play goes on. repeats: the share of pieces of 12 characters that stood
before in the same continuation; known: the share of its words that are in the training plays.
"""

import re
from functools import cache
from typing import Any

import torch
from torch import Tensor

from helpers import data
from helpers.checkpoints import Checkpoint, load_checkpoint
from helpers.gpt import GPT
from helpers.sampling import generate
from studies import Study

PROMPT, TEXTS = 50, 12
WAYS: dict[str, dict[str, Any]] = {
    "drawn": {}, "temperature 1.5": {"temperature": 1.5}, "temperature 0.7": {"temperature": 0.7},
    "top-p 0.9": {"top_p": 0.9}, "min-p 0.1": {"min_p": 0.1}, "greedy": {"temperature": 0},
    "greedy, penalty 1.2": {"temperature": 0, "repetition_penalty": 1.2},
}  # fmt: skip


@cache
def shipped() -> Checkpoint:
    return load_checkpoint(data.checkpoint("shakespeare-gpt"))


@cache
def known_words() -> set[str]:
    return set(words(data.shakespeare("train")))


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def repeats(text: str, n: int = 12) -> float:
    pieces = [text[i : i + n] for i in range(len(text) - n + 1)]
    return 1 - len(set(pieces)) / len(pieces)


@torch.no_grad()
def surprise(model: GPT, ids: Tensor) -> Tensor:
    """(B,): the mean surprise at the characters after the prompt, in nats."""
    log_p = model(ids[:, :-1])[:, PROMPT - 1 :].log_softmax(-1)
    return -log_p.gather(-1, ids[:, PROMPT:, None]).mean((1, 2))


@torch.no_grad()
def beam(model: GPT, prompts: Tensor, n_tokens: int, width: int) -> Tensor:
    """Keep the `width` likeliest texts after each token; prompts (B, T), returns the likeliest."""
    ids, cache = prompts, model.empty_cache()
    scores = torch.zeros(len(prompts), 1)  # of each text in each beam
    logits = model(ids, cache)[:, -1]
    for _ in range(n_tokens):
        V, held = logits.shape[-1], scores.shape[1]
        longer = scores.flatten()[:, None] + logits.log_softmax(-1)
        scores, best = longer.view(len(prompts), held * V).topk(width)
        rows = (torch.arange(len(prompts))[:, None] * held + best // V).flatten()
        new = (best % V).flatten()
        ids = torch.cat((ids[rows], new[:, None]), 1)
        kept = model.empty_cache()
        for old, fresh in zip(cache, kept, strict=True):
            assert old.keys is not None and old.values is not None
            fresh.append(old.keys[rows], old.values[rows])
        cache = kept
        logits = model(new[:, None], cache)[:, -1]
    return ids.unflatten(0, (len(prompts), width))[:, 0]


def run(arm: str, seed: int, *, characters: int) -> dict[str, float]:
    model, tokenizer = shipped().model, shipped().tokenizer
    assert isinstance(model, GPT) and tokenizer is not None
    text = torch.tensor(tokenizer.encode(data.shakespeare("validation")))
    g = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(text) - 300, (TEXTS,), generator=g)
    real = text[starts[:, None] + torch.arange(PROMPT + characters)]
    prompts = real[:, :PROMPT]
    if arm == "real":
        ids = real
    elif arm.startswith("beam"):
        ids = beam(model, prompts, characters, int(arm.split()[-1]))
    else:
        ids = generate(model, prompts, characters, generator=g, **WAYS[arm])
    written = [tokenizer.decode(row) for row in ids[:, PROMPT:].tolist()]
    all_words = [word for one in written for word in words(one)[1:-1]]  # the ends may be cut
    return {
        "nats": surprise(model, ids).mean().item(),
        "repeats": sum(map(repeats, written)) / TEXTS,
        "known": sum(word in known_words() for word in all_words) / len(all_words),
    }


study = Study(
    arms=["real", *WAYS, "beam of 4"],
    settings={"characters": 100},
    variations=[{"characters": 200}],
)
