"""Does a bigram network that is trained find the bigram counts, and with which optimizer?

The sentences of the chapter language_modelling that this tests: the loss of the trained table
comes close to that of the bigram counts and never falls below it; with Adam (Kingma and Ba, 2015)
nearly all probability is where the counts have it; with plain gradient descent (SGD), in 300 steps,
no learning rate that we tried suits both frequent and rare rows; with ten times the rate and three
times the steps, the rare rows come close to Adam's; at ten times the rate, a single pair can be
thrown far down ("above by its worst pair").

The learning rate decays: the full rate for half of the steps, a quarter of it for a third, a
twentieth for the rest, each with a new optimizer, as in the chapter. Varied: the rate × 3 and × 10,
the number of steps × 3, and both together.
"""

import torch
from torch import Tensor, nn

from helpers import data
from helpers.text import CharTokenizer
from helpers.training import get_batch, language_model_loss, minimize
from studies import Study

RATE = {"Adam": 0.2, "SGD": 100.0}


def run(arm: str, seed: int, steps: int, rate_times: float) -> dict[str, float]:
    text = data.shakespeare("train")
    tokenizer = CharTokenizer.from_text(text)
    ids, V = torch.tensor(tokenizer.encode(text)), tokenizer.vocab_size
    counts = torch.bincount(ids[:-1] * V + ids[1:], minlength=V * V).view(V, V).double()
    counted = counts / counts.sum(1, keepdim=True)
    share = counts.sum(1) / counts.sum()

    torch.manual_seed(seed)
    table = nn.Embedding(V, V)
    kind = {"Adam": torch.optim.Adam, "SGD": torch.optim.SGD}[arm]
    generator = torch.Generator().manual_seed(seed)

    def loss_of(step: int) -> Tensor:
        return language_model_loss(table, *get_batch(ids, 256, 64, generator))

    for part, sixths in ((1.0, 3), (0.25, 2), (0.05, 1)):  # each with a new optimizer
        optimizer = kind(table.parameters(), lr=part * rate_times * RATE[arm])
        minimize(loss_of, table, optimizer, steps * sixths // 6)

    logp = table.weight.detach().double().log_softmax(1)
    above = counts * (counted.log().nan_to_num(neginf=0) - logp) / counts.sum()  # of each pair
    misplaced = (logp.exp() - counted).abs().sum(1) / 2  # of each row
    rare = (share < 0.001) & (counts.sum(1) > 100)
    return {
        "above the bigram counts": above.sum().item(),
        "above by its worst pair": above.max().item(),
        "misplaced": (misplaced * share).sum().item(),
        "misplaced in rare rows": misplaced[rare].mean().item(),
    }


study = Study(
    arms=["Adam", "SGD"],
    settings={"steps": 300, "rate_times": 1.0},
    variations=[
        {"rate_times": 3.0},
        {"rate_times": 10.0},
        {"steps": 900},
        {"rate_times": 10.0, "steps": 900},
    ],
)
