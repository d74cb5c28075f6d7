"""The whole model: one GPT, built from interchangeable parts.

    GPT(GPTConfig(65, 256, n_layer=6, n_head=6, n_embd=384))      the shape of GPT-2; and today's:
    GPT(GPTConfig(..., norm="RMSNorm", mlp="SwiGLU", position="Rotary", bias=False))

Shapes: B sequences, T tokens, V = vocab_size symbols, C = n_embd.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import KVCache, MultiHeadAttention
from helpers.kernels import Dropout, Linear
from helpers.positions import LearnedPosition, Rotary, SinusoidalPosition


class FeedForward(nn.Module):
    """Position-wise feed-forward network: Linear → GELU → Linear → dropout.

    Args:
        n_embd: width C of input and output.
        hidden: width between the two linear maps, 4 · C if None.
        bias: whether the linear maps have a bias.
        dropout: probability with which an output feature is set to 0 in training.

    Shape: (B, T, C) → (B, T, C). The activation function is GELU in the tanh form of GPT-2.
    Vaswani et al. 2017, section 3.3; Hendrycks and Gimpel 2016, "Gaussian Error Linear Units".
    Taught in: transformer_block.
    """

    def __init__(
        self, n_embd: int, hidden: int | None = None, *, bias: bool = True, dropout: float = 0.0
    ):
        super().__init__()
        hidden = 4 * n_embd if hidden is None else hidden
        self.up = Linear(n_embd, hidden, bias=bias)
        self.down = Linear(hidden, n_embd, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.down(self.activation(self.up(x))))

    def activation(self, x: Tensor) -> Tensor:
        """The nonlinearity between the two linear maps, feature by feature."""
        return F.gelu(x, approximate="tanh")


class SquaredReLU(FeedForward):
    """A feed-forward network with the activation function max(0, x)²; otherwise `FeedForward`.

    So et al. 2021, "Primer". Explained in: transformer_block.
    """

    def activation(self, x: Tensor) -> Tensor:
        positive = F.relu(x)
        return positive * positive  # backward of square() is a power, several times slower


class SwiGLU(nn.Module):
    """Gated feed-forward network: down(silu(gate(x)) · up(x)), then dropout.

    Args:
        hidden: inner width; if None 8/3 · C, rounded up to a multiple of 8, which gives its three
            matrices as many weights as the two of `FeedForward`.
        n_embd, bias, dropout: as in `FeedForward`.

    Shape: (B, T, C) → (B, T, C). Shazeer 2020, "GLU Variants Improve Transformer".
    Taught in: transformer_block.
    """

    def __init__(
        self, n_embd: int, hidden: int | None = None, *, bias: bool = True, dropout: float = 0.0
    ):
        super().__init__()
        hidden = 8 * math.ceil(n_embd / 3) if hidden is None else hidden
        self.gate = Linear(n_embd, hidden, bias=bias)
        self.up = Linear(n_embd, hidden, bias=bias)
        self.down = Linear(hidden, n_embd, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.down(F.silu(self.gate(x)) * self.up(x)))


class Block(nn.Module):
    """Pre-norm transformer block: x + attention(norm(x)), then x + mlp(norm(x)).

    Args:
        attention: the attention layer, of width C.
        mlp: a module (B, T, C) → (B, T, C), such as `FeedForward`.
        norm: makes a norm for a width.

    Shape: (B, T, C) → (B, T, C). With a cache, x are the tokens that follow those in the cache; for
    padding, see `GPT`.
    Vaswani et al. 2017; Radford et al. 2019, "GPT-2". Taught in: transformer_block.
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        mlp: nn.Module,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
    ):
        super().__init__()
        n_embd = attention.query.in_features
        self.attention_norm, self.attention = norm(n_embd), attention
        self.mlp_norm, self.mlp = norm(n_embd), mlp

    def forward(
        self, x: Tensor, cache: KVCache | None = None, padding: Tensor | None = None
    ) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cache=cache, padding=padding)
        return x + self.mlp(self.mlp_norm(x))


