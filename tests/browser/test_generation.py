"""Chapter 12's explorer in a real JupyterLab: the next token, and how it is chosen."""

import math
import re

import pytest
from lab import (
    changed,
    eventually,
    in_kernel,
    show_instead,
)
from playwright.sync_api import expect

from helpers.plots import visible

LOAD = """from helpers import data
from helpers.formats.checkpoints import load_checkpoint
from explorers.sampling import SamplingExplorer
saved = load_checkpoint(data.checkpoint("shakespeare-gpt"))"""
PROMPT = "ROMEO:\\nBut soft, what l"
SHOW = f'explorer = SamplingExplorer(saved.model, saved.tokenizer, prompt="{PROMPT}")\nexplorer'


@pytest.fixture
def explorer(explorer):
    node = explorer(".sampling-explorer", LOAD, SHOW)
    expect(node.locator(".kept")).to_contain_text("of 69")
    return node


def set_slider(node, name, value):
    node.get_by_role("slider", name=name).fill(str(value))


def disagreement(node):
    """The largest difference between the browser's probabilities and those of helpers.sampling."""
    here = node.evaluate("node => node.probabilities()")
    there = in_kernel(node.page, "explorer.probabilities().tolist()")
    assert len(here) == len(there) == 69
    return max(abs(a - b) for a, b in zip(here, there, strict=True))


def test_the_browser_and_python_agree(explorer):
    assert disagreement(explorer) < 1e-5
    read = "[explorer.temperature, explorer.top_k, explorer.top_p]"
    for tau, k, p in (
        (0.5, 69, 1), (2, 69, 1), (0, 69, 1), (1, 1, 1), (1, 7, 1), (1, 69, 0.9), (1.5, 69, 0.33),
        (0.8, 12, 0.95), (3, 40, 0.7), (0.05, 69, 0.5), (1, 69, 0.01),
    ):  # fmt: skip
        for name, value in (("temperature τ", tau), ("top-k", k), ("top-p", p)):
            set_slider(explorer, name, value)
        eventually(lambda: in_kernel(explorer.page, read), [tau, k, p])
        assert disagreement(explorer) < 1e-5, (tau, k, p)
        kept = in_kernel(explorer.page, "int((explorer.probabilities() > 0).sum())")
        expect(explorer.locator(".kept")).to_have_text(f"{kept} of 69")
        p = in_kernel(explorer.page, "explorer.probabilities().tolist()")
        bits = -sum(x * math.log2(x) for x in p if x > 0)
        assert abs(float(explorer.locator(".entropy").inner_text()) - bits) < 0.006


def test_a_question_that_changes_nothing_waits_for_no_answer(explorer):
    field(explorer).fill(field(explorer).input_value())
    explorer.page.wait_for_timeout(1_800)  # after 1.5 s the explorer says that it waits
    assert explorer.locator(".silence").inner_text() == ""


def test_keys_on_the_sliders_recolour_the_bars(explorer):
    page, picture = explorer.page, explorer.locator("canvas")
    explorer.get_by_role("slider", name="top-p").focus()
    assert changed(picture, lambda: [page.keyboard.press("ArrowLeft") for _ in range(20)])
    expect(explorer.locator(".mass")).not_to_have_text("100.0%")
    explorer.get_by_role("slider", name="temperature").focus()
    assert changed(picture, lambda: page.keyboard.press("Home"))
    expect(explorer.locator(".entropy")).to_have_text("0.00")
    expect(explorer.locator(".kept")).to_have_text("1 of 69")


def test_a_slider_by_mouse(explorer):
    slider = explorer.get_by_role("slider", name="top-k")
    box = slider.bounding_box()

    def click():
        explorer.page.mouse.click(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)

    assert changed(explorer.locator("canvas"), click)
    expect(explorer.locator(".kept")).to_have_text(re.compile(r"^1\d of 69|^2\d of 69"))


def field(node):
    return node.get_by_label("prompt", exact=True)


