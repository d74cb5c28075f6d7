"""What a cell of a chapter needs: the statements before it that make the names it reads.

A chapter has been run whole, and compared, by nbval. To see one of its cells alive in JupyterLab it
need not be run again: a cell that reads `words` needs the statement that assigns it, and what that
one reads, but no training between them. Nothing here is a test.

A statement is needed if it binds a needed name, stores into it (`x.data *= 2`, `x[0] = 1`), or is a
call of it or with it whose value is not kept (`x.fill_(0)`, `torch.manual_seed(0)`). That is a
guess, as Python can do anything anywhere: a name missed is a NameError and fails the test, a change
missed gives other numbers. So these tests ask whether the browser shows what the kernel holds; the
chapter's numbers are compared by nbval.
"""

import ast
import builtins
import copy
import re
import symtable
from collections.abc import Iterator
from itertools import pairwise

import nbformat

# For a chapter's trainings: after three steps a model is all that an explorer of it needs.
SHORT_TRAININGS = """
import helpers.training as _training
def _short(train):
    return lambda *args, steps, **how: train(*args, steps=min(steps, 3), **how)
_training.train = _short(_training.train)
import helpers.encoder_decoder as _pairs
def _few(fit):
    return lambda model, draw, steps, *how, **more: fit(model, draw, min(steps, 3), *how, **more)
_pairs.fit = _few(_pairs.fit)
"""
_SOLUTION = re.compile(
    r"<details><summary>Solution</summary>\n\n(?:.+\n\n)?```python\n(.+?)\n```\n\n</details>",
    re.DOTALL,
)
_DEFINITIONS = (ast.Assign, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def lively(notebook: nbformat.NotebookNode) -> list[int]:
    """The indices of the cells to run: each that shows an explorer, and the first exercise."""
    statements = [(i, statement) for i, cell in _code(notebook) for statement in cell.body]
    imports = [
        s for _, s in statements if isinstance(s, ast.ImportFrom) and s.module == "explorers"
    ]
    names = {alias.name for statement in imports for alias in statement.names}
    values = ((i, s.value) for i, s in statements if isinstance(s, ast.Assign | ast.Expr))
    calls = ((i, value.func) for i, value in values if isinstance(value, ast.Call))
    shown = {i for i, called in calls if isinstance(called, ast.Name) and called.id in names}
    cells = enumerate(notebook.cells)
    stub = next(i for i, cell in cells if "exercise" in cell.metadata.get("tags", []))
    return sorted(shown | {stub, stub + 1})  # with its check


def solution(task: str) -> str:
    """The code of the closed solution in the text of an exercise, which has one."""
    (code,) = _SOLUTION.findall(task)
    return code


def solved(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A copy in which each exercise's stub holds the solution."""
    result = copy.deepcopy(notebook)
    for task, stub in pairwise(result.cells):
        if "exercise" in stub.metadata.get("tags", []):
            stub.source = solution(task.source)
    return result


def needed(notebook: nbformat.NotebookNode, targets: list[int]) -> dict[int, str]:
    """{index of a target: the statements to run before it, and after the target before it}."""
    statements = [(i, statement) for i, cell in _code(notebook) for statement in cell.body]
    imports = [s for _, s in statements if isinstance(s, ast.Import | ast.ImportFrom)]
    # What is called of torch alone, like manual_seed, is called for what it changes.
    modules = {name for s in imports for name in _bound_and_read(s)[0]} - {"torch"}
    lines: dict[int, list[str]] = {target: [] for target in sorted(targets)}
    wanted: set[str] = set()
    for index, statement in reversed(statements):
        bound, read = _bound_and_read(statement)
        changed = set(_changed(statement)) - modules
        if index in lines or not wanted.isdisjoint(bound | changed):
            if isinstance(statement, _DEFINITIONS):  # what the name was before does not matter
                wanted -= bound
            wanted |= read
            if index not in lines:
                following = min(target for target in targets if target > index)
                lines[following].append(ast.unparse(statement))
    return {target: "\n".join(reversed(found)) for target, found in lines.items()}


def _code(notebook: nbformat.NotebookNode) -> list[tuple[int, ast.Module]]:
    cells = enumerate(notebook.cells)
    return [(i, ast.parse(cell.source)) for i, cell in cells if cell.cell_type == "code"]


def _bound_and_read(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """The global names that it binds, and those it reads, in functions too; no builtins."""
    top = symtable.symtable(ast.unparse(statement), "cell", "exec")
    bound = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    read = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    inner = list(top.get_children())
    for table in inner:  # grows while we walk
        read |= {s.get_name() for s in table.get_symbols() if s.is_global()}
        inner += table.get_children()
    return bound, read - set(dir(builtins))


def _changed(statement: ast.stmt) -> Iterator[str]:
    """Names whose objects it may change without binding them."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield from _owner(node)
        elif isinstance(statement, ast.Expr) and isinstance(node, ast.Call):
            for part in (node.func, *node.args):
                yield from _owner(part)


def _owner(node: ast.expr) -> Iterator[str]:
    """x of x, x.a, x[0], x(), x.a[0].b() ..."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Starred):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Name):
        yield node.id
