"""The map of sinusoidal dot products without a browser."""

import pytest
import traitlets
from ipywidgets import Widget

from explorers.position_dots import PositionDots
from helpers.positions import sinusoidal


@pytest.fixture(autouse=True)
def tidy():
    yield
    Widget.close_all()


def test_the_dots_are_those_of_the_table():
    explorer = PositionDots(32, 16, 500.0, p=3, q=8)
    table = sinusoidal(32, 16, 500.0)
    assert explorer.dots()[3, 8].item() == pytest.approx((table[3] @ table[8]).item(), abs=1e-4)


def test_the_still_picture_shows_the_present_view():
    explorer = PositionDots(p=5)
    explorer.p = 40
    picture = explorer.picture()
    assert "row of position 40" in picture.alt and picture.png().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length": 7}, "length should be 8 to 128 positions, but is 7"),
        ({"length": 129}, "but is 129"),
        ({"n_embd": 6}, "n_embd should be 2, 4, 8, … or 512, but is 6"),
        ({"n_embd": 1}, "but is 1"),
        ({"n_embd": 1024}, "but is 1024"),
        ({"base": 0.0}, "base should be"),
        ({"p": 64}, "p is a position from 0 to 63, not 64"),
        ({"q": -1}, "q is a position from 0 to 63, not -1"),
    ],
)
def test_bad_values_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        PositionDots(**arguments)


@pytest.mark.parametrize(
    ("trait", "value", "message"),
    [
        ("length", 7, "length is how many positions, from 8 to 128, not 7"),
        ("length", 1, "not 1"),
        ("length", 129, "not 129"),
        ("log_width", 0, "log_width is the width C as a power of two, from 1 to 9, not 0"),
        ("log_width", 10, "not 10"),
        ("log_base", 7.5, "log_base is the base as a power of ten, from 1 to 7, not 7.5"),
        ("log_base", float("nan"), "not nan"),
        ("p", 64, "p is a position from 0 to 63, not 64"),
        ("q", -1, "q is a position from 0 to 63, not -1"),
    ],
)
def test_a_trait_refuses_what_the_constructor_would(trait, value, message):
    explorer = PositionDots()
    before = repr(explorer)
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(explorer, trait, value)
    assert repr(explorer) == before


def test_fewer_positions_bring_the_chosen_ones_inside():
    explorer = PositionDots(p=20, q=5)
    explorer.length = 8
    assert (explorer.p, explorer.q) == (7, 5)
    assert "8 positions" in repr(explorer) and explorer.picture().png()


@pytest.mark.parametrize(("length", "width"), [(8, 2), (128, 512)])
def test_the_smallest_and_the_largest_can_be_shown(length, width):
    explorer = PositionDots(length, width)
    assert explorer.picture().png() and "PE(" in repr(explorer)
