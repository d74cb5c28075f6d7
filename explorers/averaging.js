const two = (v) => (Math.abs(v) < 0.005 ? 0 : v).toFixed(2).replace("-", "−");

/** The (T, T) mixing matrix of the present choice; row i holds the weights of output i. */
function mixingMatrix(model) {
  const T = model.get("tokens").length, how = model.get("weighting");
  const causal = model.get("causal"), decay = model.get("decay"), last = model.get("last");
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

const mix = (W, x) => W.map((row) => row.reduce((sum, w, j) => sum + w * x[j], 0));

function render({ model, el }) {
  const node = root(el, "averaging-explorer", "Averaging the past: weights, one row of them, and the result");
  const tokens = model.get("tokens").map(visible), values = model.get("values"), T = tokens.length;
  const name = model.get("values_name"), hasLearned = model.get("learned").length > 0;
  const label = (i) => `${i} ${tokens[i]}`;
  let hovered = null; // the row under the pointer, shown until the pointer leaves

  // Controls.
  const kinds = [["mean", "mean"], ["decay", "exponential decay"], ["last", "last k"]];
  if (hasLearned) kinds.push(["learned", "learned"]);
  const decay = slider(model, "decay", { label: "decay", min: 0.05, max: 1, step: 0.05, show: two });
  const last = slider(model, "last", { label: "k", min: 1, max: T });
  const row = slider(model, "row", { label: "output (row)", min: 0, max: T - 1, show: label });
  const change = slider(model, "changed", { label: "add 1 to token", min: -1, max: T - 1,
    show: (t) => (t < 0 ? "none" : label(t)) });
  const mask = checkbox(model, "causal", "causal mask");
  node.append(h("div", { class: "row" }, choice(model, "weighting", kinds, "Weighting"), decay, last, mask),
    h("div", { class: "row" }, row, change));

  // The matrix.
  const CELL = Math.max(14, Math.min(24, Math.floor(400 / T))), LEFT = 34, TOP = 34, SIZE = CELL * T;
  const heat = canvas(LEFT + SIZE + 4, TOP + SIZE + 4, "");
  heat.style.cursor = "pointer";
  heat.style.touchAction = "manipulation";
  const rowAt = (event) => {
    const i = Math.floor((event.offsetY * ((TOP + SIZE + 4) / heat.clientHeight) - TOP) / CELL);
    return i >= 0 && i < T ? i : null;
  };
  heat.addEventListener("pointermove", (event) => { hovered = rowAt(event); paint(); });
  heat.addEventListener("pointerleave", () => { hovered = null; paint(); });
  heat.addEventListener("click", (event) => {
    const i = rowAt(event);
    if (i === null) return;
    model.set("row", i);
    model.save_changes();
  });

  // The chosen row: a table. Its bars and numbers are drawn on a canvas under it (writing to 70 cells
  // takes the browser 5 ms a step); the same numbers follow as text that cannot be seen.
  const ROW = 19, COLUMNS = [78, 142, 72, 72, 76], HEAD = 24 + ROW, edge = (k) => COLUMNS.slice(0, k).reduce((a, b) => a + b, 0);
  const caption = h("caption", {});
  const number = (kind = "") => h("td", { class: `number ghost ${kind}` });
  const lines = tokens.map((token) => {
    const cells = [number("weight"), number(), number()];
    return { cells, line: h("tr", {}, h("td", { title: token }, h("span", { class: "token" }, token)), h("td"), ...cells) };
  });
  const total = number("total"), output = number("output");
  const head = ["token", "", "weight", name, "product"].map((text) => h("th", { scope: "col", title: text }, text));
  const sheet = h("canvas", { "aria-hidden": "true" });
  const style = h("style", {}, `
.averaging-explorer .board { position: relative; }
.averaging-explorer .board canvas { position: absolute; left: 0; top: ${HEAD}px; max-width: none; pointer-events: none; }
.averaging-explorer table { position: relative; table-layout: fixed; width: ${edge(5)}px; border-collapse: separate; border-spacing: 0; }
.averaging-explorer caption { text-align: left; font-weight: 600; height: 24px; line-height: 24px; }
.averaging-explorer caption, .averaging-explorer td, .averaging-explorer th { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.averaging-explorer td, .averaging-explorer th { box-sizing: border-box; height: ${ROW}px; line-height: ${ROW - 1}px; padding: 0 7px; }
.averaging-explorer td .token { display: block; width: max-content; line-height: ${ROW - 1}px; }`);
  const table = h("table", {}, caption, h("colgroup", {}, ...COLUMNS.map((w) => h("col", { style: `width:${w}px` }))),
    h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...lines.map((l) => l.line),
      h("tr", { style: "font-weight:600" }, h("td", {}, "sum"), h("td"), total, h("td"), output)));
  const picture = h("figure", { style: "margin:0" }, heat,
    h("figcaption", { class: "quiet" }, "row: output · column: token it hears · bright: large weight"));
  node.append(style, h("div", { class: "columns" }, picture, h("div", { class: "board" }, sheet, table)));

  // The values before and after.
  const W = 940, H = 170, x = (t) => 50 + (t + 0.5) * ((W - 60) / T);
  const plot = canvas(W, H, "");
  plot.className = "signal";
  const verdict = h("p", { class: "verdict", role: "status", style: "margin:4px 0" });
  node.append(h("p", { class: "quiet", style: "margin:10px 0 0" },
    `○ ${name} of each token   ● after mixing   ◆ the chosen output   ┆ what a changed token moved`), plot, verdict);

  // The squares of the matrix change seldom: they are kept, and only the frame of the row moves.
  const squares = canvas(LEFT + SIZE + 4, TOP + SIZE + 4, "");
  let drawn = "";
  function paintMatrix({ weights, chosen }, ink) {
    const key = [weights.map((row) => row[0]), weights[0], model.get("weighting"), ink.ink, devicePixelRatio].join();
    if (key !== drawn) {
      drawn = key;
      const pen = fit(squares, LEFT + SIZE + 4, TOP + SIZE + 4);
      pen.font = `${Math.min(13, CELL - 2)}px monospace`;
      pen.fillStyle = ink.ink;
      pen.textBaseline = "middle";
      const short = (text) => (text.length > 3 ? `${text.slice(0, 3)}…` : text);
      tokens.forEach((token, i) => {
        pen.textAlign = "right";
        pen.fillText(short(token), LEFT - 5, TOP + (i + 0.5) * CELL);
        pen.textAlign = "center";
        pen.fillText(token.length > 1 && CELL < 20 ? short(token)[0] : short(token), LEFT + (i + 0.5) * CELL, TOP - 9);
      });
      weights.forEach((line, i) => line.forEach((w, j) => {
        pen.fillStyle = rgb(viridis(w));
        pen.fillRect(LEFT + j * CELL, TOP + i * CELL, CELL - 1, CELL - 1);
      }));
    }
    const pen = fit(heat, LEFT + SIZE + 4, TOP + SIZE + 4);
    pen.drawImage(squares, 0, 0, LEFT + SIZE + 4, TOP + SIZE + 4);
    pen.strokeStyle = ink.orange;
    pen.lineWidth = 3;
    pen.strokeRect(LEFT - 1, TOP + chosen * CELL - 1, SIZE + 1, CELL + 1);
  }

  /** The numbers of the table: of each token, and the last row. */
  const numbers = ({ weights, inputs, chosen, after }) => ({
    parts: weights[chosen].map((w, j) => [w, inputs[j], w * inputs[j]].map(two)),
    sums: [weights[chosen].reduce((a, b) => a + b, 0), after[chosen]].map(two) });

  function paintRow(now, ink) {
    const pen = fit(sheet, edge(5), (T + 1) * ROW), { parts, sums } = numbers(now);
    write(caption, `What output ${label(now.chosen)} is made of`);
    pen.font = `13px ${ink.code}`;
    now.weights[now.chosen].forEach((w, j) => {
      const heard = Math.abs(w) >= 0.005, kind = heard ? "" : "quiet";
      if (lines[j].line.className !== kind) lines[j].line.className = kind;
      pen.fillStyle = ink.blue;
      pen.fillRect(edge(1) + 7, j * ROW + 4, 130 * Math.min(1, Math.abs(w)), 10);
      pen.fillStyle = heard ? ink.ink : ink.quiet;
      parts[j].forEach((text, k) => pen.fillText(text, edge(k + 2) + 7, j * ROW + 13.5));
    });
    pen.font = `600 13px ${ink.code}`;
    pen.fillStyle = ink.ink;
    sums.forEach((text, k) => pen.fillText(text, edge(2 + 2 * k) + 7, T * ROW + 13.5));
  }

  function paintSignal({ inputs, chosen, t, before, after }, ink) {
    const all = [...values, ...inputs, ...before, ...after, 0];
    const low = Math.min(...all), high = Math.max(...all, low + 1e-6);
    const y = (v) => 14 + (H - 46) * (1 - (v - low) / (high - low));
    const pen = fit(plot, W, H);
    const line = (points, stroke, width, dash = []) => {
      Object.assign(pen, { strokeStyle: stroke, lineWidth: width });
      pen.setLineDash(dash);
      pen.beginPath();
      points.forEach((point) => pen.lineTo(...point));
      pen.stroke();
    };
    const dot = (i, v, r) => { pen.beginPath(); pen.arc(x(i), y(v), r, 0, 7); };
    pen.font = `11px ${ink.ui}`;
    pen.textAlign = "right";
    for (const v of [low, high]) {
      line([[50, y(v)], [W - 10, y(v)]], ink.panel, 1);
      pen.fillStyle = ink.quiet;
      pen.fillText(two(v), 44, y(v) + 4);
    }
    line(after.map((v, i) => [x(i), y(v)]), ink.blue, 2);
    pen.font = `13px ${ink.ui}`;
    pen.textAlign = "center";
    tokens.forEach((token, i) => {
      if (Math.abs(after[i] - before[i]) > 1e-9) {
        line([[x(i), y(before[i])], [x(i), y(after[i])]], i < t ? ink.red : ink.green, 3, [3, 2]);
        pen.setLineDash([]);
      }
      Object.assign(pen, { strokeStyle: i === t ? ink.orange : ink.quiet, lineWidth: 2 });
      dot(i, inputs[i], 6);
      pen.stroke();
      pen.fillStyle = i === chosen ? ink.orange : ink.blue;
      if (i === chosen) {
        pen.beginPath();
        for (const [right, down] of [[0, -8], [8, 0], [0, 8], [-8, 0]]) pen.lineTo(x(i) + right, y(after[i]) + down);
      } else dot(i, after[i], 4);
      pen.fill();
      pen.fillStyle = ink.ink;
      pen.fillText(token.length > 8 ? `${token.slice(0, 7)}…` : token, x(i), H - 8);
    });
    const moved = after.map((v, i) => (Math.abs(v - before[i]) > 1e-9 ? i : -1)).filter((i) => i >= 0);
    const early = moved.filter((i) => i < t);
    verdict.className = `verdict ${early.length ? "warning" : "quiet"}`;
    write(verdict, t < 0 ? "Add 1 to a token to see which outputs hear it."
      : early.length ? `✘ Leak: ${early.length} output${early.length > 1 ? "s" : ""} before token ${label(t)} changed. They heard the future.`
        : `✔ Causal: adding 1 to token ${label(t)} changed ${moved.length} output${moved.length === 1 ? "" : "s"}, none of them before it.`);
  }

  /** What is shown: the matrix, the chosen row, the changed token, and the signal. */
  function view() {
    const t = model.get("changed"), weights = mixingMatrix(model), inputs = values.map((v, i) => v + Number(i === t));
    return { t, weights, inputs, chosen: hovered ?? model.get("row"), before: mix(weights, values), after: mix(weights, inputs) };
  }

  const spell = onceQuiet(() => {
    const now = view(), { parts, sums } = numbers(now), chosen = label(now.chosen);
    lines.forEach(({ cells }, j) => cells.forEach((cell, k) => write(cell, parts[j][k])));
    write(total, sums[0]);
    write(output, sums[1]);
    heat.setAttribute("aria-label", `Mixing matrix of ${T} tokens, ${model.get("weighting")}; row ${chosen} is chosen`);
    plot.setAttribute("aria-label", `${name} before and after mixing; output ${chosen} is ${sums[1]}`);
  });

  const paint = onceAFrame(() => {
    const how = model.get("weighting"), now = view();
    decay.style.display = how === "decay" ? "" : "none";
    last.style.display = how === "last" ? "" : "none";
    mask.style.display = how === "learned" ? "none" : ""; // those weights were learned under the mask
    const ink = Object.fromEntries(["ink", "quiet", "panel", "blue", "orange", "green", "red"].map((key) => [key, colour(node, key)]));
    Object.assign(ink, { code: getComputedStyle(total).fontFamily, ui: getComputedStyle(node).fontFamily });
    paintMatrix(now, ink);
    paintRow(now, ink);
    paintSignal(now, ink);
    spell();
  });
  const names = ["weighting", "decay", "last", "row", "changed", "causal"].map((n) => `change:${n}`).join(" ");
  model.on(names, paint);
  paint();
  const undo = onTheme(paint);
  return () => { undo(); spell.stop(); model.off(names, paint); };
}

export default live(render);
