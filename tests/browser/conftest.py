"""Fixtures of the browser tests: one JupyterLab and one Chromium for the whole session.

`bare` shows an explorer on a page of its own, with Python behind it: quick, and enough for most.
`page` is an empty page, for JupyterLab or anything else.

What can be done with a page is in lab.py. At the end of each test its pages must have had no
problems: no console error, no page error, no failed request, no request that left 127.0.0.1.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import lab
import pytest
from bare import Bare
from lab import CHAPTERS
from playwright.sync_api import Browser, Page, expect, sync_playwright

expect.set_options(timeout=20_000)  # the usual 5 s are too short on a busy machine


def pytest_sessionstart() -> None:
    """Without a browser the run ends with a message: nothing is skipped."""
    try:
        lab.chromium()
    except FileNotFoundError as missing:
        pytest.exit(str(missing), returncode=pytest.ExitCode.USAGE_ERROR)


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder JupyterLab serves: copies of the chapters, never the chapters themselves."""
    folder = tmp_path_factory.mktemp("lab")
    for chapter in CHAPTERS:
        shutil.copy(chapter, folder)
    shutil.copytree(CHAPTERS[0].parent / "pictures", folder / "pictures")
    return folder


@pytest.fixture(scope="session")
def lab_url(lab_folder: Path) -> Iterator[str]:
    """The address of the session's JupyterLab."""
    with lab.jupyter(lab_folder) as url:
        yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The session's Chromium."""
    with sync_playwright() as playwright:
        browser = lab.launch(playwright)
        yield browser
        browser.close()


@pytest.fixture
def problems() -> list[str]:
    """What went wrong in `page` so far; asserted empty at the end of the test.

    A test that provokes a problem on purpose looks at the list and clears it.
    """
    return []


@pytest.fixture
def page(browser: Browser, problems: list[str]) -> Iterator[Page]:
    """A fresh page, 1280 pixels wide, watched for problems; its kernel ends with it."""
    page = lab.new_page(browser, problems)
    yield page
    lab.noticed(page)
    found = list(problems)  # what closing the page interrupts is no problem
    lab.close_notebook(page)
    page.context.close()
    assert found == []


@pytest.fixture(scope="session")
def _bare(browser: Browser) -> tuple[Bare, list[str]]:
    problems: list[str] = []
    return Bare(lab.new_page(browser, problems, height=900)), problems


@pytest.fixture
def bare(_bare: tuple[Bare, list[str]]) -> Iterator[Bare]:
    """bare.show(explorer): on a page without JupyterLab, with Python behind it (bare.py)."""
    bare, problems = _bare
    yield bare
    lab.noticed(bare.page)
    found, problems[:] = list(problems), []
    assert found == []