class ShortConvolution(nn.Module):
    """Depthwise causal convolution over the last `width` tokens, with a residual: x + conv(x).

    Args:
        n_embd: width C of input and output.
        width: how many tokens it combines, the current one and the width − 1 before it.

    Shape: (B, T, C) → (B, T, C). The weights start at 0, so that it starts as the identity. With a
    cache, x are the tokens that follow those in the cache. Raises ValueError for a width below 1.

    So et al. 2021, "Primer"; Allen-Zhu 2025, "Physics of Language Models 4.1" ("Canon layers");
    Peng et al. 2023, "RWKV" ("token shift"). Taught in: training_fast.
    """

    def __init__(self, n_embd: int, width: int = 4):
        super().__init__()
        if width < 1:
            raise ValueError(f"a convolution combines at least 1 token, not {width}")
        self.weight = nn.Parameter(torch.zeros(n_embd, 1, 1, width))  # as F.conv2d needs it

    def forward(self, x: Tensor, cache: KVCache | None = None) -> Tensor:
        if x.shape[1] == 0:
            return x
        past = self.weight.shape[-1] - 1
        if cache is None or cache.conv_state is None:
            window = F.pad(x, (0, 0, past, 0))  # zeros before the first token
        else:
            window = torch.cat((cache.conv_state, x), dim=1)
        if cache is not None:
            cache.conv_state = window[:, window.shape[1] - past :].clone()
        # (B, T, C) is already how convolutions of pictures, C × 1 × T here, are computed fastest.
        picture = window.transpose(1, 2).unsqueeze(2)
        return x + F.conv2d(picture, self.weight, groups=x.shape[-1]).squeeze(2).transpose(1, 2)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, width={self.weight.shape[-1]}"


