"""The student edition: the course without solutions, reference answers and what teachers need.

The code of an exercise's right answer and of its mistakes becomes the results that they have given
(`recorded.py`); a check by hand that judges a value becomes one that says "handed in". The teacher
keeps the original, and grades with it.
"""

import ast
import inspect
import io
import re
import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import torch

from exercises import check
from exercises.check import Declared, Exercise, ModuleExercise, fresh, plain
from teaching.exercises_of import NOTEBOOKS, defined, read, tasks
from teaching.lms import natural

ROOT = NOTEBOOKS.parent
LEFT_OUT = ("tests/", "tools/teach", "docs/TEACHING.md", "docs/teaching/", ".github/", ".ci/")
FOR_STUDENTS = ("docs/teaching/projects.md", "docs/teaching/rubric.md")
_SOLUTION = re.compile(
    r"\n*<details><summary>(?:Solution|What we found)</summary>.*?</details>", re.S
)
_BELOW = re.compile(r",? and the solution is below them| The solution is folded below the hints\.")
_KEPT = {"check.py", "cells.py", "progress.py", "watch.py", "__init__.py"}
_SAYS = (
    "> **Student edition.** It has no solutions, and its package `exercises` no reference answers. "
    "Exercises in code answer at once; the others are judged when you hand in your notebook.\n\n"
)


def student(out: Path) -> list[str]:
    """Write the student edition into a new folder; returns the numbers of the exercises without a
    check. Raises ValueError and RuntimeError if it cannot be written."""
    if out.exists():
        raise ValueError(f"{out} is there already: move it away, or choose another name")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        raise RuntimeError(f"the files of the course come from git, which says: {listed.stderr}")
    silent = []
    for name in listed.stdout.split("\0")[:-1]:
        path, copy = ROOT / name, out / name
        if (name.startswith(LEFT_OUT) and name not in FOR_STUDENTS) or not path.exists():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".ipynb":
            notebook = read(path)
            for cell in notebook.cells:
                if cell.cell_type == "markdown":
                    cell.source = _SOLUTION.sub("", cell.source)
                    cell.source = _BELOW.sub("", cell.source)
            nbformat.write(notebook, copy)
        elif path.parent.name == "exercises" and path.name not in _KEPT:
            source, results = without_answers(import_module(f"exercises.{path.stem}"))
            copy.write_text(source, "utf-8")
            torch.save(results, copy.with_suffix(".pt"))
            (chapter,) = NOTEBOOKS.glob(f"*{path.stem}.ipynb")
            numbers = {task.name: task.number for task in tasks(read(chapter))}
            silent += [
                numbers.get(one, one) for one in re.findall(r"@handed_in\ndef (\w+)", source)
            ]
        else:
            shutil.copy2(path, copy)
    shutil.copy2(Path(__file__).with_name("recorded.py"), out / "exercises")
    for name in ("README.md", "data/README.md"):
        text = re.sub(r"(?m)^.*docs/TEACHING.md.*\n", "", (out / name).read_text("utf-8"))
        (out / name).write_text(_SAYS * (name == "README.md") + text, "utf-8")
    return sorted(silent, key=natural)


def without_answers(topic: ModuleType) -> tuple[str, dict[str, Any]]:
    """The source of a chapter's exercises without answers, and what `recorded.py` plays."""
    kept: list[ast.stmt] = []
    roots: list[ast.stmt] = []
    results, silent = {}, set()
    for node in ast.parse(inspect.getsource(topic)).body:
        names = defined(node) if not isinstance(node, ast.ImportFrom) else set()
        made = next((n for n in names if isinstance(getattr(topic, n, None), Exercise)), "")
        also = re.match(r"@(\w+)\.also", ast.unparse(node))
        if made:
            one = getattr(topic, made)
            if isinstance(one, Declared) and (found := _recorded(one)):
                results[made] = found
                assert isinstance(node, ast.FunctionDef)
                (call,) = (c for c in node.decorator_list if isinstance(c, ast.Call))
                call.func, call.args, node.body = ast.Name("recorded"), [], node.body[:1]
                call.keywords = [k for k in call.keywords if k.arg not in ("inputs", "backward")]
            elif isinstance(one, Declared) or not one.judges_code:
                silent.add(made)
                stub = f"@handed_in\ndef {made}(answer):\n    {(one.__doc__ or made)!r}"
                (node,) = ast.parse(stub).body
        imports = isinstance(node, (ast.Import, ast.ImportFrom))
        if made or imports or (also and also[1] not in silent):
            roots.append(node)
        kept.append(node)
    for node in roots:  # it grows by what these need
        used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        roots += [one for one in kept if one not in roots and defined(one) & used]
    body = ast.unparse(ast.Module([node for node in kept if node in roots], []))
    return f"from exercises.recorded import handed_in, recorded\n{body}\n", results


def _recorded(one: Declared) -> tuple | None:
    """The inputs of an exercise, what is right, and what its mistakes give; None if a file cannot
    hold them."""
    if isinstance(one, ModuleExercise):
        return None
    given = [*one.inputs, *filter(None, [one.example])]
    mistakes = [(says, [_result(wrong, g) for g in given]) for says, wrong in one.each_mistake()]
    found = [*one.inputs], [_result(one.right, g) for g in given], mistakes
    try:
        torch.save(found, file := io.BytesIO())
        torch.load(io.BytesIO(file.getvalue()), weights_only=True)
    except Exception:  # there is a function among them
        return None
    return found


def _result(function: Any, given: tuple) -> tuple[Any, tuple[str, str] | None]:
    check._begin_to_draw()
    try:
        with torch.no_grad():
            return plain(function(*fresh(given))), None
    except Exception as error:
        return None, (type(error).__name__, str(error))
