"""The exercises of chapter 02: each known mistake gets its diagnosis, other right answers pass."""

import math

import pytest
import torch
import torch.nn.functional as F

from exercises import language_modelling as check

# --- right answers that mistakes start from ---


def encode(text, symbols):
    ids = {symbol: i for i, symbol in enumerate(symbols)}
    return [ids[character] for character in text]


def examples(chunk):
    return [(chunk[: t + 1], chunk[t + 1]) for t in range(len(chunk) - 1)]


def get_batch(data, block_size, batch_size):
    starts = torch.randint(len(data) - block_size, (batch_size,))
    places = starts[:, None] + torch.arange(block_size)
    return data[places], data[places + 1]


def cross_entropy(logits, y):
    return -logits.log_softmax(-1).gather(-1, y[..., None]).mean()


def generate(table, start, n):
    ids = []
    for _ in range(n):
        start = torch.multinomial(table[start], 1).item()
        ids.append(start)
    return ids


def test_other_right_answers_are_right():
    assert check.encode(lambda t, s: torch.tensor([s.index(c) for c in t])).outcome == "right"

    def tensors(chunk):
        chunk = torch.tensor(chunk)
        return [[chunk[: t + 1], chunk[t + 1]] for t in range(len(chunk) - 1)]

    assert check.examples(tensors).outcome == "right"

    def slices(data, size, rows):
        starts = torch.randint(len(data) - size, (rows,)).tolist()
        return (
            torch.stack([data[i : i + size] for i in starts]),
            torch.stack([data[i + 1 : i + size + 1] for i in starts]),
        )

    assert check.get_batch(slices).outcome == "right"

    def flat(logits, y):
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())

    assert check.cross_entropy(flat).outcome == "right"
    assert check.generate(lambda *a: torch.tensor(generate(*a))).outcome == "right"


# --- the known mistakes ---------------------------------------------------------------------------


def _starts(data, size, rows):
    return torch.randint(len(data) - size, (rows,))[:, None] + torch.arange(size)


def unshifted(data, size, rows):
    places = _starts(data, size, rows)
    return data[places], data[places]


def two_steps(data, size, rows):
    places = torch.randint(len(data) - size - 1, (rows,))[:, None] + torch.arange(size)
    return data[places], data[places + 2]


def two_draws(data, size, rows):
    return data[_starts(data, size, rows)], data[_starts(data, size, rows) + 1]


def one_start(data, size, rows):
    places = torch.randint(len(data) - size, (1,)) + torch.arange(size)
    return data[places].expand(rows, -1), data[places + 1].expand(rows, -1)


def seeded(data, size, rows):
    torch.manual_seed(0)
    return get_batch(data, size, rows)


def neighbours(data, size, rows):
    count = len(data) - size
    starts = (torch.randint(count, (1,)) + torch.arange(rows)) % count
    places = starts[:, None] + torch.arange(size)
    return data[places], data[places + 1]


def only_the_beginning(data, size, rows):
    places = torch.randint(min(100, len(data) - size), (rows,))[:, None] + torch.arange(size)
    return data[places], data[places + 1]


def last_start_missing(data, size, rows):
    places = torch.randint(len(data) - size - 1, (rows,))[:, None] + torch.arange(size)
    return data[places], data[places + 1]


def beyond_the_end(data, size, rows):
    places = torch.randint(len(data) - size + 1, (rows,))[:, None] + torch.arange(size)
    return data[places], data[places + 1]


def wrapped(data, size, rows):
    places = torch.randint(len(data) - size + 1, (rows,))[:, None] + torch.arange(size)
    return data[places], data.roll(-1)[places]


def whole_chunk(data, size, rows):
    places = torch.randint(len(data) - size, (rows,))[:, None] + torch.arange(size + 1)
    return data[places], data[places][:, 1:]


def places_not_tokens(data, size, rows):
    places = _starts(data, size, rows)
    return places, places + 1


def transposed(data, size, rows):
    x, y = get_batch(data, size, rows)
    return x.T, y.T


def scattered(data, size, rows):
    places = torch.randint(len(data) - size, (rows, size))
    return data[places], data[places + 1]


def picked(values, y):
    return values.gather(-1, y[..., None])


def always_from_the_start(table, start, n):
    return torch.multinomial(table[start], n, replacement=True).tolist()


def seeded_text(table, start, n):
    torch.manual_seed(0)
    return generate(table, start, n)


def always_the_likeliest(table, start, n):
    ids = []
    for _ in range(n):
        start = int(table[start].argmax())
        ids.append(start)
    return ids


def any_that_can_follow(table, start, n):
    return generate((table > 0).float(), start, n)


