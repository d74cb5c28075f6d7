"""The exercises on language modelling: broken trainings, the loss and its gradient, counting."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercises.check import (
    checked,
    diagnose,
    exercise,
    expect,
    expect_without,
    generator,
    normal,
    reported,
)
from helpers.training import get_batch


def logits_and_targets(B, T, V, seed):
    y = torch.randint(V, (B, T), generator=generator(seed))
    return 2 * normal(B, T, V, seed=seed), y


def large(*logits, y):
    return torch.tensor([logits]) * 1000, torch.tensor([y])


SIZES = [(2, 3, 5), (4, 1, 3), (1, 6, 6), (3, 3, 3), (4, 2, 7)]


FAULTS = {"A": 2, "B": 1, "C": 3, "D": 5}  # run → suspect; suspect 4 is innocent


def broken_runs(ids: Tensor, V: int) -> dict[str, list[float]]:
    """The losses of 200 steps of a bigram model with Adam: with each fault, and in order."""
    runs: dict[str, list[float]] = {}
    for name, fault in {"in order": 0, **FAULTS}.items():
        draw = generator(0)
        model = nn.Embedding.from_pretrained(torch.randn(V, V, generator=draw), freeze=False)
        if fault == 5:
            model.weight.data *= 5
        optimizer = torch.optim.Adam(model.parameters(), lr=0.001 if fault == 4 else 0.1)
        runs[name] = losses = []
        for _ in range(200):
            x, y = get_batch(ids, 64, 64, draw)
            logits = model(x).softmax(-1) if fault == 2 else model(x)
            loss = F.cross_entropy(logits.flatten(0, 1), (x if fault == 1 else y).flatten())
            if fault != 3:
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return runs


@checked
def broken_training(answer):
    """faults: run → the number of the suspect."""
    wanted = 'Set faults to a dictionary, {"A": …, "B": …, "C": …, "D": …}: a number from 1 to 5.'
    found = reported(answer, FAULTS, wanted)
    expect(set(found.values()) <= {1, 2, 3, 4, 5}, wanted)
    diagnose("""
        Four runs have four different faults, but you named one suspect twice.
            len(set(found.values())) < 4
        A does not learn slowly: it levels off at 4.0, and its first loss is ln V to the second
        digit. A low learning rate leaves the first loss as it was, at 4.7.
            found["A"] == 4
        B's loss is far below 2.47, which no bigram table can reach. It must have seen what it
        should predict.
            found["B"] != 1
        The first loss of D is 12.8, before any step was taken. What can be wrong before the first
        step?
            found["D"] != 5
        C begins like the run in order, so its model, its logits and its targets are right. What
        comes in only after the first step, and grows?
            found["C"] != 3
        A's first loss is ln V: its first probabilities are all nearly equal, although its logits
        are random. What makes the numbers that `F.cross_entropy` gets so small?
            found["A"] != 2
    """)
    return "Suspect 4 is innocent: a rate too low would begin at 4.7 and sink slowly."


@exercise(
    # In the large ones the target has all the probability, or none; one position alone is large, so
    # that no other's maximum helps; and all logits are far below 0.
    inputs=lambda draw: [
        *(logits_and_targets(*size, seed) for seed, size in enumerate(SIZES)),
        large([1.0, 0.0], [0.0, 1.0], y=[0, 0]),
        large([1.0, 0.0], [0.0, 0.0], y=[0, 1]),
        large([-1.0, -1.0, -1.0], y=[2]),
    ],
    example=(torch.tensor([[[1000.0, 0.0]]]), torch.tensor([[0]])),
    on_shape_error="`gather` keeps the axis, with length 1. Remove it with `[..., 0]` to get (B, "
    "T).",
    why=[""] * 5
    + [
        "Logits of 1000 are too large for exp, and a probability may round to 0: subtract the "
        "largest logit of each row, and take the logarithm before you divide."
    ]
    * 3,
    on_success="The mean of −ln p of the true tokens, also for large logits.",
)
def cross_entropy(logits, y):
    """cross_entropy(logits, y): the mean of −ln p in nats; logits (B, T, V), y (B, T)."""
    z = logits - logits.max(-1, keepdim=True).values
    log_sum = z.exp().sum(-1).log()
    return (log_sum - z.gather(-1, y[..., None])[..., 0]).mean()


cross_entropy.slips("""
    Nothing overflows any more, but a probability can still round to 0, and its logarithm is −∞.
    Take the logarithm of the sum, and subtract the target's logit: no division, no probability.
        -right(logits, y).neg().exp().log()
        -logits.softmax(-1).gather(-1, y[..., None]).log().mean()
    Right for small logits, but logits of 1000 give infinity or NaN: exp overflows. Subtract the
    largest logit of each row first.
        logits - logits.max(-1, keepdim=True).values → logits
    You added a small number, or clamped. That keeps the loss finite, but makes it wrong: with
    logits of 1000 the loss can be 1000.
        -logits.softmax(-1).add(1e-9).gather(-1, y[..., None]).log().mean()
        -logits.softmax(-1).clamp(1e-8).gather(-1, y[..., None]).log().mean()
    You subtracted one number from all logits. In a row that lies far below it, every power rounds
    to 0: subtract the largest logit of each row.
        logits.max(-1, keepdim=True).values → logits.max()
    This is the sum over all positions. The loss is the mean, so that it does not depend on the
    size of the batch.
        .mean() → .sum()
    The sign is reversed: the cost is the logarithm of the sum, *minus* the target's logit.
        -right(logits, y)
    This is in bits (log2), or in log10. Nats use the natural logarithm.
        right(logits, y) / torch.tensor(2.0).log()
    You subtracted the largest logit on one side only: the target's own logit has to be shifted
    like those in the sum.
        log_sum - z.gather → log_sum - logits.gather
    The probabilities at one position do not sum to 1: your sum runs over time or over the texts.
    It should run over the last axis, the symbols.
        -logits.log_softmax(1).gather(-1, y[..., None]).mean()
        -logits.log_softmax(0).gather(-1, y[..., None]).mean()
    `[..., y]` picks every target at every position. Pick only each position's own target, with
    `gather`.
        (log_sum - z.gather(-1, y[..., None])[..., 0]) → (log_sum[..., None, None] - z[..., y])
    These are the values of −ln p at all positions. The loss is their mean, one number.
        .mean() →
""")


@cross_entropy.also
def by_hand_and_differentiable(answer):
    given = cross_entropy.inputs[0]
    diagnosis = (
        "The loss is right, but a function of PyTorch did the repair. Make do without "
        "`cross_entropy`, `log_softmax` and `logsumexp`."
    )
    ready = ["cross_entropy", "cross_entropy_loss", "log_softmax", "logsumexp"]
    expect_without(answer, given, ready, diagnosis)
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
    Your gradient is 0 except at the targets. All other logits have one as well: p.
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
