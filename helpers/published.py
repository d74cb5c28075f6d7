"""Published weights as a GPT of this course: GPT-2's layout, Llama's, and GGUF files.

A setting that our GPT does not compute is refused by name, and so is one that is not known here,
unless it asks for nothing: wrong weights still write text, which is only a little wrong.
"""

import re
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Any

import torch
from torch import Tensor, nn

from helpers.checkpoints import (
    Checkpoint,
    SkipInit,
    check_layers,
    check_shapes,
    n_layers,
    read_tensors,
    to_dtype,
    weight_shapes,
)
from helpers.files import json_object
from helpers.gguf_file import Stored, read_gguf
from helpers.gpt import GPT, GPTConfig
from helpers.positions import half_split
from helpers.quantised import HalfEmbedding, HalfLinear, QuantizedLinear, QuantizedTensor
from helpers.text import BPETokenizer
from helpers.text.bpe import tokenizer_from_vocabulary


def gpt2(weights: str | Path | Mapping[str, Tensor], n_head: int | None = None) -> GPT:
    """Return GPT-2, in the layout of Hugging Face's `transformers`, as a GPT of this course.

    Args:
        weights: a state dict, a safetensors file, or a folder with `model.safetensors` (or its
            pieces, model-00001-of-00002.safetensors …) and `config.json`.
        n_head: heads per block; None: as in `config.json`, or else C / 64, as in all published
            sizes.

    The model is in evaluation mode. Without `config.json`, it is untied if `lm_head.weight` differs
    from the token embedding.

    Raises FileNotFoundError, and ValueError for weights of another layout and for settings that
    this GPT does not compute.

    Radford et al. 2019. Explained in: gpt.
    """
    source, tensors = _tensors(weights)
    said: dict[str, Any] = {}
    if isinstance(source, Path) and (settings := source / "config.json").exists():
        said = _gpt2_settings(settings)
    # With a language model's head the names begin with "transformer."; the masks are no weights.
    theirs = renamed(tensors, {"transformer.": ""})
    theirs = {n: t for n, t in theirs.items() if not n.endswith((".attn.bias", ".masked_bias"))}
    if not {"wte.weight", "wpe.weight", "ln_f.weight"} <= set(theirs):
        raise ValueError(f"{source} is not in the layout of GPT-2: it has {sorted(theirs)[:4]} …")
    table, head = theirs["wte.weight"], theirs.get("lm_head.weight")
    same = head is None or _equal(head, table)
    tied = said.pop("tied", same)
    if tied and not same:
        raise ValueError(
            f"{source}: tie_word_embeddings is true, or missing, which means true, but "
            "lm_head.weight differs from wte.weight"
        )
    if tied:
        theirs.pop("lm_head.weight", None)
    ours = renamed(_unfused(theirs), GPT2_NAMES)
    n_embd = table.shape[-1]
    n_head = n_head or said.get("n_head")
    if n_head is None and n_embd % 64:
        raise ValueError(f"{source} is {n_embd} wide, not a multiple of 64: give n_head, too")
    sizes = {
        "vocab_size": len(table),
        "block_size": len(theirs["wpe.weight"]),
        "n_layer": n_layers(ours),
        "n_embd": n_embd,
        **said,
        "n_head": n_head or n_embd // 64,
    }
    config = _config(source, GPTConfig, **sizes, tied=tied)
    _check_weights(config, _shapes(ours), source)
    return _filled(config, ours)


# What changes the result without changing a weight: the names in config.json, and what is meant
# where they are missing, first.
_GPT2_SETTINGS = {
    "model_type": ("gpt2",),
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
}
GPT2_SIZES = {
    "vocab_size": "vocab_size",
    "n_positions": "block_size",
    "max_position_embeddings": "block_size",
    "n_layer": "n_layer",
    "num_hidden_layers": "n_layer",
    "n_head": "n_head",
    "num_attention_heads": "n_head",
    "n_embd": "n_embd",
    "hidden_size": "n_embd",
    "n_inner": "hidden",
    "layer_norm_epsilon": "norm_eps",
    "tie_word_embeddings": "tied",
}
# Settings for training, sampling, tokens and files, which do not change what the model computes,
# and those that change only its rounding.
_HARMLESS = """
    _attn_implementation_autoset _commit_hash _name_or_path _num_labels architectures
    attention_dropout attn_implementation attn_pdrop bad_words_ids begin_suppress_tokens
    bos_token_id chunk_size_feed_forward decoder_start_token_id diversity_penalty do_sample
    dtype early_stopping embd_pdrop encoder_no_repeat_ngram_size eos_token_id
    exponential_decay_length_penalty finetuning_task forced_bos_token_id forced_eos_token_id
    gradient_checkpointing id2label initializer_range is_llama_config label2id length_penalty
    max_length min_length n_ctx n_special name_or_path no_repeat_ngram_size num_beam_groups
    num_beams num_labels num_return_sequences output_attentions output_hidden_states output_past
    output_scores pad_token_id predict_special_tokens prefix problem_type remove_invalid_values
    reorder_and_upcast_attn repetition_penalty resid_pdrop return_dict return_dict_in_generate
    sep_token_id summary_activation summary_first_dropout summary_proj_to_labels summary_type
    summary_use_proj suppress_tokens task_specific_params temperature tf_legacy_loss
    tokenizer_class top_k top_p torch_dtype torchscript transformers.js_config
    transformers_version typical_p unsloth_fixed unsloth_version use_bfloat16 use_cache
"""


