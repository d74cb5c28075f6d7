"""DPO with β = 0.1 puts 96% of its pairs in order and loses the right answers; with β = 3 it works.

The task is in `_addition.py`. A pair is a right and a wrong completion that the imitator sampled
for the same problem: at most 4 pairs for each of 1,000 problems with 8 completions. 60 steps on 128
pairs, AdamW, gradients clipped to 1. `IPO` asks for a margin of 1/(2β) instead of a margin as large
as possible, and the `SFT term` adds −log p of the right completion.

Measured: `carry` and `no carry`, the accuracy of sampled completions on 200 held-out problems each;
`in order`, the fraction of the pairs whose margin is above 0; `log p right` and `log p wrong`, the
mean log-probability of the completions in the pairs.
"""

import torch
from torch import Tensor

from helpers.gpt import GPT
from helpers.rewards import chosen_log_probs, completion_log_probs, dpo_loss
from studies import Study
from studies._addition import (
    N,
    Problem,
    accuracy,
    carries,
    draw,
    imitator,
    is_right,
    problems,
)

ARMS = {  # β, learning rate
    "imitation": None,
    "DPO, β 0.1": (0.1, 0.001),
    "DPO, β 0.1, rate 0.0003": (0.1, 0.0003),
    "DPO, β 3, rate 0.0003": (3.0, 0.0003),
    "IPO, β 0.25, rate 0.0003": (0.25, 0.0003),
    "DPO, β 0.5, and SFT term": (0.5, 0.001),
}


def preference_pairs(
    model: GPT, pairs: list[Problem], seed: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Ids of right and wrong completions, row for row, and their masks."""
    ids, mask, repeated = draw(model, pairs, samples=8, seed=seed)
    good, bad = [], []
    for i, row in enumerate(is_right(ids, repeated).view(-1, 8)):
        right, wrong = row.nonzero()[:, 0].tolist(), (1 - row).nonzero()[:, 0].tolist()
        for r, w in list(zip(right, wrong, strict=False))[:4]:
            good.append(8 * i + r)
            bad.append(8 * i + w)
    return ids[good], ids[bad], mask[good], mask[bad]


def log_p(model: GPT, ids: Tensor, mask: Tensor) -> Tensor:
    """The log-probability of each completion, (B,)."""
    return (chosen_log_probs(completion_log_probs(model, ids, N), ids) * mask).sum(1)


def run(arm: str, seed: int, *, steps: int) -> dict[str, float]:
    train, held_out = problems(seed)
    model = imitator(seed)
    right, wrong, right_mask, wrong_mask = preference_pairs(model, train[:1000], seed)
    with torch.no_grad():
        right_base, wrong_base = log_p(model, right, right_mask), log_p(model, wrong, wrong_mask)
    torch.manual_seed(seed)
    if chosen := ARMS[arm]:
        beta, rate = chosen
        optimizer = torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.95), weight_decay=0)
        for _ in range(steps):
            rows = torch.randint(len(right), (128,))
            good = log_p(model, right[rows], right_mask[rows])
            r = good - right_base[rows]
            w = log_p(model, wrong[rows], wrong_mask[rows]) - wrong_base[rows]
            if arm.startswith("IPO"):
                loss = (r - w - 1 / (2 * beta)).square().mean()
            else:
                loss = dpo_loss(r, w, beta)
            if arm.endswith("SFT term"):
                loss = loss - good.mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    with torch.no_grad():
        right_now, wrong_now = log_p(model, right, right_mask), log_p(model, wrong, wrong_mask)
    margin = (right_now - right_base) - (wrong_now - wrong_base)
    with_carry = [pair for pair in held_out if carries(pair)][:200]
    without = [pair for pair in held_out if not carries(pair)][:200]
    return {
        "carry": accuracy(model, with_carry, samples=8).mean().item(),
        "no carry": accuracy(model, without, samples=8).mean().item(),
        "in order": (margin > 0).float().mean().item(),
        "log p right": right_now.mean().item(),
        "log p wrong": wrong_now.mean().item(),
        "pairs": float(len(right)),
    }


study = Study(arms=list(ARMS), settings={"steps": 60})
