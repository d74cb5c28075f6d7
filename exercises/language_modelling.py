"""The exercises of chapter 02: tokens, examples, batches, the loss, counting, sampling."""

from typing import Any

import torch
from torch import Tensor

from exercises.chapter02_batches import examples, get_batch
from exercises.check import (
    call,
    checked,
    expect,
    expect_close,
    normal,
    same,
    tensor,
)

__all__ = [
    "bigram_probabilities",
    "cross_entropy",
    "encode",
    "examples",
    "generate",
    "get_batch",
]


@checked
def encode(answer: Any) -> str:
    """encode(text, symbols): the ids of a text's characters, a list of integers."""
    for text, symbols in (("toad", "stolande"), ("a cab", "cb ad"), ("Bad", "dbaBA"), ("", "xy")):
        got = call(answer, text, symbols)
        what = f"encode({text!r}, {symbols!r})"
        expect(not isinstance(got, str), f"{what} should be numbers, but is the text {got!r:.40}.")
        places = [symbols.index(character) for character in text]
        expect_close(
            got,
            places,
            what,
            mistakes={
                "These are Unicode code points (`ord`). An id is a place in `symbols`.": [
                    ord(character) for character in text
                ],
                "You sorted the symbols. Their order is given and must be kept: "
                "a saved model depends on it.": [sorted(symbols).index(c) for c in text],
                "You numbered the characters of the text. The vocabulary is `symbols`, "
                "the same for every text.": [sorted(set(text)).index(c) for c in text],
                "A capital and a small letter are two symbols.": [
                    symbols.lower().index(c.lower()) for c in text
                ],
                "You count from 1; ids count from 0, like rows of a table.": [
                    place + 1 for place in places
                ],
            },
        )
    return "each character is looked up in the vocabulary as it is given."


@checked
def cross_entropy(answer: Any) -> str:
    """cross_entropy(logits, y): the mean surprise in nats; logits (B, T, V), y (B, T)."""
    for seed, (B, T, V) in enumerate([(2, 3, 5), (4, 1, 3), (1, 6, 6)]):
        logits = 2 * normal(B, T, V, seed=seed)
        y = torch.randint(V, (B, T), generator=torch.Generator().manual_seed(seed))
        loss = -_at(logits.log_softmax(-1), y).mean()
        mistakes = {
            "This is the sum over all positions. The loss is the mean, so that it does not "
            "depend on the size of the batch.": loss * B * T,
            "The sign is missing: the logarithm of a probability is never positive, "
            "a surprise is minus that.": -loss,
            "This is in bits (log2). Nats use the natural logarithm.": loss / torch.tensor(2).log(),
            "Your softmax runs over time (axis 1): the probabilities of the symbols at one "
            "position do not sum to 1. It should run over the last axis, the symbols.": -_at(
                logits.log_softmax(1), y
            ).mean(),
            "Your softmax runs over the batch (axis 0). It should run over the last axis, "
            "the symbols.": -_at(logits.log_softmax(0), y).mean(),
            "You averaged the logits of the true tokens: turn the logits into probabilities "
            "with softmax first.": -_at(logits, y).mean(),
            "The logarithm is missing: you averaged probabilities, not surprises.": _at(
                logits.softmax(-1), y
            ).mean(),
            "You took the logarithm of the mean probability. The loss is the mean of the "
            "logarithms.": -_at(logits.softmax(-1), y).mean().log(),
            "Softmax twice: the logits went through softmax before, and then the loss took the "
            "softmax of those probabilities.": -_at(logits.softmax(-1).log_softmax(-1), y).mean(),
            "`[..., y]` picks every target at every position: pick one entry at each position, "
            "that of its own target.": -logits.log_softmax(-1)[..., y].mean(),
            "These are the surprises of all positions. The loss is their mean, one number.": -_at(
                logits.log_softmax(-1), y
            ),
        }
        expect_close(
            call(answer, logits, y), loss, f"the loss of logits ({B}, {T}, {V})",
            mistakes={why: wrong for why, wrong in mistakes.items() if not same(wrong, loss)},
        )  # fmt: skip
    large, target = torch.tensor([[[1000.0, 0.0], [0.0, 1000.0]]]), torch.tensor([[0, 0]])
    got = tensor(call(answer, large, target), "the loss")
    expect(
        bool(torch.isfinite(got).all()),
        "right for small logits, but logits of 1000 give infinity or NaN: exp overflows, or the "
        "logarithm meets a 0. `log_softmax` computes both in one safe step.",
    )
    expect_close(got, 500.0, "the loss with logits of 1000")
    return "the mean of −ln p of the true tokens, also for large logits."


