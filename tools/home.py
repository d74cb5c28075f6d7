"""Where the course is published: what a chapter needs to run where nothing is installed.

When `pyproject.toml` names the repository, as its last lines,

    [project.urls]
    Repository = "https://github.com/OWNER/NAME"

then `make notebooks` gives each chapter a link that opens it in Colab, and its first cell, closed,
gets the course where it is not at hand, in the version of pyproject.toml (a tag, v0.1.0) with what
it needs; `make book` gives its exercises a link that opens the chapter in Binder. Until then, that
cell says in one line what is missing and what to do.
"""

import tomllib
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent

AT_HAND = """\
# Setup: is what this chapter needs installed here?
import importlib.metadata
import importlib.util
from pathlib import Path


def at_hand():
    # Others, too, have a module called helpers; this one lies beside the chapters.
    found = importlib.util.find_spec("helpers")
    places = (found and found.submodule_search_locations) or []
    return any(Path(place).with_name("notebooks").is_dir() for place in places)


def installed(package):
    try:
        return bool(importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        return False
"""

REFUSE = """

class NotInstalled(ImportError):
    def _render_traceback_(self):  # what Jupyter shows: the sentence alone
        return [str(self)]


missing = [] if at_hand() else ["the course's own code"]
needed = ["torch", "numpy", "matplotlib", "ipywidgets", "anywidget"]
missing += [package for package in needed if not installed(package)]
if missing:
    advice = "open it with `make lab` in the course's folder, or choose the kernel of its .venv."
    if Path("helpers.py").exists():
        advice = "rename the file helpers.py in this folder, and restart the kernel."
    raise NotInstalled(f"This chapter needs {', '.join(missing)}, not found here: {advice}")
"""

FETCH = """

if not at_hand():
    import subprocess
    import sys

    course = Path("course-{version}").absolute()
    if not course.exists():
        clone = ["git", "clone", "--quiet", "-c", "advice.detachedHead=false", "--depth", "1"]
        clone += ["--branch", "{version}", "{repository}", str(course)]
        subprocess.run(clone, check=True)
    lines = (course / "requirements.txt").read_text(encoding="utf-8").splitlines()
    missing = [line for line in lines if "==" in line and not installed(line.split("==")[0])]
    if missing:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *missing], check=True)
    sys.path.insert(0, str(course))
    if "google.colab" in sys.modules:  # it shows the widgets of others only when it is asked to
        sys.modules["google.colab"].output.enable_custom_widget_manager()
"""


def home(project: Path = ROOT / "pyproject.toml") -> dict[str, str] | None:
    """{repository, version} of the course, None while it is not published."""
    about = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    repository = about.get("urls", {}).get("Repository")
    return repository and {"repository": repository.rstrip("/"), "version": f"v{about['version']}"}


def colab(where: dict[str, str], chapter: str) -> str:
    """A link that opens a chapter in Colab; "" for a repository that is not on GitHub."""
    place = where["repository"].partition("github.com/")[2]
    address = f"https://colab.research.google.com/github/{place}/blob/{where['version']}/notebooks"
    return f"[open in Colab]({address}/{chapter})" if place else ""


def binder(where: dict[str, str], chapter: str) -> str:
    """A link that opens a chapter in Binder, which takes its image from environment.yml; or ""."""
    place = where["repository"].partition("github.com/")[2]
    address = f"https://mybinder.org/v2/gh/{place}/{where['version']}"
    return f"[in Binder]({address}?labpath=notebooks/{chapter})" if place else ""


def setup(where: dict[str, str] | None) -> NotebookNode:
    """The first cell."""
    return nbformat.v4.new_code_cell(
        (AT_HAND + (FETCH.format(**where) if where else REFUSE)).rstrip(),
        id="setup",
        metadata={"tags": ["setup"], "jupyter": {"source_hidden": True}},
    )
