"""Which query an attention explorer opens on, and which heads it offers to show."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorers.attention_maps import Array

# A head looks somewhere if its queries give at least this share of their weight there, on average:
# several times what chance gives. It spreads wide over at least this share of what they see.
THERE, WIDE = 0.3, 0.5
# On one repeated token some head of many looks by chance: it takes so many to judge by.
FEW = 3


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


def finds(tokens: Sequence[str], maps: Array, masked: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """What some head does: {name, layer, head, query} of the head that does it most.

    Judged by the deciding queries; `query` is the one that does it most in that head. A name is
    missing where no head does it enough, and "looks at what followed last time" also where the
    text repeats too little: it is judged by the queries whose token stood earlier.
    """
    queries = np.flatnonzero(deciding(masked))
    if not len(queries):
        return []
    after = following(tokens)
    best: dict[str, tuple[float, int, int, int]] = {}
    for layer, heads in enumerate(maps):  # one by one: a copy of all could be too large
        shares = _shares(heads, queries, after, masked)
        for name, (asked, share) in shares.items():
            means = share.mean(1)
            head = int(means.argmax())
            query = int(asked[share[head].argmax()])
            enough = WIDE if name == "spreads wide" else THERE
            if means[head] >= enough and means[head] > best.get(name, (0.0,))[0]:
                best[name] = float(means[head]), layer, head, query
    chosen = [(name, *best[name][1:]) for name in shares if name in best]
    return [dict(zip(("name", "layer", "head", "query"), one, strict=True)) for one in chosen]


def following(tokens: Sequence[str]) -> NDArray[np.int_]:
    """(T,): where the token stands that followed the last earlier one like this; −1 for none.

    Also −1 if that is the token itself or the one before: a weight there has another name.
    """
    last: dict[str, int] = {}
    after = np.full(len(tokens), -1)
    for i, token in enumerate(tokens):
        if (next_one := last.get(token, i) + 1) < i - 1:
            after[i] = next_one
        last[token] = i
    return after


def _shares(
    heads: Array, queries: NDArray[np.int_], after: NDArray[np.int_], masked: NDArray[np.bool_]
) -> dict[str, tuple[NDArray[np.int_], NDArray[np.floating[Any]]]]:
    """By which Q queries a name is judged, and how far each (of each head: (H, Q)) does what it
    says, from 0 to 1."""
    rows = heads[:, queries]
    each = np.arange(len(queries))
    not_first = queries > 0  # the first token has none before it
    entropy = -(rows * np.log(np.maximum(rows, 1e-30))).sum(-1)
    shares = {
        "looks one back": rows[:, each, queries - 1] * not_first,
        "looks at itself": rows[:, each, queries],
        "looks at the first token": rows[:, :, 0] * not_first,
        # e to the entropy: over how many keys, if they all had the same weight
        "spreads wide": np.exp(entropy) / (~masked).sum(1)[queries],
    }
    judged = {name: (queries, share) for name, share in shares.items()}
    again = queries[(after[queries] >= 0) & ~masked[queries, after[queries]]]
    if len(again) >= FEW:  # what is called induction
        judged["looks at what followed last time"] = again, heads[:, again, after[again]]
    return judged
