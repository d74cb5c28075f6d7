"""Slides of a chapter: reveal.js in one HTML file that loads nothing.

    slides(Path("notebooks/04_queries_keys_values.ipynb"), Path("build/slides/04.html"))

Nothing is run, and no slide is written by hand. The title comes first; then each numbered section
has a slide with the sentences that open it and, below it, a slide for each picture, table,
displayed formula, list, block of code, and printed output of its core path. Above each stand the
sentences that lead to it, below each the claims in bold that follow. A prediction shows its
question, and on the next key its answer. All text is in the speaker's notes (key S).

No argument is cut: a paragraph that introduces a term, works something out by hand, or comes just
before a prediction is shown whole, and so is one too long to stand above what it leads to, on a
slide of its own. Of others, no sentence is shown without the ones before that it refers to.

reveal.js and the font of the text come with sphinx-revealjs, the font of code with Matplotlib,
that of formulae with ziamath. slides.css is the look; slides.js gives each slide the largest type
that fits, from 32 down to 18 pixels of 1280 × 720.
"""

import io
import re
import struct
import sys
import textwrap
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import matplotlib
import nbformat
from jinja2 import Environment, FileSystemLoader
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "book"))

import clean  # noqa: E402
import mathml  # noqa: E402

SKIPPED = {"navigation", "setup", "deeper", "evidence", "check", "exercise", "ahead", "environment"}
NOT_SHOWN = "Names in the literature"  # a heading whose text is for the notes
# What a slide holds at the smallest type, and with room to spare.
CODE_LINES = 12  # of code that is shown with its output
DEFINITION_LINES = 22  # of code that the chapter teaches, shown alone
OUTPUT_LINES = 14
COLUMNS = 98  # of what was printed; of half as many, two stand side by side
LIST_ITEMS, LIST_LETTERS = 5, 800
TABLE_ROWS, TABLE_LETTERS = 8, 800
OPENING = 230  # letters of the text that opens a section
TEXT = 1000  # letters of a slide of text
ABOVE, CLAIMS = 330, 330  # letters of the text above and below a slide's picture, code, …
AROUND = 560  # letters of both
OPENED = 400  # letters of a table, formula, … beside the sentence that opens a section
HEIGHT = 335  # pixels for code, output and text, at the smallest type

PREDICT = re.compile(r"\*\*Predict[^*]*\*\*:?\s*")
BY_HAND = re.compile(r"\bpencil\b|\b[Bb]y hand\b")
# What is said to somebody who has the chapter open.
AT_THE_CHAPTER = re.compile(r"\bcells?\b|\*\*(Tab|Esc|E|Shift)\b|Exercise \d|\*Deeper\*")
# What makes a sentence refer to the one before it.
REFERS = re.compile(
    r"^(Now|It|Its|They|Their|This|That|These|Those|Such|So|But|And|Or|Then|Therefore|Thus|Hence|Yet"
    r"|Instead|Also|Both|Each|Neither|Together|Otherwise|However|For (example|instance)"
    r"|In the same way|The (first|second|third|last|other|others|same)|In other words)\b"
    r"|\b(it|its|they|them|their|this|these|those|both|too|there)\b"
)
GOES_ON = re.compile(r"(It|They|The (first|second)|Take (it|them))\b")
REFERENCES = re.compile(r"\s*\((\[Evidence\]\([^)]*\)|\*Deeper\*)[^()]*\)")
DETAILS = re.compile(r"^<details>\s*<summary>(.*?)</summary>(.*?)</details>", re.M | re.S)
SPAN = re.compile(r"\*\*.+?\*\*|\$[^$]+\$|`[^`]+`|\[[^\]]*\]\([^)]*\)|\([^()]*\)|\"[^\"]*\"")
FORMULA = 110  # letters of LaTeX on one line
CODE = re.compile(r'<pre class="code".*?</pre>', re.S)
STYLE = "a11y-high-contrast-light"


