"""The exercises of the chapter "Queries, keys and values"."""

import math
from itertools import permutations

import torch
import torch.nn.functional as F
from torch import nn

from exercises.check import (
    NotYet,
    call,
    checked,
    exercise,
    expect,
    expect_close,
    normal,
    reported,
    tensor,
)
from helpers.attention import causal_mask

WRONG_DIM = (
    "The columns of your weights sum to 1 and the rows do not: the softmax runs over dim -2. "
    "Each row is one query's distribution over the keys: dim=-1."
)
NO_SCALE = "The scale is missing: divide the scores by √hs, the root of the last dimension."
SCALE_HS = "You divide by hs itself. The scale is 1/√hs: the root of the last dimension."
SCALE_UP = "You multiply by √hs. The scale makes scores smaller: divide."
AFTER = (
    "The rows of your weights do not sum to 1: you masked after the softmax without renormalising, "
    "and the hidden future still takes its share. Put -inf into the scores before the softmax."
)
ZEROS = (
    "You put 0 into the scores where attending is forbidden. But e⁰ = 1, so the future still gets "
    "weight. Put -inf there: e^(-inf) is 0."
)
NO_MASK = "The future is not hidden: row i has weight on columns after i. Mask the scores."
TURNED = (
    "Your mask is the wrong way round, so the last row has nothing to attend to: NaN. masked_fill "
    "writes where its mask is True, and causal_mask is True where attending is allowed: use ~mask."
)
FINITE = (
    "The future gets in: your stand-in for -inf is a finite number, and scores can be as low. "
    "Use float('-inf')."
)
TOKENS = ("Anna", "met", "Tom", ".", "He")
# What each token says of itself: is it a person, female, male, something that is done?
KEYS = torch.tensor([[1.0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]])


@checked
def ask_for_the_verb(answer):
    """A query, 4 numbers, that puts more than 0.8 of its weight on "met"."""
    query = tensor(answer, "the query")
    expect(
        query.shape == (4,),
        "A query has one number for each number of a key, four in all (person, female, male, "
        f"done), whatever the number of tokens. Yours has the shape {tuple(query.shape)}.",
    )
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
        f"that leaves {shown(met)}. A longer query gives larger scores.",
    )
    expect(
        bool(met > 0.8),
        f'"met" has weight {shown(met)}, more than any other, but not above 0.8. Make the '
        "query longer, or let it point away from the other keys.",
    )
    return f'"met" gets {shown(met)} of the weight.'


def hide(scores, allowed=causal_mask, fill=-math.inf):
    return scores.masked_fill(~allowed(scores.shape[-1]), fill)


def itself_too(T):
    return causal_mask(T).tril(-1)


def everything(T):
    return torch.ones(T, T, dtype=torch.bool)


# Which of six attentions lets an output hear a later token, and why.
LEAKS = {
    "keys_centred": False,
    "values_centred": True,
    "largest_subtracted": False,
    "divided_by_largest": True,
    "roles_swapped": False,
    "softmax_twice": True,
}
WHY = {
    "keys_centred": "The mean of the keys adds q · mean to *all* scores of a query, and what is "
    "added to a whole row changes no weight, but for rounding.",
    "values_centred": "The mean of the values includes the later tokens, and it is subtracted from "
    "every output. Draw new values for token 4, too.",
    "largest_subtracted": "The largest score of the row may lie in the future, but it is "
    "subtracted from the whole row, and that changes no weight. A millionth is rounding.",
    "divided_by_largest": "The largest score of the row may lie in the future, and a row that is "
    "divided by more has flatter weights. Try several draws.",
    "roles_swapped": "The scores are k · q instead of q · k, another function; but in row i they "
    "are those of tokens 0 … i, and the mask does the rest.",
    "softmax_twice": "After the first softmax the scores of the past know the sum over the whole "
    "row, future included: they are smaller if a later one is large.",
}

# What all six say when the test, not an attention, is misread: how many are True, how many wrong.
ALL_LEAK = (
    "Not all six leak. Compare only the outputs *before* token 4, [:4], and ignore a millionth: "
    "that is rounding."
)
NONE_LEAKS = (
    "Some of the six leak. Are row 4 of q, of k *and* of v other numbers the second time, in "
    "copies (`q.clone()`)? And is it the largest change of several draws?"
)
TURNED_ROUND = "All six are the wrong way round: True says that it leaks."


