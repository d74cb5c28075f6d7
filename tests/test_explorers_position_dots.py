"""The map of sinusoidal dot products without a browser."""

import pytest

from explorers.position_dots import PositionDots
from helpers.positions import sinusoidal


def test_the_dots_are_those_of_the_table():
    explorer = PositionDots(32, 16, 500.0, p=20, r=8)
    table = sinusoidal(32, 16, 500.0)
    assert explorer.dots()[20, 8].item() == pytest.approx((table[20] @ table[8]).item(), abs=1e-4)
    explorer.length = 9  # what was chosen beyond the last becomes the last
    assert (explorer.p, explorer.r) == (8, 8) and explorer.picture().png()


def test_a_width_that_is_no_power_of_two_is_refused():
    with pytest.raises(ValueError, match="n_embd should be 2, 4, 8, … or 512, but is 6"):
        PositionDots(n_embd=6)
