"""Grade a trial class of 30 notebooks of chapter 04, and compare the grades with what they must be.

    .venv/bin/python benchmarks/grading.py [FOLDER]     default: a folder that is removed again

Ten students have the solutions, others make classic mistakes, leave stubs, crash, never end, eat
the memory, write files, reach for the network, change the checks, or hand in what is no notebook.
"""

import argparse
import csv
import re
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(ROOT / "tools" / "book")]

from teaching.assign import assignment  # noqa: E402
from teaching.exercises_of import NOTEBOOKS, Task, read, tasks  # noqa: E402
from teaching.grade import grade  # noqa: E402

CHAPTER = "04_queries_keys_values"
RIGHT, WRONG, STUB, ERROR = "right", "not yet", "not attempted", "error"

NEAR = "past & ~past.tril(-self.window)"  # the mask in the solution of exercise 4.4
NAMES = [
    "keys_centred",
    "values_centred",
    "largest_subtracted",
    "divided_by_largest",
    "roles_swapped",
    "softmax_twice",
]
ACCURACIES = {"softmax": 1.0, "own queries": 0.31, "width": 0.8}


def students(solutions: dict[str, str]) -> dict[str, tuple[dict[str, str], tuple[str, ...]]]:
    """Name → what stands in each exercise's cell, and the outcomes that must come of it."""
    all_right, none = (RIGHT,) * 4, (STUB,) * 4
    # Without the three trainings of the solution, which take a quarter of a minute.
    fast = solutions | {"what_recall_needs": f"ablation = ({ACCURACIES}, ['own queries', 'width'])"}

    def with_(code: dict[str, str], outcomes: tuple[str, ...]) -> tuple:
        return fast | code, outcomes

    window = solutions["window_head"]
    return {
        **{f"solution {i}": (solutions, all_right) for i in range(6)},
        **{f"solution, reported {i}": (fast, all_right) for i in range(4)},
        "empty": ({}, none),
        "only the first": ({"ask_for_the_verb": solutions["ask_for_the_verb"]}, (RIGHT, *none[1:])),
        "too short a query": with_(
            {"ask_for_the_verb": "query = torch.tensor([0.0, 0, 0, 3])"},
            (WRONG, RIGHT, RIGHT, RIGHT),
        ),
        "too short a query, too": with_(
            {"ask_for_the_verb": "query = torch.tensor([0.0, 0, 0, 3])"},
            (WRONG, RIGHT, RIGHT, RIGHT),
        ),
        "all leak": with_(
            {"which_leak": f"leaking = {dict.fromkeys(NAMES, True)}"}, (RIGHT, WRONG, RIGHT, RIGHT)
        ),
        "nothing is needed": with_(
            {"what_recall_needs": f"ablation = ({ACCURACIES}, [])"}, (RIGHT, RIGHT, WRONG, RIGHT)
        ),
        "the whole past": with_(
            {"window_head": window.replace(NEAR, "past")},
            (RIGHT, RIGHT, RIGHT, WRONG),
        ),
        "no mask": with_(
            {"window_head": window.replace(NEAR, "None")}, (RIGHT, RIGHT, RIGHT, WRONG)
        ),
        "syntax error": with_(
            {"which_leak": "leaking = {'keys_centred': False,"}, (RIGHT, ERROR, RIGHT, RIGHT)
        ),
        "exception": with_({"which_leak": "leaking = 1 / 0"}, (RIGHT, ERROR, RIGHT, RIGHT)),
        "endless cell": with_(
            {"ask_for_the_verb": "while True:\n    pass"}, (ERROR, RIGHT, RIGHT, RIGHT)
        ),
        "endless, and catches all": with_(
            {
                "ask_for_the_verb": "while True:\n    try:\n        while True:\n"
                "            pass\n    except BaseException:\n        pass"
            },
            (ERROR, RIGHT, RIGHT, RIGHT),
        ),
        "endless forward": with_(
            {"window_head": re.sub(r"past = ", "while True: pass\n        past = ", window)},
            (RIGHT, RIGHT, RIGHT, WRONG),
        ),
        "segmentation fault": with_(
            {"which_leak": "import ctypes\nctypes.string_at(0)"}, (RIGHT, ERROR, RIGHT, RIGHT)
        ),
        "exits": with_({"which_leak": "import os\nos._exit(0)"}, (RIGHT, ERROR, RIGHT, RIGHT)),
        "memory": with_(
            {"which_leak": "hoard = []\nwhile True:\n    hoard.append(torch.ones(2**26))"},
            (RIGHT, ERROR, RIGHT, RIGHT),
        ),
        "network and files": with_(
            {
                "ask_for_the_verb": "import urllib.request\n"
                "urllib.request.urlopen('http://192.0.2.1/', timeout=5)",
                "which_leak": "open(HANDED_IN, 'w').write('gone')",
                "what_recall_needs": "import subprocess\nsubprocess.run(['true'])",
            },
            (ERROR, ERROR, ERROR, RIGHT),
        ),
        "changes the check": with_(
            {
                "ask_for_the_verb": "query = 5\nimport exercises.check\n"
                "exercises.check.Exercise.__call__ = "
                "lambda self, *a: exercises.check.Report('right', 'Well done.')"
            },
            (ERROR,) * 4,
        ),
        "its own check": with_(
            {
                "ask_for_the_verb": "query = 5\nclass check:\n    def __getattr__(self, name):\n"
                "        return lambda answer: 'right'\ncheck = check()"
            },
            (WRONG, RIGHT, RIGHT, RIGHT),
        ),
    }


