"""One sentence through a whole GPT: from its tokens to the probabilities of the next one."""

import struct
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
import traitlets
from matplotlib.axes import Axes
from torch import Tensor

from explorers.base import ModelExplorer, esm, in_range, read_only
from explorers.labels import sendable, short
from explorers.packed import ids_of_merges, packed, rounded
from explorers.token import readable
from helpers import data, plots
from helpers.formats.checkpoints import load_checkpoint
from helpers.plots import BLUE, GREEN, GREY, Picture, picture, verbatim
from helpers.text import BPETokenizer

STAGES = ("tokens", "vectors", "scores", "weights", "values", "sum", "next")
LONGEST = 240  # characters of a text
MOST = 32  # tokens that are read: as many as a screen can show
EXAMPLES = (
    "The city is the capital of the United",
    "Aristotle was a Greek philosopher. Ar",
    "Apollo 11 landed on the Moon. Apollo",
)


class Activations(NamedTuple):
    """What the model computes for T tokens: L layers, H heads, C features, V tokens."""

    ids: list[int]
    residual: Tensor  # (L + 1, T, C): what enters each block, and what leaves the last
    residual_mid: Tensor  # (L, T, C): after attention
    scores: Tensor  # (L, H, T, T): q · k / √hs
    weights: Tensor  # (L, H, T, T)
    values: Tensor  # (L, H, T, hs)
    logits: Tensor  # (T, V)


