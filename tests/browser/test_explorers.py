"""Each explorer: every control moves it, by key and by pointer, and its numbers are Python's.

A case is an explorer, where the page writes its numbers (or a function of the node that gives
them) and what they are in Python, and the steps: a control (its role and name, or a CSS selector),
what is done with it, what the explorer then says, and which traits Python then has. After each step
something else must be drawn, and the numbers must agree. At the end no control is left untouched.

What is done: keys ("Home ArrowRight*3"); "click", or "click 0.9 0.3" at these shares of the
control's width and height; "hover" likewise; "type …"; "python": the traits are set there.
"""

import math
from collections.abc import Callable, Mapping
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from bare import Bare, Shown, press_keys
from playwright.sync_api import Locator, expect
from test_one_screen import EXPLORERS

import explorers
from explorers.depth import in_powers
from helpers import data
from helpers.formats.checkpoints import load_checkpoint


class Step(NamedTuple):
    control: str
    action: str
    says: str = ""
    traits: Mapping[str, Any] = MappingProxyType({})
    same: bool = False  # nothing else is drawn, and there may be no numbers


class Case(NamedTuple):
    make: Callable[[], explorers.Explorer]
    here: str
    there: Callable[[Any], list]
    steps: list[Step]
    within: float = 0.006  # numbers of two digits


def rewards() -> explorers.RewardsExplorer:
    problems = [("37+48=", "85."), ("<s>1+1=", "<s>2")]
    start = [["75.", "85.", "85."], ["<s>2", "", "3."]]
    end = [["163", "163", "163"], ["<s>2", "<s>2", "<s>2"]]
    runs = [
        {"beta": beta, "carry": [0.31, 0.02, 0.0], "<s>": [0.99, 0.5, middle],
         "score": [0.26, 5.01, -0.33], "KL": [0.0, 17.8, 39.6],
         "completions": [start, end, end if beta else start]}
        for beta, middle in ((0.0, 0.0), (0.2, 0.9))
    ]  # fmt: skip
    return explorers.RewardsExplorer(problems, [0, 10, 20], runs, step=0)


def sampling() -> explorers.SamplingExplorer:
    saved = load_checkpoint(data.checkpoint("shakespeare-gpt"))
    return explorers.SamplingExplorer(
        saved.model, saved.tokenizer, prompt="ROMEO:\nBut soft, what l"
    )


def sentence() -> explorers.SentenceExplorer:
    return explorers.SentenceExplorer(text="Aristotle was a Greek philosopher. Ar", layer=4)


def strongest(explorer: explorers.AttentionExplorer) -> list[float]:
    """Position and weight of the query's strongest keys, as the table has them."""
    maps = explorer._head_weights()
    row = maps[explorer.query] if explorer.query >= 0 else None
    if row is None:
        seen = ~explorer._masked
        row = (maps * seen).sum(0) / seen.sum(0)
    order = np.argsort(-row, kind="stable")[:8]
    return [value for j in order for value in (float(j), float(row[j]))]


BLOCKS = """node => {
    const x = (css, name = "x") => Number(node.querySelector(css).getAttribute(name));
    const start = x(".forward"), share = (at) => (at - start) / (x(".end", "x1") - start);
    const blocks = [...node.querySelectorAll(".forward, .backward, .send")];
    return [node.querySelector("figcaption").textContent,
        ...blocks.map((b) => [b.getAttribute("class"), share(b.getAttribute("x"))]).flat()];
}"""


def blocks(explorer: explorers.OverlapExplorer) -> list:
    found = explorer.blocks()
    end = max(block.end for block in found)
    places = [value for block in found for value in (block.kind, block.start / end)]
    return [explorer._says(), *places]


def depth_numbers(explorer: explorers.DepthExplorer) -> list[str]:
    """At the start, at the chosen layer (of the towers: unless it is an end), and at the end."""
    seen, here = explorer.measures(), explorer.layer
    between = 0 < here < explorer.depth
    towers = [[in_powers(seen[name][0]), in_powers(seen[name][here]) if between else "",
               in_powers(seen[name][-1])] for name in ("size", "gradient")]  # fmt: skip
    cosines = [f"{seen['cosine'][i]:.2f}".replace("-0.00", "0.00") for i in (0, here, -1)]
    return [*towers[0], *towers[1], *cosines]


