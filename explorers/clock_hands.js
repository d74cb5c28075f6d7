// Rotary positions as clocks (clock_hands.py). Hands start at 12 for (1, 0) and turn clockwise.
const SIZE = 150;
const RADIUS = 58;
const CENTRE = SIZE / 2;
/** The place at an angle clockwise from 12, and a distance from the centre. */
const onDial = (angle, r) => [CENTRE + r * Math.sin(angle), CENTRE - r * Math.cos(angle)];
/** An angle in degrees, from −180 to 180. */
const degrees = (radians) => (((((radians * 180) / Math.PI + 180) % 360) + 360) % 360) - 180;

/** The face of a clock, and its hands: { q, k } of { angle, length }. */
function clockFace({ q, k }) {
  const ticks = Array.from({ length: 12 }, (_, t) => {
    const [[x1, y1], [x2, y2]] = [5, 0].map((less) => onDial((t * Math.PI) / 6, RADIUS - less));
    return html`<line class="tick" x1=${x1} y1=${y1} x2=${x2} y2=${y2} />`;
  });
  const hand = (name, { angle, length }) => {
    const [x, y] = onDial(angle, length);
    return html`<line class="hand ${name}" x1=${CENTRE} y1=${CENTRE} x2=${x} y2=${y} />`;
  };
  const name = (text, { angle }) => {
    const [x, y] = onDial(angle, RADIUS + 10);
    return html`<text class="${text}-text" x=${x} y=${y}>${text}</text>`;
  };
  const [from, to] = degrees(q.angle - k.angle) >= 0 ? [k, q] : [q, k];
  const r = RADIUS * 0.8;
  const ends = [from, to].map(({ angle }) => onDial(angle, r).join(" "));
  const between = `M ${CENTRE} ${CENTRE} L ${ends[0]} A ${r} ${r} 0 0 1 ${ends[1]} Z`;
  return html`<circle class="dial" cx=${CENTRE} cy=${CENTRE} r=${RADIUS} />${ticks}
    <path class="between" d=${between} />
    ${hand("k", k)}${hand("q", q)}${name("k", k)}${name("q", q)}`;
}

function build({ model, get, set, slider, soon }) {
  const [q, k, longest] = ["q", "k", "longest"].map(get);
  const hs = q.length;
  const pairs = hs / 2;
  const hand = (v, i) => ({
    length: Math.hypot(v[i], v[i + pairs]),
    angle: Math.atan2(v[i + pairs], v[i]),
  });

  const moveBoth = () => {
    const distance = get("query") - get("key");
    set({ query: Number(both.value), key: Number(both.value) - distance });
  };
  let ahead = 0; // while it plays: of the way to the next positions
  function move(ms) {
    ahead = ms ? ahead + ms / 700 : 0;
    const last = Math.max(get("query"), get("key")) >= longest;
    const steps = last ? -Math.min(get("query"), get("key")) : Math.floor(ahead); // from the end to the beginning
    if (last || ahead >= 1) ahead = 0;
    if (ms) for (const name of ["query", "key"]) model.set(name, get(name) + steps);
    soon();
    return Math.max(get("query"), get("key")) < longest;
  }
  const both = html`<input type="range" aria-label="move both together" step="1" oninput=${moveBoth} />`;

  function clock(i) {
    const svg = html`<svg viewBox="0 0 ${SIZE} ${SIZE}" role="img" />`;
    const step = html`<div class="quiet" />`;
    const angle = html`<div class="angle" />`;
    const share = html`<div class="share" />`;
    const figure = html`<figure>
      ${svg}<figcaption><b>pair ${i} </b>${step}${angle}${share}</figcaption>
    </figure>`;
    return { svg, figure, step, angle, share };
  }

  const clocks = Array.from({ length: pairs }, (_, i) => clock(i));
  const dials = html`<div class="dials" style="--across: ${pairs}">
    ${clocks.map(({ figure }) => figure)}
  </div>`;
  const shape = { width: 620, height: 122, left: 42, right: 22, bottom: 32, top: 8 };
  const plot = chart("plot", shape);
  const places = html`<span class="places" />`;
  const gap = html`<span class="number distance" />`;
  const score = html`<span class="number score" />`;
  const power = (v) => Math.round(10 ** v).toLocaleString("en");
  const page = html`
    <div class="row">${player(model, move, 700)}<label>move both together${both}</label></div>
    <div class="row">
      ${slider("query", "position of the query", [0, longest])}
      ${slider("key", "position of the key", [0, longest])}
      ${slider("log_base", "base", [1, 7, 0.25], power)}
    </div>
    ${dials}
    <div class="says" role="status">${places}distance ${gap} · score q·k/√hs = ${score}</div>
    <div class="of-plot">${plot.svg}</div>
    <div class="quiet">
      Blue, solid: the query q. Orange, dashed: the key k. The wedge: the angle between them (clockwise is positive).
    </div>`;

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

  const lengths = [q, k].map((v) => Array.from({ length: pairs }, (_, i) => hand(v, i).length));
  const longestHand = Math.max(...lengths.flat()) || 1;
  // No distance can give more than all pairs aligned.
  const top = lengths[0].reduce((sum, a, i) => sum + a * lengths[1][i], 0) / Math.sqrt(hs) || 1;

  function paint() {
    const at = { query: get("query"), key: get("key") };
    const base = 10 ** get("log_base");
    const distance = at.query - at.key;
    const share = shares(distance, base);
    Object.assign(both, {
      min: Math.max(0, distance),
      max: longest + Math.min(0, distance),
      value: at.query,
    });
    put(both, { "aria-valuetext": `query at ${at.query}, key at ${at.key}` });
    clocks.forEach(({ svg, step, angle, share: adds }, i) => {
      const theta = base ** ((-2 * i) / hs);
      const turned = (v, place) => ({
        angle: hand(v, i).angle + place * theta,
        length: (hand(v, i).length * RADIUS * 0.9) / longestHand,
      });
      const hands = { q: turned(q, at.query + ahead), k: turned(k, at.key + ahead) };
      const between = degrees(hands.q.angle - hands.k.angle);
      svg.replaceChildren(...clockFace(hands));
      setText(step, `${Number(((theta * 180) / Math.PI).toPrecision(3))}° per step`);
      setText(angle, `from k to q: ${fixed(between, 0)}°`);
      setText(adds, `adds ${fixed(share[i], 2)}`);
      const label = `Pair ${i}: the query's hand stands ${between.toFixed(0)} degrees clockwise of the key's`;
      put(svg, { "aria-label": label });
    });
    setText(places, `query at ${at.query}, key at ${at.key} · `);
    setText(gap, fixed(distance, 0));
    setText(score, fixed(total(distance, base), 3));
    paintCurve(distance, base);
  }

  function paintCurve(distance, base) {
    const reached = Array.from({ length: 2 * longest + 1 }, (_, i) => i - longest);
    const points = reached.map((d) => [d, total(d, base)]);
    const shown = (x, y) => points.map(([d, s]) => [x(d), y(s)]);
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
        curve(shown(x, y), "ink", { "stroke-width": 1.5 }),
        html`<circle cx=${x(distance)} cy=${y(points[distance + longest][1])} r="6"
          fill="var(--blue)" stroke="var(--paper)" stroke-width="2" />`,
      ],
    });
  }

  return { page, paint };
}

export default explorer({
  name: "clocks",
  title: "Rotary clocks: a query and a key turned by their positions",
  traits: ["query", "key", "log_base"],
  build,
});
