"""The harness sees what it should: errors, foreign requests, changes, leaks, a missing browser."""

import io

import lab
import numpy as np
import pytest
from PIL import Image

TOY = """
import traitlets
from pathlib import Path
from helpers import plots
from explorers import base

class Toy(base.Explorer):
    _esm = Path(base.__file__).with_name("base.js").read_text() + '''export default {
      render({ model, el }) {
        const shown = h("output", { class: "shown" }, "0");
        const twice = h("output", { class: "twice" }, "0");
        const handle = slider(model, "v", { min: 0, max: 9 });
        root(el, "toy", "A toy").append(handle, shown, " twice: ", twice);
        model.on("change:v", () => { shown.textContent = model.get("v"); });
        model.on("change:twice", () => { twice.textContent = model.get("twice"); });
      } }'''
    v = traitlets.Int(0).tag(sync=True)
    twice = traitlets.Int(0).tag(sync=True)

    @traitlets.observe("v")
    def _double(self, change):
        self.twice = 2 * change["new"]

    def picture(self):
        return plots.heatmap([[self.v]], "A number.")

    def describe(self):
        return f"v={self.v}"
"""


def test_move_look_measure_and_run_again(open_notebook):
    page = open_notebook(cells=[TOY, "toy = Toy()\ntoy", "after = 1"])
    assert lab.run_cells_until(page, "Toy()\n") == []
    root = page.locator(".toy")
    handle, shown = root.locator("input"), root.locator(".shown")
    handle.focus()
    assert not lab.changed(shown, lambda: None, patience=0.3)
    assert lab.changed(shown, lambda: page.keyboard.press("ArrowRight"))
    assert lab.in_kernel(page, "[toy.v, 'after' in globals()]") == [1, False]

    keys = [lambda key=key: page.keyboard.press(key) for key in ("ArrowRight", "ArrowLeft") * 3]
    for answer in (None, ".twice"):
        times = lab.latency(root, keys, event="input", answer=answer)
        assert len(times) == 6
        assert all(painted >= ours > 0 for painted, ours in times)

    for _ in range(5):
        assert lab.run_cell(page, "Toy()\n") == []
    assert lab.live_widgets(page) == 1
    assert lab.live_widgets(page, "Widget") == 2  # the toy and its layout
    with pytest.raises(LookupError, match="no code cell contains 'nonsense'"):
        lab.run_cell(page, "nonsense")

    assert lab.shot(page.locator(".toy"), "harness").stat().st_size > 0
    lab.both_themes(page.locator(".toy"), "harness")
    page.evaluate("""new MutationObserver(() => { document.querySelector(".toy").append(" more"); })
        .observe(document.body, { attributes: true })""")
    with pytest.raises(AssertionError, match=r"back to light .* of the pixels differ visibly"):
        lab.both_themes(page.locator(".toy"), "harness-changed")


def test_looks_are_compared_as_eyes_do():
    def look(*greys):
        file = io.BytesIO()
        Image.fromarray(np.array([greys], np.uint8)).save(file, "png")
        return lab.Look(file.getvalue())

    assert look(0, 100, 255, 7) == look(2, 99, 254, 0) != look(0, 120, 255, 7)
    assert look(0, 100, 255, 7).unlike(look(0, 120, 255, 7)) == 0.25
    assert look(0, 100).unlike(look(0, 100, 0)) == 1
    assert repr(look(0, 100)) == "Look(2×1)"


def test_an_error_is_seen_unless_the_cell_may_raise(open_notebook):
    page = open_notebook(cells=["1 / 0"])
    assert lab.run_all(page) == ["cell 0: ZeroDivisionError: division by zero"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("console.error('broken')", ["console: broken"]),
        ("setTimeout(() => { throw Error('loose'); })", ["page error: loose"]),
        (
            "new Image().src = 'http://font.invalid/a.png'",
            ["left this machine: http://font.invalid", "request failed: ", "console: Failed"],
        ),
    ],
)
def test_problems_are_seen(open_notebook, problems, script, words):
    page = open_notebook(cells=["1"])

    def unseen() -> list[str]:
        lab.noticed(page)
        return [word for word in words if not any(word in one for one in problems)]

    page.evaluate(f"() => {{ {script} }}")
    lab.eventually(unseen, [])
    problems.clear()


def test_a_missing_browser_is_an_error_that_says_how_to_get_one(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    with pytest.raises(FileNotFoundError, match="/nowhere/chromium is not there"):
        lab.chromium()
    monkeypatch.delenv("CHROMIUM")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FileNotFoundError, match="chromium, chromium-browser, google-chrome is not"):
        lab.chromium()
