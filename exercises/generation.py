"""The exercises of chapter 10: generation."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from exercises.check import call, exercise, expect, expect_close, expect_shape, normal
from helpers.attention import attention, causal_mask

# Exact in binary, so that a dart can be exactly on a border.
RULERS = [
    torch.tensor(pieces)
    for pieces in (
        [0.5, 0.25, 0.125, 0.0625, 0.0625], [0.125, 0.5, 0.0, 0.25, 0.125], [0.0, 0.25, 0.75],
        [0.5, 0.5, 0.0], [1.0],
    )
]  # fmt: skip
DARTS = (0.8, 0.0, 0.5, 0.9, 0.625, 0.1, 0.99)


def ends(p):
    return p.cumsum(-1)


@exercise(
    inputs=[(p, u) for p in RULERS for u in DARTS],
    why=[f"The pieces end at {ends(p).tolist()}." for p in RULERS for u in DARTS],
    praise="every dart hits its piece, also on the borders, and never a piece of length 0.",
)
def draw(probabilities, u):
    """draw(probabilities, u): the index of the piece of the ruler that contains u."""
    return int((ends(probabilities) <= u).sum())


draw.mistakes = {
    "The borders: a dart exactly on a border belongs to the piece that begins there. Count the "
    "ends that are <= u, not < u.":
        (lambda p, u: (ends(p) < u).sum(), lambda p, u: (ends(p) >= u).float().argmax()),
    "This is the likeliest token, wherever the dart is.": lambda p, u: p.argmax(),
    "This is one piece too far to the right.": lambda p, u: draw.right(p, u) + 1,
    "This is one piece too far to the left.": lambda p, u: draw.right(p, u) - 1,
    "You compare u with the probabilities. The pieces end at their running sums: `cumsum`.": (
        lambda p, u: (p <= u).sum(), lambda p, u: (p < u).sum(), lambda p, u: (p >= u).sum()),
    "This is the same piece, wherever the dart is.": (lambda p, u: 0, lambda p, u: len(p) - 1),
    "You look for the first single probability above u. The pieces end at the running sums of "
    "the probabilities: `cumsum`.": lambda p, u: (p > u).float().argmax(),
    "You sort the pieces. No sorting is needed: the ruler may have any order.": (
        lambda p, u: draw.right(p.sort(descending=True).values, u),
        lambda p, u: draw.right(p.sort().values, u),
        lambda p, u: p.argsort(descending=True)[draw.right(p.sort(descending=True).values, u)],
        lambda p, u: p.argsort()[draw.right(p.sort().values, u)]),
    "You count from the wrong end: pieces that end after the dart.":
        lambda p, u: (ends(p) > u).sum(),
    "You laid the pieces from the right. The ruler begins with piece 0.":
        lambda p, u: len(p) - 1 - draw.right(p.flip(-1), u),
    "You throw the dart from the right: u, not 1 − u.": lambda p, u: draw.right(p, 1 - u),
    "Your pieces are all of one length, not of their probability's.": lambda p, u: int(u * len(p)),
    "This is the nearest end. Which piece has the dart?": lambda p, u: (ends(p) - u).abs().argmin(),
    "This is the nearest probability, not the piece.": lambda p, u: (p - u).abs().argmin(),
    "This is the probability of the piece. Give its index.": lambda p, u: p[draw.right(p, u)],
    "This is the end of the piece. Give its index.": lambda p, u: ends(p)[draw.right(p, u)],
    "This says which ends are before the dart. Count them: `.sum()`.": lambda p, u: ends(p) <= u,
    "These are the ends of the pieces. How many are not after the dart?": lambda p, u: ends(p),
    "This is a one-hot row. Give the index alone.":
        lambda p, u: F.one_hot(torch.tensor(draw.right(p, u)), len(p)),
}  # fmt: skip


def one_hot(z):
    """All to the largest of each row."""
    return F.one_hot(z.argmax(-1), z.shape[-1]).float()


@exercise(
    inputs=[
        *((2 * normal(*shape, seed=seed), tau) for seed, (shape, tau) in enumerate(
            [((4,), 0.5), ((2, 5), 3.0), ((2, 3, 6), 0.3), ((3, 3), 1), ((5, 4), 2.5)])),
        # Between logits that are near each other a low temperature still leaves a choice.
        *((tau * normal(2, 4, seed=7), tau) for tau in (0.29, 0.05, 0.005, 1e-4)),
        (normal(3, 5, seed=8) + 9, 0.01),
        *((normal(*shape, seed=5) + shift, tau) for tau in (0, 2e-38) for shape, shift in
            [((5,), 9), ((2, 3, 4), 9), ((2, 5), -9)]),
        (torch.tensor([[9.0, 8.0], [1.0, 0.0]]), 2e-38), (torch.tensor([40.0, -9.0, 2.0]), 2e-38),
        (torch.tensor([1.0, 1.000002, -1.0]), 0),
    ],
    praise="squared, levelled, and steady at both ends.",
)  # fmt: skip
def heat(logits, tau):
    """heat(logits, tau): softmax of logits / tau, greedy for tau = 0, never NaN."""
    return one_hot(logits) if tau == 0 else steady(logits, tau).softmax(-1)


def steady(z, tau):
    return (z - z.amax(-1, keepdim=True)) / tau


def with_ends(ordinary):
    """Right at the ends, and `ordinary` in between."""
    return lambda z, tau: ordinary(z, tau) if tau > 1e-9 else heat.right(z, tau)


def at_zero(greedy):
    """Right in between, and `greedy` at tau = 0."""
    return lambda z, tau: heat.right(z, tau) if tau else greedy(z)


def greedy_below(limit):
    return lambda z, tau: one_hot(z) if tau < limit else heat.right(z, tau)


def over(dim):
    return lambda z, tau: (z / tau).softmax(dim if z.dim() > 1 else 0)


heat.mistakes = {
    "This is plain softmax. If you divide after the softmax, tau cancels: divide the logits.":
        (lambda z, tau: z.softmax(-1), with_ends(lambda z, tau: z.softmax(-1))),
    "You multiplied by tau. It divides: a low temperature makes the gaps larger.":
        (lambda z, tau: (z * tau).softmax(-1), with_ends(lambda z, tau: (z * tau).softmax(-1))),
    "You divided the probabilities by tau, and they no longer sum to 1. Divide the logits.":
        lambda z, tau: z.softmax(-1) / tau,
    "Two softmaxes: you divided the probabilities by tau and took the softmax again. Divide "
    "the logits.": lambda z, tau: (z.softmax(-1) / tau).softmax(-1),
    "Two softmaxes: take one alone.": lambda z, tau: heat.right(z, tau).softmax(-1),
    "These are logits. The softmax is missing.": lambda z, tau: z / tau,
    "These are powers that do not sum to 1.":
        (lambda z, tau: z.softmax(-1) ** (1 / tau), with_ends(lambda z, tau: (z / tau).exp())),
    "These are logarithms of probabilities.": lambda z, tau: (z / tau).log_softmax(-1),
    "You divided by the sum of all rows. Each row is a distribution of its own: `sum(-1, "
    "keepdim=True)`.": lambda z, tau: (z / tau).flatten().softmax(0).view_as(z),
    "Your softmax runs over another dim: the vocabulary is the last.": (over(0), over(1), over(-2)),
    "tau = 0 gives NaN. You divided by 0. In the limit the largest logit gets all: treat "
    "tau == 0 apart.":
        (lambda z, tau: (z / tau).softmax(-1), lambda z, tau: steady(z, tau).softmax(-1)),
    "tau = 2e-38 gives NaN. The division made infinities. Take the largest logit away before you "
    "divide.": lambda z, tau: (z / tau).softmax(-1) if tau else one_hot(z),
    "tau = 2e-38 gives NaN: you took the largest logit of the whole batch away, and a row far "
    "below it is −∞ throughout. Each row has its own: `amax(-1, keepdim=True)`.": (
        lambda z, tau: ((z - z.max()) / tau).softmax(-1) if tau else one_hot(z),
        lambda z, tau: ((z - z.max()) / tau).softmax(-1),
        lambda z, tau: ((z - z.amax(0)) / tau).softmax(-1) if tau else one_hot(z)),
    "You turned NaN into 0, so nothing is left to draw from. The largest logit gets all.":
        lambda z, tau: (z / tau).softmax(-1).nan_to_num(0.0),
    "For tau = 0 you gave the tokens equal chances. That is the other end, τ → ∞.":
        at_zero(lambda z: torch.full_like(z, 1 / z.shape[-1])),
    "For tau = 0 you gave plain softmax, not all to the largest.": at_zero(lambda z: z.softmax(-1)),
    "For tau = 0 you gave the index of the largest logit in a one-hot of the wrong axis.":
        at_zero(lambda z: one_hot(z.transpose(0, -1)).transpose(0, -1)),
    "For tau = 0 you gave all to the largest logit of the whole batch. Each row has its own.":
        at_zero(lambda z: one_hot(z.flatten()).view_as(z)),
    "For tau = 0 you gave the index of the largest logit. Probabilities are asked for: 1 there, "
    "0 elsewhere.": at_zero(lambda z: z.argmax(-1)),
    "For tau = 0 you gave the largest logit itself. Its probability is 1.":
        (at_zero(lambda z: z.amax(-1)), at_zero(lambda z: one_hot(z) * z)),
    "For tau = 0 you chose the smallest logit: argmax.": at_zero(lambda z: one_hot(-z)),
    "At tau = 0 the largest logit gets all, however small its lead. A small number added to "
    "tau is not enough: treat tau == 0 apart.": (
        *(lambda z, tau, more=more: steady(z, tau + more).softmax(-1)
          for more in (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)),
        *(lambda z, tau, least=least: steady(z, max(tau, least)).softmax(-1)
          for least in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2))),
    "By hand exp overflows, and ∞ / ∞ is NaN. `softmax` takes the largest logit away first.": (
        lambda z, tau: by_sum((z / tau).exp()) if tau else one_hot(z),
        lambda z, tau: by_sum((z / tau).exp()) if tau > 1e-9 else one_hot(z)),
    "By hand the powers underflow, and 0 / 0 is NaN. Divide the logits: `softmax` is steady.": (
        lambda z, tau: by_sum(z.softmax(-1) ** (1 / tau)) if tau else one_hot(z),
        lambda z, tau: by_sum(z.softmax(-1) ** (1 / tau)) if tau > 1e-9 else one_hot(z)),
    "Only tau == 0 is greedy. You treat small temperatures, too, as if they were 0.":
        tuple(greedy_below(limit) for limit in (1.0, 0.4, 0.295, 0.1, 0.011, 1e-3)),
}  # fmt: skip


@heat.then
def ties_share_one(answer):
    ties = torch.tensor([[2.0, 1.0, 2.0, 0.0], [3.0, 3.0, 3.0, 3.0]])
    what = f"heat({ties.tolist()}, 0)"
    got = expect_shape(call(answer, ties, 0, name="heat"), ties.shape, what)
    expect(
        bool((got.sum(-1) - 1).abs().max() < 1e-4),
        f"{what}: where several logits are the largest, each got all, and the sum is above 1. "
        "Let one have it, or let them share.",
    )
    expect(bool((got[ties < ties.amax(-1, keepdim=True)] == 0).all() and (got >= 0).all()),
           f"{what}: a smaller logit got something.")  # fmt: skip


def rows(*shape, scale, seed):
    return (scale * normal(*shape, seed=seed)).softmax(-1)


SURE = (normal(3, 5, seed=5) * 0.3 + 4 * torch.eye(5)[[1, 4, 0]]).softmax(-1)


@exercise(
    inputs=[
        (rows(4, 6, scale=0.3, seed=1), 0.45), (rows(2, 6, scale=0.7, seed=2), 0.8),
        (rows(3, 9, scale=0.7, seed=3), 0.9), (rows(1, 7, scale=0.3, seed=4), 0.35),
        (rows(5, 5, scale=1.5, seed=6), 0.7), (rows(2, 40, scale=2.0, seed=7), 0.95),
        (torch.tensor([[0.125, 0.5, 0.25, 0.125]]), 0.75),  # in binary: reached exactly
        (SURE, 0.3), (SURE, 1.0),
    ],
    why=[""] * 6 + [
        "1/2 and 1/4 reach p exactly: two stay.",
        "A token that has more than p stays: else nothing is left, and 0 / 0 is NaN.",
        "For p = 1 all stay.",
    ],
    praise="as many as are needed, in their own places.",
)  # fmt: skip
def nucleus(probabilities, p):
    """nucleus(probabilities, p): (B, V) rows of which the likeliest tokens stay that reach p."""
    return cut()(probabilities, p)


def by_sum(kept):
    return kept / kept.sum(-1, keepdim=True)


def scattered(kept, order):
    return torch.zeros_like(kept).scatter(-1, order, kept)


def before_p(ranked, p):
    return ranked.cumsum(-1) - ranked < p


def until_p(ranked, p):
    return ranked.cumsum(-1) <= p


def cut(stays=before_p, norm=by_sum, back=scattered, descending=True):
    """Top-p; a mistake is another step."""

    def nucleus(probabilities, p):
        ranked, order = probabilities.sort(-1, descending=descending)
        return back(norm(ranked * stays(ranked, p)), order)

    return nucleus


def where(stays):
    """The tokens in their own order, chosen by `stays`."""
    return lambda rows, p: by_sum(rows * stays(rows, p))


def sorted_rows(rows):
    return rows.sort(-1, descending=True).values


nucleus.mistakes = {
    "Nothing is cut: all the tokens are still there.": lambda rows, p: rows.clone(),
    "The result is sorted: scatter brings the tokens back.": cut(back=lambda kept, order: kept),
    "The rows no longer sum to 1: divide by what is left.": cut(norm=torch.clone),
    "The result is sorted (scatter brings the tokens back), and its rows do not sum to 1.":
        cut(norm=torch.clone, back=lambda kept, order: kept),
    "You dropped the token that crosses p. It stays: without it the rest does not reach p.":
        (cut(until_p), cut(lambda ranked, p: ranked.cumsum(-1) < p)),
    "You dropped the token that crosses p, unless nothing else is left. It stays always.":
        cut(lambda ranked, p: until_p(ranked, p) | (torch.arange(ranked.shape[-1]) == 0)),
    "You dropped the token that crosses p, and rows do not sum to 1.":
        cut(until_p, norm=torch.clone),
    "You keep one token too many: the one that crosses p is the last.": (
        cut(lambda ranked, p: F.pad(before_p(ranked, p)[:, :-1], (1, 0), value=True))),
    "1/2 and 1/4 reach p = 0.75 exactly: no third token is needed. A token goes if those "
    "before it hold p or more: >=.": cut(lambda ranked, p: ranked.cumsum(-1) - ranked <= p),
    "You started from the unlikeliest token: sort in descending order.": cut(descending=False),
    "You did not sort: the running sum must go from the likeliest token down.": where(before_p),
    "Your running sum goes over the rows of the batch. Each row is alone: cumsum(-1).":
        cut(lambda ranked, p: ranked.cumsum(0) - ranked < p),
    "The tokens came back to wrong places: `gather` sorts once more, `scatter` undoes it.":
        cut(back=lambda kept, order: kept.gather(-1, order)),
    "You compare each single probability with p. The sum of the likelier ones counts.": (
        where(lambda rows, p: rows >= p), cut(lambda ranked, p: ranked < p)),
    "You compare each single probability with 1 − p. The sum of the likelier ones counts.":
        where(lambda rows, p: rows >= 1 - p),
    "You keep what has at least p times the largest probability (min-p). Top-p sums.":
        where(lambda rows, p: rows >= p * rows.amax(-1, keepdim=True)),
    "You keep a share p of the tokens (top-k). Keep as many as hold the share p together.":
        cut(lambda ranked, p: torch.arange(ranked.shape[-1]) < math.ceil(p * ranked.shape[-1])),
    "You keep the likeliest token alone.": lambda rows, p: one_hot(rows),
    "You keep what should go, after p is reached.": cut(lambda ranked, p: ~before_p(ranked, p)),
    "You divided by the sum of the whole batch: each row should sum to 1, "
    "`sum(-1, keepdim=True)`.": cut(norm=lambda kept: kept / kept.sum()),
    "You divided by p. What is left holds more than p: divide by its sum.":
        lambda rows, p: cut(norm=lambda kept: kept / p)(rows, p),
    "You cut as many in every row as in the first: each row needs a number of its own.":
        cut(lambda ranked, p: before_p(ranked, p)[:1]),
    "What says who stays is in sorted order, but you used it on the unsorted rows.":
        where(lambda rows, p: before_p(sorted_rows(rows), p)),
    "Probabilities are no logits: divide by their sum, without another softmax. (And after a "
    "softmax what was set to 0 is not 0.)": (
        cut(norm=lambda kept: kept.softmax(-1)),
        lambda rows, p: cut(norm=torch.clone)(rows, p).softmax(-1)),
    "Probabilities are no logits: divide what is left by its sum, without another softmax.":
        cut(norm=lambda kept: kept.where(kept > 0, -math.inf).softmax(-1)),
    "You applied a softmax first, but these are probabilities already.":
        lambda rows, p: nucleus.right(rows.softmax(-1), p),
}  # fmt: skip


@nucleus.then
def only_one_of_equals_need_go(answer):
    """Any of equally likely tokens may go, so the values are compared in order of size."""
    got = call(answer, torch.full((1, 4), 0.25), 0.75, name="nucleus")
    got = expect_shape(got, (1, 4), "nucleus([[0.25, 0.25, 0.25, 0.25]], 0.75)")
    right = [[1 / 3, 1 / 3, 1 / 3, 0]]
    expect_close(sorted_rows(got), right, "nucleus([[0.25] * 4], 0.75), sorted,", mistakes={
        "Four equally likely tokens, and three of them reach p = 0.75: the fourth goes. Count "
        "tokens; a limit that a probability must reach keeps all that are equal.": [[0.25] * 4],
    })  # fmt: skip


@exercise(
    inputs=[(7, 12, 768, 1024, 3), (5, 6, 96, 100, 3), (3, 6, 48, 7, 5), (1, 1, 9, 11, 1)],
    praise="2 · layers · texts · tokens · n_embd numbers of 2 bytes.",
    tolerance=1e-9,
)
def cache_size(n_layer, n_head, n_embd, T, B):
    """cache_size(n_layer, n_head, n_embd, T, B): bytes of a full KV cache in 16-bit numbers."""
    return 2 * 2 * n_layer * n_embd * T * B


def off_by(factor):
    """The right size times factor(L, H, C, T, B)."""
    return lambda *sizes: cache_size.right(*sizes) * factor(*sizes)


cache_size.mistakes = {
    "This is half of it: either you count keys and forget the values, or you count numbers "
    "and not bytes (a 16-bit number has 2).": off_by(lambda *_: 1 / 2),
    "This is a quarter of it: keys and values, and 2 bytes a number.": off_by(lambda *_: 1 / 4),
    "This is twice too much: a 16-bit number has 2 bytes, not 4.": off_by(lambda *_: 2),
    "This is 8 times too much: bytes are asked for, not bits.": off_by(lambda *_: 8),
    "This is 4 times too much: did you count bits, and keys alone?": off_by(lambda *_: 4),
    "You multiplied by the heads: each has n_embd / n_head.": off_by(lambda L, H, C, T, B: H),
    "You counted one head only.": off_by(lambda L, H, C, T, B: 1 / H),
    "You counted one layer only: each has its own keys.": off_by(lambda L, H, C, T, B: 1 / L),
    "You counted one text only: each has its own cache.": off_by(lambda L, H, C, T, B: 1 / B),
    "You counted one token only: the cache keeps all T.": off_by(lambda L, H, C, T, B: 1 / T),
    "T stands twice. The weights (T, T) are not kept.": off_by(lambda L, H, C, T, B: T),
    "You kept the queries, too. Nobody asks for old ones.": off_by(lambda *_: 3 / 2),
    "This is in millions of bytes. The task asks for bytes.":
        (off_by(lambda *_: 1e-6), off_by(lambda *_: 2**-20)),
    "You counted one number a head, not n_embd / n_head.": off_by(lambda L, H, C, T, B: H / C),
    "n_embd stands twice in your formula. Keys are kept, not the weights that make them.":
        off_by(lambda L, H, C, T, B: C),
    "You divided by 2. A number of 16 bits has 2 bytes: multiply.": off_by(lambda *_: 1 / 8),
    "You added the sizes of keys and values of one token to T. Multiply.":
        lambda L, H, C, T, B: 4 * L * B * (C + T),
}  # fmt: skip


def new_and_old(B, H, T, S, hs, seed):
    new = [normal(B, H, T, hs, seed=seed + i) for i in range(3)]
    return (*new, *(normal(B, H, S, hs, seed=seed + i) for i in (3, 4)))


@exercise(
    inputs=[new_and_old(*sizes, seed=10 * i) for i, sizes in enumerate(
        [(2, 3, 3, 5, 4), (1, 2, 1, 4, 3), (2, 1, 4, 0, 5), (2, 2, 3, 3, 4), (1, 2, 5, 2, 5)])],
    praise="the last rows of the full attention, and nothing worked out twice.",
)  # fmt: skip
def attend_new(q, k, v, old_k, old_v):
    """attend_new(q, k, v, old_k, old_v): outputs of T new tokens, and the cache with them."""
    return attended()(q, k, v, old_k, old_v)


def both(old, new):
    return torch.cat((old, new), dim=2)


def last_rows(T, S):
    return causal_mask(S + T)[S:]


def attended(mask=last_rows, joined=both, kept=both, scale=lambda hs: 1.0):
    """Attention with a cache; a mistake is another part of it."""

    def attend_new(q, k, v, old_k, old_v):
        T, S = q.shape[2], old_k.shape[2]
        q = q * scale(q.shape[-1])
        out, _ = attention(q, joined(old_k, k), joined(old_v, v), mask(T, S))
        return out, kept(old_k, k), kept(old_v, v)

    return attend_new


def changed(change):
    """What is returned, changed: change(out, all_k, all_v)."""
    return lambda *given: change(*attend_new.right(*given))


def triangle(diagonal):
    """The rows of the new tokens, moved by so many keys."""
    return lambda T, S: torch.ones(T, S + T).tril(S + diagonal).bool()


def no_mask(T, S):
    return None


def newest(old, new):
    return new


def oldest(old, new):
    return old


def new_first(old, new):
    return torch.cat((new, old), dim=2)


attend_new.mistakes = {
    "The new tokens see each other's future. With several new tokens a mask is needed: the last T "
    "rows of causal_mask(S + T).": attended(no_mask),
    "Your mask is the upper left corner of the triangle: the first new token sees the first key "
    "only. The new tokens are the last rows: causal_mask(S + T)[S:].":
        attended(lambda T, S: causal_mask(S + T)[:T]),
    "The new tokens look at each other only: put the old keys and values before the new.": (
        attended(lambda T, S: causal_mask(T), newest),
        attended(lambda T, S: causal_mask(T), newest, newest)),
    "The new tokens look at each other only: put the old keys and values before the new. (And a "
    "mask is needed.)": (attended(no_mask, newest), attended(no_mask, newest, newest)),
    "You put the new tokens before the old ones, so your mask hides the wrong ones. Old first.": (
        attended(joined=new_first, kept=new_first), attended(joined=new_first)),
    "The scale is missing or wrong: divide the scores by √hs once.": attended(scale=math.sqrt),
    "The scale is there twice: `attention` has it already.": attended(scale=lambda hs: hs**-0.5),
    "Your mask is one key too generous: each new token sees the one after it, too. The rows of "
    "the new tokens begin at row S: causal_mask(S + T)[S:].": attended(triangle(1)),
    "A new token does not see itself: your mask is one row too high. Token S is row S, counted "
    "from 0: causal_mask(S + T)[S:].": attended(triangle(-1)),
    "Your mask is turned round: new tokens see what comes after them. True is what may be seen.":
        attended(lambda T, S: causal_mask(S + T).T[S:]),
    "Keys and values are swapped: the scores are queries times keys.": lambda q, k, v, old_k, old_v:
        (attend_new.right(q, v, k, old_v, old_k)[0], both(old_k, k), both(old_v, v)),
    "You joined the new values to the old keys: two caches, one of each.":
        lambda q, k, v, old_k, old_v: attend_new.right(q, k, v, old_k, old_k),
    "The new tokens look at the old ones only. A token may look at itself, too.":
        (attended(no_mask, oldest), attended(no_mask, oldest, oldest)),
    "The outputs come first: return (out, all_k, all_v).":
        (changed(lambda out, k, v: (k, v, out)), changed(lambda out, k, v: (v, k, out))),
    "all_k and all_v are swapped: (out, all_k, all_v).": changed(lambda out, k, v: (out, v, k)),
    "The outputs are right, but in the cache new tokens stand before old ones. They are read "
    "later: the old ones come first.": attended(kept=new_first),
    "The outputs are right, but the cache that you return holds the new tokens only: the next call "
    "would have forgotten the rest.": attended(kept=newest),
    "The outputs are right, but what you return is the old cache: the new tokens are missing, and "
    "the next call would not see them.": attended(kept=oldest),
    "These are the outputs alone, not (out, all_k, all_v).": changed(lambda out, k, v: out),
    "Keys and values are one tensor here. Return three: (out, all_k, all_v).": (
        changed(lambda out, k, v: (out, torch.stack((k, v)))),
        changed(lambda out, k, v: (out, (k, v)))),
    "`attention` gives two things, the outputs and the weights: `out, _ = attention(...)`.":
        lambda q, k, v, old_k, old_v: (
            attention(q, both(old_k, k), both(old_v, v), last_rows(q.shape[2], old_k.shape[2])),
            both(old_k, k), both(old_v, v)),
    "These are the weights of the attention. The outputs come first: `out, _ = attention(...)`.":
        lambda q, k, v, old_k, old_v: (
            attention(q, both(old_k, k), both(old_v, v), last_rows(q.shape[2], old_k.shape[2]))[1],
            both(old_k, k), both(old_v, v)),
}  # fmt: skip


class Reader(nn.Module):
    """A fixed model of 11 symbols whose next token depends on all that it reads, and on the order.

    It can read `most` tokens: a longer text is an error, as in a GPT.
    """

    __name__ = "model"  # in what a check says

    def __init__(self, most, seed):
        super().__init__()
        self.most = most
        self.table = normal(11, 11, seed=seed + 100)

    def forward(self, ids):
        T = ids.shape[1]
        if T > self.most:
            raise ValueError(
                f"you gave the model {T} tokens, and it reads {self.most} at most. Crop to the "
                "last block_size, in each step"
            )
        # Early tokens count, too: a weight for each place, counted from the left.
        places = torch.arange(1, T + 1, dtype=torch.float32)
        return (self.table[ids] * (places.sin() + 1.5)[:, None]).cumsum(1)


def to_write(B, T, n, window, seed):
    ids = torch.randint(11, (B, T), generator=torch.Generator().manual_seed(seed))
    return Reader(window, seed), ids, n, window


@exercise(
    inputs=[to_write(*sizes, seed) for seed, sizes in enumerate(
        [(2, 3, 9, 6), (3, 9, 4, 5), (1, 1, 5, 8), (2, 4, 3, 4), (1, 3, 0, 8), (1, 2, 3, 1),
         (2, 5, 1, 5), (4, 2, 12, 7)], 1)],
    praise="it always reads as much as fits, and never more.",
)  # fmt: skip
def write_greedily(model, ids, n_tokens, block_size):
    """write_greedily(model, ids, n_tokens, block_size): (B, T) to (B, T + n), cropped to fit."""
    return writing()(model, ids, n_tokens, block_size)


def last(ids, window):
    return ids[:, -window:]


def greedy(logits):
    return logits[:, -1].argmax(-1, keepdim=True)


def appended(ids, new):
    return torch.cat([ids, new], dim=1)


def writing(read=last, choose=greedy, append=appended, more=0):
    """Write greedily; a mistake is another part of it."""

    def write(model, ids, n_tokens, block_size):
        for _ in range(n_tokens + more):
            ids = append(ids, choose(model(read(ids, block_size))))
        return ids

    return write


def text(change):
    """What is returned, changed: change(text, T, n, window)."""

    def wrong(model, ids, n_tokens, block_size):
        written = write_greedily.right(model, ids, n_tokens, block_size)
        return change(written, ids.shape[1], n_tokens, block_size)

    return wrong


def shortened(model, ids, n_tokens, block_size):
    return writing(append=lambda ids, new: appended(last(ids, block_size), new))(
        model, ids, n_tokens, block_size
    )


def never_appended(model, ids, n_tokens, block_size):
    new = greedy(model(last(ids, block_size)))
    return torch.cat([ids, new.repeat(1, n_tokens)], dim=1)


def windows_only(model, ids, n_tokens, block_size):
    """The prompt is cropped once, and the text with it."""
    return write_greedily.right(model, last(ids, block_size), n_tokens, block_size)


CROPPED = (
    "You cropped the text itself, so its beginning is lost. Crop what the model reads, and keep "
    "`ids` whole."
)
write_greedily.mistakes = {
    "You return the new tokens without the prompt.": text(lambda ids, T, n, W: ids[:, T:]),
    "You return the last new token alone.": text(lambda ids, T, n, W: ids[:, -1:]),
    CROPPED: (windows_only, shortened, text(lambda ids, T, n, W: ids[:, -W:])),
    "The logits are those of the first place. What comes next is told at the last one: "
    "`[:, -1]`.": writing(choose=lambda logits: logits[:, 0].argmax(-1, keepdim=True)),
    "You take the least likely token: argmax, not argmin.":
        writing(choose=lambda logits: logits[:, -1].argmin(-1, keepdim=True)),
    "You wrote the largest logit itself. Its index is the token: argmax, not max.":
        writing(choose=lambda logits: logits[:, -1].amax(-1, keepdim=True).long()),
    "All texts got the token of the first one: argmax over the last dim, for each text.":
        writing(choose=lambda logits: greedy(logits[:1]).expand(len(logits), 1)),
    "You cropped the wrong end. The model reads the first tokens for ever, and never sees what it "
    "wrote: take the last ones, `ids[:, -block_size:]`.":
        writing(lambda ids, window: ids[:, :window]),
    "You gave the model the same text twice. What it wrote has to be appended before you ask "
    "again.": never_appended,
    "You gave the model the last token alone. There is no cache here, so it needs the tokens "
    "before it.": writing(lambda ids, window: ids[:, -1:]),
    "You read one token less than fits. A text of up to block_size tokens can be read whole.": (
        writing(lambda ids, window: ids[:, -max(window - 1, 1):]),
        writing(lambda ids, window: last(ids[:, ids.shape[1] == window > 1:], window))),
    "You read half of what fits. A text of up to block_size tokens can be read whole.":
        writing(lambda ids, window: ids[:, -max(1, window // 2):]),
    "You wrote one token too many: n_tokens are asked for.": writing(more=1),
    "You wrote one token too few: n_tokens are asked for.": writing(more=-1),
    "You write until the text has n_tokens in all. Write n_tokens more.":
        lambda model, ids, n, W: write_greedily.right(model, ids, max(0, n - ids.shape[1]), W),
    "You write until the window is full. Write n_tokens.":
        lambda model, ids, n, W: write_greedily.right(model, ids, max(0, W - ids.shape[1]), W),
    "You put the new tokens before the text: they go to its end.":
        writing(append=lambda ids, new: torch.cat([new, ids], dim=1)),
    "You gave the prompt back: nothing was written.": text(lambda ids, T, n, W: ids[:, :T]),
    "These are logits. Give the text.": lambda model, ids, n, W: model(last(ids, W)),
}  # fmt: skip
