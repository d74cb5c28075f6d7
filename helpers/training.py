"""Training of language models: batches, the loss and its estimate, optimizers, the loop.

Every model of the course maps token ids of shape (B, T) to logits of shape (B, T, V): for each of
the B rows and T positions, one number per symbol of the vocabulary for what may come next.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from helpers.checks import (
    check_count,
    check_finite,
    check_optimizers,
    check_settings,
    check_stream,
    to_device_of,
)

Schedule = Callable[[int, int], float]  # (step, steps) → the factor on the learning rates


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put the model into evaluation mode in the `with` block; then each module gets its mode back.

    Taught in: language_modelling.
    """
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        yield
    finally:
        model.train(modes[model])
        for module, training in modes.items():
            module.training = training


# --- what is read, and the loss ------------------------------------------------------------------


def get_batch(
    data: Tensor, block_size: int, batch_size: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Return a random batch of the stream: inputs x and targets y, both of shape (B, T).

    Args:
        data: token ids (N,), int64.
        block_size: T, tokens per row.
        batch_size: B, rows.
        generator: draws where the rows start, on the CPU.

    y is x shifted by one token: y[b, t] is the token that follows x[b, t].
    Raises TypeError or ValueError if data is not a 1-D int64 tensor of at least T + 1 tokens.
    Taught in: language_modelling.
    """
    check_stream(data, block_size, batch_size)
    # subtle: the last start is N − T − 1, so that the last target is the last token; randint's
    # upper bound is exclusive.
    high = len(data) - block_size
    starts = torch.randint(high, (batch_size, 1), generator=generator, device="cpu")
    positions = (starts + torch.arange(block_size, device="cpu")).to(data.device)  # (B, T)
    return data[positions], data[positions + 1]


def language_model_loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Return the cross-entropy of the model's next-token predictions in nats, a scalar.

    Args:
        model: maps ids (B, T) to logits (B, T, V).
        x: token ids (B, T).
        y: the tokens that follow, (B, T).

    The mean runs over all B·T positions.
    Raises ValueError unless the model gives logits of shape (B, T, V).
    Taught in: language_modelling.
    """
    x, y = to_device_of(model, x), to_device_of(model, y)
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
    """Return the model's mean loss on `data` in nats, without training it.

    Args:
        model, data, block_size, batch_size: as in `train`.
        batches: how many random batches to draw with `generator`; None: go once through the whole
            stream in chunks of block_size, so that each token but the first is predicted once.

    The model runs in evaluation mode; afterwards each of its modules gets its own mode back.
    Raises what `get_batch` raises. Explained in: language_modelling.
    """
    check_stream(data, block_size, batch_size)
    if batches is not None:
        check_count("batches", batches)
    total, count = 0.0, 0
    pairs: Iterable[tuple[Tensor, Tensor]] = (
        _whole_stream(data, block_size, batch_size)
        if batches is None
        else (get_batch(data, block_size, batch_size, generator) for _ in range(batches))
    )
    with evaluating(model):
        for x, y in pairs:
            total += language_model_loss(model, x, y).item() * y.numel()
            count += y.numel()
    return total / count


def _whole_stream(data: Tensor, block_size: int, batch_size: int) -> list[tuple[Tensor, Tensor]]:
    """Every (input, target) of the stream once; the last row may be shorter. Views, no copies."""
    whole = (len(data) - 1) // block_size * block_size
    x, y = data[:whole].view(-1, block_size), data[1 : whole + 1].view(-1, block_size)
    pairs = list(zip(x.split(batch_size), y.split(batch_size), strict=True))
    if whole < len(data) - 1:
        pairs.append((data[None, whole:-1], data[None, whole + 1 :]))
    return pairs


# --- what turns gradients into steps --------------------------------------------------------------


# Schedules.


def cosine_schedule(step: int, steps: int, warmup: int = 0, final: float = 0.1) -> float:
    """Return the factor on the learning rate at a step: linear warm-up, then cosine decay.

    Args:
        step: counted from 0.
        steps: of the whole run.
        warmup: steps of the warm-up.
        final: the factor at the end.

    Loshchilov and Hutter 2017, "SGDR". Taught in: training.
    """
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    return final + (1 - final) * (1 + math.cos(math.pi * min(1.0, done))) / 2


def wsd_schedule(step: int, steps: int, warmup: int = 10, decay_frac: float = 0.6) -> float:
    """Return the factor on the learning rate at a step: warm-up, stable, linear decay to zero.

    Args:
        step: counted from 0.
        steps: of the whole run.
        warmup: steps of the linear warm-up.
        decay_frac: the fraction of the run that decays; 0: no decay.

    Hu et al. 2024, "MiniCPM" (warmup–stable–decay). Taught in: training_fast.
    """
    up = (step + 1) / max(1, warmup)
    down = (steps - step) / max(1.0, decay_frac * steps)
    return max(0.0, min(1.0, up, down))


# --- the loop ------------------------------------------------------------------------------------


def train(
    model: nn.Module,
    data: Tensor,
    *,
    steps: int,
    block_size: int,
    batch_size: int,
    optimizer: Optimizer | Sequence[Optimizer],
    schedule: Schedule | None = None,
    grad_clip: float | None = None,
    generator: torch.Generator | None = None,
    callback: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train a language model in place; returns the loss of each step's batch, in nats.

    Args:
        model: maps ids (B, T) to logits (B, T, V).
        data: the text as one stream of token ids, (N,), int64.
        steps: number of optimizer steps.
        block_size: T, tokens per row of a batch.
        batch_size: B, rows per batch.
        optimizer: one for all parameters of the model, or several for different ones.
        schedule: schedule(step, steps) is the factor on the rates: `cosine_schedule`, say.
        grad_clip: largest norm of the gradient; None: gradients are not clipped.
        generator: draws the batches.
        callback: called with the step's number and its loss after each step.

    For a run with evaluations, checkpoints and interrupts use `helpers.runs.trainer.Trainer`.
    Raises what `get_batch` raises; TypeError for what is not an optimizer; ValueError for settings
    out of range and an optimizer of another model; FloatingPointError once the loss is not finite.
    Taught in: language_modelling; schedule, grad_clip and several optimizers in: training.
    """
    optimizers = check_optimizers(optimizer, model)
    check_settings(steps=steps, grad_clip=grad_clip)
    check_stream(data, block_size, batch_size)
    data = to_device_of(model, data)
    schedulers = learning_rates(optimizers, schedule, steps)
    losses: list[float] = []
    model.train()
    for step in range(steps):
        x, y = get_batch(data, block_size, batch_size, generator)
        loss = language_model_loss(model, x, y)
        losses.append(loss.item())
        check_finite(losses)
        model.zero_grad()  # gradients add up: start each step from zero
        loss.backward()
        if grad_clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        for optimizer in optimizers:
            optimizer.step()
        for scheduler in schedulers:
            scheduler.step()
        if callback is not None:
            callback(step, losses[-1])
    return losses


def learning_rates(
    optimizers: Sequence[Optimizer], schedule: Schedule | None, steps: int, start: int = 0
) -> list[LambdaLR]:
    """Return a `LambdaLR` per optimizer that multiplies its rates by schedule(step, steps).

    start: the step that is taken first, above 0 in a resumed run. Without a schedule, none.
    Taught in: training.
    """
    if schedule is None:
        return []
    # After the last step LambdaLR asks for the factor of one more.
    last = steps - 1
    return [LambdaLR(o, lambda n: schedule(min(start + n, last), steps)) for o in optimizers]


# --- a GPT that learns fast on a small machine: the selection that won (benchmarks/training.py) ---
