"""An explorer on a page of its own, with Python behind it: no JupyterLab, no kernel.

    shown = Bare(page).show(TwoVectors(a=(4, 1), b=(2, 3)))
    shown.keys("slider", "b₁", "ArrowRight")
    shown.has(bx=2.1)

The widget lives in the process of the test. Its messages to the page, and the page's to it, are
those that a kernel would carry, so that what is tested is all that the explorer is made of.
"""

import base64
import json
from collections.abc import Callable
from typing import Any

from ipywidgets.widgets.widget import _remove_buffers
from lab import eventually, next_frame
from playwright.sync_api import Locator, Page

from explorers import Explorer

# What anywidget gives an explorer as its model; `hear` is what Python tells it.
_PAGE = """async ([code, css, message]) => {
    const traits = {}, told = [];
    let listeners = [], changes = {}, waiting = 0;
    const emit = (event, ...said) =>
        listeners.filter(([name]) => name === event).forEach(([, call]) => call(...said));
    const bytes = (base64) => {
        const text = atob(base64), all = new Uint8Array(text.length);
        for (let n = 0; n < text.length; n++) all[n] = text.charCodeAt(n);
        return new DataView(all.buffer);
    };
    const learn = ({ state, paths, buffers }) => {
        paths.forEach((path, n) => {
            path.slice(0, -1).reduce((at, key) => at[key], state)[path.at(-1)] = bytes(buffers[n]);
        });
        const equal = (a, b) =>
            a === b || (!ArrayBuffer.isView(a) && JSON.stringify(a) === JSON.stringify(b));
        const news = Object.keys(state).filter((name) => !equal(traits[name], state[name]));
        Object.assign(traits, state);
        for (const name of news) emit(`change:${name}`, model, state[name]);
        return news;
    };
    window.hear = ({ state, content, ...rest }) =>
        state ? learn({ state, ...rest }) : emit("msg:custom", content, rest.buffers.map(bytes));
    const tell = async (message, callbacks) => {
        waiting += 1;
        for (const answer of await window.tellPython(message)) window.hear(answer);
        callbacks?.iopub?.status({ content: { execution_state: "idle" } });
        waiting -= 1;
    };
    window.isSettled = () => waiting === 0 && !Object.keys(changes).length;
    const model = {
        get: (name) => traits[name],
        set(name, value) {
            for (const changed of learn({ state: { [name]: value }, paths: [] }))
                changes[changed] = value;
        },
        on: (names, call) => names.split(" ").forEach((name) => listeners.push([name, call])),
        off(names, call) {
            listeners = listeners.filter(([name, one]) =>
                (names && !names.split(" ").includes(name)) || (call && call !== one));
        },
        send: (content) => { tell({ content }); },
        save_changes(callbacks) {
            const state = changes;
            changes = {};
            if (Object.keys(state).length) tell({ state }, callbacks);
        },
    };
    learn(message);
    document.body.append(Object.assign(document.createElement("style"), { textContent: css }));
    const text = encodeURIComponent(`${code}\n//# sourceURL=explorer.js`);
    const { default: widget } = await import(`data:text/javascript;charset=utf-8,${text}`);
    widget.render({ model, el: document.body.appendChild(document.createElement("div")) });
}"""
# All that is drawn: pictures, and bars that are boxes.
_DRAWN = """node => [...node.querySelectorAll("canvas, svg, .bar, .piece, .drawing, [role=option]")]
    .filter((part) => part.checkVisibility())
    .map((part) => part.toDataURL?.() ?? part.outerHTML).join()"""


class Bare:
    """A page for one explorer after the other."""

    def __init__(self, page: Page):
        self.page, self._explorer = page, None
        self._answers: list[dict[str, Any]] | None = None
        page.expose_function("tellPython", self._hear)

    def show(self, explorer: Explorer, ground: str = "<body>") -> "Shown":
        """The explorer on a fresh page; ground: its HTML."""
        if self._explorer not in (None, explorer):
            self._explorer.close()
        self._explorer = explorer
        self.page.goto("about:blank")
        self.page.set_content(f"<!doctype html>{ground}")
        names = [name for name in explorer.keys if name[0] != "_" and name != "layout"]
        state = _message(state=explorer.get_state(names))
        explorer.comm.publish_msg = self._tell  # type: ignore[method-assign]
        explorer.comm.kernel = self  # where ipykernel is imported, ipywidgets looks for one
        self.page.evaluate(_PAGE, [explorer._esm, explorer._css, state])
        next_frame(self.page)
        return Shown(self.page.locator(".d2g"), explorer)

    def _hear(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """What the page says; the widget's answers."""
        assert self._explorer is not None
        self._answers = answers = []
        try:
            if "state" in message:
                self._explorer.set_state(message["state"])
            else:
                self._explorer._handle_custom_msg(message["content"], [])
        finally:
            self._answers = None
        return answers

    def _tell(self, kind: str, data: Any = None, buffers: Any = None, **_: Any) -> None:
        """What the widget says."""
        if kind != "comm_msg" or data["method"] == "echo_update":
            return
        known = {key: data[key] for key in ("state", "content") if key in data}
        message = _message(**known, buffers=buffers or [], paths=data.get("buffer_paths", []))
        if self._answers is not None:
            self._answers.append(message)
        else:
            self.page.evaluate("message => { window.hear(message); }", message)


def _message(
    state: Any = None, content: Any = None, buffers: Any = (), paths: Any = ()
) -> dict[str, Any]:
    """A message as the page reads it: bytes as base64."""
    if state is not None and not buffers:
        state, paths, buffers = _remove_buffers(state)
    coded = [base64.b64encode(buffer).decode("ascii") for buffer in buffers]
    return json.loads(json.dumps({"content": content, "buffers": coded, "paths": paths,
                                  "state": state}))  # fmt: skip


class Shown:
    """An explorer: in the page as `node`, in Python as `python`."""

    def __init__(self, node: Locator, python: Any):
        self.node, self.python, self.page = node, python, node.page

    def has(self, **traits: object) -> None:
        """Wait until Python has these traits."""

        def found() -> dict[str, object]:
            self.page.evaluate("0")  # only now does Playwright hear what the page says
            return {name: getattr(self.python, name) for name in traits}

        eventually(found, traits)

    def until(self, found: Callable[[], object], wanted: object = True) -> None:
        """Wait until what is found, in the page or in Python, is what is wanted."""
        eventually(lambda: (self.page.evaluate("0"), found())[1], wanted)

    def press(self, name: str) -> None:
        """Click the button with this name."""
        self.node.get_by_role("button", name=name, exact=True).click()

    def keys(self, role: Any, name: str, keys: str) -> Locator:
        """Press keys ("Home ArrowRight*3") on a control; the control."""
        control = self.node.get_by_role(role, name=name).first
        press_keys(control, keys)
        return control

    def settled(self) -> None:
        """Wait until what was done has reached Python, been answered, and been painted."""
        self.page.wait_for_function("window.isSettled()")
        next_frame(self.page)

    def changes(self, action: Callable[[], object]) -> None:
        """Do it, and wait until something else is drawn."""
        self.settled()
        before = self.node.evaluate(_DRAWN)
        action()
        self.until(lambda: self.node.evaluate(_DRAWN) != before)


def press_keys(control: Locator, keys: str) -> None:
    """Put the focus there and press keys: "Home ArrowRight*3"."""
    control.focus()
    for key in keys.split():
        key, _, times = key.partition("*")
        for _ in range(int(times or 1)):
            control.page.keyboard.press(key)
