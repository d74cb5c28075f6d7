"""The classic mistakes of chapter 08: diagnosis → what the mistake would give; layers to try."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import MultiHeadAttention

EPS = 1e-5
Part = Callable[[Tensor], Tensor]


def standardised(x: Tensor, dim: int | tuple[int, ...] = -1) -> Tensor:
    """Mean 0 and variance 1 over `dim`."""
    distance = x - x.mean(dim, keepdim=True)
    return distance / (distance.square().mean(dim, keepdim=True) + EPS).sqrt()


def norm_mistakes(x: Tensor) -> dict[str, Tensor]:
    """What `layer_norm(x)` gives for each mistake."""
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
    }  # fmt: skip
    B, T, C = x.shape
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
    }  # fmt: skip


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
        "Only the feed-forward part and the norms are counted. Add attention.":
            2 * e * C * C + norms,
        "Only attention and the norms are counted. Add the feed-forward part.": 4 * C * C + norms,
        "The hidden width is e·C, whatever e is: you put 4 for it.": 12 * C * C + norms,
    }  # fmt: skip
    return {diagnosis: torch.tensor(float(value)) for diagnosis, value in wrong.items()}


class _Table(nn.Module):
    """Adds a row of a table to each place: tokens are changed, but do not meet."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.arange(x.shape[1])[:, None]


class _Move(nn.Module):
    """Place `end` also hears place `start`."""

    def __init__(self, start: int, end: int):
        super().__init__()
        self.start, self.end = start, end

    def forward(self, x: Tensor) -> Tensor:
        out = x.clone()
        out[:, self.end] = out[:, self.end] + x[:, self.start]
        return out


class _OverTime(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return standardised(x, dim=1)


def tokenwise_layers() -> list[tuple[str, nn.Module, bool, str]]:
    """(name, layer of width 8, is it token by token?, why), to try `is_tokenwise` on."""
    own = "A token may change the output at its own place, and here it changes no other."
    return [
        ("nn.Identity()", nn.Identity(), True, own),
        ("nn.Linear(8, 8)", nn.Linear(8, 8), True, own),
        ("nn.LayerNorm(8)", nn.LayerNorm(8), True, own),
        ("a table of places, added", _Table(), True,
         "The places are treated differently, but no token changes another one."),
        ("attention", MultiHeadAttention(8, 2), False, "Later tokens hear earlier ones."),
        ("a norm over the time", _OverTime(), False, "Every token moves the mean of all."),
        ("a layer in which place 0 hears the last token", _Move(-1, 0), False,
         "Do you change every token, the last one as well, and look at every place?"),
        ("a layer in which the last place hears token 0", _Move(0, -1), False,
         "Do you change every token, token 0 as well, and look at every place?"),
        ("a layer in which place 2 hears token 1", _Move(1, 2), False,
         "Only one token changes only one other place. Do you change every token in turn?"),
    ]  # fmt: skip
