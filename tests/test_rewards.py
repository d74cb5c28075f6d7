"""Learning from rewards: masks, advantages, the policy gradient, KL, DPO, pass@k."""

import math
from itertools import combinations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from helpers import rewards
from helpers.gpt import GPT, GPTConfig

END = 3


class Table(nn.Module):
    """Logits of the next token from the last one and its position: (B, T) → (B, T, V)."""

    def __init__(self, V=4, T=4):
        super().__init__()
        self.table = nn.Parameter(torch.randn(T, V, V, dtype=torch.float64))

    def forward(self, ids):
        return self.table[torch.arange(ids.shape[1]), ids]


def every_completion(prompt, n, V=4):
    """All completions of at most n tokens, padded with the end token: (K, 1 + n)."""
    rows = torch.cartesian_prod(*[torch.arange(V)] * n)
    mask = rewards.completion_mask(rows, END)
    rows = rows[torch.where(mask, END, rows).eq(END).all(1)]  # after the end, only padding
    return torch.cat([torch.full((len(rows), 1), prompt), rows], 1)


def log_p(model, ids, n):
    chosen = rewards.chosen_log_probs(rewards.completion_log_probs(model, ids, n), ids)
    return (chosen * rewards.completion_mask(ids[:, -n:], END)).sum(1)


def test_all_completions_together_have_probability_1():
    torch.manual_seed(0)
    model, ids = Table(), every_completion(0, 3)
    assert len(ids) == 1 + 3 + 9 + 27  # of one, two and three tokens, ended or cut off
    assert_close(log_p(model, ids, 3).exp().sum().item(), 1.0)


def test_the_expected_policy_gradient_is_that_of_the_expected_reward():
    """Each completion weighted by its probability, as an endless sample would have it."""
    torch.manual_seed(0)
    model, ids = Table(), every_completion(0, 3)
    given = torch.randn(len(ids), dtype=torch.float64)
    probs = log_p(model, ids, 3).exp()
    expected = (probs * given).sum()
    (exact,) = torch.autograd.grad(expected, model.table)
    chosen = rewards.chosen_log_probs(rewards.completion_log_probs(model, ids, 3), ids)
    mask = rewards.completion_mask(ids[:, 1:], END)
    for baseline in (0.0, 4.0):
        weights = len(ids) * probs.detach() * (given - baseline)  # the loss takes the mean
        loss = rewards.policy_gradient_loss(chosen, mask, weights)
        (found,) = torch.autograd.grad(loss, model.table, retain_graph=True)
        assert_close(-found, exact)


def test_the_kl_penalty_is_the_divergence_of_whole_completions():
    """Over all completions, weighted by their probability, it is the sum of p ln(p / reference)."""
    torch.manual_seed(0)
    model, reference, ids = Table(), Table(), every_completion(0, 3)
    probs = log_p(model, ids, 3).exp()
    exact = (probs * (log_p(model, ids, 3) - log_p(reference, ids, 3))).sum()
    found = 0.0
    for p, row in zip(probs, ids, strict=True):
        both = [rewards.completion_log_probs(m, row[None], 3) for m in (model, reference)]
        found += p * rewards.kl_penalty(*both, rewards.completion_mask(row[None, 1:], END))
    assert_close(found, exact)


B, N = torch.zeros(4), torch.zeros(4, 3)
MASK = N.bool()


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (rewards.policy_gradient_loss, (N, MASK, B[:, None])),
        (rewards.policy_gradient_loss, (N, MASK, B[:1])),
        (rewards.policy_gradient_loss, (N, MASK, B[0])),
        (rewards.policy_gradient_loss, (N, MASK[0], B)),
        (rewards.policy_gradient_loss, (N, MASK[:, :1], B)),
        (rewards.dpo_loss, (B[:, None], B, 0.1)),
        (rewards.dpo_loss, (B, B[:1], 0.1)),
    ],
)
def test_shapes_that_would_be_broadcast_are_refused(function, given):
    with pytest.raises(ValueError, match=r"\(B, n\)|are pairs"):
        function(*given)


def test_a_token_that_is_impossible_adds_nothing():
    logits = torch.tensor([[[0.0, 1, -math.inf], [0, -math.inf, 2]]], requires_grad=True)
    log_probs, mask = logits.log_softmax(-1), torch.tensor([[True, False]])
    reference = torch.tensor([0.0, 0, -math.inf]).log_softmax(-1).expand(1, 2, 3)
    kl = rewards.kl_penalty(log_probs, reference, mask)
    p = logits[0, 0, :2].softmax(-1)
    assert_close(kl, (p * (p * 2).log()).sum())
    loss = rewards.policy_gradient_loss(log_probs[:, :, 1], mask, torch.ones(1))
    assert_close(loss, -p[1].log())
    (kl + loss).backward()
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("n", [1, 4, 6])
def test_pass_at_k_counts_all_choices(n):
    for correct in range(n + 1):
        answers = [i < correct for i in range(n)]
        for k in range(1, n + 1):
            tried = [any(chosen) for chosen in combinations(answers, k)]
            found = rewards.pass_at_k(n, correct, k)
            assert math.isclose(found, sum(tried) / len(tried), abs_tol=1e-12)


def test_completions_are_sampled_up_to_the_end_token():
    torch.manual_seed(0)
    model = GPT(GPTConfig(5, 16, n_layer=1, n_head=2, n_embd=8))
    prompts = torch.randint(5, (300, 6))
    ids, mask = rewards.sample_completions(
        model, prompts, 4, END, generator=torch.Generator().manual_seed(0)
    )
    assert ids.shape == (300, 10) and torch.equal(ids[:, :6], prompts)
    assert torch.equal(mask, rewards.completion_mask(ids[:, 6:], END))
    assert (ids[:, 6:][~mask] == END).all() and 0 < mask[:, -1].float().mean() < 1
    always = torch.full((2, 3), END)  # all texts end at once: they are padded to n

    class Ends(nn.Module):
        def forward(self, ids):
            return nn.functional.one_hot(torch.full_like(ids, END), 5) * 100.0

    ids, mask = rewards.sample_completions(Ends(), always, 4, END, temperature=0)
    assert ids.shape == (2, 7) and mask.sum(1).tolist() == [1, 1]
