"""What learning-management systems hand out and take back: archives, rosters, tables of marks.

Known are Moodle (the archive of an assignment, the grading worksheet, the list of participants) and
Canvas (the archive of an assignment, the gradebook), in English.
"""

import csv
import io
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile, is_zipfile

# Firstname Lastname_12345_assignsubmission_file_/x.ipynb; lastnamefirstname_LATE_12345_67_x-1.ipynb
_MOODLE = re.compile(r"(?:^|/)(?P<name>[^/]+)_(?P<id>\d+)_assignsubmission_[a-z]+_")
_CANVAS = re.compile(r"(?:^|/)(?P<name>[^/_]+)_(?P<late>LATE_)?(?P<id>\d+)_(?P<order>\d+)_[^/]+$")
_TIMES = ("%A, %d %B %Y, %I:%M %p", "%A, %d %B %Y, %H:%M", "%Y-%m-%d %H:%M")
_IDS = ("ID", "SIS User ID", "SIS Login ID", "ID number", "Email address", "Identifier")
_CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


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
            made = archive.extract(info, folder)
            when = time.mktime((*info.date_time, 0, 0, -1))
            os.utime(made, (when, when))
        yield Path(folder)


@dataclass
class Sender:
    """Whose a file is, by its path and time.

    name, id: as Moodle and Canvas write them into a path; "" elsewhere. when: the time of the file.
    order: of two, the file with the higher one is later. late: what Canvas says, None elsewhere.
    """

    name: str
    id: str
    when: datetime
    order: tuple[float, ...]
    late: bool | None = None

    @classmethod
    def of(cls, path: Path, file: str) -> "Sender":
        when = path.lstat().st_mtime
        again = re.search(r"[-( ](\d+)\)?\.ipynb", file)
        found = _MOODLE.search(file) or _CANVAS.search(file)
        its = found.groupdict() if found else {}
        order = (float(its.get("order", 0)), when, float(again[1]) if again else 0.0)
        late = bool(its["late"]) if "late" in its else None
        return cls(
            its.get("name", ""), its.get("id", ""), datetime.fromtimestamp(when), order, late
        )


class Roster:
    """The people of a class, as a table that Moodle or Canvas has exported.

    Raises ValueError if it is no table that is known.
    """

    def __init__(self, path: Path):
        text = path.read_text("utf-8-sig")
        head = text.partition("\n")[0]
        mark = max(",;\t", key=head.count)
        self.rows = list(csv.DictReader(io.StringIO(text), delimiter=mark))
        self.columns = [name.strip() for name in next(csv.reader([head], delimiter=mark), [])]
        self.is_canvas = {"Student", "ID"} <= {*self.columns}
        if self.is_canvas:  # below the head stand rows of nobody
            self.rows = [row for row in self.rows if row["ID"]]
        elif "Full name" not in self.columns and "First name" not in self.columns:
            raise ValueError(
                f"{path} has the columns {', '.join(self.columns)[:200]}, and is no roster that is "
                "known: give Moodle's grading worksheet or list of participants, or Canvas's "
                "gradebook, exported as CSV in English"
            )
        self._found: dict[str, list[int]] = {}
        for i, row in enumerate(self.rows):
            ids = {key(row.get(column) or "") for column in _IDS}
            for one in {*ids, key(self.name(i))} - {""}:
                self._found.setdefault(one, []).append(i)

    def name(self, i: int) -> str:
        row = self.rows[i]
        parts = (row.get("First name"), row.get("Last name") or row.get("Surname"))
        name = row.get("Student") or row.get("Full name") or " ".join(filter(None, parts))
        return " ".join(reversed(name.split(", ")))  # Canvas has "Last, First"

    def find(self, *said: str) -> int | None:
        """The row of a person, by the first that is an id, an address or a name of one alone."""
        found = (self._found.get(key(text), []) for text in said if text)
        return next((rows[0] for rows in found if len(rows) == 1), None)

    def called(self, *said: str) -> str:
        """The name that the roster has of a person; "" if it has none."""
        row = self.find(*said)
        return "" if row is None else self.name(row)

    def time(self, i: int) -> datetime | None:
        """When Moodle says that this person has handed in."""
        said = self.rows[i].get("Last modified (submission)") or ""
        for form in _TIMES:
            with suppress(ValueError):
                return datetime.strptime(said.strip(), form)
        return None


