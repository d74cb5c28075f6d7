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
import torch
from conftest import CHAPTERS
from torch import nn

from exercises.check import Declared


@functools.cache
def exercises(path):
    """name → the sources of its stub, check and solution cells, in the order of the chapter."""
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    found = {}
    for i, cell in enumerate(cells):
        if "exercise" in cell.metadata.get("tags", []):
            name = re.match(r"check\.(\w+)\(", cells[i + 1].source.strip())[1]
            found[name] = (cell.source, cells[i + 1].source, cells[i + 2].source)
    return found


@functools.cache
def imports(path):
    """Every import of the chapter, as source."""
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    nodes = [n for c in cells for n in ast.walk(ast.parse(c.source))]
    found = (n for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom)))
    return "\n".join(dict.fromkeys(map(ast.unparse, found)))


def last_value(path, *sources):
    """Run the sources after the chapter's imports; the value of the last line, as in a notebook."""
    body = ast.parse("\n".join([imports(path), *sources])).body
    names = {}
    exec(compile(ast.Module(body[:-1], []), path.name, "exec"), names)
    return eval(compile(ast.Expression(body[-1].value), path.name, "eval"), names)


@functools.cache
def made_by(path):
    """The names that the chapter's own cells make: a solution with one runs its experiment."""
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    own = [c for c in cells if not {"exercise", "solution"} & set(c.metadata.get("tags", []))]
    tops = [node for c in own for node in ast.parse(c.source).body]
    targets = [t for n in tops if isinstance(n, ast.Assign) for t in n.targets]
    names = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return names | {n.name for n in tops if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def stands_alone(path, solution):
    """Does it need nothing of the chapter but its imports?"""
    tree = ast.parse(solution)
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    stored = {n.id for n in names if isinstance(n.ctx, ast.Store)}
    stored |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    return not {n.id for n in names if isinstance(n.ctx, ast.Load)} - stored & made_by(path)


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
    solutions = [solution for _, _, solution in exercises(path).values()]
    here = list(exercises(path)).index(name)
    if not stands_alone(path, solutions[here]):
        pytest.skip("it runs the chapter's experiment, as nbval does")
    # A later exercise may use the answer of an earlier.
    before = [solution for solution in solutions[:here] if stands_alone(path, solution)]
    report = last_value(path, *before, solutions[here])
    assert report.outcome == "right", report.message


@each_exercise
def test_the_stub_is_not_attempted(path, name):
    stub, check, _ = exercises(path)[name]
    assert last_value(path, stub, check).outcome == "not attempted"
    assert exercise(path, name)(...).outcome == "not attempted"


@each_exercise
def test_the_task_is_described(path, name):
    assert exercise(path, name).__doc__


DECLARED = [
    pytest.param(exercise, id=f"{path.stem[3:]}-{exercise.name}")
    for path in CHAPTERS
    for exercise in vars(import_module(f"exercises.{path.stem[3:]}")).values()
    if isinstance(exercise, Declared)
]
MUTANTS = [
    pytest.param(*param.values, says, mutant, id=f"{param.id}-{i}")
    for param in DECLARED
    for i, (says, mutant) in enumerate(param.values[0].mutants())
]


@pytest.mark.parametrize("declared", DECLARED)
def test_the_right_answer_is_right(declared):
    report = declared(declared.right() if declared.is_value else declared.right)
    assert report.outcome == "right", report.message


@pytest.mark.parametrize(("declared", "says", "mutant"), MUTANTS)
def test_each_mistake_is_told_by_its_own_words(declared, says, mutant):
    assert repr(declared(mutant)) == f"✘ not yet: {says}"


GARBAGE = {
    "None": None,
    "a number": 3,
    "text": "text",
    "an empty list": [],
    "no arguments": lambda: 1,
    "no return": lambda *_: None,
    "returns text": lambda *_: "text",
    "returns NaN": lambda *_: float("nan"),
    "returns NaNs": lambda *_: torch.full((2, 5, 5), float("nan")),
    "returns an object": lambda *_: object(),
    "returns a dict": lambda *_: {"a": 1},
    "raises": lambda *_: 1 / 0,
    "a class": nn.Identity,
}


@pytest.mark.parametrize("answer", GARBAGE.values(), ids=list(GARBAGE))
@each_exercise
def test_garbage_is_answered_without_a_traceback(path, name, answer):
    assert exercise(path, name)(answer).outcome == "not yet"
