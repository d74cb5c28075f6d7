"""The sampling explorer: the same draws again, what comes next, and prompts that cannot be read."""

import re

import pytest
import torch
from bare import Bare, Shown
from playwright.sync_api import Locator, expect

from explorers import SamplingExplorer
from helpers import data
from helpers.formats.checkpoints import load_checkpoint
from helpers.plots import visible
from helpers.sampling import generate


@pytest.fixture
def shown(bare: Bare) -> Shown:
    saved = load_checkpoint(data.checkpoint("shakespeare-gpt"))
    start = "ROMEO:\nBut soft, what l"
    return bare.show(SamplingExplorer(saved.model, saved.tokenizer, prompt=start))


def prompt(shown: Shown) -> Locator:
    return shown.node.get_by_label("prompt", exact=True)


def longer(shown: Shown, by: int, start: str) -> str:
    """The prompt, once it is so many signs longer."""
    expect(prompt(shown)).to_have_value(re.compile(rf"^[\s\S]{{{len(start) + by}}}$"))
    return prompt(shown).input_value()


def test_draws_can_be_undone_and_come_again(shown: Shown) -> None:
    start, again = prompt(shown).input_value(), shown.node.get_by_role("button", name="Start again")
    drawn = []
    for _ in range(2):
        expect(again).to_be_disabled()
        for n in range(1, 6):
            shown.press("Sample next token")
            longer(shown, n, start)
        drawn.append(prompt(shown).input_value())
        shown.has(prompt=drawn[-1])
        again.click()
        expect(prompt(shown)).to_have_value(start)
    assert drawn[0] == drawn[1] and drawn[0].startswith(start)


def test_the_next_draw_is_known_before_it_is_made(shown: Shown) -> None:
    for _ in range(3):
        shown.settled()
        said, start = shown.node.locator(".next").inner_text(), prompt(shown).input_value()
        assert re.fullmatch(r"0\.\d{3} → .", said)
        shown.press("Sample next token")
        expect(shown.node.locator(".drawn")).to_contain_text(f"“{said[-1]}”")
        expect(shown.node.locator(".seen")).to_have_text(visible(start))  # the model has answered
        expect(shown.node.locator(".fresh")).to_have_text(said[-1])


def test_a_text_that_is_typed_goes_on_from_there(shown: Shown) -> None:
    shown.press("Sample next token")
    prompt(shown).fill("JULIET:\nO ")
    shown.has(prompt="JULIET:\nO ")
    shown.press("Sample next token")
    assert longer(shown, 1, "JULIET:\nO ").startswith("JULIET:\nO ")
    shown.press("Start again")
    expect(prompt(shown)).to_have_value("ROMEO:\nBut soft, what l")


def test_greedy_sampling_is_python_s(shown: Shown) -> None:
    shown.keys("slider", "temperature τ", "Home")
    start = prompt(shown).input_value()
    shown.keys("button", "Sample 20", "Enter")
    saved = load_checkpoint(data.checkpoint("shakespeare-gpt"))
    ids = torch.tensor([saved.tokenizer.encode(start)])
    written = generate(saved.model, ids, 20, temperature=0)[0].tolist()
    assert longer(shown, 20, start) == saved.tokenizer.decode(written)


def test_a_prompt_that_cannot_be_read_is_explained(shown: Shown) -> None:
    buttons = [shown.node.get_by_role("button", name=n) for n in ("Sample next token", "Sample 20")]
    for text, problem in (("Roméo", "é"), ("", "Type a prompt")):
        prompt(shown).fill(text)
        expect(shown.node.locator(".problem")).to_contain_text(problem)
        for button in buttons:
            expect(button).to_be_disabled()
    prompt(shown).fill("O\nGod ")
    expect(shown.node.locator(".problem")).to_have_text("")
    for button in buttons:
        expect(button).to_be_enabled()
