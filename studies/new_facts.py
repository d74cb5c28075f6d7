"""Can fine-tuning teach SmolLM2 facts, and what happens to those that it knew?

First the format of `answer_form`: 12 steps of 6 dialogues about 35 real countries. Then the same
adapters are trained for 16 steps of 6 dialogues about twelve invented countries, "new only", or
with two of the six about the real ones, "with old". learned: the fraction of the twelve answers
that are right; sentence: after "The capital of … is"; reversed: asked for the country, with the
answer begun. before: of 12 held-out real capitals, how many are right after the format; kept: how
many of these are still right; invented: how many of the 12 have become invented cities.
"""

from functools import cache
from typing import Any

from torch import Tensor, nn

from helpers.finetuning import add_lora, chat_text, merge_lora
from helpers.gpt import GPT
from helpers.sampling import generate
from studies import Study
from studies._capitals import INVENTED, dialogue, rows, seeded, split, tune
from studies._real import smollm2

Pairs = list[tuple[str, str]]


@cache
def after_format(seed: int, rate: float) -> tuple[Any, list[nn.Parameter], list[Tensor]]:
    """The model, its adapters, and a copy of them, trained on the real countries."""
    rng, (base, tokenizer) = seeded(seed), smollm2()
    model: Any = merge_lora(base)  # of an earlier seed: B is zero
    adapters = add_lora(model, rank=4, alpha=4)
    old = rows(tokenizer, [dialogue(*pair) for pair in split(seed)[0]])
    tune(model, adapters, [rng.sample(old, 6) for _ in range(12)], rate)
    return model, adapters, [p.detach().clone() for p in adapters]


def run(arm: str, seed: int, *, steps: int, n_old: int, rate: float) -> dict[str, float]:
    train, held = split(seed)
    held = held[:12]
    model, adapters, formatted = after_format(seed, rate)
    for p, value in zip(adapters, formatted, strict=True):
        p.data.copy_(value)
    before = set(right(model, held))
    _, tokenizer = smollm2()
    new, old = (rows(tokenizer, [dialogue(*pair) for pair in some]) for some in (INVENTED, train))
    rng, k = seeded(seed), n_old if arm == "with old" else 0
    tune(model, adapters, [rng.sample(new, 6 - k) + rng.sample(old, k) for _ in range(steps)], rate)
    turned = [(city, country) for country, city in INVENTED]
    cities = {f"Answer: {city}<|im_end|>" for _, city in INVENTED}
    said = replies(model, [chat_text(dialogue(*pair)[:1]) for pair in held])
    numbers: dict[str, float] = {
        "learned": len(right(model, INVENTED)),
        "sentence": len(right(model, INVENTED, begin="The capital of {} is")),
        "reversed": len(right(model, turned, "{} is the capital of which country?", "Answer:")),
        "before": len(before),
        "kept": len(before & set(right(model, held))),
        "invented": sum(reply in cities for reply in said),
    }
    for p in adapters:
        p.data.zero_()  # so that they can be merged away
    return numbers


def right(
    model: GPT, pairs: Pairs, question: str = "What is the capital of {}?", begin: str = ""
) -> Pairs:
    """The pairs whose second word the model gives; whole, or after a beginning of ours."""
    chats = [chat_text([("user", question.format(a))]) + begin.format(a) for a, _ in pairs]
    found = zip(pairs, replies(model, chats), strict=True)
    if not begin:
        return [pair for pair, reply in found if reply == f"Answer: {pair[1]}<|im_end|>"]
    return [pair for pair, reply in found if reply.startswith(f" {pair[1]}")]


def replies(model: GPT, chats: list[str]) -> list[str]:
    """What the model writes after each text, greedily, at most 7 tokens."""
    _, tokenizer = smollm2()
    end = tokenizer.special["<|im_end|>"]
    prompts = [tokenizer.encode(text, special=tokenizer.special) for text in chats]
    whole = generate(model, prompts, 7, temperature=0, stop=[end])
    return [tokenizer.decode(w[len(p) :]) for w, p in zip(whole, prompts, strict=True)]


study = Study(arms=["new only", "with old"], settings={"steps": 16, "n_old": 2, "rate": 3e-3})
