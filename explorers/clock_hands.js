// Rotary positions as clocks (clock_hands.py). Hands start at 12 for (1, 0) and turn clockwise.
const STYLE = `
.d2g.clocks .row input { width: 104px; }
.d2g.clocks .dials { display: grid; grid-template-columns: repeat(var(--across), minmax(0, 190px)); gap: 4px 6px; }
.d2g.clocks .dials figure { margin: 0; text-align: center; }
.d2g.clocks .dials svg { width: 100%; max-width: 138px; margin: auto; }
.d2g.clocks .dials.many svg { max-width: 84px; }
.d2g.clocks figcaption { font-variant-numeric: tabular-nums; line-height: 1.35; white-space: nowrap; font-size: 12px; }
.d2g.clocks .dial { fill: var(--paper); stroke: var(--quiet); stroke-width: 1.5; }
.d2g.clocks .tick { stroke: var(--quiet); }
.d2g.clocks .between { fill: var(--quiet); fill-opacity: .25; stroke: var(--quiet); }
.d2g.clocks .q { stroke: var(--blue); } .d2g.clocks .k { stroke: var(--red); stroke-dasharray: 6 4; }
.d2g.clocks .hand { stroke-width: 3.5; stroke-linecap: round; }
.d2g.clocks .dials text { font-weight: 700; font-size: 13px; text-anchor: middle; dominant-baseline: central; }
.d2g.clocks .many text { font-size: 17px; }
.d2g.clocks .q-text { fill: var(--blue); } .d2g.clocks .k-text { fill: var(--red-text); }
.d2g.clocks .of-plot, .d2g.clocks .of-plot svg { width: 100%; max-width: 720px; }
.d2g.clocks .many b, .d2g.clocks .many b + .quiet { display: inline; }
.d2g.clocks .says { font-size: 14px; margin: 4px 0; }
.d2g.clocks .says .number { font-weight: 700; font-variant-numeric: tabular-nums; }
@container explorer (max-width: 480px) {
  .d2g.clocks .dials { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .d2g.clocks .of-plot text { font-size: 14px; }
  .d2g.clocks .of-plot svg { overflow: visible; }
}
@container explorer (min-width: 760px) {
  .d2g.clocks .dials svg { max-width: 150px; }
  .d2g.clocks .many b + .quiet { display: block; }
  .d2g.clocks .dials.many svg { width: 84px; flex: none; margin: 0; }
  .d2g.clocks .dials.many { grid-template-columns: repeat(4, minmax(0, 205px)); }
  .d2g.clocks .dials.many figure { display: flex; align-items: center; gap: 4px; text-align: left; }
}
`;
const SIZE = 150;
const RADIUS = 58;

