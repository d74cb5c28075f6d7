"""Run the chapters and bring their files into the form that is committed.

    python tools/notebooks.py run [NOTEBOOK ...]         run in place, then normalise
    python tools/notebooks.py pictures [NOTEBOOK ...]    run, and take only the pictures over
    python tools/notebooks.py normalise [NOTEBOOK ...]   without running
    python tools/notebooks.py check [NOTEBOOK ...]       exit 1 if one is not in that form, or its
                                                         sections or minutes are counted wrongly
    python tools/notebooks.py figures [NOTEBOOK ...]     what each asks of a reader, and
                                                         what is above its measure (*)
    python tools/notebooks.py new TOPIC                  lay out a new chapter (tools/new.py)

Without names: every chapter, and the reference look_it_up. The form: outputs and counts kept,
everything dropped that changes from run to run without meaning anything (widget state and ids, time
stamps, editor settings, all but the last state of a line of progress), and the links to the
chapters before and after it.
`run` also writes what the explorers shown hold to notebooks/states/TOPIC.json, so that the book
(tools/book) can show them live without a kernel.
"""

import argparse
import json
import re
import sys
import time
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import figures
import home
import nbformat
import new
from nbclient import NotebookClient
from nbformat import NotebookNode

from helpers.formats.files import write_whole

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
CHAPTERS = "[0-9][0-9]_*.ipynb"
STATES = "states"  # the folder beside the chapters with what their explorers hold, for the book
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
WIDGET_TRAITS = {  # what every widget has, and what the book takes from the source
    *("_esm", "_css", "_anywidget_id", "_dom_classes", "layout", "tabbable", "tooltip"),
    *(f"_{of}_{what}" for of in ("model", "view") for what in ("module", "module_version", "name")),
    "_view_count",
}
KEPT_CELL_METADATA = {"tags", "jupyter", "jp-MarkdownHeadingCollapsed", "slideshow"}
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def run(notebook: NotebookNode, folder: Path) -> None:
    """Execute all cells in place, as JupyterLab would; the first error stops with its traceback."""
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        store_widget_state=True,
        record_timing=False,
        coalesce_streams=True,  # how print's output was cut into messages means nothing
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()


def states(notebook: NotebookNode) -> dict[str, list[dict[str, Any]]]:
    """{id of a cell: the explorers that it shows}: class, words (as in the output), traits.

    Only what the explorer itself has declared is kept: no code, no style, no ids.
    """
    all_states = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    found: dict[str, list[dict[str, Any]]] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            saved = all_states.get(data.get(WIDGET_VIEW, {}).get("model_id"), {})
            kind = saved.get("state", {}).get("_anywidget_id", "").rsplit(".", 1)[-1]
            if not kind:  # a line of progress is a widget, too
                continue
            traits = {k: v for k, v in saved["state"].items() if k not in WIDGET_TRAITS}
            buffers = sorted(saved.get("buffers", []), key=lambda buffer: buffer["path"])
            words = "".join(data["text/plain"])
            found.setdefault(cell.id, []).append(
                {"class": kind, "words": words, "traits": traits, "buffers": buffers}
            )
    return found


def states_file(chapter: Path) -> Path:
    """Where the states of a chapter are kept: by topic, not by number."""
    return chapter.parent / STATES / f"{chapter.stem.partition('_')[2]}.json"


def write_states(chapter: Path, found: dict[str, list[dict[str, Any]]]) -> None:
    path = states_file(chapter)
    if found:
        path.parent.mkdir(exist_ok=True)
        write(path, json.dumps(found, ensure_ascii=False, sort_keys=True) + "\n")
    else:
        path.unlink(missing_ok=True)


def normalise(notebook: NotebookNode) -> None:
    """Drop what changes from run to run without meaning anything."""
    notebook.metadata = NotebookNode(METADATA)
    for cell in notebook.cells:
        cell.metadata = NotebookNode(
            {key: value for key, value in cell.metadata.items() if key in KEPT_CELL_METADATA}
        )
        if cell.source.startswith("%%writefile"):
            cell.outputs = []  # "Writing" or "Overwriting", as it happens
        for output in cell.get("outputs", []):
            # The still picture stays; the id of a widget that is no longer there does not.
            output.get("data", {}).pop(WIDGET_VIEW, None)
            about = output.pop("metadata", {}).get("image/png", {})
            about = {name: about[name] for name in ("alt", "width") if name in about}
            if output.output_type == "stream":
                # What a later state of the line has overwritten is not to be seen any more.
                output.text = re.sub(r".*\r(?=[^\r\n])", "", output.text)
            if output.output_type in ("display_data", "execute_result"):
                output["metadata"] = NotebookNode({"image/png": about} if about else {})


