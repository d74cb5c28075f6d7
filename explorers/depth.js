const DEPTHS = [2, 4, 8, 16, 32, 48];
const SCALES = [0.1, 0.25, 0.5, 1, 2];
const PLACES = 49;
const ROWS = 2 + DEPTHS.length;
const SKIPS = { on: "x + f(x)", off: "f(x) alone" };
const NORMS = { none: "none", pre: "pre: f(norm(x))", post: "post: norm of the result" };
const [SLAB, TOP] = [5.6, 24]; // of the tower: the height of a layer, and the room above
const FLOOR = TOP + SLAB * PLACES;
const [FAINTEST, STRONGEST] = [-6, 3]; // powers of ten: a layer is paper there, and vermilion there
const PAUSE = 900; // milliseconds at each depth while it plays

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

const layers = (n) => `${n} layer${n === 1 ? "" : "s"}`;

function build({ model, get, set, slider, choice }) {
  const numbers = floats(get("numbers"));
  const depth = slider("depth_index", "depth", [0, 5], (i) => `${DEPTHS[i]} layers`);
  const scale = slider(
    "scale_index",
    "scale of each layer’s output",
    [0, 4],
    (i) => `× ${SCALES[i]}`,
  );
  const layer = slider("layer", "look at the stream after", [0, 48], (n) => layers(n));
  const deep = () => DEPTHS[get("depth_index")];
  const pick = (v) => set({ layer: Math.min(deep(), Math.max(0, Math.round(v))) });
  const size = tower("size", "Stream", "↑");
  const gradient = tower("gradient", "Gradient", "↓");
  const alike = Array.from({ length: 3 }, () => html`<b class="number" />`);
  const after = html`<span />`;
  const cosine = html`<p class="alike">
    Similarity of two tokens (mean cosine): ${alike[0]} at the start, ${alike[1]} ${after}, ${alike[2]} at the end
  </p>`;
  const says = summary();
  const page = html`
    <div class="row">${player(model, deepen, PAUSE)}${depth}${scale}</div>
    <div class="row">
      <span class="row">a layer returns${choice("skips", SKIPS, "Skip connection")}</span>
      <span class="row">norm${choice("norm", NORMS, "Norm")}</span>
    </div>
    <div class="columns">
      <div class="towers">${size.svg}${gradient.svg}</div>
      <div class="told"><div class="row">${layer}</div>${says}${cosine}</div>
    </div>`;

  /** The three curves of the present settings, as powers of ten (the cosine as it is). */
  function present() {
    const skip = get("skips") === "off" ? 1 : 0;
    const norm = Object.keys(NORMS).indexOf(get("norm"));
    const first = ((skip * 3 + norm) * SCALES.length + get("scale_index")) * ROWS;
    const depth = deep();
    const row = (i) => numbers.subarray((first + i) * PLACES, (first + i) * PLACES + depth + 1);
    return { depth, size: row(0), cosine: row(1), gradient: row(2 + get("depth_index")) };
  }

  /** The layers as a tower of slabs: as bright as what is left there, vermilion where it has grown. */
  function tower(kind, name, way) {
    const y = (place) => FLOOR - SLAB * (place + 1);
    const slab = (_, place) => html`<rect x="34" y=${y(place)} width="92" height=${SLAB - 1.2} />`;
    const slabs = Array.from({ length: PLACES }, slab);
    const write = (x, anchor) => html`<text class="number" x=${x} text-anchor=${anchor} />`;
    const [below, here, above] = [write(80, "middle"), write(130, "start"), write(80, "middle")];
    const line = html`<path />`;
    const svg = html`<svg viewBox="0 0 200 ${FLOOR + 38}" class=${kind} role="img">
      ${slabs}${line}${below}${here}${above}
      <text x="80" y=${FLOOR + 33} text-anchor="middle" class="name">${name} ${way}</text>
    </svg>`;
    svg.addEventListener("pointerdown", (event) => {
      const box = svg.getBoundingClientRect();
      const at = ((event.clientY - box.top) * (FLOOR + 38)) / box.height;
      pick((FLOOR - at) / SLAB - 0.5);
    });
    function paint(values, at) {
      const depth = values.length - 1;
      slabs.forEach((slab, place) => {
        const v = values[place];
        const bright = v === undefined ? 0 : Math.max(0, 1 - Math.min(0, v) / FAINTEST);
        const grown = Math.round(100 * Math.min(1, Math.max(0, v / STRONGEST)));
        slab.style.display = v === undefined ? "none" : "";
        slab.style.fillOpacity = bright;
        slab.style.fill = `color-mix(in srgb, var(--red) ${grown || 0}%, var(--blue))`;
      });
      put(above, { y: y(depth) - 8 });
      put(below, { y: FLOOR + 15 });
      put(here, { y: y(at) + 6 });
      put(line, { d: `M28 ${y(at) + SLAB / 2 - 0.6}h100` });
      setText(above, inPowers(values[depth]));
      setText(below, inPowers(values[0]));
      setText(here, at && at < depth ? inPowers(values[at]) : "");
      const ends = `${inPowers(values[0])} at the start, ${inPowers(values[depth])} at the end`;
      svg.setAttribute("aria-label", `${name}, by layer: ${ends}`);
    }
    return { svg, paint };
  }

  let waited = 0;
  /** From depth to depth, and from the deepest to the shallowest. */
  function deepen(ms) {
    const at = get("depth_index");
    const last = DEPTHS.length - 1;
    waited = ms && waited + ms;
    if (!ms || (at < last && waited < PAUSE)) return true;
    waited = 0;
    model.set("depth_index", at < last ? at + 1 : 0);
    return at !== last - 1;
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
    size.paint(now.size, chosen);
    gradient.paint(now.gradient, chosen);
    setText(after, `after ${layers(chosen)}`);
    [0, chosen, now.depth].forEach((place, n) => setText(alike[n], now.cosine[place].toFixed(2)));
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
