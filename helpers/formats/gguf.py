"""GGUF files, the format of llama.cpp, and models in them.

A file holds, one after the other: a mark and a version, two counts, what it says (names with
values), a line for each tensor (name, sizes, kind of its numbers, offset), and the tensors
themselves. All numbers are little-endian. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor, nn

from helpers.formats import huggingface as hf
from helpers.formats.checkpoints import Checkpoint, filled, fitting_config, renamed, weights_in
from helpers.formats.files import write_whole
from helpers.formats.tokenizer_json import to_file, tokenizer_from_vocabulary, vocabulary
from helpers.positions import half_split
from helpers.quantization import HalfEmbedding, HalfLinear, QuantizedLinear, QuantizedTensor
from helpers.text import BPETokenizer
from helpers.text.bpe import END

VERSIONS = (2, 3)
KINDS = {  # of numbers, as a file calls them: name, numbers a block, bytes a block
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 3: ("Q4_1", 32, 20), 8: ("Q8_0", 32, 34),
    30: ("BF16", 1, 2),
}  # fmt: skip
TEXT, ARRAY = 8, 9  # kinds of values; the others are numbers, as `struct` calls them
NUMBERS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
WHOLE = 5  # the kind of whole numbers in a list that is written
WRITTEN = {int: 4, float: 6, bool: 7}


@dataclass
class Stored:
    """A tensor in a file."""

    path: Path
    kind: str  # of its numbers, by name: "Q4_1"
    sizes: tuple[int, ...]  # the shape of its numbers, (N, C)
    shape: tuple[int, ...]  # that of its bytes, row by row, (N, bytes a row)
    offset: int

    def read(self) -> np.ndarray:
        """Its bytes: uint8. Read, not mapped: what was mapped counts as memory of this process."""
        count = math.prod(self.shape)
        return np.fromfile(self.path, np.uint8, count, offset=self.offset).reshape(self.shape)


def read_gguf(path: str | Path) -> tuple[dict[str, Any], dict[str, Stored]]:
    """What a file says, and its tensors, both by their names in the file.

    ValueError for what is no whole GGUF file or has numbers of other KINDS.
    """
    try:
        with open(path, "rb") as file:
            return _read(Path(path), file)
    except (struct.error, ValueError, TypeError, KeyError, ArithmeticError, MemoryError) as error:
        raise ValueError(f"{path} is not a whole GGUF file: {error}") from error


def _read(path: Path, file: IO[bytes]) -> tuple[dict[str, Any], dict[str, Stored]]:
    mark, version, n_tensors, n_values = _next(file, "4sIQQ")
    if mark != b"GGUF" or version not in VERSIONS:
        raise ValueError(f"it begins with {mark!r} and version {version}, not one of {VERSIONS}")
    about: dict[str, Any] = {}
    for _ in range(n_values):
        name = _next_text(file)
        about[name] = _next_value(file, *_next(file, "I"))
    rows = []
    for _ in range(n_tensors):
        name, (n_sizes,) = _next_text(file), _next(file, "I")
        rows.append((name, _next(file, f"{n_sizes}Q"), *_next(file, "IQ")))
    aligned = about.get("general.alignment", 32)
    start = math.ceil(file.tell() / aligned) * aligned
    stored = {}
    for name, (width, *others), number, offset in rows:  # the innermost size first
        if number not in KINDS:
            known = ", ".join(kind for kind, *_ in KINDS.values())
            raise ValueError(f"{name} has numbers of kind {number}; these are read: {known}")
        kind, of_a_block, its_bytes = KINDS[number]
        rest = (*reversed(others),)
        shape = (*rest, width // of_a_block * its_bytes)
        stored[name] = Stored(path, kind, (*rest, width), shape, start + offset)
        if start + offset + math.prod(shape) > path.stat().st_size:
            raise ValueError(f"{name} ends after the file")
    return about, stored


def _next(file: IO[bytes], form: str) -> tuple[Any, ...]:
    """The next numbers, as `struct` calls them."""
    return struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))


def _next_text(file: IO[bytes]) -> str:
    (length,) = _next(file, "Q")
    return str(_next(file, f"{length}s")[0], "utf-8", "replace")  # a description may be in Latin-1


def _next_value(file: IO[bytes], kind: int) -> Any:
    if kind == TEXT:
        return _next_text(file)
    if kind != ARRAY:
        return _next(file, NUMBERS[kind])[0]
    kind, length = _next(file, "IQ")
    if kind == TEXT:
        return [_next_text(file) for _ in range(length)]
    return list(_next(file, f"{length}{NUMBERS[kind]}"))


def write_gguf(
    path: str | Path, about: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
) -> None:
    """Write float32 tensors and texts, numbers, lists of texts or of whole numbers, by name."""
    header = struct.pack("<4sIQQ", b"GGUF", VERSIONS[-1], len(tensors), len(about))
    header += b"".join(_text(name) + _value(value) for name, value in about.items())
    contents = bytearray()
    for name, tensor in tensors.items():
        sizes = tensor.shape[::-1]  # the innermost first
        row = struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, 0, len(contents))  # 0: F32
        header += _text(name) + row
        contents += _aligned(tensor.astype("<f4").tobytes())
    write_whole(path, _aligned(header) + contents)


def _aligned(content: bytes) -> bytes:
    return content + bytes(-len(content) % 32)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: Any) -> bytes:
    """A value, with its kind before it."""
    if isinstance(value, list):
        texts = all(isinstance(one, str) for one in value)
        items = b"".join(map(_text, value)) if texts else struct.pack(f"<{len(value)}i", *value)
        return struct.pack("<IIQ", ARRAY, TEXT if texts else WHOLE, len(value)) + items
    if isinstance(value, str):
        return struct.pack("<I", TEXT) + _text(value)
    kind = WRITTEN[type(value)]
    return struct.pack(f"<I{NUMBERS[kind]}", kind, value)


# --- a model in a GGUF file -----------------------------------------------------------------------


GGUF_SIZES = {
    "llama.context_length": "block_size", "llama.block_count": "n_layer",
    "llama.attention.head_count": "n_head", "llama.embedding_length": "n_embd",
    "llama.feed_forward_length": "hidden", "llama.attention.head_count_kv": "n_kv_head",
    "llama.attention.key_length": "head_size",
    "llama.attention.layer_norm_rms_epsilon": "norm_eps", "llama.rope.freq_base": "rotary_base",
}  # fmt: skip
GGUF_NAMES = {
    "token_embd": "token", "output_norm": "norm", "output.weight": "lm_head.weight",
    "attn_norm": "attention_norm", "attn_q": "attention.query", "attn_k": "attention.key",
    "attn_v": "attention.value", "attn_output": "attention.output", "ffn_norm": "mlp_norm",
    "ffn_gate": "mlp.gate", "ffn_up": "mlp.up", "ffn_down": "mlp.down", "blk.": "blocks.",
}  # fmt: skip
GGUF_COMPUTED = {
    "general.architecture": ("llama",),
    "llama.rope.scaling.type": ("none",),
    "tokenizer.ggml.model": ("gpt2",),
    "tokenizer.ggml.pre": ("gpt-2", "smollm"),
}
NORMAL, CONTROL = 1, 3  # kinds of tokens
# Whose features llama.cpp rotates by neighbours, our Rotary the first half with the second.
ROTATED = ("attention.query.weight", "attention.key.weight")
HALVES = {"token.weight": HalfEmbedding, "lm_head.weight": HalfLinear}


def gguf(path: str | Path, *, int4: bool = False) -> Checkpoint:
    """Return a Llama from a GGUF file, its tokenizer, and as notes what else the file says.

    int4: whether matrices that the file holds in blocks of 4 bits (its Q4_1) stay in 4 bits, with
    the token embedding in float16; otherwise all weights become float32. ValueError for a damaged
    file and settings that this GPT does not compute.
    """
    about, stored = read_gguf(path)
    hf.expect_computed(about, GGUF_COMPUTED, path)
    try:
        norm_eps = about["llama.attention.layer_norm_rms_epsilon"]
        tokens, kinds, merges = (
            about.pop(f"tokenizer.ggml.{name}") for name in ("tokens", "token_type", "merges")
        )
        tokenizer = tokenizer_from_vocabulary(
            {token: id for id, token in enumerate(tokens)},
            [merge.split(" ") for merge in merges],
            [token for token, kind in zip(tokens, kinds, strict=True) if kind != NORMAL],
            single_digits=about["tokenizer.ggml.pre"] == "smollm",
        )
    except (KeyError, ValueError) as error:
        lacks = "it lacks " if isinstance(error, KeyError) else ""
        raise ValueError(f"{path}: {lacks}{error}") from error
    ours = renamed(stored, GGUF_NAMES)
    sizes = {"vocab_size": len(tokens), "bias": False, "tied": "lm_head.weight" not in ours}
    sizes |= {"norm_eps": norm_eps, **hf.renamed_sizes(about, GGUF_SIZES)}
    config = fitting_config(path, {name: one.sizes for name, one in ours.items()}, hf.LLAMA | sizes)
    head_size = config.head_size or config.n_embd // config.n_head
    hf.expect_computed(about, {"llama.rope.dimension_count": (head_size,)}, path)
    weights: dict[str, Tensor | nn.Module] = {}
    for name, tensor in ours.items():
        raw = torch.from_numpy(tensor.read())
        if name.endswith(ROTATED):
            raw = half_split(raw, raw.shape[0] // head_size)
        if int4 and name in HALVES:
            weights[name] = HALVES[name](_numbers(raw, tensor.kind, torch.float16))
        elif int4 and tensor.kind == "Q4_1" and raw.dim() == 2:
            weights[name] = QuantizedLinear(_in_blocks(raw))
        else:
            weights[name] = _numbers(raw, tensor.kind, torch.float32)
    return Checkpoint(filled(config, weights, path), tokenizer, about)


def _numbers(raw: Tensor, kind: str, dtype: torch.dtype) -> Tensor:
    if kind == "Q4_1":
        return _in_blocks(raw).matrix().to(dtype)
    if kind == "Q8_0":  # for every 32 numbers a scale in float16, and 32 whole numbers of 8 bits
        blocks = raw.unflatten(-1, (-1, 34))
        numbers = blocks[..., 2:].view(torch.int8).to(dtype)  # in place: a third of the memory
        return numbers.mul_(blocks[..., :2].contiguous().view(torch.float16)).flatten(-2)
    stored = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[kind]
    return raw.contiguous().view(stored).to(dtype)


def _in_blocks(raw: Tensor) -> QuantizedTensor:
    """Q4_1: for every 32 numbers a scale and a minimum in float16, and 16 bytes, whose lower halves
    are the first 16 numbers."""
    blocks = raw.unflatten(-1, (-1, 20))
    scale, minimum = blocks[..., :4].contiguous().view(torch.float16).float().unbind(-1)
    numbers = torch.cat((blocks[..., 4:] & 15, blocks[..., 4:] >> 4), dim=-1)
    return QuantizedTensor(numbers.flatten(-2), scale, minimum)


def to_gguf(model: nn.Module, tokenizer: BPETokenizer, path: str | Path) -> None:
    """Write a model with its tokenizer to a GGUF file, in float32; `gguf` reads it back.

    model: a `GPT` in Llama's layout (see `to_huggingface`), without biases. tokenizer: with the
    special token "<|endoftext|>", without which llama.cpp takes token 11 for the end.
    """
    layout, config = hf.exported(model, tokenizer)
    if layout != "Llama" or config.bias:
        raise ValueError(f"a {layout} with bias={config.bias} is no Llama without biases")
    if not isinstance(tokenizer, BPETokenizer) or END not in tokenizer.special:
        raise ValueError(f"the tokenizer should be a BPETokenizer with the special token {END!r}")
    tokens, sizes = [*vocabulary(tokenizer)], hf.sizes_of(config, GGUF_SIZES)
    kinds = [CONTROL if token in tokenizer.special else NORMAL for token in tokens]
    head_size = sizes["llama.attention.key_length"]
    about = {
        "general.architecture": "llama",
        **sizes,
        "llama.rope.dimension_count": head_size,
        "llama.attention.value_length": head_size,
        "llama.rope.freq_base": float(config.rotary_base),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm" if tokenizer.single_digits else "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": [f"{to_file(a)} {to_file(b)}" for a, b in tokenizer.merges],
        "tokenizer.ggml.bos_token_id": tokenizer.special[END],
        "tokenizer.ggml.eos_token_id": tokenizer.special[END],
    }
    tensors = {}
    for name, weight in weights_in(torch.float32, model).items():
        if name.endswith(ROTATED):
            halves = weight.unflatten(0, (-1, 2, head_size // 2))  # (H, 2, half, C)
            weight = halves.transpose(1, 2).flatten(0, 2)
        tensors[name] = weight.cpu().numpy()
    write_gguf(path, about, renamed(tensors, hf.inverse(GGUF_NAMES)))
