"""Files that are written whole or not at all, folders that only one may use, and JSON objects."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MADE = b'"made_with": "From the Dot Product to GPT"\n}'


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file (of a link, the one that it leads to); a crash leaves the old one or the new."""
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_folder(folder: str | Path, files: Mapping[str, bytes]) -> None:
    """Write files of a folder together; after a crash, `newest` finds all old ones or all new ones.

    FileExistsError if some are there that this did not write: only a config.json of ours ends with
    `MADE`.
    """
    folder = Path(folder)
    part, new, config = folder / ".part", folder / ".new", folder / "config.json"
    _take_over(new)  # what a crash left
    theirs = [name for name in files if (folder / name).exists()]
    if theirs and not (config.exists() and config.read_bytes().endswith(MADE)):
        raise FileExistsError(f"{theirs[0]} in {folder} is not of this course: choose another one")
    shutil.rmtree(part, ignore_errors=True)
    try:
        for name, content in files.items():
            write_whole(part / name, content)
        part.rename(new)  # from this moment on, the new ones count
    finally:
        shutil.rmtree(part, ignore_errors=True)
    _take_over(new)


def _take_over(new: Path) -> None:
    if new.exists():
        for file in new.iterdir():
            file.replace(new.parent / file.name)
        new.rmdir()


def newest(folder: str | Path, name: str) -> Path:
    """Return the path of a file that `write_folder` wrote."""
    new = Path(folder) / ".new" / name
    return new if new.exists() else Path(folder) / name


@contextmanager
def alone_in(folder: str | Path) -> Iterator[None]:
    """Make a folder, and keep others out of `alone_in` of it in the `with` block (not on Windows).

    FileExistsError if somebody is in.
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
        except OSError as error:  # others: some network's disk
            if isinstance(error, BlockingIOError):
                raise FileExistsError(f"another run is at work in {folder}") from None
        yield
    finally:
        os.close(place)


def read_json(path: Path) -> dict[str, Any]:
    try:
        return json_object(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def json_object(text: str | bytes) -> dict[str, Any]:
    """Return the object that a JSON text holds. Raises ValueError for any other text."""
    if not isinstance(value := json.loads(text), dict):
        raise ValueError(f"it holds a {type(value).__name__}, not names with their values")
    return value
