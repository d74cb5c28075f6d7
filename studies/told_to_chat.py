"""What does the chat template change for a model that was trained on conversations?

Twelve questions of our own to SmolLM2-135M-Instruct, greedily, at most 60 tokens: in the model's
own template, as plain text, and as plain text with a line break at its end. empty replies: whether
the special token for the end of a message is all that it writes; ended: whether it ends by itself;
tokens: how many it writes; a seed is a question.
"""

import torch

from helpers.sampling import generate
from studies import Study
from studies._real import smollm2

QUESTIONS = [
    "What is the capital of Italy?",
    "Name three animals that can fly.",
    "How many days does a week have?",
    "What colour is the sky on a clear day?",
    "Write one sentence about the sea.",
    "What do bees make?",
    "Say hello in French.",
    "Which is larger, the sun or the moon?",
    "What do you need to bake bread?",
    "Who wrote Hamlet?",
    "Give me a word that rhymes with cat.",
    "Why do leaves fall in autumn?",
]
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def run(arm: str, seed: int, *, tokens: int) -> dict[str, float]:
    model, tokenizer = smollm2()
    prompt = QUESTIONS[seed] + "\n" * (arm == "and a line break")
    if arm == "template":
        prompt = f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
        prompt = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n{prompt}"
    end = tokenizer.special["<|im_end|>"]
    ids = torch.tensor([tokenizer.encode(prompt, special=tokenizer.special)])
    text = generate(model, ids, tokens, temperature=0, stop=[end])[0, ids.shape[1] :].tolist()
    return {"empty replies": float(text == [end]), "ended": float(end in text), "tokens": len(text)}


study = Study(
    arms=["template", "plain text", "and a line break"],
    settings={"tokens": 60},
    seeds=range(len(QUESTIONS)),
)
