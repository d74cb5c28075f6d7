"""The exercises of the chapter on many heads."""

import copy
import math
import re
from itertools import combinations

import torch

from exercises.check import (
    NotAttempted,
    WrongAnswer,
    checked,
    diagnose,
    exercise,
    expect,
    expect_no_helpers,
    normal,
    reported,
)

# --- 6.1: which of five layers mix up tokens ------------------------------------------------------


VERDICTS = {"A": "leaks", "B": "blind", "C": "fine", "D": "fine", "E": "leaks"}


@checked
def five_ways_to_cut(answer):
    """A dictionary: name of each of five layers → "leaks", "blind" or "fine"."""
    wanted = 'Give a dictionary with "leaks", "blind" or "fine" for each of A, B, C, D and E.'
    said = reported(answer, VERDICTS, wanted)
    diagnose("""
        Each verdict is one of three words: "leaks", "blind" or "fine".
            not set(said.values()) <= {"leaks", "blind", "fine"}
        One token is not enough: in A, token 0 changes nothing that it should not. Replace each of
        the eight tokens in turn.
            said["A"] != "leaks"
        E turns the tokens round before it merges. Which output changes when the last token does?
            said["E"] != "leaks"
        In B nothing leaks, and yet something is wrong. Replace token 0: *all* outputs should
        change. How far does each token see?
            said["B"] == "fine"
        B makes both mistakes, and one undoes the leak of the other: no earlier output changes.
            said["B"] == "leaks"
    """)
    expect(
        said == VERDICTS,
        "C and D give a head features 0, 4, 8 … instead of neighbours. Does a test show a token "
        "that is missing, or one too many? Which features a head gets is for training to use.",
    )
    return (
        "A and B cut the tokens, and B's merge puts every pair back where it was: no leak, and a "
        "view of two tokens. C and D deal out the features like cards, which is as good a cut as "
        "any, as long as weights are not moved to a layer that cuts otherwise."
    )


# --- 6.2: run the experiment and decide -----------------------------------------------------------


@checked
def twins(answer):
    """twins: the lower accuracy of two heads that start equal, and the letter of the reason."""
    wanted = 'Set twins to a pair: the lower of the two accuracies, and a letter: (0.21, "a").'
    score, letter = reported(answer, (0.21, "a"), wanted)
    diagnose("""
        The second of the pair should be "a", "b" or "c".
            letter not in ("a", "b", "c")
        An accuracy is the fraction of correct answers, between 0 and 1: 97% is 0.97.
            not 0 <= score <= 1
        Too low for twins that were trained for 400 steps. Copy all three matrices of head 0 into
        head 1 *before* the training, return the layer from a function, and pass that function to
        `learn`, with n=2. Copy the numbers, with `load_state_dict` or `copy_`: after `=` the two
        heads are one, and the lower accuracy is about 0.2. (Or are these the *wrong* answers?)
            score <= 0.9
        If the heads stayed equal, both would return the same blend, as one head does, and
        one of the questions would be answered wrongly most of the time. Yours answers both.
            letter == "a"
        Rounding is not needed here. Measure the twins after 50 steps, with `learn(make_twins, n=2,
        steps=50)`: they already differ. What is different from the first step on?
            letter == "c"
    """)
    return "Identical heads stay identical only if everything after them is identical, too."


# --- 6.3: an experiment on eight heads for two letters --------------------------------------------


@checked
def spare_heads(answer):
    """spare: the model, and its worst accuracy after ablating one, two and three of eight heads."""
    wanted = (
        "Set spare to a pair: the model, and a list of accuracies without one, two, three heads."
    )
    pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    expect(pair and hasattr(answer[0], "layer"), wanted)
    found = reported(answer[1], (0.9, 0.9, 0.9), wanted)
    right = [worst(answer[0], n) for n in range(4)]
    expect(
        right[0] > 0.9,
        "Your model does not recite two letters with all its heads: train it with n=2, and ablate "
        "copies, with `without_head`, so that each choice starts from the whole model.",
    )
    for n, got in enumerate(found, 1):
        expect(
            abs(got - right[n]) < 0.006,
            f"Without {n} of this model's heads, {got:.0%} is not the worst case. Take the *worst* "
            "choice of all, and the lower of its two accuracies, not a mean.",
        )
    return (
        f"Without one head, it is right in {found[0]:.0%} or more, because others carry the same "
        f"letter; without three, in {found[2]:.0%}. A harmless ablation shows a spare, not an idle "
        "head."
    )


@torch.no_grad()
def worst(model, n):
    """The lower accuracy after the most harmful ablation of n of eight heads."""
    ids, lowest = torch.randint(20, (1000, 16), generator=torch.Generator().manual_seed(1)), 1.0
    for off in combinations(range(8), n):
        ablated = copy.deepcopy(model)
        for h in off:
            ablated.layer.heads[h].value.weight.zero_()
        correct = ablated(ids).argmax(-1) == ids.unfold(1, 2, 1)[:, :-1].flip(-1)
        lowest = min(lowest, correct.float().mean((0, 1)).min().item())
    return lowest


