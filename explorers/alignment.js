// All that the models write and where they look comes once; stepping through it asks nobody.
const STEPS = 60000; // of a weight, as in attention_maps.py
const LEFT = 44;
const BARS = 34;
const LETTERS = 20;
const TOP = BARS + LETTERS; // beside and above the map
const STRONGEST = 3;
const END = ">"; // the sign of helpers/seq2seq.py

const STYLE = `
.d2g.alignment-explorer .row { gap: 4px 10px; }
.d2g.alignment-explorer .row .row { gap: 4px; margin: 0; }
.d2g.alignment-explorer .row button { padding: 2px 6px; }
.d2g.alignment-explorer .sources button { font-family: var(--jp-code-font-family, monospace); }
.d2g.alignment-explorer .next { min-width: 10em; }
.d2g.alignment-explorer .columns > div { flex: 1 1 220px; min-width: 0; }
.d2g.alignment-explorer .columns > figure { flex: none; margin: 0; max-width: 100%; }
.d2g.alignment-explorer figcaption, .d2g.alignment-explorer caption { font-weight: 600; text-align: left; }
.d2g.alignment-explorer canvas { cursor: pointer; touch-action: manipulation; }
.d2g.alignment-explorer dl { display: grid; grid-template-columns: auto 1fr; gap: 2px 10px; margin: 0 0 6px; }
.d2g.alignment-explorer dt { font-weight: normal; white-space: nowrap; width: auto; float: none; margin: 0; }
.d2g.alignment-explorer dd { margin: 0; font-family: var(--jp-code-font-family, monospace); overflow-wrap: anywhere; }
.d2g.alignment-explorer .wrong { color: var(--red-text); font-weight: 700; text-decoration: underline wavy; }
.d2g.alignment-explorer .now { outline: 2px solid var(--orange); outline-offset: 1px; }
.d2g.alignment-explorer .none { margin: 0; }
.d2g.alignment-explorer [hidden] { display: none; }
.d2g.alignment-explorer .bar { width: 48px; height: 9px; background: linear-gradient(var(--blue), var(--blue)) left / 0 100% no-repeat; }
.d2g.alignment-explorer .scale { display: inline-block; width: 90px; height: 9px; margin: 0 6px;
  background: linear-gradient(90deg, ${VIRIDIS.map(rgb).join(", ")}); }
.d2g.alignment-explorer .verdict { min-height: 2.9em; font-weight: 600; }
.d2g.alignment-explorer th, .d2g.alignment-explorer td { white-space: nowrap; padding: 2px 10px 2px 2px; }
`;

