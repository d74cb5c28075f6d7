"""Checks of chapter 03, causal averaging."""

from typing import Any

import torch
from torch import Tensor

from exercises.check import call, checked, expect, expect_close, expect_shape, normal

COLUMNS = "Your columns sum to 1, your rows do not: divide by .sum(1, keepdim=True). "
WRONG_T = "You divide by T everywhere, but at place t only t + 1 tokens have been heard."


def _mean(x: Tensor) -> Tensor:
    """The mean of the past of x, shape (..., T, C)."""
    return x.cumsum(-2) / torch.arange(1, x.shape[-2] + 1)[:, None]


def _rows(weights: Tensor) -> Tensor:
    """Each row divided by its sum; a row of zeros stays one."""
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-12)


def _expect_not(got: Any, wrong: Tensor, diagnosis: str) -> None:
    """Like a mistake of expect_close, for a wrong answer that contains NaN."""
    alike = isinstance(got, Tensor) and got.is_floating_point() and got.shape == wrong.shape
    expect(not (alike and torch.allclose(got.to(wrong), wrong, equal_nan=True)), diagnosis)


@checked
def past_mean(answer: Any) -> str:
    """past_mean(x): (T, C) → (T, C), the mean of each token and all before it."""
    for T, C, seed in ((5, 3, 31), (3, 4, 32), (1, 2, 33)):
        x = normal(T, C, seed=seed)
        got = call(answer, x, name="past_mean(x)")
        sums, counts = x.cumsum(0), torch.arange(1, T + 1)[:, None]
        strict = (sums - x) / (counts - 1).clamp(min=1)
        mistakes = {
            "These are sums: divide the sum at t by the number of tokens in it, t + 1.": sums,
            WRONG_T: sums / T,
            "You leave out the present token: output t is the mean of tokens 0 … t, and range(t) "
            "stops one too early.": strict,
            "You divide by t, but the tokens 0 … t are t + 1 tokens.": sums / (counts - 1),
            "Every token hears the whole sequence: let i run only to t.": x.mean(0).expand(T, C),
            "This is the mean of the present and the *future*: let i run from 0 to t.": (
                _mean(x.flip(0)).flip(0)
            ),
            "You average over features, not over tokens.": x.cumsum(1) / torch.arange(1, C + 1),
        }
        if T > 1:
            diagnosis = "The first output is 0 / 0: you leave out the present token."
            _expect_not(got, (sums - x) / (counts - 1), diagnosis)
        what = f"past_mean(x) for x of shape {(T, C)}"
        expect_close(got, _mean(x), what, mistakes=mistakes if T > 1 else None)
    return "each token hears itself and everything before it."


@checked
def mean_weights(answer: Any) -> str:
    """mean_weights(T): the (T, T) weights of the mean of the past."""
    for T in (4, 7, 1):
        got = call(answer, T, name=f"mean_weights({T})")
        ones = torch.ones(T, T)
        lower, strict = ones.tril(), ones.tril(-1)
        mistakes = {
            "The triangle is right, but row i sums to i + 1, not to 1: divide each row by its "
            "sum.": lower,
            COLUMNS: lower / lower.sum(0),
            "Without keepdim, .sum(1) has shape (T,) and divides column j by the sum of row j: "
            "use .sum(1, keepdim=True).": lower / lower.sum(1),
            "Every entry is 1/T, the future included: start from the lower triangle.": ones / T,
            WRONG_T + " Only your last row sums to 1.": lower / T,
            "This is the upper triangle: row i looks at the tokens from i on, the future. Use "
            "tril, not triu.": _rows(ones.triu()),
            "This is the transpose of what is wanted: row i belongs to output i.": _rows(lower).T,
            "The diagonal is 0: each token should hear itself too.": _rows(strict),
        }
        if T > 1:
            _expect_not(
                got,
                strict / strict.sum(1, keepdim=True),
                "The first row is 0 divided by 0: each token should hear itself too, so use "
                "tril(), not tril(-1).",
            )
        expect_close(got, _rows(lower), f"mean_weights({T})", mistakes=mistakes if T > 1 else None)
    return "lower triangular, and every row sums to 1."


@checked
def masked_softmax(answer: Any) -> str:
    """masked_softmax(scores): (..., T, T) → the causal weights of the same shape."""
    for shape, seed in (((4, 4), 34), ((3, 5, 5), 35), ((2, 2, 6, 6), 36)):
        scores = 2 * normal(*shape, seed=seed)
        got = call(answer, scores, name="masked_softmax(scores)")
        mask = torch.ones(shape[-2:], dtype=torch.bool).tril()
        blocked = scores.masked_fill(~mask, -torch.inf)
        zeroed = scores.masked_fill(~mask, 0.0)
        mistakes = {
            "There is no mask: the future gets weight too.": scores.softmax(-1),
            "You set the blocked scores to 0 before the softmax. e⁰ = 1, so the future still gets "
            "weight: block with −infinity.": zeroed.softmax(-1),
            "You zero the future after the softmax. The weights that are left no longer sum to 1: "
            "mask before it, or divide each row by its sum.": scores.softmax(-1) * mask,
            "Your columns sum to 1, not your rows: the softmax runs over dim −2. Use dim=-1.": (
                blocked.softmax(-2)
            ),
            "You blocked the past and kept the future: the mask is True where listening is "
            "allowed, so fill where it is not, ~mask.": scores.masked_fill(
                mask.tril(-1), -torch.inf
            ).softmax(-1),
            "These are masked scores, not weights: take the softmax of each row.": zeroed,
        }
        what = f"masked_softmax(scores) for scores of shape {shape}"
        if len(shape) > 2:
            diagnosis = "The softmax runs over dim 0, which is the batch here: use dim=-1."
            _expect_not(got, blocked.softmax(0), diagnosis)
        expect_close(got, blocked.softmax(-1), what, mistakes=mistakes)
        future = torch.as_tensor(got)[..., ~mask]
        expect(not future.any(), "The future's weights are not exactly 0: block with −infinity.")
    return "a distribution over the past in every row, and exactly 0 on the future."