def key(text: str) -> str:
    """'Participant 12' is 12, and 'Last, First' is 'first last'."""
    text = text.casefold().removeprefix("participant ")
    return " ".join(sorted(re.findall(r"[^\s,]+", text)))


def points_of(path: Path, *columns: str) -> dict[str, float]:
    """The last of the columns of a CSV file by the first that is not empty; rows without it are
    left out. Raises ValueError if it has other columns or values."""
    rows = csv.DictReader(io.StringIO(path.read_text("utf-8-sig")))
    *names, value = columns
    try:
        if not {*columns} <= {*(rows.fieldnames or ())}:
            raise KeyError
        some = [row for row in rows if row[value]]
        return {key(next(filter(None, (row[n] for n in names)))): float(row[value]) for row in some}
    except (KeyError, TypeError, ValueError, StopIteration):
        raise ValueError(
            f"{path} should have the columns {', '.join(columns)}, with a number in the last"
        ) from None


@dataclass
class Marking:
    """How outcomes become marks.

    points: exercise → points; without any, each exercise has one. by_hand: id or name → points for
    what is written. due: the last day. late: percent that a day costs. column: Canvas's name.
    """

    roster: Roster | None = None
    points: dict[str, float] = field(default_factory=dict)
    by_hand: dict[str, float] = field(default_factory=dict)
    due: date | None = None
    late: float = 0.0
    column: str = "From the Dot Product to GPT"


@dataclass
class Mark:
    """The marks of one student. grade: the sum, less what the days have cost; None for nothing."""

    student: str
    id: str
    points: dict[str, float] = field(default_factory=dict)
    late: int = 0
    grade: float | None = None
    feedback: list[str] = field(default_factory=list)


def days_late(sender: Sender, marking: Marking) -> int:
    """By what the system says of the hand-in, or else by the time of its file."""
    roster = marking.roster
    row = roster.find(sender.id) if roster and sender.id else None
    said = roster.time(row) if roster and row is not None else None
    if sender.late is not None:
        return int(sender.late)  # Canvas does not say how many
    return max(0, ((said or sender.when).date() - marking.due).days) if marking.due else 0


def tables(marks: Sequence[Mark], marking: Marking) -> dict[str, str]:
    """File → the table: marks.csv, and what Moodle or Canvas imports."""
    most, names = sum(marking.points.values()), list(marking.points)
    head = ["student", "id", *names, "total", "of", "days late", "grade"]
    rows = []
    for m in marks:
        values = [*map(m.points.get, names), sum(m.points.values()), most, m.late, m.grade]
        rows.append([guarded(m.student), guarded(m.id), *map(_number, values)])
    found = {"marks.csv": written([head, *rows])}
    if not (roster := marking.roster):
        return found
    of = {i: m for m in marks if (i := roster.find(m.id, m.student)) is not None}
    if roster.is_canvas:
        known = [name for name in roster.columns if name.split(" (")[0] == marking.column]
        blank = ["    Points Possible", *[""] * (len(_CANVAS_COLUMNS) - 1), _number(most)]
        table = [[*_CANVAS_COLUMNS, *(known or [marking.column])[:1]], blank]
        for i, row in enumerate(roster.rows):
            its = [row.get(column) or "" for column in _CANVAS_COLUMNS]
            table.append([*its, _number(of[i].grade if i in of else None)])
        return found | {"canvas.csv": written(table)}
    columns = [*roster.columns]
    columns += [one for one in ("Grade", "Feedback comments") if one not in columns]
    table = [columns]
    for i, row in enumerate(roster.rows):
        if mark := of.get(i):
            scale = float(row.get("Maximum Grade") or most) / most if most else 0.0
            row |= {"Grade": _number(None if mark.grade is None else mark.grade * scale)}
            row |= {"Feedback comments": guarded(" ".join(mark.feedback))}
        table.append([row.get(column) or "" for column in columns])
    return found | {"moodle.csv": written(table)}


def written(table: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(table)  # some split at semicolons, too
    return text.getvalue()


def guarded(value: str) -> str:
    """A text in which a spreadsheet sees no formula."""
    return f"'{value}" if value[:1] in tuple("=+-@\t\r＝＋－＠") else value


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")
