"""Every exercise of every chapter: its solution, stub, and answers that make no sense.

Of those that are declared, each mistake is told by its own words. Other right answers, and the
mistakes that a check written by hand recognises, are in test_exercises_TOPIC.py.
"""

import ast
import functools
import re
from importlib import import_module

import nbformat
import pytest
from conftest import CHAPTERS
from torch import nn

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


def value_of(expression, notebook, check):
    """The value of a part of the check's cell after the statements above it that it needs."""
    body = ast.parse(f"{needed(notebook, check)}\n{notebook.cells[check].source}").body
    names = {}
    exec(compile(ast.Module(body[:-1], []), "chapter", "exec"), names)
    return eval(compile(ast.Expression(expression(body[-1].value)), "chapter", "eval"), names)


def judged(notebook, check):
    return value_of(lambda call: call, notebook, check)


def answered(notebook, check):
    return value_of(lambda call: call.args[0], notebook, check)


ALL = [
    pytest.param(path, name, id=f"{path.stem[:2]}-{name}")
    for path in CHAPTERS
    for name in exercises(path)
]
each_exercise = pytest.mark.parametrize(("path", "name"), ALL)


def exercise(path, name):
    return getattr(import_module(f"exercises.{path.stem[3:]}"), name)


@each_exercise
def test_the_solution_is_right(path, name):
    report = judged(solved(read(path)), exercises(path)[name])
    assert report.outcome == "right", report.message


@each_exercise
def test_the_stub_is_not_attempted(path, name):
    assert repr(judged(read(path), exercises(path)[name])) == (
        "… not attempted: replace the ... in the cell above and run it, then run this cell again."
    )
    assert exercise(path, name)(...).outcome == "not attempted"
    assert exercise(path, name).name == name


@each_exercise
def test_a_failure_is_repeated_with_the_name_of_the_stub(path, name):
    check = exercises(path)[name]
    stub = ast.parse(read(path).cells[check - 1].source).body[-1]
    if isinstance(stub, ast.FunctionDef | ast.ClassDef):
        assert f"{stub.name}(*" in exercise(path, name)._try_it()


DECLARED = [
    pytest.param(exercise, id=f"{path.stem[3:]}-{exercise.name}")
    for path in CHAPTERS
    for exercise in vars(import_module(f"exercises.{path.stem[3:]}")).values()
    if isinstance(exercise, Declared) and exercise.topic == path.stem[3:]  # not one of another's
]
MUTANTS = [
    pytest.param(*param.values, says, mutant, id=f"{param.id}-{i}")
    for param in DECLARED
    for i, (says, mutant) in enumerate(param.values[0].mutants())
]


@pytest.mark.parametrize("declared", DECLARED)
def test_the_right_answer_is_right(declared):
    report = declared(declared.right)
    assert report.outcome == "right", report.message


@pytest.mark.parametrize(("declared", "says", "mutant"), MUTANTS)
def test_each_mistake_is_told_by_its_own_words(declared, says, mutant):
    report = declared(mutant)
    assert (report.outcome, report.message) == ("not yet", says)
    assert report.detail == f"{declared._example(mutant)} {declared._try_it()}".strip()


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
    type(one) if isinstance(one, Declared) else (path, name): (path, name)
    for path, name in (param.values for param in ALL)
    for one in [exercise(path, name)]
}


@pytest.mark.parametrize("answer", GARBAGE.values(), ids=list(GARBAGE))
@pytest.mark.parametrize(("path", "name"), KINDS.values(), ids=[name for _, name in KINDS.values()])
def test_garbage_is_answered_without_a_traceback(path, name, answer):
    assert exercise(path, name)(answer).outcome == "not yet"
