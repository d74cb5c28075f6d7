"""Exercise checks of chapter 06: many heads."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from exercises.check import (
    NotAttempted,
    NotYet,
    call,
    checked,
    expect,
    expect_close,
    expect_shape,
    normal,
    tensor,
)
from exercises.mistakes06 import (
    attend,
    cross_mistakes,
    distance_mistakes,
    merge,
    merge_mistakes,
    multi_head_mistakes,
    split,
    split_mistakes,
)


@checked
def split_heads(answer: Any) -> str:
    """split_heads(x, n_head): (B, T, C) to (B, H, T, hs); ValueError if H does not divide C."""
    for B, T, C, H, seed in ((2, 4, 6, 2, 1), (3, 6, 12, 4, 2), (1, 5, 8, 8, 3), (2, 3, 5, 1, 4)):
        x = normal(B, T, C, seed=seed)
        got = call(answer, x, H, name="split_heads")
        what = f"split_heads(x, {H}) for x of shape {(B, T, C)}"
        expect_close(got, split(x, H), what, mistakes=split_mistakes(x, H))
    for C, H in ((6, 4), (9, 2), (4, 8)):
        _refuses(answer, C, H)
    return "every head has all tokens and its own features."


def _refuses(function: Callable[..., Any], C: int, H: int) -> None:
    """Does `split_heads` say clearly that H heads cannot share C features?"""
    try:
        got = function(normal(2, 4, C, seed=5), H)
    except ValueError as error:
        expect(
            bool(str(error)),
            "Your ValueError has no text: say what was given, and what would be right.",
        )
        return
    except Exception as error:
        raise NotYet(
            f"{C} features cannot be shared by {H} heads. What your function raises then is "
            f"{type(error).__name__}: check the numbers first, and raise ValueError."
        ) from None
    if got is ...:
        raise NotAttempted
    if isinstance(got, ValueError):
        raise NotYet("You return the ValueError. Write `raise` in place of `return`.")
    size = tuple(tensor(got, f"split_heads(x, {H})").shape)
    raise NotYet(
        f"{C} features cannot be shared by {H} heads, but your function gives a tensor of shape "
        f"{size} without a word. Raise ValueError when n_head does not divide C."
    )


@checked
def merge_heads(answer: Any) -> str:
    """merge_heads(out): (B, H, T, hs) to (B, T, H·hs), head 0's features first."""
    for B, H, T, hs, seed in ((2, 3, 4, 5, 1), (1, 2, 6, 2, 2), (3, 4, 2, 4, 3), (2, 1, 3, 4, 4)):
        out = normal(B, H, T, hs, seed=seed)
        what = f"merge_heads(out) for out of shape {(B, H, T, hs)}"
        expect_close(
            call(answer, out, name="merge_heads"), merge(out), what, mistakes=merge_mistakes(out)
        )
    return "every token has its heads side by side."


@checked
def multi_head(answer: Any) -> str:
    """multi_head(x, W_q, W_k, W_v, W_o, n_head): causal self-attention, (B, T, C)."""
    for B, T, C, H, seed in ((2, 6, 8, 2, 10), (3, 4, 12, 4, 20), (1, 3, 6, 3, 30)):
        x, W = normal(B, T, C, seed=seed), _matrices(C, seed)
        got = call(answer, x, *W, H, name="multi_head")
        want = merge(attend(*(split(x @ w, H) for w in W[:3]), mask=True)) @ W[3]
        what = f"multi_head for x of shape {(B, T, C)} with {H} heads"
        expect_close(got, want, what, mistakes=multi_head_mistakes(x, W, H))
    return "equal to the formula, for three shapes."


