"""Models in files, and the files of a training run that can be resumed.

All are safetensors: numbers and text, nothing that could be executed. A crash while one is written
leaves the old file or the new one, never half of it.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from helpers.formats.files import expect_no_pointer, json_object, write_whole
from helpers.gpt import GPT, GPTConfig
from helpers.runs.distributed import first_process, full_tensor, shard_like
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

    Raises ValueError for a GPT that was changed since it was made from its config, a tokenizer with
    another vocabulary, a dtype that is not a floating-point one, and numbers too large for it;
    TypeError for notes that JSON cannot hold. Taught in: training.
    """
    if dtype not in DTYPES:
        names = ", ".join(map(str, DTYPES))
        raise ValueError(f"dtype should be one of {names}, which keep fractions, not {dtype}")
    if (config := config_of(model)) is not None:
        _expect_vocabulary(config, tokenizer)
    metadata = {
        "config": config and asdict(config),
        **_described(tokenizer),
        "notes": dict(notes or {}),
    }
    write_tensors(path, weights_in(dtype, model), metadata)


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Return the model that `save_checkpoint` wrote, with its tokenizer and notes.

    Raises FileNotFoundError, and ValueError for a file of another kind (pickles are never opened),
    a truncated file, settings that GPT does not know, and missing or surplus weights.
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
        config = GPTConfig(**metadata["config"])
        tokenizer = _tokenizer(metadata)
        _expect_vocabulary(config, tokenizer)
        check_layers(config, tensors)
        with SkipInit():
            model = GPT(config)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} does not describe a GPT of this course: {error}") from error
    load_weights(model, tensors, path)
    return Checkpoint(model.eval(), tokenizer, metadata.get("notes", {}))


def _expect_vocabulary(config: GPTConfig, tokenizer: Tokenizer | None) -> None:
    """Raise ValueError if model and tokenizer have vocabularies of different sizes."""
    if tokenizer is not None and tokenizer.vocab_size != config.vocab_size:
        raise ValueError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, the model {config.vocab_size}"
        )


def check_layers(config: GPTConfig, names: Collection[str]) -> None:
    """Raise ValueError unless as many blocks have weights as the config says.

    To be called before a model is built, which could take all memory. Taught in: training.
    """
    if config.n_layer != n_layers(names):
        raise ValueError(f"it says {config.n_layer} blocks, but holds weights of {n_layers(names)}")


def n_layers(names: Collection[str]) -> int:
    """Return how many blocks have weights of these names. Taught in: training."""
    return len({name.split(".")[1] for name in names if name.startswith("blocks.")})


def weight_shapes(config: GPTConfig) -> Shapes:
    """Return the names and shapes of the weights of a GPT. Raises what `GPT` raises.

    Taught in: training.
    """
    with SkipInit():  # memory that is never written to takes no space
        return _shapes(unique_state_dict(GPT(config)))


class SkipInit(TorchFunctionMode):
    """In the `with` block, models get no initial weights, which take time and are loaded anyway.

    Taught in: training.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_):
            return kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def config_of(model: nn.Module) -> GPTConfig | None:
    """Return the config of a GPT, None for any other model.

    Raises ValueError if it describes another model: a part, or a setting of one, was changed after
    the model was made. Taught in: training.
    """
    config = getattr(model, "config", None)
    if not isinstance(config, GPTConfig):
        return None
    with SkipInit():
        planned = GPT(config)
    found, parts = dict(model.named_modules()), dict(planned.named_modules())
    for name in {**parts, **found}:
        own, its = (_settings(of.get(name), parts.get(name)) for of in (found, parts))
        if own != its:
            raise ValueError(
                f"{name or 'the model'} is {_named(*own)}, but the model's config describes "
                f"{_named(*its)}, and a file holds no more than config and weights. Put the old "
                "part back; merge adapters with merge_lora(model); open a file without int4"
            )
    shapes = (_shapes(unique_state_dict(each)) for each in (planned, model))
    check_shapes(next(shapes), next(shapes), "the model")
    return config


def _settings(part: nn.Module | None, like: nn.Module | None) -> tuple[type, dict[str, Any]]:
    """The class of a part, and its values of the attributes that another part has."""
    kinds = type(part).__mro__  # `fully_shard` puts a class of torch.distributed before the own
    kind = next(kind for kind in kinds if not kind.__module__.startswith("torch.distributed"))
    names = [name for name in vars(like or nn.Module()) if name not in ("training", "config")]
    return kind, {name: getattr(part, name, None) for name in names if name[0] != "_"}


def _named(kind: type, settings: Mapping[str, Any]) -> str:
    given = ", ".join(f"{name}={value}" for name, value in settings.items())
    return f"{kind.__module__}.{kind.__qualname__}({given})"


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
    """Return the parameters and buffers of a model by name, shared ones once.

    Taught in: training.
    """
    first: dict[int, str] = {}  # state_dict names a shared tensor twice
    state = model.state_dict(keep_vars=True)
    return {name: t.detach() for name, t in state.items() if first.setdefault(id(t), name) == name}


def weights_in(dtype: torch.dtype, model: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a model by name, those with fractions in a dtype.

    Raises ValueError for a number that is too large for it. Taught in: training.
    """
    weights = {name: full_tensor(tensor) for name, tensor in unique_state_dict(model).items()}
    return {n: to_dtype(t, dtype, n) if t.is_floating_point() else t for n, t in weights.items()}


def to_dtype(tensor: Tensor, dtype: torch.dtype, name: str) -> Tensor:
    """Return a tensor in a dtype. Raises ValueError, with its name, if a number becomes infinite,
    and if only one of the two dtypes keeps fractions. Taught in: training.
    """
    if (tensor.dtype in DTYPES) != (dtype in DTYPES):
        raise ValueError(f"{name} holds {tensor.dtype}, which is not read as {dtype}")
    result = tensor.to(dtype)
    if result.dtype != tensor.dtype and (result.isinf() & ~tensor.isinf()).any():
        raise ValueError(f"{name} holds {tensor.abs().max():.3g}: too large for {dtype}")
    return result


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], source: str | Path) -> None:
    """Copy tensors into the weights of the same names; if one does not fit, none is copied.

    Args:
        model: is changed.
        tensors: the new values, by name.
        source: where they come from, for messages.

    Raises ValueError for missing or surplus names, other shapes, and what `to_dtype` refuses.
    Taught in: training.
    """
    own = unique_state_dict(model)
    check_shapes(_shapes(own), _shapes(tensors), source)
    new = {n: to_dtype(tensors[n], p.dtype, f"{source}: {n}") for n, p in own.items()}
    for name, p in own.items():
        p.copy_(shard_like(new[name], p))


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


def write_tensors(
    path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]
) -> None:
    """Write a safetensors file with a description that JSON can hold, replaced in one step.

    Of several processes all must call this; the first writes. Taught in: training.
    """
    kept = {
        name: full_tensor(tensor).detach().cpu().contiguous() for name, tensor in tensors.items()
    }
    if first_process():
        # One entry, since safetensors writes several in any order: same model, same bytes.
        write_whole(path, save(kept, metadata={"about": json.dumps(metadata)}))


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the description in a file that `write_tensors` wrote.

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
        return tensors, json_object(file_metadata.get("about", "{}"))
    except ValueError as error:
        raise ValueError(f"the description in {path} is damaged: {error}") from error


# --- a run that can be resumed ------------------------------------------------------------
