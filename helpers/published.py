"""Weights that others have published, as a GPT of this course: GPT-2's layout, Llama's, GGUF files.

What a file asks for and our GPT does not compute is refused by name: numbers in a model that is
not theirs make text that is only a little wrong.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from helpers.checkpoints import Checkpoint, expect_fit, read_tensors, weights_of
from helpers.files import json_object
from helpers.gguf_file import Stored, read_gguf
from helpers.gpt import GPT, GPTConfig, SwiGLU
from helpers.positions import Rotary, half_split
from helpers.quantised import BlockLinear, Blocks, HalfEmbedding, HalfLinear
from helpers.text import BPETokenizer
from helpers.text.bpe import from_file, numbered_tokenizer


def gpt2(weights: str | Path | Mapping[str, Tensor], n_head: int | None = None) -> GPT:
    """GPT-2 in the layout of Hugging Face's `transformers`, as a GPT of this course.

    weights: a state dict, a safetensors file, or a folder with `model.safetensors` (in one piece
    or several, model-00001-of-00002.safetensors …) and `config.json`; n_head: heads a layer; if
    None, that of `config.json`, or else C / 64, which is right for all published sizes. Tied or
    untied: if `lm_head.weight` is there and differs from the embeddings, the model is untied.

    Returns the model in evaluation mode. Raises FileNotFoundError, and ValueError for weights of
    another layout and a `config.json` that asks for what this GPT does not compute.
    Radford et al. 2019. Taught in chapter 09.
    """
    source: str | Path = "the state dict"
    if isinstance(weights, Mapping):
        weights = {name: tensor.clone() for name, tensor in weights.items()}
    else:
        path = source = Path(weights)
        if path.is_dir() and (settings := path / "config.json").is_file():
            published = _heads(settings)
            n_head = published if n_head is None else n_head
        weights = _read(path)
    # With a language model's head the names begin with "transformer."; the masks are no weights.
    theirs = {name.removeprefix("transformer."): tensor for name, tensor in weights.items()}
    theirs = {n: t for n, t in theirs.items() if not n.endswith((".attn.bias", ".masked_bias"))}
    if not {"wte.weight", "wpe.weight", "ln_f.weight"} <= set(theirs):
        raise ValueError(f"{source} is not in the layout of GPT-2: it has {sorted(theirs)[:4]} …")
    if theirs["wte.weight"].dim() != 2:
        raise ValueError(
            f"{source}: wte.weight should be (V, C), not {(*theirs['wte.weight'].shape,)}"
        )
    vocab_size, n_embd = theirs["wte.weight"].shape
    if n_head is None and n_embd % 64:
        raise ValueError(f"{source} is {n_embd} wide, no multiple of 64: give n_head, too")
    head = theirs.pop("lm_head.weight", theirs["wte.weight"])
    tied = bool(head.equal(theirs["wte.weight"]))
    config = GPTConfig(
        vocab_size,
        block_size=len(theirs["wpe.weight"]),
        n_layer=len({name.split(".")[1] for name in theirs if name.startswith("h.")}),
        n_head=n_embd // 64 if n_head is None else n_head,
        n_embd=n_embd,
        tied=tied,
    )
    ours = _renamed(_unfused(theirs, source), _GPT2_NAMES)
    return _filled(config, ours if tied else {**ours, "head.weight": head}, source)


# What changes the result without changing a weight: the names in config.json, and what is meant
# where they are missing, first.
_GPT2_SETTINGS = {
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "layer_norm_epsilon": (1e-5,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
}


def _heads(path: Path) -> int:
    """The number of heads in a config.json, if its other settings are those of our GPT."""
    config = _config_json(path)
    n_head = config.get("n_head", 12)  # what transformers means where nothing is said
    if not isinstance(n_head, int) or isinstance(n_head, bool) or n_head < 1:
        raise ValueError(f"{path}: n_head should be a whole number of 1 or more, not {n_head!r}")
    _expect_computed(config, _GPT2_SETTINGS, path)
    return n_head


def _unfused(weights: Mapping[str, Tensor], source: str | Path) -> dict[str, Tensor]:
    """Their matrices stand the other way round, and queries, keys and values in one."""
    result = {}
    for name, tensor in weights.items():
        if name.endswith(".weight") and ".c_" in name:
            tensor = tensor.T
        if ".c_attn." in name:
            if tensor.shape[0] % 3:
                raise ValueError(
                    f"{source}: {name} should hold queries, keys and values, three in one, but has "
                    f"shape {tuple(weights[name].shape)}"
                )
            for part, piece in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                result[name.replace("c_attn", part)] = piece
        else:
            result[name] = tensor
    return result


_GPT2_NAMES = {
    "wte": "token",
    "wpe": "position.table",
    "ln_f": "norm",
    "h.": "blocks.",
    "ln_1": "attention_norm",
    "ln_2": "mlp_norm",
    "attn.c_proj": "attention.output",
    "attn.": "attention.",
    "mlp.c_fc": "mlp.up",
    "mlp.c_proj": "mlp.output",
}


# --- Llama ----------------------------------------------------------------------------------------


def llama(
    weights: str | Path | Mapping[str, Tensor], config: Mapping[str, Any] | None = None
) -> GPT:
    """A Llama in the layout of Hugging Face's `transformers`, as a GPT of this course.

    weights: a folder with `config.json` and `model.safetensors` (in one piece or several), or a
    state dict, with what stands in its config.json as config.

    Returns the model in evaluation mode, in float32. Raises FileNotFoundError, and ValueError for
    weights of another layout and for settings that this GPT does not compute.
    Touvron et al. 2023. Taught in chapter 15.
    """
    source: str | Path = "the state dict"
    if isinstance(weights, Mapping):
        weights = {name: tensor.clone() for name, tensor in weights.items()}
    else:
        source = Path(weights)
        config = _config_json(source / "config.json") if config is None else config
        weights = _read(source)
    if config is None:
        raise ValueError("a state dict says nothing of heads and angles: give its config, too")
    theirs = {n: t for n, t in weights.items() if not n.endswith("rotary_emb.inv_freq")}
    table = theirs.get("model.embed_tokens.weight")
    if table is None or table.dim() != 2:
        raise ValueError(f"{source} is not in the layout of Llama: it has {sorted(theirs)[:4]} …")
    settings = _llama_config(config, len(table), source)
    if settings.tied and not theirs.pop("lm_head.weight", table).equal(table):
        raise ValueError(f"{source}: config says that the head is the table, but it is another")
    return _filled(settings, _renamed(theirs, _LLAMA_NAMES), source)


_LLAMA_SETTINGS = {
    "model_type": ("llama",),
    "hidden_act": ("silu", "swish"),
    "rope_scaling": (None,),
    "partial_rotary_factor": (1, None),
}
_LLAMA_ANGLES = {"rope_type": ("default",), "partial_rotary_factor": (1, None)}
_LLAMA_NAMES = {
    "model.embed_tokens": "token",
    "model.layers.": "blocks.",
    "model.norm": "norm",
    "lm_head": "head",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "mlp_norm",
    "self_attn.q_proj": "attention.query",
    "self_attn.k_proj": "attention.key",
    "self_attn.v_proj": "attention.value",
    "self_attn.o_proj": "attention.output",
    "gate_proj": "gate",
    "up_proj": "up",
    "down_proj": "output",
}


def _llama_config(config: Mapping[str, Any], vocab_size: int, source: str | Path) -> GPTConfig:
    """From a config.json; where it is silent, what transformers means."""
    _expect_computed(config, _LLAMA_SETTINGS, source)
    angles = config.get("rope_parameters") or {}  # as newer versions write them
    _expect_computed(angles, _LLAMA_ANGLES, source)
    bias = config.get("attention_bias", False)
    if config.get("mlp_bias", False) is not bias:
        raise ValueError(f"{source}: this GPT has biases in attention and mlp, or in neither")
    return _config(
        source,
        vocab_size=vocab_size,
        block_size=config.get("max_position_embeddings", 2048),
        n_layer=config.get("num_hidden_layers"),
        n_head=config.get("num_attention_heads"),
        n_embd=config.get("hidden_size"),
        norm_eps=config.get("rms_norm_eps", 1e-6),
        hidden=config.get("intermediate_size"),
        rotary_base=angles.get("rope_theta", config.get("rope_theta", 10_000.0)),
        n_kv_head=config.get("num_key_value_heads"),
        head_size=config.get("head_dim"),
        bias=bias,
        tied=config.get("tie_word_embeddings", False),
    )


# --- GGUF -----------------------------------------------------------------------------------------


def gguf(path: str | Path, *, four_bits: bool = False) -> Checkpoint:
    """A Llama with its tokenizer from a GGUF file, the format of llama.cpp.

    four_bits: shall matrices that the file holds in blocks of 4 bits (its Q4_1) stay in them, and
    the table of embeddings be in float16? Otherwise all become the float32 numbers that they stand
    for. Returns the model in evaluation mode, its tokenizer, and as notes what else the file says,
    by the file's names: "tokenizer.chat_template", for example.

    Raises FileNotFoundError, and ValueError for a damaged file, another architecture, another way
    to cut text, for settings that this GPT does not compute, and for four_bits of a file that has
    no such blocks. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Taught in chapter 15.
    """
    path = Path(path)
    about, stored = _gguf_parts(path)
    tokenizer = _gguf_tokenizer(about, path)
    config = _gguf_config(about, tied="output.weight" not in stored, source=path)
    if not config.tied:
        stored["head.weight"] = stored.pop("output.weight")
    if four_bits and not any(map(_in_four_bits, stored.values())):
        raise ValueError(f"{path} holds no blocks of 4 bits (Q4_1)")
    weights: dict[str, Tensor | nn.Module] = {}
    for name, tensor in _renamed(stored, _GGUF_NAMES).items():
        raw = torch.from_numpy(tensor.read())
        if name.endswith(("attention.query.weight", "attention.key.weight")):
            # llama.cpp turns neighbours, our Rotary halves.
            heads = config.n_kv_head if "key" in name else config.n_head
            raw = half_split(raw, heads or config.n_head)
        if four_bits and _in_four_bits(tensor) and name != "token.weight":
            weights[name] = BlockLinear(_in_blocks(raw))
        elif four_bits and name in ("token.weight", "head.weight"):
            layer = HalfEmbedding if name == "token.weight" else HalfLinear
            weights[name] = layer(_in_float16(raw, tensor.kind))
        else:
            weights[name] = _in_float32(raw, tensor.kind)
    model = _filled(config, weights, path)
    texts = ("tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.merges")
    return Checkpoint(model, tokenizer, {n: v for n, v in about.items() if n not in texts})


_GGUF_SETTINGS = {
    "general.architecture": ("llama",),
    "llama.rope.scaling.type": (None, "none"),
    "llama.expert_count": (None, 0),
    "tokenizer.ggml.model": ("gpt2",),
    "tokenizer.ggml.pre": ("gpt-2", "smollm"),
    "tokenizer.ggml.add_space_prefix": (False,),
}
_GGUF_NAMES = {
    "token_embd": "token",
    "output_norm": "norm",
    "attn_norm": "attention_norm",
    "attn_q": "attention.query",
    "attn_k": "attention.key",
    "attn_v": "attention.value",
    "attn_output": "attention.output",
    "ffn_norm": "mlp_norm",
    "ffn_gate": "mlp.gate",
    "ffn_up": "mlp.up",
    "ffn_down": "mlp.output",
    "blk.": "blocks.",
}


def _gguf_parts(path: Path) -> tuple[dict[str, Any], dict[str, Stored]]:
    """What a file says, if we compute it, and its tensors as it holds them."""
    about, stored = read_gguf(path)
    texts = (f"tokenizer.ggml.{name}" for name in ("tokens", "token_type", "merges"))
    if missing := {"general.architecture", "tokenizer.ggml.pre", *texts} - set(about):
        raise ValueError(f"{path} says nothing of {sorted(missing)}")
    _expect_computed(about, _GGUF_SETTINGS, path)
    return about, stored


def _gguf_config(about: Mapping[str, Any], tied: bool, source: Path) -> GPTConfig:
    def said(name: str) -> Any:
        return about.get(f"llama.{name}")

    config = _config(
        source,
        vocab_size=len(about["tokenizer.ggml.tokens"]),
        block_size=said("context_length"),
        n_layer=said("block_count"),
        n_head=said("attention.head_count"),
        n_embd=said("embedding_length"),
        norm_eps=said("attention.layer_norm_rms_epsilon"),
        hidden=said("feed_forward_length"),
        rotary_base=said("rope.freq_base") or 10_000.0,
        n_kv_head=said("attention.head_count_kv"),
        head_size=said("attention.key_length"),
        tied=tied,
    )
    whole = config.head_size or config.n_embd // config.n_head
    _expect_computed(about, {"llama.rope.dimension_count": (whole,)}, source)
    return config


def _gguf_tokenizer(about: Mapping[str, Any], source: Path) -> BPETokenizer:
    tokens, kinds = about["tokenizer.ggml.tokens"], about["tokenizer.ggml.token_type"]
    merges = map(str.split, about["tokenizer.ggml.merges"])
    try:
        return numbered_tokenizer(
            tokens,
            [(from_file(a), from_file(b)) for a, b in merges],
            [token for token, kind in zip(tokens, kinds, strict=True) if kind != _NORMAL],
            single_digits=about["tokenizer.ggml.pre"] == "smollm",
        )
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error


_NORMAL = 1  # of the kinds of tokens: control, user-defined, unused … are others


def _in_four_bits(stored: Stored) -> bool:
    return stored.kind == "Q4_1"


def _in_float32(raw: Tensor, kind: str) -> Tensor:
    """A tensor from a file's bytes, however few bits a number has there."""
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    if kind == "Q4_1":
        return _in_blocks(raw).matrix()
    return torch.from_numpy(dequantize(raw.numpy(), GGMLQuantizationType[kind]))


