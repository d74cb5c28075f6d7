"""The harness sees what it should: errors, foreign requests, changes, leaks, a missing browser."""

import io

import lab
import nbformat
import numpy as np
import pytest
import slices
from PIL import Image
from playwright.sync_api import expect

TOY = """
import traitlets
from helpers import plots
from explorers import base

class Toy(base.Explorer):
    _esm = base.esm() + '''export default live(({ model, el }) => {
        const shown = h("output", { class: "shown" }, "0");
        const twice = h("output", { class: "twice" }, "0");
        const handle = slider(model, "v", { min: 0, max: 9 });
        root(el, "toy", "A toy").append(handle, shown, " twice: ", twice);
        model.on("change:v", () => { shown.textContent = model.get("v"); });
        model.on("change:twice", () => { twice.textContent = model.get("twice"); });
      });'''
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
        lab.both_themes(page.locator(".toy"), "harness-changed", patience=1)


def test_looks_are_compared_as_eyes_do():
    def look(*greys):
        file = io.BytesIO()
        Image.fromarray(np.array([greys], np.uint8)).save(file, "png")
        return lab.Look(file.getvalue())

    assert look(0, 100, 255, 7) == look(2, 99, 254, 0) != look(0, 120, 255, 7)
    assert look(0, 100, 255, 7).unlike(look(0, 120, 255, 7)) == 0.25
    assert look(0, 100).unlike(look(0, 100, 0)) == 1
    assert repr(look(0, 100)) == "Look(2×1)"


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
def test_problems_are_seen(page, problems, script, words):
    def unseen() -> list[str]:
        lab.noticed(page)
        return [word for word in words if not any(word in one for one in problems)]

    page.evaluate(f"() => {{ {script} }}")
    lab.eventually(unseen, [])
    problems.clear()


def test_errors_and_what_saved_outputs_do_are_seen(page, lab_url, lab_folder, problems):
    html = "<b>old</b><script>console.error('saved')</script>"
    output = nbformat.v4.new_output("display_data", {"text/html": html})
    path = lab_folder / "saved.ipynb"
    lab.write_notebook(path, ["1 / 0"])
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].outputs = [output]
    nbformat.write(notebook, path)
    lab.open_notebook(page, lab_url, path.name)
    lab.show_saved(page)
    expect(page.locator("b", has_text="old")).to_be_visible()
    lab.eventually(lambda: (lab.noticed(page), [*problems])[1], ["console: saved"])
    problems.clear()
    assert lab.run_all(page) == ["cell 0: ZeroDivisionError: division by zero"]


def test_a_slice_has_what_its_cells_need_and_no_more():
    def codes(*sources):
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        return nbformat.v4.new_notebook(cells=cells)

    chapter = codes(
        "import torch\nfrom helpers import plots\nx = 0\nprint(x)",
        "torch.manual_seed(0)\nx = [1]\nlong = 1 / 0\nassert long",
        "x[0] = 2\nplots.curves(x)\ndef f(y):\n    z = y\n    return z, scale",
        "scale = 3\nx.append(scale)\nlength = len(x)",
        "first = f(x), torch.rand(1)",
        "x = 7\nscale = 4",
        "second = x, scale, first",
    )
    assert slices.needed(chapter, [4, 6]) == {
        4: "import torch\nfrom helpers import plots\n"
        "torch.manual_seed(0)\nx = [1]\nx[0] = 2\nplots.curves(x)\n"
        "def f(y):\n    z = y\n    return (z, scale)\nscale = 3\nx.append(scale)",
        6: "x = 7\nscale = 4",
    }


def test_the_cells_to_run_are_the_explorers_and_the_first_exercise():
    sources = ["from explorers import Dots", "[Dots(1)]", "dots = Dots(2)\ndots"]
    sources += ["dot = ...", "check(dot)", "dot"]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[3].metadata["tags"] = ["exercise"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("Dots()"), *cells])
    assert slices.lively(notebook) == [3, 4, 5]


def test_a_missing_browser_is_an_error_that_says_how_to_get_one(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    with pytest.raises(FileNotFoundError, match="/nowhere/chromium is not there"):
        lab.chromium()
    monkeypatch.delenv("CHROMIUM")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FileNotFoundError, match="chromium, chromium-browser, google-chrome is not"):
        lab.chromium()
