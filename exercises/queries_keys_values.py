"""Exercise checks of chapter 04: queries, keys and values."""

from typing import Any

import torch
from torch import Tensor, nn

from exercises.check import (
    NotYet,
    call,
    checked,
    expect,
    expect_close,
    expect_shape,
    normal,
    tensor,
)
from exercises.mistakes04 import (
    BATCH,
    FINITE,
    HALF,
    HALF_NAN,
    UNDERFLOW,
    attention_mistakes,
    explain_nan,
    hide,
    lookup_mistakes,
    masking_mistakes,
    window_mistakes,
)
from helpers.attention import attention, causal_mask

TOKENS = ("Anna", "met", "Tom", ".", "He")
# What each token says of itself: is it a person, female, male, something that is done?
KEYS = torch.tensor(
    [[1.0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]],
)


@checked
def ask_for_the_verb(answer: Any) -> str:
    """A query, 4 numbers, that puts more than 0.8 of its weight on "met"."""
    query = expect_shape(answer, (4,), "the query")
    expect(bool(torch.isfinite(query).all()), "The query contains NaN or infinity.")
    expect(
        bool(query.any()),
        "A query of zeros asks for nothing: every score is 0 and every weight 1/5.",
    )
    scores = KEYS.double() @ query
    weights, loud = torch.softmax(scores / 2, -1), torch.softmax(scores, -1)
    best = int(weights.argmax())
    expect(
        best == 1, f'Your query finds "{TOKENS[best]}" instead, with weight {weights[best]:.2f}.'
    )
    expect(
        not (weights[1] <= 0.8 < loud[1]),
        f'Without the scale, "met" would have {loud[1]:.2f}. But scores are divided by √4 = 2, and '
        f"that leaves {weights[1]:.2f}. A longer query asks louder.",
    )
    expect(
        bool(weights[1] > 0.8),
        f'"met" is first, with weight {weights[1]:.2f}, but not above 0.8. Ask louder, or ask '
        "against the others.",
    )
    return f'"met" gets {weights[1]:.2f} of the weight.'


@checked
def weights_of(answer: Any) -> str:
    """weights_of(q, K): the weights (T,) of one query (hs,) over the keys (T, hs)."""
    for T, hs, seed in ((6, 4, 1), (3, 9, 3)):
        q, K = normal(hs, seed=seed), normal(T, hs, seed=seed + 1)
        expect_close(
            call(answer, q, K, name="weights_of"),
            torch.softmax(K @ q / hs**0.5, -1),
            f"weights_of(q, K) for {T} keys of {hs} numbers",
            mistakes=lookup_mistakes(q, K),
        )
    return "T weights that sum to 1."


@checked
def causal_weights(answer: Any) -> str:
    """causal_weights(scores): masked scores (B, T, T) to weights (B, T, T)."""
    for B, T, seed in ((2, 5, 1), (4, 4, 2), (1, 3, 3)):
        scores = normal(B, T, T, seed=seed) * 2
        got = tensor(call(answer, scores, name="causal_weights"), "causal_weights(scores)")
        future = ~causal_mask(T).expand(B, T, T)
        expect(not (got.shape == scores.shape and torch.equal(got.isnan(), future)), BATCH)
        _expect_no_nan(got)
        what = f"causal_weights(scores) for scores of shape {(B, T, T)}"
        expect_close(got, torch.softmax(hide(scores, causal_mask(T)), -1), what,
                     mistakes=masking_mistakes(scores))  # fmt: skip
    # Scores that a finite stand-in for -inf cannot get below, and a type it does not fit in.
    low = torch.full((1, 4, 4), torch.finfo(torch.float16).min, dtype=torch.float16)
    try:
        got = call(answer, low, name="causal_weights, given float16 scores,")
    except NotYet as problem:
        raise NotYet(HALF if "overflow" in str(problem) else str(problem)) from None
    got = expect_shape(got, (1, 4, 4), "causal_weights(scores) in half precision")
    expect(not got.isnan().any(), HALF_NAN)
    expect(bool((got.triu(1) == 0).all()), HALF)
    want = torch.softmax(hide(low.double(), causal_mask(4)), -1)
    expect_close(got, want, "causal_weights(scores) in half precision", tolerance=5e-3)
    return "rows sum to 1, the future is exactly 0, in half precision too."


@checked
def causal_attention(answer: Any) -> str:
    """causal_attention(q, k, v): all (B, T, hs), written out without a ready-made attention."""
    for B, T, hs, seed in ((2, 5, 3, 1), (3, 4, 4, 4), (2, 2, 2, 7)):
        q, k, v = (normal(B, T, hs, seed=seed + i) for i in range(3))
        got = call(answer, q, k, v, name="causal_attention")
        if isinstance(got, tuple):
            raise NotYet("causal_attention should return the output alone, not a tuple.")
        what = f"causal_attention(q, k, v) for q, k, v of shape {(B, T, hs)}"
        want = attention(q, k, v, causal_mask(T))[0]
        _expect_no_nan(tensor(got, what))
        expect_close(got, want, what, mistakes=attention_mistakes(q, k, v))
    # Scores far below any modest stand-in for -inf: with one, rows 0 to 2 see the future alone.
    k, v = normal(1, 4, 4, seed=11) - 1000, normal(1, 4, 4, seed=12)
    q = normal(1, 4, 4, seed=10).abs() + 1
    want = attention(q, k, v, causal_mask(4))[0]
    fooled = attention(0 * q, k, v, ~causal_mask(4) | (torch.arange(4) == 3))[0]
    fooled[:, 3] = want[:, 3]
    what = "causal_attention(q, k, v) for very low scores"
    got = tensor(call(answer, q, k, v, name="causal_attention"), what)
    expect(not got.isnan().any(), UNDERFLOW)
    expect_close(got, want, what, mistakes={FINITE: fooled}, tolerance=1e-2)
    return "equal to the formula, for three shapes."


@checked
def window_head(answer: Any) -> str:
    """A head that sees itself and the window - 1 tokens before: WindowHead(C, hs, window)."""
    for C, hs, window, T in ((6, 4, 3, 7), (5, 5, 2, 4), (6, 4, 3, 2)):
        head = call(answer, C, hs, window, name="WindowHead")
        x = normal(2, T, C, seed=T)
        got = call(head, x, name="your head")
        expect(
            not isinstance(got, tuple),
            "Your head returns a tuple. `attention` gives (output, weights): return its [0] alone.",
        )
        expect(isinstance(head, nn.Module), "WindowHead should be a class made from nn.Module.")
        q, k, v = (_projected(head, name, C, hs, x) for name in ("query", "key", "value"))
        want = attention(q, k, v, causal_mask(T) & ~causal_mask(T).tril(-window))[0]
        what = f"the head with window {window} for x of shape {(2, T, C)}"
        expect_close(got, want, what, mistakes=window_mistakes(x, q, k, v, window))
    return "itself and the window before, no older token and no future."


def _expect_no_nan(got: Tensor) -> None:
    problem = explain_nan(got)
    expect(problem is None, problem or "")


def _projected(head: nn.Module, name: str, C: int, hs: int, x: Tensor) -> Tensor:
    layer = getattr(head, name, None)
    expect(isinstance(layer, nn.Linear), f"The head needs an nn.Linear called {name}.")
    assert isinstance(layer, nn.Linear)
    expect(
        tuple(layer.weight.shape) == (hs, C),
        f"{name} should map {C} numbers to {hs}: nn.Linear(n_embd, head_size, bias=False).",
    )
    expect(layer.bias is None, f"{name} has a bias. Make it with bias=False.")
    with torch.no_grad():
        return layer(x)
