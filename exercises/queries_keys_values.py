"""The exercises of the chapter "Queries, keys and values"."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from exercises.check import (
    NotAttempted,
    NotYet,
    call,
    checked,
    exercise,
    expect,
    expect_close,
    expect_shape,
    normal,
)
from helpers.attention import causal_mask

WRONG_DIM = (
    "The columns of your weights sum to 1 and the rows do not: the softmax runs over dim -2. "
    "Each row is one query's distribution over the keys: dim=-1."
)
NO_SCALE = "The scale is missing: divide the scores by √hs, the root of the last dimension."
SCALE_HS = "You divide by hs itself. The scale is 1/√hs: the root of the last dimension."
SCALE_UP = "You multiply by √hs. The scale makes scores smaller: divide."
UPPER = (
    "This is the upper triangle: each token looks at itself and the future. The past is the "
    "lower one: keep column j of row i where j <= i."
)
AFTER = (
    "The rows of your weights do not sum to 1: you masked after the softmax without renormalising, "
    "and the hidden future still takes its share. Put -inf into the scores before the softmax."
)
ZEROS = (
    "You put 0 into the scores where looking is forbidden. But e⁰ = 1, so the future still gets "
    "weight. Put -inf there: e^(-inf) is 0."
)
NO_MASK = "The future is not hidden: row i has weight on columns after i. Mask the scores."
SELF = (
    "Your mask hides the token itself too, so the first row has nothing to look at: NaN. Keep "
    "the diagonal: j <= i."
)
BATCH = (
    "The softmax runs over dim 0, the batch: other sequences decide what a token sees. Each row "
    "is one query's distribution over the keys: dim=-1."
)
TURNED = (
    "Your mask is the wrong way round, so the last row has nothing to look at: NaN. masked_fill "
    "writes where its mask is True, and causal_mask is True where looking is allowed: use ~mask."
)
INF_TIMES_0 = (
    "Everything is NaN: -inf times 0 is not a number. Do not multiply by -inf; write it with "
    "masked_fill(~mask, -inf)."
)
FINITE = (
    "The future gets in: your stand-in for -inf is a finite number, and scores can be as low. "
    "Use float('-inf')."
)
HALF = (
    "In half precision (float16) this fails or lets the future in: your stand-in for -inf is a "
    "finite number. It may not fit into the type, and scores can be as low. Use float('-inf')."
)
HALF_NAN = (
    "In half precision (float16) your weights are NaN or do not sum to 1. Either -inf was "
    "multiplied by 0, or every e^score that you kept of a row was too small for the type, or one "
    "too large. Write -inf into the scores with masked_fill, then take F.softmax."
)
KEY_UNUSED = "Queries and keys come from the same matrix: self.key is not used."
TOKENS = ("Anna", "met", "Tom", ".", "He")
# What each token says of itself: is it a person, female, male, something that is done?
KEYS = torch.tensor([[1.0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]])


@checked
def ask_for_the_verb(answer):
    """A query, 4 numbers, that puts more than 0.8 of its weight on "met"."""
    query = expect_shape(answer, (4,), "the query")
    expect(bool(torch.isfinite(query).all()), "The query contains NaN or infinity.")
    zeros = "A query of zeros asks for nothing: every score is 0 and every weight 1/5."
    expect(bool(query.any()), zeros)
    scores = KEYS.double() @ query
    weights, loud = torch.softmax(scores / 2, -1), torch.softmax(scores, -1)[1]
    met, best = weights[1], int(weights.argmax())

    def shown(weight):  # cut off, not rounded: 0.7996 is not 0.80
        return f"{math.floor(100 * weight) / 100:.2f}"

    other = f'Your query finds "{TOKENS[best]}" instead, with weight {shown(weights[best])}.'
    expect(bool(met == weights[best]), other)
    expect(
        bool(met > 0.8 or loud <= 0.8),
        f'Without the scale, "met" would have {shown(loud)}. But scores are divided by √4 = 2, and '
        f"that leaves {shown(met)}. A longer query asks louder.",
    )
    expect(
        bool(met > 0.8),
        f'"met" has weight {shown(met)}, more than any other, but not above 0.8. Ask louder, or '
        "ask against the others.",
    )
    return f'"met" gets {shown(met)} of the weight.'


def hide(scores, allowed=causal_mask, fill=-math.inf):
    return scores.masked_fill(~allowed(scores.shape[-1]), fill)


def itself_too(T):
    return causal_mask(T).tril(-1)


def upper(T):
    return causal_mask(T).T


def everything(T):
    return torch.ones(T, T, dtype=torch.bool)


@exercise(
    inputs=[(2 * normal(*BTT, seed=1),) for BTT in [(2, 5, 5), (4, 4, 4), (1, 3, 3), (3, 1, 1)]],
    praise="rows sum to 1, the future is exactly 0, in half precision too.",
    clash="The mask is (T, T), and T is `scores.shape[-1]`.",
    backward=True,
)
def causal_weights(scores):
    """causal_weights(scores): masked scores (B, T, T) to weights (B, T, T)."""
    return hide(scores).softmax(-1)


causal_weights.mistakes = {
    AFTER: lambda s: s.softmax(-1).tril(),
    ZEROS: lambda s: s.tril().softmax(-1),
    FINITE: tuple(lambda s, f=f: hide(s, fill=f).softmax(-1) for f in (-1.0, -5.0, -10.0)),
    WRONG_DIM: lambda s: hide(s).softmax(-2),
    "Your columns sum to 1 and your rows do not: dim=1 of (B, T, T) are the queries. Use -1, and "
    "mask before the softmax.": lambda s: s.softmax(1).tril(),
    BATCH: (lambda s: s.softmax(0).tril(), lambda s: hide(s).softmax(0)),
    UPPER: lambda s: hide(s, upper).softmax(-1),
    NO_MASK: lambda s: s.softmax(-1),
    "You scale again. These scores are scaled already: only mask them and take the softmax.":
        lambda s: hide(s / s.shape[-1] ** 0.5).softmax(-1),
    "These are the masked scores: the softmax over the last dimension is missing.":
        (hide, torch.tril, lambda s: hide(s, fill=-1e9)),
    SELF: lambda s: hide(s, itself_too).softmax(-1),
    "The diagonal is 0: each token may look at itself too, j <= i.":
        lambda s: hide(s, itself_too).softmax(-1).nan_to_num(),
    TURNED: lambda s: s.masked_fill(causal_mask(s.shape[-1]), -math.inf).softmax(-1),
    INF_TIMES_0: lambda s: (s - math.inf * ~causal_mask(s.shape[-1])).softmax(-1),
    "Your mask has as many rows as there are sequences: T is `scores.shape[-1]`.":
        lambda s: s.masked_fill(~causal_mask(len(s)), -math.inf).softmax(-1),
    "These are e^score, not yet divided by the sum of their row.": lambda s: s.exp().tril(),
    "You wrote -inf into the weights. It belongs into the scores, before the softmax.":
        lambda s: hide(s.softmax(-1)),
    "You took the softmax twice: once is enough, over the masked scores.":
        (lambda s: hide(s.softmax(-1)).softmax(-1), lambda s: hide(s).softmax(-1).softmax(-1)),
    "These are the logarithms of the weights: use softmax, not log_softmax.":
        lambda s: hide(s).log_softmax(-1),
    "This is the plain average of the past, as in chapter 03: the scores have no effect.":
        lambda s: hide(s * 0).softmax(-1),
}  # fmt: skip


@causal_weights.then
def in_half_precision(answer):
    """Scores as low as the type has them, high ones, and a past far below the future."""
    lowest, few = torch.full((1, 4, 4), torch.finfo(torch.float16).min), normal(2, 4, 4, seed=5)
    below = ((few * spread + low).tril() for spread, low in [(1, -30), (1000, -30000)])
    for scores in (x.half() for x in (lowest, few + 30, *below)):
        try:
            got = call(answer, scores, name="causal_weights, given float16 scores,")
        except NotYet as problem:
            raise NotYet(HALF if "overflow" in str(problem) else str(problem)) from None
        got = expect_shape(got, scores.shape, "causal_weights(scores) in half precision")
        expect(not got.isnan().any(), HALF_NAN)
        expect(not got.triu(1).any(), HALF)
        expect(bool(((got.sum(-1) - 1).abs() < 1e-2).all()), HALF_NAN)
        want = causal_weights.right(scores.double())
        expect_close(got, want, "causal_weights(scores) in half precision", tolerance=5e-3)


def formula(q, k, v, scale=None, allowed=causal_mask, fill=-math.inf, softmax=F.softmax, dim=-1):
    """Attention; each setting can be made a mistake."""
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    return softmax(hide(scores, allowed, fill), dim=dim) @ v


def scores_of(q, k):
    return q @ k.mT / q.shape[-1] ** 0.5


# What the finder of associative recall can do without (studies/recall.py), and what is believed.
NEEDED = {"places": False, "own keys": False, "value matrix": False, "comparing": True}
BELIEVED = {
    "places": "Try it without places: where a pair stands says nothing about the answer, and the "
    "head finds it by its letter.",
    "own keys": "Try `k = q` in a head of your own. The tables of tokens are learned: one matrix "
    "is enough to make e? alike to e1, e2, e3 …",
    "value matrix": "Try `v = x`. The votes of the last token are a matrix already, and can read "
    "the digit from x itself.",
    "comparing": "Weights by listener do not compare queries with keys, and section 1 has measured "
    "them: about 32 %, what counting gives.",
}


@checked
def what_recall_needs(answer):
    """A dictionary: each of four parts → does associative recall need it?"""
    expect(
        isinstance(answer, dict) and set(answer) == set(NEEDED),
        f"Give a dictionary with a True or False for each of {', '.join(NEEDED)}.",
    )
    if any(said is ... for said in answer.values()):
        raise NotAttempted
    for part, said in answer.items():
        expect(said is True or said is False, f'"{part}" should be True or False.')
    for part, needed in NEEDED.items():
        expect(answer[part] is needed, BELIEVED[part])
    return "it is the comparison that finds; the tables can learn the rest."


def near(T, window):
    """True where a token may look: at itself and the window - 1 tokens before it."""
    return causal_mask(T) & ~causal_mask(T).tril(-window)


class WindowHead(nn.Module):
    """WindowHead(C, hs, window): a head that sees itself and the window - 1 tokens before."""

    def __init__(self, n_embd, head_size, window):
        super().__init__()
        self.window = window
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)

    def forward(self, x, near=near, change=lambda *qkv: qkv, **wrong):
        q, k, v = change(self.query(x), self.key(x), self.value(x))
        return formula(q, k, v, allowed=lambda T: near(T, self.window), **wrong)


window_head = exercise(
    inputs=[
        ((C, hs, window), 4 * normal(B, T, C, seed=T))
        for C, hs, window, B, T in [(6, 4, 3, 2, 7), (5, 5, 2, 2, 4), (6, 4, 3, 2, 2),
                                    (4, 3, 1, 2, 5), (4, 2, 5, 1, 40)]
    ],
    praise="itself and the window before, no older token and no future.",
    clash="Is the mask made in `__init__`? Texts differ in length: make it in `forward`.",
    backward=True,
)(WindowHead)  # fmt: skip

forward = WindowHead.forward
window_head.mistakes = {
    "The window is one too long: window tokens in all, the token itself among them.":
        lambda h, x: forward(h, x, lambda T, w: near(T, w + 1)),
    "The window is one too short: the token itself and window - 1 before it.":
        lambda h, x: forward(h, x, lambda T, w: near(T, w - 1)),
    "This looks at the whole past: older tokens than the window are not hidden.":
        lambda h, x: forward(h, x, lambda T, w: causal_mask(T)),
    "Your window is a fixed one, whatever `window` says: keep it as self.window.":
        lambda h, x: forward(h, x, lambda T, w: near(T, 3)),
    "Your window reaches into the future as well: keep j <= i.":
        lambda h, x: forward(h, x, lambda T, w: near(T, w) | near(T, w).T),
    "Your window ends in the past, but reaches over the whole future: keep j <= i.":
        lambda h, x: forward(h, x, lambda T, w: ~causal_mask(T).tril(-w)),
    "Your window lies in the future: token i sees i, i + 1 … Turn i - j round.":
        lambda h, x: forward(h, x, lambda T, w: near(T, w).T),
    "This hides the window and keeps the older tokens: turn the second part of the mask round.":
        lambda h, x: forward(h, x, lambda T, w: causal_mask(T) & causal_mask(T).tril(-w)),
    "Your windows are blocks that lie side by side. Each token has its own, which ends with it.":
        lambda h, x: forward(h, x, lambda T, w: causal_mask(T) & (blocks(T, w) == blocks(T, w).T)),
    "Your window hides the token itself: it is one of the `window` tokens.":
        (lambda h, x: forward(h, x, lambda T, w: near(T, w) & itself_too(T)),
         lambda h, x: forward(h, x, lambda T, w: near(T, w + 1) & itself_too(T))),
    NO_MASK: lambda h, x: forward(h, x, lambda T, w: everything(T)),
    AFTER: lambda h, x: scores_of(h.query(x), h.key(x)).softmax(-1) * near(x.shape[1], h.window)
        @ h.value(x),
    ZEROS: lambda h, x: forward(h, x, fill=0.0),
    FINITE: tuple(lambda h, x, f=f: forward(h, x, fill=f) for f in (-1.0, -10.0)),
    TURNED: lambda h, x: forward(h, x, lambda T, w: ~near(T, w)),
    WRONG_DIM: lambda h, x: forward(h, x, dim=-2),
    "Queries and keys are swapped: self.query(x) makes the queries.":
        lambda h, x: forward(h, x, change=lambda q, k, v: (k, q, v)),
    NO_SCALE: lambda h, x: forward(h, x, scale=1),
    SCALE_HS: lambda h, x: forward(h, x, scale=1 / h.query.out_features),
    SCALE_UP: lambda h, x: forward(h, x, scale=h.query.out_features**0.5),
    "You scale by the width of x, √C. The scale is √head_size, the length of a query.":
        lambda h, x: forward(h, x, scale=x.shape[-1] ** -0.5),
    KEY_UNUSED: lambda h, x: forward(h, x, change=lambda q, k, v: (q, q, v)),
    "Queries and keys come from the same matrix: self.query is not used.":
        lambda h, x: forward(h, x, change=lambda q, k, v: (k, k, v)),
    "Keys and values come from the same matrix: self.value is not used.":
        lambda h, x: forward(h, x, change=lambda q, k, v: (q, k, k)),
    "You mix x itself: the values are self.value(x).":
        lambda h, x: forward(h, x, change=lambda q, k, v: (q, k, x)),
}  # fmt: skip


def blocks(T, window):
    """Which block each token lies in, as a column."""
    return torch.arange(T)[:, None] // window


@window_head.then
def for_one_text_after_another(answer):
    head, right = answer(4, 3, 2), WindowHead(4, 3, 2)
    right.load_state_dict(head.state_dict(), strict=False)
    for T in (5, 3, 9):
        x, what = normal(1, T, 4, seed=T), f"the same head, now given {T} tokens,"
        expect_close(call(head, x, name=what), right(x), what)
