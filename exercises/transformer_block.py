"""The exercises of chapter 08: the transformer block."""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from exercises.check import (
    call,
    checked,
    exercise,
    expect,
    expect_close,
    expect_gradients,
    expect_shape,
    normal,
    same,
    tensor,
)
from helpers.attention import attention, causal_mask

# --- 8.1: LayerNorm ---------------------------------------------------------------------------

EPS = 1e-5


def mean(x, dim=-1):
    return x.mean(dim, keepdim=True)


def variance(x, dim=-1, correction=0):
    return x.var(dim, correction=correction, keepdim=True)


def standardised(x, dim=-1, eps=EPS, **how):
    return (x - mean(x, dim)) / (variance(x, dim, **how) + eps).sqrt()


def without_keepdim(of_mean, of_variance):
    return lambda x: (x - x.mean(-1, of_mean)) / (x.var(-1, 0, keepdim=of_variance) + EPS).sqrt()


@exercise(
    # T = C: there a forgotten keepdim can go unnoticed by the shapes. Then a very small x, where
    # epsilon matters, and tokens whose features are all equal.
    inputs=[
        *((2 * normal(*shape, seed=seed) + 3,) for seed, shape in
          enumerate([(3, 5, 4), (1, 2, 6), (1, 4, 4), (3, 3, 3), (2, 1, 5)], 1)),
        (0.002 * normal(2, 3, 4, seed=4),), (torch.full((2, 2, 4), 7.0),),
    ],
    clash="Is keepdim=True missing? x.mean(-1) has shape (B, T), which does not line up with "
    "(B, T, C); x.mean(-1, keepdim=True) has (B, T, 1).",
    praise="each token is standardised over its own features.",
    backward=True,
)  # fmt: skip
def layer_norm(x):
    """my_norm(x): (B, T, C) to (B, T, C), each token with mean 0 and variance 1."""
    return standardised(x)


