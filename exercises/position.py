"""Checks of chapter 07, position: order, the table, sines and cosines.

The exercises on rotary positions are in chapter07_rotary.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from exercises.chapter07_rotary import different, rotary_attention, rotate, to_halves
from exercises.check import (
    NotAttempted,
    NotYet,
    call,
    checked,
    expect,
    expect_close,
    normal,
)

__all__ = [
    "add_positions",
    "is_equivariant",
    "position_vectors",
    "rotary_attention",
    "rotate",
    "to_halves",
]


def _attend(x: Tensor) -> Tensor:
    return (x @ x.T).softmax(-1) @ x


def _rounded(x: Tensor) -> Tensor:
    """Attention with a little of what rounding does: equal up to the last digit."""
    return _attend(x) * (1 + 3e-7 * x[0, 0])


# What is tried → (function, is it equivariant?)
_FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], bool]] = {
    "attention without positions": (_attend, True),
    "a function that sorts the rows": (lambda x: x.sort(0).values, False),
    "the largest of all rows, repeated": (lambda x: x.amax(0).expand_as(x), True),
    "a function of each row alone": (lambda x: 2 * x, True),
    "a function that adds each row's number": (lambda x: x + torch.arange(len(x))[:, None], False),
    "a function that changes row 1 alone": (lambda x: x + torch.eye(len(x))[1][:, None], False),
    "the mean of the past": (lambda x: x.cumsum(0) / torch.arange(1, len(x) + 1)[:, None], False),
    "attention whose last digits are rounded otherwise": (_rounded, True),
}

Rule = Callable[[Callable[[Tensor], Tensor], Tensor, Tensor], bool]
# Diagnosis → the rule that somebody may have written instead.
_RULES: dict[str, Rule] = {
    "You test whether the output stays the *same* when the rows are shuffled. That is invariance. "
    "Equivariant means that the output is shuffled in the same way: compare f(x[order]) with "
    "f(x)[order].": lambda f, x, order: torch.allclose(f(x[order]), f(x), atol=1e-6),
    "You shuffle the shuffled output once more. Shuffling twice does not undo it: compare "
    "f(x[order]) with f(x)[order].": (
        lambda f, x, order: torch.allclose(f(x[order])[order], f(x), atol=1e-6)
    ),
    "Attention gives equal outputs only up to rounding, because it adds in another order: compare "
    "with torch.allclose, not with == or torch.equal.": (
        lambda f, x, order: torch.equal(f(x[order]), f(x)[order])
    ),
    "You compare numbers that are always equal: one side has to be f of the shuffled rows, the "
    "other the shuffled rows of f(x).": lambda f, x, order: True,
    "You say False to everything: attention without positions is equivariant.": (
        lambda f, x, order: False
    ),
}


@checked
def is_equivariant(answer: Any) -> str:
    """is_equivariant(f, x, order): does f give shuffled outputs for shuffled rows?"""
    x, order = normal(5, 3, seed=71), torch.tensor([2, 0, 1, 4, 3])
    told = []
    for f, _ in _FUNCTIONS.values():
        got = call(answer, f, x, order, name="is_equivariant(f, x, order)")
        if isinstance(got, Tensor) and got.numel() == 1:
            got = got.item()
        expect(
            isinstance(got, bool),
            f"is_equivariant should return one True or False, not a {type(got).__name__}: "
            "torch.allclose gives one for whole tensors.",
        )
        told.append(got)
    if told != [truth for _, truth in _FUNCTIONS.values()]:
        for diagnosis, rule in _RULES.items():
            if told == [rule(f, x, order) for f, _ in _FUNCTIONS.values()]:
                raise NotYet(diagnosis)
        for (name, (_, truth)), said in zip(_FUNCTIONS.items(), told, strict=True):
            expect(said == truth, f"For {name} the answer is {truth}, but you return {said}.")
    return "the outputs move with the inputs: equivariant, which is not invariant."


def _added(table: Tensor, x: Tensor) -> Tensor:
    return x + table[: x.shape[1]]


@checked
def add_positions(answer: Any) -> str:
    """add_positions(x, table): x (B, T, C) plus a row of the table for each position."""
    for B, T, C, size, seed in ((2, 3, 4, 6, 72), (3, 2, 5, 4, 74), (1, 4, 2, 4, 76)):
        x, table = normal(B, T, C, seed=seed), normal(size, C, seed=seed + 1)
        try:
            got = call(answer, x, table, name="add_positions(x, table)")
        except NotYet as problem:
            expect(
                T < size or "ValueError" not in str(problem),
                f"{T} tokens fit into a table of {size} rows, positions 0 to {size - 1}: "
                "raise only when T > len(table).",
            )
            raise
        rows = table[:T].expand(B, T, C)
        mistakes = {
            "You begin at position 1: the first token has position 0, the row table[0].": (
                x + table.roll(-1, 0)[:T]
            ),
            "You take the *last* T rows of the table; positions count from its first row.": (
                x + table[size - T :]
            ),
            "You return the position vectors alone: add them to x.": rows,
            "Every token gets the same row: token t needs table[t].": x + table[0],
            "You put the position vectors *beside* x. They are added; the width C stays.": (
                torch.cat((x, rows), -1)
            ),
            "You multiply by the position vectors: add them.": x * rows,
            "You number the sequences of the batch: the positions run along dimension 1.": (
                x + table[:B, None] if size >= B else torch.empty(0)
            ),
        }
        want = _added(table, x)
        expect_close(got, want, "add_positions(x, table)", mistakes=different(mistakes, want))
    _expect_overflow(answer)
    return "and a sequence that does not fit is told so."


def _expect_overflow(answer: Any) -> None:
    x, table = normal(2, 7, 3, seed=78), normal(5, 3, seed=79)
    places = torch.arange(7)
    silent = {
        "7 tokens, 5 rows: you let the last tokens share the last row. The model would be wrong "
        "without a word: raise a ValueError.": x + table[places.clamp(max=4)],
        "7 tokens, 5 rows: you begin the table again, so token 5 says that it is token 0: raise a "
        "ValueError.": x + table[places % 5],
        "7 tokens, 5 rows: you leave tokens out without a word: raise a ValueError.": (
            x[:, :5] + table
        ),
        "7 tokens, 5 rows: you give the last tokens no position: raise a ValueError.": (
            torch.cat((x[:, :5] + table, x[:, 5:]), 1)
        ),
    }
    try:
        got = answer(x, table)
    except ValueError as error:
        expect(
            "7" in str(error) and "5" in str(error),
            "A ValueError is right. Let its message say both numbers: how many tokens came (7), "
            "and how many positions the table has (5).",
        )
        return
    except NotImplementedError:
        raise NotAttempted from None
    except AssertionError:
        raise NotYet("You test it, with an AssertionError: raise a ValueError instead.") from None
    except Exception as error:
        raise NotYet(
            f"For 7 tokens and 5 rows you leave it to torch, which raises {type(error).__name__} "
            "and speaks of sizes, not of positions. Test T > len(table) first and raise a "
            "ValueError that says what to do."
        ) from None
    for diagnosis, wrong in silent.items():
        alike = isinstance(got, Tensor) and got.shape == wrong.shape
        expect(not (alike and torch.allclose(got, wrong)), diagnosis)
    raise NotYet("7 tokens do not fit into a table of 5 rows: raise a ValueError.")


def _table(angles: Tensor) -> Tensor:
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)


@checked
def position_vectors(answer: Any) -> str:
    """position_vectors(T, n_embd, base): the sinusoidal table, (T, n_embd)."""
    for T, C, base in ((5, 6, 50.0), (3, 8, 10_000.0), (7, 2, 100.0)):
        p, two_i = torch.arange(T)[:, None], torch.arange(0, C, 2)
        angles = p * base ** (-two_i / C)
        single = p * base ** (-torch.arange(C) / C)
        each = torch.where(torch.arange(C) % 2 == 0, single.sin(), single.cos())
        mistakes = {
            "Sine and cosine are exchanged: the sine comes first, so that position 0 is "
            "(0, 1, 0, 1, …).": torch.stack((angles.cos(), angles.sin()), -1).flatten(-2),
            "All sines come before all cosines. Here they alternate: sine and cosine of pair 0, "
            "then of pair 1.": torch.cat((angles.sin(), angles.cos()), -1),
            "Your positions begin at 1: the first token has position 0.": _table(
                (p + 1) * base ** (-two_i / C)
            ),
            "The exponent is −2i / n_embd, you have −i / n_embd: the 2 is missing.": _table(
                p * base ** (-two_i / 2 / C)
            ),
            "The exponent counts twice: i is the number of the *pair*, and torch.arange(0, n_embd, "
            "2) is already 2i.": _table(p * base ** (-2 * two_i / C)),
            "The exponent needs a minus sign: later pairs turn more slowly.": _table(
                p * base ** (two_i / C)
            ),
            "Sine and cosine of a pair need the *same* frequency: it depends on the pair, not on "
            "the column.": each,
            "Your frequencies do not depend on base: it is the third argument.": _table(
                p * 10_000.0 ** (-two_i / C)
            ),
            "There are sines only: the odd columns are cosines.": torch.stack(
                (angles.sin(), angles.sin()), -1
            ).flatten(-2),
        }
        want = _table(angles)
        name = f"position_vectors({T}, {C}, {base:g})"
        got = call(answer, T, C, base, name=name)
        expect_close(got, want, name, mistakes=different(mistakes, want), tolerance=1e-3)
    return "the same table as in the paper of 2017."
