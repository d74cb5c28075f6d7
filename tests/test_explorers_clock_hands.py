"""The rotary clocks without a browser: what they accept, the score, the still picture."""

import math

import pytest
import torch
import traitlets
from ipywidgets import Widget

from explorers.base import STILL
from explorers.clock_hands import ClockHands
from helpers.positions import Rotary

Q, K = [1.0, 0.5, -0.3, 0.8], [0.7, -0.2, 0.4, 0.6]


@pytest.fixture(autouse=True)
def tidy():
    yield
    Widget.close_all()


def test_the_score_is_that_of_rotary():
    explorer = ClockHands(Q, K, query=11, key=3)
    rotary = Rotary(4)
    q, k = rotary(torch.tensor([Q]), 11), rotary(torch.tensor([K]), 3)
    assert explorer.score() == pytest.approx((q @ k.T).item() / 2)


def test_moving_both_leaves_the_score_alone_and_moving_one_does_not():
    explorer = ClockHands(Q, K, query=9, key=4)
    assert explorer.score(30, 25) == pytest.approx(explorer.score(), abs=1e-4)
    assert abs(explorer.score(10, 4) - explorer.score()) > 0.05


def test_tensors_and_lists_are_welcome():
    assert ClockHands(torch.tensor(Q), K).score() == pytest.approx(ClockHands(Q, K).score())


def test_the_base_is_kept():
    assert ClockHands(Q, K, base=500.0).base == pytest.approx(500)


@pytest.mark.parametrize("size", [2, 8, 16])
def test_the_still_picture_shows_the_present_view(size):
    explorer = ClockHands([1.0] * size, [0.5] * size)
    explorer.query = 12
    picture = explorer.picture()
    assert picture.alt.startswith(f"{size // 2} clocks") and "position 12" in picture.alt
    assert picture.png().startswith(b"\x89PNG")


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


@pytest.mark.parametrize("size", [2, 8, 16])
def test_nothing_in_the_still_picture_is_cut_or_overlaps(size):
    explorer = ClockHands([1.0] * size, [0.5] * size)
    picture = explorer.picture()
    note = picture.supxlabel(STILL, x=0.01, ha="left", fontsize=8)
    picture.png()  # which puts everything in its place
    *dials, plot = picture.axes
    assert len(dials) == size // 2
    boxes = [ax.get_tightbbox() for ax in picture.axes]
    edge = picture.bbox
    assert all(box.y0 >= 0 and box.y1 <= edge.y1 and box.x1 <= edge.x1 + 1 for box in boxes)
    assert note.get_window_extent().y1 <= boxes[-1].y0
    assert all(box.y0 >= boxes[-1].y1 for box in boxes[:-1])
    left, right = plot.get_position().intervalx
    assert left <= dials[0].get_position().x0 + 0.2 and right >= dials[-1].get_position().x1


def test_zero_vectors_can_be_drawn():
    assert ClockHands([0.0, 0.0], [0.0, 0.0]).picture().png()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"q": [1.0, 2.0, 3.0]}, r"q should be one vector of 2, 4, … or 16.*\(3,\)"),
        ({"k": []}, "k should be one vector"),
        ({"q": torch.zeros(2, 2)}, r"shape \(2, 2\)"),
        ({"q": [0.0] * 18}, r"\(18,\)"),
        ({"q": [1.0, 2.0]}, "q has 2 numbers, k has 4"),
        ({"k": [math.nan, 0, 0, 0]}, "k contains NaN"),
        ({"query": 61}, "query is a position from 0 to 60, not 61"),
        ({"key": -1}, "key is a position from 0 to 60, not -1"),
        ({"longest": 0}, "longest"),
        ({"base": 1.0}, "base should be"),
    ],
)
def test_bad_values_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ClockHands(**{"q": Q, "k": K, **arguments})


@pytest.mark.parametrize(
    ("trait", "value", "message"),
    [
        ("q", [1.0, 2.0, 3.0], r"q should be one vector of 2, 4, … or 16 .*\(3,\)"),
        ("q", [], "q should be one vector"),
        ("k", [1.0, 2.0], "k has 2, the other 4"),
        ("k", [math.inf, 0.0, 0.0, 0.0], "k contains NaN or infinity"),
        ("query", 61, "query is a position from 0 to 60, not 61"),
        ("key", -1, "key is a position from 0 to 60, not -1"),
        ("longest", 0, "longest is the last position, from 1 to inf, not 0"),
        ("log_base", 0.0, "log_base is the base as a power of ten, from 1 to 7, not 0.0"),
        ("log_base", math.nan, "not nan"),
    ],
)
def test_a_trait_refuses_what_the_constructor_would(trait, value, message):
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


def test_both_vectors_can_change_their_size_together():
    explorer = ClockHands(Q, K)
    with explorer.hold_trait_notifications():
        explorer.q, explorer.k = [1.0, 0.0], [0.0, 1.0]
    assert repr(explorer).startswith("ClockHands(1 clocks") and explorer.picture().png()
