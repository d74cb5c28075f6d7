"""WordExplorer on the Python side: answers, messages, suggestions, its still picture."""

import numpy as np
import pytest
import traitlets

from explorers.word import WordExplorer
from helpers import data

WORDS = ["king", "queen", "man", "woman", "<b>bold</b>", "$x$", "zero"]
VECTORS = [[5, 1], [5, -1], [1, 3], [1, -3], [-1, 1], [-4, -1], [0, 0]]


def explorer(words=WORDS, vectors=VECTORS, **kwargs):
    return WordExplorer(words, vectors, **({"word": "king"} | kwargs))


@pytest.fixture(scope="module")
def real():
    return WordExplorer(*data.glove())


def names(widget):
    return [row[0] for row in widget.answer["rows"]]


def test_neighbours_leave_out_the_word_and_come_in_order():
    widget = explorer(count=3)
    assert names(widget) == ["queen", "man", "woman"]
    cosines = [row[1] for row in widget.answer["rows"]]
    assert cosines == sorted(cosines, reverse=True)
    assert cosines[0] == pytest.approx(24 / 26, abs=1e-4)
    widget.word = "woman"
    assert names(widget)[0] == "queen"


def test_analogies_with_and_without_the_query_words(real):
    real.set_trait("mode", "analogy")
    real.exclude = False
    assert real.answer["rows"][0] == ["king", pytest.approx(0.886, abs=1e-3), True]
    assert real.answer["rows"][1] == ["queen", pytest.approx(0.861, abs=1e-3), False]
    real.exclude = True
    assert names(real)[0] == "queen" and not {"king", "man", "woman"} & set(names(real))
    real.mode = "neighbours"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("ellephant", "elephant"), ("shakespear", "shakespeare"), ("qeen", "queen")],
)
def test_an_unknown_word_gets_suggestions(real, typed, meant):
    real.word = typed
    (message,) = real.answer["messages"]
    assert f"“{typed}” is not among the 30,000 words" in message["text"]
    assert meant in message["suggestions"] and not real.answer["rows"]
    assert typed in repr(real) and real.picture().png()
    real.word = message["suggestions"][0]
    assert real.answer["rows"]


@pytest.mark.parametrize("typed", ["", "   ", "x" * 5000, "<script>", "$", "\0", "🙂 日本", "½"])
@pytest.mark.filterwarnings("error")  # such as Matplotlib's, of a glyph that its font lacks
def test_any_input_gives_an_answer_or_a_message(real, typed):
    real.word = typed
    assert bool(real.answer["rows"]) != bool(real.answer["messages"])
    assert repr(real) and real.picture().png()


def test_case_and_blanks_do_not_matter(real):
    real.word = " CAT "
    assert names(real)[:2] == ["dog", "rabbit"]


def test_each_unknown_word_of_an_analogy_is_named():
    widget = explorer(mode="analogy", analogy=("kng", "man", ""))
    assert [m["input"] for m in widget.answer["messages"]] == ["a", "c"]


def test_what_points_nowhere_is_said():
    widget = explorer(word="zero")
    assert "zero vector" in widget.answer["messages"][0]["text"]
    widget = explorer(mode="analogy", analogy=("zero", "man", "man"))
    assert "zero vector" in repr(widget) and widget.picture().png()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vectors": np.zeros((3, 2))}, "there are 7 words, but the shape is"),
        ({"vectors": np.zeros(7)}, "vectors should have shape"),
        ({"vectors": np.full((7, 2), np.nan)}, "NaN"),
        ({"words": ["a", "a", "b", "c", "d", "e", "f"]}, "'a' is there again"),
        ({"count": 0}, "count should be between"),
        ({"analogy": ("king", "man")}, "three words"),
        ({"mode": "both"}, "'mode' .* any of \\['neighbours', 'analogy'\\], not the str 'both'"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        WordExplorer(**({"words": WORDS, "vectors": VECTORS} | changes))


def test_one_word_is_enough():
    widget = explorer(["king"], [[1, 2]])
    assert repr(widget) == "WordExplorer(The table has no other word.)" and widget.picture().png()
    widget.mode = "analogy"
    assert "not among the 1 words" in repr(widget)
    widget.b = widget.c = "king"
    assert names(widget) == ["king"]
    widget.exclude = True
    assert "no other word" in repr(widget) and widget.picture().png()


@pytest.mark.filterwarnings("error")
def test_words_of_any_length_and_signs_can_be_sent_and_drawn():
    widget = explorer(["king", "x" * 10_000, "\ud800", "\0"], VECTORS[:4], word="\udfff")
    assert widget.word == "\ufffd" and len(names(widget)) == 3
    assert len(repr(widget)) < 200 and widget.picture().png()
    widget.word = "x" * 10_000
    assert widget.answer["rows"] and len(repr(widget)) < 200


def test_the_answer_is_the_explorer_s_own():
    widget = explorer()
    shown = repr(widget)
    with pytest.raises(traitlets.TraitError, match="set word, or a, b and c"):
        widget.answer = {}
    widget.answer.clear()
    assert repr(widget) == shown and widget.picture().png()
