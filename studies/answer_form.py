"""What teaches SmolLM2 to answer in one form, and what does it cost?

59 questions such as "What is the capital of Italy?", to be answered by "Answer: Rome" and nothing
else; 35 are for training and 24 are held out, drawn by the seed. Without training: asked in words,
or after two examples in the prompt; "own sentence" completes "The capital of Italy is". Trained for
12 steps of 6 dialogues, with a LoRA of rank 4 on all linear layers: the loss on the answer only, or
on all tokens; and "no space", where the answer is "Rome" alone. exact: the fraction of held-out
answers whose tokens, the end token included, are each the most likely one (no end token in "own
sentence"); city: the same without the end token; tokens: the mean length of a prompt; wikipedia:
the loss on 256 tokens of articles, in nats per token.
"""

import copy
import random

import torch
from torch.nn.functional import cross_entropy

from helpers.finetuning import Row, add_lora, encode_chat, pad_rows
from helpers.gpt import GPT
from studies import Study
from studies._capitals import dialogue, logits_at, right, rows, split, wikipedia_loss
from studies._real import smollm2

ASK = ' Reply only with "Answer: " and the name of the city.'
TRAINED = ["answer only", "all tokens", "no space"]


def run(arm: str, seed: int, *, steps: int, size: int, rank: int, rate: float) -> dict[str, float]:
    model, tokenizer = smollm2()
    train, held = split(seed)
    form = "{}" if arm == "no space" else "Answer: {}"
    dialogues = [dialogue(country, capital, form) for country, capital in held]
    if arm == "asked in words":
        dialogues = [[("user", asked + ASK), answer] for (_, asked), answer in dialogues]
    if arm == "two examples":
        shown = dialogue(*train[0], form) + dialogue(*train[1], form)
        dialogues = [shown + messages for messages in dialogues]
    test = rows(tokenizer, dialogues)
    if arm == "own sentence":
        test = [in_a_sentence(*pair) for pair in held]
    if arm in TRAINED:
        examples = rows(tokenizer, [dialogue(*pair, form) for pair in train])
        model = copy.deepcopy(model)
        tune(model, examples, seed, steps, size, rank, rate, arm == "all tokens")
    prompts = [len(encode_chat(tokenizer, messages[:-1])[0]) for messages in dialogues]
    exact, city = right(model, test)
    tokens = sum(prompts) / len(prompts)
    return {"exact": exact, "city": city, "tokens": tokens, "wikipedia": wikipedia_loss(model)}


def in_a_sentence(country: str, capital: str) -> Row:
    """The beginning of the model's own answer, and the capital as what it has to continue with."""
    _, tokenizer = smollm2()
    before, _ = encode_chat(tokenizer, dialogue(country, capital)[:1])
    before = before + tokenizer.encode(f"The capital of {country} is")
    answer = tokenizer.encode(f" {capital}")
    return before + answer, [False] * len(before) + [True] * len(answer)


def tune(
    model: GPT,
    examples: list[Row],
    seed: int,
    steps: int,
    size: int,
    rank: int,
    rate: float,
    all_tokens: bool,
) -> None:
    torch.manual_seed(seed)
    rng = random.Random(seed)
    parameters = add_lora(model, rank)
    optimizer = torch.optim.AdamW(parameters, betas=(0.9, 0.95), weight_decay=0.0)
    order: list[int] = []
    for step in range(steps):
        if len(order) < size:  # a new pass through the examples
            order = rng.sample(range(len(examples)), len(examples))
        ids, mask = pad_rows([examples[order.pop()] for _ in range(size)], pad=0)
        where = (ids != 0 if all_tokens else mask)[:, 1:]
        loss = cross_entropy(logits_at(model, ids[:, :-1], where), ids[:, 1:][where])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        # Warm-up in 4 steps, and decay in the second half.
        optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / 4, 2 * (steps - step) / steps)
        optimizer.step()


study = Study(
    arms=["own sentence", "asked in words", "two examples", *TRAINED],
    settings={"steps": 12, "size": 6, "rank": 4, "rate": 3e-3},
)
