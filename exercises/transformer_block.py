"""The exercises of the chapter on the transformer block."""

import torch
import torch.nn.functional as F

from exercises.check import (
    NotAttempted,
    NotYet,
    checked,
    exercise,
    expect,
    normal,
    reported,
    tensor,
)
from exercises.multi_head import fused_multi_head, run

# --- 8.1: a feed-forward part by hand -----------------------------------------------------------

SUMS = torch.arange(4, dtype=torch.float64)  # how many of the three are capitals
WANTED = torch.tensor([0.0, 1.0, 0.0, 1.0], dtype=torch.float64)


def written(numbers):
    return ", ".join(f"{n:.3g}".replace("-", "−") for n in (numbers + 0.0).tolist())


@checked
def three(answer):
    """three: b_up and W_out of a feed-forward part that says 1 for one capital of three, or all."""
    if isinstance(answer, (tuple, list)) and any(part is ... for part in answer):
        raise NotAttempted
    expect(
        isinstance(answer, (tuple, list)) and len(answer) == 2,
        "Set three to a pair, b_up and W_out: (torch.tensor([0.0, -1.0]), …).",
    )
    b_up, W_out = (tensor(part, name) for part, name in zip(answer, ("b_up", "W_out"), strict=True))
    expect(
        b_up.dim() == 1 and b_up.shape == W_out.shape and len(b_up) > 0,
        "b_up and W_out are lists of h numbers each: one for each hidden number.",
    )
    got = F.relu(SUMS[:, None] + b_up) @ W_out
    if torch.allclose(got, WANTED, atol=1e-4):
        n = len(b_up)
        expect(n <= 3, f"All four answers are right, but you use {n} hidden numbers: 3 are enough.")
        return "Each hidden number bends the line once."
    mistakes = {
        "Yours gives 1 for two capitals and 0 for one or three: it is the wrong way round.":
            [0.0, 0.0, 1.0, 0.0],
        "Two capitals should give 0, and yours gives 1.": [0.0, 1.0, 1.0, 1.0],
        "The weights add to the *slope*: to turn it from +1 to −1 takes −2, and back again +2.":
            [0.0, 1.0, 1.0, 2.0],
    }  # fmt: skip
    for says, values in mistakes.items():
        expect(not torch.allclose(got, torch.tensor(values).double(), atol=1e-4), says)
    swapped = F.relu(SUMS[:, None] + W_out) @ b_up
    expect(
        not torch.allclose(swapped, WANTED, atol=1e-4),
        "The two are in the wrong order: first b_up, then W_out.",
    )
    minus = F.relu(SUMS[:, None] - b_up) @ W_out
    expect(
        not torch.allclose(minus, WANTED, atol=1e-4),
        "b_up is *added*: to begin at s = 1 it has to be −1.",
    )
    expect(
        not torch.allclose(got[:3], WANTED[:3], atol=1e-4),
        f"Right for none, one and two capitals; for three yours gives {written(got[3:])}. From "
        "s = 2 on the line has to rise by 1 again.",
    )
    raise NotYet(f"For 0, 1, 2, 3 capitals yours gives {written(got)}. It should give 0, 1, 0, 1.")


# --- 8.2: run the experiment and decide -----------------------------------------------------------


@checked
def deeper(answer):
    """deeper: the losses with the block twice and with a silenced copy, and the letter of why."""
    wanted = 'Set deeper to a triple: the two losses and a letter, (2.0, 2.0, "a").'
    twice, quiet, letter = reported(answer, (2.0, 2.0, "a"), wanted)
    expect(letter in ("a", "b", "c"), 'The third of the triple should be "a", "b" or "c".')
    expect(
        all(LOWEST < loss < 4.5 for loss in (twice, quiet)),
        "Such a reader cannot have these losses: it had a little above 2 before.",
    )
    expect(
        quiet < BLOCKLESS or twice > quiet,
        "With the silenced copy the loss is as if there were no block: was the first one silenced, "
        "too? `silenced` changes the block that it is given. Give it a copy, `copy.deepcopy`.",
    )
    expect(
        twice - quiet > -APART,
        "The two seem to be swapped: first the loss with the copy, then the loss with the silenced "
        "one.",
    )
    expect(
        quiet < HIGHEST and twice < 3,
        "Too high: a silenced copy adds nothing, and the loss is what it was. Are these bits? Is "
        "the copy *between* the block and the last norm, and silenced for the second loss?",
    )
    expect(
        twice - quiet > APART,
        "The copy adds once more what it has learned, to a stream that it has never seen, so the "
        "loss rises. Yours does not. (`silenced` changes the block itself: measure the copy "
        "first.)",
    )
    expect(
        letter != "a",
        "A gradient asks what would change if a number did. Nothing is added now; would something "
        "be if a number of the zeroed matrix were not 0? Print the gradients.",
    )
    expect(
        letter != "c",
        "What lies before a zero matrix gets its gradient through it, times 0. Print the "
        "gradients of `query` or `up`, and of `output`.",
    )
    return "It adds nothing at first, and has all it needs to learn."


