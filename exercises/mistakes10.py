"""The classic mistakes of chapter 10: diagnosis → what the mistake would give."""

import math

import torch
from torch import Tensor, nn

from exercises.check import expect, normal, same

NO_MASK = (
    "The new tokens see each other's future. With several new tokens a mask is needed: the last T "
    "rows of causal_mask(S + T)."
)
CORNER = (
    "Your mask is the upper left corner of the triangle: the first new token sees the first key "
    "only. The new tokens are the last rows: causal_mask(S + T)[S:]."
)
NO_CACHE = "The new tokens look at each other only: put the old keys and values before the new."
NEW_FIRST = (
    "You put the new tokens before the old ones, so your mask hides the wrong ones. Old first."
)
NOT_SELF = (
    "A new token does not see itself: your mask is one row too high. Token S is row S, counted "
    "from 0: causal_mask(S + T)[S:]."
)
OLD_ONLY = "The new tokens look at the old ones only. A token may look at itself, too."


def one_hot(scores: Tensor) -> Tensor:
    """All to the largest of each row, (..., V) → (..., V)."""
    return torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)


def draw_mistakes(throws: list[tuple[Tensor, float]]) -> dict[str, list[int]]:
    """What `draw(probabilities, u)` gives for each mistake, for all the throws."""

    def each(wrong) -> list[int]:
        return [int(wrong(p, u)) for p, u in throws]

    return {
        "The borders: a dart exactly on a border belongs to the piece that begins there. Count the "
        "ends that are <= u, not < u.": each(lambda p, u: (p.cumsum(-1) < u).sum()),
        "This is the likeliest token, wherever the dart is.": each(lambda p, u: p.argmax()),
        "This is one piece too far to the right.": each(lambda p, u: (p.cumsum(-1) <= u).sum() + 1),
        "This is one piece too far to the left.": each(lambda p, u: (p.cumsum(-1) <= u).sum() - 1),
        "You compare u with the probabilities. The pieces end at their running sums: `cumsum`.":
            each(lambda p, u: (p <= u).sum()),
        "You look for the first single probability above u. The pieces end at the running sums of "
        "the probabilities: `cumsum`.": each(lambda p, u: (p > u).float().argmax()),
        "You compare u with the sorted pieces. No sorting is needed: the ruler may have any order.":
            each(lambda p, u: (p.sort(descending=True).values.cumsum(-1) <= u).sum()),
        "You count from the wrong end: these are the pieces that end after the dart.":
            each(lambda p, u: (p.cumsum(-1) > u).sum()),
    }  # fmt: skip


def heat_mistakes(z: Tensor, tau: float) -> dict[str, Tensor]:
    """What `heat(logits, tau)` gives for each mistake."""
    p = z.softmax(-1)
    wrong = {
        "This is plain softmax. If you divide after the softmax, tau cancels: divide the logits.":
            p,
        "You multiplied by tau. It divides: a low temperature makes the gaps larger.":
            (z * tau).softmax(-1),
        "You divided the probabilities by tau, and they no longer sum to 1. Divide the logits.":
            p / tau,
        "Two softmaxes: you divided the probabilities by tau and took the softmax again. Divide "
        "the logits.": (p / tau).softmax(-1),
        "These are logits. The softmax is missing.": z / tau,
        "These are powers that do not sum to 1.": p ** (1 / tau),
        "You took the logarithms of the probabilities, without a softmax.":
            (z / tau).log_softmax(-1),
        "You divided by the sum of all rows. Each row is a distribution of its own: `sum(-1, "
        "keepdim=True)`.": (z / tau).flatten().softmax(0).view_as(z),
    }  # fmt: skip
    if z.dim() > 1:
        for dim in range(z.dim() - 1):
            wrong[f"Your softmax runs over dim {dim}. The vocabulary is the last one: dim=-1."] = (
                z / tau
            ).softmax(dim)
    return wrong


