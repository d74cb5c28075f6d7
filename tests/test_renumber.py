"""tools/renumber.py: a chapter's number moves everywhere it stands, and nowhere else."""

import re
import shutil
import subprocess

import nbformat
import pytest
import renumber
from conftest import ROOT


def after_nine(text):
    return renumber.renumbered(text, lambda n: n + 1 if n >= 10 else n)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "see [10 · Generation](10_generation.ipynb)",
            "see [11 · Generation](11_generation.ipynb)",
        ),
        ("# 12 · GPTMini\n## 10 · Exercises", "# 13 · GPTMini\n## 10 · Exercises"),
        ("In chapters 09, 10 and 12: 10 times.", "In chapters 09, 11 and 13: 10 times."),
        ("Used in chapters 10 and 12.", "Used in chapters 11 and 13."),
        ("in chapters 02 and\n    12", "in chapters 02 and\n    13"),
        ("chapters 08–12", "chapters 08–13"),
        ("in chapter 09, 12 of them", "in chapter 09, 12 of them"),
        (
            "at most 30 letters; models: name → weights",
            "at most 30 letters; models: name → weights",
        ),
        (
            "| term | chapter |\n|---|---|\n| 10 | 10 |",
            "| term | chapter |\n|---|---|\n| 10 | 11 |",
        ),
        ("| size | heads |\n|---|---|\n| 10 | 12 |", "| size | heads |\n|---|---|\n| 10 | 12 |"),
        ("### Exercise 10.2 · Draw", "### Exercise 11.2 · Draw"),
        ("exercises 9.1 and 12.3; 10.5 nats", "exercises 9.1 and 13.3; 10.5 nats"),
        (
            "assign 09 12 --exercises 9.1 12.3 --out a; slides 12",
            "assign 09 13 --exercises 9.1 13.3 --out a; slides 13",
        ),
        (
            "| said | chapter |\n|---|---|\n| <\\|end\\|> | 11 (`claim:T7`), 12 (`claim:M4`) |",
            "| said | chapter |\n|---|---|\n| <\\|end\\|> | 12 (`claim:T7`), 13 (`claim:M4`) |",
        ),
        ("12 heads of 10 numbers, 0.10", "12 heads of 10 numbers, 0.10"),
    ],
)
def test_numbers_of_chapters_and_no_others_move(before, after):
    assert after_nine(before) == after
    assert renumber.renumbered(after, lambda n: n - 1 if n >= 11 else n) == before


def test_an_exercise_has_no_leading_nought():
    assert renumber.renumbered("Exercise 10.2", lambda n: n - 1) == "Exercise 9.2"
    assert renumber.renumbered("Exercise 9.2", lambda n: n + 1) == "Exercise 10.2"


@pytest.fixture
def copy(tmp_path):
    """A repository with the course's own files, without data and pictures."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file() and not name.startswith(("data/", "notebooks/states/")):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    for path in (tmp_path / "notebooks").glob("*.ipynb"):
        text = path.read_text("utf-8")
        path.write_text(re.sub(r'"image/png": ".*"', '"image/png": ""', text), "utf-8")
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def snapshot(folder):
    files = (p for p in folder.rglob("*") if p.is_file() and ".git" not in p.parts)
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def test_room_for_a_chapter_is_made_everywhere_and_can_be_taken_back(copy):
    before = snapshot(copy)
    (old,) = (copy / "notebooks").glob("*_generation.ipynb")
    n = int(old.name[:2])
    renumber.renumber(n, root=copy)
    after = snapshot(copy)
    names = {name for name in after if name.startswith("notebooks/")}
    assert f"notebooks/{n + 1}_generation.ipynb" in names
    assert not any(name.startswith(f"notebooks/{n}_") for name in names)
    assert f"](notebooks/{n + 1}_generation.ipynb)".encode() in after["README.md"]
    assert f"Exercise {n + 1}.1".encode() in after[f"notebooks/{n + 1}_generation.ipynb"]
    texts = (text for name, text in after.items() if name.split("/")[-1] not in renumber.EXAMPLES)
    texts = b"\n".join(texts).decode(errors="replace")
    left = rf"{old.stem}|[Cc]hapter {n}\b|\| {n} \(`claim|[Ee]xercise {n}\.\d"
    assert [texts[m.start() - 60 : m.end() + 60] for m in re.finditer(left, texts)] == []
    for path in (copy / "notebooks").glob("*.ipynb"):
        nbformat.validate(nbformat.read(path, as_version=4))
    subprocess.run(["git", "add", "-A"], cwd=copy, check=True)
    renumber.renumber(n + 1, by=-1, root=copy)
    assert snapshot(copy) == before


def test_two_chapters_never_get_one_number(copy):
    before = snapshot(copy)
    with pytest.raises(ValueError, match="choose another --by"):
        renumber.renumber(5, by=-1, root=copy)
    assert snapshot(copy) == before
