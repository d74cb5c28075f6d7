"""The exercises of chapter 10: other right answers, and mistakes that no table names."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises import generation as check


def heat_by_sharing(z, tau):
    if tau == 0:
        largest = (z == z.amax(-1, keepdim=True)).float()
        return largest / largest.sum(-1, keepdim=True)
    return F.softmax(z.double() / tau, dim=-1)


def nucleus_by_loops(rows, p):
    out = torch.zeros_like(rows)
    for row, kept in zip(rows, out, strict=True):
        total = 0.0
        for i in row.argsort(descending=True).tolist():
            if total >= p:
                break
            kept[i] = row[i]
            total += row[i].item()
        kept /= kept.sum().item()
    return out


def nucleus_by_counting(rows, p):
    ranked, order = rows.sort(-1, descending=True)
    n = (ranked.cumsum(-1) < p).sum(-1, keepdim=True) + 1  # below p: all of these, and one more
    kept = rows * (order.argsort(-1) < n)
    return (kept / kept.sum(-1, keepdim=True)).numpy()


def attend_by_torch(q, k, v, old_k, old_v):
    T, S = q.shape[2], old_k.shape[2]
    all_k, all_v = torch.cat((old_k, k), 2), torch.cat((old_v, v), 2)
    mask = torch.arange(S + T) <= torch.arange(S, S + T)[:, None]
    return [F.scaled_dot_product_attention(q, all_k, all_v, mask), all_k, all_v]


def write_row_by_row(model, ids, n_tokens, block_size):
    return torch.cat(
        [check.write_greedily.right(model, row[None], n_tokens, block_size) for row in ids]
    )


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (check.draw, lambda p, u: torch.searchsorted(p.cumsum(-1), u, right=True)),
        (check.draw, lambda p, u: np.searchsorted(np.cumsum(p.numpy()), u, side="right")),
        (check.draw, lambda p, u: next(i for i, end in enumerate(p.cumsum(-1)) if u < end)),
        (check.heat, heat_by_sharing),
        (check.heat, lambda z, tau: check.steady(z, max(tau, 1e-9)).softmax(-1).numpy()),
        (check.nucleus, nucleus_by_loops),
        (check.nucleus, nucleus_by_counting),
        (check.cache_size, lambda L, H, C, T, B: 4 * L * B * H * T * (C // H)),
        (check.attend_new, attend_by_torch),
        (check.write_greedily, write_row_by_row),
        (check.write_greedily, lambda *a: check.write_greedily.right(*a).tolist()),
    ],
)
def test_other_right_answers_are_right(exercise, answer):
    report = exercise(answer)
    assert report.outcome == "right", report.message


def ties_all_get_1(z, tau):
    return (z == z.amax(-1, keepdim=True)).float() if tau == 0 else check.heat.right(z, tau)


def ties_get_a_smaller_one(z, tau):
    return check.heat.right(z, tau) if (z[0] != 2).all() else z.softmax(-1)


def keeps_all_that_are_equal(rows, p):
    ranked = rows.sort(-1, descending=True).values
    last = ((ranked.cumsum(-1) < p).sum(-1, keepdim=True)).clamp(max=rows.shape[-1] - 1)
    kept = rows * (rows >= ranked.gather(-1, last))
    return kept / kept.sum(-1, keepdim=True)


def nan_where_one_has_more_than_p(rows, p):
    return check.cut(check.until_p if p == 0.3 else check.before_p)(rows, p)


def another_first_step(q, k, v, old_k, old_v):
    out, all_k, all_v = attend_by_torch(q, k, v, old_k, old_v)
    return (out, q), all_k, all_v


def drawn(model, ids, n_tokens, block_size):
    draw = check.writing(choose=lambda logits: logits[:, -1].softmax(-1).multinomial(1))
    return draw(model, ids, n_tokens, block_size)


@pytest.mark.parametrize(
    ("exercise", "answer", "words"),
    [
        (check.draw, lambda p, u: torch.multinomial(p, 1).item(), "two different results"),
        (check.draw, lambda p, u: int(torch.rand(()) < u), "should be"),
        (check.heat, ties_all_get_1, "each got all, and the sum is above 1"),
        (check.heat, ties_get_a_smaller_one, "a smaller logit got something"),
        (check.heat, lambda z, tau: z.softmax(-1).sqrt(), "should be"),
        (check.nucleus, keeps_all_that_are_equal, "the fourth goes"),
        (check.nucleus, nan_where_one_has_more_than_p, "0 / 0 is NaN"),
        (check.nucleus, lambda rows, p: check.nucleus.right(rows, 0.9), "should be"),
        (check.nucleus, lambda rows, p: check.nucleus.right(rows[:1], p), "should have shape"),
        (check.cache_size, lambda L, H, C, T, B: 4 * 12 * C * T * B, "should be"),
        (check.cache_size, lambda L, H, C, T, B: (L, H), "should have shape"),
        (check.attend_new, another_first_step, "return the first alone"),
        (check.attend_new, check.attended(lambda T, S: check.causal_mask(T)), "want a mask"),
        (check.write_greedily, drawn, "two different results"),
        (check.write_greedily, check.writing(lambda ids, W: ids), "and it reads 6 at most"),
        (check.write_greedily, check.writing(lambda ids, W: ids[:, -8:]), "and it reads 6 at most"),
        (check.write_greedily, check.writing(lambda ids, W: ids[:, -3:]), "should be"),
    ],
)
def test_other_mistakes_are_told_by_what_differs(exercise, answer, words):
    report = exercise(answer)
    assert report.outcome == "not yet"
    assert words in report.message
