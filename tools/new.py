"""Lay out a new chapter: its notebook with the sections of all chapters, its exercises, their test.

What stands between guillemets, «so», is to be replaced.
"""

import re
from pathlib import Path

import figures
import home
import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent

# (tags, text) of each cell; `code` for code, `closed` for the heading of a closed section.
CELLS: list[tuple[str, str]] = [
    ("", """\
# NUMBER · TITLE

**«The question that the chapter answers?»**

*Reading: MINUTES minutes · exercises: 15 minutes · running: «half a minute» on two CPU cores.*

**You need** «what it builds on (chapter 02)».

**Afterwards you can**

- «one verb with its object»;
- «another».

**Letters.** «$T$ is the number of tokens.»

**Sources.** «[Author and Author 2024](https://example.org).»"""),
    ("code", """\
import torch

from exercises import TOPIC as check

torch.manual_seed(0)"""),
    ("", "## 1 · Why\n\n«A small task at which what the reader has fails.»"),
    ("", "## 2 · By hand\n\n«The idea with numbers that a pencil can follow.»"),
    ("", """\
## 3 · In code

«The thing itself, in its simplest form. A doubt is answered in [Evidence](#Evidence).»"""),
    ("code", "def double(x):\n    return 2 * x"),
    ("", """\
## 4 · On real data

**Predict before you run:** «a question with a number for an answer.»"""),
    ("", """\
## 5 · Common mistakes

| mistake | what you see | the cure |
|---|---|---|
| «what people write» | «a message, or a number» | «what to write instead» |"""),
    ("", """\
## 6 · What you built

«What the cell below is, in one sentence. It runs by itself: copy it.»"""),
    ("code built", """\
import torch


def double(x):
    return 2 * x


print(double(torch.arange(3)))"""),
    ("", """\
### Names in the literature

- «What the reader did (section 3)» is **«the term»** ([«Author 2024»](https://example.org))."""),
    ("closed deeper", "## Deeper · «What no later chapter needs»\n\n«Text.»"),
    ("closed evidence", "## Evidence"),
    ("evidence", "«What is claimed, what was tried, what came out, and how sure it is.»"),
    ("code evidence claim:TOPIC_1", "assert double(torch.tensor(3)) == 6"),
    ("", """\
## 7 · Exercises

Replace the `...`, run the cell, and then the check below it.
Hints come one at a time, and the solution is below them.

### Exercise FIGURE.1 · «Its name»
●○○ · 5 minutes

`double(x)`: «the task». For example, `double(3)` gives 6.

<details><summary>Hint 1 of 2</summary>

«The first step.»

</details>

<details><summary>Hint 2 of 2</summary>

«Almost the answer.»

</details>

<details><summary>Solution</summary>

```python
def double(x):
    return 2 * x
```

</details>"""),
    ("code exercise", "def double(x):\n    return ..."),
    ("code check", "check.double(double)"),
    ("", """\
## 8 · What you can now say

- «A whole claim, true as it is written.»

### Recap

<details><summary>1. «A question?»</summary>

«Its answer.»

</details>"""),
]  # fmt: skip

EXERCISES = '''\
"""The exercises of the chapter "TITLE"."""

from exercises.check import exercise


@exercise(
    inputs=lambda draw: [(3,), (0,), (-1.5,), (draw.uniform(-9, 9),)],
    on_success="Twice the number, of negative ones, too.",
)
def double(x):
    """double(x): twice x."""
    return 2 * x


double.slips("""
    This is the square: multiply by 2.
        2 * x → x**2
""")
'''

TEST = '''\
"""The exercises on TITLE beyond what their declaration says."""

from exercises import TOPIC as check


def test_another_right_way_is_right():
    assert check.double(lambda x: x + x).outcome == "right"
'''


def by_hand(number: int, topic: str) -> list[str]:
    """The files that a new chapter touches by hand."""
    return [
        f"notebooks/{number:02}_{topic}.ipynb",
        f"exercises/{topic}.py",
        f"tests/test_exercises_{topic}.py",
        "README.md  (a row in the table of chapters)",
        "docs/TEACHING.md  (a section)",
        f"helpers/MODULE.py  (what later chapters need of it; its docstring: Taught in: {topic}.)",
        "tests/test_MODULE.py",
        "tests/test_same_as.py  (how the chapter's own code is compared with it)",
    ]


def lay_out(topic: str, root: Path = ROOT) -> list[str]:
    """Write a chapter's notebook, exercises and test; returns `by_hand`.

    The chapter gets the lowest free number: `renumber` first makes room. Its neighbours lead to it.
    Raises ValueError for a
    topic that is no name in small letters, and FileExistsError for one that is there.
    """
    if not re.fullmatch(r"[a-z]+(_[a-z]+)*", topic):
        raise ValueError(f"{topic!r}: a topic is made of small letters and _, such as fine_tuning")
    chapters = sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    exercises = root / "exercises" / f"{topic}.py"
    if topic in [path.stem[3:] for path in chapters] or exercises.exists():
        raise FileExistsError(f"there is a chapter {topic} already")
    taken = {int(path.name[:2]) for path in chapters}
    number = next(n for n in range(100) if n not in taken)
    title = topic.replace("_", " ").capitalize()

    def filled(text: str) -> str:
        names = {"TOPIC": topic, "TITLE": title, "NUMBER": f"{number:02}", "FIGURE": str(number)}
        return re.sub("|".join(names), lambda found: names[found[0]], text)

    notebook = nbformat.v4.new_notebook(
        cells=[_cell(filled(tags), filled(text)) for tags, text in CELLS]
    )
    for i, cell in enumerate(notebook.cells):
        cell.id = f"{topic[:40]}-{i}".replace("_", "-")
    import notebooks  # which offers this on its command line

    path = root / "notebooks" / f"{number:02}_{topic}.ipynb"
    notebooks.write(path, notebooks.text_of(notebook))
    for near in [path, *chapters]:  # they lead to each other
        notebook = notebooks.read(near)
        notebooks.navigate(notebook, near, home.home())
        minutes = f"{figures.figures(notebook)['minutes']:g}"
        notebook.cells[0].source = notebook.cells[0].source.replace("MINUTES", minutes)
        notebooks.normalise(notebook)
        notebooks.write(near, notebooks.text_of(notebook))
    exercises.write_text(filled(EXERCISES), "utf-8")
    (root / "tests" / f"test_exercises_{topic}.py").write_text(filled(TEST), "utf-8")
    return by_hand(number, topic)


def _cell(words: str, text: str) -> NotebookNode:
    tags = [tag for tag in words.split() if tag not in ("code", "closed")]
    metadata: dict[str, object] = {"tags": tags} if tags else {}
    if "closed" in words:
        metadata["jp-MarkdownHeadingCollapsed"] = True
    new = nbformat.v4.new_code_cell if "code" in words else nbformat.v4.new_markdown_cell
    return new(text, metadata=metadata)
