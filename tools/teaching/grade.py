"""Grades: what students handed in becomes a table, a summary of the class and a page for each."""

import base64
import csv
import io
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import PIPE
from typing import Any

import clean
import jinja2
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from nbformat import NotebookNode
from tqdm import tqdm

from helpers.files import write_whole
from teaching.exercises_of import NOTEBOOKS, Task, read, tasks

ROOT = NOTEBOOKS.parent
COLUMNS = ("student", "file", "chapter", "exercise", "outcome", "diagnosis", "seconds")
OUTCOMES = {  # the colours and signs of the checks
    "right": ("#009E73", "✔"),
    "not yet": ("#D55E00", "✘"),
    "not attempted": ("#9ca3af", "…"),
    "error": ("#56336b", "!"),
}
MOST_BYTES = 50 * 2**20  # of a notebook


@dataclass
class Row:
    """What one student has done of one exercise."""

    student: str
    file: str
    chapter: str
    exercise: str
    outcome: str
    diagnosis: str
    seconds: float = 0.0
    detail: str = ""


@dataclass
class HandedIn:
    """A file that was handed in.

    Attributes:
        file: its path within the folder.
        student: the name in it, or else the path.
        chapter: the name of its chapter's file without the ending, such as "03_causal_averaging".
        exercises: the names of the exercises that were set.
        notebook: its content; None if it cannot be read.
        problem: why not.
    """

    file: str
    student: str
    chapter: str = ""
    exercises: list[str] = field(default_factory=list)
    notebook: NotebookNode | None = None
    problem: str = ""


