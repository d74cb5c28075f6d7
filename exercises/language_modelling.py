"""The exercises of chapter 02: tokens, examples, batches, the loss, counting, sampling."""

import math
import re
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from exercises.check import (
    NotYet,
    call,
    checked,
    exercise,
    expect,
    expect_shape,
    expect_without,
    normal,
    tensor,
)


@exercise(
    # Blanks and line ends at either end are symbols like any other, and so are capitals.
    inputs=[
        *(("toad", "stolande"), ("a cab", "cb ad"), ("Bad", "dbaDBA"), ("", "xy"), ("b", "ab")),
        *((" \tbad\n", "\n\td ab"), ("ab ", " ba"), ("née", "éne")),
    ],
    praise="each character is looked up in the vocabulary as it is given.",
)
def encode(text, symbols):
    """encode(text, symbols): the ids of a text's characters, a list of integers."""
    return [symbols.index(character) for character in text]


encode.mistakes = {
    "These are Unicode code points (`ord`). An id is a place in `symbols`.":
        lambda text, symbols: [ord(c) for c in text],
    "These are bytes (UTF-8). An id is a place in `symbols`.":
        lambda text, symbols: list(text.encode()),
    "These are places in the alphabet. An id is a place in `symbols`.":
        (lambda text, symbols: [ord(c) - ord("a") for c in text],
         lambda text, symbols: [ord(c) - ord("a") + 1 for c in text]),
    "These are places in the text. An id is a place in `symbols`.":
        (lambda text, symbols: [text.index(c) for c in text],
         lambda text, symbols: list(range(len(text)))),
    "You sorted the symbols. Their order is given and must be kept: a saved model depends on it.":
        lambda text, symbols: [sorted(symbols).index(c) for c in text],
    "You numbered the characters of the text. The vocabulary is `symbols`, the same for every "
    "text.": (lambda text, symbols: [sorted(set(text)).index(c) for c in text],
              lambda text, symbols: [list(dict.fromkeys(text)).index(c) for c in text]),
    "A capital and a small letter are two symbols.":
        (lambda text, symbols: [symbols.lower().index(c.lower()) for c in text],
         lambda text, symbols: encode.right(text.lower(), symbols),
         lambda text, symbols: encode.right(text.upper(), symbols),
         lambda text, symbols: [symbols.upper().index(c.upper()) for c in text]),
    "You cut off the blanks or line ends of the text: they are symbols, too.":
        (lambda text, symbols: encode.right(text.strip(), symbols),
         lambda text, symbols: encode.right(text.rstrip(), symbols),
         lambda text, symbols: encode.right(text.lstrip(), symbols),
         lambda text, symbols: encode.right(text.strip("\n"), symbols)),
    "You cut off the blanks or line ends of `symbols`, so all ids after them moved.":
        (lambda text, symbols: [symbols.strip().find(c) for c in text],
         lambda text, symbols: [symbols.strip().index(c) for c in text.strip()]),
    "Blanks are left out: they are symbols, too.":
        (lambda text, symbols: encode.right(text.replace(" ", ""), symbols),
         lambda text, symbols: encode.right("".join(text.split()), symbols)),
    "You count from 1; ids count from 0, like rows of a table.":
        lambda text, symbols: [symbols.index(c) + 1 for c in text],
    "You count from the end of `symbols`: the first symbol has the id 0.":
        (lambda text, symbols: [symbols[::-1].index(c) for c in text],
         lambda text, symbols: [symbols.index(c) - len(symbols) for c in text]),
    "Each symbol comes once only. A text that repeats it repeats its id.":
        (lambda text, symbols: encode.right(dict.fromkeys(text), symbols),
         lambda text, symbols: [i for i, symbol in enumerate(symbols) if symbol in text]),
    "The ids are sorted: keep the order of the text.":
        lambda text, symbols: sorted(encode.right(text, symbols)),
    "The ids are in reverse: keep the order of the text.":
        lambda text, symbols: encode.right(text[::-1], symbols),
    "This is the id of the first character only: does `return` stand inside the loop?":
        (lambda text, symbols: symbols.index(text[0]),
         lambda text, symbols: encode.right(text[:1], symbols)),
    "This is the id of the last character only: append each id to a list.":
        (lambda text, symbols: symbols.index(text[-1]),
         lambda text, symbols: encode.right(text[-1:], symbols)),
    "The ids alone, please, without their characters.":
        (lambda text, symbols: [(c, symbols.index(c)) for c in text],
         lambda text, symbols: {c: symbols.index(c) for c in text}),
    "The last character is missing.": lambda text, symbols: encode.right(text[:-1], symbols),
    "These are ids as text. Numbers, please, not their digits.":
        (lambda text, symbols: [str(symbols.index(c)) for c in text],
         lambda text, symbols: "".join(str(symbols.index(c)) for c in text)),
    "These are the characters themselves. Look each up in `symbols`.":
        (lambda text, symbols: list(text), lambda text, symbols: text),
    "These are the ids of all symbols. Look up the characters of the text.":
        (lambda text, symbols: list(range(len(symbols))),
         lambda text, symbols: {symbol: i for i, symbol in enumerate(symbols)}),
    "For each symbol you say whether, or how often, it is in the text. Give each character's id.":
        (lambda text, symbols: [text.count(symbol) for symbol in symbols],
         lambda text, symbols: [int(symbol in text) for symbol in symbols]),
}  # fmt: skip


