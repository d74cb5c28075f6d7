"""The whole model: one GPT, built from interchangeable parts.

    GPT(GPTConfig(65, 256, n_layer=6, n_head=6, n_embd=384))      the shape of GPT-2; and today's:
    GPT(GPTConfig(..., norm=nn.RMSNorm, mlp=SwiGLU, position=Rotary, bias=False))

Shapes: B sequences, T tokens, V = vocab_size symbols, C = n_embd.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import Dropout, KVCache, Linear, MultiHeadAttention
from helpers.positions import LearnedPosition, Rotary, SinusoidalPosition


class FeedForward(nn.Module):
    """What a token does with what it heard: wider, a bend, narrow again; each token alone.

    n_embd: C; hidden: the width in between, 4 · C if None; bias: of the two linear maps;
    dropout: of the result, in training. (B, T, C) → (B, T, C).

    The bend is GELU, in the tanh form of GPT-2. Vaswani et al. 2017, section 3.3; Hendrycks and
    Gimpel 2016, "Gaussian Error Linear Units". Taught in chapter 08.
    """

    def __init__(
        self, n_embd: int, hidden: int | None = None, *, bias: bool = True, dropout: float = 0.0
    ):
        super().__init__()
        hidden = 4 * n_embd if hidden is None else hidden
        self.up = Linear(n_embd, hidden, bias=bias)
        self.output = Linear(hidden, n_embd, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.output(self.bend(self.up(x))))

    def bend(self, x: Tensor) -> Tensor:
        """The non-linear function between the two linear maps, feature by feature."""
        return F.gelu(x, approximate="tanh")


class SquaredReLU(FeedForward):
    """A feed-forward part whose bend is max(0, x)²: cheaper than GELU, and as good here.

    So et al. 2021, "Primer". Taught in chapter 08.
    """

    def bend(self, x: Tensor) -> Tensor:
        positive = F.relu(x)
        return positive * positive  # backward of square() is a power, several times slower


class SwiGLU(nn.Module):
    """A feed-forward part with a gate: output(silu(gate(x)) · up(x)).

    hidden: 8/3 · C if None, rounded up to a multiple of 8, which makes its three matrices as large
    as the two of `FeedForward`. The rest as there. Shazeer 2020, "GLU Variants Improve
    Transformer". Taught in chapter 08.
    """

    def __init__(
        self, n_embd: int, hidden: int | None = None, *, bias: bool = True, dropout: float = 0.0
    ):
        super().__init__()
        hidden = 8 * math.ceil(n_embd / 3) if hidden is None else hidden
        self.gate = Linear(n_embd, hidden, bias=bias)
        self.up = Linear(n_embd, hidden, bias=bias)
        self.output = Linear(hidden, n_embd, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.output(F.silu(self.gate(x)) * self.up(x)))


class ShortConvolution(nn.Module):
    """What a token takes from its last few neighbours without looking at them: x plus a weighted
    sum of this token and the width − 1 before it, with weights of each feature's own.

    n_embd: C; width: of the window, in tokens. The weights start at 0, and so the part at x.
    (B, T, C) → (B, T, C). Called with the cache of its block, x are the tokens that follow those in
    the cache. Raises ValueError for a width below 1.

    A depthwise causal convolution: So et al. 2021, "Primer"; Allen-Zhu 2025, "Physics of Language
    Models 4.1" ("Canon layers"); Peng et al. 2023, "RWKV" ("token shift"). Taught in chapter 10.
    """

    def __init__(self, n_embd: int, width: int = 4):
        super().__init__()
        if width < 1:
            raise ValueError(f"a convolution reads at least 1 token, not {width}")
        self.weight = nn.Parameter(torch.zeros(n_embd, 1, 1, width))  # as `F.conv2d` wants it

    def forward(self, x: Tensor, cache: KVCache | None = None) -> Tensor:
        if x.shape[1] == 0:
            return x
        read, T, width = x, x.shape[1], self.weight.shape[-1]
        if cache is not None:
            if cache.convolved is not None:
                read = torch.cat((cache.convolved, x), dim=1)
            cache.convolved = read
        read = F.pad(read, (0, 0, width - 1, 0))[:, -(T + width - 1) :]  # zeros before the first
        # (B, T, C) is already how convolutions of pictures, C × 1 × T here, are computed fastest.
        picture = read.transpose(1, 2).unsqueeze(2)
        return x + F.conv2d(picture, self.weight, groups=x.shape[-1]).squeeze(2).transpose(1, 2)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, width={self.weight.shape[-1]}"


class Block(nn.Module):
    """Communicate, then compute: x + attention(norm(x)), then x + mlp(norm(x)).

    Each part reads the residual stream x (B, T, C) through a norm and adds to it ("pre-norm").
    attention, mlp: modules (B, T, C) → (B, T, C); norm: makes a norm for a width; convolution: a
    part that mlp reads through, too, or None.
    cross: attention between the two, whose keys and values come from the source (B, S, C) that the
    block is then called with (chapter 17), or None. mask (B, 1, 1, S): True where the source, or x
    in a block without cross, is no padding.
    Radford et al. 2019, "GPT-2"; Vaswani et al. 2017. Taught in chapter 08.
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        mlp: nn.Module,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
        convolution: ShortConvolution | None = None,
        cross: MultiHeadAttention | None = None,
    ):
        super().__init__()
        n_embd = attention.query.in_features
        self.attention_norm, self.attention = norm(n_embd), attention
        self.cross = cross
        if cross is not None:
            self.cross_norm = norm(n_embd)
        self.mlp_norm, self.convolution, self.mlp = norm(n_embd), convolution, mlp

    def forward(
        self,
        x: Tensor,
        cache: KVCache | None = None,
        source: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if (self.cross is None) != (source is None):
            raise ValueError("a source belongs to a block with cross-attention, and to no other")
        own = mask if self.cross is None else None
        x = x + self.attention(self.attention_norm(x), cache=cache, mask=own)
        if self.cross is not None:
            x = x + self.cross(self.cross_norm(x), source, mask=mask)
        read = self.mlp_norm(x)
        if self.convolution is not None:
            read = self.convolution(read, cache)
        return x + self.mlp(read)


PARTS: dict[str, tuple[Any, ...]] = {  # what a file can name
    "norm": (nn.LayerNorm, nn.RMSNorm),
    "mlp": (FeedForward, SquaredReLU, SwiGLU),
    "position": (LearnedPosition, SinusoidalPosition, Rotary, None),
}


@dataclass(frozen=True)
class GPTConfig:
    """What a GPT is made of, by name.

    vocab_size: V; block_size: the most tokens it reads at once; n_layer: blocks; n_head: heads a
    block; n_embd: C, the width of the residual stream.
    norm, mlp: the classes of those parts; norm_eps: what the norms add under their root, the
    class's own if None; hidden: the width inside mlp, its own choice if None; position:
    LearnedPosition, SinusoidalPosition, Rotary or None; rotary_base: of Rotary's frequencies;
    n_kv_head: heads of keys and values, if fewer than n_head; head_size: hs, if not C / n_head;
    qk_norm: are queries and keys brought to one length?; convolution: how many tokens the
    `ShortConvolution` before mlp reads, None for no such part; bias: of the linear maps in blocks;
    dropout: share of features that are silenced in training; tied: is the table of embeddings used
    again to make the logits?

    Raises TypeError for what is no number, or for sizes no whole one, ValueError for those below 1.
    Taught in chapter 09.
    """

    vocab_size: int
    block_size: int
    n_layer: int
    n_head: int
    n_embd: int
    norm: Callable[..., nn.Module] = nn.LayerNorm
    norm_eps: float | None = None
    mlp: Callable[..., nn.Module] = FeedForward
    hidden: int | None = None
    position: type[nn.Module] | None = LearnedPosition
    rotary_base: float = 10_000.0
    n_kv_head: int | None = None
    head_size: int | None = None
    qk_norm: bool = False
    convolution: int | None = None
    bias: bool = True
    dropout: float = 0.0
    tied: bool = True

    def __post_init__(self) -> None:
        needed = ("vocab_size", "block_size", "n_layer", "n_head", "n_embd")
        for name in (*needed, "hidden", "n_kv_head", "head_size", "convolution"):
            value = getattr(self, name)
            if value is None and name not in needed:
                continue
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} should be a whole number, but is {value!r}")
            if value < 1:
                raise ValueError(f"{name} should be at least 1, but is {value}")
        for name in ("qk_norm", "bias", "tied"):
            if not isinstance(value := getattr(self, name), bool):
                raise TypeError(f"{name} should be True or False, but is {value!r}")
        for name in ("norm_eps", "rotary_base", "dropout"):
            value = getattr(self, name)
            if not isinstance(value, int | float | None) or isinstance(value, bool):
                raise TypeError(f"{name} should be a number, but is {value!r}")
            if value is not None and not 0 <= value < math.inf:  # NaN fails this too
                raise ValueError(f"{name} should be a number from 0 on, but is {value}")

    def to_dict(self) -> dict[str, Any]:
        """As numbers and names, for a file. Raises ValueError for a part that no file can name."""
        settings = asdict(self)
        for name, choice in PARTS.items():
            if settings[name] not in choice:
                raise ValueError(
                    f"{name} is {settings[name]!r}: a file can only name {_names(choice)}, and "
                    "would give back another model"
                )
            settings[name] = _name(settings[name])
        return settings

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Self:
        """What `to_dict` gave. Raises ValueError for names of settings, or parts, that are unknown,
        and TypeError if a size is missing."""
        known = [field.name for field in fields(cls)]
        if unknown := set(settings) - set(known):
            raise ValueError(f"GPT has no setting {sorted(unknown)}; it has {known}")
        parts = {}
        for name in PARTS.keys() & settings.keys():
            choice = {_name(part): part for part in PARTS[name]}
            if settings[name] not in choice:
                raise ValueError(f"{name} should be one of {list(choice)}, not {settings[name]!r}")
            parts[name] = choice[settings[name]]
        return cls(**{**settings, **parts})