CASES = {
    "TwoVectors": Case(
        lambda: explorers.TwoVectors(a=(4, 1), b=(2, 3)),
        "tbody td",
        lambda e: [round(v, 1 if name == "angle" else 2) for name, v in e.measures().items()],
        [
            Step("slider Tip of b", "Shift+ArrowLeft", "a·b = 4.0 × 1.0", {"bx": 1.0}),
            Step("slider Tip of b", "ArrowUp*4", "1.0 × 3.4", {"by": 3.4}),
            Step("slider Tip of a", "ArrowDown", "acute", {"ay": 0.9}),
            Step("slider a₁", "Home", "obtuse", {"ax": -6}),
            Step("slider a₂", "End", "acute", {"ay": 6}),
            Step("slider b₁", "ArrowRight", "6.0 × 1.1", {"bx": 1.1}),
            Step("slider b₂", "PageDown", "", {}),
            Step("button turn b by 90°", "click"),
            Step("button −b", "Enter"),
            Step("", "python", "right angle", {"ax": 4, "ay": 1, "bx": -0.6, "by": 2.4}),
            Step("button b ÷ 2", "click", "", {"by": 1.2}),
            Step("button b × 2", "click", "", {"by": 2.4}),
            Step("", "python", "there is no angle", {"bx": 0.0, "by": 0.0}),
        ],
    ),
    "CompassExplorer": Case(
        explorers.CompassExplorer.example,
        ".says b, .near .name, .near .number",
        lambda e: [
            *map(float, e.projections()[e._row[e.word]]),
            *(value for pair in e.neighbours() for value in pair),
        ],
        [
            Step("textbox word", "type frog", "Nearest to frog", {"word": "frog"}),
            Step("textbox word", "type <s>", "“<s>” is not among the 30,000 words", same=True),
            Step("textbox word", "type ellephant", "“ellephant” is not among", same=True),
            Step("button elephant", "click", "Nearest to elephant", {"word": "elephant"}),
            Step("", "python", "Nearest to cat", {"word": "cat"}),
            Step("button walk to rabbit", "Enter", "Nearest to rabbit", {"word": "rabbit"}),
            Step("button doctor and nurse", "click", "she − he", {"word": "nurse"}),
            Step("textbox the word up", "type Money", same=True),
            Step("textbox the word up", "Enter", "money − poor"),
            Step("textbox the word left", "type hi", same=True),
            Step("textbox the word left", "Enter", "she − hi"),
            Step("textbox the word right", "type hi", same=True),
            Step("textbox the word right", "Enter", "two different words", same=True),
            Step("textbox the word down", "type powerty", same=True),
            Step("textbox the word down", "Enter", "“powerty” is not among", same=True),
            Step("button poverty", "click", "money − poverty"),
            Step(".map", "ArrowUp"),
            Step("canvas", "click 0.62 0.3"),
            Step("", "python", "", {"axes": ["cat", "dog", "bad", "good"], "word": "wolf"}),
        ],
    ),
    "CacheExplorer": Case(
        explorers.CacheExplorer.example,
        "node => [...node.querySelectorAll('section')].flatMap((s) =>"
        " s.innerText.match(/[\\d,]+/g).slice(0, 3).map((n) => n.replace(',', '')))",
        lambda e: [v for done, n, _ in e.counts() for v in (n, len(e.text) - e.prompt, done)],
        [
            Step("slider work", "End", "That is", {"work": 22_134}),
            Step("slider work", "ArrowLeft", "one with a cache has finished"),
            Step("slider work", "Home ArrowRight*9", "at the same pace", {"work": 9}),
            Step("slider speed", "Home", "10 a second", {"speed": 10}, same=True),
            Step("button Play", "click", "2 of 204 letters", same=True),
            Step("button Pause", "click", same=True),
            Step("", "python", "", {"work": 321}),
        ],
    ),
    "ClockHands": Case(
        explorers.ClockHands,
        ".says .distance, .says .score",
        lambda e: [e.query - e.key, e.score()],
        [
            Step("slider position of the query", "ArrowRight*3", "", {"query": 12}),
            Step("slider position of the key", "ArrowLeft", "", {"key": 3}),
            Step("slider move both together", "ArrowRight", "", {"query": 13, "key": 4}),
            Step("slider move both together", "End", "", {"query": 60, "key": 51}),
            Step("slider move both together", "Home", "", {"query": 9, "key": 0}),
            Step("slider base", "Home", "", {"log_base": 1}),
            Step("button Play", "click"),
            Step("button Pause", "click", same=True),
        ],
        within=2e-3,
    ),
    "DepthExplorer": Case(
        lambda: explorers.DepthExplorer(skips=False, scale=0.5),
        ".number",
        depth_numbers,
        [
            Step("slider scale of each layer’s output", "ArrowRight", "all tokens look the same"),
            Step("button x + f(x)", "click", "explodes", {"skips": "on"}),
            Step("button pre: f(norm(x))", "Enter", "sound", {"norm": "pre"}),
            Step("slider depth", "ArrowLeft*2", "16 layers"),
            Step("button post: norm of the result", "click", "", {"norm": "post"}),
            Step("slider look at the stream", "ArrowRight*7", "after 7 layers", {"layer": 7}),
            Step("svg.size", "click 0.4 0.1", "after 16 layers", {"layer": 16}),
            Step("svg.gradient", "click 0.4 0.88", "after 0 layers", {"layer": 0}),
            Step("button none", "click", "", {"norm": "none"}),
            Step("button f(x) alone", "click", "", {"skips": "off"}),
            Step("", "python", "48 layers", {"depth_index": 5}),
            Step("button Play", "click", "4 layers: ", same=True),
            Step("button Pause", "click", same=True),
        ],
    ),
    "GuessingGame": Case(
        explorers.GuessingGame,
        "node => [node.querySelectorAll('.paper .bar').length]",
        lambda e: [len(e.ranks)],
        [
            Step(".paper", "Z Control+s ArrowLeft q", "Not “q”.", same=True),
            Step(".paper", "Z S", "“s”, guess 3. The model gave it", {"ranks": [3]}),
            Step("button h", "click", "“h” at once.", {"ranks": [3, 1]}),
            Step(".paper", "e Space", "“␣”, 3 in a row!", {"ranks": [3, 1, 1, 1]}),
            Step("button Show the letter", "Enter", ", guess 27.", {"ranks": [3, 1, 1, 1, 27]}),
            Step("button Another passage", "Enter", "0/61", {"number": 1, "ranks": []}),
            Step("", "python", "1.82 you", {"number": 2, "ranks": [1, 2] * 5}),
            Step("button Stop here", "Enter", "With 10 letters luck alone makes"),
            Step("button Copy the result", "click", "passage 3: I needed 1.82", same=True),
        ],
    ),
    "OverlapExplorer": Case(
        explorers.OverlapExplorer,
        BLOCKS,
        blocks,
        [
            Step("button 70B", "click", "", {"size": "70B"}),
            Step("button 7B", "Enter", "the GPU is idle for 0.424 s", {"size": "7B"}),
            Step("slider tokens per GPU", "ArrowRight", "● sending is hidden", {"tokens": 16_384}),
            Step("slider tokens per GPU", "Home", "▼", {"tokens": 512}),
            Step("checkbox send while computing", "Space", "▲ no overlap", {"overlap": False}),
            Step("slider bandwidth", "ArrowRight*3", "", {"bandwidth": 50e9}),
            Step("button NVLink 450 GB/s", "click", "", {"bandwidth": 450e9}),
            Step("slider GPUs", "End", "16,384", {"processes": 16_384}),
            Step("slider GPUs", "Home", "one GPU has nothing to send", {"processes": 1}),
            Step("", "python", "30 GB/s", {"bandwidth": 30e9, "tokens": 9, "processes": 8}),
        ],
        within=1e-3,
    ),
    "RewardsExplorer": Case(
        rewards,
        ".verdict, .said",
        lambda e: [
            e._says(),
            *(
                f"{'✔' if text == right else ' '} {text or '∅'}"
                for right, texts in zip(e.answers, e.shown(), strict=True)
                for text in texts
            ),
        ],
        [
            Step("slider training step", "ArrowRight", "0 of 3 right", {"step": 10}),
            Step("slider training step", "End", "", {"step": 20}),
            Step("button 0.2", "click", "3 of 3 right", {"beta": 0.2}),
            Step("img The judge's score", "click 0.55 0.3", "", {"step": 10}),
            Step("", "python", "2 of 3 right", {"step": 0}),
        ],
    ),
    "TokenExplorer": Case(
        explorers.TokenExplorer.example,
        ".tokens, .piece",
        lambda e: [len(e.ids()), *e.pieces()],
        [
            Step("slider merges used", "Home", "no merges: every byte is a token", {"used": 0}),
            Step("slider merges used", "ArrowRight", "1: ", {"used": 1}),
            Step("button Play", "click", "3: h + e → he", same=True),
            Step("button Pause", "click", same=True),
            Step("slider merges used", "click 0.5 0.5"),
            Step("textbox text", "type <s>low</s>\n\t\x00é中x", "16"),
            Step("listbox", "Home", "token 1 of"),
            Step("listbox", "ArrowRight", "token 2 of"),
            Step(".piece >> nth=2", "hover", "token 3 of"),
            Step("textbox text", "type ", "–", {"text": ""}),
            Step("textbox text", "type " + "low 🦉 " * 800, "Only the first 4000 are tokenised."),
            Step("", "python", "", {"text": "the the the", "used": 900}),
            Step("textbox text", "Home ArrowRight*2 x", "", {"text": "thxe the the"}),
        ],
    ),
    "AttentionExplorer": Case(
        explorers.AttentionExplorer.example,
        "tbody tr td.number:first-child, tbody tr td.number:nth-child(4)",
        strongest,
        [
            Step("gridcell layer 0, head 0", "ArrowDown ArrowRight*2", "Layer 1, head 2: weights"),
            Step("gridcell layer 0, head 3", "click", "Layer 0, head 3", {"head": 3}),
            Step("slider Query shown", "End", "Query 23", {"query": 23}),
            Step("slider Query shown", "ArrowUp", "Query 22 “token22” (locked)", {"locked": True}),
            Step(
                "slider Query shown", "Enter", "Click it or press Enter to lock", {"locked": False}
            ),
            Step("button All queries", "click", "Mean over all queries", {"query": -1}),
            Step("slider Stage", "ArrowLeft*4", "Layer 0, head 3: weights"),
            Step("", "python", "Layer 1, head 0", {"layer": 1, "head": 0}),
        ],
        within=6e-4,
    ),
    "SamplingExplorer": Case(
        sampling,
        "node => node.probabilities()",
        lambda e: e.probabilities().tolist(),
        [
            Step("slider top-k", "click 0.25 0.5", "of 69"),
            Step("slider top-p", "ArrowLeft*20", "0.80", {"top_p": 0.8}),
            Step("slider temperature τ", "End", "3.00", {"temperature": 3.0}),
            Step("slider temperature τ", "Home", "1 of 69", {"temperature": 0.0}),
            Step("textbox prompt", "type Roméo", "not among the 69 symbols", same=True),
            Step("textbox prompt", "type O\nGod ", "O⏎God␣", {"prompt": "O\nGod "}),
            Step("", "python", "", {"temperature": 1.5, "top_p": 0.33}),
        ],
        within=1e-5,
    ),
    "Typewriter": Case(
        explorers.Typewriter.example,
        "node => node.chances().flat()",
        lambda e: [value for chance in e.candidates() for value in chance],
        [
            Step(".line span >> nth=4", "click", "after “KING”", {"at": 4}),
            Step(".paper", "ArrowLeft", "came “G”", {"at": 3}),
            Step("slider temperature", "End", "2.0", {"temperature": 2.0}),
            Step("textbox your own first line", "type <s>O", same=True),
            Step("button Write on", "click", "“<” is not among the 69", same=True),
            Step(".line >> nth=1 >> span >> nth=2", "hover", "after “…NG HENRY:⏎Bu”", same=True),
            Step("", "python", "", {"text": "To be, or not to b"}),
        ],
        within=1e-4,
    ),
    "SentenceExplorer": Case(
        sentence,
        "node => node.probabilities()",
        lambda e: e.probabilities().tolist(),
        [
            Step("tab 2 vectors", "click", "256 numbers, learned"),
            Step("tab 2 vectors", "ArrowRight*2", "", {"stage": "weights"}),
            Step("checkbox this head is on", "Space", "as trained", {"off": [16]}),
            Step("checkbox mask", "click", "", {"masked": False}),
            Step("option layer 4, head 0", "ArrowRight ArrowDown x", "", {"off": [16, 21]}),
            Step("button Reset", "click", "istot", {"off": [], "masked": True}),
            Step("slider temperature", "End", "", {"temperature": 3.0}),
            Step("option token 1:", "click", "", {"position": 0}),
            Step("textbox text", "type <s>The</s> city of", "", {"text": "<s>The</s> city of"}),
            Step("", "python", "␣8", {"text": "Apollo 11 landed on the Moon. Apollo"}),
        ],
        within=1e-5,
    ),
}
_TEXTS = "node => [...node.querySelectorAll(`{}`)].map((part) => part.textContent)"
_UNTOUCHED = """node => [...node.querySelectorAll("input, textarea, [role=slider], [role=listbox]")]
    .filter((part) => !part.touched).map((part) => part.outerHTML)"""


