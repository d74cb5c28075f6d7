"""A throw-away JupyterLab and what a test does in it: open, run, press, look, measure.

Plain functions on a Playwright `page`, for tests through the fixtures of conftest.py.
"""

import ast
import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nbformat
import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Error, Locator, Page, Playwright

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SHOTS = ROOT / "test-results" / "browser"
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
_CONTENT = "window.jupyterapp.shell.currentWidget.content"
# No "Jupyter news?" pop-up in the screenshots, and every cell in the page.
_SETTINGS = {
    "apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "notebook-extension/tracker": {"windowingMode": "none"},
}


# --- the server and the browser -------------------------------------------------------------------


def chromium() -> str:
    """The path of Chromium or Chrome; raises FileNotFoundError that says how to get one."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None or shutil.which(found) is None:
        raise FileNotFoundError(
            f"the browser tests need Chromium or Chrome, but {found or ', '.join(names)} is not "
            "there. Install it (Debian, Ubuntu: apt-get install chromium fonts-dejavu-core), or "
            "set the environment variable CHROMIUM to the path of its program."
        )
    return found


def launch(playwright: Playwright, *flags: str) -> Browser:
    """Chromium, headless, with everything off that would go to the network by itself."""
    return playwright.chromium.launch(
        executable_path=chromium(),
        args=[
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            *flags,
        ],
    )


@contextlib.contextmanager
def jupyter(folder: Path, *, course: bool = False) -> Iterator[str]:
    """A JupyterLab that serves `folder` on 127.0.0.1; gives its address.

    It has its own configuration, data and runtime folders, no password and no token: never use
    these settings for real work. The course's packages are installed in the environment, so the
    folder can be anywhere. course: configured as `make lab` does, and not for tests.
    """
    with tempfile.TemporaryDirectory(prefix="lab-", ignore_cleanup_errors=True) as name:
        own = Path(name)
        for extension, settings in ({} if course else _SETTINGS).items():
            path = own / f"config/lab/user-settings/@jupyterlab/{extension}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(settings), encoding="utf-8")
        if not course:  # with every page it would ask Node whether JupyterLab must be built again
            path = own / "config/labconfig/page_config.json"
            path.parent.mkdir()
            path.write_text('{"buildCheck": false}', encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
            f"--port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}",
            "--IdentityProvider.token=", "--ServerApp.password=",
            "--ServerApp.disable_check_xsrf=True", "--LabApp.expose_app_in_browser=True",
            f"--LabApp.workspaces_dir={own}/workspaces",
        ]  # fmt: skip
        if not course:
            never = "jupyterlab.NeverCheckForUpdate"
            command += ["--LabApp.news_url=", f"--LabApp.check_for_updates_class={never}"]
        folders = {
            "JUPYTER_CONFIG_DIR": own / "config",
            "JUPYTER_DATA_DIR": own / "data",
            "JUPYTER_RUNTIME_DIR": own / "runtime",
            "IPYTHONDIR": own / "ipython",
        }
        if course:
            folders["JUPYTER_CONFIG_PATH"] = ROOT / "tools" / "jupyter"
        environment = os.environ | {key: str(path) for key, path in folders.items()}
        log = own / "log.txt"
        with log.open("w") as output:
            server = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
            try:
                url = f"http://127.0.0.1:{port}"
                _wait_for(url, server, log)
                yield url
            finally:
                server.terminate()
                try:
                    server.wait(20)
                except subprocess.TimeoutExpired:
                    server.kill()
                    server.wait()


def _wait_for(url: str, server: subprocess.Popen, log: Path) -> None:
    patience = time.monotonic() + 90
    while time.monotonic() < patience:
        if server.poll() is not None:
            raise RuntimeError(f"JupyterLab stopped:\n{log.read_text()[-3000:]}")
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{url}/api/status", timeout=2)
            return
        time.sleep(0.2)
    raise TimeoutError(f"JupyterLab did not answer within 90 s:\n{log.read_text()[-3000:]}")


def new_page(
    browser: Browser, problems: list[str], width: int = 1280, height: int = 1200, **options: Any
) -> Page:
    """A page that is watched for problems (see `watch`); options: of its context.

    The context is its own: JupyterLab loads itself again when it finds another tab of it.
    """
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    page = context.new_page()
    page.set_default_timeout(60_000)
    watch(page, problems)
    return page


def watch(page: Page, problems: list[str]) -> None:
    """Put into `problems`: console and page errors, failed requests, requests to elsewhere."""

    def request(address: str) -> None:
        if urlsplit(address).hostname not in ("127.0.0.1", None):  # None: data:, blob:
            problems.append(f"a request left this machine: {address}")

    page.on("console", lambda m: m.type == "error" and problems.append(f"console: {m.text}"))
    # JupyterLab says so, at its leisure, of what closing a notebook has interrupted.
    page.on("pageerror", lambda e: "Canceled future" in str(e) or problems.append(f"page: {e}"))
    page.on("requestfailed", lambda r: problems.append(f"request failed: {r.url} ({r.failure})"))
    page.on("request", lambda r: request(r.url))
    page.on("websocket", lambda w: request(w.url))


def noticed(page: Page) -> None:
    """Let Playwright tell what has happened in the page: it does so only while it is asked."""
    with contextlib.suppress(Error):
        page.evaluate("0")


# --- notebooks ------------------------------------------------------------------------------------


def write_notebook(path: Path, cells: list[str]) -> None:
    """A notebook of code cells, for an explorer (or an argument of one) that no chapter shows."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    made.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(made, path)