def _in_float16(raw: Tensor, kind: str) -> Tensor:
    if kind != "Q8_0":
        return _in_float32(raw, kind).half()
    # Straight from the blocks, a float16 scale and 32 whole numbers: a third of the memory.
    blocks = raw.unflatten(-1, (-1, 34))
    numbers = blocks[..., 2:].view(torch.int8).half()
    return numbers.mul_(blocks[..., :2].contiguous().view(torch.float16)).flatten(-2)


def _in_blocks(raw: Tensor) -> Blocks:
    """Q4_1: for every 32 numbers a scale and a minimum in float16, and 16 bytes, whose lower halves
    are the first 16 numbers."""
    blocks = raw.unflatten(-1, (-1, 20))
    scale, minimum = blocks[..., :4].contiguous().view(torch.float16).float().unbind(-1)
    numbers = torch.cat((blocks[..., 4:] & 15, blocks[..., 4:] >> 4), dim=-1)
    return Blocks(numbers.flatten(-2), scale, minimum)


# --- what they share ------------------------------------------------------------------------------


def _filled(config: GPTConfig, weights: Mapping[str, Any], source: str | Path) -> GPT:
    """The model with these weights, or layers in their place, if they are all that it wants."""
    with _Undrawn():
        model = GPT(config)
    expect_fit(weights_of(model), weights, source)
    for name, weight in weights.items():
        part, _, kind = name.rpartition(".")
        if isinstance(weight, Tensor):
            own = nn.Parameter(weight.float().contiguous())
            setattr(model.get_submodule(part), kind, own)
        else:
            model.set_submodule(part, weight)
    if isinstance(model.token, HalfEmbedding) and config.tied:
        model.set_submodule("head", HalfLinear(model.token.matrix))
    elif config.tied:
        model.head.weight = model.token.weight
    return model.eval()


