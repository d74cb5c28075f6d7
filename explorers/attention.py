"""Which token attends to which: the attention maps of every layer and head, to explore.

Example (`maps` and `scores` as `helpers.hooks` gives them, or one's own)::

    AttentionExplorer(["the", "cat", "sat"], maps)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import traitlets

from explorers.attention_maps import (
    Array,
    checked_maps,
    checked_mask,
    checked_scores,
    checked_tokens,
    mask_of,
    packed,
)
from explorers.base import Explorer, esm, in_range, read_only
from explorers.labels import sendable, short
from explorers.notable_heads import notable_heads, opening_query
from helpers import plots

_GIVEN = ("title", "tokens", "shape", "weight_steps", "raw_scores", "masked", "notable_heads")


class AttentionExplorer(Explorer):
    """A sentence, with arcs from one token to those it attends to; the map; all layers × heads.

    tokens: T strings; maps: weights (L, H, T, T) or (H, T, T), tensor or array, where row i is how
    query i spreads over the keys; scores: the scaled scores before mask and softmax, same shape:
    with them the stages scores → mask → softmax can be stepped through; mask: bool (T, T), True
    where a query may attend (seen in the maps if it is not given).

    Everything can be read and set from Python: layer, head, query (-1: all rows), locked, stage
    ("scores", "mask" or "softmax"). It opens locked on one query: see `opening_query`. Attention
    says where a head reads, not why the model answers.
    """

    _esm = esm("attention_views", "attention")
    _css = Explorer._css + Path(__file__).with_suffix(".css").read_text(encoding="utf-8")

    title = traitlets.Unicode().tag(sync=True)
    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    shape = traitlets.List(traitlets.Int()).tag(sync=True)  # [L, H, T]
    weight_steps = traitlets.Bytes().tag(sync=True)  # uint16, see attention_maps.packed
    raw_scores = traitlets.Bytes().tag(sync=True)  # float32, or nothing
    masked = traitlets.Bytes().tag(sync=True)  # uint8 (T, T): 1 where no head may look
    notable_heads = traitlets.List(traitlets.Dict()).tag(sync=True)  # as that function gives them
    layer = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    query = traitlets.Int().tag(sync=True)
    locked = traitlets.Bool().tag(sync=True)
    stage = traitlets.Enum(["scores", "mask", "softmax"], "softmax").tag(sync=True)

    def __init__(
        self,
        tokens: Sequence[str],
        maps: Any,
        scores: Any = None,
        title: str = "Which token attends to which",
        *,
        mask: Any = None,
        **settings: Any,
    ):
        names = checked_tokens(tokens)
        self._maps = checked_maps(maps, len(names))
        raw = None if scores is None else checked_scores(scores, self._maps)
        self._masked = mask_of(self._maps, raw) if mask is None else checked_mask(mask, self._maps)
        self._query_is_ours = "query" not in settings
        super().__init__(
            title=sendable(str(title)),
            tokens=names,
            shape=list(self._maps.shape[:3]),
            weight_steps=packed(self._maps),
            raw_scores=b"" if raw is None else raw.astype("<f4").tobytes(),
            masked=self._masked.astype(np.uint8).tobytes(),
            notable_heads=notable_heads(names, self._maps, self._masked),
            **settings,
        )

    @classmethod
    def example(cls) -> Self:
        scores = np.random.default_rng(0).normal(size=(2, 4, 24, 24))
        causal = np.tri(24, dtype=bool)
        maps = np.exp(scores) * causal
        maps /= maps.sum(-1, keepdims=True)
        return cls([f"token{i}" for i in range(24)], maps, scores, mask=causal)

    @traitlets.default("query")
    def _interesting(self) -> int:
        return opening_query(self._head_weights(), self._masked)

    @traitlets.default("locked")
    def _on_our_query(self) -> bool:
        return self._query_is_ours

    _given = read_only(*_GIVEN)

    _layers = in_range("a layer", "layer", low=0, high=lambda self: self.shape[0] - 1)
    _heads = in_range("a head", "head", low=0, high=lambda self: self.shape[1] - 1)
    _queries = in_range("a query", "query", low=-1, high=lambda self: self.shape[2] - 1)

    @traitlets.validate("stage")
    def _has_scores(self, proposal: Any) -> str:
        if proposal.value != "softmax" and self.shape and not self.raw_scores:
            raise traitlets.TraitError(
                f"stage {proposal.value!r} needs scores: AttentionExplorer(tokens, maps, scores)"
            )
        return str(proposal.value)

    def describe(self) -> str:
        layers, heads, T = self.shape
        return f"layers={layers}, heads={heads}, tokens={T}"

    def _head_weights(self) -> Array:
        """The weights (T, T) of the chosen head."""
        return np.asarray(self._maps[self.layer, self.head])

    def picture(self) -> plots.Picture:
        """The sentence, with arcs from the query to its keys, whatever the stage."""
        labels = [plots.verbatim(short(plots.visible(token) or "∅", 10)) for token in self.tokens]
        widths = np.array([len(label) + 1.5 for label in labels])
        if turned := bool(widths.sum() > 130):
            widths = np.full(len(labels), 2.0)
        at, end = np.cumsum(widths) - widths / 2, widths.sum()
        where = f"Layer {self.layer}, head {self.head}"
        row = self._head_weights()
        queries = range(len(row)) if self.query < 0 else [self.query]
        reach = max([abs(at[i] - at[j]) for i in queries for j in np.flatnonzero(row[i] >= 0.01)])
        said = "" if self.query < 0 else f", from query {self.query} “{labels[self.query]}”"
        alt = f"Attention of {self.describe()}; {where}: arcs{said} to its keys."
        fig, ax = plots.picture(alt, width=9.6, height=3.2)
        fig.set_layout_engine(None)  # to have the places worked out would double the time
        ax.set_position((0.02, 0.04, 0.96, 0.74))
        ax.set(xlim=(0, max(end, 40)), ylim=(-1.2 if turned else -0.7, 1.1))
        ax.set_axis_off()
        half = np.linspace(0, np.pi, 40)
        for i in queries:
            for j in np.flatnonzero(row[i] >= 0.01):
                middle, radius = (at[i] + at[j]) / 2, max(0.4, abs(at[i] - at[j]) / 2)
                rise = max(
                    0.1, 2 * radius / max(1, reach)
                )  # the widest is as high as there is room
                width, alpha = 0.5 + 7 * row[i, j], 1 if self.query >= 0 else 0.35
                x, y = middle + radius * np.cos(half), min(1, rise) * np.sin(half)
                ax.plot(x, y, color=plots.BLUE, linewidth=width, alpha=alpha)
        size = float(np.clip(9.6 * 72 / end / (0.7 if turned else 0.62), 4, 13))
        for i, label in enumerate(labels):
            one = {"color": plots.RED, "weight": "bold"} if i == self.query else {}
            style: dict[str, Any] = {"fontsize": size, "rotation": 90 if turned else 0} | one
            ax.text(at[i], -0.05, label, ha="center", va="top", **style)
        fig.suptitle(plots.verbatim(short(self.title, 80)), x=0.02, ha="left", weight="bold")
        fig.text(0.02, 0.85, f"{where}: weights{plots.verbatim(said)}", va="center")
        return fig