@checked
def which_leak(answer):
    """A dictionary: each of six attentions → does an output hear a later token?"""
    wanted = f"Give a dictionary with a True or False for each of {', '.join(LEAKS)}."
    if isinstance(answer, dict):
        still_open = [name for name, leaks in answer.items() if leaks is ...]
        if 0 < len(still_open) < len(answer):
            raise NotYet(f"Still to be filled in, with True or False: {', '.join(still_open)}.")
    said = reported(answer, LEAKS, wanted)
    wrong = [name for name, leaks in LEAKS.items() if said[name] != leaks]
    leaking = sum(said.values())
    expect(leaking < len(LEAKS), ALL_LEAK)
    expect(leaking > 0, NONE_LEAKS)
    expect(len(wrong) < len(LEAKS), TURNED_ROUND)
    if wrong:
        more = f" ({len(wrong)} of the six are not yet right.)" * (len(wrong) > 1)
        raise NotYet(f"{wrong[0]}: look again. {WHY[wrong[0]]}{more}")
    return "What is added to a whole row is harmless. What scales a row, or changes the values, "
    "leaks."


def formula(q, k, v, scale=None, allowed=causal_mask, fill=-math.inf, softmax=F.softmax, dim=-1):
    """Attention; each setting can be made a mistake."""
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    return softmax(hide(scores, allowed, fill), dim=dim) @ v


def scores_of(q, k):
    return q @ k.mT / q.shape[-1] ** 0.5


# The shares that the finder of associative recall reaches without a part: where seeds 0 to 5 lie,
# with room on both sides. What is needed is judged by the shares that are given: below nine of ten.
SHARES = {"softmax": (0.95, 1.0), "own queries": (0.25, 0.40), "width": (0.65, 0.93)}
NOT_SO = {
    "softmax": "Is the future multiplied by 0 (−∞ without a softmax stays −∞), and are the scores "
    "themselves multiplied with the values?",
    "own queries": "All tokens should use one query, so that the question cannot say what it asks "
    "for: `self.one.expand_as(x)` takes the place of `self.query(x)`, and the keys stay.",
    "width": "Queries and keys should have one number each, the values 32. (Two are enough: try.)",
}
GUESSED = (
    "Guessing gets one in eight right. Pass what `learn` returns to `share_right`, and check for "
    "weights that are NaN, as −∞ · 0 is."
)


def fit(shares):
    """Is each of the three shares, in the order of SHARES, where it should be?"""
    return all(low <= x <= high for x, (low, high) in zip(shares, SHARES.values(), strict=True))


@checked
def what_recall_needs(answer):
    """taken_away: the share right without each of three parts, and the parts that are needed."""
    shares, needed = reported(
        answer,
        (dict.fromkeys(SHARES, 0.5), ["width"]),
        f"Set taken_away to a pair: one fraction for each of {', '.join(SHARES)}, "
        '{"softmax": 0.5, …}, and the list of needed parts.',
    )
    percent = any(share > 1.001 for share in shares.values())
    expect(not percent, "Give fractions between 0 and 1, as `share_right` does.")
    three = list(shares.values())
    expect(not fit([1 - x for x in three]), "These are the fractions of *wrong* answers.")
    exchanged = not fit(three) and any(map(fit, permutations(three)))
    expect(
        not exchanged, "These are the right numbers, but for other parts: are two of them swapped?"
    )
    for part, (low, high) in SHARES.items():
        expect(not 0.1 < shares[part] < 0.15, f'"{part}": {GUESSED}')
        expect(low <= shares[part] <= high, f'"{part}": {NOT_SO[part]}')
    expect(
        all(part in SHARES for part in needed),
        "The numbers are right. Second comes a list of the needed parts, with the same names: "
        "those without which the fraction is below 0.9.",
    )
    expect(
        set(needed) == {part for part, share in shares.items() if share < 0.9},
        "The numbers are right. The needed parts are those without which the fraction is below "
        "0.9.",
    )
    return (
        "The question must say what it looks for. With one number per query the head learns more "
        "slowly (75 to 85% in these 600 steps). Without a softmax it still solves the task."
    )


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
    praise="Each token attends to itself and to the window before it, to no older token and no "
    "future.",
    clash="Make the mask in `forward`, (T, T) for T = x.shape[1], not in `__init__`, and not from "
    "the size of the batch.",
    backward=True,
)(WindowHead)  # fmt: skip

