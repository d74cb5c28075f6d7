"""The map of sinusoidal dot products without a browser."""

import pytest
import traitlets

from explorers.position_dots import PositionDots
from helpers.positions import sinusoidal


def test_the_dots_are_those_of_the_table():
    explorer = PositionDots(32, 16, 500.0, p=3, r=8)
    table = sinusoidal(32, 16, 500.0)
    assert explorer.dots()[3, 8].item() == pytest.approx((table[3] @ table[8]).item(), abs=1e-4)


@pytest.mark.parametrize(
    ("trait", "value", "message"),
    [
        ("length", 1, "length is how many positions, from 8 to 128, not 1"),
        ("log_width", 10, "log_width is the width C as a power of two, from 1 to 9, not 10"),
        ("log_base", float("nan"), "log_base is the base as a power of ten, from 1 to 7, not nan"),
        ("p", 64, "p is a position from 0 to 63, not 64"),
    ],
)
def test_values_that_do_not_fit_are_refused(trait, value, message):
    for start, says in (({"n_embd": 6}, "but is 6"), ({"base": 0.0}, "base should be")):
        with pytest.raises(ValueError, match=says):
            PositionDots(**start)
    explorer = PositionDots()
    before = repr(explorer)
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(explorer, trait, value)
    assert repr(explorer) == before


def test_fewer_positions_bring_the_chosen_ones_inside():
    explorer = PositionDots(p=20, r=5)
    explorer.length = 8
    assert (explorer.p, explorer.r) == (7, 5)
    assert "8 positions" in repr(explorer) and explorer.picture().png()
