"""Chapter 20's explorer in a real JupyterLab: the recorded completions at each β and step."""

import pytest
from lab import changed, eventually, in_kernel, press, slide
from playwright.sync_api import expect

MAKE = """from explorers import RewardsExplorer
problems = [("37+48=", "85."), ("<b>1+1=", "<i>2")]
start = [["75.", "85.", "85."], ["<i>2", "", "3."]]
end = [["163", "163", "163"], ["<i>2", "<i>2", "<i>2"]]
def run(beta, middle):
    return {"beta": beta, "carry": [0.31, 0.02, 0.0], "<u>": [0.99, 0.5, middle],
            "score": [0.26, 5.01, -0.33], "KL": [0.0, 17.8, 39.6],
            "completions": [start, end, end if beta else start]}"""
SHOW = """explorer = RewardsExplorer(problems, [0, 10, 20], [run(0.0, 0.0), run(0.2, 0.9)], step=0)
explorer"""


@pytest.fixture
def node(explorer):
    node = explorer(".rewards-explorer", MAKE, SHOW)
    expect(node.locator(".verdict")).to_contain_text("at the start")
    return node


def agree(node):
    """Does the page say what the kernel holds: the sentence, the completions and their marks?"""
    said = node.locator(".said").evaluate_all("all => all.map(s => s.textContent.slice(2))")
    right = node.locator(".said").evaluate_all("all => all.map(s => s.textContent[0] === '✔')")
    held = in_kernel(node.page, "sum(explorer.shown(), [])")
    true = in_kernel(
        node.page, "[t == a for a, row in zip(explorer.answers, explorer.shown()) for t in row]"
    )
    sentence = node.locator(".verdict").text_content()
    return (
        said == [text or "∅" for text in held]
        and right == true
        and sentence == in_kernel(node.page, "explorer._says()")
    )


def test_penalty_and_step_show_what_was_recorded(node):
    eventually(lambda: agree(node), True)
    expect(node.locator(".count")).to_have_text(["2 of 3 right", "1 of 3 right"])
    charts = node.locator(".charts")
    assert changed(charts, lambda: slide(node, "training step", "ArrowRight"))
    eventually(lambda: in_kernel(node.page, "explorer.step"), 10)
    eventually(lambda: agree(node), True)
    expect(node.locator(".count")).to_have_text(["0 of 3 right", "3 of 3 right"])
    slide(node, "training step", "End")
    eventually(lambda: in_kernel(node.page, "explorer.step"), 20)
    eventually(lambda: agree(node), True)
    assert changed(charts, lambda: press(node, "0.2"))
    eventually(lambda: in_kernel(node.page, "explorer.beta"), 0.2)
    eventually(lambda: agree(node), True)


def test_a_click_in_a_chart_goes_to_the_nearest_step(node):
    score = node.get_by_role("img", name="The judge's score")
    box = score.bounding_box()
    score.click(position={"x": 0.55 * box["width"], "y": 40})
    eventually(lambda: in_kernel(node.page, "explorer.step"), 10)
    score.click(position={"x": box["width"] - 2, "y": 40})
    eventually(lambda: in_kernel(node.page, "explorer.step"), 20)


def test_texts_stay_texts(node):
    assert node.locator("b, i, u").count() == 0
    expect(node.locator("tbody th").last).to_have_text("<b>1+1=")
    expect(node.get_by_role("img", name="Accuracy")).to_have_accessible_name(
        "Accuracy over the training steps; at step 0 with β = 0: 0.31 carry, 0.99 <u>"
    )