# --- 6.4 ------------------------------------------------------------------------------------------


# T = H second and third: there heads and tokens can be mixed up without an error. Their size hs is
# not H, so that no scale is right by chance. The last has heads of size 1.
SIZES = [(2, 6, 8, 2), (3, 3, 15, 3), (2, 4, 12, 4), (1, 3, 6, 3), (2, 5, 4, 1), (1, 1, 4, 2)]


@exercise(
    inputs=lambda draw: [
        (
            normal(B, T, C, seed=10 * B + T),
            normal(C, 3 * C, seed=10 * T + C) * C**-0.5,
            normal(C, C, seed=T + C) * C**-0.5,
            H,
        )
        for B, T, C, H in [*SIZES, (1, 3, 4, 4)]
    ],
    on_success="One product for all queries, keys and values of all heads.",
    on_shape_error="Are q, k and v (B, H, T, hs), and the mask (T, T)?",
    backward=True,
)
def fused_multi_head(x, W_qkv, W_o, n_head):
    """fused_multi_head(x, W_qkv, W_o, n_head): causal self-attention with many heads, (B, T, C)."""
    B, T, C = x.shape
    if C % n_head:
        raise ValueError(f"{C} features cannot be shared by {n_head} heads")
    parts = [part.unflatten(-1, (n_head, -1)) for part in (x @ W_qkv).chunk(3, -1)]
    q, k, v = (part.transpose(1, 2) for part in parts)  # (B, H, T, hs)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    hidden = torch.ones(T, T).tril() == 0
    out = scores.masked_fill(hidden, -math.inf).softmax(-1) @ v
    return out.transpose(1, 2).flatten(2) @ W_o


fused_multi_head.slips("""
    The output projection is missing: multiply the merged heads by W_o.
        @ W_o →
    The tokens are scrambled: you reshaped (B, H, T, hs) straight to (B, T, C), and each row now
    holds several tokens of one head. Swap H and T first: `transpose(1, 2)`.
        out.transpose(1, 2).flatten(2) → out.reshape(B, T, C)
    You cut along time: each of your heads holds some of the tokens with all their features.
    Every head needs all tokens and hs of the features: first (B, T, H, hs), then swap T and H.
        unflatten(-1, (n_head, -1)) → reshape(B, n_head, T, -1) ; part.transpose(1, 2) → part
        unflatten(-1, (n_head, -1)) → reshape(B, n_head, T, -1) ; part.transpose(1, 2) → part
        ; out.transpose(1, 2).flatten(2) → out.reshape(B, T, C)
    The heads of one token attend to each other, because attention works on the last two
    dimensions. Swap H and T after the split, (B, H, T, hs).
        part.transpose(1, 2) → part ; out.transpose(1, 2) → out
    You divide the scores by √C, the whole width. A head's dot product has hs = C/H terms:
    divide by √hs, or the weights are too even.
        q.shape[-1] ** 0.5 → C**0.5
    The scale is missing, or inverted: divide the scores by √hs.
        / q.shape[-1] ** 0.5 →
        / q → * q
    Your softmax runs over dim -2, the queries: the columns sum to 1, not the rows. Use dim=-1.
        softmax(-1) → softmax(-2)
    The future is not hidden: this is self-attention in a GPT, mask it with a lower triangle.
        .tril() →
    Your mask is the wrong way round: it hides the past and shows the future. Allowed is the
    lower triangle, with its diagonal.
        tril() → triu()
        tril() → triu(1)
    You mask after the softmax, so the rows no longer sum to 1. Mask the scores, with −inf.
        scores.masked_fill(hidden, -math.inf).softmax(-1) → scores.softmax(-1) * ~hidden
""")


@fused_multi_head.also
def _refuse_heads_that_do_not_fit(answer):
    expect_no_helpers(answer, fused_multi_head.inputs[0])
    for C, H in ((6, 4), (9, 2), (4, 8), (10, 4)):
        what = f"{C} features cannot be shared by {H} heads"
        try:
            got = answer(normal(2, 4, C, seed=5), normal(C, 3 * C, seed=6), normal(C, C, seed=7), H)
        except ValueError as error:
            expect(
                {str(C), str(H)} <= set(re.findall(r"\d+", str(error))),
                f"Your ValueError does not name both numbers, {C} and {H}: say what was given.",
            )
            continue
        except Exception as error:
            raise WrongAnswer(
                f"{what}. Your function raises {type(error).__name__} instead of ValueError: check "
                "the numbers first."
            ) from None
        if got is ...:
            raise NotAttempted
        is_error = isinstance(got, ValueError) or got is ValueError
        expect(not is_error, "You return the ValueError. Write `raise` in place of `return`.")
        raise WrongAnswer(
            f"{what}, but your function returns without an error. Raise ValueError when n_head "
            "does not divide C."
        )
