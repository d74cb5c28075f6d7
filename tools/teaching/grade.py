"""Grades: what students handed in becomes a table, a summary of the class and a page for each.

All files are read before any code of a student runs; what is graded is the copy in memory. The
table is written after each notebook, so nothing that one of them does takes the others' grades.
"""

import ast
import html
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import clean
import jinja2
from nbformat import NotebookNode
from tqdm import tqdm

from helpers.formats.files import write_whole
from teaching import lms
from teaching.exercises_of import NOTEBOOKS, Task, defined, read, statements, tasks, with_own

ROOT = NOTEBOOKS.parent
COLUMNS = ("student", "file", "chapter", "exercise", "outcome", "diagnosis", "look", "seconds")
OUTCOMES = {  # the colours and signs of the checks
    "right": ("#009E73", "✔"),
    "not yet": ("#D55E00", "✘"),
    "not attempted": ("#9ca3af", "…"),
    "error": ("#56336b", "!"),
}
PAGE_NAME = 150  # bytes of the name of a page
ALIKE = 80  # characters from which on two equal answers are told
# What an answer seldom needs, and a way to the right ones does.
_LOOK = re.compile(
    r"(?<!spines)\.right\b|\b(?:from|import) exercises\b|\bexercises[./]|_getframe|currentframe|"
    r"\bf_(?:back|globals|locals)\b|\bgc\b|\bctypes\b|__(?:code|closure|defaults|globals)__|"
    r"\bsys\.modules\b|\bcheck\.secret\b|getattr\([^)]*[\"']right"
)


@dataclass
class Row:
    """What one student has done of one exercise. look: what the teacher should look at in the code
    of the notebook; detail: more than the diagnosis, for the page alone."""

    student: str
    file: str
    chapter: str
    exercise: str
    outcome: str
    diagnosis: str
    seconds: float = 0.0
    detail: str = ""
    look: str = ""


@dataclass
class HandedIn:
    """A file that was handed in.

    file: its path within the folder. student: the name in it, or else the path. chapter: such as
    "03_causal_averaging". exercises: the names of those that were set. code: the sources of its
    code cells; written: of those with the tag `written`. problem: why it cannot be graded. short:
    what notes call the file. id: of the student. unknown: what was set, and the chapter has not.
    """

    path: Path
    file: str
    student: str
    sender: lms.Sender
    chapter: str = ""
    exercises: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    problem: str = ""
    short: str = ""
    id: str = ""
    unknown: list[str] = field(default_factory=list)

    @property
    def who(self) -> str:
        return self.id or lms.key(self.student)


class Chapter:
    """A chapter of the class: its exercises by name, and what its cells have handed out."""

    def __init__(self, stem: str, own: Path | None = None):
        notebook = with_own(NOTEBOOKS / f"{stem}.ipynb", own)
        self.tasks = {task.name: task for task in tasks(notebook)}
        code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        self.cells = {source.strip() for source in code}
        self.lines = {ast.unparse(s) for source in code for s in statements(source)}

    def own(self, one: HandedIn) -> list[str]:
        """The code cells that the student has written or changed."""
        own = [source for source in one.code if source.strip() not in self.cells]
        return [source for source in own if not re.fullmatch(r"NAME\b.*", source.strip())]

    def look(self, one: HandedIn) -> str:
        """What the teacher should look at in the student's code."""
        own = []
        for source in self.own(one):
            lines = [ast.unparse(s) for s in statements(source)] or [source]
            own += [line for line in lines if line not in self.lines]
        return ", ".join(sorted(set(_LOOK.findall("\n".join(own)))))


