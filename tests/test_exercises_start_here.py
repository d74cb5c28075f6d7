"""The exercises of "Start here" beyond what their declaration says, and its list of chapters."""

import nbformat
import torch
from conftest import CHAPTERS, ROOT

from exercises import start_here as check
from tests.answers import refused


def in_place(x):
    x -= x.mean(dim=1, keepdim=True)
    return x


test_other_mistakes_are_told_by_what_differs = refused(
    (check.average, lambda n: 5.0, "average([-1, 1, -6, 4]) should be -0.500, but is 5.000"),
    (check.average, lambda n: n.sort() or sum(n) / len(n), "work on a new list"),
    (check.centre, in_place, "work on a new tensor"),
)


def test_another_right_way_is_right():
    assert check.average(lambda n: torch.tensor(n).mean()).outcome == "right"
    assert check.centre(lambda x: (x.T - x.mean(1)).T).outcome == "right"


def test_the_list_of_chapters_is_as_new_as_the_folder():
    cells = nbformat.read(ROOT / "notebooks" / "00_start_here.ipynb", as_version=4).cells
    shown = [o.data["text/markdown"] for c in cells for o in c.get("outputs", []) if "data" in o
             and "text/markdown" in o.data]  # fmt: skip
    links = [path.name for path in CHAPTERS if f"({path.name})" in shown[0]]
    assert links == [path.name for path in CHAPTERS], (
        "a chapter has come: python tools/notebooks.py run notebooks/00_start_here.ipynb"
    )
