"""Weights that others have published, put into this course's GPT."""

import json
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from helpers.checkpoints import load_weights
from helpers.gpt import GPT


def gpt2(weights: str | Path | Mapping[str, Tensor], n_head: int | None = None) -> GPT:
    """GPT-2 in the layout of Hugging Face's `transformers`, as a GPT of this course.

    weights: a state dict, a safetensors file, or a folder with `model.safetensors` and
    `config.json`; n_head: heads a layer; from `config.json` if there is one, else C / 64, which is
    right for all published sizes. Tied or untied: if `lm_head.weight` is there and differs from the
    embeddings, the model is untied.

    Returns the model in evaluation mode. Raises FileNotFoundError, and ValueError for weights of
    another layout. Radford et al. 2019. Taught in chapter 09.
    """
    source: str | Path = "the state dict"
    if not isinstance(weights, Mapping):
        path = source = Path(weights)
        if path.is_dir():
            config, path = path / "config.json", path / "model.safetensors"
            if n_head is None and config.is_file():
                n_head = int(json.loads(config.read_text(encoding="utf-8"))["n_head"])
        if not path.is_file():
            raise FileNotFoundError(f"there are no weights at {path}")
        weights = load_file(path)
    # With a language model's head the names begin with "transformer."; the masks are no weights.
    theirs = {name.removeprefix("transformer."): tensor for name, tensor in weights.items()}
    theirs = {n: t for n, t in theirs.items() if not n.endswith((".attn.bias", ".masked_bias"))}
    if not {"wte.weight", "wpe.weight", "ln_f.weight"} <= set(theirs):
        raise ValueError(f"{source} is not in the layout of GPT-2: it has {sorted(theirs)[:4]} …")
    vocab_size, n_embd = theirs["wte.weight"].shape
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
    ours = {_our_name(name): tensor for name, tensor in _unfused(theirs).items()}
    load_weights(model, ours if tied else {**ours, "head.weight": head}, source)
    return model.eval()


def _unfused(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their matrices stand the other way round, and queries, keys and values in one."""
    result = {}
    for name, tensor in weights.items():
        if name.endswith(".weight") and ".c_" in name:
            tensor = tensor.T
        if ".c_attn." in name:
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
