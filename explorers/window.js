// A window of block_size + 1 characters over a text (window_explorer.py).
// All cells are drawn on one canvas: hundreds of elements would take the browser 10 ms a step. Over
// it lie the same rows as text that cannot be seen: to point at, to copy, and for screen readers.
const MARGIN = 6; // characters of the text shown on each side of the window
const NAME = 76, PITCH = 26, LEFT = NAME + MARGIN * PITCH, GAP = 8;
const STRIPS = [["stream", 29], ["x", 29], ["ids of x", 21], ["y", 29], ["ids of y", 21]]; // heights
const LIST = GAP + STRIPS.reduce((sum, [, height]) => sum + height, 0); // where the examples begin
const STYLE = `
.d2g.window .scroll { overflow-x: auto; padding: 4px 2px; margin: 0 -2px; }
.d2g.window .board { position: relative; }
.d2g.window canvas { position: absolute; inset: 0; max-width: none; pointer-events: none; }
.d2g.window .strip, .d2g.window [role="option"] { position: relative; display: flex; align-items: center; white-space: pre; }
.d2g.window .name { width: ${NAME}px; flex: none; font-weight: 600; }
.d2g.window .cells { flex: none; margin-left: ${MARGIN * PITCH}px; overflow: hidden;
  font: 14px/${PITCH}px var(--jp-code-font-family, monospace); letter-spacing: calc(${PITCH}px - 1ch); text-indent: calc(${PITCH / 2}px - 0.5ch); }
.d2g.window .strip:first-child .cells { margin-left: 0; }
.d2g.window .strip .ids { font-size: 11px; letter-spacing: normal; text-indent: 0; }
.d2g.window [role="listbox"] { margin-top: ${GAP}px; outline-offset: -1px; }
.d2g.window [role="option"] { height: ${PITCH}px; cursor: pointer; }
.d2g.window [role="option"] .name { box-sizing: border-box; padding-left: 9px; }
.d2g.window .words { margin-left: 14px; }
.d2g.window .says { min-height: 1.5em; margin-top: 8px; }
`;
let windows = 0; // how many there were: the ids of their rows must differ

