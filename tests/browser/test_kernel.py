"""Explorers with a kernel in a real JupyterLab: what only the way between them can spoil."""

from pathlib import Path

import lab
from lab import eventually, in_kernel
from playwright.sync_api import Page, expect

CELLS = [
    "from explorers import AttentionExplorer, SentenceExplorer, TokenExplorer",
    "heads = AttentionExplorer.example()\nheads",
    "tokens = TokenExplorer.example()\ntokens",
    "sentence = SentenceExplorer.example()\nsentence",
]


def test_no_late_echo_undoes_a_choice_and_the_weights_arrive(
    page: Page, lab_url: str, lab_folder: Path
) -> None:
    lab.write_notebook(lab_folder / "kernel.ipynb", CELLS)
    lab.open_notebook(page, lab_url, "kernel.ipynb")
    assert lab.run_all(page) == []

    heads = page.locator(".attention-explorer")
    heads.get_by_role("button", name="All queries").click()
    eventually(lambda: in_kernel(page, "heads.query"), -1)
    heads.get_by_role("slider", name="Query shown").focus()
    lab.occupy(page, 0.6)
    page.keyboard.press("ArrowDown")
    page.wait_for_timeout(150)  # the kernel is told of query 0, and will answer between these keys:
    for _ in range(9):
        page.keyboard.press("ArrowDown", delay=50)
    expect(heads.locator("caption")).to_contain_text("Query 9")
    eventually(lambda: in_kernel(page, "heads.query"), 9)

    field = page.locator(".token-explorer").get_by_label("text", exact=True)
    field.fill("")
    eventually(lambda: in_kernel(page, "tokens.text"), "")
    lab.occupy(page, 1)
    field.press("a")
    page.wait_for_timeout(400)  # the kernel is told of the a, and will answer while this is typed:
    page.keyboard.type("bcdefghijklmnopqrst", delay=60)
    expect(field).to_have_value("abcdefghijklmnopqrst")
    eventually(lambda: in_kernel(page, "tokens.text"), "abcdefghijklmnopqrst")

    node = page.locator(".d2g.sentence")
    eventually(lambda: node.evaluate("node => Boolean(node.gpt())"), True)
    here, there = (sum(p**2 for p in values) for values in (
        node.evaluate("node => node.probabilities()"),
        in_kernel(page, "sentence.probabilities().tolist()"),
    ))  # fmt: skip
    assert abs(here - there) < 1e-4