CORRECTED = (
    "Your variance divides by C − 1, PyTorch's habit. LayerNorm divides by C: "
    "`x.var(-1, correction=0, keepdim=True)`."
)
layer_norm.mistakes = {
    "You normed over the time (dim 1): every token moves the mean of all, and the future "
    "leaks. Use the features, dim -1.": lambda x: standardised(x, 1),
    "You normed over the batch (dim 0): a text would depend on its neighbours. Use the "
    "features, dim -1.": lambda x: standardised(x, 0),
    "You normed over all numbers at once. Each token has its own mean and variance: dim -1, "
    "with keepdim=True.": lambda x: standardised(x, (0, 1, 2)),
    "You normed each text as a whole. Each token has its own mean and variance: dim -1.":
        lambda x: standardised(x, (1, 2)),
    "You normed each feature over all tokens (batch normalisation). Use dim -1.":
        lambda x: standardised(x, (0, 1)),
    CORRECTED: lambda x: standardised(x, correction=1),
    CORRECTED + " And epsilon belongs under the root.":
        lambda x: (x - mean(x)) / (variance(x, correction=1).sqrt() + EPS),
    CORRECTED + " And epsilon is missing.": lambda x: standardised(x, eps=0, correction=1),
    "You divide by the variance. Divide by its root.":
        (lambda x: (x - mean(x)) / (variance(x) + EPS), lambda x: (x - mean(x)) / variance(x)),
    "The mean is not subtracted.": lambda x: x / (variance(x) + EPS).sqrt(),
    "You only subtract the mean. Divide by the root of the variance, too.": lambda x: x - mean(x),
    "The mean is not subtracted: you divide by the root mean square (RMSNorm, chapter 15).":
        lambda x: x / (mean(x**2) + EPS).sqrt(),
    "Epsilon belongs under the root: sqrt(variance + 1e-5).":
        lambda x: (x - mean(x)) / (variance(x).sqrt() + EPS),
    "Epsilon is missing: sqrt(variance + 1e-5).": lambda x: standardised(x, eps=0),
    "Epsilon is subtracted: add it, sqrt(variance + 1e-5).": lambda x: standardised(x, eps=-EPS),
    "Epsilon is in the variance already: add it once.": lambda x: standardised(x, eps=2 * EPS),
    "You gave back x itself.": lambda x: x,
    "You multiply by the root. Divide by it.": lambda x: (x - mean(x)) * (variance(x) + EPS).sqrt(),
    "You add the mean: subtract it.": lambda x: (x + mean(x)) / (variance(x) + EPS).sqrt(),
    "The sign is the other way round: x minus its mean.": lambda x: -standardised(x),
    "Mind the brackets: (x - mean) / root. In x - mean / root only the mean is divided.":
        lambda x: x - mean(x) / (variance(x) + EPS).sqrt(),
    "You divide by the length of the token. The variance is the *mean* of the squared "
    "distances, not their sum.":
        (lambda x: F.normalize(x - mean(x), dim=-1),
         lambda x: (x - mean(x)) / ((x - mean(x)).square().sum(-1, True) + EPS).sqrt()),
    "The mean is not subtracted, and you divide by the length of the token: divide the distance "
    "from the mean by the root of the variance.": lambda x: F.normalize(x, dim=-1),
    "The variance is the mean of the squared *distances from the mean*, not of x squared.":
        lambda x: (x - mean(x)) / (mean(x**2) + EPS).sqrt(),
    "The variance is the mean of the *squared* distances: you take their absolute values.":
        (lambda x: (x - mean(x)) / (mean((x - mean(x)).abs()) + EPS),
         lambda x: (x - mean(x)) / (mean((x - mean(x)).abs()) + EPS).sqrt()),
    "You divide by the range. Divide by the root of the variance.":
        (lambda x: (x - mean(x)) / (x.amax(-1, True) - x.amin(-1, True) + EPS),
         lambda x: (x - x.amin(-1, True)) / (x.amax(-1, True) - x.amin(-1, True) + EPS)),
    "You take the middle number (the median): take the mean.":
        lambda x: (x - x.median(-1, True).values) / (variance(x) + EPS).sqrt(),
    "Mean and variance are taken over different dimensions: dim -1 for both.":
        (*(lambda x, dim=dim: (x - mean(x, dim)) / (variance(x) + EPS).sqrt() for dim in (0, 1)),
         *(lambda x, dim=dim: (x - mean(x)) / (variance(x, dim) + EPS).sqrt() for dim in (0, 1))),
    "The mean is that of each token, but the variance is taken over all numbers. dim -1 for "
    "both.": lambda x: (x - mean(x)) / (x.var(correction=0) + EPS).sqrt(),
    "The variance is that of each token, but the mean is taken over all numbers. dim -1 for "
    "both.": lambda x: (x - x.mean()) / (variance(x) + EPS).sqrt(),
    "This is a softmax: LayerNorm subtracts the mean and divides by the root of the variance.":
        lambda x: x.softmax(-1),
    **{f"Your epsilon is {eps:g}. Here it is 0.00001, 1e-5.": partial(standardised, eps=eps)
       for eps in (1e-2, 1e-3, 1e-4, 1e-6, 1e-7, 1e-8)},
    "Your epsilon is next to nothing. Here 0.00001, 1e-5, is added to the variance.":
        (partial(standardised, eps=1e-12), lambda x: (x - mean(x)) / (variance(x).sqrt() + 1e-8),
         lambda x: (x - mean(x)) / variance(x).sqrt().clamp_min(EPS)),
    "Epsilon is added to the variance: it is no lower bound.":
        lambda x: (x - mean(x)) / variance(x).clamp_min(EPS).sqrt(),
    "keepdim=True is missing: token t's mean was subtracted from feature t (and where T and C "
    "differ, the shapes do not fit).": (
        without_keepdim(False, False), without_keepdim(False, True),
        # As long as T and C differ it may have been taken care of.
        lambda x: standardised(x) if x.shape[1] != x.shape[2] else torch.stack(
            [(t - t.mean(-1)) / (t.var(-1, correction=0) + EPS).sqrt() for t in x])),
    "keepdim=True is missing in the variance: token t's root divides feature t.":
        without_keepdim(True, False),
}  # fmt: skip


# --- 8.2: the gated feed-forward part ---------------------------------------------------------


@exercise(
    inputs=[(normal(B, T, C, seed=s), normal(C, h, seed=s + 1), normal(C, h, seed=s + 2),
             normal(h, C, seed=s + 3)) for B, T, C, h, s in
            ((2, 3, 4, 6, 10), (1, 5, 6, 4, 20), (3, 2, 5, 5, 30), (2, 1, 3, 2, 40))],
    clash="Mind the brackets: a * x @ W is (a * x) @ W. Make both products with x first.",
    praise="one path is bent and gates the other.",
    backward=True,
)  # fmt: skip
def gated(x, W_gate, W_up, W_out):
    """gated(x, W_gate, W_up, W_out): SwiGLU without biases, (B, T, C) to (B, T, C)."""
    return (F.silu(x @ W_gate) * (x @ W_up)) @ W_out


def bent(bend):
    """The mistake of another bend on the gate."""
    return lambda x, g, u, o: (bend(x @ g) * (x @ u)) @ o