class _Undrawn(TorchFunctionMode):
    """No first weights that nobody needs: memory that is never written to is not even taken.

    (The device "meta" does the same, but its first draw loads PyTorch's compiler, for seconds.)
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_):
            return kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def _config(source: str | Path, **settings: Any) -> GPTConfig:
    """Llama's, with these settings."""
    try:
        return GPTConfig(
            norm=nn.RMSNorm, mlp=SwiGLU, position=Rotary, **{"bias": False, **settings}
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source} does not describe a model: {error}") from error


def _renamed(tensors: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    result = {}
    for name, tensor in tensors.items():
        for theirs, ours in names.items():
            name = name.replace(theirs, ours)
        result[name] = tensor
    return result


def _read(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file, or of a folder's."""
    return {name: t for file in _pieces(path) for name, t in read_tensors(file)[0].items()}


def _pieces(path: Path) -> list[Path]:
    """The files that hold the weights of a model; ValueError if one of them is missing."""
    if not path.is_dir():
        return [path]
    pieces = sorted(path.glob("model-*-of-*.safetensors"))
    if not pieces or (path / "model.safetensors").exists():
        return [path / "model.safetensors"]
    if not pieces[-1].stem.endswith(f"-of-{len(pieces):05}"):
        raise ValueError(
            f"{path} holds only {[piece.name for piece in pieces]}: pieces are missing"
        )
    return pieces


def _config_json(path: Path) -> dict[str, Any]:
    try:
        return json_object(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _expect_computed(
    config: Mapping[str, Any], settings: Mapping[str, tuple[Any, ...]], source: str | Path
) -> None:
    for name, known in settings.items():
        if (given := config.get(name, known[0])) not in known:
            raise ValueError(f"{source}: {name} {given!r} is not what this GPT computes: {known}")
