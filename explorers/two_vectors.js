// Numbers are reckoned in tenths of a unit: whole numbers, so that a right angle gives exactly 0.
const REACH = 6;
const SIZE = 420;
const UNIT = (SIZE - 40) / (2 * REACH);
const MIDDLE = SIZE / 2;
const sx = (x) => MIDDLE + x * UNIT;
const sy = (y) => MIDDLE - y * UNIT;
const snap = (v) => Math.min(REACH, Math.max(-REACH, Math.round(v * 10) / 10)) + 0; // + 0: no -0
const near = (v) => fixed(v, 1);
const STYLE = `
.two-vectors .board { display: grid; grid-template-columns: minmax(0, 274px) minmax(0, 1fr); gap: 4px 16px; }
.two-vectors svg { width: 100%; height: auto; }
.two-vectors svg text { font-size: 17px; fill: var(--quiet); }
.two-vectors svg .name { font-size: 24px; font-weight: 700; fill: var(--ink); }
.two-vectors svg .angle { fill: var(--ink); }
.two-vectors .grip { fill-opacity: 0.16; cursor: grab; touch-action: none; }
/* The ring is round here; the usual one is left to those who see forced colours. */
.two-vectors .grip:focus-visible { stroke: var(--focus); stroke-width: 4; outline-color: transparent; }
.two-vectors .verdict { font-weight: 600; margin: 4px 0; min-height: 2.9em; }
.two-vectors .sum { font-size: 12px; white-space: nowrap; }
.two-vectors .controls { grid-column: 1 / 3; }
.two-vectors .row { gap: 6px 14px; }
.two-vectors input[type="range"] { width: 72px; }
@container explorer (max-width: 480px) { /* a phone */
  .two-vectors .board { grid-template-columns: minmax(0, 1fr); }
  .two-vectors .controls { grid-column: 1; }
}
@container explorer (min-width: 760px) {
  .two-vectors .board { grid-template: auto 1fr / ${SIZE}px minmax(0, 1fr); }
  .two-vectors svg { grid-row: 1 / 3; }
  .two-vectors svg text { font-size: 12px; }
  .two-vectors svg .name { font-size: 18px; }
  .two-vectors .sum { font-size: 13px; }
  .two-vectors .controls { grid-column: 2; }
  .two-vectors input[type="range"] { width: 110px; }
}
`;

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

