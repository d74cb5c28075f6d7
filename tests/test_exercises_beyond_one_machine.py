"""The exercises on many machines: other right answers, and mistakes that no table names."""

import torch

from exercises import beyond_one_machine as check
from tests.answers import accepted, refused

BILL = {"days": 20.8, "MFU": 0.33, "Llama": 0.28}
TWINS = {"A": "a", "B": "b", "C": "c", "D": "d"}


def of_kept(nll, kept, total, n):
    return nll[kept].sum() / (total / n)


def by_loop(x, up, down, n):
    size = len(up) // n
    parts = []
    for i in range(n):
        mine = slice(i * size, (i + 1) * size)
        parts.append((x @ up[mine].T).clamp(min=0) @ down[:, mine].T)
    return torch.stack(parts)


def by_tokens(gap, used, A, alpha, B, beta):
    """From the tokens to the parameters instead of the other way round."""
    D = torch.logspace(0, 20, 200_000, dtype=torch.float64)
    D = D[B / D**beta < gap]
    N = (A / (gap - B / D**beta)) ** (1 / alpha)
    return N[(6 * N * D + 2 * N * used).argmin()].item()


def skipping_nan(gap, used, A, alpha, B, beta):
    costs = {}
    for N in (1.005**k for k in range(1000, 6000)):
        if (left := gap - A / N**alpha) > 0:
            costs[N] = 6 * N * (B / left) ** (1 / beta) + 2 * N * used
    return min(costs, key=costs.get)


test_other_right_answers_are_right = accepted(
    (check.bill, BILL),
    (check.bill, {**BILL, "days": 20.93, "MFU": 0.329}),
    (check.twins, TWINS),
    (check.local_loss, of_kept),
    (check.in_pieces, by_loop),
    (check.cheapest, by_tokens),
    (check.cheapest, skipping_nan),
)


def unmasked_mean(nll, kept, total, n):
    return nll.mean()


test_other_wrong_answers_are_not_accepted = refused(
    (check.bill, {**BILL, "days": 17.0}, "activations again"),
    (check.bill, {**BILL, "days": 28}, "how many FLOPs are executed"),
    (check.bill, {**BILL, "MFU": 33}, "fraction of 1"),
    (check.bill, {**BILL, "MFU": 0.404}, "repeated work included"),
    (check.bill, {**BILL, "MFU": 0.82}, "fraction of the peak"),
    (check.bill, {**BILL, "MFU": 0.246}, "MFU of the plan"),
    (check.bill, {**BILL, "Llama": 0.4}, "MFU of Llama"),
    (check.twins, {**TWINS, "A": "f"}, "all of its rows"),
    (check.twins, {**TWINS, "B": "e"}, "averaging"),
    (check.twins, {**TWINS, "B": "c", "C": "b"}, "step 1"),
    (check.twins, {**TWINS, "D": "f"}, "last digit"),
    (check.local_loss, unmasked_mean, "local_loss("),
)
