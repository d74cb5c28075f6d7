"""The exercises on the KV cache: other right answers, and mistakes that no declaration names."""

import torch
import torch.nn.functional as F

from exercises import kv_cache as check
from tests.answers import accepted, refused


def chats_by_counting(memory, weight_bytes, n_layer, n_head, n_kv_head, n_embd, length):
    per_token = n_layer * n_kv_head * (n_embd / n_head) * (16 + 16) / 8
    return int(max(memory - weight_bytes, 0) / (per_token * length))


def step_by_kernel(q, k, v, old_k, old_v):
    keys, values = torch.cat((old_k, k), 2), torch.cat((old_v, v), 2)
    mask = torch.ones(q.shape[2], keys.shape[2], dtype=torch.bool).tril(old_k.shape[2])
    return F.scaled_dot_product_attention(q, keys, values, mask, enable_gqa=True)


BROKEN = {"A": "a", "B": "b", "C": "d", "D": "c"}


test_other_right_answers_are_right = accepted(
    (check.chats_that_fit, chats_by_counting),
    (check.cached_step, step_by_kernel),
    (check.my_window, [64, torch.tensor(0.0071)]),
)


unrepeated = check.cached_step.slip("k], 2).repeat_interleave(n, dim=1) → k], 2)")


test_other_mistakes_are_told_by_what_differs = refused(
    (check.broken, BROKEN | {"D": "e"}, "No later token asks"),
    (check.broken, BROKEN | {"B": "a"}, "Would it"),
    (check.broken, BROKEN | {"A": "b"}, "What starts anew"),
    (check.broken, BROKEN | {"C": "a"}, "What fills up"),
    (check.broken, BROKEN | {"D": "b"}, "before which this text has nothing"),
    (check.my_window, (128, 0.015), "the example"),
    (check.my_window, (48, 0.01), "one of 8, 16"),
    (check.my_window, (64, 1.42), "Subtract"),
    (check.my_window, (32, 0.05), "more than 0.02"),
    (check.my_window, (128, 0.002), "not the smallest"),
    (check.my_window, (64, 0.03), "tokens 257 to 512"),
    (check.cached_step, unrepeated, "as many as query heads"),
    (check.chats_that_fit, lambda *_: 3, "should be"),
)
