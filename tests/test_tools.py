"""tools/notebooks.py: the committed form of a chapter, how it is reached, and its number."""

import ast
import re
import shutil
import subprocess
import sys
from importlib import metadata

import figures
import home
import nbformat
import pytest
from conftest import ROOT
from nbformat import v4

import notebooks as tool


@pytest.fixture
def messy():
    """A notebook as an editor saves it after a run."""
    cell = v4.new_code_cell("1 + 1", execution_count=7)
    cell.metadata = {
        "tags": ["claim:W1"],
        "jupyter": {"source_hidden": True},
        "execution": {"iopub.execute_input": "2026-01-01T00:00:00Z"},
        "collapsed": False,
        "vscode": {"languageId": "python"},
    }
    view = {"model_id": "my-model", "version_major": 2}
    data = {tool.WIDGET_VIEW: view, "image/png": "iVBORw0KGgo=", "text/plain": "Toy()"}
    cell.outputs = [
        v4.new_output("stream", text="printed\n"),
        v4.new_output(
            "execute_result",
            data,
            metadata={"image/png": {"height": 3, "alt": "A toy."}},
            execution_count=7,
        ),
        v4.new_output("display_data", {"text/plain": "x"}, metadata={"a": 1}),
        v4.new_output("error", ename="E", evalue="v", traceback=["t"]),
    ]
    text = v4.new_markdown_cell("# Title · ü")
    text.metadata = {"editable": True, "slideshow": {"slide_type": "skip"}}
    return v4.new_notebook(
        cells=[text, cell],
        metadata={
            "widgets": {tool.WIDGET_VIEW: {"state": {"my-model": {}}}},
            "kernelspec": {"display_name": ".venv", "language": "python", "name": "mine"},
            "language_info": {"name": "python", "version": "3.12.1"},
            "toc": True,
        },
    )


def test_normalise_keeps_outputs_counts_tags_and_ids(messy):
    ids = [cell.id for cell in messy.cells]
    tool.normalise(messy)
    nbformat.validate(messy)
    text, code = messy.cells
    assert [cell.id for cell in messy.cells] == ids
    assert text.source == "# Title · ü"
    assert text.metadata == {"slideshow": {"slide_type": "skip"}}
    assert code.execution_count == 7
    assert code.metadata == {"tags": ["claim:W1"], "jupyter": {"source_hidden": True}}
    assert [o.output_type for o in code.outputs] == [
        "stream",
        "execute_result",
        "display_data",
        "error",
    ]
    assert code.outputs[0].text == "printed\n"
    assert code.outputs[1].metadata == {"image/png": {"alt": "A toy."}}
    assert code.outputs[1].data == {"image/png": "iVBORw0KGgo=", "text/plain": "Toy()"}


def test_normalise_drops_widget_state_and_what_differs_from_run_to_run(messy):
    tool.normalise(messy)
    text = tool.text_of(messy)
    assert not re.search(r"widget|iopub|3\.12\.1|vscode|mine|\.venv|my-model|toc|height", text)
    assert "ü" in text and text.endswith("}\n")
    assert messy.metadata == tool.METADATA


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        ("\r0%\r50%\r100%\n", "100%\n"),
        ("before\n\r0%\r100%\nafter\r\nlast\r", "before\n100%\nafter\r\nlast\r"),
        ("\r\r\ra", "a"),
        ("plain\ntext\n", "plain\ntext\n"),
    ],
)
def test_normalise_keeps_the_last_state_of_a_line_of_progress(raw, kept):
    cell = v4.new_code_cell("train()", outputs=[v4.new_output("stream", text=raw)])
    made = v4.new_notebook(cells=[cell])
    for _ in "twice":
        tool.normalise(made)
        assert made.cells[0].outputs[0].text == kept


def command(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["notebooks.py", *map(str, arguments)])
    return tool.main()


def test_check_finds_a_file_that_is_not_in_the_committed_form(messy, tmp_path, monkeypatch, capsys):
    path = tmp_path / "a.ipynb"
    path.write_text(nbformat.writes(messy), encoding="utf-8")
    before = path.read_bytes()
    assert command(monkeypatch, "check", path) == 1
    assert "a.ipynb: not in the committed form; run: make normalise" in capsys.readouterr().out
    assert path.read_bytes() == before, "check only looks"
    assert command(monkeypatch, "normalise", path) == 0
    assert command(monkeypatch, "check", path) == 0
    assert capsys.readouterr().out == ""
    assert [p.name for p in tmp_path.iterdir()] == ["a.ipynb"]


