// Everything is in the browser once it is open: choosing, hovering and locking ask nobody.

const ROWS = 8; // in the table of the strongest keys
const LONGEST = 10; // characters of a token on an axis
const TRAITS = ["layer", "head", "average", "query", "locked", "view", "stage", "show_masked"];
const READ_AS_ONE = new Intl.Segmenter(); // 👩‍👩‍👧 is one character to the reader

/** A token to be shown, at length and as short as an axis takes; nothing in it stays invisible. */
function label(token) {
  const some = token.slice(0, 200); // nobody reads, or wants to hear, more of it
  const signs = visible(some).replace(/[\x00-\x1f]/g, (c) =>
    String.fromCharCode(0x2400 + c.charCodeAt()),
  );
  const code = (c) => `U+${c.codePointAt().toString(16).toUpperCase().padStart(4, "0")}`;
  const full = /^[\p{Cf}\p{Z}]+$/u.test(signs) ? Array.from(signs, code).join(" ") : signs || "∅";
  const letters = Array.from(READ_AS_ONE.segment(full), (part) => part.segment);
  const long = letters.length > LONGEST;
  const short = long ? letters.slice(0, LONGEST - 1).join("") + "…" : full;
  return { full, short, letters: Math.min(LONGEST, letters.length), space: /^␣+$/.test(short) };
}

/** What the parts share: the data, the traits, and what follows from them. */
function stateOf(model) {
  const get = (name) => model.get(name);
  const bytes = (name) => bytesOf(get(name)).buffer;
  const [L, H, T] = get("shape");
  const N = T * T;
  const kept = {};
  const s = {
    L,
    H,
    T,
    N,
    get,
    tokens: get("tokens").map(label),
    steps: new Uint16Array(bytes("weight_steps")),
    masked: new Uint8Array(bytes("masked")),
    scores: get("raw_scores").byteLength ? new Float32Array(bytes("raw_scores")) : null,
    column: -1,
    largest: 1,
    scrolled: 0,
    revealing: true,
    theme: {},
  };
  s.longest = Math.max(...s.tokens.map(({ letters }) => letters));
  s.set = debouncedSet(model, TRAITS, 80); // when the pointer or the key has come to rest
  s.scoring = () => get("stage") !== "softmax";
  s.hiding = () => get("stage") === "mask" || (get("stage") === "softmax" && !get("show_masked"));
  s.place = () =>
    `Layer ${get("layer")}, ${get("average") ? `mean of ${H} heads` : `head ${get("head")}`}`;

  /** The T × T weights (or scores) of the chosen head, or their mean over the heads of its layer. */
  s.values = (ofScores) => {
    const first = get("average") ? 0 : get("head");
    const count = get("average") ? H : 1;
    const key = [get("layer"), first, count].join();
    if (kept[ofScores]?.key === key) return kept[ofScores].data;
    const data = new Float32Array(N);
    const scale = 1 / count / (ofScores ? 1 : STEPS);
    for (let n = 0; n < count; n++) {
      const at = (get("layer") * H + first + n) * N;
      if (ofScores) for (let k = 0; k < N; k++) data[k] += s.scores[at + k];
      else for (let k = 0; k < N; k++) data[k] += s.steps[at + k] && s.steps[at + k] + 0.5;
    }
    for (let k = 0; k < N; k++) data[k] *= scale;
    kept[ofScores] = { key, data };
    return data;
  };

  /** The largest score (without sign) that is shown: the end of the colour scale. */
  s.measure = () => {
    s.largest = 1e-6;
    const data = s.scoring() ? s.values(true) : [];
    const hide = s.hiding();
    for (let k = 0; k < data.length; k++)
      if (!(hide && s.masked[k])) s.largest = Math.max(s.largest, Math.abs(data[k]));
  };

  /** What query i gives to each key or, for i = -1, the mean over the queries that may look there. */
  s.row = (data, i) => {
    if (i >= 0) return data.subarray(i * T, (i + 1) * T);
    return Float32Array.from({ length: T }, (_, j) => {
      let sum = 0;
      let n = 0;
      for (let k = j; k < N; k += T)
        if (!s.masked[k]) {
          sum += data[k];
          n++;
        }
      return n ? sum / n : 0;
    });
  };
  return s;
}

