"""A training run that is operated: evaluated, saved, interrupted, resumed, shared by processes.

The steps are those of `helpers.training.train`.
"""

import math
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from tqdm import tqdm

from helpers.checks import check_optimizers, check_settings, check_stream, not_finite_message
from helpers.formats.files import alone_in
from helpers.kernels import has_bf16
from helpers.runs.distributed import Processes, clip_gradients, first_process, full_tensor
from helpers.runs.state import RunFolder, infinite_constants, not_finite
from helpers.training import (
    Schedule,
    estimate_loss,
    get_batch,
    language_model_loss,
    learning_rates,
)


@dataclass
class Run:
    """The record of a training run.

    Attributes:
        losses: of each step's batch, in nats.
        evaluations: (step, seconds of training so far, loss on the evaluation data).
        seconds: spent in steps, without evaluations.
        stopped: why it ended, "finished" or "interrupted".

    Taught in: training.
    """

    losses: list[float] = field(default_factory=list)
    evaluations: list[tuple[int, float, float]] = field(default_factory=list)
    seconds: float = 0.0
    stopped: str = "finished"

    @property
    def step(self) -> int:
        """Number of steps so far."""
        return len(self.losses)

    @property
    def best(self) -> float:
        """The lowest evaluation loss, infinite before the first evaluation."""
        return min((loss for _, _, loss in self.evaluations), default=float("inf"))

    @classmethod
    def from_state_dict(cls, record: Mapping[str, Any]) -> Self:
        """Return the run from the dict that `asdict` made; {} gives a new run."""
        was = cls(**record)
        return cls(was.losses, [(n, s, loss) for n, s, loss in was.evaluations], was.seconds)

    def __repr__(self) -> str:
        best = f", best validation loss {self.best:.3f}" if self.evaluations else ""
        return f"Run({self.step} steps in {self.seconds:.0f} s{best}, {self.stopped})"


