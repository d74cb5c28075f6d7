"""The exercises of chapter 01 beyond what their declaration says."""

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from conftest import ROOT

from exercises import words_as_vectors as check
from helpers import data
from tests.answers import accepted, refused


def unit(E):
    return E / E.norm(dim=-1, keepdim=True)


def in_two_loops(E, row, rated):
    known = [(a, b, r) for a, b, r in rated if {a, b} <= row.keys()]
    scored = [(float(unit(E)[row[a]] @ unit(E)[row[b]]), r) for a, b, r in known]
    comparisons = itertools.combinations(scored, 2)
    judged = [(x - y) * (r - s) > 0 for (x, r), (y, s) in comparisons if r != s]
    return sum(judged) / len(judged)


test_other_right_answers_are_right = accepted(
    (check.cosine_matrix, lambda A, B: F.cosine_similarity(A[:, None], B[None], dim=-1)),
    (check.cosine_matrix, lambda A, B: (unit(A) @ unit(B).T).numpy()),
    (check.without, lambda E, u: torch.stack([e - (e @ u) / (u @ u) * u for e in E])),
    (check.without, lambda E, u: E.numpy() - np.outer(E @ u, u) / float(u @ u)),
    (check.order_agreement, in_two_loops),
)


def cosine_in_a_loop(A, B):
    return torch.stack([torch.stack([unit(a) @ unit(b) for b in B]) for a in A])


def equal_words_left_out(E, row, rated):
    return in_two_loops(E, row, [r for r in rated if r[0] != r[1]])


test_other_mistakes_are_told = refused(
    (check.cosine_matrix, lambda A, B: A / A.norm(dim=1) @ B, "keepdim=True"),
    (check.cosine_matrix, cosine_in_a_loop, "a loop computes them"),
    (check.faults, check.FAULTS | {"C": "a", "E": "b"}, "they count twice"),
    (check.faults, check.FAULTS | {"D": "b", "C": "e"}, "so they are no cosines"),
    (check.order_agreement, equal_words_left_out, "should be"),
)


def test_the_task_states_what_the_real_tables_give():
    words, table = data.glove()
    E, row = torch.from_numpy(table), {word: i for i, word in enumerate(words)}
    shared = unit(E).mean(0)
    found = [
        check.order_agreement.right(T, row, data.word_similarity(name)).item()
        for T in (E, check.without.right(E, shared))
        for name in ("wordsim353", "simlex999")
    ]
    for value, stated in zip(found, (0.692, 0.593, 0.728, 0.610), strict=True):
        assert math.isclose(value, stated, abs_tol=0.001)


def test_the_lists_of_the_task_are_those_of_its_slips():
    words, table = data.glove()
    E, U = torch.from_numpy(table), unit(torch.from_numpy(table))
    slips = {
        "a": lambda i: E @ E[i] / E[i].norm() * E.norm(dim=1),
        "b": lambda i: E @ E[i],
        "c": lambda i: U @ U[i + 1],
        "d": lambda i: E.sum(1) * E[i].sum(),
        "e": lambda i: U @ U[i],
    }
    task = (ROOT / "notebooks" / "01_words_as_vectors.ipynb").read_text("utf-8")
    for name, letter in check.FAULTS.items():
        lists = []
        for word in ("violin", "seven", "doctor", "rain"):
            i = words.index(word)
            scores = slips[letter](i)
            scores[i] = -torch.inf
            lists.append(", ".join(words[j] for j in scores.topk(4).indices))
        assert f"| {name} | {' | '.join(lists)} |" in task
