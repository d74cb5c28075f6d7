"""What a model offers as the next token, and what temperature, top-k and top-p make of it."""

from typing import Any, ClassVar

import torch
import traitlets
from torch import nn

from explorers.base import Explorer, esm
from helpers.plots import BLUE, GREY, Picture, picture, verbatim, visible
from helpers.sampling import next_token_probabilities

SHOWN = 20  # tokens with a bar of their own
LONGEST = 4000  # characters of prompt
MOST_K = 101  # the end of the slider for top-k, which means "off"


class SamplingExplorer(Explorer):
    """The next-token distribution of a prompt, with sliders for temperature, top-k and top-p.

    model: ids (B, T) → logits (B, T, V), for example a `GPT`; tokenizer: with encode and decode;
    prompt: what the model reads first; temperature, top_k, top_p: as in `next_token_probabilities`,
    where the sliders stand at first; seed: of the draws of the button "Sample once".

    The model stays in the kernel and is asked once for each prompt; the sliders work in the
    browser. Raises ValueError for settings out of range. A prompt that cannot be read is no error:
    the explorer says why.
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
        if not 0 <= temperature <= 3:
            raise ValueError(f"temperature should be between 0 and 3, not {temperature}")
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p is a probability above 0, up to 1, not {top_p}")
        tokens = [tokenizer.decode([i]) for i in range(tokenizer.vocab_size)]
        most_k = min(len(tokens), MOST_K)
        if top_k is not None and not 1 <= top_k <= most_k:
            raise ValueError(f"top_k should be between 1 and {most_k}, or None, not {top_k}")
        self._model: Any = model
        self._tokenizer = tokenizer
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
        )
        self._ask()
        self.observe(self._ask, "prompt")

    def _ask(self, _: Any = None) -> None:
        self.answer = self._answer(self.prompt)

    def _answer(self, prompt: str) -> dict[str, Any]:
        """What the browser draws: the logits (float32 bytes) and a note, or what is wrong."""
        answer = {"prompt": prompt, "logits": b"", "error": "", "note": ""}
        if not prompt:
            return answer | {"error": "Type a prompt: the model continues at least one token."}
        if len(prompt) > LONGEST:
            return answer | {"error": f"The prompt is longer than {LONGEST} characters."}
        try:
            ids = self._tokenizer.encode(prompt)
            window = getattr(self._model, "block_size", None) or len(ids)
            logits = self._logits(ids[-window:])
        except Exception as error:  # whatever it is, the reader of the page should see it
            self._read, self._cache = [], None
            return answer | {"error": f"{type(error).__name__}: {error}"}
        if not torch.isfinite(logits).all():
            return answer | {"error": "The model's logits hold NaN or infinity."}
        if len(ids) > window:
            answer["note"] = f"The window is full: the model reads the last {window} tokens only."
        return answer | {"logits": logits.numpy().tobytes()}

    @torch.no_grad()
    def _logits(self, ids: list[int]) -> torch.Tensor:
        """The logits after the last id, (V,); what was read the last time is not read again."""
        was_training = self._model.training
        self._model.eval()
        try:
            if not hasattr(self._model, "empty_cache"):
                return self._model(torch.tensor([ids]))[0, -1].float()
            same = 0
            while same < min(len(self._read), len(ids) - 1) and self._read[same] == ids[same]:
                same += 1
            if same == 0:
                self._cache = self._model.empty_cache()
            for layer in self._cache if same else ():
                layer.crop(same)
            logits = self._model(torch.tensor([ids[same:]]), self._cache)[0, -1].float()
            self._read = list(ids)
            return logits
        finally:
            self._model.train(was_training)

    def probabilities(self) -> torch.Tensor:
        """The probabilities (V,) that the next token is drawn from, at the present settings."""
        return next_token_probabilities(
            torch.frombuffer(bytearray(self.answer["logits"]), dtype=torch.float32),
            temperature=self.temperature,
            top_k=None if self.top_k >= self.most_k else self.top_k,
            top_p=self.top_p,
        )

    def picture(self) -> Picture:
        """The likeliest tokens as bars; what is cut is hatched."""
        fig, ax = picture(self.describe(), width=6.8, height=4.6)
        if self.answer["error"]:
            ax.set_axis_off()
            ax.text(0, 0.5, verbatim(self.answer["error"]), va="center", wrap=True)
            return fig
        logits = torch.frombuffer(bytearray(self.answer["logits"]), dtype=torch.float32)
        hot = next_token_probabilities(logits, temperature=self.temperature)
        final = self.probabilities()
        order = logits.argsort(descending=True, stable=True)[:SHOWN].tolist()
        rows = [(visible(self.tokens[i]), float(final[i]), float(hot[i])) for i in order]
        if len(self.tokens) > SHOWN:
            rest = 1 - sum(row[1] for row in rows)
            rows.append(("all others", max(0.0, rest), float(1 - hot[order].sum())))
        ax.barh(range(len(rows)), [kept for _, kept, _ in rows], color=BLUE)
        cut = [before if kept == 0 else 0 for _, kept, before in rows]
        ax.barh(range(len(rows)), cut, color="white", edgecolor=GREY, hatch="////")
        for y, (_, kept, before) in enumerate(rows):
            said = f"{kept:.1%}" if kept or not before else f"cut ({before:.1%})"
            ax.text((kept or before) + 0.01, y, said, va="center", fontsize=8)
        ax.set_yticks(range(len(rows)), [verbatim(name) for name, _, _ in rows])
        ax.tick_params(axis="y", labelsize=8)
        ax.invert_yaxis()
        n = int((final > 0).sum())
        ax.set(xlim=(0, 1.08), xlabel=f"probability · {n} of {len(final)} tokens kept")
        ax.set(title=self._settings())
        return fig

    def _settings(self) -> str:
        top_k = "off" if self.top_k >= self.most_k else self.top_k
        top_p = "off" if self.top_p == 1 else f"{self.top_p:.2f}"
        return f"temperature {self.temperature:.2f}, top-k {top_k}, top-p {top_p}"

    def describe(self) -> str:
        """The settings and the end of the prompt, or what is wrong with it."""
        if self.answer["error"]:
            return str(self.answer["error"])
        return f"after “…{visible(self.prompt[-24:])}”: {self._settings()}"
