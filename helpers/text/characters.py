"""A tokenizer with one token per character."""

from collections.abc import Iterable, Sequence
from typing import Any


class CharTokenizer:
    """A tokenizer with one token per character.

    Args:
        symbols: the vocabulary, distinct single characters, as a string or a sequence of strings;
            the id of a symbol is its index. `CharTokenizer.from_text` collects them from a text.

    >>> tokenizer = CharTokenizer.from_text("hello")
    >>> tokenizer.symbols
    ('e', 'h', 'l', 'o')
    >>> tokenizer.encode("hole")
    [1, 3, 2, 0]
    >>> tokenizer.decode([1, 3, 2, 0])
    'hole'

    Raises ValueError for no symbols, a repeated one, or one that is not a single character, and
    TypeError for what is not text. Taught in: language_modelling.
    """

    def __init__(self, symbols: Iterable[str]):
        try:
            self._symbols = tuple(symbols)
        except TypeError:
            raise TypeError(
                f"symbols should be characters, such as 'abc', not a {type(symbols).__name__}"
            ) from None
        if not self._symbols:
            raise ValueError("a tokenizer needs at least one symbol, but got none")
        self._ids: dict[str, int] = {}
        for i, symbol in enumerate(self._symbols):
            if not isinstance(symbol, str) or len(symbol) != 1:
                raise ValueError(f"symbols[{i}] is {symbol!r:.40}, not a single character")
            if symbol in self._ids:
                raise ValueError(
                    f"the symbol {symbol!r} stands at {self._ids[symbol]} and again at {i}. "
                    "To collect the symbols of a text, use CharTokenizer.from_text(text)"
                )
            self._ids[symbol] = i

    @classmethod
    def from_text(cls, text: str) -> "CharTokenizer":
        """Return the tokenizer whose symbols are the characters of `text`, by code point."""
        if not isinstance(text, str):
            raise TypeError(f"text should be a str, not a {type(text).__name__}")
        if not text:
            raise ValueError("the text is empty: there are no characters to collect")
        return cls(sorted(set(text)))

    @property
    def symbols(self) -> tuple[str, ...]:
        """All symbols in the order of their ids."""
        return self._symbols

    @property
    def vocab_size(self) -> int:
        """V, the number of symbols; ids run from 0 to V − 1."""
        return len(self._symbols)

    def encode(self, text: str) -> list[int]:
        """Return the id of each character. Raises ValueError for an unknown character."""
        if not isinstance(text, str):
            raise TypeError(f"encode wants a str, not a {type(text).__name__}")
        try:
            return list(map(self._ids.__getitem__, text))
        except KeyError as error:
            unknown = error.args[0]
        raise ValueError(
            f"the character {unknown!r} (U+{ord(unknown):04X}) at position {text.index(unknown)} "
            f"is not among the {self.vocab_size} symbols of this tokenizer. Replace it, or build "
            "the tokenizer from a text that contains it"
        )

    def decode(self, ids: Sequence[int] | Any) -> str:
        """Return the text of a flat sequence of ids: a list, an array or a tensor.

        Raises ValueError for an id outside 0 … V − 1, and TypeError for what is not an id.
        """
        items = checked_ids(ids, self.vocab_size)
        return "".join(map(self._symbols.__getitem__, items))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CharTokenizer) and self._symbols == other._symbols

    def __hash__(self) -> int:
        return hash(self._symbols)

    def __repr__(self) -> str:
        shown = "".join(self._symbols[:20]) + ("…" if self.vocab_size > 20 else "")
        return f"CharTokenizer({self.vocab_size} symbols: {shown!r})"


def checked_ids(ids: Sequence[int] | Any, vocab_size: int) -> list[int]:
    """Return a flat list, array or tensor of ids from 0 to vocab_size − 1 as a list.

    Raises ValueError for an id outside the vocabulary, and TypeError for what is not an id.
    """
    # Tensors and arrays become lists first: going through them one by one is slow.
    items = ids.tolist() if hasattr(ids, "tolist") else ids
    wanted = "decode wants a flat sequence of integer ids"
    if isinstance(items, (str, bytes)):
        raise TypeError(f"{wanted}, not the {type(items).__name__} {items!r:.40}")
    try:
        items = list(items)
    except TypeError:
        raise TypeError(f"{wanted}, not {items!r:.40}") from None
    # Checked by hand: Python would read the id -1 as the last symbol.
    for i, token in enumerate(items):
        if type(token) is not int and not hasattr(token, "__index__"):
            raise TypeError(f"{wanted}, but ids[{i}] is {token!r:.40}")
        if not 0 <= token < vocab_size:
            raise ValueError(
                f"ids[{i}] is {token}, but the ids of this tokenizer run from 0 to {vocab_size - 1}"
            )
    return items
