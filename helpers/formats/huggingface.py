"""Published weights as a GPT of this course: GPT-2's layout, Llama's, and GGUF files.

A setting that our GPT does not compute is refused by name, and so is one that is not known here,
unless it asks for nothing: wrong weights still write text, which is only a little wrong.
"""

import json
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from reprlib import repr as short
from typing import Any

import torch
from safetensors.torch import save
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor, nn

from helpers.formats.checkpoints import (
    SkipInit,
    check_layers,
    check_shapes,
    config_of,
    n_layers,
    read_tensors,
    to_dtype,
    weight_shapes,
    weights_in,
)
from helpers.formats.files import json_object, write_whole
from helpers.gpt import GPT, GPTConfig
from helpers.quantization import HalfEmbedding, HalfLinear
from helpers.text import BPETokenizer, CharTokenizer
from helpers.text.bpe import END, tokenizer_json


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
    "lm_head": "lm_head",
    "wte": "token",
    "wpe": "position",
    "ln_f": "norm",
    "h.": "blocks.",
    "ln_1": "attention_norm",
    "ln_2": "mlp_norm",
    "attn.c_proj": "attention.output",
    "attn.": "attention.",
    "mlp.c_fc": "mlp.up",
    "mlp.c_proj": "mlp.down",
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
    "lm_head": "lm_head",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "mlp_norm",
    "self_attn.q_proj": "attention.query",
    "self_attn.k_proj": "attention.key",
    "self_attn.v_proj": "attention.value",
    "self_attn.o_proj": "attention.output",
    "gate_proj": "gate",
    "up_proj": "up",
    "down_proj": "down",
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
        model.set_submodule("lm_head", HalfLinear(model.token.matrix))
    elif config.tied:
        model.lm_head.weight = model.token.weight
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


# --- a model of ours for other programs --------------------------------------------------


def to_huggingface(model: GPT, tokenizer: CharTokenizer | BPETokenizer, folder: str | Path) -> None:
    """Write a model with its tokenizer as a folder that the library `transformers` opens.

    Args:
        model: a `GPT` whose parts are those of one layout; which one follows from its config.
        tokenizer: the tokenizer with which the model was trained.
        folder: made by this call, if needed; only files of an earlier call are replaced.

    GPT-2's layout has norm="LayerNorm", mlp="FeedForward" and position="LearnedPosition", with as
    many heads of keys and values as of queries, of size C / H. Biases that the model does not have
    are written as zeros.

    Llama's layout has norm="RMSNorm", mlp="SwiGLU" and position="Rotary", with or without biases
    and grouped-query attention. n_head has to divide n_embd. Dropout, which a Llama does not have,
    is left out; it matters only in training.

    Either layout may be tied or untied. Neither has QK norm or convolutions.

    The folder gets `config.json`, `generation_config.json`, `model.safetensors` (in float32),
    `tokenizer.json` and `tokenizer_config.json`. `AutoModelForCausalLM.from_pretrained(folder)` and
    `AutoTokenizer.from_pretrained(folder)` open it without a network; `gpt2` or
    `llama` reads the model back. The special token "<|endoftext|>", if the tokenizer has it, begins
    and ends a text; "<|im_end|>" ends one, too, and with "<|im_start|>" the tokenizer gets the
    template of dialogues that `helpers.finetuning.chat_text` writes. Unlike our `encode`,
    `transformers` recognises special tokens in every text.

    Raises ValueError for a part that neither layout has, a part that was changed after the model
    was made, a tokenizer with another vocabulary, and numbers too large for float32; TypeError for
    another kind of model or tokenizer; FileExistsError for a folder that holds other files and none
    of an earlier call.

    Radford et al. 2019; Touvron et al. 2023. Explained in: real_weights.
    """
    config = _expect_plain(model, tokenizer)
    layout = _layout(config)
    special = tokenizer.special if isinstance(tokenizer, BPETokenizer) else {}
    ends = [special[name] for name in (END, _END_OF_MESSAGE) if name in special]
    ids = {  # where missing, they would mean other tokens
        "bos_token_id": special.get(END),
        "eos_token_id": ends if len(ends) > 1 else next(iter(ends), None),
    }
    weights = weights_in(torch.float32, model)
    about, tensors = _gpt2(config, weights) if layout == "GPT-2" else _llama(config, weights)
    tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    about_tokens = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.block_size,
        "clean_up_tokenization_spaces": False,
        # Versions of transformers before 5 would otherwise give a GPT-2 token types, which it adds.
        "model_input_names": ["input_ids", "attention_mask"],
        **({"bos_token": END, "eos_token": END} if END in special else {}),
        **({"chat_template": _CHAT} if {"<|im_start|>", _END_OF_MESSAGE} <= {*special} else {}),
        "made_by": _MARK,
    }
    folder = Path(folder)
    mark = folder / "tokenizer_config.json"
    if folder.exists() and any(folder.iterdir()):
        if not mark.is_file() or not mark.read_bytes().endswith(_json({"made_by": _MARK})[1:]):
            raise FileExistsError(
                f"{folder} is not empty, and to_huggingface did not make it. Nothing of others is "
                "overwritten: choose another folder, or move what is there"
            )
        (folder / "config.json").unlink(missing_ok=True)  # what is half new, nobody opens
    write_whole(mark, _json(about_tokens))
    write_whole(folder / "tokenizer.json", _tokenizer_file(tokenizer))
    write_whole(folder / "model.safetensors", save(tensors, metadata={"format": "pt"}))
    write_whole(folder / "generation_config.json", _json(ids))
    write_whole(folder / "config.json", _json({**about, **ids, "dtype": "float32"}))


