"""The exercises of chapter 02 beyond what their declaration says."""

import random
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises import language_modelling as check
from exercises.language_modelling import at, examples, walk


def batch(starts_for):
    """get_batch with the given way to draw the starts."""

    def get_batch(data, size, rows):
        places = torch.as_tensor(starts_for(len(data), size, rows))[:, None] + torch.arange(size)
        return data[places], data[places + 1]

    return get_batch


def any_starts(n, size, rows):
    return torch.randint(n - size, (rows,))


get_batch = batch(any_starts)


def shuffled(n, size, rows):
    return torch.randperm(n - size)[:rows]


def slices(data, size, rows):
    starts = [random.randrange(len(data) - size) for _ in range(rows)]
    return [torch.stack([data[i + j : i + j + size] for i in starts]) for j in (0, 1)]


def one_by_one(logits, y):
    total = 0.0
    for row, targets in zip(logits, y, strict=True):
        for z, target in zip(row, targets, strict=True):
            total = total - (z[target] - z.max() - (z - z.max()).exp().sum().log())
    return total / y.numel()


def in_numpy(logits, y):
    z = logits.numpy() - logits.numpy().max(-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(-1, keepdims=True))
    return -np.take_along_axis(logp, y.numpy()[..., None], -1).mean()


def tensors(chunk):
    chunk = torch.tensor(chunk)
    return [[chunk[: t + 1], chunk[t + 1]] for t in range(len(chunk) - 1)]


def by_choices(table, start, n):
    ids = [start]
    while len(ids) <= n:
        ids += random.choices(range(len(table)), table[ids[-1]].tolist())
    return ids[1:]


def counted_one_by_one(counts, smoothing):
    rows = [[float(count) + smoothing for count in row] for row in counts]
    return [[count / sum(row) for count in row] for row in rows]


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (check.encode, lambda t, s: torch.tensor([s.index(c) for c in t])),
        (check.encode, lambda t, s: np.array([s.find(c) for c in t], dtype=int)),
        (check.examples, tensors),
        (check.get_batch, get_batch),
        (check.get_batch, slices),
        (check.cross_entropy, one_by_one),
        (check.cross_entropy, in_numpy),
        (check.cross_entropy, lambda z, y: (z.logsumexp(-1) - at(z, y)).mean().item()),
        (check.cross_entropy, lambda z, y: F.nll_loss(z.log_softmax(-1).mT, y)),
        (check.bigram_probabilities, counted_one_by_one),
        (check.generate, by_choices),
        (check.generate, lambda *of: torch.tensor(walk(*of))),
    ],
)
def test_other_right_answers_are_right(exercise, answer):
    assert exercise(answer).outcome == "right", exercise(answer)


def one_growing_list(chunk):
    context, pairs = [], []
    for token, target in pairwise(chunk):
        context.append(token)
        pairs.append((context, target))
    return pairs


def two_starts(n, size, rows):
    return torch.tensor([0, n - size - 1])[torch.randint(2, (rows,))]


