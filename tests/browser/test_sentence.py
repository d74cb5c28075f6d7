"""One sentence through the whole model: what gpt.js and bpe.js compute, and the explorer."""

import re
from base64 import b64encode
from collections.abc import Iterator

import pytest
import torch
from bare import Bare, Shown
from lab import ROOT
from playwright.sync_api import Browser, Page, expect

from explorers import SentenceExplorer, TokenExplorer
from explorers.packed import packed, rounded
from helpers import data
from helpers.formats.checkpoints import Checkpoint, load_checkpoint
from helpers.text import BPETokenizer

THIRTY = (
    "The city is the capital of the United States and was founded in 1850 by the king of the "
    "island, who had come to the"
)
ODD = [
    "",
    "The low, lowest thee!\n\n 🦉",
    "Don't they'll I'M 'tis ''s \t\r\n x",
    "naïve café Å e\u0301 \u00bd \u00b2 \u0660\u0661",
    "中文分词没有空格。日本語も 👩‍👩‍👧 🇨🇭",
    "def f(x):\n    return {x: [1, 2.5e-3]}  # <b>&amp;</b>\n",
    "".join(map(chr, range(0x250))),
    "\u200b \u2028\xa0\x85\x1c\x1f \ufeff\uffff  <|endoftext|>",
    "x" * 300,
]


@pytest.fixture(scope="module")
def saved() -> Checkpoint:
    return load_checkpoint(data.checkpoint("gptmini"))


# --- gpt.js and bpe.js alone ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def engine(browser: Browser, saved: Checkpoint) -> Iterator[Page]:
    """An empty page with the model as `gpt`, which cuts texts by `encode`."""
    page = browser.new_page()
    scripts = "\n".join((ROOT / "explorers" / f"{n}.js").read_text("utf-8") for n in ("bpe", "gpt"))
    page.add_script_tag(content=scripts)
    page.evaluate(
        """text => {
            const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt());
            window.gpt = gptOf(bytes);
            window.encode = encoderOf(gpt.about.tokenizer);
        }""",
        b64encode(packed(saved.model, saved.tokenizer)).decode("ascii"),
    )
    yield page
    page.close()


def computed(engine: Page, ids: list[int], changes: str = "{}") -> torch.Tensor:
    """The logits (T, V) that the page computes."""
    code = f"ids => {{ gpt.read(ids, {changes}); return ids.map((_, t) => [...gpt.logits(t)]); }}"
    return torch.tensor(engine.evaluate(code, ids))


def wanted(saved: Checkpoint, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return rounded(saved.model)(torch.tensor([ids]))[0]


def test_the_page_computes_what_python_computes(engine: Page, saved: Checkpoint) -> None:
    ids = saved.tokenizer.encode(THIRTY * 9)[:256]  # as many as it can read
    assert torch.allclose(computed(engine, ids), wanted(saved, ids), atol=2e-4)


def test_what_was_read_before_changes_nothing(engine: Page, saved: Checkpoint) -> None:
    """Only what differs is computed again: tokens after the same beginning, layers after a head."""
    ids = saved.tokenizer.encode(THIRTY)
    fresh = wanted(saved, ids)
    changes = "{off: new Set([9, 20])}", "{masked: false}", "{masked: false, off: new Set([0])}"
    for other, change in [(ids[:7], "{}"), ([5, *ids], "{}"), *((ids, c) for c in changes)]:
        computed(engine, other, change)
        assert torch.allclose(computed(engine, ids), fresh, atol=1e-4)
        changed = computed(engine, ids, change)
        computed(engine, [5, 6], "{}")
        assert torch.equal(computed(engine, ids, change), changed)  # as if read from the start


def test_the_page_cuts_texts_as_python_does(engine: Page, saved: Checkpoint, bare: Bare) -> None:
    for text in [*ODD, THIRTY, (ROOT / "README.md").read_text("utf-8")[:6000]]:
        assert engine.evaluate("text => encode(text)", text) == saved.tokenizer.encode(text)
    learnt = BPETokenizer(saved.tokenizer.merges[:1000])
    node = bare.show(TokenExplorer(learnt, "")).node
    for used in (0, 1, 2, 17, 255, 700, 999, 1000):
        some = BPETokenizer(learnt.merges[:used])
        here = node.evaluate("(node, [texts, n]) => texts.map((t) => node.cut(t, n))", [ODD, used])
        assert here == [some.encode(text) for text in ODD], used


# --- the explorer ---------------------------------------------------------------------------------


@pytest.fixture
def shown(bare: Bare, saved: Checkpoint) -> Shown:
    text = "Aristotle was a Greek philosopher. Ar"
    shown = bare.show(SentenceExplorer(saved.model, saved.tokenizer, text, layer=4))
    shown.until(lambda: shown.node.evaluate("node => Boolean(node.gpt())"))
    return shown


def open_stage(shown: Shown, name: str) -> None:
    shown.node.get_by_role("tab", name=name).click()


def test_every_stage_shows_what_python_computes(shown: Shown) -> None:
    seen, drawing = shown.python.activations(), shown.node.locator(".drawing")
    open_stage(shown, "1 tokens")
    expect(drawing).to_contain_text("id 553")
    open_stage(shown, "2 vectors")
    expect(drawing).to_contain_text(f"({seen.residual[0, -1, 0]:.2f}".replace("-", "−"))
    open_stage(shown, "3 scores")
    row = shown.node.locator(".keys-list tr.on")
    expect(row.locator("td").first).to_have_text(f"{seen.scores[4, 0, -1].max():.2f}")
    open_stage(shown, "4 weights")
    share = 100 * seen.weights[4, 0, -1].max()
    expect(row.locator("td").nth(1)).to_have_text(f"{share:.1f}%")
    open_stage(shown, "5 values")
    expect(drawing).to_contain_text(re.compile(r"\d\.\d"))
    open_stage(shown, "6 sum")
    lengths = seen.residual[1:, -1].norm(dim=-1).tolist()
    texts = shown.node.locator(".adding tbody tr td:nth-child(4)")
    shown.until(lambda: texts.all_inner_texts()[-6:], [f"{length:.1f}" for length in lengths])
    shown.page.keyboard.press("ArrowRight")
    expect(shown.node.get_by_role("tab", name="7 next")).to_have_attribute("aria-selected", "true")
    expect(drawing).to_contain_text("100%")


def test_the_heads_stand_in_rows_of_layers(shown: Shown) -> None:
    open_stage(shown, "4 weights")
    heads = shown.node.get_by_role("listbox", name="layer and head")
    chosen = heads.get_by_role("option", selected=True)
    expect(chosen).to_have_attribute("aria-label", "layer 4, head 0")
    one, right, below = (heads.get_by_role("option").nth(n).bounding_box() for n in (0, 1, 4))
    assert (one["y"], one["x"]) == (right["y"], below["x"])  # a row is a layer, as everywhere
    assert one["x"] < right["x"] and one["y"] < below["y"]