def nucleus_mistakes(rows: Tensor, p: float) -> tuple[Tensor, dict[str, Tensor]]:
    """What `nucleus(probabilities, p)` should give, and what it gives for each mistake."""
    ranked, order = rows.sort(dim=-1, descending=True)
    before = ranked.cumsum(-1) - ranked

    def back(kept: Tensor) -> Tensor:
        return torch.zeros_like(kept).scatter(-1, order, kept)

    def normed(kept: Tensor) -> Tensor:
        return kept / kept.sum(-1, keepdim=True)

    right = ranked.masked_fill(before >= p, 0)
    one_more = ranked.masked_fill(before.roll(1, -1).index_fill(-1, torch.tensor([0]), 0) >= p, 0)
    up, up_order = rows.sort(dim=-1)
    from_below = torch.zeros_like(up).scatter(
        -1, up_order, up.masked_fill(up.cumsum(-1) - up >= p, 0)
    )
    dropped = ranked.masked_fill(ranked.cumsum(-1) > p, 0)
    across = ranked.masked_fill(ranked.cumsum(0) - ranked >= p, 0)
    unsorted = rows.masked_fill(rows.cumsum(-1) - rows >= p, 0)
    as_first = ranked * (torch.arange(rows.shape[-1]) < (before[0] < p).sum())
    return back(normed(right)), {
        "Nothing is cut: all the tokens are still there.": rows,
        "The result is sorted: bring the tokens back to their own places with scatter.":
            normed(right),
        "The rows no longer sum to 1: divide by what is left.": back(right),
        "You dropped the token that crosses p. It stays: without it the rest does not reach p.":
            back(normed(dropped)),
        "You dropped the token that crosses p (it stays), and the rows do not sum to 1.":
            back(dropped),
        "You keep one token too many: the one that crosses p is the last.": back(normed(one_more)),
        "You started from the unlikeliest token: sort in descending order.": normed(from_below),
        "You did not sort: the running sum must go from the likeliest token down.":
            normed(unsorted),
        "Your running sum goes over the rows of the batch. Each row is alone: cumsum(-1).":
            back(normed(across)),
        "The tokens came back to wrong places: `gather` sorts once more, `scatter` undoes it.":
            normed(right).gather(-1, order),
        "You compare each single probability with p. The sum of the likelier ones counts.":
            normed(rows.masked_fill(rows < p, 0)),
        "You divided by the sum of the whole batch: each row should sum to 1, "
        "`sum(-1, keepdim=True)`.": back(right / right.sum()),
        "You cut as many in every row as in the first: each row needs a number of its own.":
            back(normed(as_first)),
        "What says who stays is in sorted order, but you used it on the unsorted rows.":
            normed(rows.masked_fill(before >= p, 0)),
        "Probabilities are no logits: divide by their sum, without another softmax. (And after a "
        "softmax what was set to 0 is not 0.)": back(right.softmax(-1)),
        "Probabilities are no logits: divide what is left by its sum, without another softmax.":
            back(ranked.masked_fill(before >= p, -math.inf).softmax(-1)),
    }  # fmt: skip


