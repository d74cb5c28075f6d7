"""Make room for a new chapter, or close a gap: every later chapter gets another number, everywhere.

Docstrings name a chapter by its topic ("Taught in: gpt."). Its number stands in the name of its
notebook and in these forms, the only ones in use (a test holds all texts to them, `stray`):

    09_gpt                             the notebook's name, in links and paths
    chapter 09, chapters 03 to 06, 08  in prose and comments
    # 09 · GPT, [09 · GPT]             its title
    | 09 |, | 03–06, 08 |,             in a table's column headed "chapter"
    | 09 (`claim:G1`), 10 (`claim:G7`) |
    Exercise 9.2                       its exercises
    assign 09 10 --exercises 9.2 10.1  commands of tools/teach.py
"""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from helpers.formats.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
TEXTS = {".py", ".md", ".ipynb", ".toml", ".cff", ".yml", ".js", ".css", ""}
EXAMPLES = {"renumber.py", "test_renumber.py"}  # here numbers stand for any others
_LIST = r"\d\d(?:(?:, and|,| and| or| to| ?[–-])(?:\s|#)*\d\d(?!\.?\d))*"

Number = Callable[[int], int]


def renumbered(text: str, number: Number) -> str:
    """The text with every number of a chapter n replaced by number(n)."""

    def each(pattern: str, found: re.Match[str], width: int = 2) -> str:
        return re.sub(pattern, lambda m: f"{number(int(m[0])):0{width}}", found[0])

    def two(found: re.Match[str]) -> str:
        return each(r"\d\d", found)

    text = re.sub(r"\b\d\d_(?=[a-z]+(?:_[a-z]+)*\b)", two, text)
    text = re.sub(rf"\b[Cc]hapter(?:\s|#)+(?:\*\*)?\d\d|\b[Cc]hapters(?:\s|#)+{_LIST}", two, text)
    text = re.sub(r"\b(?:assign|slides)(?: \d\d)+\b", two, text)
    text = re.sub(r"(?:^# |\[)\d\d(?= · )", two, text, flags=re.MULTILINE)
    text = re.sub(r"\b[Ee]xercises? \d+\.\d(?:(?:,| and| to)? \d+\.\d)*",
                  lambda m: each(r"\d+(?=\.)", m, 1), text)  # fmt: skip
    return re.sub(r"(?:^\|.*\n?)+", lambda m: _table(m[0], two), text, flags=re.MULTILINE)


def _table(table: str, two: Callable[[re.Match[str]], str]) -> str:
    """Renumber the cells that begin with a chapter's number, in the columns headed so."""
    header, *rows = table.split("\n")
    columns = [i for i, name in enumerate(_cells(header)) if name.strip() == "chapter"]
    for r, row in enumerate(rows):
        cells = _cells(row)
        for c in columns:
            if c < len(cells):
                cells[c] = re.sub(
                    rf"^\s*(?:\*\*)?{_LIST}(?!\.?\d)|(?<=\), )\d\d(?= \()", two, cells[c]
                )
        rows[r] = "|".join(cells)
    return "\n".join([header, *rows])


def _cells(row: str) -> list[str]:
    return re.split(r"(?<!\\)\|", row)


def stray(text: str) -> list[str]:
    """What looks like the number of a chapter, 00 to 09, but stands in no known form."""
    number = r"(?<![\w.:/%#^{\-+])0\d(?![\w.:/%])"
    if not re.search(number, text):  # most texts: soon done
        return []
    return re.findall(rf".{{0,30}}{number}.{{0,20}}", renumbered(text, lambda n: 99))


def strings(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with all its texts changed; the lines of a cell are changed as one text."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        lines = all(isinstance(item, str) for item in value)
        if lines and all(item.endswith("\n") for item in value[:-1]):
            return change("".join(value)).splitlines(keepends=True)
        return [strings(item, change) for item in value]
    if isinstance(value, dict):
        pictures = ("image/png", "id")
        return {k: v if k in pictures else strings(v, change) for k, v in value.items()}
    return value


def renumber(first: int, by: int = 1, root: Path = ROOT) -> list[str]:
    """Move the chapters from number `first` on by `by`; returns the paths that changed.

    Nothing is written before all is worked out. Raises ValueError if two chapters would get the
    same number, or one a number below 0.
    """

    def number(n: int) -> int:
        return n + by if n >= first else n

    chapters = sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    numbers = [number(int(path.name[:2])) for path in chapters]
    if len(set(numbers)) < len(numbers) or min(numbers) < 0:
        raise ValueError(f"chapters would get the numbers {numbers}: choose another --by")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    contents: dict[Path, str] = {}
    for name in filter(None, listed.stdout.split("\0")):
        path = root / name
        if path.suffix not in TEXTS or path.name in EXAMPLES or not path.is_file():
            continue
        try:
            before = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if path.suffix == ".ipynb":
            changed = strings(json.loads(before), lambda text: renumbered(text, number))
            after = json.dumps(changed, ensure_ascii=False, indent=1) + "\n"
        else:
            after = renumbered(before, number)
        if after != before:
            contents[path] = after
    for path, after in contents.items():
        write_whole(path, after.encode())
    moves = [(path, path.with_name(renumbered(path.name, number))) for path in chapters]
    for old, new in sorted(moves, reverse=by > 0):  # so that none lands on one still to move
        os.replace(old, new)
    return sorted(str(path.relative_to(root)) for path in {*contents, *(new for _, new in moves)})
