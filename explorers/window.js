// A window of block_size + 1 characters over a text (window.py).
// All cells are drawn on one canvas: hundreds of elements would take the browser 10 ms a step. Over
// it lie the same rows as text that cannot be seen: to point at, to copy, and for screen readers.
const ROW = 19;
const CELL = ROW - 2;
const GAP = 6; // heights
/** @type {[string, number][]} */
const STRIPS = [
  ["text", 22],
  ["x", 22],
  ["ids of x", 16],
  ["y", 22],
  ["ids of y", 16],
];
const LIST = GAP + STRIPS.reduce((sum, [, height]) => sum + height, 0); // where the examples begin
/** Widths, on a phone, with some room and with much: of the names of the rows, from cell to cell, and of
    the words behind an example; how many characters of the text are shown beside the window; letters. */
const SIZES = [
  { name: 60, pitch: 16, words: 0, margin: 3, letter: 12 },
  { name: 64, pitch: 16, words: 182, margin: 4, letter: 12 },
  { name: 70, pitch: 24, words: 200, margin: 6, letter: 14 },
];
const STYLE = `
.d2g.window .scroll { overflow-x: auto; padding: 4px 2px; margin: 0 -2px; }
.d2g.window .board { position: relative; }
.d2g.window canvas { position: absolute; inset: 0; max-width: none; pointer-events: none; }
.d2g.window .strip, .d2g.window [role="option"] { position: relative; display: flex; align-items: center; white-space: pre; }
.d2g.window .name { width: var(--name); flex: none; font-weight: 600; }
.d2g.window .cells { flex: none; margin-left: calc(var(--margin) * var(--pitch)); overflow: hidden;
  font: var(--letter)/${ROW}px var(--jp-code-font-family, monospace); letter-spacing: calc(var(--pitch) - 1ch); text-indent: calc(var(--pitch) / 2 - 0.5ch); }
.d2g.window .strip:first-child .cells { margin-left: 0; }
.d2g.window .strip .ids { font-size: 11px; letter-spacing: normal; text-indent: 0; }
.d2g.window [role="listbox"] { margin-top: ${GAP}px; outline-offset: -1px; }
.d2g.window [role="option"] { overflow: hidden; height: ${ROW}px; cursor: pointer; }
.d2g.window [role="option"] .name { box-sizing: border-box; padding-left: 9px; }
.d2g.window .words { margin-left: 14px; font-size: 12px; }
.d2g.window .says { min-height: 4.35em; margin-top: 4px; }
@container explorer (min-width: 760px) { .d2g.window .says { min-height: 2.9em; } }
`;
let windows = 0; // how many there were: the ids of their rows must differ

