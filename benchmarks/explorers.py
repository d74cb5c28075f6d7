"""How long a learner waits: from an input event to the painted picture, for each explorer.

    python benchmarks/explorers.py [--times 60] [--screen]

Runs the example of each explorer in a real JupyterLab in Chromium and prints a Markdown table:
median and 90th percentile in milliseconds, and the target (10 ms where the browser computes, 60 ms
where it asks the kernel, 100 ms where a whole GPT is computed in the page). Exit status 1 if a
median misses its target.

Clock: performance.now() when the event reaches the explorer, until the second
requestAnimationFrame after our handlers (or after the kernel's answer has changed the page). "Of
this ours": until handlers, drawing, style, layout and paint are done, without what the browser's
compositor adds. See `latency` in tests/browser/lab.py. The first two rows are the floor: a slider
that does nothing, a kernel that says back what it was told. Frames come as fast as they can be
painted; with --screen 60 a second, as on a usual screen, which adds up to two frames (17 to 33 ms)
to every number.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Locator, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "browser"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # or `explorers` would be this file
import lab

import explorers

BROWSER, KERNEL = 10, 60  # targets in ms
SLIDER = "input[type=range]"


@dataclass
class Case:
    """What is moved: `control` gets the focus, then `keys` are pressed or `words` are typed in."""

    explorer: str
    moved: str
    control: str = SLIDER
    event: str = "input"
    keys: tuple[str, ...] = ("ArrowRight", "ArrowLeft")
    words: tuple[str, ...] = ()
    answer: str | None = None  # asks the kernel: where the answer appears
    target: int = 0  # in ms, if it is another than those above
    ready: str = "node => true"  # of the explorer, before it is moved
    settings: tuple[str, ...] = ()  # of the example, before it is shown
    code: str = ""  # another cell than that of the explorer's example

    def cell(self) -> str:
        lines = [f"from explorers import {self.explorer}", f"explorer = {self.explorer}.example()"]
        lines += [f"explorer.{setting}" for setting in self.settings]
        return self.code or "\n".join([*lines, "explorer"])

    def actions(self, control: Locator, times: int) -> list[Callable[[], object]]:
        def typed(word: str) -> Callable[[], object]:
            return lambda: control.fill(word)

        def pressed(key: str) -> Callable[[], object]:
            return lambda: control.press(key)

        steps = [typed(w) for w in self.words] or [pressed(k) for k in self.keys]
        return [steps[i % len(steps)] for i in range(times)]


THIRTY = """The city is the capital of the United States and was founded in 1850 by the king of the\
 island, who had come to the"""
SENTENCE = f"text = {THIRTY!r}", "stage = 'weights'"
LOADED = "node => Boolean(node.gpt())"

NOTHING = """from helpers import plots
from explorers import base
class Nothing(base.Explorer):
    _esm = base.esm() + '''export default live(({ el }) => {
      root(el, "none", "Nothing").append(h("input", { type: "range" })); });'''
    def picture(self): return plots.heatmap([[0]], "Nothing.")
    def describe(self): return ""
Nothing()"""

FIRST_SLIDER = "its first slider"
CASES = [
    Case("(none)", "a slider that does nothing", code=NOTHING),
    Case("(none)", "a kernel's echo", "input", words=("a", "b"), answer="output",
         code=f"{lab.ECHO}\nEcho()"),
    Case("TwoVectors", "an arrow, by key", "[role=slider]", "keydown"),
    Case("TwoVectors", FIRST_SLIDER),
    Case("WordExplorer", "the word, 30,000 words", "[data-input=word]",
         words=("dog", "cat", "king", "paris"), answer=".answer tbody"),
    Case("WordExplorer", "an analogy, 30,000 words", "[data-input=c]",
         words=("girl", "woman", "queen", "paris"), answer=".answer tbody",
         settings=("mode = 'analogy'",)),
    Case("AveragingExplorer", "the row, T = 24", "input[aria-label='output (row)']",
         keys=("ArrowLeft", "ArrowRight")),
    Case("SamplingExplorer", "the temperature"),
    Case("SamplingExplorer", "the prompt, 17 characters", "textarea",
         words=("To be, or not to b", "To be, or not to "), answer=".seen"),
    Case("TokenExplorer", "a letter in 2,000 characters", "textarea", keys=("x", "Backspace"),
         settings=("text = (5 * explorer.text)[:2000]",)),
    Case("TokenExplorer", "one merge more, 2,000 characters", keys=("ArrowLeft", "ArrowRight"),
         settings=("text = (5 * explorer.text)[:2000]",)),
    Case("SentenceExplorer", "another of 30 tokens", ".strip [aria-selected=true]",
         "keydown", keys=("ArrowLeft", "ArrowRight"), target=16, ready=LOADED, settings=SENTENCE),
    Case("SentenceExplorer", "another first token, 30 in all", "input[type=text]",
         words=(f"x{THIRTY}", f"y{THIRTY}"), target=100, ready=LOADED, settings=SENTENCE),
]  # fmt: skip
# AttentionExplorer, which has no slider, has a benchmark of its own.
OTHERS = {*explorers.__all__} - {"Explorer", "AttentionExplorer", *(c.explorer for c in CASES)}
CASES += [Case(name, FIRST_SLIDER) for name in sorted(OTHERS)]


def measure(times: int, flags: tuple[str, ...]) -> list[tuple[Case, list[tuple[float, float]]]]:
    """Milliseconds of each case; raises when a cell fails or the page has a problem."""
    results = []
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder, problems = Path(name), []
        with lab.jupyter(folder) as url:
            browser = lab.launch(playwright, *flags)
            for number, case in enumerate(CASES):
                page = browser.new_page(viewport={"width": 1280, "height": 1200})
                lab.watch(page, problems)
                lab.write_notebook(folder / f"{number}.ipynb", [case.cell()])
                lab.open_notebook(page, url, f"{number}.ipynb")
                problems += lab.run_all(page)
                root = page.locator(".d2g")
                control = root.locator(case.control).first
                lab.eventually(lambda root=root, case=case: root.evaluate(case.ready), True)
                control.focus()
                if case.moved == FIRST_SLIDER:
                    control.press("Home")  # from its end, a slider would not move
                actions = case.actions(control, times + 5)
                spent = lab.latency(root, actions, event=case.event, answer=case.answer)
                results.append((case, spent[5:]))  # the first five warm up
                if problems:
                    raise RuntimeError("\n".join(problems))
                lab.close_notebook(page)
                page.close()
            browser.close()
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=60, help="events per row, at least 40")
    parser.add_argument("--screen", action="store_true", help="60 frames a second")
    arguments = parser.parse_args()
    if arguments.times < 40:
        parser.error("--times should be at least 40: fewer give no 90th percentile to trust")
    results = measure(arguments.times, () if arguments.screen else lab.FREE_FRAMES)
    print("| explorer | what is moved | computed in | median ms | p90 ms | of this ours | target |")
    print("|---|---|---|---|---|---|---|")
    missed = False
    for case, spent in results:
        where, usual = ("kernel", KERNEL) if case.answer else ("browser", BROWSER)
        target = case.target or usual
        painted, ours = zip(*spent, strict=True)
        median, p90 = statistics.median(painted), statistics.quantiles(painted, n=10)[-1]
        missed |= median > target
        print(
            f"| {case.explorer} | {case.moved} | {where} | {median:.1f} | {p90:.1f} "
            f"| {statistics.median(ours):.1f} | ≤ {target} |"
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
