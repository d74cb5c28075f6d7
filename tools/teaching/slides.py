"""Slides of a chapter, by nbconvert and reveal.js, in one HTML file that loads nothing.

    slides(Path("notebooks/04_queries_keys_values.ipynb"), Path("build/slides/04.html"))

Which cells are shown, and where a slide begins, is chosen in the notebook: JupyterLab's Property
Inspector has a field Slide Type. Of long text, a slide shows the first sentence, the ones with
something in bold, and the last; the speaker's notes have it all.
"""

import re
from base64 import b64encode
from collections.abc import Iterator
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import mathml
import nbformat
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbconvert import SlidesExporter
from nbformat import NotebookNode
from pygments.formatters import HtmlFormatter

from teaching.exercises_of import embedded

SHORT = 160  # letters of a paragraph that is shown whole
KEPT_WHOLE = re.compile(r"```.*?```|<details>.*?</details>|\$\$.*?\$\$", re.S)
NO_PROSE = re.compile(r"(#|!|[-*>|] |\d+\. |\||```|\$\$|<)")
parser = MarkdownIt("commonmark").enable("table")
parser.use(
    dollarmath_plugin,
    allow_digits=True,  # otherwise it misses a formula that opens a cell which ends in a digit
    renderer=lambda latex, options: mathml.mathml(latex, block=options["display_mode"]),
)


def slides(chapter: Path, out: Path) -> Path:
    """Make the slides of a notebook, as it is: nothing is run. Returns out, the file written."""
    notebook = nbformat.read(chapter, as_version=4)
    notebook.cells = [piece for cell in notebook.cells for piece in pieces(cell)]
    exporter = SlidesExporter(
        raw_template=(Path(__file__).parent / "slides.html").read_text("utf-8"),
        filters={"markdown2html": parser.render},
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    exporter.config.NbConvertBase.display_data_priority = ["image/png", "text/html", "text/plain"]
    own = {"title": chapter.stem, "reveal_file": reveal_file, "formula_font": formula_font()}
    own["type"] = type_sheet()
    own["colours"] = HtmlFormatter(style="a11y-high-contrast-light").get_style_defs(".highlight")
    page, _ = exporter.from_notebook_node(notebook, {"own": own})
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(embedded(page), "utf-8")
    return out


def pieces(cell: NotebookNode) -> Iterator[NotebookNode]:
    """A cell as it is shown: text cut before headings, shortened, the whole in the notes."""
    chosen = cell.metadata.get("slideshow", {}).get("slide_type", "-")
    if cell.cell_type == "code":
        cell.metadata.transient = {
            "remove_source": cell.metadata.get("jupyter", {}).get("source_hidden", False)
        }
    if cell.cell_type != "markdown" or chosen in ("skip", "notes"):
        yield cell
        return
    before = "text"
    for number, text in enumerate(re.split(r"\n+(?=###? |\*Reading: )", cell.source)):
        begins = "slide" if text.startswith("## ") else "subslide"
        if re.fullmatch("#.*", before):  # nothing but a heading
            begins = "-"
        for source, kind in ((short(text), begins if number else chosen), (text, "notes")):
            piece = nbformat.v4.new_markdown_cell(source)
            piece.metadata.slideshow = NotebookNode(slide_type=kind)
            yield piece
        before = text


def short(text: str) -> str:
    """Markdown without most of its long paragraphs.

    >>> short("## 1\\n\\nIt is **a**. " + "Nobody knows why it is. " * 9 + "So it is:")
    '## 1\\n\\nIt is **a**. So it is:'
    """
    held = KEPT_WHOLE.findall(text)
    places = iter(range(len(held)))
    text = KEPT_WHOLE.sub(lambda _: f"<{next(places)}>", text)
    blocks = re.split(r"\n{2,}", text)
    for number, block in enumerate(blocks):
        if len(block) > SHORT and not NO_PROSE.match(block):
            said = sentences(block)
            opens = number > 0 and blocks[number - 1].startswith("#")
            kept = [s for n, s in enumerate(said) if "**" in s or (opens and n == 0)]
            leads = number == len(blocks) - 1 or said[-1].endswith(":")
            if leads and said[-1] not in kept:
                kept.append(said[-1])
            blocks[number] = " ".join(kept)
    text = "\n\n".join(filter(None, blocks))
    return re.sub(r"<(\d+)>", lambda place: held[int(place[1])], text)


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph; what is bold stays whole."""
    found: list[str] = []
    for part in re.split(r"(?<=[.?!*)])(?<![A-Z]\.)\s+(?=[A-Z*$`\"])", " ".join(text.split())):
        open_bold = found and found[-1].count("**") % 2
        term = found and re.fullmatch(r"\*\*[^*]{,22}\*\*", found[-1])
        if open_bold or term or (found and not re.search(r"[.?!][*)\"]*$", found[-1])):
            found[-1] += f" {part}"
        else:
            found.append(part)
    return found


def reveal_file(name: str) -> str:
    """A file of reveal.js, which comes with sphinx-revealjs."""
    package = find_spec("sphinx_revealjs")
    assert package is not None and package.origin is not None
    return (Path(package.origin).parent / "_static" / "revealjs" / name).read_text("utf-8")


def type_sheet() -> str:
    """The style sheet of the book's type, with its fonts inside."""
    static = Path(__file__).resolve().parents[1] / "book" / "static"

    def inside(url: re.Match[str]) -> str:
        return f"url(data:font/woff2;base64,{b64encode((static / url[1]).read_bytes()).decode()})"

    return re.sub(r"url\((fonts/[^)]+)\)", inside, (static / "type.css").read_text("utf-8"))


def formula_font() -> str:
    """The font of formulae as base64, without the signs that no formula of the course has."""
    file = BytesIO()
    signs = {*range(0x20, 0x250), *range(0x370, 0x400), *range(0x2000, 0x2C00), *mathml.DRAWN}
    mathml.cut_font(mathml.font_file(), signs).save(file)
    return b64encode(file.getvalue()).decode("ascii")
