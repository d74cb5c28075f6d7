// Numbers are reckoned in tenths of a unit: whole numbers, so that a right angle gives exactly 0.
const REACH = 6;
const SIZE = 420;
const UNIT = (SIZE - 40) / (2 * REACH);
const MIDDLE = SIZE / 2;
const sx = (x) => MIDDLE + x * UNIT;
const sy = (y) => MIDDLE - y * UNIT;
const snap = (v) => Math.min(REACH, Math.max(-REACH, Math.round(v * 10) / 10)) + 0; // + 0: no -0
const near = (v) => fixed(v, 1);
/** All the numbers of the table. What needs the direction of a zero vector is NaN. */
function measure(ax, ay, bx, by) {
  const tenths = [ax, ay, bx, by].map((v) => Math.round(v * 10));
  const dot = (tenths[0] * tenths[2] + tenths[1] * tenths[3]) / 100;
  const la = Math.hypot(ax, ay);
  const lb = Math.hypot(bx, by);
  const cosine = la && lb ? Math.min(1, Math.max(-1, dot / (la * lb))) : NaN;
  return {
    dot,
    la,
    lb,
    cosine,
    angle: (Math.acos(cosine) * 180) / Math.PI,
    projection: la ? dot / la : NaN,
  };
}

const LEGEND = {
  dot: "a·b",
  la: "length ‖a‖",
  lb: "length ‖b‖",
  cosine: "cosine = a·b / (‖a‖ ‖b‖)",
  angle: "angle θ",
  projection: "projection of b on a = a·b / ‖a‖",
};
const MOVES = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/** A line of the drawing, in units. */
const line = (x1, y1, x2, y2, look) =>
  html`<line x1=${sx(x1)} y1=${sy(y1)} x2=${sx(x2)} y2=${sy(y2)} ...${look} />`;

/** The lines of the plane, and the numbers at its axes. */
function grid() {
  const all = Array.from({ length: 2 * REACH + 1 }, (_, k) => k - REACH);
  return all.map((i) => {
    const look = {
      stroke: i ? "var(--jp-border-color2, #d1d5db)" : "var(--quiet)",
      "stroke-width": i ? 0.6 : 1.3,
    };
    return [
      line(-REACH, i, REACH, i, look),
      line(i, -REACH, i, REACH, look),
      i !== 0 &&
        i % 2 === 0 &&
        html`<text x=${sx(i)} y=${sy(0) + 5} dy="0.7em" text-anchor="middle">${fixed(i, 0)}</text>
          <text x=${sx(0) - 5} y=${sy(i)} dy="0.35em" text-anchor="end">${fixed(i, 0)}</text>`,
    ];
  });
}

/** An arrow without its grip. */
function arrow(name, ink, x, y) {
  const length = Math.hypot(x, y) || 1;
  const [ux, uy] = [x / length, y / length];
  const back = Math.min(0.42, length);
  const side = back * 0.42;
  const [cx, cy] = [x - ux * back, y - uy * back];
  const ends = [
    [x, y],
    [cx - uy * side, cy + ux * side],
    [cx + uy * side, cy - ux * side],
  ];
  const inside = (v) => Math.min(SIZE - 14, Math.max(14, v));
  const [right, down] = [inside(sx(x + ux * 0.6)), inside(sy(y + uy * 0.6))];
  return html`
    ${line(0, 0, x - ux * back * 0.8, y - uy * back * 0.8, { stroke: ink, "stroke-width": 3.5 })}
    <polygon fill=${ink} points=${ends.map(([px, py]) => `${sx(px)},${sy(py)}`).join(" ")} />
    <text class="name" x=${right} y=${down} dy="0.35em" text-anchor="middle">${name}</text>`;
}

