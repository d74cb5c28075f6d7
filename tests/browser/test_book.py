"""The book: built from what is committed, and read in a browser that has no network.

What a page says of the course is held by the other tests; here: that pages build without a warning,
load nothing from elsewhere, lead nowhere dead, and that their explorers move without a kernel.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import lab
import nbformat
import pytest
import sources
import torch
from lab import CHAPTERS, ROOT
from nbformat import v4
from playwright.sync_api import Browser, Locator, Page, Route, expect

from explorers import CompassExplorer
from explorers.packed import name_of, packed, rounded
from helpers import data
from helpers.formats.checkpoints import Checkpoint, load_checkpoint

# The explorers of each cell that has some.
FILES = sorted((ROOT / "notebooks" / "states").glob("*.json"))
STATES = [shown for path in FILES for shown in json.loads(path.read_text("utf-8")).values()]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "book"
    command = [sys.executable, str(ROOT / "tools" / "book" / "book.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


class Reader(HTMLParser):
    """What a page names: ids, links, what it loads, and pictures without a description."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.undescribed: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attributes}
        self.ids |= {has[name] for name in ("id", "name") if name in has}
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed", "object"):
            self.loaded += [has[name] for name in ("src", "data") if name in has]
        if tag == "link" and has.get("rel") not in ("canonical", "author"):
            self.loaded.append(has.get("href", ""))
        if tag == "img" and len(has.get("alt", "").split()) < 3:
            self.undescribed.append(has.get("src", "")[:60])


@pytest.fixture(scope="module")
def read(book: Path) -> dict[str, Reader]:
    return {path.name: Reader(path.read_text("utf-8")) for path in sorted(book.glob("*.html"))}


def test_nothing_is_loaded_from_elsewhere(book, read):
    for name, page in read.items():
        assert "_static/favicon.svg" in page.loaded, name
        foreign = [address for address in page.loaded if not address.startswith("data:")]
        foreign = [a for a in foreign if urlsplit(a).scheme or urlsplit(a).netloc]
        assert foreign == [], f"{name} loads {foreign}"
    sheets = [*book.rglob("*.css"), *book.glob("*.html")]
    for path in sheets:
        assert not re.search(r"url\(\s*['\"]?(https?:)?//|@import", path.read_text("utf-8")), path


def test_no_link_is_dead(book, read):
    count = 0
    for name, page in read.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                assert parts.scheme in ("https", "http", "mailto"), f"{name}: {link}"
                continue
            target = unquote(parts.path) or name
            assert (book / target).is_file(), f"{name} links to {link}"
            if parts.fragment and target in read:
                assert unquote(parts.fragment) in read[target].ids, f"{name} links to {link}"
            count += 1
    assert count > 500


def test_every_picture_is_described(read):
    for path in CHAPTERS:
        assert read[f"{path.stem}.html"].undescribed == [], path.stem


def test_formulae_are_mathml_and_none_is_left_as_latex(book):
    chapters = [book / f"{path.stem}.html" for path in CHAPTERS]
    texts = [path.read_text("utf-8") for path in chapters]
    assert sum(text.count("<math ") for text in texts) > 800
    for path, text in zip(chapters, texts, strict=True):
        shown = "".join(re.findall(r"<math .*?</math>", text, flags=re.S))
        assert not re.search(r"<m\w+[^>]*>\\", shown), path.name  # a word that was not understood
        prose = re.sub(r"<(pre|code|script|math)\b.*?</\1>", "", text, flags=re.S)
        assert not re.search(r"\\(frac|sqrt|sum|text|cdot)\b", prose), path.name


def test_solutions_and_deeper_sections_are_closed(book):
    for path in CHAPTERS:
        text = (book / f"{path.stem}.html").read_text("utf-8")
        solutions = path.read_text("utf-8").count("<summary>Solution</summary>")
        assert text.count('<details class="solution"><summary>') == solutions
        assert not re.search(r"<details[^>]*\bopen\b", text), path.stem
        assert text.count('"deeper"') == path.read_text("utf-8").count('"## Deeper'), path.stem


# --- in the browser -------------------------------------------------------------------------------


