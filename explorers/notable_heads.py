"""Which query an attention explorer opens on, and which heads it offers to show."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorers.attention_maps import Array

# A head attends somewhere if its queries give at least this fraction of their weight there, on
# average: several times what chance gives; to many tokens, if they attend to at least this
# fraction of the keys that they can see.
THRESHOLD, SPREAD_THRESHOLD = 0.3, 0.5
# On one repeated token some head of many does so by chance: it takes so many to judge by.
MIN_REPEATS = 3


def informative_queries(masked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The queries (T,) to judge a head by: they see at least 2 keys, and half as many as any.

    masked: (T, T), True where no query may attend. The first queries of a causal map see few keys:
    their weights are large, and say little.
    """
    sees = (~masked).sum(1)
    return np.asarray(sees >= max(2, sees.max() / 2))


def opening_query(weights: Array, masked: NDArray[np.bool_]) -> int:
    """The informative query with the largest weight on a token other than itself.

    weights: (T, T), of the head that is shown; masked: (T, T). Of equals, and where no query is
    informative, the first.
    """
    away = np.where(informative_queries(masked)[:, None], weights, -1)
    np.fill_diagonal(away, -1)
    return int(away.max(1).argmax())


def notable_heads(
    tokens: Sequence[str], maps: Array, masked: NDArray[np.bool_]
) -> list[dict[str, Any]]:
    """For each known pattern, the head that shows it most: {name, layer, head, query}.

    tokens: T strings; maps: weights (L, H, T, T); masked: (T, T). name: "previous token", "same
    token", "first token", "many tokens" or "induction"; query: the one that shows it most in that
    head. Heads are judged by their informative queries. A pattern is missing where no head reaches
    its threshold; "induction", judged by the queries whose token stood earlier, also where fewer
    than 3 tokens are repeated.
    """
    queries = np.flatnonzero(informative_queries(masked))
    if not len(queries):
        return []
    after = induction_targets(tokens)
    best: dict[str, tuple[float, int, int, int]] = {}
    for layer, heads in enumerate(maps):  # one by one: a copy of all could be too large
        shares = _strengths(heads, queries, after, masked)
        for name, (asked, share) in shares.items():
            means = share.mean(1)
            head = int(means.argmax())
            query = int(asked[share[head].argmax()])
            enough = SPREAD_THRESHOLD if name == "many tokens" else THRESHOLD
            if means[head] >= enough and means[head] > best.get(name, (0.0,))[0]:
                best[name] = float(means[head]), layer, head, query
    chosen = [(name, *best[name][1:]) for name in shares if name in best]
    return [dict(zip(("name", "layer", "head", "query"), one, strict=True)) for one in chosen]


def induction_targets(tokens: Sequence[str]) -> NDArray[np.int_]:
    """The key (T,) to which an induction head attends from each query; −1 for none.

    It is the token that followed the last earlier one like the query; −1, too, if that is the query
    itself or the token before it: a weight there has another name.
    """
    last: dict[str, int] = {}
    after = np.full(len(tokens), -1)
    for i, token in enumerate(tokens):
        if (next_one := last.get(token, i) + 1) < i - 1:
            after[i] = next_one
        last[token] = i
    return after


def _strengths(
    heads: Array, queries: NDArray[np.int_], after: NDArray[np.int_], masked: NDArray[np.bool_]
) -> dict[str, tuple[NDArray[np.int_], NDArray[np.floating[Any]]]]:
    """For each pattern the Q queries it is judged by, and (H, Q), 0 to 1: how far each shows it."""
    rows = heads[:, queries]
    each = np.arange(len(queries))
    not_first = queries > 0  # the first token has none before it
    entropy = -(rows * np.log(np.maximum(rows, 1e-30))).sum(-1)
    shares = {
        "previous token": rows[:, each, queries - 1] * not_first,
        "same token": rows[:, each, queries],
        "first token": rows[:, :, 0] * not_first,
        # e to the entropy: over how many keys, if they all had the same weight
        "many tokens": np.exp(entropy) / (~masked).sum(1)[queries],
    }
    judged = {name: (queries, share) for name, share in shares.items()}
    again = queries[(after[queries] >= 0) & ~masked[queries, after[queries]]]
    if len(again) >= MIN_REPEATS:
        judged["induction"] = again, heads[:, again, after[again]]
    return judged
