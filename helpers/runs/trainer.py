"""A training run that is operated: evaluated, saved, interrupted, resumed, shared by processes.

The steps are those of `helpers.training.train`.
"""

import json
import math
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import KW_ONLY, asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from tqdm import tqdm

from helpers.formats.checkpoints import read_tensors, save_checkpoint, write_tensors
from helpers.formats.files import alone_in
from helpers.kernels import has_bf16
from helpers.optimizers import Muon
from helpers.runs.cuda_graph import captured
from helpers.runs.distributed import Processes, ShardedMuon, clip_gradients, first_process
from helpers.runs.state import not_finite, restore, settings_of, state_of
from helpers.training import (
    Schedule,
    estimate_loss,
    expect_all_stepped,
    get_batch,
    language_model_loss,
    learning_rates,
)

SAID = {"text": "checksum of the text", "schedule": "schedule (it follows from steps)"}
EXECUTIONS = ("eager", "graph", "compiled")
Gradients = Callable[[Tensor, Tensor], Tensor]  # (x, y) → the loss


@dataclass
class Run:
    """The record of a training run. Taught in: training."""

    losses: list[float] = field(default_factory=list)  # of each step's batch, in nats
    # (step, seconds of training so far, loss on the evaluation data)
    evaluations: list[tuple[int, float, float]] = field(default_factory=list)
    seconds: float = 0.0  # spent in steps, without evaluations
    stopped: str = "finished"  # why it ended, or "interrupted"

    @property
    def step(self) -> int:
        return len(self.losses)

    @property
    def best(self) -> float:
        """The lowest evaluation loss, infinite before the first evaluation."""
        return min((loss for _, _, loss in self.evaluations), default=float("inf"))

    def __repr__(self) -> str:
        best = f", best validation loss {self.best:.3f}" if self.evaluations else ""
        return f"Run({self.step} steps in {self.seconds:.0f} s{best}, {self.stopped})"


