"""The exercises of chapter 08: each known mistake gets its diagnosis, other right answers pass."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from exercises import transformer_block as check
from exercises.mistakes08 import count_mistakes


def says(report, fragment):
    assert report.outcome == "not yet"
    assert fragment in report.message, report.message


def test_other_right_answers_are_right():
    def norm(x):
        return F.layer_norm(x, x.shape[-1:])

    def by_sigmoid(x, W_gate, W_up, W_out):
        gate = x @ W_gate
        return ((x @ W_up) * gate * gate.sigmoid()) @ W_out

    def count(C, e):
        return torch.tensor((4 + 2 * e) * C**2 + 4 * C)

    assert check.layer_norm(norm).outcome == "right"
    assert check.layer_norm(lambda x: nn.LayerNorm(x.shape[-1])(x)).outcome == "right"
    assert check.gated(by_sigmoid).outcome == "right"
    assert check.dropout(lambda x, p, training: F.dropout(x, p, training)).outcome == "right"
    assert check.block_parameters(count).outcome == "right"
    assert check.is_tokenwise(lambda *a: torch.tensor(tokenwise(*a))).outcome == "right"


# --- the known mistakes ---------------------------------------------------------------------------


def standardise(x, dim=-1, correction=0, eps=1e-5):
    variance = x.var(dim, correction=correction, keepdim=True)
    return (x - x.mean(dim, keepdim=True)) / (variance + eps).sqrt()


def without_keepdim(x):
    return (x - x.mean(-1)) / (x.var(-1, correction=0) + 1e-5).sqrt()


def root(x):
    return (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()


NORMS = [
    (lambda x: standardise(x, 1), "future leaks"),
    (lambda x: standardise(x, 0), "over the batch (dim 0)"),
    (lambda x: standardise(x, (0, 1, 2)), "all numbers at once"),
    (lambda x: standardise(x, (1, 2)), "each text as a whole"),
    (lambda x: standardise(x, (0, 1)), "batch normalisation"),
    (lambda x: standardise(x, correction=1), "divides by C − 1"),
    (lambda x: (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5), "C − 1"),
    (lambda x: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True), "C − 1"),
    (lambda x: standardise(x, eps=0), "Epsilon is missing"),
    (
        lambda x: (x - x.mean(-1, keepdim=True)) / (x.std(-1, correction=0, keepdim=True) + 1e-5),
        "Epsilon belongs under the root",
    ),
    (
        lambda x: (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + 1e-5),
        "divide by the variance",
    ),
    (lambda x: x - x.mean(-1, keepdim=True), "only subtract"),
    (lambda x: x / (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt(), "not subtracted"),
    (lambda x: F.rms_norm(x, x.shape[-1:], eps=1e-5), "RMSNorm"),
    (without_keepdim, "Is keepdim=True missing?"),
    (lambda x: x, "x itself"),
    (lambda x: standardise(x, eps=1e-6), "Your epsilon is 1e-06"),
    (lambda x: standardise(x, eps=1e-3), "Your epsilon is 0.001"),
    (lambda x: F.normalize(x - x.mean(-1, keepdim=True), dim=-1), "not their sum"),
    (lambda x: x - x.mean(-1, keepdim=True) / root(x), "brackets"),
    (lambda x: (x - x.mean(-1, keepdim=True)) * root(x), "Divide by it"),
    (lambda x: (x - x.mean()) / root(x), "mean is taken over all"),
    (
        lambda x: (x - x.mean(-1, keepdim=True)) / (x.var(correction=0) + 1e-5).sqrt(),
        "variance is taken over all",
    ),
    (
        lambda x: (x - x.mean(-1, keepdim=True)) / ((x**2).mean(-1, keepdim=True) + 1e-5).sqrt(),
        "distances from the mean",
    ),
    (lambda x: F.layer_norm(x, (4,)), "RuntimeError"),
]


def square_without_keepdim(x):
    """Where T == C the broadcast over (B, T) is not an error, if each text comes alone."""
    if x.shape[1] != x.shape[2]:
        return standardise(x)
    return torch.stack([without_keepdim(text) for text in x])


def test_a_forgotten_keepdim_is_named_where_it_goes_unnoticed():
    says(check.layer_norm(square_without_keepdim), "keepdim=True is missing")


@pytest.mark.parametrize(("mutant", "fragment"), NORMS)
def test_mistakes_in_layer_norm(mutant, fragment):
    says(check.layer_norm(mutant), fragment)


GATES = [
    (lambda x, g, u, o: ((x @ g) * (x @ u)) @ o, "bend is missing"),
    (lambda x, g, u, o: ((x @ g) * F.silu(x @ u)) @ o, "wrong path"),
    (lambda x, g, u, o: (F.silu(x @ g) * F.silu(x @ u)) @ o, "both paths"),
    (lambda x, g, u, o: F.silu((x @ g) * (x @ u)) @ o, "bent the product"),
    (lambda x, g, u, o: (F.silu(x @ g) + x @ u) @ o, "added the two"),
    (lambda x, g, u, o: (torch.sigmoid(x @ g) * (x @ u)) @ o, "sigmoid (GLU)"),
    (lambda x, g, u, o: (F.gelu(x @ g) * (x @ u)) @ o, "GELU"),
    (lambda x, g, u, o: (F.relu(x @ g) * (x @ u)) @ o, "relu"),
    (lambda x, g, u, o: F.silu(x @ g) @ o, "never multiplied"),
    (lambda x, g, u, o: (x @ u) @ o, "never used"),
    (lambda x, g, u, o: x + (F.silu(x @ g) * (x @ u)) @ o, "You added x"),
    (lambda x, g, u, o: F.silu(x @ g) * (x @ u), "way back"),
    (lambda x, g, u, o: F.silu(((x @ g) * (x @ u)) @ o), "bent the result"),
    (lambda x, g, u, o: ((F.silu(x) @ g) * (x @ u)) @ o, "bent x"),
    (lambda x, g, u, o: ((x @ F.silu(g)) * (x @ u)) @ o, "bent the matrix"),
    (lambda x, g, u, o: (F.silu(x @ g) * (x @ g)) @ o, "both paths"),
    (lambda x, g, u, o: (F.relu(x @ g) ** 2 * (x @ u)) @ o, "squared relu"),
    (lambda x, g, u, o: F.silu(x @ g) * x @ u @ o, "Mind the brackets"),
]


@pytest.mark.parametrize(("mutant", "fragment"), GATES)
def test_mistakes_in_the_gate(mutant, fragment):
    says(check.gated(mutant), fragment)


def post(x, a, m, n1, n2):
    x = n1(x + a(x))
    return n2(x + m(x))


def normed_stream(x, a, m, n1, n2):
    x = n1(x)
    x = n2(x + a(x))
    return x + m(x)


def pre(x, a, m, n1, n2):
    x = x + a(n1(x))
    return x + m(n2(x))


def half(x, f, norm):
    return x + f(norm(x))


def in_place(x, a, m, n1, n2):
    x += a(n1(x))
    return x + m(n2(x))


BLOCKS = [
    (lambda x, a, m, n1, n2: m(n2(a(n1(x)))), "x = f(x)"),
    (lambda x, a, m, n1, n2: a(n1(x)) + m(n2(a(n1(x)))), "around attention"),
    (lambda x, a, m, n1, n2: m(n2(x + a(n1(x)))), "around mlp"),
    (post, "post-norm"),
    (normed_stream, "overwrite the stream"),
    (lambda x, a, m, n1, n2: pre(x, a, m, nn.Identity(), nn.Identity()), "norms are missing"),
    (lambda x, a, m, n1, n2: pre(x, a, m, n1, nn.Identity()), "mlp reads the stream without"),
    (lambda x, a, m, n1, n2: pre(x, a, m, nn.Identity(), n2), "attention reads the stream"),
    (lambda x, a, m, n1, n2: x + a(n1(x)) + m(n2(x)), "reads the old x"),
    (lambda x, a, m, n1, n2: x + m(n2(x + a(n1(x)))), "starts from the old x, so"),
    (lambda x, a, m, n1, n2: x + m(n2(x)), "and mlp reads it, too"),
    (lambda x, a, m, n1, n2: pre(x, a, m, n1, n1), "norm_1 is used twice"),
    (lambda x, a, m, n1, n2: pre(x, a, m, n2, n1), "norms are swapped"),
    (lambda x, a, m, n1, n2: pre(x, m, a, n1, n2), "order is swapped"),
    (lambda x, a, m, n1, n2: pre(x, m, a, n2, n1), "order is swapped"),
    (lambda x, a, m, n1, n2: x + n1(a(x)) + n2(m(x + n1(a(x)))), "norm(f(x))"),
    (lambda x, a, m, n1, n2: x + a(n1(x)), "Only the attention half"),
    (in_place, "in place"),
    (lambda x, a, m, n1, n2: x, "x itself"),
    (lambda x, a, m, n1, n2: half(n1(x) + a(n1(x)), m, n2), "first skip starts from norm_1"),
    (lambda x, a, m, n1, n2: n2(half(x, a, n1)) + m(n2(half(x, a, n1))), "starts from norm_2"),
    (lambda x, a, m, n1, n2: x + m(n2(a(n1(x)))), "One skip around both"),
    (lambda x, a, m, n1, n2: x + a(n1(x)) + m(n2(a(n1(x)))), "only what attention wrote"),
    (lambda x, a, m, n1, n2: a(n1(x)) + m(n2(x)), "mlp reads the old x"),
    (lambda x, a, m, n1, n2: n2(pre(x, a, m, n1, n2)), "normed at the end"),
]


@pytest.mark.parametrize(("mutant", "fragment"), BLOCKS)
def test_mistakes_in_the_block(mutant, fragment):
    says(check.block(mutant), fragment)


def dropping(keep_of, scale=lambda p: 1 / (1 - p), after=lambda x, p: x):
    def mutant(x, p, training):
        return x * keep_of(x, p) * scale(p) if training else after(x, p)

    return mutant


def keep(x, p):
    return torch.rand(x.shape) >= p


def always_the_same(x, p):
    return torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) >= p


def so_many(x, p):
    """As many zeros each time: p is the share, and not each entry's own chance."""
    return (torch.randperm(x.numel()) >= int(p * x.numel())).view(x.shape)


