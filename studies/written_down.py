"""Do written steps help, or only the time that they take? The last digit of a sum of digits.

A small GPT (width 64) reads digits, `3405=`, and learns the last digit of their sum: at once, after
as many dots as there are digits, or as the end of the running sums, 3, 7, 7, 2. `zeros first` is at
once, too, in twice as many steps: all digits but two are 0 in the first lessons, then all but
three, and from three fifths of the steps on, none is on purpose. right: of 500 problems, answered
at temperature 1.
"""

import random

import torch
import torch.nn.functional as F
from torch import Tensor

from helpers.gpt import fast_gpt
from helpers.optimizers import fast_optimizers
from helpers.rewards import completion_mask, sample_completions
from helpers.text import CharTokenizer
from helpers.training import minimize, wsd_schedule
from studies import Study

TOKENIZER = CharTokenizer("0123456789=>.")
END = TOKENIZER.encode(".")[0]


def completion(arm: str, digits: list[int]) -> str:
    sums = "".join(str(sum(digits[:k]) % 10) for k in range(2, len(digits) + 1))
    before = {"dots": ">" * len(digits), "written": ">" + sums[:-1]}
    return before.get(arm, "") + sums[-1]


def run(arm: str, seed: int, *, digits: int, layers: int, steps: int) -> dict[str, float]:
    rng, n = random.Random(seed), digits + 2
    steps *= 2 if arm == "zeros first" else 1
    torch.manual_seed(seed)
    model = fast_gpt(TOKENIZER.vocab_size, digits + 1 + n, layers, 4, 64)

    def draw(size: int, zeros: int = 0) -> tuple[list[list[int]], Tensor]:
        problems = [[rng.randrange(10) for _ in range(digits)] for _ in range(size)]
        for problem in problems:
            for place in rng.sample(range(digits), zeros):
                problem[place] = 0
        texts = ["".join(map(str, p)) + "=" + completion(arm, p) for p in problems]
        rows = [TOKENIZER.encode(text.ljust(digits + 1 + n, ".")) for text in texts]
        return problems, torch.tensor(rows)

    def loss_of(step: int) -> Tensor:
        zeros = max(0, digits - 2 - int(5 * step / (0.6 * steps))) if arm == "zeros first" else 0
        ids = draw(128, zeros)[1]
        mask = completion_mask(ids[:, -n:], END)
        return F.cross_entropy(model(ids[:, :-1])[:, -n:][mask], ids[:, -n:][mask])

    optimizers = fast_optimizers(model, 0.05, 0.02, momentum=0.9)
    minimize(loss_of, model, optimizers, steps, wsd_schedule)
    problems, ids = draw(500)
    prompts, generator = ids[:, : digits + 1], torch.Generator().manual_seed(seed)
    ids, _ = sample_completions(model, prompts, n, END, generator=generator)
    said = [TOKENIZER.decode(row[digits + 1 :].tolist()).split(".")[0] for row in ids]
    right = [a[-1:] == str(sum(p) % 10) for a, p in zip(said, problems, strict=True)]
    return {"right": sum(right) / len(right)}


study = Study(
    arms=["at once", "dots", "written", "zeros first"],
    settings={"digits": 6, "layers": 2, "steps": 400},
    variations=[{"digits": 3}, {"digits": 4}],
)
