"""The exercises on mixtures of experts: other right answers, and mistakes that no table names."""

from collections import Counter

import torch

from exercises import mixture_of_experts as check
from tests.answers import accepted, refused


def in_turn(chosen, n_experts, capacity):
    seen, found = Counter(), []
    for expert in chosen.tolist():
        seen[expert] += 1
        found.append(seen[expert] <= capacity)
    return torch.tensor(found)


def by_earlier(chosen, n_experts, capacity):
    same = (chosen[:, None] == chosen).tril(-1)
    return same.sum(1) < capacity


def by_expert(chosen, n_experts, capacity):
    found = torch.zeros(len(chosen), dtype=torch.bool)
    for expert in range(n_experts):
        found[(chosen == expert).nonzero()[:capacity, 0]] = True
    return found


test_other_right_answers_are_right = accepted(
    (check.kept, in_turn),
    (check.kept, by_earlier),
    (check.kept, by_expert),
    (check.mixtral, (46.7, 12.9)),
    (check.rules, [0.27, 0.05, "sum", "constancy"]),
    (check.rules, (0.2, 0.07, "dice", "Constancy")),
)

WORDS = ("ahead", "moved much further", "cuts the wire", "care for", "care for", "as it did before",
         "next to nothing", "letters a to f", "letters a to f")  # fmt: skip
test_what_is_wrong_is_explained = refused(
    (check.kept, lambda c, n, k: c[in_turn(c, n, k)], "should"),
    (check.mixtral, (56, 14), "eight times the whole"),
    (check.mixtral, (12.9, 46.7), "The first number"),
    (check.mixtral, (46.7e9, 12.9e9), "divide by"),
    (check.mixtral, (31.7, 9.1), "three matrices"),
    (check.mixtral, (46.44, 12.62), "table of the tokens"),
    (check.mixtral, (47.5, 13.7), "Keys and values"),
    (check.mixtral, (46.7, 7.24), "one expert for each token"),
    (check.mixtral, (46.7, 46.7), "a token uses two"),
    (check.mixtral, (45.4, 11.5), "One part is not right"),
    *(
        (check.patients, {**check.FAULTS, run: letter}, words)
        for run, letter, words in zip("AABCCDDAB", "cfdbadegg", WORDS, strict=True)
    ),
    (check.rules, [27, 5, "sum", "constancy"], "percentages"),
    (check.rules, [0.05, 0.27, "sum", "constancy"], "the larger one"),
    (check.rules, [0.08, 0.05, "sum", "constancy"], "a sixth at least"),
    (check.rules, [0.27, 0.22, "sum", "constancy"], "thrown"),
    (check.rules, [0.27, 0.05, "sum", "all"], "one of the three"),
    (check.rules, [0.27, 0.05, "sum", "meaning"], "no meaning"),
)
