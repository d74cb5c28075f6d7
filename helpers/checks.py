"""Checks of the arguments of training and sampling."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from helpers.training import to_device_of as to_device_of


def check_stream(data: Tensor, block_size: int, batch_size: int) -> None:
    """Raise TypeError or ValueError unless batches of that size can be cut from `data`."""
    if not isinstance(data, Tensor):
        raise TypeError(
            f"data should be a tensor of token ids, not a {type(data).__name__}. "
            "Make one with torch.tensor(tokenizer.encode(text))"
        )
    if data.dim() != 1:
        raise ValueError(
            f"data should be one stream of ids, shape (N,), but has shape {tuple(data.shape)}"
        )
    if data.dtype != torch.int64:
        raise TypeError(f"token ids should be torch.int64, but are {data.dtype}. Use data.long()")
    for name, value in (("block_size", block_size), ("batch_size", batch_size)):
        check_count(name, value)
    if len(data) < block_size + 1:
        raise ValueError(
            f"one chunk needs block_size + 1 = {block_size + 1} tokens, but data has "
            f"{len(data)}. Use a smaller block_size or a longer text"
        )


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number: not 2.5, "2" or True."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def check_count(name: str, value: Any) -> None:
    """Raise TypeError unless the value is a whole number, and ValueError unless it is above 0."""
    if not is_whole(value):
        raise TypeError(f"{name} should be a whole number, but is {value!r}")
    if value < 1:
        raise ValueError(f"{name} should be at least 1, but is {value}")


def check_optimizers(optimizer: Any, model: nn.Module) -> list[Optimizer]:
    """Return one optimizer or several as a list.

    Raises TypeError for anything else, and ValueError unless together they step the parameters of
    the model that are to be trained, and each steps some of them.
    """
    try:
        optimizers = [optimizer] if isinstance(optimizer, Optimizer) else list(optimizer)
    except TypeError:
        raise TypeError(f"optimizer should be an optimizer, but is {optimizer!r:.60}") from None
    if not optimizers:
        raise ValueError("training needs an optimizer, but the list of them is empty")
    own = set(map(id, model.parameters()))
    left = {id(p): name for name, p in model.named_parameters() if p.requires_grad}
    for each in optimizers:
        if not isinstance(each, Optimizer):
            wrong = f"{each!r:.60}".partition("\n")[0]
            raise TypeError(f"optimizer should be one optimizer or several, not hold {wrong}")
        stepped = [p for group in each.param_groups for p in group["params"]]
        if foreign := [p for p in stepped if id(p) not in own]:
            raise ValueError(
                f"{len(foreign)} of the {len(stepped)} tensors that this {type(each).__name__} "
                "steps are not parameters of the model. Was the model made again after its "
                "optimizer? Make the optimizer again, too: it still steps the old model"
            )
        if not any(p.requires_grad for p in stepped):
            raise ValueError(
                f"all {len(stepped)} tensors that this {type(each).__name__} steps are frozen. Was "
                "it made before add_lora? Make it again from the parameters that are to be trained"
            )
        for p in stepped:
            left.pop(id(p), None)
    if left:
        raise ValueError(
            f"no optimizer steps {len(left)} of the parameters, such as {next(iter(left.values()))}"
            ": give them to one, or freeze them with requires_grad_(False)"
        )
    return optimizers


def check_settings(*, steps: int, **above_zero: float | None) -> None:
    """Raise TypeError or ValueError unless steps is at least 1 and the others None or above 0.

    Those whose names end in "interval" or "iters" have to be whole numbers.
    """
    check_count("steps", steps)
    for name, number in above_zero.items():
        if number is not None and not _is_above_0(number):
            raise ValueError(f"{name} should be above 0, or None, but is {number!r}")
        if number is not None and name.endswith(("interval", "iters")):
            check_count(name, number)


def _is_above_0(number: Any) -> bool:
    try:
        return bool(number > 0)
    except TypeError:
        return False


def not_finite_message(what: str, losses: Sequence[float]) -> str:
    """Return the message for a number that is not finite after steps with these losses."""
    before = ", ".join(f"{x:.3g}" for x in losses[-3:]) or "none"
    return (
        f"{what} at step {len(losses)} (the losses before it: {before}). Likely causes: a learning "
        "rate that is too high or has no warm-up, gradients that are not clipped, a mask that "
        "leaves a query no key to attend to, a logarithm of zero or a division by zero in the "
        "model."
    )
