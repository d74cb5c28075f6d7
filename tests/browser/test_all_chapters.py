"""Every chapter in a real JupyterLab: its outputs show, its explorers live, an exercise answers."""

import nbformat
import pytest
from lab import CHAPTERS, broken_images, changed, errors, live_widgets, run_cell_at, run_hidden
from playwright.sync_api import expect
from slices import solution


def first_exercise(name):
    """The text of its task, and the index of its check."""
    (path,) = (path for path in CHAPTERS if path.name == name)
    cells = nbformat.read(path, as_version=4).cells
    check = next(i for i, cell in enumerate(cells) if "check" in cell.metadata.get("tags", []))
    return cells[check - 2].source, check


def use(explorer):
    """Do something to which every explorer answers with another picture."""
    sliders = explorer.locator("input[type=range]:visible, [role=slider]")
    if sliders.count():
        for key in ("ArrowRight", "Home"):  # an arrow's tip knows the first, a row the second
            sliders.first.press(key)
    else:
        explorer.get_by_role("textbox").first.fill("piano")


@pytest.mark.parametrize("name", [path.name for path in CHAPTERS])
def test_the_chapter_shows_and_lives(name, chapter):
    """No error output, no console error, no failed request, nothing asked of another machine."""
    page = chapter(name)
    assert errors(page) == []
    assert broken_images(page) == 0
    explorers, alive = page.locator(".d2g"), live_widgets(page)
    assert alive > 0
    expect(explorers).to_have_count(alive)
    for explorer in explorers.all():
        assert changed(explorer, lambda explorer=explorer: use(explorer))
    outputs = page.locator(".jp-OutputArea-output")
    expect(outputs.filter(has_text="not attempted").first).to_be_visible()
    task, check = first_exercise(name)
    run_hidden(page, solution(task))
    assert run_cell_at(page, check) == []
    expect(outputs.filter(has_text="✔ right").first).to_be_visible()
