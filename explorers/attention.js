// Everything is in the browser once it is open: choosing, hovering and locking ask nobody.

const ROWS = 8; // in the table of the strongest keys
const LONGEST = 10; // characters of a token on an axis
const TRAITS = ["layer", "head", "query", "locked", "stage"];
const STAGES = ["scores", "mask", "softmax"];
const [HOLD, MOVEMENT] = [800, 1700]; // milliseconds: while it plays, before each move from stage to stage
const CALM = matchMedia("(prefers-reduced-motion: reduce)");
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
    phase: STAGES.indexOf(get("stage")), // between two stages while it moves
    edges: [],
    scrolled: 0,
    revealing: true,
    theme: {},
  };
  s.two = !s.masked.includes(1);
  s.longest = Math.max(...s.tokens.map(({ letters }) => letters));
  s.set = debouncedSet(model, TRAITS, 80); // when the pointer or the key has come to rest
  s.stage = () => STAGES[Math.round(s.phase)]; // which the words speak of: they change halfway
  s.scoring = () => s.stage() !== "softmax";
  s.place = () => `Layer ${get("layer")}, head ${get("head")}`;

  /** The T × T weights (or scores) of the chosen head. */
  s.values = (ofScores) => {
    const first = (get("layer") * H + get("head")) * N;
    if (kept[ofScores]?.first === first) return kept[ofScores].data;
    const data = ofScores
      ? s.scores.subarray(first, first + N)
      : Float32Array.from(s.steps.subarray(first, first + N), (v) => v && (v + 0.5) / STEPS);
    kept[ofScores] = { first, data, mean: s.row(data, -1) };
    // the largest score (without sign) is the end of the colour scale
    if (ofScores) s.largest = data.reduce((most, v) => Math.max(most, Math.abs(v)), 1e-6);
    return data;
  };
  /** One of them; for i = −1 the mean over the queries. */
  s.value = (ofScores, i, j) => {
    const data = s.values(ofScores);
    return i < 0 ? kept[ofScores].mean[j] : data[i * T + j];
  };
  s.shut = (i, j) => i >= 0 && s.masked[i * T + j] === 1;

  /** What is seen of a pair on the way from stage to stage: how strong the arc is (less than 0: a
      negative score), and the colour of the cell. */
  s.between = (i, j) => {
    const hidden = s.shut(i, j) ? Math.min(1, s.phase) : 0;
    const done = Math.max(0, s.phase - 1);
    const score = done < 1 ? ((1 - done) * s.value(true, i, j)) / s.largest : 0;
    const weight = done ? s.value(false, i, j) : 0;
    const { seen } = s.theme.maps;
    const grey = seen(NaN);
    const ink = seen(score + done * Math.sqrt(weight));
    return [(1 - hidden) * score + done * weight, ink.map((c, n) => c + (grey[n] - c) * hidden)];
  };

  /** A pair's number in the stage that is seen, in full or in about so many characters. */
  s.number = (i, j, signs) => {
    const shut = s.shut(i, j);
    if (shut && s.stage() === "mask") return "−∞";
    if (s.scoring()) return signedText(s.value(true, i, j), signs ? Number(signs >= 4) : 2);
    const weight = s.value(false, i, j);
    if (!signs) return weight.toFixed(3);
    return shut ? "0" : weight.toFixed(signs >= 3 ? 2 : 1).replace(/^0/, "");
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
    const row = html`<tr>${position}<td>${key}</td>${s.scores && score}${weight}</tr>`;
    return { position, key, score, weight, row };
  });
  let most = 100;
  for (const v of s.scores ?? []) if (Math.abs(v) > most) most = Math.abs(v);
  const digits = s.scores ? signedText(-most).length : 0;
  const columns = ["at", "name", ...(s.scores ? ["score"] : []), "weight"];
  const table = html`<table style="--digits: ${digits}">
    <caption>${who}</caption>
    <colgroup>${columns.map((name) => html`<col class=${name} />`)}</colgroup>
    <thead><tr>
      <th class="number" title="position">pos</th><th>key</th>
      ${s.scores && html`<th class="number">score</th>`}
      <th class="number">weight</th>
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
    const masking = i >= 0 && s.stage() !== "scores";
    const shut = (j) => (masking ? masked[i * T + j] : 0);
    const before = (a, b) =>
      shut(a) - shut(b) ||
      (shut(a) ? 0 : by[b] - by[a] || (scores ? scores[b] - scores[a] : 0)) ||
      a - b;
    const order = Array.from({ length: T }, (_, j) => j)
      .sort(before)
      .slice(0, lines.length);
    const scoreText = (j) => (shut(j) ? "−∞" : signedText(scores[j]));
    lines.forEach((line, n) => {
      const j = order[n];
      setTextData(line.position, String(j));
      setTextData(line.key, tokens[j].short);
      if (line.key.title !== tokens[j].full) line.key.title = tokens[j].full;
      if (scores) setTextData(line.score, scoreText(j));
      setTextData(line.weight, weights[j].toFixed(3));
    });
    setTextData(
      who,
      i < 0
        ? "Mean over all queries"
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

/** What the colours mean, in numbers. */
function scaleBar(s) {
  const [low, high] = html`<span /><span />`;
  const node = html`<div class="scale quiet">
    ${low}<span class="bar" />${high}${!s.two && html`<span class="bar shut" />may not attend`}
  </div>`;
  function paint() {
    const most = s.scoring() ? signedText(s.largest, 1) : "1";
    setTextData(low, s.scoring() ? `−${most}` : "0");
    setTextData(high, most);
    node.classList.toggle("signed", s.scoring());
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
      s.set({ ...place, locked: true });
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
      const here = layer === s.get("layer") && head === s.get("head") && query === s.get("query");
      if (button.getAttribute("aria-pressed") !== String(here))
        button.setAttribute("aria-pressed", here);
    }
  }
  return { nodes: found.length ? [node] : [], paint };
}

function build({ model, node: box, soon }) {
  const s = stateOf(model);
  const { L, H, T, get, set, tokens } = s;
  const title = get("title").slice(0, 200);
  put(box, { "aria-label": `${title}: attention of ${L} layers with ${H} heads, ${T} tokens` });
  const grid = L * H > 1 ? headGrid(s) : null;
  const sentence = sentenceView(s);
  const map = heatMap(s);
  const table = keyTable(s);
  const scale = scaleBar(s);
  const heading = html`<strong class="heading" />`;
  const readout = html`<div class="quiet readout" />`;
  const ready = chips(s);
  const showAll = () => set({ query: -1, locked: false });
  const all = html`<button type="button" onclick=${showAll}>All queries</button>`;
  const unfold = () => more.setAttribute("aria-expanded", !box.classList.toggle("folded"));
  const more = html`<button type="button" class="more" aria-expanded="false" onclick=${unfold}>
    Matrix and numbers
  </button>`;
  box.classList.add("folded");
  box.classList.toggle("heads", grid !== null);
  box.classList.toggle("wide", L > H);

  // --- from stage to stage
  let frame = 0;
  let moving = false;
  let playing = false;
  const stage = () => STAGES.indexOf(get("stage"));
  /** One movement, slow at both ends; for who wants calm, a jump. */
  function go(to) {
    cancelAnimationFrame(frame);
    const from = s.phase;
    let start;
    const move = (now) => {
      start ??= now + (playing ? HOLD : 0);
      const t = CALM.matches ? Number(now >= start) : clamp(0, (now - start) / MOVEMENT, 1);
      moving = t < 1;
      s.phase = moving ? from + (to - from) * t * t * (3 - 2 * t) : to;
      paint();
      if (moving) frame = requestAnimationFrame(move);
      else if (playing && to < 2) set({ stage: "softmax" });
      else playing = false;
    };
    frame = requestAnimationFrame(move);
  }
  function stand(phase) {
    cancelAnimationFrame(frame);
    moving = false;
    playing = false;
    s.phase = phase;
    set({ stage: STAGES[Math.round(phase)] });
    soon();
  }
  function play() {
    stand(0);
    playing = true;
    set({ stage: "mask" });
  }
  model.on("change:stage", () => stage() !== Math.round(s.phase) && go(stage()));
  const scrub = html`<input type="range" min="0" max="2" step="0.05" aria-label="Stage"
    oninput=${() => stand(Number(scrub.value))} />`;
  const press3 = (name, i) => {
    const choose = () => {
      playing = false;
      set({ stage: name });
      go(i);
    };
    const words = `${i + 1} ${["Scores", "Mask", "Softmax"][i]}`;
    return html`<button type="button" onclick=${choose}>${words}</button>`;
  };
  const steps = STAGES.map(press3);
  const stages = html`<div class="row stages">
    <button type="button" class="play" onclick=${play}>Play</button>
    <span role="group" aria-label="Stage">${steps}${scrub}</span>
  </div>`;

  const figure = html`<div class="figure" tabindex="0" data-entry="" role="slider"
    aria-orientation="horizontal" aria-label="Query shown" aria-valuemin="-1" aria-valuemax=${T - 1}
    onscroll=${scroll} onpointermove=${move} onpointerleave=${leaveQuery} onclick=${lock}
    onkeydown=${press}>${sentence.node}</div>`;
  put(map.node, { onpointermove: move, onpointerleave: leaveQuery, onclick: lock });
  const page = html`
    <div class="row title"><strong title=${title}>${title}</strong>${ready.nodes}</div>
    <div class="row between">${heading}${scale.node}</div>
    ${figure}
    <div class="row foot">${s.scores && stages}${all}${more}${readout}</div>
    <div class="below">${grid?.node}${map.node}${table.nodes}</div>`;

  const what = () => ["scores", "scores, masked", "weights"][Math.round(s.phase)];
  function reading() {
    const i = get("query");
    if (i < 0) return "Choose a token, or press →, to see where it attends.";
    const one = `Query ${i} “${tokens[i].short}”`;
    if (s.column < 0)
      return get("locked")
        ? `${one} (locked). Click it or press Enter to unlock.`
        : `${one}. Click it or press Enter to lock.`;
    const masked = s.shut(i, s.column) && s.stage() === "mask" ? ", masked" : "";
    return `${one} → key ${s.column} “${tokens[s.column].short}”: ${s.number(i, s.column)}${masked}`;
  }
  let drawn = "";
  let measured = 0;
  function paint() {
    if (!measured) return; // there is no room for it yet
    const i = get("query");
    if (s.theme.ink === undefined) {
      s.theme = cssColors(box, "ink paper line blue red");
      s.theme.maps = mapInks(box);
      s.theme.mono = getComputedStyle(box.querySelector("td.number")).fontFamily;
    }
    const now = [get("layer"), get("head"), s.stage(), s.theme.ink].join();
    const another = now !== drawn;
    drawn = now;
    if (another) map.colours();
    map.paint(); // before any text of the page is changed: to write on a canvas asks for its layout
    sentence.paint();
    grid?.paint();
    scrub.value = s.phase;
    if (another) {
      scale.paint();
      setTextData(heading, grid ? `${s.place()}: ${what()}` : what());
      steps.forEach((button, n) => button.setAttribute("aria-pressed", n === Math.round(s.phase)));
    }
    if (moving && !another) return; // no word changes on the way
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
    if (s.revealing && i >= 0) sentence.reveal(i);
    s.revealing = false;
  }

  /** The query and key under the pointer. Of a line, it is the query or, while that is locked, the key. */
  function at({ clientX, clientY, currentTarget }) {
    const inMap = currentTarget === map.node;
    const box = (inMap ? map.area : sentence.node).getBoundingClientRect();
    const [x, y] = [clientX - box.left, clientY - box.top];
    const cell = (v) => clamp(0, Math.floor(v * T), T - 1);
    const across = (x * sentence.node.clientWidth) / box.width; // slides are scaled
    if (!inMap) return { i: sentence.find(across), j: get("locked") ? sentence.find(across) : -1 };
    if (y < 0 || y >= box.height) return { i: -1, j: -1 };
    return { i: cell(y / box.height), j: x < 0 ? -1 : cell(x / box.width) };
  }
  function point(column) {
    if (column === s.column) return;
    s.column = column;
    soon();
  }
  function scroll() {
    s.scrolled = figure.scrollLeft; // kept: to ask while painting would lay out the page once more
    soon();
  }
  function move(event) {
    const { i, j } = at(event);
    point(j);
    if (i >= 0 && !get("locked") && get("query") !== i) set({ query: i });
  }
  function leaveQuery() {
    point(-1);
    if (!get("locked") && get("query") >= 0) set({ query: -1 });
  }
  function lock(event) {
    const { i } = at(event);
    if (i >= 0)
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
  const room = new ResizeObserver(() => {
    const wide = box.clientWidth;
    const now = wide * (window.devicePixelRatio || 1);
    if (!wide || now === measured) return;
    measured = now;
    const narrow = wide < 560;
    sentence.resize(wide - 8, narrow ? 154 : 166);
    if (L > H) grid.resize(wide - 30, narrow ? 190 : 280);
    else grid?.resize(narrow ? wide - 30 : 0.3 * wide, 190);
    map.resize(narrow ? wide - 4 : (grid ? 0.44 : 0.5) * wide, narrow ? 300 : 236);
    drawn = "";
    paint(); // now: base.js scrolls to where it will stand
  });
  room.observe(box);
  const stop = () => {
    room.disconnect();
    cancelAnimationFrame(frame);
    set.stop();
    table.stop();
  };
  return { page, paint, theme, stop };
}

export default explorer({ name: "attention-explorer", title: "", traits: TRAITS, build });
