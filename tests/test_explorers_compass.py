"""CompassExplorer on the Python side: its numbers, and what it refuses."""

import numpy as np
import pytest

from explorers import CompassExplorer

WORDS = ["left", "right", "down", "up", "$x$", "zero"]
VECTORS = [[-3, 0, 4], [3, 0, 4], [0, -1, 0], [0, 2, 0], [4, 3, 0], [0, 0, 0]]


def compass(**changes):
    given = {"words": WORDS, "vectors": VECTORS, "axes": WORDS[:4], "word": "$x$"}
    return CompassExplorer(**(given | changes))


@pytest.fixture(scope="module")
def real():
    return CompassExplorer.example()


def test_numbers_are_projections_of_unit_vectors():
    made = compass()
    # The directions are (1, 0, 0) and (0, 1, 0), whatever the lengths of the vectors.
    wanted = [[-0.6, 0], [0.6, 0], [0, -1], [0, 1], [0.8, 0.6], [0, 0]]
    assert made.projections() == pytest.approx(np.array(wanted), abs=5e-3)
    assert [word for word, _ in made.neighbours()][:2] == ["up", "right"]
    assert repr(made).endswith("“$x$” is at 0.80, 0.60)")


def test_what_the_chapter_and_the_buttons_say(real):
    real.axes, real.word = ["he", "she", "poor", "rich"], "nurse"
    x = dict(zip(real._words, real.projections()[:, 0], strict=True))
    assert x["nurse"] == pytest.approx(0.345, abs=0.005) and 0.05 < x["doctor"] < 0.1
    assert real.neighbours()[0] == ("doctor", pytest.approx(0.80, abs=0.005))
    real.axes = ["poor", "rich", "cold", "hot"]
    hot = dict(zip(real._words, real.projections()[:, 1], strict=True))
    assert hot["desert"] < -0.05 and hot["ice"] > 0.05  # a false friend
    ways = {"cat": "rabbit", "rabbit": "goat", "goat": "cheese"}
    for real.word, wanted in ways.items():
        assert wanted in [word for word, _ in real.neighbours()]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vectors": np.zeros((3, 2))}, "there are 6 words, and the shape is"),
        ({"vectors": np.full((6, 2), np.nan)}, "finite"),
        ({"words": [*WORDS[:5], "left"]}, "only 5 of 6 differ"),
        ({"axes": ["left", "right", "down", "<b>"]}, "“<b>” is not among the 6 words"),
        ({"axes": ["left", "left", "down", "up"]}, "two different words"),
        ({"word": "kng"}, "“kng” is not among"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        compass(**changes)
