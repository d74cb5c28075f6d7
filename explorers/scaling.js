const QUERIES = 32;
const KEYS = 16;
const LARGEST = 1024;
const EDGE = 12;
const BINS = 48;
const POWERS = [2, 3, 4, 5, 6, 7, 8, 9, 10];
const DIVISORS = [
  ["1", "1 (no scaling)"],
  ["√hs", "√hs"],
  ["√C", "√C = 32"],
  ["hs", "hs"],
];
const LINES = {
  1: ["orange", ""],
  "√hs": ["blue", ""],
  "√C": ["red", "7 4"],
  hs: ["green", "2 4"],
};

const divide = (by, d) => ({ 1: 1, "√hs": Math.sqrt(d), "√C": Math.sqrt(LARGEST), hs: d })[by];
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

/** power → the 512 undivided scores (query by query) when vectors have their first 2^power numbers. */
function allScores(x) {
  const found = Object.fromEntries(POWERS.map((p) => [p, new Float64Array(QUERIES * KEYS)]));
  for (let i = 0; i < QUERIES; i++)
    for (let j = 0; j < KEYS; j++) {
      const q = i * LARGEST;
      const k = (QUERIES + j) * LARGEST;
      let sum = 0;
      let c = 0;
      for (const p of POWERS) {
        for (; c < 2 ** p; c++) sum += x[q + c] * x[k + c];
        found[p][i * KEYS + j] = sum;
      }
    }
  return found;
}

/** Softmax of one row, its entropy (nats) and the norm of its Jacobian, diag(w) − w wᵀ. */
function softmaxRow(scores) {
  const top = Math.max(...scores);
  const raised = Array.from(scores, (s) => Math.exp(s - top));
  const total = raised.reduce((a, b) => a + b, 0);
  const weights = raised.map((v) => v / total);
  let two = 0;
  let three = 0;
  let entropy = 0;
  for (const w of weights) {
    two += w * w;
    three += w * w * w;
    if (w > 0) entropy -= w * Math.log(w);
  }
  return { weights, entropy, gradient: Math.sqrt(Math.max(0, two - 2 * three + two * two)) };
}

function measure(scores, by) {
  const divided = scores.map((s) => s / by);
  const middle = mean(divided);
  const rows = Array.from({ length: QUERIES }, (_, i) =>
    softmaxRow(divided.subarray(i * KEYS, (i + 1) * KEYS)),
  );
  return {
    divided,
    rows,
    std: Math.sqrt(mean(divided.map((s) => (s - middle) ** 2))),
    entropy: mean(rows.map((r) => r.entropy)),
    gradient: mean(rows.map((r) => r.gradient)),
    largest: mean(rows.map((r) => Math.max(...r.weights))),
  };
}

const STYLE = `
.scaling-explorer .row { gap: 4px 14px; }
.scaling-explorer .row .row { gap: 4px; margin: 0; }
.scaling-explorer .row button { padding: 2px 7px; }
.scaling-explorer .verdict { min-height: 2.9em; }
.scaling-explorer .charts { display: flex; flex-wrap: wrap; gap: 4px 12px; }
.scaling-explorer .charts figcaption { line-height: 18px; white-space: nowrap; contain: inline-size; overflow: hidden; text-overflow: ellipsis; }
.scaling-explorer .key { display: flex; flex-wrap: wrap; gap: 0 14px; margin: 2px 0; font-size: 12px; }
.scaling-explorer .key span { display: inline-flex; align-items: center; gap: 4px; }
.scaling-explorer th, .scaling-explorer td { padding: 1px 9px; font-size: 12px; white-space: nowrap; }
@container explorer (max-width: 759px) { .scaling-explorer .charts figcaption { font-size: 12px; } }
@container explorer (max-width: 480px) { .scaling-explorer th, .scaling-explorer td { padding: 1px 5px; white-space: normal; } }
`;

