const two = (v) => (Math.abs(v) < 1e5 ? fixed(v) : v.toExponential(1).replaceAll("-", "−"));

/** The (T, T) mixing matrix of the present choice; row i holds the weights of output i. */
function mixingMatrix(model) {
  const T = model.get("tokens").length;
  const how = model.get("weighting");
  const causal = model.get("causal");
  const decay = model.get("decay");
  const last = model.get("last");
  if (how === "learned") return model.get("learned");
  return Array.from({ length: T }, (_, i) => {
    const raw = Array.from({ length: T }, (_, j) => {
      const distance = Math.abs(i - j);
      if (causal && j > i) return 0;
      return how === "mean" ? 1 : how === "decay" ? decay ** distance : Number(distance < last);
    });
    const sum = raw.reduce((a, b) => a + b, 0);
    return raw.map((v) => v / sum);
  });
}

const LEFT = 40;
const TOP = 16;
const PAD = 7; // beside and above the matrix; inside the table's cells

const mix = (W, x) => W.map((row) => row.reduce((sum, w, j) => sum + w * x[j], 0));

const STYLE = `
.averaging-explorer .row { gap: 4px 10px; }
.averaging-explorer .row button { padding: 2px 4px; }
.averaging-explorer .row .row { gap: 4px; margin: 0; }
.averaging-explorer input[type="range"] { width: 70px; }
.averaging-explorer .places .value { width: 10ch; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.averaging-explorer .columns { margin-top: 6px; gap: 6px 12px; }
.averaging-explorer tr.quiet .token { color: inherit; background: none; }
.averaging-explorer .board { position: relative; font-size: var(--size); }
.averaging-explorer .board canvas { position: absolute; left: 0; top: calc(20px + var(--row)); max-width: none; pointer-events: none; }
.averaging-explorer table { position: relative; table-layout: fixed; border-collapse: separate; border-spacing: 0; font-size: inherit; }
.averaging-explorer caption, .averaging-explorer figcaption { text-align: left; font: 600 13px/20px var(--jp-ui-font-family, sans-serif); height: 20px; }
.averaging-explorer caption { contain: inline-size; }
.averaging-explorer caption, .averaging-explorer td, .averaging-explorer th { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.averaging-explorer td, .averaging-explorer th { box-sizing: border-box; height: var(--row); line-height: calc(var(--row) - 1px); padding: 0 ${PAD}px; }
.averaging-explorer thead th { padding-right: 0; font-size: 11px; }
.averaging-explorer td .token { display: block; width: fit-content; max-width: 100%; overflow: hidden; text-overflow: ellipsis; line-height: calc(var(--row) - 1px); }
.averaging-explorer .note { margin: 2px 0 0; font-size: 12px; }
`;

/** The sizes, in CSS pixels, that depend on the room and on how many tokens there are. */
function sizes(wide, T) {
  const row = Math.min(19, Math.floor(372 / (T + 2))); // of the table
  const width = wide ? 444 : 314; // of the matrix and of the signal under it
  return {
    row,
    width,
    size: row < 17 ? 11 : 13,
    columns: wide ? [92, 112, 58, 58, 62] : [58, 50, 50, 48, 56],
    across: Math.min(36, Math.floor((width - LEFT - 4) / T)),
    down: Math.min(24, Math.floor(262 / T)),
  }; // of a square
}

