"""Fixtures of the browser tests: one JupyterLab and one Chromium for the whole session.

`bare` shows an explorer on a page of its own, with Python behind it: quick, and enough for most.
`chapter` gives a page of JupyterLab with a chapter as it was saved; there is one such page, with
one kernel, for all tests of a process. `page` is a page of one's own. After a failure nothing is
shared.

What can be done with a page is in lab.py. At the end of each test its pages must have had no
problems: no console error, no page error, no failed request, no request that left 127.0.0.1.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import lab
import pytest
from bare import Bare
from lab import CHAPTERS
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

expect.set_options(timeout=20_000)  # the usual 5 s are too short on a busy machine


def pytest_sessionstart() -> None:
    """Without a browser the run ends with a message: nothing is skipped."""
    try:
        lab.chromium()
    except FileNotFoundError as missing:
        pytest.exit(str(missing), returncode=pytest.ExitCode.USAGE_ERROR)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.failed:
        item.stash[_failed] = True
    return report


_failed = pytest.StashKey[bool]()


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
def _playwright() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def browser(_playwright: Playwright) -> Iterator[Browser]:
    """The session's Chromium."""
    browser = lab.launch(_playwright)
    yield browser
    browser.close()


@dataclass
class Opened:
    """A page, and what went wrong in it."""

    page: Page
    problems: list[str] = field(default_factory=list)
    notebook: str = ""  # the one that is open

    @classmethod
    def new(cls, browser: Browser) -> "Opened":
        # In a context of its own: JupyterLab loads itself again when it finds another tab of it.
        context = browser.new_context(viewport={"width": 1280, "height": 1200})
        opened = cls(context.new_page())
        opened.page.set_default_timeout(60_000)
        lab.watch(opened.page, opened.problems)
        return opened

    def open(self, url: str, name: str) -> None:
        """Open the notebook, in place of the one before."""
        kernel = lab.leave_notebook(self.page) if self.notebook else None
        lab.noticed(self.page)
        self.problems.clear()  # what closing has interrupted is no problem
        lab.open_notebook(self.page, url, name, kernel)
        self.notebook = name

    def close(self) -> None:
        lab.close_notebook(self.page)
        self.page.context.close()

    def check(self) -> None:
        lab.noticed(self.page)
        found, self.problems[:] = list(self.problems), []
        assert not found, "\n".join(found)


@pytest.fixture
def _own(browser: Browser) -> Iterator[Opened]:
    opened = Opened.new(browser)
    yield opened
    try:
        opened.check()  # first: what closing the page interrupts is no problem
    finally:
        opened.close()


@pytest.fixture
def page(_own: Opened) -> Page:
    """A fresh page, 1280 pixels wide, watched for problems; its kernel ends with it."""
    return _own.page


@pytest.fixture
def problems(_own: Opened) -> list[str]:
    """What went wrong in `page` so far; asserted empty at the end of the test.

    A test that provokes a problem on purpose looks at the list and clears it.
    """
    return _own.problems


@pytest.fixture(scope="session")
def _kept() -> Iterator[list[Opened]]:
    """The page that the tests share, once there is one."""
    kept: list[Opened] = []
    yield kept
    for opened in kept:
        opened.close()


@pytest.fixture
def _shared(
    request: pytest.FixtureRequest, browser: Browser, _kept: list[Opened]
) -> Iterator[Opened]:
    """The page of the test before, or a new one."""
    if not _kept:
        _kept.append(Opened.new(browser))
    (opened,) = _kept
    yield opened
    sound = not request.node.stash.get(_failed, False)
    try:
        if sound:
            opened.check()
            lab.tidy(opened.page)
    except BaseException:
        sound = False
        raise
    finally:
        if not sound:  # the next test shall not suffer from it
            _kept.clear()
            opened.close()


@pytest.fixture
def chapter(_shared: Opened, lab_url: str) -> Callable[[str], Page]:
    """chapter("04_queries_keys_values.ipynb"): the page with the chapter and its saved outputs."""

    def opened(name: str) -> Page:
        _shared.open(lab_url, name)
        lab.show_saved(_shared.page)
        return _shared.page

    return opened


@pytest.fixture(scope="module")
def _bare(_playwright: Playwright) -> Iterator[tuple[Bare, list[str]]]:
    """In a Chromium of its own: a page behind others may wait for a frame for ever."""
    browser, problems = lab.launch(_playwright), []  # type: ignore[var-annotated]
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    lab.watch(page, problems)
    yield Bare(page), problems
    browser.close()


@pytest.fixture
def bare(_bare: tuple[Bare, list[str]]) -> Iterator[Bare]:
    """bare.show(explorer): on a page without JupyterLab, with Python behind it (bare.py)."""
    bare, problems = _bare
    yield bare
    lab.noticed(bare.page)
    found, problems[:] = list(problems), []
    assert found == []
