"""WordExplorer on the Python side: answers, messages, suggestions, its still picture."""

import numpy as np
import pytest

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


def test_analogies_with_and_without_the_query_words(real):
    real.set_trait("mode", "analogy")
    real.exclude = False
    assert real.answer["rows"][0] == ["king", pytest.approx(0.886, abs=1e-3), True]
    assert real.answer["rows"][1] == ["queen", pytest.approx(0.861, abs=1e-3), False]
    real.exclude = True
    assert names(real)[0] == "queen" and not {"king", "man", "woman"} & set(names(real))
    real.mode = "neighbours"


def test_an_unknown_word_gets_suggestions(real):
    for typed, meant in (("shakespear", "shakespeare"), ("qeen", "queen")):
        real.word = typed
        (message,) = real.answer["messages"]
        assert f"“{typed}” is not among the 30,000 words" in message["text"]
        assert meant in message["suggestions"] and not real.answer["rows"]
    real.word = " CAT "
    assert names(real)[:2] == ["dog", "rabbit"]


def test_what_gives_no_answer_is_said():
    widget = explorer(mode="analogy", analogy=("kng", "man", ""))
    assert [m["input"] for m in widget.answer["messages"]] == ["a", "c"]
    assert "zero vector" in explorer(word="zero").answer["messages"][0]["text"]
    assert "no other word" in repr(explorer(["king"], [[1, 2]]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vectors": np.zeros((3, 2))}, "there are 7 words, but the shape is"),
        ({"vectors": np.full((7, 2), np.nan)}, "NaN"),
        ({"words": ["a", "a", "b", "c", "d", "e", "f"]}, "'a' is there again"),
        ({"count": 0}, "count should be between"),
        ({"analogy": ("king", "man")}, "three words"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        WordExplorer(**({"words": WORDS, "vectors": VECTORS} | changes))
