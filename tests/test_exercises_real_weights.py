"""The exercises on real weights: other right answers, and mistakes that no table names."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from exercises import real_weights as check
from helpers.formats import huggingface
from tests.answers import accepted, refused

llama = check.llama.right
before, middle, last = check.BITS


def by_numpy(raw):
    """The product is rounded to float16."""
    return np.frombuffer(raw[:2], "<f2") * np.frombuffer(raw[2:], np.int8)


def by_helpers(w, ids, n_head, n_kv_head, base):
    """The course's own reader of such weights."""
    V, C = w["model.embed_tokens.weight"].shape
    config = {
        "model_type": "llama", "vocab_size": V, "hidden_size": C, "num_attention_heads": n_head,
        "num_key_value_heads": n_kv_head, "num_hidden_layers": sum("q_proj" in n for n in w),
        "intermediate_size": len(w["model.layers.0.mlp.up_proj.weight"]), "rms_norm_eps": 1e-5,
        "rope_theta": base, "max_position_embeddings": 64, "tie_word_embeddings": True,
    }  # fmt: skip
    with torch.no_grad():
        return huggingface.llama(w, config)(ids[None])[0]


@pytest.mark.parametrize("given", check.llama.inputs)
def test_the_right_llama_is_that_of_the_helpers(given):
    assert torch.allclose(llama(*given), by_helpers(*given), rtol=1e-4, atol=1e-4)


test_other_right_answers_are_right = accepted(
    (check.block8, by_numpy),
    (check.dearer, (1.0, 1.11, 1.33, " Last")),
    (check.dearer, [torch.tensor(before), middle + 0.004, last - 0.004, check.RIGHT]),
    (check.dearer, (1.0064, 1.1114, 1.3246, check.RIGHT)),  # without the token 0 before it
)


def of_64_numbers(c, tokens, size):
    return 2 * c.n_layer * tokens * c.n_kv_head * 64 * size


test_other_mistakes_are_told_by_what_differs = refused(
    (check.block8, lambda raw: [round(n, 3) for n in check.block8.right(raw)], "You round."),
    (check.cache_bytes, of_64_numbers, "n_kv_head and head_size may be None"),
    (check.cache_bytes, lambda c, t, size: 5, "for n_layer 30, n_head 9, n_embd 576, n_kv_"),
    (check.dearer, (before, middle, last), "four things"),
    (check.dearer, [*(b * math.log(2) for b in check.BITS), "last"], "nats per character"),
    (check.dearer, [*(b * 600 / 140 for b in check.BITS), "last"], "bits per token"),
    (check.dearer, (last, middle, last, "last"), "read the model from its file again"),
    (check.dearer, (1.0, 1.1, 1.3, "last"), "two decimals"),
    (check.llama, by_helpers, "`helpers` computes"),
    (check.llama, lambda *given: nn.Identity()(llama(*given)), "an `nn.Module` computes"),
    (check.dearer, (before, 1.2, last, "last"), "one at a time"),
    (check.dearer, (before, last, middle, "last"), "The second and the third are swapped"),
    (check.dearer, (before, middle, 1.4268, "last"), "both blocks are rounded"),
    (check.dearer, (before, 1.0510, 1.0321, "last"), "Round the three of `mlp`"),
    (check.dearer, (before, 1.0583, 1.3191, "last"), "Round the four of attention"),
    (check.dearer, (before, before, before, "last"), "Rounding changes nothing"),
    (check.dearer, (before, middle, last, "middle"), "More bits are worse"),
    (check.llama, lambda *given: 2 * llama(*given), "ids of shape (7,) and 1 layer sh"),
)
