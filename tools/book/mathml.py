r"""Formulae as MathML, made when the book is built: browsers draw it, screen readers read it.

It needs no script in the page. The font that browsers need for it, STIX Two Math, comes with
ziamath; of its two million bytes the book keeps the signs that its formulae use.
"""

import logging
import re
from collections.abc import Iterable
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from fontTools import subset
from fontTools.ttLib import TTFont
from latex2mathml.converter import convert

logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells of every table
FONT = "STIXTwoMath-Regular"
# What browsers draw for what is written: a root, and letters in italics (h stands elsewhere).
DRAWN = [ord("√"), ord("ℎ"), *range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C)]
# What latex2mathml does not know, in words that it knows.
SAME = {r"\lVert": r"\Vert", r"\rVert": r"\Vert", r"\bigl": "", r"\bigr": "", r"\tfrac": r"\frac"}
FUNCTION = re.compile(
    r"(<mrow>)?<m[io]>(ln|log|exp|sin|cos|tanh|max|min)</m[io]>"
    r"(?=(<mo stretchy=\"false\">&#x00028;)?)"
)
# A box, which browsers do not draw; ∞, which is a number; and a minus that they take for a
# difference, after a sign that is neither a closing bracket nor ….
IN_BROWSERS = {
    r'<menclose notation="box">': '<mrow style="border: 1px solid; padding: 0.4em">',
    r"</menclose>": "</mrow>",
    r"<mo>&#x0221E;</mo>": "<mi>&#x0221E;</mi>",
    r"(<mo[^>]*>(?!\]|&#x(?:00029|0007C|0007D|02026);)[^<]*</mo><mo)(?=>&#x02212;)": (
        r'\1 form="prefix"'
    ),
}


def mathml(latex: str, block: bool = False) -> str:
    r"""A formula as a <math> element.

    >>> mathml("x^2")[-47:]
    '<msup><mi>x</mi><mn>2</mn></msup></mrow></math>'
    """
    for theirs, ours in SAME.items():
        latex = latex.replace(theirs, ours)
    made = convert(latex, display="block" if block else "inline")
    for theirs, ours in IN_BROWSERS.items():
        made = re.sub(theirs, ours, made)
    return FUNCTION.sub(spaced, made)


def spaced(name: re.Match[str]) -> str:
    """The name of a function with TeX's thin spaces: none at a beginning, none before a bracket."""
    before, after = ("0" if edge else "0.167em" for edge in (name[1], name[3]))
    return f'{name[1] or ""}<mo lspace="{before}" rspace="{after}">{name[2]}</mo>'


def inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(f"{mathml(node.astext())}\u2060")  # no comma shall begin the next line
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def bundle_font(app: Any, error: Exception | None) -> None:
    """Write the signs that the pages' formulae use, as a font beside the style sheet."""
    if error or app.builder.format != "html":
        return
    pages = Path(app.outdir).glob("*.html")
    used = {sign for page in pages for sign in math_signs(page.read_text("utf-8"))}
    font = cut_font(font_file(), {*map(ord, used), *DRAWN})
    font.save(Path(app.outdir) / "_static" / f"{FONT}.woff")


def font_file() -> Path:
    """The font for formulae, whole."""
    package = find_spec("ziamath")
    assert package is not None and package.origin is not None
    return Path(package.origin).parent / "fonts" / f"{FONT}.ttf"


def cut_font(path: Path, signs: Iterable[int]) -> TTFont:
    """A font with these code points only, to be saved as WOFF."""
    font = TTFont(path, recalcTimestamp=False)
    options = subset.Options(layout_features=["*"], name_IDs=["*"], notdef_outline=True)
    options.drop_tables += ["FFTM", "webf"]  # notes of the programs that made the font
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=signs)
    cutter.subset(font)
    _make_roots_equally_wide(font)
    font.flavor = "woff"
    return font


def _make_roots_equally_wide(font: TTFont) -> None:
    """Chromium keeps room for the widest root, however small the one is that it draws."""
    widths, root = font["hmtx"].metrics, font.getBestCmap().get(ord("√"))
    for name in [name for name in widths if root and name.startswith(f"{root}.")]:
        glyph, wanted = font["glyf"][name], widths[root][0]
        glyph.coordinates.scale((wanted / widths[name][0], 1))
        glyph.coordinates.toInt()
        glyph.recalcBounds(font["glyf"])
        widths[name] = wanted, glyph.xMin


def math_signs(html: str) -> set[str]:
    """The characters in the <math> elements of a page."""
    text = "".join(re.findall(r"<math.*?</math>", html, flags=re.S))
    return set(unescape(re.sub(r"<[^>]*>", "", text)))


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("build-finished", bundle_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
