"""The explorers of chapter 07 in a real JupyterLab: rotary clocks and the map of dot products."""

import math
import re

import pytest
from lab import changed, eventually, in_kernel, next_frame
from playwright.sync_api import expect

CLOCKS = """from explorers.clock_hands import ClockHands
clocks = ClockHands([1.0, 0.8, 0.9, 1.1, 0.3, -0.4, 0.2, 0.5],
                    [0.9, 1.0, 0.7, 1.2, -0.2, 0.3, 0.6, 0.1], query=9, key=4)
clocks"""
DOTS = """from explorers.position_dots import PositionDots
dots = PositionDots(length=64, n_embd=32, p=20, r=26)
dots"""


@pytest.fixture
def clocks(explorer):
    return explorer(".d2g.clocks", CLOCKS)


@pytest.fixture
def dots(explorer):
    return explorer(".d2g.dots", DOTS)


def slider(node, name):
    return node.get_by_role("slider", name=name)


def press(node, name, *keys):
    control = slider(node, name)
    control.focus()
    for key in keys:
        node.page.keyboard.press(key)
    next_frame(node.page)


def number(node, selector):
    return float(node.locator(selector).inner_text().replace("−", "-"))


def angles(node):
    return node.locator("figcaption .angle").all_inner_texts()


def test_the_score_in_the_browser_is_the_score_in_the_kernel(clocks):
    page = clocks.page
    for keys in ([], ["ArrowRight"] * 3, ["End"], ["Home"]):
        press(clocks, "position of the query", *keys)
        distance = number(clocks, ".says .distance")
        eventually(lambda: in_kernel(page, "clocks.query - clocks.key"), distance)
        want = in_kernel(page, "clocks.score()")
        assert number(clocks, ".says .score") == pytest.approx(want, abs=2e-3)


def test_moving_both_keeps_angles_and_score_and_turns_the_hands(clocks):
    before = angles(clocks), number(clocks, ".says .score")
    hands = clocks.locator("figure svg").first
    assert changed(
        hands, lambda: press(clocks, "move both together", "ArrowRight", "ArrowRight", "ArrowRight")
    )
    assert (angles(clocks), number(clocks, ".says .score")) == before
    eventually(lambda: in_kernel(clocks.page, "[clocks.query, clocks.key]"), [12, 7])
    press(clocks, "move both together", "End")
    eventually(lambda: in_kernel(clocks.page, "[clocks.query, clocks.key]"), [60, 55])
    press(clocks, "move both together", "Home")
    eventually(lambda: in_kernel(clocks.page, "[clocks.query, clocks.key]"), [5, 0])
    assert (angles(clocks), number(clocks, ".says .score")) == before


def test_a_press_on_the_curve_chooses_the_distance(clocks):
    box = clocks.locator("svg.plot").bounding_box()
    for share, both in ((0.9, "clocks.query > clocks.key + 40"), (0.15, "clocks.key > 40")):
        clocks.page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 3)
        eventually(lambda both=both: in_kernel(clocks.page, both), True)
    eventually(
        lambda: in_kernel(clocks.page, "clocks.query - clocks.key"),
        number(clocks, ".says .distance"),
    )


def test_fewer_positions_and_other_vectors_are_drawn(clocks):
    page = clocks.page
    in_kernel(page, "setattr(clocks, 'longest', 6)")
    eventually(lambda: slider(clocks, "position of the query").get_attribute("max"), "6")
    eventually(lambda: in_kernel(page, "[clocks.query, clocks.key]"), [6, 4])
    assert changed(
        clocks.locator("figure svg").first, lambda: in_kernel(page, "setattr(clocks, 'q', [1] * 8)")
    )
    want = in_kernel(page, "clocks.score()")
    eventually(lambda: number(clocks, ".says .score"), pytest.approx(want, abs=2e-3))


def test_the_angle_between_the_hands_is_right(clocks):
    """Pair 1 turns by 0.1 radian a step; the text gives the angle of q after k in degrees."""
    start = math.degrees(math.atan2(-0.4, 0.8) - math.atan2(0.3, 1.0))
    want = (start + math.degrees(5 * 0.1) + 180) % 360 - 180
    assert angles(clocks)[1] == f"from k to q: {want:.0f}°".replace("-", "−")


def test_the_base_changes_the_slow_clocks_only(clocks):
    steps = clocks.locator("figcaption .quiet")
    before = steps.all_inner_texts()
    press(clocks, "base", "Home")
    after = steps.all_inner_texts()
    assert before[0] == after[0] and before[3] != after[3]
    eventually(lambda: in_kernel(clocks.page, "round(clocks.base)"), 10)


def dot_of(node):
    return number(node, ".says .dot")


def test_the_dot_product_in_the_browser_is_that_of_the_table(dots):
    moves = [
        ("position r", ["ArrowRight"]),
        ("position p", ["End"]),
        ("width C", ["ArrowLeft", "ArrowLeft"]),
        ("base", ["Home"]),
    ]
    for name, keys in moves:
        press(dots, name, *keys)
        half = number(dots, ".says .self")
        eventually(lambda: in_kernel(dots.page, "2 ** dots.log_width") / 2, pytest.approx(half))
        shown = pytest.approx(dot_of(dots), abs=0.011)
        eventually(lambda: in_kernel(dots.page, "dots.dots()[dots.p, dots.r].item()"), shown)


def test_moving_p_and_r_alike_keeps_the_dot_product(dots):
    before = dot_of(dots)
    curve = dots.locator("svg.plot")
    for name in ("position p", "position r"):
        assert changed(curve, lambda name=name: press(dots, name, *["ArrowRight"] * 7))
    assert dot_of(dots) == before


def test_a_press_on_the_map_chooses_a_pair(dots):
    box = dots.locator("canvas").bounding_box()
    cell = box["width"] / 64
    x, y = box["x"] + 50.5 * cell, box["y"] + 10.5 * cell
    assert changed(dots.locator("svg.plot"), lambda: dots.page.mouse.click(x, y))
    eventually(lambda: in_kernel(dots.page, "[dots.p, dots.r]"), [10, 50])


def test_a_press_on_the_curve_chooses_r(dots):
    box = dots.locator("svg.plot").bounding_box()
    dots.page.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2)
    eventually(lambda: in_kernel(dots.page, "dots.p"), 20)
    eventually(lambda: in_kernel(dots.page, "dots.r > 55"), True)


def test_fewer_positions_redraw_the_map_and_its_sliders(dots):
    canvas = dots.locator("canvas")
    assert changed(canvas, lambda: in_kernel(dots.page, "setattr(dots, 'length', 8)"))
    eventually(lambda: slider(dots, "position r").get_attribute("max"), "7")
    eventually(lambda: in_kernel(dots.page, "[dots.p, dots.r]"), [7, 7])
    expect(dots.locator(".says")).to_have_text(re.compile(r"^PE\(7\) · PE\(7\)"))