# --- what a chapter consists of -------------------------------------------------------------------


@dataclass
class Block:
    """A piece of a chapter: its kind, its Markdown or HTML, and for some kinds a second text.

    Kinds: chapter, section, sub (headings); text; list, table, math, quote, fence; details
    (question, answer); code (shown alone), printed (code, output), picture (<img>, title), explorer
    (the <img> of its still picture).
    """

    kind: str
    text: str
    other: str = ""


TOKENS = {
    "paragraph_open": "text",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "math_block": "math",
    "blockquote_open": "quote",
    "fence": "fence",
}
HEADINGS = {"h1": "chapter", "h2": "section", "h3": "sub", "h4": "sub"}


def blocks(notebook: NotebookNode) -> Iterator[Block]:
    """The core path of a chapter, without its exercises."""
    exercises = False
    for cell in notebook.cells:
        if SKIPPED & set(cell.metadata.get("tags", [])):
            continue
        found = text_blocks(cell.source) if cell.cell_type == "markdown" else code_blocks(cell)
        for block in found:
            if block.kind == "section":
                exercises = block.text.endswith("Exercises")
            if not exercises:
                yield block


def text_blocks(source: str) -> Iterator[Block]:
    """The blocks of a Markdown cell."""
    source = REFERENCES.sub("", source)
    parts = DETAILS.split(source)  # text, question, answer, text, …
    for start in range(0, len(parts), 3):
        text = re.sub(r"<details>.*?</details>", "", parts[start])
        text = re.sub(r"\[([^\]]*)\]\((?!http)[^)]*\)", r"\1", text)  # links to other chapters
        lines = text.splitlines()
        for token in markdown().parse(text):
            if token.level or not token.map:
                continue
            piece = "\n".join(lines[slice(*token.map)]).strip()
            if token.type == "heading_open":
                yield Block(HEADINGS[token.tag], piece.lstrip("# "))
            elif token.type in TOKENS:
                yield Block(TOKENS[token.type], piece)
        if start + 2 < len(parts):
            yield Block("details", parts[start + 1].strip(), parts[start + 2].strip())


def code_blocks(cell: NotebookNode) -> Iterator[Block]:
    """What of a code cell is shown: pictures, printed output, and code that is short or taught."""
    source = cell.source.strip()
    hidden = cell.metadata.get("jupyter", {}).get("source_hidden")
    title = re.match(r"# Picture: (.*)", source)
    printed = ""
    shown = False
    for output in cell.outputs:
        data = output.get("data", {})
        if "image/png" in data:
            alt = output.get("metadata", {}).get("image/png", {}).get("alt", "")
            png = data["image/png"].replace("\n", "")
            image = f'<img src="data:image/png;base64,{png}" alt="{escape(alt)}">'
            yield Block("picture", image, title[1]) if title else Block("explorer", image)
            shown = True
        elif "text/html" in data:
            yield Block("html", clean.html(data["text/html"]))
            shown = True
        else:
            printed += output.get("text", "") or data.get("text/plain", "")
    if shown:
        return
    tags = cell.metadata.get("tags", [])
    n_lines = len([line for line in source.splitlines() if line.strip()])
    if printed.strip():
        short = not hidden and n_lines <= CODE_LINES and len(printed.splitlines()) <= OUTPUT_LINES
        yield Block("printed", source if short else "", printed.rstrip())
    elif not hidden and any(tag == "built" or tag.startswith("same-as:") for tag in tags):
        for part in parts_of_code(source):
            yield Block("code", part)


def parts_of_code(source: str) -> list[str]:
    """Code in parts that fit on a slide, cut before definitions."""
    parts: list[str] = []
    for piece in re.split(r"\n{3,}|\n\n(?=    def )", source):
        if parts and len(f"{parts[-1]}\n\n{piece}".splitlines()) <= DEFINITION_LINES:
            parts[-1] += f"\n\n{piece}"
        else:
            parts.append(piece)
    return parts


