"""What does a split by window say, and what is true?

A GPT of two layers learns from windows of 32 tokens of six articles (the first 8,000 characters of
each; other articles for each seed) and is judged on training windows, on the tenth of the windows
that `random_split` has held out, and on two articles that it has never seen.
loss: in nats a token; ln 2048 = 7.62 is that of a model that knows nothing.
"""

from functools import cache

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset, random_split

from helpers.gpt import GPT, fast_gpt
from helpers.optimizers import adamw
from helpers.training import estimate_loss, language_model_loss, minimize
from studies import Study
from studies._articles import articles, stream

V, T = 2048, 32


@cache
def trained(
    seed: int, steps: int, rate: float
) -> tuple[GPT, dict[str, tuple[Tensor, ...]], Tensor]:
    first = [document[:8000] for document in articles("train")[10 + 8 * seed : 18 + 8 * seed]]
    ids, others = stream(first[:6], V), stream(first[6:], V)
    rows = ids.unfold(0, T + 1, 1)  # all windows, as views
    windows = TensorDataset(rows[:, :-1], rows[:, 1:])
    known, held = random_split(windows, [0.9, 0.1], torch.Generator().manual_seed(seed))
    torch.manual_seed(seed)
    model = fast_gpt(V, T, n_layer=2, n_head=4, n_embd=64)
    order = torch.Generator().manual_seed(seed)
    loader = DataLoader(known, 32, shuffle=True, generator=order)
    batches = (batch for _ in iter(int, 1) for batch in loader)  # round after round
    optimizer = adamw(model, rate, 0.0)
    minimize(lambda step: language_model_loss(model, *next(batches)), model, optimizer, steps)
    judged = {"training windows": known[:2000:10], "held-out windows": held[::10]}
    return model, judged, others


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    model, judged, others = trained(seed, steps, rate)
    if arm == "held-out articles":
        return {"loss": estimate_loss(model, others, block_size=T)}
    with torch.no_grad():
        return {"loss": language_model_loss(model, *judged[arm]).item()}


study = Study(
    arms=["training windows", "held-out windows", "held-out articles"],
    settings={"steps": 160, "rate": 0.01},
    variations=[{"rate": 0.003}, {"steps": 480}],
)
