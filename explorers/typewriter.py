"""A GPT writes a text, letter by letter, and at every letter the text can fork."""

from pathlib import Path
from typing import Any, ClassVar, Self

import torch
import traitlets
from torch.nn.functional import cross_entropy

from explorers.base import ModelExplorer, esm, in_range, read_only
from explorers.labels import short
from explorers.packed import packed, rounded
from helpers import data
from helpers.formats.checkpoints import load_checkpoint
from helpers.plots import BLUE, RED, Picture, picture, verbatim, visible
from helpers.sampling import generate
from helpers.text import CharTokenizer

RECORDED = 200  # letters
SHOWN = 6  # candidates for a letter


class Typewriter(ModelExplorer):
    """A GPT writes a text in the browser, letter by letter.

    model, tokenizer: a `GPT` as gpt.js computes it and the `CharTokenizer` of its letters, or
    neither: then the GPT of chapter 12, which has read Shakespeare; text: what stands on the page
    at first; temperature: of the letters to come; playing: does it write by itself? at: the letter
    that is looked at, −1 for the last. seed: of what is sampled here, for the time until the
    browser has the weights.

    Raises ValueError for a model or tokenizer that the browser does not compute, and for settings
    out of range; TraitError when a trait is set to such.
    """

    _esm: ClassVar[str] = esm("gpt", "typewriter")
    _css = ModelExplorer._css + Path(__file__).with_suffix(".css").read_text(encoding="utf-8")

    text = traitlets.Unicode().tag(sync=True)
    temperature = traitlets.Float(0.8).tag(sync=True)
    playing = traitlets.Bool(True).tag(sync=True)
    at = traitlets.Int(-1).tag(sync=True)
    symbols = traitlets.Unicode().tag(sync=True)
    recorded = traitlets.Unicode().tag(sync=True)  # what the model writes after the first text

    def __init__(
        self,
        model: Any = None,
        tokenizer: Any = None,
        text: str = "",
        *,
        temperature: float = 0.8,
        seed: int = 0,
        playing: bool = True,
    ):
        if model is None and tokenizer is None:
            saved = load_checkpoint(data.checkpoint("shakespeare-gpt"))
            model, tokenizer = saved.model, saved.tokenizer
        if not isinstance(tokenizer, CharTokenizer) or "\n" not in tokenizer.symbols:
            raise ValueError("tokenizer should be a CharTokenizer that knows the end of a line")
        weights = packed(model, tokenizer)
        self._model, self._tokenizer = rounded(model), tokenizer
        super().__init__(
            weights,
            symbols="".join(tokenizer.symbols),
            text=text,
            temperature=float(temperature),
            playing=playing,
        )
        prompt = torch.tensor([self._ids(text)])
        room = min(RECORDED, model.block_size - prompt.shape[1])
        draws = torch.Generator().manual_seed(seed)
        ids = generate(self._model, prompt, room, temperature=temperature, generator=draws)
        self.recorded = tokenizer.decode(ids[0, prompt.shape[1] :].tolist())
        self.observe(lambda _: self.set_trait("recorded", ""), "text")

    @classmethod
    def example(cls) -> Self:
        return cls(text="KING HENRY:\nBut soft, what light", playing=False)

    _given = read_only("symbols", "file", "megabytes")
    _warmth = in_range("a number", "temperature", low=0.1, high=2)

    def _ids(self, text: str) -> list[int]:
        """What the model reads: the end of a line and the text, as much as its window holds."""
        return self._tokenizer.encode("\n" + text)[-self._model.block_size :]

    def _shown(self) -> str:
        return self.text + self.recorded

    @torch.no_grad()
    def candidates(self, place: int | None = None) -> list[tuple[str, float]]:
        """The likeliest letters at a place, by default the one that is looked at, and their
        probabilities."""
        text, at = self._shown(), self.at if place is None else place
        before = text[: at if 0 <= at < len(text) else max(0, len(text) - 1)]
        logits = self._model(torch.tensor([self._ids(before)]))[0, -1]
        best = (logits / self.temperature).softmax(-1).topk(min(SHOWN, len(logits)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [(self._tokenizer.decode([i]), p) for i, p in pairs]

    @torch.no_grad()
    def _surprise(self) -> int:
        """The place of the letter that the model expected least, of those in its window."""
        ids = torch.tensor(self._ids(self._shown()))
        losses = cross_entropy(self._model(ids[None, :-1])[0], ids[1:], reduction="none")
        return len(self._shown()) - len(losses) + int(losses.argmax())

    def describe(self) -> str:
        """The beginning of the text, and how the letters are drawn."""
        said = short(" / ".join(self._shown().split("\n")), 60)
        return f"“{said}”, temperature {self.temperature:.1f}"

    def picture(self) -> Picture:
        """The text, and what its last letter might have been."""
        text = self._shown()
        place = self._surprise() if self.at < 0 and len(text) > 1 else self.at
        found, shape = self.candidates(place), {"width_ratios": [3, 1]}
        fig, (page, ax) = picture(
            self.describe(), width=9.6, height=3.4, columns=2, gridspec_kw=shape
        )
        page.set_axis_off()
        lines = verbatim("\n".join(text.split("\n")[-9:]))
        page.text(0, 1, lines, va="top", family="serif", fontsize=14, linespacing=1.5)
        colors = [RED if letter == text[place : place + 1] else BLUE for letter, _ in found]
        drawn = ax.barh(range(len(found)), [p for _, p in found], color=colors)
        ax.bar_label(drawn, [f"{p:.1%}" for _, p in found], padding=3, fontsize=9)
        ax.set_yticks(range(len(found)), [verbatim(visible(letter)) for letter, _ in found])
        before = verbatim(visible(text[max(0, place - 9) : max(0, place)]))
        ax.set(xlim=(0, 1.4 * found[0][1]), title=f"after “…{before}”")
        ax.invert_yaxis()
        ax.set_xticks([])
        ax.grid(visible=False)
        return fig