# --- slides ---------------------------------------------------------------------------------------


@dataclass
class Slide:
    """One slide; all texts but `body` are Markdown."""

    kind: str  # chapter, section, or one of the kinds of Block
    title: str = ""
    section: str = ""
    lead: str = ""
    question: str = ""  # of a prediction: what stands below it is shown on the next key
    body: list[str] = field(default_factory=list)  # HTML
    claims: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    closed: bool = False  # another heading has followed

    def shows(self) -> bool:
        """Is there anything on it but its title?"""
        return bool(self.lead or self.question or self.body or self.claims)


def stacks(notebook: NotebookNode) -> list[list[Slide]]:
    """The slides of a chapter: the title, then a stack for each section."""
    made: list[list[Slide]] = []
    section: list[Block] = []
    for block in [*blocks(notebook), Block("section", "")]:
        if block.kind == "section" and section:
            made.append(stack(section) if made else [title_slide(section)])
            section = []
        section.append(block)
    return made


def title_slide(found: list[Block]) -> Slide:
    """The chapter's title, its question, and what one can do afterwards."""
    slide = Slide("chapter", found[0].text)
    for before, block in pairwise(found):
        if block.kind == "list" and "Afterwards you can" in before.text:
            slide.body = ["<p>Afterwards you can</p>", render(block.text)]
        elif not slide.lead and re.fullmatch(r"\*\*.*\*\*", block.text, re.S):
            slide.lead = block.text.strip("*")
        elif "Afterwards you can" not in block.text:
            slide.notes.append(block.text)
    return slide


def stack(section: list[Block]) -> list[Slide]:
    """The slides of one section."""
    heading, *rest = section
    made = [Slide("section", heading.text)]
    waiting = Paragraph()
    sub = ""
    for number, block in enumerate(rest):
        if block.kind == "sub":
            waiting = settle(made, waiting)
            sub = block.text
            made[-1].closed = True
            kinds = [later.kind for later in rest[number + 1 :]]
            kinds = kinds[: kinds.index("sub")] if "sub" in kinds else kinds
            if kinds[:2] == ["text", "text"] or set(kinds) <= {"text"}:
                made.append(Slide("text", sub, heading.text))
        elif block.kind == "text":
            paragraph = Paragraph(block.text, sentences(block.text), sub or heading.text)
            settle(made, waiting, asked=bool(PREDICT.match(block.text)))
            waiting = paragraph
            if made[-1].kind in ("section", "text") and not made[-1].notes:
                made[-1].notes.append(block.text)
                waiting.text = ""
                follows = rest[number + 1 : number + 2]
                alone = not follows or follows[0].kind in ("text", "sub")
                made[-1].lead, waiting.said = opening(waiting, alone)
        elif sub == NOT_SHOWN:
            made[-1].notes.append(block.text)
        elif block.kind in ("quote", "table", "math", "list") and opens(made, waiting, block):
            made[0].body += parts(block)
        elif block.kind in ("code", "math") and joins(made[-1], waiting, block):
            made[-1].body += parts(block)
        elif block.kind == "details" and sub != "Recap" and not waiting.asks():
            made[-1].notes.append(f"{block.text} {block.other}")
        else:
            first, *others = parts(block)
            slide = Slide(block.kind, sub or heading.text, heading.text, body=[first])
            lead_to(slide, block, waiting, made)
            made.append(slide)
            made += [Slide(block.kind, sub, heading.text, body=[other]) for other in others]
            waiting = Paragraph()
    settle(made, waiting)
    for slide in made:
        caption(slide)
        drop_code(slide)
        slide.title = slide.title or slide.section
    shown = [slide for slide in made if slide.shows()] or made[:1]
    shown[-1].notes += [note for slide in made if slide not in shown for note in slide.notes]
    return shown


