"""With a KL penalty β, the policy lands near p e^(1/β) / (p e^(1/β) + 1 − p).

The task is in `_addition.py`: p is the reference's probability of the right completion, and the
reward of a right completion is 1. 100 steps of policy gradient with the penalty, AdamW at 0.001:
`kl_penalty` in the loss, or −β ln(p / reference) in the reward. (In a group of 8, subtracting the
mean makes the expected gradient of the reward 7/8 as large, and that of a penalty in the loss stays
as it is.)

Measured on all held-out problems whose units carry: the mean probability of the right completion
after training (`trained`), under the formula (`formula`), and before (`before`).
"""

import copy
import math
from typing import Any

import torch
from torch import Tensor

from helpers.gpt import GPT
from helpers.rewards import completion_mask
from studies import Study
from studies._addition import (
    END,
    N,
    Problem,
    carries,
    encode,
    imitator,
    is_right,
    problems,
    train_policy,
)
from studies.preferences import log_p

IN_REWARD = ", in the reward"


@torch.no_grad()
def p_right(model: GPT, pairs: list[Problem]) -> Tensor:
    """The probability that a sampled completion is the right one, exactly: (problems,)."""
    ids = encode([f"{a}+{b}={a + b}." for a, b in pairs])
    mask = completion_mask(ids[:, -N:], END)
    return log_p(model, ids, mask).exp()


def run(arm: str, seed: int, *, steps: int) -> dict[str, float]:
    beta = float(arm.removeprefix("β ").removesuffix(IN_REWARD))
    in_reward = arm.endswith(IN_REWARD)
    train, held_out = problems(seed)
    model = imitator(seed)
    reference = copy.deepcopy(model)

    @torch.no_grad()
    def penalised(ids: Tensor, pairs: list[Problem]) -> Tensor:
        mask = completion_mask(ids[:, -N:], END)
        return is_right(ids, pairs) - beta * (log_p(model, ids, mask) - log_p(reference, ids, mask))

    how: dict[str, Any] = {"reward": penalised} if in_reward else {"beta": beta}
    train_policy(model, reference, train, seed, steps=steps, rate=0.001, **how)
    with_carry = [pair for pair in held_out if carries(pair)]
    p = p_right(reference, with_carry)
    tilted = p * math.exp(1 / beta)
    return {
        "trained": p_right(model, with_carry).mean().item(),
        "formula": (tilted / (tilted + 1 - p)).mean().item(),
        "before": p.mean().item(),
    }


study = Study(arms=["β 0.5", "β 1", "β 2", "β 1, in the reward"], settings={"steps": 100})
