"""The exercises of the chapter on the transformer block."""

import torch
import torch.nn.functional as F
from torch import nn

from exercises.check import WrongAnswer, checked, diagnose, diagnose_letters, expect, reported, same
from helpers.attention import MultiHeadAttention
from helpers.gpt import Block, FeedForward

# --- 8.1: a feed-forward network by hand --------------------------------------------------------

SUMS = torch.arange(4.0)  # how many of the three are capitals
WANTED = [0.0, 1.0, 0.0, 1.0]


def written(numbers):
    return ", ".join(f"{n:.3g}".replace("-", "−") for n in (numbers + 0.0).tolist())


@checked
def three(answer):
    """three: b_up and W_out of a feed-forward network: 1 for one capital of three, or for all."""
    wanted = "Set three to a pair, b_up and W_out: (torch.tensor([0.0, -1.0]), …)."
    b_up, W_out = map(torch.tensor, reported(answer, ([0.0], [1.0]), wanted))
    expect(
        b_up.shape == W_out.shape and len(b_up) > 0,
        "b_up and W_out are lists of h numbers each, one for each hidden number.",
    )

    def output(b_up=b_up, W_out=W_out):
        return F.relu(SUMS[:, None] + b_up) @ W_out

    got, n = output(), len(b_up)
    if same(got, WANTED):
        expect(n <= 3, f"All four answers are right, but you use {n} hidden numbers: 3 are enough.")
        return "Each hidden number changes the slope of the line once."
    expect(not same(got, [0, 1, 1, 1]), "Two capitals should give 0, and yours gives 1.")
    expect(
        not same(got, [0, 1, 1, 2]),
        "The weights add to the *slope*: from +1 to −1 takes −2, and back again takes +2.",
    )
    expect(
        not same(output(W_out, b_up), WANTED),
        "The two are in the wrong order: first b_up, then W_out.",
    )
    expect(not same(output(-b_up), WANTED), "b_up is *added*: to begin at s = 1 it has to be −1.")
    expect(
        not same(got[:3], WANTED[:3]),
        f"Right for none, one and two capitals; for three yours gives {written(got[3:])}. From "
        "s = 2 on, the line has to rise by 1 again.",
    )
    raise WrongAnswer(
        f"For 0, 1, 2, 3 capitals yours gives {written(got)}. It should give 0, 1, 0, 1."
    )


# --- 8.2: run the experiment and decide -----------------------------------------------------------


@checked
def deeper(answer):
    """deeper: the losses with the block twice and with a silenced copy, and a letter."""
    wanted = 'Set deeper to a triple: the two losses and a letter, (2.0, 2.0, "a").'
    twice, quiet, letter = reported(answer, (2.0, 2.0, "a"), wanted)
    diagnose("""
        The third of the triple should be "a", "b" or "c".
            letter not in ("a", "b", "c")
        Such a model cannot have these losses: it had a little above 2 before.
            not all(LOWEST < loss < 4.5 for loss in (twice, quiet))
        With the silenced copy, the loss is as if there were no block: was the first one silenced
        as well? `silenced` changes the block that it is given. Give it a copy: `copy.deepcopy`.
            quiet >= BLOCKLESS and twice <= quiet
        The two seem to be swapped: first the loss with the copy, then the loss with the silenced
        copy.
            twice - quiet <= -APART
        Too high: a silenced copy adds nothing, and the loss is what it was. Are these bits? Is
        the copy *after* the trained block, in `model.layers`, and silenced for the second loss?
            quiet >= HIGHEST or twice >= 2.6
        The copy adds once more what it has learned, to a stream that it has never seen, so the
        loss rises. Yours does not. `silenced` changes the block itself, so measure the copy
        first.
            twice - quiet <= APART
        A gradient says how the loss would change if a number changed. Nothing is added now, but
        would something be added if a number in a zeroed matrix were not 0? Print the gradients.
            letter == "a"
        What comes before a zero matrix gets its gradient through that matrix, times 0. Print
        the gradients of `query` or `up`, and of `output`.
            letter == "c"
    """)
    return "It adds nothing at first, and has all that it needs to learn."


