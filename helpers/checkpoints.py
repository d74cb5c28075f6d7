"""Models in files: saved and loaded, and a training run that can be resumed.

The files are safetensors: numbers and text, nothing that could be executed. They are written beside
their place and moved into it, so that a crash leaves the old file or the new one, never half of it.
"""

import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.overrides import TorchFunctionMode

from helpers.distributed import first_process, full_tensor, shard_like
from helpers.files import expect_no_pointer, json_object, write_whole
from helpers.gpt import GPT, GPTConfig
from helpers.text import BPETokenizer, CharTokenizer
from helpers.text.bpe import from_file, to_file

Tokenizer = CharTokenizer | BPETokenizer
Shapes = Mapping[str, Sequence[int]]  # of weights, by name
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


@dataclass
class Checkpoint:
    """A model as it was saved, with what belongs to it.

    Attributes:
        model: in evaluation mode, in float32.
        tokenizer: None if none was saved.
        notes: what was saved with it.

    Taught in: training.
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
    """Write a model to a safetensors file, wholly or not at all.

    Args:
        path: the file; one that exists is replaced.
        model: a `GPT`, which `load_checkpoint` builds again from its config, or another module.
        tokenizer: saved with it, if given.
        notes: anything else that JSON can hold.
        dtype: of the numbers in the file, for example torch.float16 for half the size.

    Raises ValueError for a GPT whose config does not describe its weights, a tokenizer with another
    vocabulary, a dtype that is not a floating-point one, numbers too large for it, and notes that
    are nested too deeply. Taught in: training.
    """
    if dtype not in DTYPES:
        names = ", ".join(map(str, DTYPES))
        raise ValueError(f"dtype should be one of {names}, which keep fractions, not {dtype}")
    if isinstance(config := getattr(model, "config", None), GPTConfig):
        _expect_vocabulary(config, tokenizer)
    metadata = {
        "config": _config_of(model),
        **_described(tokenizer),
        "notes": dict(notes or {}),
    }
    tensors = {}
    for name, part in unique_state_dict(model).items():
        tensor = full_tensor(part)
        kept = tensors[name] = tensor.to(dtype) if tensor.is_floating_point() else tensor
        if kept.isinf().any() and not tensor.isinf().any():
            raise ValueError(f"{name} holds {tensor.abs().max():.3g}: too large for {dtype}")
    write_tensors(path, tensors, metadata)


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read what `save_checkpoint` wrote: the model, built anew, with its weights.

    Raises FileNotFoundError, and ValueError for what is no such file: another format (pickles are
    never opened), a truncated file, settings that GPT does not know, missing or surplus weights.
    Taught in: training.
    """
    tensors, metadata = read_tensors(path)
    if metadata.get("config") is None:
        if "run" in metadata:
            raise ValueError(
                f"{path} holds the state of a training run, not a model alone: Trainer.fit"
                "(resume=True) continues it; the best weights of the run, if it was evaluated, "
                "are in best.safetensors beside it"
            )
        raise ValueError(f"{path} holds weights but no settings of a GPT to put them into")
    try:
        if not isinstance(metadata["config"], dict):
            raise TypeError(f"its settings are a {type(metadata['config']).__name__}")
        config = GPTConfig(**metadata["config"])
        if config.n_layer > len(tensors):
            raise ValueError(f"{config.n_layer} blocks, but {len(tensors)} tensors in all")
        planned = weight_shapes(config)
        tokenizer = _tokenizer(metadata)
        _expect_vocabulary(config, tokenizer)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ValueError(f"{path} does not describe a GPT of this course: {error}") from error
    check_shapes(planned, _shapes(tensors), path)
    with SkipInit():
        model = GPT(config)
    load_weights(model, tensors, path)
    return Checkpoint(model.eval(), tokenizer, metadata.get("notes", {}))


def _expect_vocabulary(config: GPTConfig, tokenizer: Tokenizer | None) -> None:
    """Raise ValueError if model and tokenizer do not speak of the same tokens."""
    if tokenizer is not None and tokenizer.vocab_size != config.vocab_size:
        raise ValueError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, the model {config.vocab_size}"
        )


def weight_shapes(config: GPTConfig) -> Shapes:
    """Names and shapes of the weights of a GPT, found without the memory for them.

    Raises what `GPT` raises. Taught in: training.
    """
    # All blocks are alike. Rotary has no weights, and on the device "meta" its angles would load
    # PyTorch's compiler, which takes seconds; so would drawing initial weights.
    position = None if config.position == "Rotary" else config.position
    with torch.device("meta"), SkipInit():
        state = unique_state_dict(GPT(replace(config, n_layer=1, position=position)))
    shapes = dict(_shapes(state))
    for name in [name for name in shapes if name.startswith("blocks.0.")]:
        shapes |= {name.replace("0", str(i), 1): shapes[name] for i in range(1, config.n_layer)}
    return shapes


