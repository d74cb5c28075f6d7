"""Exercise checks of chapter 08: the transformer block."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

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
from exercises.layers08 import Recorder, tokenwise_layers
from exercises.mistakes08 import (
    block_mistakes,
    count_mistakes,
    gated_mistakes,
    norm_mistakes,
    standardised,
)


def _call(function: Any, *args: Any, name: str, hint: str) -> Any:
    """`call`, with a hint where two shapes do not go together."""
    try:
        return call(function, *args, name=name)
    except NotYet as error:
        if "must match the size" not in str(error):
            raise
        raise NotYet(f"{error}. {hint}") from None


@checked
def layer_norm(answer: Any) -> str:
    """my_norm(x): (B, T, C) to (B, T, C), each token with mean 0 and variance 1."""
    # Equal T and C last: there a forgotten keepdim can go unnoticed by the shapes.
    for B, T, C, seed in ((3, 5, 4, 1), (1, 2, 6, 2), (2, 4, 4, 3)):
        x = 2 * normal(B, T, C, seed=seed) + 3
        what = f"my_norm(x) for x of shape {(B, T, C)}"
        got = _call(answer, x, name="my_norm", hint=(
            "Is keepdim=True missing? x.mean(-1) has shape (B, T), which does not line up with "
            "(B, T, C); x.mean(-1, keepdim=True) has (B, T, 1)."
        ))  # fmt: skip
        expect_close(got, standardised(x), what, mistakes=norm_mistakes(x))
    small = 0.002 * normal(2, 3, 4, seed=4)  # where epsilon matters
    got = call(answer, small, name="my_norm")
    what = "my_norm(x) for a very small x"
    expect_close(got, standardised(small), what, mistakes=norm_mistakes(small))
    return "each token is standardised over its own features."


@checked
def gated(answer: Any) -> str:
    """gated(x, W_gate, W_up, W_out): SwiGLU without biases, (B, T, C) to (B, T, C)."""
    for B, T, C, hidden, seed in ((2, 3, 4, 6, 10), (1, 5, 6, 4, 20), (3, 2, 5, 5, 30)):
        x = normal(B, T, C, seed=seed)
        W = [normal(C, hidden, seed=seed + i) for i in (1, 2)] + [normal(hidden, C, seed=seed + 3)]
        want = (F.silu(x @ W[0]) * (x @ W[1])) @ W[2]
        what = f"gated(x, …) for x of shape {(B, T, C)}"
        got = _call(answer, x, *W, name="gated", hint=(
            "Mind the brackets: a * x @ W is (a * x) @ W. Make both products with x first."
        ))  # fmt: skip
        expect_close(got, want, what, mistakes=gated_mistakes(x, *W))
    return "one path is bent and gates the other."


@checked
def block(answer: Any) -> str:
    """block(x, attention, mlp, norm_1, norm_2): a pre-norm block, (B, T, C) to (B, T, C)."""
    for B, T, C, seed in ((2, 5, 4, 40), (3, 2, 6, 50)):
        x = normal(B, T, C, seed=seed)
        parts = _parts(C, seed)
        attention, mlp, norm_1, norm_2 = parts
        after = x + attention(norm_1(x))
        want = after + mlp(norm_2(after))
        got = call(answer, x, *parts, name="block")
        what = f"block(x, …) for x of shape {(B, T, C)}"
        expect_close(got, want, what, mistakes=block_mistakes(x, *parts))

        def nothing(x: Tensor) -> Tensor:
            return torch.zeros_like(x)

        got = call(answer, x, nothing, nothing, norm_1, norm_2, name="block")
        expect_close(got, x, "block(x, …) with attention and mlp that give zeros")
    return "communicate, compute, and let the stream pass."


def _parts(C: int, seed: int) -> list[Any]:
    """Stand-ins for the four parts, all different, so that no two of them can be mixed up."""
    A, M, gain = (
        normal(C, C, seed=seed + 1),
        normal(C, C, seed=seed + 2),
        normal(2, C, seed=seed + 3),
    )

    def attention(x: Tensor) -> Tensor:
        return (x @ A).cumsum(1)  # mixes the tokens, and hears no future

    def mlp(x: Tensor) -> Tensor:
        return F.relu(x @ M)

    def norm_1(x: Tensor) -> Tensor:
        return gain[0] * standardised(x)

    def norm_2(x: Tensor) -> Tensor:
        return gain[1] * standardised(x)

    return [attention, mlp, norm_1, norm_2]


@checked
def dropout(answer: Any) -> str:
    """my_dropout(x, p, training): zeros with probability p, the others divided by 1 − p."""
    x = normal(40, 50, 10, seed=60) + 5  # far from 0: a zero was dropped
    for p in (0.2, 0.7):
        got = call(answer, x, p, True, name="my_dropout")
        got = expect_shape(got, x.shape, "my_dropout(x, p, True)")
        _judge_dropout(got, x, p)
        again = tensor(call(answer, x, p, True, name="my_dropout"), "my_dropout(x, p, True)")
        expect(
            not torch.equal(got == 0, again == 0),
            "Two calls dropped the very same entries. The choice must be made anew in each step.",
        )
        third = tensor(call(answer, x, p, True, name="my_dropout"), "my_dropout(x, p, True)")
        expect(
            len({int((result == 0).sum()) for result in (got, again, third)}) > 1,
            "Three calls dropped exactly the same number of entries. Each entry has its own "
            "chance, whatever the others do: draw a number for each, `torch.rand(x.shape)`.",
        )
        what = f"my_dropout(x, {p}, False)"
        got = tensor(call(answer, x, p, False, name="my_dropout"), what)
        expect(
            got.shape != x.shape or not (got == 0).any(),
            f"{what} dropped something. When `training` is False, x comes back as it is.",
        )
        expect_close(got, x, what, mistakes={
            "Out of training nothing is dropped, and nothing is scaled either: the division by "
            "1 − p has already kept the mean.": x * (1 - p),
            "Out of training nothing is dropped, and nothing is scaled either.": x / (1 - p),
        })  # fmt: skip
    expect_close(call(answer, x, 0.0, True, name="my_dropout"), x, "my_dropout(x, 0.0, True)")
    return "random zeros in training, the mean is kept, and nothing happens afterwards."


def _judge_dropout(got: Tensor, x: Tensor, p: float) -> None:
    zero = got == 0
    share = zero.float().mean().item()
    expect(not got.isnan().any(), "my_dropout(x, p, True) contains NaN.")
    expect(share > 0, "In training nothing was dropped.")
    if abs(share - (1 - p)) < 0.03:
        raise NotYet(
            f"You drop with probability 1 − p: at p = {p} about {1 - p:.0%} of the entries are 0."
        )
    together = [(zero.all(dim) | ~zero.any(dim)).float().mean() > 0.9 for dim in (0, 1, 2)]
    if any(together):
        raise NotYet(
            "Whole rows are dropped together. Each entry has its own chance: draw a number for "
            "each, `torch.rand(x.shape)`."
        )
    expect(
        abs(share - p) < 0.03,
        f"About {p:.0%} of the entries should be 0 at p = {p}, but {share:.0%} are.",
    )
    kept, target = got[~zero], x.double()[~zero]
    expect_close(kept, target / (1 - p), f"what my_dropout(x, {p}, True) keeps", mistakes={
        "Those that stay are not divided by 1 − p, so the mean falls.": target,
        "Those that stay are multiplied by 1 − p. Divide: they must make up for the others.":
            target * (1 - p),
        "Those that stay are divided by p. Divide by 1 − p, the share that stays.": target / p,
    })  # fmt: skip


@checked
def block_parameters(answer: Any) -> str:
    """block_parameters(C, e): the parameters of a block of width C with the expansion e."""
    for C, e in ((7, 5), (10, 4), (7, 1)):
        want = 4 * C * C + 2 * e * C * C + 4 * C
        what = f"block_parameters({C}, {e})"
        got = expect_shape(call(answer, C, e, name="block_parameters"), (), what)
        expect_close(got, want, what, mistakes=count_mistakes(C, e), tolerance=1e-9)
    return "(4 + 2e)C² in the matrices, 4C in the norms."


@checked
def is_tokenwise(answer: Any) -> str:
    """is_tokenwise(layer, T, C): does no token of (1, T, C) change the output at another place?"""
    for name, layer, want, diagnosis in tokenwise_layers():
        for T in (6, 4):
            got = call(answer, layer, T, 8, name="is_tokenwise")
            if hasattr(got, "item"):  # a tensor or a NumPy bool is as good
                got = got.item()
            if not isinstance(got, (bool, int)) or got not in (True, False):
                raise NotYet(f"is_tokenwise should return True or False, but gave {got!r:.60}")
            if bool(got) != want:
                raise NotYet(f"{name}, T = {T}: the answer is {want}. {diagnosis}")
    seen = Recorder()
    call(answer, seen, 3, 5, name="is_tokenwise")
    expect(
        (3, 5) in seen.shapes,
        "is_tokenwise(layer, 3, 5) did not show the layer an input of shape (1, 3, 5): use T and C "
        "as they are given.",
    )
    return "a test that finds any leak, in either direction."
