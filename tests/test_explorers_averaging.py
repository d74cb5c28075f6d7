"""The averaging explorer without a browser: its weights, and what is refused."""

import numpy as np
import pytest
import torch

from explorers.averaging import AveragingExplorer
from helpers.attention import causal_mask

TOKENS = list("abcde")
VALUES = [1.0, 0.0, 0.0, 0.0, 1.0]
LEARNED = torch.zeros(5, 5).masked_fill(~causal_mask(5), -torch.inf).softmax(-1)


@pytest.mark.parametrize(
    ("arguments", "last_row"),
    [
        ({}, [0.2] * 5),
        ({"weighting": "decay", "decay": 0.5}, [1 / 31, 2 / 31, 4 / 31, 8 / 31, 16 / 31]),
        ({"weighting": "last", "last": 2}, [0, 0, 0, 0.5, 0.5]),
        ({"weighting": "learned", "learned": LEARNED}, [0.2] * 5),
    ],
)
def test_every_weighting_is_causal_and_sums_to_1(arguments, last_row):
    weights = AveragingExplorer(TOKENS, VALUES, **arguments).weights()
    assert np.allclose(weights.sum(1), 1) and np.array_equal(weights, np.tril(weights))
    assert np.allclose(weights[-1], last_row)


def test_a_changed_token_moves_no_earlier_output():
    shown = AveragingExplorer(TOKENS, VALUES, weighting="decay")
    before = shown.weights() @ shown.inputs()
    shown.changed = 2
    after = shown.weights() @ shown.inputs()
    assert np.array_equal(before[:2], after[:2]) and (after[2:] > before[2:]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": [], "values": []}, "1 to 24 tokens, not 0"),
        ({"values": [1.0, 2.0]}, r"values should have shape \(5,\)"),
        ({"values": ["x"] * 5}, "values should be numbers"),
        ({"learned": torch.full((5, 5), torch.nan)}, "learned holds NaN"),
        ({"weighting": "learned"}, "only together with the matrix"),
        ({"last": 6}, "last is how many tokens, from 1 to 5, not 6"),
    ],
)
def test_wrong_arguments_are_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        AveragingExplorer(**{"tokens": TOKENS, "values": VALUES} | arguments)