gated.mistakes = {
    "The bend is missing: the gate is silu(x @ W_gate).": bent(lambda z: z),
    "You bent the wrong path: silu belongs to the gate, not to x @ W_up.":
        lambda x, g, u, o: ((x @ g) * F.silu(x @ u)) @ o,
    "You bent both paths. Only the gate is bent.":
        lambda x, g, u, o: (F.silu(x @ g) * F.silu(x @ u)) @ o,
    "You bent the product. Bend the gate, then multiply.":
        lambda x, g, u, o: F.silu((x @ g) * (x @ u)) @ o,
    "You bent the sum of the paths. Bend the gate, then multiply.":
        lambda x, g, u, o: F.silu(x @ g + x @ u) @ o,
    "You added the two paths. A gate multiplies: use *.":
        (lambda x, g, u, o: (F.silu(x @ g) + x @ u) @ o, lambda x, g, u, o: (x @ g + x @ u) @ o),
    "This gate is a sigmoid (GLU). silu(z) is z · sigmoid(z): use F.silu.": bent(torch.sigmoid),
    "This gate is a sigmoid on the wrong path: the gate is F.silu(x @ W_gate).":
        lambda x, g, u, o: ((x @ g) * (x @ u).sigmoid()) @ o,
    "This gate is a GELU. Use F.silu.": tuple(map(bent, (
        F.gelu, partial(F.gelu, approximate="tanh"), lambda z: z * (1.702 * z).sigmoid()))),
    "This gate is a relu. Use F.silu.": (bent(F.relu), bent(F.leaky_relu), bent(F.elu)),
    "This gate is a squared relu. Use F.silu.": bent(lambda z: F.relu(z) ** 2),
    "This gate is a tanh. Use F.silu.": (bent(torch.tanh), bent(lambda z: z * z.tanh())),
    "This gate is a softmax. Use F.silu.": bent(partial(F.softmax, dim=-1)),
    "This gate is a softplus. Use F.silu.": (bent(F.softplus), bent(F.mish)),
    "The bend belongs inside, on the gate: silu(x @ W_gate). You bent the result.":
        (lambda x, g, u, o: F.silu(((x @ g) * (x @ u)) @ o),
         lambda x, g, u, o: F.silu((F.silu(x @ g) * (x @ u)) @ o)),
    "You bent x before the product. Bend the product: silu(x @ W_gate).":
        lambda x, g, u, o: ((F.silu(x) @ g) * (x @ u)) @ o,
    "You bent the matrix. Bend the product: silu(x @ W_gate).":
        lambda x, g, u, o: ((x @ F.silu(g)) * (x @ u)) @ o,
    "The gate is bent twice.": bent(lambda z: F.silu(F.silu(z))),
    "The gate has one factor too many: silu(z) is z · sigmoid(z) already.":
        (bent(lambda z: z * F.silu(z)), bent(lambda z: F.silu(z) * z.sigmoid())),
    "W_gate is used on both paths. The second one is x @ W_up.":
        lambda x, g, u, o: (F.silu(x @ g) * (x @ g)) @ o,
    "W_up is used on both paths. The gate is silu(x @ W_gate).":
        lambda x, g, u, o: (F.silu(x @ u) * (x @ u)) @ o,
    "The gate is never multiplied with x @ W_up.": lambda x, g, u, o: F.silu(x @ g) @ o,
    "The gate is never used.":
        (lambda x, g, u, o: (x @ u) @ o, lambda x, g, u, o: F.silu(x @ u) @ o),
    "You added x. The skip is the block's business, not the feed-forward part's.":
        lambda x, g, u, o: x + (F.silu(x @ g) * (x @ u)) @ o,
    "The way back is missing: multiply by W_out.":
        (lambda x, g, u, o: F.silu(x @ g) * (x @ u), lambda x, g, u, o: F.silu(x @ g)),
    "The two paths are one behind the other: both start from x, then * joins them.":
        lambda x, g, u, o: (F.silu(x @ g) @ u.T @ u) @ o,
    "You gate the result: the gate multiplies x @ W_up, and W_out comes last.":
        lambda x, g, u, o: F.silu(x @ g) @ o * ((x @ u) @ o),
    "Join the paths entry by entry: F.silu(x @ W_gate) * (x @ W_up), with * and not @.":
        (lambda x, g, u, o: F.silu(x @ g) @ (x @ u) @ o, lambda x, g, u, o: F.silu(x @ g) @ x @ u),
    "The matrices are used as they are, x @ W: do not transpose them.":
        (lambda x, g, u, o: (F.silu(x @ g.T) * (x @ u.T)) @ o.T,
         lambda x, g, u, o: (F.silu(x @ g) * (x @ u)) @ o.T),
    "Mind the brackets: a * x @ W is (a * x) @ W. Make both products with x first.":
        lambda x, g, u, o: F.silu(x @ g) * x @ u @ o,
}  # fmt: skip


# --- 8.3: the block ---------------------------------------------------------------------------


def parts(C, seed):
    """Stand-ins for the four parts, all different, so that no two of them can be mixed up."""
    A, M = normal(C, C, seed=seed + 1), normal(C, C, seed=seed + 2)
    gain = normal(2, C, seed=seed + 3)
    functions = {
        "attention": lambda x: (x @ A).cumsum(1),  # mixes the tokens, and hears no future
        "mlp": lambda x: F.relu(x @ M),
        "norm_1": lambda x: gain[0] * standardised(x),
        "norm_2": lambda x: gain[1] * standardised(x),
    }
    for name, function in functions.items():
        function.__name__ = name
    return list(functions.values())


