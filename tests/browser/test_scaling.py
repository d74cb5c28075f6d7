"""Chapter 05's explorer in a real JupyterLab: head size, divisor, and what they do to a softmax."""

import pytest
from lab import (
    changed,
    eventually,
    in_kernel,
    press,
    slide,
)
from playwright.sync_api import expect

CELL = """from explorers.scaling import ScalingExplorer
explorer = ScalingExplorer(head_size=64, divisor="1")
explorer"""


@pytest.fixture
def node(explorer):
    node = explorer(".scaling-explorer", CELL)
    expect(node.locator(".mean-std")).to_have_text("7.941")
    return node


def numbers(node):
    """What the table and the bars say, as numbers."""
    names = ("mean-std", "mean-entropy", "mean-gradient", "row-largest", "row-entropy")
    return [float(node.locator(f".{name}").text_content()) for name in names]


def from_python(page):
    return in_kernel(
        page,
        "(lambda m, i: [m['std'], m['entropy'].mean(), m['gradient'].mean(),"
        " m['weights'][i].max(), m['entropy'][i]])(explorer.measures(), explorer.row)",
    )


def agree(node):
    return numbers(node) == pytest.approx(from_python(node.page), abs=6e-4)


def test_everything_moves_with_the_head_size(node):
    histogram, bars = node.locator(".histogram"), node.locator(".bars")
    expect(node.locator(".verdict")).to_contain_text("too sharp")
    assert changed(histogram, lambda: slide(node, "head size d", "End"))
    expect(node.locator(".mean-std")).to_have_text("32.417")
    expect(node.locator(".verdict")).to_contain_text("d = 1024")
    assert changed(bars, lambda: slide(node, "head size d", "Home"))
    expect(node.locator(".mean-std")).to_have_text("2.005")
    eventually(lambda: in_kernel(node.page, "explorer.head_size"), 4)


def test_each_divisor_has_its_verdict(node):
    entropy = node.locator(".entropy")
    for name, verdict in (("√hs", "balanced"), ("√C = 32", "too flat"), ("hs", "too flat")):
        assert changed(entropy, lambda name=name: press(node, name))
        expect(node.locator(".verdict")).to_contain_text(verdict)
        expect(node.get_by_role("button", name=name, exact=True)).to_have_attribute(
            "aria-pressed", "true"
        )
    slide(node, "head size d", "End")
    press(node, "√C = 32")
    expect(node.locator(".verdict")).to_contain_text("balanced")  # hs = C


def test_the_query_is_chosen_by_keyboard(node):
    assert changed(node.locator(".bars"), lambda: slide(node, "query (row)", "ArrowRight", 3))
    expect(node.locator("figcaption").nth(1)).to_have_text("Weights of query 3")
    eventually(lambda: in_kernel(node.page, "explorer.row"), 3)


def test_a_click_on_a_curve_moves_the_head_size(node):
    for name in (".entropy", ".gradient"):
        panel = node.locator(name)
        box = panel.bounding_box()
        node.page.mouse.click(box["x"] + box["width"] - 12, box["y"] + 60)
        expect(node.locator(".verdict")).to_contain_text("d = 1024")
        node.page.mouse.click(box["x"] + 50, box["y"] + 60)
        expect(node.locator(".verdict")).to_contain_text("d = 4,")


def test_the_numbers_agree_with_the_kernel(node):
    for action in (
        lambda: slide(node, "query (row)", "ArrowRight", 5),
        lambda: press(node, "√hs"),
        lambda: slide(node, "head size d", "ArrowLeft", 2),
        lambda: press(node, "hs"),
    ):
        action()
        eventually(lambda: agree(node), True)
