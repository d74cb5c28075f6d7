"""Chapter 15's explorer in a real JupyterLab: chapter 12's, with pieces of words."""

import math

import pytest
from lab import in_kernel
from playwright.sync_api import expect

LOAD = """from helpers import data
from helpers.formats.checkpoints import load_checkpoint
from explorers.sampling import SamplingExplorer
saved = load_checkpoint(data.checkpoint("gptmini"))
"""
SHOW = """explorer = SamplingExplorer(
    saved.model, saved.tokenizer, prompt="The city is the capital of", top_p=0.9
)
explorer"""


@pytest.fixture
def pieces(explorer):
    node = explorer(".sampling-explorer", LOAD, SHOW)
    expect(node.locator(".kept")).to_contain_text("of 2048")
    return node


def field(node):
    return node.get_by_label("prompt", exact=True)


def test_the_browser_and_python_agree(pieces):
    here = pieces.evaluate("node => node.probabilities()")
    there = in_kernel(pieces.page, "explorer.probabilities().tolist()")
    assert len(here) == len(there) == 2048
    assert max(abs(a - b) for a, b in zip(here, there, strict=True)) < 1e-5
    bits = -sum(p * math.log2(p) for p in there if p > 0)
    assert abs(float(pieces.locator(".entropy").inner_text()) - bits) < 0.006


def test_a_drawn_piece_is_appended_whole(pieces):
    start = field(pieces).input_value()
    pieces.get_by_role("button", name="Sample next token").click()
    expect(field(pieces)).not_to_have_value(start)
    drawn = field(pieces).input_value().removeprefix(start)
    known = in_kernel(
        pieces.page, "[saved.tokenizer.decode([i]) for i in range(saved.tokenizer.vocab_size)]"
    )
    assert drawn in known
