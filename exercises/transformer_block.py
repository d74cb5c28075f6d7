"""The exercises of the chapter on the transformer block."""

import torch
import torch.nn.functional as F

from exercises.check import (
    WrongAnswer,
    checked,
    diagnose,
    exercise,
    expect,
    normal,
    reported,
    same,
)
from exercises.multi_head import fused_multi_head

# --- 8.1: a feed-forward network by hand --------------------------------------------------------

SUMS = torch.arange(4.0)  # how many of the three are capitals
WANTED = [0.0, 1.0, 0.0, 1.0]


def written(numbers):
    return ", ".join(f"{n:.3g}".replace("-", "−") for n in (numbers + 0.0).tolist())


@checked
def three(answer):
    """three: b_up and W_out of a feed-forward network: 1 for one capital of three, or for all."""
    wanted = "Set three to a pair, b_up and W_out: (torch.tensor([0.0, -1.0]), …)."
    b_up, W_out = map(torch.tensor, reported(answer, ([0.0], [1.0]), wanted))
    expect(
        b_up.shape == W_out.shape and len(b_up) > 0,
        "b_up and W_out are lists of h numbers each, one for each hidden number.",
    )

    def output(b_up=b_up, W_out=W_out):
        return F.relu(SUMS[:, None] + b_up) @ W_out

    got, n = output(), len(b_up)
    if same(got, WANTED):
        expect(n <= 3, f"All four answers are right, but you use {n} hidden numbers: 3 are enough.")
        return "Each hidden number changes the slope of the line once."
    expect(not same(got, [0, 1, 1, 1]), "Two capitals should give 0, and yours gives 1.")
    expect(
        not same(got, [0, 1, 1, 2]),
        "The weights add to the *slope*: from +1 to −1 takes −2, and back again takes +2.",
    )
    expect(
        not same(output(W_out, b_up), WANTED),
        "The two are in the wrong order: first b_up, then W_out.",
    )
    expect(not same(output(-b_up), WANTED), "b_up is *added*: to begin at s = 1 it has to be −1.")
    expect(
        not same(got[:3], WANTED[:3]),
        f"Right for none, one and two capitals; for three yours gives {written(got[3:])}. From "
        "s = 2 on, the line has to rise by 1 again.",
    )
    raise WrongAnswer(
        f"For 0, 1, 2, 3 capitals yours gives {written(got)}. It should give 0, 1, 0, 1."
    )


# --- 8.2: run the experiment and decide -----------------------------------------------------------


@checked
def deeper(answer):
    """deeper: the losses with the block twice and with a silenced copy, and a letter."""
    wanted = 'Set deeper to a triple: the two losses and a letter, (2.0, 2.0, "a").'
    twice, quiet, letter = reported(answer, (2.0, 2.0, "a"), wanted)
    diagnose("""
        The third of the triple should be "a", "b" or "c".
            letter not in ("a", "b", "c")
        Such a model cannot have these losses: it had a little above 2 before.
            not all(LOWEST < loss < 4.5 for loss in (twice, quiet))
        With the silenced copy, the loss is as if there were no block: was the first one silenced
        as well? `silenced` changes the block that it is given. Give it a copy: `copy.deepcopy`.
            quiet >= BLOCKLESS and twice <= quiet
        The two seem to be swapped: first the loss with the copy, then the loss with the silenced
        copy.
            twice - quiet <= -APART
        Too high: a silenced copy adds nothing, and the loss is what it was. Are these bits? Is
        the copy *after* the trained block, in `model.layers`, and silenced for the second loss?
            quiet >= HIGHEST or twice >= 3
        The copy adds once more what it has learned, to a stream that it has never seen, so the
        loss rises. Yours does not. `silenced` changes the block itself, so measure the copy
        first.
            twice - quiet <= APART
        A gradient says how the loss would change if a number changed. Nothing is added now, but
        would something be added if a number in a zeroed matrix were not 0? Print the gradients.
            letter == "a"
        What comes before a zero matrix gets its gradient through that matrix, times 0. Print
        the gradients of `query` or `up`, and of `output`.
            letter == "c"
    """)
    return "It adds nothing at first, and has all that it needs to learn."


LOWEST, HIGHEST, BLOCKLESS, APART = 1.9, 2.3, 2.8, 0.03


