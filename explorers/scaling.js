const QUERIES = 32, KEYS = 16, LARGEST = 1024, EDGE = 12, BINS = 48;
const POWERS = [2, 3, 4, 5, 6, 7, 8, 9, 10];
const DIVISORS = [["1", "1 (no scaling)"], ["√hs", "√hs"], ["√C", "√C = 32"], ["hs", "hs"]];
const LINES = { 1: ["red", ""], "√hs": ["blue", ""], "√C": ["orange", "7 4"], hs: ["green", "2 4"] };

const divide = (by, d) => ({ 1: 1, "√hs": Math.sqrt(d), "√C": Math.sqrt(LARGEST), hs: d })[by];
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

/** power → the 512 undivided scores (query by query) when vectors have their first 2^power numbers. */
function allScores(x) {
  const found = Object.fromEntries(POWERS.map((p) => [p, new Float64Array(QUERIES * KEYS)]));
  for (let i = 0; i < QUERIES; i++) for (let j = 0; j < KEYS; j++) {
    const q = i * LARGEST, k = (QUERIES + j) * LARGEST;
    let sum = 0, c = 0;
    for (const p of POWERS) {
      for (; c < 2 ** p; c++) sum += x[q + c] * x[k + c];
      found[p][i * KEYS + j] = sum;
    }
  }
  return found;
}

/** Softmax of one row, its entropy (nats) and the norm of its Jacobian, diag(w) − w wᵀ. */
function softmaxRow(scores) {
  const top = Math.max(...scores), raised = Array.from(scores, (s) => Math.exp(s - top));
  const total = raised.reduce((a, b) => a + b, 0), weights = raised.map((v) => v / total);
  let two = 0, three = 0, entropy = 0;
  for (const w of weights) {
    two += w * w;
    three += w * w * w;
    if (w > 0) entropy -= w * Math.log(w);
  }
  return { weights, entropy, gradient: Math.sqrt(Math.max(0, two - 2 * three + two * two)) };
}

function measure(scores, by) {
  const divided = scores.map((s) => s / by), middle = mean(divided);
  const rows = Array.from({ length: QUERIES }, (_, i) => softmaxRow(divided.subarray(i * KEYS, (i + 1) * KEYS)));
  return { divided, rows, std: Math.sqrt(mean(divided.map((s) => (s - middle) ** 2))),
    entropy: mean(rows.map((r) => r.entropy)), gradient: mean(rows.map((r) => r.gradient)),
    largest: mean(rows.map((r) => Math.max(...r.weights))) };
}