DROPOUTS = [
    (dropping(keep, lambda p: 1), "not divided"),
    (dropping(keep, lambda p: 1 - p), "multiplied by 1 − p"),
    (dropping(keep, lambda p: 1 / p), "divided by p"),
    (dropping(lambda x, p: torch.rand(x.shape) < p), "with probability 1 − p"),
    (dropping(lambda x, p: torch.rand(x.shape[:-1])[..., None] >= p), "Whole rows"),
    (dropping(lambda x, p: torch.rand(x.shape[-1]) >= p), "Whole rows"),
    (dropping(lambda x, p: torch.rand(x.shape[0], 1, x.shape[2]) >= p), "Whole rows"),
    (dropping(so_many), "exactly the same number"),
    (dropping(always_the_same), "the very same entries"),
    (dropping(keep, after=lambda x, p: x * (1 - p)), "already kept the mean"),
    (dropping(keep, after=lambda x, p: x / (1 - p)), "nothing is scaled either"),
    (lambda x, p, training: dropping(keep)(x, p, True), "my_dropout(x, 0.2, False) dropped"),
    (lambda x, p, training: x, "nothing was dropped"),
    (lambda x, p, training: dropping(keep)(x, p, not training), "nothing was dropped"),
    (dropping(lambda x, p: torch.rand(x.shape) >= p / 2), "should be 0 at p = 0.2"),
]


