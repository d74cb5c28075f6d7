"""The exercises of chapter 04: each known mistake gets its diagnosis, other right answers pass."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from exercises import mistakes04
from exercises import queries_keys_values as check
from helpers.attention import attention, causal_mask

INF = math.inf


# --- other right answers ----------------------------------------------------------------------


def one_by_one(q, k, v):
    out = torch.zeros_like(v)
    for b in range(len(q)):
        for t in range(q.shape[1]):
            scores = k[b, : t + 1] @ q[b, t] / math.sqrt(q.shape[-1])
            out[b, t] = scores.softmax(0) @ v[b, : t + 1]
    return out


def fused(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def renormalised(scores):
    weights = scores.softmax(-1) * causal_mask(scores.shape[-1])
    return weights / weights.sum(-1, keepdim=True)


def added_bias(scores):
    T = scores.shape[-1]
    return (scores + torch.full((T, T), -INF, dtype=scores.dtype).triu(1)).softmax(-1)


def right_head(**changes):
    """A WindowHead whose parts can be swapped for broken ones."""

    def changed(name, default):
        return changes.get(name, default)

    class Head(nn.Module):
        def __init__(self, n_embd, head_size, window):
            super().__init__()
            self.window = window
            bias = changed("bias", False)
            self.query = nn.Linear(n_embd, head_size, bias=bias)
            self.key = nn.Linear(n_embd, head_size, bias=bias)
            self.value = nn.Linear(n_embd, changed("value_size", head_size), bias=bias)

        def forward(self, x):
            near = lambda past, window: past & ~past.tril(-window)  # noqa: E731
            mask = changed("near", near)(causal_mask(x.shape[1]), self.window)
            project = lambda h, x: (h.query(x), h.key(x), h.value(x))  # noqa: E731
            q, k, v = changed("project", project)(self, x)
            scale = changed("scale", lambda hs, C: hs**-0.5)(q.shape[-1], x.shape[-1])
            if "mix" in changes:
                return changes["mix"](q @ k.mT * scale, mask, v)
            return attention(q, k, v, mask, scale=scale)[0]

    return Head


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("ask_for_the_verb", [0, 0, 0, 6]),
        ("ask_for_the_verb", torch.tensor([-9.0, -1, -9, 3])),
        ("weights_of", lambda q, K: F.softmax((K * q).sum(-1) * len(q) ** -0.5, 0)),
        ("causal_attention", one_by_one),
        ("causal_attention", fused),
        ("causal_weights", renormalised),
        ("causal_weights", added_bias),
        ("window_head", right_head()),
    ],
)
def test_there_is_more_than_one_right_answer(name, answer):
    report = getattr(check, name)(answer)
    assert report.outcome == "right", report.message


# --- known mistakes ---------------------------------------------------------------------------


def weights_with(allowed=causal_mask, dim=-1, value=-INF):
    """A causal_weights with one thing wrong."""

    def causal_weights(given):
        return given.masked_fill(~allowed(given.shape[-1]), value).softmax(dim)

    return causal_weights


def attend_with(power=0.5, allowed=causal_mask, mix=None, dim=-1, value=-INF):
    """A causal_attention with one thing wrong."""

    def causal_attention(q, k, v):
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** power
        weights = scores.masked_fill(~allowed(q.shape[-2]), value).softmax(dim)
        return weights @ v if mix is None else mix(scores, weights, k, v)

    return causal_attention


def keys_from_query(head, x):
    return head.query(x), head.query(x), head.value(x)


def values_from_key(head, x):
    return head.query(x), head.key(x), head.key(x)


def swapped(head, x):
    return head.key(x), head.query(x), head.value(x)


def without_softmax(scores):
    """Right on paper, but every e^score of a row may round to 0."""
    shares = scores.exp().tril()
    return shares / shares.sum(-1, keepdim=True)


def everything(T):
    return torch.ones(T, T, dtype=torch.bool)


def upper(T):
    return causal_mask(T).T


MISTAKES = [
    ("ask_for_the_verb", torch.tensor([0.0, 0, 0, 4]), "Without the scale"),
    ("ask_for_the_verb", torch.tensor([1.0, 0, 1, 0]), 'finds "Tom"'),
    ("ask_for_the_verb", torch.tensor([0.0, 0, 0, 1]), "not above 0.8"),
    ("ask_for_the_verb", torch.zeros(4), "asks for nothing"),
    ("ask_for_the_verb", torch.tensor([[0.0, 0, 0, 8]]), "shape (4,)"),
    ("ask_for_the_verb", torch.tensor([0, 0, 0, INF]), "NaN or infinity"),
    ("weights_of", lambda q, K: K @ q, "raw scores"),
    ("weights_of", lambda q, K: K @ q / len(q) ** 0.5, "scaled scores"),
    ("weights_of", lambda q, K: (K @ q).softmax(-1), "scale is missing"),
    ("weights_of", lambda q, K: (K @ q / len(q)).softmax(-1), "hs itself"),
    ("weights_of", lambda q, K: (K @ q * len(q) ** 0.5).softmax(-1), "multiply by √hs"),
    ("weights_of", lambda q, K: (K @ q / len(K) ** 0.5).softmax(-1), "√T"),
    ("weights_of", lambda q, K: (K @ q).softmax(-1) / len(q) ** 0.5, "after the softmax"),
    ("weights_of", lambda q, K: (K @ q / len(q) ** 0.5).exp(), "not yet divided"),
    ("weights_of", lambda q, K: (K @ q / len(q) ** 0.5).softmax(-1) @ K, "Only the weights"),
    ("weights_of", lambda q, K: (K @ q / q.norm()).softmax(-1), "q.norm()"),
    ("weights_of", lambda q, K: K @ q / (K @ q).sum(), "by their sum"),
    ("causal_weights", lambda s: s.softmax(-1) * causal_mask(s.shape[-1]), "after the softmax"),
    ("causal_weights", weights_with(value=0.0), "e⁰ = 1"),
    ("causal_weights", lambda s: (s * causal_mask(s.shape[-1])).softmax(-1), "e⁰ = 1"),
    ("causal_weights", weights_with(dim=-2), "over dim -2"),
    ("causal_weights", lambda s: s.softmax(1) * causal_mask(s.shape[-1]), "dim=1"),
    ("causal_weights", weights_with(dim=0), "over dim 0"),
    ("causal_weights", lambda s: s.softmax(0) * causal_mask(s.shape[-1]), "over dim 0"),
    ("causal_weights", weights_with(allowed=upper), "upper triangle"),
    ("causal_weights", weights_with(allowed=everything), "future is not hidden"),
    ("causal_weights", lambda s: s.masked_fill(~causal_mask(s.shape[-1]), -INF), "missing"),
    ("causal_weights", weights_with(allowed=lambda T: causal_mask(T)[:, None, None, :]), "padding"),
    ("causal_weights", weights_with(allowed=lambda T: causal_mask(T).tril(-1)), "token itself"),
    ("causal_weights", weights_with(value=-1e9), "half precision"),
    ("causal_weights", weights_with(value=-1e4), "half precision"),
    ("causal_weights", weights_with(value=-6e4), "finite number"),
    ("causal_weights", weights_with(value=-65504), "finite number"),
    ("causal_weights", weights_with(value=-10.0), "finite number"),
    ("causal_weights", weights_with(allowed=lambda T: ~causal_mask(T)), "use ~mask"),
    ("causal_weights", lambda s: (s - INF * ~causal_mask(s.shape[-1])).softmax(-1), "times 0"),
    ("causal_weights", without_softmax, "0 by 0"),
    ("causal_weights", lambda s: weights_with()(s / s.shape[-1] ** 0.5), "scale again"),
    ("causal_attention", attend_with(power=0), "scale is missing"),
    ("causal_attention", attend_with(power=1), "hs itself"),
    ("causal_attention", attend_with(allowed=everything), "future is not hidden"),
    ("causal_attention", attend_with(allowed=upper), "upper triangle"),
    ("causal_attention", attend_with(dim=-2), "over dim -2"),
    ("causal_attention", attend_with(mix=lambda s, w, k, v: s.softmax(-1).tril() @ v), "after the"),
    ("causal_attention", attend_with(mix=lambda s, w, k, v: s.tril().softmax(-1) @ v), "e⁰ = 1"),
    ("causal_attention", attend_with(mix=lambda s, w, k, v: s.tril() @ v), "with the scores"),
    ("causal_attention", attend_with(mix=lambda s, w, k, v: s @ v), "scores, unmasked"),
    ("causal_attention", attend_with(mix=lambda s, w, k, v: w.mT @ v), "transposed weights"),
    ("causal_attention", attend_with(mix=lambda s, w, k, v: w @ k), "mixed the keys"),
    ("causal_attention", attend_with(mix=lambda s, w, k, v: (w @ v, w)), "not a tuple"),
    ("causal_attention", lambda q, k, v: fused(k, q, v), "swapped"),
    ("causal_attention", attend_with(value=-10.0), "finite number"),
    ("causal_attention", attend_with(value=-20.0), "finite number"),
    ("causal_attention", attend_with(value=-1e3), "finite number"),
    ("causal_attention", attend_with(mix=lambda s, w, k, v: without_softmax(s) @ v), "rounds to 0"),
    ("causal_attention", attend_with(allowed=lambda T: ~causal_mask(T)), "use ~mask"),
    ("causal_attention", attend_with(allowed=lambda T: causal_mask(T).tril(-1)), "token itself"),
    ("causal_attention", attend_with(dim=0), "over dim 0"),
    ("causal_attention", attend_with(power=-0.5), "multiply by √hs"),
    ("causal_attention", lambda q, k, v: fused(q * (q.shape[2] / q.shape[1]) ** 0.5, k, v), "√T"),
    ("causal_attention", lambda q, k, v: fused(q * q.shape[2] ** 0.5, k, v) / q.shape[2] ** 0.5,
     "after the softmax"),
    ("causal_attention", lambda q, k, v: fused(q * 0, k, v), "plain average"),
    ("window_head", right_head(near=lambda past, w: past & ~past.tril(-w - 1)), "one too long"),
    ("window_head", right_head(near=lambda past, w: past & ~past.tril(1 - w)), "one too short"),
    ("window_head", right_head(near=lambda past, w: past), "whole past"),
    ("window_head", right_head(near=lambda past, w: ~past.tril(-w) & ~past.tril(-w).T), "into the"),
    ("window_head", right_head(near=lambda past, w: past | True), "future is not hidden"),
    ("window_head", right_head(scale=lambda hs, C: 1.0), "scale is missing"),
    ("window_head", right_head(scale=lambda hs, C: 1 / hs), "hs itself"),
    ("window_head", right_head(scale=lambda hs, C: C**-0.5), "√C"),
    ("window_head", right_head(project=keys_from_query), "self.key"),
    ("window_head", right_head(project=values_from_key), "self.value"),
    ("window_head", right_head(project=lambda h, x: (h.query(x), h.key(x), x)), "mix x itself"),
    ("window_head", right_head(near=lambda past, w: ~past.tril(-w)), "whole future"),
    ("window_head", right_head(mix=lambda s, near, v: s.softmax(-1) * near @ v), "do not sum"),
    ("window_head", right_head(mix=lambda s, near, v: (s * near).softmax(-1) @ v), "e⁰ = 1"),
    ("window_head", right_head(mix=lambda s, near, v: s.masked_fill(~near, -INF).softmax(-2) @ v),
     "over dim -2"),
    ("window_head", right_head(mix=lambda s, near, v: (v, s)), "tuple"),
    ("window_head", right_head(project=swapped), "swapped"),
    ("window_head", right_head(bias=True), "bias"),
    ("window_head", right_head(value_size=7), "value should map"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer", "diagnosis"), MISTAKES)
def test_a_known_mistake_is_named(name, answer, diagnosis):
    report = getattr(check, name)(answer)
    assert report.outcome == "not yet"
    assert diagnosis in report.message, report.message


def test_unturned_keys_are_named_where_the_shapes_fit():
    q, k, v = (torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(i)) for i in range(3))
    found = mistakes04.attention_mistakes(q, k, v)
    wrong = (q @ k / 3**0.5).masked_fill(~causal_mask(3), -INF).softmax(-1) @ v
    (diagnosis,) = [say for say, value in found.items() if torch.allclose(value, wrong)]
    assert "k.transpose(-2, -1)" in diagnosis


@pytest.mark.parametrize(
    ("mistakes", "arguments"),
    [
        (mistakes04.lookup_mistakes, [(4,), (6, 4)]),
        (mistakes04.masking_mistakes, [(2, 5, 5)]),
        (mistakes04.attention_mistakes, [(2, 5, 3)] * 3),
    ],
)
def test_no_two_mistakes_look_alike(mistakes, arguments):
    given = [torch.randn(s, generator=torch.Generator().manual_seed(9)) for s in arguments]
    given = [tensor + i for i, tensor in enumerate(given)]
    values = list(mistakes(*given).values())
    for i, one in enumerate(values):
        for other in values[:i]:
            assert one.shape != other.shape or not torch.allclose(one, other, atol=1e-3)


def test_inputs_must_not_be_changed():
    def in_place(scores):
        return scores.masked_fill_(~causal_mask(scores.shape[-1]), -INF).softmax(-1)

    assert "in place" in check.causal_weights(in_place).message
