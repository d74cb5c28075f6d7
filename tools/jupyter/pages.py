"""Chapters as pages: links lead from page to page, and pictures keep their alternative text."""

import html
import re
from typing import Any

from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode


def to_pages(text: str) -> str:
    """05_scaling.ipynb as the goal of a link, in Markdown or HTML, becomes 05_scaling.html."""
    return re.sub(r"""((?:\]\(|href=["'])\d\d_\w+)\.ipynb(?=[)#"'])""", r"\1.html", text)


class Pages(Preprocessor):
    """What nbconvert leaves undone: it changes no link, and looks for no alternative text."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], _: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        if cell.cell_type == "markdown":
            cell.source = to_pages(cell.source)
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            for kind in {"text/html", "text/markdown"} & data.keys():
                data[kind] = to_pages(data[kind])
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            if alt and "image/png" in data:
                source = f"data:image/png;base64,{data.pop('image/png').strip()}"
                data["text/html"] = f'<img src="{source}" alt="{html.escape(alt)}">'
        return cell, resources
