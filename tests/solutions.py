"""The solution of an exercise, from the chapter, and what its check needs of the cells above it."""

import ast
import copy
import re
import symtable
from functools import cache
from itertools import pairwise

import nbformat

_SOLUTION = re.compile(
    r"<details><summary>Solution</summary>\n\n(?:.+\n\n)?```python\n(.+?)\n```\n\n</details>",
    re.DOTALL,
)


def solution(task: str) -> str:
    """The code of the closed solution in the text of an exercise, which has one."""
    found = _SOLUTION.findall(task)
    says = "an exercise has exactly one fold called Solution: one sentence and one python block"
    assert len(found) == 1, says
    return found[0]


def solved(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A copy in which each exercise's stub holds the solution."""
    result = copy.deepcopy(notebook)
    for task, stub in pairwise(result.cells):
        if "exercise" in stub.metadata.get("tags", []):
            stub.source = solution(task.source)
    return result


def needed(notebook: nbformat.NotebookNode, check: int) -> str:
    """The statements above a check that bind the names which it reads, and those that these read.

    A chapter is run whole, and compared, by nbval; here its trainings would take minutes. Calls
    whose value is not kept, like `torch.manual_seed(0)`, are left out.
    """
    cells = [cell for cell in notebook.cells[:check] if cell.cell_type == "code"]
    code = [cell.source for cell in cells if not cell.source.startswith("%%")]
    statements = [found for source in code for found in read_statements(source)]
    late = names(ast.parse(notebook.cells[check].source))[1]
    asked: set[str] = set()
    found: list[str] = []
    while late:  # a function may read what is defined below it
        asked |= late
        found, wanted = [], set(asked)
        for statement, bound, read, filled in reversed(statements):
            if not wanted.isdisjoint(bound | filled):
                wanted = wanted - bound | read
                found.append(ast.unparse(statement))
        late = {name for _, bound, _, _ in statements for name in bound} & wanted - asked
    return "\n".join(reversed(found))


@cache
def read_statements(source: str) -> list[tuple[ast.stmt, set[str], set[str], set[str]]]:
    """Each statement of a cell with its `names`: most cells are asked for by each exercise."""
    return [(s, *names(s)) for s in ast.parse(source).body]


def names(code: ast.AST) -> tuple[set[str], set[str], set[str]]:
    """The global names that it binds, those it reads (in functions, too), and x of `x[0] = 1`."""
    top = symtable.symtable(ast.unparse(code), "cell", "exec")
    bound = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    read = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    inner = list(top.get_children())
    for table in inner:  # grows while we walk
        read |= {s.get_name() for s in table.get_symbols() if s.is_global()}
        inner += table.get_children()
    if isinstance(code, ast.AugAssign):  # x += 1 reads x
        read |= {ast.unparse(code.target)}
    if isinstance(code, ast.For):  # a loop does not read its variables from above
        read -= {n.id for n in ast.walk(code.target) if isinstance(n, ast.Name)}
    items = [n for n in ast.walk(code) if isinstance(n, ast.Subscript)]
    filled = {ast.unparse(n.value) for n in items if isinstance(n.ctx, ast.Store)}
    return bound, read, filled