def control(shown: Shown, name: str) -> Locator:
    role, _, called = name.partition(" ")
    if role in ("slider", "button", "checkbox", "textbox", "tab", "option", "gridcell", "img",
                "listbox"):  # fmt: skip
        exact = role in ("button", "textbox", "checkbox", "gridcell")
        return shown.node.get_by_role(role, name=called or None, exact=exact).first
    return shown.node.locator(name).first


def act(shown: Shown, step: Step) -> None:
    if step.action == "python":
        shown.page.mouse.move(1, 1)
        with shown.python.hold_sync():
            for name, value in step.traits.items():
                shown.python.set_trait(name, value)
        return
    it, (how, _, rest) = control(shown, step.control), step.action.partition(" ")
    it.evaluate(
        "(part) => { (part.closest('[role=listbox]') ?? part).touched = part.touched = true; }"
    )
    if how == "type":
        it.fill(rest)
    elif how in ("click", "hover"):
        box = it.bounding_box()
        assert box is not None
        x, y = (float(share) for share in (rest or "0.5 0.5").split())
        getattr(it, how)(position={"x": x * box["width"], "y": y * box["height"]})
    else:
        press_keys(it, step.action)


def number(value: Any) -> float | str:
    """A text as a number, if it is one."""
    if not isinstance(value, str):
        return float(value)
    try:
        return float(value.replace("−", "-").rstrip("°"))
    except ValueError:
        return math.nan if value == "— no direction" else value.strip()