def grade(
    folder: Path,
    out: Path,
    secret: str = "",
    seconds: float = 60,
    memory: float = 2,
    marking: lms.Marking | None = None,
    own: Path | None = None,
) -> tuple[list[Row], list["Summary"], list[str]]:
    """Grade all notebooks in a folder; returns the rows of the table, a summary by exercise, and
    sentences on what a teacher should know.

    out is the table, a CSV file. Beside it, a folder of the same name gets `index.html`, a feedback
    page for each file, and `marks.csv`. A cell may take so many seconds of the processor's time, a
    notebook so many GiB beyond its chapter (on Linux). own: a notebook with exercises of your own,
    see `with_own`.

    Raises ValueError for what cannot be graded or written; KeyboardInterrupt if it was interrupted,
    when the rows so far and their pages are written.
    """
    if not hasattr(os, "fork"):
        raise RuntimeError("grading needs Linux or macOS; on Windows, use WSL or a container")
    if out.suffix != ".csv":
        raise ValueError(f"the table is a CSV file: {out} should end in .csv")
    pages = out.with_suffix("").resolve()
    if folder.resolve() in (pages, *pages.parents) or pages in folder.resolve().parents:
        raise ValueError(
            f"the pages would go into {pages}, among what was handed in: put {out.name} elsewhere"
        )
    for made in (out, pages):
        if made.exists():
            raise ValueError(f"{made} is there already: move it away, or choose another name")
    began = time.monotonic()
    every = sorted(filter(Path.is_file, folder.rglob("*")), key=lms.natural)
    paths = [path for path in every if _is_notebook(path.relative_to(folder))]
    if not paths:
        raise ValueError(f"there is no notebook (*.ipynb) in {folder}")
    handed_in = [take(path, folder) for path in paths]
    others = [take(path, folder) for path in every if path not in paths]
    handed_in += [one for one in others if one.id and one.id not in {it.id for it in handed_in}]
    stems = sorted({one.chapter for one in handed_in} - {""})
    chapters = {stem: Chapter(stem, own) for stem in stems}
    for one in handed_in:
        if chapter := chapters.get(one.chapter):
            its = [name for name in chapter.tasks if name in one.exercises]
            one.unknown = [name for name in one.exercises if name not in its]
            one.exercises = its or list(chapter.tasks)
    marking = _marking(marking or lms.Marking(), handed_in, chapters)
    rows: dict[str, list[Row]] = {}

    def note(one: HandedIn, told: Sequence[dict[str, Any]] = ()) -> None:
        rows[one.file] = _rows(one, chapters.get(one.chapter), told)
        done = [row for each in handed_in for row in rows.get(each.file, [])]
        write_whole(out, _table(done).encode("utf-8-sig"))

    for one in handed_in:
        if one.problem:
            note(one)
    secret = secret or secrets.token_hex(8)
    limits = {"seconds": seconds, "memory": int(memory * 2**30), "jobs": os.cpu_count()}
    how = {**limits, "secret": secret, "own": own and str(own.resolve())}
    interrupted = False
    try:
        for stem in chapters:
            these = [one for one in handed_in if one.chapter == stem and not one.problem]
            try:
                for one, told in _judge(stem, these, how):
                    note(one, told)
            except RuntimeError as error:
                for one in (one for one in these if one.file not in rows):
                    one.problem = f"chapter {stem} could not be run: {error}"
                    note(one)
    except KeyboardInterrupt:
        interrupted = True
    done = [one for one in handed_in if one.file in rows]
    found = [row for one in done for row in rows[one.file]]
    counts = [row for one in _counting(done) for row in rows[one.file]]
    summary = [Summary.of(task, counts) for c in chapters.values() for task in c.tasks.values()]
    summary = [one for one in summary if one.outcomes]
    notes = [*_notes(handed_in, rows, others, marking), *_alike(done, chapters)]
    facts = {"secret": secret, "took": time.monotonic() - began, "notes": notes}
    _write_pages(rows, done, chapters, summary, pages, facts)
    if interrupted:
        raise KeyboardInterrupt(f"{len(done)} of {len(handed_in)} notebooks are in {out}")
    for name, table in lms.tables(_marks(done, rows, marking), marking).items():
        write_whole(pages / name, table.encode())
    return found, summary, notes


def _is_notebook(path: Path) -> bool:
    """By its name, and not what systems leave beside it; browsers add an ending of their own."""
    left = {".ipynb_checkpoints", "__MACOSX"} & {*path.parts} or path.name.startswith("._")
    return not left and bool(re.search(r"\.ipynb(\.txt|\.json)?$", path.name, re.I))


def _utf8(text: str) -> str:
    """The text without what UTF-8 cannot hold: halves of characters, undecoded bytes of a name."""
    return text.encode("utf-8", "backslashreplace").decode()


def take(path: Path, folder: Path) -> HandedIn:
    """A file as it was handed in: whose it is, and of which chapter."""
    file = _utf8(path.relative_to(folder).as_posix())
    sender = lms.Sender(path, file)
    name = sender.name or re.sub(r"\.ipynb(\.txt|\.json)?$", "", file, flags=re.I)
    one = HandedIn(path, file, name, sender, short=sender.short, id=sender.id)
    try:
        notebook = read(path)
        cells = notebook.cells
        one.code = [_utf8(cell.source) for cell in cells if cell.cell_type == "code"]
        if not sender.id or sender.late is not None:  # Canvas writes names as one word
            one.student = _name(one.code) or one.student
        tagged = [cell for cell in cells if "written" in cell.metadata.get("tags", [])]
        one.written = [_utf8(cell.source) for cell in tagged]
        told = notebook.metadata.get("course") or {}
        one.chapter = _chapter(str(told.get("assignment", "")), cells, path)
        one.exercises = [str(name) for name in told.get("exercises") or []]
    except Exception as error:  # a file can be odd in more ways than one can list
        one.problem = _utf8(f"{str(error) or type(error).__name__}: hand in again")
    return one


