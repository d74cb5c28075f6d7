"""The exercises of the chapter on training."""

import torch

from exercises.check import checked, diagnose, diagnose_letters, exercise, normal, reported

# --- 10.1: what is wrong with these runs? ---------------------------------------------------------

FAULTS = {"A": "c", "B": "d", "C": "b", "D": "a"}


@checked
def faults(answer):
    """faults: what is wrong with the runs A to D, a letter for each."""
    table = """
        None of the four is a sound run: such a run ends at 2.4 nats on both texts.
            "f" in found.values()
        A new optimiser has no memory, so each of its steps goes full stride along one gradient.
        That is clumsy, but it learns: such a run ends within a tenth of a nat of the sound one.
            "e" in found.values()
        C is almost 0 on text that the model has never seen. Rows that it knows by heart are of
        no use there. From where could it copy the right answer?
            found["C"] == "c"
        With unshifted targets the answer is in the input, on the held-out text as well. In A the
        held-out loss rises to almost 9 nats: what did A learn, if it holds only in training?
            found["A"] == "b"
        B falls fast and gets stuck, D never settles. In one of them every step is too long from
        the start, and in the other something is added at each step and never taken away.
            found["B"] == "a" and found["D"] == "d"
    """
    diagnose_letters(answer, FAULTS, "f", table)
    return "Each fault has a face. Two of the four would have shown it to nobody but you: B and C."


# --- 10.2: the valley, turned ---------------------------------------------------------------------


@checked
def turned(answer):
    """turned: what gradient descent and AdamW leave of the way along the floor."""
    plain, adamw = reported(
        answer,
        (0.5, 0.5),
        "Set turned to a pair of numbers: what is left of u after gradient descent, and after "
        "AdamW, (0.5, 0.5).",
    )
    diagnose("""
        These are the numbers of the example. Take the steps.
            plain == adamw == 0.5
        The two seem to be swapped: gradient descent first.
            near(plain, 0.73) and near(adamw, 0.55)
        Gradient descent is right. AdamW's number is that of the valley as it was: does its
        gradient come from the turned loss, and are `a` and `b` its parameters, not u and w?
            near(plain, 0.55) and abs(adamw) < 0.05
        You began at a = b = 1. There w is 0 and the wall is not felt: begin at a = √2, b = 0.
            near(plain, 0.77)
        Gradient descent is right. AdamW's number is that of betas (0.9, 0.999), PyTorch's own;
        the chapter's are (0.9, 0.95).
            near(plain, 0.55) and near(adamw, 0.80)
        These are values of a, or of b, after the steps. Along the floor it is u = (a + b)/√2.
            near(plain, 0.39)
        Gradient descent should leave 0.99 to the power of 60, turned or not: 60 steps, at 0.01?
            not near(plain, 0.55)
        Gradient descent is right, AdamW is not yet: 60 steps at 0.1, n from 1 on, betas
        (0.9, 0.95), a weight decay of 0, and averages that are 0 once, before the first step.
            not near(adamw, 0.73)
    """)
    return "AdamW has a knob for each parameter, and none for a diagonal."


def near(a, b):
    return abs(a - b) < 0.011


# --- 10.3: clip -----------------------------------------------------------------------------------


def gradients(size, seed, shapes=((3, 4), (5,), (2, 1, 3))):
    return [size * normal(*shape, seed=seed + i) for i, shape in enumerate(shapes)]


@exercise(
    inputs=lambda draw: [
        ([torch.tensor([6.0]), torch.tensor([[8.0]])], 2.5),
        (gradients(3.0, seed=5), 0.5),
        (gradients(1.0, seed=1), 1.0),
        (gradients(1.0, seed=9), 10.0),
        (gradients(0.1, seed=13), 2.0),
        (gradients(2.0, seed=17, shapes=[(2, 3)] * 3), 3.0),
        (gradients(2.0, seed=21, shapes=[(4,)]), 0.25),
        (gradients(0.3, seed=25), 10.0),  # its square is below 10 as well
        (gradients(0.0, seed=0), 1.0),
    ],
    example=([torch.tensor([3.0]), torch.tensor([[4.0]])], 1.0),
    why=[""] * 8 + ["All gradients are 0, so their length is 0, and they stay as they are."],
    error_hints={
        "ZeroDivisionError": "Where all gradients are 0 the length is 0: check whether it is too "
        "long before you divide by it."
    },
    on_success="One length for all, and the direction stays.",
)
def clip(gradients, longest):
    """clip(gradients, longest): all tensors together shortened to at most that length."""
    length = sum(g.square().sum() for g in gradients).sqrt()
    factor = longest / length if length > longest else 1.0
    return [g * factor for g in gradients]


TO_LENGTH = clip.slip("g * factor → g / length * min(longest, length)")
clip.slips("""
    You clipped each entry. That changes the direction: shorten all tensors by one factor.
        [g.clamp(-longest, longest) for g in gradients]
    You shortened each tensor by its own length. Together they are one vector with one length.
        [right([g], longest)[0] for g in gradients]
    Where the length is 0 you divide 0 by 0, which is NaN. Shorten only gradients that are too
    long.
        TO_LENGTH(gradients, longest)
    You also stretch gradients that are shorter to the length `longest`. They stay as they are.
        if length > longest else 1.0 →
    Your factor is wrong. It is longest / length where the length is above `longest`.
        longest / length → length / longest
        longest / length → 1 / length
    You divide by the square of the length: take the root.
        .sqrt() →
    You added the lengths of the tensors. Add their squares, and take the root at the end.
        g.square().sum() for g in gradients).sqrt() → g.norm() for g in gradients)
""")


# --- 10.4: a plan of the reader's own -------------------------------------------------------------


@checked
def my_plan(answer):
    """my_plan: a plan for the two pages, and its validation losses with two seeds."""
    plan, losses = reported(
        answer,
        ({"steps": 240, "rate": 0.01, "weight_decay": 0.1}, {0: 2.55, 1: 2.57}),
        "Set my_plan to a pair: the plan, and the last validation loss for seeds 0 and 1, "
        '({"steps": …, "rate": …, "weight_decay": …}, {0: …, 1: …}).',
    )
    diagnose("""
        These are the numbers of the example, which you should beat.
            losses == {0: 2.55, 1: 2.57}
        Nobody has got so low with two pages. Is it the validation loss, in nats, on
        `validation_ids`, and was the model trained on `few_ids` alone?
            min(losses.values()) < 2.35
        That is as bad as the 600 steps of section 4: is the schedule planned for the steps that
        the run takes, and is this the last loss, and not that of a run that went on?
            max(losses.values()) > 2.9
        With one seed your plan is better than ours, and with the other it is not. Which is luck?
        Change something, and try both again.
            min(losses.values()) < 2.54 <= max(losses.values())
        Not better than ours with either seed. Below 2.54, the difference is more than luck.
            max(losses.values()) >= 2.54
    """)
    memory = 1 / max(1e-9, plan["rate"] * plan["weight_decay"])
    if memory < plan["steps"]:
        return "Better than ours. Your weights forget what they learned before the run is over."
    return "Better than ours, and with the usual weight decay. Would a hundred steps' memory help?"
