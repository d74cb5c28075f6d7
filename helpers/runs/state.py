"""The files of a run that can be resumed exactly."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from helpers.formats.checkpoints import (
    config_of,
    load_weights,
    read_tensors,
    save_checkpoint,
    unique_state_dict,
    write_tensors,
)
from helpers.runs.distributed import own_part, shard_like

WAYS = ("params", "foreach", "fused", "capturable", "differentiable", "initial_lr")


@dataclass
class RunFolder:
    """The files of a run: `last.safetensors`, from which the next step can be computed exactly, and
    `best`, the model with the lowest validation loss, as `save_checkpoint` writes it.
    """

    folder: Path  # made if needed
    model: nn.Module
    optimizers: Sequence[Optimizer]
    generator: torch.Generator | None  # draws the batches; None: torch's own does
    settings: Callable[[int], dict[str, Any]]  # steps taken → what must not change on resuming
    validation: Any = None  # what was evaluated before the run was resumed

    def __post_init__(self) -> None:
        self.last, self.best = self.folder / "last.safetensors", self.folder / "best"

    def start(self, resume: bool) -> dict[str, Any]:
        """Restore the run in the folder and return its record, which is empty for a new run."""
        if not self.last.exists():
            return {}
        if not resume:
            raise FileExistsError(
                f"{self.folder} holds a run already: continue it with resume=True, or choose "
                "another folder"
            )
        tensors, metadata = read_tensors(self.last)
        if "run" not in metadata:
            raise ValueError(f"{self.last} is not the state of a training run")
        run, before = metadata["run"], metadata["settings"]
        self.validation = before["validation"]
        now = json.loads(json.dumps(self._settings(len(run["losses"]))))  # JSON knows no tuples
        if self.validation is None:  # nothing was evaluated
            del before["validation"]
        for name in now:  # versions of torch differ in which hyperparameters they list
            if name in before and before[name] != now[name]:
                raise ValueError(f"{self.last}: {name} was {before[name]}, is {now[name]}")
        load_weights(self.model, _part("model/", tensors), self.last)
        for number, optimizer in enumerate(self.optimizers):
            stepped = [p for group in optimizer.param_groups for p in group["params"]]
            states: dict[int, dict[str, Tensor]] = {}
            for name, value in _part(f"optimizer{number}/", tensors).items():
                index, key = name.split("/")
                p = stepped[int(index)]
                whole = value if value.shape != p.shape else shard_like(value, p)
                states.setdefault(int(index), {})[key] = whole
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": states, "param_groups": groups})
        random = _part("random/", tensors)
        for name, draws in _generators(self.generator).items():
            if name in random:
                draws.set_state(random[name])
        return run

    def save_best(self, notes: Mapping[str, Any]) -> None:
        """Write the weights as they are now, as the best."""
        save_checkpoint(self.best, self.model, notes=notes)

    def save(self, run: Mapping[str, Any]) -> None:
        """Write the state from which the next step can be computed; run: its record."""
        tensors = {f"model/{name}": t for name, t in unique_state_dict(self.model).items()}
        for number, optimizer in enumerate(self.optimizers):
            for index, state in optimizer.state_dict()["state"].items():
                for name, value in state.items():
                    tensors[f"optimizer{number}/{index}/{name}"] = value
        for name, draws in _generators(self.generator).items():
            tensors[f"random/{name}"] = draws.get_state()
        settings = self._settings(len(run["losses"]))
        write_tensors(self.last, tensors, {"run": run, "settings": settings})

    def _settings(self, taken: int) -> dict[str, Any]:
        """What must not change, by name."""
        config = config_of(self.model)
        fields = asdict(config) if config else {}
        settings = {
            **self.settings(taken),
            "model": "GPT" if config else type(self.model).__name__,
            **{f"model.{name}": value for name, value in fields.items()},
            "dtypes": sorted({str(p.dtype) for p in self.model.parameters()}),
            "frozen": [name for name, p in self.model.named_parameters() if not p.requires_grad],
            # How processes divide an optimizer's work may change.
            "optimizers": [type(o).__name__.removeprefix("Sharded") for o in self.optimizers],
            "generator": self.generator is not None,
        }
        settings["validation"] = settings["validation"] or self.validation
        for i, optimizer in enumerate(self.optimizers):
            for j, group in enumerate(optimizer.param_groups):
                rates = {**group, "lr": group.get("initial_lr", group["lr"])}
                rates["shapes"] = [list(p.shape) for p in group["params"]]
                settings |= {
                    f"optimizer {i}, group {j}, {name}": repr(value)
                    for name, value in rates.items()
                    if name not in WAYS
                }
        return settings


def not_finite(model: nn.Module, optimizers: Sequence[Optimizer]) -> list[str]:
    """The names of trained weights and optimizer states that hold NaN or infinity here."""
    weights = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    states = [
        (f"{name} of {type(optimizer).__name__}", value)
        for optimizer in optimizers
        for state in optimizer.state.values()
        for name, value in state.items()
        if isinstance(value, Tensor)
    ]
    return [name for name, t in weights + states if not own_part(t).isfinite().all()]


def _part(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _generators(batches: torch.Generator | None) -> dict[str, torch.Generator]:
    """Dropout draws from torch's own generators, batches from the one that was given."""
    generators = {"torch": torch.default_generator}
    if torch.cuda.is_available():
        torch.cuda.init()
        generators["cuda"] = torch.cuda.default_generators[torch.cuda.current_device()]
    if batches is not None:
        generators["batches"] = batches
    return generators
