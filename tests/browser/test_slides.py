"""The slides of the chapters: nothing is cut off, no type is small, and nothing is loaded."""

from pathlib import Path

import lab
import pytest
from lab import CHAPTERS
from playwright.sync_api import Browser
from teaching.slides import slides

# What of the slide that is shown lies outside its margins, or has type below 18 pixels.
TOO_MUCH = """() => {
  const slide = Reveal.getCurrentSlide().querySelector(".slide");
  const outside = [...slide.querySelectorAll("*")].filter((part) => {
    const { left, top, right, bottom } = part.getBoundingClientRect();
    return left < 50 || top < 20 || right > 1230 || bottom > 680;
  });
  const texts = document.evaluate(".//text()[normalize-space()]", slide, null, 7);
  const small = Array.from({ length: texts.snapshotLength }, (_, n) => texts.snapshotItem(n))
    .map((text) => text.parentElement)
    .filter((part) => !part.closest("math") && parseFloat(getComputedStyle(part).fontSize) < 18);
  return [...outside, ...small].map((part) => part.outerHTML.slice(0, 200));
}"""


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_every_slide_fits_and_nothing_leaves_the_machine(
    chapter: Path, browser: Browser, tmp_path: Path
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, offline=True)
    page, problems = context.new_page(), []
    lab.watch(page, problems)
    page.goto(slides(chapter, tmp_path / "deck.html").as_uri())
    page.wait_for_function("window.Reveal?.isReady()")
    page.add_style_tag(content=".fragment { transition: none !important; }")
    places = page.evaluate("Reveal.getSlides().map((slide) => Reveal.getIndices(slide))")
    for place in places:
        page.evaluate("({ h, v }) => Reveal.slide(h, v, 99)", place)
        assert page.evaluate(TOO_MUCH) == [], place
    lab.noticed(page)
    context.close()
    assert len(places) > 30
    assert problems == []