def _at(values: Tensor, y: Tensor) -> Tensor:
    """values[b, t, y[b, t]], shape (B, T)."""
    return values.gather(-1, y[..., None]).squeeze(-1)


@checked
def bigram_probabilities(answer: Any) -> str:
    """bigram_probabilities(counts, smoothing): row i is the distribution after symbol i."""
    some = torch.tensor([[3.0, 1.0, 0.0, 2.0], [0, 0, 5, 1], [4, 4, 0, 1], [1, 0, 0, 7]])
    empty = some.clone()
    empty[1] = 0.0
    for counts, smoothing in ((some, 0.0), (some[1:, 1:], 0.0), (some, 1.0), (empty, 0.5)):
        smoothed = counts + smoothing
        right = smoothed / smoothed.sum(1, keepdim=True)
        rows = counts.sum(1, keepdim=True)
        mistakes = {
            "Your columns sum to 1, your rows do not: you divided by the sums of the columns. "
            "Row i holds what comes after symbol i.": smoothed / smoothed.sum(0, keepdim=True),
            "You divided by the row sums without keepdim: their shape (V,) is read as a row, so "
            "column j was divided by the sum of row j.": smoothed / smoothed.sum(1),
            "The whole table sums to 1. That is the probability of a pair; the probability of the "
            "next symbol needs each row divided by its own sum.": smoothed / smoothed.sum(),
            "You forgot the smoothing: add it to every count, also to the zeros.": counts / rows,
            "You added the smoothing to the counts, but divided by the sums without it: "
            "the rows sum to more than 1.": smoothed / rows,
            "The row sum must grow by smoothing times V, since each of the V counts grew: sum "
            "after adding.": smoothed / (rows + smoothing),
            "You smoothed the probabilities, after dividing. Add the smoothing to the counts, "
            "before.": counts / rows + smoothing,
        }
        expect_close(
            call(answer, counts, smoothing), right, f"the table with smoothing {smoothing}",
            mistakes={
                # A mistake with NaN is no use: an empty row is told apart below.
                why: wrong for why, wrong in mistakes.items()
                if torch.isfinite(wrong).all() and not same(wrong, right)
            },
        )  # fmt: skip
    return "each row sums to 1, and a row without counts is uniform."


@checked
def generate(answer: Any) -> str:
    """generate(table, start, n): n ids, each drawn from the row of the one before."""
    after = [2, 0, 3, 1]  # a table that leaves no choice: 0 → 2 → 3 → 1 → 0
    cycle = torch.zeros(4, 4)
    cycle[range(4), after] = 1.0
    path = [0, 2, 3, 1, 0, 2]
    expect_close(
        call(answer, cycle, 1, 6),
        path,
        "generate with a table that leaves no choice (0 → 2 → 3 → 1 → 0), from 1",
        mistakes={
            "You always draw from the row of the start. The next row is that of the id "
            "just drawn.": [0] * 6,
            "The start is in your list: return only the n new ids.": [1, *path],
            "The start is in your list, in place of the last new id.": [1, *path[:-1]],
            "You begin after id 0: draw the first id from the row of `start`.": [2, 3, 1, 0, 2, 3],
            "You read the columns: the row of an id holds what comes after it.": [3, 2, 0, 1, 3, 2],
        },
    )
    table = torch.tensor([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.5, 0.1, 0.4]])
    n = 3000
    ids = tensor(call(answer, table, 0, n), "the ids").long()
    expect(ids.shape == (n,), f"generate(table, 0, {n}) should give {n} ids.")
    expect(bool(((ids >= 0) & (ids < 3)).all()), "the ids should be 0, 1 or 2 for a table of 3.")
    counts = torch.bincount(3 * ids[:-1] + ids[1:], minlength=9).view(3, 3).float()
    most = table.argmax(1)
    expect(
        not torch.equal(ids[1:], most[ids[:-1]]),
        "you always take the most probable id (argmax), which runs in a circle. Draw with the "
        "probabilities: `torch.multinomial`.",
    )
    got = counts / counts.sum(1, keepdim=True).clamp_min(1)
    worst = float((got - table).abs().max())
    expect(
        worst < 0.08,
        f"in {n} draws the frequencies differ from the table by up to {worst:.1f}: "
        "draw each id with the probabilities of the row of the one before.",
    )
    expect(
        not torch.equal(tensor(call(answer, table, 0, n), "the ids").long(), ids),
        "two calls gave the same text: draw by chance, and do not seed inside the function.",
    )
    return "each id is drawn from the row of the one before, and the frequencies fit the table."
