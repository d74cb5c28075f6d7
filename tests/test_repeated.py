"""README and the teachers' pages say what the chapters say."""

import re

import repeated
from conftest import CHAPTERS, ROOT


def test_readme_and_the_pages_of_teachers_repeat_the_chapters():
    for path, text in repeated.repeated().items():
        assert path.read_text(encoding="utf-8") == text, "run: .venv/bin/python tools/repeated.py"


def test_each_exercise_serves_a_goal():
    for path in CHAPTERS:
        page = (ROOT / "docs" / "teaching" / f"{path.stem}.md").read_text("utf-8")
        head, goals = (re.findall(r"\b\d+\.[1-9]\b", part) for part in page.split("\n## ")[:2])
        assert set(head) == set(goals), path.stem
