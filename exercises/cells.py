"""What the notebook says about an answer: which cell made it, and whether that cell has changed.

A check is given an object and cannot see that the cell above it was changed and then stopped with
an error, or defines another name by now, so that the object is still that of the version before.
IPython tells of every cell.
"""

import ast
import re
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from IPython.core.getipython import get_ipython

_DEFINED = re.compile(r"^(?:async +)?(def|class)\s+(\w+)|^(\w+)\s*=(?!=)", re.MULTILINE)
_ALIKE = 0.75  # how similar two names are of which one is a slip: centre and center are 0.83


@dataclass(eq=False)
class _Run:
    """One run of a cell: the names that it defines, each with its kind, and what became of it.

    after: the identities of their values, and not the values, which would never be freed.
    """

    cell: str | None = None  # its id, where the notebook tells it
    source: str = ""
    number: int = 0
    names: dict[str, str] = field(default_factory=dict)
    after: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # name → the error that left it as it was


_running = _Run()
_before: dict[str, Any] = {}  # name → its value when the running cell began
_of_cell: dict[str, _Run] = {}  # id of a cell → its last run
_of_name: dict[str, _Run] = {}  # name → the last run that was to define it
_last = _Run()  # the last run that was to define anything


def _begin(info: Any) -> None:
    global _running, _last
    source, cell = info.raw_cell or "", getattr(info, "cell_id", None)
    _running = _Run(cell, source, _running.number + 1, _names_defined(source))
    values = _values()
    _before.clear()
    _before.update({name: values.get(name) for name in _running.names})
    if cell:
        _of_cell[cell] = _running
    _of_name.update(dict.fromkeys(_running.names, _running))
    if _running.names:
        _last = _running


def _end(result: Any) -> None:
    error = result.error_before_exec or result.error_in_exec
    values = _values()
    _running.after = {name: id(values.get(name)) for name in _running.names}
    if error:
        left = [name for name, old in _before.items() if values.get(name) is old]
        _running.failed = dict.fromkeys(left, type(error).__name__)
    _before.clear()


def _values() -> dict[str, Any]:
    shell = get_ipython()
    return shell.user_ns if shell else {}


def _names_defined(source: str) -> dict[str, str]:
    """name → kind, by how its lines begin: a cell with a syntax error cannot be parsed."""
    found = _DEFINED.findall(source)
    return {name or value: kind or "value" for kind, name, value in found}


def _judged(exercise: str) -> list[str]:
    """The name of the answer that the running cell gives to the exercise's check, unless the cell
    itself has defined it anew."""
    try:
        nodes = list(ast.walk(ast.parse(_running.source)))
    except SyntaxError:  # a cell with magics
        return []
    checks = [
        node
        for node in nodes
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == exercise
    ]
    names = {arg.id for check in checks for arg in check.args[:1] if isinstance(arg, ast.Name)}
    values = _values()
    return sorted(n for n in names if n not in _before or values.get(n) is _before[n])


def _last_of(name: str) -> _Run | None:
    """The run that defined the name, or was to; None if something else has defined it since."""
    run = _of_name.get(name)
    if run is None or (run is not _running and id(_values().get(name)) != run.after.get(name)):
        return None
    return run


def outdated(exercise: str) -> str:
    """What to say of an answer whose cell has failed since; "" if all is as it seems."""
    for name in _judged(exercise):
        run = _last_of(name)
        if run is not None and name in run.failed:
            error = run.failed[name]
            article = "an" if error[0] in "AEIO" or error.startswith("Unb") else "a"
            return (
                f"The cell that defines `{name}` failed with {article} {error}, so `{name}` "
                "still has its old definition. Fix and rerun that cell, then rerun this one."
            )
    return ""


def renamed(exercise: str, guess: bool) -> str:
    """What to say of an answer whose cell defines another name by now; "" if none does.

    guess: take a similar name for it that another cell defines, as not every notebook tells which
    cell is which.
    """
    for name in _judged(exercise):
        old = _last_of(name)
        if old is None:
            continue
        same_cell = _of_cell.get(old.cell or "", old)
        for run in (same_cell, _last) if guess else (same_cell,):
            if run.number <= old.number or name in run.names:
                continue
            new = [other for other in run.names if other not in old.names]
            new = [other for other in new if run.names[other] == old.names[name]] or new
            if run is not same_cell:
                new = [other for other in new if _similarity(other, name) >= _ALIKE]
            if new:
                # Helper functions stand above what uses them.
                similar = [other for other in new if _similarity(other, name) >= _ALIKE]
                found = (similar or new)[-1]
                return f"You defined `{found}`; this check looks for `{name}`."
    return ""


def _similarity(name: str, other: str) -> float:
    one, two = (text.replace("_", "").lower() for text in (name, other))
    return SequenceMatcher(None, one, two).ratio()


def _watch() -> None:
    shell = get_ipython()
    if shell is not None:  # a notebook, not a test
        shell.events.register("pre_run_cell", _begin)
        shell.events.register("post_run_cell", _end)


_watch()
