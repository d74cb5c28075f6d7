"""Tokenizers, which split a text into tokens with ids, and n-gram models.

`CharTokenizer` has a token for each character; `BPETokenizer` has one for each byte, and for
sequences of bytes that were frequent in its training text. `NGramModel` predicts tokens by counts.
"""

from helpers.text.bpe import BPETokenizer as BPETokenizer
from helpers.text.bpe import encode_documents as encode_documents
from helpers.text.bpe import split_words as split_words
from helpers.text.characters import CharTokenizer as CharTokenizer
from helpers.text.ngram import NGramModel as NGramModel

Tokenizer = CharTokenizer | BPETokenizer
