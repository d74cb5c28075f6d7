"""Models in files: saved and loaded, and a training run that can be taken up again.

The files are safetensors: numbers and text, nothing that could be executed. They are written beside
their place and moved into it, so that a crash leaves the old file or the new one, never half of it.
"""

import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.optim import Optimizer

from helpers.distributed import divided_like, first_process, whole
from helpers.files import expect_no_pointer, json_object, write_whole
from helpers.gpt import GPT, GPTConfig
from helpers.text import BPETokenizer, CharTokenizer
from helpers.text.bpe import from_file, to_file

Tokenizer = CharTokenizer | BPETokenizer
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


@dataclass
class Checkpoint:
    """A model as it was saved, with what belongs to it.

    model: in evaluation mode, in float32; tokenizer: None if none was saved; notes: whatever the
    one who saved it wrote down. Taught in chapter 10.
    """

    model: GPT
    tokenizer: Tokenizer | None = None
    notes: dict[str, Any] = field(default_factory=dict)


def save_checkpoint(
    path: str | Path,
    model: nn.Module,
    tokenizer: Tokenizer | None = None,
    notes: Mapping[str, Any] | None = None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write a model to a safetensors file, in one piece or not at all.

    notes: what to remember, anything that JSON can hold; dtype: of the numbers in the file, for
    example torch.float16 for half the size. Raises ValueError for a GPT with a part that
    `load_checkpoint` could not give back, a tokenizer with another vocabulary, a dtype that is not
    one of floating-point numbers, numbers that are too large for it, and notes that are nested too
    deeply. Taught in chapter 10.
    """
    if dtype not in DTYPES:
        names = ", ".join(map(str, DTYPES))
        raise ValueError(f"dtype should be one of {names}, which keep fractions, not {dtype}")
    if isinstance(config := getattr(model, "config", None), GPTConfig):
        _expect_vocabulary(config, tokenizer)
    about = {
        "config": _settings(model),
        **_described(tokenizer),
        "notes": dict(notes or {}),
    }
    tensors = {}
    for name, part in weights_of(model).items():
        tensor = whole(part)
        kept = tensors[name] = tensor.to(dtype) if tensor.is_floating_point() else tensor
        if kept.isinf().any() and not tensor.isinf().any():
            raise ValueError(f"{name} holds {tensor.abs().max():.3g}: too large for {dtype}")
    write_tensors(path, tensors, about)


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read what `save_checkpoint` wrote: the model, built anew, with its weights.

    Raises FileNotFoundError, and ValueError for what is no such file: another format (pickles are
    never opened), a truncated file, settings that GPT does not know, missing or surplus weights.
    Taught in chapter 10.
    """
    tensors, about = read_tensors(path)
    if about.get("config") is None:
        if "run" in about:
            raise ValueError(
                f"{path} holds the state of a training run, not a model alone: train(…, "
                "resume=True) goes on from it; the best weights of the run, if it was evaluated, "
                "are in best.safetensors beside it"
            )
        raise ValueError(f"{path} holds weights but no settings of a GPT to put them into")
    try:
        if not isinstance(about["config"], dict):
            raise TypeError(f"its settings are a {type(about['config']).__name__}")
        config = GPTConfig.from_dict(about["config"])
        if config.n_layer > len(tensors):
            raise ValueError(f"{config.n_layer} blocks, but {len(tensors)} tensors in all")
        with torch.device("meta"):  # shapes only: what does not fit shall not cost any memory
            planned = weights_of(GPT(replace(config, n_layer=1)))
        for name in [name for name in planned if name.startswith("blocks.0.")]:  # all are alike
            for layer in range(1, config.n_layer):
                planned[name.replace("0", str(layer), 1)] = planned[name]
        tokenizer = _tokenizer(about)
        _expect_vocabulary(config, tokenizer)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ValueError(f"{path} does not describe a GPT of this course: {error}") from error
    expect_fit(planned, tensors, path)
    model = GPT(config)
    load_weights(model, tensors, path)
    return Checkpoint(model.eval(), tokenizer, about.get("notes", {}))


def _expect_vocabulary(config: GPTConfig, tokenizer: Tokenizer | None) -> None:
    """Raise ValueError if model and tokenizer do not speak of the same tokens."""
    if tokenizer is not None and tokenizer.vocab_size != config.vocab_size:
        raise ValueError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, the model {config.vocab_size}"
        )


