"""Exercises of the student edition. They know results, and not the code that gave them.

An exercise in code is checked at once: the answer is tried on inputs whose right results are in
TOPIC.pt beside this file, and so are those of the classic mistakes. Gradients are left to the
teacher's grader, and so is each answer that could be read here: such a check says "handed in".
"""

from collections.abc import Callable, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Any

import torch

from exercises import check
from exercises.check import Declared, Exercise, fresh, same

check._OUTCOMES["handed in"] = ("→", "#0072B2")


@cache
def _results(topic: str) -> dict[str, Any]:
    return torch.load(Path(__file__).with_name(f"{topic}.pt"), weights_only=True)


def recorded(**settings: Any) -> Callable[[Any], Declared]:
    """The declaration of an exercise whose inputs and results are recorded."""

    def made(stub: Any) -> Declared:
        inputs, right, mistakes = _results(stub.__module__.rpartition(".")[2])[stub.__name__]
        known = [*inputs, *filter(None, [settings.get("example")])]
        one = Declared(wraps(stub)(_played(known, right)), inputs, **settings)
        for says, results in mistakes:
            one.mistake(says, _played(known, results))
        return one

    return made


def _played(inputs: Sequence[tuple], results: Sequence[tuple]) -> Callable[..., Any]:
    """The function that gave these results of these inputs, or raised these errors."""

    def answer(*given: Any) -> Any:
        for known, (value, error) in zip(inputs, results, strict=True):
            if all(same(a, b, 0.0) for a, b in zip(given, known, strict=True)):
                if error:
                    raise type(error[0], (Exception,), {})(error[1])
                return fresh(value)
        raise ValueError("The student edition knows the results of its own inputs only.")

    return answer


class _HandedIn(Exercise):
    def _judged(self, answer: Any) -> tuple[str, str, str]:
        if any(leaf is ... for leaf in check._leaves(answer)):
            return "not attempted", "replace each ... and run that cell, then run this one.", ""
        return "handed in", "Your teacher's grader judges this answer.", ""


def handed_in(stub: Any) -> Exercise:
    return _HandedIn(stub)
