"""The book: the course as web pages that need neither a kernel nor another host.

    python tools/book/book.py [FOLDER]     default: build/book; open its index.html

Nothing is run: the chapters are shown as committed, the explorers from notebooks/states (written
by `make notebooks`) with the code and style of explorers/. README.md is cut into the first page,
how to install, and the measurements; the studies' page is made of studies/results.
"""

import argparse
import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(HERE)]

import sources  # noqa: E402


def build(folder: Path) -> int:
    """Build the book into a folder; 0 if nothing was to be warned of."""
    source, kept = folder.with_name("sources"), folder.with_name("doctrees")
    for old in (source, folder):
        shutil.rmtree(old, ignore_errors=True)
    source.mkdir(parents=True)
    live = sources.lay_out(source)
    shutil.copy(HERE / "conf.py", source)
    shutil.copytree(HERE / "static", source / "_static")
    shutil.copytree(HERE / "templates", source / "_templates")
    sources.write_explorers(source / "_static")
    sources.write_weights(source / "_static")
    arguments = ["-b", "html", "-W", "--keep-going", "-q", "-d", str(kept)]
    failed = build_main([*arguments, str(source), str(folder)])
    if not failed:
        print(f"The book is in {folder}: open index.html. Explorers live in it: {live}.")
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "book")
    sys.exit(build(parser.parse_args().folder.absolute()))