@exercise(
    inputs=[([7, 3, 9, 4, 1],), ([5, 8],), ([2, 6, 0, 6, 2, 9, 8],), ([4, 4, 4],)],
    praise="T examples from T + 1 tokens, the context one longer each time.",
)
def examples(chunk):
    """examples(chunk): the list of (context, target) that a chunk of T + 1 ids holds."""
    return [(chunk[: t + 1], chunk[t + 1]) for t in range(len(chunk) - 1)]


examples.mistakes = {
    "Your target is the last token of its own context: nothing is left to predict. The target is "
    "the token after the context.":
        (lambda chunk: [(chunk[: t + 1], chunk[t]) for t in range(len(chunk) - 1)],
         lambda chunk: [(chunk[: t + 1], chunk[t]) for t in range(len(chunk))],
         lambda chunk: [(chunk[: t + 2], chunk[t + 1]) for t in range(len(chunk) - 1)]),
    "Each of your contexts is a single token. A context is everything in the chunk before the "
    "target.": (lambda chunk: [([chunk[t]], chunk[t + 1]) for t in range(len(chunk) - 1)],
                lambda chunk: [(chunk[t], chunk[t + 1]) for t in range(len(chunk) - 1)]),
    "Your first context is empty. A chunk of T + 1 tokens gives T examples, and the shortest "
    "context is one token.":
        (lambda chunk: [(chunk[:t], chunk[t]) for t in range(len(chunk))],
         lambda chunk: [(chunk[:t], chunk[t]) for t in range(len(chunk) - 1)]),
    "All your contexts are the whole chunk. If you append to one growing list, all pairs hold that "
    "same list: store a copy, `context[:]`.":
        (lambda chunk: [(chunk[:-1], target) for target in chunk[1:]],
         lambda chunk: [(chunk, target) for target in chunk[1:]],
         lambda chunk: [(chunk[:-1], target) for target in chunk[:-1]]),
    "The target of the last example is missing: a chunk of T + 1 tokens holds T examples, you have "
    "one fewer.": lambda chunk: examples.right(chunk)[:-1],
    "The first example is missing: its context is the first token alone.":
        lambda chunk: examples.right(chunk)[1:],
    "Your target skips a token: it comes directly after the context.":
        lambda chunk: [(chunk[: t + 1], chunk[t + 2]) for t in range(len(chunk) - 2)],
    "Your context lacks the token before the target.":
        lambda chunk: [(chunk[:t], chunk[t + 1]) for t in range(len(chunk) - 1)],
    "The last token of the chunk is the target of all your examples. Each context is followed by "
    "a token of its own.":
        (lambda chunk: [(chunk[: t + 1], chunk[-1]) for t in range(len(chunk) - 1)],
         lambda chunk: [(chunk[t:-1], chunk[-1]) for t in range(len(chunk) - 1)]),
    "The first token of the chunk should be in all contexts: they grow, and do not shrink.":
        lambda chunk: [(chunk[t:-1], chunk[t + 1]) for t in range(len(chunk) - 1)],
    "Your contexts end with the chunk. What comes after the context is to be predicted, and the "
    "context is what comes before.":
        lambda chunk: [(chunk[t + 1 :], chunk[t]) for t in range(len(chunk) - 1)],
    "Only one example: does `return` stand inside the loop?":
        (lambda chunk: examples.right(chunk)[:1], lambda chunk: examples.right(chunk)[0]),
    "This is the last example only. The chunk holds one for each place.":
        (lambda chunk: examples.right(chunk)[-1:], lambda chunk: examples.right(chunk)[-1],
         lambda chunk: (chunk[:-1], chunk[1:]), lambda chunk: [(chunk[:-1], chunk[1:])]),
    "Your targets are lists. A target is one token, `chunk[t + 1]`.":
        (lambda chunk: [(chunk[: t + 1], [chunk[t + 1]]) for t in range(len(chunk) - 1)],
         lambda chunk: [(chunk[: t + 1], chunk[t + 1 :]) for t in range(len(chunk) - 1)],
         lambda chunk: [(chunk[: t + 1], chunk[1 : t + 2]) for t in range(len(chunk) - 1)]),
    "Your targets are places. Give the token there, `chunk[t + 1]`.":
        (lambda chunk: [(chunk[: t + 1], t + 1) for t in range(len(chunk) - 1)]),
    "Your contexts lack their first tokens. A context is everything in the chunk before the "
    "target.":
        lambda chunk: [(chunk[max(0, t - 1) : t + 1], chunk[t + 1]) for t in range(len(chunk) - 1)],
    "A list of pairs, please, not a dictionary.":
        lambda chunk: {tuple(context): target for context, target in examples.right(chunk)},
    "The pairs are swapped: (context, target).":
        lambda chunk: [(target, context) for context, target in examples.right(chunk)],
    "The examples are in reverse: the shortest context comes first.":
        lambda chunk: examples.right(chunk)[::-1],
    "The tokens of your contexts are in reverse.":
        lambda chunk: [(context[::-1], target) for context, target in examples.right(chunk)],
    "These are the contexts only: put each into a pair with its target.":
        lambda chunk: [context for context, _ in examples.right(chunk)],
    "These are two lists. Make one list of pairs (context, target) of them.":
        (lambda chunk: tuple(map(list, zip(*examples.right(chunk), strict=True))),
         lambda chunk: list(map(list, zip(*examples.right(chunk), strict=True)))),
    "Context and target are one list. Make a pair of the two: (context, target).":
        (lambda chunk: [chunk[: t + 2] for t in range(len(chunk) - 1)],
         lambda chunk: [(*chunk[: t + 1], chunk[t + 1]) for t in range(len(chunk) - 1)]),
    "Too many examples: all contexts begin with the first token of the chunk.":
        lambda chunk: [(chunk[s : t + 1], chunk[t + 1])
                       for s in range(len(chunk) - 1) for t in range(s, len(chunk) - 1)],
}  # fmt: skip


