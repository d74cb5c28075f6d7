"""The exercises on encoders and decoders: other right answers, and mistakes that no table names."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises import encoders_decoders as check
from helpers.attention import attention
from studies import results
from tests.answers import accepted, refused

padding_mask, cross_heads = check.padding_mask.right, check.cross_heads.right
additive_attention = check.additive_attention.right


def by_loop(lengths, S):
    return torch.tensor([[[[s < n for s in range(S)]]] for n in lengths.tolist()])


def letter_by_letter(h, states, W, U, v):
    rows = []
    for one in h:
        scores = torch.stack([v @ (W @ one + U @ s).tanh() for s in states])
        rows.append(sum(w * s for w, s in zip(scores.softmax(0), states, strict=True)))
    return torch.stack(rows)


def pair_by_pair(h, states, W, U, v):
    q, k = h @ W.T, states @ U.T
    scores = (q.unsqueeze(1).expand(-1, len(k), -1) + k.unsqueeze(0)).tanh().matmul(v)
    return torch.einsum("ts,sc->tc", scores.softmax(1), states)


def qkv(x, source, Wq, Wk, Wv, n_head):
    pairs = (x, Wq), (source, Wk), (source, Wv)
    return [F.linear(t, W).unflatten(-1, (n_head, -1)).transpose(1, 2) for t, W in pairs]


def head_by_head(x, source, mask, Wq, Wk, Wv, Wo, n_head):
    heads = zip(*(z.unbind(1) for z in qkv(x, source, Wq, Wk, Wv, n_head)), strict=True)
    out = [F.scaled_dot_product_attention(q, k, v, mask[:, None]) for q, k, v in heads]
    return torch.cat(out, -1) @ Wo.T


def by_helpers(x, source, mask, Wq, Wk, Wv, Wo, n_head):
    out, _ = attention(*qkv(x, source, Wq, Wk, Wv, n_head), mask[:, None, None])
    return F.linear(out.transpose(1, 2).flatten(2), Wo)


def by_kernel(x, source, mask, Wq, Wk, Wv, Wo, n_head):
    heads = qkv(x, source, Wq, Wk, Wv, n_head)
    out = F.scaled_dot_product_attention(*heads, mask[:, None, None])
    return F.linear(out.transpose(1, 2).flatten(2), Wo)


test_other_right_answers_are_right = accepted(
    (check.padding_mask, by_loop),
    (check.additive_attention, pair_by_pair),
    (check.cross_heads, by_kernel),
    (check.helped, [*check.HELPED, "attention"]),
    (check.helped, [*(round(one, 2) for one in check.HELPED), "attention"]),
)


test_what_the_task_rules_out_is_not_accepted = refused(
    (check.padding_mask, lambda *given: padding_mask(*given).int(), "takes a bool tensor"),
    (check.padding_mask, lambda lengths, S: torch.arange(S) < lengths, "compared with (S,)"),
    (check.additive_attention, letter_by_letter, "without a loop"),
    (check.cross_heads, head_by_head, "without a loop over heads"),
    (check.cross_heads, by_helpers, "use torch alone"),
)


wider, longer, back = check.HELPED
OTHERWISE = {
    "words of 12 letters": (0.0050, 0.0033, 0.7600),
    "the best seeds": (0.3300, 0.2750, 0.9900),
    "additive scores": (0.3183, 0.2617, 0.9367),
    "at width 32": (0.3183, 0.2617, 0.9350),
    "600 steps": (0.3183, 0.2617, 1.0),
}


def of_the_study(measure="letters 8", arm="dot product", of_seeds=np.mean, **changed):
    study = results("one_vector")
    three = (
        study.values("one vector", measure, width=128),
        study.values("one vector", measure, steps=1800),
        study.values(arm, measure, **changed),
    )
    return [of_seeds([*found.values()]) for found in three]


def test_the_numbers_are_those_of_the_study():
    others = [
        of_the_study("letters 12"),
        of_the_study(of_seeds=max),
        of_the_study(arm="additive"),
        of_the_study(width=128),
        of_the_study(steps=1800),
    ]
    assert of_the_study() == pytest.approx(check.HELPED, abs=1e-3)
    for found, kept in zip(others, OTHERWISE.values(), strict=True):
        assert found == pytest.approx(kept, abs=1e-3)


test_a_wrong_purchase_is_explained = refused(
    (check.helped, [*check.HELPED, "wider"], "Which of your three numbers"),
    (check.helped, [*check.HELPED, "dot product"], "The verdict should be"),
    (check.helped, [100 * wider, 100 * longer, 100 * back, "attention"], "percentages"),
    (check.helped, [longer, wider, back, "attention"], "in this order"),
    (
        check.helped,
        [round(wider, 1), round(longer, 1), round(back, 1), "attention"],
        "two decimals",
    ),
    *((check.helped, [*others, "attention"], says) for says, others in OTHERWISE.items()),
)
