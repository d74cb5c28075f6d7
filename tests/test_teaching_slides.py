"""Slides: they load nothing, and show a chapter's sections and pictures (look: tests/browser)."""

import re

import nbformat
from conftest import CHAPTERS
from teaching.slides import short, slides


def test_a_deck_has_all_sections_and_pictures_of_the_core_and_loads_nothing(tmp_path):
    path = next(path for path in CHAPTERS if path.stem.startswith("04"))
    page = slides(path, tmp_path / "made" / "deck.html").read_text("utf-8")
    page = re.sub(r"(?s)<script>.*?</script>", "", page)
    assert len(page) < 5_000_000 and "$" not in page and "data:image/svg+xml;base64," in page
    assert not re.search(r'(src|href)="(?!data:|http|#)', page) and "<script" not in page
    assert not re.search(r"@import|url\((?!data:)", page)
    for cell in nbformat.read(path, 4).cells:
        if cell.metadata.get("slideshow", {}).get("slide_type") == "skip":
            continue
        for heading in re.findall(r"(?m)^#{1,2} (.*)", cell.source if "id" in cell else ""):
            assert cell.cell_type == "code" or f">{heading}</h" in page
        for output in cell.get("outputs", []):
            picture = output.get("data", {}).get("image/png", "").replace("\n", "")
            assert picture[:4000] in page.replace("\n", "")


def test_every_chapter_chooses_its_slides():
    for path in CHAPTERS:
        cells = nbformat.read(path, 4).cells
        kinds = [cell.metadata.get("slideshow", {}).get("slide_type", "-") for cell in cells]
        assert set(kinds) <= {"slide", "subslide", "fragment", "skip", "notes", "-"}
        assert kinds[0] == "slide" and kinds.count("subslide") > 5


def test_long_text_keeps_its_first_sentence_what_is_bold_and_the_last():
    more = "Nobody knows why it is so. " * 9
    assert short(f"## 1\n\nWe begin. {more}**It is small, is it not? See?** {more}So:\n\n- a") == (
        "## 1\n\nWe begin. **It is small, is it not? See?** So:\n\n- a"
    )
    assert short(f"{more}So $x$ is **1**:") == "So $x$ is **1**:"
    assert short("It is.\n\n$$\nx\n\ny\n$$") == "It is.\n\n$$\nx\n\ny\n$$"
