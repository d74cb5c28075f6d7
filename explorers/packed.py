"""A GPT and its tokenizer in one small file, for gpt.js, which computes them in a browser; and a
table of word vectors.

Each row of a matrix is rounded to whole numbers from −127 to 127 with a scale of its own: a quarter
of the bytes of float32. `rounded` gives the model that the browser then computes.
"""

import copy
import hashlib
import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from helpers.formats.checkpoints import unique_state_dict
from helpers.gpt import GPT
from helpers.text import BPETokenizer, CharTokenizer

LEVELS = 127


def reason_against(model: Any, tokenizer: Any) -> str:
    """Why gpt.js cannot compute this model or cut texts as this tokenizer does; "" if it can."""
    if not isinstance(model, GPT):
        return f"the model is a {type(model).__name__}, not a GPT"
    config = model.config
    wanted = {"norm": "RMSNorm", "mlp": "SquaredReLU", "position": "Rotary", "bias": False,
              "convolution": None, "n_kv_head": None, "head_size": None, "hidden": None,
              "norm_eps": None, "qk_norm": True}  # fmt: skip
    for name, value in wanted.items():
        if getattr(config, name) != value:
            return f"the model's {name} is {getattr(config, name)}, not {value}"
    if (config.n_embd // config.n_head) % 2 or config.n_embd % 4:
        return f"{config.n_embd} features in {config.n_head} heads cannot be halved, or cut by 4"
    if not isinstance(tokenizer, CharTokenizer):
        if not isinstance(tokenizer, BPETokenizer):
            return f"the tokenizer is a {type(tokenizer).__name__}"
        plain = BPETokenizer(tokenizer.merges, tokenizer.special)
        if tokenizer != plain:
            return "the tokenizer cuts digits, or orders its tokens, in a way of its own"
    if tokenizer.vocab_size != config.vocab_size:
        return f"{tokenizer.vocab_size} tokens, but the model knows {config.vocab_size}"
    return ""


def packed(model: GPT, tokenizer: BPETokenizer | CharTokenizer) -> bytes:
    """The file: the size of a description, the description as JSON, then tensor after tensor.

    A vector is float32; a matrix the float32 scales of its rows, then its rows as int8.
    Raises ValueError for what `reason_against` speaks against.
    """
    if wrong := reason_against(model, tokenizer):
        raise ValueError(f"a page cannot compute this: {wrong}")
    tensors = {name: tensor.float().cpu() for name, tensor in unique_state_dict(model).items()}
    config = model.config
    sizes = ("vocab_size", "block_size", "n_layer", "n_head", "n_embd", "rotary_base", "tied")
    about = {
        "config": {name: getattr(config, name) for name in sizes},
        "tokenizer": _described(tokenizer),
        "tensors": {name: list(tensor.shape) for name, tensor in tensors.items()},
    }
    parts = [_head(about)]
    for tensor in tensors.values():
        if tensor.dim() == 1:
            parts.append(tensor.numpy().astype("<f4").tobytes())
        else:
            numbers, scale = _rows(tensor)
            parts += [
                scale.numpy().astype("<f4").tobytes(),
                numbers.to(torch.int8).numpy().tobytes(),
            ]
    return b"".join(parts)


def units(vectors: np.ndarray) -> np.ndarray:
    """The rows as unit vectors; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def rounded_units(vectors: np.ndarray) -> np.ndarray:
    """The unit vectors that a page computes with."""
    numbers, scale = _rows(torch.from_numpy(units(vectors)))
    return (numbers * scale[:, None]).numpy()


def packed_words(words: Sequence[str], vectors: np.ndarray) -> bytes:
    """A table of word vectors (V, d) as such a file: the words, and their unit vectors as int8."""
    about = {"words": list(words), "tensors": {"vectors": list(vectors.shape)}}
    numbers, scale = _rows(torch.from_numpy(units(vectors)))
    head = _head(about, ensure_ascii=False)
    return head + scale.numpy().astype("<f4").tobytes() + numbers.to(torch.int8).numpy().tobytes()


def _head(about: dict[str, Any], ensure_ascii: bool = True) -> bytes:
    head = json.dumps(about, ensure_ascii=ensure_ascii).encode()
    head += b" " * (-len(head) % 4)  # numbers begin at multiples of 4
    return struct.pack("<i", len(head)) + head


def name_of(file: bytes) -> str:
    """A name for a file of `packed`: by its content, so that no other can stand in its place."""
    return hashlib.sha256(file).hexdigest()[:16]


def file_of(model: Any, tokenizer: Any) -> str:
    """The name of the file of a model, "" for one that a page cannot compute."""
    return "" if reason_against(model, tokenizer) else name_of(packed(model, tokenizer))


def rounded(model: GPT) -> GPT:
    """A copy with the numbers that gpt.js computes with."""
    twin = copy.deepcopy(model).eval()
    for tensor in unique_state_dict(twin).values():
        if tensor.dim() == 2:
            numbers, scale = _rows(tensor.float())
            tensor.copy_(numbers * scale[:, None])
    return twin


def _rows(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Whole numbers (N, C) and the scale (N,) of each row."""
    scale = matrix.abs().amax(dim=1) / LEVELS
    scale = torch.where(scale > 0, scale, 1)
    return (matrix / scale[:, None]).round(), scale


def _described(tokenizer: BPETokenizer | CharTokenizer) -> dict[str, Any]:
    if isinstance(tokenizer, CharTokenizer):
        return {"symbols": list(tokenizer.symbols)}
    alphabet, pairs = ids_of_merges(tokenizer)
    return {"alphabet": list(alphabet), "merges": pairs, "special": list(tokenizer.special)}


def ids_of_merges(tokenizer: BPETokenizer) -> tuple[bytes, list[int]]:
    """The single bytes in the order of their ids, and left, right, left, right … of the merges."""
    alphabet = tokenizer.alphabet
    ids = {piece: i for i, piece in enumerate(alphabet)}
    pairs: list[int] = []
    for left, right in tokenizer.merges:
        pairs += [ids[left], ids[right]]
        ids[left + right] = len(ids)
    return b"".join(alphabet), pairs
