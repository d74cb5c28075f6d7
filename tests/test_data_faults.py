"""What can go wrong while data are fetched, made to happen. No test leaves this machine.

After every fault: a `DataError` that says what to do, and a cache with nothing half-written in it.
"""

import errno
import functools
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

from helpers.data import DataError, sources, status, wikipedia

WHEEL, MEMBER, PAGE = "toy-1.0.whl", "numbers.bin", "page.txt"
FILE = "toy-1.0-py3-none-any.whl"  # what pip calls the wheel
CONTENT = bytes(1_000_000)  # compresses to nothing: large in the cache, small in the wheel
FETCH = (
    "import sys, pathlib; from helpers.data import sources;"
    "sources.SOURCES = pathlib.Path(sys.argv[1]); print(sources.fetch(sys.argv[2]))"
)


class Course:
    """A made-up course: one wheel with one file in it, one page, a registry and an empty cache."""

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
            PAGE: hashlib.sha256(b"hello").hexdigest(),
        }
        self.url = "http://127.0.0.1:9/page.txt"  # nobody listens there
        self.write()

    def write(self) -> None:
        """Write the registry and the requirements (again, after a change of hashes or URL)."""
        (self.sources / "toy.txt").write_text(f"toy==1.0 --hash=sha256:{self.hashes[WHEEL]}\n")
        (self.sources / "registry.txt").write_text(
            f"{WHEEL} {self.hashes[WHEEL]} wheel:toy.txt\n"
            f"{MEMBER} {self.hashes[MEMBER]} wheel:toy.txt!toy/numbers.bin\n"
            f"{PAGE} {self.hashes[PAGE]} {self.url}\n"
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


@pytest.fixture
def no_writing(monkeypatch):
    """Make every write of ours fail, as on a read-only file system (tests may run as root)."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    for module, name in ((sources.tempfile, "mkdtemp"), (sources.os, "replace"), (os, "mkdir")):
        monkeypatch.setattr(module, name, refuse)
    monkeypatch.setattr(sources.tempfile, "NamedTemporaryFile", refuse)


class Slow(http.server.SimpleHTTPRequestHandler):
    """A package index that stops in the middle of a wheel until the test lets it go on."""

    def do_GET(self) -> None:
        if not self.path.endswith(".whl"):
            body = f'<a href="/{FILE}">{FILE}</a>'.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        content = (Path(self.directory) / FILE).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:100])
        self.wfile.flush()
        self.server.halfway.set()
        self.server.go_on.wait(20)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def slow_index(course, monkeypatch) -> Iterator[http.server.ThreadingHTTPServer]:
    """Let pip use a slow index on this machine instead of the folder."""
    handler = functools.partial(Slow, directory=str(course.index))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.halfway, server.go_on = threading.Event(), threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    yield server
    server.go_on.set()
    server.shutdown()
    server.server_close()


def failure(file: str) -> str:
    """Fetch, expecting a DataError that says how to help oneself; return its message."""
    with pytest.raises(DataError) as caught:
        sources.fetch(file)
    message = str(caught.value)
    assert file in message and "What you can do" in message and "DOT2GPT_DATA" in message
    return message


# No fault


@pytest.mark.parametrize("file", [WHEEL, MEMBER])
def test_a_file_is_fetched_once_and_nothing_else_is_left(course, file, monkeypatch, capfd):
    path = sources.fetch(file)
    assert path == course.cache / file and course.listing() == [file]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == course.hashes[file]
    assert path.stat().st_mode & 0o444 == 0o444  # a classroom can read it
    monkeypatch.setenv("PIP_FIND_LINKS", os.devnull)
    assert sources.fetch(file) == path  # from the cache
    assert capfd.readouterr() == ("", "")  # a chapter's output is the same both times


# No network


@pytest.mark.parametrize("file", [WHEEL, MEMBER])
def test_no_network_for_pip(course, file, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", os.devnull)
    message = failure(file)
    assert "is missing" in message and "No matching distribution" in message
    assert course.hashes[file] in message and str(course.cache / file) in message
    assert course.listing() == []


def test_no_network_for_a_url(course):
    message = failure(PAGE)
    assert course.url in message and "(no network)" in message and course.hashes[PAGE] in message
    assert course.listing() == []


# The network gives something else


class Answers(http.server.BaseHTTPRequestHandler):
    """A server whose answer the test chooses: status, headers, body."""

    def do_GET(self) -> None:
        status, headers, body = self.server.answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(course) -> Iterator[http.server.ThreadingHTTPServer]:
    """A server on this machine, to which the page's address and pip lead."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        course.url = f"http://127.0.0.1:{server.server_port}/page.txt"
        course.write()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((200, {"Content-Length": "900"}, b"hel"), "cut short"),
        ((200, {"Content-Encoding": "gzip"}, b"no gzip at all"), "damaged"),
        ((200, {}, b"another page"), "damaged"),
        ((404, {}, b""), "not offered"),
        ((403, {}, b""), "not allowed"),
    ],
)
def test_the_reason_is_named(course, server, answer, why):
    server.answer = answer
    assert f"could not be fetched ({why})" in failure(PAGE)
    assert course.listing() == []


