"""Assignments and grades: tools/teach.py and tools/teaching."""

import csv
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from datetime import date
from importlib import import_module
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
import teach
from conftest import CHAPTERS, ROOT
from solutions import solution
from teaching import assign, exercises_of, grade, recorded, student

from exercises import start_here

CHAPTER = "00_start_here"  # it runs in seconds
(TASK,) = exercises_of.tasks(exercises_of.read(exercises_of.NOTEBOOKS / f"{CHAPTER}.ipynb"))


# --- assignments ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_an_assignment_is_the_chapter_without_solutions(path):
    chapter = exercises_of.read(path)
    every = exercises_of.tasks(chapter)
    made = assign.assignment(chapter, path.stem)
    nbformat.validate(made)
    text = "\n".join(cell.source for cell in made.cells)
    assert "Hints come" not in text
    for task, given in zip(every, exercises_of.tasks(made), strict=True):
        assert solution(task.text) not in text
        assert not exercises_of.DETAILS.search(given.text) and given.stub == task.stub
        assert f"### Exercise {task.number}" in text
    checks = [source for source in code(made) for _ in exercises_of.check_calls(source)]
    assert len(checks) >= len(every)
    theirs = [cell.id for cell in made.cells]
    assert [c.id for c in chapter.cells] == [id for id in theirs if "assignment" not in id]


def test_an_assignment_has_the_chosen_exercises_only():
    path = exercises_of.chapter("4")
    made = assign.assignment(exercises_of.read(path), path.stem, ["4.1", "4.4"])
    text = "\n".join(cell.source for cell in made.cells)
    assert "Exercise 4.1" in text and "Exercise 4.4" in text
    assert "### Exercise 4.2" not in text and "### Exercise 4.3" not in text
    assert "def keys_centred" not in text  # code that belongs to a task that is left out
    assert "## Names in the literature" in text  # what comes after the exercises
    assert "exercises: 15 minutes" in text  # 5 and 10 of 45
    without_first = assign.assignment(exercises_of.read(path), path.stem, ["4.2"])
    text = "\n".join(cell.source for cell in without_first.cells)
    assert "## 8 · Exercises" in text and "Ask for the verb" not in text


