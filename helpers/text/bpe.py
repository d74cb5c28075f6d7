"""Byte-pair encoding: tokens that are pieces of words, learnt from a text.

In order: how a piece is written, the two loops (learning merges, applying them to a word), the
tokenizer, its file, and many texts as one stream. Pieces are bytes objects throughout. Only a file
writes them as text, with GPT-2's alphabet of 256 visible characters, because that is what other
libraries read.
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

from helpers.files import json_object, write_whole
from helpers.text.characters import checked_ids

Pair = tuple[int, int]
END = "<|endoftext|>"  # stands between documents


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
_BYTE_IDS = {piece[0]: i for i, piece in enumerate(ALPHABET)}


def to_file(piece: bytes) -> str:
    """A piece as it is written in a file: b" low" becomes "Ġlow"."""
    return "".join(ALPHABET[bytes([b])] for b in piece)


def from_file(written: str) -> bytes:
    """The piece that `to_file` wrote. Raises ValueError for other characters."""
    try:
        return b"".join(_BYTES[character] for character in written)
    except KeyError as error:
        raise ValueError(f"{error.args[0]!r} in {written!r} stands for no byte") from None


def learn_merges(
    words: Sequence[tuple[list[int], int]], n_merges: int, first_id: int
) -> Iterator[Pair]:
    """Yield the most frequent pair of neighbours, merge it everywhere, and so on: up to n_merges.

    words: (ids, how often the word occurs), whose lists of ids are changed; first_id: the id of the
    first merged pair, the next ones count up.

    Nothing is counted twice: a merge changes the counts of its neighbours only, and the words that
    hold a pair are known. A heap gives the most frequent pair; its entries may be out of date, and
    then go back with the count of today.
    """
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
        risen: set[Pair] = set()
        for i in places.pop(best):
            ids, n = words[i]
            for pair in pairwise(ids):
                counts[pair] -= n
            replace_pair(ids, best, new)
            for pair in pairwise(ids):
                counts[pair] += n
                if new in pair:
                    places[pair].add(i)
                    risen.add(pair)
        del counts[best]
        for pair in risen:
            heapq.heappush(heap, (-counts[pair], pair))


def _most_frequent(heap: list[tuple[int, Pair]], counts: Counter[Pair]) -> Pair | None:
    while heap:
        n, pair = heapq.heappop(heap)
        today = counts[pair]
        if today == -n and today > 0:
            return pair
        if today > 0:
            heapq.heappush(heap, (-today, pair))
    return None


def merge_word(ids: list[int], merges: Mapping[Pair, int]) -> list[int]:
    """Apply merges to the ids of one word, those learnt first first; the list is changed.

    merges: pair -> the id of both together, above 0, which rises in the order of learning.
    """
    if len(ids) > LONG:
        ids[:] = _merge_long(ids, merges)
        return ids
    while len(ids) > 1:
        found = list(map(merges.get, pairwise(ids)))
        try:
            first = min(filter(None, found))
        except ValueError:  # none of the pairs is one that was learnt
            break
        place = found.index(first)
        ids[place : place + 2] = [first]
    return ids


LONG = (
    200  # ids in a word, from which on looking at all pairs for each merge costs more than a heap
)


def _merge_long(ids: list[int], merges: Mapping[Pair, int]) -> list[int]:
    """The same for a word of any length n, in n log n steps: a heap of the merges to be made.

    A merge makes one id of two: the left place holds it, the right one is dead, and only the two
    pairs beside it are new. Entries of the heap may be out of date, and then say nothing.
    """
    ids, n = list(ids), len(ids)
    before, after = list(range(-1, n - 1)), [*range(1, n), -1]
    heap = [
        (new, i) for i, pair in enumerate(pairwise(ids)) if (new := merges.get(pair)) is not None
    ]
    heapq.heapify(heap)
    while heap:
        new, i = heapq.heappop(heap)
        right = after[i]
        if ids[i] < 0 or right < 0 or merges.get((ids[i], ids[right])) != new:
            continue
        ids[i], ids[right] = new, -1
        after[i] = following = after[right]
        if following >= 0:
            before[following] = i
        for left in (before[i], i):
            if left >= 0 and after[left] >= 0:
                made = merges.get((ids[left], ids[after[left]]))
                if made is not None:
                    heapq.heappush(heap, (made, left))
    return [id for id in ids if id >= 0]


def replace_pair(ids: list[int], pair: Pair, new: int) -> None:
    """Put `new` for each occurrence of the pair in the list, from left to right, in place."""
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


# GPT-2's rule: the endings 's, 't …; letters, digits or other signs, with the space before them;
# spaces, of which the last is left to the next word. No merge ever crosses from one to the next.
WORDS = regex.compile(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
# The same after each digit has been cut out: a digit ends a run of spaces as the text's end does.
SINGLE_DIGITS = regex.compile(
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+"
)


def split_words(text: str, single_digits: bool = False) -> list[str]:
    """Cut a text as GPT-2 does before it merges: words with the space before them, numbers, signs.

    single_digits: is each digit a piece of its own, as for SmolLM2? Joined again, the pieces are
    the text. Radford et al. 2019, in the code of GPT-2. Taught in: byte_pair_encoding.
    """
    return (SINGLE_DIGITS if single_digits else WORDS).findall(text)


class BPETokenizer:
    """One token for each byte, and one more for each pair of tokens that was merged in training.

    merges: pairs of pieces (bytes, bytes) in the order in which they were learnt; the first 256 ids
    are the single bytes, in the order of GPT-2's alphabet, then come the merges, then `special`:
    strings such as "<|endoftext|>" that are never cut. `BPETokenizer.train` learns the merges from
    a text. Published tokenizers may differ: alphabet, the bytes that they know, in the order of
    their ids; special_first: come the special tokens before the bytes?; single_digits: see
    `split_words`.

    >>> tokenizer = BPETokenizer.train("low lower lowest", vocab_size=258)
    >>> [tokenizer.piece(id) for id in tokenizer.encode("lowly")]
    [b'low', b'l', b'y']

    Raises ValueError for a merge of pieces that are not there, or one that stands twice, for a
    special token that is empty, stands twice or is written like a piece, and for an alphabet of
    anything but different single bytes.
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
        """Learn merges from a text, or from several, until the vocabulary has vocab_size tokens.

        Merges the most frequent pair of neighbours within words, again and again; of pairs that are
        equally frequent the one with the smaller ids. Ends early when no pair is left.
        Raises ValueError if vocab_size leaves no room for 256 bytes and the special tokens, and
        TypeError for what is no text.
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
        texts = [text] if isinstance(text, str) else text
        if isinstance(texts, bytes) or not isinstance(texts, Iterable):
            raise TypeError(f"train wants a str, or several, not a {type(text).__name__}{HINT}")
        words: Counter[str] = Counter()
        for part in texts:
            if not isinstance(part, str):
                raise TypeError(f"train wants texts, but one is a {type(part).__name__}{HINT}")
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
        """The pairs of pieces that were merged, in the order in which they were learnt."""
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
        """The bytes of one token, which need not be whole characters."""
        return self._pieces[checked_ids([id], self.vocab_size)[0]]

    def encode(self, text: str, special: Collection[str] = ()) -> list[int]:
        """The ids of a text. Every text has some: what was never met is spelled in bytes.

        special: those special tokens that are recognised in the text; any other is read as the
        letters it is written with, so that nobody can smuggle one in. Raises ValueError for a
        special token that this tokenizer does not have and for a byte outside its alphabet,
        TypeError for what is no text.
        """
        if not isinstance(text, str):
            raise TypeError(f"encode wants a str, not a {type(text).__name__}")
        special = _names(special)
        if unknown := set(special) - set(self._special):
            raise ValueError(
                f"{sorted(unknown)} are no special tokens here; known: {sorted(self._special)}"
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
                if len(self._known) < 100_000:  # a text of nothing but new words must end, too
                    self._known[word] = known
            ids += known
        return ids

    def decode(self, ids: Sequence[int] | Any) -> str:
        """The text of a flat sequence of ids; bytes that are no character become "�".

        Raises ValueError for an id outside 0 … V − 1, TypeError for what is no id.
        """
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def decode_bytes(self, ids: Sequence[int] | Any) -> bytes:
        """The bytes of a flat sequence of ids, whole characters or not; errors as in `decode`."""
        return b"".join(map(self._pieces.__getitem__, checked_ids(ids, self.vocab_size)))

    def decode_stream(self, ids: Iterable[int]) -> Iterator[str]:
        """The text of ids as they come, one string for each, at once as far as it is certain.

        A character whose bytes are in several tokens comes with the last of them.
        """
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        for id in ids:
            yield decoder.decode(self.piece(id))
        if rest := decoder.decode(b"", final=True):
            yield rest

    def save(self, path: str | Path) -> None:
        """Write a `tokenizer.json` that the library `tokenizers` reads, too, in one piece."""
        write_tokenizer(path, self)

    @classmethod
    def load(cls, path: str | Path) -> "BPETokenizer":
        """Read what `save` wrote. Raises FileNotFoundError, and ValueError for any other file."""
        try:
            return read_tokenizer(path)
        except ValueError as error:
            raise ValueError(f"{path} is no tokenizer of this course: {error}") from error

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


HINT = ". Of a file, path.read_text(encoding='utf-8') is the text; of bytes, their decode('utf-8')"


def _names(special: Any) -> list[str]:
    """Special tokens as a list; TypeError for one text, which would be as many as its letters."""
    if isinstance(special, str | bytes) or not isinstance(special, Iterable):
        raise TypeError(f"special should be a list of texts, not {special!r:.60}: [text] for one")
    return list(special)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text holds half a character, {text[error.start]!r} (a lone surrogate), which "
            "UTF-8 cannot spell: read the text anew, or text.encode('utf-8', 'replace').decode()"
        ) from None


def write_tokenizer(path: str | Path, tokenizer: BPETokenizer) -> None:
    """Write merges and tokens with their ids as a `tokenizer.json`."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    byte_level["use_regex"] = True
    digits = {"type": "Digits", "individual_digits": True}
    split = {"type": "Sequence", "pretokenizers": [digits, byte_level]}
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": name, **plain, "special": True}
            for name, i in tokenizer.special.items()
        ],
        "normalizer": None,
        "pre_tokenizer": split if tokenizer.single_digits else byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": _numbered(tokenizer),
            "merges": [[to_file(a), to_file(b)] for a, b in tokenizer.merges],
        },
    }
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=1).encode())


