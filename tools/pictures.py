"""The pictures at the heads of the chapters, and the cover.

    python tools/pictures.py      writes docs/cover.svg and notebooks/pictures/NN.svg

A picture shows the idea of its chapter on paper of 1200 × 360, with one thing in vermilion: the
point. Here are those with numbers in them: each method draws that of the chapter of its name, from
what is computed, or was printed there. The others are drawn by hand, in their files; they get the
colours from here, and are light or dark as the page around them.
"""

import argparse
import json
import math
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import tensor

from helpers import data
from helpers.attention import MultiHeadAttention
from helpers.formats.checkpoints import load_checkpoint
from helpers.gpt import FeedForward
from helpers.hooks import attention_maps

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
STYLE = """\
<style>
.paper{color:#fffdf8}.ink{color:#1b2130}.muted{color:#5d6675}.hair{color:#d9d6cc}
.blue{color:#1f5fae}.point{color:#d4481a}.teal{color:#0f8a7e}
@media(prefers-color-scheme:dark){
.paper{color:#14171f}.ink{color:#e8e6df}.muted{color:#9aa3b2}.hair{color:#343a47}
.blue{color:#7db4ff}.point{color:#ff8f5e}.teal{color:#4fd1c1}}
path,rect{stroke:currentColor;stroke-linecap:round;stroke-linejoin:round}rect{stroke-width:0}
text,rect,.full{fill:currentColor}path,.line{fill:none}.line{stroke-width:5}
text{font-family:"Source Sans 3","Helvetica Neue",Arial,sans-serif;text-anchor:middle}
.left{text-anchor:start}
</style>
"""
Point = tuple[float, float]


def turned(centre: Point, r: float, angle: float) -> Point:
    """The point that lies so far from a centre, at an angle in radians."""
    return centre[0] + r * math.cos(angle), centre[1] - r * math.sin(angle)


def printed(topic: str, pattern: str) -> Any:
    """What the groups of a pattern match in the file of a chapter."""
    (chapter,) = NOTEBOOKS.glob(f"*_{topic}.ipynb")
    return re.findall(pattern, chapter.read_text("utf-8"))[0]


class Pencil:
    """Writes SVG. A colour may be followed by a class of STYLE: "hair line" draws the outline."""

    def __init__(self, height: int = 360):
        self.svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 {height}">\n{STYLE}'
        self.svg += f'<rect class="paper" width="1200" height="{height}" rx="16"/>\n'

    def text(self, x: float, y: float, words: Any, colour: str = "ink", size: int = 46) -> None:
        place = f'x="{x:.0f}" y="{y:.0f}" font-size="{size}"'
        self.svg += f'<text class="{colour}" {place}>{words}</text>\n'

    def box(self, x: float, y: float, w: float, h: float, colour: str, ink: float = 1) -> None:
        place = f'x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" height="{h:.0f}" rx="6"'
        self.svg += f'<rect class="{colour}" {place} fill-opacity="{ink:.2f}"/>\n'

    def path(self, points: Iterable[Point], colour: str, width: float = 6) -> None:
        d = "M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points)
        self.svg += f'<path class="{colour}" d="{d}" stroke-width="{width}"/>\n'

    def dot(self, centre: Point, r: float, colour: str) -> None:
        self.path([centre, centre], colour, 2 * r)

    def arc(self, x: float, to: float, y: float, colour: str, width: float) -> None:
        top = y - 0.3 * abs(x - to)
        d = f"M{x:.0f} {y:.0f}C{x:.0f} {top:.0f} {to:.0f} {top:.0f} {to:.0f} {y:.0f}"
        self.svg += f'<path class="{colour}" d="{d}" stroke-width="{width:.1f}"/>\n'

    def arrow(self, start: Point, end: Point, colour: str, width: int = 8) -> None:
        back = math.atan2(start[1] - end[1], end[0] - start[0]) + math.pi
        self.path([start, end], colour, width)
        self.path([turned(end, 28, back - 0.5), end, turned(end, 28, back + 0.5)], colour, width)