def grade(
    folder: Path,
    out: Path,
    secret: str = "",
    seconds: float = 60,
    memory: float = 2,
    jobs: int = 0,
) -> tuple[list[Row], list["Summary"]]:
    """Grade all notebooks in a folder; returns the rows of the table, and a summary by exercise.

    Args:
        folder: what was handed in, in folders of any depth; no file in it is changed.
        out: the table, a CSV file. Beside it, a folder of the same name gets `index.html`, the
            summary of the class, and a feedback page for each file.
        secret: what the inputs are drawn from; without one, a new one is drawn.
        seconds: what a cell of a student may take.
        memory: GiB that a notebook may use beyond its chapter (on Linux).
        jobs: how many notebooks run at a time; 0: as many as there are cores.

    Raises ValueError if there is no notebook, if `out` is no CSV file or is there already, and if
    the pages would lie in `folder`; RuntimeError if a chapter itself does not run.
    """
    if not hasattr(os, "fork"):
        raise RuntimeError("grading needs Linux or macOS; on Windows, use WSL or a container")
    if out.suffix != ".csv":
        raise ValueError(f"the table is a CSV file: {out} should end in .csv")
    if out.exists():
        raise ValueError(f"{out} is there already: move it away, or choose another name")
    if folder.is_file():
        raise ValueError(f"{folder} is a file: give the folder that it lies in")
    pages = out.with_suffix("").resolve()
    if folder.resolve() in (pages, *pages.parents) or pages in folder.resolve().parents:
        raise ValueError(
            f"the pages would go into {pages}, among what was handed in: put {out.name} elsewhere"
        )
    began = time.monotonic()
    paths = sorted(p for p in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    if not paths:
        raise ValueError(f"there is no notebook (*.ipynb) in {folder}")
    handed_in = [take(path, folder) for path in paths]
    assigned = {one.chapter for one in handed_in if one.exercises}
    for one in handed_in:
        if assigned and one.chapter and one.chapter not in assigned:
            one.problem = f"chapter {one.chapter} was not assigned"
            one.notebook, one.chapter = None, ""
    secret = secret or secrets.token_hex(8)
    set_of: dict[str, list[Task]] = {}  # chapter → the exercises that were set, in their order
    for chapter in sorted({one.chapter for one in handed_in if one.chapter}):
        every = tasks(read(NOTEBOOKS / f"{chapter}.ipynb"))
        names = {name for one in handed_in if one.chapter == chapter for name in one.exercises}
        set_of[chapter] = [task for task in every if task.name in names] or every
    rows = []
    limits = {"seconds": seconds, "memory": int(memory * 2**30), "jobs": jobs or os.cpu_count()}
    found: dict[str, list[dict[str, Any]]] = {}
    for chapter, wanted in set_of.items():
        these = [one for one in handed_in if one.chapter == chapter]
        found |= _judge(chapter, wanted, these, secret, limits)
    for one in handed_in:
        rows += _rows(one, set_of.get(one.chapter, []), found.get(one.file, []))
    write_whole(out, _table(rows).encode("utf-8-sig"))
    every = [task for wanted in set_of.values() for task in wanted]
    summary = [Summary.of(task, rows) for task in every]
    took = time.monotonic() - began
    ignored = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
    ignored = [name for name in ignored if not name.endswith(".ipynb")]
    facts = {"secret": secret, "took": took, "ignored": sorted(ignored)}
    _write_pages(rows, handed_in, summary, pages, facts)
    return rows, summary


def take(path: Path, folder: Path) -> HandedIn:
    """A file as it was handed in: whose it is, and of which chapter."""
    one = HandedIn(file := path.relative_to(folder).as_posix(), file.removesuffix(".ipynb"))
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise ValueError(f"{path.name} is not a file of at most {MOST_BYTES // 2**20} MiB")
        one.notebook = notebook = read(path)
        told = notebook.metadata.get("course", {})
        one.chapter = _chapter(str(told.get("assignment", "")), notebook, path)
        one.exercises = [str(name) for name in told.get("exercises", [])]
        one.student = _name(notebook) or one.student
    except (OSError, ValueError, AttributeError, TypeError) as error:
        one.problem, one.notebook = str(error), None
    return one


def _chapter(told: str, notebook: NotebookNode, path: Path) -> str:
    """The chapter that a notebook was made of: by what it says, its title, or its file's name."""
    heads = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    title = re.search(r"^# (\d\d) · ", "\n".join(heads), re.M)
    number = re.search(r"(?<!\d)(\d\d)_", path.name)
    if re.fullmatch(r"\d\d_[a-z_]+", told) and (NOTEBOOKS / f"{told}.ipynb").exists():
        return told
    for hint in filter(None, (title, number)):
        if same := sorted(NOTEBOOKS.glob(f"{hint[1]}_*.ipynb")):
            return same[0].stem
    raise ValueError("the notebook does not tell which chapter it is of")


def _name(notebook: NotebookNode) -> str:
    """What the student wrote into the field for the name, with or without quotes."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and (found := re.match(r"NAME\s*=(.*)", cell.source)):
            return " ".join(found[1].strip(" \t\"'“”„‘’«»").split())[:100]
    return ""


def _judge(
    chapter: str,
    wanted: Sequence[Task],
    handed_in: Sequence[HandedIn],
    secret: str,
    limits: dict[str, Any],
) -> dict[str, list[dict[str, Any]]]:
    """File → what its exercises gave, in the order of `wanted`; shows a bar of progress."""
    submissions = []
    for one in handed_in:
        if one.notebook:
            cells = one.notebook.cells
            at = [i for i, c in enumerate(cells) if "### Exercise" in c.source] or [0]
            start = sum(cell.cell_type == "code" for cell in cells[: at[0]])
            code = [cell.source for cell in cells if cell.cell_type == "code"]
            submissions.append({"file": one.file, "code": code, "start": start})
    request = limits | {
        "chapter": str(NOTEBOOKS / f"{chapter}.ipynb"),
        "exercises": [task.name for task in wanted],
        "submissions": submissions,
    }
    environment = os.environ | {
        "COURSE_SECRET": secret,
        "CUDA_VISIBLE_DEVICES": "",
        "IPYTHONDIR": os.devnull,
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tools")]),
    }
    command = [sys.executable, "-m", "teaching.worker"]
    with tempfile.TemporaryFile("w+") as errors:
        worker = subprocess.Popen(
            command, stdin=PIPE, stdout=PIPE, stderr=errors, text=True, env=environment
        )
        assert worker.stdin and worker.stdout
        with suppress(BrokenPipeError), worker.stdin:
            worker.stdin.write(json.dumps(request))
        said = tqdm(worker.stdout, f"chapter {chapter}", len(submissions), unit="notebook")
        lines = [json.loads(line) for line in said]
        if worker.wait():
            errors.seek(0)
            last = errors.read().strip().splitlines()[-1:] or ["no reason was given"]
            raise RuntimeError(f"chapter {chapter} could not be graded: {last[0]}")
    return {line["file"]: line["rows"] for line in lines}


def _rows(one: HandedIn, wanted: Sequence[Task], found: Sequence[dict[str, Any]]) -> list[Row]:
    """The rows of a file: one for each exercise, or one that says why there are none."""
    if one.notebook is None:
        return [Row(one.student, one.file, one.chapter, "", "error", one.problem)]
    return [
        Row(
            one.student,
            one.file,
            one.chapter,
            task.number,
            told["outcome"],
            "" if told["outcome"] == "not attempted" else told["message"],
            round(told["seconds"], 1),
            told["detail"],
        )
        for task, told in zip(wanted, found, strict=True)
    ]


def _table(rows: Iterable[Row]) -> str:
    """The rows as CSV, in which a spreadsheet takes no text of a student for a formula."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for row in rows:
        if row.outcome == "right":
            row = replace(row, diagnosis="")  # what the check says then is no diagnosis
        values = [str(getattr(row, column)) for column in COLUMNS]
        writer.writerow([f"'{v}" if v[:1] in tuple("=+-@\t\r") else v for v in values])
    return text.getvalue()


# --- pages ------------------------------------------------------------------------------------


def _write_pages(
    rows: Sequence[Row],
    handed_in: Sequence[HandedIn],
    summary: Sequence["Summary"],
    folder: Path,
    facts: dict[str, Any],
) -> None:
    """Write `index.html`, the summary of the class, and a feedback page for each file."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True)
    environment.filters["markdown"] = lambda text: clean.output({"text/markdown": text})[
        "text/html"
    ]
    environment.globals["outcomes"] = OUTCOMES
    names = _page_names(one.file for one in handed_in)
    by_file: dict[str, list[Row]] = {one.file: [] for one in handed_in}
    for row in rows:
        by_file[row.file].append(row)
    every = {one.task.number: one.task for one in summary}
    for one in handed_in:
        page = environment.get_template("feedback.html").render(
            one=one, rows=by_file[one.file], tasks=every, code=_answers(one, by_file[one.file])
        )
        write_whole(folder / names[one.file], page.encode())
    picture = base64.b64encode(drawn(summary)).decode() if summary else ""
    students: dict[str, list[HandedIn]] = {}
    for one in sorted(handed_in, key=lambda one: (one.student.casefold(), one.file)):
        students.setdefault(one.student, []).append(one)
    table, twice = [], []
    for student, files in students.items():
        its: dict[str, list[Row]] = {number: [] for number in every}
        for row in (row for one in files for row in by_file[one.file] if row.exercise):
            its[row.exercise].append(row)
        right = sum(any(row.outcome == "right" for row in found) for found in its.values())
        table.append((student, files, its, right))
        for chapter, number in Counter(one.chapter for one in files if one.chapter).items():
            if number > 1:
                same = [one.file for one in files if one.chapter == chapter]
                twice.append((student, chapter, same))
    page = environment.get_template("summary.html").render(
        summary=summary,
        picture=picture,
        handed_in=handed_in,
        table=table,
        twice=twice,
        names=names,
        **facts,
    )
    write_whole(folder / "index.html", page.encode())


@dataclass
class Summary:
    """What the class has done of one exercise: outcomes and diagnoses, the most frequent first."""

    task: Task
    outcomes: Counter[str]
    diagnoses: list[tuple[str, int]]

    @classmethod
    def of(cls, task: Task, rows: Iterable[Row]) -> "Summary":
        its = [row for row in rows if row.exercise == task.number]
        wrong = Counter(row.diagnosis for row in its if row.outcome in ("not yet", "error"))
        return cls(task, Counter(row.outcome for row in its), wrong.most_common())

    def lines(self) -> list[str]:
        """For a terminal."""
        counts = ", ".join(f"{self.outcomes[name]} {name}" for name in OUTCOMES)
        first = f"{self.task.number} {self.task.title}: {counts}"
        return [first, *(f"    {number} × {said}" for said, number in self.diagnoses)]


def drawn(summary: Sequence[Summary]) -> bytes:
    """A bar for each exercise, as PNG: how many notebooks have which outcome."""
    figure = Figure(figsize=(9, 0.8 + 0.45 * len(summary)), layout="constrained")
    axes = figure.subplots()
    labels = [f"{one.task.number} {one.task.title}" for one in summary]
    left = [0] * len(summary)
    for name, (color, _) in OUTCOMES.items():
        counts = [one.outcomes[name] for one in summary]
        bars = axes.barh(labels, counts, left=left, color=color, label=name)
        axes.bar_label(bars, [str(n or "") for n in counts], label_type="center", color="white")
        left = [a + b for a, b in zip(left, counts, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("notebooks")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper right", ncols=len(OUTCOMES), frameon=False)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    return content.getvalue()


def _answers(one: HandedIn, rows: Sequence[Row]) -> str:
    """The code cells that the student has written or changed, from the exercises on."""
    if one.notebook is None or not rows:
        return ""
    ours = read(NOTEBOOKS / f"{one.chapter}.ipynb").cells
    known = {cell.source.strip() for cell in ours}
    code = [c.source for c in one.notebook.cells if c.cell_type == "code"]
    return "\n\n".join(c for c in code if c.strip() not in known and not c.startswith("NAME ="))


def _page_names(files: Iterable[str]) -> dict[str, str]:
    """File → the name of its page; two files never share one."""
    names: dict[str, str] = {}
    for file in files:
        plain = re.sub(r"[^\w-]+", "-", file.removesuffix(".ipynb"))[:100] or "notebook"
        taken = {name.casefold() for name in names.values()}
        while f"{plain}.html".casefold() in taken | {"index.html"}:
            plain += "-2"
        names[file] = f"{plain}.html"
    return names
