"""Chapter 01's explorers in a real JupyterLab: two arrows, and words."""

import pytest
from lab import (
    changed,
    eventually,
    in_kernel,
)
from playwright.sync_api import expect

ARROWS = """from explorers.two_vectors import TwoVectors
explorer = TwoVectors(a=(4, 1), b=(2, 3))
explorer"""
GLOVE = """from helpers import data
from explorers.word import WordExplorer
words, vectors = data.glove()"""
WORDS = """explorer = WordExplorer(words, vectors)
explorer"""


@pytest.fixture
def arrows(explorer):
    node = explorer(".two-vectors", ARROWS)
    expect(node.locator("[data-row=dot] td")).to_have_text("11.00")
    return node


@pytest.fixture
def words(explorer):
    node = explorer(".word-explorer", GLOVE, WORDS)
    expect(node.locator(".answer tr").first).to_contain_text("dog")
    return node


def number(node, row):
    return node.locator(f"[data-row={row}] td")


def first_answer(node):
    return node.locator(".answer tr").first


# --- TwoVectors -----------------------------------------------------------------------------------


def test_the_numbers_are_right(arrows):
    for row, value in {
        "dot": "11.00", "la": "4.12", "lb": "3.61", "cosine": "0.74",
        "angle": "42.3°", "projection": "2.67",
    }.items():  # fmt: skip
        expect(number(arrows, row)).to_have_text(value)
    expect(arrows.locator(".sum")).to_have_text("a·b = 4.0 × 2.0 + 1.0 × 3.0 = 11.00")
    expect(arrows.locator(".verdict")).to_contain_text("acute")


def test_dragging_a_tip_moves_the_arrow(arrows):
    page, picture = arrows.page, arrows.locator("svg")
    tip = arrows.get_by_role("slider", name="Tip of b").bounding_box()
    x, y = tip["x"] + tip["width"] / 2, tip["y"] + tip["height"] / 2
    unit = picture.bounding_box()["width"] * 380 / 12 / 420

    def drag():
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x - 3 * unit, y + unit, steps=5)
        page.mouse.up()

    assert changed(picture, drag)  # b: (2, 3) → (−1, 2)
    expect(number(arrows, "dot")).to_have_text("−2.00")
    expect(arrows.locator(".verdict")).to_contain_text("obtuse")
    page.mouse.move(x, y)  # released: it no longer follows
    expect(number(arrows, "dot")).to_have_text("−2.00")
    eventually(lambda: in_kernel(page, "[explorer.bx, explorer.by]"), [-1, 2])


def test_a_tip_cannot_be_dragged_off_the_plane(arrows):
    page = arrows.page
    tip = arrows.get_by_role("slider", name="Tip of a").bounding_box()
    page.mouse.move(tip["x"] + tip["width"] / 2, tip["y"] + tip["height"] / 2)
    page.mouse.down()
    page.mouse.move(2000, 0, steps=3)
    page.mouse.up()
    expect(arrows.locator(".sum")).to_have_text("a·b = 6.0 × 2.0 + 6.0 × 3.0 = 30.00")


def test_keys_on_a_tip_and_on_a_slider(arrows):
    page, picture = arrows.page, arrows.locator("svg")
    cells = page.locator(".jp-CodeCell").count()
    tip = arrows.get_by_role("slider", name="Tip of b")
    tip.focus()
    assert changed(picture, lambda: page.keyboard.press("Shift+ArrowLeft"))
    expect(tip).to_have_attribute("aria-valuetext", "b = (1.0, 3.0)")
    for _ in range(4):
        page.keyboard.press("ArrowUp")
    expect(tip).to_have_attribute("aria-valuetext", "b = (1.0, 3.4)")
    slider = arrows.get_by_role("slider", name="b₁")
    slider.focus()
    assert changed(picture, lambda: page.keyboard.press("ArrowRight"))
    expect(tip).to_have_attribute("aria-valuetext", "b = (1.1, 3.4)")
    page.keyboard.press("b")  # in JupyterLab's command mode: a new cell
    assert page.locator(".jp-CodeCell").count() == cells