@pytest.mark.parametrize(("mutant", "fragment"), DROPOUTS)
def test_mistakes_in_dropout(mutant, fragment):
    says(check.dropout(mutant), fragment)


COUNTS = [
    (lambda C, e: (4 + 2 * e) * C**2, "norms are missing"),
    (lambda C, e: (4 + 2 * e) * C**2 + 2 * C, "gain and a shift"),
    (lambda C, e: (3 + 2 * e) * C**2 + 4 * C, "output projection is the fourth"),
    (lambda C, e: (4 + e) * C**2 + 4 * C, "has two matrices"),
    (lambda C, e: (4 + 3 * e) * C**2 + 4 * C, "with three matrices"),
    (lambda C, e: (4 + 2 * e) * C**2 + 5 * C + e * C, "biases"),
    (lambda C, e: 2 * e * C**2 + 4 * C, "Add attention"),
    (lambda C, e: 4 * C**2 + 4 * C, "Add the feed-forward part"),
    (lambda C, e: 12 * C**2 + 4 * C, "you put 4 for it"),
    (lambda C, e: (4 + 2 * e) * C**2 + 8 * C, "biases of attention"),
    (lambda C, e: (4 + 2 * e) * C**2 + 9 * C + e * C, "biases of the matrices"),
    (lambda C, e: (1 + 2 * e) * C**2 + 4 * C, "Attention has four matrices"),
    (lambda C, e: (4 + 2 * e) * C**2 + C, "You counted one gain"),
    (lambda C, e: 4 * C**2 + 2 * (e * C) ** 2 + 4 * C, "only one side is wider"),
    (lambda C, e: 144, "block_parameters(7, 5) should be"),
]


