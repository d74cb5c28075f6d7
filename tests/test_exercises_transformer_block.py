"""The exercises of chapter 08 beyond what their declaration says."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from exercises import transformer_block as check

# --- other right answers ----------------------------------------------------------------------


def norm_by_loops(x):
    tokens = [(token - token.mean()) / (token.var(correction=0) + 1e-5).sqrt()
              for text in x for token in text]  # fmt: skip
    return torch.stack(tokens).view(x.shape)


def gated_by_sigmoid(x, W_gate, W_up, W_out):
    gate = x @ W_gate
    return ((x @ W_up) * gate * gate.sigmoid()) @ W_out


def block_in_place(x, attention, mlp, norm_1, norm_2):
    x = x.clone()
    x += attention(norm_1(x))
    x += mlp(norm_2(x))
    return x


def dropped_where(x, p, training):
    return torch.where(torch.rand_like(x) < p, 0.0, x / (1 - p)) if training else x


def by_jacobian(layer, T, C):
    jacobian = torch.autograd.functional.jacobian(layer, torch.randn(1, T, C))[0, :, :, 0]
    between = jacobian.abs().amax((1, 3))  # (T, T)
    return bool(between.fill_diagonal_(0).max() < 1e-5)


def many_at_once(layer, T, C):
    """A numpy bool; quite other tokens, and also each token in a batch of its own."""
    x = torch.rand(1, T, C) * 4 - 2
    for t in range(T):
        other = x.clone()
        other[0, t] = torch.linspace(-3, 2, C) ** 3
        with torch.no_grad():
            change = (layer(other) - layer(x))[0].abs().numpy()
        if np.delete(change, t, 0).max() > 1e-5:
            return np.bool_(False)
    return np.bool_(True)


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (check.layer_norm, lambda x: F.layer_norm(x, x.shape[-1:])),
        (check.layer_norm, lambda x: nn.LayerNorm(x.shape[-1])(x)),
        (check.layer_norm, norm_by_loops),
        (check.gated, gated_by_sigmoid),
        (check.gated, lambda x, g, u, o: torch.einsum("bth,hc->btc", F.silu(x @ g) * (x @ u), o)),
        (check.dropout, lambda x, p, training: F.dropout(x, p, training)),
        (check.dropout, dropped_where),
        (check.dropout, lambda x, p, t: x * torch.bernoulli(0 * x + 1 - p) / (1 - p) if t else +x),
        (check.block_parameters, lambda C, e: torch.tensor((4 + 2 * e) * C**2 + 4 * C)),
        (check.block_parameters, lambda C, e: np.int64(2 * C * (C * (2 + e) + 2))),
        (check.is_tokenwise, lambda *a: torch.tensor(check.testing()(*a))),
        (check.is_tokenwise, check.testing(new=torch.zeros_like)),
        (check.is_tokenwise, by_jacobian),
        (check.is_tokenwise, many_at_once),
    ],
)
def test_another_right_answer_is_right(exercise, answer):
    report = exercise(answer)
    assert report.outcome == "right", report.message


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_right_test_of_layers_is_right_whatever_it_draws(seed):
    def answer(layer, T, C):
        torch.default_generator.manual_seed(seed + 100 * T)
        return check.testing()(layer, T, C)

    assert check.is_tokenwise(answer).outcome == "right"


# --- dropout: every mistake that its check knows ------------------------------------------------


def dropping(keep_of, scale=lambda p: 1 / (1 - p), after=lambda x, p: x):
    def answer(x, p, training):
        return x * keep_of(x, p) * scale(p) if training else after(x, p)

    return answer


def keep(x, p):
    return torch.rand(x.shape) >= p


def always_the_same(x, p):
    return torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) >= p


def so_many(x, p):
    """As many zeros each time: p is the share, and not each entry's own chance."""
    return (torch.randperm(x.numel()) >= int(p * x.numel())).view(x.shape)


def by_what_stays(x, p, training):
    kept = x * keep(x, p)
    return kept * x.numel() / (kept != 0).sum() if training else x


