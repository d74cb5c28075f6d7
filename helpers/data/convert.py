"""Conversion to plain text: plays in Markdown, articles in wiki markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO
from xml.etree import ElementTree

# The edition was made from web pages by a program, which slipped here and there. Each repair is a
# pattern for the Markdown and what it should have been.
_REPAIRS = [
    # A speaker's name torn in two: "BISHOP", an empty line, "**OF WINCHESTER**".
    (r"^(BISHOP|CARDINAL|COUNTESS|RICHARD|LADY|Ghosts?|Varro's) *\n\s*\n\*\*", r"**\1 "),
    (r"^\*\*ANTIPHOLUS\*\*( *\n.+\n)OF EPHESUS *$", r"**ANTIPHOLUS OF EPHESUS**\1"),
    # A speaker who is not in bold and has no line of his own.
    (r"^Both *\n(?=Varro's Servants)", ""),
    (r"^((?:Varro's|Isidore's|Lucilius') Servants?|Master-Gunner) (?=\S)", r"**\1**\n"),
    # A speaker who is only named in a stage direction or a label.
    (r"^_(\w+) sings_ *$", r"**\1**"),
    (r"^(?=O blessed breeding sun)", "**TIMON**\n"),
    (r"^(?=I come no more to make you laugh)", "**Prologue**\n"),
    (r"^EPILOGUE *\nSPOKEN BY (\w+) *$", r"**\1**"),
    (r"^EPILOGUE *$", r"**Epilogue**"),
    # Labels and one long stage direction that look like spoken lines.
    (r"^(?:(?:THE )?SONG\.|DUMB SHOW\.|SCENE I+:.*|LOVE'S LABOURS LOST|CYMBELINE) *$", ""),
    (r"^_THE ORDER OF THE CORONATION_(?s:.*?)(?=^_They pass over)", ""),
    # One play, Edward III, comes from another edition: set it like the others.
    ("—", "--"),
    (r"(?<!\*)\*(?!\*)", "_"),
    ('"', "'"),
    (" & c", " &c"),
    # Every speaker begins a paragraph.
    (r"^(?=\*\*)", "\n"),
]
_SPEAKER = re.compile(r"\*\*(.+?)\*\* *(?:\n|$)")
_DIRECTION = re.compile(r"_.*_$", re.DOTALL)  # a whole paragraph
_DIRECTION_LINE = re.compile(r"^(?:_*\[[^\]]*\]_*|_[^_]*_) *\n?", re.MULTILINE)


def play_to_text(markdown: str) -> str:
    r"""Return what is said in a play in Markdown: ``SPEAKER:``, lines, and an empty line.

    >>> print(play_to_text("_Enter BEN_\n\n**BEN**  \n_[Aside]_  \nWho is it?\n\n_Exit_"))
    BEN:
    Who is it?
    """
    markdown = markdown.replace("\\", "")  # Markdown's escapes: \-- and \[
    for slip, repair in _REPAIRS:
        markdown = re.sub(slip, repair, markdown, flags=re.MULTILINE)
    speeches: list[tuple[str, list[str]]] = []
    lines: list[str] | None = None  # of the speech that is going on; None: under a heading
    for paragraph in re.split(r"\n\s*\n", markdown):
        paragraph = paragraph.strip()
        if paragraph.startswith("#"):
            lines = None
        elif speaker := _SPEAKER.match(paragraph):
            lines = _spoken(paragraph[speaker.end() :])
            # "ROSENCRANTZ: & GUILDENSTERN:" is two people, "& & C" is everybody else.
            name = speaker[1].replace(":", "").replace("& & C", "& others").replace(" & ", " and ")
            speeches.append((name, lines))
        elif lines is not None and not _DIRECTION.match(paragraph):
            lines += _spoken(paragraph)
    return "\n\n".join("\n".join([f"{name}:", *lines]) for name, lines in speeches if lines)


def _spoken(paragraph: str) -> list[str]:
    """The lines that are said aloud; a bracket inside a line is an editor's addition and stays."""
    paragraph = _DIRECTION_LINE.sub("", paragraph)
    lines = (" ".join(re.sub(r"[_\[\]]", "", line).split()) for line in paragraph.split("\n"))
    return [line for line in lines if line]


def wiki_pages(dump: IO[bytes]) -> Iterator[tuple[str, str]]:
    """Yield (title, wiki markup) of every article in a MediaWiki XML dump, without redirects."""
    for _, page in ElementTree.iterparse(dump):
        if not page.tag.endswith("}page"):
            continue
        if page.findtext("{*}ns") == "0" and page.find("{*}redirect") is None:
            yield page.findtext("{*}title") or "", page.findtext("{*}revision/{*}text") or ""
        page.clear()  # the dump is large; keep one page at a time


# Before the parser: what is not prose goes first, which also makes parsing five times as fast.
_WIKI_NOT_PROSE = [
    r"^==\s*(?:See also|Notes|References|Footnotes|Citations|Further reading|External links)\s*=="
    r"(?s:.*)",  # from the first of these headings to the end
    r"<!--(?s:.*?)-->",
    r"<ref[^>]*/>|<ref(?s:.*?)</ref>",
    r"\{\|(?:(?!\{\||\|\})(?s:.))*\|\}",  # a table with no table inside
]
# After it: what it could not read, and the holes that were left.
_WIKI_REMAINS = [
    (r"'{2,}|__[A-Z]+__", ""),
    (r"^.*(?:\||\{\{|\}\}|\[\[|\]\]|</?\w+[^>]*>).*$", ""),  # a line that still has markup in it
    (r"\([\s,;]*\)", ""),  # "Paris ( ) is": the template with the pronunciation is gone
    (r"\([\s,;]+", "("),
    (r"[^\S\n]+", " "),
    (r" ([,.;:)])", r"\1"),
    (r"^ | $", ""),
    (r"\n{3,}", "\n\n"),
]


def wiki_to_text(markup: str) -> str:
    """Return the headings and paragraphs of an article in wiki markup as plain text.

    >>> wiki_to_text("'''Paris''' is the [[capital city|capital]] of [[France]].<ref>Map</ref>")
    'Paris is the capital of France.'
    """
    import mwparserfromhell  # loaded here: only one chapter needs it

    for not_prose in _WIKI_NOT_PROSE:
        markup = re.sub(not_prose, "", markup, flags=re.MULTILINE | re.IGNORECASE)
    text = mwparserfromhell.parse(markup).strip_code()
    for remains, repair in _WIKI_REMAINS:
        text = re.sub(remains, repair, text, flags=re.MULTILINE)
    return text.strip()
