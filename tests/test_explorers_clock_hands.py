"""The rotary clocks without a browser: the scores, and what is refused."""

import pytest
import torch

from explorers.clock_hands import ClockHands
from helpers.positions import Rotary

Q, K = [1.0, 0.5, -0.3, 0.8], [0.7, -0.2, 0.4, 0.6]


def test_the_scores_are_those_of_rotary_and_depend_on_the_distance():
    explorer = ClockHands(q=Q, k=K, query=3, key=9, longest=12)
    rotary = Rotary(4)
    q, k = rotary(torch.tensor([Q]), 3), rotary(torch.tensor([K]), 9)
    assert explorer.score() == pytest.approx((q @ k.T).item() / 2)
    for distance, score in zip(range(-12, 13), explorer.scores(), strict=True):
        for start in (max(0, -distance), 20):
            assert score == pytest.approx(explorer.score(start + distance, start), abs=1e-4)