def _chapter(told: str, cells: Sequence[NotebookNode], path: Path) -> str:
    """The chapter that a notebook was made of: by what it says, its title, or its file's name."""
    heads = [cell.source for cell in cells if cell.cell_type == "markdown"]
    title = re.search(r"^# (\d\d) · ", "\n".join(heads), re.M)
    number = re.search(r"(?<!\d)(\d\d)_", path.name)
    if re.fullmatch(r"\d\d_[a-z_]+", told) and (NOTEBOOKS / f"{told}.ipynb").exists():
        return told
    for hint in filter(None, (title, number)):
        if same := sorted(NOTEBOOKS.glob(f"{hint[1]}_*.ipynb")):
            return same[0].stem
    raise ValueError("the notebook does not tell which chapter it is of")


def _name(code: Sequence[str]) -> str:
    """What the student wrote into the field for the name, even without quotes."""
    for source in code:
        if line := re.search(r"^NAME\b[^=\n]*=([^#\n]*)", source, re.M):
            said = line[1].strip(" \t;()\"'“”„‘’«»")
            if said:
                return _utf8(" ".join(said.split()))[:100]
    return ""


def _judge(
    stem: str, handed_in: Sequence[HandedIn], how: dict[str, Any]
) -> Iterator[tuple[HandedIn, list[dict[str, Any]]]]:
    """Each notebook of a chapter with what its exercises gave, as soon as it is judged.

    Raises RuntimeError if the chapter cannot run, or if the process in which it runs is ended.
    """
    submissions = [[number, one.exercises, one.code] for number, one in enumerate(handed_in)]
    request = {"chapter": str(NOTEBOOKS / f"{stem}.ipynb"), "submissions": submissions}
    environment = os.environ | {
        "CUDA_VISIBLE_DEVICES": "",
        "IPYTHONDIR": os.devnull,
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tools")]),
    }
    worker = subprocess.Popen(
        [sys.executable, "-m", "teaching.worker"],
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        text=True,
        cwd=ROOT,  # not among what was handed in, where there may be a helpers.py
        env=environment,
        start_new_session=True,  # an interruption reaches this process alone
    )
    assert worker.stdin and worker.stdout
    judged = 0
    try:
        print(json.dumps(how | request), file=worker.stdin, flush=True)
        for line in tqdm(worker.stdout, f"chapter {stem}", len(handed_in), disable=None):
            said = json.loads(line)
            if "problem" in said:
                raise RuntimeError(_utf8(said["problem"]))
            judged += 1
            yield handed_in[said["file"]], said["rows"]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
    if judged < len(handed_in):
        raise RuntimeError("the process that judges was ended, perhaps for lack of memory")


def _rows(one: HandedIn, chapter: Chapter | None, told: Sequence[dict[str, Any]]) -> list[Row]:
    """The rows of a file: one for each exercise, or one that says why there are none."""
    its = one.student, one.file, one.chapter
    if one.problem or chapter is None:
        return [Row(*its, "", "error", one.problem)]
    return [
        Row(
            *its,
            chapter.tasks[row["exercise"]].number,
            row["outcome"],
            "" if row["outcome"] == "not attempted" else _utf8(row["message"]),
            round(row["seconds"], 1),
            _utf8(row["detail"]),
            chapter.look(one),
        )
        for row in told
    ]


def _table(rows: Iterable[Row]) -> str:
    """The rows as CSV, in which a spreadsheet takes no text of a student for a formula."""
    table: list[Sequence[str]] = [COLUMNS]
    for row in rows:
        if row.outcome == "right":
            row = replace(row, diagnosis="")  # what the check says then is no diagnosis
        table.append([lms.guarded(str(getattr(row, column))) for column in COLUMNS])
    return lms.written(table)


