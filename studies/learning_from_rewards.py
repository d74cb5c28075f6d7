"""A reward for right answers lifts the imitator far above its demonstrators, on held-out problems.

The task is in `_addition.py`. `imitation` is the model before any reward. The other arms go on from
it: 60 steps of policy gradient on 32 problems with 8 completions each, AdamW at 0.003, no KL
penalty; or 60 steps of supervised training on the imitator's own right completions (`rejection
sampling`: 8 completions for each of 1,000 problems, batches of 256, AdamW at 0.001). `four uses`:
15 draws, and four steps on each. One arm is rewarded on 64 problems only.

Measured on 200 held-out problems whose units carry (`carry`, 64 completions each; `greedy`: the
likeliest completion), on 200 without a carry (`no carry`), and on 64 training problems with a carry
(`seen`: those that the last arm is rewarded for).
"""

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from helpers.gpt import GPT
from helpers.rewards import pass_at_k
from helpers.training import minimize
from studies import Study
from studies._addition import (
    N,
    Problem,
    accuracy,
    adam,
    carries,
    draw,
    imitator,
    is_right,
    problems,
    train_policy,
)


def plus_four(ids: Tensor, pairs: list[Problem]) -> Tensor:
    """The same reward, 4 and 5 instead of 0 and 1."""
    return is_right(ids, pairs) + 4


RAW = {"baseline": False, "reward": plus_four}
ARMS: dict[str, dict[str, Any]] = {  # what `train_policy` is given
    "no baseline": {"baseline": False},
    "no baseline, rewards 4 and 5": RAW,
    "no baseline, rewards 4 and 5, rate 0.001": RAW | {"rate": 0.001},
    "15 draws": {"steps": 15},
    "15 draws, four uses": {"uses": 4},
    "15 draws, four uses, ratio and clip": {"uses": 4, "clip": True},
}


def rejection_sampling(model: GPT, train: list[Problem], seed: int) -> None:
    ids, mask, repeated = draw(model, train[:1000], samples=8, seed=seed)
    kept = is_right(ids, repeated).bool()
    ids, mask = ids[kept], mask[kept]
    torch.manual_seed(seed)

    def loss_of(step: int) -> Tensor:
        rows = torch.randint(len(ids), (256,))
        x, m = ids[rows], mask[rows]
        return F.cross_entropy(model(x[:, :-1])[:, -N:][m], x[:, -N:][m])

    minimize(loss_of, model, adam(model, 0.001), 60, grad_clip=1.0)


def run(arm: str, seed: int, *, steps: int) -> dict[str, float]:
    train, held_out = problems(seed)
    model = imitator(seed)
    reference = copy.deepcopy(model)
    seen = [pair for pair in train if carries(pair)][:64]
    if arm == "rejection sampling":
        rejection_sampling(model, train, seed)
    elif arm != "imitation":
        rewarded = seen if arm == "64 problems" else train
        changes = {"steps": steps} | ARMS.get(arm, {})
        train_policy(model, reference, rewarded, seed, **changes)
    with_carry = [pair for pair in held_out if carries(pair)][:200]
    without = [pair for pair in held_out if not carries(pair)][:200]
    right = accuracy(model, with_carry, samples=64)
    counts = right.sum(1).int().tolist()
    found = {"carry": right.mean().item()}
    for k in (4, 16, 64):
        found[f"pass@{k}"] = sum(pass_at_k(64, c, k) for c in counts) / len(counts)
    found["greedy"] = accuracy(model, with_carry, temperature=0.0).mean().item()
    found["no carry"] = accuracy(model, without, samples=4).mean().item()
    found["seen"] = accuracy(model, seen, samples=16).mean().item()
    return found


study = Study(
    arms=["imitation", "group baseline", *ARMS, "rejection sampling", "64 problems"],
    settings={"steps": 60},
)