def hand_in(folder: Path) -> dict[str, tuple[str, ...]]:
    """Write the notebooks of the class; returns file → the outcomes that must come."""
    chapter = read(NOTEBOOKS / f"{CHAPTER}.ipynb")
    every = tasks(chapter)
    blank = assignment(chapter, CHAPTER)
    expected = {}
    for number, (name, (code, outcomes)) in enumerate(students(_solutions(every)).items()):
        file = f"{number:02d}/{CHAPTER}-assignment.ipynb"
        path = folder / file
        path.parent.mkdir(parents=True)
        code = {k: v.replace("HANDED_IN", repr(str(path))) for k, v in code.items()}
        nbformat.write(_filled(blank, every, name, code), path)
        expected[file] = outcomes
    (folder / "notes.ipynb").write_text("This is no notebook.")
    return expected | {"notes.ipynb": (ERROR,)}


def _solutions(every: list[Task]) -> dict[str, str]:
    blocks = {
        task.name: re.findall(r"^```python\n(.+?)\n```$", task.text, re.M | re.S) for task in every
    }
    return {name: found[-1] for name, found in blocks.items()}


def _filled(
    blank: NotebookNode, every: list[Task], name: str, code: dict[str, str]
) -> NotebookNode:
    """An assignment with a student's name and code in it."""
    notebook = nbformat.from_dict(blank)
    stubs = {task.stub: task.name for task in every}
    cells = []
    for cell in blank.cells:
        cell = nbformat.from_dict(dict(cell))
        if cell.id == "assignment-name":
            cell.source = f"NAME = {name!r}"
        elif cell.source in stubs:
            cell.source = code.get(stubs[cell.source], cell.source)
        cells.append(cell)
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=blank.metadata)
    return notebook


def main(folder: Path) -> int:
    expected = hand_in(folder / "class")
    before = {path: path.read_bytes() for path in (folder / "class").rglob("*.ipynb")}
    began = time.perf_counter()
    grade(folder / "class", folder / "grades.csv", secret="trial")
    took = time.perf_counter() - began
    got: dict[str, list[str]] = {}
    with (folder / "grades.csv").open(encoding="utf-8-sig") as table:
        for row in csv.DictReader(table):
            got.setdefault(row["file"], []).append(row["outcome"])
    wrong = {
        file: (got.get(file), want)
        for file, want in expected.items()
        if tuple(got.get(file, ())) != want
    }
    for file, (found, want) in wrong.items():
        print(f"{file}: {found} instead of {want}")
    changed = [path for path, content in before.items() if path.read_bytes() != content]
    print(f"{len(expected)} files, {sum(map(len, got.values()))} rows, {took:.0f} s;", end=" ")
    print(f"{len(wrong)} files graded otherwise than expected, {len(changed)} files changed")
    return bool(wrong or changed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    with tempfile.TemporaryDirectory() as passing:
        sys.exit(main(parser.parse_args().folder or Path(passing)))
