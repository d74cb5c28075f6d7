"""Models in folders of three standard files, as `transformers` has them, and safetensors files.

config.json says what the model is, model.safetensors holds its weights, tokenizer.json its tokens:
numbers and text, nothing that could be executed. A crash while they are written leaves the old ones
or the new ones.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from helpers.formats.files import MADE, json_object, newest, read_json, write_folder, write_whole
from helpers.formats.tokenizer_json import from_file, read_tokenizer, to_file, tokenizer_json
from helpers.gpt import GPT, NORMS, GPTConfig
from helpers.positions import Rotary
from helpers.quantization import HalfEmbedding, HalfLinear
from helpers.runs.distributed import first_process, full_tensor, shard_like
from helpers.text import BPETokenizer, CharTokenizer, Tokenizer
from helpers.text.bpe import BYTES

Shapes = Mapping[str, tuple[int, ...]]  # of weights, by name
# Names of weights in the last release → now.
LAST_RELEASE = {"head.": "lm_head.", "position.table": "position", "mlp.output": "mlp.down"}


@dataclass
class Checkpoint:
    """A model as it was saved, in evaluation mode and float32, with what belongs to it."""

    model: GPT
    tokenizer: Tokenizer | None = None
    notes: dict[str, Any] = field(default_factory=dict)


def save_checkpoint(
    folder: str | Path,
    model: nn.Module,
    tokenizer: Tokenizer | None = None,
    notes: Mapping[str, Any] | None = None,  # anything else that JSON can hold
    dtype: torch.dtype | None = None,  # float16 for half the size; None: as the numbers are
) -> None:
    """Write a model to a folder, wholly or not at all; its files there are replaced.

    A `GPT`, or a model of your own with its names (see `described`), comes back from
    `load_checkpoint`; of another module only the weights are written.
    """
    config = config_of(model)
    if config and tokenizer:
        check_vocabulary(config, tokenizer)
    about = asdict(config) if config else {}
    about["tokenizer_class"] = type(tokenizer).__name__ if tokenizer else None
    about["notes"] = dict(notes or {})
    weights = weights_in(dtype, model)
    files = {"config.json": config_json(about), "model.safetensors": to_bytes(weights)}
    if tokenizer:
        files["tokenizer.json"] = tokenizer_json(tokenizer)
    if first_process():
        write_folder(folder, files)


def load_checkpoint(folder: str | Path) -> Checkpoint:
    """Return the model that `save_checkpoint` wrote, or the last release in a single file.

    ValueError for damaged files, pickles (which are never opened) and weights that do not fit.
    """
    path, tokenizer = Path(folder), None
    if path.is_dir():
        tensors, _ = read_tensors(newest(path, "model.safetensors"))
        settings = read_json(newest(path, "config.json"))
        settings.pop("made_with", None)
        notes = settings.pop("notes", {})
        if settings.pop("tokenizer_class", None):
            tokenizer = read_tokenizer(newest(path, "tokenizer.json"))
    else:
        tensors, about = read_tensors(path)
        if not (settings := about.get("config", {})):
            wrong = "does not describe a GPT; the state of a run, if it is one, needs resume=True"
            raise ValueError(f"{path} {wrong}")
        tensors, notes = renamed(tensors, LAST_RELEASE), about.get("notes", {})
        tokenizer = _of_last_release(about)
    config = fitting_config(path, shapes_of(tensors), settings)
    if tokenizer:
        check_vocabulary(config, tokenizer)
    return Checkpoint(filled(config, tensors, path), tokenizer, notes)


def _of_last_release(about: Mapping[str, Any]) -> Tokenizer | None:
    if "merges" not in about:
        return CharTokenizer(about["symbols"]) if about.get("symbols") else None
    known = {"special", "special_first", "single_digits"} & about.keys()
    alphabet = [from_file(one) for one in about.get("alphabet", map(to_file, BYTES))]
    merges = [(from_file(left), from_file(right)) for left, right in about["merges"]]
    return BPETokenizer(merges, alphabet=alphabet, **{name: about[name] for name in known})


# --- what a model is ------------------------------------------------------------------------------


def config_of(model: nn.Module) -> GPTConfig | None:
    """Return the config of a GPT, or of a model of your own that has its names; else None."""
    try:
        return described(model)
    except ValueError:
        if isinstance(getattr(model, "config", None), GPTConfig):
            raise  # its weights are not those of its config
        return None


def described(model: nn.Module) -> GPTConfig:
    """Return the config of a GPT; of a model without one, that of a GPT with the same weights.

    Such a model has layer norms, learned positions and the names of a GPT's parts;
    `blocks[0].attention.n_head` says how many heads it has.
    """
    shapes = shapes_of(unique_state_dict(model))
    if isinstance(config := getattr(model, "config", None), GPTConfig):
        eps: Any = NORMS[config.norm](1).eps if config.norm_eps is None else config.norm_eps
        for p in model.modules():
            base = p.base if isinstance(p, Rotary) else config.rotary_base
            if (getattr(p, "eps", eps), base) != (eps, config.rotary_base):
                raise ValueError(f"{p} is not as the model's config says: change it there")
        return fitting_config("the model", shapes, asdict(config))
    try:
        vocab_size, n_embd = shapes["token.weight"]
        block: Any = model.get_submodule("blocks.0")
        settings = {
            "vocab_size": vocab_size,
            "block_size": shapes["position.weight"][0],
            "n_layer": n_layers(shapes),
            "n_head": block.attention.n_head,
            "n_embd": n_embd,
            "norm_eps": block.mlp_norm.eps,
            "hidden": shapes["blocks.0.mlp.up.weight"][0],
            "bias": "blocks.0.mlp.up.bias" in shapes,
            "tied": "lm_head.weight" not in shapes,
        }
    except (AttributeError, LookupError) as error:
        kind = type(model).__name__
        raise ValueError(f"a {kind} is no GPT, nor named as one; missing: {error}") from error
    return fitting_config("the model", shapes, settings)


def check_vocabulary(config: GPTConfig, tokenizer: Tokenizer) -> None:
    if (n := tokenizer.vocab_size) != config.vocab_size:
        raise ValueError(f"the tokenizer has {n} tokens, the model {config.vocab_size}")


def fitting_config(source: str | Path, shapes: Shapes, settings: Mapping[str, Any]) -> GPTConfig:
    """Return the config with these settings; ValueError unless its weights have these shapes."""
    try:
        config = GPTConfig(**settings)
        # Before a model is built, which could take all memory.
        if config.n_layer != (n := n_layers(shapes)):
            raise ValueError(f"it says {config.n_layer} blocks, but holds weights of {n}")
        with SkipInit():  # memory that is never written to takes no space
            planned = GPT(config)
    except (TypeError, ValueError, RuntimeError, ArithmeticError) as error:
        raise ValueError(f"{source} does not describe a GPT: {error}") from error
    check_shapes(shapes_of(unique_state_dict(planned)), shapes, source)
    return config


def n_layers(names: Collection[str]) -> int:
    return len({name.split(".")[1] for name in names if name.startswith("blocks.")})


class SkipInit(TorchFunctionMode):
    """In the `with` block, models get no initial weights, which take time and are loaded anyway."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_):
            return kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def unique_state_dict(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters and buffers of a model by name, shared ones once."""
    first: dict[int, str] = {}  # state_dict names a shared tensor twice
    state = model.state_dict(keep_vars=True)
    return {name: t.detach() for name, t in state.items() if first.setdefault(id(t), name) == name}


def weights_in(dtype: torch.dtype | None, model: nn.Module) -> dict[str, Tensor]:
    weights = {name: full_tensor(tensor) for name, tensor in unique_state_dict(model).items()}
    if dtype is None:
        return weights
    return {n: to_dtype(t, dtype, n) if t.is_floating_point() else t for n, t in weights.items()}


def to_dtype(tensor: Tensor, dtype: torch.dtype, name: str) -> Tensor:
    """Return a tensor in a dtype; ValueError if a number becomes infinite or loses its fraction."""
    if tensor.is_floating_point() != dtype.is_floating_point:
        raise ValueError(f"{name} holds {tensor.dtype}, which is not read as {dtype}")
    result = tensor.to(dtype)
    if result.dtype != tensor.dtype and (result.isinf() & ~tensor.isinf()).any():
        raise ValueError(f"{name} holds {tensor.abs().max():.3g}: too large for {dtype}")
    return result


def filled(config: GPTConfig, weights: Mapping[str, Tensor | nn.Module], source: str | Path) -> GPT:
    """The model with these weights in float32, or with a layer in place of a weight."""
    with SkipInit():
        model = GPT(config)
    for name, weight in weights.items():
        part, _, kind = name.rpartition(".")
        if isinstance(weight, Tensor):
            own = to_dtype(weight, torch.float32, f"{source}: {name}").contiguous()
            setattr(model.get_submodule(part), kind, nn.Parameter(own))
        else:
            model.set_submodule(part, weight)
    if config.tied and isinstance(model.token, HalfEmbedding):
        model.set_submodule("lm_head", HalfLinear(model.token.matrix))
    elif config.tied:
        model.lm_head.weight = model.token.weight
    return model.eval()


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], source: str | Path) -> None:
    """Copy tensors into the weights of the same names; if one does not fit, none is copied."""
    own = unique_state_dict(model)
    check_shapes(shapes_of(own), shapes_of(tensors), source)
    new = {n: to_dtype(tensors[n], p.dtype, f"{source}: {n}") for n, p in own.items()}
    for name, p in own.items():
        p.copy_(shard_like(new[name], p))


def renamed(tensors: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the tensors with each part of a name that `names` holds replaced: part → new part."""
    parts = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    return {parts.sub(lambda part: names[part[0]], name): t for name, t in tensors.items()}


def shapes_of(tensors: Mapping[str, Tensor]) -> Shapes:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def check_shapes(expected: Shapes, found: Shapes, source: str | Path) -> None:
    """Raise ValueError unless the names and shapes found in `source` are those of the model."""
    if missing := sorted(set(expected) - set(found)):
        raise ValueError(f"{source} lacks {len(missing)} weights of the model: {missing[:3]} …")
    if surplus := sorted(set(found) - set(expected)):
        raise ValueError(f"{source} has {len(surplus)} weights too many: {surplus[:3]} …")
    for name, shape in expected.items():
        if found[name] != shape:
            raise ValueError(f"{source}: {name} has shape {found[name]}, not {shape}")


# --- files ----------------------------------------------------------------------------------------


def to_json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, indent=2).encode()


