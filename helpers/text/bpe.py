"""Byte-pair encoding: subword tokens, learned from a text.

A piece, the text of a token, is a bytes object throughout. Only files write it as text, with
GPT-2's alphabet of 256 visible characters, because other libraries do so.
"""

import codecs
import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import regex

from helpers.formats.files import json_object, write_whole
from helpers.text.characters import checked_ids

Pair = tuple[int, int]
END = "<|endoftext|>"  # stands between documents


def _alphabet() -> dict[bytes, str]:
    """Each byte → the visible character that stands for it in files, in GPT-2's order.

    A byte that is a visible character stands for itself; the others (spaces, controls) get the
    characters from U+0100 on.
    """
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = sorted(set(range(256)) - set(visible))
    named = [(b, chr(b)) for b in visible] + [(b, chr(256 + i)) for i, b in enumerate(hidden)]
    return {bytes([b]): character for b, character in named}


ALPHABET = _alphabet()
_BYTES = {character: piece for piece, character in ALPHABET.items()}
_BYTE_IDS = {piece[0]: i for i, piece in enumerate(ALPHABET)}


def to_file(piece: bytes) -> str:
    """Return a piece as files write it: b" low" becomes "Ġlow"."""
    return "".join(ALPHABET[bytes([b])] for b in piece)


def from_file(written: str) -> bytes:
    """Return the piece that `to_file` wrote. Raises ValueError for other characters."""
    try:
        return b"".join(_BYTES[character] for character in written)
    except KeyError as error:
        raise ValueError(f"{error.args[0]!r} in {written!r} stands for no byte") from None


def learn_merges(
    words: Sequence[tuple[list[int], int]], n_merges: int, first_id: int
) -> Iterator[Pair]:
    """Yield the pairs that byte-pair encoding merges, in order, at most n_merges of them.

    Args:
        words: (ids, how often the word occurs) for each word; the lists of ids are changed.
        n_merges: how many pairs to learn.
        first_id: the id of the first merged pair; the others follow it.
    """
    # A merge changes counts only in the words that hold the pair, so only those are visited.
    counts: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[int]] = defaultdict(set)  # may name words that lost the pair
    for i, (ids, n) in enumerate(words):
        for pair in pairwise(ids):
            counts[pair] += n
            places[pair].add(i)
    heap = [(-n, pair) for pair, n in counts.items()]  # equally frequent: the smaller ids first
    heapq.heapify(heap)
    for new in range(first_id, first_id + n_merges):
        best = _most_frequent(heap, counts)
        if best is None:
            return
        yield best
        made: set[Pair] = set()
        for i in places.pop(best):
            ids, n = words[i]
            for pair in pairwise(ids):
                counts[pair] -= n
            replace_pair(ids, best, new)
            for pair in pairwise(ids):
                counts[pair] += n
                if new in pair:
                    places[pair].add(i)
                    made.add(pair)
        del counts[best]
        for pair in made:
            heapq.heappush(heap, (-counts[pair], pair))


def _most_frequent(heap: list[tuple[int, Pair]], counts: Counter[Pair]) -> Pair | None:
    """Pop the most frequent pair; a pair whose count has fallen goes back with its new count."""
    while heap:
        n, pair = heapq.heappop(heap)
        if counts[pair] == -n:
            return pair
        if counts[pair]:
            heapq.heappush(heap, (-counts[pair], pair))
    return None


def merge_word(ids: list[int], merges: Mapping[Pair, int]) -> list[int]:
    """Apply merges to the ids of one word, in the order of learning; the list is changed.

    Args:
        ids: the ids of the word's bytes.
        merges: pair → the id of both together, above 0, rising in the order of learning.
    """
    while len(ids) > 1:
        found = list(map(merges.get, pairwise(ids)))
        try:
            first = min(filter(None, found))
        except ValueError:  # no pair of the word was learned
            break
        i = found.index(first)
        if found.count(first) == 1:
            ids[i : i + 2] = [first]
        else:
            replace_pair(ids, (ids[i], ids[i + 1]), first)
    return ids


