"""Every chapter in a real JupyterLab, with the outputs that nbval has compared (make test).

That an explorer of a chapter lives when its cell is run is tested in test_own_copies.py.
"""

import lab
import pytest
from playwright.sync_api import expect


@pytest.mark.parametrize("name", [path.name for path in lab.CHAPTERS])
def test_the_chapter_shows_its_outputs(name, chapter):
    """No error, no broken image; at the end of the test, no console error, no failed request."""
    page = chapter(name)
    assert lab.errors(page) == []
    assert page.locator(".jp-OutputArea-output img").count() > 0
    assert lab.broken_images(page) == 0
    answers = page.locator(".jp-OutputArea-output", has_text="not attempted")
    expect(answers.first).to_be_visible()