class SkipInit(TorchFunctionMode):
    """Models made in its `with` block get no initial weights, which takes time: they are loaded.

    Taught in: training.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_):
            return kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def _config_of(model: nn.Module) -> dict[str, Any] | None:
    """The settings of a GPT, None for any other model.

    Raises ValueError if they describe other weights: a part was exchanged after the model was made.
    """
    config = getattr(model, "config", None)
    if not isinstance(config, GPTConfig):
        return None
    found = _shapes(unique_state_dict(model))
    if different := sorted(set(found.items()) ^ set(weight_shapes(config).items())):
        raise ValueError(
            f"the model's config does not describe its weights ({different[0][0]} differs), so "
            "that a checkpoint could not be loaded: was a part exchanged after the model was made?"
        )
    return asdict(config)


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


def _tokenizer(metadata: Mapping[str, Any]) -> Tokenizer | None:
    if "merges" in metadata:
        merges = [(from_file(left), from_file(right)) for left, right in metadata["merges"]]
        layout = {
            name: metadata[name] for name in ("special_first", "single_digits") if name in metadata
        }
        if "alphabet" in metadata:
            layout["alphabet"] = map(from_file, metadata["alphabet"])
        return BPETokenizer(merges, metadata.get("special", ()), **layout)
    return None if metadata.get("symbols") is None else CharTokenizer(metadata["symbols"])


def unique_state_dict(model: nn.Module) -> dict[str, Tensor]:
    """All that a model has learnt: parameters and buffers by name, what is shared only once.

    Taught in: training.
    """
    first: dict[int, str] = {}  # state_dict names a shared tensor twice
    state = model.state_dict(keep_vars=True)
    return {name: t.detach() for name, t in state.items() if first.setdefault(id(t), name) == name}


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], source: str | Path) -> None:
    """Copy tensors to the weights of the same names; all must fit before one is changed.

    source: the file they come from, for messages.
    Raises ValueError for missing or surplus names and for other shapes. Taught in: training.
    """
    own = unique_state_dict(model)
    check_shapes(_shapes(own), _shapes(tensors), source)
    for name, p in own.items():
        p.copy_(shard_like(tensors[name], p))


def _shapes(tensors: Mapping[str, Tensor]) -> Shapes:
    return {name: tensor.shape for name, tensor in tensors.items()}


def check_shapes(expected: Shapes, found: Shapes, source: str | Path) -> None:
    """Raise ValueError unless the names and shapes found in `source` are those of the model.

    Taught in: training.
    """
    if missing := sorted(set(expected) - set(found)):
        raise ValueError(f"{source} lacks {len(missing)} weights of the model: {missing[:3]} …")
    if surplus := sorted(set(found) - set(expected)):
        raise ValueError(f"{source} has {len(surplus)} weights too many: {surplus[:3]} …")
    for name, shape in expected.items():
        if tuple(shape) != tuple(found[name]):
            raise ValueError(
                f"{source}: {name} has shape {tuple(found[name])}, but the model's has "
                f"{tuple(shape)}: was it trained with other settings?"
            )


def not_finite(model: nn.Module, optimizers: Sequence[Optimizer] = ()) -> list[str]:
    """The names of the weights, and of the optimizers' states, that hold NaN or infinity.

    Of tensors that are divided among processes, only the part of this process counts.
    Taught in: training.
    """
    found = [name for name, tensor in unique_state_dict(model).items() if not _is_finite(tensor)]
    for optimizer in optimizers:
        remembered = {name for state in optimizer.state.values() for name, value in state.items()
                      if not _is_finite(value)}  # fmt: skip
        found += [f"{name} of {type(optimizer).__name__}" for name in sorted(remembered)]
    return found


def infinite_constants(model: nn.Module) -> set[str]:
    """The names of what is not trained and holds NaN or infinity: a mask of −∞, for example.

    Taught in: training.
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
    own mode back, also after an error. Taught in: language_modelling.
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
    path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]
) -> None:
    """A safetensors file with a description that JSON can hold, replaced in one step.

    Of several processes all must call this; the first writes. Taught in: training.
    """
    kept = {
        name: full_tensor(tensor).detach().cpu().contiguous() for name, tensor in tensors.items()
    }
    if not first_process():
        return
    try:
        text = json.dumps(metadata)
    except RecursionError:
        raise ValueError("the notes are nested too deeply for a file") from None
    # One entry, since safetensors writes several in any order: same model, same bytes.
    described = json.dumps({**metadata, "crc32": _crc32(kept, json.loads(text))})
    write_whole(path, save(kept, metadata={"about": described}))


def _crc32(tensors: Mapping[str, Tensor], metadata: dict[str, Any]) -> int:
    """A number that changes when anything in the file does: a disk may forget a bit."""
    crc = zlib.crc32(json.dumps(metadata).encode())
    for name, tensor in sorted(tensors.items()):
        crc = zlib.crc32(f"{name} {tensor.dtype} {list(tensor.shape)}".encode(), crc)
        crc = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, crc)
    return crc


