"""The exercises of chapter 10: the known mistakes get their own diagnoses."""

import math

import pytest
import torch
import torch.nn.functional as F

from exercises import generation as check
from helpers.attention import attention, causal_mask


def says(report, fragment):
    assert report.outcome == "not yet" and fragment in report.message, report.message


def ends(p):
    return p.cumsum(-1)


DRAWS = [
    (lambda p, u: (ends(p) < u).sum(), "borders"),
    (lambda p, u: p.argmax(), "wherever the dart is"),
    (lambda p, u: (ends(p) <= u).sum() + 1, "too far to the right"),
    (lambda p, u: (ends(p) <= u).sum() - 1, "too far to the left"),
    (lambda p, u: (p <= u).sum(), "running sums"),
    (lambda p, u: (ends(p.sort(descending=True).values) <= u).sum(), "sorted"),
    (lambda p, u: (ends(p) > u).sum(), "wrong end"),
    (lambda p, u: (p > u).float().argmax(), "first single probability"),
    (lambda p, u: torch.multinomial(p, 1).item(), "should be"),
    (lambda p, u: ends(p) <= u, "should have shape ()"),
]


@pytest.mark.parametrize(("wrong", "fragment"), DRAWS)
def test_mistakes_with_the_dart(wrong, fragment):
    says(check.draw(wrong), fragment)


def test_searchsorted_is_right_too():
    right = check.draw(lambda p, u: torch.searchsorted(ends(p), u, right=True))
    assert right.outcome == "right", right.message


def safe(z, tau):
    return F.one_hot(z.argmax(-1), z.shape[-1]).float() if tau < 1e-9 else (z / tau).softmax(-1)


HEATS = [
    (lambda z, tau: z.softmax(-1), "tau cancels"),
    (lambda z, tau: (z * tau).softmax(-1), "multiplied"),
    (lambda z, tau: z.softmax(-1) / tau, "no longer sum to 1"),
    (lambda z, tau: (z.softmax(-1) / tau).softmax(-1), "Two softmaxes"),
    (lambda z, tau: z / tau, "softmax is missing"),
    (lambda z, tau: z.softmax(-1) ** (1 / tau), "do not sum"),
    (lambda z, tau: (z / tau).log_softmax(-1), "logarithms"),
    (lambda z, tau: (z / tau).softmax(0), "runs over dim 0"),
    (lambda z, tau: (z / tau).softmax(-2 if z.dim() > 1 else -1), "runs over dim"),
    (lambda z, tau: (z / tau).softmax(-1), "tau = 0 gives NaN"),
    (lambda z, tau: (z / tau).softmax(-1) if tau else safe(z, 0), "made infinities"),
    (lambda z, tau: safe(z, tau) if tau else torch.full_like(z, 1 / z.shape[-1]), "other end"),
    (lambda z, tau: safe(z, tau or 1), "plain softmax"),
    (lambda z, tau: safe(z, tau) if tau else safe(z.transpose(0, -1), 0).transpose(0, -1), "axis"),
    (lambda z, tau: z.argmax(-1) if tau == 0 else safe(z, tau), "should have shape"),
    (lambda z, tau: math.exp(z / tau), "raised"),
    (lambda z, tau: (z / tau).exp() / (z / tau).exp().sum(), "sum of all rows"),
    (lambda z, tau: (z / (tau + 1e-6)).softmax(-1), "however small its lead"),
]


@pytest.mark.parametrize(("wrong", "fragment"), HEATS)
def test_mistakes_with_temperature(wrong, fragment):
    says(check.heat(wrong), fragment)


def test_a_very_small_number_in_place_of_0_is_right_too():
    assert check.heat(lambda z, tau: (z / max(tau, 1e-9)).softmax(-1)).outcome == "right"


def by_its_sum(kept):
    return kept / kept.sum(-1, keepdim=True)


def cut(*, keep=None, norm=by_its_sum, back="scatter", descending=True, dim=-1):
    """Top-p with one mistake."""

    def wrong(rows, p):
        ranked, order = rows.sort(dim=-1, descending=descending)
        before = ranked.cumsum(dim) - ranked
        kept = ranked * (keep(ranked, before, p) if keep else before < p)
        kept = norm(kept) if norm else kept
        if back == "scatter":
            return torch.zeros_like(kept).scatter(-1, order, kept)
        return kept.gather(-1, order) if back == "gather" else kept

    return wrong


def alone(rows, p):
    kept = rows * (rows >= p)
    return kept / kept.sum(-1, keepdim=True)


def unsorted(rows, p):
    kept = rows * (rows.cumsum(-1) - rows < p)
    return kept / kept.sum(-1, keepdim=True)


def shifted(ranked, before, p):
    return F.pad(before[..., :-1], (1, 0)) < p


def first_row_decides(ranked, before, p):
    return torch.arange(ranked.shape[-1]) < (before[0] < p).sum()


def mask_of_the_sorted(rows, p):
    ranked = rows.sort(-1, descending=True).values
    kept = rows * (ranked.cumsum(-1) - ranked < p)
    return kept / kept.sum(-1, keepdim=True)


