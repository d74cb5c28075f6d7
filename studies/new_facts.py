"""Can fine-tuning teach SmolLM2 facts, and what happens to those that it knew?

Twelve invented countries with invented capitals, after the format of `answer_form` (12 steps on 35
real countries): 20 more steps of 6 dialogues with the same adapters, "new only", or with two of
the six from the 35 real countries, "with old". learned: the fraction of the twelve answers that are
right; paraphrase: to another question, whose answer we begin; sentence: after "The capital of … is";
reversed: asked for the country, whose answer we begin. kept: of the 24 held-out real capitals that
were right after the format, the fraction that are still right; before: how many those are of 24;
invented: the fraction of the 24 that are now answered with an invented city. wikipedia: the loss
on 256 tokens of articles, in nats per token.
"""

import copy

import torch

from helpers.finetuning import Row, add_lora, chat_text
from helpers.gpt import GPT
from helpers.sampling import generate
from studies import Study
from studies._capitals import INVENTED, dialogue, rows, seeded, split, tune, wikipedia_loss
from studies._real import smollm2


def run(arm: str, seed: int, *, steps: int, rank: int, rate: float) -> dict[str, float]:
    model, tokenizer = copy.deepcopy(smollm2()[0]), smollm2()[1]
    train, held = split(seed)
    old, new = (rows(tokenizer, [dialogue(*pair) for pair in some]) for some in (train, INVENTED))
    rng = seeded(seed)
    parameters = add_lora(model, rank, alpha=rank)
    tune(model, parameters, [rng.sample(old, 6) for _ in range(12)], rate)
    before = {country for country, _ in right(model, held)}
    batches: list[list[Row]] = []
    for _ in range(steps):
        n_old = 2 if arm == "with old" else 0
        batches.append(rng.sample(new, 6 - n_old) + rng.sample(old, n_old))
    tune(model, parameters, batches, rate)
    turned = [(city, country) for country, city in INVENTED]
    cities = [f"Answer: {city}<|im_end|>" for _, city in INVENTED]
    seat = "Which city is the seat of government of {}?"
    said = replies(model, [chat_text(dialogue(*pair)[:1]) for pair in held])
    return {
        "learned": len(right(model, INVENTED)) / 12,
        "paraphrase": len(right(model, INVENTED, seat, "Answer:")) / 12,
        "sentence": len(right(model, INVENTED, begin="The capital of {} is")) / 12,
        "reversed": len(right(model, turned, "{} is the capital of which country?", "Answer:"))
        / 12,
        "before": len(before),
        "kept": len(before & {country for country, _ in right(model, held)}) / len(before),
        "invented": sum(reply in cities for reply in said) / len(held),
        "wikipedia": wikipedia_loss(model),
    }


def right(
    model: GPT,
    pairs: list[tuple[str, str]],
    question: str = "What is the capital of {}?",
    begin: str = "",
) -> list[tuple[str, str]]:
    """The pairs whose second word the model gives; whole, or after a beginning of ours."""
    chats = [chat_text([("user", question.format(a))]) + begin.format(a) for a, _ in pairs]
    found = zip(pairs, replies(model, chats), strict=True)
    if not begin:
        return [pair for pair, reply in found if reply == f"Answer: {pair[1]}<|im_end|>"]
    return [pair for pair, reply in found if reply.startswith(f" {pair[1]}")]


def replies(model: GPT, chats: list[str]) -> list[str]:
    """What the model writes after each text, greedily, at most 8 tokens."""
    _, tokenizer = smollm2()
    end = tokenizer.special["<|im_end|>"]
    prompts = [tokenizer.encode(text, special=tokenizer.special) for text in chats]
    whole = generate(model, [torch.tensor(p) for p in prompts], 8, temperature=0, stop=[end])
    return [tokenizer.decode(w[len(p) :]) for w, p in zip(whole, prompts, strict=True)]


study = Study(
    arms=["new only", "with old"],
    settings={"steps": 20, "rank": 4, "rate": 3e-3},
)
