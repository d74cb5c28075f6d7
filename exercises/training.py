"""The exercises of the chapter on training."""

import torch

from exercises.check import checked, diagnose, exercise, expect, normal, reported


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
    You bring gradients that are shorter to the length `longest`, too. They stay as they are.
        if length > longest else 1.0 →
    Your factor is wrong. It is longest / length where the length is above `longest`.
        longest / length → length / longest
        longest / length → 1 / length
    You divide by the square of the length: take the root.
        .sqrt() →
    You added the lengths of the tensors. Add their squares, and take the root at the end.
        g.square().sum() for g in gradients).sqrt() → g.norm() for g in gradients)
""")


@exercise(
    inputs=lambda draw: [
        ([4.0, 3.0, 2.0, 2.5, 2.6, 2.7, 2.8], 2),
        ([4.0, 3.0, 2.0], 3),  # it never stops
        ([3.0, 2.0, 2.5, 1.9, 2.0, 2.1, 2.2, 1.0], 3),  # it recovers once
        ([2.0, 2.0, 2.0, 2.0], 2),  # equal losses
        ([1.0, 2.0], 1),
        ([2.5], 4),
        ([2.0, 3.0, 2.5, 3.5, 3.6, 2.4], 2),
        *(([draw.randint(15, 40) / 10 for _ in range(12)], patience) for patience in (1, 2, 3, 4)),
    ],
    example=([3.0, 2.5, 2.6, 2.7, 2.4], 2),
    why=["", "", "", "Equal losses: the first one is kept, and the others are no improvement."]
    + [""] * 3,
    on_success="The best checkpoint is kept, and the run ends when waiting has not paid.",
)
def early_stop(losses, patience):
    """early_stop(losses, patience): the evaluation that is kept, and the last one that is made."""
    best = 0
    for i, loss in enumerate(losses):
        if loss < losses[best]:
            best = i
        if i - best >= patience:
            break
    return best, i


early_stop.slips("""
    You looked at all losses for the lowest one. The run cannot see what comes after its end.
        losses.index(min(losses)), right(losses, patience)[1]
    You never stop: the second number is the evaluation that is `patience` after the best one.
        break → pass
    A loss that equals the lowest one is no improvement: compare with <, not with <=.
        loss < → loss <=
    You stop one evaluation too late: stop as soon as the best one is `patience` evaluations old.
        >= patience → > patience
    You keep the last checkpoint. Keep the one with the lowest loss.
        return best → return i
    You returned the losses. Return their indices.
        return best, i → return losses[best], losses[i]
    You count evaluations in a row that are worse than the one before. Count those since the
    lowest loss.
        i - best >= patience → i >= patience and sorted(w := losses[i - patience : i + 1]) == w
    The pair is the other way round: first the one that is kept, then the last one.
        return best, i → return i, best