LOWEST, HIGHEST, BLOCKLESS, APART = 2.05, 2.25, 2.8, 0.03  # of four seeds: 2.15 to 2.19


# --- 8.3: what is wrong with these blocks? --------------------------------------------------------

FAULTS = {"A": "c", "B": "f", "C": "b", "D": "d"}


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self._dim = dim

    def forward(self, x):
        variance = x.var(self._dim, correction=0, keepdim=True)
        return (x - x.mean(self._dim, keepdim=True)) / (variance + 1e-5).sqrt()


class Suspect(Block):
    def __init__(self, fault):
        norm = Norm({"c": 1, "d": 0}.get(fault, -1))
        super().__init__(MultiHeadAttention(48, 4), FeedForward(48), lambda n_embd: norm)
        self._fault = fault

    def forward(self, x):
        if self._fault != "b":
            return super().forward(x)
        x = self.attention_norm(x + self.attention(x))
        return self.mlp_norm(x + self.mlp(x))


def suspects():
    """The four blocks of exercise 8.3, made anew."""
    return {name: Suspect(fault) for name, fault in FAULTS.items()}


@checked
def verdict(answer):
    """verdict: what is wrong with the blocks A to D, a letter for each."""
    table = """
        Silenced, a block without an `x +` in front of a layer returns zeros, or what only the
        other layer lets pass. None of the four does.
            "a" in found.values()
        A lets later tokens change earlier outputs, right. But call its attention alone:
        `changed_outputs(suspects["A"].attention)`. Is that where the leak is?
            found["A"] == "e"
        In `changed_outputs`, a text is alone in its batch. Give D the same text alone and among
        others, and compare.
            found["D"] == "f"
        Silenced, C does not return x. Compare what it returns with `F.layer_norm(x, (C,))`.
            found["C"] in ("f", "c", "d")
        B is suspected without reason: it passes every test that our own block passes.
            found["B"] != "f"
    """
    diagnose_letters(answer, FAULTS, "f", table, "Which test would tell the others apart?")
    return "Four blocks, one shape: their outputs look alike, and only the tests tell them apart."


# --- 8.4: a switch of the reader's own ------------------------------------------------------------


@checked
def my_switch(answer):
    """my_switch: a switch, what it changed with three seeds, and a verdict."""
    _, changes, word = reported(
        answer,
        ("dropout=0.5", [0.0, 0.0, 0.0], "cannot tell"),
        "Set my_switch to a triple: the switch, three differences and a verdict, "
        '("dropout=0.5", [0.0, 0.0, 0.0], "cannot tell").',
    )
    diagnose("""
        The verdict should be "lower", "higher" or "cannot tell".
            word not in ("lower", "higher", "cannot tell")
        These are the numbers of the example. Train.
            not any(changes)
        Three differences, please: one for each of the seeds 0, 1 and 2.
            len(changes) != 3
        Three seeds give three differences, and yours are all the same: does the seed reach
        `torch.manual_seed`, before the model is made?
            len(set(changes)) == 1
        That is too much for one switch. Are these losses instead of differences, or did the two
        models train for a different number of steps?
            max(map(abs, changes)) > 1
        The seeds don't agree on a sign. Then you can't tell, whatever the mean says.
            min(changes) < 0 < max(changes) and word != "cannot tell"
        The sign is the other way round: with minus without is below 0 if the switch lowers
        the loss.
            (max(changes) < 0 and word == "higher") or (min(changes) > 0 and word == "lower")
        Two seeds of the same model differ by more than these. You can't tell.
            word != "cannot tell" and max(map(abs, changes)) < 0.01
        All three seeds say the same, and by more than 0.03 nats. That much is not luck here.
            word == "cannot tell" and (min(changes) > 0.03 or max(changes) < -0.03)
    """)
    return "A line for the table, in the size that you ran. Was it your bet?"
