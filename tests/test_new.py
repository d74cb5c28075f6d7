"""tools/new.py: a trial chapter has the form of the others, and few files are left to write."""

import os
import re
import subprocess
import sys

import figures
import nbformat
import new
import pytest
from conftest import ROOT

import notebooks as tool

FOLDERS = ("notebooks", "exercises", "tests")


@pytest.fixture
def copy(tmp_path):
    """The folders of a course with two chapters, of which 01 is missing."""
    for name in FOLDERS:
        (tmp_path / name).mkdir()
    for name in ("00_a", "02_c"):
        chapter = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(f"# {name}")])
        nbformat.write(chapter, tmp_path / "notebooks" / f"{name}.ipynb")
    return tmp_path


def test_a_new_chapter_has_the_form_of_the_others(copy):
    by_hand = new.lay_out("fine_tuning", copy)
    assert len(by_hand) <= 8
    made = [copy / file for file in by_hand if (copy / file).is_file()]
    assert len(made) == 3
    notebook = nbformat.read(made[0], as_version=4)
    nbformat.validate(notebook)
    assert made[0].name == "01_fine_tuning.ipynb"
    assert tool.faults(notebook) == [] and figures.stated_minutes(notebook) is not None
    assert figures.is_third_edition(notebook) and figures.too_much(notebook) == []
    text = tool.text_of(notebook)
    tool.navigate(notebook, made[0])
    tool.normalise(notebook)
    assert tool.text_of(notebook) == text  # as `check` wants it
    assert "01_fine_tuning.ipynb" in (copy / "notebooks" / "00_a.ipynb").read_text("utf-8")
    assert not re.search("TOPIC|TITLE|NUMBER|FIGURE|MINUTES", tool.text_of(notebook)), (
        "a placeholder is left"
    )
    for other in by_hand[3:5]:
        assert (ROOT / other.split()[0]).is_file()


def test_its_code_runs_and_its_exercise_answers(copy):
    new.lay_out("fine_tuning", copy)
    cells = nbformat.read(copy / "notebooks" / "01_fine_tuning.ipynb", as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    room = "import exercises; exercises.__path__.insert(0, 'exercises')\n"
    program = f"{room}{code}\nprint(check.double(lambda x: x * x))"
    program += "\n" + (copy / "tests" / "test_exercises_fine_tuning.py").read_text("utf-8")
    program += "\ntest_another_right_way_is_right()"
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "This is the square" in done.stdout


@pytest.mark.parametrize("topic", ["c", "Fine tuning", "../fine", "fine_2"])
def test_a_topic_that_is_there_or_is_no_name_is_refused(copy, topic):
    before = [sorted(path.name for path in (copy / name).iterdir()) for name in FOLDERS]
    with pytest.raises((ValueError, FileExistsError), match=r"there is a chapter|small letters"):
        new.lay_out(topic, copy)
    assert before == [sorted(path.name for path in (copy / name).iterdir()) for name in FOLDERS]


def test_the_command_says_in_one_line_what_is_wrong(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["notebooks.py", "new", "gpt"])
    with pytest.raises(SystemExit):
        tool.main()
    assert "there is a chapter gpt already" in capsys.readouterr().err
