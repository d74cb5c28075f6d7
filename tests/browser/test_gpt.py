"""Chapter 09's explorer in a real JupyterLab: the maps of a model of its kind, layer by layer."""

import pytest
from lab import changed, in_kernel, next_frame

CELL = """import torch
from helpers.gpt import GPT, GPTConfig
from helpers.recording import AttentionRecorder
from explorers.attention import AttentionExplorer

torch.manual_seed(0)
gpt, line = GPT(GPTConfig(69, 64, 2, 4, 32)), "ROMEO:\\nWhat light is this? O love!"
with torch.no_grad(), AttentionRecorder() as recorded:
    gpt(torch.tensor([[ord(c) % 69 for c in line]]))
maps = recorded.maps
explorer = AttentionExplorer(list(line), maps, recorded.scores)
explorer"""


@pytest.fixture
def page(explorer):
    node = explorer(".attention-explorer", CELL)
    node.locator(".figure").first.wait_for()
    return node.page


def test_the_explorer_answers(page):
    explorer = page.locator(".attention-explorer")
    figure = explorer.locator(".figure")
    figure.focus()
    for key in ("Home", "ArrowDown"):
        assert changed(explorer, lambda key=key: page.keyboard.press(key)), key
    assert figure.get_attribute("aria-valuetext").startswith("query 1, O")
    next_frame(page)
    numbers = explorer.locator("td.number").all_inner_texts()
    wanted = in_kernel(page, "[f'{w:.3f}' for w in maps[0, 0, 1, :2].tolist()]")
    assert set(wanted) <= set(numbers)
    assert changed(explorer, lambda: explorer.get_by_role("button", name="Lines").click())
    assert in_kernel(page, "list(explorer.shape)") == [2, 4, 34]