@exercise(
    inputs=[(normal(2, 5, 4, seed=40), *parts(4, 40)), (normal(3, 2, 6, seed=50), *parts(6, 50)),
            (normal(1, 1, 3, seed=60), *parts(3, 60)),
            (normal(3, 2, 6, seed=50), torch.zeros_like, torch.zeros_like, *parts(6, 50)[2:])],
    why=["", "", "", "attention and mlp give zeros here: only x is left."],
    praise="communicate, compute, and let the stream pass.",
    backward=True,
)  # fmt: skip
def block(x, attention, mlp, norm_1, norm_2):
    """block(x, attention, mlp, norm_1, norm_2): a pre-norm block, (B, T, C) to (B, T, C)."""
    x = x + attention(norm_1(x))
    return x + mlp(norm_2(x))


pre = block.right


def unchanged(x):
    return x


block.mistakes = {
    "Both skips are missing: you wrote x = f(x). The stream is replaced, and in a deep stack "
    "no gradient survives. Add: x = x + f(norm(x)).":
        (lambda x, a, m, n1, n2: m(n2(a(n1(x)))), lambda x, a, m, n1, n2: m(a(x))),
    "The skip around attention is missing: x = x + attention(norm_1(x)).":
        lambda x, a, m, n1, n2: (s := a(n1(x))) + m(n2(s)),
    "The skip around mlp is missing: x + mlp(norm_2(x)).":
        lambda x, a, m, n1, n2: m(n2(x + a(n1(x)))),
    "This is post-norm: the stream itself is normed after each addition. Norm what the layer "
    "reads: x + f(norm(x)).": lambda x, a, m, n1, n2: n2((s := n1(x + a(x))) + m(s)),
    "You overwrite the stream by its norm (x = norm(x)) before you add to it. The skip starts "
    "from x itself.": lambda x, a, m, n1, n2: (s := n2((r := n1(x)) + a(r))) + m(s),
    "The norms are missing: attention reads norm_1(x), mlp reads norm_2(x).":
        lambda x, a, m, n1, n2: pre(x, a, m, unchanged, unchanged),
    "mlp reads the stream without its norm: mlp(norm_2(x)).":
        lambda x, a, m, n1, n2: pre(x, a, m, n1, unchanged),
    "attention reads the stream without its norm: attention(norm_1(x)).":
        lambda x, a, m, n1, n2: pre(x, a, m, unchanged, n2),
    "mlp reads the old x. It comes second, and reads the stream after attention has written "
    "to it.": lambda x, a, m, n1, n2: x + a(n1(x)) + m(n2(x)),
    "The second skip starts from the old x, so what attention wrote is lost.":
        lambda x, a, m, n1, n2: x + m(n2(x + a(n1(x)))),
    "The second skip starts from the old x, and mlp reads it, too.":
        lambda x, a, m, n1, n2: x + m(n2(x)),
    "norm_1 is used twice. mlp has its own: norm_2.": lambda x, a, m, n1, n2: pre(x, a, m, n1, n1),
    "norm_2 is used twice. attention has its own: norm_1.":
        lambda x, a, m, n1, n2: pre(x, a, m, n2, n2),
    "The norms are swapped: norm_1 belongs to attention.":
        lambda x, a, m, n1, n2: pre(x, a, m, n2, n1),
    "The order is swapped: first communicate (attention), then compute (mlp).":
        lambda x, a, m, n1, n2: pre(x, m, a, n1, n2),
    "The order is swapped: first communicate (attention with norm_1), then compute (mlp with "
    "norm_2).": lambda x, a, m, n1, n2: pre(x, m, a, n2, n1),
    "attention is used twice: the second layer is mlp.":
        lambda x, a, m, n1, n2: pre(x, a, a, n1, n2),
    "mlp is used twice: the first layer is attention.":
        lambda x, a, m, n1, n2: pre(x, m, m, n1, n2),
    "You normed what the layers write, norm(f(x)). Norm what they read, f(norm(x)).":
        lambda x, a, m, n1, n2: (s := x + n1(a(x))) + n2(m(s)),
    "Only the attention half is there: mlp follows.": lambda x, a, m, n1, n2: x + a(n1(x)),
    "You gave back x itself.": lambda x, *_: x,
    "The first skip starts from norm_1(x). It starts from x: only attention reads the norm.":
        lambda x, a, m, n1, n2: (s := (r := n1(x)) + a(r)) + m(n2(s)),
    "The second skip starts from norm_2(x). It starts from the stream: only mlp reads the "
    "norm.": lambda x, a, m, n1, n2: (s := n2(x + a(n1(x)))) + m(s),
    "One skip around both parts. Each has its own: x = x + attention(…), then x + mlp(…).":
        lambda x, a, m, n1, n2: x + m(n2(a(n1(x)))),
    "mlp reads only what attention wrote. It reads the whole stream, x + attention(…).":
        lambda x, a, m, n1, n2: x + (r := a(n1(x))) + m(n2(r)),
    "Both skips are missing, and mlp reads the old x.": lambda x, a, m, n1, n2: a(n1(x)) + m(n2(x)),
    "The stream is normed at the end. Nothing norms the stream here: x + mlp(norm_2(x)).":
        (lambda x, a, m, n1, n2: n2(pre(x, a, m, n1, n2)),
         lambda x, a, m, n1, n2: n2((s := x + a(n1(x))) + m(s))),
    "The stream is normed between the layers: norm_2 is only for what mlp reads.":
        lambda x, a, m, n1, n2: (s := n1(x + a(n1(x)))) + m(n2(s)),
    "x is added once too often: what attention wrote to already contains it.":
        (lambda x, a, m, n1, n2: x + pre(x, a, m, n1, n2),
         lambda x, a, m, n1, n2: x + x + a(n1(x)) + m(n2(x + x + a(n1(x))))),
    "What attention wrote is added twice: the stream already contains it.":
        lambda x, a, m, n1, n2: pre(x, a, m, n1, n2) + a(n1(x)),
    "You subtract what the layers write: add it.":
        lambda x, a, m, n1, n2: (s := x - a(n1(x))) - m(n2(s)),
    "You multiply by what the layers write: add it.":
        lambda x, a, m, n1, n2: (s := x * a(n1(x))) * m(n2(s)),
    "You take the mean of x and what a layer writes: add them.":
        lambda x, a, m, n1, n2: ((s := (x + a(n1(x))) / 2) + m(n2(s))) / 2,
}  # fmt: skip


