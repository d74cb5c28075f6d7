"""The exercises of chapter 15 beyond what their declarations say."""

import torch

from exercises import gptmini as check
from tests.answers import accepted, refused

batch_of = check.batch_of.right


def on_torchs_own_generator(step, n, B, seed):
    torch.manual_seed(seed + step // (n // B))
    place = step % (n // B)
    return torch.randperm(n)[place * B : (place + 1) * B].tolist()


LOSSES = {1: (1.5, 9.3), 32: (9.1, 11.7)}
RUNS = {"A": "a", "B": "b", "C": "c", "D": "d"}
DOSES = [(0.1, 3.12), (0.3, 2.92), (1.0, 2.86)]


test_other_mistakes_are_told_by_what_differs = refused(
    (check.side_by_side, (LOSSES | {1: (9.3, 1.5)}, False), "The first of two losses"),
    (check.side_by_side, (LOSSES | {1: (5.3, 6.9)}, False), "below 3 nats"),
    (check.side_by_side, (LOSSES | {32: (0.4, 11.7)}, False), "`watch_a_leak(32)`"),
    (check.side_by_side, ({1: (1.92, 6.93), 32: (6.71, 6.95)}, True), "not the lowest"),
    (check.side_by_side, (LOSSES, True), "less than half a nat"),
    (check.batch_of, lambda step, n, B, seed: torch.randperm(n)[:B], "two different results"),
    (check.batch_of, on_torchs_own_generator, "You changed torch's own generator"),
    (check.one_more_run, RUNS | {"D": "c"}, "What was held out"),
    (check.one_more_run, RUNS | {"A": "c"}, "away from the new"),
    (check.one_more_run, RUNS | {"A": "e"}, "gets to 2.86"),
    (check.one_more_run, RUNS | {"C": "b"}, "that one could lower"),
    (check.one_more_run, RUNS | {"B": "c"}, "there to forget"),
    (check.one_more_run, RUNS | {"C": "a"}, "measured the brake"),
    (check.dose, ("up", [*DOSES, (2.0, 2.91)]), "The bet is"),
    (check.dose, ("above", DOSES), "a valley looks like a slope"),
    (check.dose, ("above", [*DOSES, (0.5, 2.85), (2.0, 1.9)]), "between 2.8 and 3.4"),
    (check.dose, ("above", [*DOSES, (1.5, 2.85)]), "What is beyond it"),
    (check.dose, ("above", [*DOSES, (2.0, 2.85), (4.0, 3.0)]), "between 0.4 and 1.5"),
    (check.dose, ("above", [*DOSES, (2.0, 3.3)]), "With a weight decay of 2"),
)


def by_epochs(step, n, B, seed):
    batches = []
    for epoch in range(step // (n // B) + 1):
        generator = torch.Generator().manual_seed(seed + epoch)
        batches += list(torch.randperm(n, generator=generator).split(B))[: n // B]
    return batches[step]


test_other_right_answers_are_right = accepted(
    (check.side_by_side, (LOSSES, False)),
    (check.batch_of, by_epochs),
    (check.dose, ("Below", [(0.1, 3.11), (0.6, 2.85), (1, torch.tensor(2.86)), (2.0, 2.92)])),
)
