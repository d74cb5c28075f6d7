"""Chapter 14's explorer in a real JupyterLab: a text, and the tokens it is cut into."""

import re
import statistics

import pytest
from lab import (
    changed,
    eventually,
    in_kernel,
    latency,
    occupy,
)
from playwright.sync_api import expect

LEARN = """from helpers import data
from helpers.text import BPETokenizer
from explorers.token import TokenExplorer, readable
TEXT = data.shakespeare("validation")
learnt = BPETokenizer.train(TEXT[:300_000] + " é 中" * 900, 1256)
"""
SHOW = 'explorer = TokenExplorer(learnt, "The low, lowest thee!\\n\\n 🦉")\nexplorer'
ODD = [
    "The low, lowest thee!\n\n 🦉",
    "Don't they'll I'M 'tis ''s \t\r\n x",
    "naïve café Å e\u0301 \u00bd \u00b2 \u0660\u0661",
    "中文分词没有空格。日本語も 👩‍👩‍👧 🇨🇭",
    "def f(x):\n    return {x: [1, 2.5e-3]}  # <b>&amp;</b>\n",
    "".join(map(chr, range(0x250))),
    "\u200b \u2028\xa0\x85\x1c\x1f \ufeff\uffff  ",
]


@pytest.fixture
def tokens(explorer):
    return explorer(".token-explorer", LEARN, SHOW)


def field(node):
    return node.get_by_label("text", exact=True)


def pieces(node):
    return node.locator(".piece")


def number(node, name):
    return node.locator(f".{name}").inner_text()


def test_the_browser_and_python_cut_alike_at_every_position(tokens):
    for text in [*ODD, in_kernel(tokens.page, "TEXT[300_000:303_000]")]:
        for n in (0, 1, 2, 17, 255, 700, 999, 1000):
            here = tokens.evaluate("(node, [text, n]) => node.cut(text, n)", [text, n])
            there = in_kernel(tokens.page, f"BPETokenizer(learnt.merges[:{n}]).encode({text!r})")
            assert here == there, (text[:40], n)


def test_the_slider_by_keyboard_and_mouse(tokens):
    slider = tokens.get_by_role("slider", name="merges used")
    expect(tokens.locator(".last")).to_contain_text("last merge (number 1000):")
    with_all = int(number(tokens, "tokens.number"))
    slider.focus()
    tokens.page.keyboard.press("Home")
    expect(tokens.locator(".last")).to_have_text("no merges: every byte is a token")
    expect(tokens.locator(".number.tokens")).to_have_text("28")
    expect(tokens.locator(".number.characters")).to_have_text("25")
    expect(tokens.locator(".number.bytes")).to_have_text("28")
    expect(tokens.locator(".number.each")).to_have_text("0.89")
    expect(tokens.locator(".number.size")).to_have_text("256")
    expect(pieces(tokens)).to_have_count(28)
    tokens.page.keyboard.press("ArrowRight")
    expect(tokens.locator(".last")).to_contain_text("(number 1):")
    expect(tokens.locator(".number.size")).to_have_text("257")
    box = slider.bounding_box()

    def click():
        tokens.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    assert changed(tokens.get_by_role("listbox"), click)
    expect(tokens.locator(".number.size")).to_have_text(re.compile(r"7[45]\d"))
    assert with_all <= int(number(tokens, "tokens.number")) < 28


def test_what_is_typed_is_cut_and_never_markup(tokens):
    field(tokens).fill("<b>low</b>\n\t\x00é中x")
    expect(tokens.locator(".number.characters")).to_have_text("16")
    shown = "".join(pieces(tokens).all_inner_texts()).replace("\n", "")
    assert shown == "<b>low</b>⏎⇥‹00›é中x"
    assert tokens.locator("b").count() == 0
    eventually(lambda: in_kernel(tokens.page, "explorer.text"), "<b>low</b>\n\t\x00é中x")
    ids = in_kernel(tokens.page, "explorer.ids()")
    assert len(ids) == pieces(tokens).count()
    field(tokens).fill("")
    expect(pieces(tokens)).to_have_count(0)
    expect(tokens.locator(".number.each")).to_have_text("–")


