"""One sentence through the whole model: what the page computes, and the explorer in JupyterLab."""

from base64 import b64encode
from collections.abc import Iterator

import pytest
import torch
from lab import ROOT, eventually, in_kernel
from playwright.sync_api import Browser, Page, expect

from explorers.packed import packed, rounded
from helpers import data
from helpers.formats.checkpoints import Checkpoint, load_checkpoint

THIRTY = (
    "The city is the capital of the United States and was founded in 1850 by the king of the "
    "island, who had come to the"
)
ODD = [
    "",
    " ",
    "The low, lowest thee!\n\n 🦉",
    "Don't they'll I'M 'tis ''s \t\r\n x",
    "naïve café Å e\u0301 \u00bd \u00b2 \u0660\u0661",
    "中文分词没有空格。日本語も 👩‍👩‍👧 🇨🇭",
    "".join(map(chr, range(0x250))),
    "\u200b \u2028\xa0\x85\x1c\x1f \ufeff\uffff  <|endoftext|>",
    "x" * 300,
]

# --- gpt.js alone ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved() -> Checkpoint:
    return load_checkpoint(data.checkpoint("gptmini"))


@pytest.fixture(scope="module")
def engine(browser: Browser, saved: Checkpoint) -> Iterator[Page]:
    """An empty page with the model as `gpt` and its tokenizer as `words`."""
    page = browser.new_page()
    scripts = "\n".join((ROOT / "explorers" / f"{n}.js").read_text("utf-8") for n in ("bpe", "gpt"))
    page.add_script_tag(content=scripts)
    page.evaluate(
        """text => {
            const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt());
            window.gpt = gptOf(bytes);
            window.words = tokenizerOf(gpt.about.tokenizer);
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


def test_the_page_computes_what_python_computes(engine, saved):
    ids = saved.tokenizer.encode(THIRTY)
    assert len(ids) >= 30
    assert torch.allclose(computed(engine, ids), wanted(saved, ids), atol=1e-4)
    long = saved.tokenizer.encode(THIRTY * 9)[:256]  # as many as it can read
    assert torch.allclose(computed(engine, long), wanted(saved, long), atol=2e-4)


def test_what_was_read_before_changes_nothing(engine, saved):
    """Only what differs is computed again: tokens after the same beginning, layers after a head."""
    ids = saved.tokenizer.encode(THIRTY)
    fresh = wanted(saved, ids)
    changes = "{off: new Set([9, 20])}", "{masked: false}", "{masked: false, off: new Set([0])}"
    for other, change in [(ids[:7], "{}"), ([5, *ids], "{}"), *((ids, c) for c in changes)]:
        computed(engine, other, change)
        assert torch.allclose(computed(engine, ids), fresh, atol=1e-4)
        changed = computed(engine, ids, change)
        assert torch.equal(computed(engine, ids, change), changed)
        computed(engine, [5, 6], "{}")
        assert torch.equal(computed(engine, ids, change), changed)  # as if read from the start


def test_without_webassembly_it_computes_the_same(engine):
    apart = engine.evaluate(
        """() => {
            const memory = new WebAssembly.Memory({ initial: 1 });
            const all = new Float32Array(memory.buffer);
            for (let i = 0; i < 60; i++) all[i] = Math.sin(i);
            dot4Wasm(memory)(0, 48, 48, 40, 400, 8);
            const fast = all.slice(100, 108);
            dot4Scalar(memory)(0, 48, 48, 40, 400, 8);
            return Math.max(...fast.map((v, i) => Math.abs(v - all[100 + i])));
        }"""
    )
    assert apart < 1e-5


def test_the_page_cuts_texts_as_python_does(engine, saved):
    for text in [*ODD, THIRTY, (ROOT / "README.md").read_text("utf-8")[:6000]]:
        assert engine.evaluate("text => words.encode(text)", text) == saved.tokenizer.encode(text)


# --- the explorer ---------------------------------------------------------------------------------

LOAD = """from helpers import data
from helpers.formats.checkpoints import load_checkpoint
from explorers.sentence import SentenceExplorer
saved = load_checkpoint(data.checkpoint("gptmini"))
"""
SHOW = """explorer = SentenceExplorer(
    saved.model, saved.tokenizer, "Aristotle was a Greek philosopher. Ar", layer=4, head=0
)
explorer"""
LOADED = "node => Boolean(node.gpt())"


@pytest.fixture
def sentence(explorer):
    node = explorer(".d2g.sentence", LOAD, SHOW)
    eventually(lambda: node.evaluate(LOADED), True)
    return node


def stage(node, name):
    return node.get_by_role("tab", name=name)


def agree(node):
    """Does the page show what the kernel computes?"""

    def difference():
        here = node.evaluate("node => node.probabilities()")
        there = in_kernel(node.page, "explorer.probabilities().tolist()")
        return max(abs(a - b) for a, b in zip(here, there, strict=True)) < 1e-5

    eventually(difference, True)


def likeliest(node):
    return node.locator(".answer th").first


def test_the_bars_are_python_s(sentence):
    agree(sentence)
    expect(likeliest(sentence)).to_have_text("istot")
    expect(sentence.locator(".answer td.number").first).to_have_text("55.1%")


def test_a_head_and_the_mask_can_be_switched_off_by_keyboard(sentence):
    page = sentence.page
    stage(sentence, "4 weights").focus()
    page.keyboard.press("Enter")
    heads = sentence.get_by_role("listbox", name="layer and head")
    expect(heads.get_by_role("option", selected=True)).to_have_attribute(
        "aria-label", "layer 4, head 0"
    )
    one, right, below = (heads.get_by_role("option").nth(n).bounding_box() for n in (0, 1, 4))
    assert (one["y"], one["x"]) == (right["y"], below["x"])  # a row is a layer, as everywhere
    assert one["x"] < right["x"] and one["y"] < below["y"]
    sentence.get_by_label("this head is on").focus()
    page.keyboard.press("Space")
    expect(likeliest(sentence)).to_have_text("ch")
    expect(sentence.locator(".legend")).to_contain_text("as trained")
    agree(sentence)
    assert in_kernel(page, "explorer.off") == [16]
    sentence.get_by_label("mask", exact=True).focus()
    page.keyboard.press("Space")
    agree(sentence)
    heads.get_by_role("option", selected=True).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("x")
    eventually(lambda: in_kernel(page, "explorer.off"), [16, 21])
    agree(sentence)
    sentence.get_by_role("button", name="Reset").click()
    expect(likeliest(sentence)).to_have_text("istot")
    agree(sentence)


def test_every_stage_opens_and_shows_numbers(sentence):
    seen = []
    for number, name in enumerate(["tokens", "vectors", "scores", "weights", "values", "sum"], 1):
        stage(sentence, f"{number} {name}").click()
        drawing = sentence.locator(".drawing")
        eventually(lambda drawing=drawing: drawing.inner_text() in (*seen, ""), False)
        seen.append(drawing.inner_text())
        assert any(c.isdigit() for c in seen[-1]), name
    sentence.page.keyboard.press("ArrowRight")
    expect(stage(sentence, "7 next")).to_have_attribute("aria-selected", "true")
    expect(sentence.locator(".drawing")).to_contain_text("100%")


def test_the_stages_show_what_python_computes(sentence):
    page = sentence.page
    seen = "(seen := explorer.activations())"
    stage(sentence, "3 scores").click()
    row = sentence.locator(".keys-list tr.on")
    best = in_kernel(page, f"{seen}.scores[4, 0, -1].max().item()")
    expect(row.locator("td").first).to_have_text(f"{best:.2f}")
    stage(sentence, "4 weights").click()
    share = in_kernel(page, f"{seen}.weights[4, 0, -1].max().item()")
    expect(row.locator("td").nth(1)).to_have_text(f"{100 * share:.1f}%")
    stage(sentence, "6 sum").click()
    lengths = in_kernel(page, f"{seen}.residual[1:, -1].norm(dim=-1).tolist()")
    shown = sentence.locator(".adding tbody tr td:nth-child(4)")
    wanted = [f"{length:.1f}" for length in lengths]
    eventually(lambda: shown.all_inner_texts()[-6:], wanted)
    stage(sentence, "2 vectors").click()
    first = in_kernel(page, f"{seen}.residual[0, -1, 0].item()")
    expect(sentence.locator(".drawing")).to_contain_text(f"({first:.2f}".replace("-", "−"))


def test_what_is_typed_is_read_at_once_and_never_markup(sentence):
    field = sentence.get_by_label("text", exact=True)
    field.fill("<b>The</b> city of")
    agree(sentence)
    assert sentence.locator(".strip b, .heading b").count() == 0
    expect(sentence.get_by_role("listbox", name="tokens").get_by_role("option")).to_have_count(
        in_kernel(sentence.page, "len(explorer.tokens())")
    )
    field.fill("")
    expect(sentence.locator(".say")).to_have_text(
        "Type some text (at least one token) to get a continuation."
    )
    field.fill("Once" * 80)
    agree(sentence)
    assert sentence.evaluate("node => node.ids().length") == 32


def test_a_drawn_token_is_put_behind_the_text(sentence):
    field = sentence.get_by_label("text", exact=True)
    before = field.input_value()
    sentence.get_by_role("button", name="Sample next token").click()
    expect(field).not_to_have_value(before)
    assert field.input_value().startswith(before)
    agree(sentence)


def test_python_moves_it_too(sentence):
    in_kernel(sentence.page, "setattr(explorer, 'text', 'Apollo 11 landed on the Moon. Apollo')")
    expect(likeliest(sentence)).to_have_text("␣8")
    in_kernel(sentence.page, "setattr(explorer, 'temperature', 3.0)")
    agree(sentence)
    in_kernel(sentence.page, "setattr(explorer, 'stage', 'sum')")
    expect(stage(sentence, "6 sum")).to_have_attribute("aria-selected", "true")
