"""What a head learns with the mask, and what it learns to do when the mask is missing.

The model of the chapter with a causal head and with one that sees everything. Measured are the mean
training loss of the last 50 steps, the loss on fresh text when only the past is shown (`honest`),
the mean weight on the next character, the share of written characters that repeat the one before,
and of the scores before the mask the share of queries whose largest lies in the future.
And how an h listens: its mean weight one place back, where that is a t and where it is a space.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from helpers.attention import Head
from helpers.text import CharTokenizer
from helpers.training import train
from studies import Study
from studies._plays import LetterModel, plays

T, C = 16, 32


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    tokenizer, ids, held_out = plays()
    torch.manual_seed(seed)
    head = Head(C, C, causal=arm == "with the mask")
    model = LetterModel(tokenizer.vocab_size, lambda: head, T, C)
    losses = train(
        model, ids, steps=steps, block_size=T, batch_size=128,
       
        optimizer=torch.optim.Adam(model.parameters(), lr=rate),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return {"training loss": sum(losses[-50:]) / 50, **looks(model, tokenizer, held_out)}


@torch.no_grad()
def looks(model: LetterModel, tokenizer: CharTokenizer, held_out: Tensor) -> dict[str, float]:
    x, y = held_out[: 4000 * T].view(-1, T), held_out[1 : 4000 * T + 1].view(-1, T)
    honest = [F.cross_entropy(model(x[:, : t + 1])[:, -1], y[:, t]).item() for t in range(T)]
    few = x[:2000]
    given = model.tokens(few)
    maps = model.layer.weights(given)[:, 0]
    scores = model.layer.query(given) @ model.layer.key(given).mT

    def one_back(pair: str) -> float:
        before, here = tokenizer.encode(pair)
        found = (few[:, 3:-1] == before) & (few[:, 4:] == here)
        return maps.diagonal(-1, 1, 2)[:, 3:][found].mean().item()

    generator = torch.Generator().manual_seed(1)
    written = torch.tensor([tokenizer.encode("To be, or not to")])
    for _ in range(400):
        chances = model(written[:, -T:])[0, -1].softmax(-1)
        drawn = torch.multinomial(chances, 1, generator=generator)
        written = torch.cat([written, drawn[None]], 1)
    return {
        "causal loss": sum(honest) / T,
        "weight on the next": maps.diagonal(1, 1, 2).mean().item(),
        "written twice": (written[0, 1:] == written[0, :-1]).float().mean().item(),
        "largest score in the future": (scores.argmax(-1) > torch.arange(T)).float().mean().item(),
        "h after t, one back": one_back("th"),
        "h after a space, one back": one_back(" h"),
    }


study = Study(
    arms=["with the mask", "without"],
    settings={"steps": 400, "rate": 0.01},
    variations=[{"rate": 0.003}, {"steps": 1200}],
)
