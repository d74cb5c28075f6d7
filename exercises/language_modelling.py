"""The exercises of chapter 02: the loss and its gradient, counting, sampling."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from exercises.check import (
    NotYet,
    call,
    checked,
    exercise,
    expect,
    expect_without,
    normal,
    plain,
    reported,
    tensor,
)


def logits_and_targets(B, T, V, seed):
    y = torch.randint(V, (B, T), generator=torch.Generator().manual_seed(seed))
    return 2 * normal(B, T, V, seed=seed), y


def large(*logits, y):
    return torch.tensor([logits]) * 1000, torch.tensor([y])


@exercise(
    # In the large ones the target has all the probability, or none; one place alone is large, so
    # that no other's maximum helps; and all logits are far below 0.
    inputs=[logits_and_targets(*size, seed) for seed, size in
            enumerate([(2, 3, 5), (4, 1, 3), (1, 6, 6), (3, 3, 3), (4, 2, 7)])]
    + [large([1.0, 0.0], [0.0, 1.0], y=[0, 0]), large([1.0, 0.0], [0.0, 0.0], y=[0, 1]),
       large([-1.0, -1.0, -1.0], y=[2])],
    clash="`gather` keeps the axis, with length 1. Remove it with `[..., 0]` to get (B, T).",
    why=[""] * 5 + ["Logits of 1000 are too large for exp, and a probability may round to 0: "
    "`log_softmax` computes both in one safe step."] * 3,
    praise="The mean of −ln p of the true tokens, also for large logits.",
)  # fmt: skip
def cross_entropy(logits, y):
    """cross_entropy(logits, y): the mean surprise in nats; logits (B, T, V), y (B, T)."""
    return -at(logits.log_softmax(-1), y).mean()


def at(values, y):
    """values[b, t, y[b, t]], shape (B, T)."""
    return values.gather(-1, y[..., None]).squeeze(-1)


def loss(logits, y):
    return cross_entropy.right(logits, y)


def surprises(logits, y):
    return -at(logits.log_softmax(-1), y)


EPSILONS = [10.0**-digits for digits in (*range(3, 17), 20)]
cross_entropy.mistakes = {
    "Right for small logits, but logits of 1000 give infinity or NaN: exp overflows, or the "
    "logarithm meets a 0. `log_softmax` computes both in one safe step.":
        (lambda z, y: -at(z.softmax(-1).log(), y).mean(),
         lambda z, y: -at((z.exp() / z.exp().sum(-1, keepdim=True)).log(), y).mean(),
         lambda z, y: (z.exp().sum(-1).log() - at(z, y)).mean()),
    "You subtract one maximum from all logits. Each position needs its own: `log_softmax` sees to "
    "that.": (lambda z, y: ((z - z.max()).exp().sum(-1).log() - at(z - z.max(), y)).mean(),
              lambda z, y: ((s := z - z.amax((1, 2), True)).exp().sum(-1).log() - at(s, y)).mean()),
    "You added a small number, or clamped. That keeps the loss finite, but makes it wrong: with "
    "logits of 1000 a surprise can be 1000. `log_softmax` needs no such help.":
        (*(lambda z, y, e=e: -at((z.softmax(-1) + e).log(), y).mean() for e in EPSILONS),
         *(lambda z, y, e=e: -at(z.softmax(-1).clamp(e).log(), y).mean() for e in EPSILONS),
         lambda z, y: -at(z.softmax(-1).log().nan_to_num(), y).mean(),
         lambda z, y: -at(z.softmax(-1).log().clamp(-100), y).mean(),
         *(lambda z, y, c=c: loss(z.clamp(-c, c), y) for c in (20, 30, 50, 80, 88, 100, 500))),
    "`F.cross_entropy` expects the symbols on axis 1, and the task is to do without it.":
        lambda z, y: F.cross_entropy(z, y),
    "This is the sum over all positions. The loss is the mean, so that it does not depend on the "
    "size of the batch.": lambda z, y: loss(z, y) * y.numel(),
    "You divided by B or by T alone: the mean runs over all B · T positions.":
        (lambda z, y: loss(z, y) * y.shape[1], lambda z, y: loss(z, y) * y.shape[0]),
    "You divided by V, too: the mean runs over the B · T positions, one number each.":
        lambda z, y: loss(z, y) / z.shape[-1],
    "This is the perplexity, e^loss. Return the loss itself.":
        (lambda z, y: loss(z, y).exp(), lambda z, y: 2 ** loss(z, y)),
    "The sign is missing: a surprise is *minus* the logarithm of a probability.":
        lambda z, y: -loss(z, y),
    "You added the logit of the true token. Subtract it: logsumexp − logit.":
        lambda z, y: (z.logsumexp(-1) + at(z, y)).mean(),
    "This is in bits (log2), or in log10. Nats use the natural logarithm.":
        (lambda z, y: loss(z, y) / math.log(2), lambda z, y: loss(z, y) / math.log(10)),
    "The probabilities at one position do not sum to 1: your softmax runs over time, the texts or "
    "all numbers. It should run over the last axis, the symbols.":
        (lambda z, y: -at(z.log_softmax(1), y).mean(), lambda z, y: -at(z.log_softmax(0), y).mean(),
         lambda z, y: -at(z.flatten().log_softmax(0).view_as(z), y).mean()),
    "You averaged the logits of the true tokens: turn the logits into probabilities with softmax "
    "first.": (lambda z, y: -at(z, y).mean(), lambda z, y: at(z, y).mean()),
    "You took the logarithm of the logits. Take it of probabilities: softmax comes first.":
        (lambda z, y: -at(z.log(), y).mean(), lambda z, y: -at(z, y).mean().log()),
    "The logarithm is missing: you averaged probabilities, not surprises.":
        (lambda z, y: at(z.softmax(-1), y).mean(), lambda z, y: -at(z.softmax(-1), y).mean(),
         lambda z, y: 1 - at(z.softmax(-1), y).mean()),
    "You took the logarithm of the mean probability. The loss is the mean of the logarithms.":
        lambda z, y: -at(z.softmax(-1), y).mean().log(),
    "You applied softmax twice: the loss took the softmax of probabilities.":
        lambda z, y: loss(z.softmax(-1), y),
    "This is only the logsumexp of the logits. Subtract the logit of the true token from it.":
        lambda z, y: z.exp().sum(-1).log().mean(),
    "`[..., y]` picks every target at every position. Pick only each position's own target, with "
    "`gather`.": lambda z, y: -z.log_softmax(-1)[..., y].mean(),
    "You used the surprise of all V symbols. Only that of the true token counts.":
        (lambda z, y: -z.log_softmax(-1).mean(), lambda z, y: -z.log_softmax(-1).sum(-1).mean()),
    "This is the entropy of the predictions. Take the surprise of the true token.":
        lambda z, y: -(z.softmax(-1) * z.log_softmax(-1)).sum(-1).mean(),
    "This is the surprise of the most probable token. Take that of the true one, y.":
        lambda z, y: -z.log_softmax(-1).amax(-1).mean(),
    "You shifted the targets. y[b, t] belongs to logits[b, t] already.":
        (lambda z, y: surprises(z[:, :-1], y[:, 1:]).mean(),
         lambda z, y: surprises(z, y.roll(-1, 1)).mean()),
    "The targets do not belong to their logits: flatten both in the same order.":
        lambda z, y: surprises(z.flatten(0, 1), y.T.flatten()).mean(),
    "`view` or `reshape` does not move an axis: logits (B, T, V) → (B, V, T) needs `transpose`.":
        lambda z, y: surprises(z.reshape(len(z), z.shape[2], -1).mT, y).mean(),
    "You used only the last position, or only the first text. The loss is the mean over all.":
        (lambda z, y: surprises(z, y)[:, -1].mean(), lambda z, y: surprises(z, y)[0].mean()),
    "This is the largest or the median surprise. The loss is the mean of all.":
        (lambda z, y: surprises(z, y).max(), lambda z, y: surprises(z, y).median()),
    "These are the surprises of all positions. The loss is their mean, one number.":
        (surprises, lambda z, y: surprises(z, y)[..., None], lambda z, y: surprises(z, y).flatten(),
         lambda z, y: -surprises(z, y), lambda z, y: -surprises(z, y)[..., None]),
    "This is one number per text, or per position. The loss is one number for the whole batch.":
        (lambda z, y: surprises(z, y).mean(1), lambda z, y: surprises(z, y).sum(1),
         lambda z, y: surprises(z, y).mean(0)),
}  # fmt: skip


@cross_entropy.then
def by_hand_and_differentiable(answer):
    given = cross_entropy.inputs[0]
    diagnosis = "The loss is right, but torch's own `cross_entropy` computed it. Do it yourself."
    expect_without(answer, given, ["cross_entropy", "cross_entropy_loss"], diagnosis)
    if isinstance(answer(*given), Tensor):  # of a plain number nobody expects gradients
        cross_entropy.expect_backward(answer, given)


@exercise(
    # V is none of B, T, B · T and the numbers beside it; the targets of [0, 2], [1, 1] lack one.
    inputs=[logits_and_targets(*size, seed) for seed, size in
            enumerate([(2, 3, 8), (4, 1, 6), (1, 6, 4), (3, 3, 5), (3, 2, 9)])]
    + [(normal(2, 2, 4, seed=7), torch.tensor([[0, 2], [1, 1]])),
       large([1.0, 0.0], [0.0, 0.0], y=[0, 1])],
    praise="Probability minus truth at every position, divided by the number of positions.",
    clash="The softmax and the targets must have the same shape: `F.one_hot(y, V)` is (B, T, V).",
)  # fmt: skip
def logit_gradient(logits, y):
    """logit_gradient(logits, y): the gradient of the cross-entropy at the logits, (B, T, V)."""
    return (logits.softmax(-1) - truth(logits, y)) / y.numel()


def truth(logits, y):
    """1 at the targets and 0 elsewhere, (B, T, V)."""
    return F.one_hot(y, logits.shape[-1]).float()


logit_gradient.mistakes = {
    "This is the gradient of the *sum* of the surprises. The loss is their mean: divide by the "
    "number of positions, B · T.": lambda z, y: z.softmax(-1) - truth(z, y),
    "The sign is reversed: the gradient is predicted minus true. A step goes *against* the "
    "gradient.": (
        lambda z, y: (truth(z, y) - z.softmax(-1)) / y.numel(),
        lambda z, y: truth(z, y) - z.softmax(-1),
    ),
    "These are the probabilities alone: subtract 1 at the targets.":
        (lambda z, y: z.softmax(-1), lambda z, y: z.softmax(-1) / y.numel()),
    "Mind the brackets: p minus the truth is what is divided, not p alone.":
        lambda z, y: z.softmax(-1) / y.numel() - truth(z, y),
    "Right for small logits, but logits of 1000 give infinity or NaN: use `softmax`, which avoids "
    "that.":
        lambda z, y: (z.exp() / z.exp().sum(-1, keepdim=True) - truth(z, y)) / y.numel(),
    "You averaged over the positions. Each position keeps its own difference, divided by B · T.":
        lambda z, y: (z.softmax(-1) - truth(z, y)).mean((0, 1)),
    "You return B and T as one axis. Reshape to (B, T, V).":
        lambda z, y: logit_gradient.right(z, y).flatten(0, 1),
    "`[..., y]` picks the columns of all targets at every position. Each position has its own "
    "target.":
        lambda z, y: (z.softmax(-1) - truth(z, y).amax((0, 1))) / y.numel(),
    "This is the gradient of the target's probability. The loss is −ln of it, with the gradient p "
    "− 1 at the target.": tuple(
        lambda z, y, by=by: by * z.softmax(-1) * (z.softmax(-1) - truth(z, y)) / y.numel()
        for by in (1, -1)),
    "Your probabilities are sigmoids, one logit at a time: take the softmax over all symbols.":
        lambda z, y: (z.sigmoid() - truth(z, y)) / y.numel(),
    "You subtracted the targets from the logits. Take the softmax first.":
        (lambda z, y: (z - truth(z, y)) / y.numel(), lambda z, y: z - truth(z, y)),
    "You used log-probabilities. The gradient uses the probabilities themselves.":
        (lambda z, y: (z.log_softmax(-1) - truth(z, y)) / y.numel(),
         lambda z, y: z.log_softmax(-1) - truth(z, y)),
    "You divided by B or by T alone: the mean runs over B · T positions.": tuple(
        lambda z, y, dim=dim: (z.softmax(-1) - truth(z, y)) / y.shape[dim] for dim in (0, 1)),
    "You divided by V, or by B · T · V: a position is one example, whatever V is.": tuple(
        lambda z, y, start=start: (z.softmax(-1) - truth(z, y)) / z[start].numel()
        for start in ((0, 0), ...)),
    "The softmax runs over the wrong axis: the symbols are the last one.":
        (lambda z, y: (z.softmax(1) - truth(z, y)) / y.numel(),
         lambda z, y: (z.softmax(0) - truth(z, y)) / y.numel()),
    "Your gradient is 0 except at the targets. All other logits have one, too: p.":
        lambda z, y: (z.softmax(-1) - 1) * truth(z, y) / y.numel(),
    "You left the targets out: their gradient is p − 1, a negative number.":
        lambda z, y: z.softmax(-1) * (1 - truth(z, y)) / y.numel(),
    "You subtracted 1 everywhere: only at the targets.":
        lambda z, y: (z.softmax(-1) - 1) / y.numel(),
}  # fmt: skip


@logit_gradient.then
def by_the_rule(answer):
    given = logit_gradient.inputs[0]
    diagnosis = "The gradient is right, but PyTorch's `backward` computed it. Use section 7's rule."
    expect_without(answer, given, ["backward", "grad", "requires_grad_"], diagnosis)


# The best reach when only one part in … of the text is counted, on the validation text.
REACH = {1000: 2, 100: 3, 10: 4, 1: 5}
OTHERWISE = {
    "These are the best reaches of smoothed tables (leave `smoothing` out, so that they back off), "
    "or each is one too low: row 0 of `surprises` is for no character back.":
        {1000: 1, 100: 2, 10: 3, 1: 4},
    "Each is the longest reach that you tried. On the text that was counted, a longer past always "
    "looks better: judge on `validation_ids`.": {1000: 7, 100: 7, 10: 7, 1: 7},
    "These reaches have the highest loss. Take those with the lowest.":
        {1000: 0, 100: 0, 10: 0, 1: 0},
    "These are one too high: row k of `surprises` is for k characters back, and row 0 for none.":
        {part: k + 1 for part, k in REACH.items()},
    "They are in reverse order: 1000 stands for a thousandth of the text, 1 for all of it.":
        {1000: 5, 100: 4, 10: 3, 1: 2},
}  # fmt: skip


@checked
def best_reach(answer):
    """reach: part of the text (one in 1000, 100, 10, 1) → the best number of characters back."""
    wanted = (
        "Set reach to a dictionary, {1000: …, 100: …, 10: …, 1: …}: the best reach for each part."
    )
    found = reported(answer, REACH, wanted)
    for diagnosis, wrong in OTHERWISE.items():
        expect(any(abs(found[part] - wrong[part]) > 0.01 for part in REACH), diagnosis)
    expect(
        all(k.is_integer() for k in found.values()),
        "A reach is a whole number, but these look like losses. The answer is the number of "
        "characters back at which the loss is lowest: `argmin`.",
    )
    for part in reversed(REACH):
        expect(
            found[part] == REACH[part],
            f"With `ids[: len(ids) // {part}]` another reach is better. Count that text with a "
            "reach of 7, take the mean of each row of `surprises(validation_ids)`, and then the "
            "index of the lowest.",
        )
    return "Ten times the text, one character more: a longer past needs more data."


def no_choice(*after):
    """A table in which id i is always followed by after[i]."""
    return torch.eye(len(after))[list(after)]


@exercise(
    inputs=[
        *((no_choice(2, 0, 3, 1), 2, 6), (no_choice(2, 0, 3, 1), 3, 5), (no_choice(1, 0), 0, 3)),
        *((no_choice(1, 2, 0), 1, 4), (no_choice(3, 4, 1, 1, 2), 0, 7)),
        *((no_choice(2, 0, 3, 1), 2, 1), (no_choice(1, 0), 1, 0)),
        (no_choice(*range(1, 40), 0), 7, 300),  # what comes by chance in it comes soon
    ],
    why=["This table leaves no choice: after each id only one can come."] * 8,
    draws=True,
    praise="Each id is drawn from the row of the one before, and the frequencies fit the table.",
)
def generate(table, start, n):
    """generate(table, start, n): n ids, each drawn from the row of the one before."""
    ids = []
    for _ in range(n):
        start = torch.multinomial(table[start], 1).item()
        ids.append(start)
    return ids


def walk(table, start, n):
    return generate.right(table, start, n)


generate.mistakes = {
    "You always draw from the row of the start. The next row is that of the id just drawn.":
        lambda table, start, n: walk(table, start, 1) * n,
    "The start is in your list: return only the n new ids.":
        lambda table, start, n: [start, *walk(table, start, n)],
    "The start is in your list, in place of the last new id.":
        lambda table, start, n: [start, *walk(table, start, n - 1)],
    "You begin after id 0: draw the first id from the row of `start`.":
        lambda table, start, n: walk(table, 0, n),
    "You begin after the last id: draw the first id from the row of `start`.":
        lambda table, start, n: walk(table, -1, n),
    "The first id that you draw is not in the list.":
        lambda table, start, n: walk(table, start, n + 1)[1:],
    "You read the columns: the row of an id holds what comes after it.":
        lambda table, start, n: walk(table.T, start, n),
    "Row t is for id t, not for step t: draw from the row of the id just drawn.":
        (lambda table, start, n: [walk(table, t % len(table), 1)[0] for t in range(n)],
         lambda table, start, n: [walk(table, (start + t) % len(table), 1)[0] for t in range(n)]),
    "One id too many: n are asked for.": lambda table, start, n: walk(table, start, n + 1),
    "One id too few: n are asked for.": lambda table, start, n: walk(table, start, n - 1),
    "Only one id: is `return` inside the loop?":
        (lambda table, start, n: walk(table, start, 1),
         lambda table, start, n: walk(table, start, 1)[0]),
    "This is only the last id. Return the list of all n.":
        (lambda table, start, n: walk(table, start, n)[-1],
         lambda table, start, n: walk(table, start, n)[-1:]),
    "You append the start again and again. Append the id that you have drawn.":
        lambda table, start, n: [start] * n,
    "Each id is a list or a tensor with one entry. Take the number out: `[0]`, or `.item()`.":
        (lambda table, start, n: [[i] for i in walk(table, start, n)],
         lambda table, start, n: [torch.tensor([i]) for i in walk(table, start, n)],
         lambda table, start, n: torch.tensor(walk(table, start, n))[:, None]),
    "These are texts: return the ids, whole numbers.":
        (lambda table, start, n: "".join(map(str, walk(table, start, n))),
         lambda table, start, n: [str(i) for i in walk(table, start, n)]),
    "These are the probabilities of what you drew: append the ids.":
        lambda table, start, n: [1.0] * n,
    "You took the softmax of the row. Its numbers are probabilities already.":
        lambda table, start, n: walk(table.softmax(1), start, n),
    "The ids are in reverse.": lambda table, start, n: walk(table, start, n)[::-1],
    "These are rows of the table, not ids: draw an id from each with `torch.multinomial`.":
        lambda table, start, n: [table[i] for i in [start, *walk(table, start, n - 1)]],
}  # fmt: skip


@generate.then
def by_chance(answer):
    # So many that 0.05 is more than chance; in texts, as what calls itself can go only so deep.
    table, texts, n = torch.tensor([[2.0, 5, 1], [1, 2, 5], [4, 1, 3]]) / 8, 32, 400
    drawn = [plain(call(answer, table, 0, n)) for _ in range(texts)]
    ids = [tensor(text, "the ids").long() for text in drawn]
    expect(all(text.shape == (n,) for text in ids), f"generate(table, 0, {n}) should give {n} ids.")
    whole = not torch.as_tensor(drawn[0]).is_floating_point()
    expect(whole, "The ids are right, but they have a decimal point: ids are whole numbers.")
    ids = torch.stack(ids)
    expect(bool(((ids >= 0) & (ids < 3)).all()), "The ids should be 0, 1 or 2 for a table of 3.")
    before, after = ids[:, :-1].flatten(), ids[:, 1:].flatten()
    expect(
        not torch.equal(after, table.argmax(1)[before]),
        "You always take the most probable id (argmax), which runs in a circle. Draw with the "
        "probabilities: `torch.multinomial`.",
    )
    expect(
        not torch.equal(ids[0], ids[1]),
        "Two calls gave the same text: draw at random, and do not seed inside the function.",
    )
    counts = torch.bincount(3 * before + after, minlength=9).view(3, 3).float()
    got = counts / counts.sum(1, keepdim=True).clamp_min(1)
    worst = float((got - table).abs().max())
    if worst > 0.05:
        for diagnosis, wrong in {
            "Every id that can follow comes equally often. Draw with the probabilities of the row.":
                torch.full((3, 3), 1 / 3),
            "You took the softmax of the row. Its numbers are probabilities already.":
                table.softmax(1),
        }.items():  # fmt: skip
            expect(float((got - wrong).abs().mean()) > 0.035, diagnosis)
        raise NotYet(
            f"In {texts * n} draws the frequencies differ from the table by up to {worst:.1f}: "
            "draw each id with the probabilities of the row of the one before."
        )
