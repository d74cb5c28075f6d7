"""Where the course is published.

When `pyproject.toml` names the repository, as its last lines,

    [project.urls]
    Repository = "https://github.com/OWNER/NAME"

then `make notebooks` gives each chapter a link that opens it in Colab, and a cell that fetches the
course there, in the version of pyproject.toml (a tag, v0.1.0); `make book` gives its exercises a
link that opens the chapter in Binder.
"""

import tomllib
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent

FETCH = """\
if "google.colab" in str(get_ipython()):  # elsewhere, open the chapter with `make lab`
    !git clone -q -c advice.detachedHead=false --depth 1 -b {version} {repository} course
    %run course/tools/colab.py"""


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


def fetch(where: dict[str, str]) -> NotebookNode:
    """The cell that fetches the course in Colab."""
    return nbformat.v4.new_code_cell(
        FETCH.format(**where), id="setup", metadata={"tags": ["setup"]}
    )
