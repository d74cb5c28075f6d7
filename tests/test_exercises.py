"""Every exercise of every chapter: its solution, stub, and answers that make no sense.

Of those that are declared, each mistake is told by its own words. With a teacher's secret it is the
same, but an answer that remembers the public inputs is not right: `COURSE_SECRET=… pytest
tests/test_exercises.py` tries a secret of your own. Other right answers, and the mistakes that a
check written by hand recognises, are in test_exercises_TOPIC.py.
"""

import ast
import functools
import os
import re
from importlib import import_module

import nbformat
import pytest
import torch
from conftest import NOTEBOOKS, topic
from torch import Tensor, nn

from exercises import check
from exercises.check import Declared
from tests.solutions import needed, solved


@functools.cache
def read(path):
    return nbformat.read(path, as_version=4)


@functools.cache
def exercises(path):
    """name → the index of its check, in the order of the chapter."""
    cells = enumerate(read(path).cells)
    checks = {i: c.source for i, c in cells if "check" in c.metadata.get("tags", [])}
    names = {i: re.match(r"check\.(\w+)\(", source.strip()) for i, source in checks.items()}
    return {found[1]: i for i, found in names.items() if found}


def answered(notebook, check):
    """What the check's call is given, after the statements above it that it needs."""
    code = f"{needed(notebook, check)}\n{notebook.cells[check].source}"
    *above, call = ast.parse(code).body
    names = {}
    exec(compile(ast.Module(above, []), "chapter", "exec"), names)
    return eval(compile(ast.Expression(call.value.args[0]), "chapter", "eval"), names)


ALL = [
    pytest.param(path, name, id=f"{path.stem}-{name}")
    for path in NOTEBOOKS
    for name in exercises(path)
]
each_exercise = pytest.mark.parametrize(("path", "name"), ALL)


def exercise(path, name):
    return getattr(import_module(f"exercises.{topic(path)}"), name)


@pytest.fixture
def hide(monkeypatch):
    """From its call on, inputs are drawn from a secret."""
    secret = os.environ.get("COURSE_SECRET", "a secret")
    return functools.partial(monkeypatch.setattr, check, "secret", secret)


def expect_right(judge, answer):
    report = judge(answer)
    assert report.outcome == "right", report.message


@each_exercise
def test_the_solution_is_right_and_memory_is_found_out(path, name, hide):
    judge, answer = exercise(path, name), answered(solved(read(path)), exercises(path)[name])
    expect_right(judge, answer)
    if judge.judges_code:
        right, calls = getattr(judge, "right", answer), set()
        expect_right(judge, remembering(right, calls))
        expect_right(judge, remembering(right, calls, 0))
        hide()
        for one in {answer, right}:
            expect_right(judge, one)
        for fill in (0, 1):
            assert judge(remembering(right, calls, fill)).outcome == "not yet", (
                "an answer that memorised the public inputs passes: draw with `normal` or `draw`"
            )


@each_exercise
def test_the_stub_is_not_attempted(path, name, hide):
    judge, stub = exercise(path, name), answered(read(path), exercises(path)[name])
    untouched = "… not attempted: replace the ... in the cell above and run it, then run this cell"
    assert repr(judge(stub)) == f"{untouched} again."
    assert judge.name == name
    hide()
    assert judge(stub).outcome == judge(...).outcome == "not attempted"


@each_exercise
def test_the_stub_tells_whether_the_answer_is_code_and_how_a_failure_is_repeated(path, name):
    stub = ast.parse(read(path).cells[exercises(path)[name] - 1].source).body[-1]
    is_code = isinstance(stub, ast.FunctionDef | ast.ClassDef)
    assert exercise(path, name).judges_code == is_code
    assert not is_code or f"{stub.name}(*" in exercise(path, name)._try_it()


DECLARED = [
    pytest.param(exercise, id=f"{path.stem}-{exercise.name}")
    for path in NOTEBOOKS
    for exercise in vars(import_module(f"exercises.{topic(path)}")).values()
    if isinstance(exercise, Declared) and exercise.topic == topic(path)  # not one of another's
]
MUTANTS = [
    pytest.param(*param.values, says, mutant, id=f"{param.id}-{i}")
    for param in DECLARED
    for i, (says, mutant) in enumerate(param.values[0].mutants())
]


@pytest.mark.parametrize(("declared", "says", "mutant"), MUTANTS)
def test_each_mistake_is_told_by_its_own_words(declared, says, mutant, hide):
    report = declared(mutant)
    assert (report.outcome, report.message) == ("not yet", says)
    assert report.detail == f"{declared._example(mutant)} {declared._try_it()}".strip()
    hide()
    report = declared(mutant)
    assert (report.outcome, report.message) == ("not yet", says)


GARBAGE = {
    "None": None,
    "text": "text",
    "no arguments": lambda: 1,
    "no return": lambda *_: None,
    "returns text": lambda *_: "text",
    "returns NaN": lambda *_: float("nan"),
    "returns an object": lambda *_: object(),
    "raises": lambda *_: 1 / 0,
    "a class": nn.Identity,
}


# The declared ones share their code: one of each kind will do.
KINDS = {
    type(one) if isinstance(one, Declared) else param.id: param
    for param in ALL
    for one in [exercise(*param.values)]
}


@pytest.mark.parametrize("answer", GARBAGE.values(), ids=list(GARBAGE))
@pytest.mark.parametrize(("path", "name"), KINDS.values())
def test_garbage_is_answered_without_a_traceback(path, name, answer):
    assert exercise(path, name)(answer).outcome == "not yet"


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