/** The line of a, the shadow of b on it, the right angle between, and the angle of a and b. */
function construction(ax, ay, bx, by, m) {
  if (!m.la) return [];
  const sign = Math.sign(m.dot);
  const [ux, uy] = [ax / m.la, ay / m.la];
  const [fx, fy] = [ux * m.projection, uy * m.projection]; // where the shadow of b ends
  const reach = Math.min(10 / m.la, REACH / Math.max(Math.abs(ax), Math.abs(ay)));
  const quiet = (width, dashes) => ({
    stroke: "var(--quiet)",
    "stroke-width": width,
    "stroke-dasharray": dashes,
  });
  const shadow = {
    stroke: sign > 0 ? "var(--green)" : sign ? "var(--red)" : "none",
    "stroke-width": 9,
    "stroke-linecap": "round",
    opacity: 0.5,
  };
  const [dx, dy] = [bx - fx, by - fy];
  const d = Math.hypot(dx, dy);
  const q = 0.22;
  const square = [
    [fx - ux * q * sign, fy - uy * q * sign],
    [fx - ux * q * sign + (dx / d) * q, fy - uy * q * sign + (dy / d) * q],
    [fx + (dx / d) * q, fy + (dy / d) * q],
  ];
  const corner = square.map(([x, y], i) => `${i ? "L" : "M"}${sx(x)},${sy(y)}`).join(" ");
  const way = ax * by - ay * bx >= 0 ? 1 : -1;
  const start = Math.atan2(ay, ax);
  const end = start + (way * m.angle * Math.PI) / 180;
  const on = (t, k) => [sx(k * Math.cos(t)), sy(k * Math.sin(t))];
  const r = 0.9;
  const arc = `M${on(start, r)} A${r * UNIT},${r * UNIT} 0 0 ${way > 0 ? 0 : 1} ${on(end, r)}`;
  const [tx, ty] = on((start + end) / 2, 1.35);
  return html`
    ${line(-ax * reach, -ay * reach, ax * reach, ay * reach, quiet(1, "2 4"))}
    ${line(0, 0, fx, fy, shadow)}
    ${line(bx, by, fx, fy, quiet(1.5, "5 4"))}
    ${d > 0.5 && html`<path d=${corner} fill="none" stroke="var(--quiet)" stroke-width="1.2" />`}
    ${
      m.angle > 0.05 &&
      html`<path d=${arc} fill="none" stroke="var(--ink)" stroke-width="1.5" />
      <text class="angle" x=${tx} y=${ty} dy="0.35em" text-anchor="middle">${fixed(m.angle, 0)}°</text>`
    }`;
}