LOWEST, HIGHEST, BLOCKLESS, APART = 1.9, 2.2, 2.8, 0.03


# --- 8.3: a whole block ---------------------------------------------------------------------------

EPS = 1e-5


def mean(x, dim=-1):
    return x.mean(dim, keepdim=True)


def variance(x, dim=-1, correction=0):
    return x.var(dim, correction=correction, keepdim=True)


def standardised(x, dim=-1, eps=EPS, **how):
    return (x - mean(x, dim)) / (variance(x, dim, **how) + eps).sqrt()


def gelu(z):
    return F.gelu(z, approximate="tanh")


def side_by_side(x, heard, computed, norm):
    """x + attention(norm(x)) + ff(norm(x)); others join the parts in another way."""
    read = norm(x)
    return x + heard(read) + computed(read)


def parallel(norm=standardised, listen=None, bend=gelu, join=side_by_side):
    """The block with one mistake."""

    def answer(x, W_qkv, W_o, W_up, W_out, n_head):
        return join(
            x,
            lambda y: (listen or run())(y, W_qkv, W_o, n_head),
            lambda y: bend(y @ W_up) @ W_out,
            norm,
        )

    return answer


def weights(C, h, seed):
    sizes = ((C, 3 * C, 1.0), (C, C, 1.0), (C, h, 2.0), (h, C, 2.0))
    return [s * normal(a, b, seed=seed + i) * a**-0.5 for i, (a, b, s) in enumerate(sizes)]


@exercise(
    # Then a very small x, where epsilon matters, and parts that add nothing.
    inputs=[
        *((2 * normal(B, T, C, seed=100 * T + C) + 1, *weights(C, h, 10 * T + C), H)
          for B, T, C, h, H in ((2, 5, 8, 12, 2), (1, 3, 6, 9, 3), (3, 4, 12, 7, 4),
                                (1, 1, 4, 6, 2), (2, 6, 6, 24, 1))),
        (0.003 * normal(2, 3, 4, seed=4), *weights(4, 5, 40), 2),
        (normal(2, 5, 8, seed=50), *(W * on for W, on in
                                     zip(weights(8, 6, 50), (1, 0, 1, 0), strict=True)), 2),
    ],
    why=[*[""] * 6, "W_o and W_out are zero here: only x is left."],
    praise="One norm for both parts, and the residual stream passes.",
    clash="Are q, k and v (B, H, T, hs), and the two of the norm (B, T, 1), with keepdim=True?",
    backward=True,
)  # fmt: skip
def parallel_block(x, W_qkv, W_o, W_up, W_out, n_head):
    """parallel_block(x, W_qkv, W_o, W_up, W_out, n_head): both parts read one norm, (B, T, C)."""
    return parallel()(x, W_qkv, W_o, W_up, W_out, n_head)