class ConvolutionBlock(Block):
    """A `Block` whose mlp gets its input through a convolution: x + mlp(convolution(norm(x))).

    Args:
        convolution: the convolution, of the attention's width.
        attention, mlp, norm: as in `Block`.

    Explained in: training_fast.
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        convolution: ShortConvolution,
        mlp: nn.Module,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
    ):
        super().__init__(attention, mlp, norm)
        # Before mlp: the order of parameters is that of optimizer states in saved runs.
        del self.mlp
        self.convolution, self.mlp = convolution, mlp

    def forward(
        self, x: Tensor, cache: KVCache | None = None, padding: Tensor | None = None
    ) -> Tensor:
        start = 0 if cache is None else len(cache)
        x = x + self.attention(self.attention_norm(x), cache=cache, padding=padding)
        normed = self.mlp_norm(x)
        if padding is not None:  # before the first token of a text, a convolution finds zeros
            index = torch.arange(start, start + x.shape[1], device=x.device)
            normed = normed.masked_fill((index < padding[:, None])[..., None], 0)
        return x + self.mlp(self.convolution(normed, cache))


NORMS = {"LayerNorm": nn.LayerNorm, "RMSNorm": nn.RMSNorm}
MLPS = {"FeedForward": FeedForward, "SquaredReLU": SquaredReLU, "SwiGLU": SwiGLU}
POSITIONS = ("LearnedPosition", "SinusoidalPosition", "Rotary", None)


@dataclass(frozen=True)
class GPTConfig:
    """The settings of a GPT: plain numbers and names, as they stand in files (`asdict`).

    Args:
        vocab_size: number of tokens in the vocabulary, V.
        block_size: longest context, in tokens.
        n_layer: number of blocks.
        n_head: attention heads per block, H.
        n_embd: width of the residual stream, C.
        norm: "LayerNorm" or "RMSNorm".
        norm_eps: what norms add under the root; None: the default of the class.
        mlp: "FeedForward", "SquaredReLU" or "SwiGLU".
        hidden: inner width of the mlp; None: the default of the class.
        position: "LearnedPosition", "SinusoidalPosition", "Rotary", or None for no positions.
        rotary_base: base of the frequencies of "Rotary".
        n_kv_head: heads of keys and values (grouped-query attention); None: n_head.
        head_size: size of a head, hs; None: C / H.
        qk_norm: whether queries and keys are normalised.
        convolution: width of a `ShortConvolution` in each block; None: no convolution.
        bias: whether the linear maps in blocks have a bias.
        dropout: probability with which features are set to 0 in training.
        tied: whether the output head shares the weights of the token embedding.

    Raises TypeError for a value of another type, ValueError for sizes below 1, other numbers below
    0, and names that are not known. Taught in: gpt.
    """

    vocab_size: int
    block_size: int
    n_layer: int
    n_head: int
    n_embd: int
    norm: str = "LayerNorm"
    norm_eps: float | None = None
    mlp: str = "FeedForward"
    hidden: int | None = None
    position: str | None = "LearnedPosition"
    rotary_base: float = 10_000.0
    n_kv_head: int | None = None
    head_size: int | None = None
    qk_norm: bool = False
    convolution: int | None = None
    bias: bool = True
    dropout: float = 0.0
    tied: bool = True

    def __post_init__(self) -> None:
        for name, known in (("norm", NORMS), ("mlp", MLPS), ("position", POSITIONS)):
            if getattr(self, name) not in [*known]:
                raise ValueError(f"{name} should be one of {[*known]}, not {getattr(self, name)!r}")
        for field in fields(self):
            value: Any = getattr(self, field.name)
            kind: Any = field.type
            if value is None and isinstance(None, kind):
                continue
            if kind is bool and not isinstance(value, bool):
                raise TypeError(f"{field.name} should be True or False, but is {value!r}")
            if kind in (int, int | None):
                if not isinstance(value, int) or isinstance(value, bool):
                    raise TypeError(f"{field.name} should be a whole number, but is {value!r}")
                if value < 1:
                    raise ValueError(f"{field.name} should be at least 1, but is {value}")
            if kind in (float, float | None):
                if not isinstance(value, int | float) or isinstance(value, bool):
                    raise TypeError(f"{field.name} should be a number, but is {value!r}")
                if not 0 <= value < math.inf:  # NaN fails this, too
                    raise ValueError(f"{field.name} should be a number from 0 on, but is {value}")


_numbers = itertools.count()  # of the models made so far


class GPT(nn.Module):
    """A decoder-only transformer: token ids (B, T) → logits (B, T, V).

    Args:
        config: its settings.

    Called with a cache (see `empty_cache`), ids are the tokens that follow those in the cache.
    Called with padding (B,), int64, the first padding[b] tokens of text b, those in the cache
    included, are padding: no other token attends to them, the first token after them has position
    0, and their logits mean nothing. Texts of different lengths so fit into one batch; each call
    with the same cache needs the same padding.

    Raises ValueError for sizes that do not fit, for more than block_size tokens (counting those in
    the cache), for a cache of another model, for padding below 0, and, on a CPU, for ids outside
    the vocabulary.
    Radford et al. 2018, 2019. Taught in: gpt.
    """

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.config, self.block_size = config, config.block_size
        self._number = next(_numbers)
        self.token = nn.Embedding(config.vocab_size, config.n_embd)
        self.position = _added_position(config)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(_block(config) for _ in range(config.n_layer))
        self.norm = _norm(config)(config.n_embd)
        self.lm_head = Linear(config.n_embd, config.vocab_size, bias=False)
        if config.tied:
            self.lm_head.weight = self.token.weight
        self._init_weights()

    def forward(
        self,
        ids: Tensor,
        cache: Sequence[KVCache] | None = None,
        padding: Tensor | None = None,
    ) -> Tensor:
        start = self._check(ids, cache, padding)
        try:
            x = self.token(ids)
        except IndexError:
            known = f"ids of this model are 0 to {self.token.num_embeddings - 1}"
            raise ValueError(f"{known}, but these are {ids.min()} to {ids.max()}") from None
        if self.position is not None:
            x = self.position(x, start if padding is None else start - padding)
        x = self.dropout(x)
        before = [(layer, layer.conv_state) for layer in cache or ()]
        try:
            for i, block in enumerate(self.blocks):
                x = block(x, None if cache is None else cache[i], padding)
            return self.lm_head(self.norm(x))
        except BaseException:  # an interrupt, say: all layers go back to the same tokens
            for layer, conv_state in before:
                layer.length, layer.conv_state = start, conv_state
            raise

    def empty_cache(self, max_tokens: int | None = None) -> list[KVCache]:
        """An empty `KVCache` per block, to be given to each call.

        max_tokens: how many tokens each has space for; None: block_size.
        """
        return [KVCache(max_tokens or self.block_size) for _ in self.blocks]

    def n_parameters(self) -> int:
        """Number of trainable parameters; the shared table of a tied model counts once."""
        return sum(p.numel() for p in self.parameters())

    def _init_weights(self) -> None:
        """GPT-2's: normal with std 0.02, smaller for the layers that add to the residual stream."""
        for name, p in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(p)
            elif name.endswith(("output.weight", "down.weight")):
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * len(self.blocks)))
            elif p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def _check(self, ids: Tensor, cache: Sequence[KVCache] | None, padding: Tensor | None) -> int:
        """Raise if the model cannot read ids after what is in the cache; how much that is."""
        if cache is not None and len(cache) != len(self.blocks):
            raise ValueError(f"{len(cache)} caches, but {len(self.blocks)} blocks: empty_cache()")
        if cache and len(set(map(len, cache))) > 1:
            raise ValueError(f"the caches hold {[*map(len, cache)]} tokens: empty_cache()")
        start = len(cache[0]) if cache else 0
        for one in cache or ():
            if start and one.model not in (None, self._number):
                raise ValueError("the cache belongs to another model: empty_cache() of this one")
            one.model = self._number
        if ids.dim() != 2 or ids.dtype != torch.int64:
            raise ValueError(
                f"GPT reads token ids (B, T), int64, not {tuple(ids.shape)} of {ids.dtype}; "
                "for one text use torch.tensor([ids])"
            )
        if start + ids.shape[1] > self.block_size:
            raise ValueError(
                f"{start + ids.shape[1]} tokens, but the model reads {self.block_size} at once: "
                f"crop to the last {self.block_size}, ids[:, -{self.block_size}:]"
            )
        if padding is not None:
            if padding.shape != ids.shape[:1] or padding.dtype != torch.int64:
                raise ValueError(
                    f"padding is a length for each of the {len(ids)} texts, ({len(ids)},), int64, "
                    f"not {tuple(padding.shape)} of {padding.dtype}"
                )
            if (padding < 0).any():
                raise ValueError(f"padding is a number of tokens, 0 or more, not {padding.min()}")
        return start


