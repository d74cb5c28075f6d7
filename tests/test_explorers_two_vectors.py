"""TwoVectors on the Python side: its numbers, its still picture, its arguments."""

import math

import pytest
import traitlets

from explorers.two_vectors import TwoVectors


def arrows(*args, **kwargs):
    return TwoVectors(*args, **kwargs)


def test_the_numbers_are_those_of_school():
    seen = arrows(a=(3, 0), b=(2, 2)).measures()
    assert seen["dot"] == 6 and seen["length_a"] == 3
    assert seen["length_b"] == pytest.approx(math.sqrt(8))
    assert seen["cosine"] == pytest.approx(math.sqrt(0.5))
    assert seen["angle"] == pytest.approx(45) and seen["projection"] == 2


@pytest.mark.parametrize(
    ("b", "dot", "angle"), [((4, 2), 10, 0), ((-1, 2), 0, 90), ((-4, -2), -10, 180)]
)
def test_the_sign_tells_acute_right_and_obtuse(b, dot, angle):
    seen = arrows(a=(2, 1), b=b).measures()
    assert seen["dot"] == dot and seen["angle"] == pytest.approx(angle, abs=1e-5)


@pytest.mark.parametrize(("a", "b"), [((0, 0), (1, 2)), ((1, 2), (0, 0)), ((0, 0), (0, 0))])
def test_a_zero_vector_has_no_angle_and_breaks_nothing(a, b):
    widget = arrows(a, b)
    assert "no angle" in repr(widget) and math.isnan(widget.measures()["cosine"])
    assert widget.picture().png()


@pytest.mark.parametrize("wrong", [(1,), "ab", None, (7, 0), (math.nan, 0)])
def test_wrong_positions_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match=r"^b should be two numbers|bx goes from -6 to 6, not to"):
        TwoVectors(b=wrong)


def test_a_tip_is_kept_in_tenths_and_on_the_plane():
    widget = arrows(a=(1.04, 2.96), b=(-6, 6))
    assert (widget.ax, widget.ay, widget.bx, widget.by) == (1.0, 3.0, -6.0, 6.0)
    with pytest.raises(traitlets.TraitError, match=r"ax goes from -6 to 6, not to 6\.01"):
        widget.ax = 6.01
    widget.bx = 2.4449
    assert (widget.ax, widget.bx) == (1.0, 2.4)
