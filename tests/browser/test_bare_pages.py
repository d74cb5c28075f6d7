"""Explorers on pages that are not JupyterLab's: what they write can be read on any ground."""

import base64
import functools
import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

import explorers

DARK_CODE = {  # of VS Code's themes "Dark Modern" and "Light Modern"
    "editor-background": "#1f1f1f",
    "editor-foreground": "#cccccc",
    "descriptionForeground": "#9d9d9d",
}
LIGHT_CODE = {
    "editor-background": "#ffffff",
    "editor-foreground": "#3b3b3b",
    "descriptionForeground": "#3b3b3b",
}
PAGES: dict[str, tuple[str, dict[str, str]]] = {
    "white": ("#fff", {}),
    "black": ("#121212", {}),
    "dark": ("#1e1e1e", {}),
    "VS Code, dark": ("#1f1f1f", DARK_CODE),
    "VS Code, dark, on white": ("#fff", DARK_CODE),
    "VS Code, light": ("#fff", LIGHT_CODE),
}
# A model without a kernel: the traits, and nobody who listens.
SHOW = """async ([esm, css, state, buffers]) => {
    document.body.append(Object.assign(document.createElement("style"), { textContent: css }));
    for (const [name, text] of Object.entries(buffers)) {
        const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt());
        state[name] = new DataView(bytes.buffer);
    }
    if (state.answer) state.answer.logits = state.logits;
    const module = await import(`data:text/javascript;charset=utf-8,${encodeURIComponent(esm)}`);
    const el = document.body.appendChild(document.createElement("div"));
    const model = { get: (name) => state[name], set(name, value) { state[name] = value; },
        on() {}, off() {}, send() {}, save_changes() {} };
    module.default.render({ model, el });
    await new Promise((done) => setTimeout(done, 300));
}"""
# Contrast of each text with what lies under it: the colours of the boxes around it, one by one.
LEAST = """() => {
    const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
        .getContext("2d", { willReadFrequently: true });
    const over = (ground, colour) => {
        pen.fillStyle = `rgb(${ground.join()})`; pen.fillRect(0, 0, 1, 1);
        pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const ground = (node) => {
        const boxes = [];
        for (let box = node; box; box = box.parentElement) boxes.unshift(box);
        const colours = boxes.map((box) => getComputedStyle(box).backgroundColor);
        return colours.reduce(over, [255, 255, 255]);
    };
    const light = (rgb) => rgb.map((v) => v / 255)
        .map((v) => (v > 0.04045 ? ((v + 0.055) / 1.055) ** 2.4 : v / 12.92))
        .reduce((sum, v, k) => sum + [0.2126, 0.7152, 0.0722][k] * v, 0);
    const found = [];
    for (const node of document.querySelectorAll(".d2g, .d2g *")) {
        const own = node.matches("input[type=text], textarea") ? node.value
            : [...node.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join("");
        const hidden = node.closest("style, .ghost, .unseen, [hidden], :disabled, option");
        if (!own.trim() || hidden || !node.checkVisibility()) continue;
        const style = getComputedStyle(node), under = ground(node);
        const ink = node.ownerSVGElement ? style.fill : style.color;
        const [a, b] = [light(under), light(over(under, ink))].sort((x, y) => y - x);
        found.push([(a + 0.05) / (b + 0.05), `${own.slice(0, 30)}: ${ink} on ${under}`]);
    }
    return found.sort((one, other) => one[0] - other[0]);
}"""


KINDS = {
    name: getattr(explorers, name).example
    for name in sorted(set(explorers.__all__) - {"Explorer", "SentenceExplorer"})
}


@functools.cache
def _given(name: str) -> tuple[str, str, str, dict[str, str]]:
    """What the browser gets of an explorer: code, style, state as JSON, and buffers."""
    explorer = KINDS[name]()
    state = {key: explorer.get_state(key)[key] for key in explorer.keys if not key.startswith("_")}
    state.pop("layout")
    state.pop("tabbable", None)
    state.pop("tooltip", None)
    if isinstance(state.get("answer"), dict) and "logits" in state["answer"]:
        state["logits"] = state["answer"]["logits"]
        state["answer"] = {**state["answer"], "logits": None}
    buffers = {
        key: base64.b64encode(bytes(value)).decode()
        for key, value in state.items()
        if isinstance(value, bytes | memoryview)
    }
    plain = {key: value for key, value in state.items() if key not in buffers}
    return explorer._esm, explorer._css, json.dumps(plain), buffers


@pytest.fixture(scope="module")
def bare(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    page = context.new_page()
    yield page
    context.close()


def show(page: Page, name: str, ground: str, variables: dict[str, str]) -> None:
    """The explorer on a page of this ground, which sets these variables of VS Code."""
    rules = "".join(f"--vscode-{key}: {value};" for key, value in variables.items())
    page.goto("about:blank")
    page.set_content(
        f"<!doctype html><html style='{rules}'><body style='background: {ground}'></body></html>"
    )
    esm, css, state, buffers = _given(name)
    page.evaluate(SHOW, [esm, css, json.loads(state), buffers])


@pytest.mark.parametrize("page_name", PAGES)
@pytest.mark.parametrize("name", KINDS)
def test_all_that_is_written_can_be_read(bare: Page, name: str, page_name: str) -> None:
    show(bare, name, *PAGES[page_name])
    contrasts = bare.evaluate(LEAST)
    assert len(contrasts) > 5
    assert contrasts[0][0] >= 4.5, contrasts[:5]