def _numbered(tokenizer: BPETokenizer) -> dict[str, int]:
    """All tokens as files write them, in the order of their ids."""
    names = {id: name for name, id in tokenizer.special.items()}
    tokens = (names.get(id) or to_file(tokenizer.piece(id)) for id in range(tokenizer.vocab_size))
    return {token: id for id, token in enumerate(tokens)}


def numbered_tokenizer(
    tokens: Iterable[str],
    merges: Iterable[tuple[bytes, bytes]],
    special: Iterable[str],
    single_digits: bool = False,
) -> BPETokenizer:
    """The tokenizer whose tokens, as files write them, have these ids: 0, 1, 2 …

    Raises ValueError for an order that `BPETokenizer` does not have.
    """
    tokens, special = list(tokens), list(special)
    alphabet = [_BYTES[token] for token in tokens if token in _BYTES and token not in special]
    tokenizer = BPETokenizer(
        merges,
        special,
        alphabet=alphabet,
        special_first=bool(special) and tokens[:1] == special[:1],
        single_digits=single_digits,
    )
    if list(_numbered(tokenizer)) != tokens:
        raise ValueError(
            "its ids are not numbered as here: bytes, merges in the order of learning, and the "
            "special tokens before or after them"
        )
    return tokenizer


def read_tokenizer(path: str | Path) -> BPETokenizer:
    """What `write_tokenizer` wrote, or another that asks for nothing else.

    Raises FileNotFoundError, and ValueError for a file that says anything else.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no tokenizer at {path}")
    try:
        content = json_object(path.read_bytes())
        model, added, split = content["model"], content["added_tokens"], content["pre_tokenizer"]
        single_digits = split["type"] == "Sequence"
        if single_digits:
            digits, split = split["pretokenizers"]
            if digits != {"type": "Digits", "individual_digits": True}:
                raise ValueError(f"pre_tokenizer {digits} is not what this tokenizer does")
        _expect_known({**content, "pre_tokenizer": split})
        if model["type"] != "BPE" or split["type"] != "ByteLevel":
            raise ValueError("it is not byte-level BPE")
        merges = [_pair(merge) for merge in model["merges"]]
        special = [token["content"] for token in sorted(added, key=lambda token: token["id"])]
        vocabulary: dict[str, Any] = model["vocab"]
        tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"it lacks or mistakes {error}") from None
    if not all(isinstance(name, str) for name in special):
        raise ValueError("its special tokens are no texts")
    if sorted(vocabulary.values()) != list(range(len(tokens))):
        raise ValueError("its ids are not numbered as here: 0, 1, 2 …")
    return numbered_tokenizer(tokens, merges, special, single_digits)


# What a tokenizer.json can ask for and this tokenizer does not do: the values that ask for nothing.
_IDLE: dict[str, dict[str, tuple[Any, ...]]] = {
    "": {"normalizer": (None,), "truncation": (None,), "padding": (None,)},
    "pre_tokenizer": {"add_prefix_space": (False,), "use_regex": (True,)},
    "model": {
        "dropout": (None, 0),
        "unk_token": (None, ""),
        "continuing_subword_prefix": (None, ""),
        "end_of_word_suffix": (None, ""),
        "byte_fallback": (False,),
        "ignore_merges": (False,),
    },
}
_IDLE_SPECIAL = dict.fromkeys(("single_word", "lstrip", "rstrip"), (False,))


def _expect_known(content: dict[str, Any]) -> None:
    """Raise ValueError, by name, for what a file asks for and would not get."""
    asked = [(part, content[part] if part else content, idle) for part, idle in _IDLE.items()]
    asked += [("added_tokens", token, _IDLE_SPECIAL) for token in content["added_tokens"]]
    for part, settings, idle in asked:
        for name, values in idle.items():
            if settings.get(name, values[0]) not in values:
                where = f"{part}.{name}" if part else name
                raise ValueError(f"{where} {settings[name]!r} is not what this tokenizer does")
    after = content.get("post_processor")
    if after is not None and after["type"] != "ByteLevel":  # that one changes no id
        raise ValueError(f"post_processor {after['type']!r} is not what this tokenizer does")


def _pair(merge: Any) -> tuple[bytes, bytes]:
    """["a", "b"], or "a b" in older files."""
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return from_file(left), from_file(right)


def encode_documents(
    tokenizer: BPETokenizer, documents: Iterable[str], separator: str = END
) -> list[int]:
    """The ids of several texts, one after the other, with the separator's id before each.

    The separator tells a model that what came before has nothing to do with what follows; and
    asked to continue it alone, the model begins a new text. Texts are encoded as they are: one that
    spells the separator gets its letters. Raises ValueError if the separator is no special token of
    the tokenizer, TypeError for a single text, which would be as many as it has letters.
    Radford et al. 2019, in the code of GPT-2. Taught in: gptmini.
    """
    if isinstance(documents, str):
        raise TypeError("encode_documents wants several texts; for one: [text]")
    if separator not in tokenizer.special:
        raise ValueError(
            f"{separator!r} is no special token of this tokenizer, which has "
            f"{sorted(tokenizer.special)}: BPETokenizer.train(…, special=[{separator!r}])"
        )
    ids: list[int] = []
    for document in documents:
        ids.append(tokenizer.special[separator])
        ids += tokenizer.encode(document)
    return ids
