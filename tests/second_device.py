"""A second device, imitated: real numbers that claim to lie on "meta", as those on a GPU do."""

from contextlib import contextmanager
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("meta")
aten = torch.ops.aten
make_tensor = torch.tensor


class There(torch.Tensor):
    """A tensor on the second device, whose numbers are `here`."""

    @staticmethod
    def __new__(cls, here):
        return torch.Tensor._make_wrapper_subclass(
            cls, here.shape, strides=here.stride(), dtype=here.dtype, device=DEVICE
        )

    def __init__(self, here):
        self.here = here

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return computed(func, args, kwargs or {})

    def tolist(self):
        return self.here.tolist()

    def new_tensor(self, numbers):
        return torch.tensor(numbers, dtype=self.dtype, device=DEVICE)


class SecondDevice(TorchDispatchMode):
    """While it lasts, tensors can be made and moved there, but not mixed with those of the CPU."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return computed(func, args, kwargs or {})


def computed(func, args, kwargs):
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    there = [isinstance(x, There) for x in tensors]
    moves = func in (aten._to_copy.default, aten.copy_.default)
    # An index and a single number may lie on the CPU.
    strict = tensors[:1] if func in (aten.index.Tensor,) else [x for x in tensors if x.dim()]
    if not moves and any(there) and not all(isinstance(x, There) for x in strict):
        raise RuntimeError(f"{func}: tensors of two devices")
    a, k = tree_map(lambda x: x.here if isinstance(x, There) else x, (args, kwargs))
    device = k.pop("device", None)
    out = func(*a, **({**k, "device": "cpu"} if device else k))
    if out is None or func._schema.name.endswith("_"):
        return out if out is None else args[0]
    to_there = there[0] if device is None and there else device == DEVICE
    return tree_map(lambda x: There(x) if isinstance(x, torch.Tensor) and to_there else x, out)


@contextmanager
def second_device():
    def tensor(numbers, *, device="cpu", **settings):  # torch's own forgets numbers on "meta"
        return make_tensor(numbers, **settings).to(device)

    with patch("torch.tensor", tensor), SecondDevice():
        yield DEVICE