@checked
def get_batch(answer: Any) -> str:
    """get_batch(data, block_size, batch_size): random chunks x and y, both (B, T)."""
    # All tokens differ, so that a token tells its place; long, so that no row meets the end.
    long = torch.randperm(5000, generator=torch.Generator().manual_seed(1)) + 10_000
    places = starts_of(answer, long, 3, 8)
    expect(
        len(set(places)) > 1,
        "all rows are the same chunk: draw one start for each row, not one for the batch.",
    )
    expect(
        starts_of(answer, long, 3, 8) != places,
        "two calls gave the same batch: draw the starts by chance, and do not seed inside the "
        "function.",
    )
    starts_of(answer, long, 1, 5)
    places = starts_of(answer, long, 4, 64)
    steps = [second - first for first, second in pairwise(places)]
    expect(len(set(steps)) > 1, "your rows follow one another: draw a start of its own for each.")
    expect(
        len(set(places)) > 32,
        f"64 rows had only {len(set(places))} different starts: draw a start of its own for each.",
    )
    unit = math.gcd(*steps)
    expect(
        unit == 1,
        f"your starts are always a multiple of {unit} tokens apart. A chunk can start at any "
        "token, also in the middle of another chunk.",
    )
    expect(
        min(places) < 2000 and max(places) > 3000,
        f"in a stream of 5000 tokens 64 rows started between {min(places)} and {max(places)} only. "
        "Draw the starts from the whole stream.",
    )
    at_the_end(answer, long[:21], 4)
    starts_of(answer, torch.arange(10), 9, 2)
    return "y is x one step later, every row has its own start, and the last token is used."


