"""Judge what students handed in of one chapter; `grade.py` starts this as a process of its own.

The chapter runs once, as the course has it. For each notebook the process then forks, and the fork
runs only the student's own cells: thirty notebooks cost one run of the chapter and thirty times
what the students wrote. `exercises` judges, with the inputs that COURSE_SECRET gives.

A fork has limits of time and memory, writes only into an empty folder of its own, starts no
process and reaches no other machine. If an exercise ends its fork, another fork goes on behind it.
This keeps accidents apart. It is no sandbox: code that is written to get out of it can do so.
"""

import ast
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from ipaddress import ip_address
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from teaching.exercises_of import check_call, read, statements, tasks

GRACE = 15.0  # seconds of silence beyond the limit after which a fork is killed
FILE_SIZE = 100 * 2**20  # bytes of a file that a student's code writes
WRITES = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.chown"}
WRITES |= {"os.link", "os.symlink", "os.utime", "shutil.rmtree"}
STARTS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty"}
STARTS |= {"os.kill", "os.killpg", "pty.spawn"}
SENDS = {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"}


@dataclass
class Submission:
    """The code cells of a notebook, and how far its exercises have been judged.

    Attributes:
        file: what names it in the rows.
        code: the sources of all code cells.
        start: the index of the first code cell of the exercises.
        rows: the rows so far, by the exercise's name.
        current: the exercise whose cells run.
        deadline: when its fork will be killed, in seconds of the monotonic clock.
    """

    file: str
    code: list[str]
    start: int
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    current: str = ""
    deadline: float = 0.0

    @property
    def fatal(self) -> set[str]:
        """The exercises that have ended a fork: their cells do not run again."""
        return {name for name, row in self.rows.items() if row.get("fatal")}


class Chapter:
    """A chapter that has run.

    Args:
        path: the chapter as the course has it.
        names: the names of the exercises that are judged.
    """

    def __init__(self, path: Path, names: Sequence[str]):
        from IPython.core.interactiveshell import InteractiveShell

        self.shell = InteractiveShell.instance()
        notebook = read(path)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        self.handed_out = {cell.source.strip() for cell in code}
        self.tasks = [task for task in tasks(notebook) if task.name in names]
        for cell in code:
            if not {"check", "deeper", "evidence"} & set(cell.metadata.get("tags", [])):
                self.shell.run_cell(cell.source).raise_error()
        self.checks = vars(import_module(f"exercises.{path.stem[3:]}"))
        self.seal = self._seal()

    def judge(
        self, given: Submission, seconds: float, tell: Callable[[dict[str, Any]], None]
    ) -> None:
        """Run a student's cells, and tell the row of each exercise that has none yet.

        Args:
            given: the submission.
            seconds: what a cell may take.
            tell: called with {"current": name} before each cell, and with each row.
        """
        answers = self._answers(given)
        for task in self.tasks:
            argument, own = answers[task.name]
            if task.name in given.fatal:
                continue
            began = time.monotonic()
            problem = ""
            for source in own:
                tell({"current": task.name})
                problem = self._run(source, given.code, seconds)
                if problem:
                    break
            if task.name in given.rows:
                continue
            tell({"current": task.name})
            verdict = ("error", problem, "") if problem else self._verdict(task.name, argument)
            row = dict(zip(("outcome", "message", "detail"), verdict, strict=True))
            tell(row | {"exercise": task.name, "seconds": time.monotonic() - began})

    def _answers(self, given: Submission) -> dict[str, tuple[str, list[str]]]:
        """By exercise: what its check is given, and the student's cells that lead to it.

        These are the cells between the check before it and its own. Where the check is gone, they
        are those that define what it would be given.
        """
        names = {task.name for task in self.tasks}
        found: dict[str, tuple[str, list[str]]] = {}
        waiting: list[str] = []
        for source in given.code[given.start :]:
            if source.strip() not in self.handed_out:
                waiting.append(source)
            for statement in statements(source):
                if (call := check_call(statement)) and call[0] in names:
                    name, argument = call
                    found[name] = argument, [*found.get(name, ("", []))[1], *waiting]
                    waiting = []
        own = [c for c in given.code[given.start :] if c.strip() not in self.handed_out]
        for task in self.tasks:
            cells = [c for c in own if any(_defines(c, name) for name in task.defines)]
            found.setdefault(task.name, (task.argument, cells))
        return found

    def _run(self, source: str, code: Sequence[str], seconds: float) -> str:
        """Run a cell without its checks; what stopped it, "" if nothing did.

        Where the cell lacks a name that another cell of the student defines, that one runs first.
        """
        from exercises.watch import TimeIsUp, time_limit

        body = statements(source)
        checks = [task.name for task in self.tasks]
        kept = [s for s in body if not ((call := check_call(s)) and call[0] in checks)]
        plain = ast.unparse(ast.Module(kept, [])) if body else source
        error: BaseException | None = None
        try:
            with time_limit(seconds):
                for _ in range(10):
                    result = self.shell.run_cell(plain)
                    error = result.error_before_exec or result.error_in_exec
                    name = error.name if isinstance(error, NameError) else ""
                    definer = [c for c in code if name and c != source and _defines(c, name)]
                    if not definer:
                        break
                    self.shell.run_cell(definer[-1])
        except TimeIsUp as late:
            error = late
        if isinstance(error, TimeIsUp):
            return f"A cell was stopped after {seconds:g} seconds. Is there an endless loop?"
        return f"A cell stopped with {_told(error)}" if error else ""

    def _verdict(self, name: str, argument: str) -> tuple[str, str, str]:
        """Outcome, message and detail of an exercise."""
        try:
            answer = eval(argument, self.shell.user_ns)
        except Exception as error:
            return "error", f"`{argument}` cannot be computed: {_told(error)}", ""
        exercise = self.checks[name]
        report = exercise(answer)
        # The check must still be what it was, and must refuse what is surely wrong.
        if self._seal() != self.seal or exercise(_wrong(exercise)).outcome == "right":
            return "error", "The notebook has changed the check itself: read its code.", ""
        return report.outcome, report.message, report.detail

    def _seal(self) -> list[dict[str, int]]:
        """What the checks are made of, by identity."""
        frame = sys.modules["exercises.check"]
        parts = [frame, frame.Exercise, frame.Declared, frame.ModuleExercise]
        parts += [self.checks[task.name] for task in self.tasks]
        held = [self.checks, *map(vars, parts)]
        return [{name: id(x) for name, x in one.items() if name != "_failed"} for one in held]


def _wrong(exercise: Any) -> Any:
    """An answer that is surely wrong: a classic mistake, if the exercise names one."""
    mistakes = exercise.mutants() if hasattr(exercise, "mutants") else ()
    return next((answer for _, answer in mistakes), lambda *args, **kwargs: None)


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:600]


