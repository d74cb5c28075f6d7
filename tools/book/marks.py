"""What the style sheet and links from other pages need to find in a chapter.

A cell that proves a claim or shows a study has an anchor: `claim:W9` is #claim-w9 of its page. The
line that leads to the chapters before and after is marked, so that it is not printed.
"""

import re
from typing import Any

from docutils import nodes


def mark(app: Any, tree: nodes.document) -> None:
    given: set[str] = set()  # of two cells with one tag the first has the anchor
    for cell in tree.findall(nodes.container):
        for tag in cell["classes"]:
            anchor = nodes.make_id(tag.removeprefix("tag_"))
            if tag.startswith(("tag_claim:", "tag_study:")) and anchor not in given:
                given.add(anchor)
                cell["ids"].append(anchor)
    for line in tree.findall(nodes.paragraph):
        if re.search(r"^← | →($| · open in )", line.astext()):
            line["classes"].append("onward")


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
