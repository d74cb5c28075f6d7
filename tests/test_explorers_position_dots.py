"""The map of sinusoidal dot products without a browser."""

import pytest
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


def test_its_name_is_stable():
    text = repr(PositionDots(p=20, q=20))
    assert text == "PositionDots(64 positions, width 32, base 10000: PE(20) · PE(20) = 16.00)"


def test_the_still_picture_shows_the_present_view():
    explorer = PositionDots(p=5)
    explorer.p = 40
    picture = explorer.picture()
    assert "row of position 40" in picture.alt and picture.png().startswith(b"\x89PNG")
    data, _ = explorer._repr_mimebundle_()
    assert data["image/png"] and data["text/plain"] == repr(explorer)


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
