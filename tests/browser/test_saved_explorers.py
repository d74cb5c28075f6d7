"""A saved explorer in a JupyterLab without the course's configuration: what its file keeps."""

import json
from pathlib import Path

import lab
from playwright.sync_api import Page, expect

VIEW = "application/vnd.jupyter.widget-view+json"
CODE = "from explorers import TwoVectors\nTwoVectors()"


def save(page: Page, path: Path) -> dict:
    """Save the notebook; what the file then holds of its first output."""
    lab.eventually(lambda: page.locator(".two-vectors").count(), 1)
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    lab.eventually(lambda: len(json.loads(path.read_text())["cells"][0]["outputs"]), 1)
    return json.loads(path.read_text())["cells"][0]["outputs"][0]["data"]


def test_its_still_picture_is_there_without_the_kernel(
    page: Page, problems: list[str], lab_url: str, lab_folder: Path
) -> None:
    path = lab_folder / "saved.ipynb"
    lab.write_notebook(path, [CODE])
    lab.open_notebook(page, lab_url, path.name)
    assert lab.run_all(page) == []
    for _ in range(2):
        data = save(page, path)
        assert "image/png" in data and VIEW not in data
    explorer = page.locator(".two-vectors")
    lab.slide(explorer, "b₁", "ArrowRight")  # in the page it goes on
    expect(explorer.locator(".sum")).to_contain_text("2.1")
    lab.close_notebook(page)

    page.goto("about:blank")  # on another day
    lab.noticed(page)
    problems.clear()  # what closing has interrupted is no problem
    lab.open_notebook(page, lab_url, path.name)
    still = page.locator(".jp-OutputArea img")
    expect(still).to_be_visible()
    assert still.evaluate("image => image.naturalWidth") > 100
    assert page.get_by_text("Error displaying widget").count() == 0


def test_whoever_saves_the_states_of_widgets_keeps_the_explorer(
    page: Page, lab_url: str, lab_folder: Path
) -> None:
    path = lab_folder / "saved-with-states.ipynb"
    lab.write_notebook(path, [CODE])
    lab.open_notebook(page, lab_url, path.name)
    assert lab.run_all(page) == []
    page.evaluate("window.jupyterapp.shell.currentWidget.context.model.setMetadata('widgets', {})")
    assert VIEW in save(page, path)