MISTAKES = [
    ("encode", lambda text, symbols: [ord(c) for c in text], "code points"),
    ("encode", lambda text, symbols: [sorted(symbols).index(c) for c in text], "sorted the symb"),
    ("encode", lambda text, symbols: [sorted(set(text)).index(c) for c in text], "vocabulary is"),
    ("encode", lambda text, symbols: [symbols.index(c) + 1 for c in text], "count from 1"),
    ("encode", lambda text, symbols: [symbols.lower().index(c.lower()) for c in text], "capital"),
    ("encode", lambda text, symbols: text, "is the text"),
    (
        "encode",
        lambda text, symbols: encode(text, symbols)[:2],
        "should be [1, 2, 4, 6], but is [1, 2]",
    ),
    ("examples", lambda c: [(c[: t + 1], c[t]) for t in range(len(c) - 1)], "its own context"),
    ("examples", lambda c: [([c[t]], c[t + 1]) for t in range(len(c) - 1)], "single token"),
    ("examples", lambda c: [(c[:t], c[t]) for t in range(len(c))], "context is empty"),
    ("examples", lambda c: examples(c)[:-1], "one fewer"),
    ("examples", lambda c: examples(c)[:1], "holds 4 examples, but you gave 1"),
    ("examples", lambda c: [(a[::-1], b) for a, b in examples(c)], "example 1 should be"),
    (
        "examples",
        lambda c: [([7, 3, 9, 4][: t + 1], [3, 9, 4, 1][t]) for t in range(4)],
        "a chunk of 2 tokens",
    ),
    ("examples", lambda c: c, "list of pairs"),
    ("get_batch", unshifted, "y equals x"),
    ("get_batch", two_steps, "y is 2 steps after x"),
    ("get_batch", lambda *a: get_batch(*a)[::-1], "y is -1 steps"),
    ("get_batch", two_draws, "different chunks"),
    ("get_batch", one_start, "same chunk"),
    ("get_batch", seeded, "do not seed"),
    ("get_batch", neighbours, "follow one another"),
    ("get_batch", only_the_beginning, "from the whole stream"),
    ("get_batch", lambda *a: [part.float() for part in get_batch(*a)], "whole numbers"),
    ("get_batch", lambda *a: [part.tolist() for part in get_batch(*a)], "whole numbers"),
    ("get_batch", last_start_missing, "last possible start"),
    ("get_batch", beyond_the_end, "last possible start"),
    ("get_batch", wrapped, "last possible start"),
    ("get_batch", whole_chunk, "block_size + 1 columns"),
    ("get_batch", places_not_tokens, "not their places"),
    ("get_batch", transposed, "x should have shape (8, 3), but has (3, 8)"),
    ("get_batch", scattered, "not consecutive"),
    ("get_batch", lambda *a: get_batch(*a)[0], "two tensors"),
    ("cross_entropy", lambda z, y: cross_entropy(z, y) * y.numel(), "sum over all"),
    ("cross_entropy", lambda z, y: -cross_entropy(z, y), "sign is missing"),
    ("cross_entropy", lambda z, y: cross_entropy(z, y) / math.log(2), "bits"),
    ("cross_entropy", lambda z, y: -picked(z.log_softmax(1), y).mean(), "over time"),
    ("cross_entropy", lambda z, y: -picked(z.log_softmax(0), y).mean(), "over the batch"),
    ("cross_entropy", lambda z, y: -picked(z, y).mean(), "averaged the logits"),
    ("cross_entropy", lambda z, y: picked(z.softmax(-1), y).mean(), "logarithm is missing"),
    ("cross_entropy", lambda z, y: -picked(z.softmax(-1), y).mean().log(), "mean of the"),
    ("cross_entropy", lambda z, y: -picked(z.log_softmax(-1), y)[..., 0], "surprises of all"),
    ("cross_entropy", lambda z, y: -picked(z.softmax(-1).log(), y).mean(), "log_softmax"),
    ("cross_entropy", lambda z, y: cross_entropy(z.softmax(-1), y), "Softmax twice"),
    ("cross_entropy", lambda z, y: -z.log_softmax(-1)[..., y].mean(), "every target"),
    ("cross_entropy", F.cross_entropy, "raised"),
    ("bigram_probabilities", lambda c, s: (c + s) / (c + s).sum(0, keepdim=True), "columns sum"),
    ("bigram_probabilities", lambda c, s: (c + s) / (c + s).sum(1), "without keepdim"),
    ("bigram_probabilities", lambda c, s: (c + s) / (c + s).sum(), "whole table sums to 1"),
    ("bigram_probabilities", lambda c, s: c / c.sum(1, keepdim=True), "forgot the smoothing"),
    (
        "bigram_probabilities",
        lambda c, s: (c + s) / c.sum(1, keepdim=True),
        "rows sum to more than 1",
    ),
    (
        "bigram_probabilities",
        lambda c, s: (c + s) / (c.sum(1, keepdim=True) + s),
        "smoothing times V",
    ),
    ("bigram_probabilities", lambda c, s: c / c.sum(1, keepdim=True) + s, "after dividing"),
    ("bigram_probabilities", lambda c, s: (c + s).softmax(1), "should be"),
    (
        "bigram_probabilities",
        lambda c, s: (c / c.sum(1, keepdim=True)).nan_to_num() + 0 * s,
        "forgot the smoothing",
    ),
    ("generate", always_from_the_start, "row of the start"),
    ("generate", always_the_likeliest, "argmax"),
    ("generate", any_that_can_follow, "frequencies differ"),
    ("generate", lambda t, s, n: [s, *generate(t, s, n)], "only the n new ids"),
    ("generate", lambda t, s, n: [s, *generate(t, s, n - 1)], "in place of the last"),
    ("generate", lambda t, s, n: generate(t.T, s, n), "columns"),
    ("generate", lambda t, s, n: generate(t, 0, n), "after id 0"),
    ("generate", seeded_text, "two calls"),
    ("generate", lambda t, s, n: [0, 2, 3, 1, 0, 2], "3000 ids"),
]


@pytest.mark.parametrize(("name", "mistake", "diagnosis"), MISTAKES)
def test_each_mistake_gets_its_own_diagnosis(name, mistake, diagnosis):
    report = getattr(check, name)(mistake)
    assert report.outcome == "not yet"
    assert diagnosis in report.message, report.message
