"""Outputs that are safe in a page: nothing in them runs, or loads from elsewhere, in a browser."""

import re
from typing import Any

import mathml
from bleach.css_sanitizer import CSSSanitizer  # type: ignore[import-untyped]
from bleach.sanitizer import ALLOWED_TAGS, Cleaner  # type: ignore[import-untyped]
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

KINDS = {"text/plain", "text/html", "image/png"}  # of the others, the plain text is shown
TAGS = ALLOWED_TAGS | {"br", "caption", "div", "h1", "h2", "h3", "h4", "hr", "p", "pre", "small"}
TAGS |= {"span", "sub", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr"}
TAGS |= {"math", "mfrac", "mi", "mn", "mo", "mover", "mrow", "msqrt", "mstyle", "msub", "msubsup"}
TAGS |= {"msup", "mtext", "munder", "munderover"}
ATTRIBUTES = {"*": ["style", "title"], "a": ["href"]}
ATTRIBUTES |= {"td": ["colspan", "rowspan"], "th": ["colspan", "rowspan", "scope"]}
STYLES = {"background-color", "border", "border-left", "color", "font-size", "font-style"}
STYLES |= {"font-weight", "margin", "padding", "text-align", "white-space"}
_cleaner = Cleaner(
    TAGS,
    ATTRIBUTES,
    protocols=["http", "https", "mailto"],
    strip=True,
    css_sanitizer=CSSSanitizer(allowed_css_properties=STYLES),
)
_markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
_inline = MarkdownIt()
for parser in (_markdown, _inline):
    parser.use(
        dollarmath_plugin, allow_digits=False, renderer=lambda latex, _: mathml.mathml(latex)
    )


def html(text: str) -> str:
    """HTML without what is not needed to show text and tables.

    >>> html('<b onclick="f()">x</b><script>f()</script>')
    '<b>x</b>'
    """
    return str(_cleaner.clean(re.sub(r"<(script|style)\b.*?</\1\s*>", "", text, flags=re.S | re.I)))


def output(bundle: dict[str, Any]) -> dict[str, Any]:
    """The data of an output, of the kinds that a page shows; Markdown becomes HTML."""
    if "text/markdown" in bundle:
        bundle = bundle | {"text/html": _markdown.render(bundle["text/markdown"])}
    kept = {kind: value for kind, value in bundle.items() if kind in KINDS}
    if "text/html" in kept:
        kept["text/html"] = html(kept["text/html"])
    return kept


def summary(text: str) -> str:
    """The HTML of a summary, in which a notebook may have Markdown and formulae.

    >>> summary("From *she* to `x`")
    'From <em>she</em> to <code>x</code>'
    """
    return str(_inline.renderInline(text))
