"""The attention explorer in a real JupyterLab: by keyboard and by mouse."""

import re

import pytest
from lab import (
    changed,
    eventually,
    in_kernel,
    next_frame,
    occupy,
    still,
)
from playwright.sync_api import expect

MAKE = """
import torch
from explorers.attention import AttentionExplorer

def weights_and_scores(L, H, T):
    scores = 2 * torch.randn(L, H, T, T, generator=torch.Generator().manual_seed(T))
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(-1), scores
"""
TOKENS = ["The", "animal", "did", "not", "cross", "the", "road", "because", "it", "was", "tired"]
SHOW = f"""
tokens = {TOKENS}
maps, scores = weights_and_scores(3, 4, len(tokens))
explorer = AttentionExplorer(tokens, maps, scores)
explorer
"""


@pytest.fixture
def show(explorer):
    """show(code) runs the code and gives (page, explorer)."""

    def shown(code=SHOW):
        node = explorer(".attention-explorer", MAKE, code)
        node.locator("td.number").first.wait_for()
        return node.page, node

    return shown


def settled(page, **traits):
    """Python comes to know what the browser shows."""
    names = f"{{n: getattr(explorer, n) for n in {list(traits)}}}"
    eventually(lambda: in_kernel(page, names), traits)
    next_frame(page)


def table_of(explorer):
    """[(position, score, weight), ...] as the table says."""
    next_frame(explorer.page)
    rows = explorer.locator("tbody tr").all()
    texts = [row.locator("td.number").all_inner_texts() for row in rows]
    return [(int(t[0]), *t[1:]) for t in texts]


def row_in_kernel(page, row):
    """[(weight, score), ...] of one query as Python prints them."""
    return in_kernel(
        page, f"[(f'{{w:.3f}}', f'{{s:.2f}}') for w, s in zip(maps{row}, scores{row}, strict=True)]"
    )


def test_the_keyboard_chooses_heads(show):
    page, explorer = show()
    explorer.get_by_role("gridcell", name="layer 0, head 0").focus()
    figure = explorer.locator(".figure canvas").first
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        assert changed(figure, lambda key=key: page.keyboard.press(key))
    settled(page, layer=1, head=2, average=False)
    chosen = explorer.get_by_role("gridcell", selected=True)
    assert chosen.get_attribute("aria-label") == "layer 1, head 2"
    assert chosen.evaluate("node => node === document.activeElement")
    page.keyboard.press("End")
    settled(page, layer=1, average=True)
    assert "mean of 4 heads" in explorer.locator(".main strong").inner_text()
    page.keyboard.press("ArrowLeft")
    settled(page, head=3, average=False)


def test_the_numbers_are_those_of_the_tensors(show):
    page, explorer = show()
    explorer.get_by_role("gridcell", name="layer 2, head 1").click()
    explorer.get_by_role("slider").focus()
    page.keyboard.press("End")
    next_frame(page)
    row = row_in_kernel(page, "[2, 1, -1]")
    table = table_of(explorer)
    assert len(table) == 8
    assert [weight for *_, weight in table] == sorted((w for w, _ in row), reverse=True)[:8]
    for key, score, weight in table:
        assert [weight, score.replace("−", "-")] == row[key]

    explorer.get_by_role("gridcell", name="layer 2, mean of 4 heads").click()
    next_frame(page)
    mean = in_kernel(page, "maps[2, :, -1].mean(0).tolist()")
    for key, _, weight in table_of(explorer):
        assert float(weight) == pytest.approx(mean[key], abs=6e-4)


