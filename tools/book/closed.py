"""Sections that begin with the word Deeper are closed: title and summary show, a click opens."""

from typing import Any

from docutils import nodes


def close(app: Any, tree: nodes.document) -> None:
    for section in list(tree.findall(nodes.section)):
        title, *rest = section.children
        if title.astext().startswith("Deeper"):
            opening = '<details class="deeper"><summary>Not needed for the next chapter</summary>'
            section.children = []
            section += [title, nodes.raw("", opening, format="html"), *rest]
            section += nodes.raw("", "</details>", format="html")


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", close)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
