"""At which temperature is a model's loss lowest, on the text it was trained on and on new text?

A GPT of two layers (C = 64, context 32) is trained on Shakespeare with 16 sequences per step: on
20,000 characters, over and over, or on all plays but the held-out ones. known, new: the temperature
at which the loss is lowest, on 100 passages that it was trained on and on 100 of the held-out
plays. gap known, gap new: entropy minus loss at temperature 1, in nats. loss known, loss new: the
loss at temperature 1.
"""

import torch
from torch import Tensor

from helpers.gpt import GPT, GPTConfig
from helpers.training import train
from studies import Study
from studies._plays import plays

T, STRETCHES = 32, 100


def entropy_and_loss(logits: Tensor, y: Tensor, tau: float) -> tuple[float, float]:
    """The mean entropy of the predictions, and their loss, in nats."""
    log_p = (logits / tau).log_softmax(-1)
    loss = -log_p.gather(-1, y[..., None]).mean()
    return -(log_p.exp() * log_p).sum(-1).mean().item(), loss.item()


def best(logits: Tensor, y: Tensor) -> float:
    """The temperature with the lowest loss: as it rises, entropy - loss passes through 0 once."""
    low, high = 0.1, 10.0
    for _ in range(30):
        middle = (low * high) ** 0.5
        entropy, loss = entropy_and_loss(logits, y, middle)
        low, high = (middle, high) if entropy < loss else (low, middle)
    return low


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    tokenizer, ids, held_out = plays()
    ids = ids[: {"few pages": 20_000, "all plays": len(ids)}[arm]]
    torch.manual_seed(seed)
    model = GPT(GPTConfig(tokenizer.vocab_size, T, 2, 4, 64, position="Rotary", bias=False))
    train(
        model, ids, steps=steps, block_size=T, batch_size=16,
        optimizer=torch.optim.Adam(model.parameters(), lr=rate),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    model.eval()
    numbers = {}
    for name, text in (("known", ids), ("new", held_out)):
        starts = torch.arange(STRETCHES) * ((len(text) - T - 1) // STRETCHES)
        rows = text[starts[:, None] + torch.arange(T + 1)]
        with torch.no_grad():
            logits = model(rows[:, :-1]).double()
        entropy, loss = entropy_and_loss(logits, rows[:, 1:], 1.0)
        numbers[name] = best(logits, rows[:, 1:])
        numbers[f"gap {name}"] = entropy - loss
        numbers[f"loss {name}"] = loss
    return numbers


study = Study(
    arms=["few pages", "all plays"],
    settings={"steps": 600, "rate": 0.005},
    variations=[{"steps": 1800}, {"rate": 0.002}],
)