def _settings(model: nn.Module) -> dict[str, Any] | None:
    """The settings from which a GPT is built anew, None for any other model.

    Raises ValueError if what they build is not this model: a part was exchanged afterwards.
    """
    config = getattr(model, "config", None)
    if not isinstance(config, GPTConfig):
        return None
    settings = config.to_dict()
    with torch.device("meta"):  # shapes only
        again = GPT(GPTConfig.from_dict(settings))
    for mine, built in zip_longest(model.named_modules(), again.named_modules()):
        if mine is None or built is None or not _alike(mine[1], built[1]):
            name, part = mine or built
            raise ValueError(
                f"{name or 'the model'} is {type(part).__name__}({part.extra_repr()}), which its "
                "config does not build: a checkpoint would give back another model"
            )
    return settings


def _alike(a: nn.Module, b: nn.Module) -> bool:
    return _kind(a) is _kind(b) and a.extra_repr() == b.extra_repr()


def _kind(module: nn.Module) -> type[nn.Module]:
    """Its class, or what that was before `fully_shard` gave it another one."""
    kind = type(module)
    return kind.__bases__[1] if kind.__bases__[0].__name__ == "FSDPModule" else kind


def _described(tokenizer: Tokenizer | None) -> dict[str, Any]:
    if isinstance(tokenizer, BPETokenizer):
        merges = [[to_file(left), to_file(right)] for left, right in tokenizer.merges]
        layout = {
            "alphabet": "".join(map(to_file, tokenizer.alphabet)),
            "special_first": tokenizer.special_first,
            "single_digits": tokenizer.single_digits,
        }
        return {"merges": merges, "special": list(tokenizer.special), **layout}
    return {"symbols": None if tokenizer is None else "".join(tokenizer.symbols)}


def _tokenizer(about: Mapping[str, Any]) -> Tokenizer | None:
    if "merges" in about:
        merges = [(from_file(left), from_file(right)) for left, right in about["merges"]]
        layout = {name: about[name] for name in ("special_first", "single_digits") if name in about}
        if "alphabet" in about:
            layout["alphabet"] = map(from_file, about["alphabet"])
        return BPETokenizer(merges, about.get("special", ()), **layout)
    return None if about.get("symbols") is None else CharTokenizer(about["symbols"])


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """All that a model has learnt: parameters and buffers by name, what is shared only once.

    Taught in chapter 10.
    """
    first: dict[int, str] = {}  # state_dict names a shared tensor twice
    whole = model.state_dict(keep_vars=True)
    return {name: t.detach() for name, t in whole.items() if first.setdefault(id(t), name) == name}


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], source: str | Path) -> None:
    """Copy tensors to the weights of the same names; all must fit before one is changed.

    Raises ValueError for missing or surplus names and for other shapes. Taught in chapter 10.
    """
    own = weights_of(model)
    expect_fit(own, tensors, source)
    for name, p in own.items():
        p.copy_(divided_like(tensors[name], p))


def expect_fit(own: Mapping[str, Tensor], tensors: Mapping[str, Any], source: str | Path) -> None:
    """Raise ValueError unless names and shapes are those of the model's own weights.

    Taught in chapter 10.
    """
    if missing := sorted(set(own) - set(tensors)):
        raise ValueError(f"{source} lacks {len(missing)} weights of the model: {missing[:3]} …")
    if surplus := sorted(set(tensors) - set(own)):
        raise ValueError(f"{source} has {len(surplus)} weights too many: {surplus[:3]} …")
    for name, p in own.items():
        if p.shape != tensors[name].shape:
            raise ValueError(
                f"{source}: {name} has shape {tuple(tensors[name].shape)}, but the model's has "
                f"{tuple(p.shape)}: was it trained with other settings?"
            )


def not_finite(model: nn.Module, optimisers: Sequence[Optimizer] = ()) -> list[str]:
    """The names of the weights, and of what optimisers remember, that hold NaN or infinity.

    Of tensors that are divided among processes, only the part of this process counts.
    Taught in chapter 10.
    """
    found = [name for name, tensor in weights_of(model).items() if not _is_finite(tensor)]
    for optimiser in optimisers:
        remembered = {name for state in optimiser.state.values() for name, value in state.items()
                      if not _is_finite(value)}  # fmt: skip
        found += [f"{name} of {type(optimiser).__name__}" for name in sorted(remembered)]
    return found


def infinite_constants(model: nn.Module) -> set[str]:
    """The names of what is not trained and holds NaN or infinity: a mask of −∞, for example.

    Taught in chapter 10.
    """
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    return set(not_finite(model)) - trained


def _is_finite(value: Any) -> bool:
    if not isinstance(value, Tensor):
        return not isinstance(value, float) or math.isfinite(value)
    own: Tensor = getattr(value, "to_local", lambda: value)()
    return bool(own.isfinite().all())


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """In the `with` block the model is in evaluation mode; afterwards each of its modules gets its
    own mode back, also after an error. Taught in chapter 02.
    """
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        yield
    finally:
        model.train(modes[model])
        for module, training in modes.items():
            module.training = training


