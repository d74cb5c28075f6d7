"""How a language model is trained: batches, the loss, its estimate, and the loop.

Every model of the course maps token ids of shape (B, T) to logits of shape (B, T, V): for each of
the B rows and T positions, one number per symbol of the vocabulary for what may come next.
"""

import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer
from tqdm import tqdm

from helpers.optimisers import adamw
from helpers.runs import Interrupt, Kept, Rates, Run


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
    learning_rate: float | None = None,
    weight_decay: float = 0.0,
    optimisers: Sequence[Optimizer] = (),
    schedule: Callable[[int, int], float] | None = None,
    clip: float | None = None,
    bf16: bool = False,
    generator: torch.Generator | None = None,
    validation: Tensor | None = None,
    evaluate_every: int | None = None,
    validation_batches: int | None = None,
    on_evaluation: Callable[[Run], None] | None = None,
    max_seconds: float | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: bool = False,
) -> Run:
    """Train the model in place; returns the `Run`: losses, evaluations, and how it ended.

    data: (N,) token ids, int64; steps: optimiser steps; block_size and batch_size: T and B of each
    batch; generator: for the batches.

    How steps are made: learning_rate and weight_decay for AdamW, or else `optimisers` of your own;
    schedule(step, steps): the share of the learning rate at a step, for example `cosine`; clip: the
    largest length of the gradient; bf16: compute with half the digits where the hardware can.

    What is watched: validation: (M,) ids whose loss is estimated every evaluate_every steps and at
    the end, on all of it or on `validation_batches` of random ones, always the same;
    on_evaluation: called with the run after each; progress: show a line that keeps itself up to
    date.

    What is kept: folder: gets `last.safetensors`, from which resume=True takes the run up again as
    if it had never stopped, at each evaluation and at the end, and for a GPT `best.safetensors`,
    the weights with the lowest validation loss. max_seconds of training end the run early, and so
    does an interrupt of the kernel (Ctrl-C), after the step in hand.

    Raises what `get_batch` raises, ValueError for settings that do not fit together, and
    FloatingPointError when the loss stops being a number. AdamW: Loshchilov and Hutter, 2019.
    Taught in chapter 02, and all of its settings in chapter 09.
    """
    if steps < 1:
        raise ValueError(f"steps should be at least 1, but is {steps}")
    if (learning_rate is None) == (not optimisers):
        raise ValueError("train wants a learning_rate, for AdamW, or else optimisers of your own")
    if resume and folder is None:
        raise ValueError("resume=True wants the folder of the run to take up again")
    _check_stream(data, block_size, batch_size)
    if validation is not None:
        _check_stream(validation, block_size, batch_size)
    elif evaluate_every is not None:
        raise ValueError("evaluate_every wants validation, the ids to evaluate on")
    if learning_rate is not None:
        optimisers = [adamw(model, learning_rate, weight_decay, betas=(0.9, 0.999))]
    device = next(model.parameters()).device
    data = data.to(device)
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=bf16 and _has_bf16(device))
    kept = Kept(
        folder, model, optimisers, generator, dict(block_size=block_size, batch_size=batch_size)
    )
    run = kept.start(resume)

    def evaluate() -> None:
        if validation is None or (run.evaluations and run.evaluations[-1][0] == run.step):
            return
        same = torch.Generator().manual_seed(0)  # the same batches every time
        with autocast:
            loss = estimate_loss(model, validation.to(device), block_size=block_size,
                                 batches=validation_batches, generator=same)  # fmt: skip
        best = loss < run.best
        run.evaluations.append((run.step, run.seconds, loss))
        kept.keep(run, best)
        if on_evaluation is not None:
            on_evaluation(run)

    model.train()
    bar = tqdm(total=steps, initial=run.step, disable=not progress, file=sys.stdout, unit=" steps")
    with Interrupt() as interrupt, Rates(optimisers) as rates, bar:
        while run.step < steps:
            if interrupt.requested or (max_seconds is not None and run.seconds >= max_seconds):
                run.stopped = "interrupted" if interrupt.requested else "time"
                break
            if evaluate_every and run.step % evaluate_every == 0:
                evaluate()
            start = time.perf_counter()
            rates.scale(1.0 if schedule is None else schedule(run.step, steps))
            x, y = get_batch(data, block_size, batch_size, generator)
            with autocast:
                loss = language_model_loss(model, x, y)
            if not math.isfinite(loss.item()):
                raise FloatingPointError(kept.what_failed(loss.item(), run))
            model.zero_grad()  # gradients add up: start each step from none
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            for optimiser in optimisers:
                optimiser.step()
            run.losses.append(loss.item())
            run.seconds += time.perf_counter() - start
            bar.update()
            bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
        if run.stopped != "interrupted":
            evaluate()
        kept.keep(run)
    return run


def _has_bf16(device: torch.device) -> bool:
    """Does this hardware multiply in bfloat16 faster than in float32?"""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    abilities = torch.cpu.get_capabilities()
    return bool(
        device.type == "cpu" and (abilities.get("avx512_bf16") or abilities.get("amx_bf16"))
    )
