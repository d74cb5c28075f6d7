"""The exercises on GPTMini: windows, a split by windows that do not overlap, batches by step."""

import torch

from exercises.check import call, checked, exercise, expect, reported


@exercise(
    inputs=lambda draw: [
        ([1, 2, 3, 4, 5, 6, 7, 8], 3, 2),
        ([1, 2, 3, 4, 5, 6], 2, 2),
        ([1, 2, 3, 4, 5, 6, 7], 3, 1),
        ([9, 8, 7, 6, 5, 4, 3, 2, 1], 4, 3),
        ([5, 6, 7, 8, 9], 2, 3),
        ([3, 3, 1, 3, 3, 1, 3, 0, 300], 2, 4),
        ([4, 8, 6], 1, 1),
        ([1, 2, 3], 3, 1),
        ([1, 2, 3, 4], 3, 5),
        *[
            (draw.choices(range(99), k=draw.randint(8, 20)), draw.randint(2, 4), draw.randint(1, 4))
            for _ in range(4)
        ],
    ],
    example=([1, 2, 3, 4, 5, 6], 2, 2),
    on_success="Every full window, and no partial ones.",
    tolerance=0,
)
def windows_of(ids, T, stride):
    """windows_of(ids, T, stride): the pairs (x, y) of all whole windows."""
    return windows_at(ids, T, range(0, len(ids) - T, stride))


def windows_at(ids, T, starts, shift=1):
    return [(ids[i : i + T], ids[i + shift : i + shift + T]) for i in starts]


windows_of.mistake(
    "The last y is too short: the window that begins at len(ids) − T has no last target. Begin "
    "no later than len(ids) − T − 1.",
    lambda ids, T, stride: windows_at(ids, T, range(0, len(ids) - T + 1, stride)),
)
windows_of.mistake(
    "The last windows are cut short. A window needs T + 1 ids.",
    lambda ids, T, stride: windows_at(ids, T, range(0, len(ids), stride)),
    lambda ids, T, stride: windows_at(ids, T, range(0, len(ids) - 1, stride)),
)
windows_of.mistake(
    "One window is missing: the last one may begin at len(ids) − T − 1. (The end of a range does "
    "not belong to it, and `//` rounds down.)",
    lambda ids, T, stride: windows_at(ids, T, range(0, len(ids) - T - 1, stride)),
)
windows_of.mistake(
    "y equals x. The targets are one id later.",
    lambda ids, T, stride: windows_at(ids, T, range(0, len(ids) - T, stride), shift=0),
)
windows_of.mistake(
    "y begins where x ends. The targets are one id later, not T.",
    lambda ids, T, stride: windows_at(ids, T, range(0, len(ids) - T, stride), shift=T),
    lambda ids, T, stride: windows_at(ids, T, range(0, len(ids) - 2 * T + 1, stride), shift=T),
)
windows_of.mistake(
    "Your windows move by one. They should move by `stride`.",
    lambda ids, T, stride: windows_of.right(ids, T, 1),
)
windows_of.mistake(
    "x and y are swapped.",
    lambda ids, T, stride: [(y, x) for x, y in windows_of.right(ids, T, stride)],
)
windows_of.mistake(
    "These are windows of T + 1 ids. Make x and y of each: all but the last, all but the first.",
    lambda ids, T, stride: [ids[i : i + T + 1] for i in range(0, len(ids) - T, stride)],
)


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
    (near, far), (near_apart, far_apart) = losses[1], losses[32]
    expect(
        near < far and near_apart < far_apart,
        "The first of two losses is that on held-out windows, the second that on held-out "
        "articles, where the model is worse.",
    )
    expect(
        near < 3,
        "With stride 1 the model has been trained on nearly all tokens of the held-out windows: "
        "their loss is below 3 nats.",
    )
    expect(
        near_apart > 6,
        "At stride 32, the held-out windows do not overlap with the training windows: after 160 "
        "steps their loss is above 6. Take the last entry of `watch_a_leak(32)`, and the second of "
        "its three losses.",
    )
    expect(
        far > 8 and far_apart > 8,
        "On articles that it was not trained on, the model gets worse the longer it trains: after "
        "160 steps its loss is above 8, at either stride. Take the *last* entry, not the lowest.",
    )
    expect(
        right == (far_apart - near_apart < 0.5),
        "Compare the two losses of stride 32: do they differ by less than half a nat?",
    )
    return (
        "Windows of one article share its names and phrases, whether they overlap or not. So split "
        "by article."
    )


