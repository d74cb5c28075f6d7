"""The exercises on many machines: other right answers, and mistakes that no table names."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from exercises import beyond_one_machine as check
from helpers.gpt import GPT, GPTConfig
from helpers.training import language_model_loss
from tests.answers import accepted, refused


def by_parts(layers, C, V, T, tokens):
    forward = layers * (8 * C * C + 16 * C * C + 2 * T * C + 2 * T * C) + 2 * V * C
    return tokens * (forward + 2 * forward)


def from_a_million(budget, A, alpha, B, beta):
    N = torch.logspace(6, 14, 100_000, dtype=torch.float64)
    return N[(A / N**alpha + B * (6 * N / budget) ** beta).argmin()].item()


def with_rows(losses, rows):
    return torch.repeat_interleave(torch.tensor(losses), torch.tensor(rows)).mean()


def by_loop(x, up, down, n):
    size = len(up) // n
    parts = []
    for i in range(n):
        mine = slice(i * size, (i + 1) * size)
        parts.append((x @ up[mine].T).clamp(min=0) @ down[:, mine].T)
    return torch.stack(parts)


def by_trying(budget, A, alpha, B, beta):
    N = torch.logspace(2, 14, 100_000, dtype=torch.float64)
    loss = A / N**alpha + B * (6 * N / budget) ** beta
    return N[loss.argmin()].item()


test_other_right_answers_are_right = accepted(
    (check.training_flops, by_parts),
    (check.joint_loss, with_rows),
    (check.in_pieces, by_loop),
    (check.best_split, by_trying),
)


def test_the_matrices_of_a_gpt_cost_what_the_formula_says():
    """torch's counter leaves the fused attention out."""
    model, ids = GPT(GPTConfig(50, 8, 2, 2, 16)), torch.randint(50, (3, 8))
    with FlopCounterMode(display=False) as counter:
        language_model_loss(model, ids, ids).backward()
    without = check.training_flops.slip("+ 4 * layers * T * C →")
    assert counter.get_total_flops() == without(2, 16, 50, 8, 24)


def of_distinct_pairs(losses, rows):
    return check.joint_loss.right(*zip(*set(zip(losses, rows, strict=True)), strict=True))


def by_index(losses, rows):
    return sum(loss * rows[losses.index(loss)] for loss in losses) / sum(rows)


test_other_wrong_answers_are_not_accepted = refused(
    (check.joint_loss, of_distinct_pairs, "joint_loss("),
    (check.joint_loss, by_index, "joint_loss("),
    (check.best_split, from_a_million, "best_split("),
)


def test_the_law_of_the_chapter_would_take_half_the_size():
    """What the solution of 18.4 says: 630,000 parameters instead of 1.19 million."""
    A, B = 0.4359 * 1e4**0.27, 0.1545 * 1e6**0.45
    assert check.best_split.right(6 * 1_185_792 * 2e6, A, 0.27, B, 0.45) == pytest.approx(
        630_000, rel=0.02
    )
