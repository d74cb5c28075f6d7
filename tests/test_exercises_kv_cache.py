"""The exercises on the KV cache: other right answers, and mistakes that no declaration names."""

import torch
import torch.nn.functional as F

from exercises import kv_cache as check
from tests.answers import accepted, refused


def write_by_length(model, prompts, n_tokens, block_size, stop):
    """Those of one length together."""
    texts = {}
    for length in {len(prompt) for prompt in prompts}:
        rows = [i for i, prompt in enumerate(prompts) if len(prompt) == length]
        ids = torch.tensor([prompts[i] for i in rows])
        for _ in range(n_tokens):
            new = model(ids[:, -block_size:])[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat((ids, new), 1)
        for i, whole in zip(rows, ids.tolist(), strict=True):
            new = whole[length:]
            texts[i] = whole[: length + new.index(stop) + 1] if stop in new else whole
    return [texts[i] for i in range(len(prompts))]


def chats_by_counting(memory, weight_bytes, n_layer, n_head, n_kv_head, n_embd, length):
    per_token = n_layer * n_kv_head * (n_embd / n_head) * (16 + 16) / 8
    return int(max(memory - weight_bytes, 0) / (per_token * length))


def step_by_kernel(q, k, v, old_k, old_v):
    keys, values = torch.cat((old_k, k), 2), torch.cat((old_v, v), 2)
    mask = torch.ones(q.shape[2], keys.shape[2], dtype=torch.bool).tril(old_k.shape[2])
    return F.scaled_dot_product_attention(q, keys, values, mask, enable_gqa=True)


def verify_in_a_loop(p, q, token, u, v):
    if u * q[token] < p[token]:
        return token
    more = [max(0.0, a - b) for a, b in zip(p.tolist(), q.tolist(), strict=True)]
    at = 0.0
    for i, part in enumerate(more):
        at += part / sum(more)
        if at > v:
            return i


test_other_right_answers_are_right = accepted(
    (check.write_all, write_by_length),
    (check.chats_that_fit, chats_by_counting),
    (check.cached_step, step_by_kernel),
    (check.verify, verify_in_a_loop),
)


uncropped = check.write_all.slip("ids[-block_size:] → ids")
unrepeated = check.cached_step.slip("k], 2).repeat_interleave(n, dim=1) → k], 2)")


test_other_mistakes_are_told_by_what_differs = refused(
    (check.write_all, lambda model, prompts, *_: model(torch.tensor(prompts[0])), "(B, T)"),
    (check.write_all, lambda model, prompts, *_: torch.tensor(prompts), "make no tensor"),
    (check.write_all, uncropped, "and it accepts 6 at most"),
    (check.cached_step, unrepeated, "as many as query heads"),
    (check.chats_that_fit, lambda *_: 3, "should be"),
    (check.verify, lambda p, q, token, u, v: p, "verify"),
)
