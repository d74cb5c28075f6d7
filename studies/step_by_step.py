"""Does *step by step* help SmolLM2 to add one-digit numbers, or do the steps?

`What is 8 + 1 + 2 + 7?`, in the chat template, greedily, 30 problems a seed. at once: *Answer with
only the number.* step by step: *Let's think step by step*, 90 tokens. our plan: we begin each line,
`8 + 1 =`, the model writes the sum, and the next line begins with that. wrong line: we write all
lines but the last ourselves, with 3 too many. right: the last number is the sum; for the wrong
line, follows: it is the sum of the last line as it stands.
"""

import random
import re

from helpers.finetuning import chat_text
from helpers.sampling import generate
from studies import Study
from studies._real import smollm2

SPECIAL = ["<|im_start|>", "<|im_end|>"]
WORDS = {"at once": " Answer with only the number.", "step by step": " Let's think step by step."}


def run(arm: str, seed: int, *, numbers: int) -> dict[str, float]:
    model, tokenizer = smollm2()
    end = tokenizer.encode("<|im_end|>", SPECIAL)
    rng = random.Random(seed)
    problems = [[rng.randrange(1, 10) for _ in range(numbers)] for _ in range(30)]
    asked = [f"What is {' + '.join(map(str, p))}?{WORDS.get(arm, '')}" for p in problems]
    texts = [chat_text([("user", question)]) for question in asked]

    def continued(n: int) -> list[str]:
        prompts = [tokenizer.encode(text, SPECIAL) for text in texts]
        rows = generate(model, prompts, n, temperature=0, stop=end)
        pairs = zip(rows, prompts, strict=True)
        return [tokenizer.decode(row[len(prompt) :].tolist()) for row, prompt in pairs]

    def number(text: str, which: int) -> int:
        return int((re.findall(r"\d{1,9}", text) or [-1])[which])

    if arm in WORDS:
        said = [number(text, -1) for text in continued(90 if arm == "step by step" else 12)]
        wanted = [sum(p) for p in problems]
    else:
        said, wanted = [p[0] for p in problems], []
        for k in range(1, numbers):
            for i, p in enumerate(problems):
                texts[i] += f"{said[i]} + {p[k]} ="
            wanted = [s + p[k] for s, p in zip(said, problems, strict=True)]
            if arm == "wrong line" and k < numbers - 1:
                said = [sum(p[: k + 1]) + 3 * (k == numbers - 2) for p in problems]
            else:
                said = [number(text, 0) for text in continued(4)]
            texts = [f"{text} {s}\n" for text, s in zip(texts, said, strict=True)]
    truth = [sum(p) for p in problems]
    return {
        "right": sum(a == b for a, b in zip(said, truth, strict=True)) / 30,
        "follows": sum(a == b for a, b in zip(said, wanted, strict=True)) / 30,
    }


study = Study(
    arms=["at once", "step by step", "our plan", "wrong line"],
    settings={"numbers": 4},
    variations=[{"numbers": 3}],
)