def at_the_end(answer: Any, data: Tensor, size: int) -> None:
    """In a short stream every start comes, each about equally often."""
    edge = "The first start is 0, the last len(data) − block_size − 1: it leaves one target too."
    count = len(data) - size
    came = torch.zeros(count)
    for _ in range(30):
        try:
            places = starts_of(answer, data, size, 64)
        except NotYet as error:
            if "replacement" in str(error):
                raise
            raise NotYet(f"at the end of the stream: {error} {edge}") from None
        came += torch.bincount(torch.tensor(places), minlength=count)
    never = (came == 0).nonzero()[:, 0].tolist()
    expect(
        not never,
        f"a stream of {len(data)} tokens with block_size {size} has the starts 0 to {count - 1}, "
        f"but {int(came.sum())} rows never started at {', '.join(map(str, never))}. {edge}",
    )
    share, often = float(came.max() / came.mean()), int(came.argmax())
    expect(
        share < 2,
        f"start {often} of 0 to {count - 1} comes {share:.0f} times as often as it should. Draw "
        "from the possible starts only, each equally likely, instead of mending what is too large.",
    )


def starts_of(answer: Any, data: Tensor, size: int, rows: int) -> list[int]:
    """Check one batch; returns where its rows start."""
    again = (
        "you draw without replacement (`randperm`, `sample`): no start comes twice, so there "
        "cannot be more rows than starts. Use `torch.randint`."
    )
    few = rows > len(data) - size  # more rows than starts
    try:
        got = call(answer, data, size, rows, name="get_batch")
    except NotYet as error:
        expect(not few or not re.search(r"larger|without replacement", str(error)), again)
        raise
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        raise NotYet(f"get_batch should return two tensors, x and y, but gave {type(got).__name__}")
    for part, name in zip(got, "xy", strict=True):
        expect(
            isinstance(part, Tensor) and not part.is_floating_point(),
            f"{name} should be a tensor of whole numbers, as data is: ids are looked up.",
        )
    x, y = (tensor(part, name).long() for part, name in zip(got, "xy", strict=True))
    expect(not few or x.dim() != 2 or x.shape[1] != size or len(x) >= rows, again)
    expect(
        x.shape != (rows, size + 1),
        "x has block_size + 1 columns: that is the whole chunk. x is all of it but the last "
        "token, y all but the first.",
    )
    expect(
        x.shape != (rows, size - 1),
        "x has block_size − 1 columns: cut chunks of block_size + 1 tokens, then x is all of it "
        "but the last token, y all but the first.",
    )
    expect(
        x.shape != (size,),
        f"x is a single chunk: draw {rows} starts, one for each row, and stack the chunks.",
    )
    expect_shape(x, (rows, size), "x")
    expect(
        y.numel() != rows or size == 1,
        "y is one token for each row. Every token of x has a target: the one after it.",
    )
    expect_shape(y, (rows, size), "y")
    expect(
        not torch.equal(x, y),
        "y equals x: the model would learn to repeat its input. y is one step later in the stream.",
    )
    at = {int(token): place for place, token in enumerate(data)}
    known = all(int(token) in at for token in torch.cat([x, y]).flatten())
    expect(known, "the batch holds numbers that are not in data: take tokens, not their places.")
    x_at, y_at = (torch.tensor([[at[int(i)] for i in row] for row in part]) for part in (x, y))
    expect(
        not torch.equal(y, x.roll(-1, 1)),
        "the last target of each row is the first token of its chunk, not the token after it: cut "
        "y from data, not from x.",
    )
    steps = torch.arange(size)
    for name, where in (("x", x_at), ("y", y_at)):
        expect(
            torch.equal(where, where[:, :1] + steps),
            f"the rows of {name} are not consecutive pieces of data.",
        )
    shifts = set((y_at[:, 0] - x_at[:, 0]).tolist())
    expect(
        len(shifts) == 1,
        "x and y come from different chunks: draw the starts once and use them for both.",
    )
    shift = shifts.pop()
    expect(shift != -1, "x and y are swapped: y is one step after x, and yours is −1 steps after.")
    expect(
        shift != size or size == 1,
        "y is the chunk after x. It should be the same chunk, one step later in the stream.",
    )
    expect(shift == 1, f"y is {shift} steps after x in the stream; it should be 1.")
    return x_at[:, 0].tolist()


def logits_and_targets(B, T, V, seed):
    y = torch.randint(V, (B, T), generator=torch.Generator().manual_seed(seed))
    return 2 * normal(B, T, V, seed=seed), y


def large(*logits, y):
    return torch.tensor([logits]) * 1000, torch.tensor([y])


