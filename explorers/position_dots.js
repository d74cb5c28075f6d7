// Dot products of sinusoidal position vectors (position_dots.py).
const LEFT = 34;
const MAP = 320;
const SIDE = LEFT + MAP; // the map with its axes, in the units of its SVG

/** The table of vectors (T × C), from the formula. */
function table(T, C, base) {
  return Array.from({ length: T }, (_, p) =>
    Float64Array.from({ length: C }, (_, j) => {
      const angle = p * base ** ((-2 * Math.floor(j / 2)) / C);
      return j % 2 ? Math.cos(angle) : Math.sin(angle);
    }),
  );
}
const product = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

function build({ get, set, slider }) {
  let T = 0;
  let shape = "";
  let products = [];
  let low = 0;
  let high = 1;
  const inside = (v) => Math.min(T - 1, Math.max(0, Math.round(v)));
  const choose = (p, r) => set({ p: inside(p), r: inside(r) });
  const press = (event) => {
    const box = map.getBoundingClientRect();
    const at = (from, size) => (from / size) * T - 0.5;
    choose(at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width));
  };
  const seize = (event) => {
    map.setPointerCapture(event.pointerId);
    press(event);
  };
  const map = html`<canvas role="img" aria-label="Dot product of every pair of positions"
    onpointerdown=${seize} onpointermove=${(event) => event.buttons && press(event)} />`;
  const frames = html`<g />`;
  const ticks = html`<g />`;
  const pick = (v) => choose(get("p"), v);
  const plot = chart("plot", { width: 340, height: 262, left: 40, pick });
  const places = ["p", "r"].map((name) => slider(name, `position ${name}`, [0, get("length") - 1]));
  const says = html`<div class="says" role="status" />`;
  const notes = html`<div class="quiet waves" />`;
  const width = slider("log_width", "width C", [1, 9], (v) => String(2 ** v));
  const thousands = (v) => Math.round(10 ** v).toLocaleString("en");
  const page = html`
    <div class="row">${places}${width}${slider("log_base", "base", [1, 7, 0.25], thousands)}</div>
    <div class="columns">
      <div class="map">
        ${map}<svg viewBox="0 0 ${SIDE} ${SIDE}" aria-hidden="true">${ticks}${frames}</svg>
      </div>
      ${plot.figure}
    </div>
    ${says}${notes}`;

  /** The positions that have their number at the axes. */
  const marked = () => {
    const step = T > 32 ? 16 : T > 12 ? 4 : 1;
    return Array.from({ length: Math.ceil(T / step) }, (_, i) => step * i);
  };

  /** All that does not depend on p and r: the products, their colours, the numbers at the axes. */
  function work(C, base) {
    if (shape === `${T} ${C} ${base}`) return;
    shape = `${T} ${C} ${base}`;
    const rows = table(T, C, base);
    products = rows.map((a) => rows.map((b) => product(a, b)));
    low = Math.min(...products.flat());
    high = Math.max(...products.flat());
    Object.assign(map, { width: T, height: T }); // a pixel for each pair: CSS enlarges them
    const pixels = new ImageData(T, T);
    const { pixel } = mapInks(map);
    new Uint32Array(pixels.data.buffer).set(products.flat().map((v) => pixel(v / high)));
    map.getContext("2d").putImageData(pixels, 0, 0);
    const text = (x, y, words, more = {}) =>
      html`<text x=${x} y=${y} text-anchor="middle" ...${more}>${words}</text>`;
    const at = (t) => ((t + 0.5) * MAP) / T;
    const numbers = marked().flatMap((t) => [
      text(LEFT + at(t), MAP + 14, t),
      text(LEFT - 5, Math.max(10, at(t) + 4), t, { "text-anchor": "end" }),
    ]);
    const up = { transform: `translate(11 ${MAP / 2}) rotate(-90)` };
    const names = [text(LEFT + MAP / 2, SIDE - 4, "position r"), text(0, 0, "position p", up)];
    ticks.replaceChildren(...numbers, ...names);
    const slowest = 2 * Math.PI * base ** ((C - 2) / C);
    notes.textContent =
      `${C / 2} pair${C > 2 ? "s" : ""} of sine and cosine. The fastest repeats after 6.3 tokens, the slowest after ` +
      `${slowest < 100 ? slowest.toFixed(1) : Math.round(slowest).toLocaleString("en")}. Full blue is ${fixed(high, 1)}, paper is 0. ` +
      "Click the map or the curve to choose. The thin frame is the row of p, the orange one the pair.";
  }

  function paint() {
    T = get("length");
    work(2 ** get("log_width"), 10 ** get("log_base"));
    const p = inside(get("p"));
    const r = inside(get("r"));
    const cell = MAP / T;
    const row = products[p];
    [p, r].forEach((v, i) =>
      Object.assign(places[i].querySelector("input"), { max: T - 1, value: v }),
    );
    const frame = (name, x, wide, grow) =>
      html`<rect class=${name} x=${LEFT + x - grow} y=${p * cell - grow}
        width=${wide + 2 * grow} height=${cell + 2 * grow} />`;
    frames.replaceChildren(
      frame("dark", 0, MAP, 0),
      frame("row-of-p", 0, MAP, 0),
      frame("dark", r * cell, cell, 2),
      frame("pair", r * cell, cell, 2),
    );
    const points = (x, y) => row.map((v, t) => [x(t), y(v)]);
    plot.paint({
      x: [0, T - 1],
      y: [Math.min(0, low), high],
      at: p,
      xlabel: "position r",
      xticks: marked().map((t) => [t, t]),
      yticks: [0, high, ...(low < -0.1 * high ? [low] : [])].map((v) => [v, fixed(v, 1)]),
      title: `The row p = ${p} of the map`,
      label: `Dot product of position ${p} with every position; largest with itself`,
      marks: (x, y) => [
        curve(points(x, y), "blue", { "stroke-width": 2 }),
        html`<circle class="here" cx=${x(r)} cy=${y(row[r])} r="6" />`,
      ],
    });
    says.replaceChildren(
      ...html`PE(${p}) · PE(${r}) = <span class="number dot">${fixed(row[r])}</span> at
        distance ${Math.abs(p - r)}. Dot product of a vector with itself: C/2
        = <span class="number self">${fixed(row[p])}</span>.`,
    );
  }
  const theme = () => (shape = "");
  return { page, paint, theme };
}

export default explorer({
  name: "dots",
  title: "Dot products of sinusoidal position vectors",
  traits: ["length", "p", "r", "log_width", "log_base"],
  build,
});
