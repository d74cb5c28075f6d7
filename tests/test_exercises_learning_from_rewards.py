"""The exercises on rewards: three right answers to each, of unlike styles, and nine wrong ones.

They were written from the tasks, before the checks.
"""

import math
import re
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as F

from exercises import learning_from_rewards as check
from tests.answers import accepted, refused

# --- 20.1 -----------------------------------------------------------------------------------------


def advantages_in_a_loop(rewards, group):
    found = []
    for i in range(0, len(rewards), group):
        some = rewards[i : i + group].tolist()
        mean = sum(some) / group
        std = math.sqrt(sum((r - mean) ** 2 for r in some) / group)
        found += [(r - mean) / std if std else 0.0 for r in some]
    return found


def advantages_by_numpy(rewards, group):
    by_prompt = rewards.numpy().reshape(-1, group)
    std = by_prompt.std(axis=1, keepdims=True)
    return ((by_prompt - by_prompt.mean(axis=1, keepdims=True)) / (std + 1e-6)).ravel()


def advantages_by_layer_norm(rewards, group):
    return F.layer_norm(rewards.view(-1, group), (group,), eps=1e-9).flatten()


def advantages_unscaled(rewards, group):
    by_prompt = rewards.view(-1, group)
    return (by_prompt - by_prompt.mean(1, keepdim=True)).view(-1)


def advantages_of_the_batch(rewards, group):
    return (rewards - rewards.mean()) / rewards.std(correction=0).clamp(min=1e-6)


def advantages_strided(rewards, group):
    by_prompt = rewards.view(group, -1)
    std = by_prompt.std(0, keepdim=True, correction=0).clamp(min=1e-6)
    return ((by_prompt - by_prompt.mean(0, keepdim=True)) / std).view(-1)


def advantages_down_columns(rewards, group):
    by_prompt = rewards.view(-1, group)
    std = by_prompt.std(0, correction=0).clamp(min=1e-6)
    return ((by_prompt - by_prompt.mean(0)) / std).view(-1)


def advantages_corrected(rewards, group):
    by_prompt = rewards.view(-1, group)
    std = by_prompt.std(1, keepdim=True).clamp(min=1e-6)
    return ((by_prompt - by_prompt.mean(1, keepdim=True)) / std).view(-1)


def advantages_by_variance(rewards, group):
    by_prompt = rewards.view(-1, group)
    var = by_prompt.var(1, keepdim=True, correction=0).clamp(min=1e-6)
    return ((by_prompt - by_prompt.mean(1, keepdim=True)) / var).view(-1)


def advantages_nan(rewards, group):
    by_prompt = rewards.view(-1, group)
    std = by_prompt.std(1, keepdim=True, correction=0)
    return ((by_prompt - by_prompt.mean(1, keepdim=True)) / std).view(-1)


def advantages_reversed(rewards, group):
    by_prompt = rewards.view(-1, group)
    std = by_prompt.std(1, keepdim=True, correction=0).clamp(min=1e-6)
    return ((by_prompt.mean(1, keepdim=True) - by_prompt) / std).view(-1)


def advantages_tested_for_0(rewards, group):
    by_prompt = rewards.view(-1, group)
    centred = by_prompt - by_prompt.mean(1, keepdim=True)
    std = centred.square().mean(1, keepdim=True).sqrt()
    return torch.where(std == 0, 0.0, centred / std).view(-1)


def advantages_corrected_and_nan(rewards, group):
    by_prompt = rewards.view(-1, group)
    centred = by_prompt - by_prompt.mean(1, keepdim=True)
    return (centred / by_prompt.std(1, keepdim=True)).view(-1)


def advantages_not_centred(rewards, group):
    by_prompt = rewards.view(-1, group)
    std = by_prompt.std(1, keepdim=True, correction=0).clamp(min=1e-6)
    return (by_prompt / std).view(-1)


# --- 20.2 -----------------------------------------------------------------------------------------


def pass_by_products(correct, n, k):
    """As in Chen et al. 2021."""
    values = [
        1.0 if n - c < k else 1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)) for c in correct
    ]
    return np.mean(values)


def pass_by_fractions(correct, n, k):
    total = Fraction(0)
    for c in correct:
        missed = Fraction(1)
        for i in range(k):
            missed *= Fraction(max(0, n - c - i), n - i)
        total += 1 - missed
    return total / len(correct)


def pass_by_log_gamma(correct, n, k):
    def log_comb(a, b):
        return math.lgamma(a + 1) - math.lgamma(b + 1) - math.lgamma(a - b + 1)

    found = []
    for c in correct:
        found.append(1 - math.exp(log_comb(n - c, k) - log_comb(n, k)) if n - c >= k else 1)
    return torch.tensor(found, dtype=torch.float64).mean()


