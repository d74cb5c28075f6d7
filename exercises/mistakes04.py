"""The classic mistakes of chapter 04: diagnosis → what the mistake would give."""

import math

import torch
from torch import Tensor

from exercises.check import same
from helpers.attention import attention, causal_mask

WRONG_DIM = (
    "The columns of your weights sum to 1 and the rows do not: the softmax runs over dim -2. "
    "Each row is one query's distribution over the keys: dim=-1."
)
NO_SCALE = "The scale is missing: divide the scores by √hs, the root of the last dimension."
SCALE_HS = "You divide by hs itself. The scale is 1/√hs: the root of the last dimension."
UPPER = (
    "This is the upper triangle: each token looks at itself and the future. The past is the "
    "lower one: keep column j of row i where j <= i."
)
AFTER = (
    "The rows of your weights do not sum to 1: you masked after the softmax without renormalising, "
    "and the hidden future still takes its share. Put -inf into the scores before the softmax."
)
ZEROS = (
    "You put 0 into the scores where looking is forbidden. But e⁰ = 1, so the future still gets "
    "weight. Put -inf there: e^(-inf) is 0."
)
NO_MASK = "The future is not hidden: row i has weight on columns after i. Mask the scores."
PADDING = (
    "You indexed the mask as [:, None, None, :]. That makes a padding mask of it, one row per "
    "sequence, and not a causal one. A (T, T) mask broadcasts as it is."
)
SELF = (
    "Your mask hides the token itself too, so the first row has nothing to look at: NaN. Keep "
    "the diagonal: j <= i."
)
BATCH = (
    "The softmax runs over dim 0, the batch: other sequences decide what a token sees. Each row "
    "is one query's distribution over the keys: dim=-1."
)
HALF = (
    "In half precision (float16) this fails or lets the future in: your stand-in for -inf is a "
    "finite number. It may not fit into the type, and scores can be as low. Use float('-inf')."
)
HALF_NAN = (
    "In half precision (float16) your weights are NaN. Either -inf was multiplied by 0, or every "
    "e^score of a row was too small for the type and you divided 0 by 0. Write -inf into the "
    "scores with masked_fill, then take F.softmax."
)
TURNED = (
    "Your mask is the wrong way round, so the last row has nothing to look at: NaN. masked_fill "
    "writes where its mask is True, and causal_mask is True where looking is allowed: use ~mask."
)
INF_TIMES_0 = (
    "Everything is NaN: -inf times 0 is not a number. Do not multiply by -inf; write it with "
    "masked_fill(~mask, -inf)."
)
UNDERFLOW = (
    "With very low scores the output is NaN: each e^score of a row rounds to 0, and 0 is divided "
    "by 0. F.softmax avoids that."
)
FINITE = (
    "The future gets in: your stand-in for -inf is a finite number, and scores can be as low. "
    "Use float('-inf')."
)


def hide(scores: Tensor, allowed: Tensor, with_: float = -math.inf) -> Tensor:
    return scores.masked_fill(~allowed, with_)


def explain_nan(got: Tensor) -> str | None:
    """Which mistake made these rows (B, T, ...) of weights or outputs NaN?"""
    if got.dim() != 3 or got.shape[1] < 2:
        return None
    gone = got.isnan().all(-1).all(0).tolist()  # for each of the T rows: NaN throughout?
    if all(gone):
        return INF_TIMES_0
    if gone[0] and not any(gone[1:]):
        return SELF
    if gone[-1] and not any(gone[:-1]):
        return TURNED
    return BATCH if all(gone[:-1]) else None


def lookup_mistakes(q: Tensor, K: Tensor) -> dict[str, Tensor]:
    """What `weights_of(q, K)` gives for each mistake."""
    (T, hs), soft = K.shape, torch.softmax
    scores = K @ q
    scaled = scores / hs**0.5
    return {
        "These are the raw scores, any real numbers: scale them and take the softmax.": scores,
        "These are the scaled scores. Weights are what the softmax makes of them.": scaled,
        NO_SCALE: soft(scores, -1),
        SCALE_HS: soft(scores / hs, -1),
        "You multiply by √hs. The scale makes scores smaller: divide.": soft(scores * hs**0.5, -1),
        "You divide by √T, the number of keys. The scale is √hs, the length of a key.": (
            soft(scores / T**0.5, -1)
        ),
        "You divide after the softmax, and the weights no longer sum to 1. Scale first.": (
            soft(scores, -1) / hs**0.5
        ),
        "These are e^score, not yet divided by their sum.": scaled.exp(),
        "You divide by the length of q as an arrow, q.norm(). The scale is √hs: how many numbers a "
        "query has.": soft(scores / q.norm(), -1),
        "You divide the scores by their sum. Weights come from e^score: take the softmax.": (
            scores / scores.sum()
        ),
        "This is a weighted sum of the keys. Only the weights are asked for.": (
            soft(scaled, -1) @ K
        ),
    }


