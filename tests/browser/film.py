"""Film the typewriter for README: it writes, another letter is chosen, and the text forks.

python tools/film.py [SEED]     writes docs/typewriter.gif; SEED: of the random numbers
"""

import io
import sys
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import lab  # noqa: E402
from bare import Bare  # noqa: E402

from explorers import Typewriter  # noqa: E402

SEEDED = "{ let t = SEED; Math.random = () => (t = (t * 16807) % 2147483647) / 2147483647; }"


def film(seed: int, place: int) -> None:
    frames: list[Image.Image] = []
    times: list[float] = []
    with sync_playwright() as playwright:
        browser = lab.launch(playwright)
        page = lab.new_page(browser, [], 960, height=460)
        shown = Bare(page).show(Typewriter(playing=False, temperature=0.7))
        shown.node.evaluate(SEEDED.replace("SEED", str(seed)))
        desk = shown.node.locator(".desk")

        def record(seconds: float) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                times.append(time.monotonic())
                frames.append(Image.open(io.BytesIO(desk.screenshot())).convert("RGB"))

        shown.until(lambda: shown.node.evaluate("node => node.ready()"))
        shown.press("Start again")
        record(8)
        shown.node.locator(".line span").nth(place).click()
        record(1.6)
        shown.node.locator(".guess:not(.own)").first.click()
        record(8)
        shown.press("Pause")
        record(1.6)
        print(shown.node.evaluate("node => node.text()"))
        browser.close()
    both = Image.new("RGB", (frames[0].width, 2 * frames[0].height))
    both.paste(frames[0])  # what is on the page before the fork, and after it
    both.paste(frames[-1], (0, frames[0].height))
    palette = both.quantize(48)
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    pauses = [1000 * (b - a) for a, b in zip(times, [*times[1:], times[-1] + 2], strict=True)]
    path = ROOT / "docs" / "typewriter.gif"
    small[0].save(path, save_all=True, append_images=small[1:], duration=pauses, loop=0)
    print(f"{path}: {len(frames)} frames, {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    film(*map(int, sys.argv[1:] or (4, 19)))
