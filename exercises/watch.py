"""Watching an answer at work: when it does not end, loops, or calls what the task forbids."""

import ctypes
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

PATIENCE = 10  # what merely waits, as for a lock, may do so for that many times as long


def clock() -> tuple[float, float]:
    """Now: in seconds, and in seconds of this process's work."""
    return time.monotonic(), time.process_time()


def spent(began: tuple[float, float]) -> float:
    """Seconds of work since then, however busy the machine is. Several threads count as one, and a
    tenth of the time counts even if nothing was done in it."""
    passed, worked = (now - then for now, then in zip(clock(), began, strict=True))
    return max(min(passed, worked), passed / PATIENCE)


class TimeIsUp(BaseException):
    """Raised inside a call that has lasted too long; no `except Exception` of the call stops it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[Callable[[], None]]:
    """Raise TimeIsUp in the block when it has worked for that long (see `spent`), on every system
    and in any thread.

    Gives a function that lets the time begin anew.

    Python delivers it between two instructions: it ends any loop written in Python, but not a
    single endless call inside a C library, and a loop that catches *every* exception outlives it
    (it is sent again, twice a second). An import is not interrupted, which would leave half a
    module behind: the time begins anew. The thread that waits has ended when the block has.
    """
    thread, done, over = threading.get_ident(), threading.Event(), threading.Lock()
    sent, began = False, clock()

    def begin_anew() -> None:
        nonlocal began
        began = clock()

    def send() -> None:
        nonlocal sent
        wait = seconds
        while not done.wait(wait):
            if _is_importing(thread):
                begin_anew()
            if (left := seconds - spent(began)) > 0:
                wait = max(left, 0.01)
                continue
            with over:
                if not done.is_set():
                    sent = True
                    _raise_in(thread, TimeIsUp)
            wait = 0.5

    watch = threading.Thread(target=send, daemon=True)
    watch.start()
    try:
        yield begin_anew
    finally:
        while True:
            try:
                with over:  # from here on nothing is sent
                    done.set()
                watch.join()
                break
            except TimeIsUp:  # came through while we were at it
                continue
        if sent:  # what was sent at the last moment must come now, and not later
            # subtle: to take it back (by sending None) would leave Python 3.11 looking for it at
            # every instruction, and a trace of instructions, as in `executed`, would never end.
            with suppress(TimeIsUp):
                _raise_in(thread, TimeIsUp)
                while True:
                    pass


def _is_importing(thread: int) -> bool:
    frame = sys._current_frames().get(thread)
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None


def _raise_in(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


class Calls(TorchFunctionMode):
    """Which functions of torch were called, how often, and how many entries their results had.

    names: as torch calls them, without underscores: `a @ b` is "matmul", `a[i]` is "getitem".
    entries: without what only lays tensors side by side, or is an attribute (`a.T`: "get").
    """

    NO_WORK = frozenset({"cat", "concat", "concatenate", "stack", "vstack", "get"})

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.number = self.entries = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "").strip("_")
        self.names.add(name)
        self.number += 1
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and name not in self.NO_WORK:
            self.entries += result.numel()
        return result


def calls_of(function: Any, *args: Any) -> Calls:
    """Call the function and tell what it called."""
    with Calls() as calls:
        function(*args)
    return calls


def modules_of(function: Any, *args: Any) -> set[str]:
    """Call the function and tell the modules of all Python functions that run, at any depth."""
    names: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            names.add(frame.f_globals.get("__name__", ""))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function(*args)
    finally:
        sys.setprofile(before)
    return names


def executed(function: Any, *args: Any) -> int:
    """How many instructions of the function's own file one call runs; libraries do not count.

    A number that grows with the size of the arguments means a loop, a comprehension or a
    recursion in the learner's code, whatever it calls. 0 for what is not written in Python.
    """
    written = inspect.unwrap(function)  # what stands under a decorator
    while isinstance(written, partial):
        written = inspect.unwrap(written.func)
    if not hasattr(written, "__globals__"):  # an object that can be called, or a module
        written = inspect.unwrap(getattr(written, "forward", type(written).__call__))
    own = getattr(written, "__globals__", None)
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_globals is not own:
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*args)
    finally:
        sys.settrace(before)
    return count