@checked
def running_mean(answer: Any) -> str:
    """running_mean(x): (B, T, C) → (B, T, C), the mean of the past without a loop over time."""
    for B, T, C, seed in ((3, 4, 4, 38), (2, 5, 3, 37), (4, 1, 2, 39)):
        x = normal(B, T, C, seed=seed)
        got = call(answer, x, name="running_mean(x)")
        sums, counts = x.cumsum(1), torch.arange(1, T + 1)
        mistakes = {
            "These are running sums: divide the one at place t by t + 1.": sums,
            WRONG_T + " Divide by 1, 2, …, T.": sums / T,
            "The running sum goes over dim 0, the batch: rows that have nothing to do with each "
            "other are mixed. Time is dim 1.": x.cumsum(0) / counts[:, None],
            "The running sum goes over the features, the last dimension: time is dim 1.": (
                x.cumsum(2) / counts[:, None]
            ),
            "You divide by 0, 1, …, T − 1: the sum at place t has t + 1 terms.": sums
            / (counts[:, None] - 1),
        }
        if T == C:  # otherwise this one raises
            mistakes |= {
                "The counts 1 … T line up with the features: give them shape (T, 1).": sums / counts
            }
        what = f"running_mean(x) for x of shape {(B, T, C)}"
        expect_close(got, _mean(x), what, mistakes=mistakes if T > 1 else None)
    return "one pass over the sequence, however long it is."


@checked
def decay_weights(answer: Any) -> str:
    """decay_weights(T, decay): (T, T) weights that shrink by `decay` a step into the past."""
    for T, decay in ((4, 0.5), (6, 0.8), (3, 1.0)):
        got = call(answer, T, decay, name=f"decay_weights({T}, {decay})")
        places = torch.arange(T)
        full = decay ** (places[:, None] - places)
        raw = full.tril()
        mistakes = {
            "The rows do not sum to 1 yet: divide each row by its sum.": raw,
            COLUMNS: raw / raw.sum(0),
            "The oldest token gets the largest weight: the exponent should be i − j, which is 0 "
            "for the present.": _rows((decay ** (0.0 + places)).expand(T, T).tril()),
            "The future has weight too: keep the lower triangle before you divide.": _rows(full),
            "The future has weight too: |i − j| looks both ways.": _rows(raw + raw.tril(-1).T),
            "This is the plain mean: let weights shrink with the distance.": _rows(raw.sign()),
            "The diagonal is 0: the present token should get the largest weight, decay⁰.": _rows(
                raw.tril(-1)
            ),
        }
        what = f"decay_weights({T}, {decay})"
        expect_close(got, _rows(raw), what, mistakes=mistakes if decay < 1 else None)
    return "and with decay = 1 it is the plain mean again."


def _hears(output: int, token: int) -> Any:
    """A mix, causal but for one leak: output `output` hears features of token `token`."""
    only = torch.tensor([0, 0.1, -0.1])  # not the first one, and their changes cancel in a sum
    return lambda x: (
        _mean(x) + (torch.arange(len(x))[:, None] == output) * only * x[token : token + 1].sum(0)
    )


@checked
def hears_the_future(answer: Any) -> str:
    """hears_the_future(mix, x): does any output of mix change when a later token changes?"""
    cases = (
        (_mean, False, "the causal mean. Output t may change with token t: compare only the "
         "outputs before t."),
        (lambda x: x.flip(-1) * 2, False, "a mix that treats each token alone."),
        (lambda x: x.mean(0).expand_as(x), True, "the mean of the whole sequence."),
        (_hears(2, 3), True, "a mix whose last-but-one output hears the last token: let t run to "
         "T − 1, and compare all outputs before t."),
        (_hears(0, 2), True, "a mix in which only output 0 hears token 2: for every t, change all "
         "features and compare all outputs before t."),
        (lambda x: _mean(x) - x.mean(0), True, "a mix that subtracts the mean of the whole "
         "sequence from every output, a quiet leak."),
    )  # fmt: skip
    for mix, leaks, what in cases:
        got = call(answer, mix, normal(4, 3, seed=40), name="hears_the_future(mix, x)")
        got = expect_shape(got, (), "hears_the_future(mix, x)")
        expect(float(got) in (0.0, 1.0), "hears_the_future should return True or False.")
        expect(bool(got) == leaks, f"your tester says {not leaks} for {what}")
    return "your tester finds every leak and accuses nobody innocent."
