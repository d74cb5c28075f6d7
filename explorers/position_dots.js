// Dot products of sinusoidal position vectors (position_dots.py).
const STYLE = `
.d2g.dots .map { cursor: crosshair; touch-action: none; }
.d2g.dots svg .curve { fill: none; stroke: var(--blue); stroke-width: 2; }
.d2g.dots svg .axis { stroke: var(--line); }
.d2g.dots svg .mark { stroke: var(--quiet); stroke-dasharray: 4 4; }
.d2g.dots svg .here { fill: var(--red); stroke: var(--paper); stroke-width: 2; }
.d2g.dots svg text { fill: var(--quiet); font-size: 12px; text-anchor: middle; }
.d2g.dots .says { margin: 8px 0 2px; font-size: 14px; }
.d2g.dots .number { font-weight: 700; font-variant-numeric: tabular-nums; }
`;
const MAP = 340, LEFT = 40, WIDE = 500, HIGH = 300;

function render({ model, el }) {
  const node = root(el, "dots", "Dot products of sinusoidal position vectors");
  const T = model.get("length");
  const cell = MAP / T;
  const map = canvas(MAP + LEFT, MAP + 36, "Dot product of every pair of positions");
  map.classList.add("map");
  const plot = h("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, width: WIDE, height: HIGH, role: "img" });
  const says = h("div", { class: "says", role: "status" });
  const waves = h("div", { class: "quiet waves" });
  const minus = (v, digits = 2) => (Math.abs(v) < 0.5 * 10 ** -digits ? 0 : v).toFixed(digits).replace("-", "−");

  /** The table of vectors (T × C), from the formula. */
  function table(C, base) {
    return Array.from({ length: T }, (_, p) => Float64Array.from({ length: C }, (_, j) => {
      const angle = p * base ** (-2 * Math.floor(j / 2) / C);
      return j % 2 ? Math.cos(angle) : Math.sin(angle);
    }));
  }
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

  let shape = "", products = [], low = 0, high = 1;
  function work(C, base) {
    if (shape === `${C} ${base}`) return;
    shape = `${C} ${base}`;
    const rows = table(C, base);
    products = rows.map((a) => rows.map((b) => dot(a, b)));
    low = Math.min(...products.flat());
    high = Math.max(...products.flat());
  }

  function paint() {
    const C = 2 ** model.get("log_width"), base = 10 ** model.get("log_base");
    const p = Math.min(model.get("p"), T - 1), q = Math.min(model.get("q"), T - 1);
    work(C, base);
    paintMap(p, q);
    paintCurve(p, q);
    says.replaceChildren(`PE(${p}) · PE(${q}) = `, h("span", { class: "number dot" }, minus(products[p][q])),
      ` at distance ${Math.abs(p - q)}. Of a vector with itself: C/2 = `, h("span", { class: "number self" }, minus(products[p][p])), ".");
    const slowest = 2 * Math.PI * base ** ((C - 2) / C);
    waves.textContent = `${C / 2} pair${C > 2 ? "s" : ""} of sine and cosine. The fastest repeats after 6.3 tokens, the slowest after `
      + `${slowest < 100 ? slowest.toFixed(1) : Math.round(slowest).toLocaleString("en")}. Colours: dark ${minus(low, 1)}, bright ${minus(high, 1)}.`;
  }

  function paintMap(p, q) {
    const draw = map.getContext("2d");
    draw.clearRect(0, 0, MAP + LEFT, MAP + 36);
    // One pixel a cell, enlarged without smoothing: drawn cells would leave seams between them.
    const pixels = new ImageData(T, T), small = h("canvas", { width: T, height: T });
    products.flat().forEach((v, n) => pixels.data.set([...viridis((v - low) / (high - low || 1)), 255], 4 * n));
    small.getContext("2d").putImageData(pixels, 0, 0);
    draw.imageSmoothingEnabled = false;
    draw.drawImage(small, LEFT, 0, MAP, MAP);
    draw.strokeStyle = "#fff";
    draw.lineWidth = 1.5;
    draw.strokeRect(LEFT, p * cell, MAP, cell);
    draw.strokeStyle = colour(node, "red");
    draw.lineWidth = 3;
    draw.strokeRect(LEFT + q * cell - 2, p * cell - 2, cell + 4, cell + 4);
    draw.fillStyle = colour(node, "quiet");
    draw.font = "12px sans-serif";
    draw.textAlign = "center";
    for (let t = 0; t < T; t += 16) draw.fillText(String(t), LEFT + (t + 0.5) * cell, MAP + 14);
    draw.fillText("position q", LEFT + MAP / 2, MAP + 31);
    draw.textAlign = "right";
    for (let t = 0; t < T; t += 16) draw.fillText(String(t), LEFT - 5, Math.max(10, (t + 0.5) * cell + 4));
    draw.save();
    draw.translate(11, MAP / 2);
    draw.rotate(-Math.PI / 2);
    draw.textAlign = "center";
    draw.fillText("position p", 0, 0);
    draw.restore();
  }

  function paintCurve(p, q) {
    const row = products[p], floor = Math.min(0, low);
    const x = (t) => 45 + t / (T - 1) * (WIDE - 60), y = (v) => HIGH - 46 - (v - floor) / (high - floor || 1) * (HIGH - 66);
    const text = (px, py, words) => h("text", { x: px, y: py }, words);
    plot.replaceChildren(
      h("line", { class: "axis", x1: x(0), x2: x(T - 1), y1: y(0), y2: y(0) }),
      h("line", { class: "mark", x1: x(p), x2: x(p), y1: y(floor), y2: y(high) }),
      h("polyline", { class: "curve", points: row.map((v, t) => `${x(t)},${y(v)}`).join(" ") }),
      h("circle", { class: "here", cx: x(q), cy: y(row[q]), r: 6 }),
      text(22, y(0) + 4, "0"), text(22, y(high) + 4, minus(high, 1)), text(x(p), 14, `p = ${p}`),
      ...Array.from({ length: Math.ceil(T / 16) }, (_, i) => text(x(16 * i), HIGH - 26, String(16 * i))),
      text(WIDE / 2, HIGH - 6, `position q: the row p = ${p} of the map`),
    );
    plot.setAttribute("aria-label", `Dot product of position ${p} with every position; largest with itself`);
  }

  const choose = (event) => {
    const box = map.getBoundingClientRect(), scale = (MAP + LEFT) / box.width;
    const at = (v) => Math.min(T - 1, Math.max(0, Math.floor(v / cell)));
    model.set("q", at((event.clientX - box.left) * scale - LEFT));
    model.set("p", at((event.clientY - box.top) * scale));
    model.save_changes();
  };
  map.addEventListener("pointerdown", (event) => { map.setPointerCapture(event.pointerId); choose(event); });
  map.addEventListener("pointermove", (event) => { if (event.buttons) choose(event); });

  const later = onceAFrame(paint);
  const names = ["p", "q", "log_width", "log_base"].map((n) => `change:${n}`);
  names.forEach((n) => model.on(n, later));
  node.append(
    h("style", {}, STYLE),
    h("div", { class: "row" },
      slider(model, "p", { label: "position p", min: 0, max: T - 1 }),
      slider(model, "q", { label: "position q", min: 0, max: T - 1 }),
      slider(model, "log_width", { label: "width C", min: 1, max: 9, show: (v) => String(2 ** v) }),
      slider(model, "log_base", { label: "base", min: 1, max: 7, step: 0.25, show: (v) => Math.round(10 ** v).toLocaleString("en") })),
    h("div", { class: "columns" }, map, plot),
    says, waves,
    h("div", { class: "quiet" }, "Press on the map to choose p and q. The white frame is the row of p, the red one the pair."),
  );
  paint();
  later(); // again once it is in the page: the colours of the theme are known only there
  const undo = onTheme(later);
  return () => { names.forEach((n) => model.off(n, later)); undo(); };
}

export default live(render);
