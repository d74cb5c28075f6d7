"""Files that are written whole or not at all, folders that only one may use, and JSON objects."""

import glob
import json
import os
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

LFS_POINTER = b"version https://git-lfs.github.com/spec/"
FORGOTTEN = 3600  # seconds after which nobody can still be writing a file


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file and its folders; a crash leaves the old file or the new one, never a part.

    Args:
        path: the file; of a link, the file that it leads to.
        content: all bytes of the file.

    Removes what killed processes left of the same file. Raises OSError if it cannot be written.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob(f".{glob.escape(path.name)}.{'?' * 32}.part"):
        with suppress(OSError):  # another process may have moved it by now
            if time.time() - old.stat().st_mtime > FORGOTTEN:
                old.unlink()
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def alone_in(folder: str | Path) -> Iterator[None]:
    """Make a folder, and keep all others out of `alone_in` of it while the `with` block lasts.

    Raises FileExistsError if somebody is in already, OSError where no file can be made. The
    system forgets a process that has ended, however it ended. Where folders cannot be locked, as on
    Windows, nobody is kept out.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()  # not only after hours
    if os.name == "nt":
        yield
        return
    import fcntl

    place = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileExistsError(
                f"another run is at work in {folder}: wait for its end, or choose another folder"
            ) from None
        except OSError:
            pass  # some network's disk
        yield
    finally:
        os.close(place)


def expect_no_pointer(path: Path) -> None:
    """Raise ValueError for the few lines that Git LFS leaves in place of a large file."""
    with path.open("rb") as file:
        if file.read(len(LFS_POINTER)) == LFS_POINTER:
            raise ValueError(
                f"{path} is a Git LFS pointer, a few lines of text in place of the file itself: "
                "fetch the file with `git lfs pull`, or download it from the project's page"
            )


def json_object(text: str | bytes) -> dict[str, Any]:
    """Return the object that a JSON text holds. Raises ValueError for any other text."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"it holds a {type(value).__name__}, not names with their values")
    return value