def test_a_right_angle_is_exactly_zero_and_a_zero_vector_has_no_angle(arrows):
    in_kernel(arrows.page, "[explorer.set_trait(n, v) for n, v in dict(bx=-0.7, by=2.8).items()]")
    expect(number(arrows, "dot")).to_have_text("0.00")
    expect(arrows.locator(".verdict")).to_contain_text("right angle")
    in_kernel(arrows.page, "[explorer.set_trait(n, 0.0) for n in ('bx', 'by')]")
    expect(number(arrows, "cosine")).to_contain_text("no direction")
    expect(arrows.locator(".verdict")).to_contain_text("no angle")


def test_the_buttons_show_what_length_does(arrows):
    cosine = number(arrows, "cosine")
    arrows.get_by_role("button", name="b ÷ 2").click()
    expect(number(arrows, "dot")).to_have_text("5.50")
    expect(cosine).to_have_text("0.74")
    arrows.get_by_role("button", name="b × 2").click()
    expect(number(arrows, "dot")).to_have_text("11.00")
    arrows.get_by_role("button", name="−b").click()
    expect(cosine).to_have_text("−0.74")
    arrows.get_by_role("button", name="turn b by 90°").click()
    expect(number(arrows, "angle")).to_have_text("47.7°")


# --- WordExplorer ---------------------------------------------------------------------------------


def test_typing_a_word_shows_its_neighbours(words):
    expect(first_answer(words)).to_contain_text("0.922")
    field = words.get_by_label("word", exact=True)
    field.fill("")
    expect(words.locator(".messages")).to_contain_text("Type a word")
    table = words.locator(".answer")
    field.press_sequentially("frog")
    expect(first_answer(words)).to_contain_text("snake")
    expect(first_answer(words)).to_contain_text("0.845")
    expect(table.locator("tr")).to_have_count(10)
    eventually(lambda: in_kernel(words.page, "explorer.word"), "frog")
    in_kernel(words.page, "explorer.set_trait('word', 'piano')")  # and the other way
    expect(field).to_have_value("piano")
    expect(first_answer(words)).to_contain_text("violin")


def test_an_unknown_word_gets_suggestions_that_can_be_pressed(words):
    words.get_by_label("word", exact=True).fill("ellephant")
    expect(words.locator(".messages")).to_contain_text("not among the 30,000 words")
    expect(words.locator(".answer")).to_be_hidden()
    words.get_by_role("button", name="elephant", exact=True).click()
    expect(words.get_by_label("word", exact=True)).to_have_value("elephant")
    expect(words.locator(".answer")).to_contain_text("nearest to “elephant”")


def test_markup_is_shown_as_text(words):
    words.get_by_label("word", exact=True).fill("<img src=x onerror=alert(1)>")
    expect(words.locator(".messages")).to_contain_text("<img␣src=x␣onerror=alert(1)>")
    assert words.locator("img").count() == 0


def test_a_neighbour_is_a_button_by_keyboard(words):
    words.locator(".answer button").nth(1).focus()
    words.page.keyboard.press("Enter")
    expect(words.get_by_label("word", exact=True)).to_have_value("rabbit")
    expect(words.locator(".answer")).to_contain_text("nearest to “rabbit”")
    expect(words.get_by_label("word", exact=True)).to_be_focused()


def test_the_switch_shows_the_king_and_hides_him(words):
    words.get_by_role("button", name="a − b + c").click()
    expect(first_answer(words)).to_contain_text("king ← query word")
    expect(first_answer(words)).to_contain_text("0.886")
    switch = words.get_by_role("checkbox", name="exclude the query words")
    switch.focus()
    words.page.keyboard.press("Space")
    expect(first_answer(words)).to_contain_text("queen")
    expect(first_answer(words)).to_contain_text("0.861")
    switch.click()
    expect(first_answer(words)).to_contain_text("king")
    words.get_by_label("c: added").fill("wommen")
    expect(words.locator(".messages")).to_contain_text("“wommen”")
    words.get_by_role("button", name="women", exact=True).click()
    expect(words.get_by_label("c: added")).to_have_value("women")
    words.get_by_role("button", name="neighbours", exact=True).click()
    expect(words.locator(".answer")).to_contain_text("nearest to “cat”")
