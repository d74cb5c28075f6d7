// Dot products of sinusoidal position vectors (position_dots.py).
const LEFT = 34;
const MAP = 320;
const SIDE = LEFT + MAP; // the map with its axes, in the units of its SVG
const share = (part) => `${(100 * part) / SIDE}%`;
const STYLE = `
.d2g.dots .row input { width: 104px; }
.d2g.dots .columns { flex-wrap: nowrap; }
.d2g.dots .map { position: relative; flex: none; width: 292px; }
.d2g.dots .map canvas { position: absolute; left: ${share(LEFT)}; top: 0; width: ${share(MAP)}; height: ${share(MAP)};
  image-rendering: pixelated; cursor: crosshair; touch-action: none; }
.d2g.dots .map svg { position: relative; pointer-events: none; width: 100%; overflow: visible; }
.d2g.dots .map rect { fill: none; stroke: #fff; stroke-width: 1.5; }
.d2g.dots .map rect.dark { stroke: #000; stroke-width: 4; }
.d2g.dots .map rect.pair { stroke: #ff8a50; stroke-width: 2.5; }
.d2g.dots figure { flex: 1; min-width: 0; max-width: 460px; }
.d2g.dots figure svg { width: 100%; }
.d2g.dots .here { fill: var(--red); stroke: var(--paper); stroke-width: 2; }
.d2g.dots svg text { fill: var(--quiet); font-size: 12px; }
.d2g.dots .says { margin: 4px 0 0; font-size: 14px; }
.d2g.dots .number { font-weight: 700; font-variant-numeric: tabular-nums; }
@container explorer (max-width: 480px) { .d2g.dots .columns { flex-wrap: wrap; } .d2g.dots figure { flex-basis: 100%; } }
@container explorer (min-width: 760px) {
  .d2g.dots .row { flex-wrap: nowrap; } /* nothing moves when the base gets long */
  .d2g.dots .row input { width: 78px; }
  .d2g.dots .map { width: ${SIDE}px; }
  .d2g.dots figure svg text { font-size: 9px; } /* which its width enlarges */
}
`;

function render({ model, el }) {
  const node = root(el, "dots", "Dot products of sinusoidal position vectors");
  const map = h("canvas", { role: "img", "aria-label": "Dot product of every pair of positions" });
  const axes = h("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, "aria-hidden": "true" });
  const frames = h("g");
  const ticks = h("g");
  axes.append(ticks, frames);
  const choose = (p, r) => setAndSave(model, { p: inside(p), r: inside(r) });
  const plot = chart("plot", {
    width: 340,
    height: 262,
    left: 40,
    pick: (v) => choose(model.get("p"), v),
  });
  const places = ["p", "r"].map((name) =>
    slider(model, name, { label: `position ${name}`, min: 0, max: model.get("length") - 1 }),
  );
  const says = h("div", { class: "says", role: "status" });
  const notes = h("div", { class: "quiet waves" });

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

  let T = 0;
  let shape = "";
  let products = [];
  let low = 0;
  let high = 1;
  const inside = (v) => Math.min(T - 1, Math.max(0, Math.round(v)));
  const marked = () => {
    // the positions that have their number at the axes
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
    products
      .flat()
      .forEach((v, n) => pixels.data.set([...viridis((v - low) / (high - low || 1)), 255], 4 * n));
    map.getContext("2d").putImageData(pixels, 0, 0);
    const text = (x, y, words, more) =>
      h("text", { x, y, "text-anchor": "middle", ...more }, words);
    const at = (t) => ((t + 0.5) * MAP) / T;
    ticks.replaceChildren(
      ...marked().flatMap((t) => [
        text(LEFT + at(t), MAP + 14, t),
        text(LEFT - 5, Math.max(10, at(t) + 4), t, { "text-anchor": "end" }),
      ]),
      text(LEFT + MAP / 2, SIDE - 4, "position r"),
      text(0, 0, "position p", { transform: `translate(11 ${MAP / 2}) rotate(-90)` }),
    );
    const slowest = 2 * Math.PI * base ** ((C - 2) / C);
    notes.textContent =
      `${C / 2} pair${C > 2 ? "s" : ""} of sine and cosine. The fastest repeats after 6.3 tokens, the slowest after ` +
      `${slowest < 100 ? slowest.toFixed(1) : Math.round(slowest).toLocaleString("en")}. Colours: dark ${fixed(low, 1)}, bright ${fixed(high, 1)}. ` +
      "Click the map or the curve to choose. The white frame is the row of p, the orange one the pair.";
  }

  function paint() {
    T = model.get("length");
    work(2 ** model.get("log_width"), 10 ** model.get("log_base"));
    const p = inside(model.get("p"));
    const r = inside(model.get("r"));
    const cell = MAP / T;
    const row = products[p];
    [p, r].forEach((v, i) =>
      Object.assign(places[i].querySelector("input"), { max: T - 1, value: v }),
    );
    const frame = (name, x, wide, grow) =>
      h("rect", {
        class: name,
        x: LEFT + x - grow,
        y: p * cell - grow,
        width: wide + 2 * grow,
        height: cell + 2 * grow,
      });
    frames.replaceChildren(
      frame("dark", 0, MAP, 0),
      frame("row-of-p", 0, MAP, 0), // dark: seen on yellow too
      frame("dark", r * cell, cell, 2),
      frame("pair", r * cell, cell, 2),
    );
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
        curve(
          row.map((v, t) => [x(t), y(v)]),
          "blue",
          { "stroke-width": 2 },
        ),
        h("circle", { class: "here", cx: x(r), cy: y(row[r]), r: 6 }),
      ],
    });
    says.replaceChildren(
      `PE(${p}) · PE(${r}) = `,
      h("span", { class: "number dot" }, fixed(row[r])),
      ` at distance ${Math.abs(p - r)}. Dot product of a vector with itself: C/2 = `,
      h("span", { class: "number self" }, fixed(row[p])),
      ".",
    );
  }

  const press = (event) => {
    const box = map.getBoundingClientRect();
    choose(
      ((event.clientY - box.top) / box.height) * T - 0.5,
      ((event.clientX - box.left) / box.width) * T - 0.5,
    );
  };
  map.addEventListener("pointerdown", (event) => {
    map.setPointerCapture(event.pointerId);
    press(event);
  });
  map.addEventListener("pointermove", (event) => {
    if (event.buttons) press(event);
  });

  node.append(
    h("style", {}, STYLE),
    h(
      "div",
      { class: "row" },
      ...places,
      slider(model, "log_width", { label: "width C", min: 1, max: 9, show: (v) => String(2 ** v) }),
      slider(model, "log_base", {
        label: "base",
        min: 1,
        max: 7,
        step: 0.25,
        show: (v) => Math.round(10 ** v).toLocaleString("en"),
      }),
    ),
    h("div", { class: "columns" }, h("div", { class: "map" }, map, axes), plot.figure),
    says,
    notes,
  );
  return paintOnChange(model, ["length", "p", "r", "log_width", "log_base"], paint);
}

export default live(render);
