const DEPTHS = [2, 4, 8, 16, 32, 48];
const SCALES = [0.1, 0.25, 0.5, 1, 2];
const PLACES = 49;
const ROWS = 2 + DEPTHS.length;
const SKIPS = [
  ["on", "x + f(x)"],
  ["off", "f(x) alone"],
];
const NORMS = [
  ["none", "none"],
  ["pre", "pre: f(norm(x))"],
  ["post", "post: norm of the result"],
];
const EDGE = 16; // the axes end at 10^±EDGE; what lies beyond is drawn at the edge and written in the table

const STYLE = `
.d2g.depth-explorer figure { flex: 1 1 0; min-width: 0; }
.d2g.depth-explorer .columns { flex-wrap: nowrap; }
.d2g.depth-explorer figure svg { width: 100%; }
.d2g.depth-explorer svg text { font-size: 13px; } /* which the width makes smaller, or larger below */
.d2g.depth-explorer .row input { width: 104px; }
.d2g.depth-explorer button { padding: 2px 6px; }
.d2g.depth-explorer .row .row { gap: 4px; margin: 0; }
.d2g.depth-explorer th, .d2g.depth-explorer td { padding: 1px 8px 1px 2px; }
.d2g.depth-explorer table { white-space: nowrap; font-size: 12px; }
.d2g.depth-explorer tbody th { font-weight: normal; }
.d2g.depth-explorer td.number { font-family: inherit; }
.d2g.depth-explorer .verdict { min-height: 2.9em; } /* two lines: the slider below it stays */
.d2g.depth-explorer figcaption { white-space: nowrap; font-size: 12px; }
@container explorer (max-width: 480px) { /* a phone: one under the other */
  .d2g.depth-explorer .columns { flex-wrap: wrap; }
  .d2g.depth-explorer figure { flex-basis: 100%; }
  .d2g.depth-explorer table { white-space: normal; }
}
@container explorer (min-width: 760px) {
  .d2g.depth-explorer svg text { font-size: 10px; }
  .d2g.depth-explorer figcaption, .d2g.depth-explorer table { font-size: 13px; }
}
`;

/** 10 ** power in two digits, as people write it (the same as in_powers in Python). */
function inPowers(exact) {
  const power = Number(exact.toFixed(6));
  if (power >= -2 && power < 3) return (10 ** power).toFixed(Math.max(0, 1 - Math.floor(power)));
  let whole = Math.floor(power);
  let digits = (10 ** (power - whole)).toFixed(1);
  if (digits === "10.0") {
    digits = "1.0";
    whole += 1;
  }
  return `${digits}·10${[...String(whole)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("")}`;
}

