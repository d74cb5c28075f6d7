"""Chapter 15: does SmolLM2 write the same text from its four bits?

Ten prompts, 64 tokens each, the likeliest every time, written in float32; then the model in four
bits reads that text. alike: of how many of the 64 tokens it finds the same one likeliest; until:
how many it writes alike until the first that differs; gap: how far, in float32, the logits of the
two likeliest tokens were apart there (0 if none differs); logits: the largest difference of any
logit. Computed with PyTorch's kernel, in bfloat16, or from the matrices written out, in float32;
the head is in float16 in both. A seed is a prompt.
"""

from functools import cache
from unittest import mock

import torch

from helpers import data, quantised
from helpers.gpt import GPT
from helpers.published import gguf
from helpers.sampling import generate
from studies import Study
from studies._real import smollm2
from studies.same_model import PROMPTS

ARMS = {"kernel": True, "written out": False}


@cache
def in_four_bits(fast: bool) -> GPT:
    with mock.patch.object(quantised, "has_kernel", lambda: fast):
        return gguf(data.smollm2(), four_bits=True).model


@torch.no_grad()
def run(arm: str, seed: int, *, tokens: int) -> dict[str, float]:
    model, tokenizer = smollm2()
    ids = torch.tensor([tokenizer.encode(PROMPTS[seed])])
    text = generate(model, ids, tokens, temperature=0)
    read = text[:, :-1]
    want, got = (m(read)[0, -tokens:] for m in (model, in_four_bits(ARMS[arm])))
    same = (want.argmax(-1) == got.argmax(-1)).tolist()
    first = same.index(False) if False in same else None
    two = want[0 if first is None else first].topk(2).values
    return {
        "alike": float(sum(same)),
        "until": float(tokens if first is None else first),
        "gap": 0.0 if first is None else (two[0] - two[1]).item(),
        "logits": (want - got).abs().max().item(),
    }


study = Study(arms=list(ARMS), settings={"tokens": 64}, seeds=range(len(PROMPTS)))
