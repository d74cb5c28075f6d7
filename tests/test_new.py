"""tools/new.py: a trial chapter passes `notebooks.py check`, and its exercise answers."""

import os
import re
import subprocess
import sys

import figures
import nbformat
import new
import pytest
from conftest import ROOT
from teaching import assign, exercises_of

import notebooks as tool


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The folders of a course with two chapters, of which 01 is missing."""
    for name in ("notebooks", "exercises"):
        (tmp_path / name).mkdir()
    for name in ("00_a", "02_c"):
        chapter = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(f"# {name}")])
        nbformat.write(chapter, tmp_path / "notebooks" / f"{name}.ipynb")
    monkeypatch.setattr(tool, "NOTEBOOKS", tmp_path / "notebooks")
    return tmp_path


def test_a_new_chapter_is_as_check_wants_it_and_its_exercise_answers(copy, monkeypatch, capsys):
    path = new.lay_out("fine_tuning", copy)
    assert path.name == "01_fine_tuning.ipynb"
    monkeypatch.setattr(sys, "argv", ["notebooks.py", "check"])
    assert tool.main() == 0, capsys.readouterr().out  # its neighbours lead to it
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert len(figures.stated_minutes(notebook)) == 2 and figures.too_much(notebook) == []
    assert not re.search("TOPIC|TITLE|NUMBER|FIGURE|MINUTES", path.read_text("utf-8"))
    handed_out = assign.assignment(exercises_of.read(path), path.stem)
    assert "Hints" not in "".join(cell.source for cell in handed_out.cells)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    room = "import exercises; exercises.__path__.insert(0, 'exercises')\n"
    program = f"{room}{code}\nprint(check.double(lambda x: x * x))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=copy, env=environment, capture_output=True, text=True
    )
    assert "This is the square" in done.stdout, done.stderr


@pytest.mark.parametrize("topic", ["c", "Fine tuning", "../fine", "fine_2"])
def test_a_topic_that_is_there_or_is_no_name_is_refused(copy, topic):
    with pytest.raises((ValueError, FileExistsError), match=r"there is a chapter|small letters"):
        new.lay_out(topic, copy)
    assert len(list(copy.rglob("*.*"))) == 2
