"""GPT-2's and Llama's layout of Hugging Face's `transformers`, as a GPT of this course and back.

The settings that change what a model computes without changing a weight are compared with what our
GPT computes (`GPT2_COMPUTED`, `LLAMA_COMPUTED`): wrong weights still write text, a little wrong.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from helpers.formats.checkpoints import (
    check_vocabulary,
    config_json,
    described,
    filled,
    fitting_config,
    n_layers,
    read_tensors,
    renamed,
    shapes_of,
    to_bytes,
    to_json,
    weights_in,
)
from helpers.formats.files import newest, read_json, write_folder
from helpers.formats.tokenizer_json import tokenizer_json
from helpers.gpt import GPT, GPTConfig
from helpers.text import BPETokenizer, Tokenizer
from helpers.text.bpe import END

# Their settings → ours; their weights → ours, part by part; settings that must be one of these.
GPT2_SIZES = {
    "vocab_size": "vocab_size", "n_positions": "block_size",
    "max_position_embeddings": "block_size", "n_layer": "n_layer", "num_hidden_layers": "n_layer",
    "n_head": "n_head", "num_attention_heads": "n_head", "n_embd": "n_embd",
    "hidden_size": "n_embd", "n_inner": "hidden", "layer_norm_epsilon": "norm_eps",
    "tie_word_embeddings": "tied",
}  # fmt: skip
GPT2_NAMES = {
    "wte": "token", "wpe": "position", "ln_f": "norm", "h.": "blocks.", "lm_head": "lm_head",
    "ln_1": "attention_norm", "ln_2": "mlp_norm", "attn.c_proj": "attention.output",
    "attn.": "attention.", "mlp.c_fc": "mlp.up", "mlp.c_proj": "mlp.down",
}  # fmt: skip
GPT2_COMPUTED = {
    "model_type": ("gpt2",),
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
}
LLAMA_SIZES = {
    "vocab_size": "vocab_size", "max_position_embeddings": "block_size",
    "num_hidden_layers": "n_layer", "num_attention_heads": "n_head", "hidden_size": "n_embd",
    "intermediate_size": "hidden", "num_key_value_heads": "n_kv_head", "head_dim": "head_size",
    "rms_norm_eps": "norm_eps", "rope_theta": "rotary_base", "attention_bias": "bias",
    "tie_word_embeddings": "tied",
}  # fmt: skip
LLAMA_NAMES = {
    "model.embed_tokens": "token", "model.layers.": "blocks.", "model.norm": "norm",
    "lm_head": "lm_head", "input_layernorm": "attention_norm",
    "post_attention_layernorm": "mlp_norm", "self_attn.q_proj": "attention.query",
    "self_attn.k_proj": "attention.key", "self_attn.v_proj": "attention.value",
    "self_attn.o_proj": "attention.output", "gate_proj": "gate", "up_proj": "up",
    "down_proj": "down",
}  # fmt: skip
LLAMA_COMPUTED = {
    "model_type": ("llama",),
    "hidden_act": ("silu", "swish"),
    "rope_type": ("default",),
    "type": ("default",),  # of the angles; the older name
    "partial_rotary_factor": (1,),
}
Weights = str | Path | Mapping[str, Tensor]
QKV = ("query", "key", "value")
GPT2: dict[str, Any] = dict(norm="LayerNorm", mlp="FeedForward", position="LearnedPosition")
LLAMA: dict[str, Any] = dict(norm="RMSNorm", mlp="SwiGLU", position="Rotary")


def gpt2(weights: Weights, config: Mapping[str, Any] | None = None) -> GPT:
    """Return GPT-2, in the layout of `transformers`, as a GPT of this course.

    weights: a folder with `config.json` and `model.safetensors`, or a state dict; then config is
    the content of `config.json`. ValueError for what is not GPT-2. Radford et al. 2019.
    """
    source, tensors, said = _open(weights, config, GPT2_COMPUTED)
    # With a language model's head the names begin with "transformer."; the masks are no weights.
    theirs = {n.removeprefix("transformer."): t for n, t in tensors.items()}
    masks = (".attn.bias", ".masked_bias")
    ours = renamed(_unfused({n: t for n, t in theirs.items() if not n.endswith(masks)}), GPT2_NAMES)
    if not {"token.weight", "position.weight"} <= set(ours):
        raise ValueError(f"{source} is not in the layout of GPT-2: it has {sorted(tensors)[:4]} …")
    (V, C), head = ours["token.weight"].shape, ours.get("lm_head.weight")
    sizes = {
        "vocab_size": V,
        "block_size": len(ours["position.weight"]),
        "n_layer": n_layers(ours),
        "n_head": 12,  # the default of transformers
        "n_embd": C,
        "norm_eps": 1e-5,
        "tied": head is None or torch.equal(head, ours["token.weight"]),
    }
    return _model(source, ours, sizes | renamed_sizes(said, GPT2_SIZES))


def _unfused(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Transpose their matrices, and split those that hold queries, keys and values."""
    result = {}
    for name, tensor in weights.items():
        turned = tensor.T if ".c_" in name and tensor.dim() == 2 else tensor
        parts = QKV if ".c_attn." in name else ("c_attn",)
        for part, piece in zip(parts, turned.chunk(len(parts)), strict=True):
            result[name.replace("c_attn", part)] = piece
    return result


