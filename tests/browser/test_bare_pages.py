"""Explorers on pages that are not JupyterLab's: what they write can be read on any ground."""

import pytest
from bare import Bare

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
        const hidden = node.closest("style, .unseen, [hidden], :disabled, option");
        if (!own.trim() || hidden || !node.checkVisibility()) continue;
        const style = getComputedStyle(node), under = ground(node);
        const ink = node.ownerSVGElement ? style.fill : style.color;
        const [a, b] = [light(under), light(over(under, ink))].sort((x, y) => y - x);
        found.push([(a + 0.05) / (b + 0.05), `${own.slice(0, 30)}: ${ink} on ${under}`]);
    }
    return found.sort((one, other) => one[0] - other[0]);
}"""


KINDS = sorted(set(explorers.__all__) - {"Explorer", "SentenceExplorer"})


@pytest.mark.parametrize("name", KINDS)
def test_all_that_is_written_can_be_read(bare: Bare, name: str) -> None:
    explorer = getattr(explorers, name).example()
    for page, (ground, variables) in PAGES.items():
        rules = "".join(f"--vscode-{key}: {value};" for key, value in variables.items())
        shown = bare.show(explorer, f"<html style='{rules}'><body style='background: {ground}'>")
        contrasts = shown.page.evaluate(LEAST)
        assert len(contrasts) > 5
        assert contrasts[0][0] >= 4.5, (page, contrasts[:5])
