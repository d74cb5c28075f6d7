"""What becomes of written steps if the answer can be read off the question?

The task of `written_down`, six digits, all sums written; a digit before the = is the answer in some
of the problems, and a question mark in the others. in_sight: in how many. right: without an answer
in sight, greedily, 300 problems. follows: with an answer in sight that is wrong by four, the model
ends in it. last three, all five: so many of its sums, counted from the end, lead to that answer.
"""

import random

import torch
import torch.nn.functional as F
from torch import Tensor

from helpers.gpt import fast_gpt
from helpers.optimizers import fast_optimizers
from helpers.sampling import generate
from helpers.text import CharTokenizer
from helpers.training import minimize, wsd_schedule
from studies import Study

TOKENIZER = CharTokenizer("0123456789=>.?")
T = 8  # six digits, the answer or a question mark, and =


def sums(digits: list[int]) -> str:
    return "".join(str(sum(digits[:k]) % 10) for k in range(2, 7))


def encode(problems: list[list[int]], seen: list[str], completed: bool = False) -> Tensor:
    texts = ["".join(map(str, p)) + s + "=" for p, s in zip(problems, seen, strict=True)]
    if completed:
        texts = [f"{text}>{sums(p)}." for text, p in zip(texts, problems, strict=True)]
    return torch.tensor([TOKENIZER.encode(text) for text in texts])


def run(arm: str, seed: int, *, in_sight: float, steps: int) -> dict[str, float]:
    rng = random.Random(seed)
    torch.manual_seed(seed)
    model = fast_gpt(TOKENIZER.vocab_size, 16, 2, 4, 64)

    def draw(size: int) -> list[list[int]]:
        return [[rng.randrange(10) for _ in range(6)] for _ in range(size)]

    def loss_of(step: int) -> Tensor:
        problems = draw(128)
        seen = [sums(p)[-1] if rng.random() < in_sight else "?" for p in problems]
        ids = encode(problems, seen, completed=True)
        return F.cross_entropy(model(ids[:, :-1])[:, T - 1 :].flatten(0, 1), ids[:, T:].flatten())

    optimizers = fast_optimizers(model, 0.05, 0.02, momentum=0.9)
    minimize(loss_of, model, optimizers, steps, wsd_schedule)
    problems = draw(300)
    wrong = [str((sum(p) + 4) % 10) for p in problems]

    def written(seen: list[str]) -> list[str]:  # the five sums
        ids = generate(model, encode(problems, seen), 6, temperature=0)
        return [TOKENIZER.decode(row[T + 1 :].tolist()) for row in ids]

    def lead(count: int) -> float:  # from the end, each sum is the next one minus the next digit
        back = [[str((sum(p[: k + 1]) + 4) % 10) for k in range(1, 6)] for p in problems]
        pairs = zip(written(wrong), back, strict=True)
        return sum(text[-count:] == "".join(b[-count:]) for text, b in pairs) / 300

    right = zip(written(["?"] * 300), problems, strict=True)
    return {
        "right": sum(text[-1] == sums(p)[-1] for text, p in right) / 300,
        "follows": lead(1),
        "last three": lead(3),
        "all five": lead(5),
    }


study = Study(
    arms=["written"],
    settings={"in_sight": 0.5, "steps": 400},
    variations=[{"in_sight": 0.1}, {"steps": 1200}],
)
