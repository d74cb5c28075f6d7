"""What README and the teachers' pages repeat from the chapters: `make notebooks` writes it there.

README's table has the question and the minutes of each chapter; its page in docs/teaching begins
with the minutes of its sections and exercises, down to a mark.
"""

import argparse
import re
from importlib import import_module
from pathlib import Path

import nbformat
from figures import figures, minutes, stated_minutes
from nbformat import NotebookNode
from teaching.exercises_of import tasks

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- from the chapter -->", "<!-- until here -->"
EXERCISE = r"### Exercise ([\d.]+) · (.*)\n+[●○]{3} · (\d+) minutes"


def line(name: str, notebook: NotebookNode) -> str:
    """The chapter's row in README."""
    head = notebook.cells[0].source
    title, question = re.search(r"# (\d+ · .*)\n\n(?:!.*\n\n)?\*\*(.*)\*\*", head).groups()  # type: ignore[union-attr]
    reading, exercises = (m.replace(" to ", "–") for m in stated_minutes(notebook).values())
    return f"| [{title}](notebooks/{name}.ipynb) | {question} | {reading} + {exercises} |"


def head(name: str, notebook: NotebookNode) -> str:
    """The top of a teacher's page: title, minutes, pauses, sections and exercises."""
    text = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    parts = [("head", NotebookNode(cells=[]))]
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and (found := re.findall(r"(?m)^## (.*)", cell.source)):
            parts.append(("; ".join(found), NotebookNode(cells=[])))
        parts[-1][1].cells.append(cell)
    timed = [(title, round(_minutes(part))) for title, part in parts if _is_read(title)]
    reading = " · ".join(f"{title.replace(' · ', ' ')} ({spent})" for title, spent in timed)
    checks = vars(import_module(f"exercises.{name[3:]}"))
    hidden = {task.number for task in tasks(notebook) if checks[task.name].judges_code}
    stated = re.findall(EXERCISE, text)
    exercises = " · ".join(f"{n}{'*' * (n in hidden)} {what} ({m})" for n, what, m in stated)
    pause = re.search(r"minutes, with [^·]*?((?:before|after) sections? [^·]*) ·", text)
    return (
        f"{re.match('# .*', text)[0]}: for teachers\n\n{BEGIN}\n"  # type: ignore[index]
        f"[The chapter](../../notebooks/{name}.ipynb) takes {minutes(notebook)['reading']} minutes "
        f"of reading{f'; pause {pause[1]}' if pause else ''}. At a quick pace: {reading}.\n\n"
        f"Exercises (*: grading has other inputs): {exercises}.\n".replace("*", r"\*")
    )


def _minutes(section: NotebookNode) -> float:
    found = figures(section)
    return found["words"] / 100 + found["lines"] / 6 + found["pictures"]


def _is_read(title: str) -> bool:
    return not re.match(r"(\d+ · )?(Deeper|Evidence|Exercises|Names|What you can now say)", title)


def repeated() -> dict[Path, str]:
    """File → its text with what the chapters say."""
    notebooks = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
    chapters = {path.stem: nbformat.read(path, as_version=4) for path in notebooks}
    readme, pages = ROOT / "README.md", ROOT / "docs" / "teaching"
    rows = "\n".join(line(*chapter) for chapter in chapters.items())
    found = readme.read_text(encoding="utf-8")
    texts = {readme: re.sub(r"(?m)(^\| \[\d\d · .*\n?)+", lambda _: rows + "\n", found)}
    for name, notebook in chapters.items():
        page = pages / f"{name}.md"
        text = page.read_text(encoding="utf-8") if page.exists() else END
        texts[page] = head(name, notebook) + text[text.index(END) :]
    return texts


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    for path, text in repeated().items():
        path.write_text(text, encoding="utf-8")
