"""Learning from rewards: completions, advantages, the policy-gradient loss, KL, DPO, pass@k.

A policy is a language model whose completions are rewarded. The prompts of a batch have one length.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.sampling import generate
from helpers.training import to_device_of


def completion_mask(completions: Tensor, end: int) -> Tensor:
    """True for each sampled token: (B, N) ids → (B, N) bool, up to and with the first end token.

    Taught in: learning_from_rewards.
    """
    is_end = completions == end
    ends_before = is_end.cumsum(1) - is_end.long()
    return ends_before == 0


def sample_completions(
    model: nn.Module,
    prompts: Tensor,
    n: int,
    end: int,
    *,
    num_samples: int = 1,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Continue each prompt (B, T) by at most n tokens, up to the end token.

    Returns prompts with completions (B, T + n), of which shorter ones are padded with the end
    token, and the completion mask (B, n); with num_samples, so many neighbouring rows a prompt.
    Explained in: learning_from_rewards.
    """
    T = prompts.shape[1]
    settings = dict(num_samples=num_samples, temperature=temperature, generator=generator)
    ids = generate(model, prompts, n, stop=[end], **settings)
    ids = F.pad(ids, (0, T + n - ids.shape[1]), value=end)
    return ids, completion_mask(ids[:, T:], end)


def completion_log_probs(model: nn.Module, ids: Tensor, n: int) -> Tensor:
    """The log-probabilities of all tokens at the last n positions: ids (B, T + n) → (B, n, V).

    Taught in: learning_from_rewards.
    """
    ids = to_device_of(model, ids)
    return model(ids[:, :-1])[:, -n:].log_softmax(-1)  # (B, T + n − 1, V) → (B, n, V)


def chosen_log_probs(log_probs: Tensor, ids: Tensor) -> Tensor:
    """The log-probability of each token of the completions: (B, n, V) → (B, n).

    ids: prompts with completions (B, T + n), or the completions (B, n).
    Taught in: learning_from_rewards.
    """
    completions = ids[:, -log_probs.shape[1] :].to(log_probs.device)  # (B, n)
    return log_probs.gather(-1, completions[..., None])[..., 0]


def group_advantages(rewards: Tensor, group: int) -> Tensor:
    """Subtract from each reward the mean of its group: (B,) → (B,).

    The `group` completions of a prompt are neighbours. Shao et al. 2024, "DeepSeekMath", who also
    divide by the standard deviation. Taught in: learning_from_rewards.
    """
    by_prompt = 1.0 * rewards.view(-1, group)  # (prompts, group); True is 1, False 0
    return (by_prompt - by_prompt.mean(1, keepdim=True)).view(-1)


def policy_gradient_loss(chosen: Tensor, mask: Tensor, advantages: Tensor) -> Tensor:
    """The mean over the completions of −advantage · log p(completion).

    chosen: log-probabilities of the completions' tokens (B, n). mask: the completion mask (B, n).
    advantages: (B,). Williams 1992, "REINFORCE". Taught in: learning_from_rewards.
    """
    if mask.shape != chosen.shape or advantages.shape != chosen.shape[:1]:  # no broadcasting
        raise ValueError(f"not (B, n), (B, n), (B,): {chosen.shape, mask.shape, advantages.shape}")
    return -(advantages.to(chosen.device) * chosen.masked_fill(~mask, 0).sum(1)).mean()


def kl_penalty(log_probs: Tensor, reference: Tensor, mask: Tensor) -> Tensor:
    """The KL divergence of the policy from the reference, summed over the tokens of a completion.

    log_probs, reference: of `completion_log_probs`, (B, n, V). mask: the completion mask (B, n).
    Returns the mean over the completions, a scalar. At each position, the sum over the vocabulary
    is exact; the prefixes are the sampled ones. Taught in: learning_from_rewards.
    """
    probs = log_probs.exp()
    counts = (probs > 0) & mask[..., None]  # elsewhere there may be −∞ − −∞, which is NaN
    return (probs * torch.where(counts, log_probs - reference, 0.0)).sum(-1).sum(1).mean()


def dpo_loss(right: Tensor, wrong: Tensor, beta: float) -> Tensor:
    """The loss of direct preference optimisation: the mean of −ln σ(β (right − wrong)).

    right, wrong: for each pair (B,), the log-probability of the preferred and of the rejected
    completion under the policy minus that under the reference. beta: the strength of the KL
    penalty. Rafailov et al. 2023, "Direct Preference Optimization".
    Taught in: learning_from_rewards.
    """
    if right.shape != wrong.shape:  # they would be broadcast
        raise ValueError(f"right {tuple(right.shape)} and wrong {tuple(wrong.shape)} are pairs")
    return -F.logsigmoid(beta * (right - wrong)).mean()


def pass_at_k(n: int, correct: int, k: int) -> float:
    """The probability that one of k completions is right, drawn from n of which some are correct.

    Chen et al. 2021, "Evaluating Large Language Models Trained on Code".
    Taught in: learning_from_rewards.
    """
    return 1 - math.comb(n - correct, k) / math.comb(n, k)
