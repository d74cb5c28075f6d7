// A window of block_size + 1 characters over a text (window_explorer.py).
const STYLE = `
.d2g.window .strip { display: flex; align-items: center; margin: 3px 0; }
.d2g.window .name { width: 76px; flex: none; font-weight: 600; }
.d2g.window .cell { width: 24px; height: 24px; flex: none; margin: 1px; box-sizing: border-box;
  border: 2px solid transparent; border-radius: 3px; display: inline-flex; align-items: center;
  justify-content: center; font: 14px var(--jp-code-font-family, monospace); }
.d2g.window .in { background: var(--panel); }
.d2g.window .out { color: var(--quiet); }
.d2g.window .context { border-color: var(--blue); border-style: solid none; border-radius: 0; }
.d2g.window .target { border-color: var(--red); border-style: double; border-width: 4px; font-weight: 700; }
.d2g.window .id { font-size: 11px; color: var(--quiet); height: 16px; }
.d2g.window [role="listbox"] { margin-top: 8px; width: max-content; max-width: 100%; overflow-x: auto; }
.d2g.window [role="option"] { display: flex; align-items: center; cursor: pointer; border-left: 4px solid transparent; margin-left: -4px; }
.d2g.window [role="option"][aria-selected="true"] { border-left-color: var(--focus); background: var(--panel); }
.d2g.window [aria-selected="true"] .in { background: var(--paper); }
.d2g.window .words { margin-left: 14px; white-space: pre; }
.d2g.window .says { min-height: 1.5em; margin-top: 8px; }
`;
const MARGIN = 6;

function render({ model, el }) {
  const node = root(el, "window", "Window explorer: the examples in one chunk of text");
  const text = [...model.get("text")], ids = model.get("ids"), N = text.length;

  /** (start, T, t) brought into range, as in window_explorer.py. */
  const view = () => {
    const T = Math.min(Math.max(model.get("block_size"), 1), model.get("largest_block"));
    const start = Math.min(Math.max(model.get("start"), 0), N - T - 1);
    return { T, start, t: Math.min(Math.max(model.get("selected"), 0), T - 1) };
  };
  const select = (t) => { model.set("selected", Math.min(Math.max(t, 0), view().T - 1)); model.save_changes(); };

  const startSlider = slider(model, "start", { label: "start", min: 0, max: N - 2 });
  const blockSlider = slider(model, "block_size", { label: "block_size", min: 1, max: model.get("largest_block") });
  const strips = h("div", { class: "strips" });
  const list = h("div", { role: "listbox", tabindex: 0, "aria-label": "examples: context and target", class: "examples" });
  const says = h("div", { class: "says", role: "status" });

  list.addEventListener("keydown", (event) => {
    const { t, T } = view();
    const to = { ArrowDown: t + 1, ArrowUp: t - 1, Home: 0, End: T - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select(to);
  });

  const cell = (token, kind, title) => h("span", { class: `cell ${kind}`, title }, visible(token));
  const strip = (name, ...cells) => h("div", { class: "strip" }, h("span", { class: "name" }, name), ...cells);
  const blank = () => h("span", { class: "cell" });

  function paint() {
    const { T, start, t } = view(), chunk = text.slice(start, start + T + 1);
    const kind = (column) => (column <= t ? "in context" : column === t + 1 ? "in target" : "in");
    // A change of block_size moves the last start that leaves a target for every input.
    startSlider.querySelector("input").max = N - T - 1;

    const stream = [];
    for (let column = -MARGIN; column <= T + MARGIN; column++) {
      const place = start + column;
      if (place < 0 || place >= N) stream.push(blank());
      else stream.push(cell(text[place], column < 0 || column > T ? "out" : kind(column), `place ${place}`));
    }
    const padding = () => Array.from({ length: MARGIN }, blank);
    const tokens = (from, of) => chunk.slice(from, from + T).map((token, i) => cell(token, of(i), `id ${ids[start + from + i]}`));
    const numbers = (from) => chunk.slice(from, from + T).map((_, i) => h("span", { class: "cell id" }, String(ids[start + from + i])));
    strips.replaceChildren(
      strip("stream", ...stream),
      strip("x", ...padding(), ...tokens(0, (i) => (i <= t ? "in context" : "in"))),
      strip("ids of x", ...padding(), ...numbers(0)),
      strip("y", ...padding(), ...tokens(1, (i) => (i === t ? "in target" : "in"))),
      strip("ids of y", ...padding(), ...numbers(1)),
    );

    // Keep the rows that exist: replacing one under the pointer would lose the hover.
    while (list.childElementCount > T) list.lastChild.remove();
    while (list.childElementCount < T) {
      const i = list.childElementCount;
      list.append(h("div", { role: "option", onpointerenter: () => select(i), onclick: () => select(i) }));
    }
    const name = model.model_id ?? "window";
    [...list.children].forEach((option, i) => {
      option.id = `${name}-example-${i}`;
      option.setAttribute("aria-selected", i === t);
      const words = `t = ${i}   “${visible(chunk.slice(0, i + 1).join(""))}” → “${visible(chunk[i + 1])}”`;
      option.setAttribute("aria-label", words);
      option.replaceChildren(
        h("span", { class: "name" }, `t = ${i}`),
        ...padding(),  // each example stands below its place in x
        ...Array.from({ length: T + 1 }, (_, c) => (c > i + 1 ? blank() : cell(chunk[c], i !== t ? (c > i ? "in target" : "in") : kind(c)))),
        h("span", { class: "words quiet" }, `after ${i + 1} token${i ? "s" : ""} comes “${visible(chunk[i + 1])}”`),
      );
    });
    list.setAttribute("aria-activedescendant", `${name}-example-${t}`);
    says.textContent = `Chunk of block_size + 1 = ${T + 1} tokens from ${start} to ${start + T}: ${T} example${T > 1 ? "s" : ""}. `
      + `Example t = ${t}: after “${visible(chunk.slice(0, t + 1).join(""))}” comes “${visible(chunk[t + 1])}” `
      + `(y[${t}] = ${ids[start + t + 1]}, the same as ${t + 1 < T ? `x[${t + 1}]` : `the token just after x`}). `
      + `Last possible start: ${N - T - 1} of ${N} characters.`;
  }

  const later = onceAFrame(paint);
  const names = ["start", "block_size", "selected"].map((n) => `change:${n}`);
  names.forEach((n) => model.on(n, later));
  node.append(
    h("style", {}, STYLE),
    h("div", { class: "row" }, startSlider, blockSlider),
    strips, list, says,
  );
  paint();
  return () => names.forEach((n) => model.off(n, later));
}

export default { render };
