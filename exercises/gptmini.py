"""The exercises of chapter 13: windows, a split by windows that do not overlap, batches by step."""

import random

import numpy as np
import torch

from exercises.check import call, checked, exercise, expect, reported


@exercise(
    inputs=[
        ([1, 2, 3, 4, 5, 6, 7, 8], 3, 2),
        ([1, 2, 3, 4, 5, 6], 2, 2),
        ([1, 2, 3, 4, 5, 6, 7], 3, 1),
        ([9, 8, 7, 6, 5, 4, 3, 2, 1], 4, 3),
        ([5, 6, 7, 8, 9], 2, 3),
        ([3, 3, 1, 3, 3, 1, 3, 0, 300], 2, 4),
        ([4, 8, 6], 1, 1),
        ([1, 2, 3], 3, 1),
        ([1, 2, 3, 4], 3, 5),
    ],
    praise="Every full window, and no partial ones.",
    tolerance=0,
)
def windows_of(ids, T, stride):
    """windows_of(ids, T, stride): the pairs (x, y) of all whole windows."""
    starts = range(0, len(ids) - T, stride)
    return [(ids[i : i + T], ids[i + 1 : i + T + 1]) for i in starts]


def whole(n, T, stride):
    return range(0, n - T, stride)


def windows_at(starts=whole, shift=1):
    """With other starts, or another way from x to y."""
    return lambda ids, T, stride: [
        (ids[i : i + T], ids[i + shift : i + shift + T]) for i in starts(len(ids), T, stride)
    ]


