"""How a language model is trained: batches, the loss, its estimate, and the loop.

Every model of the course maps token ids of shape (B, T) to logits of shape (B, T, V): for each of
the B rows and T positions, one number per symbol of the vocabulary for what may come next.
"""

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def _check_stream(data: Tensor, block_size: int, batch_size: int) -> None:
    """Raise a clear error unless batches of that size can be cut from `data`."""
    if not isinstance(data, Tensor):
        raise TypeError(
            f"data should be a tensor of token ids, not a {type(data).__name__}. "
            "Make one with torch.tensor(tokenizer.encode(text))"
        )
    if data.dim() != 1:
        raise ValueError(
            f"data should be one stream of ids, shape (N,), but has shape {tuple(data.shape)}"
        )
    if data.dtype != torch.int64:
        raise TypeError(f"token ids should be torch.int64, but are {data.dtype}. Use data.long()")
    for name, value in (("block_size", block_size), ("batch_size", batch_size)):
        if value < 1:
            raise ValueError(f"{name} should be at least 1, but is {value}")
    if len(data) < block_size + 1:
        raise ValueError(
            f"one chunk needs block_size + 1 = {block_size + 1} tokens, but data has "
            f"{len(data)}. Use a smaller block_size or a longer text"
        )


def get_batch(
    data: Tensor, block_size: int, batch_size: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Random chunks of the stream: inputs x and targets y, both of shape (B, T).

    data: (N,) token ids, int64; block_size: T, tokens per row; batch_size: B, rows; generator: the
    source of the random starts. y is x moved on by one token: y[b, t] is what follows x[b, t].

    Raises TypeError or ValueError if data is not a 1-D int64 tensor of at least T + 1 tokens.
    Taught in chapter 02.
    """
    _check_stream(data, block_size, batch_size)
    # subtle: the last start is N − T − 1, so that the last target is the last token; randint's
    # upper bound is exclusive.
    starts = torch.randint(len(data) - block_size, (batch_size,), generator=generator)
    places = (starts[:, None] + torch.arange(block_size)).to(data.device)  # (B, T)
    return data[places], data[places + 1]


def language_model_loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of the model's next-token predictions: the mean surprise, in nats, a scalar.

    x: (B, T) token ids; y: (B, T) the tokens that follow. The mean runs over all B·T positions.
    Raises ValueError unless the model gives logits of shape (B, T, V). Taught in chapter 02.
    """
    logits = model(x)
    if logits.dim() != 3 or logits.shape[:2] != y.shape:
        raise ValueError(
            f"the model should map ids of shape {tuple(x.shape)} to logits of shape "
            f"(*{tuple(y.shape)}, V), but gave {tuple(logits.shape)}"
        )
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())  # (B·T, V) and (B·T,)


@torch.no_grad()
def estimate_loss(
    model: nn.Module,
    data: Tensor,
    *,
    block_size: int,
    batch_size: int = 64,
    batches: int | None = None,
    generator: torch.Generator | None = None,
) -> float:
    """The model's mean loss on `data` in nats, without training it.

    batches: None to go once through the whole stream, in chunks of block_size, so that each token
    but the first is predicted once; a number to sample so many random batches with `generator`.
    The model runs in evaluation mode and gets its mode back afterwards.

    Raises what `get_batch` raises. Taught in chapter 02.
    """
    _check_stream(data, block_size, batch_size)
    if batches is not None and batches < 1:
        raise ValueError(f"batches should be at least 1 or None, but is {batches}")
    was_training = model.training
    model.eval()
    total, count = 0.0, 0
    pairs: Iterable[tuple[Tensor, Tensor]]
    try:
        if batches is None:
            pairs = _whole_stream(data, block_size, batch_size)
        else:
            draws = range(batches)
            pairs = (get_batch(data, block_size, batch_size, generator) for _ in draws)
        for x, y in pairs:
            total += language_model_loss(model, x, y).item() * y.numel()
            count += y.numel()
    finally:
        model.train(was_training)
    return total / count


def _whole_stream(data: Tensor, block_size: int, batch_size: int) -> list[tuple[Tensor, Tensor]]:
    """Every (input, target) of the stream once; the last row may be shorter. Views, no copies."""
    whole = (len(data) - 1) // block_size * block_size
    x, y = data[:whole].view(-1, block_size), data[1 : whole + 1].view(-1, block_size)
    pairs = list(zip(x.split(batch_size), y.split(batch_size), strict=True))
    if whole < len(data) - 1:
        pairs.append((data[None, whole:-1], data[None, whole + 1 :]))
    return pairs


def train(
    model: nn.Module,
    data: Tensor,
    *,
    steps: int,
    block_size: int,
    batch_size: int,
    learning_rate: float,
    weight_decay: float = 0.0,
    generator: torch.Generator | None = None,
) -> list[float]:
    """Train the model in place with AdamW; returns the loss of each step's batch, in nats.

    data: (N,) token ids, int64, on the model's device; steps: optimiser steps; block_size and
    batch_size: T and B of each batch; learning_rate: the size of a step; weight_decay: the share
    of itself, times learning_rate, that each parameter loses a step; generator: for the batches.

    Raises what `get_batch` raises, and FloatingPointError when the loss stops being a number.
    AdamW: Loshchilov and Hutter, 2019. Taught in chapter 02.
    """
    if steps < 1:
        raise ValueError(f"steps should be at least 1, but is {steps}")
    optimiser = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=weight_decay)
    losses: list[float] = []
    model.train()
    for step in range(steps):
        x, y = get_batch(data, block_size, batch_size, generator)
        loss = language_model_loss(model, x, y)
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(
                f"the loss is {losses[-1]} at step {step}: try a learning_rate below "
                f"{learning_rate}"
            )
        optimiser.zero_grad()  # gradients add up: start each step from none
        loss.backward()
        optimiser.step()
    return losses
