"""What the tests share: where things are, and the chapters read once."""

from functools import cache
from pathlib import Path

import nbformat
import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
settings.register_profile("course", deadline=None, derandomize=True)  # a busy machine is no mistake
settings.load_profile("course")

CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@cache
def parsed(path: Path) -> nbformat.NotebookNode:
    """A chapter, read once for all tests, which only look at it."""
    return nbformat.read(path, as_version=4)


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def chapter(request: pytest.FixtureRequest) -> Path:
    """The path of each chapter in turn."""
    return request.param


@pytest.fixture
def notebook(chapter: Path) -> nbformat.NotebookNode:
    """Each chapter in turn, parsed."""
    return parsed(chapter)
