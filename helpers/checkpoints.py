"""A trained model in one file: weights, the model's settings, its tokenizer, notes.

The files are safetensors: numbers and text, nothing that could be executed. They are written beside
their place and moved into it, so that a crash leaves the old file or the new one, never half of it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from helpers.files import write_whole
from helpers.gpt import GPT
from helpers.text import BPETokenizer, CharTokenizer
from helpers.text.files import from_file, to_file

Tokenizer = CharTokenizer | BPETokenizer


@dataclass
class Checkpoint:
    """A model as it was saved, with what belongs to it.

    model: in evaluation mode, in float32; tokenizer: None if none was saved; notes: whatever the
    one who saved it wrote down. Taught in chapter 09.
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
    example torch.float16 for half the size. Taught in chapter 09.
    """
    config = getattr(model, "config", None)  # a GPT's; others may mean something else by it
    about = {
        "config": config if isinstance(config, dict) else None,
        **_described(tokenizer),
        "notes": dict(notes or {}),
    }
    tensors = {
        name: tensor.to(dtype) if tensor.is_floating_point() else tensor
        for name, tensor in weights_of(model).items()
    }
    write_tensors(path, tensors, about)


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read what `save_checkpoint` wrote: the model, built anew, with its weights.

    Raises FileNotFoundError, and ValueError for what is no such file: another format (pickles are
    never opened), a truncated file, settings that GPT does not know, missing or surplus weights.
    Taught in chapter 09.
    """
    tensors, about = read_tensors(path)
    if about.get("config") is None:
        raise ValueError(f"{path} holds weights but no settings of a GPT to put them into")
    try:
        model = GPT.from_config(about["config"])
        tokenizer = _tokenizer(about)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} does not describe a GPT of this course: {error}") from error
    load_weights(model, tensors, path)
    return Checkpoint(model.eval(), tokenizer, about.get("notes", {}))


def _described(tokenizer: Tokenizer | None) -> dict[str, Any]:
    if isinstance(tokenizer, BPETokenizer):
        merges = [[to_file(left), to_file(right)] for left, right in tokenizer.merges]
        return {"merges": merges, "special": list(tokenizer.special)}
    return {"symbols": None if tokenizer is None else "".join(tokenizer.symbols)}


def _tokenizer(about: Mapping[str, Any]) -> Tokenizer | None:
    if "merges" in about:
        merges = [(from_file(left), from_file(right)) for left, right in about["merges"]]
        return BPETokenizer(merges, about.get("special", ()))
    return None if about.get("symbols") is None else CharTokenizer(about["symbols"])


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """All that a model has learnt: parameters and buffers by name, what is shared only once."""
    first: dict[int, str] = {}  # state_dict names a shared tensor twice
    whole = model.state_dict(keep_vars=True)
    return {name: t.detach() for name, t in whole.items() if first.setdefault(id(t), name) == name}


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], source: str | Path) -> None:
    """Copy tensors to the weights of the same names; all must fit before one is changed."""
    own = weights_of(model)
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
    for name, p in own.items():
        p.copy_(tensors[name])


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], about: Any) -> None:
    """A safetensors file with a description that JSON can hold, replaced in one step."""
    content = save(
        {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
        metadata={"about": json.dumps(about)},
    )
    write_whole(path, content)


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the description in a file that `write_tensors` wrote.

    Raises FileNotFoundError, and ValueError for a file that is damaged or of another kind.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint at {path}")
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
        about = json.loads(metadata.get("about", "{}"))
    except json.JSONDecodeError as error:
        raise ValueError(f"the description in {path} is damaged: {error}") from error
    if not isinstance(about, dict):
        raise ValueError(f"the description in {path} is damaged: it is a {type(about).__name__}")
    return tensors, about
