"""The classic mistakes of chapter 09: diagnosis → what the mistake would give."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def parameter_mistakes(V: int, L: int, C: int) -> dict[str, int]:
    """What `fast_parameters(V, L, C)` gives for each mistake."""
    block, right = 12 * C**2 + 2 * C, 2 * V * C + L * (12 * C**2 + 2 * C) + C
    return {
        "You counted one table. The fast model is untied: the head has a table of its own.":
            right - V * C,
        "The norm before the head is missing: C gains.": right - C,
        "The gains of the norms are missing: two norms a block, and one before the head.":
            right - C - 2 * L * C,
        "The gains of the blocks' norms are missing: two of C each.": right - 2 * L * C,
        "You counted one norm a block. There are two, one before each part.": right - L * C,
        "This is the formula of GPT-2's blocks, with biases. Here there are none, and an RMSNorm "
        "has a gain only.": 2 * V * C + L * (12 * C**2 + 13 * C) + 2 * C,
        "You gave the norms a bias. An RMSNorm has a gain only.":
            2 * V * C + L * (12 * C**2 + 4 * C) + 2 * C,
        "You gave the norms of the blocks a bias. An RMSNorm has a gain only.":
            right + 2 * L * C,
        "The output matrix of the attention is missing: it is the fourth (C, C).":
            right - L * C**2,
        "The feed-forward part has two matrices, (C, 4C) and (4C, C): you counted one.":
            right - 4 * L * C**2,
        "You counted one block only: multiply by L.": right - (L - 1) * block,
    }  # fmt: skip


def surprise_mistakes(logits: Tensor, ids: Tensor) -> dict[str, Tensor]:
    """What `surprises(logits, ids)` gives for each mistake."""

    def picked(table: Tensor, tokens: Tensor) -> Tensor:
        return table.gather(-1, tokens[..., None])[..., 0]

    log_p = logits.log_softmax(-1)
    right = -picked(log_p[:, :-1], ids[:, 1:])
    own = -picked(log_p, ids)
    return {
        "You compare row t with token t, which the model has just read. Row t is about token t + 1."
        " (And the first token has no row.)": own,
        "You compare row t with token t, which the model has just read. Row t is about token "
        "t + 1.": own[:, :-1],
        "You compare row t with token t: shift logits and ids against each other by one.":
            own[:, 1:],
        "You shifted the wrong way: you compare row t + 1 with token t, which is behind it.":
            -picked(log_p[:, 1:], ids[:, :-1]),
        "The sign is missing: these are log-probabilities. A surprise is −ln p, never negative.":
            -right,
        "These are probabilities. A surprise is −ln p.": (-right).exp(),
        "These are the logits themselves: without a softmax they are no probabilities.":
            picked(logits[:, :-1], ids[:, 1:]),
        "These are the negative logits: without a softmax they are no probabilities.":
            -picked(logits[:, :-1], ids[:, 1:]),
        "Your softmax runs over the tokens, dim 1. It runs over the symbols: dim=-1.":
            -picked(logits.log_softmax(1)[:, :-1], ids[:, 1:]),
        "Your softmax runs over the tokens, dim 1. It runs over the symbols: dim=-1. ":
            -picked(logits[:, :-1].log_softmax(1), ids[:, 1:]),
        "You averaged. Keep a number for each token: shape (B, T − 1).": right.mean(),
        "You averaged over each text. Keep a number for each token: shape (B, T − 1).":
            right.mean(1),
        "Right numbers, but all in a row (cross_entropy wants that). Give them the shape "
        "(B, T − 1) again.": right.flatten(),
        "These are bits, log₂. A nat is −ln p.": right / torch.tensor(2.0).log(),
    }  # fmt: skip


def clip_mistakes(gradients: list[Tensor], longest: float) -> dict[str, Tensor]:
    """What `clip(gradients, longest)` gives, all in a row, for each mistake."""
    whole = torch.cat([g.flatten() for g in gradients])
    length = whole.norm()
    each = [g.flatten() * min(1.0, longest / g.norm().item()) for g in gradients]
    by_size = whole.abs().max().item()
    sum_of_lengths = sum(g.norm().item() for g in gradients)
    return {
        "You cut each entry off. That bends the direction: shorten all by one factor.":
            whole.clamp(-longest, longest),
        "You shorten each tensor by itself. They are one vector: one length for all of them.":
            torch.cat(each),
        "You always bring the length to `longest`. Gradients that are shorter stay as they are.":
            whole * (longest / length),
        "You divide by the length even when it is below `longest`, and forgot `longest`.":
            whole / length,
        "You did not shorten anything.": whole,
        "You divide by the square of the length: take the root of the sum of squares.":
            whole * min(1.0, longest / length.item() ** 2),
        "You measure by the largest entry. The length is the root of the sum of squares.":
            whole * min(1.0, longest / by_size),
        "You added the lengths of the tensors. Add their squares, and take the root at the end.":
            whole * min(1.0, longest / sum_of_lengths),
        "You added absolute values. The length is the root of the sum of squares.":
            whole * min(1.0, longest / whole.abs().sum().item()),
    }  # fmt: skip


def equalised_mistakes(matrix: Tensor) -> dict[str, Tensor]:
    """What `equalised(matrix)` gives for each mistake."""
    U, S, Vt = torch.linalg.svd(matrix, full_matrices=False)
    wrong = {
        "This is the matrix itself: the singular values are still in it. Leave them out.": matrix,
        "This is the matrix divided by its length: all singular values shrink alike. Leave them "
        "out: U Vᵀ.": matrix / matrix.norm(),
        "This is the matrix divided by its largest singular value. Leave all of them out: U Vᵀ.":
            matrix / S[0],
        "These are the signs of the entries. Make the singular values 1, not the entries.":
            matrix.sign(),
        "This is the transposed matrix.": (U @ Vt).T,
        "You scaled each row to length 1. The rows should also be perpendicular: U Vᵀ.":
            matrix / matrix.norm(dim=1, keepdim=True),
        "You scaled each column to length 1. Columns should also be perpendicular: U Vᵀ.":
            matrix / matrix.norm(dim=0, keepdim=True),
        "This is the inverse with the directions turned round: the singular values are 1/σ.":
            U @ torch.diag(1 / S) @ Vt,
    }  # fmt: skip
    if U.shape[1] == Vt.shape[1] == Vt.shape[0]:  # only then can it be turned round unnoticed
        turned = "torch.linalg.svd gives Vᵀ already: you turned it round once more."
        wrong[turned] = U @ Vt.T
    return wrong


def unfuse_mistakes(c_attn: Tensor) -> dict[str, Tensor]:
    """What `unfuse(c_attn)` gives, stacked, for each mistake."""
    C = len(c_attn)
    parts = c_attn.chunk(3, dim=1)
    q, k, v = (part.T for part in parts)
    turn = (
        "The matrices are not turned. They are square, so nothing complains, and the logits are "
        "wrong: F.linear(x, W) computes x @ W.T."
    )
    return {
        turn: torch.stack(parts),
        "You took every third column. Queries, keys and values stand side by side, C columns each.":
            torch.stack([c_attn[:, i::3].T for i in range(3)]),
        "You took every third column, and did not turn the matrices. Side by side means C columns "
        "each.": torch.stack([c_attn[:, i::3] for i in range(3)]),
        "You reshaped (C, 3C) to (3, C, C): that cuts rows to pieces. Take columns.":
            c_attn.reshape(3, C, C),
        "You reshaped (C, 3C) to (3, C, C) and turned the pieces: that cuts rows to pieces. Take "
        "columns.": c_attn.reshape(3, C, C).transpose(1, 2),
        "The order is wrong: queries, keys, values.": torch.stack([k, q, v]),
        "The order is wrong: values come last.": torch.stack([q, v, k]),
        "The order is wrong: you begin with the values.": torch.stack([v, k, q]),
    }  # fmt: skip


def mixed_mistakes(
    rungs: list[dict[str, Any]], changes: Callable[[Any, Any], int]
) -> dict[str, list[int]]:
    """What `mixed_steps(rungs)` gives for each mistake."""

    def shared(a: dict[str, Any], b: dict[str, Any]) -> int:
        return sum(a[name] != b[name] for name in a.keys() & b.keys())

    def where(count: Callable[[Any, Any], int], least: int = 2) -> list[int]:
        return [i for i in range(1, len(rungs)) if count(rungs[i - 1], rungs[i]) >= least]

    right = where(changes)
    return {
        "These are the steps with at least one change. Mixed are those with more than one.":
            where(changes, 1),
        "These are the steps that are clean, or change nothing: you have it the wrong way round.":
            [i for i in range(1, len(rungs)) if i not in right],
        "You compare each rung with the first one. Compare it with the one before it.":
            [i for i in range(1, len(rungs)) if changes(rungs[0], rungs[i]) > 1],
        "You compare only the settings that both rungs have. One that was added or dropped is a "
        "change, too.": where(shared),
        "You leave out settings that the later rung no longer has. One that was dropped is a "
        "change, too.": where(lambda a, b: sum(a.get(n, ...) != b[n] for n in b)),
        "You leave out settings that the earlier rung did not have. One that was added is a "
        "change, too.": where(lambda a, b: sum(a[n] != b.get(n, ...) for n in a)),
        "Where a setting is missing your code takes None for it. But None can be a setting.":
            where(lambda a, b: sum(a.get(n) != b.get(n) for n in a.keys() | b.keys())),
        "These are the numbers of the rungs before the mixed steps. Give those of the later rung.":
            [i - 1 for i in right],
        "You count from 1. The first rung has the number 0.": [i + 1 for i in right],
    }  # fmt: skip
