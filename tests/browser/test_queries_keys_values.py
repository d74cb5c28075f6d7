"""Chapter 04's explorer in a real JupyterLab: the trained head's own map and scores."""

import pytest
from lab import both_themes, changed, in_kernel, live_widgets, next_frame, run_cell
from playwright.sync_api import expect

CELL = "AttentionExplorer("


@pytest.fixture
def page(chapter):
    page = chapter("04_queries_keys_values.ipynb")
    assert run_cell(page, CELL) == []  # later cells have given x other values
    expect(page.locator(".attention-explorer")).to_have_count(1)
    page.locator(".attention-explorer td.number").first.wait_for()
    return page


def shown(page):
    """{key position: (score, weight)} as the table says."""
    next_frame(page)
    rows = page.locator(".attention-explorer tbody tr").all()
    texts = [row.locator("td.number").all_inner_texts() for row in rows]
    return {int(t[0]): (t[1], t[2]) for t in texts}


def test_a_learner_reads_the_trained_head(page):
    explorer = page.locator(".attention-explorer")
    figure = explorer.locator(".figure")

    # by keyboard: the row of the second character, an h that may look at two places
    figure.focus()
    for key in ("Home", "ArrowDown"):
        assert changed(explorer, lambda key=key: page.keyboard.press(key)), key
    assert figure.get_attribute("aria-valuetext").startswith("query 1, h")
    wanted = in_kernel(page, "[f'{w:.3f}' for w in model.head.weights(x)[0, 0, 1].tolist()]")
    table = shown(page)
    assert [table[j][1] for j in (0, 1)] == wanted[:2]
    assert float(wanted[0]) + float(wanted[1]) == pytest.approx(1, abs=2e-3)

    # by mouse: the stages, and with them the scores that the mask hides
    assert changed(explorer, lambda: explorer.get_by_role("button", name="1 Scores").click())
    largest = in_kernel(page, "int(line_scores[0, 1].argmax())")
    assert next(iter(shown(page))) == largest and largest > 1
    assert changed(explorer, lambda: explorer.get_by_role("button", name="2 Mask").click())
    assert max(list(shown(page))[:2]) <= 1
    assert changed(explorer, lambda: explorer.get_by_role("button", name="3 Softmax").click())
    assert changed(explorer, lambda: explorer.get_by_role("button", name="Lines").click())
    assert changed(explorer, lambda: explorer.get_by_role("button", name="Heat map").click())

    both_themes(explorer, "attention")

    # again and again
    for _ in range(3):
        assert run_cell(page, CELL) == []
    assert live_widgets(page) == 1
