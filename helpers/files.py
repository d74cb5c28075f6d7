"""Files and folders that are written whole or not at all, and JSON objects."""

import glob
import json
import os
import shutil
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
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


def write_folder(folder: str | Path, files: Mapping[str, bytes]) -> None:
    """Write a folder with its files; a crash leaves the old folder or the new one, never a part.

    Args:
        folder: made by this call; one that is empty, or has only files of these names, is replaced.
        files: name → all bytes of the file.

    Raises FileExistsError for a folder that holds anything else, or a file in its place, and
    OSError if the folder cannot be written.
    """
    folder = Path(os.path.realpath(folder))
    if folder.exists():
        others = sorted({p.name for p in folder.iterdir()} - set(files)) if folder.is_dir() else []
        if others or not folder.is_dir():
            found = f"holds other files: {others[:3]}" if others else "is a file"
            raise FileExistsError(
                f"{folder} {found}, and nothing is overwritten: choose another folder, or move "
                "what is there"
            )
    temporary = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.part")
    replaced = temporary.with_suffix(".old")
    try:
        temporary.mkdir(parents=True)
        for name, content in files.items():
            write_whole(temporary / name, content)
        if folder.exists():
            os.rename(folder, replaced)
        os.rename(temporary, folder)
    except BaseException:
        if replaced.exists():
            os.rename(replaced, folder)
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


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
