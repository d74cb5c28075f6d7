"""The classic mistakes of chapter 06: diagnosis → what the mistake would give."""

import math

import torch
from torch import Tensor

SCRAMBLE = (
    "The tokens are scrambled: you reshaped (B, H, T, hs) straight to (B, T, C), and each row now "
    "holds several tokens of one head. Swap H and T first: `transpose(1, 2)`."
)
ALONG_T = (
    "You cut along the time: each of your heads holds some of the tokens with all their features. "
    "Every head needs all tokens and hs of the features: first (B, T, H, hs), then swap T and H."
)
INTERLEAVED = (
    "The heads are in the wrong order: you let neighbouring features belong to different heads "
    "(…, hs, H). Head h owns the features h·hs … (h+1)·hs − 1: (…, H, hs)."
)
NO_OUTPUT = "The output projection is missing: multiply the merged heads by W_o."
SCALE_C = (
    "You divide the scores by √C, the whole width. A head's dot product has hs = C/H terms: "
    "divide by √hs, or the weights are too even."
)
OVER_HEADS = (
    "Your softmax runs over the heads (dim 1), so the heads compete for each pair of tokens, and "
    "where all of them are masked it gives NaN. Each head has its own distribution: dim=-1."
)
WRONG_DIM = (
    "Your softmax runs over dim -2, the queries: the columns sum to 1, not the rows. Use dim=-1."
)
NO_MASK = "The future is not hidden: this is self-attention in a GPT, mask it with causal_mask(T)."
NO_SCALE = "The scale is missing: divide the scores by √hs."
ONE_HEAD = "This is one head of width C: q, k and v were never split into n_head heads."
TRANSPOSED = "You multiply by the transposed matrices. Here a projection is `x @ W`."
MASKED_CROSS = (
    "You applied the causal mask. In cross-attention the source is complete before the first "
    "query asks, and place i of x says nothing about place i of the source: no mask."
)
SWAPPED = (
    "The roles are swapped: your output has a row for each token of the source. The queries come "
    "from x, and the output follows the queries; keys and values come from the source."
)
IGNORED = "The source is never used: this is self-attention of x. Keys and values come from it."


def split(x: Tensor, H: int) -> Tensor:
    return x.unflatten(-1, (H, -1)).transpose(1, 2)


def merge(out: Tensor) -> Tensor:
    return out.transpose(1, 2).flatten(2)


def scramble(out: Tensor) -> Tensor:
    B, H, T, hs = out.shape
    return out.reshape(B, T, H * hs)


def along_t(x: Tensor, H: int) -> Tensor:
    B, T, C = x.shape
    return x.reshape(B, H, T, C // H)


def interleaved(x: Tensor, H: int) -> Tensor:
    return x.unflatten(-1, (-1, H)).permute(0, 3, 1, 2)


def attend(
    q: Tensor, k: Tensor, v: Tensor, *, mask: bool, scale: float | None = None, dim: int = -1
) -> Tensor:
    """Attention with the mistakes that can be made in it; T and S may differ."""
    scores = q @ k.transpose(-2, -1) / (q.shape[-1] ** 0.5 if scale is None else scale)
    if mask:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~allowed, -math.inf)
    return scores.softmax(dim) @ v