def test_sampling_appends_a_token_and_is_reproducible(explorer):
    start = field(explorer).input_value()
    once = explorer.get_by_role("button", name="Sample next token")
    again = explorer.get_by_role("button", name="Start again")
    expect(again).to_be_disabled()

    def five():
        for n in range(1, 6):
            once.click()
            expect(field(explorer)).to_have_value(re.compile(rf"^[\s\S]{{{len(start) + n}}}$"))
        expect(explorer.locator(".drawn")).to_contain_text("0.")
        return field(explorer).input_value()

    first = five()
    assert first.startswith(start)
    again.click()
    expect(field(explorer)).to_have_value(start)
    expect(again).to_be_disabled()
    assert five() == first
    eventually(lambda: in_kernel(explorer.page, "explorer.answer['prompt']"), first)


def test_the_next_random_number_is_known_before_it_is_used(explorer):
    cold = explorer.locator(".entropy").inner_text()
    set_slider(explorer, "temperature τ", 2)
    expect(explorer.locator(".entropy")).not_to_have_text(cold)  # a frame later, all of it anew
    for _ in range(3):
        said = explorer.locator(".next").inner_text()
        assert re.fullmatch(r"0\.\d{3} → .", said)
        start = field(explorer).input_value()
        explorer.get_by_role("button", name="Sample next token").click()
        expect(explorer.locator(".drawn")).to_contain_text(f"“{said[-1]}”")
        expect(explorer.locator(".seen")).to_have_text(visible(start))  # the model has answered
        expect(explorer.locator(".fresh")).to_have_text(said[-1])
        assert len(field(explorer).input_value()) == len(start) + 1


def test_greedy_sampling_takes_the_likeliest(explorer):
    set_slider(explorer, "temperature τ", 0)
    start = field(explorer).input_value()
    explorer.get_by_role("button", name="Sample 20").focus()
    explorer.page.keyboard.press("Enter")
    expect(field(explorer)).to_have_value(re.compile(rf"^[\s\S]{{{len(start) + 20}}}$"))
    written = in_kernel(
        explorer.page,
        "saved.tokenizer.decode(__import__('helpers.sampling').sampling.generate(saved.model, "
        f"__import__('torch').tensor([saved.tokenizer.encode({start!r})]), 20, temperature=0)"
        "[0].tolist())",
    )
    assert field(explorer).input_value() == written


SILENT = """import torch
class Silent:
    vocab_size = 2
    def encode(self, text): return [1] * len(text)
    def decode(self, ids): return "a" * sum(ids)
class Hush(torch.nn.Module):
    context_length = 8
    def forward(self, ids): return torch.tensor([1.0, 0.0]).expand(*ids.shape, 2)
explorer = SamplingExplorer(Hush(), Silent(), prompt="aa", temperature=0)
explorer"""


def test_a_token_without_signs_ends_no_series(explorer):
    assert show_instead(explorer.page, SILENT) == []
    expect(explorer.locator(".kept")).to_have_text("1 of 2")
    first = explorer.locator(".next").inner_text()
    explorer.get_by_role("button", name="Sample 20").click()
    expect(explorer.locator(".drawn")).to_contain_text("selects “(empty)”")
    expect(explorer.locator(".next")).not_to_have_text(first)  # a frame later
    twenty = explorer.locator(".next").inner_text()
    explorer.get_by_role("button", name="Start again").click()
    expect(explorer.locator(".next")).to_have_text(first)
    for _ in range(20):
        explorer.get_by_role("button", name="Sample next token").click()
    expect(explorer.locator(".next")).to_have_text(twenty)
    expect(field(explorer)).to_have_value("aa")


def test_a_prompt_that_cannot_be_read_is_explained(explorer):
    field(explorer).fill("Roméo")
    expect(explorer.locator(".problem")).to_contain_text("é")
    expect(explorer.get_by_role("button", name="Sample next token")).to_be_disabled()
    expect(explorer.get_by_role("button", name="Sample 20")).to_be_disabled()
    field(explorer).fill("")
    expect(explorer.locator(".problem")).to_contain_text("Type a prompt")
    field(explorer).fill("O\nGod ")
    expect(explorer.locator(".problem")).to_have_text("")
    expect(explorer.locator(".seen")).to_have_text("O⏎God␣")
    expect(explorer.get_by_role("button", name="Sample next token")).to_be_enabled()
    assert disagreement(explorer) < 1e-5
