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

  // The chosen row: a table whose cells are made once and written later.
  const caption = h("caption", { style: "text-align:left;font-weight:600;padding-bottom:4px" });
  const lines = tokens.map((token, j) => {
    const bar = h("div", { style: "height:10px;background:var(--blue)" });
    const cells = { weight: h("td", { class: "number weight" }), value: h("td", { class: "number" }),
      part: h("td", { class: "number" }) };
    const line = h("tr", {}, h("td", {}, h("span", { class: "token" }, token)),
      h("td", { style: "width:130px" }, bar), cells.weight, cells.value, cells.part);
    return { line, bar, ...cells };
  });
  const total = h("td", { class: "number total" }), output = h("td", { class: "number output" });
  const head = ["token", "", "weight", name, "product"].map((text) => h("th", { scope: "col" }, text));
  const tight = h("style", {},
    // A fixed layout: new numbers in a cell then move nothing else.
    ".averaging-explorer table{table-layout:fixed;width:430px}.averaging-explorer th:nth-child(2){width:130px}"
    + ".averaging-explorer td,.averaging-explorer th{padding:0 7px;line-height:1.35}");
  const table = h("table", {}, caption, h("thead", {}, h("tr", {}, ...head)), h("tbody", {},
    ...lines.map((l) => l.line),
    h("tr", { style: "font-weight:600" }, h("td", {}, "sum"), h("td"), total, h("td"), output)));
  const picture = h("figure", { style: "margin:0" }, heat,
    h("figcaption", { class: "quiet" }, "row: output · column: token it hears · bright: large weight"));
  node.append(tight, h("div", { class: "columns" }, picture, table));

  // The values before and after.
  const W = 940, H = 170, x = (t) => 50 + (t + 0.5) * ((W - 60) / T);
  const plot = h("svg", { viewBox: `0 0 ${W} ${H}`, width: W, role: "img", class: "signal" });
  const verdict = h("p", { class: "verdict", role: "status", style: "margin:4px 0" });
  node.append(h("p", { class: "quiet", style: "margin:10px 0 0" },
    `○ ${name} of each token   ● after mixing   ◆ the chosen output   ┆ what a changed token moved`), plot, verdict);

  function paintMatrix(weights, chosen) {
    const pen = heat.getContext("2d"), ink = colour(node, "ink");
    pen.clearRect(0, 0, LEFT + SIZE + 4, TOP + SIZE + 4);
    pen.font = `${Math.min(13, CELL - 2)}px monospace`;
    pen.fillStyle = ink;
    pen.textBaseline = "middle";
    const fit = (text) => (text.length > 3 ? `${text.slice(0, 3)}…` : text);
    tokens.forEach((token, i) => {
      pen.textAlign = "right";
      pen.fillText(fit(token), LEFT - 5, TOP + (i + 0.5) * CELL);
      pen.textAlign = "center";
      pen.fillText(token.length > 1 && CELL < 20 ? fit(token)[0] : fit(token), LEFT + (i + 0.5) * CELL, TOP - 9);
    });
    weights.forEach((line, i) => line.forEach((w, j) => {
      pen.fillStyle = rgb(viridis(w));
      pen.fillRect(LEFT + j * CELL, TOP + i * CELL, CELL - 1, CELL - 1);
    }));
    pen.strokeStyle = colour(node, "orange");
    pen.lineWidth = 3;
    pen.strokeRect(LEFT - 1, TOP + chosen * CELL - 1, SIZE + 1, CELL + 1);
    heat.setAttribute("aria-label", `Mixing matrix of ${T} tokens, ${model.get("weighting")}; row ${label(chosen)} is chosen`);
  }

  function paintRow(weights, inputs, chosen) {
    caption.textContent = `What output ${label(chosen)} is made of`;
    weights[chosen].forEach((w, j) => {
      const l = lines[j], heard = Math.abs(w) >= 0.005;
      l.bar.style.width = `${Math.round(Math.min(1, Math.abs(w)) * 100)}%`;
      l.weight.textContent = two(w);
      l.value.textContent = two(inputs[j]);
      l.part.textContent = two(w * inputs[j]);
      l.line.className = heard ? "" : "quiet";
    });
    total.textContent = two(weights[chosen].reduce((a, b) => a + b, 0));
    output.textContent = two(mix(weights, inputs)[chosen]);
  }

  function paintSignal(weights, inputs, chosen, t) {
    const before = mix(weights, values), after = mix(weights, inputs);
    const all = [...values, ...inputs, ...before, ...after, 0];
    const low = Math.min(...all), high = Math.max(...all, low + 1e-6);
    const y = (v) => 14 + (H - 46) * (1 - (v - low) / (high - low));
    const at = (v, i) => `${x(i)},${y(v)}`;
    const marks = [low, high].flatMap((v) => [
      h("line", { x1: 50, x2: W - 10, y1: y(v), y2: y(v), stroke: "var(--panel)" }),
      h("text", { x: 44, y: y(v) + 4, "text-anchor": "end", fill: "var(--quiet)", "font-size": 11 }, two(v))]);
    marks.push(h("polyline", { points: after.map(at).join(" "), fill: "none", stroke: "var(--blue)", "stroke-width": 2 }));
    tokens.forEach((token, i) => {
      const moved = Math.abs(after[i] - before[i]) > 1e-9;
      if (moved) marks.push(h("line", { x1: x(i), x2: x(i), y1: y(before[i]), y2: y(after[i]), "stroke-width": 3,
        stroke: i < t ? "var(--red)" : "var(--green)", "stroke-dasharray": "3 2" }));
      marks.push(h("circle", { cx: x(i), cy: y(inputs[i]), r: 6, fill: "none", "stroke-width": 2,
        stroke: i === t ? "var(--orange)" : "var(--quiet)" }));
      marks.push(i === chosen
        ? h("polygon", { points: `${x(i)},${y(after[i]) - 8} ${x(i) + 8},${y(after[i])} ${x(i)},${y(after[i]) + 8} ${x(i) - 8},${y(after[i])}`, fill: "var(--orange)" })
        : h("circle", { cx: x(i), cy: y(after[i]), r: 4, fill: "var(--blue)" }));
      marks.push(h("text", { x: x(i), y: H - 8, "text-anchor": "middle", fill: "var(--ink)", "font-size": 13 },
        token.length > 8 ? `${token.slice(0, 7)}…` : token));
    });
    plot.replaceChildren(...marks);
    plot.setAttribute("aria-label", `${name} before and after mixing; output ${label(chosen)} is ${two(after[chosen])}`);
    const moved = after.map((v, i) => (Math.abs(v - before[i]) > 1e-9 ? i : -1)).filter((i) => i >= 0);
    const early = moved.filter((i) => i < t);
    verdict.className = `verdict ${early.length ? "warning" : "quiet"}`;
    verdict.textContent = t < 0 ? "Add 1 to a token to see which outputs hear it."
      : early.length ? `✘ Leak: ${early.length} output${early.length > 1 ? "s" : ""} before token ${label(t)} changed. They heard the future.`
        : `✔ Causal: adding 1 to token ${label(t)} changed ${moved.length} output${moved.length === 1 ? "" : "s"}, none of them before it.`;
  }

  const paint = () => {
    const how = model.get("weighting"), t = model.get("changed"), chosen = hovered ?? model.get("row");
    decay.style.display = how === "decay" ? "" : "none";
    last.style.display = how === "last" ? "" : "none";
    mask.style.display = how === "learned" ? "none" : ""; // those weights were learned under the mask
    const weights = mixingMatrix(model), inputs = values.map((v, i) => v + Number(i === t));
    paintMatrix(weights, chosen);
    paintRow(weights, inputs, chosen);
    paintSignal(weights, inputs, chosen, t);
  };
  const names = ["weighting", "decay", "last", "row", "changed", "causal"].map((n) => `change:${n}`).join(" ");
  model.on(names, paint);
  paint();
  const undo = onTheme(paint);
  return () => { undo(); model.off(names, paint); };
}

export default { render };
