"""Pack the course with its packages and its data into one archive, for a room without internet.

    python tools/teaching/room.py [FOLDER]    pack into FOLDER (build/, if none is given)

The archive is for machines with the system and the Python that pack it. It unpacks to one folder,
in which `make lab` and `make teach` work without a network: room.mk, which the Makefile includes,
points pip to the wheels beside it, wheels.txt has their hashes, and the data are in data/cache.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

from helpers.data import DataError, fetched_files, sources

ROOT = Path(__file__).resolve().parents[2]
NAME = "dot-product-to-gpt"
SYSTEM = f"{platform.system()}-{platform.machine()}".lower()
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"

SETTINGS = f"""\
# What the Makefile needs to know in a room without internet.
PYTHON := {PYTHON}
PIP_ARGS := --no-index --find-links wheels --no-build-isolation
"""
LOCKED = "--no-index\n--find-links wheels\n--require-hashes\n"  # before the wheels' hashes
GUIDE = f"""\
The course without internet

This folder has the course as of commit {{commit}}, the packages that it needs (wheels/) and all
data that its chapters download (data/cache/). The packages are for {SYSTEM} with {PYTHON}:
a machine with another system or another Python needs an archive that was packed on such a machine.

In this folder, run

    make lab

It installs the course into .venv and opens JupyterLab. If {PYTHON} has another name on your
machine, run `make lab PYTHON=NAME`. Without make, run these lines (on Windows, with
.venv\\Scripts\\python in place of .venv/bin/python):

    {PYTHON} -m venv .venv
    .venv/bin/python -m pip install --no-deps -r wheels.txt
    .venv/bin/python -m pip install --no-index --no-deps --no-build-isolation -e .
    .venv/bin/python tools/learn.py

What tools/teach.py needs is here, too (make teach). If pip says that a wheel is invalid or has
another hash, or a chapter that a file is missing or damaged, the copy is not whole: copy the
archive again and unpack it into a new folder. `make test` needs packages that are not here.
"""


def room(out: Path) -> Path:
    """Pack the course as committed, its packages and its data into one archive.

    Prints which changes are not committed, and so not packed. pip finds the packages with its own
    settings and with the flags in the environment variable PIP_ARGS. Data that are in the cache are
    not downloaded again.

    Args:
        out: the folder for the archive. An older archive of the same name is replaced, but only
            when the new one is whole.

    Returns the path of the archive. Raises RuntimeError if git, a package or data cannot be had, or
    if the archive cannot be written; the message says what to do.
    """
    out = out.absolute()  # git runs in another folder
    given = os.environ.get("PIP_ARGS", "")
    try:
        pip_args = shlex.split(given)
    except ValueError as error:
        raise RuntimeError(f"PIP_ARGS {given!r} cannot be split into flags: {error}") from error
    archive = out / f"{NAME}-{SYSTEM}-{PYTHON}.zip"
    try:
        out.mkdir(parents=True, exist_ok=True)
        # In the same folder, so that no other disk needs space.
        with tempfile.TemporaryDirectory(prefix=".room-", dir=out) as folder:
            work = Path(folder)
            course = work / "course.zip"
            _git("archive", "--format=zip", f"--prefix={NAME}/", f"--output={course}", "HEAD")
            if changed := _git("status", "--short").splitlines():
                print("Not committed, and so not packed:", *changed, sep="\n")
            print("Packing the data and the packages (some minutes) ...", flush=True)
            data = _data()
            wheels = _wheels(course, work, pip_args)
            guide = GUIDE.format(commit=_git("rev-parse", "--short", "HEAD").strip())
            with zipfile.ZipFile(course, "a", strict_timestamps=False) as packed:
                for kind, files in (("wheels", wheels), ("data/cache", data)):
                    for file in files:
                        packed.write(file, f"{NAME}/{kind}/{file.name}")
                packed.writestr(f"{NAME}/ROOM.txt", guide)
                packed.writestr(f"{NAME}/room.mk", SETTINGS)
                packed.writestr(f"{NAME}/wheels.txt", LOCKED + "".join(map(_pinned, wheels)))
            os.replace(course, archive)
    except OSError as error:
        raise RuntimeError(
            f"the archive cannot be written into {out} ({error}). It needs a folder in which you "
            "may write, and about twice its own size on that disk; name another folder"
        ) from error
    return archive


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
        )
    except FileNotFoundError:
        raise RuntimeError(
            "git is not here: the archive holds what is committed. Install git, and clone the "
            "course with it"
        ) from None
    if done.returncode:
        raise RuntimeError(
            f"git cannot read the course in {ROOT} ({done.stderr.strip()}). The archive holds what "
            "is committed: pack from a clone of the course, not from a download without its history"
        )
    return done.stdout


def _data() -> list[Path]:
    """The files that chapters download; all that cannot be had are in one error."""
    files, missing = [], []
    for name in fetched_files():
        try:
            files.append(sources.fetch(name))
        except DataError as error:
            missing.append(str(error))
    if missing:
        raise RuntimeError("\n\n".join(["nothing was packed, because data are missing", *missing]))
    return sorted(files)


def _pinned(wheel: Path) -> str:
    """A line for pip: the package of a wheel, its version, and the hash of the file."""
    name, version, *_ = wheel.name.split("-")
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def _wheels(course: Path, work: Path, pip_args: list[str]) -> list[Path]:
    """The wheels of all that `make teach` installs, and of what builds the course's own package."""
    files = ("requirements.txt", "requirements-teach.txt", "constraints.txt", "pyproject.toml")
    with zipfile.ZipFile(course) as committed:
        for file in files:
            (work / file).write_bytes(committed.read(f"{NAME}/{file}"))
    # The course itself is installed from its folder; pip then needs the packages that build it.
    lines = (work / "requirements.txt").read_text("utf-8").splitlines()
    lines = [line for line in lines if line != "-e ."]
    lines += tomllib.loads((work / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    (work / "requirements.txt").write_text("\n".join(lines), "utf-8")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    for option, name in (
        ("--requirement", "requirements-teach.txt"),
        ("--constraint", "constraints.txt"),
        ("--wheel-dir", "wheels"),
    ):
        command += [option, str(work / name)]
    if subprocess.run(command + pip_args).returncode:
        raise RuntimeError(
            "nothing was packed, because pip could not get all packages (see above). See that this "
            "machine is online, that the disk has room, and that `make lab` works here with the "
            "same PIP_ARGS; then pack again"
        )
    return sorted((work / "wheels").iterdir())


def main() -> None:
    description, *_ = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build")
    options = parser.parse_args()
    try:
        archive = room(options.folder)
    except RuntimeError as error:
        sys.exit(str(error))
    print(f"{archive} ({archive.stat().st_size / 1e6:,.0f} MB)")
    with archive.open("rb") as file:
        print("sha256:", hashlib.file_digest(file, "sha256").hexdigest())
    print(f"In the room: `python3 -m zipfile -e {archive.name} .`, then `make lab` in {NAME}/")


if __name__ == "__main__":
    main()