function render({ model, el }) {
  const node = root(
    el,
    "scaling-explorer",
    "What the divisor does to scores, weights, entropy and gradient",
  );
  const raw = allScores(floats(model.get("numbers")));
  const curves = Object.fromEntries(
    DIVISORS.map(([by]) => [by, POWERS.map((p) => measure(raw[p], divide(by, 2 ** p)))]),
  );

  const pick = (v) => setAndSave(model, { power: Math.min(10, Math.max(2, Math.round(v))) });
  const names = [
    ["std", "std of scores"],
    ["largest", "largest weight"],
    ["entropy", `entropy (≤ ${Math.log(KEYS).toFixed(2)})`],
    ["gradient", "Jacobian norm"],
  ];
  const table = numberTable(names, [
    ["row", "this query"],
    ["mean", `all ${QUERIES}`],
  ]);
  const says = summary();
  const board = h("div", { class: "charts" });
  node.append(
    h("style", {}, STYLE),
    h(
      "div",
      { class: "row" },
      slider(model, "power", {
        label: "head size d",
        min: 2,
        max: 10,
        show: (p) => String(2 ** p),
      }),
      slider(model, "row", { label: "query (row)", min: 0, max: QUERIES - 1 }),
    ),
    h(
      "div",
      { class: "row" },
      "divide the scores by",
      choice(model, "divisor", DIVISORS, "Divisor"),
    ),
    says,
    board,
    h(
      "p",
      { class: "quiet key" },
      ...DIVISORS.map(([by]) =>
        h("span", {}, legendLine(LINES[by]), by === "1" ? "no scaling" : by),
      ),
      h("span", {}, "thick: the selected divisor"),
      h("span", {}, "● the current d (click to move it)"),
    ),
    table.node,
  );

  // The charts, made anew when there is more or less room.
  let histogram;
  let bars;
  let entropies;
  let gradients;
  let written; // the least weight whose number fits over its bar
  function lay(wide) {
    written = wide ? 0.005 : 0.095;
    const size = {
      width: wide ? 414 : 272,
      height: wide ? 146 : 138,
      left: 38,
      right: 8,
      bottom: 30,
    };
    [histogram, bars] = ["histogram", "bars"].map((name) => chart(name, size));
    [entropies, gradients] = ["entropy", "gradient"].map((name) => chart(name, { ...size, pick }));
    board.replaceChildren(...[histogram, bars, entropies, gradients].map(({ figure }) => figure));
    paint();
  }

  function paintHistogram(now, ink) {
    const counts = new Array(BINS).fill(0);
    for (const s of now.divided)
      counts[Math.min(BINS - 1, Math.max(0, Math.floor(((s + EDGE) / (2 * EDGE)) * BINS)))] += 1;
    const high = Math.max(...counts);
    const beyond = now.divided.filter((s) => Math.abs(s) > EDGE).length;
    const wide = (2 * EDGE) / BINS;
    histogram.paint({
      x: [-EDGE, EDGE],
      y: [0, high],
      xticks: [-12, -8, -4, 0, 4, 8, 12].map((v) => [v, fixed(v, 0)]),
      yticks: [
        [0, "0"],
        [high, String(high)],
      ],
      xlabel: beyond ? `score · grey ends: ${beyond} lie beyond ±12` : "score",
      title: `512 scores: std ${now.std.toFixed(2)}`,
      label: `Histogram of 512 scores, standard deviation ${now.std.toFixed(2)}`,
      marks: (x, y) =>
        counts.map((n, i) =>
          h("rect", {
            x: x(i * wide - EDGE),
            width: x(wide) - x(0) - 1,
            y: y(n),
            height: y(0) - y(n),
            fill: (i === 0 || i === BINS - 1) && beyond ? "var(--quiet)" : ink,
          }),
        ),
    });
  }

  function paintBars(row, index, ink) {
    bars.paint({
      x: [-0.5, KEYS - 0.5],
      y: [0, 1.06],
      xticks: row.weights.map((_, j) => [j, j % 2 ? "" : String(j)]),
      yticks: [0, 0.5, 1].map((w) => [w, String(w)]),
      xlabel: "key",
      title: `Weights of query ${index}`,
      label: `Weights of query ${index}: ${row.weights.map((w) => w.toFixed(2)).join(", ")}`,
      marks: (x, y, text) =>
        row.weights.flatMap((w, j) => [
          h("rect", {
            x: x(j - 0.4),
            width: x(0.8) - x(0),
            y: y(w),
            height: y(0) - y(w),
            fill: ink,
          }),
          text(x(j), y(w) - 3, w < written ? "" : w.toFixed(2).replace(/^0/, ""), {
            fill: "var(--ink)",
          }),
        ]),
    });
  }

  function paintCurves(panel, name, title, high, power, chosen) {
    const order = DIVISORS.map(([by]) => by).sort(
      (a, b) => Number(a === chosen) - Number(b === chosen),
    );
    const now = curves[chosen][power - 2][name];
    panel.paint({
      x: [1.8, 10.2],
      y: [0, high],
      at: power,
      xticks: POWERS.map((p) => [p, String(2 ** p)]),
      yticks: [0, high / 2, high].map((v) => [v, v.toFixed(2)]),
      xlabel: "head size d",
      title: `${title}: ${now.toFixed(2)}`,
      label: `${title} against the head size; now ${now.toFixed(2)} at d = ${2 ** power}, divided by ${chosen}`,
      marks: (x, y) => [
        ...order.map((by) =>
          curve(
            curves[by].map((m, i) => [x(i + 2), y(m[name])]),
            LINES[by][0],
            { "stroke-dasharray": LINES[by][1], "stroke-width": by === chosen ? 4 : 1.5 },
          ),
        ),
        dot(x(power), y(now)),
      ],
    });
  }

  function paint() {
    const power = model.get("power");
    const by = model.get("divisor");
    const index = model.get("row");
    const now = curves[by][power - 2];
    const row = now.rows[index];
    const ink = `var(--${LINES[by][0]})`;
    paintHistogram(now, ink);
    paintBars(row, index, ink);
    paintCurves(entropies, "entropy", "Entropy of the weights, mean", 3, power, by);
    paintCurves(gradients, "gradient", "Gradient (Jacobian norm), mean", 0.4, power, by);
    for (const [name] of names) {
      table.write(
        "row",
        name,
        name === "std"
          ? ""
          : (name === "largest" ? Math.max(...row.weights) : row[name]).toFixed(3),
      );
      table.write("mean", name, now[name].toFixed(3));
    }
    const divisor = divide(by, 2 ** power);
    const share = Math.round((100 * now.gradient) / curves["√hs"][power - 2].gradient);
    const largest = `the largest weight is ${now.largest.toFixed(2)} on average`;
    says.textContent =
      `d = ${2 ** power}, divided by ${divisor.toFixed(divisor % 1 ? 2 : 0)}: ` +
      (now.std > 2.5
        ? `▲ too sharp: ${largest}, and the softmax passes ${share}% of the gradient it would pass with √hs.`
        : now.std < 0.6
          ? `▼ too flat: ${largest}, not much above 1/16 = 0.06. Dividing by so much also shrinks the gradient of q and k.`
          : `● balanced: ${largest}, so one key leads and the others still count.`);
  }
  const asWide = onBreakpoint(node, lay);
  const forget = paintOnChange(model, ["power", "divisor", "row"], paint);
  return () => {
    asWide();
    forget();
  };
}

export default live(render);