function build({ get, set, slider }) {
  const at = (name) => [get(`${name}x`), get(`${name}y`)];
  const moveTip = (name, x, y) => set({ [`${name}x`]: snap(x), [`${name}y`]: snap(y) });

  /** The tip of an arrow: pointer and keys move it. */
  function tip(name, ink) {
    const follow = (event) => {
      if (!node.hasPointerCapture(event.pointerId)) return;
      const box = svg.getBoundingClientRect();
      const scale = SIZE / box.width;
      const [right, down] = [event.clientX - box.left, event.clientY - box.top];
      moveTip(name, (right * scale - MIDDLE) / UNIT, (MIDDLE - down * scale) / UNIT);
    };
    const seize = (event) => {
      node.setPointerCapture(event.pointerId);
      node.focus({ preventScroll: true });
      event.preventDefault();
    };
    const move = (event) => {
      const way = MOVES[event.key];
      if (!way) return;
      event.preventDefault();
      const step = event.shiftKey ? 1 : 0.1;
      const [x, y] = at(name);
      moveTip(name, x + way[0] * step, y + way[1] * step);
    };
    const node = html`<circle class="grip" r="16" fill=${ink} tabindex="0" role="slider"
      aria-label="Tip of ${name}: arrow keys move it, with Shift by a whole step"
      aria-valuemin=${-REACH} aria-valuemax=${REACH}
      onpointerdown=${seize} onpointermove=${follow} onkeydown=${move} />`;
    return node;
  }
  const inks = { a: "var(--blue)", b: "var(--orange)" };
  const grips = Object.entries(inks).map(([name, ink]) => tip(name, ink));
  const drawing = html`<g />`;
  const svg = html`<svg viewBox="0 0 ${SIZE} ${SIZE}" role="group">${grid()}${drawing}${grips}</svg>`;

  const cells = {};
  const cell = (key) => (cells[key] = html`<td class="number" />`);
  const row = ([key, name]) =>
    html`<tr data-row=${key}><th scope="row">${name}</th>${cell(key)}</tr>`;
  const sum = html`<div class="value sum" />`;
  const says = html`<div class="verdict" aria-live="polite" />`;
  const number = (name, label) => slider(name, label, [-REACH, REACH, 0.1], near);
  // Only where the plane has room, and tenths for the result: half an arrow keeps its direction.
  const scaled = (factor) => at("b").map((v) => v * factor);
  const exact = (factor) => scaled(factor).every((v) => Math.abs(v - snap(v)) < 1e-9);
  const button = (text, act) => html`<button type="button" onclick=${act}>${text}</button>`;
  const scale = (factor, text) => [factor, button(text, () => moveTip("b", ...scaled(factor)))];
  const factors = [scale(2, "b × 2"), scale(0.5, "b ÷ 2"), scale(-1, "−b")];
  const turn = () => moveTip("b", -get("by"), get("bx"));
  const page = html`<div class="board">
    ${svg}
    <div>
      ${sum}${says}
      <table aria-label="What the arrows measure"><tbody>${Object.entries(LEGEND).map(row)}</tbody></table>
    </div>
    <div class="controls">
      <div class="row">${number("ax", "a₁")}${number("ay", "a₂")}${number("bx", "b₁")}${number("by", "b₂")}</div>
      <div class="row">${factors.map(([, node]) => node)}${button("turn b by 90°", turn)}</div>
      <div class="quiet">Drag the tips, or use the arrow keys (Shift: whole steps).</div>
    </div>
  </div>`;

  function paint() {
    const [ax, ay] = at("a");
    const [bx, by] = at("b");
    const m = measure(ax, ay, bx, by);
    const sign = Math.sign(m.dot);
    const parts = [
      construction(ax, ay, bx, by, m),
      arrow("a", inks.a, ax, ay),
      arrow("b", inks.b, bx, by),
    ];
    drawing.replaceChildren(...parts.flat());
    ["a", "b"].forEach((name, i) => {
      const [x, y] = at(name);
      const valuetext = `${name} = (${near(x)}, ${near(y)})`;
      put(grips[i], { cx: sx(x), cy: sy(y), "aria-valuenow": x, "aria-valuetext": valuetext });
    });
    for (const [factor, node] of factors) node.disabled = !exact(factor);
    const or = (v, digits, unit = "") =>
      Number.isFinite(v) ? fixed(v, digits) + unit : "— no direction";
    for (const key of ["dot", "la", "lb"]) setText(cells[key], fixed(m[key]));
    setText(cells.cosine, or(m.cosine, 2));
    setText(cells.angle, or(m.angle, 1, "°"));
    setText(cells.projection, or(m.projection, 2));
    sum.textContent = `a·b = ${near(ax)} × ${near(bx)} + ${near(ay)} × ${near(by)} = ${fixed(m.dot)}`;
    says.textContent =
      !m.la || !m.lb
        ? "One vector is zero: there is no angle."
        : sign > 0
          ? "▲ acute angle (below 90°): the dot product is positive"
          : sign < 0
            ? "▼ obtuse angle (above 90°): the dot product is negative"
            : "■ right angle (90°): the dot product is zero";
    says.style.color = sign > 0 ? "var(--green-text)" : sign ? "var(--red-text)" : "";
    put(svg, { "aria-label": `Plane with two arrows. ${sum.textContent}. ${says.textContent}` });
  }
  return { page, paint };
}

export default explorer({
  name: "two-vectors",
  title: "Two vectors: drag the tips of the arrows",
  traits: ["ax", "ay", "bx", "by"],
  build,
});
