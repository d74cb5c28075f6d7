// Rotary positions as clocks (clock_hands.py). Hands start at 12 for (1, 0) and turn clockwise.
const STYLE = `
.d2g.clocks figure { margin: 0; width: 150px; text-align: center; }
.d2g.clocks figcaption { font-variant-numeric: tabular-nums; line-height: 1.5; white-space: nowrap; }
.d2g.clocks .dial { fill: var(--paper); stroke: var(--line); stroke-width: 1.5; }
.d2g.clocks .tick { stroke: var(--line); }
.d2g.clocks .between { fill: var(--quiet); opacity: .25; }
.d2g.clocks .q { stroke: var(--blue); } .d2g.clocks .k { stroke: var(--red); stroke-dasharray: 6 4; }
.d2g.clocks .hand { stroke-width: 3.5; stroke-linecap: round; }
.d2g.clocks svg text { font-weight: 700; font-size: 13px; text-anchor: middle; dominant-baseline: central; }
.d2g.clocks .q-text { fill: var(--blue); } .d2g.clocks .k-text { fill: var(--red); }
.d2g.clocks .axis { stroke: var(--line); fill: none; } .d2g.clocks .curve { stroke: var(--ink); fill: none; stroke-width: 1.5; }
.d2g.clocks .here { fill: var(--blue); stroke: var(--paper); stroke-width: 2; }
.d2g.clocks svg .label { fill: var(--quiet); font-weight: 400; font-size: 12px; }
.d2g.clocks .says { font-size: 14px; margin: 8px 0 2px; }
.d2g.clocks .says .number { font-weight: 700; font-variant-numeric: tabular-nums; }
`;
const SIZE = 150, RADIUS = 58, WIDE = 620, HIGH = 156;