/** The strongest keys of the query as text, to be read, heard and copied. */
function keyTable(s) {
  const who = html`<div />`;
  const cell = () => html`<td class="number" />`;
  const lines = Array.from({ length: Math.min(ROWS, s.T) }, () => {
    const [position, score, weight] = [cell(), cell(), cell()];
    const key = html`<span class="token" />`;
    const bar = html`<div class="bar" />`;
    const row = html`<tr>${position}<td>${key}</td>${s.scores && score}${weight}<td>${bar}</td></tr>`;
    return { position, key, score, weight, bar, row };
  });
  let most = 100;
  for (const v of s.scores ?? []) if (Math.abs(v) > most) most = Math.abs(v);
  const digits = s.scores ? signedText(-most).length : 0;
  const columns = ["at", "name", ...(s.scores ? ["score"] : []), "weight", "bars"];
  const table = html`<table style="--digits: ${digits}">
    <caption>${who}</caption>
    <colgroup>${columns.map((name) => html`<col class=${name} />`)}</colgroup>
    <thead><tr>
      <th class="number" title="position">pos</th><th>key</th>
      ${s.scores && html`<th class="number">score</th>`}
      <th class="number">weight</th><th aria-label="as a bar" />
    </tr></thead>
    <tbody>${lines.map((line) => line.row)}</tbody>
  </table>`;
  const spoken = html`<p class="unseen" role="status" aria-live="polite" />`;
  let speaking = 0;
  function paint() {
    const { get, masked, T, tokens } = s;
    const i = get("query");
    const weights = s.row(s.values(false), i);
    const scores = s.scores && s.row(s.values(true), i);
    const by = s.scoring() ? scores : weights;
    const masking = i >= 0 && get("stage") !== "scores";
    const shut = (j) => (masking ? masked[i * T + j] : 0);
    const before = (a, b) =>
      shut(a) - shut(b) ||
      (shut(a) ? 0 : by[b] - by[a] || (scores ? scores[b] - scores[a] : 0)) ||
      a - b;
    const order = [];
    for (let j = 0; j < T; j++) {
      // the ROWS first, without sorting all
      let n = order.length;
      if (n === lines.length && before(order[n - 1], j) < 0) continue;
      while (n > 0 && before(j, order[n - 1]) < 0) n--;
      order.splice(n, 0, j);
      order.length = Math.min(order.length, lines.length);
    }
    const scoreText = (j) => (shut(j) ? "−∞" : signedText(scores[j]));
    lines.forEach((line, n) => {
      const j = order[n];
      setTextData(line.position, String(j));
      setTextData(line.key, tokens[j].short);
      if (line.key.title !== tokens[j].full) line.key.title = tokens[j].full;
      if (scores) setTextData(line.score, scoreText(j));
      setTextData(line.weight, weights[j].toFixed(3));
      line.bar.style.backgroundSize = `${100 * weights[j]}% 100%`; // painted only, where a width would be laid out
    });
    setTextData(
      who,
      i < 0
        ? "Mean over all queries that can attend to it"
        : `Query ${i} “${tokens[i].short}”${get("locked") ? " (locked)" : ""}`,
    );
    clearTimeout(speaking);
    speaking = setTimeout(() => {
      const strongest = order
        .slice(0, 3)
        .map((j) => `${tokens[j].full} ${s.scoring() ? scoreText(j) : weights[j].toFixed(3)}`);
      setTextData(
        spoken,
        `${s.place()}. ${who.textContent}. Strongest keys: ${strongest.join(", ")}`,
      );
    }, 400);
  }
  return { nodes: [table, spoken], paint, stop: () => clearTimeout(speaking) };
}

