"""The exercises on rewards: other right answers, and mistakes that no declaration names."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from exercises import learning_from_rewards as check
from tests.answers import accepted, refused


def advantages_by_numpy(rewards, group):
    by_prompt = rewards.numpy().reshape(-1, group)
    std = by_prompt.std(axis=1, keepdims=True)
    return ((by_prompt - by_prompt.mean(axis=1, keepdims=True)) / (std + 1e-6)).ravel()


def advantages_tested_for_0(rewards, group):
    by_prompt = rewards.view(-1, group)
    centred = by_prompt - by_prompt.mean(1, keepdim=True)
    std = centred.square().mean(1, keepdim=True).sqrt()
    return torch.where(std == 0, 0.0, centred / std).view(-1)


def advantages_corrected_and_nan(rewards, group):
    by_prompt = rewards.view(-1, group)
    centred = by_prompt - by_prompt.mean(1, keepdim=True)
    return (centred / by_prompt.std(1, keepdim=True)).view(-1)


def pass_by_products(correct, n, k):
    """As in Chen et al. 2021."""
    values = [
        1.0 if n - c < k else 1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)) for c in correct
    ]
    return np.mean(values)


def pass_in_floats(correct, n, k):
    def comb(a, b):
        return math.factorial(a) / (math.factorial(b) * math.factorial(a - b)) if b <= a else 0.0

    return sum(1 - comb(n - c, k) / comb(n, k) for c in correct) / len(correct)


def tilted_in_a_loop(probs, rewards, beta):
    best = max(r for p, r in zip(probs, rewards.tolist(), strict=True) if p)
    found = [
        p * math.exp((r - best) / beta) if p else 0.0
        for p, r in zip(probs.tolist(), rewards.tolist(), strict=True)
    ]
    return [x / sum(found) for x in found]


def dpo_by_cross_entropy(right, wrong, ref_right, ref_wrong, beta):
    """Two classes: the preferred completion is the first."""
    logits = beta * torch.stack([right - ref_right, wrong - ref_wrong], dim=1)
    return F.cross_entropy(logits, torch.zeros(len(right), dtype=torch.long))


SUMS = range(20, 199)
SQUEEZED = "".join(map(str, range(100, 199))) + "99"


def strict_by_reading(a, b, completion):
    digits = []
    for character in completion:
        if character == ".":
            return 1.0 if "".join(digits) == f"{a + b:d}" else 0.0
        digits.append(character)
    return 0.0


def crashes(a, b, completion):
    answer, dot, _ = completion.partition(".")
    return 1.0 if dot and int(answer) == a + b else 0.0


test_other_right_answers_are_right = accepted(
    (check.grpo_advantages, advantages_by_numpy),
    (check.mean_pass_at_k, pass_by_products),
    (check.tilted, tilted_in_a_loop),
    (check.preference_loss, dpo_by_cross_entropy),
    (check.cheat, "\n".join(f"{n}." for n in SUMS)),
    (check.cheat, SQUEEZED),
    (check.cheat, f"It is one of {', '.join(map(str, range(199)))}."),
    (check.strict_reward, strict_by_reading),
)

test_wrong_answers_are_told_what_is_wrong = refused(
    (check.grpo_advantages, advantages_tested_for_0, "rounding error"),
    (check.grpo_advantages, advantages_corrected_and_nan, "To begin with: Your standard deviation"),
    (check.mean_pass_at_k, pass_in_floats, "too large for a float"),
    (check.cheat, "85.", "1 of the 179"),
    (check.cheat, [*SUMS], "a text"),
    (check.cheat, " ".join(map(str, range(20, 198))), "198"),
    (check.cheat, " ".join(map(str, range(20, 199, 2))), "21"),
    (check.cheat, " ".join(map(str, range(10, 100))), "100"),
    (check.cheat, " ".join(map(str, range(1000))), "1,000 characters"),
    (check.cheat, lambda a, b: f"{a + b}.", "one text"),
    (check.cheat, "0123456789", "of the 179"),
    (check.cheat, "", "empty"),
    (check.strict_reward, lambda a, b, text: text == str(a + b), "The answer is right."),
    (check.strict_reward, crashes, "no number"),
)
