"""The explorer of a training step on many GPUs in a real JupyterLab: its numbers are Python's."""

import pytest
from lab import changed, eventually, in_kernel, press, slide
from playwright.sync_api import expect

CELL = "from explorers import OverlapExplorer\nexplorer = OverlapExplorer()\nexplorer"


@pytest.fixture
def node(explorer):
    node = explorer(".overlap-explorer", CELL)
    expect(node.locator("figcaption")).to_contain_text("one step 1.28 s")
    return node


def agree(node):
    """Do the words agree with the kernel's, and the blocks, in number and, by kind, in length?"""
    said = node.locator("figcaption").text_content()
    blocks = in_kernel(node.page, "explorer.blocks()")
    end = max(block[3] for block in blocks)
    edge = float(node.locator(".end").get_attribute("x1"))
    start = float(node.locator(".forward").first.get_attribute("x"))
    drawn = node.locator(".forward, .backward, .send").evaluate_all(
        "blocks => blocks.map(b => [b.getAttribute('class'), Number(b.getAttribute('x'))])"
    )
    places = [[kind, start + (edge - start) * begins / end] for kind, _, begins, _ in blocks]
    return (
        said == in_kernel(node.page, "explorer._says()")
        and [kind for kind, _ in drawn] == [kind for kind, _ in places]
        and [x for _, x in drawn] == pytest.approx([x for _, x in places], abs=0.01)
    )


@pytest.mark.parametrize(
    ("action", "trait", "value"),
    [
        (lambda node: press(node, "70B"), "size", "70B"),
        (lambda node: press(node, "124M"), "size", "124M"),
        (lambda node: slide(node, "GPUs", "Home"), "processes", 1),
        (lambda node: slide(node, "GPUs", "End"), "processes", 16_384),
        (lambda node: slide(node, "tokens per GPU", "ArrowRight"), "tokens", 16_384),
        (lambda node: slide(node, "tokens per GPU", "Home"), "tokens", 512),
        (lambda node: slide(node, "bandwidth", "ArrowRight", 3), "bandwidth", 50e9),
        (lambda node: slide(node, "bandwidth", "Home"), "bandwidth", 1.25e9),
        (lambda node: press(node, "NVLink 450 GB/s"), "bandwidth", 450e9),
        (lambda node: node.get_by_role("checkbox").press("Space"), "overlap", False),
    ],
)
def test_each_control_moves_the_step_as_python_does(node, action, trait, value):
    assert changed(node.locator("svg.step"), lambda: action(node))
    eventually(lambda: in_kernel(node.page, f"explorer.{trait}"), value)
    eventually(lambda: agree(node), True)


def test_the_words_say_what_limits_the_step(node):
    says = node.locator(".verdict")
    expect(says).to_contain_text("▼")
    expect(says).to_contain_text("the GPU is idle for 0.424 s")
    expect(says).to_contain_text("keeps up from 14,000 tokens per GPU")
    slide(node, "tokens per GPU", "ArrowRight")
    expect(says).to_contain_text("● sending is hidden behind the backward pass")
    node.get_by_role("checkbox").press("Space")
    expect(says).to_contain_text("▲ no overlap")
    slide(node, "GPUs", "Home")
    expect(says).to_contain_text("one GPU has nothing to send")


def test_what_python_sets_is_shown_even_between_the_stops(node):
    in_kernel(node.page, "[explorer.set_trait('bandwidth', 30e9), explorer.set_trait('tokens', 9)]")
    expect(node.get_by_role("slider", name="bandwidth")).to_have_attribute(
        "aria-valuetext", "30 GB/s"
    )
    eventually(lambda: agree(node), True)
