"""The exercises of "Queries, keys and values" beyond what their declaration says."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from exercises import queries_keys_values as check
from helpers.attention import Head, attention, causal_mask

INF = math.inf


def added_bias(scores):
    T = scores.shape[-1]
    return (scores + torch.full((T, T), -INF, dtype=scores.dtype).triu(1)).softmax(-1)


class FusedWindow(check.WindowHead):
    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        mask = torch.zeros(x.shape[1], x.shape[1], dtype=torch.bool)
        for i in range(x.shape[1]):
            mask[i, max(0, i - self.window + 1) : i + 1] = True
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class LongBuffer(check.WindowHead):
    def __init__(self, n_embd, head_size, window):
        super().__init__(n_embd, head_size, window)
        self.register_buffer("mask", check.near(1024, window))

    def forward(self, x):
        T = x.shape[1]
        return attention(self.query(x), self.key(x), self.value(x), self.mask[:T, :T])[0]


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (check.ask_for_the_verb, [0, 0, 0, 6]),
        (check.ask_for_the_verb, np.array([0, 0, 0, 5.55])),
        (check.ask_for_the_verb, torch.tensor([-9.0, -1, -9, 3])),
        (check.causal_weights, added_bias),
        (check.causal_weights, lambda s: check.hide(s.float()).softmax(-1).to(s.dtype)),
        (check.window_head, FusedWindow),
        (check.window_head, LongBuffer),
    ],
)  # fmt: skip
def test_there_is_more_than_one_right_answer(exercise, answer):
    report = exercise(answer)
    assert report.outcome == "right", report.message


def renormalised(scores):
    weights = scores.softmax(-1).tril()
    return weights / weights.sum(-1, keepdim=True)


def without_softmax(scores):
    """Right on paper, but every e^score of a row may round to 0."""
    shares = scores.exp().tril()
    return shares / shares.sum(-1, keepdim=True)


def head(forward=check.WindowHead.forward, made=lambda head: None):
    """A WindowHead with another forward; made: what else is done in __init__."""

    class WindowHead(check.WindowHead):
        def __init__(self, n_embd, head_size, window):
            super().__init__(n_embd, head_size, window)
            made(self)

    WindowHead.forward = forward
    return WindowHead


def with_layer(name, **settings):
    def make(head):
        hs, C = head.query.weight.shape
        setattr(head, name, nn.Linear(C, settings.get("size", hs), bias="bias" in settings))

    return make


def makes_layers(self, x):
    for name in ("query", "key", "value"):
        with_layer(name)(self)
    return check.WindowHead.forward(self, x)


class LayersInForward(nn.Module):
    def __init__(self, n_embd, head_size, window):
        super().__init__()
        self.n_embd, self.head_size, self.window = n_embd, head_size, window

    def forward(self, x):
        made = check.WindowHead(self.n_embd, self.head_size, self.window)
        self.query, self.key, self.value = made.query, made.key, made.value
        return made(x)


def with_old_mask(self, x):
    if not hasattr(self, "mask"):
        self.mask = check.near(x.shape[1], self.window)
    T = x.shape[1]
    return attention(self.query(x), self.key(x), self.value(x), self.mask[:T, :T])[0]


def with_short_mask(self, x):
    T = x.shape[1]
    mask = check.near(16, self.window)[:T, :T]
    return attention(self.query(x), self.key(x), self.value(x), mask)[0]


WRONG = [
    *((check.what_recall_needs, check.NEEDED | {part: not needed}, check.BELIEVED[part])
      for part, needed in check.NEEDED.items()),
    (check.what_recall_needs, {"places": False}, "each of places, own keys"),
    (check.what_recall_needs, check.NEEDED | {"places": "no"}, '"places" should be True'),
    (check.ask_for_the_verb, torch.tensor([0.0, 0, 0, 4]), "Without the scale"),
    (check.ask_for_the_verb, torch.tensor([1.0, 0, 1, 0]), 'finds "Tom"'),
    (check.ask_for_the_verb, torch.tensor([0.0, 0, 0, 1]), "not above 0.8"),
    (check.ask_for_the_verb, torch.tensor([0.0, 0, 0, 5.54]), "that leaves 0.79"),
    (check.ask_for_the_verb, torch.zeros(4), "asks for nothing"),
    (check.ask_for_the_verb, torch.tensor([[0.0, 0, 0, 8]]), "shape (4,)"),
    (check.ask_for_the_verb, torch.tensor([0, 0, 0, INF]), "NaN or infinity"),
    (check.causal_weights, lambda s: check.hide(s, fill=-1e9).softmax(-1), "half precision"),
    (check.causal_weights, lambda s: check.hide(s, fill=-1e4).softmax(-1), "half precision"),
    (check.causal_weights, lambda s: check.hide(s, fill=-65504).softmax(-1), "finite number"),
    (check.causal_weights, lambda s: check.hide(s, fill=torch.finfo(s.dtype).min).softmax(-1),
     "finite number"),
    (check.causal_weights, without_softmax, "every e^score that you kept"),
    (check.causal_weights, renormalised, "every e^score that you kept"),
    (check.causal_weights, lambda s: renormalised(s).nan_to_num(), "do not sum to 1"),
    (check.causal_weights, lambda s: check.hide(s.clamp(-50, 50)).softmax(-1), "half precision"),
    (check.causal_weights, lambda s: check.hide(s.detach()).softmax(-1), "no gradient comes back"),
    (check.causal_weights, lambda s: s.masked_fill_(~causal_mask(s.shape[-1]), -INF).softmax(-1),
     "in place"),
    (check.causal_weights, lambda s: check.causal_weights.right(s[:, :3, :3]), "shape (2, 5, 5)"),
    (check.window_head, head(lambda h, x: (check.forward(h, x), x)), "return the first alone"),
    (check.window_head, head(made=with_layer("query", bias=True)), "too many: query.bias"),
    (check.window_head, head(made=with_layer("value", size=7)), "should have shape (4, 6)"),
    (check.window_head, head(made=with_layer("output")), "too many: output.weight"),
    (check.window_head, head(made=lambda h: delattr(h, "key")), "key.weight (4, 6) is missing"),
    (check.window_head, head(made=lambda h: setattr(h, "key", h.query)), "one and the same"),
    (check.window_head, head(made=lambda h: setattr(h.key, "weight", h.query.weight)), "the same"),
    (check.window_head, head(makes_layers), "made anew in each call"),
    (check.window_head, LayersInForward, "make it in `__init__`"),
    (check.window_head, head(torch.no_grad()(check.forward)), "no gradient comes back"),
    (check.window_head, head(lambda h, x: check.forward(h, x, change=lambda q, k, v: (
        q, k.detach(), v))), "a wrong gradient"),
    (check.window_head, head(with_short_mask), "(1, 40, 40)"),
    (check.window_head, head(with_old_mask), "now given 9 tokens"),
    (check.window_head, lambda *settings: Head(*settings[:2]), "This looks at the whole past"),
    (check.window_head, lambda *settings: lambda x: x, "should be made from nn.Module"),
    (check.window_head, check.WindowHead(6, 4, 3), "raised"),
]  # fmt: skip


@pytest.mark.parametrize(("exercise", "answer", "words"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(exercise, answer, words):
    report = exercise(answer)
    assert report.outcome == "not yet"
    assert words in report.message, report.message