function render({ model, el }) {
  const node = root(
    el,
    "alignment-explorer",
    "What a model attends to while it writes, letter by letter",
  );
  const get = (name) => model.get(name);
  const names = get("models");
  const sources = get("sources");
  const written = get("outputs");
  const steps = new Uint16Array(bytesOf(get("weight_steps")).buffer);
  const lines = sources.map((text) => [...text, END]);
  const right = get("targets").map((text) => [...text, END]);
  let place = 0; // where the weights of each model and source begin
  const answers = written.map((texts, m) =>
    texts.map((text, s) => {
      const letters = [...text, END];
      const start = get("has_attention")[m][s] ? place : -1;
      if (start >= 0) place += letters.length * lines[s].length;
      return { letters, start };
    }),
  );
  const most = Math.max(...answers.flat().map(({ letters }) => letters.length)); // rows, of all maps

  /** What is shown: n of the T letters of an answer, and their weights. */
  function view(m = names.indexOf(get("model")), s = sources.indexOf(get("source"))) {
    const { letters, start } = answers[m][s];
    const T = letters.length;
    const n = Math.min(get("step"), T);
    const S = lines[s].length;
    const weight = (i, j) => {
      const w = steps[start + i * S + j];
      return w && (w + 0.5) / STEPS;
    };
    const isRight = (i) => right[s][i] === letters[i];
    return {
      m,
      s,
      letters,
      T,
      n,
      S,
      read: lines[s],
      looks: start >= 0,
      weight,
      isRight,
      wrong: letters.slice(0, n).findIndex((_, i) => !isRight(i)),
    };
  }
  const go = (n) => setAndSave(model, { step: Math.max(0, Math.min(view().T, n)) });

  // Controls.
  const stepping = slider(model, "step", {
    label: "letters written",
    min: 0,
    max: most,
    show: (n) => `${Math.min(n, view().T)} of ${view().T}`,
  });
  const input = stepping.querySelector("input");
  const value = stepping.querySelector(".value");
  input.dataset.entry = "";
  const next = h("button", {
    type: "button",
    class: "next",
    onclick: () => {
      const { n, T } = view();
      go(n < T ? n + 1 : 0);
    },
  });
  node.append(
    h("style", {}, STYLE),
    h(
      "div",
      { class: "row" },
      "model",
      choice(
        model,
        "model",
        names.map((name) => [name, name]),
        "Model",
      ),
    ),
    h(
      "div",
      { class: "row sources" },
      "input",
      choice(
        model,
        "source",
        sources.map((text) => [text, visible(text)]),
        "Text",
      ),
    ),
    h("div", { class: "row" }, stepping, next),
  );

  // The map.
  const heat = h("canvas", { role: "img" });
  const cellAt = (event) => {
    const { n, S } = view();
    const scale = heat.width / devicePixelRatio / heat.clientWidth;
    const i = Math.floor((event.offsetY * scale - TOP) / at.row);
    const j = Math.floor((event.offsetX * scale - LEFT) / at.pitch(S));
    return i >= 0 && i < n ? [i, j >= 0 && j < S ? j : -1] : [-1, -1];
  };
  heat.addEventListener("click", (event) => {
    const [i] = cellAt(event);
    if (i >= 0) go(i + 1);
  });
  heat.addEventListener("pointermove", (event) => {
    const [i, j] = cellAt(event);
    const { letters, read, looks, weight } = view();
    heat.title =
      looks && i >= 0 && j >= 0
        ? `“${visible(letters[i])}” attends to “${visible(read[j])}”: ${weight(i, j).toFixed(2)}`
        : "";
  });

  // The texts, and the strongest weights of the letter.
  const reads = h("dd", {});
  const writes = h("dd", { class: "writes" });
  const should = h("dd", {});
  const caption = h("caption", {});
  const rows = Array.from({ length: STRONGEST }, () => {
    const cells = {
      letter: h("span", { class: "token" }),
      place: h("td", { class: "number" }),
      weight: h("td", { class: "number" }),
      bar: h("div", { class: "bar" }),
    };
    return {
      ...cells,
      line: h(
        "tr",
        {},
        h("td", {}, cells.letter),
        cells.place,
        cells.weight,
        h("td", {}, cells.bar),
      ),
    };
  });
  const table = h(
    "table",
    {},
    caption,
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...["letter", "position", "weight"].map((text) => h("th", { scope: "col" }, text)),
        h("th", { "aria-label": "as a bar" }),
      ),
    ),
    h("tbody", {}, ...rows.map(({ line }) => line)),
  );
  const none = h(
    "p",
    { class: "none" },
    "No attention, so no weights: this model sees the source only as one vector, handed over before the first letter.",
  );
  const scale = h("p", { class: "quiet" }, "weight 0", h("span", { class: "scale" }), "1");
  const says = summary();
  node.append(
    h(
      "div",
      { class: "columns" },
      h("figure", {}, h("figcaption", {}, "Row: letter written. Column: input letter"), heat),
      h(
        "div",
        {},
        h(
          "dl",
          {},
          h("dt", {}, "input"),
          reads,
          h("dt", {}, "output"),
          writes,
          h("dt", {}, "target"),
          should,
        ),
        says,
        none,
        table,
        scale,
      ),
    ),
  );

  const sizes = (wide) => {
    const width = wide ? 520 : 314;
    const row = Math.max(6, Math.min(wide ? 24 : 20, Math.floor((wide ? 312 : 220) / most)));
    return {
      width,
      row,
      height: TOP + most * row + 4,
      pitch: (S) => Math.min(30, Math.floor((width - LEFT - 2) / S)),
    };
  };
  let at = sizes(false);

  function draw({ letters, T, n, S, read, looks, weight, isRight }) {
    const ink = Object.fromEntries(
      ["ink", "quiet", "panel", "line", "blue", "orange", "red-text"].map((name) => [
        name,
        cssColor(node, name),
      ]),
    );
    const ctx = fit(heat, at.width, at.height);
    const { row, height } = at;
    const pitch = at.pitch(S);
    const across = S * pitch;
    const code = getComputedStyle(reads).fontFamily;
    const size = Math.min(14, row, pitch + 3);
    const drawText = (text, x, y, fill) => {
      ctx.fillStyle = fill;
      ctx.fillText(text, x, y);
    };
    ctx.textBaseline = "middle";
    ctx.textAlign = "center";
    ctx.font = `${Math.min(14, pitch + 3)}px ${code}`;
    read.forEach((letter, j) =>
      drawText(visible(letter), LEFT + (j + 0.5) * pitch, BARS + LETTERS / 2, ink.ink),
    );
    ctx.fillStyle = ink.line;
    ctx.fillRect(LEFT, BARS - 1, across, 1);
    for (let i = 0; i < n; i++) {
      const y = TOP + (i + 0.5) * row;
      const fine = isRight(i);
      ctx.font = `${fine ? "" : "bold "}${size}px ${code}`;
      ctx.textAlign = "right";
      drawText(
        `${fine ? "" : "✘ "}${visible(letters[i])}`,
        LEFT - 8,
        y,
        fine ? ink.ink : ink["red-text"],
      );
    }
    if (!looks) {
      ctx.fillStyle = ink.panel;
      ctx.fillRect(LEFT, TOP, at.width - LEFT - 2, height - TOP - 4);
      ctx.textAlign = "center";
      ctx.font = `13px ${getComputedStyle(node).fontFamily}`;
      ["no weights:", "one vector for all letters"].forEach((text, k) =>
        drawText(text, (LEFT + at.width) / 2, (TOP + height) / 2 - 10 + 20 * k, ink.ink),
      );
    }
    for (let i = 0; looks && i < T; i++)
      for (let j = 0; j < S; j++) {
        ctx.fillStyle = i < n ? rgb(viridis(weight(i, j))) : ink.panel; // what is still to be written
        ctx.fillRect(LEFT + j * pitch, TOP + i * row, pitch - 1, row - 1);
      }
    if (!n || !looks) return;
    ctx.strokeStyle = ink.orange; // the letter that has just been written
    ctx.lineWidth = 3;
    ctx.strokeRect(LEFT - 2, TOP + (n - 1) * row - 1.5, across + 3, row + 2);
    ctx.fillStyle = ink.blue;
    for (let j = 0; j < S; j++) {
      const tall = (BARS - 4) * weight(n - 1, j);
      ctx.fillRect(LEFT + j * pitch + 1, BARS - 1 - tall, pitch - 3, tall);
    }
  }

  function tell({ m, s, letters, T, n, S, read, looks, weight, isRight, wrong }) {
    const order = [...Array(S).keys()].sort((a, b) => weight(n - 1, b) - weight(n - 1, a));
    const letter = n ? visible(letters[n - 1]) : "";
    Object.assign(input, { max: T, value: n });
    setText(value, `${n} of ${T}`);
    input.setAttribute("aria-valuetext", value.textContent);
    setText(next, n < T ? "Write next letter" : "Start again");
    setText(reads, visible(read.join("")));
    setText(should, visible(right[s].join("")));
    writes.replaceChildren(
      ...letters
        .slice(0, n)
        .map((one, i) =>
          h(
            "span",
            { class: [isRight(i) ? "" : "wrong", i === n - 1 ? "now" : ""].join(" ").trim() },
            visible(one),
          ),
        ),
      n ? "" : "…",
    );
    none.hidden = looks;
    table.hidden = scale.hidden = !looks;
    setText(caption, n ? `What “${letter}” attends to most` : "Nothing is written yet");
    rows.forEach((row, k) => {
      const j = order[k];
      const shown = looks && n > 0 && k < S;
      setText(row.letter, shown ? visible(read[j]) : "–");
      setText(row.place, shown ? `${j + 1} of ${S}` : "–");
      setText(row.weight, shown ? weight(n - 1, j).toFixed(2) : "–");
      row.bar.style.backgroundSize = `${shown ? 100 * weight(n - 1, j) : 0}% 100%`;
    });
    const first =
      wrong < 0
        ? ""
        : `letter ${wrong + 1} is “${visible(letters[wrong])}” but should be “${visible(right[s][wrong] ?? "nothing")}”`;
    const judged = !n
      ? `${names[m]} has read the input and written nothing yet.`
      : n < T
        ? wrong < 0
          ? "✔ right so far"
          : `✘ wrong: ${first}`
        : wrong < 0
          ? "✔ every letter is right"
          : `✘ wrong: ${first}`;
    says.style.color = !n ? "" : wrong < 0 ? "var(--green-text)" : "var(--red-text)";
    setText(says, judged);
    heat.setAttribute(
      "aria-label",
      `${names[m]} has written ${n} of ${T} letters. ${looks ? (n ? `“${letter}” attends most to “${visible(read[order[0]])}”, letter ${order[0] + 1} of ${S}` : "") : "There are no weights"}`,
    );
  }

  // Whoever has seen a text written whole sees the next one so (as _stay_at_the_end in Python).
  let shown = view();
  const paint = () => {
    let now = view();
    const other = now.m !== shown.m || now.s !== shown.s;
    if (other && shown.n === shown.T && now.n < now.T) {
      go(now.T);
      now = view();
    }
    shown = now;
    draw(now);
    tell(now);
  };
  const soon = throttleToFrame(paint);
  const events = ["model", "source", "step"].map((name) => `change:${name}`).join(" ");
  model.on(events, soon);
  const asWide = onBreakpoint(node, (wide) => {
    at = sizes(wide);
    soon();
  });
  const undo = onTheme(soon);
  return () => {
    undo();
    asWide();
    model.off(events, soon);
  };
}

export default live(render);
