// A window of block_size + 1 characters over a text (window_explorer.py).
const MARGIN = 6; // characters of the text shown on each side of the window
const STYLE = `
.d2g.window .strip { display: flex; align-items: center; margin: 3px 0; }
.d2g.window .name { width: 76px; flex: none; font-weight: 600; }
/* Every cell has its size, whatever is in it: a new letter moves nothing else. */
.d2g.window .cells { display: flex; margin-left: ${26 * MARGIN}px; }
.d2g.window .strip:first-child .cells { margin-left: 0; }
.d2g.window .cell { width: 24px; height: 24px; flex: none; margin: 1px; box-sizing: border-box; contain: strict;
  border: 2px solid transparent; border-radius: 3px; text-align: center;
  font: 14px/20px var(--jp-code-font-family, monospace); }
.d2g.window .in { background: var(--panel); }
.d2g.window .out { color: var(--quiet); }
.d2g.window .context { border-color: var(--blue); border-style: solid none; border-radius: 0; }
.d2g.window .target { border-color: var(--red); border-style: double; border-width: 4px; line-height: 16px; font-weight: 700; }
.d2g.window .id { font-size: 11px; line-height: 12px; color: var(--quiet); height: 16px; }
.d2g.window [role="listbox"] { margin-top: 8px; width: max-content; max-width: 100%; overflow-x: auto; }
.d2g.window [role="option"] .cells { min-width: calc(26px * var(--columns)); }
.d2g.window [role="option"] { display: flex; align-items: center; cursor: pointer; border-left: 4px solid transparent; margin-left: -4px; }
.d2g.window [role="option"][aria-selected="true"] { border-left-color: var(--focus); background: var(--panel); }
.d2g.window [aria-selected="true"] .in { background: var(--paper); }
.d2g.window .words { margin-left: 14px; white-space: pre; }
.d2g.window .says { min-height: 1.5em; margin-top: 8px; }
`;

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

  // Cells are made once and written to: a slider asks for a new picture at every pixel.
  const strip = (name) => h("div", { class: "strip" }, h("span", { class: "name" }, name), h("span", { class: "cells" }));
  const rows = Object.fromEntries(["stream", "x", "ids of x", "y", "ids of y"].map((name) => [name, strip(name)]));
  strips.append(...Object.values(rows));
  const option = (i) => h("div", { role: "option", onpointerenter: () => select(i), onclick: () => select(i) },
    h("span", { class: "name" }, `t = ${i}`), h("span", { class: "cells" }), h("span", { class: "words quiet" }));

  /** Bring a row's cells to `specs` ([token, kind, title]), touching only what differs. */
  function fill(row, specs) {
    const cells = row.querySelector(".cells");
    while (cells.childElementCount > specs.length) cells.lastChild.remove();
    while (cells.childElementCount < specs.length) cells.append(h("span", {}, ""));
    specs.forEach(([token, kind, title = ""], i) => {
      const span = cells.children[i], shown = visible(token), names = `cell ${kind}`;
      if (span.className !== names) span.className = names;
      if (span.textContent !== shown) span.textContent = shown;
      if (span.title !== title) span.title = title;
    });
  }

  function paint() {
    const { T, start, t } = view(), chunk = text.slice(start, start + T + 1);
    const kind = (column) => (column <= t ? "in context" : column === t + 1 ? "in target" : "in");
    // A change of block_size moves the last start that leaves a target for every input.
    startSlider.querySelector("input").max = N - T - 1;

    const stream = [];
    for (let column = -MARGIN; column <= T + MARGIN; column++) {
      const place = start + column;
      if (place < 0 || place >= N) stream.push(["", "blank"]);
      else stream.push([text[place], column < 0 || column > T ? "out" : kind(column), `place ${place}`]);
    }
    const tokens = (from, of) => chunk.slice(from, from + T).map((token, i) => [token, of(i), `id ${ids[start + from + i]}`]);
    const numbers = (from) => ids.slice(start + from, start + from + T).map((id) => [String(id), "id"]);
    fill(rows.stream, stream);
    fill(rows.x, tokens(0, (i) => (i <= t ? "in context" : "in")));
    fill(rows["ids of x"], numbers(0));
    fill(rows.y, tokens(1, (i) => (i === t ? "in target" : "in")));
    fill(rows["ids of y"], numbers(1));

    while (list.childElementCount > T) list.lastChild.remove();
    while (list.childElementCount < T) list.append(option(list.childElementCount));
    const name = model.model_id ?? "window";
    list.style.setProperty("--columns", T + 1);
    [...list.children].forEach((row, i) => {
      const next = visible(chunk[i + 1]);
      row.id = `${name}-example-${i}`;
      row.setAttribute("aria-selected", i === t);
      row.setAttribute("aria-label", `t = ${i}   “${visible(chunk.slice(0, i + 1).join(""))}” → “${next}”`);
      fill(row, chunk.slice(0, i + 2).map((token, c) => [token, i === t ? kind(c) : c > i ? "in target" : "in"]));
      row.lastChild.textContent = `after ${i + 1} token${i ? "s" : ""} comes “${next}”`;
    });
    list.setAttribute("aria-activedescendant", `${name}-example-${t}`);
    says.textContent = `Chunk of block_size + 1 = ${T + 1} tokens from ${start} to ${start + T}: ${T} example${T > 1 ? "s" : ""}. `
      + `Example t = ${t}: after “${visible(chunk.slice(0, t + 1).join(""))}” comes “${visible(chunk[t + 1])}” `
      + `(y[${t}] = ${ids[start + t + 1]}, the same as ${t + 1 < T ? `x[${t + 1}]` : `the token just after x`}). `
      + `Last possible start: ${N - T - 1} of ${N} characters.`;
  }

  const names = ["start", "block_size", "selected"].map((n) => `change:${n}`);
  names.forEach((n) => model.on(n, paint));
  node.append(
    h("style", {}, STYLE),
    h("div", { class: "row" }, startSlider, blockSlider),
    strips, list, says,
  );
  paint();
  return () => names.forEach((n) => model.off(n, paint));
}

export default { render };
