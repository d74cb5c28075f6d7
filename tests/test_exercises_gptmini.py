"""The exercises of chapter 15 beyond what their declarations say."""

import numpy as np
import torch

from exercises import gptmini as check
from tests.answers import accepted, refused

batch_of = check.batch_of.right


def on_torchs_own_generator(step, n, B, seed):
    torch.manual_seed(seed + step // (n // B))
    place = step % (n // B)
    return torch.randperm(n)[place * B : (place + 1) * B].tolist()


LOSSES = {1: (1.5, 9.3), 32: (9.1, 11.7)}


test_other_mistakes_are_told_by_what_differs = refused(
    (check.side_by_side, LOSSES, "to a pair"),
    (check.side_by_side, (LOSSES | {1: (9.3, 1.5)}, False), "The first of two losses"),
    (check.side_by_side, (LOSSES | {1: (5.3, 6.9)}, False), "below 3 nats"),
    (check.side_by_side, (LOSSES | {32: (0.4, 11.7)}, False), "`watch_a_leak(32)`"),
    (check.side_by_side, ({1: (1.92, 6.93), 32: (6.71, 6.95)}, True), "not the lowest"),
    (check.side_by_side, (LOSSES, True), "less than half a nat"),
    (check.side_by_side, ({1: LOSSES[1], 16: LOSSES[32]}, False), "to a pair"),
    (check.batch_of, lambda step, n, B, seed: torch.randperm(n)[:B], "two different results"),
    (check.batch_of, on_torchs_own_generator, "You changed torch's own generator"),
)


def by_range(ids, T, stride):
    found = []
    for i in range(0, len(ids), stride):
        if i + T < len(ids):
            found.append([torch.tensor(ids[i : i + T]), np.array(ids[i + 1 : i + T + 1])])
    return found


def by_epochs(step, n, B, seed):
    batches = []
    for epoch in range(step // (n // B) + 1):
        generator = torch.Generator().manual_seed(seed + epoch)
        batches += list(torch.randperm(n, generator=generator).split(B))[: n // B]
    return batches[step]


test_other_right_answers_are_right = accepted(
    (check.windows_of, by_range),
    (check.side_by_side, (LOSSES, False)),
    (check.side_by_side, ({32: LOSSES[32], 1: LOSSES[1]}, False)),
    (check.side_by_side, [{k: torch.tensor(v) for k, v in LOSSES.items()}, np.False_]),
    (check.batch_of, by_epochs),
)
