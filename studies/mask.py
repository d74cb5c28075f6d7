"""Chapter 04: what a head learns with the mask, and what it learns to do when the mask is missing.

The model of the chapter with a causal head and with one that sees everything. Measured are the mean
training loss of the last 50 steps, the loss on fresh text when only the past is shown (`honest`),
the mean weight on the next character, the share of written characters that repeat the one before,
and of the scores before the mask the share of queries whose largest lies in the future.
And how an h listens: its mean weight one place back, where that is a t and where it is a space.
"""

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers import data
from helpers.attention import Head
from helpers.text import CharTokenizer
from helpers.training import train
from studies import Study

T, C = 16, 32


@cache
def plays() -> tuple[CharTokenizer, Tensor, Tensor]:
    """The tokenizer, and the ids of the training and of the validation plays."""
    tokenizer = CharTokenizer.from_text(data.shakespeare())
    parts = (tokenizer.encode(data.shakespeare(part)) for part in ("train", "validation"))
    ids, held_out = (torch.tensor(part) for part in parts)
    return tokenizer, ids, held_out


class LetterModel(nn.Module):
    def __init__(self, head: nn.Module, symbols: int):
        super().__init__()
        self.own_votes = nn.Embedding(symbols, symbols)
        nn.init.zeros_(self.own_votes.weight)
        self.letter, self.place = nn.Embedding(symbols, C), nn.Embedding(T, C)
        self.head, self.past_votes = head, nn.Linear(C, symbols)

    def tokens(self, ids: Tensor) -> Tensor:
        return self.letter(ids) + self.place.weight[: ids.shape[1]]

    def forward(self, ids: Tensor) -> Tensor:
        return self.own_votes(ids) + self.past_votes(self.head(self.tokens(ids)))


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    tokenizer, ids, held_out = plays()
    torch.manual_seed(seed)
    model = LetterModel(Head(C, C, causal=arm == "with the mask"), tokenizer.vocab_size)
    budget = {"steps": steps, "block_size": T, "batch_size": 128, "learning_rate": rate}
    losses = train(model, ids, **budget, generator=torch.Generator().manual_seed(seed)).losses  # type: ignore[arg-type]
    return {"training loss": sum(losses[-50:]) / 50, **looks(model, tokenizer, held_out)}


@torch.no_grad()
def looks(model: LetterModel, tokenizer: CharTokenizer, held_out: Tensor) -> dict[str, float]:
    x, y = held_out[: 4000 * T].view(-1, T), held_out[1 : 4000 * T + 1].view(-1, T)
    honest = [F.cross_entropy(model(x[:, : t + 1])[:, -1], y[:, t]).item() for t in range(T)]
    few = x[:2000]
    given = model.tokens(few)
    maps = model.head.weights(given)[:, 0]  # type: ignore[operator]
    scores = model.head.query(given) @ model.head.key(given).mT  # type: ignore[operator]

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
        "honest loss": sum(honest) / T,
        "weight on the next": maps.diagonal(1, 1, 2).mean().item(),
        "written twice": (written[0, 1:] == written[0, :-1]).float().mean().item(),
        "largest score in the future": (scores.argmax(-1) > torch.arange(T)).float().mean().item(),
        "h after t, one back": one_back("th"),
        "h after a space, one back": one_back(" h"),
    }


study = Study(
    arms=["with the mask", "without"],
    settings={"steps": 400, "rate": 0.01},
    moved=[{"rate": 0.003}, {"steps": 1200}],
)