forward = WindowHead.forward
window_head.mistakes = {
    "The window is one too long: it has `window` tokens in all, the token itself among them.":
        lambda h, x: forward(h, x, lambda T, w: near(T, w + 1)),
    "The window is one too short: the token itself and window - 1 before it.":
        lambda h, x: forward(h, x, lambda T, w: near(T, w - 1)),
    "Your head attends to the whole past: tokens older than the window are not hidden.":
        lambda h, x: forward(h, x, lambda T, w: causal_mask(T)),
    "Your window is a fixed one, whatever `window` says: keep it as self.window.":
        lambda h, x: forward(h, x, lambda T, w: near(T, 3)),
    "Your window reaches into the future as well: keep j <= i.":
        lambda h, x: forward(h, x, lambda T, w: near(T, w) | near(T, w).T),
    "Your window ends in the past, but reaches over the whole future: keep j <= i.":
        lambda h, x: forward(h, x, lambda T, w: ~causal_mask(T).tril(-w)),
    "Your window lies in the future: token i attends to i, i + 1, … Turn i - j round.":
        lambda h, x: forward(h, x, lambda T, w: near(T, w).T),
    "This hides the window and keeps the older tokens: turn the second part of the mask round.":
        lambda h, x: forward(h, x, lambda T, w: causal_mask(T) & causal_mask(T).tril(-w)),
    "Your windows are blocks that lie side by side. Each token has its own, which ends at that "
    "token.":
        lambda h, x: forward(h, x, lambda T, w: causal_mask(T) & (blocks(T, w) == blocks(T, w).T)),
    "Your window hides the token itself: it is one of the `window` tokens.":
        (lambda h, x: forward(h, x, lambda T, w: near(T, w) & itself_too(T)),
         lambda h, x: forward(h, x, lambda T, w: near(T, w + 1) & itself_too(T))),
    NO_MASK: lambda h, x: forward(h, x, lambda T, w: everything(T)),
    AFTER: tuple(
        lambda h, x, ahead=ahead: scores_of(h.query(x), h.key(x)).masked_fill(
            ahead * ~causal_mask(x.shape[1]), -torch.inf).softmax(-1) * near(x.shape[1], h.window)
        @ h.value(x) for ahead in (False, True)),
    ZEROS: lambda h, x: forward(h, x, fill=0.0),
    FINITE: tuple(lambda h, x, f=f: forward(h, x, fill=f) for f in (-1.0, -10.0)),
    TURNED: lambda h, x: forward(h, x, lambda T, w: ~near(T, w)),
    WRONG_DIM: lambda h, x: forward(h, x, dim=-2),
    "Two of query, key and value are swapped: a query meets keys, and the values are mixed.":
        tuple(lambda h, x, order=order: forward(h, x, change=lambda *qkv: [qkv[i] for i in order])
              for order in ((1, 0, 2), (0, 2, 1), (2, 1, 0))),
    "You cut the text to the window. Each token has a window of its own: return all T.":
        lambda h, x: forward(h, x[:, -h.window :]),
    NO_SCALE: lambda h, x: forward(h, x, scale=1),
    SCALE_HS: lambda h, x: forward(h, x, scale=1 / h.query.out_features),
    SCALE_UP: lambda h, x: forward(h, x, scale=h.query.out_features**0.5),
    "You scale by the width of x, √C. The scale is √head_size, the length of a query.":
        lambda h, x: forward(h, x, scale=x.shape[-1] ** -0.5),
    "Two of query, key and value come from one matrix: one of the three is not used.": (
        lambda h, x: forward(h, x, change=lambda q, k, v: (q, q, v)),
        lambda h, x: forward(h, x, change=lambda q, k, v: (k, k, v)),
        lambda h, x: forward(h, x, change=lambda q, k, v: (q, k, k))),
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