function render({ model, el }) {
  const node = root(
    el,
    "depth-explorer",
    "What depth does to the stream, the gradient and the tokens",
  );
  const numbers = floats(model.get("numbers"));
  const layer = slider(model, "layer", {
    label: "look at the stream after how many layers",
    min: 0,
    max: 48,
  });
  const asked = (words, name, options, label) =>
    h("span", { class: "row" }, words, choice(model, name, options, label));
  node.append(
    h("style", {}, STYLE),
    h(
      "div",
      { class: "row" },
      slider(model, "depth_index", {
        label: "depth",
        min: 0,
        max: DEPTHS.length - 1,
        show: (i) => `${DEPTHS[i]} layers`,
      }),
      slider(model, "scale_index", {
        label: "scale of each layer’s output",
        min: 0,
        max: SCALES.length - 1,
        show: (i) => `× ${SCALES[i]}`,
      }),
    ),
    h(
      "div",
      { class: "row" },
      asked("a layer returns", "skips", SKIPS, "Skip connection"),
      asked("norm", "norm", NORMS, "Norm"),
    ),
  );

  const deep = () => DEPTHS[model.get("depth_index")];
  const pick = (v) => setAndSave(model, { layer: Math.min(deep(), Math.max(0, Math.round(v))) });
  const shape = { width: 360, height: 205, pick };
  const size = chart("size", shape);
  const gradient = chart("gradient", shape);
  const table = numberTable(
    [
      ["start", "at the start"],
      ["here", ""],
      ["end", "at the end"],
    ],
    [
      ["size", "size of the stream (root mean square)"],
      ["gradient", "gradient (relative to the end)"],
      ["cosine", "similarity of two tokens (mean cosine)"],
    ],
  );
  const says = summary();
  node.append(
    h("div", { class: "columns" }, size.figure, gradient.figure),
    says,
    h("div", { class: "row" }, layer),
    table.node,
  );

  const layers = (n) => `${n} layer${n === 1 ? "" : "s"}`;

  /** The three curves of the present settings, as powers of ten (the cosine as it is). */
  function present() {
    const skip = model.get("skips") === "off" ? 1 : 0;
    const norm = NORMS.findIndex(([name]) => name === model.get("norm"));
    const first = ((skip * NORMS.length + norm) * SCALES.length + model.get("scale_index")) * ROWS;
    const depth = deep();
    const row = (i) => numbers.subarray((first + i) * PLACES, (first + i) * PLACES + depth + 1);
    return { depth, size: row(0), cosine: row(1), gradient: row(2 + model.get("depth_index")) };
  }

  const tick = (v) =>
    v === 0
      ? "1"
      : v === 1
        ? "10"
        : inPowers(v)
            .replace("1.0·", "")
            .replace(/^0\.0?10$/, (s) => String(Number(s)));
  function paintCurve(panel, values, name, title, at, ink, dash) {
    const shown = Array.from(values, (v) => Math.min(EDGE, Math.max(-EDGE, v)));
    const low = Math.min(-2, Math.floor(Math.min(...shown)));
    const high = Math.max(2, Math.ceil(Math.max(...shown)));
    const step = Math.ceil((high - low) / 6);
    const first = Math.ceil(low / step) * step;
    panel.paint({
      x: [0, PLACES - 1],
      y: [low, high],
      at,
      xticks: [0, 8, 16, 24, 32, 40, 48].map((v) => [v, String(v)]),
      yticks: Array.from({ length: Math.floor((high - first) / step) + 1 }, (_, i) => [
        first + i * step,
        tick(first + i * step),
      ]),
      xlabel: shown.some((v, i) => v !== values[i]) ? "layers · off the chart" : "layers",
      title: `${title(at)} ${inPowers(values[at])}`,
      label: `${name}, by layer: ${inPowers(values[0])} at the start, ${inPowers(values.at(-1))} at the end`,
      marks: (x, y) => [
        curve(
          shown.map((v, i) => [x(i), y(v)]),
          ink,
          { "stroke-dasharray": dash },
        ),
        dot(x(at), y(shown[at]), 5),
      ],
    });
  }

  function judge(now) {
    const first = now.gradient[0];
    const end = now.size[now.depth];
    const alike = now.cosine[now.depth];
    const arrives = `${inPowers(first)} of the gradient arrives at the start`;
    if (first < -3)
      return `▼ the gradient vanishes: ${arrives}. The first layers learn almost nothing.`;
    if (first > 2 || end > 2)
      return `▲ it explodes: the stream ends at size ${inPowers(end)}, and ${inPowers(first)} times the gradient arrives at the start.`;
    if (alike > 0.9)
      return `≈ magnitudes are stable, but all tokens look the same: their mean cosine is ${alike.toFixed(2)} at the end. The last layers cannot tell them apart.`;
    return `● sound: the stream ends at size ${inPowers(end)}, ${arrives}, and the tokens stay distinct (cosine ${alike.toFixed(2)}).`;
  }

  return paintOnChange(model, ["depth_index", "scale_index", "skips", "norm", "layer"], () => {
    const now = present();
    const chosen = Math.min(model.get("layer"), now.depth);
    if (chosen < model.get("layer")) setAndSave(model, { layer: chosen }); // fewer layers than before
    Object.assign(layer.querySelector("input"), { max: now.depth, value: chosen });
    paintCurve(
      size,
      now.size,
      "Size of the stream",
      (i) => `Stream after ${layers(i)}: size`,
      chosen,
      "blue",
      "",
    );
    paintCurve(
      gradient,
      now.gradient,
      "Gradient",
      (i) => `Gradient after ${layers(i)}:`,
      chosen,
      "red",
      "8 3",
    );
    table.heads.here.textContent = `after ${layers(chosen)}`;
    for (const [column, place] of [
      ["start", 0],
      ["here", chosen],
      ["end", now.depth],
    ]) {
      for (const name of ["size", "gradient"])
        table.write(name, column, inPowers(now[name][place]));
      table.write("cosine", column, now.cosine[place].toFixed(2));
    }
    says.textContent = `${now.depth} layers: ${judge(now)}`;
  });
}

export default live(render);
