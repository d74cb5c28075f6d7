"""TokenExplorer on the Python side: what it sends, what it refuses, its still picture."""

import struct

import pytest

from explorers.token import LONGEST, TokenExplorer
from helpers.text import BPETokenizer

TEXT = "low low low lower lowest newest widest\n  newer don't"
TOKENIZER = BPETokenizer.train(TEXT, 275, ["<|endoftext|>"])


def explorer(tokenizer=TOKENIZER, text=TEXT, **kwargs):
    return TokenExplorer(tokenizer, text, **kwargs)


def test_the_merges_go_over_as_pairs_of_ids():
    widget = explorer()
    pairs = struct.unpack(f"<{len(widget.merges) // 4}i", widget.merges)
    pieces = [bytes([b]) for b in widget.alphabet]
    for left, right in zip(pairs[::2], pairs[1::2], strict=True):
        pieces.append(pieces[left] + pieces[right])
    assert pieces == [TOKENIZER.piece(i) for i in range(TOKENIZER.vocab_size - 1)]


def test_at_each_number_of_merges_the_ids_are_those_of_such_a_tokenizer():
    widget = explorer()
    for used in range(len(TOKENIZER.merges) + 1):
        widget.used = used
        assert widget.ids() == BPETokenizer(TOKENIZER.merges[:used]).encode(TEXT)
    assert widget.ids() == TOKENIZER.encode(TEXT)


def test_what_does_not_fit_is_refused():
    with pytest.raises(TypeError, match="should be a BPETokenizer, not a str"):
        explorer("low")


def test_a_long_text_is_cut_up_to_its_limit():
    widget = explorer(text="low " * LONGEST)
    assert sum(len(TOKENIZER.piece(i)) for i in widget.ids()) == LONGEST


def test_half_a_character_becomes_the_same_sign_as_in_the_browser():
    widget = explorer(text="a\ud800")
    assert widget.text == "a\ufffd" and widget.pieces()[1:] == ["‹EF›", "‹BF›", "‹BD›"]
