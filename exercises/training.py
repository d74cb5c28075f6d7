"""The exercises of the chapter on training."""

import torch

from exercises.check import checked, exercise, expect, normal, reported


def gradients(size, seed, shapes=((3, 4), (5,), (2, 1, 3))):
    return [size * normal(*shape, seed=seed + i) for i, shape in enumerate(shapes)]


@exercise(
    inputs=[
        ([torch.tensor([6.0]), torch.tensor([[8.0]])], 2.5),
        (gradients(3.0, seed=5), 0.5), (gradients(1.0, seed=1), 1.0),
        (gradients(1.0, seed=9), 10.0), (gradients(0.1, seed=13), 2.0),
        (gradients(2.0, seed=17, shapes=[(2, 3)] * 3), 3.0),
        (gradients(2.0, seed=21, shapes=[(4,)]), 0.25),
        (gradients(0.3, seed=25), 10.0),  # its square is below 10 as well
        (gradients(0.0, seed=0), 1.0),
    ],
    why=[""] * 8 + ["All gradients are 0, so their length is 0, and they stay as they are."],
    meaning={"ZeroDivisionError": "Where all gradients are 0 the length is 0: check whether it is "
    "too long before you divide by it."},
    praise="One length for all, and the direction stays.",
)  # fmt: skip
def clip(gradients, longest):
    """clip(gradients, longest): all tensors together shortened to at most that length."""
    return times(gradients, min(1.0, longest / length(gradients)))


def length(gs):
    return row(gs).norm()


def row(gs):
    return torch.cat([g.flatten() for g in gs])


def times(gs, factor):
    return [g * factor for g in gs]


def measured(by):
    """As if the length were what `by` makes of the tensors."""
    return lambda gs, c: times(gs, min(1.0, c / by(gs)))


def if_long(share):
    """A factor other than longest / length, where the length is above longest."""
    return lambda gs, c: times(gs, share(length(gs), c) if length(gs) > c else 1.0)


ROOT = "The length is the root of the sum of squares"
clip.mistakes = {
    "You clipped each entry. That changes the direction: shorten all tensors by one factor.": (
        lambda gs, c: [g.clamp(-c, c) for g in gs], lambda gs, c: [g.clamp(max=c) for g in gs]),
    "You shortened each tensor by its own length. Together they are one vector with one length.": (
        lambda gs, c: [clip.right([g], c)[0] for g in gs],
        lambda gs, c: [g * c / g.norm() for g in gs]),
    "You always bring the length to `longest`. Gradients that are shorter stay as they are.": (
        lambda gs, c: times(gs, c / length(gs)), lambda gs, c: times(gs, c / (length(gs) + 1e-6))),
    "Your factor is wrong. It is longest / length where the length is above `longest`.": (
        lambda gs, c: times(gs, 1 / length(gs)), if_long(lambda n, c: 1 / n),
        if_long(lambda n, c: 1 / c), if_long(lambda n, c: c), if_long(lambda n, c: n / c)),
    "You lengthen short gradients and leave long ones: use min, not max (or >, not <).":
        lambda gs, c: times(gs, max(1.0, c / length(gs)) if length(gs) else 1.0),
    "Where the length is 0 you divide 0 by 0, which is NaN. Shorten only gradients that are too "
    "long.":
        lambda gs, c: [g / length(gs) * min(c, length(gs)) for g in gs],
    "You did not shorten anything.": lambda gs, c: list(gs),
    "You divide by the square of the length: take the root.": measured(lambda gs: length(gs) ** 2),
    "You compare the square of the length with `longest`: take the root first.":
        lambda gs, c: times(gs, c / length(gs) if length(gs) ** 2 > c else 1.0),
    "You compare the length with 1. Compare it with `longest`.":
        lambda gs, c: times(gs, c / length(gs) if length(gs) > 1 else 1.0),
    f"You divide by a mean of squares. {ROOT}.": (
        measured(lambda gs: row(gs).square().mean()),
        measured(lambda gs: row(gs).square().mean().sqrt())),
    f"You measure by the largest entry. {ROOT}.": measured(lambda gs: row(gs).abs().max()),
    "You added the lengths of the tensors. Add their squares, and take the root at the end.":
        measured(lambda gs: sum(g.norm() for g in gs)),
    f"You measure by one tensor alone. {ROOT} of all.": (
        measured(lambda gs: max(g.norm() for g in gs)), measured(lambda gs: gs[0].norm()),
        measured(lambda gs: gs[-1].norm())),
    f"You added without squaring. {ROOT}.":
        (measured(lambda gs: row(gs).abs().sum()), measured(lambda gs: row(gs).sum().abs())),
    "You return one long vector. Return a list, with each tensor in its own shape.":
        lambda gs, c: row(clip.right(gs, c)),
    "You flattened the tensors. Each keeps its shape.":
        lambda gs, c: [g.flatten() for g in clip.right(gs, c)],
    "This is the factor, or the length. Return the list of the shortened tensors.":
        (lambda gs, c: min(1.0, c / length(gs)), lambda gs, c: length(gs)),
}  # fmt: skip


