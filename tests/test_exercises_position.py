"""The exercises on position beyond what their declaration says."""

import torch

from exercises import position as check
from exercises.check import normal
from helpers.positions import Rotary, half_split
from tests.answers import accepted, refused


def with_helpers(q, k, v):
    Rotary(q.shape[-1])(q)
    return check.rotary_attention.right(q, k, v)


LOSSES = {1e4: 2.9, 1e5: 2.6, 1e6: 2.4, 1e7: 2.5}


test_another_right_answer_is_right = accepted(
    (check.best_base, [{int(b): torch.tensor(x) for b, x in LOSSES.items()}, 10**6]),
    (check.to_halves, half_split),
)


def test_each_suspect_has_the_fault_that_it_is_said_to_have():
    A, B, C, D = check.SUSPECTS.values()
    rotary, rows = Rotary(8), normal(6, 8, seed=3)
    there = rotary(rows[None, None], 5)[0, 0]
    torch.testing.assert_close(D(rows, 5), rotary(rows[None, None])[0, 0])
    torch.testing.assert_close(A(rows, 5).norm(dim=-1), there.norm(dim=-1))
    torch.testing.assert_close(B(rows, 5), there)
    same = B(rows[:1], 1000), B(rows[:1], 1001)
    assert torch.equal(*same) and not torch.allclose(A(rows, 5), there, atol=0.1)
    assert (C(rows, 5).norm(dim=-1) - there.norm(dim=-1)).abs().max() > 0.1
    layout = [*range(0, 8, 2), *range(1, 8, 2)]
    torch.testing.assert_close(A(rows, 5)[:, layout], rotary(rows[None, None, :, layout], 5)[0, 0])


test_other_mistakes_are_told = refused(
    (check.wrong_turns, check.WRONG | {"A": "g"}, "letters a to f"),
    (check.wrong_turns, check.WRONG | {"A": "a"}, "None of the four"),
    (check.wrong_turns, check.WRONG | {"B": "f"}, "No value was turned"),
    (check.wrong_turns, check.WRONG | {"C": "b"}, "How long is it"),
    (check.wrong_turns, check.WRONG | {"D": "e"}, "start=5"),
    (check.wrong_turns, check.WRONG | {"A": "e"}, "unit matrix"),
    (check.wrong_turns, check.WRONG | {"B": "b"}, "1,000 and 1,001"),
    (check.wrong_turns, check.WRONG | {"A": "d"}, "3 of 4"),
    (check.best_base, (LOSSES, LOSSES[1e6]), "one of the four bases"),
    (check.best_base, ({b: 64 * x for b, x in LOSSES.items()}, 1e6), "not the sum"),
    (check.best_base, ({**LOSSES, 1e4: 2.2}, 1e6), "positions 0 to 31"),
    (check.best_base, ({1e4: 2.9, 1e5: 2.8, 1e6: 2.66, 1e7: 3.1}, 1e6), "training again"),
    (check.best_base, ({**LOSSES, 1e5: 2.4}, 1e6), "Two of your losses are equal"),
    (check.best_base, (dict.fromkeys(LOSSES, 4.0), 1e4), "the numbers of the example"),
    (check.best_base, (LOSSES, 1e4), "highest loss"),
    (check.best_base, (LOSSES, 1e7), "another base is better: 1,000,000"),
    (check.rotary_attention, with_helpers, "`helpers`"),
)
