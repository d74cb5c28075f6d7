"""Cells that prove a claim or show a study have anchors: `claim:W9` is #claim-w9 of its page."""

from typing import Any

from docutils import nodes


def name(app: Any, tree: nodes.document) -> None:
    given: set[str] = set()  # of two cells with one tag the first has the anchor
    for cell in tree.findall(nodes.container):
        for tag in cell["classes"]:
            anchor = nodes.make_id(tag.removeprefix("tag_"))
            if tag.startswith(("tag_claim:", "tag_study:")) and anchor not in given:
                given.add(anchor)
                cell["ids"].append(anchor)


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