@exercise(
    # In the large ones the target has all the probability, or none; one place alone is large, so
    # that no other's maximum helps; and all logits are far below 0.
    inputs=[logits_and_targets(*size, seed) for seed, size in
            enumerate([(2, 3, 5), (4, 1, 3), (1, 6, 6), (3, 3, 3), (4, 2, 7)])]
    + [large([1.0, 0.0], [0.0, 1.0], y=[0, 0]), large([1.0, 0.0], [0.0, 0.0], y=[0, 1]),
       large([-1.0, -1.0, -1.0], y=[2])],
    why=[""] * 5 + ["Logits of 1000 are too large for exp, and a probability may round to 0: "
                    "`log_softmax` computes both steps in one safe one."] * 3,
    praise="the mean of −ln p of the true tokens, also for large logits.",
)  # fmt: skip
def cross_entropy(logits, y):
    """cross_entropy(logits, y): the mean surprise in nats; logits (B, T, V), y (B, T)."""
    return -at(logits.log_softmax(-1), y).mean()


def at(values, y):
    """values[b, t, y[b, t]], shape (B, T)."""
    return values.gather(-1, y[..., None]).squeeze(-1)


def loss(logits, y):
    return cross_entropy.right(logits, y)


def surprises(logits, y):
    return -at(logits.log_softmax(-1), y)


EPSILONS = [10.0**-digits for digits in (*range(3, 17), 20)]
cross_entropy.mistakes = {
    "Right for small logits, but logits of 1000 give infinity or NaN: exp overflows, or the "
    "logarithm meets a 0. `log_softmax` computes both in one safe step.":
        (lambda z, y: -at(z.softmax(-1).log(), y).mean(),
         lambda z, y: -at((z.exp() / z.exp().sum(-1, keepdim=True)).log(), y).mean(),
         lambda z, y: (z.exp().sum(-1).log() - at(z, y)).mean()),
    "You subtract one maximum from all logits. Each position needs its own: `log_softmax` sees to "
    "that.": (lambda z, y: ((z - z.max()).exp().sum(-1).log() - at(z - z.max(), y)).mean(),
              lambda z, y: ((s := z - z.amax((1, 2), True)).exp().sum(-1).log() - at(s, y)).mean()),
    "You mended the logarithm of 0, by a small number or a smallest probability. Logits of 1000 "
    "can have a surprise of 1000, and `log_softmax` needs no such help.":
        (*(lambda z, y, e=e: -at((z.softmax(-1) + e).log(), y).mean() for e in EPSILONS),
         *(lambda z, y, e=e: -at(z.softmax(-1).clamp(e).log(), y).mean() for e in EPSILONS),
         lambda z, y: -at(z.softmax(-1).log().nan_to_num(), y).mean(),
         lambda z, y: -at(z.softmax(-1).log().clamp(-100), y).mean()),
    "`F.cross_entropy` expects the symbols on axis 1, and the task is to do without it.":
        lambda z, y: F.cross_entropy(z, y),
    "This is the sum over all positions. The loss is the mean, so that it does not depend on the "
    "size of the batch.": lambda z, y: loss(z, y) * y.numel(),
    "You divided by B only: the mean runs over all B · T positions.":
        lambda z, y: loss(z, y) * y.shape[1],
    "You divided by T only: the mean runs over all B · T positions.":
        lambda z, y: loss(z, y) * y.shape[0],
    "You divided by V, too: the mean runs over the B · T positions, one number each.":
        lambda z, y: loss(z, y) / z.shape[-1],
    "This is the perplexity, e^loss. Return the loss itself.":
        (lambda z, y: loss(z, y).exp(), lambda z, y: 2 ** loss(z, y)),
    "The sign is missing: the logarithm of a probability is never positive, a surprise is minus "
    "that.": lambda z, y: -loss(z, y),
    "This is in bits (log2). Nats use the natural logarithm.":
        lambda z, y: loss(z, y) / math.log(2),
    "This is log10. Nats use the natural logarithm.": lambda z, y: loss(z, y) / math.log(10),
    "Your softmax runs over time (axis 1): the probabilities of the symbols at one position do not "
    "sum to 1. It should run over the last axis, the symbols.":
        lambda z, y: -at(z.log_softmax(1), y).mean(),
    "Your softmax runs over the batch (axis 0). It should run over the last axis, the symbols.":
        lambda z, y: -at(z.log_softmax(0), y).mean(),
    "Your softmax runs over all numbers at once. It should run over the last axis, the symbols.":
        lambda z, y: -at(z.flatten().log_softmax(0).view_as(z), y).mean(),
    "You averaged the logits of the true tokens: turn the logits into probabilities with softmax "
    "first.": (lambda z, y: -at(z, y).mean(), lambda z, y: at(z, y).mean()),
    "The logarithm of the logits is not that of probabilities: softmax comes first.":
        (lambda z, y: -at(z.log(), y).mean(), lambda z, y: -at(z, y).mean().log()),
    "The logarithm is missing: you averaged probabilities, not surprises.":
        (lambda z, y: at(z.softmax(-1), y).mean(), lambda z, y: -at(z.softmax(-1), y).mean(),
         lambda z, y: 1 - at(z.softmax(-1), y).mean()),
    "You took the logarithm of the mean probability. The loss is the mean of the logarithms.":
        lambda z, y: -at(z.softmax(-1), y).mean().log(),
    "Softmax twice: the logits went through softmax before, and then the loss took the softmax of "
    "those probabilities.": lambda z, y: loss(z.softmax(-1), y),
    "The logits are not divided by the sum of the exponentials of all V: use `log_softmax`.":
        lambda z, y: z.exp().sum(-1).log().mean(),
    "`[..., y]` picks every target at every position: pick one entry at each position, that of its "
    "own target.": lambda z, y: -z.log_softmax(-1)[..., y].mean(),
    "You averaged the surprise at all V symbols. Only that of the true token counts.":
        lambda z, y: -z.log_softmax(-1).mean(),
    "You added the surprise at all V symbols. Only that of the true token counts.":
        lambda z, y: -z.log_softmax(-1).sum(-1).mean(),
    "This is the entropy of the guesses. The surprise is that at the true token.":
        lambda z, y: -(z.softmax(-1) * z.log_softmax(-1)).sum(-1).mean(),
    "This is the surprise at the likeliest token. Take that at the true one, y.":
        lambda z, y: -z.log_softmax(-1).amax(-1).mean(),
    "You shifted the targets. y[b, t] belongs to logits[b, t] already.":
        (lambda z, y: surprises(z[:, :-1], y[:, 1:]).mean(),
         lambda z, y: surprises(z, y.roll(-1, 1)).mean()),
    "The targets do not belong to their logits: flatten both in the same order.":
        lambda z, y: surprises(z.flatten(0, 1), y.T.flatten()).mean(),
    "`view` or `reshape` does not move an axis: logits (B, T, V) → (B, V, T) needs `transpose`.":
        lambda z, y: surprises(z.reshape(len(z), z.shape[2], -1).mT, y).mean(),
    "Only the last position counts in it. The loss is the mean over all.":
        lambda z, y: surprises(z, y)[:, -1].mean(),
    "Only the first text counts in it. The loss is the mean over all.":
        lambda z, y: surprises(z, y)[0].mean(),
    "This is the largest or the middle surprise. The loss is the mean of all.":
        (lambda z, y: surprises(z, y).max(), lambda z, y: surprises(z, y).median()),
    "These are the surprises of all positions. The loss is their mean, one number.":
        (surprises, lambda z, y: surprises(z, y)[..., None], lambda z, y: surprises(z, y).flatten(),
         lambda z, y: -surprises(z, y), lambda z, y: -surprises(z, y)[..., None]),
    "This is one number for each text. The loss is one for the whole batch.":
        (lambda z, y: surprises(z, y).mean(1), lambda z, y: surprises(z, y).sum(1)),
    "This is one number for each position in time. The loss is one for the whole batch.":
        lambda z, y: surprises(z, y).mean(0),
}  # fmt: skip