# Where it ends a file, this module made the folder. Others may copy it, but sort what they write.
_MARK = "helpers.formats.huggingface.to_huggingface"
_END_OF_MESSAGE = "<|im_end|>"
_CHAT = (  # Jinja, which turns \n into the end of a line
    r"{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] }}"
    r"{{ '<|im_end|>\n' }}{% endfor %}"
    r"{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def _gpt2(config: GPTConfig, ours: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The config.json of a GPT-2, and its weights."""
    about = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        **_sizes_of(config, GPT2_SIZES),
        "activation_function": "gelu_new",
        "embd_pdrop": config.dropout,
        "resid_pdrop": config.dropout,
        "attn_pdrop": 0.0,
    }
    for name, weight in list(ours.items()):
        if name.startswith("blocks.") and weight.dim() == 2:
            ours.setdefault(name.replace(".weight", ".bias"), weight.new_zeros(len(weight)))
    theirs = _fused(renamed(ours, _inverse(GPT2_NAMES)))
    return about, {n if n[:2] == "lm" else f"transformer.{n}": t for n, t in theirs.items()}


def _fused(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Queries, keys and values in one matrix, and all matrices of linear layers transposed."""
    result = {}
    for name, tensor in weights.items():
        if ".attn.key." in name or ".attn.value." in name:
            continue
        if ".attn.query." in name:
            parts = [weights[name.replace("query", part)] for part in ("query", "key", "value")]
            name, tensor = name.replace("query", "c_attn"), torch.cat(parts)
        result[name] = tensor.T if ".c_" in name and tensor.dim() == 2 else tensor
    return result


def _llama(config: GPTConfig, ours: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The config.json of a Llama, and its weights."""
    about = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        **_sizes_of(config, LLAMA_SIZES),
        "hidden_act": "silu",
        "rope_theta": config.rotary_base,  # where versions of transformers before 5 look
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rotary_base},
        "attention_bias": config.bias,
        "mlp_bias": config.bias,
    }
    return about, renamed(ours, _inverse(LLAMA_NAMES))


# --- tokenizers and files -------------------------------------------------------------------------


def _tokenizer_file(tokenizer: CharTokenizer | BPETokenizer) -> bytes:
    """The tokenizer.json. Of characters: each is a word by itself; an unknown one is an error."""
    if isinstance(tokenizer, BPETokenizer):
        return tokenizer_json(tokenizer)
    ids = {symbol: id for id, symbol in enumerate(tokenizer.symbols)}
    theirs = Tokenizer(models.WordLevel(ids, unk_token="<unknown>"))
    theirs.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    theirs.decoder = decoders.Fuse()
    return theirs.to_str(pretty=True).encode()


# --- which layout ---------------------------------------------------------------------------------


def _layout(config: GPTConfig) -> str:
    """The name of the layout that has all parts of a model.

    Raises ValueError that says, for each layout, which settings it does not have.
    """
    neither = {"qk_norm": False, "convolution": None}
    of_one = config.n_embd // config.n_head
    layouts: dict[str, dict[str, Any]] = {
        "GPT-2": {
            "norm": "LayerNorm", "mlp": "FeedForward", "position": "LearnedPosition", **neither,
            "n_kv_head": config.n_head, "head_size": of_one, "n_embd": of_one * config.n_head,
        },
        "Llama": {
            "norm": "RMSNorm", "mlp": "SwiGLU", "position": "Rotary", **neither,
            "n_embd": of_one * config.n_head,
        },
    }  # fmt: skip
    unlike = {}
    for layout, settings in layouts.items():
        unlike[layout] = [
            f"{name}={wanted!r} instead of {getattr(config, name)!r}"
            for name, wanted in settings.items()
            if getattr(config, name) != wanted
        ]
        if not unlike[layout]:
            return layout
    needs = "; ".join(f"{layout}'s needs {', '.join(unlike[layout])}" for layout in layouts)
    raise ValueError(
        f"neither layout has all parts of this model: {needs}. Train a model with the settings of "
        "one layout; save_checkpoint keeps this one for the course"
    )


def _expect_plain(model: Any, tokenizer: Any) -> GPTConfig:
    """The config of a model, with every default filled in.

    Raises TypeError and ValueError unless the model consists of the parts that its config names,
    and the tokenizer fits.
    """
    config = getattr(model, "config", None)
    if not isinstance(config, GPTConfig):
        raise TypeError(
            f"model should be a GPT of helpers.gpt, whose config names its parts, not a "
            f"{type(model).__qualname__} of {type(model).__module__}: make one with the same "
            "settings, and load your weights into it by its names"
        )
    if not isinstance(tokenizer, CharTokenizer | BPETokenizer):
        raise TypeError(
            "tokenizer should be a CharTokenizer or a BPETokenizer, not "
            f"{type(tokenizer).__name__}: without it, nobody knows what the ids mean"
        )
    if tokenizer.vocab_size != config.vocab_size:
        raise ValueError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, the model {config.vocab_size}: give "
            "the tokenizer with which it was trained"
        )
    config_of(model)
    block = model.blocks[0]
    return replace(
        config,
        hidden=block.mlp.up.out_features,
        n_kv_head=block.attention.n_kv_head,
        head_size=block.attention.head_size,
        norm_eps=torch.finfo(torch.float32).eps if model.norm.eps is None else model.norm.eps,
    )


def _sizes_of(config: GPTConfig, names: dict[str, str]) -> dict[str, Any]:
    """The sizes of a config by their first name in the layout."""
    return {theirs: getattr(config, ours) for ours, theirs in _inverse(names).items()}


def _inverse(names: dict[str, str]) -> dict[str, str]:
    """Our names → theirs; of two of theirs, the first."""
    return {ours: theirs for theirs, ours in reversed(names.items())}


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, indent=2).encode()
