"""A learner's own copies in JupyterLab as `make lab` starts it: nothing asked, nothing lost."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import lab
import learn
import pytest
from playwright.sync_api import Browser, Page, expect

_SHOWN = "window.jupyterapp.shell.currentWidget"
_DO = "([command, options]) => window.jupyterapp.commands.execute(command, options)"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first two chapters, and copies of them."""
    root = tmp_path_factory.mktemp("course")
    (root / "notebooks").mkdir()
    for path in (*lab.CHAPTERS[:2], lab.ROOT / "notebooks" / "nbval.cfg"):
        shutil.copy(path, root / "notebooks")
    learn.prepare(root)
    return root


@pytest.fixture(scope="module")
def url(course: Path) -> Iterator[str]:
    with lab.jupyter(course, course=True) as url:
        yield url


@pytest.fixture(scope="module")
def _page(browser: Browser) -> Iterator[Page]:
    page = lab.new_page(browser, [], height=800)
    yield page
    page.context.close()


@pytest.fixture
def own(_page: Page) -> Iterator[Page]:
    """The page of a learner who closes a chapter and opens another in the same JupyterLab."""
    yield _page
    lab.close_notebook(_page)


def do(page: Page, command: str, **options: object) -> None:
    page.evaluate(_DO, [command, options])


def test_an_untouched_chapter_closes_without_a_question(own: Page, url: str, course: Path) -> None:
    before = (course / "my" / "00_start_here.ipynb").read_bytes()
    lab.open_in_lab(own, url, "my/00_start_here.ipynb")
    own.wait_for_timeout(2000)  # what the kernel says of itself comes when it is ready
    expect(own.locator(".jp-DirListing-itemText", has_text="00_start_here")).to_be_visible()
    assert own.locator(".jp-toast, .Toastify__toast").count() == 0
    assert own.evaluate(f"{_SHOWN}.context.model.dirty") is False
    do(own, "application:close")
    expect(own.locator(".jp-Notebook")).to_have_count(0)
    assert own.locator(".jp-Dialog").count() == 0
    assert (course / "my" / "00_start_here.ipynb").read_bytes() == before


def test_what_is_done_survives_a_restart(own: Page, url: str, course: Path) -> None:
    lab.open_in_lab(own, url, "my/00_start_here.ipynb")
    lab.run_hidden(own, "import torch")
    assert lab.run_cell(own, "from exercises import start_here as check") == []
    stub = lab.find_cell(own, "def surprise(p):\n    return ...")
    right = "from math import log2\n\n\ndef surprise(p):\n    return -log2(p)"
    own.evaluate(
        f"([i, code]) => {_SHOWN}.content.widgets[i].model.sharedModel.setSource(code)",
        [stub, right],
    )
    assert lab.run_cell_at(own, stub) == lab.run_cell(own, "check.surprise(surprise)") == []
    lab.select_cell(own, stub + 1)
    answer = own.locator(".jp-Cell.jp-mod-active .jp-OutputArea-output")
    expect(answer).to_contain_text("Exercises solved in this chapter: 1 of 1")
    do(own, "docmanager:save")
    lab.close_notebook(own)
    assert (course / "my" / "progress.txt").read_text().split() == ["start_here.surprise"]

    lab.open_in_lab(own, url, "my/00_start_here.ipynb")
    assert lab.run_cell(own, "from IPython.display import Markdown") == []
    lab.select_cell(own, lab.find_cell(own, "from IPython.display import Markdown"))
    road = own.locator(".jp-Cell.jp-mod-active .jp-OutputArea-output")
    expect(road).to_contain_text("✔ 1 of 1")
    expect(road).to_contain_text("0 of 4")
    road.get_by_role("link", name="Words as vectors").click()
    expect(own.locator(".lm-TabBar-tabLabel", has_text="01_words_as_vectors")).to_be_visible()


def test_only_what_is_for_learners_is_listed(own: Page, url: str) -> None:
    own.goto(f"{url}/lab/tree/notebooks?reset")
    expect(own.locator(".jp-DirListing-itemText", has_text="01_words")).to_be_visible()
    assert own.locator(".jp-DirListing-itemText", has_text="nbval.cfg").count() == 0
