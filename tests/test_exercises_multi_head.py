"""The exercises on many heads beyond what their declarations say: right and wrong answers."""

import torch
import torch.nn.functional as F

from exercises import multi_head as check
from helpers.attention import attention, causal_mask
from tests.answers import accepted, refused


def split(x, n_head):
    B, T, C = x.shape
    if C % n_head:
        raise ValueError(f"{C} features cannot be split evenly over {n_head} heads")
    return x.reshape(B, T, n_head, C // n_head).transpose(1, 2)


def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def fused(x, W_qkv, W_o, n_head, attend=attend):
    out = attend(*(split(y, n_head) for y in (x @ W_qkv).chunk(3, -1)))
    return out.transpose(1, 2).flatten(2) @ W_o


def with_helpers(q, k, v):
    return attention(q, k, v, causal_mask(q.shape[-2]))[0]


def head_by_head(x, W_qkv, W_o, n_head):
    C, T = len(W_o), x.shape[1]
    if C % n_head:
        raise ValueError(f"{C} and {n_head}")
    q, k, v = x @ W_qkv[:, :C], x @ W_qkv[:, C : 2 * C], x @ W_qkv[:, 2 * C :]
    past, outs = torch.ones(T, T).tril().bool(), []
    for own in torch.arange(C).chunk(n_head):
        scores = q[..., own] @ k[..., own].mT / len(own) ** 0.5
        outs.append(scores.masked_fill(~past, -torch.inf).softmax(-1) @ v[..., own] @ W_o[own])
    return sum(outs)


RIGHT = check.VERDICTS


test_other_ways_are_right_too = accepted(
    (check.fused_multi_head, fused),
    (check.fused_multi_head, head_by_head),
    (check.five_ways_to_cut, {name: verdict.upper() for name, verdict in RIGHT.items()}),
    (check.spare_heads, (torch.tensor(0.95), 0.68, 0.19)),
    (check.twins, [torch.tensor(0.999), " b "]),
)


def test_a_placeholder_in_a_branch_is_not_attempted():
    def half(x, W_qkv, W_o, H):
        return ... if x.shape[-1] % H else fused(x, W_qkv, W_o, H)

    assert check.fused_multi_head(half).outcome == "not attempted"


def refusing(error):
    """A layer that returns this, or raises it, where H does not divide C."""

    def wrong(x, W_qkv, W_o, H):
        if x.shape[-1] % H == 0:
            return fused(x, W_qkv, W_o, H)
        if error is ValueError:
            raise error
        return error

    return wrong


test_other_mistakes_are_told_by_what_differs = refused(
    (check.five_ways_to_cut, RIGHT | {"A": "fine"}, "One token is not enough"),
    (check.five_ways_to_cut, RIGHT | {"B": "fine"}, "Replace token 0"),
    (check.five_ways_to_cut, RIGHT | {"B": "leaks"}, "both mistakes"),
    (check.five_ways_to_cut, RIGHT | {"C": "blind"}, "for training to use"),
    (check.five_ways_to_cut, RIGHT | {"E": "fine"}, "the last token"),
    (check.spare_heads, [0.97, 0.96, 0.95], "do more harm"),
    (check.spare_heads, [0.61, 0.61, 0.2], "far more harm"),
    (check.spare_heads, [0.9, 0.6, 0.05], "some right answers are left"),
    (check.spare_heads, [0.05, 0.05, 0.05], "Ablate copies"),
    (check.spare_heads, [0.8, 0.85, 0.2], "cannot do less harm"),
    (check.twins, (0.21, "b"), "*before* the training"),
    (check.twins, (1.0, "a"), "the same blend"),
    (check.twins, (1.0, "c"), "after 50 steps"),
    (check.fused_multi_head, refusing(ValueError("no")), "`raise` in place"),
    (check.fused_multi_head, refusing(None), "returns None without an error"),
    (check.fused_multi_head, refusing(ValueError), "both numbers, 6 and 4"),
    (check.fused_multi_head, torch.no_grad()(fused), "no gradient"),
    (check.fused_multi_head, lambda *a: fused(*a, with_helpers), "`helpers` computes"),
)
