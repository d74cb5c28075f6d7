"""Chapter 03's explorer in a real JupyterLab: the matrix that mixes the past."""

import pytest
from lab import (
    changed,
    eventually,
    in_kernel,
    press,
    slide,
)
from playwright.sync_api import expect

CELL = """import torch
from explorers.averaging import AveragingExplorer
learned = torch.eye(16)
learned[1:] = torch.eye(16)[:-1]
line = "the king's words"
vowels = [float(c in "aeiou") for c in line]
explorer = AveragingExplorer(list(line), vowels, values_name="vowel", learned=learned)
explorer"""


@pytest.fixture
def node(explorer):
    node = explorer(".averaging-explorer", CELL)
    expect(node.locator(".output")).to_have_text("0.19")
    return node


def weights(node, *last):
    """The weights of the chosen row as text; first wait until the last ones are `last`."""
    cells = node.locator("td.weight")
    for back, wanted in enumerate(reversed(last), 1):  # unseen text over the drawing: it follows
        expect(cells.nth(-back)).to_have_text(wanted)
    return cells.all_text_contents()


def over(node, row, column=0):
    """The place of a cell of the matrix in the page."""
    canvas = node.locator("figure canvas")
    box = canvas.bounding_box()
    return box["x"] + 40 + (column + 0.5) * 25, box["y"] + 16 + (row + 0.5) * 16


def test_each_weighting_gives_its_row(node):
    picture = node.locator("figure canvas")
    assert changed(picture, lambda: press(node, "exponential decay"))
    expect(node.locator("td.weight").last).to_have_text("0.50")
    expect(node.locator(".total")).to_have_text("1.00")
    assert changed(picture, lambda: slide(node, "decay", "End"))
    expect(node.locator("td.weight").last).to_have_text("0.06")  # decay 1: the mean
    assert changed(picture, lambda: press(node, "last k"))
    weights(node, "0.00", "0.33", "0.33", "0.33")
    assert changed(picture, lambda: slide(node, "k", "Home"))
    weights(node, "0.00", "1.00")
    assert changed(picture, lambda: press(node, "learned"))
    weights(node, "0.00", "1.00", "0.00")
    expect(node.get_by_role("checkbox", name="causal mask")).to_be_hidden()


def test_the_row_is_chosen_by_slider_pointer_and_click(node):
    page, caption = node.page, node.locator("caption")
    signal = node.locator(".signal")
    assert changed(signal, lambda: slide(node, "output (row)", "ArrowLeft"))
    expect(caption).to_have_text("What output 14 d is made of")
    page.mouse.move(*over(node, 2))
    expect(caption).to_have_text("What output 2 e is made of")
    expect(node.locator(".output")).to_have_text("0.33")
    eventually(lambda: weights(node)[:4], ["0.33", "0.33", "0.33", "0.00"])
    page.mouse.move(5, 5)  # the pointer leaves: back to the chosen row
    expect(caption).to_have_text("What output 14 d is made of")
    page.mouse.click(*over(node, 5, 3))
    page.mouse.move(5, 5)
    expect(caption).to_have_text("What output 5 i is made of")
    eventually(lambda: in_kernel(page, "explorer.row"), 5)
    expect(node.get_by_role("slider", name="output (row)")).to_have_value("5")


def test_a_changed_token_shows_who_hears_it(node):
    verdict = node.locator(".verdict")
    assert changed(node.locator(".signal"), lambda: slide(node, "add 1 to token", "ArrowRight", 6))
    expect(verdict).to_contain_text("✔ Causal: adding 1 to token 5 i changed 11 outputs")
    node.get_by_role("checkbox", name="causal mask").press("Space")
    expect(verdict).to_contain_text("✘ Leak: 5 outputs before token 5 i changed")
    slide(node, "add 1 to token", "Home")
    expect(verdict).to_contain_text("Add 1 to a token")


def test_numbers_agree_with_the_kernel(node):
    press(node, "exponential decay")
    slide(node, "decay", "ArrowRight", 3)
    slide(node, "output (row)", "ArrowLeft", 2)
    slide(node, "add 1 to token", "ArrowRight", 9)
    # The browser sends the next change only when the kernel has answered the last: let it catch up.
    eventually(lambda: in_kernel(node.page, "[explorer.row, explorer.changed]"), [13, 8])
    want = in_kernel(
        node.page,
        "[[f'{w:.2f}' for w in explorer.weights()[explorer.row]],"
        " f'{(explorer.weights() @ explorer.inputs())[explorer.row]:.2f}']",
    )
    eventually(lambda: [weights(node), node.locator(".output").text_content()], want)


def test_tokens_are_never_markup_and_may_be_long(explorer):
    cell = """from explorers.averaging import AveragingExplorer
AveragingExplorer(["<b>bold</b>", "a b", "internationalisation"], [1.0, -2.0, 0.5])"""
    node = explorer(".averaging-explorer", cell)
    expect(node.locator("td .token").first).to_have_text("<b>bold</b>")
    expect(node.locator(".output")).to_have_text("−0.17")
    assert node.locator("b").count() == 0


def test_the_drawn_bars_have_the_length_of_the_weights(node):
    """What is seen is the canvas: its blue bars, read from the pixels, are the row's weights."""
    press(node, "last k")
    weights(node, "0.33", "0.33", "0.33")
    lengths = node.locator(".board canvas").evaluate(
        """canvas => {
            const scale = devicePixelRatio, pen = canvas.getContext("2d");
            return Array.from({length: 16}, (_, j) => {
                const line = pen.getImageData(0, (19 * j + 9) * scale, canvas.width, 1).data;
                let blue = 0;
                for (let i = 0; i < line.length; i += 4)
                    blue += line[i] === 0 && line[i + 1] === 114;
                return blue / scale;
            });
        }"""
    )
    assert lengths[:13] == [0] * 13
    assert all(abs(length - 98 / 3) < 1.5 for length in lengths[13:]), lengths
