"""What README and TEACHING repeat from the chapters, written from them: `make notebooks` does it.

README's table has the question, the minutes and the seconds of each chapter; TEACHING has, between
two marks, the minutes of its sections and exercises.
"""

import argparse
import re
from pathlib import Path

import nbformat
from figures import figures, minutes, stated_minutes
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- from the chapter -->", "<!-- until here -->"
EXERCISE = r"### Exercise ([\d.]+) · .*\n+[●○]{3} · (\d+) minutes"


def line(name: str, notebook: NotebookNode) -> str:
    """The chapter's row in README."""
    head = notebook.cells[0].source
    title, question = re.search(r"# \d+ · (.*)\n\n\*\*(.*)\*\*", head).groups()  # type: ignore[union-attr]
    reading, exercises = (m.replace(" to ", "–") for m in stated_minutes(notebook).values())
    running = re.search(r"running: (?:about )?(.*?) on \w+ CPU", head)[1]  # type: ignore[index]
    link = f"[{title}](notebooks/{name}.ipynb)"
    return f"| {name[:2]} | {link} | {question} | {reading} + {exercises} min | {running} |"


def block(notebook: NotebookNode) -> str:
    """The minutes of the chapter's sections and exercises."""
    text = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    parts = [("head", NotebookNode(cells=[]))]
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and (found := re.findall(r"(?m)^## (.*)", cell.source)):
            parts.append(("; ".join(found), NotebookNode(cells=[])))
        parts[-1][1].cells.append(cell)
    timed = [(title, round(_minutes(part))) for title, part in parts if _is_read(title)]
    reading = " · ".join(f"{title.replace(' · ', ' ')} ({spent})" for title, spent in timed)
    exercises = ", ".join(f"{number} ({spent})" for number, spent in re.findall(EXERCISE, text))
    return (
        f"**Minutes.** {minutes(notebook)['reading']} of reading (at a quick pace: {reading}). "
        f"Exercises: {exercises}."
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
    readme, teaching = ROOT / "README.md", ROOT / "docs" / "TEACHING.md"
    rows = "\n".join(line(*chapter) for chapter in chapters.items())
    texts = {path: path.read_text(encoding="utf-8") for path in (readme, teaching)}
    texts[readme] = re.sub(r"(?m)(^\| \d\d \| .*\n?)+", lambda _: rows + "\n", texts[readme])
    for name, notebook in chapters.items():
        start = texts[teaching].index(BEGIN, texts[teaching].index(f"/{name}.ipynb)\n"))
        before, rest = texts[teaching][:start], texts[teaching][start:]
        texts[teaching] = f"{before}{BEGIN}\n{block(notebook)}\n{rest[rest.index(END) :]}"
    return texts


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    for path, text in repeated().items():
        path.write_text(text, encoding="utf-8")
