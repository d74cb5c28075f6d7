"""How long a call takes."""

import timeit
from collections.abc import Callable
from typing import Any


def milliseconds(function: Callable[..., Any], *arguments: Any, repeats: int = 20) -> float:
    """The shortest of `repeats` calls, in milliseconds: other programs only ever add time."""
    return 1000 * min(timeit.repeat(lambda: function(*arguments), number=1, repeat=repeats))
