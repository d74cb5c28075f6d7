"""Lay out a new chapter: its notebook, from template.ipynb, and its exercises.

What stands between guillemets, «so», is to be replaced.
"""

import re
from pathlib import Path

import figures
import home

ROOT = Path(__file__).resolve().parent.parent
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


def lay_out(topic: str, root: Path = ROOT) -> Path:
    """Write a chapter's notebook, with the lowest free number, and its exercises; the notebook.

    Its neighbours lead to it. Raises ValueError for a topic that is no name in small letters, and
    FileExistsError for one that is there.
    """
    import notebooks  # which offers this on its command line

    if not re.fullmatch(r"[a-z]+(_[a-z]+)*", topic):
        raise ValueError(f"{topic!r}: a topic is made of small letters and _, such as fine_tuning")
    chapters = sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    exercises = root / "exercises" / f"{topic}.py"
    if topic in [path.stem[3:] for path in chapters] or exercises.exists():
        raise FileExistsError(f"there is a chapter {topic} already")
    number = min(set(range(100)) - {int(path.name[:2]) for path in chapters})
    title = topic.replace("_", " ").capitalize()
    names = {"TOPIC": topic, "TITLE": title, "NUMBER": f"{number:02}", "FIGURE": str(number)}

    def filled(text: str) -> str:
        return re.sub("|".join(names), lambda found: names[found[0]], text)

    path = root / "notebooks" / f"{number:02}_{topic}.ipynb"
    template = (Path(__file__).parent / "template.ipynb").read_text("utf-8")
    notebooks.write(path, filled(template.replace('"TOPIC-', f'"{topic[:40].replace("_", "-")}-')))
    exercises.write_text(filled(EXERCISES), "utf-8")
    for near in [path, *chapters]:  # they lead to each other
        notebook = notebooks.read(near)
        notebooks.navigate(notebook, near, home.home())
        reading = figures.minutes(notebook)["reading"]
        notebook.cells[0].source = notebook.cells[0].source.replace("MINUTES", reading)
        notebooks.normalise(notebook)
        notebooks.write(near, notebooks.text_of(notebook))
    return path
