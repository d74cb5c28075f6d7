"""Exercises that answer back.

Each chapter has its own module (``from exercises import words_as_vectors as check``) whose members
are `Exercise` objects. Give one your function, class or value and it shows one of three outcomes:
✔ right, ✘ not yet (with what it saw), … not attempted. Nothing is raised, so an unsolved notebook
still runs from top to bottom.
"""

from importlib import import_module
from types import ModuleType

import torch

from exercises.check import Exercise

__all__ = ["Exercise"]


def __getattr__(name: str) -> ModuleType:
    """A chapter's exercises, which are made of float32, whatever default the notebook has set."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(name) from None
    finally:
        torch.set_default_dtype(before)
