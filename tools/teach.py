"""Teach with the course: assignments, grades, slides, questions. docs/TEACHING.md leads through it.

make teach                                          once: install what these commands need
python tools/teach.py assign 04 05 --out FOLDER     chapters without solutions, for students
python tools/teach.py grade FOLDER --out grades.csv     grade what they handed in
python tools/teach.py student FOLDER                the course without solutions, for students
python tools/teach.py slides 04                     a chapter as slides, in build/slides
python tools/teach.py questions 04 --sheet exam.html    written questions: paper, Canvas, Moodle
"""

import argparse
import signal
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "book")]

try:
    from teaching import questions
    from teaching.assign import assign
    from teaching.exercises_of import chapter
    from teaching.grade import grade
    from teaching.lms import Marking, Roster, points_of, unpacked
    from teaching.slides import slides
    from text2qti.err import Text2qtiError as NoQuiz
except ModuleNotFoundError as missing:
    sys.exit(
        f"{sys.executable} has no package {missing.name}. `make teach` installs into .venv what "
        "these commands need; without make: "
        "pip install -r tools/requirements-teach.txt -c tools/constraints.txt"
    )

KINDS = {"sheet": "to print; answers beside it", "qti": "for Canvas", "moodle": "for Moodle"}


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date: write 2027-01-15") from None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("assign", help="write chapters without solutions, for students")
    one.add_argument("chapters", nargs="+", metavar="NN", help="the number of a chapter")
    one.add_argument("--out", type=Path, required=True, help="the folder for the notebooks")
    one.add_argument("--exercises", nargs="+", default=[], metavar="N.M", help="default: all")
    one.add_argument("--due", type=_date, metavar="YYYY-MM-DD")
    one.add_argument("--hints", action="store_true", help="leave the hints in")
    own = "a notebook with exercises of your own, and a module beside it: docs/teaching/own.md"
    one.add_argument("--own", type=Path, metavar="NOTEBOOK", help=own)
    two = commands.add_parser("grade", help="grade what students handed in")
    two.add_argument("folder", type=Path, help="of the notebooks, or a zip of Moodle or Canvas")
    two.add_argument("--out", type=Path, required=True, help="the table, a CSV file")
    two.add_argument("--secret", default="", help="what inputs are drawn from; default: a new one")
    two.add_argument("--seconds", type=float, default=60, help="of work for a cell (default: 60)")
    two.add_argument("--memory", type=float, default=2, help="GiB for a notebook (default: 2)")
    two.add_argument("--own", type=Path, metavar="NOTEBOOK", help=own)
    for name, says in {
        "--roster": "Moodle's grading worksheet or participants, or Canvas's gradebook, as CSV: "
        "moodle.csv or canvas.csv, to import, will lie beside marks.csv",
        "--points": "columns exercise, points: the others do not count (default: 1 for each)",
        "--written": "marks.csv of a former grading, with points in its column written for the "
        "answers in written.html, which stood in cells with the tag written",
    }.items():
        two.add_argument(name, type=Path, help=says, metavar="CSV")
    two.add_argument("--due", type=_date, metavar="YYYY-MM-DD", help="the last day")
    two.add_argument("--late", type=float, default=0, help="percent that each day late costs")
    two.add_argument("--column", default=Marking.column, help="the assignment's name in Canvas")
    three = commands.add_parser("slides", help="make slides of chapters, for any browser")
    three.add_argument("chapters", nargs="+", metavar="NN", help="its number, or a notebook")
    three.add_argument("--out", type=Path, default=ROOT / "build" / "slides", help="the folder")
    three.add_argument("--edit", action="store_true", help="instead, notebooks to edit, in my/")
    four = commands.add_parser("questions", help="write questions for paper, Canvas and Moodle")
    four.add_argument("chapters", nargs="+", metavar="NN", help="04, 4.2 for one, `before`, a file")
    for kind, said in KINDS.items():
        four.add_argument(f"--{kind}", type=Path, metavar="FILE", help=said)
    says = (
        "write the course without solutions and notes for teachers: exercises in code answer at "
        "once, by recorded results; other checks say that you will judge. Grade with the original."
    )
    five = commands.add_parser("student", help=says, description=says)
    five.add_argument("out", type=Path, help="a new folder")
    given = parser.parse_args(arguments)
    try:
        if given.command == "assign":
            chosen = [number for text in given.exercises for number in text.split(",") if number]
            made = assign(given.chapters, given.out, chosen, given.due, given.hints, given.own)
            print("\n".join(map(str, made)))
        if given.command == "grade":
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            for path in filter(None, (given.folder, given.roster, given.points, given.written)):
                if not path.exists():
                    raise ValueError(f"there is no {path}")
            roster = given.roster and Roster(given.roster)
            points = given.points and points_of(given.points, "exercise", "points")
            by_hand = given.written and points_of(given.written, "id", "student", "written")
            counts = given.due, given.late, given.column
            marking = Marking(roster, points or {}, by_hand or {}, *counts)
            with unpacked(given.folder) as folder:
                limits = given.seconds, given.memory
                how = given.secret, *limits, marking, given.own
                _, summary, notes = grade(folder, given.out, *how)
            print(*(line for one in summary for line in one.lines()), *notes, sep="\n")
            pages = given.out.with_suffix("")
            print(f"Marks: {', '.join(map(str, sorted(pages.glob('*.csv'))))}")
            print(f"The table is {given.out}; open {pages / 'index.html'}.")
        if given.command == "student":
            from teaching.student import student  # torch takes seconds

            print(f"Handed in without a check: {', '.join(student(given.out))}.")
        if given.command == "slides":
            for name in given.chapters:
                path = Path(name) if name.endswith(".ipynb") else chapter(name)
                draft = ROOT / "my" / f"slides_{path.stem}.ipynb"
                print(slides(path, draft if given.edit else given.out / f"{path.stem}.html"))
        if given.command == "questions":
            if not any(getattr(given, kind) for kind in KINDS):
                raise ValueError(f"for what? Give --{' FILE, --'.join(KINDS)} FILE, or several")
            for kind in KINDS:
                if out := getattr(given, kind):
                    getattr(questions, f"write_{kind}")(questions.read(given.chapters), out)
    except (ValueError, OSError, RuntimeError, NoQuiz) as error:
        sys.exit(f"teach.py {given.command}: {error}")
    except KeyboardInterrupt as error:
        sys.exit(f"teach.py {given.command}: interrupted. {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