def test_check_finds_sections_minutes_and_comments_for_linters():
    head = "# 04 · Toy\n\n*Reading: 90 minutes · exercises: 5 minutes*"
    texts = [head, "## 1 · One", "## 3 · Three"]
    cells = [v4.new_markdown_cell(text) for text in texts]
    code = [v4.new_code_cell(source) for source in ("x = 1  # noqa: E1", "check.double(x)")]
    found = tool.faults(v4.new_notebook(cells=[*cells, *code]))
    kinds = ["sections", "states", "states", "the", "learner's"]
    assert [fault.split(" ")[1] for fault in found] == kinds
    assert tool.faults(v4.new_notebook(cells=cells[1:2])) == []


def test_what_a_chapter_asks_of_a_reader_is_counted_by_cell():
    """Words, code and pictures of the core path; folded cells, Evidence and Deeper apart."""
    picture = v4.new_output("display_data", {"image/png": "iVBORw0KGgo="})
    said = v4.new_output("stream", text="said")
    folded = {"jupyter": {"source_hidden": True}}
    text = "## 1 · A bend\n\nIt is here (not a formula, a **<em>bend</em>**) and `(a b c d)`."
    chapter = v4.new_notebook(
        cells=[
            v4.new_markdown_cell(text),
            v4.new_code_cell("a\n\nb", outputs=[picture]),
            v4.new_code_cell("a\n" * 40, metadata={"tags": ["built"]}),
            v4.new_code_cell("# Picture: a", metadata=folded, outputs=[picture]),
            v4.new_code_cell("f()", metadata=folded, outputs=[said]),
            v4.new_markdown_cell("## Deeper · A bend", metadata={"tags": ["deeper"]}),
            v4.new_markdown_cell("## Evidence", metadata={"tags": ["evidence"]}),
            v4.new_code_cell("a\nb", metadata={"tags": ["evidence"]}),
            v4.new_markdown_cell("## 2 · Exercises\n\n●○○ · 7 minutes"),
            v4.new_code_cell("..."),
        ]
    )
    found = figures.figures(chapter)
    assert (found["words"], found["lines"], found["pictures"]) == (18, 42, 2)
    assert found["minutes"] == round(0.18 + 42 / 6 + 2)
    assert (found["longest"], found["exercises"]) == (2, 7)
    assert (found["drawings"], found["folded"]) == (1, 1)
    assert (found["proofs"], found["proof lines"]) == (1, 2)
    assert figures.too_much(chapter) == []
    assert figures.table({"a": chapter}).count("*") == 0
    chapter.cells.insert(1, v4.new_code_cell("a\n" * 21))
    assert figures.too_much(chapter) == ["longest 21 > 20"]


def test_run_executes_in_the_notebooks_folder_and_keeps_streams_whole(tmp_path, monkeypatch):
    code = "import os\nfor i in range(3):\n    print(i, flush=True)\nos.path.basename(os.getcwd())"
    made = v4.new_notebook(cells=[v4.new_code_cell(code), v4.new_code_cell("2 + 2")])
    path = tmp_path / "a.ipynb"
    tool.write(path, nbformat.writes(made))
    assert command(monkeypatch, "run", path) == 0
    done = tool.read(path)
    first, second = done.cells
    assert [first.execution_count, second.execution_count] == [1, 2]
    assert [o.output_type for o in first.outputs] == ["stream", "execute_result"]
    assert first.outputs[0].text == "0\n1\n2\n"
    assert first.outputs[1].data["text/plain"] == repr(tmp_path.name)
    assert command(monkeypatch, "check", path) == 0


def test_a_chapter_that_fails_is_left_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "a.ipynb"
    tool.write(path, nbformat.writes(v4.new_notebook(cells=[v4.new_code_cell("1 / 0")])))
    before = path.read_bytes()
    with pytest.raises(Exception, match="ZeroDivisionError"):
        command(monkeypatch, "run", path)
    assert path.read_bytes() == before


def test_each_chapter_links_to_those_beside_it(tmp_path):
    for name, title in (("00_a", "00 · A"), ("01_b", "01 · B"), ("02_c", "02 · C")):
        cells = [v4.new_markdown_cell(f"# {title}\n\nText."), v4.new_markdown_cell("The end.")]
        nbformat.write(v4.new_notebook(cells=cells), tmp_path / f"{name}.ipynb")
    path = tmp_path / "01_b.ipynb"
    chapter = tool.read(path)
    for _ in range(2):  # the second time changes nothing
        tool.navigate(chapter, path)
        road = "[the road](00_start_here.ipynb#The-road)"
        links = f"← [00 · A](00_a.ipynb) · {road} · [02 · C](02_c.ipynb) →"
        _title, top, text, end = chapter.cells
        assert (top.source, text.source, end.source) == (links, "The end.", links)
        nbformat.validate(chapter)
    for name, links in (("00_a", "[01 · B](01_b.ipynb) →"), ("02_c", "← [01 · B](01_b.ipynb) · ")):
        chapter = tool.read(tmp_path / f"{name}.ipynb")
        tool.navigate(chapter, tmp_path / f"{name}.ipynb")
        assert chapter.cells[1].source.startswith(links)


