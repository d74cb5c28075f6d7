"""The exercises on GPTMini: a split by windows, batches by step, four runs, a dose of decay."""

import torch

from exercises.check import call, checked, diagnose, diagnose_letters, exercise, expect, reported


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


RUNS = {"A": "a", "B": "b", "C": "c", "D": "d"}


@checked
def one_more_run(answer):
    """one_more_run: what to change in the runs A to D, a letter for each."""
    table = """
        D reads its text 33 times, has no weight decay, and is almost as good on what was held out.
        Section 3 has a picture of such a run. What was held out?
            found["D"] != "d"
        A, with more steps, goes on where it is going: away from the new articles.
            found["A"] == "c"
        A narrower model of A loses less, and gains less: 3.18. With another number of A the same
        width gets to 2.86.
            found["A"] == "e"
        A has no weight decay that one could lower.
            found["A"] == "b" or found["C"] == "b"
        B has 2.62 where C, without the decay, has 2.41, on a text that is read only once: what is
        there to forget?
            found["B"] in ("a", "c")
        C reads half of its text once, and both losses fall side by side: nothing is learned by
        heart. A brake or a smaller model would cost; section 6 has measured the brake.
            found["C"] in ("a", "e")
    """
    diagnose_letters(answer, RUNS, "e", table, "Compare the runs that differ in one entry.")
    return "Four tables, four illnesses. D is the only one that would have been published."


BITS = {0.1: 3.12, 0.2: 3.0, 0.3: 2.92, 0.5: 2.86, 0.7: 2.85, 1.0: 2.86, 2.0: 2.91, 4.0: 3.0}


@checked
def dose(answer):
    """dose: the bet, and pairs (weight decay, bits per character) for four doses or more."""
    bet, pairs = reported(
        answer,
        ("above", [(1.0, 2.87)]),
        'Set dose to your bet and a list of pairs, ("above", [(1.0, 2.87), (4.0, …), …]).',
    )
    bits = dict(pairs)
    diagnose("""
        The bet is "above" or "below".
            bet not in ("above", "below")
        Four doses at least: with fewer, a valley looks like a slope.
            len(bits) < 4
        A loss of this model is between 2.8 and 3.4 bits per character. Is it the number of
        "bits", with "6 articles, wide" and 600 steps?
            not 2.8 <= min(bits.values()) <= max(bits.values()) <= 3.45
        Your best dose is the lowest or the highest that you tried. What is beyond it?
            min(bits, key=bits.get) in (min(bits), max(bits))
        Our best dose is elsewhere, between 0.4 and 1.5. Try some doses there.
            not 0.4 <= min(bits, key=bits.get) <= 1.5
    """)
    off = [d for d in bits if d in BITS and abs(bits[d] - BITS[d]) > 0.06]
    expect(
        not off,
        f"With a weight decay of {(off or [1])[0]:g} our three seeds are elsewhere. Is it the wide "
        "model, for 600 steps, with both other settings as in the example?",
    )
    bets = {"below": "Your bet was right, by a hair.", "above": "So the dose can be too high."}
    return (
        "A wide valley: from 0.5 to 1 it hardly matters, and the usual 0.1 costs a quarter of a "
        f"bit. {bets[bet]}"
    )
