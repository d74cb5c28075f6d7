"""A GGUF file, the format of llama.cpp: what it says by name, and the bytes of its tensors.

It holds, one after the other: a mark and a version, two counts, what it says (names with values),
a line for each tensor (name, sizes, kind of its numbers, place), and the tensors themselves. All
numbers are little-endian. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

The library `gguf` reads the same, 150,000 texts one NumPy array each, which takes some seconds.
"""

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from helpers.files import expect_no_pointer, write_whole

VERSIONS = (2, 3)
KINDS = {  # of numbers, as a file calls them: name, numbers a block, bytes a block
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    3: ("Q4_1", 32, 20),
    8: ("Q8_0", 32, 34),
    30: ("BF16", 1, 2),
}
TEXT, ARRAY = 8, 9  # kinds of values; the others are numbers, as `struct` calls them
NUMBERS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
WHOLE = 5  # the kind of whole numbers in a list that is written
WRITTEN = {int: 4, float: 6, bool: 7}


@dataclass
class Stored:
    """A tensor in a file. kind: of its numbers, by name ("Q4_1"); sizes: the shape of its numbers,
    (N, C); shape: that of its bytes, row by row, (N, bytes a row)."""

    path: Path
    kind: str
    sizes: tuple[int, ...]
    shape: tuple[int, ...]
    place: int

    def read(self) -> np.ndarray:
        """Its bytes: uint8. Read, not mapped: what was mapped counts as memory of this process."""
        return np.fromfile(self.path, np.uint8, math.prod(self.shape), offset=self.place).reshape(
            self.shape
        )


def read_gguf(path: str | Path) -> tuple[dict[str, Any], dict[str, Stored]]:
    """What a file says, and its tensors, both by their names in the file.

    Names and descriptions of the model (`general.…`) may hold bytes that are not UTF-8, which are
    then replaced; all other text has to be UTF-8.

    Raises FileNotFoundError, and ValueError for what is no whole GGUF file, or holds numbers of
    other kinds than KINDS.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no GGUF file at {path}")
    expect_no_pointer(path)
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            about, rows, start = _read_header(content)
    except (struct.error, ValueError, KeyError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} is not a whole GGUF file: {error}") from error
    stored = {}
    for name, sizes, number, place in rows:
        if number not in KINDS:
            known = ", ".join(kind for kind, *_ in KINDS.values())
            raise ValueError(
                f"{path}: {name} has numbers of kind {number}; these are read: {known}"
            )
        kind, of_a_block, its_bytes = KINDS[number]
        width, *others = sizes  # the innermost first
        if width % of_a_block:
            raise ValueError(f"{path}: {name} has rows of {width}, no multiple of {of_a_block}")
        shape = (*reversed(others), width // of_a_block * its_bytes)
        if name in stored or start + place + math.prod(shape) > path.stat().st_size:
            raise ValueError(
                f"{path} is not a whole GGUF file: {name} occurs twice, or ends after the file"
            )
        stored[name] = Stored(path, kind, (*reversed(sizes),), shape, start + place)
    return about, stored


def _read_header(
    content: mmap.mmap,
) -> tuple[dict[str, Any], list[tuple[str, tuple[int, ...], int, int]], int]:
    """What a file says, (name, sizes, kind, place) of each tensor, and where the tensors begin."""
    header = _Header(content)
    mark, version = header.numbers("4sI")
    if mark != b"GGUF":
        raise ValueError(f"it begins with {mark!r}, not with b'GGUF'")
    if int.from_bytes(version.to_bytes(4, "little"), "big") in VERSIONS:
        raise ValueError("its numbers are big-endian, but only little-endian files can be read")
    if version not in VERSIONS:
        raise ValueError(f"it is of version {version}, but only {VERSIONS} can be read")
    n_tensors, n_values = header.numbers("QQ")
    about = {}
    for _ in range(n_values):
        name = header.text()
        if name in about:
            raise ValueError(f"{name} occurs twice")
        header.errors = "replace" if name.startswith("general.") else "strict"
        try:
            about[name] = header.value(*header.numbers("I"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{name} holds text that is not UTF-8: {error}") from error
    header.errors = "strict"
    rows = []
    for _ in range(n_tensors):
        name = header.text()
        sizes = header.numbers(f"{header.numbers('I')[0]}Q")
        if not sizes:
            raise ValueError(f"{name} has no dimensions")
        rows.append((name, sizes, *header.numbers("IQ")))
    aligned = about.get("general.alignment", 32)
    if not isinstance(aligned, int) or aligned < 1:
        raise ValueError(f"its tensors are aligned to {aligned!r} bytes")
    return about, rows, math.ceil(header.place / aligned) * aligned


class _Header:
    """Reads numbers, texts and values, one after the other."""

    def __init__(self, content: mmap.mmap):
        self.content, self.place = content, 0
        self.errors = "strict"  # what to do with bytes that are not UTF-8

    def numbers(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{form}", self.content, self.place)
        self.place += struct.calcsize(f"<{form}")
        return found

    def text(self) -> str:
        (length,) = self.numbers("Q")
        (written,) = self.numbers(f"{length}s")
        return str(written, "utf-8", self.errors)

    def value(self, kind: int) -> Any:
        if kind == TEXT:
            return self.text()
        if kind != ARRAY:
            return self.numbers(NUMBERS[kind])[0]
        kind, length = self.numbers("IQ")
        if kind in (TEXT, ARRAY):
            return [self.value(kind) for _ in range(length)]
        return list(self.numbers(f"{length}{NUMBERS[kind]}"))


def write_gguf(
    path: str | Path, about: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
) -> None:
    """Write a file that `read_gguf` reads, wholly or not at all.

    Args:
        path: the file; one that exists is replaced.
        about: what it says by name: texts, numbers, and lists of texts or of whole numbers.
        tensors: name → float32.
    """
    header = [struct.pack("<4sIQQ", b"GGUF", VERSIONS[-1], len(tensors), len(about))]
    header += [_text(name) + _value(value) for name, value in about.items()]
    place, contents = 0, []
    for name, tensor in tensors.items():
        sizes = tensor.shape[::-1]  # the innermost first
        row = struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, 0, place)  # 0: F32
        header.append(_text(name) + row)
        contents.append(_aligned(tensor.astype("<f4").tobytes()))
        place += len(contents[-1])
    write_whole(path, b"".join([_aligned(b"".join(header)), *contents]))


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
