"""What the tests share: where things are, and the chapters read once."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
settings.register_profile("course", deadline=None, derandomize=True)  # a busy machine is no mistake
settings.load_profile("course")

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CHAPTERS = [path for path in NOTEBOOKS if path.stem[:2].isdigit()]  # all but the reference


def topic(path: Path) -> str:
    """The name of its exercises."""
    return path.stem[3:] if path in CHAPTERS else path.stem


@cache
def parsed(path: Path) -> nbformat.NotebookNode:
    """A chapter, read once for all tests, which only look at it."""
    return nbformat.read(path, as_version=4)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def chapter(request: pytest.FixtureRequest) -> Path:
    """The path of each chapter, and of the reference, in turn."""
    return request.param


@pytest.fixture
def notebook(chapter: Path) -> nbformat.NotebookNode:
    """Each of them in turn, parsed."""
    return parsed(chapter)


@pytest.fixture(scope="session")
def transformers() -> ModuleType:
    """The library, which is slow to import, and stays off the network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        import transformers
        from transformers.utils import logging

    logging.disable_progress_bar()
    return transformers


def visible(make: Callable[[], Any], seed: int = 0, by: float = 0.1) -> Any:
    """A model whose weights are random and large enough to make every part matter."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make()
        with torch.no_grad():
            for p in model.parameters():
                p.add_(by * torch.randn(p.shape))
    return model


def generator(seed: int = 0) -> Any:
    """Of random numbers that are the same each time."""
    import torch

    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> Any:
    """A tensor of such numbers."""
    import torch

    return torch.randn(shape, generator=generator(seed))


def near(a: Any, b: Any, tolerance: float = 1e-6) -> bool:
    """Are two tensors of one shape, and no two of their numbers further apart?"""
    import torch

    b = torch.as_tensor(b, dtype=a.dtype)
    return a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=tolerance)
