"""Whatever comes in: a clear error or the right answer, never a crash, a hang or a warning.

Hypothesis makes the input: some hundred cases of each kind, the same ones each time.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.attention import attention
from helpers.sampling import next_token_probabilities


@contextmanager
def clear(*errors: type[Exception]) -> Iterator[None]:
    """Let one of these errors end the test case if it says something; a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            yield
        except errors as error:
            assert len(str(error)) > 20, repr(error)


@given(
    logits=st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=9),
    temperature=st.floats(0, allow_infinity=False),
    top_k=st.none() | st.integers(1, 12),
    top_p=st.none() | st.floats(0, 1, exclude_min=True),
)
def test_any_setting_gives_probabilities(logits, temperature, top_k, top_p):
    row = torch.tensor(logits)
    with clear(ValueError):
        p = next_token_probabilities(row, temperature=temperature, top_k=top_k, top_p=top_p)
        assert p.shape == row.shape and (p >= 0).all() and torch.allclose(p.sum(), torch.ones(()))
        whole = next_token_probabilities(row, temperature=temperature)
        assert whole[p.argmax()] == whole.max()  # the best is never cut off
        assert top_k is None or (p > 0).sum() <= top_k


SHAPE = st.lists(st.integers(0, 3), max_size=4)


@given(st.data())
def test_any_shapes_and_masks(data):
    """Ours does what PyTorch's own function does."""
    generator = torch.Generator().manual_seed(0)
    batch, (T, S, hs, dv) = data.draw(SHAPE), (data.draw(st.integers(1, 4)) for _ in range(4))
    q, k, v = ((*batch, T, hs), (*batch, S, hs), (*batch, S, dv))
    shape = data.draw(st.sampled_from([(T, S), (1, S), (T, 1), (*(1 for _ in batch), T, S)]))
    tensors = [torch.randn(s, generator=generator) for s in (q, k, v)]
    mask = None
    if data.draw(st.booleans()):
        mask = torch.rand(shape, generator=generator) < data.draw(st.sampled_from([0.2, 0.8, 1.1]))
    with clear(ValueError):
        scale = data.draw(st.sampled_from([None, 0.5]))
        out, weights = attention(*tensors, mask, scale=scale)
        assert torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=1e-5)
        assert mask is None or (weights.masked_select(~mask.expand_as(weights)) == 0).all()
        fused = torch.nn.functional.scaled_dot_product_attention
        theirs = fused(*tensors, attn_mask=mask, scale=scale)
        assert torch.allclose(out, theirs.expand_as(out), atol=1e-5)