def test_the_head_has_a_due_date_and_hints_stay_on_request(tmp_path):
    (path,) = assign.assign(["4"], tmp_path, due=date(2027, 1, 15), hints=True)
    made = exercises_of.read(path)
    head = made.cells[1].source
    assert "exercises: 45 minutes" in made.cells[0].source
    assert "](data:image/svg+xml;base64," in made.cells[0].source  # it travels alone
    assert "exercises 4.1, 4.2, 4.3, 4.4" in head and "Friday, 15 January 2027" in head
    assert made.cells[2].source == 'NAME = ""'
    text = "\n".join(cell.source for cell in made.cells)
    assert "Hint 1 of 3" in text and "Solution</summary>" not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["99"], "there is no chapter '99': the last is"),
        (["x"], "there is no chapter 'x'"),
        (["4", "--exercises", "4.9"], "there is no exercise 4.9"),
        (["1", "--exercises", "1.4"], "1.4 uses without from exercise 1.3"),
        (["4", "5", "--exercises", "4.1"], "none of the chosen exercises is in 05_scaling"),
    ],
)
def test_what_cannot_be_assigned_is_said(arguments, said, tmp_path):
    with pytest.raises(SystemExit, match=said):
        teach.main(["assign", *arguments, "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_an_assignment_is_not_overwritten(tmp_path):
    assign.assign(["0"], tmp_path)
    with pytest.raises(ValueError, match="is there already"):
        assign.assign(["0"], tmp_path)


# --- exercises of a teacher's own -------------------------------------------------------------

OWN = (
    (ROOT / "docs" / "teaching" / "own.md")
    .read_text("utf-8")
    .replace("Exercise 4.9", "Exercise 0.9")
)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The notebook and the module that docs/teaching/own.md shows, for the first chapter."""
    path = tmp_path_factory.mktemp("own") / "own.ipynb"
    text = re.findall(r"```\n(### .+?)\n```", OWN, re.DOTALL)[0]
    cells = [
        nbformat.v4.new_markdown_cell(text),
        nbformat.v4.new_code_cell("tokens_seen = ...", metadata={"tags": ["exercise"]}),
        nbformat.v4.new_code_cell("check.tokens_seen(tokens_seen)", metadata={"tags": ["check"]}),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    module = re.findall(r"```python\n(.+?)```", OWN, re.DOTALL)[0]
    path.with_suffix(".py").write_text(module, "utf-8")
    return path


def test_an_exercise_of_ones_own_is_assigned_and_graded(own, tmp_path):
    teach.main(["assign", "0", "--own", str(own), "--out", str(tmp_path)])
    given = exercises_of.read(tmp_path / f"{CHAPTER}-assignment.ipynb")
    assert "### Exercise 0.9" in "\n".join(cell.source for cell in given.cells)
    assert "check.tokens_seen" not in "\n".join(code(given))
    plain = nbformat.writes(given)
    answers = {
        "open": "...",
        "right": "lambda w: 1 / (w * w).sum(1)",
        "sums": "lambda w: (w**2).sum(1)",
    }
    (tmp_path / "in").mkdir()
    for name, answer in answers.items():
        handed_in = plain.replace("tokens_seen = ...", f"tokens_seen = {answer}")
        (tmp_path / "in" / f"{name}.ipynb").write_text(handed_in, "utf-8")
    rows, *_ = grade.grade(tmp_path / "in", tmp_path / "out.csv", own=own)
    found = {row.student: row for row in rows if row.exercise == "0.9"}
    assert found["right"].outcome == "right" and found["open"].outcome == "not attempted"
    assert "These are the sums of the squares" in found["sums"].diagnosis


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("· 10 minutes", "", "`· 10 minutes`"),
        ("check.tokens_seen", "tokens_seen", "with the tag check"),
        ("0.9", "0.1", "like 0.1 already"),
    ],
)
def test_an_own_exercise_of_another_form_is_said(old, new, said, own, tmp_path):
    other = tmp_path / "own.ipynb"
    other.write_text(own.read_text("utf-8").replace(old, new), "utf-8")
    with pytest.raises(SystemExit, match=said):
        teach.main(["assign", "0", "--own", str(other), "--out", str(tmp_path / "out")])


# --- the student edition ----------------------------------------------------------------------


@pytest.mark.parametrize("path", CHAPTERS[::6], ids=lambda path: path.stem)
def test_the_student_edition_answers_without_the_answers(path, monkeypatch):
    topic = path.stem[3:]
    original = import_module(f"exercises.{topic}")
    source, results = student.without_answers(original)
    monkeypatch.setattr(recorded, "_results", {topic: results}.get)
    monkeypatch.setitem(sys.modules, "exercises.recorded", recorded)
    exec(source, vars(made := ModuleType(original.__name__)))
    for task in exercises_of.tasks(exercises_of.read(path)):
        ours, theirs = getattr(original, task.name), getattr(made, task.name)
        if task.name not in results:
            if f"@handed_in\ndef {task.name}(" in source:
                assert theirs(...).outcome == "not attempted" and theirs(3).outcome == "handed in"
            continue
        code = solution(task.text)
        assert code.partition("\n")[2] not in source
        for answer in (ours.right, *[wrong for _, wrong in ours.mutants()][::4]):
            said = theirs(answer)
            assert (said.outcome, said.message) == (ours(answer).outcome, ours(answer).message)


def test_the_student_edition_has_no_solutions(tmp_path, monkeypatch):
    monkeypatch.setattr(student, "without_answers", lambda topic: ("@handed_in\ndef x", {}))
    teach.main(["student", str(tmp_path / "out")])
    for path in (tmp_path / "out" / "notebooks").glob("*.ipynb"):
        text = path.read_text("utf-8")
        assert "<summary>Solution" not in text and not re.search(
            "solution is (folded )?below", text
        )
        assert text.count("Hint 1 of") == text.count('"exercise"')
    for name in ("tests", "tools/teaching", "tools/teach.py", "docs/TEACHING.md"):
        assert not (tmp_path / "out" / name).exists()
    assert (tmp_path / "out" / "docs" / "teaching" / "projects.md").exists()
    with pytest.raises(SystemExit, match="is there already"):
        teach.main(["student", str(tmp_path / "out")])


# --- grades -----------------------------------------------------------------------------------

SOLUTION = solution(TASK.text)
PUBLIC = [p for (p,) in vars(start_here)[TASK.name].inputs]
SECONDS = 4
EVIL = "=cmd|' /C calc'!A0<script>alert(1)</script>"
CLASS = {  # file → (code for the exercise, outcome, part of the diagnosis)
    "right": (SOLUTION, "right", ""),
    "wrong": (f"{SOLUTION}\n\n\nsurprise = lambda p: p", "not yet", ""),
    "by heart": (f"{SOLUTION}\n\n\nright, PUBLIC = surprise, {PUBLIC}\n\n\ndef surprise(x):\n"
                 "    return right(x) if x in PUBLIC else x", "not yet", ""),
    "stub": (TASK.stub, "not attempted", ""),
    "exception": ("1 / 0", "error", "ZeroDivisionError: division by zero"),
    "syntax": ("def surprise(x:", "error", "SyntaxError"),
    "endless": ("while True: pass", "error", f"stopped after {SECONDS} seconds"),
    "crash": ("import os\nos._exit(3)", "error", "ended the program"),
    "memory": ("x = [torch.empty(2**28) for _ in range(99)]", "error", "alloc"),
    "process": ("import subprocess\nsubprocess.run(['true'])", "error", "subprocess.Popen"),
    "file": ("open(MINE, 'w').write('gone')", "error", "open"),
    "delete": ("import os\nos.remove(MINE)", "error", "os.remove"),
    "network": ("import socket\nsocket.create_connection(('192.0.2.1', 80), 5)", "error", "socket"),
    "check": ("import exercises.check as c\n"
              "c.Exercise.__call__ = lambda *a: c.Report('right', '')", "error", "has changed"),
    "its code": ("def surprise(x): return x\ncheck.surprise.right.__code__ = surprise.__code__",
                 "error", "has changed the check"),
    "ours": ("surprise = check.surprise.right", "error", "uses the package `exercises`"),
    "calls ours": ("def surprise(x): return check.surprise.right(x)", "error", "uses the package"),
    "formula": ("def surprise(x): raise ValueError('$x^$ $a_b_c$')", "not yet", "$x^$"),
    "half": ("raise ValueError('\ud83d')  # \ud83d", "error", r"ValueError: \ud83d"),
    "comparison": ("import torch\ntorch.allclose = lambda *a, **k: True\n"
                   "def surprise(x): return x", "error", "has changed the check"),
}  # fmt: skip

BESIDE = {  # name → a cell above the answer: the student has seen a check mark all the same
    "scratch": "1 / 0",
    "note": "this is no Python",
    "gui": "%matplotlib widget\nexit()\nget_ipython().kernel",
    "shell": "!ls\n%pip install x\n%cd ..\n%load_ext x\nassert True",
    "script": "%%bash\nls",
    "sleeps": "import time\ntime.sleep(10**6)",
    "ends": "import os\nos._exit(3)",
    "crashes": "import ctypes\nctypes.string_at(0)",
    "deep": "y = " + " + ".join(["1"] * 900),
    "device": "torch.set_default_device('meta')",
}
HELPED = "def surprise(x): return float(-np.log2(x))"
ELSEWHERE = {  # name → (what stands in the answer's place, another cell, where that stands)
    "below its check": (TASK.stub, SOLUTION, 2),
    "below a wrong one": ("def surprise(x): return x", SOLUTION, 2),
    "on top": (TASK.stub, SOLUTION, -99),
    "at the end": (TASK.stub, SOLUTION, 99),
    "timed": (f"%%time\n{SOLUTION}\ncheck.surprise(surprise)", "", 99),
    "import on top": (HELPED, "import numpy as np", -99),
    "own file": ("from own import surprise", f"%%writefile own.py\n{SOLUTION}", 0),
}


def code(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def handed_in(folder: Path, name: str, answer: str, place: str = "") -> Path:
    """Write a notebook as a student hands it in; returns its path."""
    notebook = assign.assignment(exercises_of.read(exercises_of.chapter("0")), CHAPTER)
    path = folder / (place or name) / "start-here.ipynb"
    for cell in notebook.cells:
        if cell.source == TASK.stub:
            cell.source = answer.replace("MINE", repr(str(path)))
        elif cell.source == 'NAME = ""':
            cell.source = f"NAME = {name!r}"
    path.parent.mkdir()
    path.write_text(json.dumps(notebook), "utf-8")
    return path


def handed_in_elsewhere(folder: Path, name: str, answer: str, more: str, where: int) -> None:
    """One with another cell, so many cells below the answer's place."""
    path = handed_in(folder, name, answer)
    notebook = exercises_of.read(path)
    at = next(i for i, cell in enumerate(notebook.cells) if cell.source == answer) + where
    notebook.cells.insert(max(at, 1), nbformat.v4.new_code_cell(more))
    for cell in notebook.cells:
        cell.source = cell.source.replace("### Exercise", "### Übung")
    nbformat.write(notebook, path)


ODD = ["Ö.IPYNB", "bom.ipynb.txt", f"{'東' * 80}.ipynb", "M\udcfcller.ipynb"]
NAMED = ["Ö", "bom", "latin", "東" * 80, r"M\udcfcller"]


def handed_in_oddly(folder: Path) -> None:
    """Files as browsers, editors and archives leave them."""
    content = handed_in(folder, "", SOLUTION, "odd").read_text("utf-8")
    utf16, bom, *plain = ODD
    (folder / utf16).write_text(content, "utf-16")
    (folder / bom).write_text(content, "utf-8-sig")
    for name in plain:
        (folder / name).write_text(content, "utf-8")
    (folder / "latin.ipynb").write_bytes(content.replace("Start", "Stärt", 1).encode("latin-1"))
    (folder / "no cells.ipynb").write_text('{"cells": null}')


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A class of all kinds, graded: the folder and the rows of the table by student."""
    folder = tmp_path_factory.mktemp("class")
    for name, (answer, *_) in CLASS.items():
        handed_in(folder, name, answer)
    for name, more in BESIDE.items():
        handed_in_elsewhere(folder, name, SOLUTION, more, 0)
    for name, (answer, more, where) in ELSEWHERE.items():
        handed_in_elsewhere(folder, name, answer, more, where)
    handed_in_oddly(folder)
    handed_in(folder, EVIL, "raise ValueError('<img src=x onerror=alert(1)>')", "evil")
    (folder / "no notebook.ipynb").write_text("{")
    (folder / "other.ipynb").write_text(nbformat.writes(nbformat.v4.new_notebook()))
    (folder / "notes.zip").write_text("")
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / ".ipynb_checkpoints" / "old.ipynb").write_text("{")
    every = [path for path in folder.rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in every}
    out = tmp_path_factory.mktemp("out") / "grades.csv"
    grade.grade(folder, out, secret="tests", seconds=SECONDS, memory=1)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return out.with_suffix(""), {row["student"]: row for row in table(out)}


def test_each_student_has_a_row(graded):
    assert set(graded[1]) == {
        *(*CLASS, *BESIDE, *ELSEWHERE, f"'{EVIL}"),
        *("no notebook", "other", "no cells", "odd/start-here", *NAMED),
    }


@pytest.mark.parametrize("name", [*BESIDE, *ELSEWHERE, *NAMED])
def test_a_right_answer_is_right(name, graded):
    row = graded[1][name]
    assert (row["outcome"], row["diagnosis"]) == ("right", "")


def test_the_teacher_is_told_where_to_look(graded):
    folder, rows = graded
    assert rows["ours"]["look"] == ".right" and rows["crashes"]["look"] == "ctypes"
    assert rows["right"]["look"] == ""
    sender = grade.lms.Sender(folder, "")
    beside_the_name = grade.HandedIn(folder, "", "", sender, code=["NAME = 'x'\ny = check.z.right"])
    assert grade.Chapter(CHAPTER).look(beside_the_name) == ".right"
    index = (folder / "index.html").read_text("utf-8")
    assert "crashes/start-here.ipynb (ctypes)" in index
    assert "The same answer to" not in index  # these are too short to tell


@pytest.mark.parametrize("name", CLASS)
def test_a_row_says_what_came_of_an_exercise(name, graded):
    row = graded[1][name]
    _, outcome, diagnosis = CLASS[name]
    assert (row["outcome"], row["exercise"], row["chapter"]) == (outcome, TASK.number, CHAPTER)
    assert diagnosis in row["diagnosis"]


def test_a_file_that_cannot_be_graded_has_a_row_too(graded):
    rows = graded[1]
    assert "is no notebook: hand in again" in rows["no notebook"]["diagnosis"]
    assert "does not tell which chapter" in rows["other"]["diagnosis"]
    assert rows["no cells"]["outcome"] == "error"


def test_there_are_a_summary_and_a_feedback_page_for_each(graded):
    folder, rows = graded
    index = (folder / "index.html").read_text("utf-8")
    assert "notes.zip. Unpack the archives first." in index
    assert "ZeroDivisionError" in index
    assert len(list(folder.glob("*.html"))) == len(rows) + 1
    page = (folder / "wrong-start-here.html").read_text("utf-8")
    assert "not yet" in page and "lambda p: p" in page and SOLUTION.splitlines()[-1] not in index


def test_names_and_code_are_text_in_pages_and_in_spreadsheets(graded):
    folder, rows = graded
    assert rows[f"'{EVIL}"]["outcome"] == "error"
    for page in folder.glob("*.html"):
        text = page.read_text("utf-8")
        assert "<script" not in text and "<img src=x" not in text
        assert "failed_input" not in text  # it may come from the secret


def test_what_cannot_be_graded_is_said(tmp_path):
    folder, there = tmp_path / "class", tmp_path / "there.csv"
    folder.mkdir()
    there.touch()
    (roster := tmp_path / "roster.csv").write_text("Name,Mail\n")
    for given, out, said, *more in (
        (folder, there, "there is no .*none.csv", "--points", str(tmp_path / "none.csv")),
        (folder, tmp_path / "grades.csv", "no notebook"),
        (folder, there, "the columns Name, Mail, and is no roster", "--roster", str(roster)),
        (folder, tmp_path / "grades", "should end in .csv"),
        (folder, there, "is there already"),
        (folder, folder / "grades.csv", "among what was handed in"),
        (folder, tmp_path / "class.csv", "among what was handed in"),
        (there, tmp_path / "grades.csv", "is no zip"),
    ):
        with pytest.raises(SystemExit, match=said):
            teach.main(["grade", str(given), "--out", str(out), *more])


NAMES = {"NAME = 'Ann'  # 123": "Ann", 'NAME="Ana";': "Ana", 'NAME: str = "Ana"': "Ana",
         "NAME = Jürgen  Müller": "Jürgen Müller", "NAME = 12345": "12345", 'NAME = ""': "",
         r"NAME = 'Lee\ud83d'": r"Lee\ud83d", "FILE_NAME = 'x'": ""}  # fmt: skip


@pytest.mark.parametrize("source", NAMES)
def test_the_field_for_the_name_is_read(source):
    assert grade._name([source]) == NAMES[source]


@pytest.fixture
def judge(monkeypatch):
    """Calls right what has the solution, or is of another chapter, without running it."""

    def judge(stem, these, *_):
        row = {"message": "Look.", "detail": "", "seconds": 0.0}
        for one in these:
            if one.student == "d":
                raise RuntimeError("OSError: no network")
            right = SOLUTION in one.code or stem != CHAPTER
            row["outcome"] = "right" if right else "not yet"
            yield one, [row | {"exercise": name} for name in one.exercises]

    monkeypatch.setattr(grade, "_judge", judge)


def test_each_file_has_rows_for_what_it_set_and_equal_answers_are_told(tmp_path, judge):
    path = exercises_of.chapter("4")
    chapter = exercises_of.read(path)
    (name,) = exercises_of.tasks(chapter)[3].defines
    answer = f"def {name}(x):\n    return {' + '.join('x' * 40)}"
    for who, chosen in {"a": ["4.4"], "c": ["4.1", "4.4"], "d": ["4.4"]}.items():
        made = assign.assignment(chapter, path.stem, chosen)
        made.metadata["course"]["exercises"] += ["own"] * (who == "a")
        made.cells[2].source = f"NAME = {who!r}"
        made.cells.append(nbformat.v4.new_code_cell(f"{answer}  # by {who}"))
        nbformat.write(made, tmp_path / f"{who}.ipynb")
    out = tmp_path.with_name(f"{tmp_path.name}-out.csv")
    rows, _, notes = grade.grade(tmp_path, out)
    assert [row.student + row.exercise for row in rows] == ["a4.4", "c4.1", "c4.4", "d"]
    assert "could not be run: OSError: no network" in rows[-1].diagnosis
    assert notes == [
        "Not graded, for the reason in their rows: d.ipynb.",
        "Exercises that no chapter has, nor a notebook at --own: a.ipynb (own).",
        "The same answer to 4.4: a, c, d.",
    ]
    out.unlink()
    with pytest.raises(ValueError, match="-out is there already"):
        grade.grade(tmp_path, out)


# --- marks ------------------------------------------------------------------------------------

MOODLE = """Identifier,Full name,Email address,Maximum Grade,Last modified (submission)
Participant 11,Student 1,s1@example.org,10,"Friday, 15 January 2027, 11:02 PM"
Participant 12,Student 2,s2@example.org,10,"Friday, 15 January 2027, 9:00 AM"
Participant 13,Student 3,s3@example.org,10,"Sunday, 17 January 2027, 12:10 AM"
Participant 14,Student 4,s4@example.org,10,-
"""
CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Chapter 00 (77)
    Points Possible,,,,,2
"1, Student",11,u1,s1,A,
"2, Student",12,u2,s2,A,
"3, Student",13,u3,s3,A,
"4, Student",14,u4,s4,A,
"""
FILES = {  # of student, "-1" if it is one more, "LATE_", the number of the file
    "moodle": "Student {0}_1{0}_assignsubmission_file_/a{1}.ipynb",
    "canvas": "student{0}_{2}1{0}_50{3}_a{1}.ipynb",
    "folder": "{3}/{0}.ipynb",
}


def table(path):
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("kind", FILES)
def test_what_a_class_has_handed_in_becomes_marks(kind, tmp_path, judge, capsys):
    with zipfile.ZipFile(given := tmp_path / "class.zip", "w") as archive:
        for i, (who, again, late) in enumerate([(1, "", ""), (2, "", ""), (2, "-1", ""),
                                                (3, "", "LATE_")]):  # fmt: skip
            name = "s2@example.org" if again else f"Student {who}"
            made = handed_in(tmp_path, name, TASK.stub if i == 1 else SOLUTION, f"made{i}")
            notebook = exercises_of.read(made)
            notebook.cells[-1].metadata["tags"] = ["written"]
            day = 15 + i // 3 * 2 if kind == "folder" else 20  # when it was downloaded
            info = zipfile.ZipInfo(FILES[kind].format(who, again, late, i), (2027, 1, day, 9, 0, 0))
            archive.writestr(info, json.dumps(notebook))
    if kind == "folder":
        with grade.lms.unpacked(given) as folder:
            shutil.copytree(folder, given := tmp_path / "class")
    (roster := tmp_path / "r.csv").write_text(CANVAS if kind == "canvas" else MOODLE, "utf-8-sig")
    (points := tmp_path / "points.csv").write_text("exercise,points\n0.1,2\nwritten,3\n")
    command = ["grade", given, "--due", "2027-01-15", "--late", "25", "--column", "Chapter 00"]
    command = [*map(str, command), "--points", str(points), "--out"]
    teach.main([*command, str(tmp_path / "one.csv"), "--roster", str(roster)])
    said = capsys.readouterr().out
    assert "Student 2 has handed in chapter 00_start_here more than once" in said
    assert f"days: Student 3 ({'1 or more' if kind == 'canvas' else 2})" in said
    marks = table(tmp_path / "one" / "marks.csv")
    assert [[*row.values()][2:-1] for row in marks] == [
        ["2", "", "2", "5", "0", "2"],
        ["2", "", "2", "5", "0", "2"],
        ["2", "", "2", "5", *(["1", "1.5"] if kind == "canvas" else ["2", "1"])],
        ["", "", "", "5", "0", ""],
    ]
    says = "1 day late: 25%" if kind == "canvas" else "2 days late: 50%"
    assert marks[2]["feedback"] == f"0.1 right (2 of 2). {says} less."
    # Marks by hand go into marks.csv, and what a system imports is a roster again.
    by_hand = tmp_path / "by hand.csv"
    by_hand.write_text("student,id,written\nStudent 1,,3\nStudent 2,,1.5\nStudent 3,,\n")
    name = "canvas.csv" if kind == "canvas" else "moodle.csv"
    more = ["--written", by_hand, "--roster", tmp_path / "one" / name]
    teach.main([*command, str(tmp_path / "two.csv"), *map(str, more)])
    rows = table(tmp_path / "two" / name)
    if kind == "canvas":
        assert [row["Chapter 00 (77)"] for row in rows] == ["2", "2", "1.4", "0.6", ""]
        assert [row["ID"] for row in rows] == ["", "11", "12", "13", "14"]
        assert rows[0]["Student"].strip() == "Points Possible"
    else:
        assert [row["Grade"] for row in rows] == ["10", "7", "2", ""]
        assert rows[1]["Feedback comments"] == "0.1 right (2 of 2). Written answers: 1.5 of 3."
        before = csv.DictReader(MOODLE.splitlines())
        assert [row | theirs for row, theirs in zip(rows, before, strict=True)] == rows
    assert (tmp_path / "two" / "written.html").read_text().count("<h2>") == 3
    for text, wrong in (("4.1,2\n", "the columns exercise, points"),
                        ("exercise,points\n9.9,1\n", "9.9, which nobody was set")):  # fmt: skip
        points.write_text(text)
        with pytest.raises(SystemExit, match=wrong):
            teach.main([*command, str(tmp_path / "three.csv")])


def test_nobody_of_the_roster_is_lost(tmp_path, judge, capsys):
    good = handed_in(tmp_path, "Anna Kim", SOLUTION, "made").read_text("utf-8")
    for path, content in {"11{}a.ipynb": good, "11{}a-1.ipynb": "", "12{}a.zip": "PK"}.items():
        path = tmp_path / "class" / f"Anna Kim_{path.format('_assignsubmission_file_/')}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    roster = MOODLE.replace("Student 1", "Anna Kim").replace("Student 2", "Anna Kim")
    (tmp_path / "r.csv").write_text(roster.replace("Friday", "Freitag"), "utf-16")
    (tmp_path / "p.csv").write_text("exercise;points\n0.1;2,5\n")
    more = ["--roster", "r.csv", "--points", "p.csv", "--due", "2099-01-01", "--out", "one.csv"]
    more = [str(tmp_path / one) if ".csv" in one else one for one in more]
    teach.main(["grade", str(tmp_path / "class"), *more])
    rows = [[*map(row.get, ("id", "grade"))] for row in table(tmp_path / "one" / "marks.csv")]
    assert rows == [["11", "2.5"], ["12", "0"], ["13", ""], ["14", ""]]
    assert [row["Grade"] for row in table(tmp_path / "one" / "moodle.csv")] == ["10", "0", "", ""]
    assert (tmp_path / "one" / "index.html").read_text().count("<td>Anna Kim</td>") == 2
    said, error = capsys.readouterr()
    assert not error  # no progress is drawn in a file
    assert "2 dates of the roster cannot be read, such as 'Freitag, 15 January" in said
    assert "Anna Kim_11/a-1.ipynb cannot be graded, so Anna Kim_11/a.ipynb counts." in said
    assert "Nothing handed in: Student 3, Student 4." in said


def test_moodle_gets_what_it_reads_as_it_was_meant(tmp_path):
    (tmp_path / "r.csv").write_text(MOODLE.replace("Maximum Grade", "Maximum grade"))
    roster = grade.lms.Roster(tmp_path / "r.csv")
    assert roster.is_of("12", "Student 2") and not roster.is_of("12", "Team A")  # a group's number
    marking = grade.lms.Marking(roster, {"0.1": 1.0})
    mark = grade.lms.Mark("Student 1", "11", grade=1.0, feedback=[r"<class 'int'> \" and \\"])
    text = grade.lms.tables([mark], marking)["moodle.csv"]
    said = r'&gt; \ "" and \\ "'
    assert said in text and '"10"' in text and "&lt;class" in text


def test_an_interruption_keeps_what_is_done(tmp_path):
    handed_in(tmp_path, "one", SOLUTION)
    handed_in(tmp_path, "two", "import os\nos.read(os.pipe()[0], 1)")
    out = tmp_path.with_name(f"{tmp_path.name}-out.csv")
    (tmp_path / "torch.py").write_text("raise SystemExit('handed in')")
    command = [sys.executable, ROOT / "tools" / "teach.py", "grade", tmp_path, "--out", out]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        while not (out.exists() and "right" in out.read_text("utf-8")) and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert "1 of 2 notebooks are in" in process.communicate()[1]
    assert (out.with_suffix("") / "index.html").exists()
