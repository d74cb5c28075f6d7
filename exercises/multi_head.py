"""The exercises of the chapter on many heads."""

import math
import re

import torch

from exercises.check import (
    NotAttempted,
    WrongAnswer,
    checked,
    exercise,
    expect,
    expect_no_helpers,
    normal,
    reported,
)

# --- 6.1 ------------------------------------------------------------------------------------------


def differences(maps):
    """The differences of all pairs of heads, (B, H, H, T, S)."""
    return maps[:, :, None] - maps[:, None]


def row_distances(maps):
    """The distances of all rows of all pairs, (B, H, H, T)."""
    return differences(maps).abs().sum(-1) / 2


SHAPES = [(3, 4, 5, 5), (2, 2, 3, 6), (5, 3, 4, 2), (1, 3, 3, 3), (2, 1, 4, 4), (2, 3, 1, 4)]
APART = torch.eye(2)[None, :, None]  # two heads that attend to different tokens


@exercise(
    inputs=lambda draw: [
        *(((2 * normal(*shape, seed=seed)).softmax(-1),) for seed, shape in enumerate(SHAPES, 1)),
        (APART,),
    ],
    example=(APART,),
    on_success="0 for a head and itself, 1 for heads that share nothing.",
)
def head_distances(maps):
    """head_distances(maps): (B, H, T, S) weights to an (H, H) table of mean distances."""
    return row_distances(maps).mean((0, 3))


distances = head_distances.right
head_distances.mistake(
    "Twice too large: the ½ is missing. Where one head has more weight, the other has less, and "
    "both are counted.",
    lambda maps: 2 * distances(maps),
)
head_distances.mistake(
    "All 0: without the absolute value the differences cancel, because all rows sum to 1.",
    lambda maps: differences(maps).sum(-1).mean((0, 3)) / 2,
)
head_distances.mistake(
    "You average over the keys. Sum over them: the distance of two rows is ½ Σ |difference|. "
    "Then average over rows and texts.",
    lambda maps: differences(maps).abs().mean((0, 3, 4)) / 2,
    lambda maps: differences(maps).abs().mean((0, 3, 4)),
)
head_distances.mistake(
    "You sum over the rows, over the texts, or over both. Average over both.",
    lambda maps: row_distances(maps).sum(3).mean(0),
    lambda maps: row_distances(maps).mean(3).sum(0),
    lambda maps: row_distances(maps).sum((0, 3)),
)
head_distances.mistake(
    "You took the distance of the mean maps. Two heads that differ in each text may be equal "
    "on average: first the distances, then the mean.",
    lambda maps: distances(maps.mean(0, keepdim=True)),
)
head_distances.mistake(
    "These are squared differences, or their root (Euclid). Use the absolute value: "
    "½ Σ |difference|.",
    lambda maps: differences(maps).square().sum(-1).mean((0, 3)) / 2,
    lambda maps: differences(maps).norm(dim=-1).mean((0, 3)) / 2,
    lambda maps: differences(maps).norm(dim=-1).mean((0, 3)),
)
head_distances.mistake(
    "You summed over the queries. The distance of two rows is a sum over the keys, dim=-1.",
    lambda maps: differences(maps).abs().sum(-2).mean((0, 3)) / 2,
)
head_distances.mistake(
    "One number comes back. Keep the pairs of heads apart: an (H, H) table.",
    lambda maps: row_distances(maps).mean(),
)
head_distances.mistake(
    "The texts or the rows are still there: average over both.",
    lambda maps: row_distances(maps).mean(3),
    lambda maps: row_distances(maps).mean(0),
)

# --- 6.2: run the experiment and decide -----------------------------------------------------------


@checked
def twins(answer):
    """twins: the lower accuracy of two heads that start equal, and the letter of the reason."""
    wanted = 'Set twins to a pair: the lower of the two accuracies, and a letter: (0.21, "a").'
    score, letter = reported(answer, (0.21, "a"), wanted)
    expect(letter in ("a", "b", "c"), 'The second of the pair should be "a", "b" or "c".')
    expect(
        0 <= score <= 1,
        "An accuracy is the fraction of correct answers, between 0 and 1: 97% is 0.97.",
    )
    expect(
        score > 0.9,
        "Too low for twins that were trained for 400 steps. Copy all three matrices of head 0 into "
        "head 1 *before* the training, return the layer from a function, and pass that function to "
        "`learn`. Copy the numbers, with `load_state_dict` or `copy_`: after `=` the two heads are "
        "one, and the lower accuracy is about 0.2. (Or is this the fraction of *wrong* answers?)",
    )
    expect(
        letter != "a",
        "If the heads stayed equal, both would return the same blend, as one head does, and "
        "one of the questions would be answered wrongly most of the time. Yours answers both.",
    )
    expect(
        letter != "c",
        "Rounding is not needed here. Measure the twins after 50 steps, with `learn(make_twins, "
        "steps=50)`: they already differ. What is different from the first step on?",
    )
    return "Identical heads stay identical only if everything after them is identical, too."


# --- 6.3 ------------------------------------------------------------------------------------------


def split(x, n_head):
    return x.unflatten(-1, (n_head, -1)).transpose(1, 2)


def merge(out):
    return out.transpose(1, 2).flatten(2)


