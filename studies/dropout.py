"""What does dropout do against overfitting?

The GPT of the study leak learns from the first 8,000 characters of six articles, with a fraction of
its features set to 0 in each training step, and is judged on two articles that it has never seen.
loss: on these two articles after the last step, in nats a token; lowest: the lowest of the losses
measured every 20 steps; training: after the last step, on the six articles, without dropout.
"""

import torch

from helpers.gpt import fast_gpt
from helpers.optimizers import adamw
from helpers.training import estimate_loss, train
from studies import Study
from studies._articles import articles, stream

V, T = 2048, 32
P = {"no dropout": 0.0, "dropout 0.2": 0.2, "dropout 0.5": 0.5}


def run(arm: str, seed: int, *, steps: int, rate: float) -> dict[str, float]:
    first = [document[:8000] for document in articles("train")[10 + 8 * seed : 18 + 8 * seed]]
    ids, others = stream(first[:6], V), stream(first[6:], V)
    torch.manual_seed(seed)
    model = fast_gpt(V, T, n_layer=2, n_head=4, n_embd=64, dropout=P[arm])
    optimizer, order = adamw(model, rate, 0.0), torch.Generator().manual_seed(seed)
    losses = []
    for _ in range(steps // 20):
        train(
            model, ids, steps=20, block_size=T, batch_size=32, optimizer=optimizer, generator=order
        )
        losses.append(estimate_loss(model, others, block_size=T))
    return {
        "loss": losses[-1],
        "lowest": min(losses),
        "training": estimate_loss(model, ids, block_size=T),
    }


study = Study(
    arms=list(P),
    settings={"steps": 160, "rate": 0.003},
    variations=[{"rate": 0.01}],
)