function render({ model, el }) {
  const node = root(el, "clocks", "Rotary clocks: a query and a key turned by their positions");
  let q;
  let k;
  let hs;
  let pairs;
  let longest;
  let longestHand;
  let clocks;
  let top; // what `build` finds in the model
  const hand = (v, i) => ({
    length: Math.hypot(v[i], v[i + pairs]),
    angle: Math.atan2(v[i + pairs], v[i]),
  });

  const both = h("input", { type: "range", "aria-label": "move both together", step: 1 });
  both.addEventListener("input", () => {
    const distance = model.get("query") - model.get("key");
    setAndSave(model, { query: Number(both.value), key: Number(both.value) - distance });
  });

  function clock(i) {
    const c = SIZE / 2;
    const svg = h("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img" });
    svg.append(h("circle", { class: "dial", cx: c, cy: c, r: RADIUS }));
    for (let t = 0; t < 12; t++) {
      const [x, y] = [Math.sin((t * Math.PI) / 6), -Math.cos((t * Math.PI) / 6)];
      svg.append(
        h("line", {
          class: "tick",
          x1: c + x * (RADIUS - 5),
          y1: c + y * (RADIUS - 5),
          x2: c + x * RADIUS,
          y2: c + y * RADIUS,
        }),
      );
    }
    const parts = {
      between: h("path", { class: "between" }),
      k: h("line", { class: "hand k", x1: c, y1: c }),
      q: h("line", { class: "hand q", x1: c, y1: c }),
      kText: h("text", { class: "k-text" }, "k"),
      qText: h("text", { class: "q-text" }, "q"),
    };
    svg.append(...Object.values(parts));
    const step = h("div", { class: "quiet" });
    const angle = h("div", { class: "angle" });
    const share = h("div", { class: "share" });
    const figure = h(
      "figure",
      {},
      svg,
      h("figcaption", {}, h("b", {}, `pair ${i} `), step, angle, share),
    );
    return { svg, figure, step, angle, share, ...parts };
  }

  const dials = h("div", { class: "dials" });
  /** A press on the curve moves the key to that distance, or both where it would leave the axis. */
  const pick = (v) => {
    const d = Math.round(Math.min(longest, Math.max(-longest, v)));
    const query = Math.min(longest + Math.min(0, d), Math.max(0, d, model.get("query")));
    setAndSave(model, { query, key: query - d });
  };
  const plot = chart("plot", {
    width: 620,
    height: 122,
    left: 42,
    right: 22,
    bottom: 32,
    top: 8,
    pick,
  });
  const axis = {
    query: slider(model, "query", {
      label: "position of the query",
      min: 0,
      max: model.get("longest"),
    }),
    key: slider(model, "key", { label: "position of the key", min: 0, max: model.get("longest") }),
  };
  const says = h("div", { class: "says", role: "status" });
  const numbers = {
    distance: h("span", { class: "number distance" }),
    score: h("span", { class: "number score" }),
  };
  const places = h("span", { class: "places" });
  says.append(places, "distance ", numbers.distance, " · score q·k/√hs = ", numbers.score);

  /** An angle in degrees, from −180 to 180. */
  const degrees = (radians) => (((((radians * 180) / Math.PI + 180) % 360) + 360) % 360) - 180;
  /** The score at a distance: what each pair adds is |q||k| cos(angle between its hands). */
  function shares(distance, base) {
    return Array.from({ length: pairs }, (_, i) => {
      const a = hand(q, i);
      const b = hand(k, i);
      const theta = base ** ((-2 * i) / hs);
      return (a.length * b.length * Math.cos(a.angle - b.angle + distance * theta)) / Math.sqrt(hs);
    });
  }
  const total = (distance, base) => shares(distance, base).reduce((sum, x) => sum + x, 0);

  /** All that depends on the vectors and on the longest distance. */
  function build() {
    [q, k, longest] = ["q", "k", "longest"].map((name) => model.get(name));
    hs = q.length;
    pairs = hs / 2;
    if (k.length !== hs) return; // the other one is on its way
    const lengths = [q, k].map((v) => Array.from({ length: pairs }, (_, i) => hand(v, i).length));
    longestHand = Math.max(...lengths.flat()) || 1;
    // No distance can give more than all pairs aligned.
    top = lengths[0].reduce((sum, a, i) => sum + a * lengths[1][i], 0) / Math.sqrt(hs) || 1;
    clocks = Array.from({ length: pairs }, (_, i) => clock(i));
    dials.replaceChildren(...clocks.map(({ figure }) => figure));
    dials.classList.toggle("many", pairs > 4);
    dials.style.setProperty("--across", Math.min(4, pairs));
    drawn = undefined;
    paint();
  }

  let drawn;
  let points; // the curve, and the base that it was reckoned for
  function paint() {
    if (k.length !== hs) return;
    const query = model.get("query");
    const key = model.get("key");
    const base = 10 ** model.get("log_base");
    const distance = query - key;
    const share = shares(distance, base);
    const c = SIZE / 2;
    both.min = Math.max(0, distance);
    both.max = longest + Math.min(0, distance);
    both.value = query;
    for (const [name, place] of [
      ["query", query],
      ["key", key],
    ]) {
      Object.assign(axis[name].querySelector("input"), { max: longest, value: place });
    }
    both.setAttribute("aria-valuetext", `query at ${query}, key at ${key}`);
    clocks.forEach((clock, i) => {
      const theta = base ** ((-2 * i) / hs);
      const scale = (RADIUS * 0.9) / longestHand;
      const ends = [
        ["q", q, query],
        ["k", k, key],
      ].map(([name, v, place]) => {
        const { length, angle } = hand(v, i);
        const turned = angle + place * theta;
        const x = Math.sin(turned);
        const y = -Math.cos(turned);
        const reach = length * scale;
        clock[name].setAttribute("x2", c + reach * x);
        clock[name].setAttribute("y2", c + reach * y);
        clock[`${name}Text`].setAttribute("x", c + (RADIUS + 10) * x);
        clock[`${name}Text`].setAttribute("y", c + (RADIUS + 10) * y);
        return turned;
      });
      const between = degrees(ends[0] - ends[1]);
      const r = RADIUS * 0.8;
      const at = (angle) => `${c + r * Math.sin(angle)} ${c - r * Math.cos(angle)}`;
      const arc = between >= 0 ? [ends[1], ends[0]] : [ends[0], ends[1]];
      clock.between.setAttribute(
        "d",
        `M ${c} ${c} L ${at(arc[0])} A ${r} ${r} 0 0 1 ${at(arc[1])} Z`,
      );
      const perStep = (theta * 180) / Math.PI;
      clock.step.textContent = `${Number(perStep.toPrecision(3))}° per step`;
      clock.angle.textContent = `from k to q: ${fixed(between, 0)}°`;
      clock.share.textContent = `adds ${fixed(share[i], 2)}`;
      clock.svg.setAttribute(
        "aria-label",
        `Pair ${i}: the query's hand stands ${between.toFixed(0)} degrees clockwise of the key's`,
      );
    });
    places.textContent = `query at ${query}, key at ${key} · `;
    numbers.distance.textContent = fixed(distance, 0);
    numbers.score.textContent = fixed(total(distance, base), 3);
    paintCurve(distance, base);
  }

  function paintCurve(distance, base) {
    if (drawn !== base)
      points = Array.from({ length: 2 * longest + 1 }, (_, i) => [
        i - longest,
        total(i - longest, base),
      ]);
    drawn = base;
    plot.paint({
      x: [-longest, longest],
      y: [-top, top],
      at: 0,
      xticks: [-longest, 0, longest].map((d) => [d, fixed(d, 0)]),
      yticks: [-top, 0, top].map((s) => [s, s ? fixed(s, 1) : "0"]),
      xlabel: "distance: position of the query − position of the key",
      title: "",
      label: `The score at every distance from −${longest} to ${longest}; the dot is at distance ${distance}`,
      marks: (x, y) => [
        curve(
          points.map(([d, s]) => [x(d), y(s)]),
          "ink",
          { "stroke-width": 1.5 },
        ),
        h("circle", {
          cx: x(distance),
          cy: y(points[distance + longest][1]),
          r: 6,
          fill: "var(--blue)",
          stroke: "var(--paper)",
          "stroke-width": 2,
        }),
      ],
    });
  }

  const power = (v) => {
    const b = 10 ** v;
    return b >= 100 ? Math.round(b).toLocaleString("en") : b.toFixed(0);
  };
  node.append(
    h("style", {}, STYLE),
    h(
      "div",
      { class: "row" },
      axis.query,
      axis.key,
      h("label", {}, "move both together", both),
      slider(model, "log_base", { label: "base", min: 1, max: 7, step: 0.25, show: power }),
    ),
    dials,
    says,
    h("div", { class: "of-plot" }, plot.svg),
    h(
      "div",
      { class: "quiet" },
      "Blue, solid: the query q. Orange, dashed: the key k. Grey: the angle between them (clockwise is positive).",
    ),
  );
  build();
  const later = throttleToFrame(build);
  model.on("change:q change:k change:longest", later);
  const undo = paintOnChange(model, ["query", "key", "log_base"], paint);
  return () => {
    model.off("change:q change:k change:longest", later);
    undo();
  };
}

export default live(render);