def config_json(content: Mapping[str, Any]) -> bytes:
    """The config.json of a folder that `write_folder` may replace."""
    return to_json(content)[:-2] + b",\n  " + MADE


def to_bytes(tensors: Mapping[str, Tensor], about: Mapping[str, Any] | None = None) -> bytes:
    """Return the safetensors file of these tensors, which all processes must ask for together."""
    whole = {n: full_tensor(tensor).detach().cpu().contiguous() for n, tensor in tensors.items()}
    # One entry, since safetensors writes several in any order: same model, same bytes.
    entry = {"format": "pt"} if about is None else {"about": json.dumps(about)}
    return save(whole, metadata=entry)


def write_tensors(
    path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]
) -> None:
    """Write a safetensors file with a description; of several processes all must call this."""
    content = to_bytes(tensors, metadata)
    if first_process():
        write_whole(path, content)


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors in a safetensors file, and the description that `write_tensors` wrote.

    ValueError for a file that is damaged or of another kind.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, json_object((file.metadata() or {}).get("about", "{}"))
    except (SafetensorError, ValueError) as error:
        raise ValueError(
            f"{path} is not a whole safetensors file ({error}). It may be truncated, a pointer for "
            "`git lfs pull`, or a pickle (.pt, .pth), which this course never opens"
        ) from error
