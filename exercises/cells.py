"""What the notebook says about an answer: which cell made it, and whether that cell has failed.

A check is given an object and cannot see that the cell above it was changed and then stopped with
an error, so that the object is still that of the version before. IPython tells of every cell.
"""

import ast
import re
from typing import Any

from IPython.core.getipython import get_ipython

_DEFINED = re.compile(r"^(?:def|class)\s+(\w+)|^(\w+)\s*=(?!=)", re.MULTILINE)
_running = ""  # the source of the cell that runs
_before: dict[str, Any] = {}  # name → its value when that cell began
_failed: dict[str, str] = {}  # name → the error of the last cell that was to define it


def _begin(info: Any) -> None:
    global _running
    _running = info.raw_cell or ""
    _before.clear()
    values = _values()
    _before.update({name: values.get(name) for name in _names_defined(_running)})


def _end(result: Any) -> None:
    error = result.error_before_exec or result.error_in_exec
    values = _values()
    for name, old in _before.items():
        if error and values.get(name) is old:
            _failed[name] = type(error).__name__
        else:
            _failed.pop(name, None)


def _values() -> dict[str, Any]:
    shell = get_ipython()
    return shell.user_ns if shell else {}


def _names_defined(source: str) -> list[str]:
    """By how its lines begin: a cell with a syntax error cannot be parsed."""
    return [function or name for function, name in _DEFINED.findall(source)]


def judged() -> set[str]:
    """The names that the running cell mentions: among them that of the answer."""
    try:
        return {node.id for node in ast.walk(ast.parse(_running)) if isinstance(node, ast.Name)}
    except SyntaxError:  # a cell with magics
        return set()


def outdated() -> tuple[str, str] | None:
    """(name, error) of an answer whose cell has failed since; None if all is as it seems."""
    values = _values()
    # What the running cell itself has defined anew, above its check, is no longer what it was.
    mended = {name for name, old in _before.items() if values.get(name) is not old}
    names = sorted((judged() & set(_failed)) - mended)
    return next(((name, _failed[name]) for name in names), None)


def _watch() -> None:
    shell = get_ipython()
    if shell is not None:  # a notebook, not a test
        shell.events.register("pre_run_cell", _begin)
        shell.events.register("post_run_cell", _end)


_watch()
