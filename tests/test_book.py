"""What the book is made of: states of explorers, formulae, links (the pages: tests/browser)."""

import json
import re

import book
import clean
import mathml
import nbformat
import pytest
import sources
from conftest import CHAPTERS, ROOT
from nbformat import v4

import explorers
import notebooks as tool
from exercises.check import Report

DRAWN = {"mspace", "mtable", "mtd", "mtr", *clean.TAGS}  # what browsers draw in a formula
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$([^$\n]+)\$", re.S)


def shown(notebook: nbformat.NotebookNode) -> dict[str, list[str]]:
    """Cell → the words of the explorers that it shows."""
    found: dict[str, list[str]] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            made = re.match(r"(\w+)\(", data.get("text/plain", ""))
            if "image/png" in data and made and hasattr(explorers, made[1]):
                found.setdefault(cell.id, []).append(data["text/plain"])
    return found


def test_what_the_explorers_hold_is_that_of_the_committed_run(chapter, notebook):
    """If this fails, run the chapter again: `make notebooks` writes both."""
    states = sources.kept_states(chapter)
    assert {cell: [s["words"] for s in kept] for cell, kept in states.items()} == shown(notebook)


def test_states_are_data_only_and_small():
    topics = {path.stem.partition("_")[2] for path in CHAPTERS}
    for path in (ROOT / "notebooks" / tool.STATES).iterdir():
        assert path.stem in topics
        assert path.stat().st_size < 1_000_000
        for kept in json.loads(path.read_text("utf-8")).values():
            for state in kept:
                assert state.keys() == {"class", "words", "traits", "buffers"}
                assert tool.WIDGET_TRAITS.isdisjoint(state["traits"])
                assert hasattr(explorers, state["class"])


def test_states_are_those_of_what_is_shown():
    view = {"application/vnd.jupyter.widget-view+json": {"model_id": "a"}, "text/plain": "Toy(1)"}
    cell = v4.new_code_cell("toy", outputs=[v4.new_output("display_data", view)])
    traits = {"_esm": "code", "_anywidget_id": "explorers.toy.Toy", "_view_count": None, "x": 1}
    buffers = [{"path": ["y"], "data": "AA==", "encoding": "base64"}]
    state = {"a": {"state": traits, "buffers": buffers}, "b": {"state": traits}}
    notebook = v4.new_notebook(
        cells=[cell], metadata={"widgets": {tool.WIDGET_STATE: {"state": state}}}
    )
    (kept,) = tool.states(notebook)[cell.id]
    assert kept == {"class": "Toy", "words": "Toy(1)", "traits": {"x": 1}, "buffers": buffers}


def test_an_explorer_of_another_run_stays_a_picture():
    data = {"image/png": "iVBORw0KGgo=", "text/plain": "TwoVectors(a)"}
    state = {"class": "TwoVectors", "words": "TwoVectors(b)", "traits": {}, "buffers": []}
    old, new = (v4.new_output("display_data", dict(data)) for _ in range(2))
    assert sources.show_output(old, {}, iter([state])) == 0
    assert "A still picture" in old.data["text/html"]
    assert sources.show_output(new, {}, iter([state | {"words": "TwoVectors(a)"}])) == 1
    assert 'data-class="TwoVectors"' in new.data["text/html"]


def test_no_text_of_an_explorer_ends_its_script():
    state = {"class": "Toy", "words": "", "traits": {"x": "</script><b>"}, "buffers": []}
    html = sources.live_explorer(state, "", 'a "b"')
    assert html.count("</script>") == 1 and "<b>" not in html and 'alt="a &quot;b&quot;"' in html


def test_no_picture_of_an_explorer_ends_its_element():
    bundle = {"image/png": 'x" onerror="f()', "text/plain": "TwoVectors(a)"}
    output = v4.new_output("display_data", bundle, metadata={"image/png": {"alt": '" onload="'}})
    sources.show_output(output, {}, iter([]))
    assert "onerror=&quot;" in output.data["text/html"]
    assert not re.search(r"""\bon\w+=["']""", output.data["text/html"])


@pytest.mark.parametrize(
    ("hostile", "kept"),
    [
        ('<a href="JaVa&#9;Script:f()">x</a>', "<a>x</a>"),
        ('<a href="data:text/html,<script>f()</script>">x</a>', "<a>x</a>"),
        ("<script>f()", "f()"),
        ("<b/onclick=f()>x</b>", "<b>x</b>"),
        ("<svg><style><img src=x onerror=f()></style></svg>x", "x"),
        ('<form action="//x"><input autofocus onfocus=f()></form>x', "x"),
        ('<base href="//x"><meta http-equiv=refresh content="0;url=//x">x', "x"),
        ('<link rel=stylesheet href="//x"><object data="//x"></object>x', "x"),
        ('<img src="https://x/1.png">x', "x"),
        ('<b id="furo-main-content" class="explorer" data-class="X">x</b>', "<b>x</b>"),
        (
            '<p style="position:fixed;background:url(//x);color:red">x</p>',
            '<p style="color:red;">x</p>',
        ),
        ("<!--[if IE]><script>f()</script><![endif]-->x", "x"),
    ],
)
def test_html_of_an_output_is_harmless(hostile, kept):
    assert clean.html(hostile).strip() == kept