function render({ model, el }) {
  const node = root(el, "window", "Window explorer: the examples in one chunk of text");
  const text = [...model.get("text")];
  const ids = model.get("ids");
  const N = text.length;
  const me = `window-${++windows}`;
  let at = SIZES[0];

  /** (start, T, t) brought into range, as in window.py. */
  const view = () => {
    const T = Math.min(Math.max(model.get("block_size"), 1), model.get("largest_block"));
    const start = Math.min(Math.max(model.get("start"), 0), N - T - 1);
    return {
      T,
      start,
      t: Math.min(Math.max(model.get("selected"), 0), T - 1),
      chunk: text.slice(start, start + T + 1),
    };
  };
  const select = (t) => {
    model.set("selected", Math.min(Math.max(t, 0), view().T - 1));
    model.save_changes();
  };

  const startSlider = slider(model, "start", { label: "start", min: 0, max: N - 2 });
  const blockSlider = slider(model, "block_size", {
    label: "block_size",
    min: 1,
    max: model.get("largest_block"),
  });
  const drawing = h("canvas", { "aria-hidden": "true" });
  const ghost = (kind) => h("span", { class: `ghost ${kind}` });
  const rows = STRIPS.map(([name, height]) =>
    h(
      "div",
      { class: "strip", "data-row": name, style: `height:${height}px` },
      h("span", { class: "name" }, name),
      ghost(name.startsWith("ids") ? "cells ids" : "cells"),
    ),
  );
  const strips = h("div", { class: "strips" }, ...rows);
  const list = h("div", {
    role: "listbox",
    tabindex: 0,
    "data-entry": "",
    "aria-label": "examples: context and target",
    class: "examples",
  });
  const board = h("div", { class: "board" }, drawing, strips, list);
  const says = h("div", { class: "says", role: "status" });
  const option = (i) =>
    h(
      "div",
      {
        role: "option",
        "aria-selected": "false",
        id: `${me}-example-${i}`,
        onpointerenter: () => select(i),
        onclick: () => select(i),
      },
      h("span", { class: "name" }, `t = ${i}`),
      ghost("cells"),
      ghost("words"),
    );

  list.addEventListener("keydown", (event) => {
    const { t, T } = view();
    const to = { ArrowDown: t + 1, ArrowUp: t - 1, Home: 0, End: T - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select(to);
  });

  const left = () => at.name + at.margin * at.pitch; // where the window begins

  // What stands over a cell when the pointer rests on it.
  rows.forEach((row, r) =>
    row.addEventListener("pointermove", (event) => {
      const { start, T } = view();
      const name = STRIPS[r][0];
      const shift = name.endsWith("y") ? 1 : 0;
      const column = Math.floor(
        (event.clientX - row.getBoundingClientRect().left - left()) / at.pitch,
      );
      const place = start + column + shift;
      const inside =
        name === "text"
          ? column >= -at.margin && column <= T + at.margin && place in text
          : column >= 0 && column < T;
      row.title = !inside ? "" : name === "text" ? `position ${place}` : `id ${ids[place]}`;
    }),
  );

  const after = (i) => `after ${i + 1} token${i ? "s" : ""} comes `;
  const words = ({ chunk }, i) => `${after(i)}“${visible(chunk[i + 1])}”`;
  const shown = (tokens) => visible(tokens.join(""));

  /** Cells by kind, drawn together: as many changes of colour as kinds, not as cells. */
  function draw({ T, start, t, chunk }) {
    const ink = Object.fromEntries(
      ["ink", "quiet", "paper", "panel", "focus", "blue", "red"].map((name) => [
        name,
        cssColor(node, name),
      ]),
    );
    const code = getComputedStyle(rows[0].lastChild).fontFamily;
    const ui = getComputedStyle(node).fontFamily;
    const { pitch, margin, letter } = at;
    const wide = pitch - 2;
    const edge = left();
    const width = edge + (T + 1) * pitch + Math.max(margin * pitch, at.words);
    const ctx = fit(drawing, width, LIST + T * ROW);
    board.style.width = `${width}px`;
    ctx.textAlign = "center";
    const letters = { plain: [], quiet: [], bold: [], small: [] };
    const grounds = [];
    const light = [];
    const context = [];
    const target = [];

    /** One cell in column `c` (0: the window's first) of the row whose middle is at y. */
    function cell(c, y, token, kind, lit = false) {
      const x = edge + c * pitch + 1;
      const top = y - CELL / 2;
      if (kind !== "quiet" && kind !== "small") (lit ? light : grounds).push([x, top]);
      if (kind === "context") context.push([x, top]);
      if (kind === "target") target.push([x, top]);
      letters[{ target: "bold", quiet: "quiet", small: "small" }[kind] ?? "plain"].push([
        visible(token),
        x + wide / 2,
        y + (kind === "small" ? 4 : 5),
      ]);
    }
    // half a pixel up: sharp edges
    const middles = STRIPS.map(
      ([, height], r) =>
        STRIPS.slice(0, r).reduce((sum, [, before]) => sum + before, 0) + height / 2 - 0.5,
    );
    const kind = (c) => (c <= t ? "context" : c === t + 1 ? "target" : "in");
    for (let c = -margin; c <= T + margin; c++) {
      if (start + c in text)
        cell(c, middles[0], text[start + c], c < 0 || c > T ? "quiet" : kind(c));
    }
    for (let i = 0; i < T; i++) {
      cell(i, middles[1], chunk[i], i <= t ? "context" : "in");
      cell(i, middles[2], String(ids[start + i]), "small");
      cell(i, middles[3], chunk[i + 1], i === t ? "target" : "in");
      cell(i, middles[4], String(ids[start + i + 1]), "small");
      for (let c = 0; c <= i + 1; c++)
        cell(
          c,
          LIST + (i + 0.5) * ROW,
          chunk[c],
          c > i ? "target" : i === t ? "context" : "in",
          i === t,
        );
    }

    ctx.fillStyle = ink.panel;
    ctx.fillRect(0, LIST + t * ROW, width, ROW);
    for (const [cells, fill] of [
      [grounds, ink.panel],
      [light, ink.paper],
    ]) {
      ctx.fillStyle = fill;
      for (const [x, y] of cells) ctx.fillRect(x, y, wide, CELL);
    }
    ctx.fillStyle = ink.focus;
    ctx.fillRect(0, LIST + t * ROW, 4, ROW);
    ctx.fillStyle = ink.blue;
    for (const [x, y] of context) {
      ctx.fillRect(x, y, wide, 2);
      ctx.fillRect(x, y + CELL - 2, wide, 2);
    }
    ctx.strokeStyle = ink.red; // a double frame: it differs by more than its colour
    ctx.lineWidth = 1;
    for (const [x, y] of target) {
      ctx.strokeRect(x + 0.5, y + 0.5, wide - 1, CELL - 1);
      ctx.strokeRect(x + 2.5, y + 2.5, wide - 5, CELL - 5);
    }
    for (const [look, font, fill] of [
      ["plain", `${letter}px`, ink.ink],
      ["bold", `bold ${letter}px`, ink.ink],
      ["quiet", `${letter}px`, ink.quiet],
      ["small", "11px", ink.quiet],
    ]) {
      ctx.font = `${font} ${code}`;
      ctx.fillStyle = fill;
      for (const [sign, x, y] of letters[look]) ctx.fillText(sign, x, y, wide);
    }
    ctx.font = `12px ${ui}`;
    ctx.textAlign = "left";
    for (let i = 0; i < T; i++) {
      ctx.fillStyle = i === t ? ink.ink : ink.quiet;
      if (at.words)
        ctx.fillText(words({ chunk }, i), edge + (T + 1) * pitch + 14, LIST + (i + 0.5) * ROW + 4);
    }
  }

  const spell = debounce(() => {
    const now = view();
    const { T, start, chunk } = now;
    const blanks = " ".repeat(Math.max(0, at.margin - start));
    const numbers = (from) => ids.slice(from, from + T).join(" ");
    [
      blanks + shown(text.slice(Math.max(0, start - at.margin), start + T + at.margin + 1)),
      shown(chunk.slice(0, T)),
      numbers(start),
      shown(chunk.slice(1)),
      numbers(start + 1),
    ].forEach((line, r) => setText(rows[r].lastChild, line));
    [...list.children].forEach((row, i) => {
      row.setAttribute(
        "aria-label",
        `t = ${i}   “${shown(chunk.slice(0, i + 1))}” → “${visible(chunk[i + 1])}”`,
      );
      row.children[1].style.width = `${(T + 1) * at.pitch}px`;
      setText(row.children[1], shown(chunk.slice(0, i + 2)));
      setText(row.children[2], words(now, i));
    });
  });

  const paint = throttleToFrame(() => {
    const now = view();
    const { T, start, t, chunk } = now;
    // A change of block_size moves the last start that leaves a target for every input.
    const input = startSlider.querySelector("input");
    if (Number(input.max) !== N - T - 1) input.max = N - T - 1;
    while (list.childElementCount > T) list.lastChild.remove();
    while (list.childElementCount < T) list.append(option(list.childElementCount));
    if (list.getAttribute("aria-activedescendant") !== `${me}-example-${t}`) {
      [...list.children].forEach((row, i) => row.setAttribute("aria-selected", i === t));
      list.setAttribute("aria-activedescendant", `${me}-example-${t}`);
    }
    setText(
      says,
      `Chunk of block_size + 1 = ${T + 1} tokens from ${start} to ${start + T}: ${T} example${T > 1 ? "s" : ""}. ` +
        `Example t = ${t}: after “${shown(chunk.slice(0, t + 1))}” comes “${visible(chunk[t + 1])}” ` +
        `(y[${t}] = ${ids[start + t + 1]}, the same as ${t + 1 < T ? `x[${t + 1}]` : `the token just after x`}). ` +
        `Last possible start: ${N - T - 1} of ${N} characters.`,
    );
    draw(now);
    spell();
  });

  const names = ["start", "block_size", "selected"].map((n) => `change:${n}`);
  names.forEach((n) => model.on(n, paint));
  node.append(
    h("style", {}, STYLE),
    h("div", { class: "row" }, startSlider, blockSlider),
    h("div", { class: "scroll" }, board),
    says,
  );
  const asWide = onBreakpoint(
    node,
    (reached) => {
      at = SIZES[reached];
      for (const name of ["name", "pitch", "letter"])
        node.style.setProperty(`--${name}`, `${at[name]}px`);
      node.style.setProperty("--margin", at.margin);
      paint();
    },
    [480, 760],
  );
  const undo = onTheme(paint);
  return () => {
    undo();
    asWide();
    spell.stop();
    names.forEach((n) => model.off(n, paint));
  };
}

export default live(render);