def at_least_the_last_one_kept(rows, p):
    ranked = rows.sort(-1, descending=True).values
    n = (ranked.cumsum(-1) < p).sum(-1, keepdim=True).clamp(max=rows.shape[-1] - 1)
    kept = rows * (rows >= ranked.gather(-1, n))
    return kept / kept.sum(-1, keepdim=True)


NUCLEI = [
    (cut(keep=lambda ranked, before, p: before <= p), "no third token is needed"),
    (at_least_the_last_one_kept, "the fourth goes"),
    (cut(keep=first_row_decides), "as in the first"),
    (mask_of_the_sorted, "on the unsorted rows"),
    (cut(norm=lambda kept: kept / kept.sum()), "whole batch"),
    (cut(norm=lambda kept: kept.softmax(-1)), "what was set to 0 is not 0"),
    (cut(norm=lambda kept: kept.where(kept > 0, -math.inf).softmax(-1)), "by its sum, without"),
    (cut(back="none"), "sorted"),
    (cut(norm=None), "no longer sum to 1"),
    (cut(keep=lambda ranked, before, p: before + ranked <= p), "dropped the token that crosses"),
    (
        cut(keep=lambda ranked, before, p: before + ranked <= p, norm=None),
        "and the rows do not sum to 1",
    ),
    (cut(keep=shifted), "one token too many"),
    (cut(descending=False), "unlikeliest"),
    (unsorted, "did not sort"),
    (cut(dim=0), "rows of the batch"),
    (cut(back="gather"), "gather"),
    (alone, "single probability"),
    (lambda rows, p: rows, "Nothing is cut"),
    (lambda rows, p: cut()(rows[:1], p), "should have shape"),
]


@pytest.mark.parametrize(("wrong", "fragment"), NUCLEI)
def test_mistakes_in_top_p(wrong, fragment):
    says(check.nucleus(wrong), fragment)


def test_dropping_the_crossing_token_only_where_it_makes_nan():
    def wrong(rows, p):
        drop = cut(keep=lambda ranked, before, p: before + ranked <= p)
        return cut()(rows, p) if p > 0.32 else drop(rows, p)

    says(check.nucleus(wrong), "0 / 0 is NaN")


def test_a_loop_over_the_tokens_is_right_too():
    def loop(rows, p):
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

    assert check.nucleus(loop).outcome == "right"