def _norm(config: GPTConfig) -> Callable[[int], nn.Module]:
    eps = {} if config.norm_eps is None else {"eps": config.norm_eps}
    return lambda width: NORMS[config.norm](width, **eps)


def _block(config: GPTConfig) -> Block:
    attention = MultiHeadAttention(
        config.n_embd,
        config.n_head,
        n_kv_head=config.n_kv_head,
        head_size=config.head_size,
        qk_norm=config.qk_norm,
        bias=config.bias,
        dropout=config.dropout,
    )
    if config.position == "Rotary":
        attention.rotary = Rotary(attention.head_size, config.rotary_base)
    mlp = MLPS[config.mlp](config.n_embd, config.hidden, bias=config.bias, dropout=config.dropout)
    if config.convolution is None:
        return Block(attention, mlp, _norm(config))
    convolution = ShortConvolution(config.n_embd, config.convolution)
    return ConvolutionBlock(attention, convolution, mlp, _norm(config))


def _added_position(config: GPTConfig) -> nn.Module | None:
    """The module that adds positions to the embeddings; rotary ones work inside attention."""
    if config.position == "LearnedPosition":
        return LearnedPosition(config.block_size, config.n_embd)
    if config.position == "SinusoidalPosition":
        return SinusoidalPosition(config.n_embd)
    return None


def fast_gpt(
    vocab_size: int,
    block_size: int,
    n_layer: int,
    n_head: int,
    n_embd: int,
    **settings: Any,
) -> GPT:
    """Return a GPT with rotary positions, QK norm, squared ReLU, short convolutions and no biases.

    Args:
        vocab_size, block_size, n_layer, n_head, n_embd: as in `GPTConfig`.
        settings: its other settings, where they should differ from these.

    The layers that add to the residual stream and the output head are initialised with zeros, so
    that every block starts as the identity and all next tokens start equally likely.
    Raises what `GPT` raises, and ValueError for tied=True: a head of zeros cannot share the weights
    of the embedding. Jordan et al. 2024, "modded-nanogpt". Taught in: training_fast.
    """
    chosen = dict(
        mlp="SquaredReLU", position="Rotary", qk_norm=True, convolution=4, bias=False, tied=False
    )
    sizes = (vocab_size, block_size, n_layer, n_head, n_embd)
    model = GPT(GPTConfig(*sizes, **{**chosen, **settings}))
    if model.config.tied:
        raise ValueError(
            "fast_gpt needs tied=False: its head starts at zero and cannot share weights"
        )
    for name, p in model.named_parameters():
        if name.endswith(("output.weight", "down.weight", "lm_head.weight")):
            nn.init.zeros_(p)
        elif name == "token.weight":
            nn.init.normal_(p)
        elif p.dim() == 2:
            bound = p.shape[1] ** -0.5
            nn.init.uniform_(p, -bound, bound)
    return model