def test_what_an_output_shows_survives():
    report = Report("not yet", "x < 1 & `x` is\n*there*", done="1 of 4")._repr_html_()
    table = (
        '<table><thead><tr style="text-align: right;"><th></th><th>a</th></tr></thead>'
        "<tbody><tr><th>0</th><td>1.5</td></tr></tbody></table>"
    )
    pandas = table.replace(
        "<table>", '<style scoped>th { top: 0 }</style><table class="dataframe">'
    )
    assert clean.html(report) == report.replace('"><', ';"><').replace('">✘', ';">✘')
    assert clean.html(pandas) == table
    markdown = "- [02](02_language_modelling.ipynb#The-road) *a* <b>b</b> $\\sqrt{d}$"
    output = v4.new_output("display_data", {"text/markdown": markdown, "text/latex": "$x$"})
    sources.show_output(output, {}, iter([]))
    assert output.data.keys() == {"text/html"}
    wanted = '<a href="02_language_modelling.html#the-road">02</a> <em>a</em> &lt;b&gt;b&lt;/b&gt;'
    assert wanted in output.data["text/html"] and "<msqrt>" in output.data["text/html"]


@pytest.mark.parametrize("latex", [r"\text{<img/src=x/onerror=f()>}", r"\href{javascript:f()}{x}"])
def test_no_formula_of_an_output_runs(latex):
    shown = clean.output({"text/markdown": f"${latex}$"})["text/html"]
    assert "<math>" in shown and "<img" not in shown and "href" not in shown


def test_a_chapter_to_be_read():
    """It says what it is, names what is closed, and shows Markdown and formulae in a summary."""
    picture = v4.new_output("display_data", {"image/png": "iVBORw0KGgo="})
    closed = [v4.new_code_cell("x", outputs=outputs) for outputs in ([picture], [])]
    for cell in closed:
        cell.metadata["jupyter"] = {"source_hidden": True}
    hint, solution, question = (
        v4.new_markdown_cell(f"<details><summary>{title}</summary>\n\nx\n\n</details>")
        for title in (
            "Hint 1 of 2",
            "Solution",
            "2. Is *she* in `x < 1` at $\\sqrt{d}$, <em>1</em>?",
        )
    )
    title = v4.new_markdown_cell("# 01 · Words\n\nOne.\n")
    chapter = v4.new_notebook(cells=[title, *closed, hint, solution, question])
    sources.readable(chapter, {})
    assert (
        title.source.index("# 01") < title.source.index("web version") < title.source.index("One.")
    )
    shown = [cell.metadata["mystnb"]["code_prompt_show"] for cell in closed]
    assert shown == ["Show the picture's code", "Show the code"]
    assert hint.source.startswith('<details class="hint"><summary>Hint 1 of 2</summary>')
    assert solution.source.startswith('<details class="solution"><summary>Solution</summary>')
    assert "<em>she</em> in <code>x &lt; 1</code>" in question.source
    assert "<msqrt>" in question.source and "<em>1</em>" in question.source


def test_every_study_is_shown_with_a_table():
    sections = sources.studies_page().split("\n## ")[1:]
    assert len(sections) == len(list((ROOT / "studies" / "results").glob("*.json")))
    assert all("```text\n" in section for section in sections)


def test_every_formula_is_understood(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"```.*?```|`[^`\n]*`", "", cell.source, flags=re.S)
            for block, inline in FORMULA.findall(text):
                made = mathml.mathml(block or inline)
                assert "\\" not in re.sub(r"&#x\w+;", "", made)
                assert set(re.findall(r"<(\w+)", made)) <= DRAWN, block or inline


@pytest.mark.parametrize(
    ("latex", "sign"),
    [
        *((latex, '<mo form="prefix">') for latex in ("(-2)", "a = -b", "[1, -1]", r"\to -\infty")),
        *((latex, "<mo>") for latex in ("a - 2", "(a) - b", "|a| - b", r"a \dots - b")),
    ],
)
def test_a_sign_stands_close_to_its_number_and_a_difference_is_spaced(latex, sign):
    assert f"{sign}&#x02212;</mo><m" in mathml.mathml(latex)


def test_the_errata_name_cells_of_their_chapters():
    """A row's tags are those of cells of the chapter named before them; each is a link."""
    tags = {
        path.stem: {tag for cell in tool.read(path).cells for tag in cell.metadata.get("tags", [])}
        for path in CHAPTERS
    }
    written = sources.DOCUMENTS["errata"].read_text("utf-8")
    links = re.findall(r'href="(\w+)\.html#([\w-]+)"><code>(.+?)</code>', sources.to_cells(written))
    for stem, anchor, shown in links:
        tag = shown.replace("<wbr>", "")
        assert tag in tags[stem], f"ERRATA: chapter {stem} has no cell {tag}"
        assert anchor == re.sub("[:_]", "-", tag.lower())
    assert len(links) == len(re.findall(r"`(?:claim|study):\w+`", written))


def test_only_files_of_the_book_are_ever_removed(tmp_path, monkeypatch):
    def page(name):
        def built(work, made):
            made.mkdir()
            (made / name).write_text("a page")
            return 0

        monkeypatch.setattr(book, "_build", built)

    def there():
        return sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*"))

    (tmp_path / "sources").mkdir()
    (tmp_path / "sources/my.txt").write_text("mine")
    page("old.html")
    with pytest.raises(SystemExit, match="is no empty folder, and this program did not make it"):
        book.build(tmp_path / "none/..")
    assert there() == ["sources/my.txt"]
    book.build(tmp_path / "out")
    (tmp_path / "out/my.txt").write_text("mine")
    with (tmp_path / "out/.book").open("a") as mark:
        mark.write("\n\n../sources/my.txt")  # what is elsewhere is not the book's
    for name in ("new.html", "newer.html"):
        page(name)
        book.build(tmp_path / "out")
        assert there() == ["out/.book", "out/my.txt", f"out/{name}", "sources/my.txt"]
