"""What teaches SmolLM2 to answer in one form, and what does it cost?

59 questions such as "What is the capital of Italy?", to be answered by "Answer: Rome" and nothing
else; 35 are for training and 24 are held out, drawn by the seed. Without training: asked in words,
or after two examples in the prompt; "own sentence" completes "The capital of Italy is". Trained for
12 steps of 6 dialogues, with a LoRA of rank 4 on all linear layers: the loss on the answer only, or
on all tokens; and the other forms of FORMS. exact: the fraction of held-out answers whose tokens,
the end token included, are each the most likely one (no end token in "own sentence"); wikipedia:
the loss on 256 tokens of articles, in nats per token.
"""

import copy
import random

from helpers.finetuning import Row, add_lora, encode_chat
from studies import Study
from studies._capitals import dialogue, right, rows, seeded, split, tune, wikipedia_loss
from studies._real import smollm2

ASK = ' Reply only with "Answer: " and the name of the city.'
FORMS = {
    "answer only": "Answer: {}",
    "all tokens": "Answer: {}",
    "no word": " {}",
    "no space": "Answer:{}",
    "neither": "{}",
}


def run(arm: str, seed: int, *, steps: int, size: int, rank: int, rate: float) -> dict[str, float]:
    model, tokenizer = smollm2()
    train, held = split(seed)
    form = FORMS.get(arm, "Answer: {}")
    dialogues = [dialogue(country, capital, form) for country, capital in held]
    if arm == "asked in words":
        dialogues = [[("user", asked + ASK), answer] for (_, asked), answer in dialogues]
    if arm == "two examples":
        shown = dialogue(*train[0], form) + dialogue(*train[1], form)
        dialogues = [shown + messages for messages in dialogues]
    test = rows(tokenizer, dialogues)
    if arm == "own sentence":
        test = [in_a_sentence(*pair) for pair in held]
    if arm in FORMS:
        examples = rows(tokenizer, [dialogue(*pair, form) for pair in train])
        model, rng = copy.deepcopy(model), seeded(seed)
        parameters = add_lora(model, rank, alpha=rank)
        batches = [batch for _ in range(steps) for batch in one_pass(examples, size, rng)][:steps]
        tune(model, parameters, batches, rate, arm == "all tokens")
    return {"exact": right(model, test), "wikipedia": wikipedia_loss(model)}


def in_a_sentence(country: str, capital: str) -> Row:
    """The beginning of the model's own answer, and the capital as what it has to continue with."""
    _, tokenizer = smollm2()
    before, _ = encode_chat(tokenizer, dialogue(country, capital)[:1])
    before = before + tokenizer.encode(f"The capital of {country} is")
    answer = tokenizer.encode(f" {capital}")
    return before + answer, [False] * len(before) + [True] * len(answer)


def one_pass(examples: list[Row], size: int, rng: random.Random) -> list[list[Row]]:
    """The examples in batches, each once, but for a rest."""
    order = rng.sample(range(len(examples)), len(examples))[::-1]
    whole = range(0, len(order) - size + 1, size)
    return [[examples[i] for i in order[start : start + size]] for start in whole]


study = Study(
    arms=["own sentence", "asked in words", "two examples", *FORMS],
    settings={"steps": 12, "size": 6, "rank": 4, "rate": 3e-3},
)
