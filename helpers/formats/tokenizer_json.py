"""tokenizer.json, the file of the library `tokenizers`: byte pairs and characters."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from helpers.formats.files import json_object
from helpers.text import BPETokenizer, CharTokenizer, Tokenizer
from helpers.text.bpe import BYTES, VISIBLE

# Files write a byte as a character: itself if it is visible, else one from U+0100 on.
ALPHABET = dict(zip(BYTES, [*map(chr, VISIBLE), *map(chr, range(256, 512))], strict=False))
_BYTES = {character: piece for piece, character in ALPHABET.items()}

# What a file can ask for, with the values that our tokenizers compute; and what changes no id.
_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
_DIGITS = {"type": "Digits", "individual_digits": True}
_EACH = {"type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False}
_ADDED = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
_MODEL = {
    "type": "BPE",
    **dict.fromkeys(("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")),
    **dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"), False),
}
_FREE = {"version", "vocab", "merges", "decoder", "trim_offsets", "normalized", "special"}


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


def tokenizer_json(tokenizer: Tokenizer) -> bytes:
    """The content of a `tokenizer.json`, which the library `tokenizers` reads, too."""
    nothing = dict.fromkeys(("normalizer", "truncation", "padding", "post_processor"))
    content: dict[str, Any] = {"version": "1.0", **nothing, "added_tokens": []}
    if isinstance(tokenizer, CharTokenizer):  # each character is a word; unknown ones are errors
        ids = {symbol: id for id, symbol in enumerate(tokenizer.symbols)}
        content["pre_tokenizer"], content["decoder"] = _EACH, {"type": "Fuse"}
        content["model"] = {"type": "WordLevel", "vocab": ids, "unk_token": "<unknown>"}
    else:
        both = {"type": "Sequence", "pretokenizers": [_DIGITS, _LEVEL]}
        merges = [[to_file(left), to_file(right)] for left, right in tokenizer.merges]
        content["pre_tokenizer"] = both if tokenizer.single_digits else _LEVEL
        content["decoder"] = _LEVEL
        content["model"] = {**_MODEL, "vocab": vocabulary(tokenizer), "merges": merges}
        for name, id in tokenizer.special.items():
            content["added_tokens"].append({"id": id, "content": name, **_ADDED, "special": True})
    return json.dumps(content, ensure_ascii=False, indent=1).encode()


def read_tokenizer(path: str | Path) -> Tokenizer:
    """Read a `tokenizer.json` by `tokenizer_json`, or another of byte-level BPE.

    ValueError for a damaged file and for one that asks for what our tokenizers do not do.
    """
    try:
        content = json_object(Path(path).read_bytes())
        tokenizer = _tokenizer(content)
        if (content.get("post_processor") or {}).get("type") == "ByteLevel":
            del content["post_processor"]  # it changes no id
        _expect("tokenizer", content, json.loads(tokenizer_json(tokenizer)))
        return tokenizer
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        lacks = "" if isinstance(error, ValueError) else "it lacks "
        raise ValueError(f"{path} is not a tokenizer of this course: {lacks}{error}") from error


def _tokenizer(content: dict[str, Any]) -> Tokenizer:
    vocab, model = content["model"]["vocab"], content["model"]
    if model["type"] == "WordLevel":
        return CharTokenizer(sorted(vocab, key=vocab.__getitem__))
    merges = [m.split(" ") if isinstance(m, str) else m for m in model["merges"]]
    added = sorted(content["added_tokens"], key=lambda token: token["id"])
    single_digits = content["pre_tokenizer"]["type"] == "Sequence"
    return tokenizer_from_vocabulary(vocab, merges, [t["content"] for t in added], single_digits)


def _expect(part: str, given: Any, ours: Any) -> None:
    """Raise ValueError where a file asks for something else than ours would."""
    if isinstance(ours, dict):
        for name in ours.keys() & given.keys() - _FREE:
            _expect(f"{part}.{name}", given[name], ours[name])
    elif isinstance(ours, list):
        for its, our in zip(given, ours, strict=True):
            _expect(part, its, our)
    elif (given or None) != (ours or None):  # None, False, 0 and "" are alike
        raise ValueError(f"{part} {given!r} is not what this tokenizer does")