def test_a_certificate_is_named(course, server):
    """A server that speaks no TLS where it should."""
    server.answer = (200, {}, b"hello")
    course.url = course.url.replace("http:", "https:")
    course.write()
    assert "(certificate)" in failure(PAGE)


def test_pip_says_which(course, server, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    index = course.url.replace("page.txt", "simple")
    monkeypatch.setenv("PIP_INDEX_URL", index.replace("http:", "https:"))
    server.answer = (200, {}, b"")
    assert "(certificate)" in failure(WHEEL)
    monkeypatch.setenv("PIP_INDEX_URL", index)
    server.answer = (404, {}, b"")
    assert "(not offered)" in failure(WHEEL)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    assert "(no network)" in failure(WHEEL)
    assert course.listing() == []


def test_a_wheel_that_is_cut_short(course, slow_index):
    slow_index.go_on.set()
    message = failure(WHEEL)
    assert "(cut short)" in message or "(damaged)" in message  # the latter: pip before 25
    assert course.listing() == []


def test_a_learners_constraints_do_not_matter(course, tmp_path, monkeypatch):
    (tmp_path / "constraints.txt").write_text("toy==2.0\n")
    monkeypatch.setenv("PIP_CONSTRAINT", str(tmp_path / "constraints.txt"))
    assert sources.fetch(WHEEL).is_file()


# Wrong content


def test_pip_refuses_a_wheel_with_another_hash(course):
    course.hashes[WHEEL] = "0" * 64
    course.write()
    assert "DO NOT MATCH THE HASHES" in failure(WHEEL)
    assert course.listing() == []


def test_a_member_with_another_hash_is_refused(course):
    course.hashes[MEMBER] = "0" * 64
    course.write()
    assert "not the file that the course was made with" in failure(MEMBER)
    assert course.listing() == []


def test_a_page_with_another_hash_is_refused(course):
    with http.server.HTTPServer(("127.0.0.1", 0), Slow) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        course.url = f"http://127.0.0.1:{server.server_port}/page.txt"  # gets a page of HTML
        course.write()
        assert "not the file that the course was made with" in failure(PAGE)
    assert course.listing() == []


@pytest.mark.parametrize("file", [WHEEL, MEMBER])
def test_a_truncated_file_is_fetched_again(course, file):
    path = sources.fetch(file)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert sources.fetch(file).read_bytes() == whole
    assert course.listing() == [file]


def test_a_truncated_file_without_network_is_never_used(course, monkeypatch):
    path = sources.fetch(MEMBER)
    path.write_bytes(CONTENT[:1000])
    monkeypatch.setenv("PIP_FIND_LINKS", os.devnull)
    assert "is damaged" in failure(MEMBER)
    assert course.listing() == [MEMBER]


# Killed in the middle


def test_killed_in_the_middle(course, slow_index, monkeypatch):
    process = course.start(MEMBER, start_new_session=True)
    assert slow_index.halfway.wait(20)
    process.kill()  # SIGKILL: no clean-up of any kind
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    left = course.listing()
    assert MEMBER not in left and any(name.startswith("partial-") for name in left)
    os.killpg(process.pid, signal.SIGKILL)  # the pip that it had started
    slow_index.go_on.set()

    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(course.index))
    assert sources.fetch(MEMBER).read_bytes() == CONTENT  # the next call works

    (partial,) = course.cache.glob("partial-*")  # it may be another process at work: not yet ours
    yesterday = time.time() - 2 * sources.STALE
    os.utime(partial, (yesterday, yesterday))
    own = course.cache / "partial-derivatives"  # somebody's notes, under a name like ours
    own.mkdir()
    os.utime(own, (yesterday, yesterday))
    sources.fetch(WHEEL)
    assert not partial.exists() and own.exists()


# Something else than a file


@pytest.mark.skipif(os.name != "posix", reason="pipes with names are a Unix thing")
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_file_is_never_read(course, kind, monkeypatch):
    def put(path: Path) -> None:
        make = {
            "pipe": os.mkfifo,
            "device": lambda p: p.symlink_to("/dev/zero"),
            "folder": Path.mkdir,
        }
        path.unlink(missing_ok=True)
        make[kind](path)

    course.cache.mkdir()
    put(course.cache / MEMBER)
    assert "is no file" in failure(MEMBER)
    put(course.cache / "made.json")
    assert sources.recall("made.json") is None
    put(course.sources / "shipped.txt")
    with pytest.raises(DataError, match=r"not a file.*git restore data/sources/shipped\.txt"):
        sources.known("made.json", b"")
    monkeypatch.setattr(sources, "FOLDER", course.cache)
    with pytest.raises(DataError, match=r"not a file.*git restore data/made\.json"):
        sources.shipped("made.json")


