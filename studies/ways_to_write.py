"""Is the most likely text like real text? And how does the text depend on the decoding method?

The shipped GPT continues 50 characters of plays that it was not trained on. The seed chooses 12
passages, and seeds the sampling. The arm real is how the play continues. nats: the mean negative
log-likelihood of the characters of the continuation, under the model at temperature 1. repeats: the
fraction of 12-grams, spans of 12 characters, that occurred earlier in the same continuation. known:
the fraction of its words that occur in the training plays.
"""

import re
from functools import cache
from typing import Any

import torch
from torch import Tensor

from helpers import data
from helpers.formats.checkpoints import Checkpoint, load_checkpoint
from helpers.gpt import GPT
from helpers.sampling import generate
from studies import Study

PROMPT, TEXTS = 50, 12
WAYS: dict[str, dict[str, Any]] = {
    "sampled": {}, "temperature 1.5": {"temperature": 1.5}, "temperature 0.7": {"temperature": 0.7},
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
    ngrams = [text[i : i + n] for i in range(len(text) - n + 1)]
    return 1 - len(set(ngrams)) / len(ngrams)


@torch.no_grad()
def mean_nll(model: GPT, ids: Tensor) -> Tensor:
    """The mean negative log-likelihood of the characters after the prompt, (B,), in nats."""
    log_p = model(ids[:, :-1])[:, PROMPT - 1 :].log_softmax(-1)
    return -log_p.gather(-1, ids[:, PROMPT:, None]).mean((1, 2))


@torch.no_grad()
def beam(model: GPT, prompts: Tensor, n_tokens: int, width: int) -> Tensor:
    """Beam search: prompts (B, T) → the likeliest of `width` texts, each (T + n_tokens,)."""
    ids, cache = prompts, model.empty_cache()
    scores = torch.zeros(len(prompts), 1)  # log-probabilities of the texts
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
        "nats": mean_nll(model, ids).mean().item(),
        "repeats": sum(map(repeats, written)) / TEXTS,
        "known": sum(word in known_words() for word in all_words) / len(all_words),
    }


study = Study(
    arms=["real", *WAYS, "beam, width 4"],
    settings={"characters": 100},
    variations=[{"characters": 200}],
)