def _name(part: Any) -> str | None:
    return None if part is None else part.__name__


def _names(parts: Sequence[Any]) -> str:
    return ", ".join(map(str, map(_name, parts)))


_numbers = itertools.count()  # of the models made so far


class GPT(nn.Module):
    """A decoder-only transformer: token ids (B, T) → logits (B, T, V).

    Raises ValueError for sizes that do not fit, for more than block_size tokens (counting those in
    the cache), for a cache of another model, and, on a CPU, for ids outside the vocabulary.
    Radford et al. 2018, 2019. Taught in chapter 09.
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
        self.head = Linear(config.n_embd, config.vocab_size, bias=False)
        if config.tied:
            self.head.weight = self.token.weight
        self._initialise()

    def forward(self, ids: Tensor, cache: Sequence[KVCache] | None = None) -> Tensor:
        start = self._check(ids, cache)
        try:
            x = self.token(ids)
        except IndexError:
            known = f"ids of this model are 0 to {self.token.num_embeddings - 1}"
            raise ValueError(f"{known}, but these are {ids.min()} to {ids.max()}") from None
        if self.position is not None:
            x = self.position(x, start)
        x = self.dropout(x)
        try:
            for layer, block in enumerate(self.blocks):
                x = block(x, None if cache is None else cache[layer])
            return self.head(self.norm(x))
        except BaseException:  # an interrupt, say: no layer may know more tokens than another
            for one in cache or ():
                one.crop(start)
            raise

    def empty_cache(self) -> list[KVCache]:
        """One cache a block: model(ids, cache) then reads ids as what follows the tokens in it."""
        return [KVCache() for _ in self.blocks]

    def n_parameters(self) -> int:
        """How many numbers training can change; the shared table of a tied model counts once."""
        return sum(p.numel() for p in self.parameters())

    def _initialise(self) -> None:
        """GPT-2's: small normal numbers, smaller still for what adds to the residual stream."""
        for name, p in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(p)
            elif name.endswith("output.weight"):
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * len(self.blocks)))
            elif p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def _check(self, ids: Tensor, cache: Sequence[KVCache] | None) -> int:
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
        return start


def _norm(config: GPTConfig) -> Callable[[int], nn.Module]:
    eps = {} if config.norm_eps is None else {"eps": config.norm_eps}
    return lambda width: config.norm(width, **eps)


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
    if config.position is Rotary:
        attention.rotary = Rotary(attention.head_size, config.rotary_base)
    mlp = config.mlp(config.n_embd, config.hidden, bias=config.bias, dropout=config.dropout)
    width = config.convolution
    convolution = None if width is None else ShortConvolution(config.n_embd, width)
    return Block(attention, mlp, _norm(config), convolution)


def _added_position(config: GPTConfig) -> nn.Module | None:
    """The part that adds positions to the embeddings; rotary ones work inside attention."""
    if config.position is LearnedPosition:
        return LearnedPosition(config.block_size, config.n_embd)
    if config.position is SinusoidalPosition:
        return SinusoidalPosition(config.n_embd)
    if config.position in (Rotary, None):
        return None
    choice = _names(PARTS["position"])
    raise ValueError(f"position should be one of {choice}, not {config.position!r}")