def open_notebook(page: Page, url: str, name: str) -> None:
    """Open the notebook in the light theme and wait until its kernel is ready.

    If the page is in JupyterLab already, the notebook is opened there: to load JupyterLab again
    would take several times as long. See close_notebook for the one before.
    """
    _open(page, f"{url}/doc", name)


def open_in_lab(page: Page, url: str, name: str) -> None:
    """Open the notebook as a learner does, in /lab with the file browser; its kernel is ready.

    For what depends on the room that there is; all else is quicker with open_notebook.
    """
    _open(page, f"{url}/lab", name)


def _open(page: Page, place: str, name: str) -> None:
    if page.url.startswith(place):
        command = "window.jupyterapp.commands.execute('docmanager:open', {path})"
        page.evaluate(f"async path => {{ await {command}; }}", name)
    else:
        page.goto(f"{place}/tree/{name}?reset")  # ?reset: not the workspace of an earlier test
    _wait_until_open(page, name)


def _wait_until_open(page: Page, name: str) -> None:
    page.wait_for_function(
        """name => {
            const shown = window.jupyterapp?.shell.currentWidget;
            return shown?.context?.path === name && shown.sessionContext.isReady
                && shown.node.querySelector(".jp-CodeCell");
        }""",
        arg=name,
    )
    if page.evaluate("document.body.dataset.jpThemeLight") != "true":
        theme(page, "light")


def close_notebook(page: Page) -> None:
    """Close the open notebook, unsaved, and end its kernel, so that kernels do not pile up."""
    with contextlib.suppress(Error):
        page.evaluate(
            """async () => {
                const shown = window.jupyterapp.shell.currentWidget;
                await shown.sessionContext.shutdown();
                shown.context.model.dirty = false;  // nobody is asked whether to save it
                shown.close();
            }"""
        )


def run_all(page: Page) -> list[str]:
    """Run all cells and wait for the last; returns the errors in the outputs (see `errors`)."""
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    return errors(page)


def run_cell(page: Page, text: str) -> list[str]:
    """Run (again) the first code cell that contains `text`; returns the errors."""
    return run_cell_at(page, find_cell(page, text))


def run_cell_at(page: Page, index: int) -> list[str]:
    """Run (again) the cell with this index; returns the errors."""
    page.evaluate(f"i => {{ {_CONTENT}.deselectAll(); {_CONTENT}.activeCellIndex = i; }}", index)
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell')")
    return errors(page)


def select_cell(page: Page, index: int) -> None:
    """Make it the active cell, in command mode, with the focus: as a click beside it does."""
    page.evaluate(
        f"""async i => {{ {_CONTENT}.deselectAll(); {_CONTENT}.activeCellIndex = i;
            {_CONTENT}.mode = "command"; await {_CONTENT}.scrollToItem(i);
            {_CONTENT}.activate(); {_CONTENT}.activeCell.node.focus(); }}""",
        index,
    )


