"""The exercises of the chapter "Queries, keys and values"."""

import math

import torch
from torch import nn

from exercises.check import (
    WrongAnswer,
    call,
    checked,
    diagnose,
    exercise,
    expect,
    expect_close,
    normal,
    reported,
    tensor,
)
from helpers.attention import attention, causal_mask

TOKENS = ("Anna", "met", "Tom", ".", "He")
# What each token says about itself: does it name a person, is it female, male, an action?
KEYS = torch.tensor([[1.0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]])


@checked
def ask_for_the_verb(answer):
    """A query, 4 numbers, that puts more than 0.8 of its weight on "met"."""
    query = tensor(answer, "the query")
    expect(
        query.shape == (4,),
        "A query has one number for each number of a key, four in all (person, female, male, "
        f"action), whatever the number of tokens. Yours has the shape {tuple(query.shape)}.",
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


# Which of six variants of attention lets a later token change an earlier output.
LEAKS = {
    "keys_centred": False,
    "values_centred": True,
    "largest_subtracted": False,
    "divided_by_largest": True,
    "roles_swapped": False,
    "softmax_twice": True,
}


@checked
def which_leak(answer):
    """A dictionary: name of each of six variants → True if a later token changes an output."""
    wanted = f"Give a dictionary with a True or False for each of {', '.join(LEAKS)}."
    if isinstance(answer, dict):
        still_open = [name for name, leaks in answer.items() if leaks is ...]
        if 0 < len(still_open) < len(answer):
            raise WrongAnswer(
                f"Still to be filled in, with True or False: {', '.join(still_open)}."
            )
    said = reported(answer, LEAKS, wanted)
    wrong = [name for name, leaks in LEAKS.items() if said[name] != leaks]
    diagnose("""
        Not all six leak. Compare only the outputs *before* token 4, [:4], and ignore a millionth:
        that is rounding.
            all(said.values())
        Some of the six leak. Are row 4 of q, of k *and* of v other numbers the second time, in
        copies (`q.clone()`)? And is it the largest change of several draws?
            not any(said.values())
        All six are the wrong way round: True says that it leaks.
            len(wrong) == len(LEAKS)
    """)
    missed = [name for name in wrong if LEAKS[name]]
    expect(
        not missed,
        f"{len(wrong)} of the six not yet right, and in {len(missed)} a leak has escaped you. Draw "
        "other numbers for token 4 of q, of k *and* of v, take the largest change of twenty draws, "
        "and compare the outputs before it.",
    )
    expect(
        not wrong,
        f"{len(wrong)} of the six not yet right: you see a leak where there is none. Did you "
        "compare only the outputs before token 4? A change of a millionth is rounding.",
    )
    return (
        "What is added to a whole row, or subtracted from it, changes no weight: keys_centred adds "
        "−q · mean, largest_subtracted the largest score. In roles_swapped, row i still knows "
        "tokens 0 … i alone. But what *scales* a row changes its weights (divided_by_largest, and "
        "the first sum of softmax_twice), and values_centred mixes later values into every output."
    )


# The accuracy on associative recall without one part, after 200 steps: the range of several seeds,
# with or without a scale, and a margin. A part is needed if what the learner gives is below 0.9.
ACCURACIES = {"softmax": (0.95, 1.0), "own queries": (0.18, 0.40), "width": (0.40, 0.75)}
NOT_SO = {
    "softmax": "Is the future multiplied by 0 (−∞ without a softmax stays −∞), and are the scores "
    "themselves multiplied with the values?",
    "own queries": "All tokens should use one query, so that the question cannot say what it asks "
    "for: `self.one.expand_as(x)` takes the place of `self.query(x)`, and the keys stay.",
    "width": "Queries and keys should have one number each, the values 32. (Two are enough: try.)",
}
GUESSED = (
    "Guessing gets one in eight right. Pass what `learn` returns to `accuracy`, and check for "
    "weights that are NaN, as −∞ · 0 is."
)


@checked
def what_recall_needs(answer):
    """ablation: the accuracy without each of three parts, and the parts that are needed."""
    accuracies, needed = reported(
        answer,
        (dict.fromkeys(ACCURACIES, 0.5), ["width"]),
        f"Set ablation to a pair: one accuracy for each of {', '.join(ACCURACIES)}, "
        '{"softmax": 0.5, …}, and the list of needed parts.',
    )
    diagnose("""
        Give fractions between 0 and 1, as `accuracy` does.
            any(share > 1.001 for share in accuracies.values())
        These are the fractions of *wrong* answers.
            all(low <= 1 - accuracies[part] <= high for part, (low, high) in ACCURACIES.items())
    """)
    for part, (low, high) in ACCURACIES.items():
        expect(not 0.1 < accuracies[part] < 0.15, f'"{part}": {GUESSED}')
        expect(low <= accuracies[part] <= high, f'"{part}": {NOT_SO[part]}')
    expect(
        set(needed) == {part for part, share in accuracies.items() if share < 0.9},
        "The numbers are right. Second comes a list of the needed parts, with the same names: "
        "those without which the fraction is below 0.9.",
    )
    return (
        "The question must say what it looks for. With one number per query the head learns more "
        "slowly (50 to 65% in these 200 steps). Without a softmax it still solves the task."
    )


def near(T, window):
    """True where a token may attend: at itself and the window - 1 tokens before it."""
    return causal_mask(T) & ~causal_mask(T).tril(-window)


class WindowHead(nn.Module):
    """WindowHead(C, hs, window): a head that sees itself and the window - 1 tokens before."""

    def __init__(self, n_embd, head_size, window):
        super().__init__()
        self.window = window
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        mask = near(x.shape[1], self.window)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v


SIZES = [(6, 4, 3, 2, 7), (5, 5, 2, 2, 4), (6, 4, 3, 2, 2), (4, 3, 1, 2, 5), (4, 2, 5, 1, 40)]
WindowHead.__name__ = "window_head"  # as the exercise is called
window_head = exercise(
    inputs=lambda draw: [
        ((C, hs, window), 4 * normal(B, T, C, seed=T)) for C, hs, window, B, T in SIZES
    ],
    on_success="Each token attends to itself and to the window before it, to no older token and no "
    "future.",
    on_shape_error="Make the mask in `forward`, (T, T) for T = x.shape[1], not in `__init__`, and "
    "not from the size of the batch.",
    backward=True,
)(WindowHead)


window_head.slips("""
    The window is one too long: it has `window` tokens in all, the token itself among them.
        self.window) → self.window + 1)
    The window is one too short: the token itself and window - 1 before it.
        self.window) → self.window - 1)
    Your head attends to the whole past: tokens older than the window are not hidden.
        near(x.shape[1], self.window) → causal_mask(x.shape[1])
    Your window reaches into the future as well: keep j <= i.
        ~mask → ~(mask | mask.T)
        near(x.shape[1], self.window) → ~causal_mask(x.shape[1]).tril(-self.window)
    Your mask is the wrong way round, so the last row has nothing to attend to: NaN. masked_fill
    writes where its mask is True, and causal_mask is True where attending is allowed: use ~mask.
        ~mask → mask
    The rows of your weights do not sum to 1: you masked after the softmax without renormalising,
    and the hidden future still takes its share. Put -inf into the scores before the softmax.
        scores.masked_fill(~mask, -math.inf).softmax(-1) → scores.softmax(-1) * mask
    You put 0 into the scores where attending is forbidden. But e⁰ = 1, so the future still gets
    weight. Put -inf there: e^(-inf) is 0.
        -math.inf → 0
    The columns of your weights sum to 1 and the rows do not: the softmax runs over dim -2.
    Each row is one query's distribution over the keys: dim=-1.
        softmax(-1) → softmax(-2)
    The scale is missing: divide the scores by √hs, the root of the last dimension.
        / q.shape[-1] ** 0.5 →
    Two of query, key and value are swapped: a query meets keys, and the values are mixed.
        self.query(x), self.key(x) → self.key(x), self.query(x)
""")


def one_too_short(head, x):
    """With the mask for the course's own attention, which a window of 1 leaves nothing to see."""
    mask = near(x.shape[1], head.window - 1)
    return attention(head.query(x), head.key(x), head.value(x), mask)[0]


window_head.mistake(
    "The window is one too short: the token itself and window - 1 before it.", one_too_short
)


@window_head.also
def for_one_text_after_another(answer):
    head, right = answer(4, 3, 2), WindowHead(4, 3, 2)
    right.load_state_dict(head.state_dict(), strict=False)
    for T in (5, 3, 9):
        x, what = normal(1, T, 4, seed=T), f"the same head, now given {T} tokens,"
        expect_close(call(head, x, name=what), right(x), what)
