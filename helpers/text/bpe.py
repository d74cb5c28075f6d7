"""Byte-pair encoding: subword tokens, learned from a text. A token's text is its `piece`, bytes."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import regex

Pair = tuple[int, int]
END = "<|endoftext|>"  # stands between documents
VISIBLE = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that are signs in Latin-1
# All bytes in the order of their ids in GPT-2: first the visible ones.
BYTES = [bytes([b]) for b in [*VISIBLE, *sorted({*range(256)} - {*VISIBLE})]]


def learn_merges(
    words: Sequence[tuple[list[int], int]], n_merges: int, first_id: int
) -> Iterator[Pair]:
    """Yield the pairs that byte-pair encoding merges, in order, at most n_merges of them.

    words: (ids, how often the word occurs) for each word; the lists of ids are changed. The merged
    pairs get the ids from first_id on.
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
    """Apply merges (pair → the id of both together) to the ids of a word, in the order of learning,
    which is that of the new ids; the list is changed."""
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
    """Pre-tokenise a text as GPT-2 does: words, numbers and punctuation, each with the space before
    it; joined, they are the text. single_digits: each digit is a word, as for SmolLM2.

    Radford et al. 2019, in the code of GPT-2. Taught in: byte_pair_encoding.
    """
    return (SINGLE_DIGITS if single_digits else WORDS).findall(text)


class BPETokenizer:
    """A byte-level BPE tokenizer: one token per byte, and one for each pair of tokens merged.

    Args:
        merges: pairs of pieces (bytes, bytes) in the order of learning.
        special: special tokens, such as "<|endoftext|>", which are never split.
        alphabet: the single bytes that have a token, in the order of their ids.
        special_first: whether the ids of the special tokens come before those of the bytes; else
            they come after those of the merges.
        single_digits: as in `split_words`.

    >>> tokenizer = BPETokenizer.train("low lower lowest", vocab_size=258)
    >>> [tokenizer.piece(id) for id in tokenizer.encode("lowly")]
    [b'low', b'l', b'y']

    Sennrich et al. 2016; Radford et al. 2019, "GPT-2". Taught in: byte_pair_encoding.
    """

    def __init__(
        self,
        merges: Iterable[tuple[bytes, bytes]] = (),
        special: Iterable[str] = (),
        *,
        alphabet: Iterable[bytes] = BYTES,
        special_first: bool = False,
        single_digits: bool = False,
    ):
        self.merges, self.alphabet, names = list(merges), list(alphabet), list(special)
        self.single_digits = single_digits
        pieces = [*self.alphabet, *(left + right for left, right in self.merges)]
        first = len(names) if special_first else 0  # the id of the first byte
        ids = {piece: first + i for i, piece in enumerate(pieces)}
        self.special = {n: i + (0 if special_first else len(pieces)) for i, n in enumerate(names)}
        spelled = [name.encode() for name in names]
        self._pieces = [*spelled, *pieces] if special_first else [*pieces, *spelled]
        self._byte_ids = {piece[0]: ids[piece] for piece in self.alphabet}
        self._merges = {(ids[a], ids[b]): ids[a + b] for a, b in self.merges}
        self._known: dict[str, list[int]] = {}  # words that were encoded before

    @classmethod
    def train(
        cls, text: str | Iterable[str], vocab_size: int, special: Collection[str] = ()
    ) -> "BPETokenizer":
        """Learn merges from a text, or several, until the vocabulary is full, the 256 bytes and the
        special tokens included, or no pair is left to merge.

        Each step merges the most frequent pair of neighbours within words; of equally frequent
        pairs, the one with the smaller ids.
        """
        words: Counter[str] = Counter()
        for part in [text] if isinstance(text, str) else text:
            words.update(split_words(part))
        ids = {piece[0]: i for i, piece in enumerate(BYTES)}
        spelled = [([ids[b] for b in word.encode()], n) for word, n in words.items()]
        pieces, merges = list(BYTES), []
        for a, b in learn_merges(spelled, vocab_size - len(BYTES) - len(special), len(BYTES)):
            merges.append((pieces[a], pieces[b]))
            pieces.append(pieces[a] + pieces[b])
        tokenizer = cls(merges, special)
        # Learning has spelled these words already: the ids are those that `encode` would find.
        tokenizer._known = {word: ids for word, (ids, _) in zip(words, spelled, strict=True)}
        return tokenizer

    @property
    def vocab_size(self) -> int:
        """V: the bytes, the merges and the special tokens; ids run from 0 to V − 1."""
        return len(self._pieces)

    def piece(self, id: int) -> bytes:
        """Return the bytes of one token, which need not be whole characters."""
        return self._pieces[id]

    def encode(self, text: str, special: Collection[str] = ()) -> list[int]:
        """Return the ids of a text.

        special: the special tokens to recognise in the text; others are encoded as the letters they
        are written with, so that no text can contain one by accident.
        """
        special = sorted(special, key=len, reverse=True)  # the longest first
        if not special:
            return self._encode_words(text)
        ids: list[int] = []
        for part in regex.split(f"({'|'.join(map(regex.escape, special))})", text):
            ids += [self.special[part]] if part in special else self._encode_words(part)
        return ids

    def _encode_words(self, text: str) -> list[int]:
        ids: list[int] = []
        for word in split_words(text, self.single_digits):
            known = self._known.get(word)
            if known is None:
                try:
                    spelled = [self._byte_ids[b] for b in word.encode()]
                except KeyError as error:
                    byte = f"0x{error.args[0]:02x}"
                    raise ValueError(f"there is no token for the byte {byte} in {word!r}") from None
                known = merge_word(spelled, self._merges)
                if len(self._known) < 100_000:  # the memory has an end
                    self._known[word] = known
            ids += known
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of a flat sequence of ids; bytes that are not a character become "�"."""
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Return the bytes of a flat sequence of ids: a list, an array or a tensor."""
        return b"".join(map(self._pieces.__getitem__, getattr(ids, "tolist", lambda: ids)()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BPETokenizer) and (
            (self._pieces, self._merges, self.special, self.single_digits)
            == (other._pieces, other._merges, other.special, other.single_digits)
        )

    def __repr__(self) -> str:
        return f"BPETokenizer({len(self.merges)} merges, {len(self.special)} special tokens)"


def encode_documents(tokenizer: BPETokenizer, documents: Iterable[str]) -> list[int]:
    """Return the ids of several texts as one stream, with the id of "<|endoftext|>" before each; a
    text that spells it gets the ids of its letters.

    Radford et al. 2019, in the code of GPT-2. Taught in: gptmini.
    """
    ids: list[int] = []
    for document in documents:
        ids += [tokenizer.special[END], *tokenizer.encode(document)]
    return ids