# --- where nothing is installed -------------------------------------------------------------------


WHERE = {"repository": "https://github.com/a/b", "version": "v2.0"}


def test_what_publishing_adds_goes_again(tmp_path):
    for name in ("00_start_here", "01_one"):
        title = v4.new_markdown_cell(f"# {name[:2]} · {name[3:]}")
        nbformat.write(v4.new_notebook(cells=[title]), tmp_path / f"{name}.ipynb")
    path = tmp_path / "01_one.ipynb"
    chapter = tool.read(path)
    tool.navigate(chapter, path)
    plain = [(cell.id, cell.source) for cell in chapter.cells]
    assert len(plain) == 3
    tool.navigate(chapter, path, WHERE)
    assert [cell.id for cell in chapter.cells][1:] == ["navigation-top", "setup", "navigation-end"]
    assert "-b v2.0 https://github.com/a/b course" in chapter.cells[2].source
    tool.navigate(chapter, path)
    assert [(cell.id, cell.source) for cell in chapter.cells] == plain


def test_colab_finds_the_course(tmp_path):
    code = f"""
import runpy, sys
from unittest.mock import MagicMock
sys.path = [place for place in sys.path if place != {str(ROOT)!r}]
sys.modules["google.colab"] = colab = MagicMock()
runpy.run_path({str(ROOT / "tools" / "colab.py")!r})
assert sys.path[0] == {str(ROOT)!r} and colab.output.enable_custom_widget_manager.called
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_a_published_chapter_opens_in_colab_and_binder():
    address = "https://colab.research.google.com/github/a/b/blob/v2.0/notebooks/01_one.ipynb"
    assert home.colab(WHERE, "01_one.ipynb") == f"[open in Colab]({address})"
    assert home.colab({**WHERE, "repository": "https://other.org/a"}, "01_one.ipynb") == ""
    address = "https://mybinder.org/v2/gh/a/b/v2.0?labpath=notebooks/01_one.ipynb"
    assert home.binder(WHERE, "01_one.ipynb") == f"[in Binder]({address})"
    assert home.binder({**WHERE, "repository": "https://other.org/a"}, "01_one.ipynb") == ""


# --- what is installed ----------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize(
    ("version", "mac", "chip", "words"),
    [
        ((3, 10, 9), "", "x86_64", "Python 3.11, 3.12, 3.13 or 3.14, .* is 3.10. Name another"),
        ((3, 15, 0), "", "x86_64", "Python 3.11, 3.12, 3.13 or 3.14, .* is 3.15. Name another"),
        ((3, 12, 0), "15.1", "x86_64", "Apple processor and macOS 14 or newer .* 15.1 on x86_64"),
        ((3, 12, 0), "13.7.1", "arm64", "Apple processor and macOS 14 or newer .* 13.7.1 on arm64"),
        ((3, 14, 0), "14.0", "arm64", None),
        ((3, 11, 7), "", "aarch64", None),
    ],
)
def test_where_there_is_no_pytorch_it_is_said_before_anything_is_installed(
    tmp_path, version, mac, chip, words
):
    (tmp_path / "tools").mkdir()
    for name in ("Makefile", "requirements.txt", "tools/constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    python = tmp_path / "python"
    python.write_text(
        f"#!{sys.executable}\nimport platform, sys\nsys.version_info = {version}\n"
        f"platform.mac_ver, platform.machine = lambda: ({mac!r},), lambda: {chip!r}\n"
        "exec(sys.argv[2]) if sys.argv[1] == '-c' else sys.exit('installing')\n"
    )
    python.chmod(0o755)
    done = subprocess.run(
        ["make", ".venv/course", f"PYTHON={python}"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2 and not (tmp_path / ".venv").exists()
    assert re.search(words or "^installing$", done.stderr, re.MULTILINE)


def test_all_that_is_imported_is_declared():
    files = [ROOT / "requirements.txt", *(ROOT / "tools").glob("requirements-*.txt")]
    declared = "".join(path.read_text() for path in files)
    names = {line.split("==")[0] for line in declared.splitlines() if "==" in line}
    imported = set()
    folders = ("helpers", "exercises", "explorers", "studies", "tools", "data", "tests")
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.split(".")[0])
    packages = metadata.packages_distributions()
    own = "dot-product-to-gpt"
    for name in imported - set(sys.stdlib_module_names):
        found = {re.sub("[-_.]+", "-", package).lower() for package in packages.get(name, [])}
        assert not found - {own} or found & names, f"{name} is not in requirements*.txt"


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "workflows").iterdir()), ids=str)
def test_a_workflow_may_only_read_and_runs_actions_that_cannot_be_exchanged(path):
    text = path.read_text(encoding="utf-8")
    assert re.search(r"^permissions:\n  contents: read\n", text, re.MULTILINE)
    for action in re.findall(r"uses: (.*)", text):
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
