"""What a run needs to be resumed exactly: tensors, and settings that must not change."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from helpers.formats.checkpoints import config_of, load_weights, unique_state_dict
from helpers.runs.distributed import own_part, shard_like

WAYS = {"params", "foreach", "fused", "capturable", "differentiable", "initial_lr"}


def state_of(
    model: nn.Module, optimizers: Sequence[Optimizer], generator: torch.Generator | None
) -> dict[str, Tensor]:
    """The tensors from which the next step can be computed, by name."""
    tensors = {f"model/{name}": t for name, t in unique_state_dict(model).items()}
    for number, optimizer in enumerate(optimizers):
        for index, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                tensors[f"optimizer{number}/{index}/{name}"] = value
    for name, draws in _generators(generator).items():
        tensors[f"random/{name}"] = draws.get_state()
    return tensors


def restore(
    tensors: Mapping[str, Tensor],
    source: Path,
    model: nn.Module,
    optimizers: Sequence[Optimizer],
    generator: torch.Generator | None,
) -> None:
    """Give model, optimizers and generators the state that `state_of` wrote to `source`."""
    load_weights(model, _part("model/", tensors), source)
    for number, optimizer in enumerate(optimizers):
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
    for name, draws in _generators(generator).items():
        if name in random:
            draws.set_state(random[name])


def settings_of(
    model: nn.Module, optimizers: Sequence[Optimizer], generator: torch.Generator | None
) -> dict[str, Any]:
    """What must not change when a run is resumed, by name."""
    config = config_of(model)
    settings = {
        "model": "GPT" if config else type(model).__name__,
        **{f"model.{name}": value for name, value in (asdict(config) if config else {}).items()},
        "dtypes": sorted({str(p.dtype) for p in model.parameters()}),
        "frozen": [name for name, p in model.named_parameters() if not p.requires_grad],
        # How processes divide an optimizer's work may change.
        "optimizers": [type(o).__name__.removeprefix("Sharded") for o in optimizers],
        "generator": generator is not None,
    }
    for i, optimizer in enumerate(optimizers):
        for j, group in enumerate(optimizer.param_groups):
            rates = {**group, "lr": group.get("initial_lr", group["lr"])}
            rates["shapes"] = [list(p.shape) for p in group["params"]]
            for name in sorted(rates.keys() - WAYS):
                settings[f"optimizer {i}, group {j}, {name}"] = repr(rates[name])
    return settings


def not_finite(model: nn.Module, optimizers: Sequence[Optimizer]) -> list[str]:
    """The names of trained weights and optimizer states that hold NaN or infinity here."""
    found = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    for o in optimizers:
        for state in o.state.values():
            found += [(f"{name} of {type(o).__name__}", value) for name, value in state.items()]
    return [n for n, t in found if isinstance(t, Tensor) and not own_part(t).isfinite().all()]


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
