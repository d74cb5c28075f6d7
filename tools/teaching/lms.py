"""What Moodle and Canvas hand out and take back: archives, rosters, tables of marks."""

import csv
import io
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile, is_zipfile

# Firstname Lastname_12345_assignsubmission_file_/x.ipynb; lastnamefirstname_LATE_12345_67_x-1.ipynb
_MOODLE = re.compile(r"^(?:.*/)?(?P<name>[^/]+)_(?P<id>\d+)_assignsubmission_[a-z]+(?:_/?|/)")
_CANVAS = re.compile(r"(?:^|/)(?P<name>[^/_]+)_(?P<late>LATE_)?(?P<id>\d+)_(?P<order>\d+)_[^/]+$")
_TIMES = (
    *("%A, %d %B %Y, %I:%M %p", "%A, %B %d, %Y, %I:%M %p"),  # the second is of the United States
    *("%A, %d %B %Y, %H:%M", "%Y-%m-%d %H:%M"),
)
_IDS = ("ID", "Identifier", "Email address", "SIS User ID", "SIS Login ID", "ID number")
_CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_NUMBER = re.compile(r" \(\d+\)$")  # of an assignment in Canvas, behind its name


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The folder that was handed in, or one with what is in the archive, files with their times."""
    if not path.is_file():
        yield path
        return
    if not is_zipfile(path):
        raise ValueError(f"{path} is no zip: give the archive as it was downloaded, or a folder")
    with TemporaryDirectory() as folder, ZipFile(path) as archive:
        for info in archive.infolist():
            when = time.mktime((*info.date_time, 0, 0, -1))
            os.utime(archive.extract(info, folder), (when, when))
        yield Path(folder)


class Sender:
    """Whose a file is, by its path: name and id, "" where no system has written them; when it was
    handed in, by its time; what tells the later of two; and if it was late, None if nobody says.
    short: the path without what Moodle writes around name and id."""

    def __init__(self, path: Path, file: str):
        found = _MOODLE.search(file) or _CANVAS.search(file)
        its = found.groupdict() if found else {}
        self.short = _MOODLE.sub(r"\g<name>_\g<id>/", file)
        self.name, self.id = its.get("name", ""), its.get("id", "")
        self.late = bool(its["late"]) if "late" in its else None
        seconds, again = path.lstat().st_mtime, re.search(r"[-( ](\d+)\)?\.ipynb", file)
        self.when = datetime.fromtimestamp(seconds)
        self.order = int(its.get("order", 0)), seconds, int(again[1]) if again else 0


def natural(text: object) -> list[tuple[int, str]]:
    """What sorts 2 before 10."""
    return [(int(n or 0), s) for n, s in re.findall(r"(\d+)|(\D+)", str(text).casefold())]


def _table(path: Path) -> "csv.DictReader[str]":
    """A table as spreadsheets save it: in Unicode or Latin-1, with any delimiter."""
    content = path.read_bytes()
    try:
        text = content.decode(json.detect_encoding(content))
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
    head = text.partition("\n")[0]
    return csv.DictReader(io.StringIO(text), delimiter=max(",;\t", key=head.count))


class Roster:
    """The people of a class, as Moodle or Canvas exports them. Raises ValueError if it does not.
    times: row → when Moodle says that somebody handed in; unread: times in another language."""

    def __init__(self, path: Path):
        table = _table(path)
        self.columns, self.rows = [*(table.fieldnames or ())], [*table]
        self.is_canvas = {"Student", "ID"} <= {*self.columns}
        heads = [row for row in self.rows if "Points Possible" in str(row.get("Student"))]
        self.possible = heads[0] if heads else {}
        if self.is_canvas:  # below the head stand rows of nobody
            self.rows = [row for row in self.rows if row["ID"]]
        elif not {"Full name", "First name", "Identifier"} & {*self.columns}:
            raise ValueError(
                f"{path} has the columns {', '.join(self.columns)[:200]}, and is no roster: give a "
                "CSV in English, Moodle's grading worksheet or participants, or Canvas's gradebook"
            )
        self.times: dict[int | None, datetime] = {}
        self.unread: list[str] = []
        self._found: dict[str, list[int]] = {}
        for i, row in enumerate(self.rows):
            said = row.get("Last modified (submission)") or "-"
            for form in _TIMES:
                with suppress(ValueError):
                    self.times[i] = datetime.strptime(said, form)
            self.unread += [said] * (said != "-" and i not in self.times)
            for one in {key(self.name(i)), *(key(row.get(name) or "") for name in _IDS)} - {""}:
                self._found.setdefault(one, []).append(i)

    def name(self, i: int) -> str:
        its = {"Last name": self.rows[i].get("Surname") or "", **self.rows[i]}
        if self.is_canvas:  # it has "Last, First"
            return " ".join(reversed(its["Student"].split(", ")))
        for form in ("{Full name}", "{First name} {Last name}", "{Identifier}"):
            with suppress(KeyError):
                if said := form.format_map(its).strip():
                    return said
        return ""

    def marks(self) -> dict[int, "Mark"]:
        """Row → the marks of somebody who has handed in nothing."""
        ids = [key(next(filter(None, map(row.get, _IDS)), "")) for row in self.rows]
        return {
            i: Mark(self.name(i), k, feedback=["Nothing handed in."]) for i, k in enumerate(ids)
        }

    def is_of(self, number: str, name: str) -> bool:
        """Does a number in a path go with the name beside it? That of a group does not."""
        row = self.find(number)
        if row is None or self.is_canvas or name == "Participant":
            return True
        ours, theirs = (re.sub(r"[\W_]", "", one.casefold()) for one in (self.name(row), name))
        return ours == theirs

    def find(self, *said: str) -> int | None:
        """The row of a person, by the first that is an id, an address or a name of one alone."""
        found = (self._found.get(key(text), []) for text in said if text)
        return next((rows[0] for rows in found if len(rows) == 1), None)


def key(text: str) -> str:
    """'Participant 12' is 12, and 'Last, First' is 'first last'."""
    return " ".join(sorted(re.findall(r"[^\s,]+", text.casefold().removeprefix("participant "))))


def points_of(path: Path, *columns: str) -> dict[str, float]:
    """The last column by the first that is filled, where both are. Raises ValueError without."""
    *names, value = columns
    try:
        rows = [*_table(path)]
        if not rows:
            raise ValueError
        return {key(next(row[n] for n in names if row[n])): float(row[value].replace(",", "."))
                for row in rows if row[value]}  # fmt: skip
    except (KeyError, TypeError, ValueError, StopIteration):
        says = f"should have the columns {', '.join(columns)}, with a number in the last"
        raise ValueError(f"{path} {says}") from None


@dataclass
class Marking:
    """How outcomes become marks.

    points: exercise → points; without any, each exercise has one. by_hand: id or name → points for
    what is written. due: the last day. late: percent that a day costs. column: Canvas's name.
    absent: the marks of those in the roster who have handed in nothing.
    """

    roster: Roster | None = None
    points: dict[str, float] = field(default_factory=dict)
    by_hand: dict[str, float] = field(default_factory=dict)
    due: date | None = None
    late: float = 0.0
    column: str = "From the Dot Product to GPT"
    absent: list["Mark"] = field(default_factory=list)

    def __post_init__(self) -> None:
        columns = self.roster.columns if self.roster else []
        same = [name for name in columns if _NUMBER.sub("", name) == self.column]
        self.column, *_ = [*same, self.column]

    def days_late(self, sender: Sender, id: str) -> int:
        """By what the system says, or else by the time of the file; Canvas says no number."""
        if sender.late is not None or not self.due:
            return int(sender.late or 0)
        said = self.roster and self.roster.times.get(self.roster.find(id))
        return max(0, ((said or sender.when).date() - self.due).days)

    def notes(self) -> list[str]:
        """What a teacher should know of the roster."""
        if (roster := self.roster) and roster.is_canvas and self.column not in roster.columns:
            there = ", ".join(filter(_NUMBER.search, roster.columns)) or "no assignment"
            return [f"{self.column!r} in canvas.csv is new to the gradebook, which has {there}: "
                    "choose by --column."]  # fmt: skip
        if roster and self.due and (unread := roster.unread):
            return [f"{len(unread)} dates of the roster cannot be read, such as {unread[0]!r}: the "
                    "times of the files count. Export it in English."]  # fmt: skip
        return []


@dataclass
class Mark:
    """The marks of one student. grade: the sum, less what the days have cost; or None: nothing."""

    student: str
    id: str
    points: dict[str, float] = field(default_factory=dict)
    late: int = 0
    grade: float | None = None
    feedback: list[str] = field(default_factory=list)


def tables(marks: Sequence[Mark], marking: Marking) -> dict[str, str]:
    """File → the table: marks.csv, and what Moodle or Canvas imports."""
    most, names, roster = sum(marking.points.values()), list(marking.points), marking.roster
    table = [["student", "id", *names, "total", "of", "days late", "grade", "feedback"]]
    for m in marks:
        total = None if m.grade is None else sum(m.points.values())
        values = map(_number, [*map(m.points.get, names), total, most, m.late, m.grade])
        table.append([guarded(m.student), guarded(m.id), *values, guarded(" ".join(m.feedback))])
    found = {"marks.csv": written(table)}
    if not roster:
        return found
    grade = marking.column if roster.is_canvas else "Grade"
    best = float(roster.possible.get(grade) or 0) or most
    of = {roster.find(m.id, m.student): m for m in marks}
    rows = [{**row} for row in roster.rows]
    marked = {i: m for i, m in of.items() if i is not None and m.grade is not None}
    for i, mark in marked.items():
        most_there = next((v for k, v in rows[i].items() if key(k or "") == "grade maximum"), "")
        scale = float((most_there or str(best)).replace(",", ".")) / (most or 1)
        # Moodle shows it as HTML, and takes a backslash before a quotation mark for an escape.
        feedback = escape(guarded(" ".join(mark.feedback)), quote=False)
        feedback = re.sub(r'\\(?="|$)', r"\\ ", feedback)
        rows[i] |= {grade: _number((mark.grade or 0) * scale), "Feedback comments": feedback}
    if not roster.is_canvas and "Identifier" not in roster.columns:
        # Moodle's gradebook would empty the grades of the others.
        rows = [rows[i] for i in sorted(marked)]
    columns = [*dict.fromkeys([*roster.columns, grade, "Feedback comments"])]
    if roster.is_canvas:
        columns = [*_CANVAS_COLUMNS, grade]
        rows.insert(0, {"Student": "    Points Possible", grade: _number(best)})
    table = [columns, *([row.get(name) or "" for name in columns] for row in rows)]
    return found | {"canvas.csv" if roster.is_canvas else "moodle.csv": written(table)}


def written(table: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(table)  # some split at semicolons, too
    return text.getvalue()


def guarded(value: str) -> str:
    """A text in which a spreadsheet sees no formula."""
    return f"'{value}" if value[:1] in tuple("=+-@\t\r＝＋－＠") else value


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")