def llama(weights: Weights, config: Mapping[str, Any] | None = None) -> GPT:
    """Return a Llama, in the layout of `transformers`, as a GPT of this course.

    Takes and raises what `gpt2` does. Touvron et al. 2023.
    """
    source, tensors, said = _open(weights, config, LLAMA_COMPUTED)
    ours = renamed({n: t for n, t in tensors.items() if "inv_freq" not in n}, LLAMA_NAMES)
    if "token.weight" not in ours:
        raise ValueError(f"{source} is not in the layout of Llama: it has {sorted(tensors)[:4]} …")
    defaults = {"block_size": 2048, "norm_eps": 1e-6, "tied": False, "bias": False}
    sizes = {"vocab_size": len(ours["token.weight"]), **renamed_sizes(said, LLAMA_SIZES)}
    return _model(source, ours, LLAMA | defaults | sizes)


# --- what the readers share -----------------------------------------------------------------------


def renamed_sizes(said: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {ours: said[theirs] for theirs, ours in names.items() if said.get(theirs) is not None}


def expect_computed(
    said: Mapping[str, Any], computed: Mapping[str, tuple[Any, ...]], source: str | Path
) -> None:
    for name, known in computed.items():
        if said.get(name) is not None and said[name] not in known:
            raise ValueError(f"{source}: {name} {said[name]!r} is not what this GPT computes")


def _model(source: str | Path, ours: dict[str, Tensor], settings: Mapping[str, Any]) -> GPT:
    if settings["tied"]:
        ours.pop("lm_head.weight", None)
    return filled(fitting_config(source, shapes_of(ours), settings), ours, source)


def _open(
    weights: Weights, config: Mapping[str, Any] | None, computed: Mapping[str, tuple[Any, ...]]
) -> tuple[str, dict[str, Tensor], dict[str, Any]]:
    """Where weights come from, the weights, and what config.json says."""
    if isinstance(weights, Mapping):
        source, tensors = "the state dict", {name: t.clone() for name, t in weights.items()}
    else:
        source, (tensors, _) = str(weights), read_tensors(newest(weights, "model.safetensors"))
        config = config or read_json(newest(weights, "config.json"))
    said = dict(config or {})
    for name in ("rope_scaling", "rope_parameters"):  # where versions of transformers have angles
        said |= said.get(name) or {}
    expect_computed(said, computed, source)
    return source, tensors, said


# --- a model of ours for other programs -----------------------------------------------------------


def to_huggingface(model: nn.Module, tokenizer: Tokenizer, folder: str | Path) -> None:
    """Write a model with its tokenizer as a folder that the library `transformers` opens.

    GPT-2's layout has norm="LayerNorm", mlp="FeedForward" and position="LearnedPosition"; missing
    biases become zeros. Llama's has norm="RMSNorm", mlp="SwiGLU" and position="Rotary". ValueError
    for parts that neither has. "<|endoftext|>" begins and ends a text; "<|im_end|>" ends one, too.
    """
    layout, config = exported(model, tokenizer)
    weights = weights_in(torch.float32, model)
    if layout == "GPT-2":
        tensors = _as_gpt2(weights)
        about = {
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            **sizes_of(config, GPT2_SIZES),
            "activation_function": "gelu_new",
            "embd_pdrop": config.dropout,
            "resid_pdrop": config.dropout,
            "attn_pdrop": 0.0,
        }
    else:
        tensors = renamed(weights, inverse(LLAMA_NAMES))
        about = {
            "model_type": "llama",
            "architectures": ["LlamaForCausalLM"],
            **sizes_of(config, LLAMA_SIZES),
            # Where transformers 5 looks for angles; older versions look among the sizes.
            "rope_parameters": {"rope_type": "default", "rope_theta": config.rotary_base},
            "hidden_act": "silu",
            "mlp_bias": config.bias,
        }
    special = tokenizer.special if isinstance(tokenizer, BPETokenizer) else {}
    ends = [special[name] for name in (END, "<|im_end|>") if name in special]
    eos = ends if len(ends) > 1 else next(iter(ends), None)
    ids = {"bos_token_id": special.get(END), "eos_token_id": eos}  # missing ones mean other tokens
    about_tokens = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.block_size,
        "clean_up_tokenization_spaces": False,
        # Versions of transformers before 5 would otherwise give a GPT-2 token types, which it adds.
        "model_input_names": ["input_ids", "attention_mask"],
        **({"bos_token": END, "eos_token": END} if END in special else {}),
    }
    files = {
        "config.json": config_json({**about, **ids, "dtype": "float32"}),
        "generation_config.json": to_json(ids),
        "model.safetensors": to_bytes(tensors),
        "tokenizer.json": tokenizer_json(tokenizer),
        "tokenizer_config.json": to_json(about_tokens),
    }
    write_folder(folder, files)


