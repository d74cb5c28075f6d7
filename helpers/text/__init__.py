"""Tokenizers, which split a text into tokens with ids, and n-gram models.

`CharTokenizer` has a token for each character; `BPETokenizer` has one for each byte, and for
sequences of bytes that were frequent in its training text. `NGramModel` predicts tokens by counts.
"""

from helpers.text.bpe import BPETokenizer, encode_documents, split_words
from helpers.text.characters import CharTokenizer
from helpers.text.counting import NGramModel

__all__ = ["BPETokenizer", "CharTokenizer", "NGramModel", "encode_documents", "split_words"]
