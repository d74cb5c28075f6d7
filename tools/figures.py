"""How long a chapter is: what its core path asks of a reader, counted in the file.

The core path is everything before the heading "Exercises" that is not tagged `deeper`. A word is
what stands between blanks, in a formula or a table's row, too. A learner reads 180 of them a minute
and 12 lines of visible code, and looks at a picture for half a minute.
"""

import re
from dataclasses import dataclass
from statistics import median

from nbformat import NotebookNode

# The measures of a chapter; see docs/TEACHING.md.
WORDS, CELLS, LINES, LONGEST, MEDIAN, MINUTES, EXERCISES = 3200, 40, 250, 20, 5, 60, 45


@dataclass(frozen=True)
class Figures:
    """words of text; visible code cells, their non-blank lines, the longest and the median cell;
    folded cells; pictures; minutes of the core path, and of the exercises as they state them."""

    words: int
    cells: int
    lines: int
    longest: int
    median: float
    folded: int
    pictures: int
    minutes: int
    exercises: int

    def too_much(self) -> list[str]:
        """What is above its measure, in words."""
        limits = {"words": WORDS, "cells": CELLS, "lines": LINES, "longest": LONGEST,
                  "median": MEDIAN, "minutes": MINUTES, "exercises": EXERCISES}  # fmt: skip
        found = {name: getattr(self, name) for name in limits}
        return [f"{name} {found[name]:g} > {most}" for name, most in limits.items()
                if found[name] > most]  # fmt: skip


def figures(notebook: NotebookNode) -> Figures:
    """The figures of a chapter."""
    core = [cell for cell in _before_exercises(notebook) if not _tagged(cell, "deeper")]
    code = [cell for cell in core if cell.cell_type == "code"]
    shown = [cell for cell in code if not cell.metadata.get("jupyter", {}).get("source_hidden")]
    lengths = [sum(bool(line.strip()) for line in cell.source.splitlines()) for cell in shown]
    words = sum(len(cell.source.split()) for cell in core if cell.cell_type == "markdown")
    pictures = sum(_pictures(cell) for cell in code)
    tasks = re.findall(r"[●○]{3} · (\d+) minutes", "\n".join(c.source for c in notebook.cells))
    return Figures(
        words=words,
        cells=len(shown),
        lines=sum(lengths),
        longest=max(lengths, default=0),
        median=median(lengths) if lengths else 0,
        folded=len(code) - len(shown),
        pictures=pictures,
        minutes=round(words / 180 + sum(lengths) / 12 + pictures / 2),
        exercises=sum(map(int, tasks)),
    )


def stated_minutes(notebook: NotebookNode) -> int | None:
    """The minutes of reading that the head of a chapter states, None if it states none."""
    found = re.search(r"(\d+) minutes", "\n".join(cell.source for cell in notebook.cells[:3]))
    return int(found[1]) if found else None


def _before_exercises(notebook: NotebookNode) -> list[NotebookNode]:
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown" and re.search(
            r"^## (?:\d+ · )?Exercises", cell.source, re.M
        ):
            return list(notebook.cells[:number])
    return list(notebook.cells)


def _tagged(cell: NotebookNode, *names: str) -> bool:
    return any(name in cell.metadata.get("tags", []) for name in names)


def _pictures(cell: NotebookNode) -> int:
    outputs = cell.get("outputs", [])
    return sum("image/png" in output.get("data", {}) for output in outputs)


def table(chapters: dict[str, NotebookNode]) -> str:
    """The figures of all chapters as a table in plain text; an asterisk marks what is too much."""
    names = ("words", "cells", "lines", "longest", "median", "folded", "pictures", "minutes",
             "exercises")  # fmt: skip
    lines = [f"{'':28}" + "".join(f"{name:>10}" for name in names)]
    for stem, notebook in chapters.items():
        found = figures(notebook)
        above = {text.split()[0] for text in found.too_much()}
        cells = (f"{getattr(found, n):g}{'*' if n in above else ''}" for n in names)
        lines.append(f"{stem:28}" + "".join(f"{cell:>10}" for cell in cells))
    return "\n".join(lines)
