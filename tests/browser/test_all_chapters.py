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
    explorers, alive = page.locator(".d2g"), live_widgets(page)
    assert alive > 0
    expect(explorers).to_have_count(alive)
    for explorer in explorers.all():
        assert changed(explorer, lambda explorer=explorer: use(explorer))
    for answer in ("not attempted", "✔ right"):
        expect(page.locator(".jp-OutputArea-output", has_text=answer).first).to_be_visible()