class Trainer:
    """Trains a language model in place, as `train` does, and operates the run.

    Args:
        model, data, steps, block_size, batch_size, optimizer, schedule, grad_clip, generator: as
            in `helpers.training.train`.
        eval_data: the text to evaluate on, token ids (M,); None: no evaluation.
        eval_interval: steps between two evaluations; None: evaluate only at the end.
        eval_iters: how many random batches an evaluation uses, always the same ones; None: all of
            eval_data.
        folder: gets `last.safetensors`, from which the run can be resumed, at each evaluation and
            at the end, and `best`, the model with the lowest evaluation loss.
        bf16: whether to compute in bfloat16 where the hardware is faster with it.
        progress: whether to show a progress bar.
        processes: those that train the model together, each with a `Trainer` of its own; batch_size
            counts the rows of all.
        callback: called with the `Run` after each evaluation.

    Raises what `train` raises. Taught in: training.
    """

    def __init__(
        self,
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
        eval_data: Tensor | None = None,
        eval_interval: int | None = None,
        eval_iters: int | None = None,
        folder: str | Path | None = None,
        bf16: bool = False,
        progress: bool = False,
        processes: Processes | None = None,
        callback: Callable[[Run], None] | None = None,
    ):
        self.optimizers = check_optimizers(optimizer, model)
        check_settings(
            steps=steps, grad_clip=grad_clip, eval_interval=eval_interval, eval_iters=eval_iters
        )
        for stream in (data,) if eval_data is None else (data, eval_data):
            check_stream(stream, block_size, batch_size)
        device = next(model.parameters()).device
        self.model, self.data = model, data.to(device)
        self.eval_data = None if eval_data is None else eval_data.to(device)
        self.steps, self.block_size, self.batch_size = steps, block_size, batch_size
        self.schedule, self.grad_clip, self.generator = schedule, grad_clip, generator
        self.eval_interval, self.eval_iters, self.callback = eval_interval, eval_iters, callback
        self.progress, self.processes = progress, processes or Processes()
        self.autocast = torch.autocast(
            device.type, torch.bfloat16, enabled=bf16 and has_bf16(device)
        )
        self.folder = (
            None
            if folder is None
            else RunFolder(
                folder, model, self.optimizers, generator, self._fixed_settings(bf16), self._factors
            )
        )
        self.run = Run()

    def fit(self, resume: bool = False) -> Run:
        """Train for `steps` steps in all; returns the `Run`.

        resume: continue the run in `folder` as if it had never stopped (up to what dropout draws in
        other processes than the first).

        An interrupt of the kernel (Ctrl-C) ends the run after the current step. A resumed run may
        have more steps, if the schedule stays the same for those taken, and be evaluated at other
        steps. Raises ValueError if any other setting has changed, FileExistsError for a folder in
        which another run is at work, or that holds a run when resume is False, and
        FloatingPointError when the loss, or a weight at the end or before it is saved, is not
        finite; the folder then holds the state from before.
        """
        if self.folder is None:
            if resume:
                raise ValueError("resume=True needs folder, the folder of the run to resume")
            return self._fit(resume)
        with alone_in(self.folder.folder) if first_process() else nullcontext():
            return self._fit(resume)

    def _fit(self, resume: bool) -> Run:
        self.run = Run()
        if self.folder is not None:
            self.run = Run.from_state_dict(self.folder.start(resume))
        self._constants = infinite_constants(self.model)
        run, processes = self.run, self.processes
        if processes.world_size > 1:
            self._expect_one_run()
            processes.seed_dropout()
        parallel = processes.wrap_ddp(self.model)
        schedulers = learning_rates(self.optimizers, self.schedule, self.steps, run.step)
        self.model.train()
        hidden = not (self.progress and processes.rank == 0)
        bar = tqdm(total=self.steps, initial=run.step, disable=hidden, file=sys.stdout,
                   unit=" steps")  # fmt: skip
        with Interrupt() as interrupt, bar:
            while run.step < self.steps:
                if processes.any(interrupt.requested)[0]:
                    run.stopped = "interrupted"
                    break
                if self.eval_interval and run.step % self.eval_interval == 0:
                    self._evaluate()
                began = time.perf_counter()
                loss = self._step(parallel)
                for optimizer in self.optimizers:
                    optimizer.step()
                for scheduler in schedulers:
                    scheduler.step()
                run.losses.append(loss)
                run.seconds += time.perf_counter() - began
                bar.update()
                bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
            if run.stopped != "interrupted":
                self._evaluate()
            self._expect_finite_weights()
            if self.folder is not None:
                self.folder.save(asdict(run))
        return run

    def _step(self, parallel: nn.Module) -> float:
        """The loss of a batch, with its gradients in the parameters."""
        batch = get_batch(self.data, self.block_size, self.batch_size, self.generator)
        x, y = map(self.processes.rows, batch)
        self.model.zero_grad()
        with self.autocast:
            loss = language_model_loss(parallel, x, y)
        mean = self.processes.mean(loss)
        if not math.isfinite(mean):
            raise FloatingPointError(self._what_failed(f"the loss is {mean}"))
        loss.backward()
        if self.grad_clip is not None:
            clip_gradients(self.model.parameters(), self.grad_clip)
        return mean

    def _evaluate(self) -> None:
        run = self.run
        if self.eval_data is None or (run.evaluations and run.evaluations[-1][0] == run.step):
            return
        same = torch.Generator().manual_seed(0)  # the same batches every time
        with self.autocast:
            loss = estimate_loss(self.model, self.eval_data, block_size=self.block_size,
                                 batches=self.eval_iters, generator=same)  # fmt: skip
        if not math.isfinite(loss):  # before anything that is saved is lost
            raise FloatingPointError(self._what_failed(f"the validation loss is {loss}"))
        if self.folder is not None:
            self._expect_finite_weights()
            if not run.evaluations:  # there is no best without last.safetensors
                self.folder.save(asdict(run))
        best = loss < run.best
        run.evaluations.append((run.step, run.seconds, loss))
        if self.folder is not None:
            if best:
                self.folder.save_best({"step": run.step, "validation_loss": loss})
            self.folder.save(asdict(run))
        if self.callback is not None:
            self.callback(run)

    def _expect_finite_weights(self) -> None:
        ruined = [name for name in not_finite(self.model, self.optimizers)
                  if name not in self._constants]  # fmt: skip
        if any(self.processes.any(bool(ruined))):
            what = f"{ruined[0] if ruined else 'a weight'} holds NaN or infinity"
            raise FloatingPointError(self._what_failed(what))

    def _what_failed(self, what: str) -> str:
        message = not_finite_message(what, self.run.losses)
        if self.folder is not None and self.folder.last.exists():
            message += f" The last checkpoint is {self.folder.last}: resume=True continues from it."
        return message

    def _factors(self, taken: int) -> dict[str, str]:
        """The schedule's factors at the first, the middle and the last step of those taken."""
        if taken > self.steps:
            raise ValueError(f"that run has taken {taken} steps already, more than {self.steps}")
        schedule = self.schedule or (lambda step, steps: 1.0)
        some = (0, taken // 2, taken - 1) if taken else ()
        return {str(step): f"{schedule(step, self.steps):.6g}" for step in some}

    def _fixed_settings(self, bf16: bool) -> dict[str, Any]:
        """What must not change when the run is resumed, but for what `RunFolder` knows itself."""
        evaluated = None
        if self.eval_data is not None:
            evaluated = {"text": _checksum(self.eval_data), "batches": self.eval_iters}
        sizes = {"block_size": self.block_size, "batch_size": self.batch_size}
        texts = {"text": _checksum(self.data), "validation": evaluated}
        return {**sizes, **texts, "grad_clip": self.grad_clip, "bf16": bf16}

    def _expect_one_run(self) -> None:
        """Raise ValueError unless all processes train the same model on the same batches."""
        if self.generator is None:
            raise ValueError("several processes draw the same batches: give each a generator")
        self.processes.expect_same(
            steps=self.steps,
            block_size=self.block_size,
            batch_size=self.batch_size,
            step=self.run.step,
            grad_clip=self.grad_clip,
            tokens=len(self.data),
            text=_checksum(self.data),
            weights=sum(full_tensor(p.detach().norm()).item() for p in self.model.parameters()),
            generator=_checksum(self.generator.get_state()),
            rates=[group["lr"] for o in self.optimizers for group in o.param_groups],
            strategy=self.processes.strategy,
        )


def _checksum(numbers: Tensor) -> int:
    return zlib.crc32(numbers.cpu().numpy().tobytes())


class Interrupt:
    """In its `with` block an interrupt (Ctrl-C, Jupyter's stop button) only sets `requested`, so
    that the current step is completed; a second one raises KeyboardInterrupt. Taught in: training.
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