@exercise(
    inputs=[(3 * normal(4, 4, seed=1),), (3 * normal(3, 6, seed=2),), (3 * normal(7, 2, seed=3),),
            (normal(1, 5, seed=4),), (torch.diag(torch.tensor([5.0, 0.1])),)],
    clash="Is `full_matrices=False` missing? Or did you transpose Wt, which svd returns transposed "
    "already?",
    praise="All singular values are 1, and the directions are kept.",
    tolerance=1e-3,
)  # fmt: skip
def equalised(matrix):
    """equalised(matrix): U Wᵀ of U Σ Wᵀ, for any shape."""
    U, _, Wt = svd(matrix)
    return U @ Wt


def svd(matrix):
    return torch.linalg.svd(matrix, full_matrices=False)


def of_parts(function):
    return lambda m: function(*svd(m))


def wide(function):
    """Turn what is taller than wide, before and after."""
    return lambda m: function(m) if m.shape[0] <= m.shape[1] else function(m.T).T


def quintic(x):
    """Muon's five multiplications."""
    x = x / x.norm()
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


equalised.mistakes = {
    "This is the matrix itself: the singular values are still in it. Leave them out.": torch.clone,
    "This is the matrix divided by its length: all singular values shrink alike. Leave them "
    "out: U Wᵀ.": lambda m: m / m.norm(),
    "The matrix divided by its largest singular value: leave all of them out.":
        lambda m: m / svd(m)[1][0],
    "All singular values are equal, but not 1: return U Wᵀ alone.":
        (of_parts(lambda U, S, Wt: U @ Wt * S.mean()), of_parts(lambda U, S, Wt: U @ Wt * S[0]),
         of_parts(lambda U, S, Wt: U @ Wt * max(1, len(U) / len(Wt.T)) ** 0.5)),
    "You clamped the singular values at 1, so the small ones stay small. Leave them out: U Wᵀ.":
        of_parts(lambda U, S, Wt: U * S.clamp(max=1) @ Wt),
    "You took the roots of the singular values. Leave them out: U Wᵀ.":
        of_parts(lambda U, S, Wt: U * S.sqrt() @ Wt),
    "These are the signs of the entries. Make the singular values 1, not the entries.": torch.sign,
    "This is the transposed matrix.": lambda m: equalised.right(m).T,
    "You scaled each row to length 1. The rows should also be perpendicular: U Wᵀ.":
        lambda m: m / m.norm(dim=1, keepdim=True),
    "You scaled each column to length 1. Columns should also be perpendicular: U Wᵀ.":
        lambda m: m / m.norm(dim=0, keepdim=True),
    "This is the transposed inverse: each singular value is 1 / itself, not 1.":
        lambda m: torch.linalg.pinv(m).T,
    "This is the (pseudo-)inverse: each singular value is 1 / itself, not 1.": torch.linalg.pinv,
    "QR gives perpendicular directions, too, but different ones, which depend on the order of the "
    "columns. Use torch.linalg.svd: U Wᵀ.": (
        lambda m: torch.linalg.qr(m).Q, wide(lambda m: torch.linalg.qr(m.T).Q.T),
        lambda m: (qr := torch.linalg.qr(m)).Q * qr.R.diagonal().sign()),
    "torch.linalg.svd returns Wᵀ already. You transposed it again.":
        of_parts(lambda U, S, Wt: U @ Wt.T),
    "You transposed U: it is U Wᵀ.": of_parts(lambda U, S, Wt: U.T @ Wt),
    "The order is wrong: U Wᵀ, not Wᵀ U.": of_parts(lambda U, S, Wt: Wt @ U),
    "This is one of the parts, or all three. Multiply U by Wᵀ.":
        (svd, *(lambda m, part=part: svd(m)[part] for part in range(3))),
    "Muon's five multiplications only come near. Use torch.linalg.svd.": wide(quintic),
    "This is the identity. The directions U and Wᵀ should stay.": lambda m: torch.eye(*m.shape),
}  # fmt: skip

