"""Every chapter runs in a real JupyterLab; every explorer in it is alive."""

import pytest
from lab import CHAPTERS, run_all


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_the_chapter_runs(chapter, open_notebook):
    """No error output, no console error, no failed request, nothing asked of another machine."""
    page = open_notebook(chapter.name)
    page.set_default_timeout(300_000)
    assert run_all(page) == []
