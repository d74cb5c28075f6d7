"""tokenizer.json, the file of the library `tokenizers`: byte pairs and characters."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from helpers.formats.files import json_object, write_whole
from helpers.text import BPETokenizer, CharTokenizer
from helpers.text.bpe import BYTES, VISIBLE

# Files write a byte as a character: itself if it is visible, else one from U+0100 on.
ALPHABET = dict(zip(BYTES, [*map(chr, VISIBLE), *map(chr, range(256, 512))], strict=False))
_BYTES = {character: piece for piece, character in ALPHABET.items()}

# What a file can ask for, with the values that our tokenizers compute.
_TOP = {"normalizer": None, "truncation": None, "padding": None}
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
_DIGITS = {"type": "Digits", "individual_digits": True}
_EACH = {"type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False}
_ADDED = dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
_MODEL = {
    "type": "BPE",
    **dict.fromkeys(("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")),
    **dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"), False),
}


def to_file(piece: bytes) -> str:
    """Return a piece as files write it: b" low" becomes "Ġlow"."""
    return "".join(ALPHABET[bytes([b])] for b in piece)


def from_file(written: str) -> bytes:
    return b"".join(_BYTES[character] for character in written)


def vocabulary(tokenizer: BPETokenizer) -> dict[str, int]:
    """Return each token as files write it → its id, in the order of the ids."""
    names = {id: name for name, id in tokenizer.special.items()}
    ids = range(tokenizer.vocab_size)
    return {names[id] if id in names else to_file(tokenizer.piece(id)): id for id in ids}


def tokenizer_from_vocabulary(
    ids: Mapping[str, int],
    merges: Iterable[Sequence[str]],
    special: Sequence[str],
    single_digits: bool = False,
) -> BPETokenizer:
    """Return the tokenizer with this vocabulary (token → id) and these pairs, as files write them.

    ValueError if the ids are in an order that `BPETokenizer` does not have.
    """
    tokens = sorted(ids, key=ids.__getitem__)
    tokenizer = BPETokenizer(
        [(from_file(left), from_file(right)) for left, right in merges],
        special,
        alphabet=[_BYTES[t] for t in tokens if t in _BYTES and t not in special],
        special_first=bool(special) and tokens[0] == special[0],
        single_digits=single_digits,
    )
    if vocabulary(tokenizer) != ids:
        raise ValueError("its ids are not numbered as here: bytes, merges, special tokens")
    return tokenizer


def write_tokenizer(path: str | Path, tokenizer: BPETokenizer | CharTokenizer) -> None:
    """Write a `tokenizer.json`, which the library `tokenizers` reads, too."""
    write_whole(path, tokenizer_json(tokenizer))


def tokenizer_json(tokenizer: BPETokenizer | CharTokenizer) -> bytes:
    content: dict[str, Any] = {"version": "1.0", **_TOP, "added_tokens": [], "post_processor": None}
    if isinstance(tokenizer, CharTokenizer):  # each character is a word; unknown ones are errors
        ids = {symbol: id for id, symbol in enumerate(tokenizer.symbols)}
        content["pre_tokenizer"], content["decoder"] = _EACH, {"type": "Fuse"}
        content["model"] = {"type": "WordLevel", "vocab": ids, "unk_token": "<unknown>"}
    else:
        bytes_ = {**_BYTE_LEVEL, "trim_offsets": True}
        both = {"type": "Sequence", "pretokenizers": [_DIGITS, bytes_]}
        merges = [[to_file(left), to_file(right)] for left, right in tokenizer.merges]
        content["pre_tokenizer"] = both if tokenizer.single_digits else bytes_
        content["decoder"] = bytes_
        content["model"] = {**_MODEL, "vocab": vocabulary(tokenizer), "merges": merges}
        for name, id in tokenizer.special.items():
            token = {"id": id, "content": name, **_ADDED, "normalized": False, "special": True}
            content["added_tokens"].append(token)
    return json.dumps(content, ensure_ascii=False, indent=1).encode()


def read_tokenizer(path: str | Path) -> BPETokenizer | CharTokenizer:
    """Read a `tokenizer.json` that `write_tokenizer` wrote, or another of byte-level BPE.

    ValueError for a damaged file and for one that asks for what our tokenizers do not do.
    """
    try:
        return _tokenizer(json_object(Path(path).read_bytes()))
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        lacks = "" if isinstance(error, ValueError) else "it lacks "
        raise ValueError(f"{path} is not a tokenizer of this course: {lacks}{error}") from error


def _tokenizer(content: dict[str, Any]) -> BPETokenizer | CharTokenizer:
    model, split = content["model"], content["pre_tokenizer"]
    _expect("tokenizer", content, _TOP)
    if model["type"] == "WordLevel":
        _expect("pre_tokenizer", split, _EACH)
        return CharTokenizer(sorted(model["vocab"], key=model["vocab"].__getitem__))
    _expect("model", model, _MODEL)
    single_digits = split["type"] == "Sequence"
    if single_digits:
        digits, split = split["pretokenizers"]
        _expect("pre_tokenizer", digits, _DIGITS)
    _expect("pre_tokenizer", split, _BYTE_LEVEL)
    if content.get("post_processor"):  # that of the type ByteLevel changes no id
        _expect("post_processor", content["post_processor"], {"type": "ByteLevel"})
    names = []
    for token in sorted(content["added_tokens"], key=lambda token: token["id"]):
        _expect("added_tokens", token, _ADDED)
        names.append(token["content"])
    merges = [m.split(" ") if isinstance(m, str) else m for m in model["merges"]]
    return tokenizer_from_vocabulary(model["vocab"], merges, names, single_digits)


def _expect(part: str, given: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for name, value in wanted.items():
        if (given.get(name, value) or None) != (value or None):  # None, False, 0 and "" are alike
            raise ValueError(f"{part}.{name} {given[name]!r} is not what this tokenizer does")
