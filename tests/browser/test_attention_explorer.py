"""The attention explorer: stages, a locked query, chips, and texts that are hard to show."""

from collections.abc import Sequence

import pytest
import torch
from bare import Bare, Shown
from playwright.sync_api import expect

from explorers import AttentionExplorer

TOKENS = ["The", "animal", "did", "not", "cross", "the", "road", "because", "it", "was", "tired"]
AGAIN = ["the", "cat", "sat", "here", "and", "the", "cat", "sat", "there"]
ODD = [
    "<img src=x onerror=window.tokenRan=1>", "<b>bold</b>", " ", "\n", "", "😀", "a\x00b", "x" * 40,
]  # fmt: skip


def softmax(scores: torch.Tensor) -> torch.Tensor:
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(-1)


def show(bare: Bare, tokens: Sequence[str] = TOKENS, strong: Sequence[tuple] = ()) -> Shown:
    """Three layers of four heads; strong: scores [layer, head, queries, keys] to be raised."""
    T = len(tokens)
    scores = 2 * torch.randn(3, 4, T, T, generator=torch.Generator().manual_seed(T))
    for layer, head, queries, keys in strong:
        scores[layer, head, queries, keys] += 12
    return bare.show(AttentionExplorer(tokens, softmax(scores), scores, title="<i>title</i>"))


def table(shown: Shown) -> list[list[str]]:
    """Position, score and weight of the strongest keys, as the table says."""
    shown.settled()
    rows = shown.node.locator("tbody tr").all()
    return [row.locator("td.number").all_inner_texts() for row in rows]


def test_the_three_stages(bare: Bare) -> None:
    shown = show(bare)
    shown.keys("slider", "Query shown", "Home ArrowDown*3")
    words = shown.node.locator(".heading")
    shown.press("1 Scores")
    expect(words).to_have_text("Layer 0, head 0: scores")  # halfway, as all words
    assert all("∞" not in score for _, score, _ in table(shown))
    shown.press("2 Mask")
    expect(words).to_have_text("Layer 0, head 0: scores, masked")
    assert [score for _, score, _ in table(shown)[4:]] == ["−∞"] * 4
    assert table(shown)[3][1] != "−∞"
    shown.has(stage="mask", query=3)
    shown.changes(lambda: shown.press("Play"))
    shown.has(stage="softmax")
    expect(words).to_have_text("Layer 0, head 0: weights")
    assert [score for _, score, _ in table(shown)[4:]] == ["−∞"] * 4
    shown.keys("slider", "Stage", "Home ArrowRight*16")  # four fifths of the way to the mask
    shown.has(stage="mask")


def test_hover_shows_one_row_and_a_click_locks_it(bare: Bare) -> None:
    shown = show(bare)
    shown.press("All queries")
    shown.has(query=-1, locked=False)
    area = shown.node.locator(".map canvas").bounding_box()
    caption, mouse = shown.node.locator("caption"), shown.page.mouse

    def place(i: int, j: int) -> tuple[float, float]:
        cell = area["height"] / len(TOKENS)
        return area["x"] + (j + 0.5) * cell, area["y"] + (i + 0.5) * cell

    mouse.move(*place(6, 2))
    expect(caption).to_contain_text("Query 6 “road”")
    weight = shown.python._head_weights()[6, 2]
    said = f"Query 6 “road” → key 2 “did”: {weight:.3f}"
    expect(shown.node.locator(".readout")).to_have_text(said)
    mouse.click(*place(8, 1))
    shown.has(query=8, locked=True)
    mouse.move(*place(3, 1))
    mouse.move(5, 5)
    shown.settled()
    expect(caption).to_have_text("Query 8 “it” (locked)")
    mouse.click(*place(8, 1))
    shown.has(locked=False)
    mouse.move(5, 5)
    shown.has(query=-1)
    tokens = shown.node.locator(".tokens span")
    tokens.nth(5).click()
    shown.has(query=5, locked=True)
    tokens.nth(1).hover()
    expect(shown.node.locator(".readout")).to_contain_text("Query 5 “the” → key 1 “animal”: ")


def test_the_query_is_said(bare: Bare) -> None:
    shown = show(bare)
    figure = shown.keys("slider", "Query shown", "End ArrowUp")
    expect(figure).to_have_attribute("aria-valuetext", "query 9, was (locked)")
    said = "Layer 0, head 0. Query 9 “was” (locked). Strongest keys: "
    expect(shown.node.get_by_role("status")).to_contain_text(said)
    shown.keys("slider", "Query shown", "Home ArrowUp")  # above the first query: all of them
    shown.has(query=-1, locked=False)
    expect(shown.node.locator("caption")).to_contain_text("Mean over all queries")


@pytest.mark.parametrize(
    ("tokens", "strong", "chip", "back"),
    [
        (TOKENS, (1, 2, range(1, 11), range(10)), "the previous token", 1),
        (AGAIN, (1, 2, [5, 6, 7], [1, 2, 3]),
         "what followed last time", 4),
    ],
)  # fmt: skip
def test_chips_lead_to_what_a_head_does(bare: Bare, tokens, strong, chip: str, back: int) -> None:
    shown = show(bare, tokens, [strong])
    button = shown.node.get_by_role("button", name=chip)
    shown.changes(lambda: button.press("Enter"))
    expect(shown.node.locator(".heading")).to_have_text("Layer 1, head 2: weights")
    expect(button).to_have_attribute("aria-pressed", "true")
    shown.has(layer=1, head=2, locked=True)
    assert int(table(shown)[0][0]) == shown.python.query - back
    shown.keys("slider", "Query shown", "Home")
    expect(button).to_have_attribute("aria-pressed", "false")


def test_tokens_are_never_markup_and_none_is_invisible(bare: Bare) -> None:
    shown = show(bare, ODD)
    shown.keys("slider", "Query shown", "End")
    expect(shown.node.get_by_role("status")).to_contain_text("Query 7")
    assert not shown.page.evaluate("window.tokenRan")
    assert shown.node.locator("img, b, i").count() == 0
    tokens = shown.node.locator(".tokens span")
    assert tokens.all_inner_texts() == [
        "<img␣src=…", "<b>bold</…", "␣", "⏎", "∅", "😀", "a␀b", "x" * 9 + "…",
    ]  # fmt: skip
    assert tokens.last.get_attribute("title") == ODD[-1]


def test_a_long_text_scrolls_to_its_query(bare: Bare) -> None:
    shown = show(bare, ["word"] * 256)
    for key, query in (("End", 255), ("Home", 0)):
        shown.keys("slider", "Query shown", key)
        expect(shown.node.locator("caption")).to_contain_text(f"Query {query}")
        expect(shown.node.locator(".tokens span").nth(query)).to_be_in_viewport()
