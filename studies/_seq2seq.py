"""The tasks of the chapter encoders_decoders: words written backwards, dates in another order.

The right answer is known, and so is the right order of looking.
"""

import string
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.optimizers import adamw
from helpers.seq2seq import END, START, greedy_decode, padded
from helpers.training import wsd_schedule

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
Pairs = list[tuple[str, str]]  # (source, target)


def reversals(n: int, shortest: int, longest: int, generator: torch.Generator) -> Pairs:
    """n words of random letters with those words written backwards: ("abc", "cba").

    Their lengths are drawn evenly from shortest to longest.
    """
    lengths = torch.randint(shortest, longest + 1, (n,), generator=generator).tolist()
    drawn = torch.randint(26, (n, longest), generator=generator).tolist()
    rows = zip(drawn, lengths, strict=True)
    words = ["".join(string.ascii_lowercase[i] for i in row[:size]) for row, size in rows]
    return [(word, word[::-1]) for word in words]


def dates(n: int, generator: torch.Generator) -> Pairs:
    """n days of the years 1000 to 2999, in words and in ISO 8601: ("3 May 1979", "1979-05-03").

    Months have 28 days here.
    """
    years = torch.randint(1000, 3000, (n,), generator=generator).tolist()
    months = torch.randint(12, (n,), generator=generator).tolist()
    days = torch.randint(1, 29, (n,), generator=generator).tolist()
    return [
        (f"{day} {MONTHS[month]} {year}", f"{year}-{month + 1:02}-{day:02}")
        for year, month, day in zip(years, months, days, strict=True)
    ]


def pairs_to_ids(pairs: Pairs) -> tuple[Tensor, Tensor, Tensor]:
    """What is read, what the decoder is given, and what it should write: (B, S), (B, T), (B, T)."""
    source = padded([text + END for text, _ in pairs])
    target = padded([START + text + END for _, text in pairs])
    return source, target[:, :-1], target[:, 1:]


def fit(
    model: nn.Module,
    draw: Callable[[int, torch.Generator], Pairs],
    steps: int,
    generator: torch.Generator,
    learning_rate: float = 0.006,
) -> list[float]:
    """Train an encoder–decoder on pairs from draw(n, generator); the loss of each step in nats.

    The decoder gets the correct letters so far ("teacher forcing"). Padding does not count.
    """
    device = next(model.parameters()).device
    optimizer, losses = adamw(model, learning_rate, weight_decay=0.01), []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * wsd_schedule(step, steps, warmup=50)
        batch = pairs_to_ids(draw(64, generator))
        source, decoder_input, target = (ids.to(device) for ids in batch)
        logits = model(source, decoder_input)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def exact_match(model: nn.Module, pairs: Pairs) -> float:
    """Accuracy: the fraction of outputs that are right to the last letter."""
    found = greedy_decode(model, [source for source, _ in pairs])
    return sum(text == right for text, (_, right) in zip(found, pairs, strict=True)) / len(pairs)
