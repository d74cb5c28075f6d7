"""docs/WORDS.md holds: no home-made word for what has a name in the field."""

import ast

import figures
import pytest
from conftest import ROOT


def test_a_chapter_uses_the_words_of_the_field(chapter, notebook):
    """A picture from the list may stand once in the chapter that the list names."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    text = figures.prose("\n\n".join(texts))
    for row, found in figures.home_made(text).items():
        allowed = int(chapter.stem[:2] in figures.words()[row][1])
        assert len(found) <= allowed, f"{found}: docs/WORDS.md has the field's term"


@pytest.mark.parametrize("path", sorted((ROOT / "helpers").rglob("*.py")), ids=lambda p: p.stem)
def test_docstrings_use_the_words_of_the_field(path):
    module = path.relative_to(ROOT / "helpers").parts[0].removesuffix(".py")
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, kinds)]
    text = "\n".join(ast.get_docstring(node) or "" for node in nodes)
    for row, found in figures.home_made(text).items():
        assert module in figures.words()[row][1], f"{found}: docs/WORDS.md has the field's term"
