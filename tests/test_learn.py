"""tools/learn.py: copies that are never overwritten; what is done is remembered beside them."""

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import learn
import nbformat
import pytest
from conftest import CHAPTERS, ROOT, parsed

from exercises import progress
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
    (course / "notebooks" / "pictures").mkdir()
    (course / "notebooks" / "pictures" / "01.svg").touch()
    assert learn.prepare(course) == [] and (course / "my" / "pictures" / "01.svg").is_file()
    for path in (course / "notebooks").glob("*.ipynb"):
        chapter = nbformat.read(path, as_version=4)
        copy = nbformat.read(course / "my" / path.name, as_version=4)
        nbformat.validate(copy)
        assert copy.metadata.course.version == learn.version(chapter)
        assert [cell.source for cell in copy.cells] == [cell.source for cell in chapter.cells]
        assert [cell.metadata for cell in copy.cells] == [cell.metadata for cell in chapter.cells]
        code = [cell for cell in copy.cells if cell.cell_type == "code"]
        assert all(not cell.outputs and cell.execution_count is None for cell in code)
        assert copy.metadata.language_info["version"] == sys.version.split()[0]


def test_a_new_version_is_put_beside_it_once(course):
    learn.prepare(course)
    own = course / "my" / "00_start_here.ipynb"
    own.write_text(own.read_text("utf-8").replace("Start here", "I was here"), "utf-8")
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


DAMAGE = {
    "conflict": b"<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> main\n",
    "empty": b"",
    "cells of numbers": b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [1]}',
}
damaged = pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE)


@damaged
def test_a_damaged_chapter_is_named_and_the_others_are_copied(course, content):
    (course / "notebooks" / "00_start_here.ipynb").write_bytes(content)
    (said,) = learn.prepare(course)
    assert said.startswith("notebooks/00_start_here.ipynb is damaged (")
    assert "git restore notebooks/00_start_here.ipynb" in said and "\n" not in said
    assert set(mine(course)) == {"01_words_as_vectors.ipynb"}
    with pytest.raises(ValueError, match="is damaged"):
        learn.again("0", course)


@damaged
def test_a_damaged_copy_stays_and_its_chapter_is_put_beside_it(course, content, monkeypatch):
    learn.prepare(course)
    (course / "my" / "01_words_as_vectors.ipynb").write_bytes(content)
    (said,) = learn.prepare(course)
    assert "my/01_words_as_vectors-new.ipynb" in said
    monkeypatch.chdir(course / "my")
    assert "[01_words_as_vectors](01_words_as_vectors.ipynb)" in progress.road()


