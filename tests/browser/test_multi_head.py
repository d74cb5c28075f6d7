"""Chapter 06's explorer in a real JupyterLab: four heads of one layer, side by side."""

import pytest
from lab import (
    both_themes,
    changed,
    eventually,
    in_kernel,
    live_widgets,
    next_frame,
    occupy,
    run_cell,
)
from playwright.sync_api import expect

CELL = "AttentionExplorer("
# The chapter shows its explorer without a name: this finds the live one.
EXPLORER = (
    "next(w for w in __import__('ipywidgets').widgets.widget._instances.values()"
    " if type(w).__name__ == 'AttentionExplorer')"
)


@pytest.fixture
def node(chapter):
    page = chapter("06_multi_head.ipynb")
    assert run_cell(page, CELL) == []  # fresh for each test
    node = page.locator(".attention-explorer")
    expect(node).to_have_count(1)
    expect(node.locator(".main strong")).to_have_text("Layer 0, head 0: weights")
    return node


def trait(node, name):
    return lambda: in_kernel(node.page, f"{EXPLORER}.{name}")


def table(node):
    """{key position: (score, weight)} as the table says."""
    next_frame(node.page)
    texts = [row.locator("td.number").all_inner_texts() for row in node.locator("tbody tr").all()]
    return {int(t[0]): (t[1].replace("−", "-"), t[2]) for t in texts}


def test_each_head_is_reached_by_keyboard_and_has_its_own_row(node):
    page, figure = node.page, node.locator(".map canvas")
    query = node.get_by_role("slider", name="Query shown")
    query.focus()
    page.keyboard.press("End")
    expect(node.locator("caption")).to_contain_text("Query 15")
    node.get_by_role("gridcell", selected=True).focus()
    tables = []
    for head in range(4):
        if head:
            assert changed(figure, lambda: page.keyboard.press("ArrowRight"))
        expect(node.locator(".main strong")).to_have_text(f"Layer 0, head {head}: weights")
        rows = in_kernel(
            page,
            f"[[f'{{v:.{{n}}f}}' for v in t[{head}, -1].tolist()]"
            " for t, n in ((scores, 2), (maps, 3))]",
        )
        tables.append(table(node))
        assert len(tables[-1]) == 8
        for key, shown in tables[-1].items():
            assert shown == (rows[0][key], rows[1][key])
    assert all(tables[i] != tables[j] for i in range(4) for j in range(i))

    page.keyboard.press("End")  # the last column: what the four look at together
    expect(node.locator(".main strong")).to_have_text("Layer 0, mean of 4 heads: weights")
    mean = in_kernel(page, "maps[:, -1].mean(0).tolist()")
    for key, (_, weight) in table(node).items():
        assert float(weight) == pytest.approx(mean[key], abs=6e-4)
    eventually(trait(node, "average"), True)


def test_a_head_and_a_query_are_chosen_by_mouse(node):
    page = node.page
    assert changed(
        node.locator(".map canvas"), node.get_by_role("gridcell", name="layer 0, head 2").click
    )
    eventually(trait(node, "head"), 2)
    node.get_by_role("button", name="All queries").click()  # it opens locked on one
    area = node.locator(".map canvas").bounding_box()
    step = area["height"] / 16
    place = area["x"] + 3.5 * step, area["y"] + 9.5 * step
    page.mouse.move(*place)
    expect(node.locator("caption")).to_contain_text("Query 9")
    weight = in_kernel(page, "f'{maps[2, 9, 3]:.3f}'")
    token = in_kernel(page, "line[3]").replace(" ", "␣")
    expect(node.locator(".readout")).to_contain_text(f"key 3 “{token}”")
    expect(node.locator(".readout")).to_contain_text(weight)
    page.mouse.click(*place)
    page.mouse.move(5, 5)
    expect(node.locator("caption")).to_contain_text("locked")
    eventually(trait(node, "query"), 9)
    assert changed(node, node.get_by_role("button", name="Lines").click)
    expect(node.locator(".lines .left .on")).to_have_count(1)


def test_a_late_echo_of_the_kernel_undoes_no_choice(node):
    page = node.page
    node.get_by_role("button", name="All queries").click()
    eventually(trait(node, "query"), -1)
    node.get_by_role("slider").focus()
    occupy(page, 0.6)
    page.keyboard.press("ArrowDown")
    page.wait_for_timeout(150)  # the kernel is told of query 0, and will answer between these keys:
    for _ in range(14):
        page.keyboard.press("ArrowDown", delay=50)
    expect(node.locator("caption")).to_contain_text("Query 14")
    eventually(trait(node, "query"), 14)


def test_the_stages_by_keyboard(node):
    page = node.page
    for name, what in (
        ("1 Scores", "scores"),
        ("2 Mask", "scores, masked"),
        ("3 Softmax", "weights"),
    ):
        node.get_by_role("button", name=name).press("Enter")
        expect(node.locator(".main strong")).to_have_text(f"Layer 0, head 0: {what}")
        expect(node.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
    node.get_by_role("button", name="2 Mask").press("Enter")
    node.get_by_role("slider").focus()
    page.keyboard.press("Home")
    expect(node.locator("caption")).to_contain_text("Query 0")
    shown = table(node)
    assert shown[0][0] != "-∞" and all(score == "-∞" for key, (score, _) in shown.items() if key)


def test_both_themes(node):
    node.get_by_role("slider").focus()
    for _ in range(6):
        node.page.keyboard.press("ArrowDown")
    both_themes(node, "four-heads")


def test_running_the_cell_five_times_leaves_one_live_model(node):
    for _ in range(5):
        assert run_cell(node.page, CELL) == []
    expect(node).to_have_count(1)
    assert live_widgets(node.page) == 1
