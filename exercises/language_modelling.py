"""The exercises on language modelling: the loss and its gradient, counting, sampling."""

import torch
import torch.nn.functional as F
from torch import Tensor

from exercises.check import (
    call,
    checked,
    diagnose,
    exercise,
    expect,
    expect_without,
    generator,
    normal,
    plain,
    reported,
    tensor,
)


def logits_and_targets(B, T, V, seed):
    y = torch.randint(V, (B, T), generator=generator(seed))
    return 2 * normal(B, T, V, seed=seed), y


def large(*logits, y):
    return torch.tensor([logits]) * 1000, torch.tensor([y])


SIZES = [(2, 3, 5), (4, 1, 3), (1, 6, 6), (3, 3, 3), (4, 2, 7)]


@exercise(
    # In the large ones the target has all the probability, or none; one position alone is large, so
    # that no other's maximum helps; and all logits are far below 0.
    inputs=lambda draw: [
        *(logits_and_targets(*size, seed) for seed, size in enumerate(SIZES)),
        large([1.0, 0.0], [0.0, 1.0], y=[0, 0]),
        large([1.0, 0.0], [0.0, 0.0], y=[0, 1]),
        large([-1.0, -1.0, -1.0], y=[2]),
    ],
    example=(torch.zeros(1, 2, 4), torch.tensor([[3, 0]])),
    on_shape_error="`gather` keeps the axis, with length 1. Remove it with `[..., 0]` to get (B, "
    "T).",
    why=[""] * 5
    + [
        "Logits of 1000 are too large for exp, and a probability may round to 0: `log_softmax` "
        "computes both in one safe step."
    ]
    * 3,
    on_success="The mean of −ln p of the true tokens, also for large logits.",
)
def cross_entropy(logits, y):
    """cross_entropy(logits, y): the mean of −ln p in nats; logits (B, T, V), y (B, T)."""
    log_p = logits.log_softmax(-1)
    return -log_p.gather(-1, y[..., None]).mean()


cross_entropy.slips("""
    Right for small logits, but logits of 1000 give infinity or NaN: exp overflows, or the
    logarithm meets a 0. `log_softmax` computes both in one safe step.
        log_softmax(-1) → softmax(-1).log()
        logits.log_softmax(-1) → (logits.exp() / logits.exp().sum(-1, keepdim=True)).log()
        logits.log_softmax(-1) → logits - logits.exp().sum(-1, keepdim=True).log()
    You added a small number, or clamped. That keeps the loss finite, but makes it wrong: with
    logits of 1000 the loss can be 1000. `log_softmax` needs no such help.
        log_softmax(-1) → softmax(-1).add(1e-9).log()
        log_softmax(-1) → softmax(-1).add(1e-8).log()
    This is the sum over all positions. The loss is the mean, so that it does not depend on the
    size of the batch.
        .mean() → .sum()
    The sign is missing: the loss is *minus* the logarithm of a probability.
        -log_p → log_p
    This is in bits (log2), or in log10. Nats use the natural logarithm.
        right(logits, y) / torch.tensor(2.0).log()
    The probabilities at one position do not sum to 1: your softmax runs over time, the texts or
    all numbers. It should run over the last axis, the symbols.
        log_softmax(-1) → log_softmax(1)
        log_softmax(-1) → log_softmax(0)
    You averaged the logits of the true tokens: turn the logits into probabilities with softmax
    first.
        logits.log_softmax(-1) → logits
    `[..., y]` picks every target at every position. Pick only each position's own target, with
    `gather`.
        .gather(-1, y[..., None]) → [..., y]
    These are the values of −ln p at all positions. The loss is their mean, one number.
        .mean() → .squeeze(-1)
        .mean() →
""")


@cross_entropy.also
def by_hand_and_differentiable(answer):
    given = cross_entropy.inputs[0]
    diagnosis = "The loss is right, but torch's own `cross_entropy` computed it. Do it yourself."
    expect_without(answer, given, ["cross_entropy", "cross_entropy_loss"], diagnosis)
    if isinstance(answer(*given), Tensor):  # of a plain number nobody expects gradients
        cross_entropy.expect_backward(answer, given)


@exercise(
    # V is none of B, T, B · T and the numbers beside it; the targets of [0, 2], [1, 1] lack one.
    inputs=lambda draw: [
        *(
            logits_and_targets(*size, seed)
            for seed, size in enumerate([(2, 3, 8), (4, 1, 6), (1, 6, 4), (3, 3, 5), (3, 2, 9)])
        ),
        (normal(2, 2, 4, seed=7), torch.tensor([[0, 2], [1, 1]])),
        large([1.0, 0.0], [0.0, 0.0], y=[0, 1]),
    ],
    example=(torch.zeros(1, 1, 2), torch.tensor([[0]])),
    on_success="Probability minus truth at every position, divided by the number of positions.",
    on_shape_error="The softmax and the targets must have the same shape: `F.one_hot(y, V)` is "
    "(B, T, V).",
)
def logit_gradient(logits, y):
    """logit_gradient(logits, y): the gradient of the cross-entropy at the logits, (B, T, V)."""
    truth = F.one_hot(y, logits.shape[-1])
    return (logits.softmax(-1) - truth) / y.numel()


