"""TwoVectors on the Python side: its numbers, and what is refused."""

import math

import pytest

from explorers.two_vectors import TwoVectors


@pytest.mark.parametrize(
    ("b", "dot", "angle"), [((4, 2), 10, 0), ((-1, 2), 0, 90), ((-4, -2), -10, 180)]
)
def test_the_numbers_are_those_of_school(b, dot, angle):
    seen = TwoVectors(a=(2, 1), b=b).measures()
    assert seen["dot"] == dot and seen["angle"] == pytest.approx(angle, abs=1e-5)
    assert seen["length_b"] == math.hypot(*b)
    assert seen["projection"] == pytest.approx(dot / math.sqrt(5))


@pytest.mark.parametrize(("a", "b"), [((0, 0), (1, 2)), ((1, 2), (0, 0))])
def test_a_zero_vector_has_no_angle_and_breaks_nothing(a, b):
    widget = TwoVectors(a, b)
    assert "no angle" in repr(widget) and math.isnan(widget.measures()["cosine"])
    assert widget.picture().png()


@pytest.mark.parametrize("wrong", [(1,), "ab", None, (7, 0), (math.nan, 0)])
def test_wrong_positions_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match=r"^b should be two numbers|bx goes from -6 to 6, not to"):
        TwoVectors(b=wrong)
