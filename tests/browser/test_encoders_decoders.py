"""Chapter 21's explorer in a real JupyterLab: who looks where while a text is written."""

import pytest
from lab import (
    changed,
    eventually,
    in_kernel,
    press,
    slide,
)
from playwright.sync_api import expect

MAKE = """import numpy as np
from explorers import AlignmentExplorer
pairs = [("abcd", "dcba"), ("<b>3 May 1979", "1979-05-03")]
def answers(texts):
    draw = np.random.default_rng(0)
    return [(text, draw.dirichlet(np.full(len(read) + 1, 0.3), len(text) + 1))
            for (read, _), text in zip(pairs, texts)]
models = {"no attention": [("dbba", None), ("1979", None)],
          "additive": answers(["dcba", "1979-05-03"]),
          "dot product": answers(["dcb", "1979-05-30"])}
def heard():  # what the table should say of the letter
    row = explorer.weights()[-1]
    return sorted((f"{w:.2f}" for w in row), reverse=True)[:3]"""
SHOW = 'explorer = AlignmentExplorer(pairs, models, model="additive")\nexplorer'


@pytest.fixture
def node(explorer):
    node = explorer(".alignment-explorer", MAKE, SHOW)
    expect(node.locator(".verdict")).to_have_text("✔ every letter is right")
    return node


def test_letters_are_written_one_by_one(node):
    heat, writes, verdict = (node.locator(css) for css in ("canvas", ".writes", ".verdict"))
    assert changed(heat, lambda: press(node, "Start again"))
    expect(writes).to_have_text("…")
    expect(verdict).to_contain_text("written nothing")
    for so_far in ("d", "dc", "dcb", "dcba", "dcba>"):
        assert changed(heat, lambda: press(node, "Write next letter"))
        expect(writes).to_have_text(so_far)
        assert len(writes.locator(".now").text_content()) == 1
    expect(node.get_by_role("button", name="Start again")).to_be_visible()
    eventually(lambda: in_kernel(node.page, "explorer.step"), 5)


def test_arrow_keys_write_and_take_back(node):
    slide(node, "letters written", "ArrowLeft", 2)
    expect(node.locator(".writes")).to_have_text("dcb")
    expect(node.locator(".verdict")).to_have_text("✔ right so far")
    slide(node, "letters written", "Home")
    slide(node, "letters written", "ArrowRight")
    expect(node.locator(".writes")).to_have_text("d")
    expect(node.locator("label .value")).to_have_text("1 of 5")
    eventually(lambda: in_kernel(node.page, "explorer.step"), 1)


def test_the_table_says_what_the_kernel_holds(node):
    rows = node.locator("tbody tr")
    for name, keys in (("additive", 2), ("dot product", 1)):
        press(node, name)
        slide(node, "letters written", "ArrowLeft", keys)
        eventually(lambda name=name: in_kernel(node.page, "explorer.model"), name)
        shown = [row.locator("td").nth(2).text_content() for row in rows.all()]
        eventually(lambda shown=shown: in_kernel(node.page, "heard()") == shown, True)


def test_without_attention_there_are_no_weights(node):
    assert changed(node.locator("canvas"), lambda: press(node, "no attention"))
    expect(node.locator(".none")).to_contain_text("one vector, handed over before the first letter")
    expect(node.locator("table")).to_be_hidden()
    expect(node.locator(".verdict")).to_have_text("✘ wrong: letter 2 is “b” but should be “c”")
    assert node.locator(".wrong").all_text_contents() == ["b"]
    assert in_kernel(node.page, "explorer.weights() is None") is True


def test_the_end_that_comes_too_early_is_wrong(node):
    press(node, "dot product")
    expect(node.locator(".verdict")).to_have_text("✘ wrong: letter 4 is “>” but should be “a”")


def test_another_text_is_seen_whole_and_as_text(node):
    assert changed(node.locator("canvas"), lambda: press(node, "<b>3␣May␣1979"))
    expect(node.locator(".writes")).to_have_text("1979-05-03>")
    eventually(lambda: in_kernel(node.page, "explorer.step"), 11)
    assert node.locator("b").count() == 0
    slide(node, "letters written", "ArrowLeft", 5)
    press(node, "no attention")
    expect(node.locator(".writes")).to_have_text("1979>")
    eventually(lambda: in_kernel(node.page, "explorer.step"), 5)


def test_a_click_on_a_row_goes_back_to_it(node):
    canvas = node.locator("canvas")
    box = canvas.bounding_box()
    canvas.click(position={"x": 60, "y": 54 + 1.5 * (box["height"] - 58) / 11})
    expect(node.locator(".writes")).to_have_text("dc")
