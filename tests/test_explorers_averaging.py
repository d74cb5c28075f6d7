"""The averaging explorer without a browser: what it accepts, computes, shows still, and says."""

import numpy as np
import pytest
import torch
import traitlets

from explorers.averaging import LONGEST, AveragingExplorer
from helpers.attention import causal_mask

TOKENS = list("abcde")
VALUES = [1.0, 0.0, 0.0, 0.0, 1.0]
LEARNED = torch.zeros(5, 5).masked_fill(~causal_mask(5), -torch.inf).softmax(-1)


def explorer(**arguments):
    return AveragingExplorer(TOKENS, VALUES, **arguments)


@pytest.mark.parametrize(
    ("arguments", "last_row"),
    [
        ({}, [0.2] * 5),
        ({"weighting": "decay", "decay": 0.5}, [1 / 31, 2 / 31, 4 / 31, 8 / 31, 16 / 31]),
        ({"weighting": "decay", "decay": 1}, [0.2] * 5),
        ({"weighting": "last", "last": 2}, [0, 0, 0, 0.5, 0.5]),
        ({"weighting": "last", "last": 5}, [0.2] * 5),
        ({"weighting": "learned", "learned": LEARNED}, [0.2] * 5),
    ],
)
def test_every_weighting_is_causal_and_sums_to_1(arguments, last_row):
    weights = explorer(**arguments).weights()
    assert weights.shape == (5, 5)
    assert np.allclose(weights.sum(1), 1) and np.array_equal(weights, np.tril(weights))
    assert np.allclose(weights[-1], last_row)


def test_a_changed_token_moves_no_earlier_output():
    shown = explorer(weighting="decay")
    before = shown.weights() @ shown.inputs()
    shown.changed = 2
    after = shown.weights() @ shown.inputs()
    assert np.array_equal(before[:2], after[:2]) and (after[2:] > before[2:]).all()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "mean of the past, 5 tokens, row 4: output 0.40"),
        ({"row": 1}, "mean of the past, 5 tokens, row 1: output 0.50"),
        ({"weighting": "decay", "row": -5}, "decay 0.50, 5 tokens, row 0: output 1.00"),
        ({"weighting": "last"}, "last 3, 5 tokens, row 4: output 0.33"),
        ({"weighting": "learned", "learned": LEARNED}, "learned weights, 5 tokens, row 4"),
    ],
)
def test_it_says_what_it_shows_and_shows_it_still(arguments, text):
    shown = explorer(**arguments)
    assert repr(shown) == f"AveragingExplorer({text})"
    picture = shown.picture()
    assert text in picture.alt and picture.png().startswith(b"\x89PNG")
    data, _ = shown._repr_mimebundle_()
    assert data["text/plain"] == repr(shown) and data["image/png"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": [], "values": []}, f"1 to {LONGEST} tokens, not 0"),
        ({"values": [1.0, 2.0]}, r"values should have shape \(5,\)"),
        ({"values": ["x"] * 5}, "values should be numbers"),
        ({"values": [float("nan")] * 5}, "values holds NaN"),
        ({"learned": torch.zeros(4, 4)}, r"learned should have shape \(5, 5\)"),
        ({"weighting": "learned"}, "only together with the matrix"),
        ({"weighting": "median"}, "weighting should be one of mean, decay, last, learned"),
        ({"decay": 0}, "decay should be above 0 and at most 1, but is 0"),
        ({"last": 6}, "last should be between 1 and T = 5, but is 6"),
        ({"row": 5}, "row should be between -5 and 4, but is 5"),
    ],
)
def test_wrong_arguments_are_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        AveragingExplorer(**{"tokens": TOKENS, "values": VALUES} | arguments)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("changed", 5, r"changed should be between -1 \(none\) and 4, but is 5"),
        ("decay", float("nan"), "decay should be above 0 and at most 1, but is nan"),
        ("weighting", "learned", "only together with the matrix"),
    ],
)
def test_a_wrong_change_is_explained_and_changes_nothing(name, wrong, message):
    shown = explorer()
    before = getattr(shown, name)
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(shown, name, wrong)
    assert getattr(shown, name) == before and shown.picture().png()


@pytest.mark.filterwarnings("error")
def test_odd_tokens_can_be_sent_and_drawn():
    odd = ["\ud800", "$x$", "<b>" * 5_000, "\0\x07", "a_b^c\\"]
    shown = AveragingExplorer(odd, VALUES, values_name="$" * 99)
    assert shown.tokens[0] == "\ufffd" and shown.picture().png()
