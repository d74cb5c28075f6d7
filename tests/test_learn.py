"""tools/learn.py: copies that are never overwritten; what is done is remembered beside them."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import learn
import nbformat
import pytest
from conftest import CHAPTERS, ROOT

from exercises import progress, start_here
from exercises import words_as_vectors as words


@pytest.fixture
def course(tmp_path):
    """A folder with two chapters."""
    (tmp_path / "notebooks").mkdir()
    for path in CHAPTERS[:2]:
        shutil.copy(path, tmp_path / "notebooks")
    return tmp_path


def mine(course):
    return {path.name: path.read_bytes() for path in (course / "my").glob("*.ipynb")}


def change(course, name="01_words_as_vectors.ipynb"):
    path = course / "notebooks" / name
    chapter = nbformat.read(path, as_version=4)
    chapter.cells[2].source += "\nA sentence more."
    nbformat.write(chapter, path)


def test_copies_have_no_outputs_and_are_the_chapter_otherwise(course):
    assert learn.prepare(course) == []
    for path in (course / "notebooks").glob("*.ipynb"):
        chapter = nbformat.read(path, as_version=4)
        copy = nbformat.read(course / "my" / path.name, as_version=4)
        nbformat.validate(copy)
        assert [cell.source for cell in copy.cells] == [cell.source for cell in chapter.cells]
        assert [cell.metadata for cell in copy.cells] == [cell.metadata for cell in chapter.cells]
        code = [cell for cell in copy.cells if cell.cell_type == "code"]
        assert all(not cell.outputs and cell.execution_count is None for cell in code)
        assert copy.metadata.language_info["version"] == sys.version.split()[0]


def test_a_copy_is_never_overwritten(course):
    learn.prepare(course)
    (course / "my" / "01_words_as_vectors.ipynb").write_text("what I wrote")
    before = mine(course)
    learn.prepare(course)
    for name, content in before.items():
        assert mine(course)[name] == content


def test_a_new_version_is_put_beside_it_once(course):
    learn.prepare(course)
    before = mine(course)
    change(course)
    (said,) = learn.prepare(course)
    assert "01_words_as_vectors-new.ipynb" in said
    after = mine(course)
    assert set(after) - set(before) == {"01_words_as_vectors-new.ipynb"}
    assert all(after[name] == content for name, content in before.items())
    assert learn.prepare(course) == [] and mine(course) == after
    change(course)
    learn.prepare(course)
    assert set(mine(course)) - set(after) == {"01_words_as_vectors-new2.ipynb"}


def test_new_outputs_are_no_new_version(course):
    learn.prepare(course)
    path = course / "notebooks" / "01_words_as_vectors.ipynb"
    chapter = nbformat.read(path, as_version=4)
    next(cell for cell in chapter.cells if cell.cell_type == "code").outputs = []
    nbformat.write(chapter, path)
    assert learn.prepare(course) == []


def test_beginning_again_keeps_what_was_there(course):
    learn.prepare(course)
    fresh, own = mine(course)["01_words_as_vectors.ipynb"], course / "my/01_words_as_vectors.ipynb"
    own.write_text("what I wrote")
    assert "01_words_as_vectors-old.ipynb" in learn.again("1", course)
    assert (course / "my/01_words_as_vectors-old.ipynb").read_text() == "what I wrote"
    assert own.read_bytes() == fresh
    own.write_text("and again")
    learn.again("01", course)
    assert (course / "my/01_words_as_vectors-old2.ipynb").read_text() == "and again"
    with pytest.raises(ValueError, match="no chapter '7': the last is 01"):
        learn.again("7", course)


def test_the_address_that_is_printed_leads_to_the_first_chapter(course, tmp_path):
    learn.prepare(course)
    flags = ["--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0"]
    script = f"import learn, pathlib; learn.start({flags}, pathlib.Path({str(course)!r}))"
    own = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment = (
        os.environ | own | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tools"), str(ROOT)])}
    )
    server = subprocess.Popen(
        [sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, env=environment
    )
    said = []
    try:
        for line in server.stderr:
            said.append(line)
            if "Or copy and paste" in line:
                break
        address = server.stderr.readline()
    finally:
        server.kill()
        server.communicate()
    assert "/lab/tree/00_start_here.ipynb?token=" in address
    assert "Overriding" not in "".join(said)  # the hook by itself: said twice at each start


def test_git_does_not_see_the_copies():
    found = subprocess.run(["git", "check-ignore", "my/00_start_here.ipynb"], cwd=ROOT)
    assert found.returncode == 0


# --- what is done ---------------------------------------------------------------------------------


def all_cosines(A, B):
    return (A / A.norm(dim=1, keepdim=True)) @ (B / B.norm(dim=1, keepdim=True)).T


@pytest.fixture
def at_work(course, monkeypatch):
    (course / "my").mkdir()
    monkeypatch.chdir(course / "my")
    return course / "my" / "progress.txt"


def test_what_is_right_is_remembered_and_counted_once(at_work):
    assert progress.of("words_as_vectors") == "0 of 4"
    assert words.cosine_matrix(all_cosines).done == "exercises done in this chapter: 1 of 4"
    assert words.cosine_matrix(all_cosines).done == "exercises done in this chapter: 1 of 4"
    assert words.without(lambda E, u: E - u).done == "exercises done in this chapter: 1 of 4"
    assert words.without(...).outcome == "not attempted"
    assert progress.of("words_as_vectors") == "1 of 4"
    assert at_work.read_text().split() == ["words_as_vectors.cosine_matrix"]


def test_the_example_of_the_first_chapter_is_no_exercise(at_work):
    report = start_here.average(lambda numbers: sum(numbers) / len(numbers))
    assert report.outcome == "right" and report.done == ""
    assert progress.of("start_here") == "0 of 1"


def test_a_damaged_file_costs_the_damaged_lines_alone(at_work):
    words.cosine_matrix(all_cosines)
    with at_work.open("ab") as file:
        file.write(b"\xff\xfe{]\nwords_as_vectors.no_such\nwords_as_vec")
    words.without(lambda E, u: E - (E @ u)[:, None] * u / (u @ u))
    assert progress.of("words_as_vectors") == "2 of 4 (2 lines of progress.txt could not be read)"


def test_what_cannot_be_written_is_said(at_work):
    at_work.mkdir()
    report = words.cosine_matrix(all_cosines)
    assert report.outcome == "right"
    assert report.done.startswith("what is done could not be remembered: ")
    report = words.cosine_matrix(None)
    assert report.outcome == "not yet"
    assert report.done.startswith("what is done could not be remembered: ")
    (at_work.parent / "01_words_as_vectors.ipynb").write_text("{}")
    assert "what is done cannot be read: " in progress.road()


def test_nothing_is_written_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words.cosine_matrix(all_cosines).done == ""
    assert progress.of("words_as_vectors") == "" and list(tmp_path.iterdir()) == []


def test_chapters_that_are_open_at_once_lose_nothing(at_work):
    topics = {topic: progress._names(topic) for topic in ("words_as_vectors", "scaling")}
    names = [name for asked in topics.values() for name in asked]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: progress.remember(*name.split(".")), names * 5))
    for topic, asked in topics.items():
        assert progress.of(topic) == f"{len(asked)} of {len(asked)}"


def test_the_road_lists_the_chapters_of_the_folder_and_what_is_done(course, at_work, monkeypatch):
    learn.prepare(course)
    shutil.copy(at_work.parent / "01_words_as_vectors.ipynb", "01_words_as_vectors-old.ipynb")
    (at_work.parent / "02_broken.ipynb").write_text('{"cells": []}')
    words.cosine_matrix(all_cosines)
    heads, _, first, second, third = progress.road().split("\n")
    assert heads == "| chapter | question | solved |"
    assert first.startswith("| [00 · Start here](00_start_here.ipynb) | Where does the road lead")
    assert first.endswith("? | 0 of 1 |")
    assert second.startswith("| [01 · Words as vectors](01_words_as_vectors.ipynb) | How can a")
    assert second.endswith("? | 1 of 4 |")
    assert third == "| [02_broken](02_broken.ipynb) | (not to be read) |  |"
    monkeypatch.chdir(course / "notebooks")  # where nothing is remembered
    heads, _, first, *_ = progress.road().split("\n")
    assert heads == "| chapter | question |" and first.endswith("? |")


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_check_of_a_chapter_is_counted(path):
    cells = nbformat.read(path, as_version=4).cells
    asked = {c.source.split("(")[0] for c in cells if "check" in c.metadata.get("tags", [])}
    names = {f"check.{name.split('.')[1]}" for name in progress._names(path.stem[3:])}
    assert names == asked


# --- the cells of a notebook ----------------------------------------------------------------------


def run(*cells):
    """The text of the last output of a notebook of these cells."""
    script = "\n".join(
        ["from IPython.core.interactiveshell import InteractiveShell",
         "shell = InteractiveShell.instance()",
         "shell.run_cell('from exercises import start_here as check', store_history=True)",
         *(f"last = shell.run_cell({cell!r}, store_history=True).result" for cell in cells),
         "import json; print(json.dumps(repr(last)))"]
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


RIGHT = "def centre(x):\n    return x - x.mean(dim=1, keepdim=True)"
ASK = "check.centre(centre)"


def test_a_cell_that_failed_is_not_judged_by_its_version_before():
    said = run(RIGHT, "def centre(x):\n    return x -", ASK)
    assert said.startswith("✘ not yet: the cell that should define `centre` stopped with SyntaxErr")
    assert run("def centre(x):\n    return x -", RIGHT, ASK).startswith("✔ right")
    said = run("centre = 1", "centre = 1 / 0", ASK)
    assert "stopped with ZeroDivisionError" in said


def test_a_cell_that_defines_and_checks_is_judged_as_soon_as_it_is_mended():
    broken, mended = f"def centre(x):\n    return x -\n\n{ASK}", f"{RIGHT}\n\n{ASK}"
    assert run(RIGHT, broken, mended).startswith("✔ right")


def test_what_was_defined_before_the_error_is_judged():
    assert run("def centre(x):\n    return x", f"{RIGHT}\n\n1 / 0", ASK).startswith("✔ right")
