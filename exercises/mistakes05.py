"""The classic mistakes of chapter 05: diagnosis → what the mistake would give."""

import math

import torch
from torch import Tensor

NO_SCALE = "The scale is missing: divide the scores by √hs, the root of a query's length."
SCALE_HS = (
    "You divide by hs itself. The variance of q·k is hs, but dividing by c divides the standard "
    "deviation by c: divide by the standard deviation, √hs."
)
SCALE_C = (
    "You divide by √C, the width of x. It is the head size hs that counts, the length of a query: "
    "q.shape[-1]. With √C the weights of a small head are too flat."
)
MULTIPLIED = "You multiply by √hs: that makes large scores larger. Divide."
AFTERWARDS = (
    "You scale after the softmax: the rows no longer sum to 1, and the softmax is as saturated as "
    "before. Scale the scores, before the softmax."
)


def weight_mistakes(x: Tensor, q: Tensor, k: Tensor) -> dict[str, Tensor]:
    """The right weights under "right", and diagnosis → what the mistake gives."""
    (T, hs), C = q.shape[-2:], x.shape[-1]
    scores, soft = q @ k.mT, torch.softmax
    scaled = scores / hs**0.5
    return {
        "right": soft(scaled, -1),
        NO_SCALE: soft(scores, -1),
        SCALE_HS: soft(scores / hs, -1),
        SCALE_C: soft(scores / C**0.5, -1),
        "You divide by C, the width of x. It is √hs: the head size, and its root.": (
            soft(scores / C, -1)
        ),
        "You divide by √T, the number of tokens. It is √hs: how long a query is.": (
            soft(scores / T**0.5, -1)
        ),
        MULTIPLIED: soft(scores * hs**0.5, -1),
        AFTERWARDS: soft(scores, -1) / hs**0.5,
        "You scale after the softmax, and by hs. Divide the scores by √hs, before the softmax.": (
            soft(scores, -1) / hs
        ),
        "These are the scaled scores. The softmax over the last dimension is missing.": scaled,
        "These are the raw scores: scale them, then the softmax.": scores,
        "The softmax runs over dim -2: your columns sum to 1. Rows should: dim=-1.": (
            soft(scaled, -2)
        ),
        "Queries and keys are swapped: row i should belong to query i.": soft(scaled.mT, -1),
        "You masked the future. Here no mask is asked for: every query sees all keys.": (
            soft(scaled.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf), -1)
        ),
    }


def entropy_of(weights: Tensor) -> Tensor:
    """Entropy of each row in nats: (..., T) to (...)."""
    return torch.special.entr(weights).sum(-1)


def entropy_mistakes(w: Tensor) -> dict[str, Tensor]:
    right = entropy_of(w)
    mistakes = {
        "The sign is wrong: logarithms of weights are negative, an entropy is not. Put a minus in "
        "front.": -right,
        "You used log2, so your entropy is in bits. Nats need the natural logarithm, log.": (
            right / math.log(2)
        ),
        "You used log2, and the sign is wrong.": -right / math.log(2),
        "You used log10. Nats need the natural logarithm, log.": right / math.log(10),
        "This is e to the entropy, the number of tokens heard.": right.exp(),
        "The weight in front of the logarithm is missing: the mean surprise weighs each token by "
        "its own weight.": -w.log().sum(-1),
        "You took the plain mean of the surprises. Each counts with its weight: multiply by the "
        "weights and sum.": -w.log().mean(-1),
        "You averaged over the row instead of summing.": right / w.shape[-1],
        "These are the single terms. Sum them over the last dimension.": torch.special.entr(w),
    }
    if w.dim() > 1:
        mistakes |= {
            "You summed everything: one number per row is asked for (dim=-1).": right.sum(),
            "You averaged over the rows. Leave one number per row.": right.mean(),
            "You summed over dim 0. A row's weights lie along the last dimension: dim=-1.": (
                torch.special.entr(w).sum(0)
            ),
        }
    return mistakes


def jacobian_mistakes(scores: Tensor) -> dict[str, Tensor]:
    """What `softmax_jacobian(scores)` gives for each mistake."""
    w = scores.softmax(-1)
    diagonal, outer = torch.diag(w), torch.outer(w, w)
    return {
        "Your off-diagonal entries have the wrong sign: when one key wins weight, the others "
        "lose it. It is diag(w) minus w wᵀ.": diagonal + outer,
        "Your off-diagonal entries are positive, the diagonal is right: put a minus before "
        "w_i w_j for i ≠ j.": diagonal + outer - 2 * torch.diag(w**2),
        "All signs are turned round: this is w wᵀ minus diag(w).": outer - diagonal,
        "This is the diagonal alone. A score also moves the weights of the other keys: "
        "-w_i w_j.": torch.diag(w * (1 - w)),
        "These are only the numbers w_i (1 - w_i). A score also moves the other weights: a "
        "matrix (T, T) is asked for.": w * (1 - w),
        "You took w_i² off the diagonal twice. Either diag(w) - w wᵀ, or w_i (1 - w_i) on the "
        "diagonal and -w_i w_j elsewhere.": diagonal - outer - torch.diag(w**2),
        "You took off w * w, which has only the squares. w wᵀ is the table of all products "
        "w_i w_j: torch.outer(w, w).": diagonal - w * w,
        "You took off w @ w, which is a single number. w wᵀ is the table of all products "
        "w_i w_j: torch.outer(w, w).": diagonal - w @ w,
        "The - w wᵀ is missing: this is diag(w).": diagonal,
        "The diag(w) is missing: this is -w wᵀ.": -outer,
        "This is the identity minus w wᵀ: on the diagonal stands w itself, diag(w).": (
            torch.eye(len(w)) - outer
        ),
        "You put the scores into the formula. It needs the weights: the softmax first.": (
            torch.diag(scores) - torch.outer(scores, scores)
        ),
        "This is the sigmoid's derivative of each score, as if the keys did not compete.": (
            torch.diag(scores.sigmoid() * (1 - scores.sigmoid()))
        ),
    }