@cross_entropy.then
def by_hand_and_differentiable(answer):
    given = cross_entropy.inputs[0]
    diagnosis = "The loss is right, but torch's own `cross_entropy` computed it. Do it yourself."
    expect_without(answer, given, ["cross_entropy", "cross_entropy_loss"], diagnosis)
    if isinstance(answer(*given), Tensor):  # of a plain number nobody expects gradients
        cross_entropy.expect_backward(answer, given)


some = torch.tensor([[3.0, 1.0, 0.0, 2.0], [0, 0, 5, 1], [4, 4, 0, 1], [1, 0, 0, 7]])
empty = some.clone()
empty[1] = 0.0


@exercise(
    inputs=[
        (some, 0.0),
        (some[1:, 1:], 0.0),
        (some, 1.0),
        (some, 1.5),
        (empty, 0.1),
        (empty[:3, :3], 2),
    ],
    praise="each row sums to 1, and a row without counts is uniform.",
)
def bigram_probabilities(counts, smoothing):
    """bigram_probabilities(counts, smoothing): row i is the distribution after symbol i."""
    return shares(counts + smoothing)


def shares(counts):
    return counts / counts.sum(1, keepdim=True)


bigram_probabilities.mistakes = {
    "Your columns sum to 1, your rows do not: you divided by the sums of the columns. Row i holds "
    "what comes after symbol i.": lambda c, s: (c + s) / (c + s).sum(0),
    "You divided by the row sums without keepdim: their shape (V,) is read as a row, so column j "
    "was divided by the sum of row j.": lambda c, s: (c + s) / (c + s).sum(1),
    "The whole table sums to 1. That is the probability of a pair; the probability of the next "
    "symbol needs each row divided by its own sum.": lambda c, s: (c + s) / (c + s).sum(),
    "The table is transposed: row i holds what comes after symbol i.": lambda c, s: shares(c + s).T,
    "You forgot the smoothing: add it to every count, also to the zeros.":
        (lambda c, s: shares(c), lambda c, s: shares(c).nan_to_num()),
    "You always add 1: add `smoothing`.": lambda c, s: shares(c + 1),
    "You added the smoothing to the counts, but divided by the sums without it: the rows sum to "
    "more than 1.": (lambda c, s: (c + s) / c.sum(1, keepdim=True),
                     lambda c, s: (c + s) / c.sum(1, keepdim=True).clamp(min=1)),
    "The row sum must grow by smoothing times V, since each of the V counts grew: sum after "
    "adding.": lambda c, s: (c + s) / (c.sum(1, keepdim=True) + s),
    "The sums have grown, but not the counts: add the smoothing to every count.":
        (lambda c, s: c / (c + s).sum(1, keepdim=True), lambda c, s: c / (c.sum(1, True) + s)),
    "You smoothed the probabilities, after dividing. Add the smoothing to the counts, before.":
        (lambda c, s: shares(c) + s, lambda c, s: shares(shares(c) + s),
         lambda c, s: shares(c).nan_to_num() + s, lambda c, s: shares(shares(c).nan_to_num() + s)),
    "Only the zeros are smoothed: add the smoothing to every count.":
        (lambda c, s: shares(torch.where(c == 0, s, c)), lambda c, s: shares(c.clamp(min=s))),
    "Only the diagonal is smoothed: add the smoothing to every count.":
        lambda c, s: shares(c + s * torch.eye(len(c))),
    "Only rows without counts are smoothed: add the smoothing to every count.":
        lambda c, s: shares(torch.where(c.sum(1, keepdim=True) == 0, c + s, c)),
    "You cut the smoothing to a whole number: it may be any, such as 0.5.": (
        lambda c, s: shares(c + int(s)),
        lambda c, s: shares((c + int(s)) + (c.sum(1, keepdim=True) + int(s) == 0))),
    "You multiplied by the smoothing: add it.": lambda c, s: shares(c * s),
    "You subtracted the smoothing: add it.": lambda c, s: shares(c - s),
    "You added the smoothing V times: once to every count.": lambda c, s: shares(c + s * len(c)),
    "You shared the smoothing out among the V counts: add all of it to each.":
        lambda c, s: shares(c + s / len(c)),
    "You added the smoothing twice.": lambda c, s: shares(c + 2 * s),
    "These are the smoothed counts: divide each row by its sum.": lambda c, s: c + s,
    "You divided by the mean of the row: divide by its sum.":
        lambda c, s: (c + s) / (c + s).mean(1, keepdim=True),
    "You divided by the largest count of the row: divide by its sum.":
        lambda c, s: (c + s) / (c + s).amax(1, keepdim=True),
    "You divided by the length of the row, with squares and root: divide by its sum.":
        lambda c, s: (c + s) / (c + s).norm(dim=1, keepdim=True),
    "Softmax is for logits. Counts are divided by their sum.":
        (lambda c, s: (c + s).softmax(1), lambda c, s: c.softmax(1)),
    "These are logarithms. Return the probabilities themselves.":
        lambda c, s: shares(c + s).log(),
    "The decimals are cut off: divide with `/`.":
        lambda c, s: (c + s) // (c + s).sum(1, keepdim=True),
}  # fmt: skip