COSTS = [
    (lambda L, H, C, T, B: 4 * 12 * C * T * B, "should be"),  # the layers of the example
    (lambda L, H, C, T, B: 4 * L * C * T * B / 1e6, "millions of bytes"),
    (lambda L, H, C, T, B: 6 * L * C * T * B, "kept the queries"),
    (lambda L, H, C, T, B: 4 * L * C * C * T * B, "n_embd stands twice"),
    (lambda L, H, C, T, B: 4 * L * H * T * B, "one number a head"),
    (lambda L, H, C, T, B: 2 * L * C * T * B, "half of it"),
    (lambda L, H, C, T, B: L * C * T * B, "a quarter"),
    (lambda L, H, C, T, B: 8 * L * C * T * B, "not 4"),
    (lambda L, H, C, T, B: 4 * L * C * H * T * B, "multiplied by the heads"),
    (lambda L, H, C, T, B: 4 * L * C // H * T * B, "one head only"),
    (lambda L, H, C, T, B: 4 * C * T * B, "one layer only"),
    (lambda L, H, C, T, B: 4 * L * C * T, "one text only"),
    (lambda L, H, C, T, B: 4 * L * C * B, "one token only"),
    (lambda L, H, C, T, B: 4 * L * C * T * T * B, "T stands twice"),
    (lambda L, H, C, T, B: 32 * L * C * T * B, "bits"),
    (lambda L, H, C, T, B: (L, H), "should have shape"),
]


@pytest.mark.parametrize(("wrong", "fragment"), COSTS)
def test_mistakes_in_the_size_of_the_cache(wrong, fragment):
    says(check.cache_size(wrong), fragment)


def attend_new(*, keys="old new", mask="rows", scale=1.0, kept="old new"):
    """Attention with a cache and one mistake."""

    def join(old, new, order):
        return torch.cat([{"old": old, "new": new}[name] for name in order.split()], dim=2)

    def wrong(q, k, v, old_k, old_v):
        T, S = q.shape[2], old_k.shape[2]
        all_k, all_v = join(old_k, k, keys), join(old_v, v, keys)
        rows = {
            "rows": lambda: causal_mask(S + T)[S:],
            "corner": lambda: causal_mask(S + T)[:T],
            "small": lambda: causal_mask(T),
            "none": lambda: None,
            "no self": lambda: torch.ones(T, S + T).tril(S - 1).bool(),
            "one more": lambda: torch.ones(T, S + T).tril(S + 1).bool(),
        }[mask]()
        out, _ = attention(q * scale * (q.shape[-1] ** 0.5) ** (scale == 0), all_k, all_v, rows)
        return out, join(old_k, k, kept), join(old_v, v, kept)

    return wrong


def twice(q, k, v, old_k, old_v):
    return attend_new()(q / q.shape[-1] ** 0.5, k, v, old_k, old_v)


def unscaled(q, k, v, old_k, old_v):
    return attend_new()(q * q.shape[-1] ** 0.5, k, v, old_k, old_v)


def in_order(*places):
    """The right three things in a wrong order."""
    return lambda *given: tuple(attend_new()(*given)[i] for i in places)


def keys_for_values(q, k, v, old_k, old_v):
    out, all_v, all_k = attend_new()(q, v, k, old_v, old_k)
    return out, all_k, all_v


def one_cache(q, k, v, old_k, old_v):
    return attend_new()(q, k, v, old_k, old_k)


def not_unpacked(q, k, v, old_k, old_v):
    out, all_k, all_v = attend_new()(q, k, v, old_k, old_v)
    return (out, q), all_k, all_v


CACHED = [
    (attend_new(mask="no self"), "does not see itself"),
    (attend_new(mask="one more"), "one key too generous"),
    (in_order(0, 2, 1), "are swapped"),
    (in_order(1, 2, 0), "outputs come first"),
    (keys_for_values, "Keys and values are swapped"),
    (one_cache, "two caches, one of each"),
    (not_unpacked, "`out, _ = attention(...)`"),
    (attend_new(mask="none"), "each other's future"),
    (attend_new(mask="corner"), "upper left corner"),
    (attend_new(keys="new", mask="small"), "look at each other only"),
    (attend_new(keys="new", mask="none"), "And a mask is needed"),
    (attend_new(keys="new old", kept="new old"), "before the old ones"),
    (attend_new(keys="old", mask="none"), "at the old ones only"),
    (twice, "twice"),
    (unscaled, "scale is missing"),
    (attend_new(kept="new old"), "stand before the old ones"),
    (attend_new(kept="new"), "holds the new tokens only"),
    (attend_new(kept="old"), "is the old cache"),
    (lambda *a: attend_new()(*a)[0], "three tensors"),
    (attend_new(mask="small"), "raised"),
]


@pytest.mark.parametrize(("wrong", "fragment"), CACHED)
def test_mistakes_in_attention_with_a_cache(wrong, fragment):
    says(check.attend_new(wrong), fragment)


def writer(crop, *, place=-1, sign=1, result=lambda ids, T, W: ids):
    """A greedy writer with one mistake; crop: what the model reads."""

    def wrong(model, ids, n_tokens, block_size):
        T = ids.shape[1]
        for _ in range(n_tokens):
            logits = sign * model(crop(ids, block_size))[:, place]
            ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
        return result(ids, T, block_size)

    return wrong


def right(ids, W):
    return ids[:, -W:]


def shortens(model, ids, n_tokens, block_size):
    for _ in range(n_tokens):
        ids = ids[:, -block_size:]
        ids = torch.cat([ids, model(ids)[:, -1].argmax(-1, keepdim=True)], dim=1)
    return ids


def never_appends(model, ids, n_tokens, block_size):
    read = [model(ids[:, -block_size:])[:, -1].argmax(-1, keepdim=True) for _ in range(n_tokens)]
    return torch.cat([ids, *read], dim=1)


def crops_the_prompt(model, ids, n_tokens, block_size):
    return writer(right)(model, ids[:, -block_size:], n_tokens, block_size)


WRITERS = [
    (never_appends, "same text twice"),
    (crops_the_prompt, "cropped the text itself"),
    (writer(lambda ids, W: ids[:, -max(1, W // 2) :]), "can be read whole"),
    (writer(lambda ids, W: ids[:, -8:]), "reads 6 at most"),  # the window of the example
    (writer(lambda ids, W: ids), "reads 6 at most"),
    (writer(lambda ids, W: ids[:, :W]), "wrong end"),
    (writer(lambda ids, W: ids[:, -(W - 1) :]), "can be read whole"),
    (writer(lambda ids, W: ids[:, -1:]), "last token alone"),
    (writer(right, place=0), "those of the first place"),
    (writer(right, sign=-1), "argmax, not argmin"),
    (writer(right, result=lambda ids, T, W: ids[:, T:]), "without the prompt"),
    (writer(right, result=lambda ids, T, W: ids[:, -W:]), "cropped the text itself"),
    (shortens, "cropped the text itself"),
    (writer(lambda ids, W: ids[:, -W:] if ids.shape[1] != W else ids[:, 1:]), "can be read whole"),
]


@pytest.mark.parametrize(("wrong", "fragment"), WRITERS)
def test_mistakes_in_the_writer(wrong, fragment):
    says(check.write_greedily(wrong), fragment)


def test_the_rights():
    assert check.heat(lambda z, tau: safe(z, tau)).outcome == "right"
    assert check.nucleus(cut()).outcome == "right"
    assert check.attend_new(attend_new()).outcome == "right"
    assert check.write_greedily(writer(right)).outcome == "right"


def test_a_writer_that_reads_row_by_row_is_right_too():
    def rows(model, ids, n_tokens, block_size):
        return torch.cat([writer(right)(model, row[None], n_tokens, block_size) for row in ids])

    assert check.write_greedily(rows).outcome == "right"