def three_dimensions(x, p, training):
    B, T, C = x.shape
    return x * (torch.rand(B, T, C) >= p) / (1 - p) if training else x


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (dropping(keep, lambda p: 1), "not divided"),
        (dropping(keep, lambda p: 1 - p), "multiplied by 1 − p"),
        (dropping(keep, lambda p: 1 / p), "divided by p"),
        (dropping(keep, lambda p: p), "multiplied by p"),
        (dropping(keep, lambda p: 1 + p), "multiplied by 1 + p"),
        (dropping(keep, lambda p: (1 - p) ** -2), "1 − p twice"),
        (dropping(keep, lambda p: (1 - p) ** -0.5), "the root of 1 − p"),
        (by_what_stays, "happened to stay"),
        (dropping(lambda x, p: torch.rand(x.shape) < p), "with probability 1 − p"),
        (dropping(lambda x, p: torch.randn(x.shape) >= p), "torch.randn"),
        (dropping(lambda x, p: torch.rand(x.shape) >= 0.5), "Half of the entries"),
        (dropping(lambda x, p: torch.rand(x.shape) >= p / 2), "should be 0 at p = 0.2"),
        (dropping(lambda x, p: torch.rand(()) >= p), "one coin for them all"),
        (dropping(lambda x, p: torch.rand(x.shape[:-1])[..., None] >= p), "dropped together"),
        (dropping(lambda x, p: torch.rand(x.shape[-1]) >= p), "dropped together"),
        (dropping(lambda x, p: torch.rand(x.shape[0], 1, x.shape[2]) >= p), "dropped together"),
        (dropping(lambda x, p: torch.rand(x.shape[0], 1, 1) >= p), "dropped together"),
        (dropping(so_many), "exactly the same number"),
        (dropping(always_the_same), "the very same entries"),
        (dropping(lambda x, p: 0), "everything was dropped"),
        (dropping(lambda x, p: keep(x, p) * torch.nan), "contains NaN"),
        (dropping(keep, after=lambda x, p: x * (1 - p)), "already kept the mean"),
        (dropping(keep, after=lambda x, p: x / (1 - p)), "nothing is scaled either"),
        (dropping(keep, after=lambda x, p: x * p), "without a factor p"),
        (lambda x, p, training: dropping(keep)(x, p, True), "my_dropout(x, 0.2, False) dropped"),
        (lambda x, p, training: x, "nothing was dropped"),
        (lambda x, p, training: dropping(keep)(x, p, not training), "nothing was dropped"),
        (three_dimensions, "not enough values to unpack"),
        (lambda x, p, training: dropping(keep)(x.detach(), p, training), "no gradient comes back"),
        (lambda x, p, training: F.dropout(x, p, training) + 1e-2, "nothing was dropped"),
    ],
)
def test_mistakes_in_dropout(answer, words):
    report = check.dropout(answer)
    assert report.outcome == "not yet" and words in report.message, report.message


# --- what else is told ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (check.layer_norm, torch.no_grad()(check.standardised)),
        (check.layer_norm, lambda x: (x - x.mean(-1, True)) / (
            check.variance(x).detach() + 1e-5).sqrt()),
        (check.layer_norm, lambda x: torch.from_numpy(F.layer_norm(x, x.shape[-1:]).numpy())),
        (check.gated, lambda x, g, u, o: gated_by_sigmoid(x, g.detach(), u, o)),
        (check.block, block_in_place),
        (check.block, lambda x, *parts: check.pre(x.detach(), *parts)),
        (check.block, lambda x, a, *rest: check.pre(x, lambda y: a(y).detach(), *rest)),
    ],
)  # fmt: skip
def test_gradients_come_back(exercise, answer):
    assert "has the right values, but" in exercise(answer).message


@pytest.mark.parametrize(
    "answer",
    [
        check.testing(size=lambda a, b: (a - b).mean((0, 2)).abs()),
        check.testing(size=lambda a, b: (a.mean((0, 2)) - b.mean((0, 2))).abs()),
        check.testing(size=lambda a, b: (a.std(-1) - b.std(-1))[0].abs()),
        check.testing(size=lambda a, b: (a.amax((0, 2)) - b.amax((0, 2))).abs()),
        check.testing(size=lambda a, b: (a - b).abs().amin((0, 2))),
        check.testing(size=lambda a, b: (a - b)[..., 1:7].abs().amax((0, 2))),
        check.testing(tolerance=1e-4),
        check.testing(tokens=lambda T: range(0, T, 2)),
        check.testing(tokens=lambda T: [T // 2]),
        check.testing(places=lambda change, t: change[max(t - 1, 0) : t + 2]),
        lambda layer, T, C: not hasattr(layer, "query"),
    ],
)
def test_a_test_of_layers_that_looks_at_a_part_is_found(answer):
    assert check.is_tokenwise(answer).outcome == "not yet"


@pytest.mark.parametrize(
    ("exercise", "answer", "words"),
    [
        (check.layer_norm, lambda x: F.layer_norm(x, (4,)), "RuntimeError"),
        (check.layer_norm, lambda x: x - x.mean(-1), "Is keepdim=True missing?"),
        (check.gated, lambda x, g, u, o: F.silu(x * g), "Mind the brackets"),
        (check.block, lambda x, a, *rest: check.pre(x, a, *rest) + ~a(x).any(), "give zeros here"),
        (check.block, lambda x, a, *rest: check.pre(x, a, *rest) + 1, "block(x, attention, mlp, "),
        (check.block, lambda x, a, m, n1, n2: x.add_(a(n1(x))), "in place"),
        (check.block_parameters, lambda C, e: 144, "block_parameters(7, 5) should be 714, but is"),
        (check.is_tokenwise, lambda *a: "True", "should be True, but is 'True'"),
        (check.is_tokenwise, lambda layer, T, C: check.testing()(layer, 6, 8), "as they are given"),
        (check.is_tokenwise, lambda layer, T, C: check.testing()(layer, T, 8), "as they are given"),
    ],
)
def test_other_mistakes_are_told_by_what_differs(exercise, answer, words):
    report = exercise(answer)
    assert report.outcome == "not yet" and words in report.message, report.message
