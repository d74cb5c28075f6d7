"""What the studies on real weights share: the model, its tokenizer, and texts to read."""

from functools import cache

from helpers import data
from helpers.formats.gguf import gguf
from helpers.gpt import GPT
from helpers.text import BPETokenizer


@cache
def smollm2() -> tuple[GPT, BPETokenizer]:
    """The model in float32, and its tokenizer."""
    read = gguf(data.smollm2())
    assert isinstance(read.tokenizer, BPETokenizer)
    return read.model, read.tokenizer


@cache
def openings(characters: int) -> list[str]:
    """How the ten validation articles begin."""
    return [text[:characters] for _, text in data.wikipedia("validation")]
