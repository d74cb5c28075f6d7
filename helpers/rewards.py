"""Learning from rewards: completions, advantages, the policy-gradient loss, KL, DPO, pass@k.

A policy is a language model whose completions are rewarded. The prompts of a batch have one length.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.checks import check_shapes, to_device_of
from helpers.sampling import generate


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
    """Continue each prompt by at most n tokens, up to the end token.

    Args:
        prompts: (B, T).
        n: the largest length of a completion.
        end: the id of the end token; a shorter completion is padded with it.
        num_samples, temperature, generator: those of `stream`.

    Returns prompts with completions (B, T + n), and the completion mask (B, n); with num_samples,
    that many rows for each prompt, side by side.
    Explained in: learning_from_rewards.
    """
    T = prompts.shape[1]
    settings = dict(num_samples=num_samples, temperature=temperature, generator=generator)
    ids = generate(model, prompts, n, stop=[end], **settings)
    ids = F.pad(ids, (0, T + n - ids.shape[1]), value=end)
    return ids, completion_mask(ids[:, T:], end)


def completion_log_probs(model: nn.Module, ids: Tensor, n: int) -> Tensor:
    """The log-probabilities of all tokens at the last n positions: ids (B, T + n) → (B, n, V).

    Raises ValueError unless 1 ≤ n < T + n. Taught in: learning_from_rewards.
    """
    if not 1 <= n < ids.shape[1]:
        raise ValueError(f"completions of {n} tokens cannot end texts of {ids.shape[1]}")
    ids = to_device_of(model, ids)
    return model(ids[:, :-1])[:, -n:].log_softmax(-1)


def chosen_log_probs(log_probs: Tensor, ids: Tensor) -> Tensor:
    """The log-probability of each token of the completions: (B, n, V) → (B, n).

    Args:
        log_probs: of `completion_log_probs`.
        ids: prompts with completions (B, T + n), or the completions (B, n).

    Raises ValueError for shapes that do not fit, as the losses here do.
    Taught in: learning_from_rewards.
    """
    completions = ids[:, -log_probs.shape[1] :].to(log_probs.device)
    check_shapes(log_probs=(log_probs, "BnV"), completions=(completions, "Bn"))
    return log_probs.gather(-1, completions[..., None])[..., 0]


def group_advantages(rewards: Tensor, group: int) -> Tensor:
    """Subtract from each reward the mean of its group: (B,) → (B,).

    Args:
        rewards: one for each completion; the completions of a prompt are neighbours.
        group: how many completions each prompt has.

    Raises ValueError if the rewards do not divide into groups.
    Shao et al. 2024, "DeepSeekMath", who also divide by the standard deviation.
    Taught in: learning_from_rewards.
    """
    check_shapes(rewards=(rewards, "B"))
    if group < 1 or len(rewards) % group:
        raise ValueError(f"{len(rewards)} rewards do not divide into groups of {group}")
    by_prompt = 1.0 * rewards.view(-1, group)  # True is 1, False 0
    return (by_prompt - by_prompt.mean(1, keepdim=True)).view(-1)


def policy_gradient_loss(chosen: Tensor, mask: Tensor, advantages: Tensor) -> Tensor:
    """The mean over the completions of −advantage · log p(completion).

    Args:
        chosen: log-probabilities of the completions' tokens (B, n).
        mask: the completion mask (B, n).
        advantages: (B,).

    Williams 1992, "REINFORCE". Taught in: learning_from_rewards.
    """
    check_shapes(chosen=(chosen, "Bn"), mask=(mask, "Bn"), advantages=(advantages, "B"))
    return -(advantages.to(chosen.device) * chosen.masked_fill(~mask, 0).sum(1)).mean()


def kl_penalty(log_probs: Tensor, reference: Tensor, mask: Tensor) -> Tensor:
    """The KL divergence of the policy from the reference, summed over the tokens of a completion.

    Args:
        log_probs, reference: of `completion_log_probs`, (B, n, V), by the policy and the reference.
        mask: the completion mask (B, n).

    Returns the mean over the completions, a scalar. At each position, the sum over the vocabulary
    is exact; the prefixes are the sampled ones. Taught in: learning_from_rewards.
    """
    check_shapes(log_probs=(log_probs, "BnV"), reference=(reference, "BnV"), mask=(mask, "Bn"))
    probs = log_probs.exp()
    counts = (probs > 0) & mask[..., None]  # elsewhere there may be −∞ − −∞, which is NaN
    return (probs * torch.where(counts, log_probs - reference, 0.0)).sum(-1).sum(1).mean()


def dpo_loss(right: Tensor, wrong: Tensor, beta: float) -> Tensor:
    """The loss of direct preference optimisation: the mean of −ln σ(β (right − wrong)).

    Args:
        right, wrong: for each pair (B,), the log-probability of the preferred and of the rejected
            completion under the policy minus that under the reference.
        beta: the strength of the KL penalty.

    Rafailov et al. 2023, "Direct Preference Optimization". Taught in: learning_from_rewards.
    """
    check_shapes(right=(right, "B"), wrong=(wrong, "B"))
    return -F.logsigmoid(beta * (right - wrong)).mean()


def pass_at_k(n: int, correct: int, k: int) -> float:
    """The probability that one of k completions is right, drawn from n of which some are correct.

    Chen et al. 2021, "Evaluating Large Language Models Trained on Code".
    Raises ValueError unless 1 ≤ k ≤ n and 0 ≤ correct ≤ n. Taught in: learning_from_rewards.
    """
    if not (1 <= k <= n and 0 <= correct <= n):
        raise ValueError(f"pass@{k} needs 1 ≤ k ≤ n and 0 ≤ correct ≤ n, not {n=}, {correct=}")
    return 1 - math.comb(n - correct, k) / math.comb(n, k)