def _marking(
    marking: lms.Marking, handed_in: Sequence[HandedIn], chapters: dict[str, Chapter]
) -> lms.Marking:
    """The marking with the points of this class, whose students get the names of the roster.

    Raises ValueError for points of what nobody was set.
    """
    worth: dict[str, float] = {}
    roster = marking.roster
    everybody = roster.marks() if roster else {}
    absent = {**everybody}
    for one in handed_in:
        if roster and not roster.is_of(one.id, one.sender.name):
            one.id = ""
        if roster and (row := roster.find(one.id, one.student)) is not None:
            one.student, one.id = everybody[row].student, everybody[row].id
            absent.pop(row, None)
    for one in sorted((one for one in handed_in if one.chapter), key=lambda one: one.chapter):
        tasks = chapters[one.chapter].tasks
        worth |= dict.fromkeys((tasks[name].number for name in one.exercises), 1.0)
    if unknown := sorted({*marking.points} - {*worth, "written"}):
        raise ValueError(
            f"there are points for {', '.join(unknown)}, which nobody was set: give them to some "
            f"of {', '.join(worth)}"
        )
    if any(one.written for one in handed_in):
        worth["written"] = 0.0
    return replace(marking, points=marking.points or worth, absent=[*absent.values()])


def _counting(handed_in: Iterable[HandedIn]) -> list[HandedIn]:
    """What counts of a student: the latest of a chapter, and what is broken if none is later."""
    ordered = sorted(handed_in, key=lambda one: one.sender.order)
    good = [one for one in ordered if not one.problem]
    latest = {(one.who, one.chapter): one for one in good}
    last = {one.who: one.sender.order for one in good}
    bad = [one for one in ordered if one.problem and one.sender.order >= last.get(one.who, ())]
    return sorted([*latest.values(), *bad], key=lambda one: (lms.natural(one.student), one.who))


def _marks(
    handed_in: Sequence[HandedIn], rows: dict[str, list[Row]], marking: lms.Marking
) -> list[lms.Mark]:
    """The marks of each student of the class, made of what counts."""
    found: dict[str, lms.Mark] = {}
    worth = marking.points
    for one in _counting(handed_in):
        mark = found.setdefault(one.who, lms.Mark(one.student, one.id))
        if one.problem:
            mark.feedback.append(f"{one.problem}.")
        if one.problem and one.chapter:
            continue  # that a chapter could not be run costs nobody points
        mark.grade = mark.grade or 0.0
        late = 0 if one.problem else marking.days_late(one.sender, one.id)
        cost = min(100.0, late * marking.late)
        for row in (row for row in rows[one.file] if row.exercise in worth):
            got = mark.points[row.exercise] = worth[row.exercise] * (row.outcome == "right")
            mark.grade += got * (1 - cost / 100)
            of = f"{got:g} of {worth[row.exercise]:g}"
            says = row.diagnosis if got == 0 else ""
            mark.feedback.append(f"{row.exercise} {row.outcome} ({of}). {says}".strip())
        if late:
            mark.late = max(mark.late, late)
            mark.feedback.append(f"{late} day{'s' * (late > 1)} late: {cost:g}% less.")
    marks = sorted([*found.values(), *marking.absent], key=lambda mark: lms.natural(mark.student))
    for mark in marks:
        by_hand = marking.by_hand.get(mark.id, marking.by_hand.get(lms.key(mark.student)))
        if by_hand is not None:
            mark.points["written"] = by_hand
            mark.grade = (mark.grade or 0.0) + by_hand
            mark.feedback.append(f"Written answers: {by_hand:g} of {worth.get('written', 0):g}.")
    return marks


def _notes(
    handed_in: Sequence[HandedIn],
    rows: dict[str, list[Row]],
    others: Sequence[HandedIn],
    marking: lms.Marking,
) -> list[str]:
    """What a teacher should know of the files."""
    notes = marking.notes()
    if ignored := [one.short for one in others]:
        packed = re.search(r"\.(zip|7z|rar|tar|gz)\b", " ".join(ignored), re.I)
        advice = " Unpack the archives first." if packed else ""
        notes.append(f"No notebooks, or copies of a system: {_listed(ignored)}.{advice}")
    if unread := [one.short for one in handed_in if one.problem]:
        notes.append(f"Not graded, for the reason in their rows: {_listed(unread)}.")
    if odd := [f"{one.short} ({', '.join(one.unknown)})" for one in handed_in if one.unknown]:
        notes.append(f"Exercises that no chapter has, nor a notebook at --own: {_listed(odd)}.")
    looked = [(one.short, rows[one.file][0].look) for one in handed_in if rows.get(one.file)]
    if looks := [f"{short} ({look})" for short, look in looked if look]:
        notes.append(f"Look at these, which may have fetched an answer: {_listed(looks)}.")
    roster, counting, late = marking.roster, _counting(handed_in), []
    for one in counting:
        its = [it for it in handed_in if it.who == one.who and not it.problem]
        if one.problem and its and not one.chapter:
            earlier = _listed([it.short for it in its if it in counting])
            notes.append(f"{one.student}: {one.short} cannot be graded, so {earlier} counts.")
        elif before := [it.short for it in its if it.chapter == one.chapter and it is not one]:
            notes.append(
                f"{one.student} has handed in chapter {one.chapter} more than once: the latest "
                f"counts, {one.short}, and not {_listed(before)}."
            )
        if not one.problem and (days := marking.days_late(one.sender, one.id)):
            late.append(f"{one.student} ({days}{' or more' if one.sender.late else ''})")
        if roster and roster.find(one.id, one.student) is None:
            notes.append(f"{one.student} ({one.short}) is not in the roster.")
    if late:
        notes.append(f"Late, by so many days: {', '.join(late)}.")
    if marking.absent:
        notes.append(f"Nothing handed in: {', '.join(one.student for one in marking.absent)}.")
    return notes