def pass_biased(correct, n, k):
    return sum(1 - (1 - c / n) ** k for c in correct) / len(correct)


def pass_pooled(correct, n, k):
    c = round(sum(correct) / len(correct))
    return 1 - math.comb(n - c, k) / math.comb(n, k)


def pass_as_one_benchmark(correct, n, k):
    n, c = n * len(correct), sum(correct)
    return 1 - math.comb(n - c, k) / math.comb(n, k)


def all_pass(correct, n, k):
    return sum(math.comb(c, k) / math.comb(n, k) for c in correct) / len(correct)


def none_pass(correct, n, k):
    return sum(math.comb(n - c, k) / math.comb(n, k) for c in correct) / len(correct)


def pass_at_one(correct, n, k):
    return sum(c / n for c in correct) / len(correct)


def pass_at_n(correct, n, k):
    return sum(c > 0 for c in correct) / len(correct)


def pass_in_floats(correct, n, k):
    def comb(a, b):
        return math.factorial(a) / (math.factorial(b) * math.factorial(a - b)) if b <= a else 0.0

    return sum(1 - comb(n - c, k) / comb(n, k) for c in correct) / len(correct)


def pass_summed(correct, n, k):
    return sum(1 - math.comb(n - c, k) / math.comb(n, k) for c in correct)


def pass_exactly_one(correct, n, k):
    return sum(c * math.comb(n - c, k - 1) / math.comb(n, k) for c in correct) / len(correct)


# --- 20.3 -----------------------------------------------------------------------------------------


def tilted_by_hand(probs, rewards, beta):
    logs = probs.log() + rewards / beta
    numerators = torch.exp(logs - logs.max())
    return numerators / numerators.sum()


def tilted_in_a_loop(probs, rewards, beta):
    best = max(r for p, r in zip(probs, rewards.tolist(), strict=True) if p)
    found = [
        p * math.exp((r - best) / beta) if p else 0.0
        for p, r in zip(probs.tolist(), rewards.tolist(), strict=True)
    ]
    return [x / sum(found) for x in found]


def tilted_by_logsumexp(probs, rewards, beta):
    logs = probs.double().log() + rewards.double() / beta
    return (logs - logs.logsumexp(0)).exp()


def tilt_times_beta(probs, rewards, beta):
    return (probs.log() + rewards * beta).softmax(0)


def tilt_without_beta(probs, rewards, beta):
    return (probs.log() + rewards).softmax(0)


def tilt_without_z(probs, rewards, beta):
    return probs * (rewards / beta).exp()


def tilt_without_reference(probs, rewards, beta):
    return (rewards / beta).softmax(0)


def tilt_added(probs, rewards, beta):
    return (probs + rewards / beta).softmax(0)


def tilt_reversed(probs, rewards, beta):
    return (probs.log() - rewards / beta).softmax(0)


def tilt_overflows(probs, rewards, beta):
    numerators = probs * torch.exp(rewards / beta)
    return numerators / numerators.sum()


def tilt_linear(probs, rewards, beta):
    numerators = probs * rewards / beta
    return numerators / numerators.sum()


def tilt_mixed(probs, rewards, beta):
    mixed = probs * (rewards / beta).softmax(0)
    return mixed


# --- 20.4 -----------------------------------------------------------------------------------------


def dpo_by_softplus(right, wrong, ref_right, ref_wrong, beta):
    return F.softplus(beta * (wrong - right + ref_right - ref_wrong)).mean()


def dpo_by_cross_entropy(right, wrong, ref_right, ref_wrong, beta):
    """Two classes: the preferred completion is the first."""
    logits = beta * torch.stack([right - ref_right, wrong - ref_wrong], dim=1)
    return F.cross_entropy(logits, torch.zeros(len(right), dtype=torch.long))


def dpo_pair_by_pair(right, wrong, ref_right, ref_wrong, beta):
    total = 0
    for i in range(len(right)):
        x = beta * ((right[i] - wrong[i]) - (ref_right[i] - ref_wrong[i]))
        total = total + torch.logaddexp(torch.zeros(()), -x)
    return total / len(right)


def dpo_reversed(right, wrong, ref_right, ref_wrong, beta):
    return -F.logsigmoid(beta * ((wrong - ref_wrong) - (right - ref_right))).mean()


def dpo_without_reference(right, wrong, ref_right, ref_wrong, beta):
    return -F.logsigmoid(beta * (right - wrong)).mean()


