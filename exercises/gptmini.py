"""The exercises on GPTMini: windows, a split by windows that do not overlap, batches by step."""

import torch

from exercises.check import call, checked, diagnose, exercise, expect, reported


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
    return [(ids[i : i + T], ids[i + 1 : i + T + 1]) for i in range(0, len(ids) - T, stride)]


windows_of.slips("""
    The last y is too short: the window that begins at len(ids) − T has no last target. Begin no
    later than len(ids) − T − 1.
        len(ids) - T → len(ids) - T + 1
    The last windows are cut short. A window needs T + 1 ids.
        len(ids) - T → len(ids)
        len(ids) - T → len(ids) - 1
    One window is missing: the last one may begin at len(ids) − T − 1. (The end of a range does not
    belong to it, and `//` rounds down.)
        len(ids) - T → len(ids) - T - 1
    y equals x. The targets are one id later.
        i + 1 : i + T + 1 → i : i + T
    y begins where x ends. The targets are one id later, not T.
        i + 1 : i + T + 1 → i + T : i + 2 * T
        i + 1 : i + T + 1 → i + T : i + 2 * T ; len(ids) - T → len(ids) - 2 * T + 1
    Your windows move by one. They should move by `stride`.
        right(ids, T, 1)
    x and y are swapped.
        [(y, x) for x, y in right(ids, T, stride)]
    These are windows of T + 1 ids. Make x and y of each: all but the last, all but the first.
        (ids[i : i + T], ids[i + 1 : i + T + 1]) → ids[i : i + T + 1]
""")


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
    near, far = losses[1]
    near_apart, far_apart = losses[32]
    diagnose("""
        The first of two losses is that on held-out windows, the second that on held-out articles,
        where the model is worse.
            near >= far or near_apart >= far_apart
        With stride 1 the model has been trained on nearly all tokens of the held-out windows: their
        loss is below 3 nats.
            near >= 3
        At stride 32, the held-out windows do not overlap with the training windows: after 160 steps
        their loss is above 6. Take the last entry of `watch_a_leak(32)`, and the second of its
        three losses.
            near_apart <= 6
        On articles that it was not trained on, the model gets worse the longer it trains: after 160
        steps its loss is above 8, at either stride. Take the *last* entry, not the lowest.
            far <= 8 or far_apart <= 8
        Compare the two losses of stride 32: do they differ by less than half a nat?
            right != (far_apart - near_apart < 0.5)
    """)
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
    epoch, place = divmod(step, n // B)
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist()
    return order[place * B : (place + 1) * B]


batch_of.slips("""
    Every epoch has the same order: seed the generator with `seed + epoch`.
        seed + epoch → seed
    You shuffle for every step, so that windows occur twice in an epoch. Seed with `seed + epoch`
    and deal the order out.
        seed + epoch → seed + step ; place * B : (place + 1) * B → :B
    What is left over at the end of an epoch is dropped: an epoch has `n // B` whole batches,
    `divmod(step, n // B)`.
        n // B → -(-n // B)
        step, n // B → step * B, n ; place * B : (place + 1) * B → place : place + B
    An epoch has `n // B` steps, not n: `step // n` counts windows as if they were batches.
        n // B → n
    One generator, seeded once, goes on from epoch to epoch: an order then depends on those before
    it. Seed a new one with `seed + epoch`.
        seed + epoch → seed ; order = → for _ in range(epoch + 1): order =
    You keep counting batches after the first epoch. Start again at 0 in each.
        place * B : (place + 1) * B → step * B : (step + 1) * B
    You did not shuffle: an epoch's order is a `torch.randperm`.
        torch.randperm(n, generator=generator).tolist() → [*range(n)]
    You draw windows at random: some come twice, others never. Deal out a `torch.randperm`.
        randperm(n, → randint(n, (n,),
""")


@batch_of.also
def leaves_others_draws_alone(answer):
    before = torch.get_rng_state()
    call(answer, 0, 10, 3, 7, name="batch_of")
    expect(
        torch.equal(before, torch.get_rng_state()),
        "You changed torch's own generator: whatever else draws from it (dropout) would notice. "
        "Seed a `torch.Generator()` of your own.",
    )
