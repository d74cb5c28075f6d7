"""The learner's progress: which exercises are solved.

It is remembered only in `my/`, the folder of the copies that `make lab` opens: `my/progress.txt`
gets a line for each exercise when it is right for the first time. Lines are only added, each in one
write, so two open chapters do not overwrite each other's lines, and a damaged line affects no other
line. Elsewhere (in notebooks/, in CI) nothing is read or written.

`road` lists the chapters of the folder and what is solved in each.
"""

import json
import re
from importlib import import_module
from pathlib import Path

_LINE = re.compile(r"(\w+)\.(\w+)")
# The chapters that lead from the dot product to a GPT that writes, without a detour.
SHORT_ROAD = {
    "words_as_vectors",
    "causal_averaging",
    "queries_keys_values",
    "scaling",
    "multi_head",
    "transformer_block",
    "gpt",
    "generation",
}


def _file() -> Path | None:
    here = Path.cwd()
    mine = here.name == "my" and (here.parent / "notebooks").is_dir()
    return here / "progress.txt" if mine else None


def _names(topic: str) -> list[str]:
    """The exercises of a chapter, in the order of its module; none if there is no such module."""
    from exercises.check import Exercise

    try:
        module = import_module(f"exercises.{topic}")
    except ModuleNotFoundError as error:
        if error.name != f"exercises.{topic}":
            raise
        return []
    return [
        f"{topic}.{name}"
        for name, thing in vars(module).items()
        if isinstance(thing, Exercise) and thing.topic == topic  # it may import those of another
    ]


def _read(file: Path) -> tuple[set[str], int]:
    """The names in the file, and how many of its lines are damaged."""
    if not file.exists():
        return set(), 0
    lines = file.read_text("utf-8", errors="replace").split("\n")
    filled = [line.strip() for line in lines if line.strip()]
    names = {line for line in filled if _LINE.fullmatch(line)}
    return names, sum(not _LINE.fullmatch(line) for line in filled)


def of(topic: str) -> str:
    """How many of the chapter's exercises are solved, as "3 of 4"; "" where nothing is remembered.

    Raises OSError if the file cannot be read.
    """
    file, names = _file(), _names(topic)
    if file is None or not names:
        return ""
    done, spoilt = _read(file)
    unread = f" ({spoilt} lines of {file.name} could not be read)" if spoilt else ""
    return f"{len(done.intersection(names))} of {len(names)}{unread}"


def remember(topic: str, name: str) -> None:
    """Record that this exercise is solved. Raises OSError if the file cannot be written."""
    file, entry = _file(), f"{topic}.{name}"
    if file is None or entry not in _names(topic) or entry in _read(file)[0]:
        return
    with file.open("ab") as lines:
        # A line that a crash cut short must not swallow ours.
        lines.write(f"\n{entry}\n".encode())


def road() -> str:
    """The chapters in this folder as a table in Markdown: link, question, minutes, what is solved.

    A star marks the chapters of the short road. The minutes are those at the chapter's head, of
    reading and of exercises.
    """
    rows = []
    for path in sorted(Path().glob("[0-9][0-9]_*.ipynb")):
        if re.fullmatch(r"\d\d_[a-z_]+", path.stem):  # not an …-old or …-new of the learner's
            topic = path.stem[3:]
            title, question, minutes = _head(path)
            try:
                done = of(topic)
            except OSError as error:
                done = f"what you have solved cannot be read: {error}"
            all_done = "✔ " if re.match(r"(\d+) of \1\b", done) else ""
            star = "★" if topic in SHORT_ROAD else ""
            rows.append([star, f"[{title}]({path.name})", question, minutes, f"{all_done}{done}"])
    if len(rows) < 2:
        return "The other chapters are not here: `make lab` in the course's folder opens them all."
    heads = ["", "chapter", "question", "minutes", "solved"]
    if not any(done for *_, done in rows):  # nothing is remembered here
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        f"| {' | '.join(text.replace('|', chr(92) + '|') for text in line)} |" for line in lines
    )


def _head(path: Path) -> tuple[str, str, str]:
    """The title of a chapter, its question, and its minutes of reading + exercises."""
    try:
        text = "".join(json.loads(path.read_bytes())["cells"][0]["source"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        text = ""
    title, question = re.match(r"# (.+)", text), re.search(r"^\*\*(.+\?)\*\*$", text, re.M)
    minutes = re.search(r"^\*Reading: (\d+) to (\d+) .*?exercises: (\d+) ", text, re.M)
    return (
        title[1] if title else path.stem,
        question[1] if question else "(the file cannot be read)",
        f"{minutes[1]}–{minutes[2]} + {minutes[3]}" if minutes else "",
    )
