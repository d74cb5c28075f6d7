"""Assignments: chapters without solutions, with the exercises of the teacher's choice."""

import copy
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import nbformat
from learn import cleared
from nbformat import NotebookNode

from helpers.formats.files import write_whole
from teaching.exercises_of import DETAILS, Task, chapter, embedded, tasks, with_own

_ABOUT_HINTS = re.compile(r"[^.\n]*\b(?:[Hh]ints?|solution)\b[^.\n]*\.")
_NO_HINT = re.compile(r"\n*<details><summary>(?!Hint).*?</details>\n*", re.DOTALL)


def assign(
    chapters: Sequence[str],
    out: Path,
    chosen: Sequence[str] = (),
    due: date | None = None,
    hints: bool = False,
    own: Path | None = None,
) -> list[Path]:
    """Write the notebooks that students get of these chapters; returns their paths.

    chosen: the numbers of the exercises, such as "4.1"; without any, all. due: stands at the head.
    own: a notebook with exercises of your own, see `with_own`; students get no check of these.

    Raises ValueError for an unknown chapter or exercise, for an exercise that needs the answer of
    one that is left out, and where a file of that name is there already.
    """
    sources = [chapter(number) for number in chapters]
    books = [(path, with_own(path, own)) for path in sources]
    known = {task.number for _, notebook in books for task in tasks(notebook)}
    if unknown := sorted(set(chosen) - known):
        raise ValueError(f"there is no exercise {', '.join(unknown)} in these chapters")
    made = {}
    for path, notebook in books:
        target = out / f"{path.stem}-assignment.ipynb"
        if target.exists():
            raise ValueError(f"{target} is there already: move it away, or choose another folder")
        made[target] = assignment(notebook, path.stem, chosen, due, hints)
    for target, notebook in made.items():
        write_whole(target, (nbformat.writes(notebook, version=4) + "\n").encode())
    return list(made)


def assignment(
    notebook: NotebookNode,
    stem: str,
    chosen: Sequence[str] = (),
    due: date | None = None,
    hints: bool = False,
) -> NotebookNode:
    """The notebook that students get of one chapter; see `assign`."""
    every = tasks(notebook)
    kept = [task for task in every if not chosen or task.number in chosen]
    if not kept:
        raise ValueError(f"none of the chosen exercises is in {stem}")
    _expect_complete(kept, [task for task in every if task not in kept])
    result = copy.deepcopy(notebook)
    closed = _NO_HINT if hints else DETAILS
    for task in every:
        head = result.cells[task.first]
        before = head.source[: head.source.index("### Exercise")].rstrip()
        for cell in result.cells[task.first : task.last + 1]:
            is_check = "check" in cell.metadata.get("tags", [])
            if task not in kept or (is_check and cell.metadata.get("own")):
                cell.metadata["left-out"] = True
            elif cell.cell_type == "markdown":
                cell.source = closed.sub("\n\n", cell.source).strip()
        if task not in kept and before:
            head.source = before
            del head.metadata["left-out"]
    title = result.cells[0]
    minutes = sum(task.minutes for task in kept)
    title.source = embedded(title.source)
    title.source = re.sub(r"(exercises: )\d+( minutes)", rf"\g<1>{minutes}\2", title.source)
    for cell in result.cells if not hints else []:
        if cell.cell_type == "markdown" and re.match(r"## (\d+ · )?Exercises\b", cell.source):
            section, exercise, task_text = cell.source.partition("### Exercise")
            section = re.sub(r"\n +(?=\w)", "\n", _ABOUT_HINTS.sub("", section))
            cell.source = section + exercise + task_text
    result.cells = [cell for cell in result.cells if not cell.metadata.get("left-out")]
    result.cells[1:1] = _head(kept, due)
    result = cleared(result)
    result.metadata["course"] = {"assignment": stem, "exercises": [task.name for task in kept]}
    return result


def _head(kept: Sequence[Task], due: date | None) -> list[NotebookNode]:
    """The cells below the title: what to do, by when, and the field for the name."""
    numbers = ", ".join(task.number for task in kept)
    lines = [f"**Assignment: exercise{'s' * (len(kept) > 1)} {numbers}.**"]
    if due:
        lines.append(f"**Due: {due:%A}, {due.day} {due:%B %Y}.**")
    lines.append(
        "Write your name in the next cell. Solve the exercises in their own cells, below the tasks "
        "(you may add cells there), and leave the lines that begin with `check.` as they are: an "
        "exercise without one is judged when you hand it in. Then "
        "save the notebook and hand in this file. Functions and classes are graded with other "
        "inputs than those of the checks here, so write code that is right for all inputs."
    )
    return [
        nbformat.v4.new_markdown_cell(" ".join(lines), id="assignment-head"),
        nbformat.v4.new_code_cell('NAME = ""', id="assignment-name"),
    ]


def _expect_complete(kept: Sequence[Task], left: Sequence[Task]) -> None:
    """Raise ValueError if an exercise uses what only one that is left out defines."""
    for task in kept:
        for other in left:
            if needed := task.uses & other.defines:
                raise ValueError(
                    f"exercise {task.number} uses {', '.join(sorted(needed))} from exercise "
                    f"{other.number}: choose both, or neither"
                )