def write_tensors(
    path: str | Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]
) -> None:
    """A safetensors file with a description that JSON can hold, replaced in one step.

    Of several processes all must call this; the first writes. Taught in chapter 10.
    """
    kept = {name: whole(tensor).detach().cpu().contiguous() for name, tensor in tensors.items()}
    if not first_process():
        return
    try:
        text = json.dumps(about)
    except RecursionError:
        raise ValueError("the notes are nested too deeply for a file") from None
    # One entry, since safetensors writes several in any order: same model, same bytes.
    described = json.dumps({**about, "crc32": _crc32(kept, json.loads(text))})
    write_whole(path, save(kept, metadata={"about": described}))


def _crc32(tensors: Mapping[str, Tensor], about: dict[str, Any]) -> int:
    """A number that changes when anything in the file does: a disk may forget a bit."""
    crc = zlib.crc32(json.dumps(about).encode())
    for name, tensor in sorted(tensors.items()):
        crc = zlib.crc32(f"{name} {tensor.dtype} {list(tensor.shape)}".encode(), crc)
        crc = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, crc)
    return crc


def read_tensors(path: str | Path, ours: bool = False) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the description in a file that `write_tensors` wrote.

    ours: must it be a file of this course? One from elsewhere has no checksum.
    Raises FileNotFoundError, and ValueError for a file that is damaged or of another kind.
    Taught in chapter 10.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint at {path}")
    expect_no_pointer(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(
            f"{path} is not a whole safetensors file ({error}). It may be truncated, or a pickle "
            "(.pt, .pth), which this course never opens: get or train it again"
        ) from error
    try:
        about = json_object(metadata.get("about", "{}"))
    except ValueError as error:
        raise ValueError(f"the description in {path} is damaged: {error}") from error
    has_sum = "crc32" in about or ours
    try:
        damaged = has_sum and about.pop("crc32", None) != _crc32(tensors, about)
    except RecursionError:
        raise ValueError(f"the description in {path} is nested too deeply") from None
    if damaged:
        raise ValueError(f"{path} is damaged: its checksum is not that of its content")
    return tensors, about


# --- a run that can be taken up again ------------------------------------------------------------


class RunFolder:
    """What a run keeps on disk: `last.safetensors`, all that the next step depends on, and
    `best.safetensors`, the weights with the lowest validation loss.

    settings: what must not change when the run is taken up again. Taught in chapter 10.
    """

    def __init__(
        self,
        folder: str | Path,
        model: nn.Module,
        optimisers: Sequence[Optimizer],
        generator: torch.Generator | None,
        settings: dict[str, Any],
    ):
        self.folder = Path(folder)
        self.last, self.best = self.folder / "last.safetensors", self.folder / "best.safetensors"
        self.model, self.optimisers, self.generator = model, optimisers, generator
        self.settings = {
            **settings,
            "model": _settings(model) or _kind(model).__name__,
            "optimisers": [[type(o).__name__, *_shapes(o)] for o in optimisers],
            "hyperparameters": [_hyperparameters(o) for o in optimisers],
            "generator": generator is not None,
        }

    def start(self, resume: bool) -> dict[str, Any]:
        """The record of the run in the folder, its state put back; empty for a fresh run.

        Raises FileExistsError rather than overwrite a run, and ValueError if the one in the folder
        belongs to another model, other optimisers or other settings, or holds NaN or infinity.
        """
        self.folder.mkdir(parents=True, exist_ok=True)  # if that fails, then now
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
                f"{self.folder} holds a run already: take it up again with resume=True, or choose "
                "another folder"
            )
        tensors, about = read_tensors(last, ours=True)
        parts: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts.setdefault(part, {})[rest] = tensor
        try:
            run, before = dict(about["run"]), dict(about["settings"])
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{last} is not the state of a training run") from None
        if before.get("validation") is None:  # nothing was evaluated, or it was not yet recorded
            before["validation"] = self.settings["validation"]
        elif self.settings["validation"] is None:
            self.settings["validation"] = before["validation"]
        now = json.loads(json.dumps(self.settings))  # JSON knows no tuples
        for name, value in now.items():
            if found := _difference((name,), before.get(name), value):
                place, old, new = found
                raise ValueError(
                    f"{last}: {_in_words(place, old, new, now)}. Resume with the settings of that "
                    "run, or choose another folder"
                )
        states = [_states(parts.get(f"optimiser{i}", {})) for i in range(len(self.optimisers))]
        for optimiser, state in zip(self.optimisers, states, strict=True):
            _expect_states(optimiser, state, last)
        drawn = _expect_random_states(parts.get("random", {}), self.generator, last)
        allowed = {f"model/{name}" for name in infinite_constants(self.model)}
        if ruined := [n for n, t in tensors.items() if not _is_finite(t) and n not in allowed]:
            raise ValueError(
                f"{last} holds NaN or infinity ({ruined[0]}): that run had failed before it was "
                "kept and cannot be resumed. Start another one in another folder"
            )
        load_weights(self.model, parts.get("model", {}), last)
        for optimiser, state in zip(self.optimisers, states, strict=True):
            groups = optimiser.state_dict()["param_groups"]
            stepped = [p for group in optimiser.param_groups for p in group["params"]]
            for index, values in state.items():
                for name, value in values.items():
                    if value.shape == stepped[index].shape:
                        values[name] = divided_like(value, stepped[index])
            optimiser.load_state_dict({"state": state, "param_groups": groups})
        _set_random_states(self.generator, drawn)
        return run

    def keep_best(self, notes: Mapping[str, Any]) -> None:
        """Write `best.safetensors`: the weights as they are now."""
        save_checkpoint(self.best, self.model, notes=notes)

    def keep(self, record: Mapping[str, Any]) -> None:
        """Write `last.safetensors`, with a record of the run so far."""
        tensors = {f"model/{name}": tensor for name, tensor in weights_of(self.model).items()}
        for number, optimiser in enumerate(self.optimisers):
            for index, state in optimiser.state_dict()["state"].items():
                for name, value in state.items():
                    tensors[f"optimiser{number}/{index}/{name}"] = value
        for name, value in _random_states(self.generator).items():
            tensors[f"random/{name}"] = value
        write_tensors(self.last, tensors, {"run": record, "settings": self.settings})


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
        case ("generator",):
            given = ["a generator for its batches" if yes else "none" for yes in (was, now)]
            return f"that run was given {given[0]}, this one {given[1]}"
        case ("model",):
            kinds = ["GPT" if isinstance(kind, dict) else kind for kind in (was, now)]
            return f"that run trained a {kinds[0]}, this one a {kinds[1]}"
        case ("model", name):
            return f"that run's model has {name} {was}, this one {now}"
        case ("optimisers",) if isinstance(was, list):
            return f"the number of optimisers was {len(was)} in that run, and is {len(now)} now"
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
    """What an optimiser remembers, which may be nothing: before its first step, or ever."""
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, _, key = name.partition("/")
        states.setdefault(int(index), {})[key] = tensor
    return states


