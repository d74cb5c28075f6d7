"""What is done: the exercises that were right, remembered beside the learner's copies.

Only in `my/`, the folder of the copies that `make lab` opens: a line of `my/progress.txt` for each
exercise, added when it is right for the first time. Lines are only ever added, each in one write,
so two chapters that are open at once do not lose each other's, and a line that somebody has spoilt
costs no more than itself. Elsewhere (in notebooks/, in CI) nothing is read or written.

`road` lists the chapters of the folder with what is solved of each.
"""

import json
import re
from importlib import import_module
from pathlib import Path

_LINE = re.compile(r"(\w+)\.(\w+)")
# Not asked, but shown.
ALL_BUT = {"start_here.average"}


def _file() -> Path | None:
    here = Path.cwd()
    mine = here.name == "my" and (here.parent / "notebooks").is_dir()
    return here / "progress.txt" if mine else None


def _names(topic: str) -> list[str]:
    """The exercises of a chapter, as they stand in the file; none if there is no such chapter."""
    from exercises.check import Exercise

    try:
        room = import_module(f"exercises.{topic}")
    except ModuleNotFoundError as error:
        if error.name != f"exercises.{topic}":
            raise
        return []
    own = (
        f"{topic}.{name}"
        for name, thing in vars(room).items()
        if isinstance(thing, Exercise) and thing.topic == topic  # it may know those of another
    )
    return [name for name in own if name not in ALL_BUT]


def _read(file: Path) -> tuple[set[str], int]:
    """The names that it holds, and how many of its lines say nothing."""
    if not file.exists():
        return set(), 0
    lines = file.read_text("utf-8", errors="replace").split("\n")
    filled = [line.strip() for line in lines if line.strip()]
    names = {line for line in filled if _LINE.fullmatch(line)}
    return names, sum(not _LINE.fullmatch(line) for line in filled)


def of(topic: str) -> str:
    """ "3 of 4", how many of the chapter's exercises are done; "" where nothing is remembered.

    Raises OSError if the file cannot be read.
    """
    file, names = _file(), _names(topic)
    if file is None or not names:
        return ""
    done, spoilt = _read(file)
    unread = f" ({spoilt} lines of {file.name} could not be read)" if spoilt else ""
    return f"{len(done.intersection(names))} of {len(names)}{unread}"


def remember(topic: str, name: str) -> None:
    """Note that this exercise is right. Raises OSError if the file cannot be written."""
    file, entry = _file(), f"{topic}.{name}"
    if file is None or entry not in _names(topic) or entry in _read(file)[0]:
        return
    with file.open("ab") as lines:
        # A line that a crash cut short must not swallow ours.
        lines.write(f"\n{entry}\n".encode())


def road() -> str:
    """The chapters in this folder as a table in Markdown: link, question, what of it is solved."""
    rows = []
    for path in sorted(Path().glob("[0-9][0-9]_*.ipynb")):
        if re.fullmatch(r"\d\d_[a-z_]+", path.stem):  # not an …-old or …-new of the learner's
            title, question = _head(path)
            try:
                done = of(path.stem[3:])
            except OSError as error:
                done = f"what you have solved cannot be read: {error}"
            all_done = "✔ " if re.match(r"(\d+) of \1\b", done) else ""
            rows.append([f"[{title}]({path.name})", question, f"{all_done}{done}"])
    heads = ["chapter", "question", "solved"]
    if not any(done for *_, done in rows):  # nothing is remembered here
        heads, rows = heads[:2], [row[:2] for row in rows]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        f"| {' | '.join(text.replace('|', chr(92) + '|') for text in line)} |" for line in lines
    )


def _head(path: Path) -> tuple[str, str]:
    """The title of a chapter and its question; the file's name where they cannot be read."""
    try:
        text = "".join(json.loads(path.read_bytes())["cells"][0]["source"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        text = ""
    title, question = re.match(r"# (.+)", text), re.search(r"^\*\*(.+)\*\*$", text, re.M)
    return title[1] if title else path.stem, question[1] if question else "(not to be read)"
