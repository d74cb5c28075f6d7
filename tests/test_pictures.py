"""The pictures at the heads of the chapters (how they look: python tools/pictures.py)."""

import re

import pictures
from conftest import ROOT


def test_each_chapter_opens_with_its_picture(chapter, notebook):
    number = chapter.stem[:2]
    head = rf"# {number} · .*\n\n!\[([^\]]+)\]\(pictures/{number}\.svg\)\n\n\*\*"
    found = re.match(head, notebook.cells[0].source)
    assert found and len(found[1].split()) > 10
    assert (ROOT / "notebooks" / "pictures" / f"{number}.svg").is_file()


def test_the_committed_pictures_are_those_that_are_drawn():
    """If this fails, a number of a chapter has changed: python tools/pictures.py draws it again."""
    for path, svg in pictures.pictures().items():
        assert path.read_text("utf-8") == svg, path.name
        assert len(svg) < 30_000 and "http" not in svg.replace("http://www.w3.org/2000/svg", "")
