"""The pictures at the heads of the chapters (how they look: python tools/pictures.py)."""

import re

import pictures
import pytest
from conftest import CHAPTERS, ROOT, parsed


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_each_chapter_opens_with_its_picture(chapter):
    """But chapter 00 opens with a machine that writes; its picture is the road."""
    number = chapter.stem[:2]
    head = "## The road" if number == "00" else f"# {number} · .*"
    text = "\n\n".join(cell.source for cell in parsed(chapter).cells)
    found = re.search(rf"(?m)^{head}\n\n!\[([^\]]+)\]\(pictures/{number}\.svg\)\n\n", text)
    assert found and len(found[1].split()) > 10
    assert (ROOT / "notebooks" / "pictures" / f"{number}.svg").is_file()


def test_the_committed_pictures_are_those_that_are_drawn():
    """If this fails, a number of a chapter has changed: python tools/pictures.py draws it again."""
    for path, svg in pictures.pictures().items():
        assert path.read_text("utf-8") == svg, path.name
        assert len(svg) < 30_000 and "http" not in svg.replace("http://www.w3.org/2000/svg", "")
