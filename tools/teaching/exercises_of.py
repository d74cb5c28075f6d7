"""The exercises of a chapter: where each stands in the notebook, and what its check is given."""

import ast
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
_HEADING = re.compile(r"^### Exercise (\d+\.\d+) · (.+)$", re.M)
_PYTHON_MAGIC = re.compile(r"\A\s*%%(?:time|timeit|capture|prun)\b.*\n")  # its cell is Python
DETAILS = re.compile(r"\n*<details>.*?</details>\n*", re.DOTALL)  # hints, what we found, solution


def embedded(page: str) -> str:
    """Markdown or HTML with the pictures of the chapters in it: it will travel without them."""

    def whole(name: re.Match[str]) -> str:
        return f"data:image/svg+xml;base64,{b64encode((NOTEBOOKS / name[0]).read_bytes()).decode()}"

    return re.sub(r"(?<=[(\"])pictures/\d\d\.svg(?=[)\"])", whole, page)


@dataclass(frozen=True)
class Task:
    """One exercise of a chapter.

    Attributes:
        number: "4.1".
        title: what its heading says after the number.
        name: the name of its check in `exercises`.
        argument: the expression that the chapter's check cell gives to the check.
        first, last: the indices of its first and its last cell.
        text: its task, hints and solution, as Markdown.
        stub: the code that the learner completes.
    """

    number: str
    title: str
    name: str
    argument: str
    first: int
    last: int
    text: str
    stub: str

    @property
    def body(self) -> str:
        """The task without its heading, hints and solution."""
        return DETAILS.sub("\n\n", self.text).partition("\n")[2].strip()

    @property
    def minutes(self) -> int:
        """What the task says that it takes."""
        return int(re.findall(r"· (\d+) minutes", self.text)[0])

    @property
    def defines(self) -> set[str]:
        """The names that the learner's code defines."""
        return set(re.findall(r"^(?:def |class )?(\w+)(?: =|\()", self.stub, re.M))

    @property
    def uses(self) -> set[str]:
        """The names that the solution reads and does not define."""
        code = "\n".join(re.findall(r"^```python\n(.+?)\n```$", self.text, re.M | re.S))
        nodes = list(ast.walk(ast.parse(code)))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        read = {name.id for name in names if isinstance(name.ctx, ast.Load)}
        made = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
        made |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        return read - made


def chapter(number: str) -> Path:
    """The file of a chapter, by its number. Raises ValueError if there is none."""
    found = sorted(NOTEBOOKS.glob(f"{number:0>2}_*.ipynb")) if number.isdigit() else []
    if not found:
        known = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
        raise ValueError(f"there is no chapter {number!r}: the last is {known[-1].name[:2]}")
    return found[0]


def read(path: Path) -> NotebookNode:
    """A notebook of format 4. Raises ValueError if the file is none."""
    try:
        content = path.read_bytes()
        text = content.decode(json.detect_encoding(content), "replace")
        return nbformat.reads(text, as_version=4)
    except Exception:  # nbformat has many ways to say that a file is no notebook
        what = "no notebook" if path.stat().st_size else "empty"
        raise ValueError(f"{path.name} is {what}") from None


def with_own(path: Path, own: Path | None) -> NotebookNode:
    """A chapter, and behind its exercises those of a teacher's own notebook that have its number.

    They have the form of the chapter's: a text, a stub and a check, whose exercise is declared in
    the module beside the notebook. Raises ValueError for what has another form.
    """
    notebook = read(path)
    if own is None:
        return notebook
    ours, private = tasks(notebook), read(own)
    try:
        theirs = [task for task in tasks(private) if task.minutes]
    except (ValueError, IndexError):
        raise ValueError(
            f"{own}: an exercise is a text with a line `### Exercise 4.9 · Title` and `· 10 "
            "minutes`, a cell with the tag exercise, and a cell with the tag check, `check.NAME(…)`"
        ) from None
    theirs = [task for task in theirs if int(task.number.split(".")[0]) == int(path.name[:2])]
    taken = {one for task in ours for one in (task.number, task.name)}
    if same := [task.number for task in theirs if taken & {task.number, task.name}]:
        raise ValueError(f"{own}: the chapter has an exercise like {', '.join(same)} already")
    cells = [cell for task in theirs for cell in private.cells[task.first : task.last + 1]]
    for cell in cells:
        cell.metadata["own"] = True
    end = ours[-1].last + 1
    notebook.cells[end:end] = cells
    return notebook


def tasks(notebook: NotebookNode) -> list[Task]:
    """The exercises of a chapter as the course has it, in their order."""
    cells = notebook.cells
    starts = [i for i, cell in enumerate(cells) if _starts(cell)]
    found = []
    for first in starts:
        checks = [i for i in range(first, len(cells)) if "check" in _tags(cells[i])]
        last = checks[0]
        (heading,) = _HEADING.finditer(cells[first].source)
        ((name, argument),) = check_calls(cells[last].source)
        inside = cells[first : last + 1]
        text = [cell.source for cell in inside if cell.cell_type == "markdown"]
        text[0] = text[0][heading.start() :]
        (stub,) = [cell.source for cell in inside if "exercise" in _tags(cell)]
        found.append(
            Task(heading[1], heading[2], name, argument, first, last, "\n\n".join(text), stub)
        )
    return found


def check_calls(source: str) -> Iterator[tuple[str, str]]:
    """(name of the check, its argument) of each line `check.NAME(ARGUMENT)` of a cell."""
    for statement in statements(source):
        if called := check_call(statement):
            yield called


def check_call(statement: ast.stmt) -> tuple[str, str] | None:
    """The name and the argument if a statement is nothing but `check.NAME(ARGUMENT)`."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(), name), [argument], [])):
            return name, ast.unparse(argument)
    return None


def statements(source: str) -> list[ast.stmt]:
    """The statements of a cell, its magics as calls; none if it is not Python, or is nested too
    deeply to be written again, as a sum of a thousand terms is."""
    try:
        plain = _PYTHON_MAGIC.sub("", source)
        parsed = ast.parse(TransformerManager().transform_cell(plain))
        ast.unparse(parsed)
        return parsed.body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def defined(statement: ast.stmt) -> set[str]:
    """The names that a statement of a cell defines.

    >>> sorted(defined(ast.parse("import a.b, c as d").body[0]))
    ['a', 'd']
    """
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {statement.name}
        case ast.Import() | ast.ImportFrom():
            return {(one.asname or one.name).partition(".")[0] for one in statement.names}
    inside = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return {node.id for node in inside if isinstance(node.ctx, ast.Store)}


def _starts(cell: NotebookNode) -> bool:
    return cell.cell_type == "markdown" and bool(_HEADING.search(cell.source))


def _tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])