def _gpt2_settings(path: Path) -> dict[str, Any]:
    """The sizes in a config.json, by our names, if its other settings are those of our GPT."""
    config = _config_json(path)
    _expect_computed(config, _GPT2_SETTINGS, {*GPT2_SIZES, *_HARMLESS.split()}, path)
    return {"n_head": 12, "norm_eps": 1e-5, "tied": True, **_sizes(config, GPT2_SIZES)}


def _unfused(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Transpose their matrices, and split those that hold queries, keys and values."""
    result: list[tuple[str, Tensor]] = []
    for name, tensor in weights.items():
        if name.endswith(".weight") and ".c_" in name and tensor.dim() == 2:
            tensor = tensor.T
        if ".c_attn." in name:
            for part, piece in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                result.append((name.replace("c_attn", part), piece))
        else:
            result.append((name, tensor))
    return _once(result)


GPT2_NAMES = {
    "lm_head": "head",
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
    """Return a Llama, in the layout of Hugging Face's `transformers`, as a GPT of this course.

    Args:
        weights: a folder with `config.json` and `model.safetensors` (or its pieces), or, with
            config, a safetensors file or a state dict.
        config: the content of `config.json`; None: read from the folder.

    The model is in evaluation mode, in float32.

    Raises FileNotFoundError, and ValueError for weights of another layout and for settings that
    this GPT does not compute.

    Touvron et al. 2023. Explained in: real_weights.
    """
    source, tensors = _tensors(weights)
    if config is not None:
        said = _llama_settings(config, "the config")
    elif isinstance(source, Path) and not source.is_file():
        said = _llama_settings(_config_json(source / "config.json"), source / "config.json")
    else:
        raise ValueError(
            f"{source} holds weights only, which say nothing of heads and angles: give its config, "
            "too, or the folder with its config.json"
        )
    theirs = {n: t for n, t in tensors.items() if not n.endswith("rotary_emb.inv_freq")}
    table = theirs.get("model.embed_tokens.weight")
    if table is None:
        raise ValueError(f"{source} is not in the layout of Llama: it has {sorted(theirs)[:4]} …")
    if said["tied"] and not _equal(theirs.pop("lm_head.weight", table), table):
        raise ValueError(
            f"{source}: tie_word_embeddings is true, but lm_head.weight differs from "
            "model.embed_tokens.weight"
        )
    ours = renamed(theirs, LLAMA_NAMES)
    settings = _config(source, _llama_config, **{"vocab_size": len(table), **said})
    _check_weights(settings, _shapes(ours), source)
    return _filled(settings, ours)


_LLAMA_SETTINGS = {
    "model_type": ("llama",),
    "hidden_act": ("silu", "swish"),
    "partial_rotary_factor": (1, None),
    "is_causal": (True, None),
    "pretraining_tp": (1, None),
    "embedding_multiplier": (1, None),
    "residual_multiplier": (1, None),
    "logits_scaling": (1, None),
}
_LLAMA_ANGLES = {
    "rope_type": ("default", None),
    "type": ("default", None),  # the older name
    "partial_rotary_factor": (1, None),
}
LLAMA_SIZES = {
    "vocab_size": "vocab_size",
    "max_position_embeddings": "block_size",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "hidden_size": "n_embd",
    "intermediate_size": "hidden",
    "num_key_value_heads": "n_kv_head",
    "head_dim": "head_size",
    "rms_norm_eps": "norm_eps",
    "tie_word_embeddings": "tied",
}
LLAMA_NAMES = {
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


def _llama_settings(config: Any, source: str | Path) -> dict[str, Any]:
    """The settings in a config.json, by our names; where one is missing, the default of
    transformers."""
    if not isinstance(config, Mapping):
        raise ValueError(
            f"config should be what stands in config.json, as a dict, not {type(config).__name__}"
        )
    read = {"rope_theta", "rope_scaling", "rope_parameters", "attention_bias", "mlp_bias"}
    if config.get("use_sliding_window") is False:  # then these mean nothing
        read |= {"use_sliding_window", "sliding_window", "max_window_layers"}
    _expect_computed(config, _LLAMA_SETTINGS, {*LLAMA_SIZES, *read, *_HARMLESS.split()}, source)
    bias = config.get("attention_bias", False)
    if config.get("mlp_bias", False) != bias:
        raise ValueError(f"{source}: this GPT has biases in attention and mlp, or in neither")
    return {
        "block_size": 2048,
        "norm_eps": 1e-6,
        "tied": False,
        **_sizes(config, LLAMA_SIZES),
        "rotary_base": _rotary_base(config, source),
        "bias": bias,
    }


def _rotary_base(config: Mapping[str, Any], source: str | Path) -> float:
    """The base of the angles; versions of transformers write it in three places."""
    base = config.get("rope_theta", 10_000.0)
    for name in ("rope_scaling", "rope_parameters"):
        if angles := config.get(name):
            where = f"{source}: {name} {short(angles)}"
            if not isinstance(angles, Mapping):
                raise ValueError(f"{where} should hold names with their values")
            _expect_computed(angles, _LLAMA_ANGLES, {"rope_theta"}, where)
            base = angles.get("rope_theta", base)
    return base


def _llama_config(**settings: Any) -> GPTConfig:
    return GPTConfig(norm="RMSNorm", mlp="SwiGLU", position="Rotary", **settings)


# --- GGUF -----------------------------------------------------------------------------------------


def gguf(path: str | Path, *, int4: bool = False) -> Checkpoint:
    """Return a Llama with its tokenizer from a GGUF file, the format of llama.cpp.

    Args:
        path: the file.
        int4: whether matrices that the file holds in blocks of 4 bits (its Q4_1) stay in 4 bits,
            with the token embedding in float16; otherwise all weights become float32.

    Returns the model in evaluation mode, its tokenizer, and as notes what else the file says, by
    the file's names: "tokenizer.chat_template", for example.

    Raises FileNotFoundError, and ValueError for a damaged file, another architecture, another
    pre-tokenizer, settings that this GPT does not compute, and int4 without such blocks.

    https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Explained in: real_weights.
    """
    path = Path(path)
    about, stored = read_gguf(path)
    _expect_llama(about, path)
    tokenizer = _gguf_tokenizer(about, path)
    if int4 and not any(map(_in_four_bits, stored.values())):
        raise ValueError(f"{path} holds no blocks of 4 bits (Q4_1)")
    ours = renamed(stored, GGUF_NAMES)
    shapes = {name: tensor.sizes for name, tensor in ours.items()}
    config = _config(
        path,
        _llama_config,
        **_sizes(about, GGUF_SIZES),
        vocab_size=tokenizer.vocab_size,
        bias=False,
        tied="head.weight" not in ours,
    )
    _check_weights(config, shapes, path)
    head_size = config.head_size or config.n_embd // config.n_head
    _expect_computed(about, dict.fromkeys(_GGUF_HEADS, (head_size,)), about, path)
    weights: dict[str, Tensor | nn.Module] = {}
    for name, tensor in ours.items():
        raw = torch.from_numpy(tensor.read())
        if name.endswith(("attention.query.weight", "attention.key.weight")):
            # llama.cpp rotates neighbouring features, our Rotary those of the two halves.
            heads = config.n_kv_head if "key" in name else config.n_head
            raw = half_split(raw, heads or config.n_head)
        if int4 and _in_four_bits(tensor) and name != "token.weight":
            weights[name] = QuantizedLinear(_in_blocks(raw))
        elif int4 and name in ("token.weight", "head.weight"):
            layer = HalfEmbedding if name == "token.weight" else HalfLinear
            half = _in_float16(raw, tensor.kind)
            if half.isinf().any():
                raise ValueError(f"{path}: {name} holds numbers too large for torch.float16")
            weights[name] = layer(half)
        else:
            weights[name] = _in_float32(raw, tensor.kind)
    model = _filled(config, weights)
    return Checkpoint(model, tokenizer, {n: v for n, v in about.items() if n not in _GGUF_TEXTS})


_GGUF_SETTINGS = {
    "general.architecture": ("llama",),
    "llama.attention.causal": (None, True),
    "llama.embedding_scale": (None, 0, 1),
    "llama.logit_scale": (None, 0, 1),
    "llama.residual_scale": (None, 0, 1),
    "llama.rope.scaling.attn_factor": (None, 1),
    "llama.rope.scaling.factor": (None, 0, 1),
    "llama.rope.scaling.type": (None, "none", "linear"),  # linear: by the factor, 1
    "llama.rope.scale_linear": (None, 0, 1),  # the older name of the factor
    "llama.tensor_data_layout": (None, "Meta AI original pth"),
    "tokenizer.ggml.model": ("gpt2",),
    "tokenizer.ggml.pre": ("gpt-2", "smollm"),
    "tokenizer.ggml.add_space_prefix": (False,),
}
GGUF_SIZES = {
    "llama.context_length": "block_size",
    "llama.block_count": "n_layer",
    "llama.attention.head_count": "n_head",
    "llama.embedding_length": "n_embd",
    "llama.feed_forward_length": "hidden",
    "llama.attention.head_count_kv": "n_kv_head",
    "llama.attention.key_length": "head_size",
    "llama.attention.layer_norm_rms_epsilon": "norm_eps",
    "llama.rope.freq_base": "rotary_base",
}
_GGUF_TEXTS = [f"tokenizer.ggml.{name}" for name in ("tokens", "token_type", "merges")]
_GGUF_HEADS = ("llama.attention.value_length", "llama.rope.dimension_count")  # as key_length
GGUF_NAMES = {
    "token_embd": "token",
    "output_norm": "norm",
    "output.weight": "head.weight",
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


def _expect_llama(about: Mapping[str, Any], path: Path) -> None:
    """Raise ValueError unless a file says what our GPT computes, and all that it needs."""
    known = {*GGUF_SIZES, "llama.vocab_size", *_GGUF_HEADS}
    # Other names do not concern a Llama, and 0 means "not used".
    own = {n: v for n, v in about.items() if n in _GGUF_SETTINGS or (v and n.startswith("llama."))}
    _expect_computed(own, _GGUF_SETTINGS, known, path)
    needed = {
        "llama.attention.layer_norm_rms_epsilon",
        *_GGUF_TEXTS,
        "tokenizer.ggml.model",
        "tokenizer.ggml.pre",
    }
    if missing := sorted(needed - set(about)):
        raise ValueError(f"{path} says nothing of {missing}")


def _gguf_tokenizer(about: Mapping[str, Any], path: Path) -> BPETokenizer:
    tokens, kinds, merges = (about[name] for name in _GGUF_TEXTS)
    try:
        return tokenizer_from_vocabulary(
            {token: id for id, token in enumerate(tokens)},
            [merge.split(" ") for merge in merges],
            [token for token, kind in zip(tokens, kinds, strict=True) if kind != _NORMAL],
            single_digits=about["tokenizer.ggml.pre"] == "smollm",
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


_NORMAL = 1  # of the kinds of tokens: control, user-defined, unused … are others


def _in_four_bits(stored: Stored) -> bool:
    return stored.kind == "Q4_1" and len(stored.shape) == 2


def _in_float32(raw: Tensor, kind: str) -> Tensor:
    """A tensor from the bytes in a file."""
    if kind == "Q4_1":
        return _in_blocks(raw).matrix()
    if kind == "Q8_0":
        return _of_8_bits(raw, torch.float32)
    dtypes = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
    return raw.contiguous().view(dtypes[kind]).float()


def _in_float16(raw: Tensor, kind: str) -> Tensor:
    if kind == "Q8_0":  # straight from the blocks: a third of the memory
        return _of_8_bits(raw, torch.float16)
    return _in_float32(raw, kind).half()


def _of_8_bits(raw: Tensor, dtype: torch.dtype) -> Tensor:
    """Q8_0: for every 32 numbers a scale in float16, and 32 whole numbers of 8 bits."""
    blocks = raw.unflatten(-1, (-1, 34))
    numbers = blocks[..., 2:].view(torch.int8).to(dtype)
    return numbers.mul_(blocks[..., :2].contiguous().view(torch.float16)).flatten(-2)


def _in_blocks(raw: Tensor) -> QuantizedTensor:
    """Q4_1: for every 32 numbers a scale and a minimum in float16, and 16 bytes, whose lower halves
    are the first 16 numbers."""
    blocks = raw.unflatten(-1, (-1, 20))
    scale, minimum = blocks[..., :4].contiguous().view(torch.float16).float().unbind(-1)
    numbers = torch.cat((blocks[..., 4:] & 15, blocks[..., 4:] >> 4), dim=-1)
    return QuantizedTensor(numbers.flatten(-2), scale, minimum)


# --- what they share ------------------------------------------------------------------------------


def _check_weights(
    config: GPTConfig, shapes: Mapping[str, tuple[int, ...]], source: str | Path
) -> None:
    """Raise ValueError unless a model with this config has weights of these shapes."""
    try:
        check_layers(config, shapes)
        planned = weight_shapes(config)
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"{source} does not describe a model: {error}") from error
    check_shapes(planned, shapes, source)


def _filled(config: GPTConfig, weights: Mapping[str, Any]) -> GPT:
    """The model with these weights, or with a layer in place of a weight."""
    with SkipInit():
        model = GPT(config)
    for name, weight in weights.items():
        part, _, kind = name.rpartition(".")
        if isinstance(weight, Tensor):
            own = nn.Parameter(to_dtype(weight, torch.float32, name).contiguous())
            setattr(model.get_submodule(part), kind, own)
        else:
            model.set_submodule(part, weight)
    if isinstance(model.token, HalfEmbedding) and config.tied:
        model.set_submodule("head", HalfLinear(model.token.matrix))
    elif config.tied:
        model.head.weight = model.token.weight
    return model.eval()


def _config(source: str | Path, kind: Callable[..., GPTConfig], **settings: Any) -> GPTConfig:
    try:
        return kind(**settings)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source} does not describe a model: {error}") from error


def renamed(tensors: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the tensors with each part of a name that `names` holds replaced: part → new part.

    Raises ValueError if two tensors would get one name. Explained in: real_weights.
    """
    parts = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    return _once((parts.sub(lambda part: names[part[0]], name), t) for name, t in tensors.items())


def _once(named: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The tensors by name; ValueError if a name occurs twice: which of the two is meant?"""
    result: dict[str, Any] = {}
    for name, tensor in named:
        if name in result:
            raise ValueError(f"the weight {name} is there twice: are these files of two models?")
        result[name] = tensor
    return result


def _tensors(weights: str | Path | Mapping[str, Any]) -> tuple[str | Path, dict[str, Tensor]]:
    """Where weights come from, and the weights, which are nobody else's."""
    if not isinstance(weights, Mapping):
        path = Path(weights)
        pieces = (read_tensors(piece)[0] for piece in _pieces(path))
        return path, _once(named for piece in pieces for named in piece.items())
    for name, tensor in weights.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(
                f"a state dict holds tensors by name, but under {name!r} this one holds "
                f"{type(tensor).__name__}"
            )
    return "the state dict", {name: tensor.clone() for name, tensor in weights.items()}


def _pieces(path: Path) -> list[Path]:
    """The files that hold the weights of a model; ValueError if they are not all pieces of one."""
    if not path.is_dir():
        return [path]
    found = sorted(piece.name for piece in path.glob("model-*-of-*.safetensors"))
    if not found or (path / "model.safetensors").exists():
        return [path / "model.safetensors"]
    n = len(found)
    if found != [f"model-{i:05}-of-{n:05}.safetensors" for i in range(1, n + 1)]:
        raise ValueError(f"{path} holds {found}: pieces are missing, or are of two models")
    return [path / name for name in found]


def _config_json(path: Path) -> dict[str, Any]:
    try:
        return json_object(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _expect_computed(
    config: Mapping[str, Any],
    settings: Mapping[str, tuple[Any, ...]],
    others: Container[str],
    source: str | Path,
) -> None:
    """Raise ValueError for a setting that this GPT does not compute, or that is not known.

    settings: name → the values that are computed, of which the first is the default; others: names
    that are checked elsewhere or need no check. A setting that is not known may ask for nothing.
    """
    for name, known in settings.items():
        if (given := config.get(name, known[0])) not in known:
            raise ValueError(
                f"{source}: {name} {short(given)} is not what this GPT computes: {known}"
            )
    for name, given in config.items():
        if name not in settings and name not in others and not _idle(given):
            raise ValueError(
                f"{source}: {name} {short(given)} is a setting that is not known here. It may "
                "change what the model computes; if it does not, remove it"
            )


def _idle(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def _sizes(config: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The settings that are given, by our names."""
    return {ours: config[n] for n, ours in names.items() if config.get(n) is not None}


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in weights.items()}


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool((a == b).all())
