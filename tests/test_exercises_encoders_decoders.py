"""The exercises on encoders and decoders: other right answers, and mistakes that no table names."""

import pytest
import torch
import torch.nn.functional as F

from exercises import encoders_decoders as check
from helpers.attention import MultiHeadAttention

padding_mask, cross_heads = check.padding_mask.right, check.cross_heads.right
additive_attention = check.additive_attention.right
best = check.shares(steps=1800)


def by_loop(lengths, S):
    return torch.tensor([[[[s < n for s in range(S)]]] for n in lengths.tolist()])


def letter_by_letter(h, states, W, U, v):
    rows = []
    for one in h:
        scores = torch.stack([v @ (W @ one + U @ s).tanh() for s in states])
        rows.append(sum(w * s for w, s in zip(scores.softmax(0), states, strict=True)))
    return torch.stack(rows)


def by_kernel(x, source, mask, Wq, Wk, Wv, Wo, n_head):
    q, k, v = (check.split(F.linear(t, W), n_head)
               for t, W in ((x, Wq), (source, Wk), (source, Wv)))  # fmt: skip
    out = F.scaled_dot_product_attention(q, k, v, mask[:, None, None])
    return F.linear(out.transpose(1, 2).flatten(2), Wo)


@pytest.mark.parametrize("given", check.cross_heads.inputs)
def test_the_right_heads_are_those_of_the_helpers(given):
    x, source, mask, *matrices, n_head = given
    layer = MultiHeadAttention(x.shape[-1], n_head, causal=False)
    for part, W in zip((layer.query, layer.key, layer.value, layer.output), matrices, strict=True):
        part.weight.data = W
    found = layer(x, source, mask=mask[:, None, None])
    assert torch.allclose(cross_heads(*given), found, atol=1e-5)


@pytest.mark.parametrize(
    ("exercise", "right"),
    [
        (check.padding_mask, by_loop),
        (check.additive_attention, letter_by_letter),
        (check.cross_heads, by_kernel),
        (check.reach, [*best, "no"]),
        (check.reach, (*map(torch.tensor, best), "no")),
    ],
)
def test_other_right_answers_are_right(exercise, right):
    assert "✔ right" in repr(exercise(right))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([*best, "yes"], "How many of the words of 16 letters were right"),
        ([*best, "maybe"], 'should be "yes" or "no"'),
        ([*check.shares("letters 12", steps=1800), "no"], "Take 16"),
        ([*check.shares("letters 12"), "yes"], "after 600 steps"),
        ([0.3, 0.9, 0.8, "no"], "not the best seeds' shares"),
        (best, "four things"),
        (["a", "b", "c", "no"], "should be numbers"),
    ],
)
def test_a_wrong_reach_is_explained(answer, says):
    assert says in repr(check.reach(answer))


def test_a_reach_with_dots_is_not_attempted():
    assert "not attempted" in repr(check.reach([..., 0.0, 0.0, "no"]))
