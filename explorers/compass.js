// The words of a table fly to their dot products with two directions. The table comes once, as the
// weights of a model do.
const FLIGHT = 700; // milliseconds
const NAMED = 5000; // only the most frequent words are named unasked, …
const CORE = 1.6; // … and only from so many standard deviations on: both as in compass.py
const NEIGHBOURS = 10; // as in compass.py
const SIDES = ["left", "right", "down", "up"];
const PRESETS = {
  "love and machines": "machine animal war love dog",
  "doctor and nurse": "he she poor rich nurse",
  "kitchen to stadium": "politics football war kitchen coffee",
  "city and nature": "city nature war music piano",
  "a false friend: cold – hot": "poor rich cold hot desert",
};

/** Words with their unit vectors, and what is asked of them. */
function wordsOf(bytes) {
  const { about, tensors } = unpack(bytes);
  const { words } = about;
  const d = about.tensors.vectors[1];
  const { vectors } = tensors((n) => new Float32Array(n));
  const row = new Map(words.map((word, i) => [word, i]));
  const vector = (word) => vectors.subarray(row.get(word) * d, row.get(word) * d + d);
  const dot = (a, b) => a.reduce((sum, v, k) => sum + v * b[k], 0);
  /** The dot products of all words with a vector. */
  const products = (other) =>
    Float32Array.from(words, (_, i) => {
      let sum = 0;
      for (let k = 0, at = i * d; k < d; k++) sum += vectors[at + k] * other[k];
      return sum;
    });
  /** The unit vector of the difference b − a; null if there is none. */
  function direction(a, b) {
    const step = vector(b).map((v, k) => v - vector(a)[k]);
    const length = Math.hypot(...step);
    return length ? step.map((v) => v / length) : null;
  }
  function near(word) {
    if (!word) return [];
    const cosines = products(vector(word));
    cosines[row.get(word)] = -Infinity;
    const best = largest(cosines, Math.min(NEIGHBOURS, words.length - 1));
    return best.map((i) => [words[i], cosines[i]]);
  }
  const pairs = (word) => new Set([...`^${word}`].map((sign, i) => sign + ([...word][i] ?? "$")));
  let pairsOfAll;
  /** Words that share the most pairs of letters with one (Dice's coefficient). */
  function suggest(word) {
    const wanted = pairs(word);
    pairsOfAll ??= words.map(pairs);
    const alike = pairsOfAll.map(
      (some) => (2 * [...some].filter((p) => wanted.has(p)).length) / (wanted.size + some.size),
    );
    const best = largest(alike, 5).filter((i) => alike[i] > 0.3);
    return best.map((i) => words[i]);
  }
  return { words, d, row, dot, products, direction, near, suggest };
}