def _defines(source: str, name: str) -> bool:
    """Does a statement of the cell define the name?"""
    for statement in statements(source):
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            if statement.name == name:
                return True
        elif any(
            isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
            for node in ast.walk(statement)
        ):
            return True
    return False


def judged(
    chapter: Chapter, submissions: Sequence[Submission], seconds: float, memory: int, jobs: int
) -> Iterator[Submission]:
    """Judge submissions side by side; yields each when all its rows are there.

    Args:
        chapter: the chapter that has run.
        submissions: what was handed in.
        seconds: what a cell may take.
        memory: bytes that a fork may use beyond the chapter's.
        jobs: how many forks run at a time.
    """
    context = get_context("fork")
    waiting, running = list(submissions), dict[Connection, tuple[Any, Any, Submission]]()
    while waiting or running:
        while waiting and len(running) < jobs:
            given = waiting.pop(0)
            here, there = context.Pipe(duplex=False)
            folder = tempfile.TemporaryDirectory()
            process = context.Process(
                target=_fork, args=(chapter, given, seconds, memory, folder.name, there)
            )
            given.deadline, given.current = time.monotonic() + seconds + GRACE, ""
            process.start()
            there.close()
            running[here] = process, folder, given
        for connection in wait([*running], timeout=0.5):
            process, folder, given = running[connection]  # type: ignore[index]
            try:
                said = json.loads(connection.recv_bytes(2**20))  # type: ignore[union-attr]
            except (EOFError, OSError, ValueError):
                said = None  # it has ended, or writes what is no message
            if said and "current" in said:
                given.current = said["current"]
                given.deadline = time.monotonic() + seconds + GRACE
            elif said:
                given.rows[said["exercise"]] = said
            else:
                _end(process, folder, connection)
                del running[connection]  # type: ignore[arg-type]
                missing = [t.name for t in chapter.tasks if t.name not in given.rows]
                if not missing:
                    yield given
                    continue
                culprit = given.current if given.current in missing else missing[0]
                given.rows[culprit] = _fatal(culprit, process.exitcode, seconds)
                waiting.insert(0, given)
        for process, _, given in running.values():
            if time.monotonic() > given.deadline:
                process.kill()