function render({ model, el }) {
  const node = root(el, "clocks", "Rotary clocks: a query and a key turned by their positions");
  const q = model.get("q"), k = model.get("k"), hs = q.length, pairs = hs / 2, longest = model.get("longest");
  const longestHand = Math.max(...[q, k].flatMap((v) => v.slice(0, pairs).map((a, i) => Math.hypot(a, v[i + pairs])))) || 1;
  const hand = (v, i) => ({ length: Math.hypot(v[i], v[i + pairs]), angle: Math.atan2(v[i + pairs], v[i]) });

  const both = h("input", { type: "range", "aria-label": "move both together", step: 1 });
  both.addEventListener("input", () => {
    const distance = model.get("query") - model.get("key");
    model.set("query", Number(both.value));
    model.set("key", Number(both.value) - distance);
    model.save_changes();
  });

  const clocks = Array.from({ length: pairs }, (_, i) => {
    const c = SIZE / 2, svg = h("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, width: SIZE, height: SIZE, role: "img" });
    svg.append(h("circle", { class: "dial", cx: c, cy: c, r: RADIUS }));
    for (let t = 0; t < 12; t++) {
      const [x, y] = [Math.sin(t * Math.PI / 6), -Math.cos(t * Math.PI / 6)];
      svg.append(h("line", { class: "tick", x1: c + x * (RADIUS - 5), y1: c + y * (RADIUS - 5), x2: c + x * RADIUS, y2: c + y * RADIUS }));
    }
    const parts = {
      between: h("path", { class: "between" }),
      k: h("line", { class: "hand k", x1: c, y1: c }), q: h("line", { class: "hand q", x1: c, y1: c }),
      kText: h("text", { class: "k-text" }, "k"), qText: h("text", { class: "q-text" }, "q"),
    };
    svg.append(...Object.values(parts));
    const step = h("div", { class: "quiet" }), angle = h("div", { class: "angle" }), share = h("div", { class: "share" });
    const figure = h("figure", {}, svg, h("figcaption", {}, h("b", {}, `pair ${i}`), step, angle, share));
    return { svg, figure, step, angle, share, ...parts };
  });

  const plot = h("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, width: WIDE, height: HIGH, role: "img", class: "plot" });
  const says = h("div", { class: "says", role: "status" });
  const numbers = { distance: h("span", { class: "number distance" }), score: h("span", { class: "number score" }) };
  const places = h("span", { class: "places" });
  says.append(places, "distance ", numbers.distance, " · score q·k/√hs = ", numbers.score);

  /** An angle in degrees, from −180 to 180. */
  const degrees = (radians) => ((radians * 180 / Math.PI + 180) % 360 + 360) % 360 - 180;
  const minus = (text) => text.replace("-", "−");
  const rounded = (v, digits) => minus((Math.abs(v) < 0.5 * 10 ** -digits ? 0 : v).toFixed(digits));

  /** The score at a distance: what each pair adds is |q||k| cos(angle between its hands). */
  function shares(distance, base) {
    return Array.from({ length: pairs }, (_, i) => {
      const a = hand(q, i), b = hand(k, i), theta = base ** (-2 * i / hs);
      return a.length * b.length * Math.cos(a.angle - b.angle + distance * theta) / Math.sqrt(hs);
    });
  }
  const total = (distance, base) => shares(distance, base).reduce((sum, x) => sum + x, 0);

  function paint() {
    const query = model.get("query"), key = model.get("key"), base = 10 ** model.get("log_base");
    const distance = query - key, share = shares(distance, base), c = SIZE / 2;
    both.min = Math.max(0, distance);
    both.max = longest + Math.min(0, distance);
    both.value = query;
    both.setAttribute("aria-valuetext", `query at ${query}, key at ${key}`);
    clocks.forEach((clock, i) => {
      const theta = base ** (-2 * i / hs), scale = RADIUS * 0.9 / longestHand;
      const ends = [["q", q, query], ["k", k, key]].map(([name, v, place]) => {
        const { length, angle } = hand(v, i), turned = angle + place * theta;
        const x = Math.sin(turned), y = -Math.cos(turned), reach = length * scale;
        clock[name].setAttribute("x2", c + reach * x);
        clock[name].setAttribute("y2", c + reach * y);
        clock[`${name}Text`].setAttribute("x", c + (RADIUS + 10) * x);
        clock[`${name}Text`].setAttribute("y", c + (RADIUS + 10) * y);
        return turned;
      });
      const between = degrees(ends[0] - ends[1]), r = RADIUS * 0.8;
      const at = (angle) => `${c + r * Math.sin(angle)} ${c - r * Math.cos(angle)}`;
      const arc = between >= 0 ? [ends[1], ends[0]] : [ends[0], ends[1]];
      clock.between.setAttribute("d", `M ${c} ${c} L ${at(arc[0])} A ${r} ${r} 0 0 1 ${at(arc[1])} Z`);
      const perStep = theta * 180 / Math.PI;
      clock.step.textContent = `${Number(perStep.toPrecision(3))}° a step`;
      clock.angle.textContent = `from k to q: ${rounded(between, 0)}°`;
      clock.share.textContent = `adds ${rounded(share[i], 2)}`;
      clock.svg.setAttribute("aria-label", `Pair ${i}: the query's hand stands ${between.toFixed(0)} degrees clockwise of the key's`);
    });
    places.textContent = `query at ${query}, key at ${key} · `;
    numbers.distance.textContent = minus(String(distance));
    numbers.score.textContent = rounded(total(distance, base), 3);
    paintCurve(distance, base);
  }

  function paintCurve(distance, base) {
    const distances = Array.from({ length: 2 * longest + 1 }, (_, i) => i - longest);
    const scores = distances.map((d) => total(d, base));
    // No distance can give more than all pairs aligned.
    const top = clocks.reduce((sum, _, i) => sum + hand(q, i).length * hand(k, i).length, 0) / Math.sqrt(hs) || 1;
    const x = (d) => 40 + (d + longest) / (2 * longest) * (WIDE - 60), y = (s) => 62 - s / top * 50;
    const text = (px, py, words) => h("text", { class: "label", x: px, y: py }, words);
    plot.replaceChildren(
      h("line", { class: "axis", x1: x(-longest), x2: x(longest), y1: y(0), y2: y(0) }),
      h("line", { class: "axis", x1: x(0), x2: x(0), y1: y(top), y2: y(-top) }),
      h("polyline", { class: "curve", points: distances.map((d, i) => `${x(d)},${y(scores[i])}`).join(" ") }),
      h("circle", { class: "here", cx: x(distance), cy: y(total(distance, base)), r: 6 }),
      text(20, y(0), "0"), text(20, y(top), top.toFixed(1)), text(20, y(-top), `−${top.toFixed(1)}`),
      ...[-longest, 0, longest].map((d) => text(x(d), 130, minus(String(d)))),
      text(WIDE / 2, 148, "distance: position of the query − position of the key"),
    );
    plot.setAttribute("aria-label", `The score at every distance from −${longest} to ${longest}; the dot is at distance ${distance}`);
  }

  const later = onceAFrame(paint);
  const names = ["query", "key", "log_base"].map((n) => `change:${n}`);
  names.forEach((n) => model.on(n, later));
  const power = (v) => { const b = 10 ** v; return b >= 100 ? Math.round(b).toLocaleString("en") : b.toFixed(0); };
  node.append(
    h("style", {}, STYLE),
    h("div", { class: "row" },
      slider(model, "query", { label: "position of the query", min: 0, max: longest }),
      slider(model, "key", { label: "position of the key", min: 0, max: longest }),
      h("label", {}, "move both together", both),
      slider(model, "log_base", { label: "base", min: 1, max: 7, step: 0.25, show: power })),
    h("div", { class: "columns" }, ...clocks.map((clock) => clock.figure)),
    says, plot,
    h("div", { class: "quiet" }, "Blue, solid: the query q. Red, dashed: the key k. The grey wedge is the angle between them (clockwise is positive)."),
  );
  paint();
  return () => names.forEach((n) => model.off(n, later));
}

export default live(render);