@pytest.fixture
def reader(browser: Browser, book: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page without a network; request.param: width and colour scheme."""
    width, scheme = getattr(request, "param", (1280, "light"))
    problems: list[str] = []
    page = lab.new_page(browser, problems, width, height=900, color_scheme=scheme, offline=True)
    yield page
    lab.noticed(page)
    page.context.close()
    # A page that is left while its icon is on the way has no fault; an icon that is missing has.
    assert [p for p in problems if not p.endswith("favicon.svg (net::ERR_ABORTED)")] == []


def opened(page: Page, book: Path, name: str) -> Page:
    """The page with its explorers drawn, those in closed sections too."""
    page.goto((book / f"{name}.html").as_uri())
    closed = page.locator("details:has(.explorer)")
    closed.evaluate_all("parts => parts.forEach(part => { part.open = true; })")
    page.wait_for_function("document.querySelectorAll('.explorer:not(.live)').length === 0")
    return page


WAYS = [(1280, "dark"), (360, "light")]


@pytest.mark.parametrize("reader", WAYS, indirect=True, ids=lambda p: f"{p[0]}-{p[1]}")
def test_every_explorer_is_drawn_and_the_page_is_no_wider_than_the_screen(reader, book):
    width = reader.viewport_size["width"]
    live = 0
    for path in sorted(book.glob("*.html")):
        opened(reader, book, path.stem)
        assert reader.evaluate("document.documentElement.scrollWidth") <= width, path.stem
        explorers = reader.locator(".explorer")
        for explorer in explorers.all():
            assert explorer.locator(".d2g").is_visible()
            assert explorer.evaluate("e => e.scrollWidth <= e.clientWidth"), path.stem
        live += explorers.count()
    assert live == sum(len(shown) for shown in STATES) + 1  # that of the first page


@pytest.mark.parametrize("chapter", ["08_transformer_block", "14_byte_pair_encoding"])
def test_an_explorer_answers_to_a_key(reader, book, chapter):
    explorer = opened(reader, book, chapter).locator(".explorer").first
    slider = explorer.locator("input[type=range]").locator("visible=true").first
    before, was = slider.input_value(), explorer.screenshot()
    slider.focus()
    for _ in range(3):
        reader.keyboard.press("ArrowLeft")
    expect(slider).not_to_have_value(before)
    lab.eventually(lambda: explorer.screenshot() != was, True)
    slider.blur()
    reader.keyboard.press("ArrowLeft")  # turns no page
    assert reader.url == (book / f"{chapter}.html").as_uri()


def fetched(page: Page) -> list[str]:
    """The names of the weights that the page asks for, from now on."""
    names: list[str] = []
    weights = re.compile(r"/([0-9a-f]{16})\.js$")
    page.on("request", lambda request: names.extend(weights.findall(request.url)))
    return names


def assert_computed(node: Locator, saved: Checkpoint, text: str) -> None:
    """The probabilities after the text are Python's."""
    with torch.no_grad():
        logits = rounded(saved.model)(torch.tensor([saved.tokenizer.encode(text)]))[0, -1]
    here = torch.tensor(node.evaluate("node => node.probabilities()"))
    assert torch.allclose(here, logits.softmax(-1), atol=1e-5)


def typewriter(page: Page) -> tuple[Locator, Callable[[], str]]:
    """The page's typewriter, and what gives its text."""
    node = page.locator(".d2g.typewriter")
    return node, lambda: node.evaluate("node => node.text()")


def writes(text: Callable[[], str]) -> None:
    """Wait until the text has grown."""
    before = text()
    lab.eventually(lambda: text().startswith(before) and len(text()) > len(before) + 3, True)


def test_the_first_page_writes_what_was_recorded_until_the_weights_are_there(reader, book):
    held: list[Route] = []
    reader.route(re.compile(r"/[0-9a-f]{16}\.js$"), lambda route: held.append(route))
    node, text = typewriter(opened(reader, book, "index"))
    expect(node).to_be_in_viewport()
    expect(node.get_by_role("progressbar")).to_be_visible()
    expect(node.locator(".state")).to_contain_text("what this model wrote earlier")
    writes(text)
    (state,) = (shown[0] for shown in STATES if shown[0]["class"] == "Typewriter")
    assert state["traits"]["recorded"].startswith(text())
    held[0].continue_()
    expect(node.get_by_role("progressbar")).not_to_be_visible()
    lab.eventually(lambda: len(text()) > len(state["traits"]["recorded"]) + 3, True)
    field = node.get_by_label("your own first line")
    field.fill("O Grüße")
    field.press("Enter")
    expect(node.locator(".state")).to_contain_text("“ü” is not among the 69")
    field.fill("To be, or not to be")
    field.press("Enter")
    lab.eventually(lambda: text().startswith("To be, or not to be\n"), True)
    writes(text)


def test_a_text_forks_by_pointer_and_by_key_and_a_link_holds_it(reader, book):
    node, text = typewriter(opened(reader, book, "index"))
    paper = node.locator(".paper")
    lab.eventually(lambda: len(text()) > 20, True)
    paper.locator(".line span").nth(9).click()
    expect(node.get_by_role("button", name="Go on")).to_be_visible()
    before = text()
    node.locator(".guess:not(.own)").first.click()
    lab.eventually(lambda: len(text()) > 20, True)
    assert text()[:9] == before[:9] and text()[9] != before[9]
    paper.press("ArrowLeft")
    paper.press("ArrowLeft")
    before, at = text(), len(text()) - 3
    letters = [letter for letter, _ in node.evaluate("node => node.chances()")]
    n = next(n for n, letter in enumerate(letters) if letter != before[at])
    paper.press(str(n + 1))
    writes(lambda: text()[at + 1 :])
    assert text()[: at + 1] == before[:at] + letters[n]
    node.get_by_role("button", name="Pause").press("Enter")
    node.get_by_label("temperature").press("End")
    node.get_by_role("button", name="Copy a link").press("Enter")
    expect(node.locator(".state")).to_contain_text("is a link to this text")
    kept, link = text(), reader.url
    reader.goto("about:blank")
    reader.goto(link)
    expect(node.locator(".fork")).to_have_count(2)
    assert text() == kept
    expect(node.locator(".value")).to_have_text("2.0")
    node.get_by_role("button", name="Go on").press("Enter")
    writes(text)


def test_who_wants_no_motion_gets_a_line_at_a_time(reader, book):
    reader.emulate_media(reduced_motion="reduce")
    node, text = typewriter(opened(reader, book, "index"))
    for _ in range(2):
        before = text()
        node.get_by_role("button", name="Write a line").press("Enter")
        lab.eventually(lambda before=before: text() != before and text().endswith("\n"), True)
        expect(node.get_by_role("button", name="Write a line")).to_be_visible()
    assert len(before) > 100


@pytest.mark.parametrize("chapter", ["look_it_up", "04_queries_keys_values", "15_gptmini"])
def test_code_of_88_columns_fits_on_a_laptop(reader, book, chapter):
    reader.set_viewport_size({"width": 1366, "height": 768})
    opened(reader, book, chapter)
    rows = reader.locator(".cell_input pre, .solution pre").evaluate_all(
        """boxes => boxes.map(box => {
            for (let at = box; (at = at.parentElement.closest("details")); ) at.open = true;
            box.textContent = "x".repeat(88);
            return [box.scrollWidth, box.clientWidth]; })"""
    )
    assert len(rows) > 10 and all(inside <= box for inside, box in rows)


@pytest.mark.parametrize("reader", [(390, "light")], indirect=True, ids=["phone"])
def test_on_a_phone_the_theme_and_the_contents_have_a_button_each(reader, book):
    opened(reader, book, "00_start_here")
    theme = reader.locator(".mobile-header .theme-toggle").bounding_box()
    contents = reader.locator(".mobile-header .toc-overlay-icon").bounding_box()
    assert contents["x"] - theme["x"] - theme["width"] >= 8


def test_a_sentence_goes_through_the_model_which_is_fetched_when_it_is_seen(reader, book):
    saved = load_checkpoint(data.checkpoint("gptmini"))
    name = name_of(packed(saved.model, saved.tokenizer))
    asked, held = fetched(reader), []
    reader.set_viewport_size({"width": 1280, "height": 300})  # of which the title takes all
    reader.route(f"**/{name}.js", lambda route: held.append(route))
    node = opened(reader, book, "00_start_here").locator(".d2g.sentence")
    expect(node.locator(".answer th").first).to_have_text("␣States")
    assert asked == [] and not node.get_by_role("progressbar").is_visible()
    size = (book / "_static" / f"{name}.js").stat().st_size
    node.get_by_role("button", name="Sample next token").press("Enter")
    said = f"Loading the weights ({size / 1e6:.0f} MB, once) …"
    expect(node.locator(".loading")).to_have_text(said)
    expect(node.get_by_role("progressbar")).to_be_visible()
    lab.eventually(lambda: len(held), 1)
    field = node.get_by_label("text", exact=True)
    start = field.input_value()
    held[0].continue_()
    lab.eventually(lambda: field.input_value() != start, True)
    assert field.input_value().startswith(start)
    expect(node.get_by_role("progressbar")).not_to_be_visible()
    node.get_by_role("button", name="Aristotle was").press("Enter")
    stage = node.get_by_role("tab", name="4 weights")
    stage.press("Enter")
    expect(node.get_by_label("this head is on")).to_be_visible()
    assert asked.count(name) == 1
    expect(node.locator(".answer th").first).to_have_text("istot")  # as the chapter says
    expect(node.locator(".answer .number").first).to_have_text(re.compile("^55"))
    node.get_by_label("this head is on").press("Space")
    expect(node.locator(".answer th").first).to_have_text("ch")
    expect(node.locator(".answer tr", has_text="istot")).to_contain_text("11.9%")
    node.get_by_role("button", name="Reset").press("Enter")
    text = "Apollo 11 landed on the Moon. Apollo"
    node.get_by_label("text", exact=True).fill(text)
    assert_computed(node, saved, text)
    link = node.locator(".links a").first
    assert (book / link.get_attribute("href")).is_file()
    assert asked.count(name) == 1


def test_a_text_grows_beyond_what_is_kept_of_it(reader, book):
    node = opened(reader, book, "00_start_here").locator(".d2g.sentence")
    field = node.get_by_label("text", exact=True)
    sample = node.get_by_role("button", name="Sample next token")
    reader.evaluate("Math.random = () => 0.3")  # the end of a text would change nothing
    for begun in ["The king of\n" * 20, "🦉" * 118 + "the"]:
        field.fill(begun.replace("\n", "⏎"))
        for _ in range(3):
            before = field.input_value()
            expect(sample).to_be_enabled()  # once the weights are here
            sample.press("Enter")
            lab.eventually(lambda before=before: field.input_value() != before, True)
            assert field.input_value()[:40] in before and len(field.input_value()) > 100
        assert ("⏎" in field.input_value()) == ("\n" in begun)


def test_at_no_width_a_stage_lies_on_the_next_tokens(reader, book):
    node = opened(reader, book, "00_start_here").locator(".d2g.sentence")
    text = (
        "Internationalization of the extraordinary Mississippi-Missouri rivers, 1999 and 2000: and"
    )
    node.get_by_label("text", exact=True).fill(text)
    lab.eventually(lambda: node.evaluate("node => Boolean(node.gpt())"), True)
    for width in (320, 360, 592, 640, 760, 820, 864, 879, 880, 930, 959, 960):
        node.evaluate("(node, width) => { node.style.width = `${width}px`; }", width)
        lab.next_frame(reader)
        for stage in node.get_by_role("tab").all():
            stage.press("Enter")
            assert lab.sticking_out(node.locator(".panel")) == [], (width, stage.inner_text())


@pytest.mark.parametrize(
    ("chapter", "model"), [("12_generation", "shakespeare-gpt"), ("15_gptmini", "gptmini")]
)
def test_a_prompt_is_read_in_the_page(reader, book, chapter, model):
    saved, asked = load_checkpoint(data.checkpoint(model)), fetched(reader)
    node = opened(reader, book, chapter).locator(".d2g.sampling-explorer")
    assert asked == []
    field, prompt = node.get_by_label("prompt", exact=True), "But soft, the sun is of"
    field.fill(prompt)
    expect(node.locator(".seen")).to_have_text(prompt.replace(" ", "␣"))
    assert asked == [name_of(packed(saved.model, saved.tokenizer))]
    node.locator("input[type=range]").nth(2).press("End")  # top-p: off
    assert_computed(node, saved, prompt)
    node.get_by_role("button", name="Sample 20").press("Enter")
    pieces = saved.tokenizer.encode(prompt)
    lab.eventually(lambda: len(saved.tokenizer.encode(field.input_value())) > len(pieces) + 5, True)
    if chapter == "12_generation":
        field.fill("€")
        expect(node.locator(".problem")).to_contain_text("“€” is not among the 69")
    assert node.locator(".silence").inner_text() == ""


def test_words_fly_in_the_page_and_a_link_brings_them_back(reader, book):
    words = CompassExplorer(*data.glove(), ("he", "she", "poor", "rich"), "nurse")
    asked = fetched(reader)
    node = opened(reader, book, "01_words_as_vectors").locator(".d2g.compass")
    node.scroll_into_view_if_needed()
    expect(node.get_by_role("button", name="walk to cat")).to_be_visible()
    assert asked == [words.file]
    node.get_by_role("button", name="doctor and nurse").press("Enter")
    expect(node.locator(".near .name")).to_have_text([word for word, _ in words.neighbours()])
    node.get_by_role("button", name="Copy a link").press("Enter")
    assert "left=he&right=she&down=poor&up=rich&word=nurse" in reader.url
    link = reader.url
    reader.goto("about:blank")
    reader.goto(link)
    expect(node.locator(".asked input")).to_have_value("nurse")
    expect(node.locator(".asked input")).to_be_in_viewport()
    words.close()


def test_a_claim_of_the_errata_leads_to_its_cell(reader, book):
    opened(reader, book, "errata").locator("a", has_text="claim:S7").first.click()
    reader.wait_for_url("**/05_scaling.html#claim-s7")
    reader.wait_for_function("document.querySelectorAll('.explorer:not(.live)').length === 0")
    expect(reader.locator(".tag_claim\\:S7").first).to_be_in_viewport()


@pytest.mark.parametrize("reader", [(1280, "dark")], indirect=True, ids=["dark"])
def test_paper_is_white_and_shows_nothing_to_click_on(reader, book):
    opened(reader, book, "08_transformer_block")
    reader.emulate_media(media="print")
    for gone in [".skip-to-content", ".sidebar-drawer", ".toc-drawer", ".related-pages", ".onward"]:
        assert reader.locator(gone).count() > 0 and not any(
            part.is_visible() for part in reader.locator(gone).all()
        ), gone
    solution = reader.locator("details.solution").first
    assert not solution.locator("pre").is_visible()
    said = "node => getComputedStyle(node, '::after').content"
    assert "closed" in solution.locator("summary").evaluate(said)
    assert not reader.get_by_text("Hint 1 of").first.is_visible()
    assert reader.locator(".explorer > img").is_visible()  # as it was, not as it is moved
    assert not reader.locator(".explorer .d2g").is_visible()
    paper = "node => getComputedStyle(node).backgroundColor + getComputedStyle(node).color"
    assert reader.locator("body").evaluate(paper) == "rgb(255, 255, 255)rgb(0, 0, 0)"
    wrapped = "nodes => nodes.every(node => node.scrollWidth <= node.clientWidth)"
    assert reader.locator(".cell_input pre").evaluate_all(wrapped)


@pytest.mark.parametrize("name", ["index", "04_queries_keys_values"])
def test_without_a_script_the_still_picture_stands_there(browser, book, name):
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto((book / f"{name}.html").as_uri())
    assert page.locator(".explorer > img").is_visible()
    context.close()


def test_the_theme_reaches_the_explorers(reader, book):
    opened(reader, book, "08_transformer_block")
    explorer = reader.locator(".explorer .d2g")
    ink = "node => getComputedStyle(node).color"
    light = explorer.evaluate(ink)
    reader.emulate_media(color_scheme="dark")
    lab.eventually(lambda: explorer.evaluate(ink) != light, True)


@pytest.mark.parametrize("from_server", [False, True])
def test_the_search_finds_a_page(reader, book, from_server):
    reader.context.set_offline(not from_server)
    address = "http://127.0.0.1" if from_server else book.as_uri()

    def serve(route: Route) -> None:
        route.fulfill(path=book / urlsplit(route.request.url).path[1:])

    reader.route(re.compile("^http:"), serve)
    reader.goto(f"{address}/index.html")
    reader.wait_for_load_state("networkidle")  # the typewriter's weights: leaving aborts them
    reader.locator(".sidebar-search").fill("softmax")
    reader.locator(".sidebar-search").press("Enter")
    hits = reader.locator("#search-results li a")
    hit = hits.filter(has_text="Queries, keys and values").first
    expect(hit).to_have_attribute("href", re.compile(r"^04_queries_keys_values\.html"))


def one_page(notebook: nbformat.NotebookNode, tmp_path: Path) -> str:
    """The address of a book of one chapter."""
    sources.readable(notebook, {})
    folder = tmp_path / "sources"
    shutil.copytree(ROOT / "tools" / "book" / "static", folder / "_static")
    shutil.copytree(ROOT / "tools" / "book" / "templates", folder / "_templates")
    shutil.copy(ROOT / "tools" / "book" / "conf.py", folder)
    (folder / "install.md").write_text("---\norphan: true\n---\n# Install\n", "utf-8")
    nbformat.write(notebook, folder / "index.ipynb")
    out = tmp_path / "out"
    paths = [str(ROOT), str(ROOT / "tools"), str(ROOT / "tools" / "book")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(folder), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return (out / "index.html").as_uri()


def test_a_link_to_a_claim_opens_the_evidence(reader, tmp_path):
    titles = ["# A chapter", "## Evidence", "## 1 · Exercises"]
    text = "\n\nSee [Evidence](#Evidence)."
    title, evidence, exercises = (v4.new_markdown_cell(title + text) for title in titles)
    claim = v4.new_code_cell("assert True", metadata={"tags": ["claim:Q1", "evidence"]})
    page = one_page(v4.new_notebook(cells=[title, evidence, claim, exercises]), tmp_path)
    reader.goto(page)
    cell = reader.locator("#claim-q1")
    expect(reader.locator("details.evidence > summary")).to_be_visible()
    expect(cell).not_to_be_visible()
    reader.goto(f"{page}#claim-q1")
    expect(cell).to_be_in_viewport()
    expect(reader.locator("details.evidence").get_by_text("Exercises")).to_have_count(0)


HOSTILE = {
    "text/html": """<img src=x onerror="hurt()"><script>hurt()</script>
        <scr<script></script>ipt>hurt()</script><svg onload="hurt()"/>
        <iframe srcdoc="<script>parent.hurt()</script>"></iframe>
        <a id="evil" href="java&#115;cript:hurt()">link</a>
        <details ontoggle="hurt()" open>d</details><div class="explorer"></div>
        <style>body { display: none }</style><b>shown</b>""",
    "text/markdown": """<img src=x onerror="hurt()"> [x](javascript:hurt()) <script>hurt()</script>

```{raw} html
<script>hurt()</script>
```
""",
    "application/javascript": "hurt()",
    "image/svg+xml": '<svg xmlns="http://www.w3.org/2000/svg" onload="hurt()"/>',
    "text/latex": r"$\href{javascript:hurt()}{x}$ <img src=x onerror='hurt()'>",
    "text/plain": "<script>hurt()</script>",
}


def test_no_output_runs_in_a_page(reader, tmp_path):
    bundles = [{kind: text} for kind, text in HOSTILE.items()] + [HOSTILE]
    notebook = v4.new_notebook()
    notebook.cells = [v4.new_markdown_cell("# A chapter")]
    for bundle in bundles:
        shown = v4.new_output("display_data", {"text/plain": "plain", **bundle})
        error = v4.new_output("error", ename="<script>hurt()</script>", evalue="<img onerror>")
        error.traceback = ["<script>hurt()</script>"]
        stream = v4.new_output("stream", text="<script>hurt()</script>")
        notebook.cells.append(v4.new_code_cell("x", outputs=[shown, error, stream]))
    page = one_page(notebook, tmp_path)
    reader.add_init_script("window.hurt = () => { window.isHurt = true; }")
    reader.goto(page)
    expect(reader.get_by_text("shown", exact=True).first).to_be_visible()
    reader.get_by_text("link", exact=True).first.click()
    assert reader.evaluate("window.isHurt") is None
    gone = reader.locator(".cell_output").locator("script, iframe, svg, style, .explorer")
    assert gone.count() == 0
    named = "nodes => nodes.flatMap(node => node.getAttributeNames())"
    names = reader.locator(".cell_output *").evaluate_all(named)
    assert not any(name.startswith("on") for name in names)
