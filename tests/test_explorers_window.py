"""The window explorer without a browser: what it accepts, shows still, and says of itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorers.window import LARGEST_BLOCK, LONGEST_TEXT, WindowExplorer
from helpers.text import CharTokenizer

TEXT = "First Citizen:\nBefore we proceed any further, hear me speak."


def test_the_window_holds_block_size_examples():
    explorer = WindowExplorer(TEXT, start=6, block_size=4)
    assert explorer.examples() == [("C", "i"), ("Ci", "t"), ("Cit", "i"), ("Citi", "z")]
    assert repr(explorer) == ("WindowExplorer(start 6, block_size 4: 'Citiz' holds 4 examples)")


def test_ids_come_from_the_tokenizer():
    tokenizer = CharTokenizer("".join(sorted(set(TEXT), reverse=True)))
    assert WindowExplorer(TEXT, tokenizer).ids == tokenizer.encode(TEXT)
    assert WindowExplorer(TEXT).ids == CharTokenizer.from_text(TEXT).encode(TEXT)
    with pytest.raises(ValueError, match="not among"):
        WindowExplorer(TEXT, CharTokenizer("abc"))


@given(st.integers(-50, 200), st.integers(-5, 50), st.integers(-5, 50))
def test_whatever_the_sliders_say_the_window_stays_inside(start, block_size, selected):
    explorer = WindowExplorer(TEXT)
    explorer.start, explorer.block_size, explorer.selected = start, block_size, selected
    pairs = explorer.examples()
    assert 1 <= len(pairs) <= LARGEST_BLOCK
    assert pairs[-1][0] + pairs[-1][1] in TEXT
    assert [len(context) for context, _ in pairs] == list(range(1, len(pairs) + 1))
    explorer.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": ""}, "2 to 20000 characters, but has 0"),
        ({"text": "a" * (LONGEST_TEXT + 1)}, "pass a piece of it"),
        ({"text": "abc", "block_size": 3}, "block_size should be 1 to 2 here, but is 3"),
        ({"text": TEXT, "block_size": 17}, "1 to 16 here, but is 17"),
        ({"text": TEXT, "start": len(TEXT) - 8}, "characters of the"),
        ({"text": TEXT, "selected": 8}, "selected should be 0 to 7, but is 8"),
    ],
)
def test_bad_values_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        WindowExplorer(**{"block_size": min(8, max(1, len(arguments["text"]) - 1)), **arguments})


@pytest.mark.filterwarnings("error")
def test_odd_characters_can_be_sent_and_drawn():
    explorer = WindowExplorer("\ud800$x$\0\u202e<b>\r\x0b日")
    assert explorer.text[0] == "\ufffd" and len(explorer.text) == len(explorer.ids)
    assert explorer.picture().png()
