"""The search's index: the text of each section, which static/search.js looks through.

It takes the place of Sphinx's, which knows only on which pages a word stands.
"""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

from docutils import nodes
from mathml import mathml


def words(node: nodes.Node) -> str:
    """The text under a node, without that of the sections in it and of outputs."""
    match node:
        case nodes.Text():
            return str(node)
        case nodes.math() | nodes.math_block():
            return unescape(re.sub(r"<[^>]*>", "", mathml(node.astext())))
        case nodes.raw():
            return unescape(re.sub(r"<[^>]*>", " ", node.astext()))
        case nodes.title() | nodes.section() | nodes.Invisible():
            return ""
        case nodes.Element() if {"cell_output", "web", "onward"} & set(node["classes"]):
            return ""
    between = "" if isinstance(node, nodes.TextElement) else " "
    return between.join(words(child) for child in node.children)


def sections(page: str, tree: nodes.document) -> list[list[str]]:
    """For each section the title of its page, its address, its own title and its text."""
    found: list[list[str]] = []
    for section in tree.findall(nodes.section):
        title = "".join(map(words, section.children[0].children))
        address = f"{page}.html#{section['ids'][0]}" if found else f"{page}.html"
        text = " ".join(words(child) for child in section.children)
        found.append([found[0][2] if found else title, address, title, " ".join(text.split())])
    return found


def write(app: Any, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    pages = sorted(app.env.found_docs, key=lambda page: (not page[0].isdigit(), page))
    index = [entry for page in pages for entry in sections(page, app.env.get_doctree(page))]
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    Path(app.outdir, "searchindex.js").write_text(f"Search.setIndex({text});\n", "utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
