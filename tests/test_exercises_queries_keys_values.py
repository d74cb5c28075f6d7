"""The exercises of "Queries, keys and values" beyond what their declaration says."""

import torch
import torch.nn.functional as F
from torch import nn

from exercises import queries_keys_values as check
from helpers.attention import Head, attention
from tests.answers import accepted, refused


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


RECALL = {"softmax": 1.0, "own queries": 0.32, "width": 0.61}
NEEDED = ["own queries", "width"]


test_there_is_more_than_one_right_answer = accepted(
    (check.ask_for_the_verb, [0, 0, 0, 6]),
    (check.what_recall_needs, (RECALL | {"softmax": torch.tensor(0.998)}, set(NEEDED))),
    (check.window_head, FusedWindow),
    (check.window_head, LongBuffer),
)


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


def with_old_mask(self, x):
    if not hasattr(self, "mask"):
        self.mask = check.near(x.shape[1], self.window)
    T = x.shape[1]
    return attention(self.query(x), self.key(x), self.value(x), self.mask[:T, :T])[0]


LEAKS = check.LEAKS


test_a_wrong_answer_is_told_what_is_wrong = refused(
    *(
        (check.which_leak, LEAKS | {name: not leaks}, "a leak has escaped" if leaks else "is none")
        for name, leaks in LEAKS.items()
    ),
    (check.which_leak, LEAKS | {"keys_centred": True, "softmax_twice": False}, "2 of the six"),
    (check.which_leak, LEAKS | {"roles_swapped": ...}, "or False: roles_swapped."),
    (check.which_leak, dict.fromkeys(LEAKS, True), "Not all six leak"),
    (check.which_leak, dict.fromkeys(LEAKS, False), "Some of the six leak"),
    (
        check.which_leak,
        {name: not leaks for name, leaks in LEAKS.items()},
        "the wrong way round",
    ),
    *(
        (check.what_recall_needs, (RECALL | {part: 0.8}, NEEDED), f'"{part}": {says}')
        for part, says in check.NOT_SO.items()
    ),
    (check.what_recall_needs, (RECALL, ["own queries"]), "is below 0.9"),
    (check.what_recall_needs, (RECALL, ["queries", "width"]), "with the same names"),
    (check.what_recall_needs, ({part: 1 - x for part, x in RECALL.items()}, NEEDED), "*wrong*"),
    (check.what_recall_needs, (RECALL | {"softmax": 0.125}, NEEDED), check.GUESSED),
    (check.what_recall_needs, (RECALL | {"softmax": 100}, NEEDED), "between 0 and 1"),
    (check.ask_for_the_verb, torch.tensor([0.0, 0, 0, 4]), "Without the scale"),
    (check.ask_for_the_verb, torch.tensor([1.0, 0, 1, 0]), 'finds "Tom"'),
    (check.ask_for_the_verb, torch.tensor([0.0, 0, 0, 1]), "not above 0.8"),
    (check.ask_for_the_verb, torch.zeros(4), "asks for nothing"),
    (check.window_head, head(made=with_layer("query", bias=True)), "not have: `query.bias`"),
    (check.window_head, head(made=with_layer("value", size=7)), "should have shape (4, 6)"),
    (check.window_head, head(made=lambda h: delattr(h, "key")), "(4, 6), but is missing"),
    (check.window_head, head(made=lambda h: setattr(h, "key", h.query)), "but is missing"),
    (check.window_head, head(makes_layers), "should be"),
    (check.window_head, head(torch.no_grad()(check.WindowHead.forward)), "no gradient comes"),
    (check.window_head, head(with_old_mask), "now given 9 tokens"),
    (check.window_head, lambda *settings: Head(*settings[:2]), "attends to the whole past"),
    (check.window_head, check.WindowHead(6, 4, 3), "raised"),
)
