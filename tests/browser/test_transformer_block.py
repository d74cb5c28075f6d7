"""Chapter 08's explorer in a real JupyterLab: depth, residual connections, norm and scale."""

import pytest
from lab import (
    changed,
    eventually,
    in_kernel,
    press,
    slide,
)
from playwright.sync_api import expect

IMPORT = "from explorers.depth import DepthExplorer, in_powers"
SHOW = "explorer = DepthExplorer(skips=False, scale=0.5)\nexplorer"


@pytest.fixture
def node(explorer):
    node = explorer(".depth-explorer", IMPORT, SHOW)
    expect(node.locator(".size-end")).to_have_text("1.1·10⁻¹⁴")
    return node


def test_each_failure_has_its_verdict(node):
    verdict, size = node.locator(".verdict"), node.locator("svg.size")
    expect(verdict).to_contain_text("the gradient vanishes")
    assert changed(size, lambda: slide(node, "scale of each layer’s output", "ArrowRight"))
    expect(verdict).to_contain_text("all tokens look the same")
    assert changed(size, lambda: press(node, "x + f(x)"))
    expect(verdict).to_contain_text("explodes")
    assert changed(size, lambda: press(node, "pre: f(norm(x))"))
    expect(verdict).to_contain_text("sound")
    for name in ("x + f(x)", "pre: f(norm(x))"):
        button = node.get_by_role("button", name=name, exact=True)
        expect(button).to_have_attribute("aria-pressed", "true")
    eventually(lambda: in_kernel(node.page, "[explorer.skips, explorer.norm]"), ["on", "pre"])


def test_the_depth_is_chosen_by_keyboard(node):
    assert changed(node.locator("svg.gradient"), lambda: slide(node, "depth", "Home"))
    expect(node.locator(".verdict")).to_contain_text("2 layers")
    eventually(lambda: in_kernel(node.page, "explorer.depth"), 2)
    slide(node, "look at the stream after how many layers", "End")
    expect(node.locator("thead th").nth(2)).to_have_text("after 2 layers")


def test_a_click_on_a_curve_looks_at_that_layer(node):
    for panel in (node.locator("svg.size"), node.locator("svg.gradient")):
        box = panel.bounding_box()
        node.page.mouse.click(box["x"] + box["width"] - 16, box["y"] + 60)
        expect(node.locator("thead th").nth(2)).to_have_text("after 48 layers")
        node.page.mouse.click(box["x"] + 50, box["y"] + 60)
        expect(node.locator("thead th").nth(2)).to_have_text("after 0 layers")


def agree(node):
    """Does the table show what the kernel computes for the present settings?"""
    expected = in_kernel(
        node.page,
        "[f(explorer.measures()[n][i])"
        " for n, f in (('size', in_powers), ('gradient', in_powers),"
        " ('cosine', '{:.2f}'.format)) for i in (0, explorer.layer, -1)]",
    )
    shown = [
        node.locator(f".{name}-{place}").text_content()
        for name in ("size", "gradient", "cosine")
        for place in ("start", "here", "end")
    ]
    return [s.replace("-0.00", "0.00") for s in shown] == [
        s.replace("-0.00", "0.00") for s in expected
    ]


def test_the_numbers_agree_with_the_kernel(node):
    for action in (
        lambda: slide(node, "look at the stream after how many layers", "ArrowRight", 7),
        lambda: slide(node, "depth", "ArrowLeft", 2),
        lambda: press(node, "post: norm of the result"),
        lambda: slide(node, "scale of each layer’s output", "End"),
        lambda: press(node, "x + f(x)"),
        lambda: press(node, "none"),
    ):
        action()
        eventually(lambda: agree(node), True)
