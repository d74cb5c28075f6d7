"""The exercises of "Start here" beyond what their declaration says, and its list of chapters."""

import nbformat
import torch
from conftest import CHAPTERS, ROOT

from exercises import look_it_up, start_here
from tests.answers import refused


def in_place(x):
    x -= x.mean(dim=1, keepdim=True)
    return x


test_other_mistakes_are_told_by_what_differs = refused(
    (start_here.surprise, lambda p: 2.0, "surprise(1) should be 0, but is 2"),
    (look_it_up.centre, in_place, "work on a new tensor"),
)


def test_another_right_way_is_right():
    assert start_here.surprise(lambda p: -torch.tensor(p).log2()).outcome == "right"
    assert look_it_up.centre(lambda x: (x.T - x.mean(1)).T).outcome == "right"


def test_the_list_of_chapters_is_as_new_as_the_folder():
    cells = nbformat.read(ROOT / "notebooks" / "00_start_here.ipynb", as_version=4).cells
    shown = [o.data["text/markdown"] for c in cells for o in c.get("outputs", []) if "data" in o
             and "text/markdown" in o.data]  # fmt: skip
    links = [path.name for path in CHAPTERS if f"({path.name})" in shown[0]]
    assert links == [path.name for path in CHAPTERS], (
        "a chapter has come: python tools/notebooks.py run notebooks/00_start_here.ipynb"
    )
