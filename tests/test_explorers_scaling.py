"""The scaling explorer without a browser: what it accepts, computes, shows still, and says."""

import math

import numpy as np
import pytest
import torch
import traitlets

from explorers.scaling import (
    DIVISORS,
    KEYS,
    LARGEST,
    QUERIES,
    SIZES,
    ScalingExplorer,
)


@pytest.mark.parametrize("d", SIZES)
def test_the_root_keeps_the_spread_at_every_head_size(d):
    explorer = ScalingExplorer(d)
    assert explorer.head_size == d and explorer.scores().shape == (QUERIES, KEYS)
    assert abs(explorer.measures()["std"] - 1) < 0.1
    assert abs(explorer.measures(divisor="1")["std"] / math.sqrt(d) - 1) < 0.1
    assert abs(explorer.measures(divisor="hs")["std"] * math.sqrt(d) - 1) < 0.1


def test_the_embedding_width_is_right_for_the_widest_head_only():
    explorer = ScalingExplorer(LARGEST, divisor="√C")
    assert np.array_equal(explorer.scores(), explorer.scores(divisor="√hs"))
    small = explorer.measures(64)["std"] / explorer.measures(64, "√hs")["std"]
    assert math.isclose(small, math.sqrt(64 / LARGEST))


@pytest.mark.parametrize("divisor", DIVISORS)
def test_the_measures_are_those_of_torch(divisor):
    explorer = ScalingExplorer(32, divisor=divisor)
    scores, found = torch.from_numpy(explorer.scores()), explorer.measures()
    weights = scores.softmax(-1)
    assert np.allclose(found["weights"], weights)
    assert np.allclose(found["entropy"], torch.special.entr(weights).sum(-1))
    jacobian = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None]
    assert np.allclose(found["gradient"], jacobian.norm(dim=(-2, -1)))


def test_the_numbers_stay_the_same_while_the_head_grows():
    explorer = ScalingExplorer()
    before = explorer.numbers
    small = explorer.scores(4, "1")
    explorer.power = 2
    explorer.divisor = "1"
    assert explorer.numbers == before and np.array_equal(explorer.scores(), small)
    assert ScalingExplorer(seed=1).numbers != before == ScalingExplorer(4, row=3).numbers


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "head size 64, divided by √hs: scores with std 0.99, mean entropy 2.37"),
        (
            {"head_size": 1024, "divisor": "1", "row": 31},
            "head size 1024, divided by 1: scores with std 32.42, mean entropy 0.06",
        ),
    ],
)
def test_it_says_what_it_shows_and_shows_it_still(arguments, text):
    explorer = ScalingExplorer(**arguments)
    assert repr(explorer) == f"ScalingExplorer({text})"
    picture = explorer.picture()
    assert text in picture.alt and picture.png().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("row", 32, "'row'.* not be greater than 31, but a value of 32"),
        ("power", 11, "'power'.* not be greater than 10"),
        ("divisor", "foo", r"'divisor'.* any of \['1', '√hs', '√C', 'hs'\], not the str 'foo'"),
    ],
)
def test_values_that_do_not_fit_are_refused(name, wrong, message):
    with pytest.raises(ValueError, match=r"head_size should be one of \(4, 8, .*1024\), not 3"):
        ScalingExplorer(3)
    explorer = ScalingExplorer()
    before = getattr(explorer, name)
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(explorer, name, wrong)
    assert getattr(explorer, name) == before and explorer.picture().png()
