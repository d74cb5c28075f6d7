"""Weights that others have published, put into this course's GPT."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from helpers.checkpoints import load_weights, read_tensors
from helpers.gpt import GPT


def gpt2(weights: str | Path | Mapping[str, Tensor], n_head: int | None = None) -> GPT:
    """GPT-2 in the layout of Hugging Face's `transformers`, as a GPT of this course.

    weights: a state dict, a safetensors file, or a folder with `model.safetensors` and
    `config.json`; n_head: heads a layer; if None, that of `config.json`, or else C / 64, which is
    right for all published sizes. Tied or untied: if `lm_head.weight` is there and differs from the
    embeddings, the model is untied.

    Returns the model in evaluation mode. Raises FileNotFoundError, and ValueError for weights of
    another layout and a `config.json` that asks for what this GPT does not compute.
    Radford et al. 2019. Taught in chapter 09.
    """
    source: str | Path = "the state dict"
    if not isinstance(weights, Mapping):
        path = source = Path(weights)
        if path.is_dir():
            config, path = path / "config.json", path / "model.safetensors"
            if config.is_file():
                published = _heads(config)
                n_head = published if n_head is None else n_head
        weights, _ = read_tensors(path)
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
    model = GPT(
        vocab_size,
        block_size=len(theirs["wpe.weight"]),
        n_layer=len({name.split(".")[1] for name in theirs if name.startswith("h.")}),
        n_head=n_embd // 64 if n_head is None else n_head,
        n_embd=n_embd,
        tied=tied,
    )
    ours = {_our_name(name): tensor for name, tensor in _unfused(theirs, source).items()}
    load_weights(model, ours if tied else {**ours, "head.weight": head}, source)
    return model.eval()


# What changes the result without changing a weight: the names in config.json, and what is meant
# where they are missing, first.
COMPUTED = {
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "layer_norm_epsilon": (1e-5,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
}


def _heads(path: Path) -> int | None:
    """The number of heads in a config.json, if its other settings are those of our GPT."""
    try:
        config: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(config, dict) or not isinstance(n_head := config.get("n_head"), int | None):
        raise ValueError(f"{path} should hold settings, n_head a whole number, not {config!r:.60}")
    for name, known in COMPUTED.items():
        if (given := config.get(name, known[0])) not in known:
            raise ValueError(f"{path}: {name} {given!r} is not what this GPT computes: {known}")
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


NAMES = {
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


def _our_name(name: str) -> str:
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name