# --- 8.3: a whole block ---------------------------------------------------------------------------


def weights(C, h, seed):
    sizes = ((C, 3 * C, 1.0), (C, C, 1.0), (C, h, 2.0), (h, C, 2.0))
    return [s * normal(a, b, seed=seed + i) * a**-0.5 for i, (a, b, s) in enumerate(sizes)]


def without_outputs(C, h, seed):
    W_qkv, W_o, W_up, W_out = weights(C, h, seed)
    return W_qkv, 0 * W_o, W_up, 0 * W_out


SIZES = [(2, 5, 8, 12, 2), (1, 3, 6, 9, 3), (3, 4, 12, 7, 4), (1, 1, 4, 6, 2), (2, 6, 6, 24, 1)]


@exercise(
    # Then a very small x, where epsilon matters, and layers that add nothing.
    inputs=lambda draw: [
        *(
            (2 * normal(B, T, C, seed=100 * T + C) + 1, *weights(C, h, 10 * T + C), H)
            for B, T, C, h, H in SIZES
        ),
        (0.003 * normal(2, 3, 4, seed=4), *weights(4, 5, 40), 2),
        (normal(2, 5, 8, seed=50), *without_outputs(8, 6, 50), 2),
    ],
    why=[*[""] * 6, "W_o and W_out are zero here: only x is left."],
    on_success="One norm for both layers, and a residual stream that nothing replaces.",
    on_shape_error="Are q, k and v (B, H, T, hs), and the two of the norm (B, T, 1), with "
    "keepdim=True?",
    backward=True,
)
def parallel_block(x, W_qkv, W_o, W_up, W_out, n_head):
    """parallel_block(x, W_qkv, W_o, W_up, W_out, n_head): both layers get one norm, (B, T, C)."""
    variance = x.var(-1, correction=0, keepdim=True)
    y = (x - x.mean(-1, keepdim=True)) / (variance + 1e-5).sqrt()
    attention = fused_multi_head.right(y, W_qkv, W_o, n_head)
    ff = F.gelu(y @ W_up, approximate="tanh") @ W_out
    return x + attention + ff


UNMASKED = fused_multi_head.slip(".tril() →")
UNSCALED = fused_multi_head.slip("/ q.shape[-1] ** 0.5 →")
BY_WIDTH = fused_multi_head.slip("q.shape[-1] ** 0.5 → C**0.5")
parallel_block.slips("""
    That is the block of section 6, one layer after the other. Here the feed-forward network gets
    the same norm(x) as attention.
        right(right(x, W_qkv, W_o, W_up, 0 * W_out, n_head), W_qkv, 0 * W_o, W_up, W_out, n_head)
    The residual connection is missing: add x.
        x + attention → attention
    Your residual connection adds norm(x). Add x itself: only the layers get norm(x).
        x + attention → y + attention
    This is post-norm: the sum is normalised. Normalise the input of the layers, not the sum.
        (x - x.mean(-1, keepdim=True)) / (variance + 1e-5).sqrt() → x
        ; x + attention + ff → F.layer_norm(x + attention + ff, x.shape[-1:])
    The norm is missing: both layers get norm(x).
        (x - x.mean(-1, keepdim=True)) / (variance + 1e-5).sqrt() → x
    You normalise over time (dim 1): every token changes the mean of all, and the future leaks.
    Use the features, dim -1.
        mean(-1 → mean(1 ; var(-1 → var(1
    Your variance divides by C − 1, PyTorch's default. LayerNorm divides by C: `x.var(-1,
    correction=0, keepdim=True)`.
        correction=0 → correction=1
    The activation function is missing: gelu(norm(x) @ W_up) @ W_out.
        F.gelu(y @ W_up, approximate="tanh") → y @ W_up
    This is the exact GELU. Use GPT-2's: approximate="tanh".
        "tanh" → "none"
    The future is not hidden: in a GPT, attention is causal. Mask it with a lower triangle.
        fused_multi_head.right → UNMASKED
    Divide the scores by √hs, the square root of the size of a head.
        fused_multi_head.right → UNSCALED
    You divide the scores by √C. Divide them by √hs: each head compares vectors of size hs.
        fused_multi_head.right → BY_WIDTH
""")