def read_tensors(path: str | Path, ours: bool = False) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the description in a file that `write_tensors` wrote.

    ours: must it be a file of this course? One from elsewhere has no checksum.
    Raises FileNotFoundError, and ValueError for a file that is damaged or of another kind.
    Taught in: training.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint at {path}")
    expect_no_pointer(path)
    try:
        with safe_open(path, framework="pt") as file:
            file_metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(
            f"{path} is not a whole safetensors file ({error}). It may be truncated, or a pickle "
            "(.pt, .pth), which this course never opens: get or train it again"
        ) from error
    try:
        metadata = json_object(file_metadata.get("about", "{}"))
    except ValueError as error:
        raise ValueError(f"the description in {path} is damaged: {error}") from error
    has_sum = "crc32" in metadata or ours
    try:
        damaged = has_sum and metadata.pop("crc32", None) != _crc32(tensors, metadata)
    except RecursionError:
        raise ValueError(f"the description in {path} is nested too deeply") from None
    if damaged:
        raise ValueError(f"{path} is damaged: its checksum is not that of its content")
    return tensors, metadata


# --- a run that can be resumed ------------------------------------------------------------


class RunFolder:
    """What a run keeps on disk: `last.safetensors`, all that the next step depends on, and
    `best.safetensors`, the weights with the lowest validation loss.

    settings: what must not change when the run is resumed. Taught in: training.
    """

    def __init__(
        self,
        folder: str | Path,
        model: nn.Module,
        optimizers: Sequence[Optimizer],
        generator: torch.Generator | None,
        settings: dict[str, Any],
    ):
        self.folder = Path(folder)
        self.last, self.best = self.folder / "last.safetensors", self.folder / "best.safetensors"
        self.model, self.optimizers, self.generator = model, optimizers, generator
        self.settings = {
            **settings,
            "model": _config_of(model) or type(model).__name__,
            "optimisers": [[type(o).__name__, *_stepped_shapes(o)] for o in optimizers],
            "hyperparameters": [_hyperparameters(o) for o in optimizers],
            "generator": generator is not None,
        }

    def start(self, resume: bool) -> dict[str, Any]:
        """The record of the run in the folder, its state put back; empty for a fresh run.

        Raises FileExistsError rather than overwrite a run, and ValueError if the one in the folder
        belongs to another model, other optimizers or other settings, or holds NaN or infinity.
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
                f"{self.folder} holds a run already: continue it with resume=True, or choose "
                "another folder"
            )
        tensors, metadata = read_tensors(last, ours=True)
        parts: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts.setdefault(part, {})[rest] = tensor
        try:
            run, before = dict(metadata["run"]), dict(metadata["settings"])
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
        states = [_states(parts.get(f"optimiser{i}", {})) for i in range(len(self.optimizers))]
        for optimizer, state in zip(self.optimizers, states, strict=True):
            _expect_states(optimizer, state, last)
        drawn = _expect_random_states(parts.get("random", {}), self.generator, last)
        allowed = {f"model/{name}" for name in infinite_constants(self.model)}
        if ruined := [n for n, t in tensors.items() if not _is_finite(t) and n not in allowed]:
            raise ValueError(
                f"{last} holds NaN or infinity ({ruined[0]}): that run had failed before it was "
                "kept and cannot be resumed. Start another one in another folder"
            )
        load_weights(self.model, parts.get("model", {}), last)
        for optimizer, state in zip(self.optimizers, states, strict=True):
            groups = optimizer.state_dict()["param_groups"]
            stepped = [p for group in optimizer.param_groups for p in group["params"]]
            for index, values in state.items():
                for name, value in values.items():
                    if value.shape == stepped[index].shape:
                        values[name] = shard_like(value, stepped[index])
            optimizer.load_state_dict({"state": state, "param_groups": groups})
        _set_random_states(self.generator, drawn)
        return run

    def save_best(self, notes: Mapping[str, Any]) -> None:
        """Write `best.safetensors`: the weights as they are now."""
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
    """What an optimizer remembers, which may be nothing: before its first step, or ever."""
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, _, key = name.partition("/")
        states.setdefault(int(index), {})[key] = tensor
    return states


def _expect_states(
    optimizer: Optimizer, states: Mapping[int, Mapping[str, Tensor]], source: Path
) -> None:
    """Raise ValueError for what an optimizer remembers of a tensor of another shape: its kernels
    do not look, and read beyond it."""
    stepped = [p for group in optimizer.param_groups for p in group["params"]]
    for index, state in states.items():
        for name, value in state.items():
            fits = index < len(stepped) and value.shape in (stepped[index].shape, ())
            if not fits:
                raise ValueError(
                    f"{source}: {name} of the optimizer's tensor {index} has shape "
                    f"{tuple(value.shape)}, which fits nothing that it steps"
                )


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