def no_choice(*after):
    """A table in which id i is always followed by after[i]."""
    return torch.eye(len(after))[list(after)]


@exercise(
    inputs=[
        *((no_choice(2, 0, 3, 1), 1, 6), (no_choice(2, 0, 3, 1), 3, 5), (no_choice(1, 0), 0, 3)),
        *((no_choice(1, 2, 0), 2, 4), (no_choice(3, 4, 1, 1, 2), 0, 7)),
        (no_choice(2, 0, 3, 1), 2, 1),
    ],
    why=["This table leaves no choice: what has the probability 0 must never come."] * 6,
    praise="each id is drawn from the row of the one before, and the frequencies fit the table.",
)
def generate(table, start, n):
    """generate(table, start, n): n ids, each drawn from the row of the one before."""
    ids = []
    for _ in range(n):
        start = torch.multinomial(table[start], 1).item()
        ids.append(start)
    return ids


def walk(table, start, n):
    return generate.right(table, start, n)


generate.mistakes = {
    "You always draw from the row of the start. The next row is that of the id just drawn.":
        lambda table, start, n: walk(table, start, 1) * n,
    "The start is in your list: return only the n new ids.":
        lambda table, start, n: [start, *walk(table, start, n)],
    "The start is in your list, in place of the last new id.":
        lambda table, start, n: [start, *walk(table, start, n - 1)],
    "You begin after id 0: draw the first id from the row of `start`.":
        lambda table, start, n: walk(table, 0, n),
    "You begin after the last id: draw the first id from the row of `start`.":
        lambda table, start, n: walk(table, -1, n),
    "The first id that you draw is not in the list.":
        lambda table, start, n: walk(table, start, n + 1)[1:],
    "You read the columns: the row of an id holds what comes after it.":
        lambda table, start, n: walk(table.T, start, n),
    "Row t is for id t, not for step t: draw from the row of the id just drawn.":
        (lambda table, start, n: [walk(table, t % len(table), 1)[0] for t in range(n)],
         lambda table, start, n: [walk(table, (start + t) % len(table), 1)[0] for t in range(n)]),
    "One id too many: n are asked for.": lambda table, start, n: walk(table, start, n + 1),
    "One id too few: n are asked for.": lambda table, start, n: walk(table, start, n - 1),
    "Only one id: does `return` stand inside the loop?":
        (lambda table, start, n: walk(table, start, 1),
         lambda table, start, n: walk(table, start, 1)[0]),
    "This is the last id only. Return the list of all n.":
        (lambda table, start, n: walk(table, start, n)[-1],
         lambda table, start, n: walk(table, start, n)[-1:]),
    "The start alone, again and again: append the id that you have drawn.":
        lambda table, start, n: [start] * n,
    "Each id is a tensor with one entry. Take the number out: `.item()`.":
        (lambda table, start, n: [torch.tensor([i]) for i in walk(table, start, n)],
         lambda table, start, n: torch.tensor(walk(table, start, n))[:, None]),
    "The ids are in reverse.": lambda table, start, n: walk(table, start, n)[::-1],
    "These are rows of the table, not ids: draw an id from each with `torch.multinomial`.":
        lambda table, start, n: [table[i] for i in [start, *walk(table, start, n - 1)]],
}  # fmt: skip


