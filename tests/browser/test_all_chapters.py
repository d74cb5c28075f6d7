"""Every chapter in a real JupyterLab, with the outputs that nbval has compared (make test).

That an explorer of a chapter lives when its cell is run is tested in test_own_copies.py.
"""

from collections.abc import Iterator

import lab
import pytest
from playwright.sync_api import Browser, Page, expect

PROBLEMS: list[str] = []  # of the page that they share


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    page = lab.new_page(browser, PROBLEMS)
    yield page
    page.context.close()


@pytest.mark.parametrize("name", [path.name for path in lab.CHAPTERS])
def test_the_chapter_shows_its_outputs(name: str, page: Page, lab_url: str) -> None:
    """No error, no broken image, no console error, no failed request."""
    lab.open_notebook(page, lab_url, name)
    try:
        lab.show_saved(page)
        assert lab.errors(page) == []
        pictures = page.locator(".jp-OutputArea-output img").count()
        assert pictures > 0 or name == "look_it_up.ipynb"
        assert lab.broken_images(page) == 0
        answers = page.locator(".jp-OutputArea-output", has_text="not attempted")
        expect(answers.first).to_be_visible()
        lab.noticed(page)
        assert PROBLEMS == []
    finally:
        lab.close_notebook(page)
        lab.noticed(page)
        PROBLEMS.clear()  # what closing has interrupted is no problem
