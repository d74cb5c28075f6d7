"""A text as the tokens that byte-pair encoding makes of it, after any number of merges."""

import functools
import struct
import textwrap
from typing import Any, ClassVar, Self

import traitlets
from matplotlib.font_manager import findfont, get_font

from explorers.base import Explorer, esm, in_range, read_only
from explorers.labels import sendable, short
from explorers.packed import ids_of_merges
from helpers import data
from helpers.formats.checkpoints import load_checkpoint
from helpers.plots import BLUE, GREEN, ORANGE, PINK, SKY, Picture, picture, verbatim
from helpers.text import BPETokenizer

LONGEST = 4000  # characters that are cut into tokens
IN_FRAME = 30  # characters of a token in the still picture
IN_PICTURE = 130  # tokens in the still picture
SIGN = 0.68  # width of a character in it, of 66
_COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY)
_SHOWN = {" ": "␣", "\n": "⏎", "\t": "⇥"}


class TokenExplorer(Explorer):
    """A text that you type, cut into tokens, with a slider for the number of merges.

    Args:
        tokenizer: a `BPETokenizer`.
        text: the initial text.
        used: how many of the tokenizer's merges are used initially; all of them by default.

    The merges go to the browser once; there the text is encoded, at every slider position as by a
    `BPETokenizer` with so many merges. A text longer than 4,000 characters is shown up to there.
    Raises TypeError for another tokenizer, ValueError for a number of merges that it does not have;
    TraitError where `used` is set out of range.
    """

    _esm: ClassVar[str] = esm("bpe", "token")

    text = traitlets.Unicode().tag(sync=True)
    used = traitlets.Int().tag(sync=True)
    alphabet = traitlets.Bytes().tag(sync=True)
    merges = traitlets.Bytes().tag(sync=True)
    longest = traitlets.Int(LONGEST).tag(sync=True)

    def __init__(self, tokenizer: BPETokenizer, text: str, *, used: int | None = None):
        if not isinstance(tokenizer, BPETokenizer):
            raise TypeError(f"tokenizer should be a BPETokenizer, not a {type(tokenizer).__name__}")
        self._merges = tokenizer.merges
        alphabet, pairs = ids_of_merges(BPETokenizer(self._merges))
        super().__init__(
            text=text,
            used=len(self._merges) if used is None else used,
            alphabet=alphabet,
            merges=struct.pack(f"<{len(pairs)}i", *pairs),
        )

    @classmethod
    def example(cls) -> Self:
        tokenizer = load_checkpoint(data.checkpoint("gptmini")).tokenizer
        assert isinstance(tokenizer, BPETokenizer)
        line = "The city is the capital of the United States and was founded in 1850.\n"
        return cls(BPETokenizer(tokenizer.merges[:1000]), 6 * line)

    _many = in_range("how many merges,", "used", low=0, high=lambda self: len(self._merges))

    @traitlets.validate("text")
    def _can_travel(self, proposal: Any) -> str:
        return sendable(proposal.value)

    _given = read_only("alphabet", "merges", "longest")

    def ids(self) -> list[int]:
        """The ids of the text (of its first 4,000 characters) after the merges in use."""
        return BPETokenizer(self._merges[: self.used]).encode(self._cut())

    def pieces(self) -> list[str]:
        """The tokens as shown: white space as symbols, incomplete characters as numbers."""
        cutter = BPETokenizer(self._merges[: self.used])
        return [readable(cutter.piece(i)) for i in self.ids()]

    def _cut(self) -> str:
        return self.text[:LONGEST]

    def picture(self) -> Picture:
        """The text, the counts, and the tokens in rows, each in a frame."""
        tokens = list(zip(self.pieces(), self.ids(), strict=True))
        rows: list[list[tuple[float, str, int]]] = [[]]
        x = 0.0
        for piece, id in tokens[:IN_PICTURE]:
            shown = "".join(c if ord(c) in _glyphs() else _numbers(c.encode()) for c in piece)
            shown = short(shown, IN_FRAME)
            if x + len(shown) * SIGN > 64:
                rows.append([])
                x = 0.0
            rows[-1].append((x, shown, id))
            x = 99 if "⏎" in shown else x + len(shown) * SIGN + 0.9
        fig, ax = picture(self.describe(), width=8, height=1.05 + 0.36 * len(rows))
        ax.set(xlim=(-0.5, 66), ylim=(len(rows) - 0.4, -0.6))
        ax.set_axis_off()
        for y, row in enumerate(rows):
            for x, shown, id in row:
                ink = _COLOURS[id % len(_COLOURS)]
                box = {"boxstyle": "round,pad=0.22", "facecolor": f"{ink}33", "edgecolor": ink}
                style = {"ha": "center", "va": "center", "family": "DejaVu Sans Mono"}
                ax.text(
                    x + len(shown) * SIGN / 2, y, verbatim(shown), bbox=box, fontsize=9.5, **style
                )
        text = readable(self.text[:200].encode())
        title = [verbatim(f"“{short(text, 80)}”"), *textwrap.wrap(self.describe(), 90)]
        if len(tokens) > IN_PICTURE:
            title.append(f"(the first {IN_PICTURE} tokens)")
        ax.set_title("\n".join(title), fontsize=10)
        return fig

    def describe(self) -> str:
        """How much text there is and what it costs."""
        shown, n = self._cut(), len(self.ids())
        each = f", {len(shown) / n:.2f} characters per token" if n else ""
        size = f"{len(shown)} characters, {len(shown.encode())} bytes"
        return f"{self.used} of {len(self._merges)} merges: {size}, {n} tokens{each}"


@functools.cache
def _glyphs() -> frozenset[int]:
    """The characters that the font of the still picture has."""
    return frozenset(get_font(findfont("DejaVu Sans Mono")).get_charmap())


def readable(piece: bytes) -> str:
    """A token in visible characters: "␣the", and "‹F0›" for a byte that is not a character."""
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return _numbers(piece)
    return "".join(_SHOWN.get(c) or (c if c.isprintable() else _numbers(c.encode())) for c in text)


def _numbers(piece: bytes) -> str:
    return f"‹{piece.hex(' ').upper()}›"