NO_NORM = "The norm is missing: both parts read norm(x)."
EPSILON = "Epsilon belongs under the root: sqrt(variance + 1e-5)."
parallel_block.mistakes = {
    "That is the block of section 8, one part after the other. Here the feed-forward part reads "
    "the same norm(x) as attention.":
        parallel(join=lambda x, a, f, n: (s := x + a(n(x))) + f(n(s))),
    "Your feed-forward part comes first, and attention reads its result. Here both read the same "
    "norm(x).": parallel(join=lambda x, a, f, n: (s := x + f(n(x))) + a(n(s))),
    "The skip connection is missing: add x.": parallel(join=lambda x, a, f, n: a(n(x)) + f(n(x))),
    "Your skip connection adds norm(x). Add x itself: only the parts read the norm.":
        parallel(join=lambda x, a, f, n: n(x) + a(n(x)) + f(n(x))),
    "x is added twice.": parallel(join=lambda x, a, f, n: x + x + a(n(x)) + f(n(x))),
    "The output of attention is added twice.":
        parallel(join=lambda x, a, f, n: x + 2 * a(n(x)) + f(n(x))),
    "The feed-forward part reads the output of attention. Here both read norm(x).": (
        parallel(join=lambda x, a, f, n: x + f(a(n(x)))),
        parallel(join=lambda x, a, f, n: x + a(n(x)) + f(a(n(x)))),
        parallel(join=lambda x, a, f, n: x + a(n(x)) + f(n(a(n(x))))),
        parallel(join=lambda x, a, f, n: x + a(n(x)) + f(n(x) + a(n(x))))),
    "This is post-norm: the sum is normed. Norm what the parts read, and leave the sum alone.": (
        parallel(join=lambda x, a, f, n: n(x + a(x) + f(x))),
        parallel(join=lambda x, a, f, n: n(x + a(n(x)) + f(n(x))))),
    NO_NORM: parallel(norm=lambda x: x),
    "The feed-forward part reads x without its norm.":
        parallel(join=lambda x, a, f, n: x + a(n(x)) + f(x)),
    "Attention reads x without its norm.": parallel(join=lambda x, a, f, n: x + a(x) + f(n(x))),
    "You normed what the parts write. Norm what they read.":
        parallel(join=lambda x, a, f, n: x + n(a(x)) + n(f(x))),
    "Attention is missing.": parallel(join=lambda x, a, f, n: x + f(n(x))),
    "The feed-forward part is missing.": parallel(join=lambda x, a, f, n: x + a(n(x))),
    "You returned x itself. Add both parts to it.": lambda x, *_: x,
    "You normed over time (dim 1): every token moves the mean of all, and the future leaks. Use "
    "the features, dim -1.": parallel(norm=lambda x: standardised(x, 1)),
    "You normed over the batch (dim 0): a text would depend on its neighbours. Use the "
    "features, dim -1.": parallel(norm=lambda x: standardised(x, 0)),
    "You normed over all numbers at once. Each token has its own mean and variance: dim -1, "
    "with keepdim=True.": (parallel(norm=lambda x: standardised(x, (0, 1, 2))),
                           parallel(norm=lambda x: standardised(x, (1, 2)))),
    "Your variance divides by C − 1, PyTorch's default. LayerNorm divides by C: `x.var(-1, "
    "correction=0, keepdim=True)`.":
        parallel(norm=lambda x: standardised(x, correction=1)),
    "You divide by the variance. Divide by its root.":
        parallel(norm=lambda x: (x - mean(x)) / (variance(x) + EPS)),
    "The mean is not subtracted.": parallel(norm=lambda x: x / (variance(x) + EPS).sqrt()),
    "The mean is not subtracted: this is RMSNorm.":
        parallel(norm=lambda x: x / (mean(x**2) + EPS).sqrt()),
    "You only subtract the mean. Divide by the root of the variance, too.":
        parallel(norm=lambda x: x - mean(x)),
    EPSILON: parallel(norm=lambda x: (x - mean(x)) / (variance(x).sqrt() + EPS)),
    "Epsilon is missing or different: sqrt(variance + 1e-5).": tuple(
        parallel(norm=lambda x, eps=eps: standardised(x, eps=eps)) for eps in (0, 1e-6, 1e-8)),
    "The activation function is missing: gelu(norm(x) @ W_up) @ W_out.": parallel(bend=lambda z: z),
    "This is the exact GELU. Use GPT-2's: approximate=\"tanh\".": parallel(bend=F.gelu),
    "Your activation function is ReLU. Use F.gelu.": parallel(bend=F.relu),
    "Your activation function is SiLU. Use F.gelu.": parallel(bend=F.silu),
    "The activation function belongs between the two matrices: gelu(norm(x) @ W_up) @ W_out.":
        (parallel(join=lambda x, a, f, n: x + a(n(x)) + gelu(f(n(x)))),
         lambda x, q, o, u, W, H: x + run()(standardised(x), q, o, H)
         + gelu(standardised(x) @ u @ W)),
}  # fmt: skip

# What goes wrong inside attention is told as in the exercise that asked for it alone.
TOLD_OTHERWISE = "You added x", "You squeeze", "These are the outputs", "No token listens"
parallel_block.mistakes |= {
    says: tuple(parallel(listen=one) for one in (wrong if isinstance(wrong, tuple) else (wrong,)))
    for says, wrong in fused_multi_head.mistakes.items()
    if not says.startswith(TOLD_OTHERWISE)
}
