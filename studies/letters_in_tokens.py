"""Which tokens contain an r: SmolLM2's token table shows it, and GPTMini's hardly does.

A linear reader (ridge regression) is told of some tokens, by their vectors, whether they contain a
letter, and asked about others: of two tokens, one of which has the letter, which one is it? `right`
is how often it is right; 0.5 is guessing. The tokens are words and parts of words in ASCII letters,
two or more. SmolLM2's reader learns from as many tokens as GPTMini's, or from all but a fifth. The
seed draws which tokens are learned; in one arm SmolLM2's vectors are dealt out at random.
"""

from functools import cache

import torch
from torch import Tensor

from helpers import data
from helpers.formats.checkpoints import load_checkpoint
from helpers.text import BPETokenizer
from studies import Study
from studies._real import smollm2


@cache
def table(name: str) -> tuple[list[bytes], Tensor]:
    """The pieces of a model, in lower case and without spaces, and their vectors."""
    if name == "GPTMini":
        saved = load_checkpoint(data.checkpoint("gptmini"))
        model, tokenizer = saved.model, saved.tokenizer
        assert isinstance(tokenizer, BPETokenizer)
    else:
        model, tokenizer = smollm2()
    pieces = [tokenizer.piece(id).strip().lower() for id in range(tokenizer.vocab_size)]
    chosen = [i for i, p in enumerate(pieces) if len(p) > 1 and p.isascii() and p.isalpha()]
    return [pieces[i] for i in chosen], model.token.weight.detach()[chosen].float()


def run(arm: str, seed: int, *, letter: str) -> dict[str, float]:
    pieces, x = table(arm.split(",")[0])
    draws = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(pieces), generator=draws)
    n = len(pieces) * 4 // 5 if arm.endswith("all but a fifth") else 1300
    if arm.endswith("dealt out"):
        x = x[torch.randperm(len(x), generator=draws)]
    x = ((x - x.mean(0)) / x.std(0))[order]
    y = torch.tensor([2.0 * (letter.encode() in pieces[i]) - 1 for i in order])
    inner = x[:n].T @ x[:n] + 300 * torch.eye(x.shape[1])
    score = x[n:] @ torch.linalg.solve(inner, x[:n].T @ (y[:n] - y[:n].mean()))
    yes, no = score[y[n:] > 0][-2000:], score[y[n:] < 0][-2000:]
    return {"right": (yes[:, None] > no).float().mean().item()}


study = Study(
    arms=["GPTMini", "SmolLM2", "SmolLM2, all but a fifth", "SmolLM2, dealt out"],
    settings={"letter": "r"},
    variations=[{"letter": letter} for letter in "aest"],
)