@dataclass
class Paragraph:
    """A paragraph: its text, if that is in no notes yet, its sentences, and its heading."""

    text: str = ""
    said: list[str] = field(default_factory=list)
    title: str = ""

    def asks(self) -> bool:
        return any(map(PREDICT.match, self.said))

    def whole(self) -> bool:
        """Is it shown whole or not at all: does it introduce a term, or work something out?"""
        terms = re.findall(r"\*\*(.+?)\*\*", " ".join(self.said))
        short = any(len(term.split()) < 4 for term in terms)
        return short or any(map(BY_HAND.search, self.said))


def opens(made: list[Slide], waiting: Paragraph, block: Block) -> bool:
    """Does a block follow the sentences that open the section, and fit beside them?"""
    first = len(made) == 1 and not waiting.said and not made[0].body
    return first and 0 < len(made[0].lead) <= ABOVE and len(block.text) <= OPENED


def joins(slide: Slide, waiting: Paragraph, block: Block) -> bool:
    """Has a slide room for the code or formula that follows its own without a word between?"""
    n_lines = len(block.text.splitlines()) + 2 * len(slide.body)
    n_lines += sum(part.count("\n") + 1 for part in slide.body)
    fits = len(slide.body) < 3 if block.kind == "math" else n_lines <= DEFINITION_LINES
    return slide.kind == block.kind and not waiting.said and fits


def lead_to(slide: Slide, block: Block, waiting: Paragraph, made: list[Slide]) -> None:
    """Give the slide of a block the paragraph before it: its question, and what leads to it.

    What is too long to stand above the block has a slide of its own.
    """
    if block.kind == "picture" and block.other:
        slide.title = block.other[0].upper() + block.other[1:]
    if block.kind == "details" and not waiting.asks():
        settle(made, waiting)
        slide.question = re.sub(r"^\d+\. ", "", block.text)
        return
    said = waiting.said
    asked = next((n for n, sentence in enumerate(said) if PREDICT.match(sentence)), len(said))
    question = PREDICT.sub("", " ".join(said[asked:]))
    slide.question = question[:1].upper() + question[1:]
    start = asked
    while start and (waiting.whole() or length(said[start - 1 : asked]) <= ABOVE):
        start -= 1
    start = back(said, min(start, max(asked - 1, 0)))
    fits = length(said[start:asked]) <= ABOVE
    answers = fits and bool(made[-1].question) and is_bare(made[-1])
    settle(made, Paragraph("", said[: max(start, int(answers))]))
    if fits:
        slide.lead = " ".join(without_hints(said[start:asked]))
        slide.notes += [waiting.text] if waiting.text else []
    else:
        show(made, Paragraph(waiting.text, said[:asked], waiting.title))


def settle(made: list[Slide], paragraph: Paragraph, asked: bool = False) -> Paragraph:
    """Show a paragraph that leads to nothing, and put it into the notes.

    A paragraph that must be whole, or about which the next one asks, has a slide of its own. Of
    others, the claims stand on the slide before, with the sentences that they refer to; if that
    slide has asked, the answer does.

    Returns an empty paragraph.
    """
    slide, said = made[-1], without_hints(paragraph.said)
    claims = [n for n, sentence in enumerate(said) if is_claim(sentence)]
    below = [said[n] for n in sorted({m for c in claims for m in range(back(said, c), c + 1)})]
    if is_bare(slide) and not below:
        below = answer(said) if slide.question else answer(said)[:1]
        below = [" ".join(below)] if below else []
    whole = asked or paragraph.whole()
    if whole:
        below = [" ".join(said)] if said else []
    apart = slide.closed or (whole and slide.kind == "text")
    fits = not apart and length(slide.claims + below) <= room_below(slide)
    if fits:
        slide.claims += below
    if paragraph.text and below and not fits:
        show(made, paragraph)
    elif paragraph.text:
        slide.notes.append(paragraph.text)
    return Paragraph()