def run_hidden(page: Page, code: str) -> None:
    """Run code in the notebook's kernel, in no cell; RuntimeError if it raises."""
    reply = page.evaluate(
        """code => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel
            .requestExecute({code, silent: true}).done.then(reply => reply.content)""",
        code,
    )
    if reply["status"] != "ok":
        raise RuntimeError(f"{reply['ename']}: {reply['evalue']}, in:\n{code}")


def show_saved(page: Page) -> None:
    """Show the saved outputs as if they had just been made, and wait until they are all there.

    JupyterLab does not trust a file that it has not run: it would leave scripts out of its HTML.
    """
    page.evaluate(f"for (const cell of {_CONTENT}.model.cells) cell.trusted = true")
    page.wait_for_function(
        f"""() => {_CONTENT}.widgets.every(cell => cell.model.type !== "code"
                || cell.outputArea.widgets.length >= cell.outputArea.model.length)
            && [...document.images].every(image => image.complete)"""
    )


def broken_images(page: Page) -> int:
    """How many images of the page show nothing."""
    return page.evaluate("[...document.images].filter(image => !image.naturalWidth).length")


def find_cell(page: Page, text: str) -> int:
    """The index of the first code cell that contains `text`; LookupError if there is none."""
    sources = page.evaluate(
        f"{_CONTENT}.model.toJSON().cells.map(c => c.cell_type === 'code' ? "
        "(Array.isArray(c.source) ? c.source.join('') : c.source) : '')"
    )
    for index, source in enumerate(sources):
        if text in source:
            return index
    raise LookupError(f"no code cell contains {text!r}")


def errors(page: Page) -> list[str]:
    """Error outputs, from the model: in the page an error and stderr look alike.

    A cell with the tag raises-exception may raise.
    """
    return page.evaluate(
        f"""() => {_CONTENT}.model.toJSON().cells
            .flatMap((c, i) => (c.metadata.tags || []).includes("raises-exception") ? [] :
                (c.outputs || []).filter(o => o.output_type === "error")
                .map(o => `cell ${{i}}: ${{o.ename}}: ${{o.evalue}}`))"""
    )


def in_kernel(page: Page, expression: str) -> object:
    """The value of a Python expression in the notebook's kernel (it must be JSON).

    in_kernel(page, "explorer.angle") reads a trait; nothing is printed, no count goes up.
    """
    reply = page.evaluate(
        """code => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel
            .requestExecute({code: "", silent: true, user_expressions: {answer: code}}).done
            .then(reply => reply.content.user_expressions.answer)""",
        f"__import__('json').dumps({expression})",
    )
    if reply["status"] != "ok":
        raise RuntimeError(f"{expression}: {reply['ename']}: {reply['evalue']}")
    return json.loads(ast.literal_eval(reply["data"]["text/plain"]))


def occupy(page: Page, seconds: float) -> None:
    """Hold the whole kernel from now on, without waiting: what it is sent is answered later.

    A cell that sleeps would not do: JupyterLab's widgets are heard beside the running cell.
    """
    page.evaluate(
        """code => { window.jupyterapp.shell.currentWidget.sessionContext.session.kernel
            .requestExecute({code, silent: true}); }""",
        f"__import__('ctypes').PyDLL(None).usleep({round(1e6 * seconds)})",  # it keeps the GIL
    )


def live_widgets(page: Page, kind: str = "Explorer") -> int:
    """How many live models the kernel holds whose class (or a base of it) is called `kind`.

    Run an explorer's cell five times, and it should still be 1 ("Widget": 2, it has a layout).
    """
    instances = "__import__('ipywidgets').widgets.widget._instances"
    is_kind = f"any(base.__name__ == {kind!r} for base in type(w).__mro__)"
    return in_kernel(page, f"sum({is_kind} for w in list({instances}.values()))")


# --- looking --------------------------------------------------------------------------------------