def _expect_states(
    optimiser: Optimizer, states: Mapping[int, Mapping[str, Tensor]], source: Path
) -> None:
    """Raise ValueError for what an optimiser remembers of a tensor of another shape: its kernels
    do not look, and read beyond it."""
    stepped = [p for group in optimiser.param_groups for p in group["params"]]
    for index, state in states.items():
        for name, value in state.items():
            fits = index < len(stepped) and value.shape in (stepped[index].shape, ())
            if not fits:
                raise ValueError(
                    f"{source}: {name} of the optimiser's tensor {index} has shape "
                    f"{tuple(value.shape)}, which fits nothing that it steps"
                )


def _shapes(optimiser: Optimizer) -> list[list[list[int]]]:
    """The shapes of what an optimiser steps, group by group."""
    return [[list(p.shape) for p in group["params"]] for group in optimiser.param_groups]


def _hyperparameters(optimiser: Optimizer) -> list[dict[str, str]]:
    """Rates, momenta and the like, group by group, without the ways to compute the same."""
    left_out = ("params", "foreach", "fused", "capturable", "differentiable")
    return [
        {name: repr(value) for name, value in group.items() if name not in left_out}
        for group in optimiser.param_groups
    ]


def _random_states(generator: torch.Generator | None) -> dict[str, Tensor]:
    """Dropout draws from torch's own generators, batches from the one that was given."""
    states = {"torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    if generator is not None:
        states["batches"] = generator.get_state()
    return states


def _expect_random_states(
    states: dict[str, Tensor], generator: torch.Generator | None, source: Path
) -> dict[str, Tensor]:
    """Raise ValueError unless the states are there and are such states."""
    wanted = {"torch": torch.device("cpu")}
    if generator is not None:
        wanted["batches"] = generator.device
    for name, device in wanted.items():
        try:
            torch.Generator(device).set_state(states[name])
        except (KeyError, TypeError, RuntimeError) as error:
            raise ValueError(f"{source} holds no random state {name!r}: {error}") from error
    return states


def _set_random_states(generator: torch.Generator | None, states: dict[str, Tensor]) -> None:
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])
    if "batches" in states and generator is not None:
        generator.set_state(states["batches"])
