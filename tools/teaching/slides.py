"""Slides of a chapter, by nbconvert and reveal.js, in one HTML file that loads nothing.

    slides(Path("notebooks/04_queries_keys_values.ipynb"), Path("build/slides/04.html"))

Which cells are shown, and where a slide begins, is chosen in the notebook: JupyterLab's Property
Inspector has a field Slide Type. Of a long paragraph, a slide shows what is bold; the speaker's
notes have it all. Explorers move, as in the book.
"""

import re
from base64 import b64encode
from collections.abc import Iterator
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import mathml
import nbformat
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbconvert import SlidesExporter
from nbformat import NotebookNode
from pygments.formatters import HtmlFormatter

from teaching.exercises_of import NOTEBOOKS, embedded

WORDS = 50  # of a paragraph that is shown whole
LARGEST = 2  # megabytes of a model that a page brings for its explorer
STATIC = Path(mathml.__file__).with_name("static")
NO_PROSE = re.compile(r"(#|!|[-*>|] |\d+\. |\||```|\$\$|<)")
BOLD = re.compile(r"\*\*.+?\*\*", re.S)
parser = MarkdownIt("commonmark").enable("table")
parser.use(
    dollarmath_plugin,
    allow_digits=True,  # otherwise it misses a formula that opens a cell which ends in a digit
    renderer=lambda latex, options: mathml.mathml(latex, block=options["display_mode"]),
)


