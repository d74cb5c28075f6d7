"""From text to numbers and back: a tokenizer cuts text into tokens and gives each a number, its id.

`CharTokenizer` makes every character a token, `BPETokenizer` every byte, and the pieces of several
bytes that were frequent where it was trained. `NGramModel` predicts tokens by counting alone.
"""

from helpers.text.bpe import BPETokenizer, encode_documents, split_words
from helpers.text.characters import CharTokenizer
from helpers.text.counting import NGramModel

__all__ = ["BPETokenizer", "CharTokenizer", "NGramModel", "encode_documents", "split_words"]
