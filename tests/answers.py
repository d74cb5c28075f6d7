"""Tests of an exercise with answers that its declaration does not name."""

from collections.abc import Callable
from typing import Any

import pytest


def accepted(*cases: tuple[Any, Any]) -> Callable[..., None]:
    """A test that each (exercise, answer) is right."""

    @pytest.mark.parametrize(("exercise", "answer"), cases)
    def test(exercise: Any, answer: Any) -> None:
        report = exercise(answer)
        assert report.outcome == "right", report.message

    return test


def refused(*cases: tuple[Any, Any, str]) -> Callable[..., None]:
    """A test that each (exercise, answer, words) is not right yet, and that its message has the
    words."""

    @pytest.mark.parametrize(("exercise", "answer", "words"), cases)
    def test(exercise: Any, answer: Any, words: str) -> None:
        report = exercise(answer)
        assert report.outcome == "not yet" and words in report.message, report.message

    return test
