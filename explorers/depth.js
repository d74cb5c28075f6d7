const DEPTHS = [2, 4, 8, 16, 32, 48];
const SCALES = [0.1, 0.25, 0.5, 1, 2];
const PLACES = 49;
const ROWS = 2 + DEPTHS.length;
const SKIPS = { on: "x + f(x)", off: "f(x) alone" };
const NORMS = { none: "none", pre: "pre: f(norm(x))", post: "post: norm of the result" };
const EDGE = 16; // the axes end at 10^±EDGE; what lies beyond is drawn at the edge and written in the table

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

/** A table of numbers: columns class → heading, rows class → heading; write(row, column, text). */
function numberTable(columns, rows) {
  const cells = {};
  const heads = {};
  const head = ([name, words]) => (heads[name] = html`<th scope="col">${words}</th>`);
  const cell = (name) => (cells[name] = html`<td class="number ${name}" />`);
  const line = ([row, words]) => html`<tr>
    <th scope="row">${words}</th>
    ${Object.keys(columns).map((column) => cell(`${row}-${column}`))}
  </tr>`;
  const node = html`<table>
    <thead><tr><th scope="col" />${Object.entries(columns).map(head)}</tr></thead>
    <tbody>${Object.entries(rows).map(line)}</tbody>
  </table>`;
  return { node, heads, write: (row, column, text) => setText(cells[`${row}-${column}`], text) };
}

function build({ get, set, slider, choice }) {
  const numbers = floats(get("numbers"));
  const depth = slider("depth_index", "depth", [0, 5], (i) => `${DEPTHS[i]} layers`);
  const scale = slider(
    "scale_index",
    "scale of each layer’s output",
    [0, 4],
    (i) => `× ${SCALES[i]}`,
  );
  const layer = slider("layer", "look at the stream after how many layers", [0, 48]);
  const deep = () => DEPTHS[get("depth_index")];
  const pick = (v) => set({ layer: Math.min(deep(), Math.max(0, Math.round(v))) });
  const shape = { width: 360, height: 205, pick };
  const size = chart("size", shape);
  const gradient = chart("gradient", shape);
  const table = numberTable(
    { start: "at the start", here: "", end: "at the end" },
    {
      size: "size of the stream (root mean square)",
      gradient: "gradient (relative to the end)",
      cosine: "similarity of two tokens (mean cosine)",
    },
  );
  const says = summary();
  const page = html`
    <div class="row">${depth}${scale}</div>
    <div class="row">
      <span class="row">a layer returns${choice("skips", SKIPS, "Skip connection")}</span>
      <span class="row">norm${choice("norm", NORMS, "Norm")}</span>
    </div>
    <div class="columns">${size.figure}${gradient.figure}</div>
    ${says}
    <div class="row">${layer}</div>
    ${table.node}`;

  const layers = (n) => `${n} layer${n === 1 ? "" : "s"}`;

  /** The three curves of the present settings, as powers of ten (the cosine as it is). */
  function present() {
    const skip = get("skips") === "off" ? 1 : 0;
    const norm = Object.keys(NORMS).indexOf(get("norm"));
    const first = ((skip * 3 + norm) * SCALES.length + get("scale_index")) * ROWS;
    const depth = deep();
    const row = (i) => numbers.subarray((first + i) * PLACES, (first + i) * PLACES + depth + 1);
    return { depth, size: row(0), cosine: row(1), gradient: row(2 + get("depth_index")) };
  }

  /** A power of ten at the axis. */
  const tick = (v) => (Math.abs(v) < 3 ? String(10 ** v) : inPowers(v).replace("1.0·", ""));
  function paintCurve(panel, values, name, title, at, ink, dash) {
    const shown = Array.from(values, (v) => Math.min(EDGE, Math.max(-EDGE, v)));
    const points = (x, y) => shown.map((v, i) => [x(i), y(v)]);
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
      title: `${title} ${inPowers(values[at])}`,
      label: `${name}, by layer: ${inPowers(values[0])} at the start, ${inPowers(values.at(-1))} at the end`,
      marks: (x, y) => [
        curve(points(x, y), ink, { "stroke-dasharray": dash }),
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

  function paint() {
    const now = present();
    const chosen = Math.min(get("layer"), now.depth);
    if (chosen < get("layer")) set({ layer: chosen }); // fewer layers than before
    Object.assign(layer.querySelector("input"), { max: now.depth, value: chosen });
    const after = `after ${layers(chosen)}`;
    paintCurve(size, now.size, "Size of the stream", `Stream ${after}: size`, chosen, "blue", "");
    paintCurve(gradient, now.gradient, "Gradient", `Gradient ${after}:`, chosen, "red", "8 3");
    table.heads.here.textContent = after;
    for (const [column, place] of Object.entries({ start: 0, here: chosen, end: now.depth })) {
      for (const name of ["size", "gradient"])
        table.write(name, column, inPowers(now[name][place]));
      table.write("cosine", column, now.cosine[place].toFixed(2));
    }
    says.textContent = `${now.depth} layers: ${judge(now)}`;
  }
  return { page, paint };
}

export default explorer({
  name: "depth-explorer",
  title: "What depth does to the stream, the gradient and the tokens",
  traits: ["depth_index", "scale_index", "skips", "norm", "layer"],
  build,
});
