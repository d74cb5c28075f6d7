"""Exercises with a teacher's secret: right answers are right and mistakes get their own diagnosis,
but an answer that remembers the public inputs is not right.

`COURSE_SECRET=… pytest tests/test_exercises_secret.py` tries a secret of your own.
"""

import ast
import os

import pytest
import torch
from torch import Tensor, nn

from exercises import check
from exercises.check import Declared
from tests.solutions import solved
from tests.test_exercises import ALL, answered, exercise, exercises, read


@pytest.fixture
def hidden(monkeypatch):
    """Inputs are drawn from a secret."""
    monkeypatch.setattr(check, "secret", os.environ.get("COURSE_SECRET", "a secret"))


CODE = [param for param in ALL if exercise(*param.values).judges_code]
each_answer_of_code = pytest.mark.parametrize(("path", "name"), CODE)


@pytest.mark.parametrize(("path", "name"), ALL)
def test_a_docstring_tells_whether_the_answer_is_code(path, name):
    stub = ast.parse(read(path).cells[exercises(path)[name] - 1].source).body[-1]
    is_code = isinstance(stub, ast.FunctionDef | ast.ClassDef)
    assert exercise(path, name).judges_code == is_code


# --- what stays as it is --------------------------------------------------------------------------


@each_answer_of_code
def test_the_solution_is_right_and_the_stub_not_attempted(path, name, hidden):
    place, judge = exercises(path)[name], exercise(path, name)
    report = judge(answered(solved(read(path)), place))
    assert report.outcome == "right", report.message
    assert judge(answered(read(path), place)).outcome == "not attempted"


@each_answer_of_code
def test_each_mistake_is_told_by_its_own_words(path, name, hidden):
    judge = exercise(path, name)
    mutants = dict(judge.mutants()) if hasattr(judge, "mutants") else {}  # one of each is enough
    told = {says: judge(mutant) for says, mutant in mutants.items()}
    assert [(r.outcome, r.message) for r in told.values()] == [("not yet", says) for says in told]


# --- memorised inputs -----------------------------------------------------------------------------


def state(value):
    """What tells a call's arguments from those of another."""
    if isinstance(value, Tensor):
        value = value.detach().contiguous()
        return value.shape, value.dtype, value.numpy().tobytes()
    if isinstance(value, nn.Module):
        own = [x for x in vars(value).values() if isinstance(x, Tensor)]
        return tuple(map(state, [*value.state_dict().values(), *own]))
    if isinstance(value, list | tuple):
        return tuple(map(state, value))
    if isinstance(value, dict):
        return tuple((key, state(item)) for key, item in value.items())
    return getattr(value, "__name__", repr(value))


def nonsense(value, fill):
    """A value of the same kind."""
    if isinstance(value, Tensor):
        return torch.full_like(value, fill)
    if isinstance(value, list | tuple):
        return type(value)(nonsense(item, fill) for item in value)
    return type(value)(fill)


def remembering(right, calls, fill=None):
    """The right answer, which notes its calls, or gives nonsense in calls other than these."""

    def remembered(given, result):
        if fill is None:
            calls.add(state(given))
        return result if state(given) in calls else nonsense(result, fill)

    if not isinstance(right, type):
        return lambda *given: remembered(given, right(*given))

    class Remembering(right):
        def forward(self, *given):
            return remembered(given, super().forward(*given))

    return Remembering


@each_answer_of_code
def test_an_answer_that_remembers_the_public_inputs_is_found_out(path, name, request):
    judge = exercise(path, name)
    declared = isinstance(judge, Declared)
    right = judge.right if declared else answered(solved(read(path)), exercises(path)[name])
    calls = set()
    judge(remembering(right, calls))
    assert judge(remembering(right, calls, 0)).outcome == "right"
    request.getfixturevalue("hidden")
    for fill in (0, 1):
        assert judge(remembering(right, calls, fill)).outcome == "not yet"