@checked
def cross_attention(answer: Any) -> str:
    """cross_attention(x, source, W_q, W_k, W_v, W_o, n_head): (B, T, C), for any S."""
    # Equal lengths first: a mistake can be named there that would only be an error elsewhere.
    for B, T, S, C, H, seed in ((2, 4, 4, 8, 2, 40), (3, 2, 5, 6, 3, 50), (1, 6, 3, 8, 4, 60)):
        x, source, W = normal(B, T, C, seed=seed), normal(B, S, C, seed=seed + 1), _matrices(C, 70)
        got = call(answer, x, source, *W, H, name="cross_attention")
        q, k, v = split(x @ W[0], H), split(source @ W[1], H), split(source @ W[2], H)
        want = merge(attend(q, k, v, mask=False)) @ W[3]
        what = f"cross_attention for x of shape {(B, T, C)} and a source of shape {(B, S, C)}"
        expect_close(got, want, what, mistakes=cross_mistakes(x, source, W, H))
    return "one row for each query, whatever the length of the source."


def _matrices(C: int, seed: int) -> list[Tensor]:
    return [normal(C, C, seed=seed + i) * C**-0.5 for i in range(2, 6)]


@checked
def cost(answer: Any) -> str:
    """cost(T, C, n_head): (parameters, multiply-adds) of multi-head attention over T tokens."""
    for T, C, H in ((10, 12, 3), (3, 8, 4), (7, 12, 12)):
        got = call(answer, T, C, H, name="cost")
        parameters, products = expect_shape(got, (2,), f"cost({T}, {C}, {H})").tolist()
        hs, what = C // H, f"cost({T}, {C}, {H})"
        expect_close(parameters, 4 * C * C, f"the parameters of {what}", mistakes={
            "Parameters: you counted three matrices. The output projection is the fourth.":
                3 * C * C,
            "Parameters: you multiplied by the number of heads, but each head's matrices are only "
            "(C, hs), and H·hs is C.": 4 * C * C * H,
            "Parameters: these are those of one head, three matrices (C, hs).": 3 * C * hs,
            "Parameters: you counted one head for all, with an output (hs, C).": 4 * C * hs,
            "Parameters: there are no biases here.": 4 * C * C + 4 * C,
        })  # fmt: skip
        project, pairs = 4 * T * C * C, T * T * C
        expect_close(products, project + 2 * pairs, f"the multiply-adds of {what}", mistakes={
            "Multiply-adds: you counted the scores, but not the weighted sums of the values.":
                project + pairs,
            "Multiply-adds: you left out the four projections.": 2 * pairs,
            "Multiply-adds: the output projection is missing.": 3 * T * C * C + 2 * pairs,
            "Multiply-adds: you multiplied by H, but a head's vectors are only hs = C/H long.":
                project + 2 * pairs * H,
            "Multiply-adds: you counted a single head's scores and sums.":
                project + 2 * T * T * hs,
            "Multiply-adds: this is twice too much. A multiplication with its addition counts as "
            "one.": 2 * (project + 2 * pairs),
            "Multiply-adds: you put H where hs belongs. A score has hs terms, and there are H maps "
            "of scores: H·hs is C.": project + 2 * T * T * H,
            "Multiply-adds: a projection works on each of the T tokens.":
                4 * C * C + 2 * pairs,
        })  # fmt: skip
    return "4C² parameters, 4TC² + 2T²C multiply-adds: no H in it."


@checked
def head_distances(answer: Any) -> str:
    """head_distances(maps): (B, H, T, S) weights to an (H, H) table of mean distances."""
    for B, H, T, S, seed in ((3, 4, 5, 5, 1), (2, 2, 3, 6, 2), (5, 3, 4, 2, 3)):
        maps = (2 * normal(B, H, T, S, seed=seed)).softmax(-1)
        got = call(answer, maps, name="head_distances")
        want = ((maps[:, :, None] - maps[:, None]).abs().sum(-1) / 2).mean((0, 3))
        what = f"head_distances(maps) for maps of shape {(B, H, T, S)}"
        expect_close(got, want, what, mistakes=distance_mistakes(maps))
    apart = torch.eye(2)[None, :, None]  # two heads that look at different tokens
    got = call(answer, apart, name="head_distances")
    expect_close(got, 1 - torch.eye(2), "the distances of two heads that share nothing")
    return "0 for a head and itself, 1 for heads that share nothing."