def even(n, size, rows):
    return 2 * torch.randint((n - size + 1) // 2, (rows,))


def clamped(n, size, rows):
    return torch.randint(n, (rows,)).clamp(max=n - size - 1)


def neighbours(n, size, rows):
    return (torch.randint(n - size, (1,)) + torch.arange(rows)) % (n - size)


def two_draws(*given):
    return get_batch(*given)[0], get_batch(*given)[1]


def next_chunk(data, size, rows):
    starts = torch.randint(len(data) - 2 * size, (rows, 1)) + torch.arange(size)
    return data[starts], data[starts + size]


def two_steps(data, size, rows):
    starts = torch.randint(len(data) - size - 1, (rows, 1)) + torch.arange(size)
    return data[starts], data[starts + 2]


def wrapped(data, size, rows):
    places = torch.randint(len(data) - size + 1, (rows, 1)) + torch.arange(size)
    return data[places], data.roll(-1)[places]


def rolled(*given):
    x, _ = get_batch(*given)
    return x, x.roll(-1, 1)


def whole_chunk(data, size, rows):
    x, y = get_batch(data, size, rows)
    return torch.cat([x, y[:, -1:]], 1), y


def scattered(data, size, rows):
    places = torch.randint(len(data) - size, (rows, size))
    return data[places], data[places + 1]


def places_not_tokens(data, size, rows):
    places = any_starts(len(data), size, rows)[:, None] + torch.arange(size)
    return places, places + 1


def seeded(function):
    def answer(*given):
        torch.manual_seed(0)
        return function(*given)

    return answer


def likeliest(table, start, n):
    return walk(F.one_hot(table.argmax(1)).float(), start, n)


def from_anywhere(table, start, n):
    return walk(table, int(torch.randint(len(table), ())), n)


@pytest.mark.parametrize(
    ("exercise", "answer", "words"),
    [
        (check.encode, lambda t, s: [s.index(c) for c in t][:2], "[1, 2, 4, 6], but is [1, 2]"),
        (check.examples, one_growing_list, "one growing list"),
        (check.examples, lambda c: examples.right([7, 3, 9, 4, 1]), "examples([5, 8]) should be"),
        (check.examples, lambda c: c, "should be [([7], 3), "),
        (check.get_batch, lambda *of: (get_batch(*of)[0],) * 2, "y equals x"),
        (check.get_batch, two_steps, "y is 2 steps after x"),
        (check.get_batch, next_chunk, "y is the chunk after x"),
        (check.get_batch, lambda *of: get_batch(*of)[::-1], "swapped"),
        (check.get_batch, two_draws, "different chunks"),
        (check.get_batch, batch(lambda n, T, B: any_starts(n, T, 1).expand(B)), "same chunk"),
        (check.get_batch, seeded(get_batch), "do not seed"),
        (check.get_batch, batch(neighbours), "follow one another"),
        (check.get_batch, batch(two_starts), "only 2 different starts"),
        (check.get_batch, batch(even), "multiple of 2"),
        (check.get_batch, batch(lambda n, T, B: 1 + even(n - 1, T, B)), "multiple of 2"),
        (check.get_batch, batch(lambda n, T, B: any_starts(min(99, n), T, B)), "the whole stream"),
        (check.get_batch, batch(lambda n, T, B: any_starts(n - 1, T, B)), "the last len(data)"),
        (check.get_batch, batch(lambda n, T, B: any_starts(n - 1, T, B) + 1), "started at 0"),
        (check.get_batch, batch(lambda n, T, B: any_starts(n + 1, T, B)), "the last len(data)"),
        (check.get_batch, batch(clamped), "times as often"),
        (check.get_batch, batch(shuffled), "without replacement"),
        (check.get_batch, batch(lambda n, T, B: random.sample(range(n - T), B)), "replacement"),
        (check.get_batch, wrapped, "the last len(data)"),
        (check.get_batch, lambda *of: [p.float() for p in get_batch(*of)], "whole numbers"),
        (check.get_batch, lambda *of: [p.tolist() for p in get_batch(*of)], "whole numbers"),
        (check.get_batch, rolled, "cut y from data"),
        (check.get_batch, whole_chunk, "block_size + 1 columns"),
        (check.get_batch, lambda *of: [p[:, 1:] for p in get_batch(*of)], "block_size − 1 columns"),
        (check.get_batch, lambda *of: [p[0] for p in get_batch(*of)], "a single chunk"),
        (check.get_batch, lambda *of: (get_batch(*of)[0], get_batch(*of)[1][:, -1]), "one token"),
        (check.get_batch, places_not_tokens, "not their places"),
        (check.get_batch, lambda *of: [p.T for p in get_batch(*of)], "(8, 3), but has (3, 8)"),
        (check.get_batch, scattered, "not consecutive"),
        (check.get_batch, lambda *of: get_batch(*of)[0], "two tensors"),
        (check.cross_entropy, lambda z, y: F.cross_entropy(z.mT, y), "torch's own"),
        (check.cross_entropy, lambda z, y: one_by_one(z, y).detach(), "no gradient"),
        (check.cross_entropy, lambda z, y: -at(z.softmax(-1).log().clamp(-99), y).mean(), "1000"),
        (check.bigram_probabilities, lambda c, s: (c + s) / (c + s).sum(1, True).clamp(1), "index"),
        (check.generate, likeliest, "argmax"),
        (check.generate, lambda t, *of: walk((t > 0).float(), *of), "equally often"),
        (check.generate, lambda t, *of: walk((99 * (t == 1) + t).softmax(1), *of), "softmax"),
        (check.generate, lambda t, *of: walk(t**3, *of), "frequencies differ"),
        (check.generate, seeded(walk), "two calls"),
        (check.generate, lambda t, s, n: [0, 2, 3, 1, 0, 2], "leaves no choice"),
        (check.generate, from_anywhere, "from the row of `start`"),
    ],
)  # fmt: skip
def test_other_mistakes_are_told(exercise, answer, words):
    report = exercise(answer)
    assert report.outcome == "not yet"
    assert words in report.message