RATES = 0.003, 0.01, 0.02, 0.06


@checked
def warm_up_pays(answer):
    """warm_up_pays: what 40 steps of warm-up gain at four rates, and the rates where they do."""
    gains, pays = reported(
        answer,
        (dict.fromkeys(RATES, 0.01), [0.06]),
        "Set warm_up_pays to a pair: the gains, rate → gain, and the list of rates where it pays, "
        "({0.003: 0.2, …}, [0.003]).",
    )
    expect(
        all(abs(gain) < 1 for gain in gains.values()),
        "A gain is a difference of two losses, the one without warm-up minus the one with it; "
        "these are too large for that. Are they the losses themselves?",
    )
    expect(
        len(set(gains.values())) > 1,
        "All your gains are equal: did each rate get its own two runs?",
    )
    expect(
        min(gains[0.02], gains[0.06]) > -0.1,
        "At the large rates your warm-up does harm. The difference seems to be reversed: take "
        "without minus with.",
    )
    expect(
        max(gains[0.02], gains[0.06]) > 0.05 > max(gains[0.003], gains[0.01])
        and gains[0.003] > -0.035,  # with a fall it is -0.051
        "These are not the gains of the small GPT from this seed. `stepped` gives (run, loss): "
        "take the loss, with w=40 of 200 steps in one of the two, and f=1.0 in both.",
    )
    best = [rate for rate in RATES if gains[rate] > 0.05]
    expect(
        sorted(pays) == best,
        f"By your own gains warm-up is worth more than 0.05 at {', '.join(map(str, best))}.",
    )
    return "Warm-up pays where the rate is too high."


# --- the whole task: clip, warm up, average, decay, step ----------------------------------------


def linear(n, w):
    return min(1.0, (n + 1) / w)


def walk(
    clipped=clip.right,
    share=linear,
    betas=(0.9, 0.95),
    hat=lambda mean, beta, n: mean / (1 - beta ** (n + 1)),
    decays=lambda p: p.dim() >= 2,
    shrink=lambda rate, full: rate,
    step=lambda m, s: m / (s.sqrt() + 1e-8),
    into_gradient=False,
    steps=None,
    fresh=False,
):
    """All of AdamW's steps, or one thing done otherwise."""

    def answer(parameters, gradients, rate, warmup, longest, decay):
        ps = [p.clone() for p in parameters]
        ms, ss = ([torch.zeros_like(p) for p in ps] for _ in range(2))
        for n, gs in enumerate(gradients[:steps]):
            eta = rate * share(n, warmup)
            for i, g in enumerate(clipped(gs, longest)):
                own = decay if decays(ps[i]) else 0.0
                g = g + own * ps[i] if into_gradient else g
                ms[i] = betas[0] * (0 if fresh else ms[i]) + (1 - betas[0]) * g
                ss[i] = betas[1] * (0 if fresh else ss[i]) + (1 - betas[1]) * g**2
                m, s = hat(ms[i], betas[0], n), hat(ss[i], betas[1], n)
                less = 0.0 if into_gradient else shrink(eta, rate) * own
                ps[i] = ps[i] - less * ps[i] - eta * step(m, s)
        return ps

    return answer


def task(
    n_steps, seed, rate, warmup, longest, decay, shapes=((3, 4), (4,), (2, 3)), change=torch.clone
):  # fmt: skip
    return (
        [normal(*shape, seed=seed + i) for i, shape in enumerate(shapes)],
        [
            [change((1 + n % 3) * normal(*shape, seed=seed + 10 * n + i + 5))
             for i, shape in enumerate(shapes)] for n in range(n_steps)
        ],
        rate, warmup, longest, decay,
    )  # fmt: skip


