"""The slides of chapters: nothing is cut off, no type is small, and nothing is loaded."""

from pathlib import Path

import lab
import pytest
from lab import CHAPTERS
from playwright.sync_api import Browser
from teaching.slides import slides


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_every_slide_fits_and_nothing_leaves_the_machine(
    chapter: Path, browser: Browser, tmp_path: Path
) -> None:
    problems: list[str] = []
    page = lab.new_page(browser, problems, height=720, offline=True)
    page.goto(slides(chapter, tmp_path / "deck.html").as_uri())
    page.wait_for_function("window.Reveal?.isReady()")
    places = page.evaluate("Reveal.getSlides().map((slide) => Reveal.getIndices(slide))")
    for place in places:
        page.evaluate("({ h, v }) => Reveal.slide(h, v, 99)", place)
        size = "(slide) => [slide.scrollWidth, slide.scrollHeight]"
        assert page.evaluate(f"({size})(Reveal.getCurrentSlide())") == [1280, 720], place
    assert page.locator(".explorer:not(.live)").count() == 0
    lab.noticed(page)
    page.context.close()
    assert len(places) > 10
    assert problems == []