def slides(chapter: Path, out: Path) -> Path:
    """Make the slides of a notebook, as it is: nothing is run. Returns out, the file written.

    An out.ipynb is a notebook to edit, the slides of which will show its text as it stands.
    """
    notebook = nbformat.read(chapter, as_version=4)
    if "slides_of" not in notebook.metadata:
        notebook.metadata.slides_of = chapter.stem
        notebook.cells = list(shortened(notebook.cells, spoken(chapter.stem)))
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.suffix == ".ipynb":
        if out.exists():
            raise ValueError(f"{out} is there already, perhaps with your changes: move it away")
        with out.open("w", encoding="utf-8") as file:
            nbformat.write(notebook, file)
        return out
    own = {"title": notebook.metadata.slides_of, "reveal_file": reveal_file, "type": type_sheet()}
    own |= {"formula_font": formula_font(), "files": live(notebook)}
    own["live"] = (STATIC / "live.js").read_text("utf-8")
    own["colours"] = HtmlFormatter(style="a11y-high-contrast-light").get_style_defs(".highlight")
    exporter = SlidesExporter(
        raw_template=(Path(__file__).parent / "slides.html").read_text("utf-8"),
        filters={"markdown2html": parser.render},
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    exporter.config.NbConvertBase.display_data_priority = ["image/png", "text/html", "text/plain"]
    page, _ = exporter.from_notebook_node(notebook, {"own": own})
    out.write_text(embedded(page), "utf-8")
    return out


def shortened(cells: list[NotebookNode], about: str) -> Iterator[NotebookNode]:
    """Cells as they are shown: text cut before headings, and shortened; the whole in the notes.

    A few words get no slide of their own, but stand above what follows, or below what precedes."""
    kinds = [cell.metadata.get("slideshow", {}).get("slide_type", "-") for cell in cells]
    leads = False
    for number, (cell, chosen) in enumerate(zip(cells, kinds, strict=True)):
        if cell.cell_type != "markdown" or chosen in ("skip", "notes"):
            if leads and chosen == "subslide":
                cell.metadata.slideshow.slide_type = "-"
            leads = leads and chosen in ("skip", "notes")
            yield cell
            continue
        texts = re.split(r"\n+(?=###? |\*Reading: )", cell.source)
        begin = [chosen, *("slide" if text.startswith("## ") else "subslide" for text in texts[1:])]
        later = [kind for kind in kinds[number + 1 :] if kind not in ("skip", "notes")]
        for text, kind, then in zip(texts, begin, [*begin[1:], *later[:1], "slide"], strict=False):
            shown = short(text, then == "fragment")
            above = leads or shown.startswith("#") or shown.endswith(":")
            few = len(shown.split()) <= (WORDS if above else WORDS // 2) and "slide" in then
            if kind == "subslide" and (leads or (few and not above)):
                kind = "-"
            leads = few and above and number > 0 and (leads or "slide" in kind)
            notes = about if number == 0 and text is texts[0] else text if shown != text else ""
            for source, use in ((shown, kind), (notes, "notes")):
                if source or (not few and "slide" in use):  # nothing, where code begins a slide
                    how = {"slideshow": {"slide_type": use}}
                    yield nbformat.v4.new_markdown_cell(source, metadata=how)


def short(text: str, asks: bool = False) -> str:
    """Markdown without its long paragraphs: of these what is bold. If the next key answers what it
    asks at its end, that stays.

    >>> short("## 1\\n\\nIt is **a**. " + "Nobody knows why. " * 20 + "So **b**.")
    '## 1\\n\\n**a**\\u2003**b**'
    """
    blocks = re.split(r"\n{2,}", text)
    for number, block in enumerate(blocks):
        whole = "**Predict" in block or (asks and number == len(blocks) - 1)
        long = len(block.split()) > WORDS and not NO_PROSE.match(block)
        if (long and not whole) or block.startswith("*Reading: "):
            blocks[number] = "\u2003".join(dict.fromkeys(BOLD.findall(block)))
    return "\n\n".join(filter(None, blocks))


def spoken(stem: str) -> str:
    """What the teacher's page of a chapter says of minutes, pauses and questions to ask."""
    path = NOTEBOOKS.parent / "docs" / "teaching" / f"{stem}.md"
    page = path.read_text("utf-8") if path.exists() else ""
    parts = re.findall(r"(?sm)^\[The chapter\]\S+ .*?\n|^## Ask aloud\n.*?(?=^## |\Z)", page)
    return re.sub(r"\[(.*?)\]\([^)]*\)", r"\1", "\n".join(parts))


def live(notebook: NotebookNode) -> dict[str, str]:
    """Put explorers that move into the outputs, as in the book: the scripts they need, as URLs."""
    import sources  # torch takes seconds

    states = sources.kept_states(NOTEBOOKS / f"{notebook.metadata.slides_of}.ipynb")
    pages = ""
    for cell in notebook.cells:
        kept = states.get(cell.get("id"), [])
        for state in kept:
            if "file" in state["traits"] and state["traits"].get("megabytes", 9) > LARGEST:
                state["traits"]["file"] = ""
        hidden, shown = cell.metadata.get("jupyter", {}).get("source_hidden", False), iter(kept)
        for output in cell.get("outputs", []):
            if sources.show_output(output, {}, shown):
                page = re.sub(r" \(<a href=.*?</a>\)", "", output.data["text/html"])
                output.data = NotebookNode({"text/html": page})
                pages, hidden = pages + page, True
        cell.metadata.transient = {"remove_source": hidden}
    with TemporaryDirectory() as made:
        sources.write_explorers(Path(made))
        if re.search(r'"file":"\w', pages):
            sources.write_weights(Path(made))
        files = [path for path in Path(made).iterdir() if f'"{path.stem}"' in pages]
        return {p.stem: "data:text/javascript," + quote(p.read_text("utf-8"), "+/=") for p in files}


def reveal_file(name: str) -> str:
    """A file of reveal.js, which comes with sphinx-revealjs."""
    package = find_spec("sphinx_revealjs")
    assert package is not None and package.origin is not None
    return (Path(package.origin).parent / "_static" / "revealjs" / name).read_text("utf-8")


def type_sheet() -> str:
    """The style sheet of the book's type, with its fonts inside."""
    sheet = (STATIC / "type.css").read_text("utf-8")
    inside = lambda name: data_url("font/woff2", (STATIC / name[0]).read_bytes())  # noqa: E731
    return re.sub(r"(?<=url\()fonts/[^)]+", inside, sheet)


def formula_font() -> str:
    """The font of formulae, without the signs that no formula of the course has."""
    file = BytesIO()
    signs = {*range(0x20, 0x250), *range(0x370, 0x400), *range(0x2000, 0x2C00), *mathml.DRAWN}
    mathml.cut_font(mathml.font_file(), signs).save(file)
    return data_url("font/woff", file.getvalue())


def data_url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode('ascii')}"