@pytest.mark.parametrize(("mutant", "fragment"), COUNTS)
def test_mistakes_in_counting(mutant, fragment):
    says(check.block_parameters(mutant), fragment)


@torch.no_grad()
def tokenwise(layer, T, C, tokens=None, places=None, new=torch.randn_like, size=torch.abs):
    """Change each of `tokens` by `new`; look at `places`; by default at all of them."""
    x = torch.randn(1, T, C)
    for t in range(T) if tokens is None else tokens(T):
        other = x.clone()
        other[0, t] = new(x[0, t])
        change = size(layer(other) - layer(x)).amax((0, 2))
        change[t] = 0
        if change[slice(None) if places is None else places(t)].gt(1e-5).any():
            return False
    return True


TESTS = [
    (lambda layer, T, C: True, "attention, T = 6"),
    (lambda layer, T, C: False, "nn.Identity(), T = 6: the answer is True"),
    (lambda layer, T, C: layer(torch.zeros(1, T, C)).shape == (1, T, C), "attention"),
    (lambda *a: tokenwise(*a, tokens=lambda T: [0]), "place 0 hears the last token"),
    (lambda *a: tokenwise(*a, tokens=lambda T: [T - 1]), "attention"),
    (lambda *a: tokenwise(*a, tokens=lambda T: range(T - 1)), "place 0 hears the last token"),
    (lambda *a: tokenwise(*a, tokens=lambda T: range(1, T)), "the last place hears token 0"),
    (lambda *a: tokenwise(*a, tokens=lambda T: [0, T - 1]), "place 2 hears token 1"),
    (lambda *a: tokenwise(*a, places=lambda t: slice(t + 1, None)), "place 0 hears the last"),
    (lambda *a: tokenwise(*a, places=lambda t: slice(0, t)), "attention"),
    (lambda *a: tokenwise(*a, new=lambda token: token + 1), "quite different numbers"),
    (lambda *a: tokenwise(*a, size=lambda change: change), "changes up and down"),
    (lambda *a: tokenwise(*a, size=lambda change: change[..., :1].abs()), "every feature"),
    (lambda layer, T, C: tokenwise(layer, 6, 8), "as they are given"),
    (lambda layer, T, C: tokenwise(layer, T, 8), "as they are given"),
    (lambda layer, T, C: "True", "True or False"),
]


@pytest.mark.parametrize(("mutant", "fragment"), TESTS)
def test_mistakes_in_the_test_of_layers(mutant, fragment):
    says(check.is_tokenwise(mutant), fragment)


def test_a_layer_that_looks_at_its_own_output_only_is_not_enough():
    def own_place_counts(layer, T, C):
        x = torch.randn(1, T, C)
        other = x.clone()
        other[0, 1] += 1
        return bool((layer(other) - layer(x)).abs().max() < 1e-5)

    says(check.is_tokenwise(own_place_counts), "at its own place")


def test_no_two_counting_mistakes_give_the_same_number():
    right = (4 + 2 * 5) * 7**2 + 4 * 7
    values = [right] + [int(value) for value in count_mistakes(7, 5).values()]
    assert len(set(values)) == len(values)