@exercise(
    inputs=[
        task(6, 1, 0.1, 3, 4.0, 0.5), task(8, 2, 0.05, 5, 2.0, 1.0), task(4, 3, 0.2, 2, 100.0, 0.8),
        task(5, 4, 0.1, 10, 3.0, 2.0), task(1, 5, 0.1, 4, 1.0, 0.9),
        task(7, 6, 0.1, 2, 1.0, 0.7, shapes=((5,), (1, 4))),
        task(4, 7, 0.1, 2, 1.0, 0.5, change=lambda g: 0.001 * g.relu()),  # epsilon counts
    ],
    praise="Clip, warm up, two averages, decay of the matrices, and a step: that is the whole "
    "machinery of a training run.",
)  # fmt: skip
def optimised(parameters, gradients, rate, warmup, longest, decay):
    """optimised(parameters, gradients, rate, warmup, longest, decay): after all steps of AdamW."""
    torch.optim.AdamW([torch.zeros(1)])  # the first takes seconds: not those of the learner's call
    return walk()(parameters, gradients, rate, warmup, longest, decay)


def call_in_words(given):
    """The call, without its tensors."""
    _, gradients, *numbers = given
    return f"optimised(parameters, {len(gradients)} gradients, {', '.join(map(str, numbers))})"


optimised.what = call_in_words  # type: ignore[method-assign]

optimised.mistakes = {
    "You did not clip: all gradients of a step together are at most `longest` long.":
        walk(clipped=lambda gs, c: gs),
    "You clipped each tensor by itself. All gradients of a step are one vector.":
        walk(clipped=lambda gs, c: [clip.right([g], c)[0] for g in gs]),
    "You clipped each number. That changes the direction: shorten all gradients by one factor.":
        walk(clipped=lambda gs, c: [g.clamp(-c, c) for g in gs]),
    "You always bring the length to `longest`. Shorter gradients stay as they are.":
        walk(clipped=lambda gs, c: times(gs, c / length(gs))),
    "The warm-up is missing: multiply the rate of step n by (n + 1) / warmup, at most by 1.":
        walk(share=lambda n, w: 1.0),
    "Your first step has the rate 0. Its factor is (n + 1) / warmup, with n = 0.":
        walk(share=lambda n, w: min(1.0, n / w)),
    "Your warm-up factor keeps growing. It is at most 1.": walk(share=lambda n, w: (n + 1) / w),
    "The averages start at 0 and are too small at first: divide by 1 − βⁿ, n from 1 on.":
        walk(hat=lambda mean, beta, n: mean),
    "You divide by 1 − β at every step. Divide by 1 − βⁿ, where n counts the steps from 1.":
        walk(hat=lambda mean, beta, n: mean / (1 - beta)),
    "You count the steps from 0 in 1 − βⁿ, so the first one divides by 0. Count from 1.": walk(
        hat=lambda mean, beta, n: mean / (1 - beta**n)),
    "Your betas differ from those asked for: 0.9 for the gradient, 0.95 for its square (PyTorch's "
    "is 0.999).":
        tuple(walk(betas=betas) for betas in ((0.9, 0.999), (0.9, 0.9), (0.95, 0.9))),
    "You step by the last gradient. Step by the average of the gradients, corrected.":
        walk(betas=(0.0, 0.95)),
    "Your averages start again at every step. Keep them from one step to the next.":
        walk(fresh=True),
    "The root is missing: divide by √ŝ, not by ŝ.": walk(step=lambda m, s: m / (s + 1e-8)),
    "Divide by √ŝ + ε: epsilon is added outside the root.": (
        walk(step=lambda m, s: m / (s + 1e-8).sqrt()), walk(step=lambda m, s: m / s.sqrt())),
    "You step by the average of the gradient alone. Divide it by √ŝ + ε.":
        walk(step=lambda m, s: m),
    "Your vectors decay too. Only tensors with two dimensions should.":
        (walk(decays=lambda p: True), walk(decays=lambda p: p.dim() < 2)),
    "Your matrices do not decay. At each step they should shrink by rate · decay of themselves.":
        walk(decays=lambda p: False),
    "Your decay uses the full rate. It should use this step's rate, warm-up included.":
        walk(shrink=lambda rate, full: full),
    "Your decay is not multiplied by the rate. Multiply it by this step's rate.":
        walk(shrink=lambda rate, full: 1.0),
    "The decay has the wrong sign: your matrices grow.": walk(shrink=lambda rate, full: -rate),
    "You add the decay to the gradient (Adam's way, before AdamW): then it is divided by √ŝ, too. "
    "Shrink the parameter itself.": walk(into_gradient=True),
    "You go uphill: subtract the step.": walk(step=lambda m, s: -m / (s.sqrt() + 1e-8)),
    "You stop after the first step: is `return` in the loop?": walk(steps=1),
    "These are the parameters as they were given: did you change copies, and return others?":
        walk(steps=0),
}  # fmt: skip