def dpo_reference_added(right, wrong, ref_right, ref_wrong, beta):
    return -F.logsigmoid(beta * ((right - wrong) + (ref_right - ref_wrong))).mean()


def dpo_without_beta(right, wrong, ref_right, ref_wrong, beta):
    return -F.logsigmoid((right - ref_right) - (wrong - ref_wrong)).mean()


def dpo_divided(right, wrong, ref_right, ref_wrong, beta):
    return -F.logsigmoid(((right - ref_right) - (wrong - ref_wrong)) / beta).mean()


def dpo_beta_outside(right, wrong, ref_right, ref_wrong, beta):
    return -beta * F.logsigmoid((right - ref_right) - (wrong - ref_wrong)).mean()


def dpo_summed(right, wrong, ref_right, ref_wrong, beta):
    return -F.logsigmoid(beta * ((right - ref_right) - (wrong - ref_wrong))).sum()


def dpo_overflows(right, wrong, ref_right, ref_wrong, beta):
    return -torch.log(torch.sigmoid(beta * ((right - ref_right) - (wrong - ref_wrong)))).mean()


def dpo_sign_forgotten(right, wrong, ref_right, ref_wrong, beta):
    return F.logsigmoid(beta * ((right - ref_right) - (wrong - ref_wrong))).mean()


def dpo_mean_first(right, wrong, ref_right, ref_wrong, beta):
    return -F.logsigmoid(beta * ((right - ref_right) - (wrong - ref_wrong)).mean())


def dpo_by_pair(right, wrong, ref_right, ref_wrong, beta):
    return -F.logsigmoid(beta * ((right - ref_right) - (wrong - ref_wrong)))


# --- 20.5 -----------------------------------------------------------------------------------------

SUMS = range(20, 199)
SQUEEZED = "".join(map(str, range(100, 199))) + "99"


# --- 20.6 -----------------------------------------------------------------------------------------


def strict_by_pattern(a, b, completion):
    return float(re.match(rf"{a + b}\.", completion) is not None)


def strict_by_prefix(a, b, completion):
    return int(completion.startswith(f"{a + b}."))


def strict_by_reading(a, b, completion):
    digits = []
    for character in completion:
        if character == ".":
            return 1.0 if "".join(digits) == f"{a + b:d}" else 0.0
        digits.append(character)
    return 0.0


def anywhere(a, b, completion):
    return 1.0 if str(a + b) in completion else 0.0


def at_the_beginning(a, b, completion):
    return 1.0 if completion.startswith(str(a + b)) else 0.0


def first_number(a, b, completion):
    found = re.findall(r"\d+", completion)
    return 1.0 if found and int(found[0]) == a + b else 0.0


def last_number(a, b, completion):
    found = re.findall(r"\d+", completion)
    return 1.0 if found and found[-1] == str(a + b) else 0.0


def as_a_number(a, b, completion):
    answer, dot, _ = completion.partition(".")
    try:
        return 1.0 if dot and int(answer) == a + b else 0.0
    except ValueError:
        return 0.0


def dot_not_needed(a, b, completion):
    return 1.0 if completion.split(".")[0] == str(a + b) else 0.0


def whole_completion(a, b, completion):
    return 1.0 if completion == f"{a + b}." else 0.0


def with_its_dot(a, b, completion):
    return 1.0 if f"{a + b}." in completion else 0.0


def stripped(a, b, completion):
    answer, dot, _ = completion.partition(".")
    return 1.0 if dot and answer.strip() == str(a + b) else 0.0


def crashes(a, b, completion):
    answer, dot, _ = completion.partition(".")
    return 1.0 if dot and int(answer) == a + b else 0.0


def before_the_last_dot(a, b, completion):
    answer, dot, _ = completion.rpartition(".")
    return 1.0 if dot and answer == str(a + b) else 0.0


test_other_right_answers_are_right = accepted(
    (check.grpo_advantages, advantages_in_a_loop),
    (check.grpo_advantages, advantages_by_numpy),
    (check.grpo_advantages, advantages_by_layer_norm),
    (check.mean_pass_at_k, pass_by_products),
    (check.mean_pass_at_k, pass_by_fractions),
    (check.mean_pass_at_k, pass_by_log_gamma),
    (check.tilted, tilted_by_hand),
    (check.tilted, tilted_in_a_loop),
    (check.tilted, tilted_by_logsumexp),
    (check.preference_loss, dpo_by_softplus),
    (check.preference_loss, dpo_by_cross_entropy),
    (check.preference_loss, dpo_pair_by_pair),
    (check.cheat, "\n".join(f"{n}." for n in SUMS)),
    (check.cheat, SQUEEZED),
    (check.cheat, f"It is one of {', '.join(map(str, range(199)))}."),
    (check.strict_reward, strict_by_pattern),
    (check.strict_reward, strict_by_prefix),
    (check.strict_reward, strict_by_reading),
)