""")

RATES = 0.003, 0.01, 0.02, 0.06


@checked
def warm_up_pays(answer):
    """warm_up_pays: what 40 steps of warm-up gain at four rates, and the rates where they do."""
    gains, pays = reported(
        answer,
        (dict.fromkeys(RATES, 0.01), [0.06]),
        "Set warm_up_pays to a pair: the gains, rate → gain, and the list of rates where it pays, "
        "({0.003: 0.2, …}, [0.003, …]).",
    )
    diagnose("""
        These are the numbers of the example. Measure the gains of the four rates.
            gains == {0.003: 0.2, 0.01: 0.1, 0.02: 0.0, 0.06: 0.0}
        A gain is a difference of two losses, the one without warm-up minus the one with it;
        these are too large for that. Are they the losses themselves?
            not all(abs(gain) < 1 for gain in gains.values())
        All your gains are equal: did each rate get its own two runs?
            len(set(gains.values())) == 1
        At the large rates your warm-up does harm. The difference seems to be reversed: take
        without minus with.
            min(gains[0.02], gains[0.06]) <= -0.1
        These are not the gains of the small GPT from this seed. Use `adamw_run` with 200
        learning rates: 40 steps of warm-up in one of the two runs, and final=1.0 in both.
            not 0.04 <= gains[0.02] <= 0.2 <= gains[0.06] <= 0.7
            max(gains[0.003], gains[0.01]) >= 0.05
            gains[0.003] <= -0.035  # with cosine decay it is -0.051
    """)
    best = [rate for rate in RATES if gains[rate] > 0.05]
    expect(
        sorted(pays) == best,
        f"By your own gains warm-up is worth more than 0.05 at {', '.join(map(str, best))}.",
    )
    return "Warm-up pays where the rate is too high."


# --- the whole task: clip, warm up, average, decay, step ----------------------------------------


def run(n_steps, seed, *settings, shapes=((3, 4), (4,), (2, 3)), change=torch.clone):
    """(parameters, gradients, rate, warmup, longest, decay)."""
    steps = [
        [change(g) for g in gradients(1 + n % 3, seed + 10 * n + 5, shapes)] for n in range(n_steps)
    ]
    return gradients(1, seed, shapes), steps, *settings


def call_in_words(given):
    """The call, without its tensors."""
    _, gradients, *numbers = given
    return f"optimised(parameters, {len(gradients)} gradients, {', '.join(map(str, numbers))})"


@exercise(
    inputs=lambda draw: [
        run(6, 1, 0.1, 3, 4.0, 0.5),
        run(8, 2, 0.05, 5, 2.0, 1.0),
        run(4, 3, 0.2, 2, 100.0, 0.8),
        run(5, 4, 0.1, 10, 3.0, 2.0),
        run(1, 5, 0.1, 4, 1.0, 0.9),
        run(7, 6, 0.1, 2, 1.0, 0.7, shapes=((5,), (1, 4))),
        run(4, 7, 0.1, 2, 1.0, 0.5, change=lambda g: 0.001 * g.relu()),  # epsilon counts
        run(3, 8, 0.1, 2, 1.0, 0.5, shapes=((2, 2, 3), (3,))),
        run(2, 9, 0.1, 2, 1.0, 0.5, change=torch.zeros_like),
    ],
    example=([torch.zeros(1)], [[torch.ones(1)]], 0.1, 2, 1.0, 0.1),
    on_success="Clip, warm up, two averages, decay of the matrices, and a step: that is the whole "
    "machinery of a training run.",
    in_words=call_in_words,
)
def optimised(parameters, gradients, rate, warmup, longest, decay):
    """optimised(parameters, gradients, rate, warmup, longest, decay): after all steps of AdamW."""
    torch.optim.AdamW([torch.zeros(1)])  # the first takes seconds: not those of the learner's call
    ps = [p.clone() for p in parameters]
    ms, ss = ([torch.zeros_like(p) for p in ps] for _ in range(2))
    for n, gs in enumerate(gradients, 1):
        eta = rate * min(1.0, n / warmup)
        for i, g in enumerate(clip.right(gs, longest)):
            ms[i] = 0.9 * ms[i] + 0.1 * g
            ss[i] = 0.95 * ss[i] + 0.05 * g**2
            m, s = ms[i] / (1 - 0.9**n), ss[i] / (1 - 0.95**n)
            if ps[i].dim() >= 2:
                ps[i] = ps[i] - eta * decay * ps[i]
            ps[i] = ps[i] - eta * m / (s.sqrt() + 1e-8)
    return ps


def decayed(gs, longest, ps, decay):
    clipped = zip(clip.right(gs, longest), ps, strict=True)
    return [g + decay * p if p.dim() >= 2 else g for g, p in clipped]


optimised.slips("""
    You did not clip: all gradients of a step together are at most `longest` long.
        clip.right(gs, longest) → gs
    You clipped each tensor by itself. All gradients of a step are one vector.
        clip.right(gs, longest) → [clip.right([g], longest)[0] for g in gs]
    The warm-up is missing: multiply the rate of step n by (n + 1) / warmup, at most by 1.
        * min(1.0, n / warmup) →
    Your first step has the rate 0. Its factor is (n + 1) / warmup, with n = 0.
        n / warmup → (n - 1) / warmup
    The averages start at 0 and are too small at first: divide by 1 − βⁿ, n from 1 on.
        ms[i] / (1 - 0.9**n), ss[i] / (1 - 0.95**n) → ms[i], ss[i]
    Your vectors decay too. Only tensors with two or more dimensions should.
        ps[i].dim() >= 2 → True
    A tensor with three dimensions decays, too: `dim() >= 2`.
        dim() >= 2 → dim() == 2
    Where all gradients of a step are 0 you divide 0 by 0, which is NaN. Shorten only gradients
    that are too long.
        clip.right → TO_LENGTH
    Your decay uses the full rate. It should use this step's rate, warm-up included.
        eta * decay → rate * decay
    You add the decay to the gradient (Adam's way, before AdamW): then it is divided by √ŝ, too.
    Shrink the parameter itself.
        dim() >= 2 → dim() > 9 ; clip.right(gs, longest) → decayed(gs, longest, ps, decay)
    You stop after the first step: is `return` in the loop?
        right(parameters, gradients[:1], rate, warmup, longest, decay)
""")
