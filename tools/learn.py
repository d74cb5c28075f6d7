"""Open the course in JupyterLab, in copies of the chapters that are yours.

    python tools/learn.py [FLAGS OF JUPYTERLAB ...]   make what is missing in my/, start JupyterLab
    python tools/learn.py --again 4                   chapter 04 from its beginning; yours is kept
    python tools/learn.py --prepare                   only make the copies (JupyterLab runs already)

A copy has no outputs: nothing looks as if it had run, and no prediction is spoiled. A copy is never
overwritten. When a chapter has changed since it was copied, its new version is put beside yours as
`04_topic-new.ipynb`; with --again yours becomes `04_topic-old.ipynb`. git ignores my/, so that an
update of the course never meets your work.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

try:
    import nbformat
    from ipykernel.ipkernel import IPythonKernel
    from jupyter_client.kernelspec import KernelSpecManager
    from nbformat import NotebookNode

    from helpers.formats.files import json_object, write_whole
except ModuleNotFoundError as missing:
    sys.exit(
        f"{sys.executable} has no package {missing.name}: the course is not installed for this "
        "Python. `make lab` installs it and starts; if it is installed in .venv already, use that "
        "Python: .venv/bin/python tools/learn.py (Windows: .venv\\Scripts\\python)"
    )

ROOT = Path(__file__).resolve().parent.parent
CONFIG = Path(__file__).resolve().parent / "jupyter"


def chapters(root: Path) -> list[Path]:
    """The chapters as the course has them, in their order, and the reference look_it_up."""
    return sorted((root / "notebooks").glob("*.ipynb"))


def read(path: Path) -> NotebookNode:
    """A chapter. Raises ValueError, which says how to get it back, if it is damaged."""
    try:
        if not path.is_file():  # a pipe could be read for ever
            raise ValueError("it is not a file")
        text = path.read_text(encoding="utf-8")
        if json_object(text).get("nbformat") != 4:
            raise ValueError("it is not a notebook of version 4")
        chapter = nbformat.v4.reads(text)
        nbformat.validate(chapter)
        json.dumps(chapter, ensure_ascii=False).encode()  # a lone surrogate cannot be written
        return chapter
    except Exception as error:  # nbformat has many ways to say that a file is no notebook
        why, *_ = str(error).splitlines() or [""]
        raise ValueError(
            f"notebooks/{path.name} is damaged ({why}): get it back with "
            f"`git restore notebooks/{path.name}`, or download the course again"
        ) from None


def version(chapter: NotebookNode) -> str:
    """What tells one version of a chapter from another: a hash of its cells, not of outputs."""
    cells = [(cell.cell_type, cell.source) for cell in chapter.cells]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()[:16]


def cleared(chapter: NotebookNode) -> NotebookNode:
    """A copy without outputs and counts, that knows which version it was made from.

    It has the kernel's own metadata in full: JupyterLab writes them on opening where they differ,
    and then asks on closing whether to save a chapter that nobody has touched.
    """
    copy = nbformat.from_dict(json.loads(json.dumps(chapter)))
    for cell in copy.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    kernel = KernelSpecManager().get_kernel_spec("python3")
    names = {"display_name": kernel.display_name, "language": kernel.language, "name": "python3"}
    copy.metadata = nbformat.from_dict(
        {
            "kernelspec": names,
            "language_info": IPythonKernel.language_info,
            "course": {"version": version(chapter)},
        }
    )
    return copy


def names(path: Path, mark: str) -> Iterator[Path]:
    """04_topic-new.ipynb, 04_topic-new2.ipynb, …"""
    for n in count(1):
        yield path.with_stem(f"{path.stem}-{mark}{n if n > 1 else ''}")


def made_from(copy: Path) -> str | None:
    """The version of its chapter; None if the file does not say, or cannot be read."""
    try:
        content = copy.read_bytes() if copy.is_file() else b""  # a pipe could be read for ever
        return json_object(content)["metadata"]["course"]["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def prepare(root: Path = ROOT) -> list[str]:
    """Make the copies that are missing in my/; what there is to say about it.

    Raises OSError if they cannot be written, and ValueError if there are no chapters.
    """
    said = []
    mine = root / "my"
    (mine / "pictures").mkdir(parents=True, exist_ok=True)
    for picture in (root / "notebooks" / "pictures").glob("*.svg"):  # at the chapters' heads
        shutil.copyfile(picture, mine / "pictures" / picture.name)
    for path in _some(chapters(root)):
        try:
            chapter = read(path)
        except ValueError as error:
            said.append(str(error))
            continue
        copy = mine / path.name
        copies = [copy, *mine.glob(f"{path.stem}-*.ipynb")]
        if copy.exists() and version(chapter) not in map(made_from, copies):
            copy = next(name for name in names(copy, "new") if not name.exists())
            said.append(f"{path.name} has changed since you began: the new one is my/{copy.name}")
        if not copy.exists():
            write(copy, cleared(chapter))
    return said


def _some(found: list[Path]) -> list[Path]:
    if not found:
        raise ValueError("there are no chapters in notebooks/: download the course again")
    return found


def again(number: str, root: Path = ROOT) -> str:
    """Begin a chapter again, the old copy kept under another name; what there is to say.

    Raises ValueError if there is no such chapter, or if it is damaged.
    """
    known = _some(chapters(root))
    found = [path for path in known if f"{path.stem}_".startswith(f"{number:0>2}_")]
    if not found:
        last = max(path.stem[:2] for path in known if path.stem[:2].isdigit())
        raise ValueError(f"there is no chapter {number!r}: the last is {last}")
    chapter = read(found[0])
    copy = root / "my" / found[0].name
    said = f"my/{copy.name} is new"
    if copy.exists():
        old = next(name for name in names(copy, "old") if not name.exists())
        copy.rename(old)
        said += f"; what you had is my/{old.name}"
    copy.parent.mkdir(exist_ok=True)
    write(copy, cleared(chapter))
    return said


def write(path: Path, notebook: NotebookNode) -> None:
    write_whole(path, (nbformat.writes(notebook, version=4) + "\n").encode())


def start(flags: list[str], root: Path = ROOT) -> int:
    """Run JupyterLab with the course's configuration until it ends; its exit status."""
    first = chapters(root)[0].name
    # Not as the file to open: the address that JupyterLab prints would lead past it.
    command = [sys.executable, "-m", "jupyterlab", "my", f"--LabApp.default_url=/lab/tree/{first}"]
    command += flags
    before = os.environ.get("JUPYTER_CONFIG_PATH")
    path = os.pathsep.join(filter(None, [str(CONFIG), before]))
    environment = os.environ | {"JUPYTER_CONFIG_PATH": path}
    if os.name == "posix":
        os.chdir(root)
        os.execve(sys.executable, command, environment)
    server = subprocess.Popen(command, cwd=root, env=environment)
    while True:
        try:
            return server.wait()
        except KeyboardInterrupt:  # JupyterLab has it, too, and asks whether it is meant
            continue


def main() -> int:
    description, *_ = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--again", metavar="NN", help="begin this chapter again; yours is kept")
    parser.add_argument("--prepare", action="store_true", help="only make the copies in my/")
    options, flags = parser.parse_known_args()
    try:
        said = [again(options.again)] if options.again else []
        said += prepare()
    except ValueError as error:
        parser.error(str(error))
    except OSError as error:
        sys.exit(
            f"your copies of the chapters cannot be made in {ROOT / 'my'} ({error}). my has to be "
            "a folder in which you may write: move away what stands there, or copy the course to a "
            "folder of your own"
        )
    print("\n".join(said), flush=True)  # JupyterLab takes this process over
    return 0 if options.prepare else start(flags)


if __name__ == "__main__":
    sys.exit(main())
