"""Byte-pair encoding: tokens that are pieces of words, learnt from a text.

Pieces are bytes objects throughout. Only a saved file writes them as text, with GPT-2's alphabet of
256 visible characters, because that is what other libraries read (`helpers.text.files`).
"""

import codecs
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import regex

from helpers.text.files import ALPHABET, read_tokenizer, to_file, write_tokenizer
from helpers.text.ids import checked_ids
from helpers.text.merging import Pair, learn_merges, merge_word

# GPT-2's rule: the endings 's, 't …; letters, digits or other signs, with the space before them;
# spaces, of which the last is left to the next word. No merge ever crosses from one to the next.
WORDS = regex.compile(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def split_words(text: str) -> list[str]:
    """Cut a text as GPT-2 does before it merges: words with the space before them, numbers, signs.

    Joined again, the pieces are the text. Radford et al. 2019, in the code of GPT-2.
    Taught in chapter 11.
    """
    return WORDS.findall(text)


class BPETokenizer:
    """One token for each byte, and one more for each pair of tokens that was merged in training.

    merges: pairs of pieces (bytes, bytes) in the order in which they were learnt; the first 256 ids
    are the single bytes, in the order of GPT-2's alphabet, then come the merges, then `special`:
    strings such as "<|endoftext|>" that are never cut. `BPETokenizer.train` learns the merges from
    a text.

    >>> tokenizer = BPETokenizer.train("low lower lowest", vocab_size=258)
    >>> [tokenizer.piece(id) for id in tokenizer.encode("lowly")]
    [b'low', b'l', b'y']

    Raises ValueError for a merge of pieces that are not there, or one that stands twice, and for a
    special token that is empty, stands twice or is written like a piece.
    Sennrich et al. 2016; Radford et al. 2019, "GPT-2". Taught in chapter 11.
    """

    def __init__(self, merges: Iterable[tuple[bytes, bytes]] = (), special: Iterable[str] = ()):
        self._pieces = list(ALPHABET)
        ids = {piece: i for i, piece in enumerate(self._pieces)}
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
            self._merges[pair] = ids[left + right] = len(self._pieces)
            self._pieces.append(left + right)
        special = list(special)
        written = {to_file(piece) for piece in self._pieces} if special else set()
        self._special: dict[str, int] = {}
        for name in special:
            if not name or name in self._special or name in written:
                raise ValueError(
                    f"the special token {name!r} should be a text of its own: not empty, not there "
                    "already, and no piece as files write it (Ġ is a space)"
                )
            self._special[name] = len(self._pieces)
            self._pieces.append(name.encode())
        self._known: dict[str, list[int]] = {}  # words that were encoded before

    @classmethod
    def train(
        cls, text: str | Iterable[str], vocab_size: int, special: Collection[str] = ()
    ) -> "BPETokenizer":
        """Learn merges from a text, or from several, until the vocabulary has vocab_size tokens.

        Merges the most frequent pair of neighbours within words, again and again; of pairs that are
        equally frequent the one with the smaller ids. Ends early when no pair is left.
        Raises ValueError if vocab_size leaves no room for 256 bytes and the special tokens.
        """
        least = len(ALPHABET) + len(special)
        if vocab_size < least:
            raise ValueError(
                f"vocab_size is {vocab_size}, but the 256 bytes and {len(special)} special tokens "
                f"already are {least}"
            )
        texts = [text] if isinstance(text, str) else text
        words: Counter[str] = Counter()
        for part in texts:
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
        special token that this tokenizer does not have, TypeError for what is no text.
        """
        if not isinstance(text, str):
            raise TypeError(f"encode wants a str, not a {type(text).__name__}")
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
        for word in WORDS.findall(text):
            known = self._known.get(word)
            if known is None:
                # The first 256 ids are bytes in an order of their own.
                known = merge_word([_BYTE_IDS[b] for b in _utf8(word)], self._merges)
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
        write_tokenizer(path, self.merges, self._special)

    @classmethod
    def load(cls, path: str | Path) -> "BPETokenizer":
        """Read what `save` wrote. Raises FileNotFoundError, and ValueError for any other file."""
        try:
            return cls(*read_tokenizer(path))
        except ValueError as error:
            raise ValueError(f"{path} is no tokenizer of this course: {error}") from error

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BPETokenizer)
            and self._merges == other._merges
            and self._special == other._special
        )

    def __hash__(self) -> int:
        return hash((tuple(self._merges), tuple(self._special)))

    def __repr__(self) -> str:
        return f"BPETokenizer({len(self._merges)} merges, {len(self._special)} special tokens)"


_BYTE_IDS = {piece[0]: i for i, piece in enumerate(ALPHABET)}


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text holds half a character, {text[error.start]!r} (a lone surrogate), which "
            "UTF-8 cannot spell: read the text anew, or text.encode('utf-8', 'replace').decode()"
        ) from None