function render({ model, el }) {
  const node = root(el, "window", "Window explorer: the examples in one chunk of text");
  const text = [...model.get("text")], ids = model.get("ids"), N = text.length, me = `window-${++windows}`;

  /** (start, T, t) brought into range, as in window_explorer.py. */
  const view = () => {
    const T = Math.min(Math.max(model.get("block_size"), 1), model.get("largest_block"));
    const start = Math.min(Math.max(model.get("start"), 0), N - T - 1);
    return { T, start, t: Math.min(Math.max(model.get("selected"), 0), T - 1), chunk: text.slice(start, start + T + 1) };
  };
  const select = (t) => { model.set("selected", Math.min(Math.max(t, 0), view().T - 1)); model.save_changes(); };

  const startSlider = slider(model, "start", { label: "start", min: 0, max: N - 2 });
  const blockSlider = slider(model, "block_size", { label: "block_size", min: 1, max: model.get("largest_block") });
  const drawing = h("canvas", { "aria-hidden": "true" });
  const ghost = (kind) => h("span", { class: `ghost ${kind}` });
  const rows = STRIPS.map(([name, height]) => h("div", { class: "strip", "data-row": name, style: `height:${height}px` },
    h("span", { class: "name" }, name), ghost(name.startsWith("ids") ? "cells ids" : "cells")));
  const strips = h("div", { class: "strips" }, ...rows);
  const list = h("div", { role: "listbox", tabindex: 0, "aria-label": "examples: context and target", class: "examples" });
  const board = h("div", { class: "board" }, drawing, strips, list);
  const says = h("div", { class: "says", role: "status" });
  const option = (i) => h("div", { role: "option", "aria-selected": "false", id: `${me}-example-${i}`, onpointerenter: () => select(i), onclick: () => select(i) },
    h("span", { class: "name" }, `t = ${i}`), ghost("cells"), ghost("words"));

  list.addEventListener("keydown", (event) => {
    const { t, T } = view();
    const to = { ArrowDown: t + 1, ArrowUp: t - 1, Home: 0, End: T - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select(to);
  });

  // What stands over a cell when the pointer rests on it.
  rows.forEach((row, r) => row.addEventListener("pointermove", (event) => {
    const { start, T } = view(), name = STRIPS[r][0], shift = name.endsWith("y") ? 1 : 0;
    const column = Math.floor((event.clientX - row.getBoundingClientRect().left - LEFT) / PITCH), place = start + column + shift;
    const inside = name === "stream" ? column >= -MARGIN && column <= T + MARGIN && place in text : column >= 0 && column < T;
    row.title = !inside ? "" : name === "stream" ? `place ${place}` : `id ${ids[place]}`;
  }));

  const after = (i) => `after ${i + 1} token${i ? "s" : ""} comes `;
  const words = ({ chunk }, i) => `${after(i)}“${visible(chunk[i + 1])}”`;
  const shown = (tokens) => visible(tokens.join(""));

  /** Cells by kind, drawn together: as many changes of colour as kinds, not as cells. */
  function draw({ T, start, t, chunk }) {
    const ink = Object.fromEntries(["ink", "quiet", "paper", "panel", "focus", "blue", "red"].map((name) => [name, colour(node, name)]));
    const code = getComputedStyle(rows[0].lastChild).fontFamily, ui = getComputedStyle(node).fontFamily;
    const width = LEFT + Math.max((T + 1 + MARGIN) * PITCH, (T + 1) * PITCH + 210);
    const pen = fit(drawing, width, LIST + T * PITCH);
    board.style.width = `${width}px`;
    pen.textAlign = "center";
    const letters = { plain: [], quiet: [], bold: [], small: [] }, grounds = [], light = [], context = [], target = [];

    /** One cell in column `c` (0: the window's first) of the row whose middle is at y. */
    function cell(c, y, token, kind, lit = false) {
      const x = LEFT + c * PITCH + 1;
      if (kind !== "quiet" && kind !== "small") (lit ? light : grounds).push([x, y - 12]);
      if (kind === "context") context.push([x, y - 12]);
      if (kind === "target") target.push([x, y - 12]);
      letters[{ target: "bold", quiet: "quiet", small: "small" }[kind] ?? "plain"].push([visible(token), x + 12, y + (kind === "small" ? 4 : 5)]);
    }
    const middles = STRIPS.map(([, height], r) => STRIPS.slice(0, r).reduce((sum, [, before]) => sum + before, 0) + height / 2 - 0.5);
    const kind = (c) => (c <= t ? "context" : c === t + 1 ? "target" : "in");
    for (let c = -MARGIN; c <= T + MARGIN; c++) {
      if (start + c in text) cell(c, middles[0], text[start + c], c < 0 || c > T ? "quiet" : kind(c));
    }
    for (let i = 0; i < T; i++) {
      cell(i, middles[1], chunk[i], i <= t ? "context" : "in");
      cell(i, middles[2], String(ids[start + i]), "small");
      cell(i, middles[3], chunk[i + 1], i === t ? "target" : "in");
      cell(i, middles[4], String(ids[start + i + 1]), "small");
      for (let c = 0; c <= i + 1; c++) cell(c, LIST + (i + 0.5) * PITCH, chunk[c], c > i ? "target" : i === t ? "context" : "in", i === t);
    }

    pen.fillStyle = ink.panel;
    pen.fillRect(0, LIST + t * PITCH, width, PITCH);
    for (const [cells, fill] of [[grounds, ink.panel], [light, ink.paper]]) {
      pen.fillStyle = fill;
      for (const [x, y] of cells) pen.fillRect(x, y, 24, 24);
    }
    pen.fillStyle = ink.focus;
    pen.fillRect(0, LIST + t * PITCH, 4, PITCH);
    pen.fillStyle = ink.blue;
    for (const [x, y] of context) { pen.fillRect(x, y, 24, 2); pen.fillRect(x, y + 22, 24, 2); }
    pen.strokeStyle = ink.red; // a double frame: it differs by more than its colour
    pen.lineWidth = 1;
    for (const [x, y] of target) { pen.strokeRect(x + 0.5, y + 0.5, 23, 23); pen.strokeRect(x + 3.5, y + 3.5, 17, 17); }
    for (const [look, font, fill] of [["plain", "14px", ink.ink], ["bold", "bold 14px", ink.ink], ["quiet", "14px", ink.quiet], ["small", "11px", ink.quiet]]) {
      pen.font = `${font} ${code}`;
      pen.fillStyle = fill;
      for (const [letter, x, y] of letters[look]) pen.fillText(letter, x, y);
    }
    pen.font = `13px ${ui}`;
    pen.textAlign = "left";
    for (let i = 0; i < T; i++) pen.fillText(words({ chunk }, i), LEFT + (T + 1) * PITCH + 14, LIST + (i + 0.5) * PITCH + 3);
  }

  const spell = onceQuiet(() => {
    const now = view(), { T, start, chunk } = now, blanks = " ".repeat(Math.max(0, MARGIN - start));
    const numbers = (from) => ids.slice(from, from + T).join(" ");
    [blanks + shown(text.slice(Math.max(0, start - MARGIN), start + T + MARGIN + 1)), shown(chunk.slice(0, T)), numbers(start),
      shown(chunk.slice(1)), numbers(start + 1)].forEach((line, r) => write(rows[r].lastChild, line));
    [...list.children].forEach((row, i) => {
      row.setAttribute("aria-label", `t = ${i}   “${shown(chunk.slice(0, i + 1))}” → “${visible(chunk[i + 1])}”`);
      row.children[1].style.width = `${(T + 1) * PITCH}px`;
      write(row.children[1], shown(chunk.slice(0, i + 2)));
      write(row.children[2], words(now, i));
    });
  });

  const paint = onceAFrame(() => {
    const now = view(), { T, start, t, chunk } = now;
    // A change of block_size moves the last start that leaves a target for every input.
    const input = startSlider.querySelector("input");
    if (Number(input.max) !== N - T - 1) input.max = N - T - 1;
    while (list.childElementCount > T) list.lastChild.remove();
    while (list.childElementCount < T) list.append(option(list.childElementCount));
    if (list.getAttribute("aria-activedescendant") !== `${me}-example-${t}`) {
      [...list.children].forEach((row, i) => row.setAttribute("aria-selected", i === t));
      list.setAttribute("aria-activedescendant", `${me}-example-${t}`);
    }
    write(says, `Chunk of block_size + 1 = ${T + 1} tokens from ${start} to ${start + T}: ${T} example${T > 1 ? "s" : ""}. `
      + `Example t = ${t}: after “${shown(chunk.slice(0, t + 1))}” comes “${visible(chunk[t + 1])}” `
      + `(y[${t}] = ${ids[start + t + 1]}, the same as ${t + 1 < T ? `x[${t + 1}]` : `the token just after x`}). `
      + `Last possible start: ${N - T - 1} of ${N} characters.`);
    draw(now);
    spell();
  });

  const names = ["start", "block_size", "selected"].map((n) => `change:${n}`);
  names.forEach((n) => model.on(n, paint));
  node.append(h("style", {}, STYLE), h("div", { class: "row" }, startSlider, blockSlider),
    h("div", { class: "scroll" }, board), says);
  paint();
  const undo = onTheme(paint);
  return () => { undo(); spell.stop(); names.forEach((n) => model.off(n, paint)); };
}

export default live(render);
