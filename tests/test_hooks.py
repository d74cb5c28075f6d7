"""What attention did is recorded without changing the model (the maps of a GPT: test_gpt.py)."""

import math

import pytest
import torch
import torch.nn.functional as F

from helpers.gpt import GPT, GPTConfig
from helpers.hooks import AttentionRecorder, attention_maps

SEEN = torch.ones(5, 5, dtype=torch.bool).tril()
WINDOW = SEEN.triu(-1)


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"is_causal": True}, SEEN),
        ({"attn_mask": WINDOW}, WINDOW),
        ({"attn_mask": torch.zeros(5, 5).masked_fill(~WINDOW, -math.inf)}, WINDOW),
        ({"attn_mask": torch.eye(5), "scale": 0.3}, SEEN | True),
    ],
)
def test_weights_times_values_are_the_fused_output_in_the_order_of_the_calls(given, seen):
    torch.manual_seed(0)
    q, (k, v) = torch.randn(2, 1, 4, 5, 8), torch.randn(2, 2, 1, 2, 5, 8)  # heads share keys
    with AttentionRecorder() as recorded:
        calls = zip(q, k, v, strict=True)
        out = [F.scaled_dot_product_attention(*one, enable_gqa=True, **given) for one in calls]
    assert recorded.maps.shape == (2, 4, 5, 5) and ((recorded.maps > 0) == seen).all()
    values = v[:, 0].repeat_interleave(2, 1)
    torch.testing.assert_close(recorded.maps @ values, torch.cat(out))


def test_attention_maps_leaves_the_model_as_it_was():
    model, ids = GPT(GPTConfig(20, 8, 2, 3, 12, dropout=0.5)), torch.tensor([3, 1, 4, 1, 5])
    model.blocks[0].eval()
    maps = attention_maps(model, ids)
    assert model.training and model.blocks[1].training and not model.blocks[0].training
    assert not maps.requires_grad and torch.equal(maps, attention_maps(model, ids[None]))
    assert torch.equal(maps, attention_maps(model, ids.tolist()))
    with pytest.raises(IndexError):
        attention_maps(model, torch.tensor([99]))
    assert model.training and not model.blocks[0].training
