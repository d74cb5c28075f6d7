"""The classic mistakes of chapter 08: diagnosis → what the mistake would give."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = 1e-5
Part = Callable[[Tensor], Tensor]


def standardised(x: Tensor, dim: int | tuple[int, ...] = -1) -> Tensor:
    """Mean 0 and variance 1 over `dim`."""
    distance = x - x.mean(dim, keepdim=True)
    return distance / (distance.square().mean(dim, keepdim=True) + EPS).sqrt()


def norm_mistakes(x: Tensor) -> dict[str, Tensor]:
    """What `layer_norm(x)` gives for each mistake."""
    B, T, C = x.shape
    distance = x - x.mean(-1, keepdim=True)
    variance = distance.square().mean(-1, keepdim=True)
    unbiased = x.var(-1, keepdim=True)
    corrected = (
        "Your variance divides by C − 1, PyTorch's habit. LayerNorm divides by C: "
        "`x.var(-1, correction=0, keepdim=True)`."
    )
    wrong = {
        "You normed over the time (dim 1): every token moves the mean of all, and the future "
        "leaks. Use the features, dim -1.": standardised(x, 1),
        "You normed over the batch (dim 0): a text would depend on its neighbours. Use the "
        "features, dim -1.": standardised(x, 0),
        "You normed over all numbers at once. Each token has its own mean and variance: dim -1, "
        "with keepdim=True.": standardised(x, (0, 1, 2)),
        "You normed each text as a whole. Each token has its own mean and variance: dim -1.":
            standardised(x, (1, 2)),
        "You normed each feature over all tokens (batch normalisation). Use dim -1.":
            standardised(x, (0, 1)),
        corrected: distance / (unbiased + EPS).sqrt(),
        corrected + " And epsilon belongs under the root.": distance / (unbiased.sqrt() + EPS),
        corrected + " And epsilon is missing.": distance / unbiased.sqrt(),
        "You divide by the variance. Divide by its root.": distance / (variance + EPS),
        "The mean is not subtracted.": x / (variance + EPS).sqrt(),
        "You only subtract the mean. Divide by the root of the variance, too.": distance,
        "The mean is not subtracted: you divide by the root mean square (RMSNorm, chapter 14).":
            x / (x.square().mean(-1, keepdim=True) + EPS).sqrt(),
        "Epsilon belongs under the root: sqrt(variance + 1e-5).":
            distance / (variance.sqrt() + EPS),
        "Epsilon is missing: sqrt(variance + 1e-5).": distance / variance.sqrt(),
        "You gave back x itself.": x,
        "You multiply by the root. Divide by it.": distance * (variance + EPS).sqrt(),
        "Mind the brackets: (x - mean) / root. In x - mean / root only the mean is divided.":
            x - x.mean(-1, keepdim=True) / (variance + EPS).sqrt(),
        "You divide by the length of the token. The variance is the *mean* of the squared "
        "distances, not their sum.": distance / (C * variance + EPS).sqrt(),
        "The variance is the mean of the squared *distances from the mean*, not of x squared.":
            distance / (x.square().mean(-1, keepdim=True) + EPS).sqrt(),
        "The mean is that of each token, but the variance is taken over all numbers. dim -1 for "
        "both.": distance / (x.var(correction=0) + EPS).sqrt(),
        "The variance is that of each token, but the mean is taken over all numbers. dim -1 for "
        "both.": (x - x.mean()) / (variance + EPS).sqrt(),
    }  # fmt: skip
    for eps in (1e-3, 1e-4, 1e-6, 1e-8):
        wrong[f"Your epsilon is {eps:g}. Here it is 0.00001, 1e-5."] = (
            distance / (variance + eps).sqrt()
        )
    if T == C:  # without keepdim (B, T) is read as (…, T, C) here
        mean = distance.new_zeros(B, 1, C) + x.mean(-1)[:, None]
        spread = ((x - x.mean(-1, keepdim=True)).square().mean(-1) + EPS).sqrt()[:, None]
        wrong["keepdim=True is missing: token t's mean was subtracted from feature t."] = (
            x - mean
        ) / spread
    return wrong


def gated_mistakes(x: Tensor, W_gate: Tensor, W_up: Tensor, W_out: Tensor) -> dict[str, Tensor]:
    """What `gated(x, W_gate, W_up, W_out)` gives for each mistake."""
    gate, up = x @ W_gate, x @ W_up
    return {
        "The bend is missing: the gate is silu(x @ W_gate).": (gate * up) @ W_out,
        "You bent the wrong path: silu belongs to the gate, not to x @ W_up.":
            (gate * F.silu(up)) @ W_out,
        "You bent both paths. Only the gate is bent.": (F.silu(gate) * F.silu(up)) @ W_out,
        "You bent the product. Bend the gate, then multiply.": F.silu(gate * up) @ W_out,
        "You added the two paths. A gate multiplies: use *.": (F.silu(gate) + up) @ W_out,
        "This gate is a sigmoid (GLU). silu(z) is z · sigmoid(z): use F.silu.":
            (gate.sigmoid() * up) @ W_out,
        "This gate is a GELU. Use F.silu.": (F.gelu(gate) * up) @ W_out,
        "This gate is a relu. Use F.silu.": (F.relu(gate) * up) @ W_out,
        "The bend belongs inside, on the gate: silu(x @ W_gate). You bent the result.":
            F.silu((gate * up) @ W_out),
        "You bent x before the product. Bend the product: silu(x @ W_gate).":
            ((F.silu(x) @ W_gate) * up) @ W_out,
        "You bent the matrix. Bend the product: silu(x @ W_gate).":
            ((x @ F.silu(W_gate)) * up) @ W_out,
        "W_gate is used on both paths. The second one is x @ W_up.":
            (F.silu(gate) * gate) @ W_out,
        "This gate is a squared relu. Use F.silu.": (F.relu(gate).square() * up) @ W_out,
        "The gate is never multiplied with x @ W_up.": F.silu(gate) @ W_out,
        "The gate is never used.": up @ W_out,
        "You added x. The skip is the block's business, not the feed-forward part's.":
            x + (F.silu(gate) * up) @ W_out,
        "The way back is missing: multiply by W_out.": F.silu(gate) * up,
    }  # fmt: skip


def block_mistakes(
    x: Tensor, attention: Part, mlp: Part, norm_1: Part, norm_2: Part
) -> dict[str, Tensor]:
    """What `block(x, attention, mlp, norm_1, norm_2)` gives for each mistake."""
    heard = attention(norm_1(x))
    right = x + heard
    computed = x + mlp(norm_1(x))
    return {
        "Both skips are missing: you wrote x = f(x). The stream is replaced, and in a deep stack "
        "no gradient survives. Add: x = x + f(norm(x)).": mlp(norm_2(heard)),
        "The skip around attention is missing: x = x + attention(norm_1(x)).":
            heard + mlp(norm_2(heard)),
        "The skip around mlp is missing: x + mlp(norm_2(x)).": mlp(norm_2(right)),
        "This is post-norm: the stream itself is normed after each addition. Norm what the layer "
        "reads: x + f(norm(x)).": _post(x, attention, mlp, norm_1, norm_2),
        "You overwrite the stream by its norm (x = norm(x)) before you add to it. The skip starts "
        "from x itself.": _normed_stream(x, attention, mlp, norm_1, norm_2),
        "The norms are missing: attention reads norm_1(x), mlp reads norm_2(x).":
            (x + attention(x)) + mlp(x + attention(x)),
        "mlp reads the stream without its norm: mlp(norm_2(x)).": right + mlp(right),
        "attention reads the stream without its norm: attention(norm_1(x)).":
            (x + attention(x)) + mlp(norm_2(x + attention(x))),
        "mlp reads the old x. It comes second, and reads the stream after attention has written "
        "to it.": x + heard + mlp(norm_2(x)),
        "The second skip starts from the old x, so what attention wrote is lost.":
            x + mlp(norm_2(right)),
        "The second skip starts from the old x, and mlp reads it, too.": x + mlp(norm_2(x)),
        "norm_1 is used twice. mlp has its own: norm_2.": right + mlp(norm_1(right)),
        "The norms are swapped: norm_1 belongs to attention.":
            _pre(x, attention, mlp, norm_2, norm_1),
        "The order is swapped: first communicate (attention), then compute (mlp).":
            computed + attention(norm_2(computed)),
        "The order is swapped: first communicate (attention with norm_1), then compute (mlp with "
        "norm_2).": _pre(x, mlp, attention, norm_2, norm_1),
        "You normed what the layers write, norm(f(x)). Norm what they read, f(norm(x)).":
            _normed_writing(x, attention, mlp, norm_1, norm_2),
        "Only the attention half is there: mlp follows.": right,
        "You gave back x itself.": x,
        "The first skip starts from norm_1(x). It starts from x: only attention reads the norm.":
            _halves(norm_1(x) + heard, mlp, norm_2),
        "The second skip starts from norm_2(x). It starts from the stream: only mlp reads the "
        "norm.": norm_2(right) + mlp(norm_2(right)),
        "One skip around both parts. Each has its own: x = x + attention(…), then x + mlp(…).":
            x + mlp(norm_2(heard)),
        "mlp reads only what attention wrote. It reads the whole stream, x + attention(…).":
            x + heard + mlp(norm_2(heard)),
        "Both skips are missing, and mlp reads the old x.": heard + mlp(norm_2(x)),
        "The stream is normed at the end. Nothing norms the stream here: x + mlp(norm_2(x)).":
            norm_2(_halves(right, mlp, norm_2)),
    }  # fmt: skip


def _halves(x: Tensor, part: Part, norm: Part) -> Tensor:
    return x + part(norm(x))


def _pre(x: Tensor, first: Part, second: Part, norm_1: Part, norm_2: Part) -> Tensor:
    x = x + first(norm_1(x))
    return x + second(norm_2(x))


def _post(x: Tensor, first: Part, second: Part, norm_1: Part, norm_2: Part) -> Tensor:
    x = norm_1(x + first(x))
    return norm_2(x + second(x))


def _normed_stream(x: Tensor, first: Part, second: Part, norm_1: Part, norm_2: Part) -> Tensor:
    x = norm_1(x)
    x = norm_2(x + first(x))
    return x + second(x)


def _normed_writing(x: Tensor, first: Part, second: Part, norm_1: Part, norm_2: Part) -> Tensor:
    x = x + norm_1(first(x))
    return x + norm_2(second(x))


def count_mistakes(C: int, e: int) -> dict[str, Tensor]:
    """What `block_parameters(C, e)` gives for each mistake."""
    matrices, norms = (4 + 2 * e) * C * C, 4 * C
    wrong = {
        "The norms are missing: two of them, with a gain and a shift of C numbers each.": matrices,
        "A norm has a gain and a shift: 2C numbers each, and there are two norms.":
            matrices + 2 * C,
        "You counted three matrices in attention. The output projection is the fourth.":
            matrices - C * C + norms,
        "The feed-forward part has two matrices, up and output.": (4 + e) * C * C + norms,
        "You counted the feed-forward part with three matrices. Only a gated one has three.":
            (4 + 3 * e) * C * C + norms,
        "You counted the biases of the feed-forward part. It has none here.":
            matrices + norms + e * C + C,
        "You counted the biases of attention. It has none here.": matrices + norms + 4 * C,
        "You counted biases of the matrices. There are none here.":
            matrices + norms + 4 * C + e * C + C,
        "Attention has four matrices: query, key, value and output.":
            matrices - 3 * C * C + norms,
        "A norm has a gain and a shift, C numbers each. You counted one gain.": matrices + C,
        "up has shape (C, e·C), output (e·C, C): only one side is wider.":
            4 * C * C + 2 * (e * C) ** 2 + norms,
        "Only the feed-forward part and the norms are counted. Add attention.":
            2 * e * C * C + norms,
        "Only attention and the norms are counted. Add the feed-forward part.": 4 * C * C + norms,
        "The hidden width is e·C, whatever e is: you put 4 for it.": 12 * C * C + norms,
    }  # fmt: skip
    return {diagnosis: torch.tensor(float(value)) for diagnosis, value in wrong.items()}
