"""The exercises of chapter 00, and its list of chapters."""

import nbformat
import pytest
import torch
from conftest import CHAPTERS, ROOT

from exercises import start_here as check

NOTEBOOK = ROOT / "notebooks" / "00_start_here.ipynb"
GARBAGE = [None, 3, "text", lambda: 1, lambda a, b, c: a, lambda x: "text", lambda x: float("nan")]


def average(numbers):
    return sum(numbers) / len(numbers)


def centre(x):
    return x - x.mean(dim=1, keepdim=True)


def in_place(x):
    x -= x.mean(dim=1, keepdim=True)
    return x


@pytest.mark.parametrize("solution", [average, centre], ids=lambda f: f.__name__)
def test_the_solution_is_right(solution):
    assert getattr(check, solution.__name__)(solution).outcome == "right"


@pytest.mark.parametrize("exercise", [check.average, check.centre], ids=lambda e: e.name)
def test_the_stub_is_not_attempted(exercise):
    assert exercise(lambda x: ...).outcome == "not attempted"


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("exercise", [check.average, check.centre], ids=lambda e: e.name)
def test_garbage_is_not_yet(exercise, garbage):
    assert exercise(garbage).outcome == "not yet"


@pytest.mark.parametrize(
    ("exercise", "mistake", "words"),
    [
        (check.average, sum, "This is the sum"),
        (check.average, lambda n: sum(n) / max(len(n) - 1, 1), "one too few"),
        (check.average, lambda n: sorted(n)[len(n) // 2], "median"),
        (check.average, lambda n: 5.0, "average([-1.0, 1.0, -6.0, 4.0]) should be -0.500"),
        (check.average, lambda n: sum(set(n)) / len(set(n)), "average([3.0, 3.0, 9.0])"),
        (check.average, print, "did you forget `return`?"),
        (check.average, lambda n: n.sort() or sum(n) / len(n), "changed its input"),
        (check.centre, lambda x: x - x.mean(0), "mean of each *column*"),
        (check.centre, lambda x: x - x.mean(), "one mean from everything"),
        (check.centre, lambda x: x - x.mean(1), "Keep the dimension with keepdim=True"),
        (check.centre, lambda x: x.mean(1, keepdim=True), "the means themselves"),
        (check.centre, lambda x: x.mean(1), "should have shape (4, 4), but has (4,)"),
        (check.centre, lambda x: x - x.sum(1, keepdim=True), "take the mean"),
        (check.centre, lambda x: x.mean(1, keepdim=True) - x, "the other way round"),
        (check.centre, lambda x: x.T - x.mean(1), "centre(x) should be"),
        (check.centre, in_place, "changed its input"),
        (check.centre, lambda x: x - x.view(4, 4).mean(1, True), "raised RuntimeError"),
    ],
)
def test_known_mistakes_are_named(exercise, mistake, words):
    report = exercise(mistake)
    assert report.outcome == "not yet"
    assert words in report.message


def test_another_right_way_is_right():
    assert check.average(lambda n: torch.tensor(n).mean()).outcome == "right"
    assert check.centre(lambda x: (x.T - x.mean(1)).T).outcome == "right"


def test_the_list_of_chapters_is_as_new_as_the_folder():
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    shown = [o.data["text/markdown"] for c in cells for o in c.get("outputs", []) if "data" in o
             and "text/markdown" in o.data]  # fmt: skip
    links = [path.name for path in CHAPTERS if f"({path.name})" in shown[0]]
    assert links == [path.name for path in CHAPTERS], (
        "a chapter has come: python tools/notebooks.py run notebooks/00_start_here.ipynb"
    )
