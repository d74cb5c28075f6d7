"""Slides: what of a chapter is on them (how they look in a browser: tests/browser)."""

import re
from html.parser import HTMLParser

import nbformat
import pytest
from conftest import CHAPTERS, ROOT
from nbformat import v4
from teaching.slides import SKIPPED, Slide, blocks, slides, stacks

SMALL, LARGE = "01_words_as_vectors", "04_queries_keys_values"


class Loaded(HTMLParser):
    """What a page loads, and the classes of its elements."""

    def __init__(self, text: str):
        super().__init__()
        self.addresses: list[str] = []
        self.classes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.classes.append(given.get("class") or "")
        names = ("src", "srcset", "data", "poster", *(["href"] if tag == "link" else []))
        self.addresses += [given[name] or "" for name in names if name in given]


def chapter_of(*cells: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return v4.new_notebook(cells=[v4.new_markdown_cell("# 04 · Title\n\n**Why?**"), *cells])


def printing(source: str, text: str, tags: tuple[str, ...] = ()) -> nbformat.NotebookNode:
    output = v4.new_output("stream", text=text)
    return v4.new_code_cell(source, outputs=[output], metadata={"tags": list(tags)})


def section(*cells: nbformat.NotebookNode) -> list[Slide]:
    """The slides of the first section of a chapter of these cells."""
    return stacks(chapter_of(*cells))[1]


@pytest.mark.parametrize("stem", [SMALL, LARGE])
def test_a_deck_has_the_title_all_sections_and_all_pictures_and_loads_nothing(stem, tmp_path):
    path = ROOT / "notebooks" / f"{stem}.ipynb"
    page = slides(path, tmp_path / "made" / "deck.html").read_text("utf-8")
    assert len(page) < 5_000_000
    loaded = Loaded(page)
    assert all(address.startswith("data:") for address in loaded.addresses)
    styles = "".join(re.findall(r"<style>.*?</style>", page, re.S))
    assert styles and not re.search(r"@import|url\((?!data:)", styles)
    pictures = []
    headings = []
    for cell in nbformat.read(path, 4).cells:
        if SKIPPED & set(cell.metadata.get("tags", [])):
            continue
        if cell.cell_type == "markdown":
            headings += re.findall(r"(?m)^#{1,2} (.*)", cell.source)
        else:
            bundles = [output.get("data", {}) for output in cell.outputs]
            pictures += [bundle["image/png"] for bundle in bundles if "image/png" in bundle]
    for picture in pictures:
        assert picture.replace("\n", "")[:4000] in page
    for heading in headings:
        if not heading.endswith("Exercises"):
            assert f">{heading}</h2>" in page, heading


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_chapter_makes_slides_and_keeps_its_text_in_the_notes(path):
    notebook = nbformat.read(path, 4)
    title, *sections = stacks(notebook)
    assert len(title) == 1 and title[0].lead
    assert len(sections) > 5
    made = [slide for stack in sections for slide in stack]
    assert all(slide.title for slide in made)
    notes = "\n".join(note for slide in made for note in slide.notes)
    found = list(blocks(notebook))
    first = [block.kind for block in found].index("section")
    for block in found[first:]:
        assert block.kind != "text" or block.text in notes


def test_a_prediction_asks_first_and_its_output_is_the_answer():
    asks = v4.new_markdown_cell("## 1 · A\n\nIt adds. **Predict before you run:** what is *1 + 2*?")
    _, slide = section(asks, printing("print(1 + 2)", "3\n"), v4.new_markdown_cell("It is 3. Why?"))
    assert slide.question == "What is *1 + 2*?"
    assert "3" in slide.body[0] and slide.claims == ["It is 3."]


def test_the_sentence_that_leads_to_code_stands_above_it_and_claims_below():
    text = "## 1 · A\n\nWe begin.\n\n**Small numbers are best here.** Here is one:"
    code = printing("print(1)", "1\n")
    first, slide = section(v4.new_markdown_cell(text), code)
    assert first.lead == "We begin."
    assert slide.lead == "**Small numbers are best here.** Here is one:"
    after = v4.new_markdown_cell("Look. **One is a small number.**")
    assert section(v4.new_markdown_cell(text), code, after)[1].claims == [
        "**One is a small number.**"
    ]


def test_a_paragraph_with_a_term_is_shown_whole_before_a_prediction():
    text = "## 1 · A\n\nWe begin:\n\n> Here.\n\nWe like the **sum**. It is small.\n\n"
    asks = v4.new_markdown_cell(f"{text}**Predict before you run:** how small?")
    opens, asked = section(asks, printing("print(1 + 2)", "3\n"))
    assert opens.claims == ["We like the **sum**. It is small."]
    assert asked.question == "How small?"


def test_no_sentence_is_shown_without_the_one_that_it_refers_to():
    long = " ".join(["Numbers are large."] * 20)
    head = "## 1 · A\n\nWe begin.\n\n"
    code = printing("print(1)", "1\n")
    cut = section(v4.new_markdown_cell(f"{head}{long} Take one. It is small:"), code)[-1]
    assert cut.lead.endswith("Numbers are large. Take one. It is small:")
    refers = " ".join(["Take one.", *["It is small."] * 30])
    whole, bare = section(v4.new_markdown_cell(head + refers), code)[-2:]
    assert whole.lead.endswith(refers) and not bare.lead


def test_exercises_evidence_and_long_code_are_left_out():
    head = v4.new_markdown_cell("## 1 · A\n\nWe begin.")
    long = printing("x = 1\n" * 13 + "print(x)", "1\n")
    proof = printing("print(2)", "2\n", tags=("evidence",))
    tasks = v4.new_markdown_cell("## 2 · Exercises\n\nDo this.")
    made = stacks(chapter_of(head, long, proof, tasks, printing("print(3)", "3\n")))
    assert [slide.kind for stack in made for slide in stack] == ["chapter", "section", "printed"]
    assert made[1][1].body[0].count("<pre") == 1


def test_what_is_too_long_is_split():
    head = v4.new_markdown_cell("## 1 · A\n\nWe begin. It goes on.")
    table = "|a|b|\n|---|---|\n" + "|1|2|\n" * 17
    items = "\n".join(f"- item {n}" for n in range(7))
    made = section(head, v4.new_markdown_cell(f"Here:\n\n{table}\n\nAnd:\n\n{items}"))
    assert [slide.body[0].count("<tr>") - 1 for slide in made if slide.kind == "table"] == [6, 5, 6]
    assert [slide.body[0].count("<li>") for slide in made if slide.kind == "list"] == [4, 3]


def test_a_recap_question_is_followed_by_its_answer():
    text = "## 3 · What you can now say\n\n- Much.\n\n### Recap\n\n"
    text += "<details><summary>1. Why <b>so</b>?</summary>\n\nBecause $x$.\n</details>"
    said, recap = section(v4.new_markdown_cell(text))
    assert "Much." in said.body[0]
    assert recap.question == "Why <b>so</b>?" and "<math" in recap.body[0]
