"""Every explorer in /lab, the file browser beside it: on one screen, and all by keyboard."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import lab
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import explorers

HIGHEST = 560
SIZES = {"1280": (1280, 800), "1024": (1024, 700)}
EXPLORERS = sorted(set(explorers.__all__) - {"Explorer"})
PAD = "# the cell above, long enough to scroll\n" * 60


@pytest.fixture(scope="module")
def page(browser: Browser, lab_url: str, lab_folder: Path) -> Iterator[Page]:
    """A page with one notebook: an explorer a cell, none run."""
    cells = [PAD]
    for name in EXPLORERS:
        cells += [f"from explorers import {name}\n{name}.example()", PAD]
    page = lab.new_page(browser, [], reduced_motion="reduce")  # pictures are compared
    lab.write_notebook(lab_folder / "one-screen.ipynb", cells)
    lab.open_in_lab(page, lab_url, "one-screen.ipynb")
    yield page
    lab.close_notebook(page)
    page.context.close()


@pytest.fixture(scope="module", params=itertools.product(SIZES, EXPLORERS), ids="-".join)
def shown(request: pytest.FixtureRequest, page: Page) -> Locator:
    """The explorer after Shift+Enter in its cell; the tests use it in the order of this file."""
    size, name = request.param
    width, height = SIZES[size]
    if page.viewport_size != {"width": width, "height": height}:  # as if opened in this size
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
        expect(page.locator(".d2g")).to_have_count(0)
    index = 1 + 2 * EXPLORERS.index(name)
    node = page.locator(".jp-Notebook .jp-Cell").nth(index).locator(".d2g")
    lab.select_cell(page, index)
    page.keyboard.press("Shift+Enter")
    node.wait_for()
    assert lab.errors(page) == []
    return node


_PANEL = "window.jupyterapp.shell.currentWidget.content"
_INSIDE = "node => node !== document.activeElement && node.contains(document.activeElement)"
_CONTROLS = "button, input, textarea, [tabindex='0']"


def test_it_fits_one_screen_and_stands_on_it(
    shown: Locator, request: pytest.FixtureRequest
) -> None:
    page = shown.page
    lab.next_frame(page)
    lab.shot(page, f"one-screen-{request.node.callspec.id}")
    assert shown.bounding_box()["height"] <= HIGHEST
    assert lab.sticking_out(shown) == []
    top, bottom = page.evaluate(
        f"(() => {{ const box = {_PANEL}.outerNode.getBoundingClientRect();"
        " return [box.top, box.bottom]; })()"
    )

    def in_view() -> bool:
        box = shown.bounding_box()
        return top - 1 <= box["y"] and box["y"] + box["height"] <= bottom + 1

    lab.eventually(in_view, True)


def test_keys_enter_it_stay_in_it_and_leave_it(shown: Locator) -> None:
    page = shown.page
    page.keyboard.press("e")
    lab.eventually(lambda: shown.evaluate(_INSIDE), True)
    ring = "() => getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(ring) != "none"
    cell = "node => node.closest('.jp-Cell').classList.contains('jp-mod-active')"
    lab.eventually(lambda: shown.evaluate(cell), True)
    page.wait_for_timeout(1000)  # so long it may still find its size and be scrolled into view
    scrolled = f"() => {_PANEL}.outerNode.scrollTop"
    before = page.evaluate(scrolled)
    for control in shown.locator(_CONTROLS).all():
        if control.is_visible() and control.is_enabled():
            control.focus()
            keys = ["End", "Home", "PageDown", "PageUp", "ArrowDown", "ArrowUp"]
            kind = control.evaluate("c => c.type || c.tagName")
            for key in keys if kind in ("submit", "button", "checkbox") else [*keys, "Space"]:
                page.keyboard.press(key)
            assert abs(page.evaluate(scrolled) - before) < 30, (
                key,
                control.evaluate("c => c.outerHTML"),
            )
    page.keyboard.press("Escape")
    lab.eventually(lambda: shown.evaluate(_INSIDE), False)
    lab.eventually(lambda: shown.evaluate(cell), True)
    lab.eventually(lambda: page.evaluate(f"{_PANEL}.mode"), "command")
    assert page.evaluate(f"{_PANEL}.node.contains(document.activeElement)")


def test_it_follows_the_theme_and_running_its_cell_again_leaves_one(
    shown: Locator, request: pytest.FixtureRequest
) -> None:
    page, (size, name) = shown.page, request.node.callspec.params["shown"]
    if size == "1280":  # one size will do
        lab.both_themes(shown, name)
    assert lab.run_cell_at(page, 1 + 2 * EXPLORERS.index(name)) == []
    expect(shown).to_have_count(1)
    assert lab.live_widgets(page, name) == 1