def take_pictures(notebook: NotebookNode, again: NotebookNode) -> None:
    """Put the pictures of another run into a notebook, which keeps all else that it has put out."""
    for cell, run_cell in zip(notebook.cells, again.cells, strict=True):
        for old, made in zip(cell.get("outputs", []), run_cell.get("outputs", []), strict=False):
            if "image/png" in old.get("data", {}) and "image/png" in made.get("data", {}):
                drawn = made.data["text/plain"].startswith("[picture]")  # no explorer
                kinds = made.data if drawn else ["image/png"]
                old.data |= {kind: made.data[kind] for kind in kinds}
                old.metadata = made.metadata


def faults(notebook: NotebookNode) -> list[str]:
    """What `check` finds beside the form: section numbers, minutes, tags, comments for linters."""
    found = []
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    sections = [int(number) for number in re.findall(r"^## (\d+) ·", text, re.M)]
    if sections != list(range(1, len(sections) + 1)):
        found.append(f"its sections are numbered {sections}")
    counted = figures.minutes(notebook)
    found += [f"it states {stated} minutes of {name}, but has {counted[name]}"
              for name, stated in figures.stated_minutes(notebook).items()
              if stated != counted[name]]  # fmt: skip
    for above, cell in pairwise(notebook.cells):
        tagged = figures.tagged(above, "exercise"), figures.tagged(cell, "check")
        if any(tagged) != all(tagged) or (cell.source.startswith("check.") and not all(tagged)):
            found.append(f"tag the stub `exercise` and this cell `check`: {cell.source}")
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    comments = re.findall(r"# (?:noqa|fmt|type):.*", "\n".join(code))
    return found + [f"a learner's cell holds a comment for a linter: {one}" for one in comments]


def navigate(notebook: NotebookNode, path: Path, where: dict[str, str] | None = None) -> None:
    """Put the links to the chapters before and after it below the title and at the end.

    where: the home of the course, if it has one: then a cell fetches it in Colab.
    """
    chapters = sorted(path.parent.glob(CHAPTERS))
    here = chapters.index(path)
    before, after = chapters[max(0, here - 1) : here], chapters[here + 1 : here + 2]
    links = [f"← {_link(chapter)}" for chapter in before]
    links += ["[the road](00_start_here.ipynb#The-road)"] if before else []
    links += [f"{_link(chapter)} →" for chapter in after]
    ours = {"navigation", "setup"}
    cells = [cell for cell in notebook.cells if not ours & set(cell.metadata.get("tags", []))]
    tops = [*links, home.colab(where, path.name)] if where else links
    first, last = (
        nbformat.v4.new_markdown_cell(
            " · ".join(filter(None, texts)),
            id=f"navigation-{place}",
            metadata={"tags": ["navigation"], "slideshow": {"slide_type": "skip"}},
        )
        for place, texts in (("top", tops), ("end", links))
    )
    fetch = [home.fetch(where)] if where else []
    notebook.cells = [cells[0], first, *fetch, *cells[1:], last]


def _link(chapter: Path) -> str:
    title = read(chapter).cells[0].source.split("\n")[0].removeprefix("# ")
    return f"[{title}]({chapter.name})"


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def text_of(notebook: NotebookNode) -> str:
    return nbformat.writes(notebook, version=4, ensure_ascii=False, indent=1) + "\n"


def write(path: Path, text: str) -> None:
    """Replace the file in one step: a killed run leaves the old chapter whole."""
    write_whole(path, text.encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["run", "pictures", "normalise", "check", "figures", "new"])
    parser.add_argument("notebooks", nargs="*", type=Path, help="or TOPIC")
    arguments = parser.parse_args()
    if arguments.what == "new":
        if len(arguments.notebooks) != 1:
            parser.error("new needs one topic, such as fine_tuning")
        try:
            path = new.lay_out(str(arguments.notebooks[0]))
        except (ValueError, FileExistsError) as error:
            parser.error(str(error))
        print(f"{path}, and its exercises beside the others. docs/CONTRIBUTING.md goes on.")
        return 0
    if arguments.what == "figures":
        paths = arguments.notebooks or sorted(NOTEBOOKS.glob(CHAPTERS))
        print(figures.table({path.stem: read(path) for path in paths}))
        return 0
    failed = False
    for path in arguments.notebooks or sorted(NOTEBOOKS.glob("*.ipynb")):
        before = path.read_text(encoding="utf-8")
        notebook = read(path)
        start = time.perf_counter()
        if path.resolve().parent == NOTEBOOKS and path.match(CHAPTERS):
            navigate(notebook, path.resolve(), home.home())
        if arguments.what == "run":
            run(notebook, path.parent)
            write_states(path, states(notebook))
            print(f"{path.name}: ran in {time.perf_counter() - start:.1f} s")
        if arguments.what == "pictures":
            again = deepcopy(notebook)
            run(again, path.parent)
            take_pictures(notebook, again)
        normalise(notebook)
        after = text_of(notebook)
        if arguments.what == "check":
            wrong = faults(notebook)
            if after != before:
                wrong.append("not in the committed form; run: make normalise")
            failed = failed or bool(wrong)
            for what in wrong:
                print(f"{path.name}: {what}")
        elif after != before:
            write(path, after)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