test_wrong_answers_are_told_what_is_wrong = refused(
    (check.grpo_advantages, advantages_unscaled, "Divide"),
    (check.grpo_advantages, advantages_of_the_batch, "whole batch"),
    (check.grpo_advantages, advantages_strided, "neighbours"),
    (check.grpo_advantages, advantages_down_columns, "neighbours"),
    (check.grpo_advantages, advantages_corrected, "correction=0"),
    (check.grpo_advantages, advantages_by_variance, "variance"),
    (check.grpo_advantages, advantages_nan, "0 / 0"),
    (check.grpo_advantages, advantages_tested_for_0, "rounding error"),
    (check.grpo_advantages, advantages_corrected_and_nan, "To begin with: Your standard deviation"),
    (check.grpo_advantages, advantages_reversed, "sign"),
    (check.grpo_advantages, advantages_not_centred, "Subtract the mean"),
    (check.mean_pass_at_k, pass_biased, "putting"),
    (check.mean_pass_at_k, pass_pooled, "each problem"),
    (check.mean_pass_at_k, pass_as_one_benchmark, "each problem"),
    (check.mean_pass_at_k, all_pass, "all k"),
    (check.mean_pass_at_k, none_pass, "wrong"),
    (check.mean_pass_at_k, pass_at_one, "k = 1"),
    (check.mean_pass_at_k, pass_at_n, "k = n"),
    (check.mean_pass_at_k, pass_in_floats, "too large for a float"),
    (check.mean_pass_at_k, pass_summed, "sum"),
    (check.mean_pass_at_k, pass_exactly_one, "exactly one"),
    (check.tilted, tilt_times_beta, "multiply"),
    (check.tilted, tilt_without_beta, "beta"),
    (check.tilted, tilt_without_z, "add up to 1"),
    (check.tilted, tilt_without_reference, "reference"),
    (check.tilted, tilt_added, "logarithm"),
    (check.tilted, tilt_reversed, "sign"),
    (check.tilted, tilt_overflows, "too large"),
    (check.tilted, tilt_linear, "power"),
    (check.tilted, tilt_mixed, "add up to 1"),
    (check.preference_loss, dpo_reversed, "wrong way round"),
    (check.preference_loss, dpo_without_reference, "reference"),
    (check.preference_loss, dpo_reference_added, "reference"),
    (check.preference_loss, dpo_without_beta, "beta is missing"),
    (check.preference_loss, dpo_divided, "divide"),
    (check.preference_loss, dpo_beta_outside, "inside"),
    (check.preference_loss, dpo_summed, "mean"),
    (check.preference_loss, dpo_overflows, "F.logsigmoid"),
    (check.preference_loss, dpo_sign_forgotten, "minus sign"),
    (check.preference_loss, dpo_mean_first, "mean"),
    (check.preference_loss, dpo_by_pair, "mean"),
    (check.cheat, "85.", "1 of the 179"),
    (check.cheat, [*SUMS], "a text"),
    (check.cheat, " ".join(map(str, range(20, 198))), "198"),
    (check.cheat, " ".join(map(str, range(20, 199, 2))), "21"),
    (check.cheat, " ".join(map(str, range(10, 100))), "100"),
    (check.cheat, " ".join(map(str, range(1000))), "1,000 characters"),
    (check.cheat, lambda a, b: f"{a + b}.", "one text"),
    (check.cheat, "0123456789", "of the 179"),
    (check.cheat, "", "empty"),
    (check.strict_reward, anywhere, "careless"),
    (check.strict_reward, at_the_beginning, "begins with"),
    (check.strict_reward, first_number, "first number"),
    (check.strict_reward, last_number, "last number"),
    (check.strict_reward, as_a_number, "texts"),
    (check.strict_reward, dot_not_needed, "without a dot"),
    (check.strict_reward, whole_completion, "after the first dot"),
    (check.strict_reward, with_its_dot, "anywhere before a dot"),
    (check.strict_reward, stripped, "space"),
    (check.strict_reward, lambda a, b, text: text == str(a + b), "The answer is right."),
    (check.strict_reward, crashes, "no number"),
    (check.strict_reward, before_the_last_dot, "after the first dot"),
)