# --- 8.4: dropout, a check written by hand: no single value can show what chance does ----------


@checked
def dropout(answer):
    """my_dropout(x, p, training): zeros with probability p, the others divided by 1 − p."""
    x = normal(20, 30, 10, seed=60)
    x = x + 5 * x.sign()  # far from 0: a zero was dropped
    for p in (0.2, 0.7):
        what = f"my_dropout(x, {p}, True)"
        results = [
            expect_shape(call(answer, x, p, True, name="my_dropout"), x.shape, what)
            for _ in range(20)
        ]
        expect(not torch.stack(results).isnan().any(), f"{what} contains NaN.")
        _judge_choice(torch.stack(results) == 0, p)
        for got in results:
            _judge_scale(got, x, p)
    _judge_rest(answer, x)
    _judge_gradient(answer, x)
    return "random zeros in training, the mean is kept, and nothing happens afterwards."


EACH = "Each entry has its own chance: draw a number for each, `torch.rand(x.shape)`."


def _judge_choice(zero, p):
    """What is dropped; zero: (calls, *x.shape)."""
    share, counts = zero.float().mean().item(), zero.flatten(1).sum(1)
    expect(share > 0, "In training nothing was dropped.")
    expect(share < 1, "In training everything was dropped.")
    expect(
        set(counts.tolist()) != {0, zero[0].numel()},
        "Either all entries are dropped or none, one coin for them all. " + EACH,
    )
    together = [
        (zero.all(dim) | ~zero.any(dim)).float().mean() > 0.9 for dim in range(1, zero.dim())
    ]
    expect(
        not any(together),
        "Entries are dropped together: whole rows or columns, or the same ones in every text. "
        + EACH,
    )
    wrong = {
        "With `torch.randn` an entry is below p with another probability: use `torch.rand`, whose "
        "numbers lie evenly between 0 and 1.": 0.5 + 0.5 * math.erf(p / math.sqrt(2)),
        f"You drop with probability 1 − p: at p = {p} about {1 - p:.0%} of the entries are 0.":
            1 - p,
        f"Half of the entries are dropped, also at p = {p}: use p.": 0.5,
    }  # fmt: skip
    for diagnosis, probability in wrong.items():
        expect(abs(share - probability) > 0.01, diagnosis)
    expect(
        abs(share - p) < 0.01,
        f"About {p:.0%} of the entries should be 0 at p = {p}, but {share:.0%} are.",
    )
    expect(
        not (zero == zero[0]).all(),
        "All calls dropped the very same entries. The choice must be made anew in each step.",
    )
    expect(
        len(counts.unique()) > 1,
        "All calls dropped exactly the same number of entries. Whatever the others do: " + EACH,
    )


