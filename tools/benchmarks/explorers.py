"""How long a learner waits: from an input event to the painted picture, for each explorer.

    python tools/benchmarks/explorers.py [--times 60]

Runs in a real JupyterLab in Chromium and prints a Markdown table: median and 90th percentile in
milliseconds, and the target. Exit status 1 if a median misses its target. The clock is that of
`latency` in tests/browser/lab.py; frames come as fast as they can be painted. Last comes the time
from the command to run a cell until the 270 heads of chapter 18 are in the page.
"""

import argparse
import statistics
import sys
import tempfile
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]
import lab  # noqa: E402


@dataclass
class Case:
    """What is moved: `control` gets the focus, then `keys` are pressed or `words` are typed in."""

    explorer: str
    moved: str
    control: str = "input[type=range]"
    event: str = "input"
    keys: tuple[str, ...] = ("ArrowRight", "ArrowLeft")
    words: tuple[str, ...] = ()
    answer: str | None = None  # asks the kernel: where the answer appears
    target: int = 10
    ready: str = "node => true"  # of the explorer, before it is moved
    setting: str = ""  # of the example, before it is shown
    code: str = "explorer = NAME.example()\nSETTING\nexplorer"

    def cell(self) -> str:
        filled = self.code.replace("NAME", self.explorer).replace("SETTING", self.setting)
        return f"from explorers import {self.explorer}\n{filled}"


THIRTY = """The city is the capital of the United States and was founded in 1850 by the king of the\
 island, who had come to the"""
MAPS = """import torch
L, H, T = SIZE
scores = 2 * torch.randn(L, H, T, T, generator=torch.Generator().manual_seed(0))
maps = scores.masked_fill(torch.ones(T, T).triu(1) > 0, -torch.inf).softmax(-1)
AttentionExplorer([f"token {i}" for i in range(T)], maps, scores)"""
CASES = [
    Case("TwoVectors", "an arrow, by key", "[role=slider]", "keydown"),
    Case("WordExplorer", "the word, 30,000 words", "[data-input=word]",
         words=("dog", "cat", "king", "paris"), answer=".answer tbody", target=60),
    Case("WindowExplorer", "the start"),
    Case("AveragingExplorer", "the row, T = 24", "input[aria-label='output (row)']",
         keys=("ArrowLeft", "ArrowRight")),
    Case("AttentionExplorer", "another head of 144", "[role=gridcell][aria-selected=true]",
         "keydown", code=MAPS.replace("SIZE", "12, 12, 64")),
    Case("SamplingExplorer", "the prompt, 17 characters", "textarea",
         words=("To be, or not to b", "To be, or not to "), answer=".seen", target=60),
    Case("TokenExplorer", "one merge more, 2,000 characters", target=16,
         setting="explorer.text = (5 * explorer.text)[:2000]", keys=("ArrowLeft", "ArrowRight")),
    Case("SentenceExplorer", "another first token, 30 in all", "input[type=text]",
         words=(f"x{THIRTY}", f"y{THIRTY}"), target=100, ready="node => Boolean(node.gpt())",
         setting=f"explorer.text = {THIRTY!r}; explorer.stage = 'weights'"),
]  # fmt: skip
OPENED = """() => new Promise((opened) => {
    const start = performance.now(), observer = new MutationObserver(() => {
        if (!document.querySelector(".attention-explorer .figure")) return;
        observer.disconnect();
        const done = () => { window.d2gOpened = performance.now() - start; };
        requestAnimationFrame(() => requestAnimationFrame(done));
    });
    observer.observe(document.body, { subtree: true, childList: true });
    opened();
})"""


def opened(browser: Browser, url: str, folder: Path, *cells: str) -> Page:
    """A page with a notebook of these cells, of which none has run."""
    page = browser.new_page(viewport={"width": 1280, "height": 1200})
    lab.write_notebook(folder / "made.ipynb", list(cells))
    lab.open_notebook(page, url, "made.ipynb")
    return page


def moving(page: Page, case: Case, times: int) -> list[tuple[float, float]]:
    """Milliseconds of each event of a case; raises when a cell fails or the page has a problem."""
    problems: list[str] = []
    lab.watch(page, problems)
    problems += lab.run_all(page)
    root = page.locator(".d2g")
    control = root.locator(case.control).first
    lab.eventually(lambda: root.evaluate(case.ready), True)
    control.focus()
    steps = [lambda word=word: control.fill(word) for word in case.words]
    steps = steps or [lambda key=key: page.keyboard.press(key) for key in case.keys]
    actions = list(islice(cycle(steps), times + 5))
    spent = lab.latency(root, actions, event=case.event, answer=case.answer)
    if problems:
        raise RuntimeError("\n".join(problems))
    return spent[5:]  # the first five warm up


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=60, help="events per row, at least 40")
    times = parser.parse_args().times
    missed = False
    print("| explorer | what is moved | median ms | p90 ms | of this ours | target |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        with lab.jupyter(folder) as url:
            browser = lab.launch(playwright, *lab.FREE_FRAMES)
            for case in CASES:
                page = opened(browser, url, folder, case.cell())
                painted, ours = zip(*moving(page, case, times), strict=True)
                median, p90 = statistics.median(painted), statistics.quantiles(painted, n=10)[-1]
                missed |= median > case.target
                print(
                    f"| {case.explorer} | {case.moved} | {median:.1f} | {p90:.1f} "
                    f"| {statistics.median(ours):.1f} | ≤ {case.target} |",
                    flush=True,
                )
                lab.close_notebook(page)
                page.close()
            show = f"from explorers import AttentionExplorer\n{MAPS.replace('SIZE', '30, 9, 64')}"
            page = opened(browser, url, folder, "import torch, explorers", show)
            assert lab.run_cells_until(page, "import torch") == []
            page.evaluate(OPENED)
            assert lab.run_cell(page, show) == []
            page.wait_for_function("window.d2gOpened")
            spent = page.evaluate("window.d2gOpened")
            missed |= spent > 1000
            print(f"| AttentionExplorer | opens, 270 heads | {spent:.0f} | | | ≤ 1000 |")
            lab.close_notebook(page)
            browser.close()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
