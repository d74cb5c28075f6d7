"""Where the course is published: what a chapter needs to run where nothing is installed.

When `pyproject.toml` names the repository, as its last lines,

    [project.urls]
    Repository = "https://github.com/OWNER/NAME"

then `make notebooks` gives each chapter a link that opens it in Colab, and a first cell, closed,
that does nothing where the course is at hand and otherwise gets the version of pyproject.toml (a
tag, v0.1.0) with what it needs; and `make book` gives its exercises a link that opens the chapter
in Binder.
"""

import tomllib
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent

SETUP = """\
# Where the course is not at hand, as in Colab, this gets it; elsewhere it does nothing.
import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path


def at_hand():
    # Others, too, have a module called helpers; this one lies beside the chapters.
    found = importlib.util.find_spec("helpers")
    places = found and found.submodule_search_locations or []
    return any(Path(place).with_name("notebooks").is_dir() for place in places)


def installed(package):
    try:
        return bool(importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        return False


if not at_hand():
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


def setup(where: dict[str, str]) -> NotebookNode:
    """The first cell."""
    return nbformat.v4.new_code_cell(
        SETUP.format(**where).rstrip(),
        id="setup",
        metadata={"tags": ["setup"], "jupyter": {"source_hidden": True}},
    )
