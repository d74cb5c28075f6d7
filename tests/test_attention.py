"""helpers.attention: who may listen to whom, and how the values are mixed."""

import pytest
import torch

from helpers.attention import causal_mask


@pytest.mark.parametrize("T", [1, 5])
def test_a_token_may_use_itself_and_the_past(T):
    mask = causal_mask(T)
    assert mask.shape == (T, T) and mask.dtype == torch.bool
    assert all(mask[i, j] == (j <= i) for i in range(T) for j in range(T))


@pytest.mark.parametrize("T", [0, 2.0, torch.ones(3)])
def test_a_wrong_number_of_tokens_is_explained(T):
    with pytest.raises(ValueError, match="whole number of at least 1"):
        causal_mask(T)
