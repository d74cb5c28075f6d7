"""Slides: they load nothing, and show a chapter's sections and pictures (look: tests/browser)."""

import re

import nbformat
from conftest import CHAPTERS
from teaching.slides import slides


def test_a_deck_has_all_sections_and_pictures_of_the_core_and_loads_nothing(tmp_path):
    path = next(path for path in CHAPTERS if path.stem.startswith("04"))
    draft = slides(path, tmp_path / "made" / "draft.ipynb")
    page = slides(draft, tmp_path / "deck.html").read_text("utf-8")
    page = re.sub(r"(?s)<script.*?</script>", "", page)
    assert 'data-class="AttentionExplorer"' in page and ">Ask aloud</h2>" in page
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
