"""The file of a byte-level tokenizer, in the layout of the Rust library `tokenizers`."""

import json
from pathlib import Path
from typing import Any

from helpers.files import write_whole


def _alphabet() -> dict[bytes, str]:
    """Each byte and the visible character that stands for it in files, in GPT-2's order.

    Bytes that are visible characters stand for themselves; the others (spaces, controls) borrow
    the characters from U+0100 on.
    """
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = sorted(set(range(256)) - set(visible))
    named = [(b, chr(b)) for b in visible] + [(b, chr(256 + i)) for i, b in enumerate(hidden)]
    return {bytes([b]): character for b, character in named}


ALPHABET = _alphabet()
_BYTES = {character: piece for piece, character in ALPHABET.items()}


def to_file(piece: bytes) -> str:
    """A piece as it is written in a file: b" low" becomes "Ġlow"."""
    return "".join(ALPHABET[bytes([b])] for b in piece)


def from_file(written: str) -> bytes:
    """The piece that `to_file` wrote. Raises ValueError for other characters."""
    try:
        return b"".join(_BYTES[character] for character in written)
    except KeyError as error:
        raise ValueError(f"{error.args[0]!r} in {written!r} stands for no byte") from None


def write_tokenizer(
    path: str | Path, merges: list[tuple[bytes, bytes]], special: dict[str, int]
) -> None:
    """Write merges and special tokens with their ids as a `tokenizer.json`."""
    written = [to_file(piece) for piece in (*ALPHABET, *(a + b for a, b in merges))]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": name, **plain, "special": True} for name, i in special.items()
        ],
        "normalizer": None,
        "pre_tokenizer": {**byte_level, "use_regex": True},
        "post_processor": None,
        "decoder": {**byte_level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {piece: i for i, piece in enumerate(written)} | special,
            "merges": [[to_file(a), to_file(b)] for a, b in merges],
        },
    }
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=1).encode())


def read_tokenizer(path: str | Path) -> tuple[list[tuple[bytes, bytes]], list[str]]:
    """The merges and the special tokens of a file in the order in which `write_tokenizer` numbers
    them. Raises FileNotFoundError, and ValueError for a file that says anything else.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no tokenizer at {path}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        model, added = content["model"], content["added_tokens"]
        if model["type"] != "BPE" or content["pre_tokenizer"]["type"] != "ByteLevel":
            raise ValueError("it is not byte-level BPE")
        merges = [_pair(merge) for merge in model["merges"]]
        special = [token["content"] for token in sorted(added, key=lambda token: token["id"])]
        vocabulary: dict[str, Any] = model["vocab"]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it lacks or mistakes {error}") from None
    numbered = [to_file(piece) for piece in (*ALPHABET, *(a + b for a, b in merges))] + special
    if vocabulary != {piece: i for i, piece in enumerate(numbered)}:
        raise ValueError(
            "its ids are not numbered as here: the 256 bytes, the merges, the special tokens"
        )
    return merges, special


def _pair(merge: Any) -> tuple[bytes, bytes]:
    """["a", "b"], or "a b" in older files."""
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return from_file(left), from_file(right)
