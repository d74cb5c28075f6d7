"""How a language model is trained: batches, the loss and its estimate, optimisers, the loop.

Every model of the course maps token ids of shape (B, T) to logits of shape (B, T, V): for each of
the B rows and T positions, one number per symbol of the vocabulary for what may come next.
"""

import ctypes
import math
import operator
import platform
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer
from tqdm import tqdm

from helpers.checkpoints import RunFolder, evaluating, infinite_constants, not_finite
from helpers.distributed import Processes, clip_gradients, divided_like, shared, whole
from helpers.gpt import GPT, GPTConfig, SquaredReLU
from helpers.positions import Rotary

# --- what is read, and the loss ------------------------------------------------------------------


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
        _expect_whole(name, value)
        if value < 1:
            raise ValueError(f"{name} should be at least 1, but is {value}")
    if len(data) < block_size + 1:
        raise ValueError(
            f"one chunk needs block_size + 1 = {block_size + 1} tokens, but data has "
            f"{len(data)}. Use a smaller block_size or a longer text"
        )


def _expect_whole(name: str, value: Any) -> None:
    """Raise TypeError for 2.5 and "2", and also for True."""
    try:
        whole = not isinstance(value, bool) and operator.index(value) == value
    except TypeError:
        whole = False
    if not whole:
        raise TypeError(f"{name} should be a whole number, but is {value!r}")


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
    The model runs in evaluation mode and each of its modules gets its own mode back afterwards.

    Raises what `get_batch` raises. Taught in chapter 02.
    """
    _check_stream(data, block_size, batch_size)
    if batches is not None:
        _expect_whole("batches", batches)
        if batches < 1:
            raise ValueError(f"batches should be at least 1 or None, but is {batches}")
    total, count = 0.0, 0
    pairs: Iterable[tuple[Tensor, Tensor]]
    if batches is None:
        pairs = _whole_stream(data, block_size, batch_size)
    else:
        draws = range(batches)
        pairs = (get_batch(data, block_size, batch_size, generator) for _ in draws)
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


def adamw(
    model: nn.Module,
    learning_rate: float,
    weight_decay: float = 0.1,
    betas: tuple[float, float] = (0.9, 0.95),
) -> AdamW:
    """AdamW that decays matrices and tables, but not biases and the gains of norms.

    learning_rate: the size of a step; weight_decay: the share of itself, times learning_rate, that
    a matrix loses a step; betas: how slowly the averages of the gradient and of its square move.

    Raises ValueError for numbers below 0.
    Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization". Taught in chapter 10.
    """
    if not weight_decay >= 0:  # torch looks at its own, not at those of the groups
        raise ValueError(f"weight_decay should be 0 or more, but is {weight_decay}")
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    groups = [g for g in groups if g["params"]]
    return AdamW(groups, lr=learning_rate, betas=betas, fused=_can_be_fused(model))


def _can_be_fused(model: nn.Module) -> bool:
    """Whether one kernel can make the whole update: it takes no mixture of tensors that are divided
    among processes with tensors that are not."""
    return len({type(p.data) for p in model.parameters()}) == 1


class Muon(Optimizer):
    """Momentum whose step is made orthogonal, for the matrices inside the blocks.

    The step U Σ Vᵀ becomes about U Vᵀ: every direction in which the gradient asks for a change gets
    a step of the same size, not only the strongest ones.

    matrices: parameters with two dimensions; learning_rate: of a square matrix, those with more
    rows than columns get √(rows / columns) of it; momentum: how slowly the average of the gradients
    moves; weight_decay: as in AdamW. Raises ValueError for parameters that are not matrices, for
    none, and for numbers below 0 or a momentum of 1 or more.

    Jordan et al. 2024, "Muon". Matrices of one shape are stepped together, which on a CPU is what
    makes it fast; of processes that train together each makes its share of the steps orthogonal.
    Taught in chapter 10.
    """

    def __init__(
        self,
        matrices: list[nn.Parameter],
        learning_rate: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
    ):
        matrices = list(matrices)
        for p in matrices:
            if p.dim() != 2:
                raise ValueError(f"Muon steps matrices; shape {tuple(p.shape)} belongs to AdamW")
        for name, number in (("learning_rate", learning_rate), ("weight_decay", weight_decay)):
            if not 0 <= number < math.inf:
                raise ValueError(f"{name} should be 0 or more, but is {number}")
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum should be at least 0 and below 1, but is {momentum}")
        settings = dict(lr=learning_rate, momentum=momentum, weight_decay=weight_decay)
        by_shape: dict[torch.Size, list[nn.Parameter]] = {}
        for p in matrices:
            by_shape.setdefault(p.shape, []).append(p)
        super().__init__([{"params": group} for group in by_shape.values()], settings)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            averages = []
            for p in params:
                state = self.state[p]
                if not state:
                    state["average"] = torch.zeros_like(p)
                averages.append(state["average"])
            gradients = [p.grad for p in params]
            torch._foreach_lerp_(averages, gradients, 1 - group["momentum"])
            directions = torch._foreach_lerp(gradients, averages, group["momentum"])
            steps = shared(orthogonal, torch.stack([whole(d) for d in directions]))
            rate = group["lr"] * math.sqrt(max(1.0, steps.shape[-2] / steps.shape[-1]))
            if group["weight_decay"]:
                torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            own = [divided_like(step, p) for step, p in zip(steps, params, strict=True)]
            torch._foreach_add_(params, own, alpha=-rate)
        return loss


def orthogonal(matrices: Tensor, iterations: int = 5) -> Tensor:
    """The nearest matrices with orthogonal rows or columns, roughly: U Σ Vᵀ → U Σ' Vᵀ, Σ' ≈ 1.

    matrices: (..., m, n). Each iteration applies an odd polynomial to the singular values, which
    drives them towards 1 (within about 0.7 to 1.2 after five); nothing is decomposed.
    Taught in chapter 10.
    """
    a, b, c = 3.4445, -4.7750, 2.0315  # tuned by Jordan for a steep slope at 0
    # Half the digits are enough here, and faster only where the hardware has them.
    x = matrices.bfloat16() if _has_bf16(matrices.device) else matrices.float()
    x = x.reshape(-1, *x.shape[-2:])
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)  # singular values ≤ 1 to begin with
    for _ in range(iterations):
        gram = x @ x.mT
        # a X + (b G + c G²) X; what is added is added by the products' own kernels
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).reshape(matrices.shape).to(matrices.dtype)


# The share of the learning rate at a step: a schedule.


def cosine(step: int, steps: int, warmup: int = 0, final: float = 0.1) -> float:
    """The share of the full learning rate at a step: up in a line, down in half a cosine.

    step: counted from 0; steps: of the whole run; warmup: steps of the way up; final: the share
    that is left at the end. Taught in chapter 10.
    """
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    return final + (1 - final) * (1 + math.cos(math.pi * min(1.0, done))) / 2


def hold_then_fall(step: int, steps: int, warmup: int = 10, fall: float = 0.6) -> float:
    """The share of the full learning rate at a step: up in a line, level, down to zero in a line.

    step: counted from 0; steps: of the whole run; warmup: steps of the way up; fall: the share of
    the run that goes down; 0 for none of either. Taught in chapter 10.
    """
    up = (step + 1) / max(1, warmup)
    down = (steps - step) / max(1.0, fall * steps)
    return max(0.0, min(1.0, up, down))


# --- the loop ------------------------------------------------------------------------------------


@dataclass
class Run:
    """The course of a training run.

    losses: of each step's batch, in nats; evaluations: (step, seconds of steps so far, loss on the
    validation text); seconds: spent in steps, without evaluations; stopped: why it ended,
    "finished", "time" or "interrupted". Taught in chapter 10.
    """

    losses: list[float] = field(default_factory=list)
    evaluations: list[tuple[int, float, float]] = field(default_factory=list)
    seconds: float = 0.0
    stopped: str = "finished"

    @property
    def step(self) -> int:
        """Steps taken so far."""
        return len(self.losses)

    @property
    def best(self) -> float:
        """The lowest validation loss, infinite before the first evaluation."""
        return min((loss for _, _, loss in self.evaluations), default=float("inf"))

    @classmethod
    def taken_up(cls, record: Mapping[str, Any]) -> Self:
        """The run of which `asdict` made the record, to be gone on with; {} is a fresh one.

        Raises ValueError for any other record.
        """
        try:
            was = cls(**record)
            evaluations = [(int(step), float(s), float(loss)) for step, s, loss in was.evaluations]
            return cls([float(loss) for loss in was.losses], evaluations, float(was.seconds))
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"that is not the record of a training run: {error}") from error

    def __repr__(self) -> str:
        best = f", best validation loss {self.best:.3f}" if self.evaluations else ""
        return f"Run({self.step} steps in {self.seconds:.0f} s{best}, {self.stopped})"


@dataclass
class Watch:
    """What is watched while a model is trained: its loss on other text.

    data: (M,) token ids; every: how many steps from one estimate to the next, None for one at the
    end; batches: random ones to estimate it on, always the same, or None for all of data; then: is
    called with the run after each estimate. Taught in chapter 10.
    """

    data: Tensor
    every: int | None = None
    batches: int | None = None
    then: Callable[[Run], None] | None = None


def train(
    model: nn.Module,
    data: Tensor,
    *,
    steps: int,
    block_size: int,
    batch_size: int,
    generator: torch.Generator | None = None,
    learning_rate: float | None = None,
    optimisers: Sequence[Optimizer] = (),
    schedule: Callable[[int, int], float] | None = None,
    clip: float | None = None,
    bf16: bool = False,
    watch: Watch | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    max_seconds: float | None = None,
    progress: bool = False,
    processes: Processes | None = None,
) -> Run:
    """Train the model in place; returns the `Run`: losses, evaluations, and how it ended.

    What it reads: data: (N,) token ids, int64; steps: optimiser steps; block_size, batch_size: T
    and B of each batch; generator: for the batches.

    How a step is made: learning_rate for AdamW, or else optimisers of your own;
    schedule(step, steps): the share of the learning rate at a step, for example `cosine`; clip: the
    largest length of the gradient; bf16: compute with half the digits where the hardware can.

    What is watched, kept and shown: watch: a `Watch`; folder: gets `last.safetensors`, from which
    resume=True takes the run up again as if it had never stopped (but for what dropout silences in
    other processes than the first), at each evaluation and at the end, and `best.safetensors`, the
    weights with the lowest validation loss; max_seconds of training end the run early, and so does
    an interrupt of the kernel (Ctrl-C), after the step in hand; progress: a line that keeps itself
    up to date; processes: those that train the model together, each by calling this (chapter 18):
    batch_size counts the rows of all.

    Raises what `get_batch` raises, TypeError for what is not a list of optimisers, ValueError for
    settings that do not fit together, for optimisers of another model and for a folder with a GPT
    that a file cannot give back, FileExistsError for a folder that holds a run already, and
    FloatingPointError when the loss stops being a number, or a weight at the end or when the run is
    about to be kept: what is in the folder is then from before.
    AdamW: Loshchilov and Hutter, 2019.
    Taught in chapter 02, and most of its settings in chapter 10.
    """
    optimisers = _listed(optimisers)
    _check_settings(steps, learning_rate, optimisers, clip, watch, folder, resume, max_seconds)
    _expect_own(model, optimisers)
    for stream in (data,) if watch is None else (data, watch.data):
        _check_stream(stream, block_size, batch_size)
    if learning_rate is not None:
        optimisers = [adamw(model, learning_rate, weight_decay=0.0, betas=(0.9, 0.999))]
    device = next(model.parameters()).device
    data = data.to(device)
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=bf16 and _has_bf16(device))
    sizes = dict(block_size=block_size, batch_size=batch_size)
    kept = None
    if folder is not None:
        watched = watch and {"text": _checksum(watch.data), "batches": watch.batches}
        same = {**sizes, "text": _checksum(data), "validation": watched}
        kept = RunFolder(folder, model, optimisers, generator, same)
    run = Run() if kept is None else Run.taken_up(kept.start(resume))
    constants = infinite_constants(model)
    enough = math.inf if max_seconds is None else max_seconds
    _keep_memory()
    processes = processes or Processes()
    if processes.world_size > 1:
        _expect_one_run(processes, model, data, optimisers, generator,
                        steps=steps, **sizes, step=run.step, clip=clip)  # fmt: skip
        processes.own_dropout()
    reader = processes.reader(model)

    def expect_finite() -> None:
        ruined = [name for name in not_finite(model, optimisers) if name not in constants]
        if any(processes.any(bool(ruined))):
            what = f"{ruined[0] if ruined else 'a weight'} holds NaN or infinity"
            raise FloatingPointError(_what_failed(what, run, kept))

    def evaluate(watch: Watch) -> None:
        if run.evaluations and run.evaluations[-1][0] == run.step:
            return
        same = torch.Generator().manual_seed(0)  # the same batches every time
        with autocast:
            loss = estimate_loss(model, watch.data.to(device), block_size=block_size,
                                 batches=watch.batches, generator=same)  # fmt: skip
        if not math.isfinite(loss):  # before anything that is kept is lost
            raise FloatingPointError(_what_failed(f"the validation loss is {loss}", run, kept))
        if kept is not None:
            expect_finite()
            if not run.evaluations:  # there is no best.safetensors without last.safetensors
                kept.keep(asdict(run))
        best = loss < run.best
        run.evaluations.append((run.step, run.seconds, loss))
        if kept is not None:
            if best:
                kept.keep_best({"step": run.step, "validation_loss": loss})
            kept.keep(asdict(run))
        if watch.then is not None:
            watch.then(run)

    model.train()
    bar = tqdm(total=steps, initial=run.step, disable=not (progress and processes.rank == 0),
               file=sys.stdout, unit=" steps")  # fmt: skip
    with Interrupt() as interrupt, Rates(optimisers) as rates, bar:
        while run.step < steps:
            interrupted, late = processes.any(interrupt.requested, run.seconds >= enough)
            if interrupted or late:
                run.stopped = "interrupted" if interrupted else "time"
                break
            if watch and watch.every and run.step % watch.every == 0:
                evaluate(watch)
            start = time.perf_counter()
            rates.scale(1.0 if schedule is None else schedule(run.step, steps))
            x, y = map(processes.rows, get_batch(data, block_size, batch_size, generator))
            model.zero_grad()  # gradients add up: start each step from none
            with autocast:
                loss = language_model_loss(reader, x, y)
            measured = processes.mean(loss)
            if not math.isfinite(measured):
                raise FloatingPointError(_what_failed(f"the loss is {measured}", run, kept))
            loss.backward()
            if clip is not None:
                clip_gradients(model.parameters(), clip)
            for optimiser in optimisers:
                optimiser.step()
            run.losses.append(measured)
            run.seconds += time.perf_counter() - start
            bar.update()
            bar.set_postfix(loss=f"{measured:.3f}", refresh=False)
        if watch and run.stopped != "interrupted":
            evaluate(watch)
        expect_finite()
        if kept is not None:
            kept.keep(asdict(run))
    return run


def _listed(optimisers: Any) -> list[Optimizer]:
    """Raise TypeError for what is not several optimisers, or one in a list."""
    if isinstance(optimisers, Optimizer):
        raise TypeError(
            f"optimisers should be a list, but is one {type(optimisers).__name__}: "
            "optimisers=[optimiser]"
        )
    try:
        optimisers = list(optimisers)
    except TypeError:
        raise TypeError(f"optimisers should be a list, but is {optimisers!r:.60}") from None
    for optimiser in optimisers:
        if not isinstance(optimiser, Optimizer):
            wrong = f"{optimiser!r:.60}".partition("\n")[0]
            raise TypeError(f"optimisers should be a list of optimisers, not of {wrong}")
    return optimisers


def _expect_own(model: nn.Module, optimisers: Sequence[Optimizer]) -> None:
    """Raise ValueError for optimisers that step anything but parameters of the model."""
    own = set(map(id, model.parameters()))
    for optimiser in optimisers:
        stepped = [p for group in optimiser.param_groups for p in group["params"]]
        if strange := [p for p in stepped if id(p) not in own]:
            raise ValueError(
                f"{len(strange)} of the {len(stepped)} tensors that this "
                f"{type(optimiser).__name__} steps are not parameters of the model. Was the model "
                "made again after its optimisers? Make them again, too: they still step the old one"
            )


def _check_settings(
    steps: int,
    learning_rate: float | None,
    optimisers: Sequence[Optimizer],
    clip: float | None,
    watch: Watch | None,
    folder: str | Path | None,
    resume: bool,
    max_seconds: float | None,
) -> None:
    _expect_whole("steps", steps)
    if steps < 1:
        raise ValueError(f"steps should be at least 1, but is {steps}")
    if (learning_rate is None) == (not optimisers):
        raise ValueError("train wants a learning_rate, for AdamW, or else optimisers of your own")
    for name, number in (
        ("learning_rate", learning_rate),
        ("clip", clip),
        ("watch.every", watch.every if watch else None),
        ("watch.batches", watch.batches if watch else None),
    ):
        if number is not None and not _is_above_0(number):
            raise ValueError(f"{name} should be above 0, or None, but is {number!r}")
        if number is not None and name.startswith("watch."):
            _expect_whole(name, number)
    if learning_rate == math.inf:
        raise ValueError("learning_rate should be a number, but is infinite")
    if max_seconds is not None and max_seconds != 0 and not _is_above_0(max_seconds):
        raise ValueError(f"max_seconds should be 0 or more, or None, but is {max_seconds!r}")
    if resume and folder is None:
        raise ValueError("resume=True wants the folder of the run to take up again")


def _is_above_0(number: Any) -> bool:
    try:
        return bool(number > 0)
    except TypeError:
        return False


def _expect_one_run(
    processes: Processes,
    model: nn.Module,
    data: Tensor,
    optimisers: Sequence[Optimizer],
    generator: torch.Generator | None,
    **settings: Any,
) -> None:
    """Raise ValueError unless all processes take the same steps with the same model and batches."""
    if generator is None:
        raise ValueError("several processes draw the same batches: give each the same generator")
    processes.expect_same(
        **settings,
        tokens=len(data),
        text=_checksum(data),
        weights=sum(whole(p.detach().norm()).item() for p in model.parameters()),
        generator=_checksum(generator.get_state()),
        rates=[group["lr"] for o in optimisers for group in o.param_groups],
        parallel=processes.parallel,
    )


def _checksum(numbers: Tensor) -> int:
    return zlib.crc32(numbers.cpu().numpy().tobytes())


def _keep_memory() -> None:
    """Have this process keep the memory that tensors have freed, for those of the next step.

    Else the C library of Linux gives back every large piece at once, and the system hands it out
    anew page by page, each of them cleared, which is a tenth of the time of a step of GPTMini's
    (benchmarks/training.py kernels). Other systems' libraries are left as they are.
    """
    if platform.libc_ver()[0] == "glibc":
        library = ctypes.CDLL(None)
        library.mallopt(-4, 0)  # M_MMAP_MAX: no piece is so large that the system has to make it
        library.mallopt(-1, -1)  # M_TRIM_THRESHOLD: none is given back


def _what_failed(what: str, run: Run, kept: RunFolder | None) -> str:
    """What to say of a loss or a weight that is no number: where, likely causes, what is left."""
    before = ", ".join(f"{x:.3g}" for x in run.losses[-3:]) or "none"
    left = ""
    if kept is not None and kept.last.exists():
        left = f" The last state that was kept is in {kept.last}: resume=True goes on from it."
    return (
        f"{what} at step {run.step} (before: {before}). Likely causes: a learning "
        "rate that is too high or has no warm-up, gradients that are not clipped, a mask that "
        f"leaves a row without any token, a logarithm or division of zero in the model.{left}"
    )


class Rates:
    """The learning rates of optimisers: a share of them at a time, and in full when it is over.

    Without the end, another run with the same optimisers would start from the last small rates.
    Taught in chapter 10.
    """

    def __init__(self, optimisers: Sequence[Optimizer]):
        self.optimisers = optimisers

    def __enter__(self) -> Self:
        self._full = [[group["lr"] for group in o.param_groups] for o in self.optimisers]
        return self

    def __exit__(self, *_: object) -> None:
        self.scale(1.0)

    def scale(self, share: float) -> None:
        for optimiser, full in zip(self.optimisers, self._full, strict=True):
            for group, rate in zip(optimiser.param_groups, full, strict=True):
                group["lr"] = rate * share


class Interrupt:
    """In its `with` block an interrupt (Ctrl-C, Jupyter's stop button) sets `requested`, and so the
    step in hand is finished; a second one is a KeyboardInterrupt. Taught in chapter 10.
    """

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> Self:
        # Only the main thread may say what signals do; elsewhere they stay as they are.
        self._own = threading.current_thread() is threading.main_thread()
        if self._own:
            self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        if self._own:
            signal.signal(signal.SIGINT, self._before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


def _has_bf16(device: torch.device) -> bool:
    """Does this hardware multiply in bfloat16 faster than in float32?"""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    abilities = torch.cpu.get_capabilities() if device.type == "cpu" else {}
    # Intel's avx512_bf16 without AMX gains nothing: matrix products at 154 instead of 252 GFLOP/s,
    # a step of `headline` 2.1 s instead of 1.2 (benchmarks/training.py; a Xeon, 2 cores).
    names = ("amx_bf16",) if "Intel" in abilities.get("cpu_name", "") else ("avx512_bf16",)
    return any(abilities.get(name, False) for name in names)


# --- a GPT that learns fast on a small machine: the selection that won (benchmarks/training.py) ---


def fast_gpt(
    vocab_size: int,
    block_size: int,
    n_layer: int,
    n_head: int,
    n_embd: int,
    **settings: Any,
) -> GPT:
    """A GPT with rotary positions, normed queries and keys, squared ReLU and short convolutions.

    settings: others of `GPTConfig`, or other ones than these. No linear map has a bias.
    Every block starts as the identity, and all next tokens start equally likely: what adds to the
    residual stream, and what makes the logits, begins at zero.
    Raises what `GPT` raises, and ValueError for tied=True: a head that starts at zero wants a table
    of its own. Jordan et al. 2024, "modded-nanogpt". Taught in chapter 10.
    """
    chosen = dict(
        mlp=SquaredReLU, position=Rotary, qk_norm=True, convolution=4, bias=False, tied=False
    )
    sizes = (vocab_size, block_size, n_layer, n_head, n_embd)
    model = GPT(GPTConfig(*sizes, **{**chosen, **settings}))
    if model.config.tied:
        raise ValueError("the head of fast_gpt starts at zero, and so wants a table of its own")
    for name, p in model.named_parameters():
        if name.endswith("output.weight") or name == "head.weight":
            nn.init.zeros_(p)
        elif name == "token.weight":
            nn.init.normal_(p)
        elif p.dim() == 2:
            bound = p.shape[1] ** -0.5
            nn.init.uniform_(p, -bound, bound)
    return model


def fast_optimisers(
    model: GPT,
    matrix_rate: float = 0.02,
    other_rate: float = 0.01,
    weight_decay: float = 0.0,
    momentum: float = 0.95,
) -> list[Optimizer]:
    """Muon for the matrices in the blocks, AdamW for all else: two optimisers for `train`.

    matrix_rate, other_rate: their learning rates; weight_decay, momentum: of the matrices. The
    weights of convolutions get ten times other_rate: they start at 0 and are wanted at about 1.
    For short runs larger matrix rates and a shorter memory (0.05, 0.75) are better.
    Taught in chapter 10.
    """
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    convolutions = [p for p in model.blocks.parameters() if p.dim() > 2]
    chosen = {id(p) for p in matrices + convolutions}
    others = [p for p in model.parameters() if id(p) not in chosen]
    groups: list[dict[str, Any]] = [{"params": others}]
    if convolutions:
        groups.append({"params": convolutions, "lr": 10 * other_rate})
    return [
        Muon(matrices, matrix_rate, momentum, weight_decay),
        AdamW(groups, other_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=_can_be_fused(model)),
    ]