@exercise(
    # Some steps reach n, and not every next one is later.
    inputs=lambda draw: [
        (22, 9, 2, 2),
        *((step, 10, 3, 7) for step in (3, 0, 1, 2, 8, 13, 25, 4)),
        (5, 12, 4, 0),
        (11, 12, 4, 1),
        (4, 5, 5, 3),
        (10, 9, 2, 2),
        (3, 11, 3, 7),
        *[
            (draw.randrange(20), draw.randint(6, 15), draw.randint(2, 4), draw.randrange(99))
            for _ in range(5)
        ],
    ],
    example=(3, 10, 3, 7),
    on_success="The same batch whenever you ask, so that resuming a run needs only the step.",
    tolerance=0,
)
def batch_of(step, n, B, seed):
    """batch_of(step, n, B, seed): the windows that a step processes, as a function of the step."""
    return dealt()(step, n, B, seed)


def shuffled(n, seed):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()


def dealt(steps=lambda n, B: n // B, order=lambda n, seed, epoch: shuffled(n, seed + epoch)):
    """With other steps in an epoch, or another order of it."""

    def batch_of(step, n, B, seed):
        epoch, place = divmod(step, steps(n, B))
        return order(n, seed, epoch)[place * B : (place + 1) * B]

    return batch_of


def one_generator(n, seed, epoch):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randperm(n, generator=generator) for _ in range(epoch + 1)][epoch].tolist()


def drawn(n, seed, epoch):
    return torch.randint(n, (n,), generator=torch.Generator().manual_seed(seed + epoch)).tolist()


batch_of.mistake(
    "Every epoch has the same order: seed the generator with `seed + epoch`.",
    dealt(order=lambda n, seed, epoch: shuffled(n, seed)),
)
batch_of.mistake(
    "You shuffle for every step, so that windows occur twice in an epoch. Seed with `seed + epoch` "
    "and deal the order out.",
    lambda step, n, B, seed: shuffled(n, seed + step)[:B],
)
batch_of.mistake(
    "What is left over at the end of an epoch is dropped: an epoch has `n // B` whole batches, "
    "`divmod(step, n // B)`.",
    dealt(steps=lambda n, B: -(-n // B)),
    lambda step, n, B, seed: shuffled(n, seed + step * B // n)[step * B % n :][:B],
)
batch_of.mistake(
    "An epoch has `n // B` steps, not n: `step // n` counts windows as if they were batches.",
    dealt(steps=lambda n, B: n),
)
batch_of.mistake(
    "One generator, seeded once, goes on from epoch to epoch: an order then depends on those "
    "before it. Seed a new one with `seed + epoch`.",
    dealt(order=one_generator),
)
batch_of.mistake(
    "You keep counting batches after the first epoch. Start again at 0 in each.",
    lambda step, n, B, seed: shuffled(n, seed + step // (n // B))[step * B :][:B],
)
batch_of.mistake(
    "You did not shuffle: an epoch's order is a `torch.randperm`.",
    dealt(order=lambda n, seed, epoch: list(range(n))),
)
batch_of.mistake(
    "You draw windows at random: some come twice, others never. Deal out a `torch.randperm`.",
    dealt(order=drawn),
)


@batch_of.also
def leaves_others_draws_alone(answer):
    before = torch.get_rng_state()
    call(answer, 0, 10, 3, 7, name="batch_of")
    expect(
        torch.equal(before, torch.get_rng_state()),
        "You changed torch's own generator: whatever else draws from it (dropout) would notice. "
        "Seed a `torch.Generator()` of your own.",
    )
