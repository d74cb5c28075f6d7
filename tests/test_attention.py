"""helpers.attention: who may listen to whom, and how the values are mixed."""

import pytest
import torch

from helpers.attention import causal_mask


@pytest.mark.parametrize("T", [1, 2, 5, 64])
def test_a_token_may_use_itself_and_the_past(T):
    mask = causal_mask(T)
    assert mask.shape == (T, T) and mask.dtype == torch.bool
    assert all(mask[i, j] == (j <= i) for i in range(T) for j in range(T))


def test_the_mask_is_made_where_it_is_wanted():
    assert causal_mask(3, device="cpu").device.type == "cpu"
    assert causal_mask(3, device=torch.device("meta")).device.type == "meta"


def test_each_call_gives_a_mask_of_its_own():
    first = causal_mask(3)
    first.fill_(False)
    assert causal_mask(3).sum() == 6


@pytest.mark.parametrize("T", [0, -1, 2.0, True, "4", None, torch.ones(3)])
def test_a_wrong_number_of_tokens_is_explained(T):
    with pytest.raises(ValueError, match="whole number of at least 1"):
        causal_mask(T)