def _judge_scale(got, x, p):
    kept, target = got[got != 0], x.double()[got != 0]
    expect_close(kept, target / (1 - p), f"what my_dropout(x, {p}, True) keeps", mistakes={
        "Those that stay are not divided by 1 − p, so the mean falls.": target,
        "Those that stay are multiplied by 1 − p. Divide: they must make up for the others.":
            target * (1 - p),
        "Those that stay are divided by p. Divide by 1 − p, the share that stays.": target / p,
        "Those that stay are multiplied by p. Divide by 1 − p, the share that stays.": target * p,
        "Those that stay are multiplied by 1 + p. Divide by 1 − p.": target * (1 + p),
        "Those that stay are divided by 1 − p twice.": target / (1 - p) ** 2,
        "Those that stay are divided by the root of 1 − p. Divide by 1 − p.":
            target / (1 - p) ** 0.5,
        "You divide by the share that happened to stay. Divide by 1 − p.":
            target * x.numel() / max(len(kept), 1),
    })  # fmt: skip


def _judge_rest(answer, x):
    """Out of training, at p = 0, and for x of other shapes."""
    for p in (0.2, 0.7):
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
            "Out of training x comes back as it is, without a factor p.": x * p,
        })  # fmt: skip
    expect_close(call(answer, x, 0.0, True, name="my_dropout"), x, "my_dropout(x, 0.0, True)")
    for y in (x.flatten(), x[0], x.unflatten(0, (4, 5))):
        what = f"my_dropout(x, 0.4, True) for x of shape {tuple(y.shape)}"
        got = expect_shape(call(answer, y, 0.4, True, name="my_dropout"), y.shape, what)
        expect_close(got[got != 0], y[got != 0] / 0.6, f"what {what} keeps")


def _judge_gradient(answer, x):
    """What comes back is 0 where an entry was dropped, and 1 / (1 − p) elsewhere."""
    for training in (True, False):
        leaf = x.clone().requires_grad_()
        out = torch.as_tensor(call(answer, leaf, 0.2, training, name="my_dropout"))
        got = torch.autograd.grad(out.sum(), leaf)[0] if out.requires_grad else None
        expect_gradients([got], [out.detach() / x], f"my_dropout(x, 0.2, {training})")


# --- 8.5: counting ----------------------------------------------------------------------------


@exercise(
    inputs=[(7, 5), (10, 4), (7, 1), (64, 3)],
    praise="(4 + 2e)C² in the matrices, 4C in the norms.",
    tolerance=1e-9,
)
def block_parameters(C, e):
    """block_parameters(C, e): the parameters of a block of width C with the expansion e."""
    return (4 + 2 * e) * C**2 + 4 * C


block_parameters.mistakes = {
    "The norms are missing: two of them, with a gain and a shift of C numbers each.":
        lambda C, e: (4 + 2 * e) * C**2,
    "A norm has a gain and a shift: 2C numbers each, and there are two norms.":
        lambda C, e: (4 + 2 * e) * C**2 + 2 * C,
    "A norm has 2C numbers, not two: a gain and a shift for each feature.":
        (lambda C, e: (4 + 2 * e) * C**2 + 4, lambda C, e: (4 + 2 * e) * C**2 + 2),
    "You counted three norms, or gave one a third vector. There are two, with 2C numbers each.":
        lambda C, e: (4 + 2 * e) * C**2 + 6 * C,
    "A norm has vectors of C numbers, no matrices.": (
        lambda C, e: (4 + 2 * e) * C**2 + 4 * C**2, lambda C, e: (4 + 2 * e) * C**2 + 2 * C**2),
    "You counted three matrices in attention. The output projection is the fourth.":
        lambda C, e: (3 + 2 * e) * C**2 + 4 * C,
    "The feed-forward part has two matrices, up and output.":
        lambda C, e: (4 + e) * C**2 + 4 * C,
    "You counted the feed-forward part with three matrices. Only a gated one has three.":
        lambda C, e: (4 + 3 * e) * C**2 + 4 * C,
    "You counted the biases of the feed-forward part. It has none here.":
        lambda C, e: (4 + 2 * e) * C**2 + 5 * C + e * C,
    "You counted the biases of attention. It has none here.":
        lambda C, e: (4 + 2 * e) * C**2 + 8 * C,
    "You counted biases of the matrices. There are none here.":
        lambda C, e: (4 + 2 * e) * C**2 + 9 * C + e * C,
    "Attention has four matrices: query, key, value and output.":
        (lambda C, e: (1 + 2 * e) * C**2 + 4 * C, lambda C, e: (2 + 2 * e) * C**2 + 4 * C),
    "A norm has a gain and a shift, C numbers each. You counted one gain.":
        lambda C, e: (4 + 2 * e) * C**2 + C,
    "up has shape (C, e·C), output (e·C, C): only one side is wider.":
        (lambda C, e: 4 * C**2 + 2 * (e * C) ** 2 + 4 * C,
         lambda C, e: 4 * C**2 + (e * C) ** 2 + 4 * C),
    "The wide side has e·C numbers: multiply C by e.":
        (lambda C, e: 4 * C**2 + 2 * C * (C + e) + 4 * C, lambda C, e: 4 * C**2 + 2 * C * e + 4 * C,
         lambda C, e: 4 * C**2 + 2 * C**2 + 4 * C, lambda C, e: 4 * C**2 + 2 * C**e + 4 * C),
    "A matrix of shape (C, C) has C·C numbers.": lambda C, e: 4 * C + 2 * e * C + 4 * C,
    "Only the feed-forward part and the norms are counted. Add attention.":
        lambda C, e: 2 * e * C**2 + 4 * C,
    "Only attention and the norms are counted. Add the feed-forward part.":
        lambda C, e: 4 * C**2 + 4 * C,
    "Only attention is counted. Add the feed-forward part and the norms.": lambda C, e: 4 * C**2,
    "Only the feed-forward part is counted. Add attention and the norms.":
        lambda C, e: 2 * e * C**2,
    "The hidden width is e·C, whatever e is: you put 4 for it.": lambda C, e: 12 * C**2 + 4 * C,
    "The expansion widens the feed-forward part only.":
        (lambda C, e: (4 * e + 2 * e) * C**2 + 4 * C, lambda C, e: 6 * e * C**2 + 4 * e * C),
}  # fmt: skip


