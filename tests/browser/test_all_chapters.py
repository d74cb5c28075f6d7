"""Every chapter runs in a real JupyterLab; every explorer in it is alive."""

import pytest
from lab import CHAPTERS, errors


@pytest.mark.parametrize("name", [path.name for path in CHAPTERS])
def test_the_chapter_runs(name, chapter):
    """No error output, no console error, no failed request, nothing asked of another machine."""
    assert errors(chapter(name)) == []
