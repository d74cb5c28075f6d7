"""The book: the course as web pages that need neither a kernel nor another host.

    python tools/book/book.py [FOLDER]     default: build/book; open its index.html

FOLDER has to be empty, or made by this program: of an older book, its own files are removed.

Nothing is run: the chapters are shown as committed, the explorers from notebooks/states (written
by `make notebooks`) with the code and style of explorers/. README.md is the first page,
where a live explorer takes the place of its picture; the studies' page is made of studies/results.
"""

import argparse
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from sphinx.cmd.build import build_main

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(HERE)]

import sources  # noqa: E402

MARK = ".book"  # in its folder: which files are those of the book


def build(folder: Path) -> int:
    """Build the book into a folder; 0 if nothing was to be warned of."""
    folder = folder.resolve()
    mark = folder / MARK
    empty = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if not empty and not mark.is_file():
        sys.exit(
            f"{folder} is no empty folder, and this program did not make it: name another folder"
        )
    with TemporaryDirectory() as work:
        made = Path(work) / "book"
        if failed := _build(Path(work), made):
            return failed
        for name in mark.read_text("utf-8").splitlines() if mark.is_file() else ():
            old = (folder / name).resolve()
            if old.is_relative_to(folder) and old.is_file():  # whatever else somebody wrote there
                old.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        names = [path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()]
        mark.write_text("\n".join(names), "utf-8")
        shutil.copytree(made, folder, dirs_exist_ok=True)
    print(f"The book is in {folder}: open index.html.")
    return 0


def _build(work: Path, made: Path) -> int:
    source = work / "sources"
    source.mkdir()
    live = sources.lay_out(source)
    shutil.copy(HERE / "conf.py", source)
    shutil.copytree(HERE / "static", source / "_static")
    shutil.copytree(HERE / "templates", source / "_templates")
    sources.write_explorers(source / "_static")
    sources.write_weights(source / "_static")
    print(f"Explorers live in the book: {live}.", flush=True)
    arguments = ["-b", "html", "-W", "--keep-going", "-q", "-d", str(work / "doctrees")]
    return build_main([*arguments, str(source), str(made)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "book")
    sys.exit(build(parser.parse_args().folder))
