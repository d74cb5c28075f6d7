const DEPTHS = [2, 4, 8, 16, 32, 48], SCALES = [0.1, 0.25, 0.5, 1, 2], PLACES = 49, ROWS = 2 + DEPTHS.length;
const SKIPS = [["on", "x + f(x)"], ["off", "f(x) alone"]];
const NORMS = [["none", "nowhere"], ["pre", "before: f reads norm(x) (pre)"], ["post", "after: the stream itself (post)"]];
const EDGE = 16; // the axes end at 10^±EDGE; what lies beyond is drawn at the edge and written in the table

/** 10 ** power in two digits, as people write it (the same as in_powers in Python). */
function inPowers(exact) {
  const power = Number(exact.toFixed(6));
  if (power >= -2 && power < 3) return (10 ** power).toFixed(Math.max(0, 1 - Math.floor(power)));
  let whole = Math.floor(power), digits = (10 ** (power - whole)).toFixed(1);
  if (digits === "10.0") { digits = "1.0"; whole += 1; }
  return `${digits}·10${[...String(whole)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("")}`;
}

function render({ model, el }) {
  const node = root(el, "depth-explorer", "What depth does to the stream, the gradient and the tokens");
  const numbers = floats(model.get("numbers"));
  const layer = slider(model, "layer", { label: "look at the stream after layer", min: 0, max: 48 });
  node.append(
    h("div", { class: "row" },
      slider(model, "depth_index", { label: "depth", min: 0, max: DEPTHS.length - 1, show: (i) => `${DEPTHS[i]} layers` }),
      slider(model, "scale_index", { label: "how loud the layers are", min: 0, max: SCALES.length - 1, show: (i) => `× ${SCALES[i]}` })),
    h("div", { class: "row" }, "a layer gives", choice(model, "skips", SKIPS, "Skips"), "and is normed", choice(model, "norm", NORMS, "Norm")));

  const W = 440, H = 230, L = 48, R = 14, B = 36, T = 10;
  const panel = (name) => {
    const svg = h("svg", { viewBox: `0 0 ${W} ${H}`, width: W, role: "img", class: name, style: "cursor:pointer" });
    const caption = h("figcaption", { style: "font-weight:600" });
    return { svg, caption, figure: h("figure", { style: "margin:0" }, caption, svg) };
  };
  const size = panel("size"), gradient = panel("gradient");

  const names = ["size", "gradient", "cosine"];
  const labels = ["size of the stream (root mean square)", "gradient that arrives (share of that at the end)",
    "how alike two tokens are (mean cosine)"];
  const cells = names.map((name) => ["start", "here", "end"].map((place) => h("td", { class: `number ${name}-${place}` })));
  const here = h("th", { scope: "col" });
  const table = h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, ""), h("th", { scope: "col" }, "before layer 1"), here, h("th", { scope: "col" }, "at the end"))),
    h("tbody", {}, ...names.map((_, i) => h("tr", {}, h("th", { scope: "row" }, labels[i]), ...cells[i]))));
  const verdict = h("p", { class: "verdict", role: "status", style: "margin:4px 0" });
  node.append(h("div", { class: "columns" }, size.figure, gradient.figure), verdict, h("div", { class: "row" }, layer), table);

  const text = (x, y, words, more = {}) =>
    h("text", { x, y, "text-anchor": "middle", "font-size": 11, fill: "var(--quiet)", ...more }, words);
  const line = (x1, y1, x2, y2, more = {}) => h("line", { x1, y1, x2, y2, stroke: "var(--line)", ...more });
  const x = (place) => L + place / (PLACES - 1) * (W - L - R);

  /** The three curves of the present settings, as powers of ten (the cosine as it is). */
  function present() {
    const skip = model.get("skips") === "off" ? 1 : 0, norm = NORMS.findIndex(([name]) => name === model.get("norm"));
    const first = ((skip * NORMS.length + norm) * SCALES.length + model.get("scale_index")) * ROWS;
    const depth = DEPTHS[model.get("depth_index")];
    const row = (i) => numbers.subarray((first + i) * PLACES, (first + i) * PLACES + depth + 1);
    return { depth, size: row(0), cosine: row(1), gradient: row(2 + model.get("depth_index")) };
  }

  function paintCurve({ svg, caption }, values, title, chosen, paint, dash) {
    const clip = (v) => Math.min(EDGE, Math.max(-EDGE, v)), shown = Array.from(values, clip);
    const low = Math.min(-2, Math.floor(Math.min(...shown))), high = Math.max(2, Math.ceil(Math.max(...shown)));
    const step = Math.ceil((high - low) / 6), floor = H - B;
    const y = (v) => floor - (v - low) / (high - low) * (floor - T);
    const ticks = [];
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) ticks.push(v);
    const beyond = Array.from(values).some((v) => Math.abs(v) > EDGE);
    svg.replaceChildren(
      ...ticks.flatMap((v) => [line(L, y(v), W - R, y(v), { stroke: v === 0 ? "var(--line)" : "var(--panel)" }),
        text(L - 6, y(v) + 4, v === 0 ? "1" : v === 1 ? "10" : inPowers(v).replace("1.0·", "").replace(/^0\.0?10$/, (s) => String(Number(s))), { "text-anchor": "end" })]),
      ...[0, 8, 16, 24, 32, 40, 48].map((place) => text(x(place), floor + 14, String(place))),
      text((L + W - R) / 2, H - 4, beyond ? "after layer · the curve leaves the picture" : "after layer"),
      h("polyline", { points: shown.map((v, i) => `${x(i)},${y(v)}`).join(" "), fill: "none", stroke: `var(--${paint})`, "stroke-width": 3, "stroke-dasharray": dash }),
      line(x(chosen), T, x(chosen), floor, { "stroke-dasharray": "2 3" }),
      h("circle", { cx: x(chosen), cy: y(shown[chosen]), r: 5, fill: "var(--ink)" }));
    caption.textContent = `${title}: ${inPowers(values[chosen])} after layer ${chosen}`;
    svg.setAttribute("aria-label", `${title}, by layer: ${inPowers(values[0])} before layer 1, ${inPowers(values.at(-1))} at the end`);
  }

  function judge(now) {
    const first = now.gradient[0], end = now.size[now.depth], alike = now.cosine[now.depth];
    const arrives = `${inPowers(first)} of the gradient arrives before layer 1`;
    if (first < -3) return `▼ the gradient vanishes: ${arrives}. The first layers learn next to nothing.`;
    if (first > 2 || end > 2) return `▲ it explodes: the stream ends at size ${inPowers(end)}, and ${inPowers(first)} times the gradient arrives before layer 1.`;
    if (alike > 0.9) return `≈ sizes are kept, but the tokens have become alike: their mean cosine is ${alike.toFixed(2)} at the end. The top cannot tell what it is reading.`;
    return `● sound: the stream ends at size ${inPowers(end)}, ${arrives}, and the tokens can be told apart (cosine ${alike.toFixed(2)}).`;
  }

  for (const { svg } of [size, gradient]) {
    svg.addEventListener("pointerdown", (event) => {
      const box = svg.getBoundingClientRect(), at = (event.clientX - box.left) * W / box.width;
      const place = Math.round((at - L) / (W - L - R) * (PLACES - 1));
      model.set("layer", Math.min(DEPTHS[model.get("depth_index")], Math.max(0, place)));
      model.save_changes();
    });
  }

  const paint = onceAFrame(() => {
    const now = present(), chosen = Math.min(model.get("layer"), now.depth);
    paintCurve(size, now.size, "Size of the stream", chosen, "blue", "");
    paintCurve(gradient, now.gradient, "Gradient", chosen, "red", "8 3");
    here.textContent = `after layer ${chosen}`;
    names.forEach((name, i) => [0, chosen, now.depth].forEach((place, j) => {
      cells[i][j].textContent = name === "cosine" ? now.cosine[place].toFixed(2) : inPowers(now[name][place]);
    }));
    verdict.textContent = `${now.depth} layers: ${judge(now)}`;
  });
  const watched = ["depth_index", "scale_index", "skips", "norm", "layer"].map((name) => `change:${name}`).join(" ");
  model.on(watched, paint);
  paint();
  return () => model.off(watched, paint);
}

export default { render };