def exported(model: Any, tokenizer: Tokenizer) -> tuple[str, GPTConfig]:
    """The layout that has all parts of a model, and its config with every default filled in."""
    config = described(model)
    check_vocabulary(config, tokenizer)
    of_one = config.n_embd // config.n_head
    both = {"qk_norm": False, "convolution": None, "n_embd": of_one * config.n_head}
    parts = {"Llama": both | LLAMA}
    parts["GPT-2"] = both | GPT2 | {"n_kv_head": config.n_head, "head_size": of_one}
    config = replace(
        config,
        hidden=len(model.blocks[0].mlp.up.weight),
        n_kv_head=config.n_kv_head or config.n_head,
        head_size=config.head_size or of_one,
        norm_eps=torch.finfo(torch.float32).eps if model.norm.eps is None else model.norm.eps,
    )
    for layout, wanted in parts.items():
        if vars(config) == vars(config) | wanted:
            return layout, config
    raise ValueError(f"neither layout has all parts of this model, but each has these: {parts}")


def _as_gpt2(ours: dict[str, Tensor]) -> dict[str, Tensor]:
    """By their names: with all biases, and what `_unfused` undoes."""
    for name, weight in list(ours.items()):
        if name.startswith("blocks.") and weight.dim() == 2:
            ours.setdefault(name.replace(".weight", ".bias"), weight.new_zeros(len(weight)))
    theirs = renamed(ours, inverse(GPT2_NAMES))
    for name in [name for name in theirs if ".attn.query." in name]:
        parts = [theirs.pop(name.replace("query", part)) for part in QKV]
        theirs[name.replace("query", "c_attn")] = torch.cat(parts)
    turned = {n: t.T if ".c_" in n and t.dim() == 2 else t for n, t in theirs.items()}
    return {n if n[:2] == "lm" else f"transformer.{n}": t for n, t in turned.items()}


def sizes_of(config: GPTConfig, names: Mapping[str, str]) -> dict[str, Any]:
    return {theirs: getattr(config, ours) for ours, theirs in inverse(names).items()}


def inverse(names: Mapping[str, str]) -> dict[str, str]:
    """Our names → theirs; of two of theirs, the first."""
    return {ours: theirs for theirs, ours in reversed([*names.items()])}