function render({ model, el }) {
  const node = root(el, "two-vectors", "Two vectors: drag the tips of the arrows");
  const at = (name) => [model.get(`${name}x`), model.get(`${name}y`)];
  const moveTip = (name, x, y) => {
    model.set(`${name}x`, snap(x));
    model.set(`${name}y`, snap(y));
    model.save_changes();
  };

  // The drawing: made once, moved afterwards.
  const svg = h("svg", {
    viewBox: `0 0 ${SIZE} ${SIZE}`,
    role: "group",
    "aria-label": "Plane with two arrows",
  });
  for (let i = -REACH; i <= REACH; i++) {
    const style = {
      stroke: i ? "var(--jp-border-color2, #d1d5db)" : "var(--quiet)",
      "stroke-width": i ? 0.6 : 1.3,
    };
    svg.append(
      h("line", { x1: sx(-REACH), x2: sx(REACH), y1: sy(i), y2: sy(i), ...style }),
      h("line", { y1: sy(-REACH), y2: sy(REACH), x1: sx(i), x2: sx(i), ...style }),
    );
    if (i && i % 2 === 0) {
      svg.append(
        h("text", { x: sx(i), y: sy(0) + 5, dy: "0.7em", "text-anchor": "middle" }, fixed(i, 0)),
        h("text", { x: sx(0) - 5, y: sy(i), dy: "0.35em", "text-anchor": "end" }, fixed(i, 0)),
      );
    }
  }
  const axis = h("line", { stroke: "var(--quiet)", "stroke-width": 1, "stroke-dasharray": "2 4" });
  const shadow = h("line", { "stroke-width": 9, "stroke-linecap": "round", opacity: 0.5 });
  const drop = h("line", {
    stroke: "var(--quiet)",
    "stroke-width": 1.5,
    "stroke-dasharray": "5 4",
  });
  const corner = h("path", { fill: "none", stroke: "var(--quiet)", "stroke-width": 1.2 });
  const arc = h("path", { fill: "none", stroke: "var(--ink)", "stroke-width": 1.5 });
  const arcText = h("text", { class: "angle", dy: "0.35em", "text-anchor": "middle" });
  svg.append(axis, shadow, drop, corner, arc, arcText);
  const arrows = Object.fromEntries(
    [
      ["a", "--blue"],
      ["b", "--orange"],
    ].map(([name, ink]) => {
      const shaft = h("line", { stroke: `var(${ink})`, "stroke-width": 3.5 });
      const head = h("polygon", { fill: `var(${ink})` });
      const label = h("text", { class: "name", dy: "0.35em", "text-anchor": "middle" }, name);
      const grip = h("circle", {
        class: "grip",
        r: 16,
        fill: `var(${ink})`,
        tabindex: 0,
        role: "slider",
        "aria-label": `Tip of ${name}: arrow keys move it, with Shift by a whole step`,
        "aria-valuemin": -REACH,
        "aria-valuemax": REACH,
      });
      svg.append(shaft, head, label, grip);
      hold(grip, name);
      return [name, { shaft, head, label, grip }];
    }),
  );

  /** Pointer and keys on the tip of an arrow. */
  function hold(grip, name) {
    const follow = (event) => {
      const box = svg.getBoundingClientRect();
      const scale = SIZE / box.width;
      moveTip(
        name,
        ((event.clientX - box.left) * scale - MIDDLE) / UNIT,
        (MIDDLE - (event.clientY - box.top) * scale) / UNIT,
      );
    };
    grip.addEventListener("pointerdown", (event) => {
      grip.setPointerCapture(event.pointerId);
      grip.focus({ preventScroll: true });
      event.preventDefault();
    });
    grip.addEventListener("pointermove", (event) => {
      if (grip.hasPointerCapture(event.pointerId)) follow(event);
    });
    grip.addEventListener("keydown", (event) => {
      const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[
        event.key
      ];
      if (!way) return;
      event.preventDefault();
      const step = event.shiftKey ? 1 : 0.1;
      const [x, y] = at(name);
      moveTip(name, x + way[0] * step, y + way[1] * step);
    });
  }

  // The numbers.
  const cell = () => h("td", { class: "number" });
  const rows = {
    dot: ["a·b", cell()],
    la: ["length ‖a‖", cell()],
    lb: ["length ‖b‖", cell()],
    cosine: ["cosine = a·b / (‖a‖ ‖b‖)", cell()],
    angle: ["angle θ", cell()],
    projection: ["projection of b on a = a·b / ‖a‖", cell()],
  };
  const table = h(
    "table",
    { "aria-label": "What the arrows measure" },
    h(
      "tbody",
      {},
      ...Object.entries(rows).map(([key, [name, value]]) =>
        h("tr", { "data-row": key }, h("th", { scope: "row" }, name), value),
      ),
    ),
  );
  const sum = h("div", { class: "value sum" });
  const says = h("div", { class: "verdict", "aria-live": "polite" });
  const sliders = ["ax", "ay", "bx", "by"].map((name) =>
    slider(model, name, {
      label: `${name[0]}${name[1] === "x" ? "₁" : "₂"}`,
      min: -REACH,
      max: REACH,
      step: 0.1,
      show: near,
    }),
  );
  // Only where the plane has room, and tenths for the result: half an arrow keeps its direction.
  const scaled = (factor) => at("b").map((v) => v * factor);
  const exact = (factor) => scaled(factor).every((v) => Math.abs(v - snap(v)) < 1e-9);
  const factors = [
    [2, "b × 2"],
    [0.5, "b ÷ 2"],
    [-1, "−b"],
  ].map(([factor, text]) => [
    factor,
    h("button", { type: "button", onclick: () => moveTip("b", ...scaled(factor)) }, text),
  ]);
  const turn = h(
    "button",
    {
      type: "button",
      onclick: () => {
        const [x, y] = at("b");
        moveTip("b", -y, x);
      },
    },
    "turn b by 90°",
  );
  node.append(
    h("style", {}, STYLE),
    h(
      "div",
      { class: "board" },
      svg,
      h("div", {}, sum, says, table),
      h(
        "div",
        { class: "controls" },
        h("div", { class: "row" }, ...sliders),
        h("div", { class: "row" }, ...factors.map(([, button]) => button), turn),
        h("div", { class: "quiet" }, "Drag the tips, or use the arrow keys (Shift: whole steps)."),
      ),
    ),
  );

  const line = (it, x1, y1, x2, y2) =>
    Object.entries({ x1: sx(x1), y1: sy(y1), x2: sx(x2), y2: sy(y2) }).forEach(([key, value]) =>
      it.setAttribute(key, value),
    );

  function arrow({ shaft, head, label, grip }, x, y, name) {
    const length = Math.hypot(x, y) || 1;
    const ux = x / length;
    const uy = y / length;
    const back = Math.min(0.42, length);
    line(shaft, 0, 0, x - ux * back * 0.8, y - uy * back * 0.8);
    const side = back * 0.42;
    const [cx, cy] = [x - ux * back, y - uy * back];
    head.setAttribute(
      "points",
      [
        [x, y],
        [cx - uy * side, cy + ux * side],
        [cx + uy * side, cy - ux * side],
      ]
        .map(([px, py]) => `${sx(px)},${sy(py)}`)
        .join(" "),
    );
    const inside = (v) => Math.min(SIZE - 14, Math.max(14, v));
    label.setAttribute("x", inside(sx(x + ux * 0.6)));
    label.setAttribute("y", inside(sy(y + uy * 0.6)));
    grip.setAttribute("cx", sx(x));
    grip.setAttribute("cy", sy(y));
    grip.setAttribute("aria-valuenow", x);
    grip.setAttribute("aria-valuetext", `${name} = (${near(x)}, ${near(y)})`);
  }

  function paint() {
    const [ax, ay] = at("a");
    const [bx, by] = at("b");
    const m = measure(ax, ay, bx, by);
    const sign = Math.sign(m.dot);
    const ink = sign > 0 ? "var(--green)" : "var(--red)";
    arrow(arrows.a, ax, ay, "a");
    arrow(arrows.b, bx, by, "b");
    for (const [factor, button] of factors) button.disabled = !exact(factor);
    const exists = m.la > 0;
    const share = exists ? m.projection / m.la : 0;
    const fx = share * ax;
    const fy = share * ay;
    const far = exists ? 10 / m.la : 0;
    const clip = (v) => Math.max(-REACH, Math.min(REACH, v));
    const reach = exists ? Math.min(far, REACH / Math.max(Math.abs(ax), Math.abs(ay))) : 0;
    line(axis, clip(-ax * reach), clip(-ay * reach), clip(ax * reach), clip(ay * reach));
    line(shadow, 0, 0, fx, fy);
    shadow.setAttribute("stroke", sign ? ink : "none");
    line(drop, bx, by, exists ? fx : bx, exists ? fy : by);
    // A small square where the dashed line meets a's line: it is a right angle.
    const [ux, uy] = exists ? [ax / m.la, ay / m.la] : [0, 0];
    const dx = bx - fx;
    const dy = by - fy;
    const d = Math.hypot(dx, dy);
    const q = 0.22;
    const points =
      d > 0.5 && exists
        ? [
            [fx - ux * q * sign, fy - uy * q * sign],
            [fx - ux * q * sign + (dx / d) * q, fy - uy * q * sign + (dy / d) * q],
            [fx + (dx / d) * q, fy + (dy / d) * q],
          ]
        : [];
    corner.setAttribute(
      "d",
      points.map(([x, y], i) => `${i ? "L" : "M"}${sx(x)},${sy(y)}`).join(" "),
    );
    const start = Math.atan2(ay, ax);
    const r = 0.9;
    const cross = ax * by - ay * bx;
    const way = cross >= 0 ? 1 : -1;
    const end = start + (way * m.angle * Math.PI) / 180;
    const on = (t, k = r) => [sx(k * Math.cos(t)), sy(k * Math.sin(t))];
    const visible = Number.isFinite(m.angle) && m.angle > 0.05;
    arc.setAttribute(
      "d",
      visible ? `M${on(start)} A${r * UNIT},${r * UNIT} 0 0 ${way > 0 ? 0 : 1} ${on(end)}` : "",
    );
    const [tx, ty] = visible ? on((start + end) / 2, 1.35) : [0, 0];
    arcText.textContent = visible ? `${fixed(m.angle, 0)}°` : "";
    arcText.setAttribute("x", tx);
    arcText.setAttribute("y", ty);
    const or = (v, digits, unit = "") =>
      Number.isFinite(v) ? fixed(v, digits) + unit : "— no direction";
    for (const [key, text] of Object.entries({
      dot: fixed(m.dot),
      la: fixed(m.la),
      lb: fixed(m.lb),
      cosine: or(m.cosine, 2),
      angle: or(m.angle, 1, "°"),
      projection: or(m.projection, 2),
    }))
      rows[key][1].textContent = text;
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
    svg.setAttribute(
      "aria-label",
      `Plane with two arrows. ${sum.textContent}. ${says.textContent}`,
    );
  }
  const soon = throttleToFrame(paint);
  const events = ["ax", "ay", "bx", "by"].map((name) => `change:${name}`);
  events.forEach((event) => model.on(event, soon));
  paint();
  return () => events.forEach((event) => model.off(event, soon)); // SVG colours follow the theme by CSS
}
export default live(render);
