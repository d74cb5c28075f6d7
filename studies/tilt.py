"""With a KL penalty β, the policy lands near p e^(1/β) / (p e^(1/β) + 1 − p).

The task is in `_addition.py`: p is the reference's probability of the right completion, and the
reward of a right completion is 1. 100 steps of policy gradient with the penalty, AdamW at 0.001.
In a group of 8, subtracting the mean makes the expected gradient of the reward 7/8 as large, and
the gradient of the penalty stays as it is. One arm multiplies the reward by 8/7.

Measured on all held-out problems whose units carry: the mean probability of the right completion
after training (`trained`), under the formula (`formula`), and before (`before`).
"""

import copy
import math

import torch
from torch import Tensor

from helpers.gpt import GPT
from helpers.rewards import chosen_log_probs, completion_log_probs, completion_mask
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

LARGER = ", reward × 8/7"


@torch.no_grad()
def p_right(model: GPT, pairs: list[Problem]) -> Tensor:
    """The probability that a sampled completion is the right one, exactly: (problems,)."""
    ids = encode([f"{a}+{b}={a + b}." for a, b in pairs])
    mask = completion_mask(ids[:, -N:], END)
    return (chosen_log_probs(completion_log_probs(model, ids, N), ids) * mask).sum(1).exp()


def enlarged(ids: Tensor, pairs: list[Problem]) -> Tensor:
    return is_right(ids, pairs) * 8 / 7


def run(arm: str, seed: int, *, steps: int) -> dict[str, float]:
    beta = float(arm.removeprefix("β ").removesuffix(LARGER))
    reward = enlarged if arm.endswith(LARGER) else is_right
    train, held_out = problems(seed)
    model = imitator(seed)
    reference = copy.deepcopy(model)
    train_policy(model, reference, train, seed, steps=steps, rate=0.001, beta=beta, reward=reward)
    with_carry = [pair for pair in held_out if carries(pair)]
    p = p_right(reference, with_carry)
    tilted = p * math.exp(1 / beta)
    return {
        "trained": p_right(model, with_carry).mean().item(),
        "formula": (tilted / (tilted + 1 - p)).mean().item(),
        "before": p.mean().item(),
    }


study = Study(arms=["β 0.5", "β 1", "β 2", "β 1, reward × 8/7"], settings={"steps": 100})
