"""The sources of the book's pages, made of the chapters, the documents and the studies."""

import ast
import functools
import json
import re
import shutil
from base64 import b64encode
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

import clean
import home
import nbformat
from docutils.nodes import make_id
from nbformat import NotebookNode

import explorers
import notebooks
from explorers.packed import name_of, packed, packed_words
from helpers import data
from helpers.formats.checkpoints import load_checkpoint
from studies import FOLDER, results

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
REFERENCE = ROOT / "notebooks" / "look_it_up.ipynb"
# A page's name → its file.
DOCUMENTS = {
    "install": ROOT / "docs" / "INSTALL.md",
    "teaching": ROOT / "docs" / "TEACHING.md",
    "measured": ROOT / "docs" / "MEASURED.md",
    "errata": ROOT / "docs" / "ERRATA.md",
    "scaling": ROOT / "docs" / "SCALING.md",
    "export": ROOT / "docs" / "EXPORT.md",
    "contributing": ROOT / "docs" / "CONTRIBUTING.md",
    "words": ROOT / "docs" / "WORDS.md",
    "data": ROOT / "data" / "README.md",
}
# The pages beside docs/TEACHING.md, but not the questions, whose answers students should not see.
TEACHING = {f"teaching_{path.stem}": path for path in sorted(ROOT.glob("docs/teaching/*.md"))}
DOCUMENTS |= TEACHING
ABOUT = {
    "install": "Install",
    "studies": "Studies",
    "measured": "What is measured",
    "errata": "Errata",
    "scaling": "From a laptop to a cluster",
    "export": "Take your model along",
    "teaching": "Teaching",
    "data": "Data",
    "contributing": "Contributing",
    "words": "Words",
}
# Without their files a page shows the picture.
NEED_FILES = {"CompassExplorer", "SentenceExplorer", "Typewriter"}
# What the README and the chapters link to, beside pages.
SCRIPTS = ["notebooks/train_distributed.py"]
FILES = ["LICENSE", "notebooks/LICENSE", "docs/CITATION.cff", "train.py", "sample.py", *SCRIPTS]

HERO = "00_start_here"  # the chapter whose first explorer opens the first page
HERO_PICTURE = r"!\[[^]]*\]\(typewriter\.gif\)\n(\n(> .*\n)+)?"  # and lines that it shows, too
CLOSED = re.compile(r"<details>\s*<summary>(?=(Hint|Solution))")
SUMMARY = re.compile(r"(?<=<summary>).*?(?=</summary>)", re.S)
HERE_YOU_READ = """\
```{container} web
This is the web version: the explorers move, but the code does not run. To run it, open the chapter
[in JupyterLab](install.md)OR.
```
"""
HOW_TO_DO = """\
```{admonition} You read; to do them you need Python
:class: note
Here are the tasks, with hints and, closed, a solution. In JupyterLab each is followed by a cell
that judges your answer and names your mistake: [how to install](install.md), one commandWITHOUT.
```
"""


def lay_out(folder: Path) -> int:
    """Write the sources of all pages; how many explorers are live in them."""
    live, where = 0, home.home()
    for path in [*CHAPTERS, REFERENCE]:
        notebook = notebooks.read(path)
        binder = home.binder(where, path.name) if where else ""
        live += readable(notebook, kept_states(path), binder)
        nbformat.write(notebook, folder / path.name)
    readme = anchored(linked((ROOT / "README.md").read_text("utf-8"), ROOT))
    first, pictures = re.subn(HERO_PICTURE, lambda _: hero() + "\n", readme)
    assert pictures, "README.md does not show docs/typewriter.gif"
    (folder / "index.md").write_text(first + contents(), "utf-8")
    for name, path in DOCUMENTS.items():
        text = linked(path.read_text("utf-8"), path.parent)
        text += toctree(TEACHING) if name == "teaching" else ""
        (folder / f"{name}.md").write_text(to_cells(text) if name == "errata" else text, "utf-8")
    (folder / "studies.md").write_text(studies_page(), "utf-8")
    for file in [*map(ROOT.joinpath, FILES), *(ROOT / "notebooks" / "pictures").iterdir()]:
        shutil.copy(file, folder)
    shutil.copytree(ROOT / "data" / "sources", folder / "sources")  # data/README.md links to them
    return live + 1  # with that of the first page


