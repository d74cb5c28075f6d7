"""Weights that others have published, as a GPT of this course: GPT-2's layout, Llama's, GGUF files.

What a file asks for and our GPT does not compute is refused by name: numbers in a model that is
not theirs make text that is only a little wrong. So is a setting that is not known here, unless it
asks for nothing: it may change what the model computes.
"""

import math
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Any

import torch
from torch import Tensor, nn

from helpers.checkpoints import Checkpoint, SkipInit, check_shapes, read_tensors, weight_shapes
from helpers.files import json_object
from helpers.gguf_file import Stored, read_gguf
from helpers.gpt import GPT, GPTConfig
from helpers.positions import Rotary, half_split
from helpers.quantised import HalfEmbedding, HalfLinear, QuantizedLinear, QuantizedTensor
from helpers.text import BPETokenizer
from helpers.text.bpe import from_file, tokenizer_from_vocabulary


def gpt2(weights: str | Path | Mapping[str, Tensor], n_head: int | None = None) -> GPT:
    """GPT-2 in the layout of Hugging Face's `transformers`, as a GPT of this course.

    weights: a state dict, a safetensors file, or a folder with `model.safetensors` (in one piece
    or several, model-00001-of-00002.safetensors …) and `config.json`; n_head: heads a layer; if
    None, that of `config.json`, or else C / 64, which is right for all published sizes. Tied or
    untied: if `lm_head.weight` is there and differs from the embeddings, the model is untied.

    Returns the model in evaluation mode. Raises FileNotFoundError, and ValueError for weights of
    another layout and a `config.json` that asks for what this GPT does not compute.
    Radford et al. 2019. Explained in: gpt.
    """
    source: str | Path = "the state dict"
    said: dict[str, Any] | None = None
    if isinstance(weights, Mapping):
        weights = _state_dict(weights)
    else:
        path = source = Path(weights)
        if path.is_dir() and (settings := path / "config.json").exists():
            said = _gpt2_settings(settings)
            n_head = said["n_head"] if n_head is None else n_head
        weights = _read(path)
    # With a language model's head the names begin with "transformer."; the masks are no weights.
    theirs = _renamed(weights, {"transformer.": ""}, source)
    theirs = {n: t for n, t in theirs.items() if not n.endswith((".attn.bias", ".masked_bias"))}
    if not {"wte.weight", "wpe.weight", "ln_f.weight"} <= set(theirs):
        raise ValueError(f"{source} is not in the layout of GPT-2: it has {sorted(theirs)[:4]} …")
    for name, shape in (("wte.weight", "(V, C)"), ("wpe.weight", "(T, C)")):
        if theirs[name].dim() != 2:
            raise ValueError(f"{source}: {name} should be {shape}, not {(*theirs[name].shape,)}")
    vocab_size, n_embd = theirs["wte.weight"].shape
    if n_head is None and n_embd % 64:
        raise ValueError(f"{source} is {n_embd} wide, no multiple of 64: give n_head, too")
    has_head = "lm_head.weight" in theirs
    head = theirs.pop("lm_head.weight", theirs["wte.weight"])
    tied = _equal(head, theirs["wte.weight"])
    ours = _renamed(_unfused(theirs, source), _GPT2_NAMES, source)
    ours = ours if tied else {**ours, "head.weight": head}
    if said is not None:
        _expect_sizes(said, _GPT2_SIZES, _shapes(ours), source)
        if not said["tied"] and not has_head:
            raise ValueError(f"{source}: tie_word_embeddings is false, but there is no lm_head")
        if said["tied"] and not tied:
            raise ValueError(
                f"{source}: tie_word_embeddings is true, or missing, which means true, but "
                "lm_head.weight differs from wte.weight"
            )
    config = GPTConfig(
        vocab_size,
        block_size=len(theirs["wpe.weight"]),
        n_layer=_blocks(ours),
        n_head=n_embd // 64 if n_head is None else n_head,
        n_embd=n_embd,
        tied=tied,
    )
    _expect_planned(config, _shapes(ours), source)
    return _filled(config, ours)


