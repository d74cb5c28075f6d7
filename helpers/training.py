"""Training of language models: batches, the loss and its estimate, schedules, the loop.

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

Schedule = Callable[[int, int], float]  # (step, steps) → the factor on the learning rates


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put the model into evaluation mode in the `with` block; then each module gets its mode back.

    Explained in: language_modelling.
    """
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def to_device_of(model: nn.Module, tensor: Tensor) -> Tensor:
    """The tensor where the model is: data and ids follow it to a GPU.

    Draws do not: they are made on the CPU and then moved, so that a seed means the same everywhere.
    Explained in: training.
    """
    weight = next(model.parameters(), tensor) if isinstance(model, nn.Module) else tensor
    return tensor.to(weight.device)


# --- what is read, and the loss ------------------------------------------------------------------


def get_batch(
    data: Tensor, block_size: int, batch_size: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """A random batch of a stream of ids (N,): inputs x and targets y, both of shape (B, T).

    y is x shifted by one token: y[b, t] is the token that follows x[b, t]. The generator draws
    where the rows start, on the CPU. Taught in: language_modelling.
    """
    # subtle: the last start is N − T − 1, so that the last target is the last token; randint's
    # upper bound is exclusive.
    high = len(data) - block_size
    starts = torch.randint(high, (batch_size, 1), generator=generator, device="cpu")
    starts = starts.to(data.device, non_blocking=data.is_cuda)  # without waiting for the GPU
    positions = starts + torch.arange(block_size, device=data.device)  # (B, T)
    return data[positions], data[positions + 1]


def language_model_loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The mean cross-entropy in nats of predicting y (B, T), the tokens that follow x (B, T).

    Raises ValueError unless the model gives logits of shape (B, T, V).
    Taught in: language_modelling.
    """
    x, y = to_device_of(model, x), to_device_of(model, y)
    logits = model(x)  # (B, T, V)
    if logits.dim() != 3 or logits.shape[:2] != y.shape:
        raise ValueError(f"logits should be (*{tuple(y.shape)}, V), but are {tuple(logits.shape)}")
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
    """The model's mean loss on `data` in nats, in evaluation mode.

    batches: how many random batches to draw with `generator`; None: go once through the whole
    stream in rows of block_size, so that each token but the first is predicted once.
    Explained in: language_modelling.
    """
    pairs: Iterable[tuple[Tensor, Tensor]] = (
        _whole_stream(data, block_size, batch_size)
        if batches is None
        else (get_batch(data, block_size, batch_size, generator) for _ in range(batches))
    )
    total, count = 0.0, 0
    with evaluating(model):
        for x, y in pairs:
            total += language_model_loss(model, x, y).item() * y.numel()
            count += y.numel()
    return total / count


def _whole_stream(data: Tensor, block_size: int, batch_size: int) -> list[tuple[Tensor, Tensor]]:
    """Every (input, target) of the stream once; the last row may be shorter. Views, no copies."""
    whole = (len(data) - 1) // block_size * block_size
    x, y = (part.unflatten(0, (-1, block_size)) for part in (data[:whole], data[1 : whole + 1]))
    pairs = list(zip(x.split(batch_size), y.split(batch_size), strict=True))
    if whole < len(data) - 1:
        pairs.append((data[None, whole:-1], data[None, whole + 1 :]))
    return pairs


# --- schedules: the factor on the learning rate at a step, counted from 0 -------------------------


def cosine_schedule(step: int, steps: int, warmup: int = 0, final: float = 0.1) -> float:
    """Linear warm-up in `warmup` steps, then half a cosine from 1 down to `final`.

    Loshchilov and Hutter 2017, "SGDR". Taught in: training.
    """
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    return final + (1 - final) * (1 + math.cos(math.pi * min(1.0, done))) / 2


def wsd_schedule(step: int, steps: int, warmup: int = 10, decay_frac: float = 0.6) -> float:
    """Warm-up in `warmup` steps, stable, linear decay to zero in the fraction decay_frac of a run.

    Hu et al. 2024, "MiniCPM" (warmup–stable–decay). Taught in: training_fast.
    """
    up = (step + 1) / max(1, warmup)
    down = (steps - step) / max(1.0, decay_frac * steps)
    return max(0.0, min(1.0, up, down))


def learning_rates(
    optimizers: Sequence[Optimizer], schedule: Schedule | None, steps: int, start: int = 0
) -> list[LambdaLR]:
    """A `LambdaLR` per optimizer that multiplies its rates by schedule(step, steps).

    start: the step that is taken first, above 0 in a resumed run. Without a schedule, none.
    Explained in: training.
    """
    if schedule is None:
        return []
    # After the last step LambdaLR asks for the factor of one more.
    last = steps - 1
    return [LambdaLR(o, lambda n: schedule(min(start + n, last), steps)) for o in optimizers]


def expect_all_stepped(optimizers: Sequence[Optimizer], model: nn.Module) -> None:
    """Without a word, an optimizer of another model, or of frozen weights, would train nothing.

    Explained in: fine_tuning.
    """
    stepped = {p for o in optimizers for group in o.param_groups for p in group["params"]}
    for name, p in model.named_parameters():
        if p.requires_grad and p not in stepped:
            raise ValueError(
                f"no optimizer steps {name}. Make the optimizer after the model and its adapters, "
                "and freeze what is not to be trained with requires_grad_(False)"
            )


# --- the loop ------------------------------------------------------------------------------------


def minimize(
    loss_of: Callable[[int], Tensor],
    model: nn.Module,
    optimizers: Optimizer | Iterable[Optimizer],
    steps: int,
    schedule: Schedule | None = None,
    grad_clip: float | None = None,
    callback: Callable[[int, float], None] | None = None,
) -> list[float]:
    """The loop of every training: loss_of(step) is a scalar; returns the loss of each step.

    The other arguments are those of `train`. Explained in: training.
    """
    optimizers = [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)
    schedulers = learning_rates(optimizers, schedule, steps)
    losses: list[float] = []
    for step in range(steps):
        loss = loss_of(step)
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(f"the loss is {losses[-1]} at step {step}: a rate too high?")
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


def train(
    model: nn.Module,
    data: Tensor,
    *,
    steps: int,
    block_size: int,
    batch_size: int,
    optimizer: Optimizer | Iterable[Optimizer],
    schedule: Schedule | None = None,
    grad_clip: float | None = None,
    generator: torch.Generator | None = None,
    callback: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train a language model in place on a stream of ids (N,); returns each step's loss in nats.

    Each step takes batch_size random rows of block_size tokens. optimizer: one for all parameters,
    or several for different ones. schedule(step, steps): the factor on the rates, for example
    `cosine_schedule`. grad_clip: the largest norm of the gradient. callback(step, loss): called
    after each step. For a run with evaluations, checkpoints and interrupts use
    `helpers.runs.trainer.Trainer`.
    Taught in: language_modelling; schedule, grad_clip and several optimizers in: training.
    """
    data = to_device_of(model, data)
    optimizers = [optimizer] if isinstance(optimizer, Optimizer) else list(optimizer)
    expect_all_stepped(optimizers, model)

    def loss_of(step: int) -> Tensor:
        return language_model_loss(model, *get_batch(data, block_size, batch_size, generator))

    model.train()
    return minimize(loss_of, model, optimizers, steps, schedule, grad_clip, callback)
