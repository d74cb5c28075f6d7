"""Links between files lead somewhere, also where they are read as files: on GitHub, in JupyterLab.

The pages of the book, where all links are others, are read by tests/browser/test_book.py.
"""

import re
from urllib.parse import unquote

import pytest
from conftest import NOTEBOOKS, ROOT, parsed

DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "data" / "README.md"]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")


def text_of(path):
    if path.suffix == ".ipynb":
        cells = parsed(path).cells
        return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return path.read_text("utf-8")


def prose_of(path):
    return re.sub(r"(?s)```.*?```|`[^`]*`|\$[^$\n]*\$", "", text_of(path))


def anchors(path):
    """Those of the headings of a file: JupyterLab keeps capitals and signs, GitHub does not."""
    text = re.sub(r"(?s)```.*?```", "", text_of(path))
    headings = [re.sub(r"[`*]", "", found) for found in re.findall(r"(?m)^#+ (.+?)\s*$", text)]
    if path.suffix == ".ipynb":
        return {heading.replace(" ", "-") for heading in headings}
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [*DOCUMENTS, *NOTEBOOKS], ids=lambda path: path.stem)
def test_no_link_to_a_file_or_a_heading_is_dead(path):
    for name, anchor in LINK.findall(prose_of(path)):
        target = path.parent / unquote(name) if name else path
        assert target.exists(), f"no file {name}"
        if anchor and target.suffix in (".md", ".ipynb"):
            assert unquote(anchor) in anchors(target), f"no heading {name}#{anchor}"
