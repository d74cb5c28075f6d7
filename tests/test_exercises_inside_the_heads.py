"""The exercises on heads: other right answers, and mistakes that no table names."""

import torch

from exercises import inside_the_heads as check
from tests.answers import accepted, refused

COSTS, MEANS, RISES, SEEN = check.COSTS, check.MEANS, check.RISES, check.SEEN

test_other_right_answers_are_right = accepted(
    (check.swapped, {head: cost + 0.02 for head, cost in reversed(COSTS.items())}),
    (check.number_moves, {27: 0.4, 26: 0.57}),
    (check.dial, (1.2, 5.7, -1.4, 1.4)),
    (check.dial, torch.tensor([0.0, 0.8, -0.9, -0.1])),
)

test_other_mistakes_are_told_by_what_differs = refused(
    (check.reports, SEEN | {"D": "b"}, "so did nobody"),
    (check.reports, SEEN | {"A": "c"}, "one word in front"),
    (check.reports, SEEN | {"B": "e"}, 'measured "no ablation" twice'),
    (check.reports, SEEN | {"C": "f"}, "the answer stayed"),
    (check.reports, SEEN | {"E": "e"}, "could not"),
    (check.swapped, {head[::-1]: cost for head, cost in COSTS.items()}, "Layer first"),
    (check.swapped, COSTS | MEANS, "by mean ablation"),
    (check.swapped, COSTS | check.ZEROS, "by zero ablation"),
    (check.swapped, {head: -cost for head, cost in COSTS.items()}, "Change the sign"),
    (check.swapped, {head: 20 * cost for head, cost in COSTS.items()}, "the sum"),
    (check.swapped, {head: 3 - cost for head, cost in COSTS.items()}, "that are left"),
    (check.swapped, COSTS | {(26, 0): 3.1}, "too little"),
    (check.swapped, COSTS | {(27, 8): 0.9}, "Not these"),
    (check.number_moves, {23: 0.58, 26: 0.39}, "the *country* moves"),
    (check.number_moves, {27: 0.58, 28: 0.39}, "One layer too late"),
    (check.number_moves, {25: 0.58, 26: 0.39}, "Not these two"),
    (check.number_moves, {26: 0.6, 27: 0.99}, "the values themselves"),
    (check.number_moves, {26: 1.16, 27: 0.78}, "*twice* the mean"),
    (check.number_moves, {26: 3.48, 27: 2.34}, "these are nats"),
    (check.number_moves, {26: 0.39, 27: 0.58}, "not these rises"),
    (check.dial, (1.2, -1.4, 5.7, 1.4), "the wrong way round"),
    (check.dial, (1.2, 5.7, 1.9, 1.4), "go the same way"),
    (check.dial, (1.2, 1.4, 1.0, 1.2), "less than a nat"),
    (check.dial, (1.2, 5.7, -1.4, 4.4), "as much as half"),
)