class Pictures(Pencil):
    def cover(self) -> None:
        saved: Any = load_checkpoint(data.checkpoint("shakespeare-gpt"))
        line = "To be, or not to be: that is the question"[:-1]
        ids = tensor([saved.tokenizer.encode(line)])
        with torch.no_grad():
            best = saved.model(ids)[0, -1].argmax().item()
        self.text(600, 90, "From the Dot Product to GPT", size=72)
        for i, weight in enumerate(attention_maps(saved.model, ids).mean((0, 1))[-1].tolist()):
            self.arc(1140, 46 + 27 * i, 385, "blue", 60 * weight)
            self.text(46 + 27 * i, 435, line[i], size=44)
        self.text(1140, 435, saved.tokenizer.decode([best]), "point", 64)

    def words_as_vectors(self) -> None:
        for i, letter in enumerate("catcar"):
            x, y = 90 + i % 3 * 90, 85 + i // 3 * 100
            self.box(x, y, 80, 80, "blue" if letter in "ca" else "hair", 0.3)
            self.text(x + 40, y + 56, letter)
        words, vectors = data.glove()
        cat, dog, car = F.normalize(
            tensor(vectors[[words.index(w) for w in ("cat", "dog", "car")]])
        )
        o, near, far = (640, 325), math.acos(cat @ dog), math.acos(cat @ car)
        self.path([o, *(turned(o, 190, 0.1 + near * i / 9) for i in range(10))], "point full")
        for word, angle, r in (("cat", 0.0, 400), ("dog", near, 400), ("car", far, 265)):
            self.arrow(o, turned(o, r, 0.1 + angle), "ink")
            self.text(*turned((640, 340), r + 50, 0.1 + angle), word)
        for angle, at, colour in ((near, near / 2, "point"), (far, (near + far) / 2, "muted")):
            self.text(*turned((640, 340), 270, 0.1 + at), f"{math.degrees(angle):.0f}°", colour)

    def language_modelling(self) -> None:
        for i, letter in enumerate("to b?"):
            self.box(80 + 96 * i, 140, 86, 80, "point line" if i == 4 else "hair line")
            self.text(123 + 96 * i, 197, letter, "point" if i == 4 else "ink")
        after = Counter(part[0] for part in data.shakespeare("train").split(" to b")[1:])
        for row, (letter, n) in enumerate(after.most_common(5)):
            self.text(650, 73 + 64 * row, letter)
            self.box(690, 38 + 64 * row, 400 * n / after.total(), 46, "blue" if row else "point")
        self.text(1090, 77, f"{after['e'] / after.total():.0%}", "point")

    def scaling(self) -> None:
        for x, d in zip((80, 365, 650, 935), (4, 16, 64, 256), strict=True):
            g = torch.Generator().manual_seed(1)
            q, k = torch.randn(300, 1, d, generator=g), torch.randn(300, 16, d, generator=g)
            for divisor in (1, d**0.5):
                weights = ((q * k).sum(-1) / divisor).softmax(-1).sort(descending=True)[0]
                for i, h in enumerate((230 * weights.mean(0)).tolist()):
                    colour = "teal" if divisor > 1 else "point" if h > 200 else "blue"
                    self.box(x + 13 * i, 272 if divisor > 1 else 262 - h, 10, h, colour)
            self.text(x + 120, 70, f"d = {d}", "muted")
        self.text(1080, 352, "÷ √d", "teal")

    def transformer_block(self) -> None:
        for y, words in ((150, "f(x)"), (320, "x + f(x)")):
            torch.manual_seed(0)
            stream = [torch.randn(1, 64, 32, dtype=torch.double, requires_grad=True)]
            for n in range(48):
                layer = FeedForward(32) if n % 2 else MultiHeadAttention(32, 4)
                x = layer.double()(stream[-1])
                stream.append(x + stream[-1] if "+" in words else x)
            gradients = torch.autograd.grad((stream[-1] - 1).square().mean(), stream)
            for n, g in enumerate(gradients):
                height = 3.2 * (38 + (g.norm() / gradients[-1].norm()).log10().item())
                self.box(320 + 17 * n, y - height, 12, height, "blue")
            self.text(50, y - 20, words, "ink left")
        self.arrow((1145, 337), (300, 337), "point", 14)

    def gpt(self) -> None:
        saved: Any = load_checkpoint(data.checkpoint("shakespeare-gpt"))
        with torch.no_grad():
            out = saved.model(tensor([saved.tokenizer.encode("But soft, what light"[:-1])]))[0, -4:]
        for y, given, best in zip((56, 140, 224, 308), "light"[:4], out.argmax(-1), strict=True):
            colour, size, width = ("point", 90, 14) if y == 308 else ("muted", 46, 4)
            self.text(170, y + 18, given, size=64)
            self.path([(225, y), (1000, y)], colour, width)
            self.text(1060, y + 18, saved.tokenizer.decode([int(best)]), colour, size)
        for x in range(300, 300 + 135 * len(saved.model.blocks), 135):
            self.box(x, 20, 74, 320, "paper")
            self.box(x, 20, 74, 320, "blue", 0.35)

    def gptmini(self) -> None:
        tokenizer: Any = load_checkpoint(data.checkpoint("gptmini")).tokenizer
        drawn = torch.randint(2048, (60,), generator=torch.Generator().manual_seed(3)).tolist()
        noise = "".join(filter(str.isprintable, tokenizer.decode(drawn)))
        live = printed("gptmini", r'"(Other and his .*)\\n"')
        last = printed("gptmini", r'"(Once upon a time, the B.*)\\n"')
        for y, line, colour in ((90, noise, "muted"), (195, live, "ink"), (300, last, "point")):
            self.text(60, y, line[:42], f"{colour} left", 48)

    def judging(self) -> None:
        self.path([(60, 200), (1140, 200)], "hair", 10)
        for n, name in enumerate(("gzip", "bz2", "trigram counts", "GPTMini")):
            bits = printed("judging", name + r" +(\d\.\d\d)(?: bits|  )")
            x, colour = 150 + 760 * (3.16 - float(bits)), "point" if n == 3 else "blue"
            self.dot((x, 200), 20, colour)
            self.text(x, 150 if n % 2 else 275, name.replace(" count", ""), colour)
            self.text(x, 95 if n % 2 else 330, bits, "muted")

    def inside_the_heads(self) -> None:
        states = json.loads((NOTEBOOKS / "states" / "inside_the_heads.json").read_text("utf-8"))
        (shown,) = (buffer for (state,) in states.values() for buffer in state["buffers"][2:])
        weights = tensor(memoryview(b64decode(shown["data"])).cast("H").tolist())
        weights = weights.view(30, 9, 13, 13)[..., 8, 1] / 60_000  # from "it" to "animal"
        for n, weight in enumerate(weights.flatten().tolist()):
            ink, colour = (1, "point") if weight == weights.max() else (0.1 + weight, "blue")
            self.box(45 + 37 * (n // 9), 12 + 31 * (n % 9), 33, 27, colour, ink)
        self.text(545, 345, f"it → animal {weights.max():.2f}", "point")


def pictures() -> dict[Path, str]:
    """The files, and what belongs in them."""
    made = {}
    for file in [ROOT / "docs" / "cover.svg", *sorted((NOTEBOOKS / "pictures").glob("*.svg"))]:
        (topic,) = [path.stem[3:] for path in NOTEBOOKS.glob(f"{file.stem}_*.ipynb")] or ["cover"]
        page = Pictures(480 if topic == "cover" else 360)
        if draw := getattr(page, topic, None):
            draw()
            made[file] = page.svg + "</svg>\n"
        else:
            made[file] = re.sub("<style>.*?</style>\n", STYLE, file.read_text("utf-8"), flags=re.S)
    return made


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    for path, svg in pictures().items():
        path.write_text(svg, "utf-8")
