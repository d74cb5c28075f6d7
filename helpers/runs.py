"""What a training run leaves behind: its curve, the state to take it up again, a way to stop it."""

import json
import signal
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from helpers.checkpoints import (
    load_weights,
    read_tensors,
    save_checkpoint,
    weights_of,
    write_tensors,
)


@dataclass
class Run:
    """The course of a training run.

    losses: of each step's batch, in nats; evaluations: (step, seconds of steps so far, loss on the
    validation text); seconds: spent in steps, without evaluations; stopped: why it ended,
    "finished", "time" or "interrupted". Taught in chapter 09.
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

    def __repr__(self) -> str:
        best = f", best validation loss {self.best:.3f}" if self.evaluations else ""
        return f"Run({self.step} steps in {self.seconds:.0f} s{best}, {self.stopped})"


class Kept:
    """What a run keeps on disk: `last.safetensors`, all that the next step depends on, and
    `best.safetensors`, the weights with the lowest validation loss.

    folder: None to keep nothing; settings: what must not change when the run is taken up again.
    Taught in chapter 09.
    """

    def __init__(
        self,
        folder: str | Path | None,
        model: nn.Module,
        optimisers: Sequence[Optimizer],
        generator: torch.Generator | None,
        settings: dict[str, Any],
    ):
        self.folder = None if folder is None else Path(folder)
        self.model, self.optimisers, self.generator = model, optimisers, generator
        config = getattr(model, "config", None)
        self.settings = {
            **settings,
            "model": config if isinstance(config, dict) else type(model).__name__,
            "optimisers": [[type(o).__name__, *_shapes(o)] for o in optimisers],
            "generator": generator is not None,
        }

    def start(self, resume: bool) -> Run:
        """A fresh run, or with `resume` the one in the folder, its state put back.

        Raises FileExistsError rather than overwrite a run, and ValueError if the one in the folder
        belongs to another model, other optimisers or other settings.
        """
        if self.folder is None:
            return Run()
        self.folder.mkdir(parents=True, exist_ok=True)  # if that fails, then now
        if not (last := self.folder / "last.safetensors").exists():
            return Run()
        if not resume:
            raise FileExistsError(
                f"{self.folder} holds a run already: take it up again with resume=True, or choose "
                "another folder"
            )
        tensors, about = read_tensors(last)
        parts: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts.setdefault(part, {})[rest] = tensor
        if "random/torch" not in tensors or not {"run", "settings"} <= set(about):
            raise ValueError(f"{last} is not the state of a training run")
        for name, value in self.settings.items():
            before = about["settings"].get(name, value)
            if json.dumps(before) != json.dumps(value):  # JSON knows no tuples
                raise ValueError(f"the run in {last} had {name} {before}, not {value}")
        load_weights(self.model, parts.get("model", {}), last)
        for number, optimiser in enumerate(self.optimisers):
            states: dict[int, dict[str, Tensor]] = {}
            # An optimiser may have nothing to remember: before its first step, or ever.
            for name, tensor in parts.get(f"optimiser{number}", {}).items():
                index, _, key = name.partition("/")
                states.setdefault(int(index), {})[key] = tensor
            groups = optimiser.state_dict()["param_groups"]
            optimiser.load_state_dict({"state": states, "param_groups": groups})
        _set_random_states(self.generator, parts["random"])
        run = Run(**about["run"])
        run.evaluations = [(step, seconds, loss) for step, seconds, loss in run.evaluations]
        run.stopped = "finished"
        return run

    def keep(self, run: Run, best: bool = False) -> None:
        """Write `last.safetensors`, and with `best` the weights once more."""
        if self.folder is None:
            return
        if best:
            step, _, loss = run.evaluations[-1]
            notes = {"step": step, "validation_loss": loss}
            save_checkpoint(self.folder / "best.safetensors", self.model, notes=notes)
        tensors = {f"model/{name}": tensor for name, tensor in weights_of(self.model).items()}
        for number, optimiser in enumerate(self.optimisers):
            for index, state in optimiser.state_dict()["state"].items():
                for name, value in state.items():
                    tensors[f"optimiser{number}/{index}/{name}"] = value
        for name, value in _random_states(self.generator).items():
            tensors[f"random/{name}"] = value
        about = {"run": asdict(run), "settings": self.settings}
        write_tensors(self.folder / "last.safetensors", tensors, about)

    def what_failed(self, loss: float, run: Run) -> str:
        """What to say of a loss that is no number: where, what often causes it, what is left."""
        before = ", ".join(f"{x:.3g}" for x in run.losses[-3:]) or "none"
        last = None if self.folder is None else self.folder / "last.safetensors"
        left = f" The last state that was kept is in {last}." if last and last.exists() else ""
        return (
            f"the loss is {loss} at step {run.step} (before: {before}). Likely causes: a learning "
            "rate that is too high or has no warm-up, gradients that are not clipped, a mask that "
            f"leaves a row without any token, a logarithm or division of zero in the model.{left}"
        )


def _shapes(optimiser: Optimizer) -> list[list[list[int]]]:
    """The shapes of what an optimiser steps, group by group."""
    return [[list(p.shape) for p in group["params"]] for group in optimiser.param_groups]


def _random_states(generator: torch.Generator | None) -> dict[str, Tensor]:
    """Dropout draws from torch's own generators, batches from the one that was given."""
    states = {"torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    if generator is not None:
        states["batches"] = generator.get_state()
    return states


def _set_random_states(generator: torch.Generator | None, states: dict[str, Tensor]) -> None:
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])
    if "batches" in states and generator is not None:
        generator.set_state(states["batches"])


class Rates:
    """The learning rates of optimisers: a share of them at a time, and in full when it is over.

    Without the end, another run with the same optimisers would start from the last small rates.
    Taught in chapter 09.
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
    step in hand is finished; a second one is a KeyboardInterrupt. Taught in chapter 09.
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
