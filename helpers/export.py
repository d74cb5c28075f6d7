"""A GPT of this course for other programs, in the layout of GPT-2 or of Llama.

What is written is the inverse of what `helpers.published` reads, by the same tables of names. A
part that a layout does not have is refused by name: other programs would compute something else.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from helpers.checkpoints import config_of, weights_in
from helpers.files import write_whole
from helpers.gguf_file import write_gguf
from helpers.gpt import GPT, GPTConfig
from helpers.published import (
    GGUF_NAMES,
    GGUF_SIZES,
    GPT2_NAMES,
    GPT2_SIZES,
    LLAMA_NAMES,
    LLAMA_SIZES,
    renamed,
)
from helpers.text import BPETokenizer, CharTokenizer
from helpers.text.bpe import END, to_file, tokenizer_json


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
    `AutoTokenizer.from_pretrained(folder)` open it without a network; `helpers.published.gpt2` or
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
_MARK = "helpers.export.to_huggingface"
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
        **_sizes(config, GPT2_SIZES),
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
        **_sizes(config, LLAMA_SIZES),
        "hidden_act": "silu",
        "rope_theta": config.rotary_base,  # where versions of transformers before 5 look
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rotary_base},
        "attention_bias": config.bias,
        "mlp_bias": config.bias,
    }
    return about, renamed(ours, _inverse(LLAMA_NAMES))


# --- GGUF -----------------------------------------------------------------------------------------


def to_gguf(model: GPT, tokenizer: BPETokenizer, path: str | Path) -> None:
    """Write a model with its tokenizer to a GGUF file, the format of llama.cpp.

    Args:
        model: a `GPT` in Llama's layout (see `to_huggingface`), without biases.
        tokenizer: the byte-pair tokenizer with which it was trained, with the special token
            "<|endoftext|>".
        path: the file, written wholly or not at all; one that exists is replaced.

    The file is in float32. `helpers.published.gguf` reads it back.

    Raises ValueError for other parts, a part that was changed after the model was made, numbers too
    large for float32, and a tokenizer that llama.cpp does not have; TypeError for another kind of
    model or tokenizer.

    https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Explained in: real_weights.
    """
    config = _expect_plain(model, tokenizer)
    if _layout(config) != "Llama" or config.bias:
        raise ValueError(
            "to_gguf writes a Llama without biases (norm='RMSNorm', mlp='SwiGLU', "
            f"position='Rotary', bias=False), but this model has {config.norm!r}, {config.mlp!r}, "
            f"{config.position!r} and bias={config.bias}: train one with these settings"
        )
    if not isinstance(tokenizer, BPETokenizer) or END not in tokenizer.special:
        raise ValueError(
            f"the tokenizer should be a BPETokenizer with the special token {END!r}: llama.cpp has "
            "no tokenizer of characters, and without that token it takes token 11 for the end. "
            f"BPETokenizer.train(text, vocab_size, special=[{END!r}]), then train with it"
        )
    tokens = json.loads(tokenizer_json(tokenizer))["model"]["vocab"]
    kinds = [_CONTROL if token in tokenizer.special else _NORMAL for token in tokens]
    about = {
        "general.architecture": "llama",
        **_sizes(config, GGUF_SIZES),
        "llama.rope.dimension_count": config.head_size,
        "llama.attention.value_length": config.head_size,
        "llama.rope.freq_base": float(config.rotary_base),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm" if tokenizer.single_digits else "gpt-2",
        "tokenizer.ggml.tokens": [*tokens],
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": [f"{to_file(a)} {to_file(b)}" for a, b in tokenizer.merges],
        "tokenizer.ggml.bos_token_id": tokenizer.special[END],
        "tokenizer.ggml.eos_token_id": tokenizer.special[END],
    }
    tensors = {}
    for name, tensor in weights_in(torch.float32, model).items():
        if name.endswith(("attention.query.weight", "attention.key.weight")):
            # Our Rotary rotates features of two halves, llama.cpp neighbouring ones.
            heads = config.n_kv_head if "key" in name else config.n_head
            tensor = tensor.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)
        tensors[name] = tensor.cpu().numpy()
    write_gguf(path, about, renamed(tensors, _inverse(GGUF_NAMES)))


_NORMAL, _CONTROL = 1, 3  # kinds of tokens


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


def _sizes(config: GPTConfig, names: dict[str, str]) -> dict[str, Any]:
    """The sizes of a config by their first name in the layout."""
    return {theirs: getattr(config, ours) for ours, theirs in _inverse(names).items()}


def _inverse(names: dict[str, str]) -> dict[str, str]:
    """Our names → theirs; of two of theirs, the first."""
    return {ours: theirs for theirs, ours in reversed(names.items())}


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, indent=2).encode()
