"""Answers that are lists and counts: right to the last entry, or wrong in a way that has a name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from exercises.check import NotYet, expect


def diagnose(
    got: Sequence[Any], want: Sequence[Any], mistakes: Sequence[Mapping[str, Any]]
) -> None:
    """Name the mistake that explains all the answers, if there is one.

    mistakes: for each question, diagnosis → what that mistake answers.
    """
    for diagnosis in mistakes[0] if got != want else ():
        if got == [each[diagnosis] for each in mistakes]:
            raise NotYet(diagnosis)


def agree(
    whats: Sequence[str],
    got: Sequence[Any],
    want: Sequence[Any],
    mistakes: Sequence[Mapping[str, Any]],
    show: Callable[[Any], str] = repr,
) -> None:
    """Name the mistake, or else the first answer that is wrong; `show` writes an answer."""
    diagnose(got, want, mistakes)
    for what, found, wanted in zip(whats, got, want, strict=True):
        expect(found == wanted, f"{what} should be {show(wanted)}, but is {show(found):.120}.")