# --- 8.6: a test, tried on layers --------------------------------------------------------------


class Layer(nn.Module):
    """A function as a layer, under the name by which the check speaks of it."""

    def __init__(self, name, function):
        super().__init__()
        self.__name__, self.function = name, function

    def forward(self, x):
        return self.function(x)


def moving(start, end, feature=slice(None), share=1.0, of=unchanged):
    """Place `end` also hears place `start`, all of it or one feature; share: how much of it."""

    def function(x):
        out = x.clone()
        out[:, end, feature] += share * of(x[:, start, feature])
        return out

    return function


def heard(x):
    """Causal attention with fixed matrices: (B, T, 8) to (B, T, 8)."""
    q, k, v = (x @ normal(8, 8, seed=seed) for seed in (61, 62, 63))
    return attention(q, k, v, causal_mask(x.shape[1]))[0]


OWN = "A token may change the output at its own place, and here it changes no other."
EVERY = "Do you change every token, and look at every place?"
SIGN = "Do you look at every feature, and at changes up and down? (.abs() before .amax)"
LAYERS = {  # name → (function, what to say about it)
    "Identity": (unchanged, OWN),
    "Linear": (lambda x: x @ normal(8, 8, seed=64), OWN),
    "LayerNorm": (standardised, OWN),
    "plus_a_table_of_places": (
        lambda x: x + torch.arange(x.shape[1])[:, None],
        "The places are treated differently, but no token changes another one."),
    "rounded": (lambda x: x + 1e-6 * x.sum((1, 2), keepdim=True).sin(),
                "Differences below 1e-5 are rounding."),
    "attention": (heard, "Later tokens hear earlier ones."),
    "norm_over_the_time": (partial(standardised, dim=1), "Every token moves the mean of all."),
    **{f"place_{end}_hears_{start}": (moving(start, end), EVERY)
       for start, end in ((-1, 0), (0, -1), (1, 2), (2, 1), (-2, -1), (3, 1))},
    "norm_then_attention": (
        lambda x: heard(standardised(x)),
        "One number added to all features of a token, or times all, is taken away by the norm. "
        "Put quite different numbers into the token."),
    "RMSNorm_then_attention": (
        lambda x: heard(F.rms_norm(x, x.shape[-1:])),
        "A number times all features is taken away by the norm. Put quite different ones in."),
    "attention_then_LayerNorm": (
        lambda x: standardised(heard(x), eps=1e-9),
        "After a norm each token has the same mean and length: compare its features themselves."),
    "attention_then_RMSNorm": (
        lambda x: F.rms_norm(heard(x), x.shape[-1:]),
        "After a norm each token has the same length: compare its features themselves."),
    "place_0_hears_a_square": (
        moving(1, 0, of=torch.square), "Does the new token differ by more than its sign?"),
    "times_the_token_before": (
        lambda x: x * x.roll(1, 1), "Zeros hide a product: use numbers drawn at random."),
    "feature_0_hears_feature_3": (
        lambda x: x + x[:, 1:2, 3:4] * torch.eye(*x.shape[1:]) * torch.eye(8)[0],
        "Do you change every feature, and look at every feature?"),
    "place_0_hears_a_little": (
        moving(1, 0, share=3e-5, of=lambda y: (1000 * y).sin()),
        "Only differences below 1e-5 are rounding."),
    **{f"place_{end}_hears_feature_{c}": (moving(start, end, c, share), SIGN)
       for c in range(8) for start, end, share in ((1, 0, 1.0), (2, 3, -1.0))},
}  # fmt: skip


@exercise(
    inputs=[(Layer(name, f), T, 8) for name, (f, _) in LAYERS.items() for T in (6, 4)],
    why=[why for _, why in LAYERS.values() for T in (6, 4)],
    praise="a test that finds any leak, in either direction.",
)
def is_tokenwise(layer, T, C):
    """is_tokenwise(layer, T, C): does no token of (1, T, C) change the output at another place?"""
    return testing()(layer, T, C)


