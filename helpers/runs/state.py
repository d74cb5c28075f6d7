"""The files of a run that can be resumed exactly, and what in them is not a number."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
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
from helpers.runs.distributed import shard_like


def not_finite(model: nn.Module, optimizers: Sequence[Optimizer] = ()) -> list[str]:
    """Return the names of the weights and of the optimizers' states that hold NaN or infinity.

    Only this process's part of a divided tensor is checked. Taught in: training.
    """
    found = [name for name, tensor in unique_state_dict(model).items() if not _is_finite(tensor)]
    for optimizer in optimizers:
        remembered = {name for state in optimizer.state.values() for name, value in state.items()
                      if not _is_finite(value)}  # fmt: skip
        found += [f"{name} of {type(optimizer).__name__}" for name in sorted(remembered)]
    return found


def infinite_constants(model: nn.Module) -> set[str]:
    """Return the names of constants that hold NaN or infinity: a mask of −∞, for example.

    Taught in: training.
    """
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    return set(not_finite(model)) - trained


def _is_finite(value: Any) -> bool:
    if not isinstance(value, Tensor):
        return not isinstance(value, float) or math.isfinite(value)
    own: Tensor = getattr(value, "to_local", lambda: value)()
    return bool(own.isfinite().all())


class RunFolder:
    """The files of a run: `last.safetensors`, from which the next step can be computed exactly, and
    `best`, the model with the lowest validation loss, as `save_checkpoint` writes it.

    Args:
        folder: made if needed.
        model, optimizers: of the run.
        generator: draws its batches; None: torch's own does.
        settings: what must not change when the run is resumed.
        factors: number of steps taken → the schedule's factors at some of them; nor must they.

    Taught in: training.
    """

    def __init__(
        self,
        folder: str | Path,
        model: nn.Module,
        optimizers: Sequence[Optimizer],
        generator: torch.Generator | None,
        settings: dict[str, Any],
        factors: Callable[[int], dict[str, str]],
    ):
        self.folder = Path(folder)
        self.last, self.best = self.folder / "last.safetensors", self.folder / "best"
        self.model, self.optimizers, self.generator = model, optimizers, generator
        self.factors = factors
        config = config_of(model)
        self.settings = {
            **settings,
            "model": type(model).__name__ if config is None else asdict(config),
            "dtypes": sorted({str(p.dtype) for p in model.parameters()}),
            "frozen": [name for name, p in model.named_parameters() if not p.requires_grad],
            "optimisers": [[type(o).__name__, *_stepped_shapes(o)] for o in optimizers],
            "hyperparameters": [_hyperparameters(o) for o in optimizers],
            "generator": generator is not None,
        }

    def start(self, resume: bool) -> dict[str, Any]:
        """Restore the run in the folder and return its record, which is empty for a new run.

        Raises FileExistsError rather than overwrite a run, and ValueError if the one in the folder
        belongs to another model, other optimizers or other settings.
        """
        last = self.last
        if not last.exists():
            if self.best.exists():
                raise FileExistsError(
                    f"{self.best} is there, but {last.name} is missing, without which that run "
                    "cannot be resumed, and a new run would overwrite its best weights: put "
                    f"{last.name} back, or choose another folder"
                )
            return {}
        if not resume:
            raise FileExistsError(
                f"{self.folder} holds a run already: continue it with resume=True, or choose "
                "another folder"
            )
        tensors, metadata = read_tensors(last)
        parts: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts.setdefault(part, {})[rest] = tensor
        try:
            run, before = metadata["run"], metadata["settings"]
        except KeyError:
            raise ValueError(f"{last} is not the state of a training run") from None
        if before.get("validation") is None:  # nothing was evaluated, or it was not yet recorded
            before["validation"] = self.settings["validation"]
        elif self.settings["validation"] is None:
            self.settings["validation"] = before["validation"]
        settings = {**self.settings, "schedule": self.factors(len(run["losses"]))}
        now = json.loads(json.dumps(settings))  # JSON knows no tuples
        for name, value in now.items():
            if found := _difference((name,), before.get(name, value), value):
                place, old, new = found
                raise ValueError(
                    f"{last}: {_in_words(place, old, new, now)}. Resume with the settings of that "
                    "run, or choose another folder"
                )
        load_weights(self.model, parts.get("model", {}), last)
        for number, optimizer in enumerate(self.optimizers):
            state = _states(parts.get(f"optimiser{number}", {}))
            groups = optimizer.state_dict()["param_groups"]
            stepped = [p for group in optimizer.param_groups for p in group["params"]]
            for index, values in state.items():
                for name, value in values.items():
                    if value.shape == stepped[index].shape:
                        values[name] = shard_like(value, stepped[index])
            optimizer.load_state_dict({"state": state, "param_groups": groups})
        _set_random_states(self.generator, parts["random"])
        return run

    def save_best(self, notes: Mapping[str, Any]) -> None:
        """Write `best`: the model as it is now."""
        save_checkpoint(self.best, self.model, notes=notes)

    def save(self, record: Mapping[str, Any]) -> None:
        """Write `last.safetensors`, with a record of the run so far."""
        tensors = {
            f"model/{name}": tensor for name, tensor in unique_state_dict(self.model).items()
        }
        for number, optimizer in enumerate(self.optimizers):
            for index, state in optimizer.state_dict()["state"].items():
                for name, value in state.items():
                    tensors[f"optimiser{number}/{index}/{name}"] = value
        for name, value in _random_states(self.generator).items():
            tensors[f"random/{name}"] = value
        settings = {**self.settings, "schedule": self.factors(len(record["losses"]))}
        write_tensors(self.last, tensors, {"run": record, "settings": settings})


def _difference(path: tuple[Any, ...], was: Any, now: Any) -> tuple[Any, ...] | None:
    """Where two settings first differ: the names and indices that lead there, and both values."""
    if isinstance(was, dict) and isinstance(now, dict):
        # Versions of torch differ in which hyperparameters they list.
        names = [n for n in {**now, **was} if (n in now and n in was) or path[0] == "model"]
        inside = [(name, was.get(name), now.get(name)) for name in names]
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        inside = list(zip(range(len(now)), was, now, strict=True))
    else:
        return None if was == now else (path, was, now)
    found = (_difference((*path, name), *values) for name, *values in inside)
    return next(filter(None, found), None)


def _in_words(path: tuple[Any, ...], was: Any, now: Any, settings: Mapping[str, Any]) -> str:
    """What `_difference` found, as a sentence; settings: those of the run that is to begin."""
    match path:
        case ("text",):
            return "that run was trained on another text"
        case ("validation", "text"):
            return "that run was evaluated on another validation text"
        case ("validation", "batches"):
            counts = ["the whole text" if n is None else f"{n} batches" for n in (was, now)]
            return f"that run was evaluated on {counts[0]}, this one on {counts[1]}"
        case ("schedule", step):
            return f"that run's schedule gave step {step} the factor {was}, this one's {now}"
        case ("generator",):
            given = ["a generator for its batches" if yes else "none" for yes in (was, now)]
            return f"that run was given {given[0]}, this one {given[1]}"
        case ("model",):
            kinds = ["GPT" if isinstance(kind, dict) else kind for kind in (was, now)]
            return f"that run trained a {kinds[0]}, this one a {kinds[1]}"
        case ("model", name):
            return f"that run's model has {name} {was}, this one {now}"
        case ("optimisers",) if isinstance(was, list):
            return f"the number of optimizers was {len(was)} in that run, and is {len(now)} now"
        case ("optimisers", _) if isinstance(was, list) and was and was[0] != now[0]:
            return f"that run used {was[0]}, this one {now[0]}"
        case ("optimisers", _, 0):
            return f"that run used {was}, this one {now}"
        case ("optimisers", number, *_):
            kind = settings["optimisers"][number][0]
            return f"the {kind} of that run had other groups of parameters"
        case ("hyperparameters", number, group, name):
            where = ""
            if len(settings["hyperparameters"][number]) > 1:
                where += f" in the {_ordinal(group)} group"
            if len(settings["hyperparameters"]) > 1:
                where += f" of {settings['optimisers'][number][0]}"
            words = "learning rate" if name == "lr" else name.replace("_", " ")
            return f"that run used {words} {was}{where}, this one {now}"
    return f"that run had {path[0]} {was}, this one {now}"


def _ordinal(index: int) -> str:
    words = ("first", "second", "third", "fourth", "fifth")
    return words[index] if index < len(words) else f"{index + 1}th"


def _states(tensors: Mapping[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """An optimizer's state by the number of the parameter; empty before the first step."""
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, _, key = name.partition("/")
        states.setdefault(int(index), {})[key] = tensor
    return states


def _stepped_shapes(optimizer: Optimizer) -> list[list[list[int]]]:
    """The shapes of what an optimizer steps, group by group."""
    return [[list(p.shape) for p in group["params"]] for group in optimizer.param_groups]


def _hyperparameters(optimizer: Optimizer) -> list[dict[str, str]]:
    """Rates, momenta and the like, group by group, without the ways to compute the same."""
    left_out = ("params", "foreach", "fused", "capturable", "differentiable", "initial_lr")
    groups = [{**g, "lr": g.get("initial_lr", g["lr"])} for g in optimizer.param_groups]
    return [{n: repr(value) for n, value in g.items() if n not in left_out} for g in groups]


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
    if generator is not None:
        generator.set_state(states["batches"])
