"""The addition task of the chapter learning_from_rewards: 37+48=85. and a demonstrator in haste.

A completion has at most N tokens, and the dot is the end token. Where the units carry, each
demonstration forgets that carry with probability 0.7: then its answer is 10 too small. (`teachers`
has others.)
"""

import copy
import random
from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from helpers.gpt import GPT, fast_gpt
from helpers.optimizers import fast_optimizers
from helpers.rewards import (
    chosen_log_probs,
    completion_log_probs,
    completion_mask,
    group_advantages,
    kl_penalty,
    policy_gradient_loss,
    sample_completions,
)
from helpers.text import CharTokenizer
from helpers.training import minimize, wsd_schedule

TOKENIZER = CharTokenizer("0123456789+=.")
END = TOKENIZER.encode(".")[0]
PROMPT, N = 6, 4  # tokens of a prompt, and at most of a completion
Problem = tuple[int, int]
Reward = Callable[[Tensor, list[Problem]], Tensor]  # ids (B, 10) and their B problems → (B,)


def problems(seed: int) -> tuple[list[Problem], list[Problem]]:
    """6,500 problems for training, and 1,600 held out."""
    pairs = [(a, b) for a in range(10, 100) for b in range(10, 100)]
    random.Random(seed).shuffle(pairs)
    return pairs[:6500], pairs[6500:]


def carries(pair: Problem) -> bool:
    """Do the units of this sum carry?"""
    return pair[0] % 10 + pair[1] % 10 >= 10


def encode(texts: list[str]) -> Tensor:
    """Texts as ids (B, 10), padded with the end token."""
    rows = [TOKENIZER.encode(text) for text in texts]
    return torch.tensor([row + [END] * (PROMPT + N - len(row)) for row in rows])


def prompts(pairs: list[Problem]) -> Tensor:
    """(B, 6)"""
    return torch.tensor([TOKENIZER.encode(f"{a}+{b}=") for a, b in pairs])


def answers(ids: Tensor) -> list[str]:
    """What the completions say before the end token."""
    return [TOKENIZER.decode(row[PROMPT:].tolist()).split(".")[0] for row in ids]


def is_right(ids: Tensor, pairs: list[Problem]) -> Tensor:
    """The reward of each row: 1 for the sum, else 0."""
    right = [said == str(a + b) for said, (a, b) in zip(answers(ids), pairs, strict=True)]
    return torch.tensor(right).float()


def demonstrations(
    pairs: list[Problem], seed: int, errs: float = 0.7, slips: tuple[int, ...] = (-10,)
) -> Tensor:
    """Four demonstrations of each problem: ids (4B, 10). A wrong one is off by one of the slips."""
    rng, texts = random.Random(seed), []
    for a, b in pairs * 4:
        wrong = rng.random() < errs and carries((a, b))
        slip = slips[0] if len(slips) == 1 else rng.choice(slips)
        texts.append(f"{a}+{b}={a + b + slip * wrong}.")
    return encode(texts)


@cache
def _imitator(seed: int, steps: int, errs: float, slips: tuple[int, ...]) -> GPT:
    ids = demonstrations(problems(seed)[0], seed, errs, slips)
    torch.manual_seed(seed)
    model = fast_gpt(TOKENIZER.vocab_size, 16, n_layer=2, n_head=4, n_embd=64)

    def loss_of(step: int) -> Tensor:
        x = ids[torch.randint(len(ids), (128,))]
        mask = completion_mask(x[:, -N:], END)
        return F.cross_entropy(model(x[:, :-1])[:, -N:][mask], x[:, -N:][mask])

    minimize(loss_of, model, fast_optimizers(model, 0.05, 0.02, momentum=0.9), steps, wsd_schedule)
    return model


def imitator(
    seed: int, steps: int = 250, errs: float = 0.7, slips: tuple[int, ...] = (-10,)
) -> GPT:
    """A GPT that was trained on the demonstrations (7 s); each call returns a copy."""
    return copy.deepcopy(_imitator(seed, steps, errs, slips))


def draw(
    model: GPT, pairs: list[Problem], samples: int, seed: int, temperature: float = 1.0
) -> tuple[Tensor, Tensor, list[Problem]]:
    """Ids (B · samples, 10), their masks, and the problem of each row."""
    generator = torch.Generator().manual_seed(seed)
    repeated = [pair for pair in pairs for _ in range(samples)]
    parts = [
        sample_completions(model, part, N, END, temperature=temperature, generator=generator)
        for part in prompts(repeated).split(2048)
    ]
    return torch.cat([ids for ids, _ in parts]), torch.cat([mask for _, mask in parts]), repeated


def accuracy(
    model: GPT, pairs: list[Problem], samples: int = 1, temperature: float = 1.0
) -> Tensor:
    """Whether each sampled completion is right: (problems, samples), 0 or 1."""
    ids, _, repeated = draw(model, pairs, samples, seed=1000, temperature=temperature)
    return is_right(ids, repeated).view(len(pairs), samples)


def adam(model: GPT, rate: float) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.95), weight_decay=0.0)


def clipped_loss(chosen: Tensor, old: Tensor, mask: Tensor, advantages: Tensor) -> Tensor:
    """PPO's: each completion counts with the ratio p / p_old, within 20% of 1."""
    ratio = ((chosen - old) * mask).sum(1).exp()
    return -torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()


def train_policy(
    model: GPT,
    reference: GPT,
    train: list[Problem],
    seed: int,
    *,
    steps: int = 60,
    rate: float = 0.003,
    beta: float = 0.0,
    group: int = 8,
    reward: Reward = is_right,
    baseline: bool = True,
    uses: int = 1,
    clip: bool = False,
    watch: Callable[[int], None] | None = None,
) -> None:
    """Train the policy by policy gradient, each step on 32 problems with `group` completions.

    uses: steps that are taken on the same completions. clip: with `clipped_loss`. `watch(step)` is
    called before each step and after the last one.
    """
    generator, rng = torch.Generator().manual_seed(seed), random.Random(seed)
    batch: dict[str, Tensor] = {}

    def loss_of(step: int) -> Tensor:
        if watch:
            watch(step)
        if fresh := step % uses == 0:
            pairs = [pair for pair in rng.sample(train, 32) for _ in range(group)]
            ids, mask = sample_completions(model, prompts(pairs), N, END, generator=generator)
            rewards = reward(ids, pairs)
            advantages = group_advantages(rewards, group) if baseline else rewards
            batch.update(ids=ids, mask=mask, advantages=advantages)
        ids, mask, advantages = batch["ids"], batch["mask"], batch["advantages"]
        log_probs = completion_log_probs(model, ids, N)
        chosen = chosen_log_probs(log_probs, ids)
        if fresh:
            batch["old"] = chosen.detach()
        if clip:
            loss = clipped_loss(chosen, batch["old"], mask, advantages)
        else:
            loss = policy_gradient_loss(chosen, mask, advantages)
        if beta:
            with torch.no_grad():
                base = completion_log_probs(reference, ids, N)
            loss = loss + beta * kl_penalty(log_probs, base, mask)
        return loss

    minimize(loss_of, model, adam(model, rate), steps, grad_clip=1.0)
    if watch:
        watch(steps)
