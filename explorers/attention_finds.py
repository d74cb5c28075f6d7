"""Which query an attention explorer opens on, and which heads it offers to show."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorers.attention_maps import Array

# A head looks somewhere if its queries give at least this share of their weight there, on average:
# several times what chance gives. It spreads wide over at least this share of what they see.
THERE, WIDE = 0.3, 0.5


def deciding(masked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The queries (T,) with a real choice: of at least 2 keys, and half as many as any other has.

    The first queries of a causal map see few keys: their weights are large, and say little.
    """
    sees = (~masked).sum(1)
    return np.asarray(sees >= max(2, sees.max() / 2))


def opening_query(weights: Array, masked: NDArray[np.bool_]) -> int:
    """The deciding query with the largest weight on a token other than itself.

    weights: (T, T), of the head that is shown. Of equals, and where no query decides, the first.
    """
    away = np.where(deciding(masked)[:, None], weights, -1)
    np.fill_diagonal(away, -1)
    return int(away.max(1).argmax())


def finds(maps: Array, masked: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """What some head does: {name, layer, head, query} of the head that does it most.

    Judged by the deciding queries; `query` is the one that does it most in that head. A name is
    missing where no head does it enough.
    """
    queries = np.flatnonzero(deciding(masked))
    if not len(queries):
        return []
    best: dict[str, tuple[float, int, int, int]] = {}
    for layer, heads in enumerate(maps):  # one by one: a copy of all could be too large
        shares = _shares(heads[:, queries], queries, masked)
        for name, share in shares.items():
            means = share.mean(1)
            head = int(means.argmax())
            query = int(queries[share[head].argmax()])
            enough = WIDE if name == "spreads wide" else THERE
            if means[head] >= enough and means[head] > best.get(name, (0.0,))[0]:
                best[name] = float(means[head]), layer, head, query
    chosen = [(name, *best[name][1:]) for name in shares if name in best]
    return [dict(zip(("name", "layer", "head", "query"), one, strict=True)) for one in chosen]


def _shares(
    rows: Array, queries: NDArray[np.int_], masked: NDArray[np.bool_]
) -> dict[str, NDArray[np.floating[Any]]]:
    """How far each query (of each head: (H, Q)) does what the name says, from 0 to 1."""
    each = np.arange(len(queries))
    not_first = queries > 0  # the first token has none before it
    entropy = -(rows * np.log(np.maximum(rows, 1e-30))).sum(-1)
    return {
        "looks one back": rows[:, each, queries - 1] * not_first,
        "looks at itself": rows[:, each, queries],
        "looks at the first token": rows[:, :, 0] * not_first,
        # e to the entropy: over how many keys, if they all had the same weight
        "spreads wide": np.exp(entropy) / (~masked).sum(1)[queries],
    }
