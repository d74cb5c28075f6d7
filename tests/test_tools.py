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
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
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
            metadata={"image/png": {"width": 3, "alt": "A toy."}},
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
    for gone in (
        "widget",
        "iopub",
        "3.12.1",
        "vscode",
        "mine",
        ".venv",
        "my-model",
        "toc",
        "width",
    ):
        assert gone not in text
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
    texts = ["# 04 · Toy\n\n*Reading: 90 minutes*", "## 1 · One", "## 3 · Three"]
    cells = [v4.new_markdown_cell(text) for text in texts]
    found = tool.faults(v4.new_notebook(cells=[*cells, v4.new_code_cell("x = 1  # noqa: E1")]))
    assert [fault.split(" ")[1] for fault in found] == ["sections", "states", "learner's"]
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
    assert (found["sections"], found["longest"], found["exercises"]) == (1, 2, 7)
    assert (found["drawings"], found["folded"], found["printing"]) == (1, 1, 1)
    assert (found["proofs"], found["proof lines"]) == (1, 2)
    assert figures.home_made(figures.prose(text)) == {"bend, bends": ["bend"]}
    above = {fault.split(" ")[0] for fault in figures.too_much(chapter)}
    assert above == {"printing", "brackets", "home-made"}
    assert figures.table({"a": chapter}).count("*") == 3


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
        _title, top, setup, text, end = chapter.cells
        assert (top.source, setup.id, text.source, end.source) == (
            links,
            "setup",
            "The end.",
            links,
        )
        nbformat.validate(chapter)
    for name, links in (("00_a", "[01 · B](01_b.ipynb) →"), ("02_c", "← [01 · B](01_b.ipynb) · ")):
        chapter = tool.read(tmp_path / f"{name}.ipynb")
        tool.navigate(chapter, tmp_path / f"{name}.ipynb")
        assert chapter.cells[1].source.startswith(links)


# --- where nothing is installed -------------------------------------------------------------------


@pytest.fixture
def published(tmp_path):
    """A toy of the course in a repository of its own, with a tag, and three chapters."""
    course = tmp_path / "public"
    (course / "helpers").mkdir(parents=True)
    (course / "helpers" / "__init__.py").write_text("WHERE = 'the course'\n")
    (course / "requirements.txt").write_text("# all\nnumpy==0.0.1\nsafetensors==0.0.1\n-e .\n")
    for command in ("init -q", "add -A", "commit -qm first", "tag v2.0"):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *command.split()], cwd=course, check=True)
    for name in ("00_start_here", "01_one", "02_two"):
        title = v4.new_markdown_cell(f"# {name[:2]} · {name[3:]}")
        nbformat.write(v4.new_notebook(cells=[title]), tmp_path / f"{name}.ipynb")
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\nversion = "2.0"\n[project.urls]\nRepository = "file://{course}/"\n'
    )
    return tmp_path


def test_a_published_chapter_gets_the_course_where_it_is_not_at_hand(published):
    where = home.home(published / "pyproject.toml")
    path = published / "01_one.ipynb"
    chapter = tool.read(path)
    tool.navigate(chapter, path, where)
    assert [cell.id for cell in chapter.cells][1:] == ["navigation-top", "setup", "navigation-end"]
    setup = chapter.cells[2]
    assert setup.metadata["jupyter"]["source_hidden"]
    (published / "other").mkdir()  # anybody may have a module of this name
    (published / "other" / "helpers.py").write_text("WHERE = 'elsewhere'\n")
    other = f"sys.path.insert(0, {str(published / 'other')!r})"
    bare = hidden(f"{other}\n{setup.source}\nimport helpers; print(helpers.WHERE)")
    for _ in range(2):  # the second time, the folder is there
        done = subprocess.run(
            [sys.executable, "-I", "-c", bare], cwd=published, capture_output=True, text=True
        )
        assert (done.stdout, done.stderr) == ("the course\n", "")
    here = subprocess.run([sys.executable, "-c", setup.source], cwd=ROOT, capture_output=True)
    assert (here.returncode, here.stdout, here.stderr) == (0, b"", b"")
    assert not (ROOT / "course-v2.0").exists()


@pytest.mark.parametrize("beside", [None, "helpers.py", "helpers"])
def test_a_chapter_without_the_course_says_in_one_line_what_to_do(beside, tmp_path):
    """In its first cell, also where a file or a folder has the name of a package of the course."""
    if beside:
        (tmp_path / beside).mkdir() if "." not in beside else (tmp_path / beside).touch()
    setup = home.setup(None)
    cells = [v4.new_code_cell(hidden(setup.source)), v4.new_code_cell("1 / 0")]
    where = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(v4.new_notebook(cells=cells), resources=where)
    with pytest.raises(CellExecutionError, match="NotInstalled"):
        client.execute()
    (error,) = cells[0].outputs
    (line,) = error.traceback
    assert line.startswith("This chapter needs the course's own code, not found here: ")
    assert ("rename the file helpers.py" if beside == "helpers.py" else "`make lab`") in line


def hidden(code):
    """The code where the course's own packages cannot be imported, as in a bare environment."""
    return f"""
import sys
sys.meta_path = [f for f in sys.meta_path if "editable" not in str(f)]
sys.path = [p for p in sys.path if p != {str(ROOT)!r}]
{code}"""


def test_a_published_chapter_opens_in_colab_and_binder():
    where = {"repository": "https://github.com/a/b", "version": "v2.0"}
    address = "https://colab.research.google.com/github/a/b/blob/v2.0/notebooks/01_one.ipynb"
    assert home.colab(where, "01_one.ipynb") == f"[open in Colab]({address})"
    assert home.colab({**where, "repository": "https://other.org/a"}, "01_one.ipynb") == ""
    address = "https://mybinder.org/v2/gh/a/b/v2.0?labpath=notebooks/01_one.ipynb"
    assert home.binder(where, "01_one.ipynb") == f"[in Binder]({address})"
    assert home.binder({**where, "repository": "https://other.org/a"}, "01_one.ipynb") == ""


def test_what_publishing_adds_goes_again_and_is_not_run_in_vain(published):
    path = published / "01_one.ipynb"
    chapter = tool.read(path)
    tool.navigate(chapter, path)
    assert "make lab" in chapter.cells[2].source
    plain = [(cell.id, cell.source) for cell in chapter.cells]
    where = home.home(published / "pyproject.toml")
    tool.navigate(chapter, path, where)
    chapter.cells[2].execution_count = 1
    tool.navigate(chapter, path, where)
    assert chapter.cells[2].execution_count == 1
    tool.navigate(chapter, path, {**where, "version": "v3.0"})
    assert chapter.cells[2].execution_count is None
    tool.navigate(chapter, path)
    assert [(cell.id, cell.source) for cell in chapter.cells] == plain


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
    for name in ("Makefile", "requirements.txt", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
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
    declared = "".join(path.read_text() for path in ROOT.glob("requirements*.txt"))
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
