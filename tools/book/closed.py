"""The sections Deeper and Evidence are closed: title and summary show, a click opens.

A link to a cell in one of them, `#claim-q1`, opens it: browsers open what hides the target.
"""

from typing import Any

from docutils import nodes

SUMMARIES = {
    "Deeper": "Not needed for the next chapter",
    "Evidence": "What was tried for each claim, what came out, and how sure it is",
}


def close(app: Any, tree: nodes.document) -> None:
    for section in list(tree.findall(nodes.section)):
        title, *rest = section.children
        kind = title.astext().partition(" ")[0].strip(":")
        if kind in SUMMARIES:
            opening = f'<details class="{kind.lower()}"><summary>{SUMMARIES[kind]}</summary>'
            section.children = []
            section += [title, nodes.raw("", opening, format="html"), *rest]
            section += nodes.raw("", "</details>", format="html")


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", close)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