def replace_pair(ids: list[int], pair: Pair, new: int) -> None:
    """Replace each occurrence of the pair in the list by `new`, from left to right, in place."""
    left, right = pair
    i = 0
    while True:
        try:
            i = ids.index(left, i, len(ids) - 1)  # C speed: most places hold something else
        except ValueError:
            return
        if ids[i + 1] == right:
            ids[i : i + 2] = [new]
        i += 1


# GPT-2's rule: the endings 's, 't …; letters, digits or other symbols, each with the space before
# them; spaces, of which the last belongs to the next word. No merge crosses from word to word.
WORDS = regex.compile(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
# The same with each digit on its own: a digit ends a run of spaces as the end of the text does.
SINGLE_DIGITS = regex.compile(
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+"
)


def split_words(text: str, single_digits: bool = False) -> list[str]:
    """Pre-tokenise a text: words, numbers and punctuation, each with the space before it.

    Args:
        text: any text.
        single_digits: whether each digit becomes a word of its own, as for SmolLM2.

    Returns the words, split as GPT-2 does; joined, they are the text.

    Radford et al. 2019, in the code of GPT-2. Taught in: byte_pair_encoding.
    """
    return (SINGLE_DIGITS if single_digits else WORDS).findall(text)


class BPETokenizer:
    """A byte-level BPE tokenizer: one token per byte, and one for each pair of tokens merged.

    Args:
        merges: pairs of pieces (bytes, bytes) in the order of learning.
        special: special tokens, such as "<|endoftext|>", which are never split.
        alphabet: the single bytes that have a token, in the order of their ids; GPT-2's 256 bytes
            unless it is given.
        special_first: whether the ids of the special tokens come before those of the bytes; else
            they come after those of the merges.
        single_digits: as in `split_words`.

    `BPETokenizer.train` learns the merges from a text.

    >>> tokenizer = BPETokenizer.train("low lower lowest", vocab_size=258)
    >>> [tokenizer.piece(id) for id in tokenizer.encode("lowly")]
    [b'low', b'l', b'y']

    Raises ValueError for a merge of pieces that do not exist, for a piece made twice, for a special
    token that is empty, repeated or written like a piece, and for an alphabet of anything but
    different single bytes.

    Sennrich et al. 2016; Radford et al. 2019, "GPT-2". Taught in: byte_pair_encoding.
    """

    def __init__(
        self,
        merges: Iterable[tuple[bytes, bytes]] = (),
        special: Iterable[str] = (),
        *,
        alphabet: Iterable[bytes] = ALPHABET,
        special_first: bool = False,
        single_digits: bool = False,
    ):
        special, alphabet = _names(special), list(alphabet)
        if not set(alphabet) <= set(ALPHABET) or len(set(alphabet)) < len(alphabet):
            raise ValueError("an alphabet holds single bytes, each at most once")
        self.special_first, self.single_digits = special_first, single_digits
        first = len(special) if special_first else 0  # the id of the first byte
        ids = {piece: first + i for i, piece in enumerate(alphabet)}
        self._byte_ids = {piece[0]: id for piece, id in ids.items()}
        self._merges: dict[Pair, int] = {}  # a pair of ids -> the id of both together
        for left, right in merges:
            if left not in ids or right not in ids:
                missing = left if left not in ids else right
                raise ValueError(
                    f"merge {len(self._merges)} joins {left!r} and {right!r}, but {missing!r} is "
                    "neither a byte nor the result of an earlier merge"
                )
            pair = ids[left], ids[right]
            if pair in self._merges or left + right in ids:
                raise ValueError(f"merge {len(self._merges)} makes {left + right!r} a second time")
            self._merges[pair] = ids[left + right] = first + len(ids)
        written = {to_file(piece) for piece in ids} if special else set()
        self._special: dict[str, int] = {}
        for name in special:
            known = not isinstance(name, str) or name in self._special or name in written
            if known or not name:
                raise ValueError(
                    f"the special token {name!r} should be a text of its own: not empty, not there "
                    "already, and no piece as files write it (Ġ is a space)"
                )
            self._special[name] = len(self._special) + (0 if special_first else len(ids))
        names = [name.encode() for name in special]
        self._pieces = [*names, *ids] if special_first else [*ids, *names]
        self._known: dict[str, list[int]] = {}  # words that were encoded before

    @classmethod
    def train(
        cls, text: str | Iterable[str], vocab_size: int, special: Collection[str] = ()
    ) -> "BPETokenizer":
        """Learn merges from a text until the vocabulary is full, or no pair is left to merge.

        Each step merges the most frequent pair of neighbours within words; of equally frequent
        pairs, the one with the smaller ids.

        Args:
            text: a text, or several.
            vocab_size: V, with the 256 bytes and the special tokens.
            special: special tokens.

        Raises ValueError if vocab_size is below 256 and the number of special tokens, and TypeError
        for what is not a text.
        """
        special = _names(special)
        if not isinstance(vocab_size, int):
            raise TypeError(f"vocab_size should be a whole number, but is {vocab_size!r}")
        least = len(ALPHABET) + len(special)
        if vocab_size < least:
            raise ValueError(
                f"vocab_size is {vocab_size}, but the 256 bytes and {len(special)} special tokens "
                f"already are {least}"
            )
        one = isinstance(text, str | bytes) or not isinstance(text, Iterable)
        words: Counter[str] = Counter()
        for part in [text] if one else text:
            if not isinstance(part, str):
                raise TypeError(
                    f"train wants a text, or several, not a {type(part).__name__}. Of a file, "
                    "path.read_text(encoding='utf-8') is the text; of bytes, their decode('utf-8')"
                )
            words.update(split_words(part))
        spelled = [([_BYTE_IDS[b] for b in _utf8(word)], n) for word, n in words.items()]
        pieces, merges = list(ALPHABET), []
        for a, b in learn_merges(spelled, vocab_size - least, len(ALPHABET)):
            merges.append((pieces[a], pieces[b]))
            pieces.append(pieces[a] + pieces[b])
        tokenizer = cls(merges, special)
        # Learning has spelled these words already: the ids are those that `encode` would find.
        tokenizer._known = {word: ids for word, (ids, _) in zip(words, spelled, strict=True)}
        return tokenizer

    @property
    def vocab_size(self) -> int:
        """V: 256 bytes, the merges and the special tokens; ids run from 0 to V − 1."""
        return len(self._pieces)

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """The pairs of pieces that were merged, in the order of learning."""
        return [(self._pieces[a], self._pieces[b]) for a, b in self._merges]

    @property
    def alphabet(self) -> list[bytes]:
        """The single bytes that have a token, in the order of their ids."""
        return [bytes([byte]) for byte in self._byte_ids]

    @property
    def special(self) -> dict[str, int]:
        """The special tokens and their ids."""
        return dict(self._special)

    def piece(self, id: int) -> bytes:
        """Return the bytes of one token, which need not be whole characters."""
        return self._pieces[checked_ids([id], self.vocab_size)[0]]

    def encode(self, text: str, special: Collection[str] = ()) -> list[int]:
        """Return the ids of a text.

        Args:
            text: any text: what is in no merge is encoded byte by byte.
            special: the special tokens to recognise in the text; others are encoded as the letters
                they are written with, so that no text can contain one by accident.

        Raises ValueError for a special token that this tokenizer does not have and for a byte
        outside its alphabet, and TypeError for what is not a text.
        """
        if not isinstance(text, str):
            raise TypeError(f"encode wants a str, not a {type(text).__name__}")
        special = _names(special)
        if unknown := set(special) - set(self._special):
            raise ValueError(
                f"{sorted(unknown)} are not special tokens here; known: {sorted(self._special)}"
            )
        if not special:
            return self._encode_words(text)
        longest_first = sorted(special, key=len, reverse=True)
        ids: list[int] = []
        for part in regex.split(f"({'|'.join(map(regex.escape, longest_first))})", text):
            ids += [self._special[part]] if part in special else self._encode_words(part)
        return ids

    def _encode_words(self, text: str) -> list[int]:
        ids: list[int] = []
        for word in split_words(text, self.single_digits):
            known = self._known.get(word)
            if known is None:
                # The single bytes have ids in an order of their own.
                try:
                    spelled = [self._byte_ids[b] for b in _utf8(word)]
                except KeyError as error:
                    byte = f"0x{error.args[0]:02x}"
                    raise ValueError(
                        f"this tokenizer has no token for the byte {byte} in {word!r}"
                    ) from None
                known = merge_word(spelled, self._merges)
                if len(self._known) < 100_000:  # the memory has an end
                    self._known[word] = known
            ids += known
        return ids

    def decode(self, ids: Sequence[int] | Any) -> str:
        """Return the text of a flat sequence of ids; bytes that are not a character become "�".

        Raises ValueError for an id outside 0 … V − 1, and TypeError for what is not an id.
        """
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def decode_bytes(self, ids: Sequence[int] | Any) -> bytes:
        """Return the bytes of a flat sequence of ids. Raises what `decode` raises."""
        return b"".join(map(self._pieces.__getitem__, checked_ids(ids, self.vocab_size)))

    def decode_stream(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield one string for each id; a character of several tokens comes with the last of them.

        Ids that end in the middle of a character give one more string, "�".
        """
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        for id in ids:
            yield decoder.decode(self.piece(id))
        if rest := decoder.decode(b"", final=True):
            yield rest

    def save(self, path: str | Path) -> None:
        """Write a `tokenizer.json`, which the library `tokenizers` reads, too."""
        write_whole(path, tokenizer_json(self))

    @classmethod
    def load(cls, path: str | Path) -> "BPETokenizer":
        """Read a `tokenizer.json` that `save` wrote, or another of byte-level BPE like GPT-2's.

        Raises FileNotFoundError, and ValueError for a damaged file and for one that asks for what
        this tokenizer does not do.
        """
        try:
            return _read_tokenizer(Path(path))
        except ValueError as error:
            raise ValueError(f"{path} is not a tokenizer of this course: {error}") from error

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BPETokenizer)
            and self._merges == other._merges
            and self._special == other._special
            and self._byte_ids == other._byte_ids
            and self.single_digits == other.single_digits
        )

    def __hash__(self) -> int:
        return hash((tuple(self._merges), tuple(self._special)))

    def __repr__(self) -> str:
        return f"BPETokenizer({len(self._merges)} merges, {len(self._special)} special tokens)"


def _names(special: Any) -> list[str]:
    """Special tokens as a list; TypeError for a single text."""
    if isinstance(special, str | bytes) or not isinstance(special, Iterable):
        raise TypeError(f"special should be a list of texts, not {special!r:.60}: [text] for one")
    return list(special)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text holds half a character, {text[error.start]!r} (a lone surrogate), which "
            "UTF-8 cannot encode: read it again, or use text.encode('utf-8', 'replace').decode()"
        ) from None


# --- tokenizer.json -------------------------------------------------------------------------------

# What the format can ask for beyond what this tokenizer does, each with the value that asks for
# nothing. A file is written with these values, and refused when it has others.
_TOP = {"normalizer": None, "truncation": None, "padding": None}
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
_DIGITS = {"type": "Digits", "individual_digits": True}
_ADDED = dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
_MODEL = {
    "type": "BPE",
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "byte_fallback": False,
    "ignore_merges": False,
}


def tokenizer_json(tokenizer: BPETokenizer) -> bytes:
    """Return what a `tokenizer.json` of this tokenizer holds."""
    byte_level = {**_BYTE_LEVEL, "trim_offsets": True}
    added = {**_ADDED, "normalized": False, "special": True}
    content = {
        "version": "1.0",
        **_TOP,
        "added_tokens": [
            {"id": i, "content": name, **added} for name, i in tokenizer.special.items()
        ],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [_DIGITS, byte_level]}
        if tokenizer.single_digits
        else byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            **_MODEL,
            "fuse_unk": False,
            "vocab": _vocabulary(tokenizer),
            "merges": [[to_file(a), to_file(b)] for a, b in tokenizer.merges],
        },
    }
    return json.dumps(content, ensure_ascii=False, indent=1).encode()


def _vocabulary(tokenizer: BPETokenizer) -> dict[str, int]:
    """Each token as files write it → its id, in the order of the ids."""
    names = {id: name for name, id in tokenizer.special.items()}
    tokens = (names.get(id) or to_file(tokenizer.piece(id)) for id in range(tokenizer.vocab_size))
    return {token: id for id, token in enumerate(tokens)}


def tokenizer_from_vocabulary(
    vocabulary: Mapping[str, int],
    merges: Iterable[Sequence[str]],
    special: Sequence[str],
    single_digits: bool = False,
) -> BPETokenizer:
    """Return the tokenizer with this vocabulary (token → id) and these pairs, as files write them.

    Raises ValueError if the ids are in an order that `BPETokenizer` does not have.
    """
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    tokenizer = BPETokenizer(
        [(from_file(left), from_file(right)) for left, right in merges],
        special,
        alphabet=[_BYTES[token] for token in tokens if token in _BYTES and token not in special],
        special_first=bool(special) and tokens[0] == special[0],
        single_digits=single_digits,
    )
    if _vocabulary(tokenizer) != vocabulary:
        raise ValueError(
            "its ids are not numbered as here: bytes, merges in the order of learning, and the "
            "special tokens before or after them"
        )
    return tokenizer


def _read_tokenizer(path: Path) -> BPETokenizer:
    if not path.is_file():
        raise FileNotFoundError(f"there is no tokenizer at {path}")
    content = json_object(path.read_bytes())
    try:
        model, added, split = content["model"], content["added_tokens"], content["pre_tokenizer"]
        _expect_settings("model", model, _MODEL)
        single_digits = split["type"] == "Sequence"
        if single_digits:
            digits, split = split["pretokenizers"]
            _expect_settings("pre_tokenizer", digits, _DIGITS)
        _expect_settings("pre_tokenizer", split, _BYTE_LEVEL)
        _expect_settings("tokenizer", content, _TOP)
        if content.get("post_processor"):  # that of the type ByteLevel changes no id
            _expect_settings("post_processor", content["post_processor"], {"type": "ByteLevel"})
        for token in added:
            _expect_settings("added_tokens", token, _ADDED)
        return tokenizer_from_vocabulary(
            model["vocab"],
            [m.split(" ") if isinstance(m, str) else m for m in model["merges"]],
            [token["content"] for token in sorted(added, key=lambda token: token["id"])],
            single_digits,
        )
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"it lacks or mistakes {error}") from None


def _expect_settings(part: str, given: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise ValueError for a setting of a file that asks for what this tokenizer does not do."""
    for name, value in wanted.items():
        if (given.get(name, value) or None) != (value or None):  # None, False, 0 and "" are alike
            raise ValueError(f"{part}.{name} {given[name]!r} is not what this tokenizer does")


def encode_documents(
    tokenizer: BPETokenizer, documents: Iterable[str], separator: str = END
) -> list[int]:
    """Return the ids of several texts as one stream, with the separator's id before each text.

    Args:
        tokenizer: has the separator as a special token.
        documents: the texts; one that spells the separator gets the ids of its letters.
        separator: the special token that begins each text.

    Raises ValueError if the separator is not a special token of the tokenizer, and TypeError for a
    single text.

    Radford et al. 2019, in the code of GPT-2. Taught in: gptmini.
    """
    if isinstance(documents, str):
        raise TypeError("encode_documents wants several texts; for one: [text]")
    if separator not in tokenizer.special:
        raise ValueError(
            f"{separator!r} is not a special token of this tokenizer, which has "
            f"{sorted(tokenizer.special)}: BPETokenizer.train(…, special=[{separator!r}])"
        )
    ids: list[int] = []
    for document in documents:
        ids.append(tokenizer.special[separator])
        ids += tokenizer.encode(document)
    return ids
