"""A tokenizer with one token per character."""

from collections.abc import Iterable


class CharTokenizer:
    """A tokenizer with one token per character: the id of a symbol is its index.

    >>> tokenizer = CharTokenizer.from_text("hello")
    >>> tokenizer.symbols
    ('e', 'h', 'l', 'o')
    >>> tokenizer.encode("hole")
    [1, 3, 2, 0]
    >>> tokenizer.decode([1, 3, 2, 0])
    'hole'

    Taught in: language_modelling.
    """

    def __init__(self, symbols: Iterable[str]):
        self.symbols = tuple(symbols)  # different characters
        self._ids = {symbol: id for id, symbol in enumerate(self.symbols)}

    @classmethod
    def from_text(cls, text: str) -> "CharTokenizer":
        """Return the tokenizer whose symbols are the characters of `text`, by code point."""
        return cls(sorted(set(text)))

    @property
    def vocab_size(self) -> int:
        """V, the number of symbols; ids run from 0 to V − 1."""
        return len(self.symbols)

    def encode(self, text: str) -> list[int]:
        """Return the id of each character. Raises ValueError for an unknown character."""
        try:
            return [self._ids[character] for character in text]
        except KeyError as error:
            unknown = error.args[0]
        raise ValueError(
            f"the character {unknown!r} (U+{ord(unknown):04X}) at position {text.index(unknown)} "
            f"is not among the {self.vocab_size} symbols of this tokenizer"
        )

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of a flat sequence of ids: a list, an array or a tensor."""
        return "".join(map(self.symbols.__getitem__, getattr(ids, "tolist", lambda: ids)()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CharTokenizer) and self.symbols == other.symbols

    def __repr__(self) -> str:
        shown = "".join(self.symbols[:20]) + ("…" if self.vocab_size > 20 else "")
        return f"CharTokenizer({self.vocab_size} symbols: {shown!r})"
