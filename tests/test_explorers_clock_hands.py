"""The rotary clocks without a browser: the scores, and what is refused."""

import math

import pytest
import torch
import traitlets

from explorers.clock_hands import ClockHands
from helpers.positions import Rotary

Q, K = [1.0, 0.5, -0.3, 0.8], [0.7, -0.2, 0.4, 0.6]


def test_the_scores_are_those_of_rotary_and_depend_on_the_distance():
    explorer = ClockHands(Q, K, query=3, key=9, longest=12)
    rotary = Rotary(4)
    q, k = rotary(torch.tensor([Q]), 3), rotary(torch.tensor([K]), 9)
    assert explorer.score() == pytest.approx((q @ k.T).item() / 2)
    for distance, score in zip(range(-12, 13), explorer.scores(), strict=True):
        for start in (max(0, -distance), 20):
            assert score == pytest.approx(explorer.score(start + distance, start), abs=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": [1.0, 2.0, 3.0]}, r"q should be one vector of 2, 4, … or 16 .*\(3,\)"),
        ({"k": [1.0, 2.0]}, "need the same number of numbers"),
        ({"k": [math.inf, 0.0, 0.0, 0.0]}, "k contains NaN or infinity"),
        ({"base": 1.0}, "base should be"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        ClockHands(**{"q": Q, "k": K} | change)
    explorer = ClockHands(Q, K)
    with pytest.raises(traitlets.TraitError, match="k has 2, the other 4"):
        explorer.k = [1.0, 2.0]


def test_with_fewer_positions_both_stay_inside():
    explorer = ClockHands(Q, K, query=9, key=4)
    explorer.longest = 1
    assert (explorer.query, explorer.key) == (1, 1) and explorer.picture().png()