def multi_head(split=split, merge=merge, mask=torch.tril, scale=None, dim=-1, late=False):
    """Fused multi-head attention with one mistake.

    mask: torch.tril leaves the past; scale: the divisor for C and hs; dim: of the softmax; late:
    masked after the softmax.
    """

    def answer(x, W_qkv, W_o, H):
        T, C = x.shape[1:]
        q, k, v = (split(part, H) for part in (x @ W_qkv).chunk(3, -1))
        scores = q @ k.mT / (scale(C, C // H) if scale else (C // H) ** 0.5)
        hidden = mask(torch.ones(T, T)) == 0
        if late:
            weights = scores.softmax(dim).masked_fill(hidden, 0)
        else:
            weights = scores.masked_fill(hidden, -math.inf).softmax(dim)
        return merge(weights @ v) @ W_o

    return answer


def along_t(x, H):
    return x.reshape(len(x), H, x.shape[1], -1)


def scramble(out):
    B, H, T, hs = out.shape
    return out.reshape(B, T, H * hs)


def unprojected(x, W_qkv, W_o, H):
    return multi_head()(x, W_qkv, torch.eye(len(W_o)), H)


# T = H second and third: there heads and tokens can be mixed up without an error. Their size hs is
# not H, so that no scale is right by chance. The last has heads of size 1.
SIZES = [(2, 6, 8, 2), (3, 3, 15, 3), (2, 4, 12, 4), (1, 3, 6, 3), (2, 5, 4, 1), (1, 1, 4, 2)]


@exercise(
    inputs=lambda draw: [
        (
            normal(B, T, C, seed=10 * B + T),
            normal(C, 3 * C, seed=10 * T + C) * C**-0.5,
            normal(C, C, seed=T + C) * C**-0.5,
            H,
        )
        for B, T, C, H in [*SIZES, (1, 3, 4, 4)]
    ],
    on_success="One product for all queries, keys and values of all heads.",
    on_shape_error="Are q, k and v (B, H, T, hs), and the mask (T, T)?",
    backward=True,
)
def fused_multi_head(x, W_qkv, W_o, n_head):
    """fused_multi_head(x, W_qkv, W_o, n_head): causal self-attention with many heads, (B, T, C)."""
    if x.shape[-1] % n_head:
        raise ValueError(f"{x.shape[-1]} features cannot be shared by {n_head} heads")
    return multi_head()(x, W_qkv, W_o, n_head)


fused_multi_head.mistake(
    "The output projection is missing: multiply the merged heads by W_o.", unprojected
)
fused_multi_head.mistake(
    "The tokens are scrambled: you reshaped (B, H, T, hs) straight to (B, T, C), and each row now "
    "holds several tokens of one head. Swap H and T first: `transpose(1, 2)`.",
    multi_head(merge=scramble),
)
fused_multi_head.mistake(
    "You cut along time: each of your heads holds some of the tokens with all their features. "
    "Every head needs all tokens and hs of the features: first (B, T, H, hs), then swap T and H.",
    multi_head(along_t),
    multi_head(along_t, scramble),
)
fused_multi_head.mistake(
    "The heads of one token attend to each other, because attention works on the last two "
    "dimensions. Swap H and T after the split, (B, H, T, hs).",
    multi_head(lambda x, H: x.unflatten(-1, (H, -1)), lambda out: out.flatten(2)),
)
fused_multi_head.mistake(
    "You divide the scores by √C, the whole width. A head's dot product has hs = C/H terms: "
    "divide by √hs, or the weights are too even.",
    multi_head(scale=lambda C, hs: C**0.5),
)
fused_multi_head.mistake(
    "The scale is missing, or inverted: divide the scores by √hs.",
    multi_head(scale=lambda C, hs: 1),
    multi_head(scale=lambda C, hs: hs**-0.5),
)
fused_multi_head.mistake(
    "Your softmax runs over dim -2, the queries: the columns sum to 1, not the rows. Use dim=-1.",
    multi_head(dim=-2),
)
fused_multi_head.mistake(
    "The future is not hidden: this is self-attention in a GPT, mask it with a lower triangle.",
    multi_head(mask=torch.ones_like),
)
fused_multi_head.mistake(
    "Your mask is the wrong way round: it hides the past and shows the future. Allowed is the "
    "lower triangle, with its diagonal.",
    multi_head(mask=torch.triu),
    multi_head(mask=lambda ones: ones.triu(1)),
)
fused_multi_head.mistake(
    "You mask after the softmax, so the rows no longer sum to 1. Mask the scores, with −inf.",
    multi_head(late=True),
)


@fused_multi_head.also
def _refuse_heads_that_do_not_fit(answer):
    expect_no_helpers(answer, fused_multi_head.inputs[0])
    for C, H in ((6, 4), (9, 2), (4, 8), (10, 4)):
        what = f"{C} features cannot be shared by {H} heads"
        try:
            got = answer(normal(2, 4, C, seed=5), normal(C, 3 * C, seed=6), normal(C, C, seed=7), H)
        except ValueError as error:
            expect(
                {str(C), str(H)} <= set(re.findall(r"\d+", str(error))),
                f"Your ValueError does not name both numbers, {C} and {H}: say what was given.",
            )
            continue
        except Exception as error:
            raise WrongAnswer(
                f"{what}. Your function raises {type(error).__name__} instead of ValueError: check "
                "the numbers first."
            ) from None
        if got is ...:
            raise NotAttempted
        is_error = isinstance(got, ValueError) or got is ValueError
        expect(not is_error, "You return the ValueError. Write `raise` in place of `return`.")
        shape = getattr(got, "shape", None)
        given = f"returns {got!r:.40}" if shape is None else f"gives a tensor of shape {(*shape,)}"
        raise WrongAnswer(
            f"{what}, but your function {given} without an error. Raise ValueError when n_head "
            "does not divide C."
        )
