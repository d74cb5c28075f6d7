"""Fixtures of the browser tests: one JupyterLab and one Chromium for the whole session.

    from lab import changed, run_cells_until, shot, theme

    def test_the_angle_turns_the_arrow(open_notebook):
        page = open_notebook("01_words_as_vectors.ipynb")
        assert run_cells_until(page, "TwoVectors(") == []
        picture = page.locator(".two-vectors svg")
        page.locator(".two-vectors input[type=range]").first.focus()
        assert changed(picture, lambda: page.keyboard.press("ArrowRight"))

What can be done with a page is in lab.py. At the end of each test its page must have had no
problems: no console error, no page error, no failed request, no request that left 127.0.0.1.
"""

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import lab
import pytest
from lab import CHAPTERS, ROOT
from playwright.sync_api import Browser, Page, sync_playwright

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder JupyterLab serves: copies of the chapters, never the chapters themselves."""
    folder = tmp_path_factory.mktemp("lab")
    for chapter in CHAPTERS:
        shutil.copy(chapter, folder)
    return folder


@pytest.fixture(scope="session")
def lab_url(lab_folder: Path) -> Iterator[str]:
    """The address of the session's JupyterLab."""
    with lab.jupyter(lab_folder) as url:
        yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The session's Chromium. Without one the run ends with a message: nothing is skipped."""
    try:
        lab.chromium()
    except FileNotFoundError as missing:
        pytest.exit(str(missing), returncode=pytest.ExitCode.USAGE_ERROR)
    with sync_playwright() as playwright:
        browser = lab.launch(playwright)
        yield browser
        browser.close()


@pytest.fixture
def problems() -> list[str]:
    """What went wrong in the test's page so far; asserted empty at the end of the test.

    A test that provokes a problem on purpose looks at the list and clears it.
    """
    return []


@pytest.fixture
def page(browser: Browser, problems: list[str]) -> Iterator[Page]:
    """A fresh page, 1280 pixels wide, watched for problems; its kernel ends with it."""
    context = browser.new_context(viewport={"width": 1280, "height": 1200})
    page = context.new_page()
    page.set_default_timeout(60_000)
    lab.watch(page, problems)
    yield page
    found = list(problems)  # what closing the page interrupts is no problem
    lab.close_notebook(page)
    context.close()
    assert not found, "\n".join(found)


@pytest.fixture
def open_notebook(page: Page, lab_url: str, lab_folder: Path) -> Callable[..., Page]:
    """open_notebook("01_words_as_vectors.ipynb") or open_notebook(cells=["code", "more code"]).

    Opens a fresh copy of the chapter, or a small notebook made of the given code cells, waits for
    its kernel and gives the page. No cell has run yet: see lab.run_all and lab.run_cells_until.
    """

    def opened(name: str | None = None, *, cells: list[str] | None = None) -> Page:
        if cells is None:
            shutil.copy(ROOT / "notebooks" / name, lab_folder)
        else:
            name = f"made-{next(_numbers)}.ipynb"
            lab.write_notebook(lab_folder / name, cells)
        lab.open_notebook(page, lab_url, name)
        return page

    return opened