/** What the colours (or the widths of the lines) mean, in numbers. */
function scaleBar(s) {
  const node = canvas(190, 26, "");
  const ctx = node.getContext("2d");
  const from = 14;
  const long = 156;
  const kept = new Map(); // the colours do not change with the numbers under them
  let drawn = "";
  function colours(asLines, score) {
    const copy = html`<canvas width=${node.width} height=${node.height} />`;
    const brush = copy.getContext("2d");
    brush.scale(node.width / 190, node.height / 26);
    for (let k = 0; k < long; k++) {
      const thick = asLines ? 0.5 + (4.5 * k) / long : 10;
      brush.globalAlpha = asLines ? k / long : 1;
      brush.fillStyle = asLines
        ? s.theme.blue
        : rgb(s.theme.maps.seen(score ? (2 * k) / long - 1 : k / long));
      brush.fillRect(from + k, 5 - thick / 2, 1, thick);
    }
    return copy;
  }
  function paint() {
    const asLines = s.get("view") === "lines";
    const score = s.scoring();
    const name = (asLines ? "lines " : `${score} `) + s.theme.blue;
    const now = [name, score, s.largest, s.theme.ink].join();
    if (now === drawn) return;
    drawn = now;
    const marks = asLines
      ? [0, s.largest / 2, s.largest]
      : score
        ? [-s.largest, 0, s.largest]
        : [0, 0.05, 0.25, 0.5, 1];
    const part = (v) => (asLines ? v / s.largest : score ? (v / s.largest + 1) / 2 : Math.sqrt(v));
    ctx.clearRect(0, 0, 190, 26);
    if (!kept.has(name)) kept.set(name, colours(asLines, score));
    ctx.drawImage(kept.get(name), 0, 0, 190, 26);
    ctx.fillStyle = s.theme.ink;
    ctx.font = "11px sans-serif";
    ctx.textAlign = "center";
    const write = (v) => (score ? signedText(v, 1) : String(v));
    for (const v of marks) ctx.fillText(write(v), from + long * part(v), 22);
    node.setAttribute(
      "aria-label",
      `${asLines ? "widths" : "colours"} from ${write(marks[0])} to ${write(marks.at(-1))}` +
        (asLines && score ? ", negative ones dashed" : ""),
    );
  }
  return { node, paint };
}

/** How the buttons name what notable_heads.py has found. */
const ATTENDS_TO = {
  "previous token": "the previous token",
  "same token": "itself",
  "first token": "the first token",
  "many tokens": "many tokens",
  induction: "what followed last time",
};

/** States worth a look, found in the data by Python: each chooses a head and locks a query. */
function chips(s) {
  const found = s.get("notable_heads").map(({ name, ...place }) => {
    const go = () => {
      s.revealing = true;
      s.set({ ...place, average: false, locked: true });
    };
    return {
      ...place,
      button: html`<button type="button" onclick=${go}>${ATTENDS_TO[name]}</button>`,
    };
  });
  const label = s.L * s.H > 1 ? "Find a head that attends to" : "Find a query that attends to";
  const node = html`<div class="row chips" role="group" aria-label=${label}>
    <span class="quiet" aria-hidden="true">${label} …</span>${found.map(({ button }) => button)}
  </div>`;
  function paint() {
    for (const { layer, head, query, button } of found) {
      const here =
        !s.get("average") &&
        layer === s.get("layer") &&
        head === s.get("head") &&
        query === s.get("query");
      if (button.getAttribute("aria-pressed") !== String(here))
        button.setAttribute("aria-pressed", here);
    }
  }
  return { nodes: found.length ? [node] : [], paint };
}

/** A group of buttons with its name before it. */
const named = (name, part) => html`<div class="row named">
  <span class="quiet" aria-hidden="true">${name}</span>${part}
</div>`;

