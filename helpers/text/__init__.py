"""From text to numbers and back: a tokenizer cuts text into tokens and gives each a number, its id.

`CharTokenizer` makes every character a token, `BPETokenizer` every byte, and the pieces of several
bytes that were frequent where it was trained. `CountedTables` predicts tokens by counting alone.
"""

from helpers.text.bpe import BPETokenizer, encode_documents, split_words
from helpers.text.characters import CharTokenizer
from helpers.text.counting import CountedTables

__all__ = ["BPETokenizer", "CharTokenizer", "CountedTables", "encode_documents", "split_words"]
