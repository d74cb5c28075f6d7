"""Tokenizers, which split a text into tokens with ids, and n-gram models.

`CharTokenizer` has a token for each character; `BPETokenizer` has one for each byte, and for
sequences of bytes that were frequent in its training text. `NGramModel` predicts tokens by counts.
"""

from typing import Protocol

from helpers.text.bpe import BPETokenizer, encode_documents, split_words
from helpers.text.characters import CharTokenizer
from helpers.text.ngram import NGramModel

__all__ = [
    "BPETokenizer",
    "CharTokenizer",
    "NGramModel",
    "Tokenizer",
    "encode_documents",
    "split_words",
]


class Tokenizer(Protocol):
    """Text to ids and back. Explained in: language_modelling."""

    @property
    def vocab_size(self) -> int: ...

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: list[int]) -> str: ...