def with_cache(
    q: Tensor, k: Tensor, v: Tensor, old_k: Tensor, old_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Attention of new tokens over old and new ones; mask: another one than the right one."""
    T, S = q.shape[2], old_k.shape[2]
    mask = torch.ones(S + T, S + T, dtype=torch.bool).tril()[S:] if mask is None else mask
    scores = q @ torch.cat((old_k, k), 2).mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ torch.cat((old_v, v), 2)


def cache_mistakes(
    q: Tensor, k: Tensor, v: Tensor, old_k: Tensor, old_v: Tensor
) -> dict[str, Tensor]:
    """What the outputs of `attend_new` are for each mistake."""
    T, S, nothing = q.shape[2], old_k.shape[2], k[:, :, :0]
    beyond = torch.ones(T, S + T).tril(S + 1).bool()
    triangle = torch.ones(S + T, S + T, dtype=torch.bool).tril()
    everything = torch.ones(T, S + T, dtype=torch.bool)
    wrong = {
        NO_MASK: with_cache(q, k, v, old_k, old_v, everything),
        CORNER: with_cache(q, k, v, old_k, old_v, triangle[:T]),
        NO_CACHE: with_cache(q, k, v, nothing, nothing),
        NO_CACHE + " (And a mask is needed.)": with_cache(
            q, k, v, nothing, nothing, everything[:, S:]
        ),
        NEW_FIRST: with_cache(q, old_k, old_v, k, v, triangle[S:]),
        "The scale is missing or wrong: divide the scores by √hs once.": with_cache(
            q * math.sqrt(q.shape[-1]), k, v, old_k, old_v
        ),
        "The scale is there twice: `attention` divides by √hs already.": with_cache(
            q / math.sqrt(q.shape[-1]), k, v, old_k, old_v
        ),
        "Your mask is one key too generous: each new token sees the one after it, too. The rows of "
        "the new tokens begin at row S: causal_mask(S + T)[S:].": with_cache(
            q, k, v, old_k, old_v, beyond
        ),
        "Keys and values are swapped: the scores are queries times keys.": with_cache(
            q, v, k, old_v, old_k
        ),
        "You joined the new values to the old keys: two caches, one of each.": with_cache(
            q, k, v, old_k, old_k
        ),
    }
    if S:
        wrong[NOT_SELF] = with_cache(q, k, v, old_k, old_v, torch.ones_like(beyond).tril(S - 1))
        wrong[OLD_ONLY] = with_cache(q, old_k, old_v, nothing, nothing, everything[:, :S])
    return wrong


class Witness(nn.Module):
    """A small fixed model whose next token depends on all it reads; remembers what it was given."""

    def __init__(self, V: int, seed: int):
        super().__init__()
        self.calls: list[Tensor] = []
        self.table = normal(V, V, seed=seed + 100)

    def forward(self, ids: Tensor) -> Tensor:
        self.calls.append(ids.clone())
        # Early tokens count, too, and order does: a weight for each place, counted from the left.
        places = torch.arange(1, ids.shape[1] + 1, dtype=torch.float32)
        return (self.table[ids] * (places.sin() + 1.5)[:, None]).cumsum(1)

    def write(self, ids: Tensor, n: int, window: int, place: int = -1, sign: int = 1) -> Tensor:
        """The right text (or, with another place or sign, a wrong one)."""
        for _ in range(n):
            logits = sign * self(ids[:, -window:])[:, place]
            ids = torch.cat((ids, logits.argmax(-1, keepdim=True)), dim=1)
        return ids


def what_was_read(calls: list[Tensor], text: Tensor, T: int, window: int, what: str) -> None:
    """Name the slip in what the model was given to read, step by step."""
    for i, seen in enumerate(calls):
        whole = text[:, : T + i]  # if all was right so far
        right = whole[:, -window:]
        if same(seen, right):
            continue
        fit = right.shape[1]
        expect(
            seen.shape[1] <= window,
            f"{what}: you gave the model {seen.shape[1]} tokens, and it reads {window} at most. "
            "Crop to the last block_size.",
        )
        expect(
            whole.shape[1] <= window or not same(seen, whole[:, :window]),
            f"{what}: you cropped the wrong end. The model reads the first {window} tokens for "
            "ever, and never sees what it wrote: take the last ones, `ids[:, -block_size:]`.",
        )
        expect(
            i == 0 or not same(seen, calls[i - 1]),
            f"{what}: you gave the model the same text twice. What it wrote has to be appended "
            "before you ask again.",
        )
        expect(
            seen.shape[1] != 1 or fit == 1,
            f"{what}: you gave the model the last token alone. There is no cache here, so it needs "
            "the tokens before it.",
        )
        expect(
            seen.shape[1] >= fit or not same(seen, right[:, -seen.shape[1] :]),
            f"{what}: you gave the model {seen.shape[1]} tokens, but {fit} fit. "
            "A text of up to block_size tokens can be read whole.",
        )
        return  # another text: the comparison of the results says where