class SentenceExplorer(ModelExplorer):
    """A text on its way through a GPT, computed in the browser, stage after stage.

    model, tokenizer: a `GPT` as gpt.js computes it, and the `BPETokenizer` of its tokens, or
    neither: then GPTMini, which comes with the course; text: what it reads first (its last 32
    tokens); stage: which stage is open, one of "tokens", "vectors", "scores", "weights", "values",
    "sum", "next"; layer, head: the head that is shown; position: of the token that is followed, −1
    for the last; temperature: of the next token; examples: texts to choose from.

    The browser computes with weights in 8 bits (`packed.rounded`), which it asks for once, and so
    do `activations` and the still picture. off: heads whose output is 0, as numbers
    layer · n_head + head; masked: if True, no token attends to those after it.

    Raises ValueError for a model or a tokenizer that the browser does not compute, and for settings
    out of range; TraitError when a trait is set to such. Each stage is taught in a chapter.
    """

    _esm: ClassVar[str] = esm(
        "bpe", "gpt", "sentence_state", "sentence_drawing", "sentence_stages", "sentence"
    )
    _css = ModelExplorer._css + Path(__file__).with_suffix(".css").read_text(encoding="utf-8")

    text = traitlets.Unicode().tag(sync=True)
    stage = traitlets.Enum(STAGES, "tokens").tag(sync=True)
    layer = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    position = traitlets.Int(-1).tag(sync=True)
    temperature = traitlets.Float(1.0).tag(sync=True)
    off = traitlets.List(traitlets.Int()).tag(sync=True)
    masked = traitlets.Bool(True).tag(sync=True)
    examples = traitlets.List(traitlets.Unicode()).tag(sync=True)
    shape = traitlets.List(traitlets.Int()).tag(sync=True)  # layers, heads, features, tokens
    alphabet = traitlets.Bytes().tag(sync=True)
    merges = traitlets.Bytes().tag(sync=True)
    first = traitlets.Dict().tag(sync=True)  # what can be shown before the weights are there

    def __init__(
        self,
        model: Any = None,
        tokenizer: Any = None,
        text: str = EXAMPLES[0],
        *,
        stage: str = "tokens",
        layer: int = 0,
        head: int = 0,
        position: int = -1,
        temperature: float = 1.0,
        examples: tuple[str, ...] = EXAMPLES,
    ):
        if model is None and tokenizer is None:
            saved = load_checkpoint(data.checkpoint("gptmini"))
            model, tokenizer = saved.model, saved.tokenizer
        if not isinstance(tokenizer, BPETokenizer):
            raise ValueError(
                f"tokenizer should be a BPETokenizer, not a {type(tokenizer).__name__}"
            )
        weights = packed(model, tokenizer)
        if model.block_size < MOST:
            raise ValueError(f"{MOST} tokens are shown, but the model reads {model.block_size}")
        self._model, self._tokenizer = rounded(model), tokenizer
        config = model.config
        alphabet, pairs = ids_of_merges(tokenizer)
        super().__init__(
            weights,
            shape=[config.n_layer, config.n_head, config.n_embd, config.vocab_size],
            text=text,
            stage=stage,
            layer=layer,
            head=head,
            position=position,
            temperature=float(temperature),
            examples=list(examples),
            alphabet=alphabet,
            merges=struct.pack(f"<{len(pairs)}i", *pairs),
        )
        logits = self.activations().logits[-1].numpy() if self._ids() else np.empty(0)
        self.first = {"text": self.text, "logits": logits.astype("<f4").tobytes()}

    @classmethod
    def example(cls) -> Self:
        text = EXAMPLES[0] + " States and was founded in 1850 by the king of the"
        return cls(text=text, layer=4, stage="values")

    _given = read_only("shape", "alphabet", "merges", "file", "megabytes")
    _layers = in_range("a layer", "layer", low=0, high=lambda self: self.shape[0] - 1)
    _heads = in_range("a head", "head", low=0, high=lambda self: self.shape[1] - 1)
    _warmth = in_range("a number", "temperature", low=0.1, high=3)

    @traitlets.validate("text")
    def _can_travel(self, proposal: Any) -> str:
        return sendable(proposal.value)[:LONGEST]

    @traitlets.validate("off")
    def _there(self, proposal: Any) -> list[int]:
        heads = self.shape[0] * self.shape[1]
        if any(not 0 <= n < heads for n in proposal.value):
            raise traitlets.TraitError(f"heads are numbers from 0 to {heads - 1}")
        return list(proposal.value)

    def _ids(self) -> list[int]:
        return self._tokenizer.encode(self.text)[-MOST:]

    def _position(self) -> int:
        T = len(self._ids())
        return self.position if 0 <= self.position < T else T - 1

    def tokens(self) -> list[str]:
        """The tokens that are read, as they are shown."""
        return [readable(self._tokenizer.piece(i)) for i in self._ids()]

    @torch.no_grad()
    def activations(self) -> Activations:
        """All that the model computes for the text, with the heads and the mask as they are set."""
        model, ids = self._model, self._ids()
        if not ids:
            raise ValueError("there is no text, and so there are no activations: set text")
        T, silent = len(ids), torch.tensor(self.off, dtype=torch.int64)
        x = model.token(torch.tensor([ids]))
        later = torch.ones(T, T, dtype=torch.bool).triu(1) & self.masked
        kept: dict[str, list[Tensor]] = {name: [] for name in Activations._fields[1:-1]}
        block: Any
        for layer, block in enumerate(model.blocks):
            q, k, v = block.attention.project(block.attention_norm(x))  # (1, H, T, hs)
            scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
            weights = scores.masked_fill(later, -torch.inf).softmax(-1)
            mixed = weights @ v
            mixed[:, silent[silent // self.shape[1] == layer] % self.shape[1]] = 0
            middle = x + block.attention.output(mixed.transpose(1, 2).flatten(-2))
            found = (x, middle, scores, weights, v)
            for name, tensor in zip(kept, found, strict=True):
                kept[name].append(tensor[0])
            x = middle + block.mlp(block.mlp_norm(middle))
        kept["residual"].append(x[0])
        return Activations(
            ids, **{k: torch.stack(v) for k, v in kept.items()}, logits=self._read_out(x[0])
        )

    def _read_out(self, x: Tensor) -> Tensor:
        return self._model.lm_head(self._model.norm(x))

    def probabilities(self) -> Tensor:
        """The probabilities (V,) of the next token at the temperature that is set."""
        return (self.activations().logits[-1] / self.temperature).softmax(-1)

    def describe(self) -> str:
        """The text, and the likeliest next token."""
        if not self._ids():
            return "no text"
        best = int(self.probabilities().argmax())
        said = f"{len(self._ids())} tokens, {self._settings()}, then most likely {self._name(best)}"
        return f"“{short(self.text, 60)}”: {said}"

    def _settings(self) -> str:
        changes = [f"temperature {self.temperature:.2f}"] if self.temperature != 1 else []
        changes += [f"{len(self.off)} heads off"] if self.off else []
        changes += [] if self.masked else ["no mask"]
        return f"layer {self.layer}, head {self.head}" + "".join(f", {c}" for c in changes)

    def _name(self, id: int) -> str:
        return short(readable(self._tokenizer.decode_bytes([id])), 12)

    def picture(self) -> Picture:
        """All stages side by side, for the chosen head and the chosen token."""
        alt = f"{self.describe()}. Seven stages from the tokens to the next one, for one head."
        if not self._ids():
            fig, ax = picture(alt, width=6.8, height=1.2)
            ax.set_axis_off()
            ax.text(0, 0.5, "Type some text (at least one token) to get a continuation.")
            return fig
        fig, axes = picture(alt, width=9.6, height=5.2, rows=2, columns=4)
        axes[1, 3].remove()  # the bars have the room of two
        axes[1, 2].set_subplotspec(axes[1, 2].get_gridspec()[1, 2:])
        seen, i = self.activations(), self._position()
        names = [verbatim(short(token, 9)) for token in self.tokens()]
        own = f"layer {self.layer}, head {self.head}"
        weights = seen.weights[self.layer, self.head]
        later = (weights == 0).triu(1)
        parts = weights[i][:, None] * seen.values[self.layer, self.head]
        mixed = torch.cat((parts, parts.sum(0, keepdim=True)))
        self._draw_tokens(axes[0, 0], seen.ids, names, i)
        vectors = seen.residual[0][:, :64]
        _draw_map(axes[0, 1], vectors, "2  vectors", names, f"the first 64 of {self.shape[2]}")
        _draw_map(axes[0, 2], seen.scores[self.layer, self.head], "3  scores q · k", names, own)
        shares = weights.sqrt().masked_fill(later, torch.nan)
        _draw_map(axes[0, 3], shares, "4  weights", names, own, signed=False)
        _draw_map(axes[1, 0], mixed, "5  weights × values", [*names, "sum"], own)
        self._draw_sum(axes[1, 1], seen, i)
        self._draw_next(axes[1, 2], seen.logits[-1])
        return fig

    def _draw_tokens(self, ax: Axes, ids: list[int], names: list[str], chosen: int) -> None:
        ax.set(xlim=(0, 1), ylim=(max(len(ids), 9) - 0.4, -0.6), title="1  tokens")
        ax.set_axis_off()
        size = min(9.0, 130 / len(ids))
        for y, (id, name) in enumerate(zip(ids, names, strict=True)):
            weight = "bold" if y == chosen else "normal"
            ax.text(0.02, y, name, va="center", fontsize=size, weight=weight)
            ax.text(0.95, y, str(id), va="center", ha="right", fontsize=size, color=GREY)

    def _draw_sum(self, ax: Axes, seen: Activations, i: int) -> None:
        """What each layer's two parts add to the vector of the token, as lengths."""
        attention = (seen.residual_mid[:, i] - seen.residual[:-1, i]).norm(dim=-1).numpy()
        mlp = (seen.residual[1:, i] - seen.residual_mid[:, i]).norm(dim=-1).numpy()
        y = np.arange(len(attention))
        ax.barh(y - 0.2, attention, 0.38, color=BLUE)
        ax.barh(y + 0.2, mlp, 0.38, color=GREEN)
        guesses = [self._name(int(self._read_out(x[i]).argmax())) for x in seen.residual[1:]]
        rows = [f"{n} {verbatim(guess)}" for n, guess in enumerate(guesses)]
        ax.set_yticks(y, rows, fontsize=7.5)
        ax.invert_yaxis()
        ax.tick_params(length=0, labelsize=7.5)
        ax.grid(visible=False, axis="y")
        ax.set_title("6  sum")
        ax.set_xlabel("added by attention (blue) and\nfeed-forward (green), by layer", fontsize=8)

    def _draw_next(self, ax: Axes, logits: Tensor) -> None:
        p = (logits / self.temperature).softmax(-1)
        best = p.topk(8)
        rows = [verbatim(self._name(int(i))) for i in best.indices]
        drawn = ax.barh(range(8), best.values.numpy(), 0.7, color=BLUE)
        ax.bar_label(drawn, [f"{100 * v:.1f}%" for v in best.values], padding=3, fontsize=7.5)
        ax.set_yticks(range(8), rows, fontsize=8)
        ax.invert_yaxis()
        ax.set(xlim=(0, 1.35 * float(best.values[0])), title="7  next token")
        ax.set_xticks([])
        ax.tick_params(length=0)
        ax.grid(visible=False)


def _draw_map(
    ax: Axes, values: Tensor, title: str, names: list[str], note: str, signed: bool = True
) -> None:
    """Numbers as colours, a line for each token."""
    most = float(values.abs().max())
    limits = (-most, most) if signed else (0, 1)
    plots.heatmap(values.numpy(), ax=ax, signed=signed, limits=limits)
    ax.set_aspect("auto")
    ax.set_title(title)
    ax.set_xlabel(note, fontsize=8)
    ax.set_xticks([])
    ax.set_yticks(range(len(names)), names, fontsize=min(7.5, 110 / len(names)))
    ax.tick_params(length=0)
