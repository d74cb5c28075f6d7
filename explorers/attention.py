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
# Where the parts of the still picture stand: the large one, the query's keys, all heads.
_LARGE = (0.48, 0.15, 0.4, 0.69)
_PLACES = {
    1: [(0.16, 0.15, 0.64, 0.69)],
    2: [_LARGE, (0.1, 0.15, 0.27, 0.69)],
    3: [_LARGE, (0.1, 0.08, 0.27, 0.33), (0.06, 0.53, 0.34, 0.3)],
}
# With many more layers than heads all of them stand beside, not above.
_BESIDE = [_LARGE, (0.31, 0.15, 0.08, 0.69), (0.05, 0.04, 0.2, 0.77)]


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
        """The weights, whatever the stage."""
        layers, heads = self.shape[:2]
        where = f"layer {self.layer}, head {self.head}"
        parts: list[Any] = [self._draw_map]
        alt = f"Attention of {self.describe()}; {where} in large"
        if self.query >= 0:
            parts.append(self._draw_query)
            alt += f", with the strongest keys of query {self.query}"
        if layers * heads > 1:
            parts.append(self._draw_grid)
        width = 9.6 if len(parts) > 1 else 5.6
        fig, axes = plots.picture(f"{alt}.", width=width, height=5, columns=len(parts))
        # Fixed places: to have them worked out would double the time until the explorer is there.
        fig.set_layout_engine(None)
        tall = len(parts) == 3 and layers > 2 * heads
        places = _BESIDE if tall else _PLACES[len(parts)]
        for draw, place, ax in zip(parts, places, np.ravel(axes), strict=True):
            draw(ax)
            ax.set_position(place)  # after a colour bar has taken its room from it
        for bar in fig.axes[len(parts) :]:
            left, bottom, wide, high = places[0]
            bar.set_position((left + wide + 0.02, bottom, 0.16 / width, high))
        fig.axes[0].set_title(f"{where.capitalize()}: weights")
        title = plots.verbatim(short(self.title, 80))
        fig.suptitle(title, x=0.02, ha="left", fontsize=12, weight="bold")
        return fig

    def _draw_grid(self, ax: Axes) -> None:
        """All heads in one image: layers downwards, heads to the right, a gap between them."""
        layers, heads, T = self.shape
        each = -(-T // 24)  # of a long text a cell of the small maps is the largest of a block
        blocks = np.pad(self._maps, [(0, 0)] * 2 + [(0, -T % each)] * 2)
        size = blocks.shape[-1] // each
        strongest = blocks.reshape(layers, heads, size, each, size, each).max((3, 5))
        hidden = self._masked[::each, ::each] & (strongest == 0)
        gap = max(1, size // 12)
        wall = np.zeros((layers, size + gap, heads, size + gap), np.float32)
        shades = np.where(hidden, np.nan, np.sqrt(strongest))
        wall[:, :size, :, :size] = shades.transpose(0, 2, 1, 3)
        step = size + gap
        plots.heatmap(wall.reshape(layers * step, heads * step), ax=ax, limits=(0, 1))
        for side, count in (("top", heads), ("left", layers)):
            named = range(0, count, 1 if count <= 16 else 5)
            _write(ax, side, np.array(named) * step + (size - 1) / 2, map(str, named))
        ax.set_title("All heads", pad=18 if layers <= 2 * heads else 26)
        ax.set_ylabel("layer", labelpad=16)
        corner = self.head * step - 0.5, self.layer * step - 0.5
        ax.add_patch(Rectangle(corner, size, size, fill=False, edgecolor=plots.RED, linewidth=2.5))
        ax.set_anchor("W")

    def _draw_map(self, ax: Axes) -> None:
        # The square root lets small weights be told apart, as in the browser.
        plots.heatmap(np.sqrt(self.shown()), ax=ax, limits=(0, 1), colorbar="weight")
        marks = [0, 0.05, 0.25, 0.5, 1]
        bar: Any = ax.images[0].colorbar
        bar.set_ticks(np.sqrt(marks), labels=map(str, marks))
        if self.query >= 0:
            for ink, width in (
                (plots.PAPER, 4.5),
                (plots.RED, 2.5),
            ):  # on dark and on bright
                row: dict[str, Any] = {
                    "fill": False,
                    "edgecolor": ink,
                    "linewidth": width,
                    "zorder": 3,
                }
                ax.add_patch(Rectangle((-0.5, self.query - 0.5), self.shape[2], 1, **row))
        at = np.arange(0, len(self.tokens), -(-len(self.tokens) // 24))  # 24 can be read at most
        labels = [_short(self.tokens[i]) for i in at]
        turned = [len(self.tokens[i]) > 1 for i in at]
        _write(ax, "bottom", at, labels, turned)
        _write(ax, "left", at, labels)
        room = 6 + 5 * max(map(len, labels))  # in points: to measure them would take too long
        ax.set_xlabel("key", labelpad=room if any(turned) else 14)
        ax.set_ylabel("query", labelpad=room)

    def _draw_query(self, ax: Axes) -> None:
        """The strongest keys of the query, as the table in the browser has them."""
        row = self.shown()[self.query]
        open_ = np.flatnonzero(~np.isnan(row))
        keys = open_[np.argsort(-row[open_], kind="stable")][:8]
        ax.barh(range(len(keys)), row[keys], 0.7, color=plots.BLUE)
        _write(ax, "left", range(len(keys)), [f"{_short(self.tokens[j])}  {j}" for j in keys])
        ax.set_ylim(7.5, -0.5)
        ax.tick_params(length=0, labelsize=8)
        layers, heads = self.shape[:2]
        gap = "\n" if layers > 2 * heads else " "  # then the map stands close to the right
        ax.set_title(f"Query {self.query} “{_short(self.tokens[self.query])}”{gap}attends to")


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