@dataclass(eq=False, repr=False)
class Trainer:
    """Trains a language model in place, as `helpers.training.train` does, and operates the run.

    The folder gets `last.safetensors`, from which the run can be resumed, at each evaluation and at
    the end, and `best`, the model with the lowest evaluation loss. Of several processes each has a
    `Trainer`. To do more at an evaluation, override `evaluate`. Taught in: training.
    """

    model: nn.Module  # maps ids (B, T) to logits (B, T, V)
    data: Tensor  # token ids (N,)
    _: KW_ONLY
    steps: int
    block_size: int  # T, tokens per row
    batch_size: int  # rows of a step: those of all processes and micro-batches
    optimizer: Optimizer | Sequence[Optimizer]
    schedule: Schedule | None = None  # schedule(step, steps) is the factor on the rates
    grad_clip: float | None = None  # largest norm of the gradient
    generator: torch.Generator | None = None  # draws the batches
    accumulation_steps: int = 1  # micro-batches whose gradients a step adds up, to save memory
    eval_data: Tensor | None = None  # token ids (M,)
    eval_interval: int | None = None  # steps between evaluations; None: only at the end
    eval_iters: int | None = None  # batches of an evaluation, always the same; None: all eval_data
    folder: str | Path | None = None
    tokenizer: Any = None  # is saved with the best model
    bf16: bool = False  # whether to compute in bfloat16 where the hardware is faster with it
    progress: bool = False  # whether to show a progress bar
    processes: Processes = field(default_factory=Processes)  # those that train the model together
    execution: str = "eager"  # "graph": one CUDA graph a step, on one GPU; "compiled": that, too

    def __post_init__(self) -> None:
        given = self.optimizer
        self.optimizers = [given] if isinstance(given, Optimizer) else list(given)
        expect_all_stepped(self.optimizers, self.model)
        for optimizer in self.optimizers:
            if self.processes.world_size > 1 and isinstance(optimizer, Muon):
                optimizer.__class__ = ShardedMuon
        if min(self.steps, self.batch_size, self.accumulation_steps) < 1:
            raise ValueError("steps, batch_size and accumulation_steps should be at least 1")
        if self.execution not in EXECUTIONS:
            raise ValueError(f"execution should be one of {EXECUTIONS}, not {self.execution!r}")
        self.device = device = next(self.model.parameters()).device
        self.data = self.data.to(device)
        self.eval_data = None if self.eval_data is None else self.eval_data.to(device)
        fast = self.bf16 and has_bf16(device)
        self.autocast = torch.autocast(device.type, torch.bfloat16, enabled=fast)
        self.last = None if self.folder is None else Path(self.folder) / "last.safetensors"
        self.validation: list[Any] | None = None  # what the losses of evaluations belong to
        if self.eval_data is not None:
            self.validation = [_checksum(self.eval_data), self.eval_iters]
        self.run = Run()
        self._unread: list[Tensor] = []  # losses of the latest steps, each of them ()

    def fit(self, resume: bool = False) -> Run:
        """Train for `steps` steps in all; returns the `Run`.

        resume: continue the run in `folder` as if it had never stopped (up to what dropout draws in
        other processes than the first), with more steps if the schedule stays the same for those
        taken, and evaluated at other steps. An interrupt (Ctrl-C) ends the run after the current
        step. FloatingPointError if the loss or a weight is no longer finite: the folder then holds
        the state from before.
        """
        if resume and self.folder is None:
            raise ValueError("resume=True needs folder, the folder of the run to resume")
        with alone_in(self.folder) if self.folder and first_process() else nullcontext():
            return self._fit(resume)

    def _start(self, resume: bool) -> Run:
        if self.last is None or not self.last.exists():
            return Run()
        if not resume:
            raise FileExistsError(
                f"{self.folder} holds a run already: use resume=True, or choose another folder"
            )
        tensors, about = read_tensors(self.last)
        if "run" not in about:
            raise ValueError(f"{self.last} is not the state of a training run")
        run = Run(**about["run"] | {"stopped": "finished"})
        run.evaluations = [(n, s, loss) for n, s, loss in run.evaluations]  # JSON knows no tuples
        before = about["settings"]
        self.validation = self.validation or before["validation"]
        now = json.loads(json.dumps(self._settings(run.step)))
        if before["validation"] is None:  # nothing was evaluated
            del before["validation"]
        for name in now:  # versions of torch differ in which hyperparameters they list
            if name in before and before[name] != now[name]:
                what = f"{SAID.get(name, name)} was {before[name]}, is {now[name]}"
                raise ValueError(f"{self.last}: {what}. Another run needs another folder")
        restore(tensors, self.last, self.model, self.optimizers, self.generator)
        return run

    def _fit(self, resume: bool) -> Run:
        self.run = run = self._start(resume)
        processes = self.processes
        if processes.world_size > 1:
            if self.generator is None:
                raise ValueError("several processes draw the same batches: give each a generator")
            seed = _checksum(self.generator.get_state())
            processes.expect_same(steps=self.steps, seed=seed)
            processes.seed_dropout()
        gradients = self._gradients_of(processes.wrap_ddp(self.model))
        schedulers = learning_rates(self.optimizers, self.schedule, self.steps, run.step)
        self.model.train()
        bar = tqdm(total=self.steps, initial=run.step, file=sys.stdout, unit=" steps",
                   disable=not self.progress or processes.rank > 0)  # fmt: skip
        with catch_interrupt() as interrupt, bar:
            for step in range(run.step, self.steps):
                if processes.any(interrupt.requested):
                    run.stopped = "interrupted"
                    break
                if self.eval_interval and step % self.eval_interval == 0:
                    self._evaluate_once()
                began = time.perf_counter()
                self._step(gradients)
                for scheduler in schedulers:
                    scheduler.step()
                run.seconds += time.perf_counter() - began
                if len(self._unread) == 100:
                    self._read_losses()
                bar.update()
                if run.losses:
                    bar.set_postfix(loss=f"{run.losses[-1]:.3f}", refresh=False)
            self._read_losses()
            if run.stopped != "interrupted":
                self._evaluate_once()
            self._expect_finite()
            self._save()
        return run

    def _gradients_of(self, parallel: Any) -> Gradients:
        """The function of a batch that leaves the gradients in the model and returns the loss."""
        loss_of = language_model_loss
        if self.execution == "compiled":
            loss_of = torch.compile(language_model_loss)

        def gradients(x: Tensor, y: Tensor) -> Tensor:
            self.model.zero_grad()
            n, losses = self.accumulation_steps, []
            micro_batches = list(zip(x.chunk(n), y.chunk(n), strict=True))
            for i, (inputs, targets) in enumerate(micro_batches, start=1):
                if parallel is not self.model:  # the processes average their gradients once a step
                    parallel.require_backward_grad_sync = i == len(micro_batches)
                with self.autocast:
                    loss = loss_of(parallel, inputs, targets)
                loss = loss * (targets.numel() / y.numel())  # its part of the mean over all tokens
                loss.backward()
                losses.append(loss.detach())
            return torch.stack(losses).sum()

        if self.execution == "eager" or self.device.type != "cuda" or parallel is not self.model:
            return gradients
        self.model.train()
        return captured(gradients, *self._batch(torch.Generator()))

    def _batch(self, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Inputs and targets (B, T), the rows of this process."""
        x, y = get_batch(self.data, self.block_size, self.batch_size, generator)
        return self.processes.rows(x), self.processes.rows(y)

    def _step(self, gradients: Gradients) -> None:
        loss = gradients(*self._batch(self.generator))
        self._unread.append(self.processes.mean(loss))
        if self.device.type == "cpu":  # a GPU would have nothing to do while it is waited for
            self._read_losses()
        if self.grad_clip is not None:
            clip_gradients(self.model.parameters(), self.grad_clip)
        for optimizer in self.optimizers:
            optimizer.step()

    def _read_losses(self) -> None:
        """Wait for the steps that were begun, and record their losses."""
        if not self._unread:
            return
        began = time.perf_counter()
        losses = torch.stack(self._unread).tolist()
        self._unread.clear()
        self.run.seconds += time.perf_counter() - began
        for loss in losses:
            if not math.isfinite(loss):
                self._fail(f"the loss is {loss}")
            self.run.losses.append(loss)

    def _evaluate_once(self) -> None:
        self._read_losses()
        evaluated = {step for step, _, _ in self.run.evaluations}
        if self.eval_data is not None and self.run.step not in evaluated:
            self.evaluate()

    def evaluate(self) -> None:
        """Record the loss on eval_data, and save the run."""
        run, data = self.run, cast(Tensor, self.eval_data)
        same = torch.Generator().manual_seed(0)  # the same batches every time
        with self.autocast:
            loss = estimate_loss(self.model, data, block_size=self.block_size,
                                 batches=self.eval_iters, generator=same)  # fmt: skip
        if not math.isfinite(loss):
            self._fail(f"the validation loss is {loss}")
        self._expect_finite()
        if self.folder is not None and loss < run.best:
            notes = {"step": run.step, "validation_loss": loss}
            save_checkpoint(Path(self.folder) / "best", self.model, self.tokenizer, notes)
        run.evaluations.append((run.step, run.seconds, loss))
        self._save()

    def _save(self) -> None:
        if self.last is not None:
            tensors = state_of(self.model, self.optimizers, self.generator)
            about = {"run": asdict(self.run), "settings": self._settings(self.run.step)}
            write_tensors(self.last, tensors, about)

    def _expect_finite(self) -> None:
        ruined = not_finite(self.model, self.optimizers)
        if self.processes.any(bool(ruined)):
            self._fail(f"{(*ruined, 'a weight')[0]} holds NaN or infinity")

    def _fail(self, what: str) -> NoReturn:
        message = f"{what} at step {self.run.step}. Is the learning rate too high, without warm-up?"
        if self.last is not None and self.last.exists():
            message += f" resume=True continues from {self.last}."
        raise FloatingPointError(message)

    def _settings(self, taken: int) -> dict[str, Any]:
        """What must not change when the run is resumed, by name."""
        steps = sorted({0, taken // 2, taken - 1}) if taken else []
        schedule = self.schedule or (lambda step, steps: 1.0)
        return {
            "block_size": self.block_size,
            "batch_size": self.batch_size,
            "text": _checksum(self.data),
            "validation": self.validation,
            "grad_clip": self.grad_clip,
            "bf16": self.bf16,
            "schedule": [f"{schedule(step, self.steps):.6g}" for step in steps],
            **settings_of(self.model, self.optimizers, self.generator),
        }


def _checksum(numbers: Tensor) -> int:
    return zlib.crc32(numbers.cpu().numpy().tobytes())


@contextmanager
def catch_interrupt() -> Iterator[SimpleNamespace]:
    """In the `with` block an interrupt (Ctrl-C, Jupyter's stop button) only sets `requested`, so
    that the current step is completed; a second one raises KeyboardInterrupt. Taught in: training.
    """
    seen = SimpleNamespace(requested=False)

    def on_signal(*_: object) -> None:
        if seen.requested:
            raise KeyboardInterrupt
        seen.requested = True

    if threading.current_thread() is not threading.main_thread():
        yield seen  # only the main thread may say what signals do
        return
    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)