function render({ model, el }) {
  const node = root(el, "scaling-explorer", "What the divisor does to scores, weights, entropy and gradient");
  const raw = allScores(floats(model.get("numbers")));
  const curves = Object.fromEntries(DIVISORS.map(([by]) =>
    [by, POWERS.map((p) => measure(raw[p], divide(by, 2 ** p)))]));

  node.append(
    h("div", { class: "row" },
      slider(model, "power", { label: "head size d", min: 2, max: 10, show: (p) => String(2 ** p) }),
      slider(model, "row", { label: "query (row)", min: 0, max: QUERIES - 1 })),
    h("div", { class: "row" }, "divide the scores by", choice(model, "divisor", DIVISORS, "Divisor")));

  // Four small pictures, each with its caption above.
  const W = 440, H = 190, L = 44, B = 34, T = 10;
  const panel = (name) => {
    const svg = h("svg", { viewBox: `0 0 ${W} ${H}`, width: W, role: "img", class: name });
    const caption = h("figcaption", { style: "font-weight:600" });
    return { svg, caption, figure: h("figure", { style: "margin:0" }, caption, svg) };
  };
  const histogram = panel("histogram"), bars = panel("bars"), entropies = panel("entropy"), gradients = panel("gradient");

  // The numbers: cells made once and written later.
  const names = ["std", "largest", "entropy", "gradient"];
  const labels = ["spread (std) of the scores", "largest weight", `entropy, in nats (at most ln 16 = ${Math.log(16).toFixed(2)})`,
    "gradient: norm of the Jacobian"];
  const cells = names.map((name) => [h("td", { class: `number row-${name}` }), h("td", { class: `number mean-${name}` })]);
  const table = h("table", {},
    h("thead", {}, h("tr", {}, ...["", "this query", "all 32 queries"].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, ...names.map((_, i) => h("tr", {}, h("th", { scope: "row" }, labels[i]), ...cells[i]))));
  const verdict = h("p", { class: "verdict", role: "status", style: "margin:4px 0" });
  const legend = h("p", { class: "quiet", style: "margin:4px 0" },
    "curves: thick = the chosen divisor · red: none · blue: √hs · orange dashed: √C · green dotted: hs · ● the present head size (click a curve panel to move it)");
  node.append(verdict, h("div", { class: "columns" }, histogram.figure, bars.figure),
    h("div", { class: "columns" }, entropies.figure, gradients.figure), legend, table);

  const text = (x, y, words, extra = {}) =>
    h("text", { x, y, fill: "var(--quiet)", "font-size": 11, "text-anchor": "middle", ...extra }, words);
  const line = (x1, y1, x2, y2, extra = {}) => h("line", { x1, y1, x2, y2, stroke: "var(--line)", ...extra });

  function paintHistogram(now) {
    const counts = new Array(BINS).fill(0);
    for (const s of now.divided) {
      const bin = Math.floor((s + EDGE) / (2 * EDGE) * BINS);
      counts[Math.min(BINS - 1, Math.max(0, bin))] += 1;
    }
    const high = Math.max(...counts), wide = (W - L - 10) / BINS, floor = H - B;
    const x = (s) => L + (s + EDGE) / (2 * EDGE) * (W - L - 10);
    const beyond = now.divided.filter((s) => Math.abs(s) > EDGE).length;
    histogram.svg.replaceChildren(
      ...counts.map((n, i) => h("rect", { x: L + i * wide, width: Math.max(1, wide - 1), y: floor - n / high * (floor - T),
        height: n / high * (floor - T), fill: (i === 0 || i === BINS - 1) && beyond ? "var(--red)" : "var(--blue)" })),
      line(L, floor, W - 10, floor),
      ...[-12, -8, -4, 0, 4, 8, 12].map((s) => text(x(s), floor + 14, String(s).replace("-", "−"))),
      text(W / 2, H - 4, beyond ? `score · red ends: ${beyond} lie beyond ±12` : "score"),
      text(L - 6, T + 8, String(high), { "text-anchor": "end" }), text(L - 6, floor, "0", { "text-anchor": "end" }));
    histogram.caption.textContent = `512 scores: std ${now.std.toFixed(2)}`;
    histogram.svg.setAttribute("aria-label", `Histogram of 512 scores, standard deviation ${now.std.toFixed(2)}`);
  }

  function paintBars(row, index) {
    const floor = H - B, wide = (W - L - 10) / KEYS, y = (w) => floor - w * (floor - T - 8);
    bars.svg.replaceChildren(line(L, floor, W - 10, floor),
      ...[0, 0.5, 1].map((w) => text(L - 6, y(w) + 4, String(w), { "text-anchor": "end" })),
      ...row.weights.flatMap((w, j) => {
        const x = L + j * wide;
        return [h("rect", { x: x + 2, width: wide - 4, y: y(w), height: floor - y(w), fill: "var(--blue)" }),
          text(x + wide / 2, floor + 14, String(j)),
          text(x + wide / 2, y(w) - 3, w < 0.005 ? "" : w.toFixed(2).replace(/^0/, ""), { fill: "var(--ink)" })];
      }), text(W / 2, H - 4, "key"));
    bars.caption.textContent = `Weights of query ${index}`;
    bars.svg.setAttribute("aria-label", `Weights of query ${index}: ${row.weights.map((w) => w.toFixed(2)).join(", ")}`);
  }

  function paintCurves({ svg, caption }, name, title, high, power, chosen) {
    const floor = H - B, x = (p) => L + 8 + (p - 2) / 8 * (W - L - 30), y = (v) => floor - v / high * (floor - T);
    const order = DIVISORS.map(([by]) => by).sort((a, b) => Number(a === chosen) - Number(b === chosen));
    const now = curves[chosen][power - 2][name];
    svg.replaceChildren(line(L, floor, W - 10, floor),
      ...[0, high / 2, high].flatMap((v) => [line(L, y(v), W - 10, y(v), { stroke: "var(--panel)" }),
        text(L - 6, y(v) + 4, v.toFixed(2), { "text-anchor": "end" })]),
      ...order.map((by) => h("polyline", { points: curves[by].map((m, i) => `${x(i + 2)},${y(m[name])}`).join(" "), fill: "none",
        stroke: `var(--${LINES[by][0]})`, "stroke-dasharray": LINES[by][1], "stroke-width": by === chosen ? 4 : 1.5 })),
      ...POWERS.map((p) => text(x(p), floor + 14, String(2 ** p))),
      text(W / 2, H - 4, "head size d"),
      line(x(power), T, x(power), floor, { "stroke-dasharray": "2 3" }),
      h("circle", { cx: x(power), cy: y(now), r: 6, fill: "var(--ink)" }));
    caption.textContent = `${title}: ${now.toFixed(2)}`;
    svg.setAttribute("aria-label", `${title} against the head size; now ${now.toFixed(2)} at d = ${2 ** power}, divided by ${chosen}`);
  }

  for (const { svg } of [entropies, gradients]) {
    svg.style.cursor = "pointer";
    svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) * W / box.width;
      const power = Math.round((x - L - 8) / (W - L - 30) * 8) + 2;
      model.set("power", Math.min(10, Math.max(2, power)));
      model.save_changes();
    });
  }

  const paint = onceAFrame(() => {
    const power = model.get("power"), by = model.get("divisor"), index = model.get("row");
    const now = curves[by][power - 2], row = now.rows[index], d = 2 ** power;
    paintHistogram(now);
    paintBars(row, index);
    paintCurves(entropies, "entropy", "Entropy of the weights, mean of 32 queries", 3, power, by);
    paintCurves(gradients, "gradient", "Gradient (Jacobian norm), mean of 32 queries", 0.4, power, by);
    const own = { std: "", largest: Math.max(...row.weights), entropy: row.entropy, gradient: row.gradient };
    names.forEach((name, i) => {
      cells[i][0].textContent = name === "std" ? "" : own[name].toFixed(3);
      cells[i][1].textContent = now[name].toFixed(3);
    });
    const divisor = divide(by, d);
    const share = Math.round(100 * now.gradient / curves["√hs"][power - 2].gradient);
    const largest = `the largest weight is ${now.largest.toFixed(2)} on average`;
    verdict.textContent = `d = ${d}, divided by ${divisor.toFixed(divisor % 1 ? 2 : 0)}: ` + (now.std > 2.5
      ? `▲ too sharp: ${largest}, and the softmax passes ${share} % of the gradient it would pass with √hs.`
      : now.std < 0.6 ? `▼ too flat: ${largest}, not much above 1/16 = 0.06. And the division shrinks what gets back to q and k.`
        : `● in between: ${largest}. Keys differ, and others are heard.`);
  });
  model.on("change:power change:divisor change:row", paint);
  paint();
  return () => model.off("change:power change:divisor change:row", paint);
}

export default { render };