def _fatal(name: str, status: int | None, seconds: float) -> dict[str, Any]:
    """The row of an exercise that has ended its fork."""
    why = "ended the program"
    if status == -signal.SIGKILL:
        why = f"did not end within {seconds:g} seconds, and could not be stopped otherwise"
    elif status is not None and status < 0:
        why = f"crashed ({signal.Signals(-status).name})"
    message = f"The code of this exercise {why}."
    return {
        "exercise": name,
        "outcome": "error",
        "message": message,
        "detail": "",
        "seconds": 0.0,
        "fatal": True,
    }


def _end(process: Any, folder: Any, connection: Any) -> None:
    process.kill()
    process.join()
    connection.close()
    with suppress(OSError):
        folder.cleanup()


def _fork(
    chapter: Chapter,
    given: Submission,
    seconds: float,
    memory: int,
    folder: str,
    connection: Connection,
) -> None:
    """Judge one submission, and end without waiting for threads that it has started."""

    def tell(what: dict[str, Any]) -> None:
        connection.send_bytes(json.dumps(what).encode())

    try:
        confine(folder, memory)
        chapter.judge(given, seconds, tell)
    finally:
        os._exit(0)


def confine(folder: str, memory: int) -> None:
    """Give this process its limits for good.

    Args:
        folder: the only folder that it may write to.
        memory: bytes that it may use beyond what it has now (on Linux).
    """
    import resource

    os.chdir(folder)
    tempfile.tempdir = folder
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    inside = os.path.realpath(folder) + os.sep

    def is_outside(path: Any) -> bool:
        if not isinstance(path, (str, bytes, os.PathLike)):  # an open file, or no path at all
            return False
        real = os.path.realpath(os.fsdecode(path))
        return not f"{real}{os.sep}".startswith(inside) and real != os.devnull

    def watch(event: str, args: tuple) -> None:
        if event == "open":
            flags = args[2] if isinstance(args[2], int) else 0
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and is_outside(args[0]):
                raise PermissionError(f"writing to {args[0]} is not allowed while grading")
        elif event in WRITES and any(map(is_outside, args)):
            raise PermissionError("files outside its own folder are not changed while grading")
        elif event in STARTS:
            raise PermissionError(
                "no other process is started or stopped while grading (a line that begins with ! "
                "would start one)"
            )
        elif (event in SENDS and not _is_here(args[1])) or (
            event == "socket.getaddrinfo" and not _is_here(args[:1])
        ):
            raise PermissionError("no other machine is reached while grading")

    sys.addaudithook(watch)


def _is_here(address: Any) -> bool:
    """Is a socket's address on this machine?

    >>> _is_here(("127.0.0.1", 80)), _is_here(("localhost", 80)), _is_here(("10.0.0.1", 80))
    (True, True, False)
    """
    if not isinstance(address, tuple):  # the path of a socket in the file system
        return True
    host = address[0]
    if host in (None, "", "localhost", b"localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def main() -> int:
    """Read a request from stdin, as JSON, and write a line of JSON for each submission."""
    request = json.loads(sys.stdin.read())
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    path = Path(request["chapter"])
    os.chdir(path.parent)
    chapter = Chapter(path, request["exercises"])
    submissions = [Submission(**one) for one in request["submissions"]]
    limits = request["seconds"], request["memory"], request["jobs"]
    for given in judged(chapter, submissions, *limits):
        rows = [given.rows[task.name] for task in chapter.tasks]
        print(json.dumps({"file": given.file, "rows": rows}), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
