"""What the studies on articles share: whole articles as ids, and the tokenizer learnt from those of
the training part."""

from functools import cache

import torch
from torch import Tensor

from helpers import data
from helpers.text import BPETokenizer, encode_documents

END = "<|endoftext|>"


@cache
def articles(split: str) -> list[str]:
    """Each article with its title; the test articles are opened by the chapter judging alone."""
    assert split in ("train", "validation")
    return [f"{title}\n\n{text}" for title, text in data.wikipedia(split)]


@cache
def tokenizer(vocab_size: int) -> BPETokenizer:
    return BPETokenizer.train(articles("train"), vocab_size=vocab_size, special=[END])


def stream(documents: list[str], vocab_size: int) -> Tensor:
    """(N,) ids, the end token before each document."""
    return torch.tensor(encode_documents(tokenizer(vocab_size), documents))