def test_a_late_echo_of_the_kernel_takes_no_letter_back(tokens):
    page = tokens.page
    field(tokens).fill("")
    eventually(lambda: in_kernel(page, "explorer.text"), "")
    occupy(page, 1)
    field(tokens).press("a")
    page.wait_for_timeout(400)  # the kernel is told of the a, and will answer while this is typed:
    page.keyboard.type("bcdefghijklmnopqrst", delay=60)
    expect(field(tokens)).to_have_value("abcdefghijklmnopqrst")
    eventually(lambda: in_kernel(page, "explorer.text"), "abcdefghijklmnopqrst")


def test_editing_in_the_middle_gives_what_a_fresh_text_gives(tokens):
    page = tokens.page
    field(tokens).fill("the the the the")
    field(tokens).focus()
    for key in ("Home", "ArrowRight", "ArrowRight", "x", " ", "Backspace", "End", "!", "Backspace"):
        page.keyboard.press(key)
    expect(tokens.locator(".number.characters")).to_have_text("16")
    text = field(tokens).input_value()
    assert text == "thxe the the the"
    names = in_kernel(page, f"[readable(learnt.piece(i)) for i in learnt.encode({text!r})]")
    assert pieces(tokens).all_inner_texts() == names


def test_pieces_by_keyboard_and_pointer(tokens):
    page, detail, box = tokens.page, tokens.locator(".detail"), tokens.get_by_role("listbox")
    expect(detail).to_contain_text("␣ space")
    tokens.get_by_role("slider", name="merges used").focus()
    page.keyboard.press("Tab")
    expect(box).to_be_focused()
    first = in_kernel(page, "[learnt.encode(explorer.text)[i] for i in (0, -1)]")
    expect(detail).to_contain_text(f"token 1 of {pieces(tokens).count()}")
    expect(detail).to_contain_text(f"id {first[0]} ·")
    page.keyboard.press("ArrowRight")
    expect(detail).to_contain_text("token 2 of")
    chosen = box.get_attribute("aria-activedescendant")
    assert page.locator(f"#{chosen}").get_attribute("aria-selected") == "true"
    page.keyboard.press("End")
    expect(detail).to_contain_text(f"id {first[1]} ·")
    page.keyboard.press("Home")
    expect(detail).to_contain_text("token 1 of")
    pieces(tokens).nth(2).hover()
    expect(detail).to_contain_text("token 3 of")
    expect(detail).to_contain_text(re.compile(r"bytes [0-9A-F]{2}"))
    assert tokens.locator(".piece.on").count() == 1


def test_a_long_text_is_limited_and_says_so(tokens):
    field(tokens).fill("low 🦉 " * 800)
    expect(tokens.locator(".warning")).to_have_text(
        "The text has 4800 characters. Only the first 4000 are tokenised."
    )
    expect(tokens.locator(".number.characters")).to_have_text("4000")
    field(tokens).fill("low")
    expect(tokens.locator(".warning")).to_have_text("")


def test_typing_is_quick_in_a_text_of_2000_characters(tokens):
    page = tokens.page
    field(tokens).fill(in_kernel(page, "TEXT[310_000:312_000]"))
    expect(tokens.locator(".number.characters")).to_have_text("2000")
    field(tokens).focus()
    typed = [lambda c=c: page.keyboard.type(c) for c in "once upon a time"]
    work = [own for _, own in latency(tokens, typed, event="input")]
    tokens.get_by_role("slider", name="merges used").focus()
    keys = [lambda: page.keyboard.press("ArrowLeft")] * 15
    moved = [own for _, own in latency(tokens, keys, event="input")]
    print(
        f"typing: median {statistics.median(work):.1f} ms, best {min(work):.1f}; "
        f"slider: median {statistics.median(moved):.1f} ms, best {min(moved):.1f}"
    )
    assert min(work) < 30 and min(moved) < 30  # a busy machine makes the rest longer
