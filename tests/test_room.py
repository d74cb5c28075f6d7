"""tools/teaching/room.py: what is in the archive, and what stands in its place when packing fails.

A made-up course of two toy packages and one data file is packed. No test leaves this machine.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT
from teaching import room as tool

from helpers import data
from helpers.data import sources

DATA = b"To be, or not to be\n"


def wheel(folder: Path, name: str) -> None:
    info = f"{name}-1.0.dist-info/"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as file:
        file.writestr(info + "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        file.writestr(
            info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(info + "RECORD", "")


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=Test", "-c", "user.email=test@localhost"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A committed course, the index of its packages, a cache with its data, and a place to pack."""
    for name in list(os.environ):
        if name.upper().startswith(("PIP_", "GIT_")) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    for name in ("course", "index", "cache", "out", "sources"):
        (tmp_path / name).mkdir()
    root = tmp_path / "course"
    shutil.copy(ROOT / "Makefile", root)
    (root / "requirements.txt").write_text("toy==1.0\n-e .\n")
    (root / "requirements-teach.txt").write_text("-r requirements.txt\ntoyteach==1.0\n")
    (root / "constraints.txt").write_text("toy==1.0\n")
    (root / "pyproject.toml").write_text('[build-system]\nrequires = ["toybuilder>=1"]\n')
    git(root, "init")
    git(root, "add", ".")
    git(root, "commit", "-m", "All")
    wheel(tmp_path / "index", "toy")
    wheel(tmp_path / "index", "toyteach")
    wheel(tmp_path / "index", "toybuilder")
    (tmp_path / "cache/plays.txt").write_bytes(DATA)
    os.utime(tmp_path / "cache/plays.txt", (0, 0))  # a zip knows no year before 1980
    line = f"plays.txt {hashlib.sha256(DATA).hexdigest()} plays==1.0\n"
    (tmp_path / "sources/registry.txt").write_text(line)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tool, "ROOT", root)
    monkeypatch.setattr(sources, "SOURCES", tmp_path / "sources")
    monkeypatch.setattr(data, "_FILES", {"glove": (), "plays": ("plays.txt",)})
    monkeypatch.setenv("DOT2GPT_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_ARGS", "--no-index --find-links index")
    return tmp_path


def test_the_archive_has_all_that_make_lab_needs(course, capfd):
    (course / "course/Makefile").write_text("changed")
    archive = tool.room(Path("out"))
    assert list((course / "out").iterdir()) == [archive]
    said, _ = capfd.readouterr()
    assert "Not committed, and so not packed:\n M Makefile\n" in said

    subprocess.run([sys.executable, "-m", "zipfile", "-e", archive, course], check=True)
    folder = course / tool.NAME
    assert (folder / "Makefile").read_bytes() == (ROOT / "Makefile").read_bytes()
    wheels = sorted(path.name for path in (folder / "wheels").iterdir())
    assert wheels == [f"{name}-1.0-py3-none-any.whl" for name in ("toy", "toybuilder", "toyteach")]
    assert (folder / "data/cache/plays.txt").read_bytes() == DATA
    head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=course / "course", text=True)
    guide = (folder / "ROOM.txt").read_text("utf-8")
    assert head[:7] in guide and tool.PYTHON in guide and "{" not in guide

    environment = {"PATH": os.environ["PATH"]}
    commands = subprocess.check_output(
        ["make", "-n", "teach"], cwd=folder, env=environment, text=True
    )
    assert f"|| {tool.PYTHON} -m venv .venv" in commands
    offline = "-c constraints.txt --no-index --find-links wheels --no-build-isolation"
    for what in ("--no-deps -r wheels.txt", "-r requirements-teach.txt"):
        assert f"{offline} {what}" in commands


def test_a_wheel_that_was_changed_after_packing_is_not_installed(course):
    subprocess.run([sys.executable, "-m", "zipfile", "-e", tool.room(Path("out")), course])
    folder = course / tool.NAME
    command = [sys.executable, "-m", "pip", "install", "--target", "there", "--upgrade"]
    command += ["-c", "constraints.txt", "--no-deps", "-r", "wheels.txt"]
    for changed in (False, True):
        if changed:
            with zipfile.ZipFile(folder / "wheels/toy-1.0-py3-none-any.whl", "a") as file:
                file.writestr("toy.pth", "import os")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert ("DO NOT MATCH THE HASHES" in done.stderr) == changed == bool(done.returncode)


def lose_data(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (course / "cache/plays.txt").unlink()


def lose_wheel(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (course / "index/toybuilder-1.0-py3-none-any.whl").unlink()


def lose_git(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(course))


def lose_history(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(course / "course/.git")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(course))


def lose_a_quote(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_ARGS", "--no-index --find-links 'index")


def lose_room(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "write", full)


@pytest.mark.parametrize(
    ("lose", "message"),
    [
        (lose_data, r"(?s)data are missing.*plays\.txt is missing.*What you can do"),
        (lose_wheel, "pip could not get all packages.*online"),
        (lose_git, "git is not here.*Install git"),
        (lose_history, "(?i)not a git repository.*pack from a clone"),
        (lose_a_quote, "PIP_ARGS .* cannot be split into flags: No closing quotation"),
        (lose_room, "No space left.*name another folder"),
    ],
)
def test_what_fails_is_said_and_the_old_archive_is_kept(course, monkeypatch, lose, message):
    archive = tool.room(course / "out")
    before = archive.read_bytes()
    lose(course, monkeypatch)
    with pytest.raises(RuntimeError, match=message):
        tool.room(course / "out")
    assert list((course / "out").iterdir()) == [archive]
    assert archive.read_bytes() == before