def test_the_three_stages(show):
    page, explorer = show()
    explorer.get_by_role("slider").focus()
    for key in ("Home", "ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    figure = explorer.locator(".figure canvas").first
    assert changed(figure, explorer.get_by_role("button", name="1 Scores").click)
    assert all("∞" not in score for _, score, _ in table_of(explorer))
    before = still(figure)
    explorer.get_by_role("button", name="2 Mask").click()
    assert explorer.get_by_role("checkbox", name="show masked").is_checked() is False
    table = table_of(explorer)
    assert [score for _, score, _ in table[4:]] == ["−∞"] * 4 and table[3][1] != "−∞"
    assert still(figure) != before
    assert changed(figure, explorer.get_by_role("checkbox").click)
    settled(page, stage="mask", show_masked=True, query=3)


def test_hover_shows_one_row_and_a_click_locks_it(show):
    page, explorer = show()
    explorer.get_by_role("button", name="All queries").click()
    settled(page, query=-1, locked=False)
    area = explorer.locator(".map canvas").bounding_box()
    cell = area["height"] / len(TOKENS)

    def point(i, j):
        page.mouse.move(area["x"] + (j + 0.5) * cell, area["y"] + (i + 0.5) * cell)
        next_frame(page)

    caption, readout = explorer.locator("caption"), explorer.locator(".readout")
    point(6, 2)
    expect(caption).to_contain_text("Query 6 “road”")
    weight = in_kernel(page, "f'{maps[0, 0, 6, 2]:.3f}'")
    expect(readout).to_have_text(f"Query 6 “road” → key 2 “did”: {weight}")
    point(8, 2)
    expect(caption).to_contain_text("Query 8")
    page.mouse.click(area["x"] + cell, area["y"] + 8.5 * cell)
    settled(page, query=8, locked=True)
    point(3, 1)
    page.mouse.move(5, 5)
    next_frame(page)
    expect(caption).to_have_text("Query 8 “it” (locked)")
    page.mouse.click(area["x"] + cell, area["y"] + 8.5 * cell)
    settled(page, locked=False)
    page.mouse.move(5, 5)
    settled(page, query=-1)


def test_the_keyboard_moves_and_locks_the_query(show):
    page, explorer = show()
    figure = explorer.get_by_role("slider", name="Query shown")
    figure.focus()
    for key in ("End", "ArrowUp"):
        page.keyboard.press(key)
    settled(page, query=len(TOKENS) - 2, locked=True)  # as it opened
    page.keyboard.press("Enter")
    settled(page, locked=False)
    page.keyboard.press("Enter")
    settled(page, locked=True)
    assert figure.get_attribute("aria-valuetext") == "query 9, was (locked)"
    said = "Layer 0, head 0. Query 9 “was” (locked). Strongest keys: "
    expect(explorer.get_by_role("status")).to_contain_text(said)
    for key in ("Home", "ArrowUp"):  # above the first query: all of them
        page.keyboard.press(key)
    settled(page, query=-1, locked=False)
    expect(explorer.locator("caption")).to_have_text("Mean over all queries that can attend to it")


def test_chips_lead_to_what_a_head_does(show):
    page, explorer = show(
        f"""
tokens = {TOKENS}
_, scores = weights_and_scores(3, 4, len(tokens))
scores[1, 2, range(1, 11), range(10)] += 12
maps = scores.masked_fill(torch.ones(11, 11).triu(1) > 0, -torch.inf).softmax(-1)
explorer = AttentionExplorer(tokens, maps, scores)
explorer"""
    )
    chip = explorer.get_by_role("button", name="the previous token")
    figure = explorer.locator(".figure canvas").first
    assert changed(figure, lambda: chip.press("Enter"))
    expect(explorer.locator(".main > strong")).to_have_text("Layer 1, head 2: weights")
    expect(chip).to_have_attribute("aria-pressed", "true")
    settled(page, layer=1, head=2, locked=True, average=False)
    query = in_kernel(page, "explorer.query")
    assert table_of(explorer)[0][0] == query - 1
    explorer.get_by_role("slider").press("Home")
    expect(chip).to_have_attribute("aria-pressed", "false")
    found = in_kernel(page, "[one['name'] for one in explorer.notable_heads]")  # no others
    assert found == ["previous token", "first token", "many tokens"]
    shown = explorer.locator(".chips button").all_inner_texts()
    assert shown == ["the previous token", "the first token", "many tokens"]


def test_a_repeating_text_has_a_chip_for_what_followed_last_time(show):
    page, explorer = show(
        """
tokens = "the cat sat here and the cat sat there".split()
_, scores = weights_and_scores(2, 3, len(tokens))
scores[1, 1, [5, 6, 7], [1, 2, 3]] += 12
maps = scores.masked_fill(torch.ones(9, 9).triu(1) > 0, -torch.inf).softmax(-1)
explorer = AttentionExplorer(tokens, maps, scores)
explorer"""
    )
    chip = explorer.get_by_role("button", name="what followed last time")
    chip.focus()
    page.keyboard.press("Enter")
    expect(explorer.locator(".main > strong")).to_have_text("Layer 1, head 1: weights")
    expect(chip).to_have_attribute("aria-pressed", "true")
    settled(page, layer=1, head=1, locked=True)
    query = in_kernel(page, "explorer.query")
    assert query in (5, 6, 7) and table_of(explorer)[0][0] == query - 4


def test_the_lines_view_answers_the_same_keys_and_pointer(show):
    page, explorer = show()
    explorer.get_by_role("button", name="All queries").click()
    explorer.get_by_role("button", name="Lines").click()
    lines = explorer.locator(".lines")
    expect(lines.locator(".head")).to_have_text(["query", "", "key", ""])
    ends = lines.locator("canvas").first.bounding_box()
    targets = lines.locator(".right").bounding_box()
    assert ends["x"] + ends["width"] == pytest.approx(targets["x"], abs=1)
    assert changed(lines, lambda: lines.locator(".left span").nth(5).hover())
    expect(explorer.locator("caption")).to_contain_text("Query 5")
    lines.locator(".left span").nth(5).click()
    settled(page, view="lines", query=5, locked=True)
    explorer.get_by_role("slider").focus()
    assert changed(lines, lambda: page.keyboard.press("ArrowDown"))
    settled(page, query=6, locked=True)


def test_a_late_echo_of_the_kernel_undoes_no_choice(show):
    page, explorer = show()
    explorer.get_by_role("button", name="All queries").click()
    settled(page, query=-1)
    explorer.get_by_role("slider").focus()
    occupy(page, 0.6)
    page.keyboard.press("ArrowDown")
    page.wait_for_timeout(150)  # the kernel is told of query 0, and will answer between these keys:
    for _ in range(9):
        page.keyboard.press("ArrowDown", delay=50)
    expect(explorer.locator("caption")).to_contain_text("Query 9")
    settled(page, query=9)


def test_tokens_are_never_markup(show):
    tokens = [
        "<img src=x onerror=window.tokenRan=1>",
        "<b>bold</b>",
        " ",
        "\n",
        "",
        "😀",
        "a\x00b",
        "x" * 40,
    ]
    page, explorer = show(
        f"tokens = {tokens}\nexplorer = AttentionExplorer(tokens, weights_and_scores(1, 2, 8)[0],"
        " title='<i>title</i>')\nexplorer"
    )
    explorer.get_by_role("slider").focus()
    page.keyboard.press("End")
    explorer.get_by_role("button", name="Lines").click()
    expect(explorer.get_by_role("status")).to_contain_text("Query 7")
    assert not page.evaluate("window.tokenRan")
    assert explorer.locator("img, b, i").count() == 0
    left = explorer.locator(".lines .left span")
    assert left.all_inner_texts() == [
        "<img␣src=…", "<b>bold</…", "␣", "⏎", "∅", "😀", "a␀b", "x" * 9 + "…",
    ]  # fmt: skip
    assert left.first.get_attribute("title") == tokens[0].replace(" ", "␣")
    assert left.last.get_attribute("title") == tokens[-1]


def test_a_long_text_is_still_usable(show):
    page, explorer = show(
        "explorer = AttentionExplorer(['word'] * 256, weights_and_scores(2, 2, 256)[0])\nexplorer"
    )
    explorer.get_by_role("slider").focus()
    page.keyboard.press("End")
    next_frame(page)
    expect(explorer.locator("caption")).to_contain_text("Query 255")
    explorer.get_by_role("button", name="Lines").click()
    explorer.get_by_role("slider").focus()
    page.keyboard.press("End")
    next_frame(page)
    last = explorer.locator(".lines .left span").last.bounding_box()
    figure = explorer.locator(".figure").bounding_box()
    assert last["y"] + last["height"] <= figure["y"] + figure["height"] + 1  # scrolled into sight
    seen = explorer.locator(".seen")
    expect(seen).to_have_text(re.compile(r"^\d+–255 of 256 tokens: scroll$"))
    explorer.get_by_role("slider").press("Home")
    expect(seen).to_have_text(re.compile(r"^0–\d+ of 256 tokens: scroll$"))