@generate.then
def by_chance(answer):
    table, texts, n = torch.tensor([[2.0, 5, 1], [1, 2, 5], [4, 1, 3]]) / 8, 8, 400
    # Several texts, since an answer that calls itself can go only so deep.
    drawn = [tensor(call(answer, table, 0, n), "the ids").long() for _ in range(texts)]
    expect(all(ids.shape == (n,) for ids in drawn), f"generate(table, 0, {n}) should give {n} ids.")
    ids = torch.stack(drawn)
    expect(bool(((ids >= 0) & (ids < 3)).all()), "the ids should be 0, 1 or 2 for a table of 3.")
    before, after = ids[:, :-1].flatten(), ids[:, 1:].flatten()
    expect(
        not torch.equal(after, table.argmax(1)[before]),
        "you always take the most probable id (argmax), which runs in a circle. Draw with the "
        "probabilities: `torch.multinomial`.",
    )
    counts = torch.bincount(3 * before + after, minlength=9).view(3, 3).float()
    got = counts / counts.sum(1, keepdim=True).clamp_min(1)
    worst = float((got - table).abs().max())
    if worst > 0.08:
        for diagnosis, wrong in {
            "every id that can follow comes equally often: draw with the probabilities of the row.":
                torch.full((3, 3), 1 / 3),
            "you took the softmax of the row. Its numbers are probabilities already.":
                table.softmax(1),
        }.items():  # fmt: skip
            expect(float((got - wrong).abs().mean()) > 0.035, diagnosis)
        raise NotYet(
            f"in {texts * n} draws the frequencies differ from the table by up to {worst:.1f}: "
            "draw each id with the probabilities of the row of the one before."
        )
    expect(
        not torch.equal(ids[0], ids[1]),
        "two calls gave the same text: draw by chance, and do not seed inside the function.",
    )