def split_mistakes(x: Tensor, H: int) -> dict[str, Tensor]:
    """What `split_heads(x, n_head)` gives for each mistake."""
    B, T, C = x.shape
    right = split(x, H)
    wrong = {
        ALONG_T: along_t(x, H),
        INTERLEAVED: interleaved(x, H),
        "The heads stand behind the tokens, (B, T, H, hs). Attention works on the last two "
        "dimensions, and they must be T and hs: swap dimensions 1 and 2.": right.transpose(1, 2),
        "Your last two dimensions are (hs, T). They must be (T, hs).": right.transpose(2, 3),
    }
    if T % H == 0:
        pieces = "You cut the time into n_head pieces. Cut the features: every head sees all T."
        wrong[pieces] = x.reshape(B, H, T // H, C)
    return wrong


def merge_mistakes(out: Tensor) -> dict[str, Tensor]:
    """What `merge_heads(out)` gives for each mistake."""
    return {
        SCRAMBLE: scramble(out),
        INTERLEAVED: out.permute(0, 2, 3, 1).flatten(2),
        "The last head comes first. Head 0 owns the first hs features.": merge(out.flip(1)),
        "You averaged the heads. They stand side by side: (B, T, H·hs).": out.mean(1),
        "You added the heads. They stand side by side: (B, T, H·hs).": out.sum(1),
        "You put the heads one after the other along the time: (B, H·T, hs). They stand side by "
        "side in the features: (B, T, H·hs).": out.flatten(1, 2),
    }


def multi_head_mistakes(x: Tensor, W: list[Tensor], H: int) -> dict[str, Tensor]:
    """What `multi_head(x, W_q, W_k, W_v, W_o, n_head)` gives for each mistake."""
    C, W_o = x.shape[-1], W[3]
    flat = [x @ w for w in W[:3]]
    heads = [split(y, H) for y in flat]
    turned = [split(x @ w.T, H) for w in W[:3]]
    right = attend(*heads, mask=True)
    T_cut = attend(*(along_t(y, H) for y in flat), mask=True)
    return {
        NO_OUTPUT: merge(right),
        SCRAMBLE: scramble(right) @ W_o,
        "The output projection is missing, and the tokens are scrambled: " + SCRAMBLE: scramble(
            right
        ),
        ALONG_T: merge(T_cut) @ W_o,
        ALONG_T + " (And the same when you merge.)": scramble(T_cut) @ W_o,
        INTERLEAVED: merge(attend(*(interleaved(y, H) for y in flat), mask=True)) @ W_o,
        INTERLEAVED + " (In the merge.)": right.permute(0, 2, 3, 1).flatten(2) @ W_o,
        SCALE_C: merge(attend(*heads, mask=True, scale=C**0.5)) @ W_o,
        NO_SCALE: merge(attend(*heads, mask=True, scale=1.0)) @ W_o,
        OVER_HEADS: merge(attend(*heads, mask=True, dim=1)) @ W_o,
        OVER_HEADS + " (And mask.)": merge(attend(*heads, mask=False, dim=1)) @ W_o,
        WRONG_DIM: merge(attend(*heads, mask=True, dim=-2)) @ W_o,
        NO_MASK: merge(attend(*heads, mask=False)) @ W_o,
        ONE_HEAD: attend(*flat, mask=True) @ W_o,
        "Queries and keys are swapped: queries are x @ W_q, keys x @ W_k.": (
            merge(attend(heads[1], heads[0], heads[2], mask=True)) @ W_o
        ),
        "You scale twice: `attention` divides by √hs already.": (
            merge(attend(*heads, mask=True, scale=float(C // H))) @ W_o
        ),
        TRANSPOSED: merge(attend(*turned, mask=True)) @ W_o.T,
        TRANSPOSED + " (W_o too.)": merge(right) @ W_o.T,
    }


def cross_mistakes(x: Tensor, source: Tensor, W: list[Tensor], H: int) -> dict[str, Tensor]:
    """What `cross_attention(x, source, W_q, W_k, W_v, W_o, n_head)` gives for each mistake."""
    W_q, W_k, W_v, W_o = W
    q, k, v = split(x @ W_q, H), split(source @ W_k, H), split(source @ W_v, H)
    right = attend(q, k, v, mask=False)
    swapped = [split(source @ W_q, H), split(x @ W_k, H), split(x @ W_v, H)]
    own = [split(x @ w, H) for w in W[:3]]
    asking_itself = attend(split(source @ W_q, H), k, v, mask=False)
    wrong = {
        MASKED_CROSS: merge(attend(q, k, v, mask=True)) @ W_o,
        SWAPPED: merge(attend(*swapped, mask=False)) @ W_o,
        SWAPPED + " (And no mask.)": merge(attend(*swapped, mask=True)) @ W_o,
        IGNORED: merge(attend(*own, mask=False)) @ W_o,
        IGNORED + " And no mask.": merge(attend(*own, mask=True)) @ W_o,
        NO_OUTPUT: merge(right),
        SCRAMBLE: scramble(right) @ W_o,
        SCALE_C: merge(attend(q, k, v, mask=False, scale=x.shape[-1] ** 0.5)) @ W_o,
        OVER_HEADS: merge(attend(q, k, v, mask=False, dim=1)) @ W_o,
        ONE_HEAD: attend(x @ W_q, source @ W_k, source @ W_v, mask=False) @ W_o,
    }
    if x.shape == source.shape:
        mixed = attend(q, k, split(x @ W_v, H), mask=False)
        wrong[
            "The queries come from the source, too: it asks itself. Here x asks: q = x @ W_q."
        ] = merge(asking_itself) @ W_o
        wrong["The keys come from x. What is asked is the source: k = source @ W_k."] = (
            merge(attend(q, split(x @ W_k, H), v, mask=False)) @ W_o
        )
        wrong["The values come from x. What is handed over is the source's: v = source @ W_v."] = (
            merge(mixed) @ W_o
        )
    return wrong


def distance_mistakes(maps: Tensor) -> dict[str, Tensor]:
    """What `head_distances(maps)` gives for each mistake."""
    apart = maps[:, :, None] - maps[:, None]  # (B, H, H, T, S)
    half = apart.abs().sum(-1) / 2
    return {
        "Twice too large: the half is missing. What one head has more, the other has less, and it "
        "is counted twice.": apart.abs().sum(-1).mean((0, 3)),
        "All 0: without the absolute value more and less cancel, since all rows sum to 1.": (
            apart.sum(-1).mean((0, 3)) / 2
        ),
        "You average over the keys. Sum over them: the distance of two rows is ½ Σ |difference|. "
        "Then average over rows and texts.": apart.abs().mean((0, 3, 4)) / 2,
        "You sum over the rows. Average over them (and over the texts).": half.sum(3).mean(0),
        "You sum over the texts and rows. Average over them.": half.sum((0, 3)),
        "You used the first text only: average over the batch.": half[0].mean(-1),
        "You took the distance of the mean maps. Two heads that differ in each text may be equal "
        "on average: first the distances, then the mean.": (
            (apart.mean(0).abs().sum(-1) / 2).mean(-1)
        ),
        "This is the root of the squared differences (Euclid). Use ½ Σ |difference|.": (
            apart.square().sum(-1).sqrt().mean((0, 3))
        ),
    }
