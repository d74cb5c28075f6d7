"""The rotary clocks without a browser: what they accept, the score, the still picture."""

import math

import pytest
import torch
import traitlets

from explorers.clock_hands import ClockHands
from helpers.positions import Rotary

Q, K = [1.0, 0.5, -0.3, 0.8], [0.7, -0.2, 0.4, 0.6]


def test_the_score_is_that_of_rotary():
    explorer = ClockHands(Q, K, query=11, key=3)
    rotary = Rotary(4)
    q, k = rotary(torch.tensor([Q]), 11), rotary(torch.tensor([K]), 3)
    assert explorer.score() == pytest.approx((q @ k.T).item() / 2)


def test_moving_both_leaves_the_score_alone_and_moving_one_does_not():
    explorer = ClockHands(Q, K, query=9, key=4)
    assert explorer.score(30, 25) == pytest.approx(explorer.score(), abs=1e-4)
    assert abs(explorer.score(10, 4) - explorer.score()) > 0.05


def test_the_still_picture_has_the_curve_of_scores_and_the_dot_on_it():
    explorer = ClockHands(Q, K, query=3, key=9, longest=12)
    assert "distance -6" in explorer.picture().alt
    *_, plot = explorer.picture().axes
    curve, dot = plot.lines
    distances, scores = curve.get_data()
    assert list(distances) == list(range(-12, 13)) and scores.tolist() == explorer.scores().tolist()
    for distance, score in zip(distances, scores, strict=True):
        places = max(distance, 0), max(-distance, 0)
        assert score == pytest.approx(explorer.score(*places), abs=1e-5)
    (x,), (y,) = dot.get_data()
    assert (x, y) == (-6, pytest.approx(explorer.score(), abs=1e-5))


@pytest.mark.parametrize(
    ("trait", "value", "message"),
    [
        ("q", [1.0, 2.0, 3.0], r"q should be one vector of 2, 4, … or 16 .*\(3,\)"),
        ("q", [], "q should be one vector"),
        ("k", [1.0, 2.0], "k has 2, the other 4"),
        ("k", [math.inf, 0.0, 0.0, 0.0], "k contains NaN or infinity"),
        ("query", 61, "query is a position from 0 to 60, not 61"),
        ("longest", 0, "longest is the last position, from 1 to inf, not 0"),
        ("log_base", math.nan, "log_base is the base as a power of ten, from 1 to 7, not nan"),
    ],
)
def test_values_that_do_not_fit_are_refused(trait, value, message):
    for start, says in (({"q": [1.0, 2.0]}, "need the same"), ({"base": 1.0}, "base should be")):
        with pytest.raises(ValueError, match=says):
            ClockHands(**{"q": Q, "k": K, **start})
    explorer = ClockHands(Q, K)
    before = repr(explorer)
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(explorer, trait, value)
    assert repr(explorer) == before


def test_with_fewer_positions_both_stay_inside():
    explorer = ClockHands(Q, K, query=9, key=4)
    explorer.longest = 1
    assert (explorer.query, explorer.key) == (1, 1)
    assert explorer.picture().png()