def test_a_python_without_the_course_is_a_sentence():
    bare = [sys.executable, "-I", "-S", str(ROOT / "tools" / "learn.py")]
    done = subprocess.run(bare, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "has no package nbformat" in done.stderr and "`make lab`" in done.stderr


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
    assert "my/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()


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
    assert words.cosine_matrix(all_cosines).done == "Exercises solved in this chapter: 1 of 4"
    assert words.cosine_matrix(all_cosines).done == "Exercises solved in this chapter: 1 of 4"
    assert words.without(lambda E, u: E - u).done == "Exercises solved in this chapter: 1 of 4"
    assert words.without(...).outcome == "not attempted"
    assert progress.of("words_as_vectors") == "1 of 4"
    assert at_work.read_text().split() == ["words_as_vectors.cosine_matrix"]


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
    assert report.done.startswith("What you have solved could not be remembered: ")
    for name in ("01_words_as_vectors", "02_language_modelling"):
        (at_work.parent / f"{name}.ipynb").write_text("{}")
    assert "what you have solved cannot be read: " in progress.road()


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
    assert heads == "|  | chapter | question | minutes | solved |"
    assert first.startswith("|  | [00 · Start here](00_start_here.ipynb) | What will you build")
    assert re.search(r"\? \| \d+–\d+ \+ 5 \| 0 of 1 \|$", first)
    assert second.startswith("| ★ | [01 · Words as vectors](01_words_as_vectors.ipynb) | How can a")
    assert re.search(r"\? \| \d+–\d+ \+ \d+ \| 1 of 4 \|$", second)
    assert third == "|  | [02_broken](02_broken.ipynb) | (the file cannot be read) |  |  |"
    monkeypatch.chdir(course / "notebooks")  # where nothing is remembered
    heads, _, first, *_ = progress.road().split("\n")
    assert heads == "|  | chapter | question | minutes |" and first.endswith(" + 5 |")
    assert {path.stem[3:] for path in CHAPTERS} > progress.SHORT_ROAD


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_check_of_a_chapter_is_counted(path):
    cells = parsed(path).cells
    asked = {c.source.split("(")[0] for c in cells if "check" in c.metadata.get("tags", [])}
    names = {f"check.{name.split('.')[1]}" for name in progress._names(path.stem[3:])}
    assert names == asked


# --- the cells of a notebook ----------------------------------------------------------------------


def runs(*notebooks):
    """The text of the last output of each notebook: its cells in order, or (id, source) of each."""
    script = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("from exercises import look_it_up as check")
own = dict(shell.user_ns)
for cells in json.loads(sys.stdin.read()):
    shell.user_ns.clear()
    shell.user_ns.update(own)
    for cell in cells:
        name, source = cell if isinstance(cell, list) else (None, cell)
        last = shell.run_cell(source, store_history=True, cell_id=name).result
    print("said:", json.dumps(repr(last)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(notebooks), cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("said: ")]
    return [json.loads(line.removeprefix("said: ")) for line in said]


RIGHT = "def centre(x):\n    return x - x.mean(dim=1, keepdim=True)"
ASK = "check.centre(centre)"
STUB, BROKEN = "def centre(x):\n    return ...", "def centre(x):\n    return x -"
RENAMED = RIGHT.replace("centre", "center")
OTHER = RIGHT.replace("centre", "subtracted")
HELPER = "def mean_of_rows(x):\n    return x.mean(dim=1, keepdim=True)"
LOOKS_FOR = "✘ not yet: You defined `{}`; this check looks for `centre`."
OUTDATED = (
    "✘ not yet: The cell that defines `centre` failed with a {}, so `centre` still has its old "
    "definition. Fix and rerun that cell, then rerun this one."
)
UNTOUCHED = (
    "… not attempted: replace the ... in the cell above and run it, then run this cell again."
)
YES = "✔ right: "


def test_a_check_knows_what_became_of_the_cell_of_the_answer():
    told = [
        # A cell that failed is not judged by its version before.
        ([RIGHT, BROKEN, ASK], OUTDATED.format("SyntaxError")),
        ([BROKEN, RIGHT, ASK], YES),
        (["centre = 1", "centre = 1 / 0", ASK], OUTDATED.format("ZeroDivisionError")),
        ([RIGHT, BROKEN, "centre = lambda x: x - x.mean(1, True)", ASK], YES),
        # A cell that defines and checks is judged as soon as it is mended.
        ([RIGHT, f"{BROKEN}\n\n{ASK}", f"{RIGHT}\n\n{ASK}"], YES),
        # What was defined before the error is judged.
        (["def centre(x):\n    return x", f"{RIGHT}\n\n1 / 0", ASK], YES),
        # Another name.
        ([STUB, RENAMED, ASK], LOOKS_FOR.format("center")),
        ([STUB, f"{HELPER}\n\n{RENAMED}", ASK], LOOKS_FOR.format("center")),
        (["centre = ...", "centre_ = 3", ASK], LOOKS_FOR.format("centre_")),
        ([["a", STUB], ["a", f"{HELPER}\n\n{OTHER}"], ["b", ASK]],
         LOOKS_FOR.format("subtracted")),
        # No other name: it is there, was given by hand, or what else is defined is not the answer.
        ([STUB, HELPER, ASK], UNTOUCHED),
        ([["a", STUB], ["a", f"{HELPER}\n\n{RIGHT}"], ["b", ASK]], YES),
        ([["a", STUB], ["a", RENAMED], ["b", f"centre = center\n{ASK}"]], YES),
        ([["a", RIGHT], ["c", RENAMED], ["b", ASK]], YES),
        ([STUB, RENAMED, RIGHT, ASK], YES),
    ]  # fmt: skip
    said = runs(*(notebook for notebook, _ in told))
    for (notebook, expected), found in zip(told, said, strict=True):
        assert found.startswith(expected), (notebook, found)
