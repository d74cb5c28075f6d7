"""The next-token probabilities of a model, and how temperature, top-k and top-p change them."""

import textwrap
import unicodedata
from typing import Any, ClassVar, Self

import torch
import traitlets
from matplotlib.ticker import MaxNLocator
from torch import nn

from explorers.base import Explorer, esm, in_range, read_only
from explorers.labels import sendable, short
from explorers.packed import file_of
from helpers import data
from helpers.formats.checkpoints import load_checkpoint
from helpers.plots import BLUE, GREY, Picture, picture, verbatim, visible
from helpers.sampling import next_token_probabilities
from helpers.training import evaluating

SHOWN = 20  # tokens with a bar of their own
LONGEST = 4000  # characters of prompt
MOST_K = 101  # the end of the slider for top-k, which means "off"


class SamplingExplorer(Explorer):
    """The next-token distribution of a prompt, with sliders for temperature, top-k and top-p.

    model: ids (B, T) → logits (B, T, V), for example a `GPT`; tokenizer: with encode and decode;
    prompt: the text to continue; temperature, top_k, top_p: where the sliders are at first, as in
    `next_token_probabilities` (a top_k of the whole vocabulary or more is off, as None is);
    seed: of the button "Sample next token".

    The model stays in the kernel and is asked once for each prompt; the sliders work in the
    browser. Raises ValueError for settings out of range, and TraitError where a trait is set to
    such. A prompt that cannot be read is no error: the explorer says why.
    """

    _esm: ClassVar[str] = esm("sampling")

    prompt = traitlets.Unicode().tag(sync=True)
    temperature = traitlets.Float(1.0).tag(sync=True)
    top_k = traitlets.Int().tag(sync=True)
    top_p = traitlets.Float(1.0).tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)
    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    most_k = traitlets.Int().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)
    file = traitlets.Unicode().tag(sync=True)  # of the weights, for pages that have no kernel

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        *,
        prompt: str,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        seed: int = 0,
    ):
        tokens = [sendable(tokenizer.decode([i])) for i in range(tokenizer.vocab_size)]
        most_k = min(len(tokens), MOST_K)
        self._model: Any = model
        self._tokenizer = tokenizer
        self._latest: dict[str, Any] = {}
        self._read: list[int] = []  # the tokens in the cache
        self._cache: Any = None
        super().__init__(
            prompt=prompt,
            temperature=float(temperature),
            top_k=most_k if top_k is None else top_k,
            top_p=float(top_p),
            seed=seed,
            tokens=tokens,
            most_k=most_k,
            file=file_of(model, tokenizer),
        )
        self._ask()
        self.observe(self._ask, "prompt")

    @classmethod
    def example(cls) -> Self:
        saved = load_checkpoint(data.checkpoint("shakespeare-gpt"))
        return cls(saved.model, saved.tokenizer, prompt="To be, or not to ", top_p=0.9)

    _warmth = in_range("a number", "temperature", low=0, high=3)

    @traitlets.validate("top_k", "top_p")
    def _in_range(self, proposal: Any) -> Any:
        name, value = proposal.trait.name, proposal.value
        if name == "top_k" and value >= len(self.tokens):
            return self.most_k
        if name == "top_k" and not 1 <= value <= self.most_k:
            raise traitlets.TraitError(
                f"top_k should be between 1 and {self.most_k} (off), not {value}"
            )
        if name == "top_p" and not 0 < value <= 1:
            raise traitlets.TraitError(f"top_p is a probability above 0, up to 1, not {value}")
        return value

    @traitlets.validate("prompt")
    def _can_travel(self, proposal: Any) -> str:
        return sendable(proposal.value)

    _given = read_only("tokens", "most_k", "file")

    @traitlets.validate("answer")
    def _is_ours(self, proposal: Any) -> dict[str, Any]:
        if proposal.value is not self._latest:
            raise traitlets.TraitError("answer cannot be set: set prompt")
        return dict(self._latest)

    def _ask(self, _: Any = None) -> None:
        self._latest = self._answer(self.prompt)
        self.answer = self._latest

    def _answer(self, prompt: str) -> dict[str, Any]:
        """What the browser draws: the logits (float32 bytes) and a note, or what is wrong."""
        answer = {"prompt": prompt, "logits": b"", "error": "", "note": ""}
        if not prompt:
            return answer | {"error": "Type a prompt (at least one token) to get a continuation."}
        if len(prompt) > LONGEST:
            return answer | {"error": f"The prompt is longer than {LONGEST} characters."}
        try:
            ids = self._tokenizer.encode(prompt)
            if not ids:
                return answer | {"error": "The tokenizer makes no token of this prompt."}
            window = getattr(self._model, "block_size", None) or len(ids)
            logits = self._logits(ids[-window:])
        except Exception as error:  # whatever it is, the reader of the page should see it
            self._read, self._cache = [], None
            return answer | {"error": short(sendable(f"{type(error).__name__}: {error}"), 1000)}
        if len(logits) != len(self.tokens):
            few = f"{len(logits)} logits, but the tokenizer has {len(self.tokens)} tokens."
            return answer | {"error": f"The model gives {few}"}
        if not torch.isfinite(logits).all():
            return answer | {"error": "The model's logits hold NaN or infinity."}
        if len(ids) > window:
            answer["note"] = f"window full: the model reads the last {window} tokens"
        return answer | {"logits": logits.numpy().tobytes()}

    @torch.no_grad()
    def _logits(self, ids: list[int]) -> torch.Tensor:
        """The logits after the last id, (V,); what was read the last time is not read again."""
        with evaluating(self._model):
            if not hasattr(self._model, "empty_cache"):
                return self._model(torch.tensor([ids]))[0, -1].float()
            same = 0
            while same < min(len(self._read), len(ids) - 1) and self._read[same] == ids[same]:
                same += 1
            if same and same < len(self._cache[0]) and self._cache[0].conv_state is not None:
                same = 0  # a convolution's inputs before its last ones are gone
            if same == 0:
                self._cache = self._model.empty_cache()
            for layer in self._cache if same else ():
                layer.crop(same)
            logits = self._model(torch.tensor([ids[same:]]), self._cache)[0, -1].float()
            self._read = list(ids)
            return logits

    def probabilities(self) -> torch.Tensor:
        """The probabilities (V,) that the next token is drawn from, at the present settings.

        Raises ValueError, with what the explorer says, for a prompt that cannot be read.
        """
        if self._latest["error"]:
            raise ValueError(self._latest["error"])
        return next_token_probabilities(
            torch.frombuffer(bytearray(self._latest["logits"]), dtype=torch.float32),
            temperature=self.temperature,
            top_k=None if self.top_k >= self.most_k else self.top_k,
            top_p=self.top_p,
        )

    def picture(self) -> Picture:
        """The prompt and the likeliest next tokens as bars; what is cut is hatched."""
        n_rows = min(SHOWN + 1, len(self.tokens))
        if self._latest["error"]:
            fig, ax = picture(self.describe(), width=6.8, height=1.2)
            ax.set_axis_off()
            said = textwrap.wrap(short(self._latest["error"], 240), 84)
            ax.text(0, 0.5, verbatim("\n".join(said)), va="center", transform=ax.transAxes)
            ax.set_title(verbatim(self._prompt(48)))
            return fig
        fig, ax = picture(self.describe(), width=6.8, height=1.4 + 0.17 * n_rows)
        logits = torch.frombuffer(bytearray(self._latest["logits"]), dtype=torch.float32)
        hot = next_token_probabilities(logits, temperature=self.temperature)
        final = self.probabilities()
        order = logits.argsort(descending=True, stable=True)[:SHOWN].tolist()
        rows = [(_name(self.tokens[i]), float(final[i]), float(hot[i])) for i in order]
        if len(self.tokens) > SHOWN:
            rest = 1 - sum(row[1] for row in rows)
            others = f"{len(self.tokens) - SHOWN} others"
            rest = rest if rest > 1e-6 else 0.0  # what rounding leaves is nothing
            rows.append((others, rest, float(1 - hot[order].sum())))
        ax.barh(range(len(rows)), [kept for _, kept, _ in rows], color=BLUE)
        cut = [before if kept == 0 else 0 for _, kept, before in rows]
        ax.barh(range(len(rows)), cut, color="white", edgecolor=GREY, hatch="////")
        longest = max(max(kept, before if kept == 0 else 0) for _, kept, before in rows)
        for y, (_, kept, before) in enumerate(rows):
            share = f"{kept:.1%}" if kept or not before else f"removed ({before:.1%})"
            place = (kept or before, y)
            ax.annotate(share, place, (5, 0), textcoords="offset points", va="center", fontsize=8)
        ax.set_yticks(range(len(rows)), [verbatim(name) for name, _, _ in rows])
        ax.tick_params(axis="y", labelsize=8, length=0)
        ax.grid(visible=False, axis="y")
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
        ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
        n = int((final > 0).sum())
        ax.set(xlim=(0, 1.2 * longest), xlabel=f"probability · {n} of {len(final)} tokens kept")
        ax.set_title(verbatim(f"{self._prompt(48)}\n") + self._settings(), fontsize=10)
        return fig

    def _prompt(self, longest: int) -> str:
        """The end of the prompt, as a picture's first line."""
        shown = _signs(self.prompt[-longest:])
        cut = len(shown) > longest or len(self.prompt) > longest
        return f"after “{'…' if cut else ''}{shown[-longest:]}”"

    def _settings(self) -> str:
        top_k = "off" if self.top_k >= self.most_k else self.top_k
        top_p = "off" if self.top_p == 1 else f"{self.top_p:.2f}"
        return f"temperature {self.temperature:.2f}, top-k {top_k}, top-p {top_p}"

    def describe(self) -> str:
        """The settings and the end of the prompt, or what is wrong with it."""
        if self._latest["error"]:
            return str(self._latest["error"])
        return f"after “…{_signs(self.prompt[-24:])}”: {self._settings()}"


def _signs(text: str) -> str:
    """The text in signs that can be seen, as the browser shows it: "␣the", "‹200B›"."""
    unseen = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return "".join(
        f"‹{ord(c):02X}›" if unicodedata.category(c) in unseen else c for c in visible(text)
    )


def _name(token: str) -> str:
    return short(_signs(token[:40]), 16) or "(empty)"