windows_of.mistakes = {
    "The last y is too short: the window that begins at len(ids) − T has no last target. Begin "
    "no later than len(ids) − T − 1.": windows_at(lambda n, T, stride: range(0, n - T + 1, stride)),
    "The last windows are cut short. A window needs T + 1 ids.": (
        windows_at(lambda n, T, stride: range(0, n, stride)),
        windows_at(lambda n, T, stride: range(0, n - 1, stride))),
    "One window is missing: the last one may begin at len(ids) − T − 1. (The end of a range does "
    "not belong to it, and `//` rounds down.)": (
        windows_at(lambda n, T, stride: range(0, n - T - 1, stride)),
        windows_at(lambda n, T, stride: range(0, (n - T) // stride * stride, stride)),
        windows_at(lambda n, T, stride: range(0, (n - T - 1) // stride * stride, stride))),
    "The first window begins at 0.": windows_at(lambda n, T, stride: range(stride, n - T, stride)),
    "y equals x. The targets are one id later.": windows_at(shift=0),
    "y begins where x ends. The targets are one id later, not T.": (
        lambda ids, T, stride: windows_at(shift=T)(ids, T, stride),
        lambda ids, T, stride: windows_at(lambda n, T, s: range(0, n - 2 * T + 1, s), T)(
            ids, T, stride),
    ),
    "y is `stride` later than x. The targets are one id later.":
        lambda ids, T, stride: windows_at(shift=stride)(ids, T, stride),
    "y is two ids later than x. The targets are one id later.": windows_at(shift=2),
    "Your y is a single id. Each of the T positions has its own target.": (
        lambda *given: [(x, y[-1:]) for x, y in windows_of.right(*given)],
        lambda *given: [(x, y[-1]) for x, y in windows_of.right(*given)],
    ),
    "Your windows move by one. They should move by `stride`.":
        windows_at(lambda n, T, stride: range(n - T)),
    "Your windows move by T. They should move by `stride`.":
        windows_at(lambda n, T, stride: range(0, n - T, T)),
    "x and y are swapped.": lambda ids, T, stride: [
        (y, x) for x, y in windows_of.right(ids, T, stride)],
    "These are windows of T + 1 ids. Make x and y of each: all but the last, all but the first.":
        lambda ids, T, stride: [ids[i : i + T + 1] for i in whole(len(ids), T, stride)],
    "x and y are one id too short: a window has T + 1 ids.": lambda ids, T, stride: [
        (x[:-1], y[:-1]) for x, y in windows_of.right(ids, T, stride)],
    "Your x and y have T + 1 ids. A window has that many; x and y have T.":
        lambda ids, T, stride: [
            (ids[i : i + T + 1], ids[i + 1 : i + T + 2]) for i in whole(len(ids), T, stride)],
    "All x come first, then all y. Return one pair (x, y) for each window.":
        lambda ids, T, stride: [
            [*part] for part in zip(*windows_of.right(ids, T, stride), strict=True)],
    "These are the starts. Return the windows themselves.":
        lambda ids, T, stride: list(whole(len(ids), T, stride)),
}  # fmt: skip


@checked
def side_by_side(answer):
    """side_by_side: the last losses on windows and articles by stride, and is the friend right?"""
    losses, right = reported(
        answer,
        ({1: (2.0, 8.0), 32: (2.0, 8.0)}, True),
        "Set side_by_side to a pair: two losses for each stride, {1: (on held-out windows, on "
        "held-out articles), 32: (…, …)}, and True or False. The two are the curve's last entry "
        "without its first, the training loss.",
    )
    (near, far), (near_apart, far_apart) = losses.values()
    expect(
        near < far and near_apart < far_apart,
        "The first of two losses is that on held-out windows, the second that on held-out "
        "articles, where the model is worse.",
    )
    expect(
        near < 3,
        "With stride 1 the model has memorised the held-out windows: their loss is below 3 nats.",
    )
    expect(
        near_apart > 6,
        "Windows that do not overlap with the training text are not memorised: after 160 steps "
        "their loss is above 6. Take the last entry of `watch_a_leak(32)`, and the second of its "
        "three losses.",
    )
    expect(
        far > 8 and far_apart > 8,
        "On articles that it has not read the model gets worse the longer it trains: after 160 "
        "steps its loss is above 8, at either stride. Take the *last* entry, not the lowest.",
    )
    expect(
        right == (far_apart - near_apart < 0.5),
        "Compare the two losses of stride 32: do they differ by less than half a nat?",
    )
    return "Windows of one article share its names and phrases, overlap or not: split by article."


@exercise(
    # Some steps reach n, and not every next one is later.
    inputs=[
        (22, 9, 2, 2), *((step, 10, 3, 7) for step in (3, 0, 1, 2, 8, 13, 25, 4)),
        (5, 12, 4, 0), (11, 12, 4, 1), (4, 5, 5, 3), (10, 9, 2, 2), (3, 11, 3, 7),
    ],
    praise="The same batch whenever you ask, so that resuming a run needs only the step.",
    tolerance=0,
)  # fmt: skip
def batch_of(step, n, B, seed):
    """batch_of(step, n, B, seed): the windows that a step reads, as a function of the step."""
    epoch, place = divmod(step, n // B)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch))
    return order[place * B : (place + 1) * B].tolist()


def shuffled(n, seed):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()


def dealt(
    steps=lambda n, B: n // B,
    epoch=lambda step, steps, n, B: step // steps,
    place=lambda step, steps: step % steps,
    order=lambda n, seed, epoch: shuffled(n, seed + epoch),
):
    """With other steps in an epoch, another epoch, place, or order."""

    def batch(step, n, B, seed):
        given = step, steps(n, B)
        begin = place(*given) * B
        return order(n, seed, epoch(*given, n, B))[begin : begin + B]

    return batch


def drawn(n, size, seed):
    return torch.randint(n, (size,), generator=torch.Generator().manual_seed(seed)).tolist()


def with_one_generator(n, seed, epoch):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randperm(n, generator=generator) for _ in range(epoch + 1)][epoch].tolist()


def by_random(n, seed, epoch):
    order = list(range(n))
    random.Random(seed + epoch).shuffle(order)
    return order


def from_place(take):
    """Takes something else out of the right order."""
    return lambda step, n, B, seed: take(
        shuffled(n, seed + step // (n // B)), step % (n // B), n, B
    )


batch_of.mistakes = {
    "Every epoch has the same order: seed the generator with `seed + epoch`.":
        dealt(order=lambda n, seed, epoch: shuffled(n, seed)),
    "You shuffle for every step, so that windows occur twice in an epoch. Seed with `seed + epoch` "
    "and deal the order out.": (
        lambda step, n, B, seed: shuffled(n, seed + step)[:B],
        dealt(epoch=lambda step, *_: step),
    ),
    "You always deal from the front: every step of an epoch reads the same batch.":
        from_place(lambda order, place, n, B: order[:B]),
    "What is left over at the end of an epoch is dropped: an epoch has `n // B` whole batches, "
    "`divmod(step, n // B)`.": (
        dealt(lambda n, B: -(-n // B)), dealt(lambda n, B: round(n / B)),
        dealt(epoch=lambda step, steps, n, B: step * B // n),
        lambda step, n, B, seed: shuffled(n, seed + step * B // n)[step * B % n :][:B],
        lambda step, n, B, seed: [
            window for epoch in range(step // (n // B) + 2) for window in shuffled(n, seed + epoch)
        ][step * B :][:B]),
    "An epoch has `n // B` steps, not n: `step // n` counts windows as if they were batches.": (
        dealt(epoch=lambda step, steps, n, B: step // n), dealt(lambda n, B: n),
        lambda step, n, B, seed: shuffled(n, seed + step // n)[step * B % n : step * B % n + B],
    ),
    "You took 3 from the example: use B, and `n // B` batches in an epoch.":
        (dealt(lambda n, B: 3), lambda step, n, B, seed: batch_of.right(step, n, 3, seed)),
    "An epoch has `n // B` steps, not B.":
        (dealt(epoch=lambda step, steps, n, B: step // B), dealt(lambda n, B: B)),
    "The steps are counted from 0: the first batch is that of step 0.":
        lambda step, n, B, seed: batch_of.right(step - 1, n, B, seed),
    "One generator, seeded once, goes on from epoch to epoch: an order then depends on those "
    "before it. Seed a new one with `seed + epoch`.": dealt(order=with_one_generator),
    "You keep counting batches after the first epoch. Start again at 0 in each.": (
        dealt(epoch=lambda *_: 0, place=lambda step, _: step), dealt(place=lambda step, _: step),
    ),
    "The epoch is counted from 0: the first seed is `seed` itself.":
        dealt(order=lambda n, seed, epoch: shuffled(n, seed + epoch + 1)),
    "You did not shuffle: an epoch's order is a `torch.randperm`.":
        dealt(order=lambda n, seed, epoch: list(range(n))),
    "You took every `n // B`-th window. Take B neighbours of the order.":
        from_place(lambda order, place, n, B: order[place :: n // B][:B]),
    "Neighbouring batches overlap: batch number `place` begins at place · B.":
        from_place(lambda order, place, n, B: order[place : place + B]),
    "Your last batches come first. Deal the order out from the front.":
        from_place(lambda order, place, n, B: order[(k := n // B - 1 - place) * B : (k + 1) * B]),
    "The batch is sorted. Its windows come in the order in which they are dealt.":
        from_place(lambda order, place, n, B: sorted(order[place * B : (place + 1) * B])),
    "The batches are shuffled, not the windows: neighbours would always come together.":
        lambda step, n, B, seed: [
            shuffled(n // B, seed + step // (n // B))[step % (n // B)] * B + i for i in range(B)],
    "You did not use the seed: add the epoch to it.":
        dealt(order=lambda n, seed, epoch: shuffled(n, epoch)),
    "The seed is multiplied by the epoch. Add them: `seed + epoch`.":
        dealt(order=lambda n, seed, epoch: shuffled(n, seed * epoch)),
    "You draw windows at random: some come twice, others never. Deal out a `torch.randperm`.": (
        lambda step, n, B, seed: drawn(n, B, seed + step // (n // B)),
        dealt(order=lambda n, seed, epoch: drawn(n, n, seed + epoch))),
    "You shuffle only as many windows as fill batches. The order is of all n: what is left over at "
    "its end is dropped.": lambda step, n, B, seed: batch_of.right(step, n // B * B, B, seed),
    "A good order, but not the one asked for: `torch.randperm(n, generator=…)`, with a "
    "`torch.Generator()`.": (
        dealt(order=by_random),
        dealt(order=lambda n, seed, epoch: np.random.default_rng(seed + epoch).permutation(n)),
        dealt(order=lambda n, seed, epoch: np.random.RandomState(seed + epoch).permutation(n)),
    ),
}  # fmt: skip


@batch_of.then
def leaves_others_draws_alone(answer):
    before = torch.get_rng_state()
    call(answer, 0, 10, 3, 7, name="batch_of")
    expect(
        torch.equal(before, torch.get_rng_state()),
        "You changed torch's own generator: whatever else draws from it (dropout) would notice. "
        "Seed a `torch.Generator()` of your own.",
    )
