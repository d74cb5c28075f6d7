"""Chapter 02's explorer in a real JupyterLab: the window over a text."""

import pytest
from lab import both_themes, changed, in_kernel, live_widgets, run_all, run_cell, run_cells_until
from playwright.sync_api import expect

CHAPTER = "02_language_modelling.ipynb"
TEXT = "To be, or not to be:\nthat is <b>the</b> question."
WINDOW = f"""from helpers.widgets.window_explorer import WindowExplorer
explorer = WindowExplorer({TEXT!r}, start=0, block_size=4)
explorer"""


@pytest.fixture
def window(open_notebook):
    page = open_notebook(cells=[WINDOW])
    assert run_all(page) == []
    node = page.locator(".d2g.window")
    expect(node.get_by_role("option")).to_have_count(4)
    return node


def strip(node, name):
    """What stands in the strip `name`, without the blanks at its sides."""
    rows = node.locator(".strip").filter(has=node.page.get_by_text(name, exact=True))
    return "".join(rows.first.locator(".cell.in").all_inner_texts())


def targets(node):
    """The target of each example: the last cell of its row that is filled."""
    return [option.locator(".target").inner_text() for option in node.get_by_role("option").all()]


def test_x_and_y_are_the_stream_one_step_apart(window):
    assert strip(window, "x") == "To␣b"
    assert strip(window, "y") == "o␣be"
    assert targets(window) == list("o␣be")
    ids = {c: i for i, c in enumerate(sorted(set(TEXT)))}
    for name, part in (("ids of x", TEXT[:4]), ("ids of y", TEXT[1:5])):
        row = window.locator(".strip").filter(has=window.page.get_by_text(name, exact=True))
        assert row.locator(".id").all_inner_texts() == [str(ids[c]) for c in part]


def test_the_start_moves_by_keyboard(window):
    page, strips = window.page, window.locator(".strips")
    window.get_by_role("slider", name="start").focus()
    assert changed(strips, lambda: page.keyboard.press("ArrowRight"))
    assert (strip(window, "x"), strip(window, "y")) == ("o␣be", "␣be,")
    page.keyboard.press("End")  # the last start that leaves a target for every input
    expect(window.get_by_role("status")).to_contain_text(f"from {len(TEXT) - 5} to {len(TEXT) - 1}")
    assert strip(window, "y") == "ion."
    page.wait_for_timeout(300)
    assert in_kernel(page, "explorer.start") == len(TEXT) - 5


def test_the_block_size_moves_by_mouse_and_never_past_the_end(window):
    page = window.page
    window.get_by_role("slider", name="start").focus()
    page.keyboard.press("End")
    slider = window.get_by_role("slider", name="block_size").bounding_box()
    page.mouse.click(slider["x"] + slider["width"] - 4, slider["y"] + slider["height"] / 2)
    expect(window.get_by_role("option")).to_have_count(16)
    expect(window.get_by_role("status")).to_contain_text("= 17 tokens")
    assert strip(window, "x") + strip(window, "y")[-1] == TEXT[-17:].replace(" ", "␣")
    page.wait_for_timeout(300)
    assert len(in_kernel(page, "explorer.examples()")) == 16


def test_an_example_lights_its_context_and_its_target(window):
    page, options = window.page, window.get_by_role("option")
    window.get_by_role("listbox").focus()
    for key, t in (("Home", 0), ("ArrowDown", 1), ("End", 3), ("ArrowUp", 2), ("ArrowDown", 3)):
        page.keyboard.press(key)
        expect(options.nth(t)).to_have_attribute("aria-selected", "true")
        expect(window.get_by_role("status")).to_contain_text(f"t = {t}")
    lit = window.locator(".strips .context")
    expect(lit).to_have_count(2 * 4)  # in the stream and in x
    options.nth(1).hover()
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    expect(lit).to_have_count(2 * 2)
    assert window.locator(".strips .target").all_inner_texts() == ["␣", "␣"]
    expect(options.nth(1)).to_have_attribute("aria-label", "t = 1   “To” → “␣”")


def test_the_kernel_moves_the_window_and_markup_stays_text(window):
    place = TEXT.index("<b>")
    in_kernel(window.page, f"explorer.set_trait('start', {place})")
    expect(window.locator(".strip .in").first).to_have_text("<")
    assert strip(window, "x") == "<b>t"
    assert window.locator("b").count() == 0


def test_running_the_cell_again_leaks_nothing(window):
    for _ in range(3):
        assert run_cell(window.page, "WindowExplorer") == []
    expect(window.page.locator(".d2g.window")).to_have_count(1)
    assert live_widgets(window.page) == 1


def test_it_looks_right_in_both_themes(open_notebook):
    page = open_notebook(CHAPTER)
    assert run_cells_until(page, "WindowExplorer(") == []
    node = page.locator(".d2g.window")
    node.get_by_role("listbox").focus()
    both_themes(node, "02-window")
    inside = node.evaluate("n => n.scrollWidth <= n.clientWidth")
    assert inside, "the explorer is wider than its cell"