@pytest.mark.parametrize("list_of", ["shipped.txt", "registry.txt"])
@pytest.mark.parametrize("content", [b"one-word\n", b"\xff\xfe", b"a  b  c  d\n", None])
def test_a_damaged_list_says_how_to_get_it_back(course, list_of, content):
    path = course.sources / list_of
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)
    ask = {
        "shipped.txt": lambda: sources.known("x", b""),
        "registry.txt": lambda: sources.fetch(PAGE),
    }
    with pytest.raises(DataError, match=rf"(damaged|missing).*git restore data/sources/{list_of}"):
        ask[list_of]()


# Read-only, full


def test_the_folder_cannot_be_made(course):
    course.cache.parent.joinpath("cache").write_text("a file where the folder should be")
    assert "could not read or write" in failure(WHEEL)


def test_a_folder_below_a_file(course, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DOT2GPT_DATA", str(tmp_path / "file" / "cache"))
    assert "could not read or write" in failure(WHEEL)


def test_an_empty_read_only_folder(course, request):
    course.cache.mkdir()
    request.getfixturevalue("no_writing")
    assert "Read-only file system" in failure(MEMBER)


def test_a_filled_read_only_mirror_needs_no_writing(course, request):
    path = sources.fetch(MEMBER)
    request.getfixturevalue("no_writing")
    assert sources.fetch(MEMBER) == path


def test_a_real_read_only_folder(course):
    path = sources.fetch(MEMBER)
    course.cache.chmod(0o555)
    if os.access(course.cache, os.W_OK):
        pytest.skip("this user (root?) may write anywhere")
    try:
        assert sources.fetch(MEMBER) == path
        assert "could not read or write" in failure(WHEEL)
    finally:
        course.cache.chmod(0o755)
    assert course.listing() == [MEMBER]


@pytest.mark.skipif(os.name != "posix", reason="limits on file sizes are a Unix thing")
@pytest.mark.parametrize(
    ("limit", "reason"),
    [(500, "pip said"), (100_000, "could not read or write")],
    ids=["pip cannot write the wheel", "we cannot write the file"],
)
def test_a_full_disk(course, limit, reason):
    """No file may grow beyond a limit: the write fails half-way, as it does on a full disk."""
    import resource

    small = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit))
    _, errors = course.start(MEMBER, preexec_fn=small).communicate(timeout=60)
    assert "DataError" in errors and reason in errors and "File too large" in errors, errors
    assert course.listing() == []
    assert sources.fetch(MEMBER).read_bytes() == CONTENT


# A folder that cannot be


@pytest.mark.parametrize(
    ("folder", "why"),
    [("~nobody-of-that-name/x", "home"), ("x" * 5000, "too long")],
)
def test_a_folder_that_cannot_be_is_a_data_error(course, monkeypatch, folder, why):
    monkeypatch.setenv("DOT2GPT_DATA", folder)
    for ask in (lambda: sources.fetch(WHEEL), status, wikipedia):
        with pytest.raises(DataError, match=rf"(?s)(?=.*DOT2GPT_DATA).*{why}"):
            ask()


def test_a_folder_that_one_may_not_enter_is_a_data_error(course, monkeypatch):
    def refuse(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refuse)
    for ask in (lambda: sources.fetch(WHEEL), status):
        with pytest.raises(DataError, match=r"\(not allowed\).*set .*DOT2GPT_DATA"):
            ask()


# Two at once, no pip


def test_two_processes_at_once(course):
    both = [course.start(MEMBER), course.start(MEMBER)]
    for process in both:
        output, errors = process.communicate(timeout=60)
        assert (process.returncode, output.strip()) == (0, str(course.cache / MEMBER)), errors
    assert course.listing() == [MEMBER]


def test_a_file_of_the_learner_is_not_taken_for_pip(course, tmp_path, monkeypatch):
    (tmp_path / "pip.py").write_text("import pathlib; pathlib.Path('executed').touch()")
    monkeypatch.chdir(tmp_path)
    assert sources.fetch(WHEEL).is_file()
    assert not (tmp_path / "executed").exists()


def test_a_python_without_pip(course, tmp_path, monkeypatch):
    venv.create(tmp_path / "venv", with_pip=False, symlinks=os.name == "posix")
    python = tmp_path / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    monkeypatch.setattr(sys, "executable", str(python))
    message = failure(WHEEL)
    assert "has no pip" in message and "ensurepip" in message and str(python) in message
    assert course.listing() == []
