"""The exercises on encoders and decoders: models with a fault, Bahdanau's score, runs, batches."""

from functools import partial
from typing import Any

import torch
from torch import nn

from exercises.check import (
    call,
    checked,
    diagnose,
    exercise,
    expect,
    expect_no_helpers,
    expect_no_loop,
    generator,
    normal,
    reported,
)
from helpers.seq2seq import Transformer

# --- 22.1: what is wrong with this model? ---------------------------------------------------------


def patient(fault: str, seed: int) -> nn.Module:
    """A small transformer with random weights and one of the FAULTS."""
    model = Transformer(16, n_head=2, n_layer=1).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.copy_(0.4 * torch.randn(parameter.shape, generator=generator(seed)))
    block: Any = model.decoder[0]
    block.attention.causal = fault != "sees the future"
    block.cross.register_forward_pre_hook(partial(attended, fault), with_kwargs=True)
    return model


def attended(fault: str, _: nn.Module, given: tuple, mask: dict) -> tuple[tuple, dict]:
    """What cross-attention gets in a model with this fault."""
    x, source = given
    if fault == "attends to padding":
        mask = {"mask": None}
    if fault == "ignores the source":
        source = torch.zeros_like(source)
    if fault == "mixes the texts":
        source, mask = source[:1].expand_as(source), {"mask": mask["mask"][:1]}
    return (x, source), mask


FAULTS = {
    "sound": "change one thing at a time, and compare the logits where nothing should change. "
    "Padding changes sums by rounding, about 1e-6: allow for that, as torch.allclose does",
    "sees the future": "change a later symbol of the decoder input, and look at earlier logits",
    "attends to padding": "add zeros at the end of the source, and nothing else",
    "ignores the source": "give it another source of the same length",
    "mixes the texts": "compare the second text of a batch with the same text alone",
}


@checked
def diagnosis(answer):
    """diagnosis(model): "sound", or the name of its fault"""
    for seed in range(3):
        for fault, test in FAULTS.items():
            got = call(answer, patient(fault, seed), name="diagnosis")
            expect(
                got in FAULTS,
                f"`diagnosis` returned {got!r}. It should return one of {', '.join(FAULTS)}.",
            )
            is_so = "is sound" if fault == "sound" else fault
            expect(got == fault, f"One model {is_so}, and you say {got!r}. To tell: {test}.")
    return "You named the state of health of fifteen models, without opening one of them."


diagnosis.judges_code = True

# --- 22.2: Bahdanau's score -----------------------------------------------------------------------


def states(T, S, C, A, seed, large=1.0):
    h, s, v = normal(T, C, seed=seed), normal(S, C, seed=seed + 1), normal(A, seed=seed + 4)
    return h, s, large * normal(A, C, seed=seed + 2), normal(A, C, seed=seed + 3), v


@exercise(
    inputs=lambda draw: [
        states(2, 3, 4, 5, 0),
        states(4, 4, 4, 4, 10),
        states(1, 6, 3, 2, 20),
        states(5, 2, 6, 3, 30),
        states(3, 1, 5, 2, 50),
        states(3, 3, 3, 7, 40, large=20.0),
    ],
    on_shape_error="W h is (T, A) and U s is (S, A). As (T, 1, A) and (S, A), they can be added. "
    "Weights are (T, S), times the states (S, C).",
    on_success="A hidden layer for each pair of states.",
    backward=True,
)
def additive_attention(h, states, W, U, v):
    """additive_attention(h, states, W, U, v): (T, C), what each decoder state finds."""
    scores = ((h @ W.T)[:, None] + states @ U.T).tanh() @ v
    return scores.softmax(-1) @ states


additive_attention.slips("""
    The tanh is missing, or is not applied to the sum, v · tanh(W h + U s). So h changes no weight.
        .tanh() →
    You applied tanh to each alone. Add first, v · tanh(W h + U s), or h changes no weight.
        ((h @ W.T)[:, None] + states @ U.T).tanh() →
        ; scores = → scores = ((h @ W.T)[:, None].tanh() + (states @ U.T).tanh())
    The activation function should be tanh.
        tanh() → relu()
    The softmax runs over the decoder's states. Each of them distributes its weight over the
    encoder's states, the last dimension of the scores (T, S).
        softmax(-1) → softmax(0)
    There is no softmax: scores are not weights yet.
        .softmax(-1) →
    The scores are divided by √A. Additive scores are not scaled: v can be as small as it needs.
        right(h, states, W, U, v / len(v) ** 0.5)
    Queries and keys are swapped: W makes queries of h, U makes keys of the states.
        right(h, states, U, W, v)
""")


@additive_attention.also
def at_once(answer):
    expect_no_helpers(answer, additive_attention.inputs[0])
    says = "The values are right. Now without a loop: q[:, None] + k is (T, S, A)."
    expect_no_loop(answer, states(2, 3, 4, 5, 0), states(6, 9, 7, 8, 0), says)


# --- 22.3: what is wrong with these runs? ---------------------------------------------------------

RUNS = {"A": "shift", "B": "shuffled", "C": "future", "D": "tail"}


@checked
def culprits(answer):
    """culprits: for each of the runs A to D, the name of its fault"""
    wanted = "Set culprits to a dict from A, B, C and D to the name of a fault."
    found = reported(answer, dict.fromkeys(RUNS, "shift"), wanted)
    right = sum(found[run] == fault for run, fault in RUNS.items())
    diagnose("""
        A fault has another name: shift, shuffled, future, tail, padding or small.
            not {*RUNS.values(), "padding", "small"}.issuperset(found.values())
        A loss near 0 and one repeated sign: what has the model learned to write after `<`?
            found["A"] != "shift"
        B answers a word with a date. A model that is too small, or a loss that counts padding,
        would hardly make it do so. When is a date as good an answer as any?
            found["B"] != "shuffled"
        The loss of C says that it knows the next symbol. When it writes, it does not: what did it
        have in training that it lacks now?
            found["C"] != "future"
        D depends on the company that a text keeps in its batch. Which fault makes that happen?
            found["D"] != "tail"
    """)
    return f"All {right} of them: the loss says that something is wrong, and the answers say what."


# --- 22.4: more pairs, or more wrong answers? -----------------------------------------------------


@checked
def batches(answer):
    """batches: three fractions found, your guess before the runs, and your verdict"""
    wanted = "Set batches to five things: three fractions, your guess, and your verdict."
    small, longer, large, _, verdict = reported(answer, (0.9, 0.9, 0.9, "pairs", "pairs"), wanted)
    diagnose("""
        These are percentages. Give fractions between 0 and 1.
            max(small, longer, large) > 1
        The order is: 8 pairs and 150 steps, 8 pairs and 1,200 steps, 64 pairs and 150 steps.
            small > longer or small > large
        The second and the third should be above 0.9. Start each run from a fresh copy of the
        transformer: `copy.deepcopy(transformer)`.
            min(longer, large) < 0.9
        The first should be clearly below the others: it has seen an eighth of their pairs.
            not 0.6 < small < min(longer, large) - 0.02
        The verdict should be "pairs" or "wrong answers".
            verdict not in ("pairs", "wrong answers")
        Compare the second run with the third. They have seen equally many pairs, and the third has
        nine times as many wrong answers in each row. Does it find many more?
            verdict != "pairs"
    """)
    return "With as many pairs in all, batches of 8 did as well as batches of 64, on these dates."