def masking_mistakes(scores: Tensor) -> dict[str, Tensor]:
    """What `causal_weights(scores)` gives for each mistake."""
    T = scores.shape[-1]
    allowed, soft = causal_mask(T), torch.softmax
    hidden = hide(scores, allowed)
    return {
        AFTER: soft(scores, -1) * allowed,
        ZEROS: soft(hide(scores, allowed, 0.0), -1),
        FINITE: soft(hide(scores, allowed, -10.0), -1),
        WRONG_DIM: soft(hidden, -2),
        "Your columns sum to 1 and your rows do not: dim=1 of (B, T, T) are the queries. Use -1, "
        "and mask before the softmax.": soft(scores, 1) * allowed,
        BATCH: soft(scores, 0) * allowed,
        UPPER: soft(hide(scores, allowed.T), -1),
        NO_MASK: soft(scores, -1),
        "You scale again. These scores are scaled already: only mask them and take the softmax.": (
            soft(hidden / T**0.5, -1)
        ),
        "These are the masked scores: the softmax over the last dimension is missing.": hidden,
        PADDING: soft(hide(scores, allowed[:, None, None, :]), -1),
    }


def attention_mistakes(q: Tensor, k: Tensor, v: Tensor) -> dict[str, Tensor]:
    """What `causal_attention(q, k, v)` gives for each mistake."""
    T, hs = q.shape[-2:]
    allowed, soft = causal_mask(T), torch.softmax
    scores = q @ k.mT / hs**0.5
    weights = soft(hide(scores, allowed), -1)
    mistakes = {
        NO_SCALE: attention(q, k, v, allowed, scale=1.0)[0],
        SCALE_HS: attention(q, k, v, allowed, scale=1 / hs)[0],
        NO_MASK: attention(q, k, v)[0],
        UPPER: attention(q, k, v, allowed.T)[0],
        AFTER: (soft(scores, -1) * allowed) @ v,
        ZEROS: soft(hide(scores, allowed, 0.0), -1) @ v,
        FINITE: soft(hide(scores, allowed, -10.0), -1) @ v,
        WRONG_DIM: soft(hide(scores, allowed), -2) @ v,
        "You mixed the values with the scores. Mix them with the weights, after the softmax.": (
            scores.tril() @ v
        ),
        "You mixed the values with the scores, unmasked. Mix them with the weights.": scores @ v,
        "You scale after the softmax, and the weights no longer sum to 1. Scale the scores.": (
            attention(q, k, v, allowed, scale=1.0)[0] / hs**0.5
        ),
        "You multiply by √hs. The scale makes scores smaller: divide.": (
            attention(q, k, v, allowed, scale=hs**0.5)[0]
        ),
        "You divide by √T, the number of tokens. The scale is √hs, the length of a query.": (
            attention(q, k, v, allowed, scale=T**-0.5)[0]
        ),
        "Queries and keys are swapped: your scores are k @ qᵀ. Row i should belong to query i.": (
            attention(k, q, v, allowed)[0]
        ),
        "You used the transposed weights: row i should mix the values for query i.": (
            weights.mT @ v
        ),
        "You mixed the keys. The weights come from the keys, what is mixed are the values.": (
            weights @ k
        ),
        "This is the plain average of the past, as in chapter 03: the scores have no effect.": (
            attention(q * 0, k, v, allowed)[0]
        ),
    }
    if T == hs:  # elsewhere the shapes do not fit and PyTorch complains
        unturned = soft(hide(q @ k / hs**0.5, allowed), -1) @ v
        mistakes["You left the keys as they are: q @ k. It should be q @ k.transpose(-2, -1)."] = (
            unturned
        )
    return mistakes


def window_mistakes(x: Tensor, q: Tensor, k: Tensor, v: Tensor, window: int) -> dict[str, Tensor]:
    """What a head with a window gives for each mistake; q, k, v are its projections of x."""
    past = causal_mask(q.shape[1])
    near = past & ~past.tril(-window)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    mistakes = {
        "The window is one too long: window tokens in all, the token itself among them.": (
            attention(q, k, v, past & ~past.tril(-window - 1))[0]
        ),
        "The window is one too short: the token itself and window - 1 before it.": (
            attention(q, k, v, past & ~past.tril(1 - window))[0]
        ),
        "This looks at the whole past: older tokens than the window are not hidden.": (
            attention(q, k, v, past)[0]
        ),
        "Your window reaches into the future as well: keep j <= i.": (
            attention(q, k, v, near | near.T)[0]
        ),
        "Your window ends in the past, but reaches over the whole future: keep j <= i.": (
            attention(q, k, v, ~past.tril(-window))[0]
        ),
        NO_MASK: attention(q, k, v)[0],
        AFTER: attention(q, k, v)[1] * near @ v,
        ZEROS: torch.softmax(hide(scores, near, 0.0), -1) @ v,
        WRONG_DIM: torch.softmax(hide(scores, near), -2) @ v,
        "Queries and keys are swapped: self.query(x) makes the queries.": (
            attention(k, q, v, near)[0]
        ),
        NO_SCALE: attention(q, k, v, near, scale=1.0)[0],
        SCALE_HS: attention(q, k, v, near, scale=1 / q.shape[-1])[0],
        "You scale by the width of x, √C. The scale is √head_size, the length of a query.": (
            attention(q, k, v, near, scale=x.shape[-1] ** -0.5)[0]
        ),
        "Queries and keys come from the same matrix: self.key is not used.": (
            attention(q, q, v, near)[0]
        ),
        "Keys and values come from the same matrix: self.value is not used.": (
            attention(q, k, k, near)[0]
        ),
        "You mix x itself: the values are self.value(x).": attention(q, k, x, near)[0],
    }
    # Where a mistake changes nothing (a short sequence, C = hs), it explains nothing.
    right = attention(q, k, v, near)[0]
    return {say: wrong for say, wrong in mistakes.items() if not same(wrong, right)}