function render({ model, el }) {
  const node = root(
    el,
    "averaging-explorer",
    "Averaging the past: weights, one row of them, and the result",
  );
  const tokens = model.get("tokens").map(visible);
  const values = model.get("values");
  const T = tokens.length;
  const name = model.get("values_name");
  const hasLearned = model.get("learned").length > 0;
  const named = (i) => `${i} ${truncate(tokens[i], 14)}`;
  const longest = Math.max(...tokens.map((token) => [...token].length));
  const label = (i, room) => (longest <= Math.max(1, room) ? tokens[i] : String(i)); // beside a drawing
  let hovered = null; // the row under the pointer, shown until the pointer leaves
  let at = sizes(false, T);

  // Controls.
  const kinds = [
    ["mean", "mean"],
    ["decay", "exponential decay"],
    ["last", "last k"],
  ];
  if (hasLearned) kinds.push(["learned", "learned"]);
  const decay = slider(model, "decay", {
    label: "decay",
    min: 0.05,
    max: 1,
    step: 0.05,
    show: two,
  });
  const last = slider(model, "last", { label: "k", min: 1, max: T });
  const row = slider(model, "row", { label: "output (row)", min: 0, max: T - 1, show: named });
  const change = slider(model, "changed", {
    label: "add 1 to token",
    min: -1,
    max: T - 1,
    show: (t) => (t < 0 ? "none" : named(t)),
  });
  const mask = checkbox(model, "causal", "causal mask");
  node.append(
    h("style", {}, STYLE),
    h("div", { class: "row" }, choice(model, "weighting", kinds, "Weighting"), mask, decay, last),
    h("div", { class: "row places" }, row, change),
  );

  // The matrix.
  const heat = h("canvas", { role: "img", style: "cursor:pointer;touch-action:manipulation" });
  const rowAt = (event) => {
    const i = Math.floor((event.offsetY * (heatHeight() / heat.clientHeight) - TOP) / at.down);
    return i >= 0 && i < T ? i : null;
  };
  const heatHeight = () => TOP + at.down * T + 4;
  heat.addEventListener("pointermove", (event) => {
    hovered = rowAt(event);
    paint();
  });
  heat.addEventListener("pointerleave", () => {
    hovered = null;
    paint();
  });
  heat.addEventListener("click", (event) => {
    const i = rowAt(event);
    if (i === null) return;
    model.set("row", i);
    model.save_changes();
  });

  // The chosen row: a table. Its bars and numbers are drawn on a canvas under it (writing to 70 cells
  // takes the browser 5 ms a step); the same numbers follow as text that cannot be seen.
  const edge = (k) => at.columns.slice(0, k).reduce((a, b) => a + b, 0);
  const caption = h("caption", {});
  const number = (kind = "") => h("td", { class: `number ghost ${kind}` });
  const lines = tokens.map((token) => {
    const cells = [number("weight"), number(), number()];
    return {
      cells,
      line: h(
        "tr",
        {},
        h("td", { title: inFull(token) }, h("span", { class: "token" }, truncate(token, 14))),
        h("td"),
        ...cells,
      ),
    };
  });
  const total = number("total");
  const output = number("output");
  const head = ["token", "", "weight", name, "product"].map((text) =>
    h("th", { scope: "col", title: inFull(text) }, truncate(text, 14)),
  );
  const columns = at.columns.map(() => h("col"));
  const sheet = h("canvas", { "aria-hidden": "true" });
  const table = h(
    "table",
    {},
    caption,
    h("colgroup", {}, ...columns),
    h("thead", {}, h("tr", {}, ...head)),
    h(
      "tbody",
      {},
      ...lines.map((l) => l.line),
      h("tr", { style: "font-weight:600" }, h("td", {}, "sum"), h("td"), total, h("td"), output),
    ),
  );

  // The values before and after, each under its token's column of the matrix.
  const H = 104;
  const plot = h("canvas", { role: "img", class: "signal" });
  const x = (t) => LEFT + (t + 0.5) * (at.across < 36 ? at.across : (at.width - LEFT - 4) / T);
  const says = h("p", { class: "verdict", role: "status", style: "margin:4px 0" });
  node.append(
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        {},
        h(
          "figure",
          { style: "margin:0" },
          h("figcaption", {}, "Weights: row = output, column = token"),
          heat,
        ),
        plot,
      ),
      h("div", { class: "board" }, sheet, table),
    ),
    h(
      "p",
      { class: "quiet note" },
      `bright: large weight · ○ ${truncate(name, 12)} · ● after mixing · ◆ selected output · ┆ effect of the change`,
    ),
    says,
  );

  // The squares of the matrix change seldom: they are kept, and only the frame of the row moves.
  const squares = h("canvas");
  let drawn = "";
  function paintMatrix({ weights, chosen }, ink) {
    const { width, across, down } = at;
    const height = heatHeight();
    const key = [
      weights.map((row) => row[0]),
      weights[0],
      model.get("weighting"),
      ink.ink,
      devicePixelRatio,
      width,
    ].join();
    if (key !== drawn) {
      drawn = key;
      const ctx = fit(squares, width, height);
      ctx.font = `${Math.min(12, down)}px monospace`;
      ctx.fillStyle = ink.ink;
      ctx.textBaseline = "middle";
      tokens.forEach((_, i) => {
        ctx.textAlign = "right";
        ctx.fillText(label(i, 4), LEFT - 5, TOP + (i + 0.5) * down);
        ctx.textAlign = "center";
        ctx.fillText(
          label(i, Math.floor(across / 8)),
          LEFT + (i + 0.5) * across,
          TOP - 8,
          across - 1,
        );
      });
      weights.forEach((line, i) =>
        line.forEach((w, j) => {
          ctx.fillStyle = rgb(viridis(w));
          ctx.fillRect(LEFT + j * across, TOP + i * down, across - 1, down - 1);
        }),
      );
    }
    const ctx = fit(heat, width, height);
    ctx.drawImage(squares, 0, 0, width, height);
    ctx.strokeStyle = ink.orange;
    ctx.lineWidth = 3;
    ctx.strokeRect(LEFT - 1, TOP + chosen * down - 1, across * T + 1, down + 1);
  }

  /** The numbers of the table: of each token, and the last row. */
  const numbers = ({ weights, inputs, chosen, after }) => ({
    parts: weights[chosen].map((w, j) => [w, inputs[j], w * inputs[j]].map(two)),
    sums: [weights[chosen].reduce((a, b) => a + b, 0), after[chosen]].map(two),
  });

  function paintRow(now, ink) {
    const { row, size, columns } = at;
    const ctx = fit(sheet, edge(5), (T + 1) * row);
    const { parts, sums } = numbers(now);
    const drawText = (text, column, j) =>
      ctx.fillText(text, edge(column) + PAD, (j + 0.7) * row, columns[column] - PAD);
    setText(caption, `What output ${named(now.chosen)} is made of`);
    ctx.font = `${size}px ${ink.code}`;
    now.weights[now.chosen].forEach((w, j) => {
      const heard = Math.abs(w) >= 0.005;
      const kind = heard ? "" : "quiet";
      if (lines[j].line.className !== kind) lines[j].line.className = kind;
      ctx.fillStyle = ink.blue;
      ctx.fillRect(
        edge(1) + PAD,
        (j + 0.2) * row,
        (columns[1] - 2 * PAD) * Math.min(1, Math.abs(w)),
        0.55 * row,
      );
      ctx.fillStyle = heard ? ink.ink : ink.quiet;
      parts[j].forEach((text, k) => drawText(text, k + 2, j));
    });
    ctx.font = `600 ${size}px ${ink.code}`;
    ctx.fillStyle = ink.ink;
    sums.forEach((text, k) => drawText(text, 2 + 2 * k, T));
  }

  function paintSignal({ inputs, chosen, t, before, after }, ink) {
    const all = [...values, ...inputs, ...before, ...after, 0];
    const low = Math.min(...all);
    const high = Math.max(...all, low + 1e-6);
    const y = (v) => 12 + (H - 36) * (1 - (v - low) / (high - low));
    const W = at.width;
    const ctx = fit(plot, W, H);
    const pitch = x(1) - x(0);
    const fits = Math.floor(pitch / 8);
    const line = (points, stroke, width, dash = []) => {
      Object.assign(ctx, { strokeStyle: stroke, lineWidth: width });
      ctx.setLineDash(dash);
      ctx.beginPath();
      points.forEach((point) => ctx.lineTo(...point));
      ctx.stroke();
    };
    const dot = (i, v, r) => {
      ctx.beginPath();
      ctx.arc(x(i), y(v), r, 0, 7);
    };
    ctx.font = `11px ${ink.ui}`;
    ctx.textAlign = "right";
    for (const v of [low, high]) {
      line(
        [
          [LEFT, y(v)],
          [W, y(v)],
        ],
        ink.panel,
        1,
      );
      ctx.fillStyle = ink.quiet;
      ctx.fillText(two(v), LEFT - 5, y(v) + 4, LEFT - 6);
    }
    line(
      after.map((v, i) => [x(i), y(v)]),
      ink.blue,
      2,
    );
    ctx.font = `12px ${ink.ui}`;
    ctx.textAlign = "center";
    tokens.forEach((_, i) => {
      if (Math.abs(after[i] - before[i]) > 1e-9) {
        line(
          [
            [x(i), y(before[i])],
            [x(i), y(after[i])],
          ],
          i < t ? ink.red : ink.green,
          3,
          [3, 2],
        );
        ctx.setLineDash([]);
      }
      Object.assign(ctx, { strokeStyle: i === t ? ink.orange : ink.quiet, lineWidth: 2 });
      dot(i, inputs[i], 5);
      ctx.stroke();
      ctx.fillStyle = i === chosen ? ink.orange : ink.blue;
      if (i === chosen) {
        ctx.beginPath();
        for (const [right, down] of [
          [0, -7],
          [7, 0],
          [0, 7],
          [-7, 0],
        ])
          ctx.lineTo(x(i) + right, y(after[i]) + down);
      } else dot(i, after[i], 3.5);
      ctx.fill();
      ctx.fillStyle = ink.ink;
      ctx.fillText(label(i, fits), x(i), H - 6, pitch);
    });
    const moved = after
      .map((v, i) => (Math.abs(v - before[i]) > 1e-9 ? i : -1))
      .filter((i) => i >= 0);
    const early = moved.filter((i) => i < t);
    says.className = `verdict ${early.length ? "warning" : "quiet"}`;
    setText(
      says,
      t < 0
        ? "Add 1 to a token to see which outputs change."
        : early.length
          ? `✘ Leak: ${early.length} output${early.length > 1 ? "s" : ""} before token ${named(t)} changed: information from the future.`
          : `✔ Causal: adding 1 to token ${named(t)} changed ${moved.length} output${moved.length === 1 ? "" : "s"}, none of them earlier.`,
    );
  }

  /** What is shown: the matrix, the chosen row, the changed token, and the signal. */
  function view() {
    const t = model.get("changed");
    const weights = mixingMatrix(model);
    const inputs = values.map((v, i) => v + Number(i === t));
    return {
      t,
      weights,
      inputs,
      chosen: hovered ?? model.get("row"),
      before: mix(weights, values),
      after: mix(weights, inputs),
    };
  }

  const spell = debounce(() => {
    const now = view();
    const { parts, sums } = numbers(now);
    const chosen = named(now.chosen);
    lines.forEach(({ cells }, j) => cells.forEach((cell, k) => setText(cell, parts[j][k])));
    setText(total, sums[0]);
    setText(output, sums[1]);
    heat.setAttribute(
      "aria-label",
      `Mixing matrix of ${T} tokens, ${model.get("weighting")}; row ${chosen} is chosen`,
    );
    plot.setAttribute(
      "aria-label",
      `${name} before and after mixing; output ${chosen} is ${sums[1]}`,
    );
  });

  const paint = throttleToFrame(() => {
    const how = model.get("weighting");
    const now = view();
    decay.style.display = how === "decay" ? "" : "none";
    last.style.display = how === "last" ? "" : "none";
    mask.style.display = how === "learned" ? "none" : ""; // those weights were learned under the mask
    const ink = Object.fromEntries(
      ["ink", "quiet", "panel", "blue", "orange", "green", "red"].map((key) => [
        key,
        cssColor(node, key),
      ]),
    );
    Object.assign(ink, {
      code: getComputedStyle(total).fontFamily,
      ui: getComputedStyle(node).fontFamily,
    });
    paintMatrix(now, ink);
    paintRow(now, ink);
    paintSignal(now, ink);
    spell();
  });
  const asWide = onBreakpoint(node, (wide) => {
    at = sizes(wide, T);
    node.style.setProperty("--row", `${at.row}px`);
    node.style.setProperty("--size", `${at.size}px`);
    table.style.width = `${edge(5)}px`;
    columns.forEach((column, k) => {
      column.style.width = `${at.columns[k]}px`;
    });
    paint();
  });
  const names = ["weighting", "decay", "last", "row", "changed", "causal"]
    .map((n) => `change:${n}`)
    .join(" ");
  model.on(names, paint);
  const undo = onTheme(paint);
  return () => {
    undo();
    asWide();
    spell.stop();
    model.off(names, paint);
  };
}

export default live(render);