function build({ model, node, get, set, soon }) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let table = null; // as of wordsOf
  let words = [];
  let loading = null;
  let said = { text: "", side: "", suggestions: [] }; // about what was typed, loaded or copied
  let at = []; // the dot products of all words: [across, up]
  let angle = 0; // between the directions, in degrees
  let from, now, to; // where the words are, as shares of what fits: x, y, x, y …
  let began = 0; // when they set out; 0: at the next frame
  let asked = false; // is a frame asked for?
  let far = []; // which words are farther out than 99% of all?
  let ranked = []; // words to be named, the first ones first
  let names = []; // what is named, and where
  let near = []; // neighbours of the word that is looked at: [word, cosine]
  let shown = ["", ""]; // the axes and the word of all this
  let hover = "";
  let size = [0, 0]; // of the map
  let image = null; // the pixels of the cloud
  let ink = null;

  const short = (word, longest = 16) => truncate(visible(word), longest);
  const chosen = () => table?.row.get(hover || get("word"));

  // --- where words are
  function aim() {
    const axes = get("axes");
    const [x, y] = [0, 2].map((k) => table.direction(axes[k], axes[k + 1]));
    at = [x, y].map(table.products);
    angle = Math.round((Math.acos(table.dot(x, y)) * 180) / Math.PI);
    const half = at.map((all) => 1.04 * all.reduce((most, v) => Math.max(most, Math.abs(v)), 0));
    to = Float32Array.from({ length: 2 * words.length }, (_, n) => at[n % 2][n >> 1] / half[n % 2]);
    from = now?.slice() ?? new Float32Array(to.length); // at first all stand at 0
    now = from.slice();
    const spread = at.map((all) => Math.sqrt(table.dot(all, all) / all.length));
    const out = at[0].map((v, i) => Math.hypot(v / spread[0], at[1][i] / spread[1]));
    const limit = out.slice().sort()[Math.floor(0.99 * out.length)];
    far = words.map((_, i) => out[i] > limit);
    const score = (i) => out[i] - 0.2 * Math.log(i + 30);
    const isName = (i) => out[i] > CORE && /^\p{L}{3,}$/u.test(words[i]);
    ranked = [...out.subarray(0, NAMED).keys()].filter(isName);
    ranked.sort((a, b) => score(b) - score(a));
    began = 0;
  }
  const flies = () => to && now.some((v, n) => v !== to[n]);

  // --- the map
  const board = canvas(10, 10, "");
  const poles = SIDES.map((side, k) => {
    const input = html`<input type="text" aria-label="the word ${side}" maxlength="60"
      spellcheck="false" autocomplete="off" onchange=${() => typed(side, input.value)} />`;
    return { input, label: html`<label class="pole ${side}">${"←→↓↑"[k]}${input}</label>` };
  });
  const map = html`<div class="map" tabindex="0" role="group" data-entry=""
    aria-label="the map: arrow keys move from word to word">
    ${board}${poles.map(({ label }) => label)}
  </div>`;
  /** The place of word i in pixels. */
  const place = (i, of = now) => [
    (0.5 + of[2 * i] / 2) * size[0],
    (0.5 - of[2 * i + 1] / 2) * size[1],
  ];
  const isKey = (i) => get("axes").includes(words[i]) || near.some(([word]) => word === words[i]);
  function font(ctx, i, bold = isKey(i)) {
    const height = get("axes").includes(words[i]) || i < 400 ? 17 : i < 1500 ? 15 : 13;
    ctx.font = `${bold ? 700 : 400} ${height}px "Source Serif 4", Georgia, "Times New Roman", serif`;
    return { height: height + 3, width: ctx.measureText(short(words[i])).width + 8 };
  }
  /** Chooses which words are named, where they will be: the asked ones first, then the outer and frequent ones. */
  function layNames() {
    size = [map.clientWidth, map.clientHeight];
    const [W, H] = size;
    if (!table || !W) return;
    const ctx = board.getContext("2d");
    const frame = map.getBoundingClientRect();
    const taken = poles.map(({ label }) => {
      const { x, y, width, height } = label.getBoundingClientRect();
      return { x: x - frame.x, y: y - frame.y, width, height };
    });
    const first = [get("word"), ...get("axes"), ...near.map(([word]) => word)].filter(Boolean);
    names = [];
    for (const i of new Set([...first.map((word) => table.row.get(word)), ...ranked])) {
      const [x, y] = place(i, to);
      const { width, height } = font(ctx, i, true);
      const left = x + width > W;
      const box = { i, left, x: left ? x - width : x, y: y - height / 2, width, height };
      const hits = (o) =>
        Math.abs(2 * (box.x - o.x) + width - o.width) < width + o.width &&
        Math.abs(2 * (box.y - o.y) + height - o.height) < height + o.height;
      if (box.x < 0 || box.y < 0 || box.y + height > H || taken.some(hits)) continue;
      taken.push(box);
      if (names.push(box) > (W * H) / 4500) break;
    }
  }
  function drawCloud(ctx) {
    const { width, height } = board;
    if (image?.width !== width || image.height !== height)
      image = ctx.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer).fill(0);
    const scale = window.devicePixelRatio || 1;
    const pale = Math.max(14, Math.min(40, (size[0] * size[1]) / 8000)); // closer together on a phone
    for (const isFar of [false, true])
      for (let i = words.length; i--;) {
        if (far[i] !== isFar) continue;
        const side = Math.round((i < 500 || (isFar && i < NAMED) ? 3 : 1.5) * scale);
        const x = Math.round((0.5 + now[2 * i] / 2) * width - side / 2);
        const y = Math.round((0.5 - now[2 * i + 1] / 2) * height - side / 2);
        for (let v = y; v < y + side; v++)
          for (let p = v * width + x, end = p + side; p < end; p++) {
            const alpha = Math.min(255, (pixels[p] >>> 24) + (isFar ? 150 : pale));
            pixels[p] = (isFar ? ink.far : ink.near) | (alpha << 24);
          }
      }
    ctx.putImageData(image, 0, 0);
  }
  function stroke(ctx, color, width, dash, x1, y1, x2, y2) {
    Object.assign(ctx, { strokeStyle: color, lineWidth: width });
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x2, y2);
    ctx.stroke();
  }
  /** A text with a rim of paper. */
  function write(ctx, text, x, y, color, align) {
    const look = { textAlign: align, lineWidth: 4, lineJoin: "round", strokeStyle: ink.paper };
    Object.assign(ctx, { ...look, textBaseline: "middle", fillStyle: color });
    ctx.strokeText(text, x, y);
    ctx.fillText(text, x, y);
  }
  function name(ctx, i, left, color) {
    const [x, y] = place(i);
    font(ctx, i, color !== ink.ink);
    write(ctx, short(words[i]), x + (left ? -5 : 5), y, color, left ? "right" : "left");
    ctx.beginPath();
    ctx.arc(x, y, color === ink.ink ? 1.5 : 3, 0, 7);
    ctx.fill();
  }
  function draw() {
    const [W, H] = size;
    if (!W) return;
    ink ??= readInks();
    const ctx = fit(board, W, H);
    if (table) drawCloud(ctx);
    stroke(ctx, ink.quiet, 0.5, [], 0, H / 2, W, H / 2);
    stroke(ctx, ink.quiet, 0.5, [], W / 2, 0, W / 2, H);
    if (!table) return;
    const i = chosen();
    for (const one of names)
      if (one.i !== i) name(ctx, one.i, one.left, isKey(one.i) ? ink.blue : ink.ink);
    if (i === undefined) return;
    const [x, y] = place(i); // its projections: at right angles to the axes, the numbers at their feet
    stroke(ctx, ink.red, 1.5, [5, 4], x, y, x, H / 2);
    stroke(ctx, ink.red, 1.5, [5, 4], x, y, W / 2, y);
    stroke(ctx, ink.red, 3, [], W / 2, H / 2, x, H / 2);
    stroke(ctx, ink.red, 3, [], W / 2, H / 2, W / 2, y);
    const { width } = font(ctx, i, true);
    name(ctx, i, x + width > W || (x < W / 2 && x > width), ink.text);
    ctx.font = "700 13px system-ui, sans-serif";
    write(ctx, fixed(at[0][i]), x, H / 2 + (y < H / 2 ? 12 : -12), ink.text, "center");
    const away = x < W / 2 ? 7 : -7;
    write(ctx, fixed(at[1][i]), W / 2 + away, y, ink.text, away > 0 ? "left" : "right");
  }
  function readInks() {
    const { "red-text": text, ...inks } = cssColors(node, "ink quiet blue red paper red-text");
    const { pixel } = mapInks(node);
    const [r, g, b] = getComputedStyle(heading).color.match(/\d+/g).map(Number);
    return { ...inks, text, far: pixel(1) & 0xffffff, near: (b << 16) | (g << 8) | r };
  }

  // --- time
  function frame(time) {
    asked = false;
    began ||= time;
    const t = calm ? 1 : Math.min(1, (time - began) / FLIGHT);
    const share = t < 0.5 ? 4 * t ** 3 : 1 - 4 * (1 - t) ** 3;
    now = t < 1 ? from.map((v, n) => v + share * (to[n] - v)) : to;
    draw();
    if (t < 1) go();
  }
  function go() {
    if (!asked) requestAnimationFrame(frame);
    asked = true;
  }
  function tell(text, side = "", suggestions = []) {
    said = { text, side, suggestions };
    soon();
  }
  function load(late) {
    tell(loadingText(model));
    loading ??= Promise.resolve(late ?? weightsOf(model, load)).then(
      (bytes) => {
        table = wordsOf(bytes);
        ({ words } = table);
        tell("");
        fromLink();
      },
      ({ message }) => {
        loading = null;
        tell(`The words could not be loaded (${message}): click the map to retry.`);
      },
    );
  }

  // --- what is done
  /** A word was typed at one of the sides, or into the field beside the map. */
  function typed(side, text) {
    const meant = text.trim().toLowerCase();
    const word = [text, meant].find((one) => table?.row.has(one));
    const axes = get("axes").map((old, k) => (SIDES[k] === side ? word : old));
    if (table && word === undefined && (meant || side !== "word")) {
      const many = words.length.toLocaleString("en");
      const unknown = `“${short(meant, 30)}” is not among the ${many} words of this table.`;
      tell(unknown, side, table.suggest(meant));
    } else if (side === "word") show(get("axes"), word ?? "");
    else if (table) show(axes, get("word"));
  }
  function show(axes, word) {
    const apart = table.direction(...axes.slice(0, 2)) && table.direction(...axes.slice(2));
    tell(apart ? "" : "A direction needs two different words.");
    hover = "";
    if (apart) set({ axes, word });
  }
  // In the book the address can hold the axes and the word.
  function link() {
    const sides = get("axes").map((word, k) => [SIDES[k], word]);
    const state = new URLSearchParams([...sides, ["word", get("word")]]);
    history.replaceState(null, "", `#${state}`);
    navigator.clipboard?.writeText(location.href).catch(() => {}); // not every page may
    tell("The address of this page is a link to this compass now.");
  }
  function fromLink() {
    const state = new URLSearchParams(location.hash.slice(1));
    const axes = SIDES.map((side) => state.get(side) ?? "");
    if (!model.weights || !table || !axes.every((word) => table.row.has(word))) return;
    const word = state.get("word") ?? "";
    show(axes, table.row.has(word) ? word : "");
    node.scrollIntoView({ block: "center" });
  }

  // --- beside the map
  const field = html`<input type="text" aria-label="word" maxlength="60" size="10" spellcheck="false"
    placeholder="a word" autocomplete="off" oninput=${() => typed("word", field.value)}
    onblur=${() => said.side !== "word" && (field.value = get("word"))} />`;
  const [messages, says] =
    html`<div class="messages" role="status" /><p class="says" role="status" />`;
  const [heading, list, caption] =
    html`<p class="quiet" /><div class="near" /><p class="caption quiet" />`;
  const presets = Object.entries(PRESETS).map(([title, some]) => {
    const axes = some.split(" ");
    const word = axes.pop();
    const press = () => table && show(axes, word);
    return html`<button type="button" data-axes=${axes} onclick=${press}>${title}</button>`;
  });
  const page = html`
    <div class="desk">${map}<div class="side">
      <label class="asked">${field}</label>${messages}${says}${heading}${list}
    </div></div>
    <div class="row">
      ${presets}${model.weights && html`<button type="button" onclick=${link}>Copy a link</button>`}
    </div>
    ${caption}`;

  function line(axis) {
    const v = at[axis][chosen()];
    const [low, high] = get("axes").slice(2 * axis);
    const beyond = at[axis].filter((other) => (v < 0 ? other > v : other < v)).length;
    const share = Math.floor((100 * beyond) / words.length);
    const rest = ` ${axis ? "up" : "across"}: nearer to ${short(v < 0 ? low : high)} than ${share}% of all words`;
    return html`<span><b>${fixed(v)}</b>${rest}</span>`;
  }
  function suggestion(word) {
    const take = () => {
      const { input } = poles[SIDES.indexOf(said.side)] ?? { input: field };
      input.focus();
      typed(said.side, word);
    };
    return html`<button type="button" class="token" onclick=${take}>${short(word, 30)}</button>`;
  }
  function neighbour([word, cosine]) {
    const title = `walk to ${inFull(visible(word))}`;
    return html`<button type="button" title=${title} aria-label=${title} onclick=${() => show(get("axes"), word)}>
      <span class="name">${short(word, 30)}</span><span class="number">${fixed(cosine)}</span>
    </button>`;
  }
  function paint() {
    const [axes, word] = [get("axes"), get("word")];
    const [left, right, down, up] = axes.map((one) => short(one));
    poles.forEach(({ input }, k) => {
      if (said.side !== SIDES[k]) input.value = axes[k];
      input.size = Math.max(2, Math.min(12, input.value.length));
    });
    const meant = said.suggestions.length ? ["Did you mean", said.suggestions.map(suggestion)] : "";
    messages.replaceChildren(...[html`<span>${said.text}</span>`, meant].flat(2));
    messages.classList.toggle("warning", Boolean(said.side));
    if (said.side !== "word" && !node.querySelector(".asked :focus")) field.value = hover || word;
    if (table) {
      const changed = [axes.join("\n"), word];
      if (changed[0] !== shown[0]) aim();
      if (changed[1] !== shown[1])
        list.replaceChildren(...(near = table.near(word)).map(neighbour));
      if (String(changed) !== String(shown)) layNames();
      shown = changed;
      says.replaceChildren(...(chosen() === undefined ? [] : [line(0), line(1)]));
      setText(heading, word && `Nearest to ${short(word)} by cosine, in all ${table.d} numbers:`);
      const many = words.length.toLocaleString("en");
      const text = `Each dot is one of ${many} words, as a unit vector: across is its dot product with the unit vector of
        ${right} − ${left}, its shadow on that direction; up, with that of ${up} − ${down}
        (${angle}° from the first, drawn at 90°). Blue: the 1% farthest out.`;
      setText(caption, text);
      for (const button of presets) {
        button.setAttribute("aria-pressed", button.dataset.axes === String(axes));
        button.hidden = !button.dataset.axes.split(",").every(table.row.has, table.row);
      }
    }
    if (flies()) go();
    else draw();
  }

  // --- pointer and keys
  /** The word at the pointer: a name, or else the nearest dot. */
  function under({ offsetX, offsetY }) {
    const on = names.find(
      (n) => offsetX > n.x && offsetX < n.x + n.width && Math.abs(offsetY - n.y - 10) < 10,
    );
    const away = (_, i) => -Math.hypot(place(i)[0] - offsetX, place(i)[1] - offsetY);
    return on ? words[on.i] : words[largest(Float32Array.from(words, away), 1)[0]];
  }
  const look = (word) => {
    hover = word;
    soon();
  };
  board.addEventListener("pointermove", (event) => look(table ? under(event) : ""));
  board.addEventListener("pointerleave", () => look(""));
  board.addEventListener("click", (event) => (table ? show(get("axes"), under(event)) : load()));
  map.addEventListener("keydown", ({ key, target }) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[
      key
    ];
    if (!step || !table || target !== map) return;
    const here = place(chosen() ?? 0, to);
    const cost = ({ i }) => {
      const [dx, dy] = place(i, to).map((v, k) => v - here[k]);
      const along = dx * step[0] + dy * step[1];
      return along > 1 ? along + 2 * Math.abs(dx * step[1] + dy * step[0]) : Infinity;
    };
    const [next] = names.filter((n) => cost(n) < Infinity).sort((a, b) => cost(a) - cost(b));
    if (next) show(get("axes"), words[next.i]);
  });

  // --- from the beginning
  const sized = new ResizeObserver(() => {
    layNames();
    soon();
  });
  sized.observe(map);
  const seen = new IntersectionObserver((all) => {
    if (all.at(-1).isIntersecting && !loading) load();
  });
  seen.observe(node);
  if (location.hash.includes("left=")) load();
  addEventListener("hashchange", fromLink);
  const stop = () => {
    seen.disconnect();
    sized.disconnect();
    removeEventListener("hashchange", fromLink);
  };
  return { page, paint, theme: () => (ink = null), stop };
}

export default explorer({
  name: "compass",
  title: "Compass of words: two words for each axis, and every word at its dot products",
  traits: ["axes", "word"],
  build,
});