# What changes the result without changing a weight: the names in config.json, and what is meant
# where they are missing, first.
_GPT2_SETTINGS = {
    "model_type": ("gpt2",),
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "layer_norm_epsilon": (1e-5,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
}
# The names of sizes: ours, and theirs, of which transformers takes several.
_GPT2_SIZES = {
    "vocab_size": ("vocab_size",),
    "block_size": ("n_positions", "max_position_embeddings"),
    "n_layer": ("n_layer", "num_hidden_layers"),
    "n_head": ("n_head", "num_attention_heads"),
    "n_embd": ("n_embd", "hidden_size"),
    "hidden": ("n_inner",),
}
# What config.json says of training, of generating text, of tokens and of the files themselves,
# which is nothing to what the model computes; and what only rounding can notice.
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
    """The sizes in a config.json, if its other settings are those of our GPT."""
    config = _config_json(path)
    sizes = [name for names in _GPT2_SIZES.values() for name in names]
    _expect_computed(
        config, _GPT2_SETTINGS, {*sizes, "tie_word_embeddings", *_HARMLESS.split()}, path
    )
    said = _sizes(config, _GPT2_SIZES, path)
    tied = _yes_or_no(config, "tie_word_embeddings", True, path)
    return {**said, "n_head": said["n_head"] or 12, "tied": tied}  # 12: meant where it is missing


def _unfused(weights: Mapping[str, Tensor], source: str | Path) -> dict[str, Tensor]:
    """Their matrices stand the other way round, and queries, keys and values in one."""
    result = {}
    for name, tensor in weights.items():
        if name.endswith(".weight") and ".c_" in name and tensor.dim() == 2:
            tensor = tensor.T
        if ".c_attn." in name:
            if tensor.dim() == 0 or tensor.shape[0] % 3:
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
    Touvron et al. 2023. Explained in: real_weights.
    """
    source: str | Path = "the state dict"
    if isinstance(weights, Mapping):
        if config is None:
            raise ValueError("a state dict says nothing of heads and angles: give its config, too")
        said = _llama_settings(config, "the config")
        weights = _state_dict(weights)
    else:
        source = Path(weights)
        if config is None and source.is_file():
            raise ValueError(
                f"{source} is a file of weights, which says nothing of heads and angles: give the "
                "folder that holds it and its config.json, or the config, too"
            )
        settings_file = source / "config.json"
        said = (
            _llama_settings(_config_json(settings_file), settings_file)
            if config is None
            else _llama_settings(config, "the config")
        )
        weights = _read(source)
    theirs = {n: t for n, t in weights.items() if not n.endswith("rotary_emb.inv_freq")}
    table = theirs.get("model.embed_tokens.weight")
    if table is None or table.dim() != 2:
        raise ValueError(f"{source} is not in the layout of Llama: it has {sorted(theirs)[:4]} …")
    if said["tied"] and not _equal(theirs.pop("lm_head.weight", table), table):
        raise ValueError(f"{source}: config says that the head is the table, but it is another")
    ours = _renamed(theirs, _LLAMA_NAMES, source)
    _expect_sizes(said, _LLAMA_SIZES, _shapes(ours), source)
    settings = _config(source, **{**said, "vocab_size": len(table)})
    _expect_planned(settings, _shapes(ours), source)
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
_LLAMA_SIZES = {
    "vocab_size": ("vocab_size",),
    "block_size": ("max_position_embeddings",),
    "n_layer": ("num_hidden_layers",),
    "n_head": ("num_attention_heads",),
    "n_embd": ("hidden_size",),
    "hidden": ("intermediate_size",),
    "n_kv_head": ("num_key_value_heads",),
    "head_size": ("head_dim",),
}
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


def _llama_settings(config: Any, source: str | Path) -> dict[str, Any]:
    """From a config.json, by our names; where it is silent, what transformers means."""
    if not isinstance(config, Mapping):
        raise ValueError(
            f"config should be what stands in config.json, as a dict, not {type(config).__name__}"
        )
    sizes = [name for names in _LLAMA_SIZES.values() for name in names]
    read = {"rope_theta", "rope_scaling", "rope_parameters", "rms_norm_eps"}
    read |= {"attention_bias", "mlp_bias", "tie_word_embeddings"}
    windows = {"use_sliding_window", "sliding_window", "max_window_layers"}  # none if the first is
    windows = windows if config.get("use_sliding_window") is False else set()
    known = {*sizes, *read, *windows, *_HARMLESS.split()}
    _expect_computed(config, _LLAMA_SETTINGS, known, source)
    bias = _yes_or_no(config, "attention_bias", False, source)
    if _yes_or_no(config, "mlp_bias", False, source) is not bias:
        raise ValueError(f"{source}: this GPT has biases in attention and mlp, or in neither")
    said = _sizes(config, _LLAMA_SIZES, source)
    for name in ("n_layer", "n_head", "n_embd", "hidden"):
        if said[name] is None:
            raise ValueError(f"{source} says nothing of {_LLAMA_SIZES[name][0]}")
    return {
        **said,
        "block_size": said["block_size"] or 2048,
        "norm_eps": _number(config, "rms_norm_eps", 1e-6, source),
        "rotary_base": _rotary_base(config, source),
        "bias": bias,
        "tied": _yes_or_no(config, "tie_word_embeddings", False, source),
    }


def _rotary_base(config: Mapping[str, Any], source: str | Path) -> float:
    """The base of the angles, if nothing else is said of them under any of their names."""
    known = dict(config)
    said = [name for name in ("rope_scaling", "rope_parameters") if not _idle(config.get(name))]
    for name in said:
        angles = config[name]
        if not isinstance(angles, Mapping):
            raise ValueError(f"{source}: {name} should hold names and values, not {short(angles)}")
        where = f"{source}: {name} {short(angles)}"
        _expect_computed(angles, _LLAMA_ANGLES, {"rope_theta"}, where)
        known |= angles
    if len(said) > 1:
        raise ValueError(
            f"{source}: there are both rope_scaling and rope_parameters: give one of them"
        )
    base = _number(known, "rope_theta", 10_000.0, source)
    if base == 0:
        raise ValueError(f"{source}: rope_theta should be a number above 0, not {base}")
    return base


# --- GGUF -----------------------------------------------------------------------------------------


def gguf(path: str | Path, *, int4: bool = False) -> Checkpoint:
    """A Llama with its tokenizer from a GGUF file, the format of llama.cpp.

    Args:
        path: the file.
        int4: whether matrices that the file holds in blocks of 4 bits (its Q4_1) stay in 4 bits,
            with the token embedding in float16; otherwise all weights become float32.

    Returns the model in evaluation mode, its tokenizer, and as notes what else the file says, by
    the file's names: "tokenizer.chat_template", for example.

    Raises FileNotFoundError, and ValueError for a damaged file, another architecture, another way
    to cut text, for settings that this GPT does not compute, and for int4 of a file that has
    no such blocks. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
    Explained in: real_weights.
    """
    path = Path(path)
    about, stored = _gguf_parts(path)
    tokenizer = _gguf_tokenizer(about, path)
    if int4 and not any(map(_in_four_bits, stored.values())):
        raise ValueError(f"{path} holds no blocks of 4 bits (Q4_1)")
    ours = _renamed(stored, _GGUF_NAMES, path)
    if "output.weight" in ours and "head.weight" not in ours:
        ours["head.weight"] = ours.pop("output.weight")
    shapes = {name: tensor.sizes for name, tensor in ours.items()}
    config = _gguf_config(about, shapes, path)
    _expect_planned(config, shapes, path)
    weights: dict[str, Tensor | nn.Module] = {}
    for name, tensor in ours.items():
        raw = torch.from_numpy(tensor.read())
        if name.endswith(("attention.query.weight", "attention.key.weight")):
            # llama.cpp turns neighbours, our Rotary halves.
            heads = config.n_kv_head if "key" in name else config.n_head
            raw = half_split(raw, heads or config.n_head)
        if int4 and _in_four_bits(tensor) and name != "token.weight":
            weights[name] = QuantizedLinear(_in_blocks(raw))
        elif int4 and name in ("token.weight", "head.weight"):
            layer = HalfEmbedding if name == "token.weight" else HalfLinear
            weights[name] = layer(_in_float16(raw, tensor.kind))
        else:
            weights[name] = _in_float32(raw, tensor.kind)
    model = _filled(config, weights)
    texts = ("tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.merges")
    return Checkpoint(model, tokenizer, {n: v for n, v in about.items() if n not in texts})


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
_GGUF_SIZES = {
    "vocab_size": ("llama.vocab_size",),
    "block_size": ("llama.context_length",),
    "n_layer": ("llama.block_count",),
    "n_head": ("llama.attention.head_count",),
    "n_embd": ("llama.embedding_length",),
    "hidden": ("llama.feed_forward_length",),
    "n_kv_head": ("llama.attention.head_count_kv",),
    "head_size": ("llama.attention.key_length",),
}
_GGUF_EPS, _GGUF_BASE = "llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base"
_GGUF_TEXTS = ("model", "pre", "tokens", "token_type", "merges")
_GGUF_HEADS = ("llama.attention.value_length", "llama.rope.dimension_count")  # as key_length
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
    texts = (f"tokenizer.ggml.{name}" for name in _GGUF_TEXTS)
    needed_sizes = ("block_size", "n_layer", "n_head", "n_embd", "hidden")
    sizes = (_GGUF_SIZES[name][0] for name in needed_sizes)
    needed = {"general.architecture"}
    if about.get("general.architecture") == "llama":  # another one is refused below
        needed |= {_GGUF_EPS, *texts, *sizes}
    if missing := needed - set(about):
        raise ValueError(f"{path} says nothing of {sorted(missing)}")
    known = {name for names in _GGUF_SIZES.values() for name in names}
    known |= {_GGUF_EPS, _GGUF_BASE, *_GGUF_HEADS}
    # What others than Llama read is nothing to us, and zero means "not used".
    own = {n: about[n] for n in about if n in _GGUF_SETTINGS or n.startswith("llama.")}
    asked = {n: value for n, value in own.items() if n in _GGUF_SETTINGS or value}
    _expect_computed(asked, _GGUF_SETTINGS, known, path)
    return about, stored


def _gguf_config(
    about: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], source: Path
) -> GPTConfig:
    said = _sizes(about, _GGUF_SIZES, source)
    n_tokens = len(about["tokenizer.ggml.tokens"])
    _expect_sizes(said, _GGUF_SIZES, shapes, source)
    if shapes.get("token.weight", (n_tokens,))[0] != n_tokens:
        raise ValueError(
            f"{source} has {n_tokens} tokens, but token_embd.weight has shape "
            f"{shapes['token.weight']}"
        )
    config = _config(
        source,
        **{**said, "vocab_size": n_tokens},
        norm_eps=_number(about, _GGUF_EPS, None, source),
        rotary_base=_number(about, _GGUF_BASE, 10_000.0, source),
        tied="head.weight" not in shapes,
    )
    if config.rotary_base == 0:
        raise ValueError(f"{source}: {_GGUF_BASE} should be a number above 0, not 0.0")
    whole = config.head_size or config.n_embd // config.n_head
    _expect_computed(about, dict.fromkeys(_GGUF_HEADS, (whole,)), about, source)
    return config


def _gguf_tokenizer(about: Mapping[str, Any], source: Path) -> BPETokenizer:
    for name, kind in (("tokens", str), ("token_type", int), ("merges", str)):
        given = about[f"tokenizer.ggml.{name}"]
        if not isinstance(given, list) or not all(isinstance(one, kind) for one in given):
            kinds = "texts" if kind is str else "whole numbers"
            raise ValueError(
                f"{source}: tokenizer.ggml.{name} should be a list of {kinds}, not {short(given)}"
            )
    tokens, kinds = about["tokenizer.ggml.tokens"], about["tokenizer.ggml.token_type"]
    if len(tokens) != len(kinds):
        raise ValueError(
            f"{source}: there are {len(tokens)} tokenizer.ggml.tokens, but {len(kinds)} "
            "tokenizer.ggml.token_type"
        )
    merges = [merge.split(" ") for merge in about["tokenizer.ggml.merges"]]
    if odd := [merge for merge in merges if len(merge) != 2]:
        raise ValueError(
            f"{source}: tokenizer.ggml.merges should be pairs, not {short(' '.join(odd[0]))}"
        )
    try:
        return tokenizer_from_vocabulary(
            tokens,
            [(from_file(a), from_file(b)) for a, b in merges],
            [token for token, kind in zip(tokens, kinds, strict=True) if kind != _NORMAL],
            single_digits=about["tokenizer.ggml.pre"] == "smollm",
        )
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error


_NORMAL = 1  # of the kinds of tokens: control, user-defined, unused … are others


def _in_four_bits(stored: Stored) -> bool:
    return stored.kind == "Q4_1" and len(stored.shape) == 2


def _in_float32(raw: Tensor, kind: str) -> Tensor:
    """A tensor from a file's bytes, however few bits a number has there."""
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


def _expect_planned(
    config: GPTConfig, shapes: Mapping[str, tuple[int, ...]], source: str | Path
) -> None:
    """Raise ValueError unless these are the weights of such a model."""
    if config.n_layer > len(shapes):
        raise ValueError(f"{source} says {config.n_layer} blocks, but has {len(shapes)} tensors")
    try:
        planned = weight_shapes(config)
        if config.position == "Rotary":
            Rotary(config.head_size or config.n_embd // config.n_head, config.rotary_base)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{source} does not describe a model: {error}") from error
    check_shapes(planned, shapes, source)


def _filled(config: GPTConfig, weights: Mapping[str, Any]) -> GPT:
    """The model with these weights, which fit, or layers in their place."""
    with SkipInit():
        model = GPT(config)
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


def _config(source: str | Path, **settings: Any) -> GPTConfig:
    """Llama's, with these settings."""
    try:
        return GPTConfig(
            norm="RMSNorm", mlp="SwiGLU", position="Rotary", **{"bias": False, **settings}
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source} does not describe a model: {error}") from error


def _renamed(
    tensors: Mapping[str, Any], names: Mapping[str, str], source: str | Path
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, tensor in tensors.items():
        new = name
        for theirs, ours in names.items():
            new = new.replace(theirs, ours)
        if new in result:
            raise ValueError(f"{source} holds {name} twice, under two names")
        result[new] = tensor
    return result


def _state_dict(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A copy, if these are tensors that hold numbers."""
    for name, tensor in weights.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise ValueError(
                f"a state dict holds tensors by name, but under {name!r} this one holds "
                f"{type(tensor).__name__}"
            )
        if tensor.is_meta or tensor.layout is not torch.strided:
            raise ValueError(
                f"{name} is not an ordinary tensor with numbers, but a {tensor.layout} on the "
                f"device {tensor.device}"
            )
    return {name: tensor.clone() for name, tensor in weights.items()}


def _read(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file, or of a folder's."""
    result: dict[str, Tensor] = {}
    for file in _pieces(path):
        tensors = read_tensors(file)[0]
        if twice := sorted(result.keys() & tensors.keys()):
            raise ValueError(f"{file} holds weights that another piece holds, too: {twice[:3]} …")
        result |= tensors
    return result


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
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file")
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
    """Raise ValueError unless settings have one of their values, the first where they are missing,
    and none is there that is not known, unless it asks for nothing. others: the names of those that
    are looked at elsewhere, or by nobody."""
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
    """Does a setting with this value ask for nothing?"""
    return value is None or value is False or value in ("", [], {})


def _sizes(
    config: Mapping[str, Any], names: Mapping[str, tuple[str, ...]], source: str | Path
) -> dict[str, int | None]:
    """The sizes that are given, by our names; None for the others."""
    result: dict[str, int | None] = {}
    for ours, theirs in names.items():
        result[ours] = None
        for name in theirs:
            given = config.get(name)
            if given is None:
                continue
            if not isinstance(given, int) or isinstance(given, bool) or given < 1:
                raise ValueError(
                    f"{source}: {name} should be a whole number of 1 or more, not {short(given)}"
                )
            if result[ours] not in (None, given):
                raise ValueError(f"{source}: {' and '.join(theirs)} are the same, but differ")
            result[ours] = given
    return result


def _expect_sizes(
    said: Mapping[str, Any],
    names: Mapping[str, tuple[str, ...]],
    shapes: Mapping[str, tuple[int, ...]],
    source: str | Path,
) -> None:
    """Raise ValueError, with the name of a size, unless the weights are as large as is said."""
    heads, width = said["n_head"], said["n_embd"]
    each = said.get("head_size") or (width and width // heads)
    groups = said.get("n_kv_head") or heads
    for size, value, weight, axis in (
        ("n_embd", width, "token.weight", 1),
        ("vocab_size", said["vocab_size"], "token.weight", 0),
        ("block_size", said["block_size"], "position.table.weight", 0),
        ("n_head", each and heads * each, "blocks.0.attention.query.weight", 0),
        ("n_kv_head", each and groups * each, "blocks.0.attention.key.weight", 0),
        ("hidden", said["hidden"], "blocks.0.mlp.up.weight", 0),
    ):
        shape = shapes.get(weight)
        if said.get(size) is None or value is None or shape is None:
            continue
        if len(shape) != 2 or shape[axis] != value:
            of = "" if value == said[size] else f" heads of {each}"
            if of and said.get("head_size"):
                of += f" ({names['head_size'][0]})"
            raise ValueError(
                f"{source}: {names[size][0]} is {said[size]}{of}, but {weight} has shape "
                f"{tuple(shape)}"
            )
    held = _blocks(shapes)
    if said["n_layer"] not in (None, held):
        raise ValueError(
            f"{source}: {names['n_layer'][0]} is {said['n_layer']}, but there are weights of "
            f"{held} blocks"
        )


def _blocks(names: Iterable[str]) -> int:
    """How many blocks there are weights of."""
    return len({name.split(".")[1] for name in names if name.startswith("blocks.")})


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """Shapes of weights, if these are such as a model computes with."""
    for name, tensor in weights.items():
        if not tensor.is_floating_point():
            raise ValueError(f"{name} holds {tensor.dtype}, not floating-point numbers")
    return {name: tuple(tensor.shape) for name, tensor in weights.items()}


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool((a == b).all())


def _yes_or_no(config: Mapping[str, Any], name: str, default: bool, source: str | Path) -> bool:
    given = config.get(name, default)
    if given is not None and not isinstance(given, bool):
        raise ValueError(f"{source}: {name} should be true or false, not {short(given)}")
    return bool(given)


def _number(
    config: Mapping[str, Any], name: str, default: float | None, source: str | Path
) -> float:
    given = config.get(name, default)
    if not isinstance(given, int | float) or isinstance(given, bool) or not 0 <= given < math.inf:
        raise ValueError(f"{source}: {name} should be a number from 0 on, not {short(given)}")
    return given