function build({ model, node: box, soon }) {
  const s = stateOf(model);
  const { L, H, T, get, set, tokens } = s;
  const title = get("title").slice(0, 200);
  put(box, { "aria-label": `${title}: attention of ${L} layers with ${H} heads, ${T} tokens` });
  const grid = L * H > 1 ? headGrid(s) : null;
  const map = heatMap(s);
  const lines = lineView(s);
  const table = keyTable(s);
  const scale = scaleBar(s);
  const heading = html`<strong />`;
  const readout = html`<div class="quiet readout" />`;
  const ready = chips(s);
  const showAll = () => set({ query: -1, locked: false });
  const all = html`<button type="button" class="all" onclick=${showAll}>All queries</button>`;
  // Buttons, too, let Python wait: JupyterLab shows a busy kernel, and paints that before our picture.
  const calm = {
    get,
    set: (name, value) => set({ [name]: value }),
    on: model.on,
    off: model.off,
    save_changes() {},
  };
  const stages = { scores: "1 Scores", mask: "2 Mask", softmax: "3 Softmax" };
  const views = { map: "Heat map", lines: "Lines" };
  const side = html`<div class="side">
    <div class="row between">
      ${s.scores && named("Stage", choice(calm, "stage", stages, "Stage"))}
      ${s.masked.includes(1) && checkbox(calm, "show_masked", "show masked")}
    </div>
    ${grid?.node}${table.nodes}
  </div>`;
  const figure = html`<div class="figure" tabindex="0" data-entry="" role="slider"
    aria-orientation="vertical" aria-label="Query shown" aria-valuemin="-1" aria-valuemax=${T - 1}
    onscroll=${scroll} onpointermove=${move} onpointerleave=${leaveQuery} onclick=${lock}
    onkeydown=${press}>${map.node}${lines.node}</div>`;
  const main = html`<div class="main">
    ${heading}
    <div class="row above">${named("View", choice(calm, "view", views, "View"))}${scale.node}</div>
    ${figure}
    <div class="row foot">${all}${readout}</div>
  </div>`;
  const page = html`
    <div class="row title"><strong title=${title}>${title}</strong>${ready.nodes}</div>
    <div class="columns">${side}${main}</div>`;

  const what = () =>
    ({ scores: "scores", mask: "scores, masked", softmax: "weights" })[get("stage")];
  function reading() {
    const i = get("query");
    const k = i * T + s.column;
    const few = get("view") === "lines" && lines.most < T; // the text has two short lines of room
    if (i < 0 && few)
      return `The ${lines.most} strongest lines of each query. Hover over one, or press ↓, to see all of its lines.`;
    if (i < 0)
      return "Hover over a query, or press ↓, to isolate it. Click or press Enter to lock it.";
    const one = `Query ${i} “${tokens[i].short}”`;
    if (s.column < 0)
      return get("locked")
        ? `${one} (locked). Click it or press Enter to unlock.`
        : `${one}. Click it or press Enter to lock.`;
    const value =
      s.masked[k] && get("stage") === "mask"
        ? "−∞, masked"
        : s.scoring()
          ? signedText(s.values(true)[k])
          : s.values(false)[k].toFixed(3);
    return `${one} → key ${s.column} “${tokens[s.column].short}”: ${value}`;
  }
  let drawn = "";
  let measured = 0;
  function paint() {
    if (!measured) return; // there is no room for it yet
    const i = get("query");
    const inMap = get("view") === "map";
    if (s.theme.ink === undefined) {
      s.theme = cssColors(box, "ink paper focus blue red");
      s.theme.maps = mapInks(box);
      s.theme.mono = getComputedStyle(box.querySelector("td.number")).fontFamily;
    }
    const now =
      ["layer", "head", "average", "stage", "show_masked", "view"].map(get).join() + s.theme.ink;
    const another = now !== drawn;
    drawn = now;
    if (another) {
      if (s.scoring()) s.measure();
      else s.largest = 1;
      if (inMap) map.colours();
      scale.paint();
    }
    (inMap ? map : lines).paint(); // before any text of the page is changed: to write on a canvas asks for its layout
    if (another) {
      grid?.paint();
      setTextData(heading, grid ? `${s.place()}: ${what()}` : what());
      s.revealing ||= lines.node.hidden && !inMap;
      map.node.hidden = !inMap;
      lines.node.hidden = inMap;
      figure.style.height = inMap ? "" : `${lines.high()}px`;
    }
    table.paint();
    ready.paint();
    if (all.getAttribute("aria-pressed") !== String(i < 0)) all.setAttribute("aria-pressed", i < 0);
    setTextData(readout, reading());
    figure.setAttribute("aria-valuenow", i);
    figure.setAttribute(
      "aria-valuetext",
      i < 0 ? "all queries" : `query ${i}, ${tokens[i].full}${get("locked") ? " (locked)" : ""}`,
    );
    grid?.follow();
    if (s.revealing && !inMap && i >= 0) lines.reveal(i);
    s.revealing = false;
  }

  const at = (event) => {
    const inMap = get("view") === "map";
    const part = inMap ? map : lines;
    const across = part.area.getBoundingClientRect();
    const down = part.rows.getBoundingClientRect();
    const x = (event.clientX - across.left) / across.width;
    const y = (event.clientY - down.top) / down.height;
    const cell = (v) => Math.min(T - 1, Math.max(0, Math.floor(v * T)));
    return {
      i: cell(y),
      j: inMap && x >= 0 && x < 1 ? cell(x) : -1,
      inside: y >= 0 && y < 1 && x < (inMap ? 1 : 0.4),
    };
  };
  function point(column) {
    if (column === s.column) return;
    s.column = column;
    soon();
  }
  function scroll() {
    s.scrolled = figure.scrollTop; // kept: to ask while painting would lay out the page once more
    if (get("view") === "lines") soon();
  }
  function move(event) {
    const { i, j, inside } = at(event);
    point(inside ? j : -1);
    if (inside && !get("locked") && get("query") !== i) set({ query: i });
  }
  function leaveQuery() {
    point(-1);
    if (!get("locked") && get("query") >= 0) set({ query: -1 });
  }
  function lock(event) {
    const { i, inside } = at(event);
    if (inside)
      set(get("locked") && get("query") === i ? { locked: false } : { query: i, locked: true });
  }
  function press(event) {
    const i = get("query");
    const up = Math.max(i < 0 ? 0 : -1, i - 1);
    const down = Math.min(T - 1, i + 1);
    const [ten, further] = [Math.max(0, i - 10), Math.min(T - 1, i + 10)];
    const ways = { ArrowUp: up, ArrowLeft: up, ArrowDown: down, ArrowRight: down };
    const to = { ...ways, Home: 0, End: T - 1, PageUp: ten, PageDown: further }[event.key];
    if (to === -1)
      showAll(); // above the first
    else if (to !== undefined) set({ query: to });
    else if (event.key === "Enter" || event.key === " ")
      set({ query: Math.max(0, i), locked: !get("locked") });
    else return;
    event.preventDefault();
    point(-1);
    s.revealing = true;
    soon();
  }
  const theme = () => {
    s.theme = {};
    drawn = "";
  };
  /** attention.css says how much room there is; how much of it is filled is said here. */
  const room = new ResizeObserver(() => {
    const now = box.clientWidth * (window.devicePixelRatio || 1);
    if (!box.clientWidth || now === measured) return;
    measured = now;
    const most = (node) => parseFloat(getComputedStyle(node).maxHeight);
    // All is asked before anything is written: else the browser lays out the page for each answer.
    const beside = side.clientWidth - 22;
    const wide = main.clientWidth;
    const tall = most(figure) - 14;
    const ofGrid = grid && most(grid.node) - 34;
    grid?.resize(beside, ofGrid);
    for (const part of [map, lines]) part.resize(wide, tall);
    drawn = "";
    paint(); // now: base.js scrolls to where it will stand
  });
  room.observe(box);
  const stop = () => {
    room.disconnect();
    set.stop();
    table.stop();
  };
  return { page, paint, theme, stop };
}

export default explorer({ name: "attention-explorer", title: "", traits: TRAITS, build });