def _listed(names: Sequence[str], most: int = 10) -> str:
    more = f" and {len(names) - most} more" * (len(names) > most)
    return ", ".join(names[:most]) + more


def _alike(handed_in: Sequence[HandedIn], chapters: dict[str, Chapter]) -> list[str]:
    """Which students have the same answer, but for comments and layout."""
    notes = []
    for stem, chapter in chapters.items():
        for task in chapter.tasks.values():
            same: dict[str, dict[str, str]] = {}
            for one in (one for one in handed_in if one.chapter == stem):
                lines = [line for source in chapter.own(one) for line in statements(source)]
                answer = "\n".join(ast.unparse(s) for s in lines if defined(s) & task.defines)
                if len(answer) > ALIKE:
                    same.setdefault(answer, {})[one.who] = one.student
            for students in (found for found in same.values() if len(found) > 1):
                who = ", ".join(sorted(students.values(), key=lms.natural))
                notes.append(f"The same answer to {task.number}: {who}.")
    return notes


# --- pages ------------------------------------------------------------------------------------


def _write_pages(
    rows: dict[str, list[Row]],
    handed_in: Sequence[HandedIn],
    chapters: dict[str, Chapter],
    summary: Sequence["Summary"],
    folder: Path,
    facts: dict[str, Any],
) -> None:
    """Write `index.html`, the summary of the class, a feedback page for each file, and what is
    written for marks by hand."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True)
    environment.filters |= {"markdown": _markdown, "inline": clean.summary}
    environment.globals["outcomes"] = OUTCOMES
    names = _page_names(one.file for one in handed_in)
    every = {one.task.number: one.task for one in summary}
    for one in handed_in:
        own = chapters[one.chapter].own(one) if one.chapter else []
        page = environment.get_template("feedback.html").render(
            one=one, rows=rows[one.file], tasks=every, code="\n\n".join(own)
        )
        write_whole(folder / names[one.file], page.encode())
    students: dict[str, list[HandedIn]] = {}
    for one in (counting := _counting(handed_in)):
        students.setdefault(one.who, []).append(one)
    table = []
    for files in students.values():
        its = {row.exercise: row.outcome for one in files for row in rows[one.file]}
        table.append((files[0].student, files, its, [*its.values()].count("right")))
    page = environment.get_template("summary.html").render(
        summary=summary, handed_in=handed_in, table=table, names=names, **facts
    )
    write_whole(folder / "index.html", page.encode())
    if some := [one for one in counting if one.written]:
        page = environment.get_template("written.html").render(handed_in=some)
        write_whole(folder / "written.html", page.encode())


def _markdown(text: str) -> str:
    """A text as HTML; as code if it has a formula that cannot be set, as an exception may."""
    try:
        return clean.output({"text/markdown": text})["text/html"]
    except Exception:
        return f"<code>{html.escape(text)}</code>"


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


def _page_names(files: Iterable[str]) -> dict[str, str]:
    """File → the name of its page; two files never share one."""
    names: dict[str, str] = {}
    for file in files:
        plain = re.sub(r"[^\w-]+", "-", file.removesuffix(".ipynb"))
        plain = plain.encode()[-PAGE_NAME:].decode(errors="ignore") or "notebook"  # its end tells
        taken = {name.casefold() for name in names.values()}
        while f"{plain}.html".casefold() in taken | {"index.html", "written.html"}:
            plain += "-2"
        names[file] = f"{plain}.html"
    return names
