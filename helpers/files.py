"""Files that are written in one piece or not at all, and JSON that is read without trusting it."""

import errno
import glob
import json
import os
import re
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

LFS_POINTER = b"version https://git-lfs.github.com/spec/"
FORGOTTEN = 3600  # seconds after which nobody can still be writing a file


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file beside its place and move it there: a crash leaves the old file or the new one.

    Folders are made as needed; where the path is a link, what it leads to is replaced, not the
    link. What earlier processes left when they were killed is swept away.
    Raises OSError when it cannot be written, as where a pipe or a device is, and leaves nothing
    behind.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "this is a pipe or a device, not a file", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob(f".{glob.escape(path.name)}.{'?' * 32}.part"):
        if re.fullmatch("[0-9a-f]{32}", old.name.split(".")[-2]):
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


def expect_no_pointer(path: Path) -> None:
    """Raise ValueError for the few lines that Git LFS leaves in place of a large file."""
    with path.open("rb") as file:
        if file.read(len(LFS_POINTER)) == LFS_POINTER:
            raise ValueError(
                f"{path} is a Git LFS pointer, a few lines of text in place of the file itself: "
                "fetch the file with `git lfs pull`, or download it from the project's page"
            )


def json_object(text: str | bytes) -> dict[str, Any]:
    """The object that a JSON text holds; ValueError for whatever else it is, however deep."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"it holds a {type(value).__name__}, not names with their values")
    return value