logit_gradient.slips("""
    This is the gradient of the *sum* over all positions. The loss is their mean: divide by the
    number of positions, B · T.
        / y.numel() →
    The sign is reversed: the gradient is predicted minus true. A step goes *against* the
    gradient.
        -right(logits, y)
    These are the probabilities alone: subtract 1 at the targets.
        logits.softmax(-1)
        logits.softmax(-1) / y.numel()
    Mind the brackets: p minus the truth is what is divided, not p alone.
        (logits.softmax(-1) - truth) / y.numel() → logits.softmax(-1) / y.numel() - truth
    Right for small logits, but logits of 1000 give infinity or NaN: use `softmax`, which avoids
    that.
        logits.softmax(-1) → logits.exp() / logits.exp().sum(-1, keepdim=True)
    You subtracted the targets from the logits. Take the softmax first.
        .softmax(-1) →
    You divided by B or by T alone: the mean runs over B · T positions.
        y.numel() → y.shape[0]
        y.numel() → y.shape[1]
    The softmax runs over the wrong axis: the symbols are the last one.
        softmax(-1) → softmax(1)
    Your gradient is 0 except at the targets. All other logits have one, too: p.
        (logits.softmax(-1) - truth) → (logits.softmax(-1) - 1) * truth
""")


@logit_gradient.also
def by_the_rule(answer):
    given = logit_gradient.inputs[0]
    diagnosis = (
        "The gradient is right, but PyTorch's `backward` computed it. Use the rule of section 5."
    )
    expect_without(answer, given, ["backward", "grad", "requires_grad_"], diagnosis)


# The best context length on the validation text when only one part in … of the text is counted.
REACH = {1000: 2, 100: 3, 10: 4}


@checked
def best_reach(answer):
    """reach: part of the text (one in 1000, 100, 10) → the best number of characters back."""
    wanted = (
        "Set reach to a dictionary, {1000: …, 100: …, 10: …}: the best context length for each "
        "part."
    )
    found = reported(answer, REACH, wanted)
    diagnose("""
        A context length is a whole number, but these look like losses. The answer is the number
        of characters at which the loss is lowest: `argmin`.
            not all(k.is_integer() for k in found.values())
        Each is the longest context that you tried. On the text that was counted, a longer
        context always looks better: measure the loss on `validation_ids`.
            set(found.values()) == {7}
        These are one too high: row k of what `nll` returns is for contexts of k characters, and
        row 0 for none.
            all(found[part] == k + 1 for part, k in REACH.items())
        These are the best lengths of smoothed counts (leave `smoothing` out, so that `nll`
        interpolates), or each is one too low: row 0 of what `nll` returns is for no context.
            all(found[part] == k - 1 for part, k in REACH.items())
    """)
    for part in reversed(REACH):
        expect(
            found[part] == REACH[part],
            f"With `train_ids[: len(train_ids) // {part}]` another length is better. Count that "
            "text with max_context=7, take the mean of each row of `nll(validation_ids)`, and then "
            "the index of the lowest.",
        )
    return "Ten times the text, one character more: a longer context needs more data."


def no_choice(*after):
    """A table in which id i is always followed by after[i]."""
    return torch.eye(len(after))[list(after)]


ROUND, TO_AND_FRO = no_choice(2, 0, 3, 1), no_choice(1, 0)
TABLES = [
    (ROUND, 2, 6), (ROUND, 3, 5), (TO_AND_FRO, 0, 3), (no_choice(1, 2, 0), 1, 4),
    (no_choice(3, 4, 1, 1, 2), 0, 7), (ROUND, 2, 1), (TO_AND_FRO, 1, 0),
    (no_choice(*range(1, 40), 0), 7, 300),  # what comes by chance in it comes soon
]  # fmt: skip


@exercise(
    inputs=lambda draw: [
        *TABLES,
        *((no_choice(*draw.sample(range(n), n)), draw.randrange(n), 9) for n in (4, 6)),
    ],
    example=(TO_AND_FRO, 0, 3),
    why=["This table leaves no choice: after each id only one can come."] * 8,
    draws=True,
    on_success="Each id is drawn from the row of the one before, and the frequencies fit the "
    "table.",
)
def generate(table, start, n):
    """generate(table, start, n): n ids, each drawn from the row of the one before."""
    ids = []
    for _ in range(n):
        start = torch.multinomial(table[start], 1).item()
        ids.append(start)
    return ids


generate.slips("""
    You always draw from the row of the start. The next row is that of the id just drawn.
        right(table, start, 1) * n
    The start is in your list: return only the n new ids.
        [start, *right(table, start, n)]
    The start is in your list, in place of the last new id.
        [start, *right(table, start, n - 1)]
    You read the columns: the row of an id holds what comes after it.
        table[start] → table[:, start]
    Only one id: is `return` inside the loop?
        right(table, start, 1)
        right(table, start, 1)[0]
    This is only the last id. Return the list of all n.
        return ids → return ids[-1]
    Each id is a list or a tensor with one entry. Take the number out: `[0]`, or `.item()`.
        [torch.tensor([i]) for i in right(table, start, n)]
    You took the softmax of the row. Its numbers are probabilities already.
        table[start] → table[start].softmax(0)
""")


@generate.also
def by_chance(answer):
    # So many that 0.05 is more than chance; in texts, as what calls itself can go only so deep.
    table, texts, n = torch.tensor([[2.0, 5, 1], [1, 2, 5], [4, 1, 3]]) / 8, 16, 400
    given = [plain(call(answer, table, 0, n)) for _ in range(texts)]
    ids = [tensor(text, "the ids").long() for text in given]
    expect(all(text.shape == (n,) for text in ids), f"generate(table, 0, {n}) should give {n} ids.")
    whole = not torch.as_tensor(given[0]).is_floating_point()
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
    worst = float((counts / counts.sum(1, keepdim=True).clamp_min(1) - table).abs().max())
    expect(
        worst <= 0.05,
        f"In {texts * n} draws the frequencies differ from the table by up to {worst:.1f}: "
        "draw each id with the probabilities of the row of the one before.",
    )
