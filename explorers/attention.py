"""Which token attends to which: the attention maps of every layer and head, to explore.

Example (`maps` and `scores` as `helpers.hooks` gives them, or one's own)::

    AttentionExplorer(["the", "cat", "sat"], maps)
"""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Self

import numpy as np
import traitlets
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

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

# Beside the axes of the still picture: how far along or across them, and how a label is aligned.
_SIDES = {
    "left": (-0.012, "right", "center_baseline"),
    "bottom": (-0.012, "center", "top"),
    "top": (1.05, "center", "baseline"),
}
# Where its parts stand: the sentence, the map (by itself, or beside all heads), all heads.
_PLACES = [(0.02, 0.7, 0.96, 0.21), (0.11, 0.17, 0.37, 0.38), (0.61, 0.07, 0.37, 0.44)]


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

    def shown(self) -> Array:
        """The weights (T, T) of the chosen head, NaN where masked."""
        return np.where(self._masked, np.float32("nan"), self._head_weights())

    def picture(self) -> plots.Picture:
        """The sentence, the map and all heads: the weights, whatever the stage."""
        layers, heads = self.shape[:2]
        where = f"layer {self.layer}, head {self.head}"
        asks = "each query" if self.query < 0 else f"query {self.query}"
        alt = f"Attention of {self.describe()}; {where}: arcs from {asks} to its keys, and the map."
        parts = [self._draw_sentence, self._draw_map, self._draw_grid][: 2 + (layers * heads > 1)]
        fig, axes = plots.picture(alt, width=9.6, height=6.6, columns=len(parts))
        # Fixed places: to have them worked out would double the time until the explorer is there.
        fig.set_layout_engine(None)
        for draw, place, ax in zip(parts, _PLACES, axes, strict=False):
            draw(ax)
            ax.set_position(place)  # after a colour bar has taken its room from it
        left, bottom, wide, high = _PLACES[1]
        fig.axes[-1].set_position((left + wide + 0.01, bottom, 0.017, high))
        axes[1].set_title(f"{where.capitalize()}: weights")
        title = plots.verbatim(short(self.title, 80))
        fig.suptitle(title, x=0.02, ha="left", fontsize=12, weight="bold")
        return fig

    def _draw_sentence(self, ax: Axes) -> None:
        """The tokens in a line, and an arc from the query (or from each) to each key."""
        T = len(self.tokens)
        names = [_short(token) for token in self.tokens]
        widths = np.array([len(name) + 1.5 for name in names])
        size = min(14, 1050 / widths.sum())  # in points, of a picture so wide
        if turned := size < 8:
            widths[:] = 1
        at = np.cumsum(widths) - widths / 2
        span = max(at[-1] - at[0], 1)
        once = np.linspace(0, np.pi, 40)
        for i in range(T) if self.query < 0 else [self.query]:
            for j, weight in enumerate(self._head_weights()[i]):
                if weight < (0.1 if self.query < 0 else 0.01):
                    continue
                half = (at[j] - at[i]) / 2
                x = at[i] + half * (1 - np.cos(once))
                y = (abs(2 * half) / span) ** 0.7 * np.sin(once)
                if i == j:
                    x = at[i] + 0.006 * span * np.sin(2 * once)
                    y = 0.07 * (1 - np.cos(2 * once))
                look = {"alpha": 0.2 + 0.8 * weight, "linewidth": 0.5 + 6 * weight}
                ax.plot(x, y, color=plots.BLUE, clip_on=False, **look)
        for i in range(0, T, -(-T // 60)):
            ink = {"color": plots.RED, "weight": "bold"} if i == self.query else {}
            ax.text(at[i], -0.05, names[i], size=8 if turned else size, rotation=90 * turned,
                    ha="center", va="top", **ink)  # fmt: skip
        ax.set(xlim=(0, widths.sum()), ylim=(0, max(0.5, ax.dataLim.y1)))
        ax.set_axis_off()

    def _draw_grid(self, ax: Axes) -> None:
        """All heads in one image, a gap between them; more layers than heads stand side by side."""
        layers, heads, T = self.shape
        each = -(-T // 24)  # of a long text a cell of the small maps is the largest of a block
        blocks = np.pad(self._maps, [(0, 0)] * 2 + [(0, -T % each)] * 2)
        size = blocks.shape[-1] // each
        strongest = blocks.reshape(layers, heads, size, each, size, each).max((3, 5))
        hidden = self._masked[::each, ::each] & (strongest == 0)
        gap = max(1, size // 12)
        shades = np.where(hidden, np.nan, np.sqrt(strongest))
        axes, here = [("layer", layers), ("head", heads)], [self.layer, self.head]
        if layers > heads:  # side by side
            shades, axes, here = shades.swapaxes(0, 1), axes[::-1], here[::-1]
        (downwards, rows), (across, columns) = axes
        step = size + gap
        wall = np.zeros((rows, step, columns, step), np.float32)
        wall[:, :size, :, :size] = shades.transpose(0, 2, 1, 3)
        plots.heatmap(wall.reshape(rows * step, columns * step), ax=ax, limits=(0, 1))
        for side, count in (("top", columns), ("left", rows)):
            named = range(0, count, 1 if count <= 16 else 5)
            _write(ax, side, np.array(named) * step + (size - 1) / 2, map(str, named))
        ax.set_title(f"All heads: {across} →, {downwards} ↓", pad=20)
        corner = here[1] * step - 0.5, here[0] * step - 0.5
        ax.add_patch(Rectangle(corner, size, size, fill=False, edgecolor=plots.RED, linewidth=2.5))
        ax.set_anchor("NW")

    def _draw_map(self, ax: Axes) -> None:
        # The square root lets small weights be told apart, as in the browser.
        plots.heatmap(np.sqrt(self.shown()), ax=ax, limits=(0, 1), colorbar="weight")
        marks = [0, 0.05, 0.25, 0.5, 1]
        bar: Any = ax.images[0].colorbar
        bar.set_ticks(np.sqrt(marks), labels=map(str, marks))
        if self.query >= 0:
            for ink, width in ((plots.PAPER, 4.5), (plots.RED, 2.5)):  # on dark and on bright
                look: dict[str, Any] = {"edgecolor": ink, "linewidth": width, "zorder": 3}
                row = Rectangle((-0.5, self.query - 0.5), self.shape[2], 1, fill=False, **look)
                ax.add_patch(row)
        at = np.arange(0, len(self.tokens), -(-len(self.tokens) // 24))  # 24 can be read at most
        labels = [_short(self.tokens[i]) for i in at]
        turned = [len(self.tokens[i]) > 1 for i in at]
        _write(ax, "bottom", at, labels, turned)
        _write(ax, "left", at, labels)
        room = 6 + 5 * max(map(len, labels))  # in points: to measure them would take too long
        ax.set_xlabel("key", labelpad=room if any(turned) else 14)
        ax.set_ylabel("query", labelpad=room)


def _write(
    ax: Axes, side: str, at: Iterable[float], labels: Iterable[str], turned: Iterable[bool] = ()
) -> None:
    """Labels beside the axes, as texts: ticks would take Matplotlib twice as long, and nothing is
    seen of an explorer until its still picture is drawn. turned: which of them are.
    """
    edge, across, along = _SIDES[side]
    upwards = side in ("left", "right")
    (ax.yaxis if upwards else ax.xaxis).set_ticks([])
    look: dict[str, Any] = {"fontsize": 8, "color": ax.xaxis.label.get_color()}
    look |= {"transform": ax.get_yaxis_transform() if upwards else ax.get_xaxis_transform()}
    for i, label, turn in zip_longest(at, labels, turned):
        x, y = (edge, i) if upwards else (i, edge)
        ax.text(x, y, label, ha=across, va=along, rotation=90 if turn else 0, **look)


def _short(token: str) -> str:
    """A token as a label that leaves room for others."""
    return plots.verbatim(short(plots.visible(token) or "∅", 10))