def show(made: list[Slide], paragraph: Paragraph) -> None:
    """Put a paragraph on the text slide before, if that has room, or on one of its own."""
    said = " ".join(without_hints(paragraph.said))
    last = made[-1]
    room = TEXT - len(last.lead) - length(last.claims) - len(said)
    if last.kind != "text" or last.closed or last.claims or room < 0:
        made.append(Slide("text", paragraph.title, made[0].title))
    made[-1].lead = f"{made[-1].lead}\n\n{said}".strip()
    made[-1].notes += [paragraph.text] if paragraph.text else []


def is_bare(slide: Slide) -> bool:
    """Does it still need a sentence: the answer to its question, or a caption?"""
    shows = slide.kind in ("picture", "explorer", "printed", "math", "fence", "quote")
    return shows and not (slide.claims or slide.closed) and bool(slide.question or not slide.lead)


def room_below(slide: Slide) -> int:
    """How many letters fit below what a slide shows."""
    n_lines = sum(part.count("\n") + 1 for part in slide.body) if slide.kind == "code" else 0
    asked = len(slide.question) + 100 if slide.question else 0
    most = TEXT if slide.kind in ("section", "text") and not slide.body else AROUND
    return min(CLAIMS, most - len(slide.lead) - asked - 20 * n_lines)


def length(said: list[str]) -> int:
    return sum(map(len, said))


def without_hints(said: list[str]) -> list[str]:
    """Sentences without those for somebody who has the chapter open, and what refers to them."""
    kept, hint = [], False
    for sentence in said:
        hint = bool(AT_THE_CHAPTER.search(sentence) or (hint and GOES_ON.match(sentence)))
        kept += [] if hint else [sentence]
    return kept


def back(said: list[str], start: int) -> int:
    """Where to begin so that no sentence refers to one that is left out."""
    while start and REFERS.search(said[start]):
        start -= 1
    return start


def answer(said: list[str]) -> list[str]:
    """The first sentences of a paragraph, as far as they fit on a slide and ask nothing."""
    end = 0
    while end < len(said) and length(said[: end + 1]) <= CLAIMS and said[end][-1] != "?":
        end += 1
    return said[:end]


def caption(slide: Slide) -> None:
    """Give a drawing without any text the first sentence of its description."""
    if slide.kind == "picture" and not (slide.lead or slide.question or slide.claims):
        alt = re.search(r'alt="([^"]*)"', slide.body[0])
        slide.claims = sentences(alt[1])[:1] if alt else []


def drop_code(slide: Slide) -> None:
    """Take the code from above an output where both have no room."""
    if slide.kind == "printed" and CODE.match(slide.body[0]):
        text = len(slide.lead) + len(slide.question) + sum(map(len, slide.claims))
        if 23.4 * (slide.body[0].count("\n") + 2) + 26.4 * text / 110 > HEIGHT:
            slide.body[0] = CODE.sub("", slide.body[0])


def opening(paragraph: Paragraph, whole: bool) -> tuple[str, list[str]]:
    """The first sentences of a section, as one text, and the others; what is whole stays so.

    It goes on as long as a sentence refers to the one before it.
    """
    said = without_hints(paragraph.said)
    asked = next((n for n, sentence in enumerate(said) if PREDICT.match(sentence)), len(said))
    end = min(1, asked)
    whole = whole or paragraph.whole()
    while (
        end < asked
        and (whole or said[end][-1] != ":")
        and (whole or length(said[: end + 1]) <= OPENING or REFERS.search(said[end]))
    ):
        end += 1
    return " ".join(said[:end]), said[end:]


