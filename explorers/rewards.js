// All that was recorded comes once (rewards.py checks it); choosing a part of it asks nobody.
/** @type {[string, string][]} colours and dashes */
const ACCURACIES = [
  ["blue", ""],
  ["orange", "7 4"],
  ["green", "2 4"],
];
const EDGES = [480, 560, 620, 760, 940]; // of the explorer's width, in pixels
const WIDTHS = [164, 154, 180, 200, 248, 308]; // of a chart, below the first edge and from each edge on

const STYLE = `
.d2g.rewards-explorer .row .row { gap: 4px; margin: 0; }
.d2g.rewards-explorer .row button { padding: 2px 8px; }
.d2g.rewards-explorer .verdict { min-height: 2.9em; }
.d2g.rewards-explorer .charts { display: flex; flex-wrap: wrap; gap: 2px 8px; }
.d2g.rewards-explorer .charts figcaption { line-height: 18px; white-space: nowrap; }
.d2g.rewards-explorer .key { display: flex; flex-wrap: wrap; gap: 0 14px; margin: 2px 0; font-size: 12px; }
.d2g.rewards-explorer .key span { display: inline-flex; align-items: center; gap: 4px; }
.d2g.rewards-explorer caption { text-align: left; font-weight: 600; }
.d2g.rewards-explorer th, .d2g.rewards-explorer td { padding: 1px 5px; white-space: pre; text-align: left; }
.d2g.rewards-explorer tbody th, .d2g.rewards-explorer .said { font: 12px/1.45 var(--jp-code-font-family, monospace); }
.d2g.rewards-explorer .samples { white-space: normal; }
.d2g.rewards-explorer .said { display: inline-block; white-space: pre; color: var(--quiet); }
.d2g.rewards-explorer .said.right { color: var(--green-text); font-weight: 700; }
@container explorer (max-width: 619px) { .d2g.rewards-explorer .verdict { min-height: 4.35em; } }
`;

/** About three round places from low to high, with the words for them. */
function places(low, high) {
  const ten = 10 ** Math.floor(Math.log10((high - low) / 2));
  const gap = ten * [5, 2, 1].find((s) => s * ten <= (high - low) / 2);
  const first = Math.ceil(low / gap - 1e-9);
  const count = Math.floor(high / gap + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, i) => {
    const value = (first + i) * gap;
    return [value, fixed(value, gap < 1 ? Math.ceil(-Math.log10(gap)) : 0)];
  });
}

function render({ model, el }) {
  const node = root(
    el,
    "rewards-explorer",
    "A policy trained against a judge: completions and curves by KL penalty and step",
  );
  const get = (name) => model.get(name);
  const steps = get("steps");
  const betas = get("betas");
  const groups = get("groups");
  const accuracies = get("accuracies");
  const answers = get("answers");
  const [first, last] = [steps[0], steps[steps.length - 1]];
  const gap = steps[1] - first;
  const place = () => [betas.indexOf(get("beta")), steps.indexOf(get("step"))];
  const longest = Math.max(
    ...get("completions")
      .flat(3)
      .map((text) => [...text].length),
  );

  // The completions: a row for each problem. They are written anew, never made anew.
  const tables = get("prompts").map((prompt, p) => {
    const texts = get("completions")[0][0][p].map(() =>
      h("span", { class: "said", style: `width:${longest + 3}ch` }),
    );
    const count = h("td", { class: "count" });
    const line = h(
      "tr",
      {},
      h("th", { scope: "row" }, visible(prompt)),
      h("td", { class: "samples" }, ...texts.flatMap((text) => [text, " "])),
      count,
    );
    return { texts, count, line };
  });
  const caption = h("caption", {});
  const stepping = slider(model, "step", {
    label: "training step",
    min: first,
    max: last,
    step: gap,
  });
  stepping.querySelector("input").dataset.entry = "";
  const says = summary();
  const board = h("div", { class: "charts" });
  node.append(
    h("style", {}, STYLE),
    h(
      "div",
      { class: "row" },
      h(
        "span",
        { class: "row" },
        "KL penalty β",
        choice(
          model,
          "beta",
          betas.map((beta) => [beta, String(beta)]),
          "KL penalty β",
        ),
      ),
      stepping,
    ),
    says,
    board,
    h(
      "p",
      { class: "quiet key" },
      ...groups.map((name, g) => h("span", {}, legendLine(ACCURACIES[g]), `accuracy: ${name}`)),
      h("span", {}, "thick: the chosen β; thin: the others"),
      h("span", {}, "● the chosen step (click to move it)"),
    ),
    h("table", {}, caption, h("tbody", {}, ...tables.map(({ line }) => line))),
  );

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
    setAndSave(model, { step: steps[Math.min(steps.length - 1, Math.max(0, i))] });
  };
  function lay(reached) {
    const size = { width: WIDTHS[reached], height: 132, left: 34, right: 10, bottom: 30, pick };
    for (const one of all) one.chart = chart(one.name, size);
    board.replaceChildren(...all.map(({ chart: { figure } }) => figure));
    paint();
  }

  function paintCurves({ chart: { paint: draw }, title, digits, curves, inks, range, name }, b, i) {
    const now = curves.map((by) => fixed(by[b][i], digits));
    const points = (by, k, x, y) => by[k].map((v, j) => [x(steps[j]), y(v)]);
    const others = betas.map((_, k) => k).filter((k) => k !== b);
    const words = now.map((v, g) => (name === "accuracy" ? `${v} ${groups[g]}` : v)).join(", ");
    draw({
      x: [first, last],
      y: range,
      at: steps[i],
      xticks: places(first, last),
      yticks: places(...range),
      xlabel: "training step",
      title: `${title}: ${now.join(", ")}`,
      label: `${title} over the training steps; at step ${steps[i]} with β = ${betas[b]}: ${words}`,
      marks: (x, y) => [
        ...curves.flatMap((by, g) =>
          others.map((k) =>
            curve(points(by, k, x, y), inks[g][0], {
              "stroke-width": 1,
              "stroke-opacity": 0.5,
              "stroke-dasharray": inks[g][1],
            }),
          ),
        ),
        ...curves.map((by, g) =>
          curve(points(by, b, x, y), inks[g][0], {
            class: "chosen",
            "stroke-dasharray": inks[g][1],
          }),
        ),
        ...curves.map((by) => dot(x(steps[i]), y(by[b][i]), 5)),
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
  const asWide = onBreakpoint(node, lay, EDGES);
  const forget = paintOnChange(model, ["beta", "step"], paint);
  return () => {
    asWide();
    forget();
  };
}

export default live(render);
