"""The exercises of the chapter on many heads."""

import math
import re

import torch

from exercises.check import (
    NotAttempted,
    WrongAnswer,
    checked,
    diagnose,
    exercise,
    expect,
    expect_no_helpers,
    normal,
    reported,
)

# --- 6.1 ------------------------------------------------------------------------------------------


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
    differences = maps[:, :, None] - maps[:, None]
    of_rows = differences.abs().sum(-1) / 2
    return of_rows.mean((0, 3))


head_distances.slips("""
    Twice too large: the ½ is missing. Where one head has more weight, the other has less, and
    both are counted.
        / 2 →
    All 0: without the absolute value the differences cancel, because all rows sum to 1.
        .abs() →
    You average over the keys. Sum over them: the distance of two rows is ½ Σ |difference|.
    Then average over rows and texts.
        sum → mean
        sum(-1) / 2 → mean(-1)
    You sum over the rows, over the texts, or over both. Average over both.
        mean((0, 3)) → sum(3).mean(0)
        mean((0, 3)) → mean(3).sum(0)
        mean((0, 3)) → sum((0, 3))
    You took the distance of the mean maps. Two heads that differ in each text may be equal
    on average: first the distances, then the mean.
        right(maps.mean(0, keepdim=True))
    These are squared differences, or their root (Euclid). Use the absolute value:
    ½ Σ |difference|.
        abs → square
        abs().sum(-1) → norm(dim=-1)
        abs().sum(-1) / 2 → norm(dim=-1)
    You summed over the queries. The distance of two rows is a sum over the keys, dim=-1.
        sum(-1) → sum(-2)
    One number comes back. Keep the pairs of heads apart: an (H, H) table.
        (0, 3) →
    The texts or the rows are still there: average over both.
        (0, 3) → 3
        (0, 3) → 0
""")

# --- 6.2: run the experiment and decide -----------------------------------------------------------


@checked
def twins(answer):
    """twins: the lower accuracy of two heads that start equal, and the letter of the reason."""
    wanted = 'Set twins to a pair: the lower of the two accuracies, and a letter: (0.21, "a").'
    score, letter = reported(answer, (0.21, "a"), wanted)
    diagnose("""
        The second of the pair should be "a", "b" or "c".
            letter not in ("a", "b", "c")
        An accuracy is the fraction of correct answers, between 0 and 1: 97% is 0.97.
            not 0 <= score <= 1
        Too low for twins that were trained for 400 steps. Copy all three matrices of head 0 into
        head 1 *before* the training, return the layer from a function, and pass that function to
        `learn`. Copy the numbers, with `load_state_dict` or `copy_`: after `=` the two heads are
        one, and the lower accuracy is about 0.2. (Or is this the fraction of *wrong* answers?)
            score <= 0.9
        If the heads stayed equal, both would return the same blend, as one head does, and
        one of the questions would be answered wrongly most of the time. Yours answers both.
            letter == "a"
        Rounding is not needed here. Measure the twins after 50 steps, with `learn(make_twins,
        steps=50)`: they already differ. What is different from the first step on?
            letter == "c"
    """)
    return "Identical heads stay identical only if everything after them is identical, too."


# --- 6.3 ------------------------------------------------------------------------------------------


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
    B, T, C = x.shape
    if C % n_head:
        raise ValueError(f"{C} features cannot be shared by {n_head} heads")
    parts = [part.unflatten(-1, (n_head, -1)) for part in (x @ W_qkv).chunk(3, -1)]
    q, k, v = (part.transpose(1, 2) for part in parts)  # (B, H, T, hs)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    hidden = torch.ones(T, T).tril() == 0
    out = scores.masked_fill(hidden, -math.inf).softmax(-1) @ v
    return out.transpose(1, 2).flatten(2) @ W_o


fused_multi_head.slips("""
    The output projection is missing: multiply the merged heads by W_o.
        @ W_o →
    The tokens are scrambled: you reshaped (B, H, T, hs) straight to (B, T, C), and each row now
    holds several tokens of one head. Swap H and T first: `transpose(1, 2)`.
        out.transpose(1, 2).flatten(2) → out.reshape(B, T, C)
    You cut along time: each of your heads holds some of the tokens with all their features.
    Every head needs all tokens and hs of the features: first (B, T, H, hs), then swap T and H.
        unflatten(-1, (n_head, -1)) → reshape(B, n_head, T, -1) ; part.transpose(1, 2) → part
        unflatten(-1, (n_head, -1)) → reshape(B, n_head, T, -1) ; part.transpose(1, 2) → part
        ; out.transpose(1, 2).flatten(2) → out.reshape(B, T, C)
    The heads of one token attend to each other, because attention works on the last two
    dimensions. Swap H and T after the split, (B, H, T, hs).
        part.transpose(1, 2) → part ; out.transpose(1, 2) → out
    You divide the scores by √C, the whole width. A head's dot product has hs = C/H terms:
    divide by √hs, or the weights are too even.
        q.shape[-1] ** 0.5 → C**0.5
    The scale is missing, or inverted: divide the scores by √hs.
        / q.shape[-1] ** 0.5 →
        / q → * q
    Your softmax runs over dim -2, the queries: the columns sum to 1, not the rows. Use dim=-1.
        softmax(-1) → softmax(-2)
    The future is not hidden: this is self-attention in a GPT, mask it with a lower triangle.
        .tril() →
    Your mask is the wrong way round: it hides the past and shows the future. Allowed is the
    lower triangle, with its diagonal.
        tril() → triu()
        tril() → triu(1)
    You mask after the softmax, so the rows no longer sum to 1. Mask the scores, with −inf.
        scores.masked_fill(hidden, -math.inf).softmax(-1) → scores.softmax(-1) * ~hidden
""")


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
