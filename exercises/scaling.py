"""Exercise checks of chapter 05: scaling."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from exercises.check import call, checked, expect, expect_close, normal, same, tensor
from exercises.mistakes05 import (
    entropy_mistakes,
    entropy_of,
    jacobian_mistakes,
    weight_mistakes,
)


@checked
def head_weights(answer: Any) -> str:
    """head_weights(x, query, key): weights (B, T, T) of a head whose hs is not C."""
    for B, T, C, hs, seed in ((2, 5, 12, 3, 1), (3, 4, 6, 20, 2), (1, 4, 8, 2, 3)):
        x = normal(B, T, C, seed=seed)
        query, key = _layer(C, hs, seed + 10), _layer(C, hs, seed + 20)
        got = call(answer, x, query, key, name="head_weights")
        with torch.no_grad():
            mistakes = weight_mistakes(x, query(x), key(x))
            want = mistakes.pop("right")
        what = f"head_weights for x of shape {(B, T, C)} and a head size of {hs}"
        expect_close(got, want, what, mistakes=mistakes)
    return "the head size, not the width of x, and before the softmax."


def _layer(inputs: int, outputs: int, seed: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, bias=False)
    with torch.no_grad():
        layer.weight.copy_(normal(outputs, inputs, seed=seed) / inputs**0.5)
    return layer


@checked
def right_divisor(answer: Any) -> str:
    """right_divisor(d, std_q, std_k): the number that gives q·k a standard deviation of 1."""
    for d, a, b in ((64, 0.5, 3.0), (9, 2.0, 2.5), (100, 0.1, 0.3), (7, 1.3, 0.4)):
        want = math.sqrt(d) * a * b
        mistakes = {
            "This is the variance of q·k. Divide by its root, the standard deviation.": want**2,
            "This is √d, right for standard deviations of 1. Here they are std_q and std_k.": (
                math.sqrt(d)
            ),
            "This is d: the variance of q·k for entries of variance 1. You want its root, and "
            "std_q and std_k count too.": d,
            "You multiply by d where √d belongs: variances add up, standard deviations do not.": (
                d * a * b
            ),
            "You took std_q and std_k for variances: they are roots already.": math.sqrt(d * a * b),
            "This is what q·k must be multiplied by. Asked for is the divisor.": 1 / want,
            "You divide by std_q and std_k: larger entries need a larger divisor.": (
                math.sqrt(d) / (a * b)
            ),
            "The √d is missing: d products add up.": a * b,
            "Standard deviations do not add here: one product has std_q · std_k.": (
                math.sqrt(d) * (a + b)
            ),
        }
        got = call(answer, d, a, b, name="right_divisor")
        expect_close(got, want, f"right_divisor({d}, {a}, {b})", mistakes=mistakes)
    return "√d · std_q · std_k."


@checked
def row_entropy(answer: Any) -> str:
    """row_entropy(weights): (..., T) to the entropy of each row, (...)."""
    for shape, seed in (((4, 6), 1), ((2, 3, 5), 2), ((4, 4), 4), ((7,), 3)):
        w = (normal(*shape, seed=seed) * 1.5).softmax(-1)
        expect_close(
            call(answer, w, name="row_entropy"),
            entropy_of(w),
            f"row_entropy(weights) for weights of shape {shape}",
            mistakes=entropy_mistakes(w),
        )
    sure = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
    got = tensor(call(answer, sure, name="row_entropy"), "row_entropy(weights)")
    expect(
        not got.isnan().any(),
        "With a weight of exactly 0 your entropy is NaN: 0 · ln 0 is 0 on paper and NaN in the "
        "computer. Lift the weights a little before the logarithm.",
    )
    expect_close(got, entropy_of(sure), "row_entropy of rows with zeros")
    return "in nats, one number per row, zeros included."


@checked
def softmax_jacobian(answer: Any) -> str:
    """softmax_jacobian(scores): (T,) to the (T, T) matrix of derivatives of the weights."""
    for T, seed in ((4, 1), (7, 2), (2, 3)):
        scores = normal(T, seed=seed) * 1.5
        w = scores.softmax(-1)
        what = f"softmax_jacobian(scores) for {T} scores"
        got = call(answer, scores, name="softmax_jacobian")
        expect_close(
            got, torch.diag(w) - torch.outer(w, w), what, mistakes=jacobian_mistakes(scores)
        )
    return "diag(w) − w wᵀ: every row sums to 0."


@checked
def find_divisor(answer: Any) -> str:
    """find_divisor(scores, target): the divisor that gives the rows this mean entropy, in nats."""
    cases = ((8, 16, 8.0, 2.3, 1), (5, 9, 0.05, 1.2, 2), (1, 4, 30.0, 0.7, 3), (20, 6, 1.0, 1.7, 4))
    for T, S, size, target, seed in cases:
        scores = normal(T, S, seed=seed) * size
        got = tensor(call(answer, scores, target, name="find_divisor"), "find_divisor(...)")
        expect(got.numel() == 1, "find_divisor should return one number.")
        divisor = got.flatten()[0]
        expect(
            bool(torch.isfinite(divisor)) and bool(divisor > 0),
            f"A divisor is a positive finite number, but yours is {float(divisor):.3g}.",
        )
        _judge(scores.double(), divisor, target)
    return "sharp enough and flat enough, for scores of any size."


def _judge(scores: Tensor, divisor: Tensor, target: float) -> None:
    def heard(s: Tensor) -> Tensor:
        return entropy_of(s.softmax(-1)).mean()

    def hits(value: Tensor) -> bool:
        return bool((value - target).abs() < 0.005)

    found = heard(scores / divisor)
    if hits(found):
        return
    expect(
        not hits(heard(scores * divisor)),
        "Multiplied by your number the scores have the right entropy. The divisor is 1 over it.",
    )
    expect(
        not hits(found / math.log(2)),
        "Your entropy hits the target in bits (log2). The target is in nats: use log.",
    )
    # One entropy of all rows mixed, not the mean over the rows.
    mixed = entropy_of((scores / divisor).softmax(-1).mean(0))
    expect(
        not hits(mixed) or same(mixed, found),
        "You took the entropy of the averaged weights. Take each row's entropy, then the mean.",
    )
    expect(
        not hits(entropy_of((scores / divisor).softmax(-1)).sum()),
        "The target is the mean entropy of the rows, not their sum.",
    )
    side = "too flat: divide by less" if found > target else "too sharp: divide by more"
    expect(
        False,
        f"For a target of {target} your divisor {float(divisor):.4g} gives a mean entropy of "
        f"{float(found):.3f}, {side}.",
    )
