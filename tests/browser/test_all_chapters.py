"""Every chapter in a real JupyterLab: its outputs show, its explorers live, an exercise answers."""

import pytest
from lab import CHAPTERS, broken_images, changed, errors, live_widgets
from playwright.sync_api import expect


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
    explorers = page.locator(".d2g").all()
    assert len(explorers) == live_widgets(page) > 0
    for explorer in explorers:
        assert changed(explorer, lambda explorer=explorer: use(explorer))
    for answer in ("not attempted", "✔ right"):
        expect(page.locator(".jp-OutputArea-output", has_text=answer).first).to_be_visible()