def is_claim(sentence: str) -> bool:
    """Does the sentence have a claim in bold, and not only a term?

    >>> is_claim("**The later word looks back.**"), is_claim("This is the **mean squared error**.")
    (True, False)
    """
    bold = re.findall(r"\*\*(.+?)\*\*", sentence)
    return any(len(words.split()) >= 4 for words in bold) and not AT_THE_CHAPTER.search(sentence)


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph in Markdown; what is bold or in brackets stays whole.

    >>> sentences("It is small. **It is 3. See?** The *end* (No. 2 is here). $x$ is 1.")
    ['It is small.', '**It is 3. See?**', 'The *end* (No. 2 is here).', '$x$ is 1.']
    """
    text = " ".join(text.split())
    whole = [span.span() for span in SPAN.finditer(text)]
    found, start = [], 0
    for end in re.finditer(r"(?<![A-Z])[.?!][*”\")]*\s+(?=[^a-z])", text):
        if not any(first < end.end() < last for first, last in whole):
            found.append(text[start : end.end()].strip())
            start = end.end()
    return [*found, text[start:]] if text[start:] else found


# --- HTML -----------------------------------------------------------------------------------------


@cache
def markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"highlight": code_html}).enable("table")
    return parser.use(
        dollarmath_plugin,
        allow_digits=True,  # otherwise it misses a formula that opens a cell which ends in a digit
        renderer=lambda latex, options: mathml.mathml(latex, block=options["display_mode"]),
    )


def render(text: str) -> str:
    """Markdown as HTML, formulae as MathML."""
    return str(markdown().render(text))


def inline(text: str) -> str:
    """One line or paragraph of Markdown as HTML without <p>."""
    return str(markdown().renderInline(text))


def code_html(code: str, language: str = "python", _: str = "") -> str:
    """Code as HTML; what is fenced as another language is output."""
    if language != "python":
        return printed_html(code.rstrip())
    code = re.sub(r"\n{3,}", "\n\n", code)
    return pre("code", code, highlight(code, PythonLexer(), HtmlFormatter(nowrap=True)).strip())


def lines_of(formula: str) -> str:
    r"""A displayed formula as several, cut at \qquad where that is outside of all braces."""
    pieces = formula.strip("$ \n").split(r"\qquad")
    whole = all(
        piece.strip()
        and "$" not in piece
        and piece.count("{") == piece.count("}")
        and piece.count(r"\begin") == piece.count(r"\end")
        for piece in pieces
    )
    return "\n\n".join(f"$${piece.strip()}$$" for piece in pieces) if whole else formula


def pre(kind: str, text: str, html: str) -> str:
    """A <pre> that says how many columns it has, by which slides.css chooses its type."""
    return f'<pre class="{kind}" style="--columns: {max(map(len, text.splitlines()))}">{html}</pre>'


def parts(block: Block) -> list[str]:
    """The HTML of a block, in as many parts as it needs slides."""
    match block.kind:
        case "list":
            items = re.split(r"\n(?=(?:[-*]|\d+\.) )", block.text)
            return [render("\n".join(some)) for some in evenly(items, LIST_ITEMS, LIST_LETTERS)]
        case "table":
            head, line, *rows = block.text.splitlines()
            return [
                render("\n".join([head, line, *some]))
                for some in evenly(rows, TABLE_ROWS, TABLE_LETTERS)
            ]
        case "math" if len(block.text) > FORMULA:
            return [render(lines_of(block.text))]
        case "code":
            return [code_html(block.text)]
        case "printed" if block.text:
            return [code_html(block.text) + printed_html(block.other)]
        case "printed":
            lines = [part for line in block.other.splitlines() for part in wrapped(line)]
            if len(lines) > OUTPUT_LINES and max(map(len, lines)) < COLUMNS / 2:
                return [printed_html("\n".join(lines[: 2 * OUTPUT_LINES]), "output two")]
            shown = evenly(lines[: 2 * OUTPUT_LINES], OUTPUT_LINES)
            return [printed_html("\n".join(some)) for some in shown]
        case "picture" | "explorer":
            return [
                f'<div class="picture{" tall" if is_tall(block.text) else ""}">{block.text}</div>'
            ]
        case "html":
            return [block.text]
        case "details":
            return [render(block.other)]
        case _:
            return [render(block.text)]


def printed_html(text: str, kind: str = "output") -> str:
    """What a cell printed."""
    text = "\n".join(part for line in text.splitlines() for part in wrapped(line))
    return pre(kind, text, escape(text))


def wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, COLUMNS, drop_whitespace=False, subsequent_indent="  ") or [""]


def is_tall(image: str) -> bool:
    """Is a PNG so tall that the text of its slide should stand beside it?"""
    png = b64decode(image.partition("base64,")[2][:64])
    width, height = struct.unpack(">II", png[16:24])
    return bool(height > 1.2 * width)


def evenly(items: list[str], most: int, letters: int = 10_000) -> list[list[str]]:
    """Items in as few groups of nearly equal length as `most` and the number of letters allow."""
    n_groups = max(-(-len(items) // most), -(-sum(map(len, items)) // letters))
    n_groups = min(n_groups, len(items))
    bounds = [round(len(items) * n / n_groups) for n in range(n_groups + 1)]
    return [items[first:last] for first, last in pairwise(bounds)]


# --- the file -------------------------------------------------------------------------------------


def slides(chapter: Path, out: Path) -> Path:
    """Make the slides of a chapter.

    chapter: a notebook, as committed: it is not run
    out: the HTML file to write; its folder is made if needed

    Returns out.
    """
    notebook = nbformat.read(chapter, as_version=4)
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["markdown"] = render
    environment.filters["inline"] = inline
    made = stacks(notebook)
    template = environment.get_template("slides.html")
    body = template.module.deck(made)  # type: ignore[attr-defined]
    own = HERE / "slides.js"
    page = template.render(
        title=made[0][0].title,
        body=body,
        css=[fonts(body), reveal("dist/reset.css"), reveal("dist/reveal.css"), style()],
        js=[reveal("dist/reveal.js"), reveal("plugin/notes/notes.js"), own.read_text("utf-8")],
        licences=[reveal("LICENSE"), reveal(f"{TEXT_FONT}/LICENSE")],
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, "utf-8")
    return out


TEXT_FONT = "dist/theme/fonts/source-sans-pro"


def reveal_folder() -> Path:
    """reveal.js, as it comes with sphinx-revealjs."""
    package = find_spec("sphinx_revealjs")
    if package is None or package.origin is None:
        raise ModuleNotFoundError(
            "Slides need reveal.js, which comes with the package sphinx-revealjs, not found here:"
            " install requirements-teach.txt."
        )
    return Path(package.origin).parent / "_static" / "revealjs"


def reveal(name: str) -> str:
    return (reveal_folder() / name).read_text("utf-8")


def style() -> str:
    colours = HtmlFormatter(style=STYLE).get_style_defs("pre.code")
    return f"{colours}\n{(HERE / 'slides.css').read_text('utf-8')}"


def fonts(body: str) -> str:
    """@font-face rules with the signs that the slides use."""
    signs = set(map(ord, body)) | set(range(32, 127))
    formulae = {*map(ord, mathml.math_signs(body)), *mathml.DRAWN}
    text, code = reveal_folder() / TEXT_FONT, Path(matplotlib.get_data_path(), "fonts", "ttf")
    faces = [
        ("Text", 400, "normal", text / "source-sans-pro-regular.ttf", signs),
        ("Text", 400, "italic", text / "source-sans-pro-italic.ttf", signs),
        ("Text", 600, "normal", text / "source-sans-pro-semibold.ttf", signs),
        ("Code", 400, "normal", code / "DejaVuSansMono.ttf", signs),
        ("Formula", 400, "normal", mathml.font_file(), formulae),
    ]
    return "\n".join(face(*each) for each in faces)


def face(name: str, weight: int, slant: str, path: Path, signs: Iterable[int]) -> str:
    file = io.BytesIO()
    mathml.cut_font(path, signs).save(file)
    data = b64encode(file.getvalue()).decode("ascii")
    return (
        f"@font-face {{ font-family: {name}; font-weight: {weight}; font-style: {slant};"
        f" src: url(data:font/woff;base64,{data}); }}"
    )