def agree(shown: Shown, case: Case) -> None:
    """Wait until the page's numbers (or words) are Python's."""
    here = case.here if "=>" in case.here else _TEXTS.format(case.here)

    def unlike() -> list[tuple[object, object]]:
        found, wanted = shown.node.evaluate(here), case.there(shown.python)
        pairs = zip_longest(*([number(value) for value in values] for values in (found, wanted)))
        return [
            (one, other) for one, other in pairs
            if one != other and not (isinstance(one, float) and isinstance(other, float)
                                     and one == pytest.approx(other, abs=case.within, nan_ok=True))
        ]  # fmt: skip

    shown.until(unlike, [])


@pytest.mark.parametrize("name", EXPLORERS)
def test_every_control_moves_it_and_the_numbers_are_python_s(bare: Bare, name: str) -> None:
    case = CASES[name]
    shown = bare.show(case.make())
    agree(shown, case)
    for step in case.steps:
        print(step.control, step.action, step.traits)  # seen if it fails
        if step.same:
            act(shown, step)
        else:
            shown.changes(lambda step=step: act(shown, step))
        if step.traits:
            shown.has(**step.traits)
        if step.says:
            expect(shown.node).to_contain_text(step.says)
        if not step.same:
            agree(shown, case)
    assert shown.node.evaluate(_UNTOUCHED) == []
    assert shown.node.locator("s").count() == 0  # texts are never markup
    shown.page.evaluate("document.body.style.width = '328px'")  # as in the book on a phone
    shown.until(lambda: shown.node.evaluate("node => node.scrollWidth"), 328)
