"""Chapter 02's explorer in a real JupyterLab: the window over a text."""

import pytest
from lab import changed, eventually, in_kernel
from playwright.sync_api import expect

TEXT = "To be, or not to be:\nthat is <b>the</b> question."
WINDOW = f"""from explorers.window import WindowExplorer
explorer = WindowExplorer({TEXT!r}, start=0, block_size=4)
explorer"""


@pytest.fixture
def window(explorer):
    node = explorer(".d2g.window", WINDOW)
    expect(node.get_by_role("option")).to_have_count(4)
    return node


def strip(node, name):
    """The strip `name` as text (it lies unseen over the drawing, and follows a moment later)."""
    return node.locator(f'[data-row="{name}"] .cells')


def cells(node):
    """The drawn cells of the strips x and y: "context", "target" or "" (not lit).

    Read from the pixels: blue lines above and below, a red frame all around, or neither.
    """
    return node.locator("canvas").evaluate(
        """canvas => {
            const scale = devicePixelRatio, pen = canvas.getContext("2d");
            const ink = name => getComputedStyle(canvas).getPropertyValue(`--${name}`).trim();
            const at = (x, y) => "#" + [...pen.getImageData(x * scale, y * scale, 1, 1).data]
                .slice(0, 3).map(v => v.toString(16).padStart(2, "0")).join("");
            const kind = (x, top) => at(x + 11, top) === ink("blue") ? "context"
                : at(x, top + 8) === ink("red") ? "target" : "";
            return [24, 62].map(top => Array.from({length: 4}, (_, i) => kind(215 + 24 * i, top)));
        }"""
    )


def test_x_and_y_are_the_stream_one_step_apart(window):
    expect(strip(window, "x")).to_have_text("To␣b")
    expect(strip(window, "y")).to_have_text("o␣be")
    expect(strip(window, "text")).to_contain_text("To␣be,␣or␣n")
    ids = {c: i for i, c in enumerate(sorted(set(TEXT)))}
    for name, part in (("ids of x", TEXT[:4]), ("ids of y", TEXT[1:5])):
        expect(strip(window, name)).to_have_text(" ".join(str(ids[c]) for c in part))
    for t, (known, target) in enumerate([("T", "o"), ("To", "␣"), ("To␣", "b"), ("To␣b", "e")]):
        option = window.get_by_role("option").nth(t)
        expect(option.locator(".cells")).to_have_text(known + target)
        expect(option.locator(".words")).to_contain_text(f"comes “{target}”")


def test_the_start_moves_by_keyboard(window):
    page, strips = window.page, window.locator(".strips")
    window.get_by_role("slider", name="start").focus()
    assert changed(strips, lambda: page.keyboard.press("ArrowRight"))
    expect(strip(window, "x")).to_have_text("o␣be")
    expect(strip(window, "y")).to_have_text("␣be,")
    page.keyboard.press("End")  # the last start that leaves a target for every input
    expect(window.get_by_role("status")).to_contain_text(f"from {len(TEXT) - 5} to {len(TEXT) - 1}")
    expect(strip(window, "y")).to_have_text("ion.")
    eventually(lambda: in_kernel(page, "explorer.start"), len(TEXT) - 5)


def test_the_block_size_moves_by_mouse_and_never_past_the_end(window):
    page = window.page
    window.get_by_role("slider", name="start").focus()
    page.keyboard.press("End")
    slider = window.get_by_role("slider", name="block_size").bounding_box()
    page.mouse.click(slider["x"] + slider["width"] - 4, slider["y"] + slider["height"] / 2)
    expect(window.get_by_role("option")).to_have_count(16)
    expect(window.get_by_role("status")).to_contain_text("= 17 tokens")
    expect(strip(window, "x")).to_have_text(TEXT[-17:-1].replace(" ", "␣"))
    expect(strip(window, "y")).to_have_text(TEXT[-16:].replace(" ", "␣"))
    eventually(lambda: len(in_kernel(page, "explorer.examples()")), 16)


def test_an_example_lights_its_context_and_its_target(window):
    page, options = window.page, window.get_by_role("option")
    window.get_by_role("listbox").focus()
    for key, t in (("Home", 0), ("ArrowDown", 1), ("End", 3), ("ArrowUp", 2), ("ArrowDown", 3)):
        page.keyboard.press(key)
        expect(options.nth(t)).to_have_attribute("aria-selected", "true")
        expect(window.get_by_role("status")).to_contain_text(f"t = {t}")
    assert cells(window) == [["context"] * 4, ["", "", "", "target"]]
    options.nth(1).hover()
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    expect(window.get_by_role("status")).to_contain_text("t = 1")
    assert cells(window) == [["context", "context", "", ""], ["", "target", "", ""]]
    expect(options.nth(1)).to_have_attribute("aria-label", "t = 1   “To” → “␣”")


def test_the_kernel_moves_the_window_and_markup_stays_text(window):
    place = TEXT.index("<b>")
    in_kernel(window.page, f"explorer.set_trait('start', {place})")
    expect(strip(window, "x")).to_have_text("<b>t")
    assert window.locator("b").count() == 0