def contents() -> str:
    """The tables of contents that make the side bar and the links to the next page."""
    chapters = toctree([path.stem for path in [*CHAPTERS, REFERENCE]], "Chapters")
    return chapters + toctree([f"{title} <{name}>" for name, title in ABOUT.items()], "About")


def toctree(pages: Iterable[str], title: str = "") -> str:
    caption = title and f":caption: {title}\n"
    return f"\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(pages) + "\n```\n"


def linked(text: str, folder: Path) -> str:
    """The text of a document in a folder, its links as they are in the book: all lie together."""
    names = {path: f"{name}.md" for name, path in DOCUMENTS.items()}

    def moved(link: re.Match[str]) -> str:
        path = (folder / link[1]).resolve()
        if not path.exists():  # an address elsewhere
            return link[0]
        name = names.get(path, path.name)
        return f"]({'sources/' if path.parent.name == 'sources' else ''}{name}"

    return re.sub(r"\]\(([^)#]+)", moved, text)


def to_cells(text: str) -> str:
    """The errata with links in the last column: numbers to chapters, tags to their cells."""
    stems = {path.stem[:2]: path.stem for path in CHAPTERS}

    def led(column: re.Match[str]) -> str:
        stem = ""

        def link(place: re.Match[str]) -> str:
            nonlocal stem
            if place[1]:
                stem = stems[place[1]]
                return f"[{place[1]}]({stem}.ipynb)"
            shown = re.sub("([:_])", r"\1<wbr>", place[2])  # on a phone a line may end there
            return f'<a href="{stem}.html#{make_id(place[2])}"><code>{shown}</code></a>'

        return re.sub(r"(?<!section )\b(\d\d)\b|`((?:claim|study):\w+)`", link, column[0])

    return re.sub(r"(?<=\| )\d\d[^|]*(?=\|$)", led, text, flags=re.M)


# --- a chapter ------------------------------------------------------------------------------------


def kept_states(chapter: Path) -> dict[str, list[dict[str, Any]]]:
    path = notebooks.states_file(chapter)
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def readable(
    notebook: NotebookNode, states: dict[str, list[dict[str, Any]]], binder: str = ""
) -> int:
    """Make of a chapter to be run one to be read, in place; how many explorers are live in it.

    binder: a link that opens the chapter where nothing is to be installed, if there is one.
    """
    live = 0
    for cell in notebook.cells:
        tags = cell.metadata.setdefault("tags", [])
        settings = cell.metadata.setdefault("mystnb", {})
        if cell.cell_type == "markdown":
            cell.source = anchored(linked(cell.source, ROOT / "notebooks"))
            cell.source = CLOSED.sub(
                lambda found: f'<details class="{found[1].lower()}"><summary>', cell.source
            )
            cell.source = SUMMARY.sub(lambda text: clean.summary(text[0]), cell.source)
            if re.match(r"## .*\bExercises\b", cell.source):
                how = HOW_TO_DO.replace("WITHOUT", binder and f", or open the chapter {binder}")
                cell.source = cell.source.replace("\n", f"\n\n{how}\n", 1)
            elif cell.source.startswith("# "):
                here = HERE_YOU_READ.replace("OR", binder and f" or {binder}")
                cell.source = re.sub(r"\A(.*\n+(!.*\n+)?)", rf"\1{here}\n", cell.source)
            continue
        if set(tags) & {"check", "setup"}:  # they say something to whoever runs them
            tags.append("remove-cell")
        elif cell.metadata.get("jupyter", {}).get("source_hidden"):
            tags.append("hide-input")
            code = "picture's code" if draws(cell) else "code"
            settings["code_prompt_show"] = f"Show the {code}"
            settings["code_prompt_hide"] = f"Hide the {code}"
        shown = iter(states.get(cell.id, []))
        for output in cell.outputs:
            live += show_output(output, settings, shown)
    return live


def draws(cell: NotebookNode) -> bool:
    return any("image/png" in output.get("data", {}) for output in cell.outputs)


def hero() -> str:
    """The explorer of a chapter, for the first page."""
    chapter = ROOT / "notebooks" / f"{HERO}.ipynb"
    states = kept_states(chapter)
    for cell in notebooks.read(chapter).cells:
        for output in cell.get("outputs", []):
            if show_output(output, {}, iter(states.get(cell.id, []))):
                return str(output.data["text/html"])
    raise ValueError(f"{chapter.name} shows no explorer: choose another chapter as HERO")


def anchored(text: str) -> str:
    """Links to headings as the book's anchors are: (a.ipynb#The-road) → (a.ipynb#the-road)."""
    return re.sub(
        r"(?:(?<=\.ipynb)|(?<=\]\())#[^)\s]+(?=\))", lambda anchor: anchor[0].lower(), text
    )


def show_output(output: NotebookNode, settings: dict[str, Any], shown: Any) -> int:
    """Make an output one of the book, in place; 1 if it is an explorer that is live, else 0."""
    if "data" in output:
        output.data = NotebookNode(clean.output(output.data))
    data = output.get("data", {})
    if "text/html" in data:  # Sphinx resolves the links in Markdown cells
        data["text/html"] = re.sub(
            r"\b(\d\d_\w+)\.ipynb\b((?:#[\w-]*)?)",
            lambda link: f"{link[1]}.html{link[2].lower()}",
            data["text/html"],
        )
    if "image/png" not in data:
        return 0
    about = output.metadata.get("image/png", {})
    alt = about.get("alt", "")
    settings["image"] = {"alt": alt}
    if "width" in about:
        settings["image"]["width"] = f"{about['width']}px"
    words = data.get("text/plain", "")
    made = re.match(r"(\w+)\(", words)
    if not made or not hasattr(explorers, made[1]):
        return 0
    state = next(shown, None)
    # Words that differ are those of another run than the one that stands here.
    same = state is not None and (state["class"], state["words"]) == (made[1], words)
    if state and same and answerable(state):
        data["text/html"] = live_explorer(state, data["image/png"], alt)
        return 1
    data["text/html"] = still_explorer(data["image/png"], alt)
    return 0


# --- explorers ------------------------------------------------------------------------------------


def still(png: str, alt: str) -> str:
    return f'<img src="data:image/png;base64,{escape(png.strip())}" alt="{escape(alt)}">'


def still_explorer(png: str, alt: str) -> str:
    said = 'A still picture: it moves in JupyterLab (<a href="install.html">how to install</a>).'
    return f'<div>{still(png, alt)}<p class="note">{said}</p></div>'


def live_explorer(state: dict[str, Any], png: str, alt: str) -> str:
    """An explorer for live.js: the still picture, which it replaces, and the state as JSON."""
    text = json.dumps(
        {"traits": state["traits"], "buffers": state["buffers"]}, separators=(",", ":")
    )
    text = text.replace("<", r"\u003c")  # no tag can end the script
    name, note = state["class"], ""
    if name == "SamplingExplorer" and not state["traits"].get("file"):
        note = (
            '<p class="note">The bars and the draws move here. Another prompt has to be read by the'
            ' model: that needs JupyterLab (<a href="install.html">how to install</a>).</p>'
        )
    return (
        f'<div class="explorer" data-class="{name}">{still(png, alt)}</div>'
        f'<script type="application/json">{text}</script>{note}'
    )


def write_explorers(folder: Path) -> None:
    """The code and style of all explorers, as scripts that a page opened from a disk may load."""
    for name in set(explorers.__all__) - {"Explorer"}:
        kind = getattr(explorers, name)
        text = json.dumps({"code": str(kind._esm), "style": str(kind._css)})
        (folder / f"{name}.js").write_text(f"bookExplorer({json.dumps(name)}, {text});\n", "utf-8")
    parts = [ROOT / "explorers" / "bpe.js", ROOT / "explorers" / "gpt.js", HERE / "answers.js"]
    code = json.dumps({"code": "\n".join(part.read_text("utf-8") for part in parts)})
    (folder / "answers.js").write_text(f'bookExplorer("answers", {code});\n', "utf-8")


@functools.cache
def weights() -> dict[str, bytes]:
    """The shipped models and word vectors, by the names that explorers know them by."""
    files = [packed_words(*data.glove())]
    for path in sorted((ROOT / "data" / "checkpoints").glob("*/")):
        saved = load_checkpoint(path)
        assert saved.tokenizer is not None, path
        files.append(packed(saved.model, saved.tokenizer))
    return {name_of(file): file for file in files}


def answerable(state: dict[str, Any]) -> bool:
    """Can a page do without a kernel what this explorer does? Of one that only offers new questions
    beside what it shows, they are taken out."""
    file = state["traits"].get("file")
    if file and file not in weights():
        file = state["traits"]["file"] = ""
    return bool(file) or state["class"] not in NEED_FILES


def write_weights(folder: Path) -> None:
    """What explorers compute with in a page, as scripts, each fetched on first use."""
    for name, file in weights().items():
        text = b64encode(file).decode("ascii")
        (folder / f"{name}.js").write_text(f'bookFile("{name}", "{text}");\n', "utf-8")


# --- studies --------------------------------------------------------------------------------------


def studies_page() -> str:
    """Each study: the sentence that it tests, and its tables as chapters show them."""
    shown: dict[str, dict[str, str]] = {}  # study → {a chapter's stem: its tables}
    for path in CHAPTERS:
        for cell in notebooks.read(path).cells:
            tags = [tag for tag in cell.metadata.get("tags", []) if tag.startswith("study:")]
            for output in cell.get("outputs", []) if ".table(" in cell.source else []:
                table = output.get("data", {}).get("text/plain", "")
                for tag in tags if table else []:
                    in_chapters = shown.setdefault(tag.removeprefix("study:"), {})
                    before = in_chapters.get(path.stem, "")
                    in_chapters[path.stem] = f"{before}\n```text\n{table}\n```\n"
    parts = [STUDIES]
    for path in sorted((FOLDER / "results").glob("*.json")):
        module = ast.parse((FOLDER / f"{path.stem}.py").read_text("utf-8"))
        said = (ast.get_docstring(module) or "").replace("``", "`")
        parts.append(f"## {path.stem.replace('_', ' ')}\n\n{said}\n")
        for stem, tables in shown.get(path.stem, {}).items():
            title = notebooks.read(ROOT / "notebooks" / f"{stem}.ipynb").cells[0].source
            parts.append(f"In [{title.splitlines()[0][2:]}]({stem}.ipynb):\n{tables}")
        if path.stem not in shown:
            found = results(path.stem)
            parts += [
                f"```text\n{found.table(measure)}\n```\n" for measure in found.runs[0]["numbers"]
            ]
    return "\n".join(parts)


STUDIES = """\
# Studies: what training shows

What a chapter says of trained models rests on a study: every arm at three seeds or more, paired
(the same first weights and batches), with the settings on which it depends moved. Each says below
which sentence it tests, and what it found: the mean over the seeds, the lowest and the highest,
and the differences from one arm, seed by seed. All runs are kept, in `studies/results`;
`make study NAME=mask` runs one again.
"""