def theme(page: Page, name: str) -> None:
    """Switch JupyterLab to its "light" or "dark" theme and wait until all of it shows.

    JupyterLab hides itself for a frame and fades a splash screen out: both must be over.
    """
    page.evaluate(
        "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})",
        THEMES[name],
    )
    page.wait_for_function(
        """theme => document.body.dataset.jpThemeName === theme && window.jupyterapp.shell.isVisible
            && !document.querySelector("#jupyterlab-splash, .jp-Splash")""",
        arg=THEMES[name],
    )
    next_frame(page)


def next_frame(page: Page) -> None:
    """Wait until what has been asked for so far is painted: one frame, and the start of another."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def sticking_out(what: Locator) -> list[str]:
    """The parts of an element that reach beyond its right edge."""
    return what.evaluate(
        """node => { const edge = node.getBoundingClientRect().right + 1;
            return [...node.querySelectorAll("*")].filter(part => part.checkVisibility()
                && part.getBoundingClientRect().right > edge)
                .map(part => part.outerHTML.slice(0, 90)); }"""
    )


def shot(what: Page | Locator, name: str) -> bytes:
    """A screenshot of a page or an element, and as test-results/browser/NAME.png."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    return what.screenshot(path=SHOTS / f"{name}.png")


def unlike(one: bytes, other: bytes) -> float:
    """The share of pixels of two screenshots that differ visibly; 1.0 if the sizes differ.

    Never compare their bytes: an antialiased edge that is painted again, alone or in a layer of its
    own, can come out 1 or 2 (of 255) off, and nobody can see it. On the first rows, JupyterLab's
    toolbar casts a shadow when it stands right above them.
    """
    a, b = (
        np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), np.int16)[4:] for png in (one, other)
    )
    return float((np.abs(a - b) > VISIBLE).any(-1).mean()) if a.shape == b.shape else 1.0


def still(what: Locator, name: str, patience: float = 15) -> bytes:
    """A screenshot once two in a row are alike, so that what was under way has settled."""
    last, end = shot(what, name), time.monotonic() + patience
    while time.monotonic() < end:
        what.page.wait_for_timeout(50)
        last, before = shot(what, name), last
        if unlike(last, before) == 0:
            break
    return last


def settle(page: Page) -> None:
    """Wait until the last key or click has reached the kernel and been answered.

    The explorers tell the kernel once the keys have rested, up to 300 ms later (`debouncedSet`).
    """
    page.wait_for_timeout(500)
    page.wait_for_function(
        "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'"
    )


VISIBLE, ALIKE = 12, 0.001  # of 255, in any channel; share of pixels


def both_themes(what: Locator, name: str) -> None:
    """In the dark theme it looks different, and back in the light one as before.

    Leaves NAME-light.png, NAME-dark.png and NAME-light-again.png in test-results/browser. The light
    theme must be on.
    """
    page = what.page
    # Changing the theme, JupyterLab may take the focus away, and with it a focus ring.
    page.evaluate("document.activeElement?.blur()")
    settle(page)
    light = still(what, f"{name}-light")
    theme(page, "dark")
    # Its ground at least is another one.
    eventually(lambda: unlike(shot(what, f"{name}-dark"), light) > 0.2, True)
    still(what, f"{name}-dark")
    theme(page, "light")
    eventually(lambda: unlike(shot(what, f"{name}-light-again"), light) <= ALIKE, True)


def slide(root: Locator, name: str, key: str, times: int = 1) -> Locator:
    """Press a key on the slider with this accessible name; the slider."""
    slider = root.get_by_role("slider", name=name, exact=True)
    slider.focus()
    for _ in range(times):
        slider.press(key)
    return slider


def eventually(found: Callable[[], object], wanted: object, patience: float = 20) -> None:
    """Wait until `found()` equals `wanted`: for what the browser tells the kernel, or the reverse.

    Instead of a fixed wait, which is too short on a busy machine and too long on any other.
    """
    end = time.monotonic() + patience
    while (value := found()) != wanted:
        if time.monotonic() > end:
            raise AssertionError(f"after {patience:g} s it is {value!r}, not {wanted!r}")
        time.sleep(0.05)
