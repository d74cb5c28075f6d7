"""The exercises of chapter 02 that cut a stream of tokens into examples and batches."""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from exercises.check import NotYet, call, checked, expect, expect_shape, tensor


@checked
def examples(answer: Any) -> str:
    """examples(chunk): the list of (context, target) that a chunk of T + 1 ids holds."""
    for chunk in ([7, 3, 9, 4, 1], [5, 8], [2, 6, 0, 6, 2, 9, 8]):
        got = _pairs(call(answer, chunk), chunk)
        size = len(chunk) - 1
        right = [(chunk[: t + 1], chunk[t + 1]) for t in range(size)]
        if got == right:
            continue
        mistakes = {
            "Your target is the last token of its own context: nothing is left to predict. "
            "The target is the token after the context.": [
                (chunk[: t + 1], chunk[t]) for t in range(size)
            ],
            "Each of your contexts is a single token. A context is everything in the chunk "
            "before the target.": [(chunk[t : t + 1], chunk[t + 1]) for t in range(size)],
            "Your first context is empty. A chunk of T + 1 tokens gives T examples, and the "
            "shortest context is one token.": [(chunk[:t], chunk[t]) for t in range(size + 1)],
            "The target of the last example is missing: a chunk of T + 1 tokens holds T examples, "
            "you have one fewer.": right[:-1],
        }
        for diagnosis, wrong in mistakes.items():
            expect(got != wrong, diagnosis)
        expect(
            len(got) == size,
            f"a chunk of {size + 1} tokens holds {size} examples, but you gave {len(got)}.",
        )
        t = next(t for t in range(size) if got[t] != right[t])
        raise NotYet(f"for the chunk {chunk}, example {t} should be {right[t]}, but is {got[t]}.")
    return "T examples from T + 1 tokens, the context one longer each time."


def _pairs(got: Any, chunk: list[int]) -> list[tuple[list[int], int]]:
    """The answer as plain pairs, whether it holds lists, tuples or tensors."""
    try:
        return [
            (tensor(context, "a context").long().tolist(), int(target)) for context, target in got
        ]
    except (TypeError, ValueError):
        raise NotYet(
            f"examples({chunk}) should be a list of pairs (context, target), but is {got!r:.60}"
        ) from None


@checked
def get_batch(answer: Any) -> str:
    """get_batch(data, block_size, batch_size): random chunks x and y, both (B, T)."""
    # All tokens differ, so that a token tells its place; long, so that no row meets the end.
    long = torch.randperm(5000, generator=torch.Generator().manual_seed(1)) + 10_000
    places = _batch_places(answer, long, 3, 8)
    expect(
        len(set(places)) > 1,
        "all rows are the same chunk: draw one start for each row, not one for the batch.",
    )
    expect(
        _batch_places(answer, long, 3, 8) != places,
        "two calls gave the same batch: do not seed inside the function.",
    )
    _batch_places(answer, long, 1, 5)
    places = _batch_places(answer, long, 3, 64)
    steps = {second - first for first, second in pairwise(places)}
    expect(len(steps) > 1, "your rows follow one another: draw a start of its own for each row.")
    expect(
        min(places) < 2000 and max(places) > 3000,
        f"in a stream of 5000 tokens 64 rows started between {min(places)} and {max(places)} only. "
        "Draw the starts from the whole stream.",
    )
    short = long[:6]  # with block_size 4 only two starts, 0 and 1, leave a target for each input
    edge = "The last possible start is len(data) − block_size − 1: it leaves one target too."
    seen: set[int] = set()
    for _ in range(8):
        try:
            seen |= set(_batch_places(answer, short, 4, 8))
        except NotYet as error:
            raise NotYet(f"at the end of the stream: {error} {edge}") from None
    expect(
        seen == {0, 1},
        f"a stream of 6 tokens with block_size 4 has the starts 0 and 1, but 64 rows started at "
        f"{sorted(seen)} only. {edge}",
    )
    return "y is x one step later, every row has its own start, and the last token is used."


def _batch_places(answer: Any, data: Tensor, size: int, rows: int) -> list[int]:
    """Check one batch; returns where its rows start."""
    got = call(answer, data, size, rows)
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        raise NotYet(f"get_batch should return two tensors, x and y, but gave {type(got).__name__}")
    for part, name in zip(got, "xy", strict=True):
        expect(
            isinstance(part, Tensor) and not part.is_floating_point(),
            f"{name} should be a tensor of whole numbers, as data is: ids are looked up.",
        )
    x, y = (tensor(part, name).long() for part, name in zip(got, "xy", strict=True))
    expect(
        x.shape != (rows, size + 1),
        "x has block_size + 1 columns: that is the whole chunk. x is all of it but the last "
        "token, y all but the first.",
    )
    expect_shape(x, (rows, size), "x")
    expect_shape(y, (rows, size), "y")
    expect(
        not torch.equal(x, y),
        "y equals x: the model would learn to repeat its input. y is one step later in the stream.",
    )
    at = {int(token): place for place, token in enumerate(data)}
    known = all(int(token) in at for token in torch.cat([x, y]).flatten())
    expect(known, "the batch holds numbers that are not in data: take tokens, not their places.")
    x_at, y_at = (torch.tensor([[at[int(i)] for i in row] for row in part]) for part in (x, y))
    steps = torch.arange(size)
    for name, where in (("x", x_at), ("y", y_at)):
        expect(
            torch.equal(where, where[:, :1] + steps),
            f"the rows of {name} are not consecutive pieces of data.",
        )
    shift = y_at[:, 0] - x_at[:, 0]
    if not (shift == 1).all():
        expect(
            len(set(shift.tolist())) == 1,
            "x and y come from different chunks: draw the starts once and use them for both.",
        )
        raise NotYet(f"y is {int(shift[0])} steps after x in the stream; it should be 1.")
    return x_at[:, 0].tolist()
