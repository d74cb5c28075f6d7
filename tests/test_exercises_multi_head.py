"""The exercises on many heads beyond what their declarations say: right and wrong answers."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises import multi_head as check
from helpers.attention import attention, causal_mask


def split(x, n_head):
    B, T, C = x.shape
    if C % n_head:
        raise ValueError(f"{C} features cannot be split evenly over {n_head} heads")
    return x.view(B, T, n_head, C // n_head).transpose(1, 2)


def merge(out):
    return out.transpose(1, 2).flatten(2)


def multi_head(x, W_q, W_k, W_v, W_o, n_head):
    q, k, v = (split(x @ W, n_head) for W in (W_q, W_k, W_v))
    return merge(attention(q, k, v, causal_mask(x.shape[1]))[0]) @ W_o


def cross_attention(x, source, W_q, W_k, W_v, W_o, n_head):
    q, k, v = (split(y @ W, n_head) for y, W in ((x, W_q), (source, W_k), (source, W_v)))
    return merge(attention(q, k, v)[0]) @ W_o


def cost(T, C, n_head):
    return 4 * C**2, 4 * T * C**2 + 2 * T**2 * C


def head_distances(maps):
    return (maps[:, :, None] - maps[:, None]).abs().sum(-1).mean((0, 3)) / 2


def refusing(cut):
    """The same split, but with the error that the exercise asks for."""
    return lambda x, H: split(x, H) if x.shape[-1] % H else cut(x, H)


def one_by_one(x, W_q, W_k, W_v, W_o, n_head):
    outs = []
    for own in torch.arange(x.shape[-1]).chunk(n_head):
        q, k, v = x @ W_q[:, own], x @ W_k[:, own], x @ W_v[:, own]
        outs.append(attention(q, k, v, causal_mask(x.shape[1]))[0] @ W_o[own])
    return sum(outs)


def fused(x, W_q, W_k, W_v, W_o, n_head):
    q, k, v = (x @ torch.cat([W_q, W_k, W_v], 1)).chunk(3, -1)
    heads = (split(y, n_head) for y in (q, k, v))
    return merge(F.scaled_dot_product_attention(*heads, is_causal=True)) @ W_o


def pair_by_pair(maps):
    heads = range(maps.shape[1])
    return [[float((maps[:, i] - maps[:, j]).abs().sum(-1).mean()) / 2 for j in heads]
            for i in heads]  # fmt: skip


def overlap(maps):
    return 1 - torch.minimum(maps[:, :, None], maps[:, None]).sum(-1).mean((0, 3)).numpy()


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (check.split_heads, split),
        (check.split_heads, refusing(lambda x, H: torch.stack(x.chunk(H, -1), 1))),
        (check.split_heads, refusing(lambda x, H: x.reshape(*x.shape[:2], H, -1).movedim(2, 1))),
        (check.merge_heads, lambda out: torch.cat(out.unbind(1), -1)),
        (check.merge_heads, lambda out: out.movedim(1, 2).reshape(len(out), out.shape[2], -1)),
        (check.multi_head, multi_head),
        (check.multi_head, one_by_one),
        (check.multi_head, fused),
        (check.cross_attention, cross_attention),
        (check.cost, lambda *a: torch.tensor(cost(*a))),
        (check.cost, lambda *a: list(np.array(cost(*a)))),
        (check.cost, lambda *a: [float(n) for n in cost(*a)]),
        (check.head_distances, pair_by_pair),
        (check.head_distances, overlap),
    ],
)
def test_other_ways_are_right_too(exercise, answer):
    report = exercise(answer)
    assert report.outcome == "right", report.message


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (check.split_heads, lambda x, H: ... if x.shape[-1] % H else split(x, H)),
        (check.cost, lambda T, C, H: (4 * C**2, ...)),
    ],
)
def test_a_placeholder_that_is_left_is_not_attempted(exercise, answer):
    assert exercise(answer).outcome == "not attempted"


def dropped_features(x, H):
    return x[..., : x.shape[-1] // H * H].unflatten(-1, (H, -1)).transpose(1, 2)


def asserting(x, H):
    assert x.shape[-1] % H == 0
    return split(x, H)


def refused(error):
    """A split that returns this, or raises it, where H does not divide C."""

    def wrong(x, H):
        if x.shape[-1] % H == 0:
            return split(x, H)
        if error is ValueError:
            raise error
        return error

    return wrong


def behind_the_tokens(x, *W_H):
    *W, W_o, H = W_H
    heads = (split(x @ w, H).transpose(1, 2) for w in W)
    return attention(*heads, causal_mask(x.shape[1]))[0].flatten(2) @ W_o


def follows_the_keys(x, source, *rest):
    if x.shape == source.shape:
        return cross_attention(x, source, *rest)
    return cross_attention(source, x, *rest)


CUT = "a wrong gradient comes back"


@pytest.mark.parametrize(
    ("exercise", "answer", "words"),
    [
        (check.split_heads, lambda x, H: x.unflatten(-1, (H, -1)).transpose(1, 2), "RuntimeError"),
        (check.split_heads, asserting, "AssertionError"),
        (check.split_heads, dropped_features, "shape (2, 4, 4, 1) without a word"),
        (check.split_heads, lambda x, H: (split if x.shape[-1] != 9 else dropped_features)(x, H),
         "9 features"),
        (check.split_heads, lambda x, H: split(x, H) if x.shape[-1] >= H else x, "4 features"),
        (check.split_heads, refused(ValueError("no")), "`raise` in place"),
        (check.split_heads, refused(None), "returns None without a word"),
        (check.split_heads, refused(ValueError), "no text"),
        (check.split_heads, refusing(lambda x, H: list(x.chunk(H, -1))), "torch.stack"),
        (check.split_heads, lambda x, H: split(x, H).detach(), "no gradient"),
        (check.merge_heads, lambda out: merge(out.detach()), "no gradient"),
        (check.merge_heads, lambda out: out.transpose(1, 2).view(*out.shape[::2], -1), "view size"),
        (check.multi_head, torch.no_grad()(multi_head), "no gradient"),
        (check.multi_head, lambda x, Q, K, *rest: multi_head(x, Q, K.detach(), *rest), CUT),
        (check.multi_head, lambda *a: multi_head(*a[:4], a[4].data, a[5]), CUT),
        (check.multi_head, lambda *a: (multi_head(*a), 0), "return the first alone"),
        (check.multi_head, behind_the_tokens, "heads of one token listen to each other"),
        (check.multi_head, lambda *a: a[0] * 0.5, "multi_head(x, W_q, W_k, W_v, W_o, 2) for x of "
         "shape (2, 6, 8), W_q, W_k, W_v, W_o of shape (8, 8) should be"),
        (check.cross_attention, lambda x, s, *rest: cross_attention(x, s.detach(), *rest), CUT),
        (check.cross_attention, follows_the_keys, "the output follows the queries"),
        (check.cost, lambda T, C, H: 4 * C**2, "should have shape (2,)"),
        (check.cost, lambda T, C, H: (4 * C**2, 5), "of cost(11, 15, 5) should be 13,530"),
        (check.cost, lambda T, C, H: (4 * C**2 + 1, 5), "of cost(11, 15, 5) should be 900"),
        (check.cost, lambda T, C, H: (3 * C**2, 5), "The output projection is the fourth"),
        (check.cost, lambda T, C, H: (C**2 * (H + 2), 5), "of cost(11, 15, 5) should be 900"),
        (check.head_distances, lambda m: head_distances(m)[0], "should have shape"),
    ],
)  # fmt: skip
def test_other_mistakes_are_told_by_what_differs(exercise, answer, words):
    report = exercise(answer)
    assert report.outcome == "not yet"
    assert words in report.message, report.message