def testing(
    tokens=range, places=lambda change, t: change, new=torch.randn_like, start=torch.randn,
    size=lambda a, b: (a - b).abs().amax((0, 2)), tolerance=1e-5, own=False,
):  # fmt: skip
    """The test, with what may go wrong in it."""

    @torch.no_grad()
    def test(layer, T, C):
        x = start(1, T, C)
        for t in tokens(T):
            other = x.clone()
            other[0, t] = new(x[0, t])
            change = size(layer(other), layer(x))
            if not own:
                change[t] = 0
            if places(change, t).gt(tolerance).any():
                return False
        return True

    return test


is_tokenwise.mistakes = {
    "You say True to everything: attention is not token by token.": lambda *_: True,
    "You say False to everything, also to nn.Identity(). A change at its own place is allowed: "
    "look at the other places only.": (lambda *_: False, testing(own=True)),
    "It is the other way round: True if no token changes another place.":
        lambda *given: not testing()(*given),
    "You change token 0 only: change every token in turn.": testing(lambda T: [0]),
    "You change the last token only: change every token in turn.": testing(lambda T: [T - 1]),
    "You change token 1 only: change every token in turn.": testing(lambda T: [1]),
    "The last token is never changed: change every token in turn.": testing(lambda T: range(T - 1)),
    "Token 0 is never changed: change every token in turn.": testing(lambda T: range(1, T)),
    "You change the first and the last token only: change every token in turn.":
        testing(lambda T: [0, T - 1]),
    "You look at later places only: earlier ones must not change either.":
        testing(places=lambda change, t: change[t + 1 :]),
    "You look at earlier places only: later ones must not change either.":
        testing(places=lambda change, t: change[:t]),
    "You look at place 0 only: no other place may change.":
        testing(places=lambda change, t: change[:1]),
    "You look at the last place only: no other place may change.":
        testing(places=lambda change, t: change[-1:]),
    "You look at the next place only: no other place may change.":
        testing(places=lambda change, t: change[t + 1 : t + 2]),
    "You add one number to all features. A norm takes it away: put quite different numbers into "
    "the token, torch.randn(C).": testing(new=lambda token: token + 1),
    "You multiply the token. A norm takes that away: put quite different numbers into it, "
    "torch.randn(C).": testing(new=lambda token: 3 * token),
    "You turn the sign of the token. A square does not notice: put quite different numbers into "
    "it, torch.randn(C).": testing(new=lambda token: -token),
    "You change one feature only. Put new numbers into all of them: other[0, t] = torch.randn(C).":
        testing(new=lambda token: token + torch.eye(len(token))[0]),
    "You begin with zeros, which hide a product. Begin with torch.randn(1, T, C).":
        testing(start=torch.zeros),
    "A change down is a change: take `.abs()` before the maximum.":
        testing(size=lambda a, b: (a - b).amax((0, 2))),
    "You look at one feature of the output only: look at all of them.":
        (testing(size=lambda a, b: (a - b)[0, :, 0].abs()),
         testing(size=lambda a, b: (a - b)[0, :, -1].abs())),
    "Up and down cancel in a sum or mean: take `.abs()`, then the maximum over the features.":
        testing(size=lambda a, b: (a - b).sum((0, 2)).abs()),
    "Different tokens can have the same length: compare their features.":
        testing(size=lambda a, b: (a.norm(dim=-1) - b.norm(dim=-1))[0].abs()),
    "Your tolerance is too wide: differences from 1e-5 on count.":
        tuple(testing(tolerance=tolerance) for tolerance in (0.1, 1e-2, 1e-3)),
    "You show the layer single tokens. Place 2 may be treated differently from place 0: change a "
    "token of the whole input, and look at the others.": lambda layer, T, C: (
        x := torch.randn(1, T, C), out := layer(x),
        all(torch.allclose(layer(x[:, t : t + 1]), out[:, t : t + 1], atol=1e-5)
            for t in range(T)))[-1],
    "You shuffle the tokens. That tests whether the order matters, not whether they meet.":
        lambda layer, T, C: torch.allclose(layer((x := torch.randn(1, T, C)).flip(1)),
                                           layer(x).flip(1), atol=1e-5),
    "You compare to the last digit: differences below 1e-5 are rounding.": testing(tolerance=0.0),
}  # fmt: skip


@is_tokenwise.then
def with_the_sizes_given(answer):
    shapes = set()
    layer = Layer("Identity", lambda x: shapes.add(tuple(x.shape[-2:])) or x.clone())
    got = call(answer, layer, 3, 5, name="is_tokenwise")
    expect(
        (3, 5) in shapes,
        "is_tokenwise(layer, 3, 5) did not show the layer an input of shape (1, 3, 5): use T and C "
        "as they are given.",
    )
    expect(same(got, True), "is_tokenwise(nn.Identity(), 3, 5) is True.")
