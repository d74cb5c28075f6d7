// All that was recorded comes once (rewards.py checks it); choosing a part of it asks nobody.
/** @type {[string, string][]} colours and dashes */
const ACCURACIES = [
  ["blue", ""],
  ["orange", "7 4"],
  ["green", "2 4"],
];
const EDGES = [480, 560, 620, 760, 940]; // of the explorer's width, in pixels
const WIDTHS = [164, 154, 180, 200, 248, 308]; // of a chart, below the first edge and from each edge on

/** The sample of a line in a chart's legend: the name of its colour, and its dashes.
 * @param {[string, string]} look */
const legendLine = ([ink, dashes]) =>
  html`<svg width="26" height="8">
    <line x1="0" x2="26" y1="4" y2="4" stroke="var(--${ink})" stroke-width="3" stroke-dasharray=${dashes} />
  </svg>`;

function build({ get, set, slider, choice }) {
  const steps = get("steps");
  const betas = get("betas");
  const groups = get("groups");
  const accuracies = get("accuracies");
  const answers = get("answers");
  const [first, last] = [steps[0], steps[steps.length - 1]];
  const gap = steps[1] - first;
  const place = () => [betas.indexOf(get("beta")), steps.indexOf(get("step"))];
  const lengths = get("completions")
    .flat(3)
    .map((text) => [...text].length);
  const width = `width:${Math.max(...lengths) + 3}ch`;

  // The completions: a row for each problem. They are written anew, never made anew.
  const tables = get("prompts").map((prompt, p) => {
    const sample = () => html`<span class="said" style=${width} />`;
    const texts = get("completions")[0][0][p].map(sample);
    const count = html`<td class="count" />`;
    const line = html`<tr>
      <th scope="row">${visible(prompt)}</th>
      <td class="samples">${texts.map((text) => [text, " "])}</td>
      ${count}
    </tr>`;
    return { texts, count, line };
  });
  const caption = html`<caption />`;
  const stepping = slider("step", "training step", [first, last, gap]);
  stepping.querySelector("input").dataset.entry = "";
  const penalties = betas.map((beta) => [beta, String(beta)]);
  const says = summary();
  const board = html`<div class="charts" />`;
  const key = (name, g) => html`<span>${legendLine(ACCURACIES[g])}accuracy: ${name}</span>`;
  const page = html`
    <div class="row">
      <span class="row">KL penalty β${choice("beta", penalties, "KL penalty β")}</span>${stepping}
    </div>
    ${says}${board}
    <p class="quiet key">
      ${groups.map(key)}
      <span>thick: the chosen β; thin: the others</span>
      <span>● the chosen step (click to move it)</span>
    </p>
    <table>${caption}<tbody>${tables.map(({ line }) => line)}</tbody></table>`;

  // The charts, made anew when there is more or less room.
  const all = [
    ["accuracy", "Accuracy", 2, accuracies, ACCURACIES],
    ["score", "The judge's score", 1, [get("scores")], [["red", ""]]],
    ["KL", "KL (nats)", 1, [get("divergences")], [["pink", ""]]],
  ].map(([name, title, digits, curves, inks]) => {
    const numbers = curves.flat(2);
    const low = Math.min(0, ...numbers);
    const high = name === "accuracy" ? 1 : Math.max(...numbers);
    const range = [low, high > low ? high : low + 1];
    return { name, title, digits, curves, inks, range, chart: null };
  });
  const pick = (v) => {
    const i = Math.round((v - first) / gap);
    set({ step: steps[Math.min(steps.length - 1, Math.max(0, i))] });
  };
  function lay(reached) {
    const size = { width: WIDTHS[reached], height: 132, left: 34, right: 10, bottom: 30, pick };
    for (const one of all) one.chart = chart(one.name, size);
    board.replaceChildren(...all.map(({ chart: { figure } }) => figure));
  }

  const thin = (points, [ink, dashes]) =>
    curve(points, ink, { "stroke-width": 1, "stroke-opacity": 0.5, "stroke-dasharray": dashes });
  const thick = (points, [ink, dashes]) =>
    curve(points, ink, { class: "chosen", "stroke-dasharray": dashes });
  function paintCurves({ chart: { paint: draw }, title, digits, curves, inks, range, name }, b, i) {
    const now = curves.map((by) => fixed(by[b][i], digits));
    const points = (by, k, x, y) => by[k].map((v, j) => [x(steps[j]), y(v)]);
    const others = betas.map((_, k) => k).filter((k) => k !== b);
    const words = now.map((v, g) => (name === "accuracy" ? `${v} ${groups[g]}` : v)).join(", ");
    draw({
      x: [first, last],
      y: range,
      at: steps[i],
      xticks: roundPlaces(first, last, 2),
      yticks: roundPlaces(...range, 2),
      xlabel: "training step",
      title: `${title}: ${now.join(", ")}`,
      label: `${title} over the training steps; at step ${steps[i]} with β = ${betas[b]}: ${words}`,
      marks: (x, y) => [
        curves.map((by, g) => others.map((k) => thin(points(by, k, x, y), inks[g]))),
        curves.map((by, g) => thick(points(by, b, x, y), inks[g])),
        curves.map((by) => dot(x(steps[i]), y(by[b][i]), 5)),
      ],
    });
  }

  /** As _says in rewards.py. */
  function sentence(b, i) {
    const now = accuracies.map((by) => by[b][i]);
    const score = get("scores")[b];
    const said =
      `β = ${betas[b]}, step ${steps[i]}: accuracy ` +
      `${now.map((v, g) => `${fixed(v)} (${groups[g]})`).join(", ")}; ` +
      `judge's score ${fixed(score[i], 1)}; KL ${fixed(get("divergences")[b][i], 1)}. `;
    if (i === 0) return `${said}● This is the policy at the start.`;
    const sum = (values) => values.reduce((a, v) => a + v, 0);
    const more = score[i] > score[0];
    const better = sum(now) > sum(accuracies.map((by) => by[b][0]));
    const word = (up) => (up ? "risen" : "fallen");
    const since = `Since step ${first}, the judge's score has ${word(more)}`;
    return more === better
      ? `${said}● ${since}, and the mean accuracy too.`
      : `${said}▲ ${since}, but the mean accuracy has ${word(better)}.`;
  }

  function paint() {
    const [b, i] = place();
    for (const one of all) paintCurves(one, b, i);
    setText(says, sentence(b, i));
    setText(caption, `Sampled completions at β = ${betas[b]}, step ${steps[i]} (✔ right)`);
    get("completions")[b][i].forEach((texts, p) => {
      const { texts: cells, count } = tables[p];
      texts.forEach((text, k) => {
        const right = text === answers[p];
        cells[k].className = right ? "said right" : "said";
        setText(cells[k], `${right ? "✔" : " "} ${visible(text) || "∅"}`);
      });
      const many = texts.filter((text) => text === answers[p]).length;
      setText(count, `${many} of ${texts.length} right`);
    });
  }
  return { page, paint, lay };
}

export default explorer({
  name: "rewards-explorer",
  title: "A policy trained against a judge: completions and curves by KL penalty and step",
  traits: ["beta", "step"],
  edges: EDGES,
  build,
});
