// The words of a table fly to their dot products with two directions. The table comes once, as the
// weights of a model do.
const FLIGHT = 700; // milliseconds
const NAMED = 5000; // only the most frequent words are named unasked, …
const CORE = 1.6; // … and only from so many standard deviations on: both as in compass.py
const NEIGHBOURS = 10; // as in compass.py
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
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
  function dot(a, b, at = 0) {
    let sum = 0;
    for (let k = 0; k < b.length; k++) sum += a[at + k] * b[k];
    return sum;
  }
  /** The dot products of all words with a vector. */
  const products = (other) => Float32Array.from(words, (_, i) => dot(vectors, other, i * d));
  /** The unit vector of the difference b − a; null if there is none. */
  function direction(a, b) {
    const step = vector(b).map((v, k) => v - vector(a)[k]);
    const length = Math.hypot(...step);
    return length ? step.map((v) => v / length) : null;
  }
  function near(word) {
    const cosines = products(vector(word));
    const best = largest(cosines, NEIGHBOURS + 1).filter((i) => words[i] !== word);
    return best.slice(0, NEIGHBOURS).map((i) => [words[i], cosines[i]]);
  }
  const pairs = (word) => new Set([...`^${word}$`].map((sign, i, all) => sign + all[i + 1]));
  /** Words that share the most pairs of letters with one (Dice's coefficient). */
  function suggest(word) {
    const wanted = pairs(word);
    const alike = words.map((other) => {
      const some = pairs(other);
      return (2 * [...some].filter((pair) => wanted.has(pair)).length) / (wanted.size + some.size);
    });
    const best = largest(alike, 5).filter((i) => alike[i] > 0.3);
    return best.map((i) => words[i]);
  }
  return { words, d, row, dot, products, direction, near, suggest };
}

const meet = (a, b) =>
  Math.abs(2 * (a.x - b.x) + a.width - b.width) < a.width + b.width &&
  Math.abs(2 * (a.y - b.y) + a.height - b.height) < a.height + b.height;

function build({ model, node, get, set, soon }) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let table = null; // as of wordsOf
  let words = [];
  let loading = false;
  let wrong = ""; // at which side an unknown word was typed
  let at = []; // the dot products of all words: [across, up]
  let angle = 0; // between the directions, in degrees
  let from, now, to; // where the words are, as shares of what fits: x, y, x, y …
  let began = 0; // when they set out; 0: at the next frame
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
  const many = () => words.length.toLocaleString("en");
  const chosen = () => table?.row.get(hover || get("word"));

  // --- where words are
  function aim() {
    const axes = get("axes");
    const [x, y] = [0, 2].map((k) => table.direction(axes[k], axes[k + 1]));
    at = [x, y].map(table.products);
    angle = Math.round((Math.acos(table.dot(x, y)) * 180) / Math.PI);
    const half = at.map((all) => 1.04 * all.reduce((most, v) => Math.max(most, Math.abs(v)), 0));
    to = Float32Array.from({ length: 2 * words.length }, (_, n) => at[n % 2][n >> 1] / half[n % 2]);
    from = now ??= new Float32Array(to.length); // at first all stand at 0
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
  function font(ctx, i, bold) {
    const height = get("axes").includes(words[i]) || i < 400 ? 17 : i < 1500 ? 15 : 13;
    ctx.font = `${bold ? 700 : 400} ${height}px "Source Serif 4", Georgia, "Times New Roman", serif`;
    return height + 3;
  }
  /** The box of a name beside its dot; that of the chosen word does not lie on its projection. */
  function boxOf(ctx, i, of) {
    const [x, y] = place(i, of);
    const height = font(ctx, i, true);
    const width = ctx.measureText(short(words[i])).width + 8;
    const left = x + width > size[0] || (i === chosen() && x < size[0] / 2 && x > width);
    return { i, left, x: left ? x - width : x, y: y - height / 2, width, height };
  }
  /** Chooses which words are named, where they will be: the asked ones first, then the outer and frequent ones. */
  function layNames() {
    size = [map.clientWidth, map.clientHeight];
    const [W, H] = size;
    if (!to || !W) return;
    const ctx = board.getContext("2d");
    const frame = map.getBoundingClientRect();
    const taken = poles.map(({ label }) => {
      const { x, y, width, height } = label.getBoundingClientRect();
      return { x: x - frame.x, y: y - frame.y, width, height };
    });
    const first = [get("word"), ...get("axes"), ...near.map(([word]) => word)].filter(Boolean);
    names = [];
    for (const i of new Set([...first.map((word) => table.row.get(word)), ...ranked])) {
      const box = boxOf(ctx, i, to);
      const isIn = box.x > 0 && box.y > 0 && box.y + box.height < H;
      if (!isIn || taken.some((other) => meet(box, other))) continue;
      taken.push({ ...box, x: box.x - 6, width: box.width + 12 }); // air, and room for dots
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
  function stroke(ctx, color, width, dash, ...points) {
    Object.assign(ctx, { strokeStyle: color, lineWidth: width });
    ctx.setLineDash(dash);
    ctx.beginPath();
    for (let n = 0; n < points.length; n += 2) ctx.lineTo(points[n], points[n + 1]);
    ctx.stroke();
  }
  /** A text with a rim of paper. */
  function write(ctx, text, x, y, color, textAlign = "center") {
    const look = { textAlign, lineWidth: 4, lineJoin: "round", textBaseline: "middle" };
    Object.assign(ctx, { ...look, strokeStyle: ink.paper, fillStyle: color });
    ctx.strokeText(text, x, y);
    ctx.fillText(text, x, y);
  }
  function name(ctx, { i, left }, color) {
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
    if (!ink) {
      ink = cssColors(node, "ink quiet blue red paper red-text");
      const [r, g, b] = getComputedStyle(heading).color.match(/\d+/g).map(Number);
      Object.assign(ink, {
        far: mapInks(node).pixel(1) & 0xffffff,
        near: (b << 16) | (g << 8) | r,
      });
    }
    const ctx = fit(board, W, H);
    if (to) drawCloud(ctx);
    stroke(ctx, ink.quiet, 0.5, [], 0, H / 2, W, H / 2);
    stroke(ctx, ink.quiet, 0.5, [], W / 2, 0, W / 2, H);
    if (!to) return;
    const i = chosen();
    const marks = i === undefined ? [] : marksOf(ctx, i);
    const inWay = (one) => marks.some((mark, k) => meet(one, mark) && (k < 3 || !isKey(one.i))); // on a line: neighbours only
    for (const one of names) if (!inWay(one)) name(ctx, one, isKey(one.i) ? ink.blue : ink.ink);
    if (i === undefined) return;
    const [x, y] = place(i); // its projections: at right angles to the axes, the numbers at their feet
    stroke(ctx, ink.red, 1.5, [5, 4], x, H / 2, x, y, W / 2, y);
    stroke(ctx, ink.red, 3, [], x, H / 2, W / 2, H / 2, W / 2, y);
    name(ctx, boxOf(ctx, i), ink["red-text"]);
    ctx.font = "700 13px system-ui, sans-serif";
    at.forEach((all, k) => {
      const { x, y, width, height } = marks[k + 1];
      write(ctx, fixed(all[i]), x + width / 2, y + height / 2, ink["red-text"]);
    });
  }
  /** Where the chosen word's name, its two numbers and its lines stand. */
  function marksOf(ctx, i) {
    const [[W, H], [x, y], foot] = [size, place(i), { width: 44, height: 18 }];
    const across = { ...foot, x: x - 22, y: H / 2 - 9 + (y < H / 2 ? 12 : -12) };
    const up = { ...foot, x: W / 2 - 22 + (x < W / 2 ? 26 : -26), y: y - 9 };
    const wide = { x: Math.min(x, W / 2), width: Math.abs(x - W / 2), height: 4 };
    const tall = { y: Math.min(y, H / 2), height: Math.abs(y - H / 2), width: 4 };
    const flat = [y, H / 2].map((v) => ({ ...wide, y: v - 2 }));
    return [boxOf(ctx, i), across, up, ...flat, ...[x, W / 2].map((v) => ({ ...tall, x: v - 2 }))];
  }

  // --- time
  const go = throttleToFrame(() => {
    began ||= performance.now();
    const t = calm ? 1 : Math.min(1, (performance.now() - began) / FLIGHT);
    const share = t < 0.5 ? 4 * t ** 3 : 1 - 4 * (1 - t) ** 3;
    if (to) now = t < 1 ? from.map((v, n) => v + share * (to[n] - v)) : to;
    draw();
    if (t < 1) go();
  });
  function tell(text, side = "", meant = []) {
    wrong = side;
    messages.classList.toggle("warning", Boolean(side));
    messages.replaceChildren(text, ...(meant.length ? [" Did you mean ", ...meant] : []));
    soon();
  }
  async function load(late) {
    if (loading) return;
    loading = true;
    tell(loadingText(model));
    try {
      table = wordsOf(await (late ?? weightsOf(model, load)));
      ({ words } = table);
      tell("");
      fromLink();
    } catch ({ message }) {
      loading = false;
      tell(`The words could not be loaded (${message}): click the map to retry.`);
    }
  }

  // --- what is done
  /** A word was typed at one of the sides, or into the field beside the map. */
  function typed(side, text) {
    if (!table) return;
    const word = table.row.has(text) ? text : text.trim().toLowerCase();
    const axes = get("axes").map((old, k) => (SIDES[k] === side ? word : old));
    const meant = (other) =>
      html`<button type="button" class="token" onclick=${() => {
        const { input } = poles[SIDES.indexOf(side)] ?? { input: field };
        input.value = other;
        input.focus();
        typed(side, other);
      }}>${short(other, 30)}</button>`;
    if (!table.row.has(word) && (word || side !== "word")) {
      const unknown = `“${short(word, 30)}” is not among the ${many()} words of this table.`;
      tell(unknown, side, table.suggest(word).map(meant));
    } else show(axes, side === "word" ? word : get("word"));
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
    placeholder="a word" autocomplete="off" oninput=${() => typed("word", field.value)} onblur=${soon} />`;
  const [messages, says, heading, list, caption] = html`
    <p class="messages" role="status" /><p class="says" role="status" />
    <p class="quiet" /><div class="near" /><p class="caption quiet"><span /><span class="more" /></p>`;
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
  const neighbour = ([word, cosine]) => html`<button type="button"
    aria-label="walk to ${visible(word)}" onclick=${() => show(get("axes"), word)}>
    <span class="name">${short(word, 30)}</span><span class="number">${fixed(cosine)}</span>
  </button>`;
  function paint() {
    const [axes, word] = [get("axes"), get("word")];
    const [left, right, down, up] = axes.map((one) => short(one));
    poles.forEach(({ input }, k) => {
      if (wrong !== SIDES[k]) input.value = axes[k];
      input.size = Math.max(2, Math.min(12, input.value.length));
    });
    if (wrong !== "word" && !node.querySelector(".asked :focus")) field.value = hover || word;
    if (table) {
      const changed = [axes.join("\n"), word];
      if (changed[0] !== shown[0]) aim();
      if (changed[1] !== shown[1])
        list.replaceChildren(...(near = word ? table.near(word) : []).map(neighbour));
      if (String(changed) !== String(shown)) layNames();
      shown = changed;
      says.replaceChildren(...(chosen() === undefined ? [] : [line(0), line(1)]));
      setText(heading, word && `Nearest to ${short(word)} by cosine, in all ${table.d} numbers:`);
      const text = `Each dot is one of ${many()} words, as a unit vector. Blue: the 1% farthest out.`;
      const more = ` Across is its dot product with the unit vector of ${right} − ${left}, its shadow on that direction;
        up, with that of ${up} − ${down} (${angle}° from the first, drawn at 90°).`;
      [text, more].forEach((part, k) => setText(caption.children[k], part));
      for (const button of presets) {
        button.setAttribute("aria-pressed", button.dataset.axes === String(axes));
        button.hidden = !button.dataset.axes.split(",").every(table.row.has, table.row);
      }
    }
    go();
  }

  // --- pointer and keys
  /** The word at the pointer: a name, or else the nearest dot. */
  function under({ offsetX: x, offsetY: y }) {
    const on = names.find((one) => meet(one, { x, y, width: 0, height: 0 }));
    const away = (_, i) => -Math.hypot(place(i)[0] - x, place(i)[1] - y);
    return words[on?.i ?? largest(Float32Array.from(words, away), 1)[0]];
  }
  function look(event) {
    hover = table && event.type === "pointermove" ? under(event) : "";
    soon();
  }
  board.addEventListener("pointermove", look);
  board.addEventListener("pointerleave", look);
  board.addEventListener("click", (event) => (table ? show(get("axes"), under(event)) : load()));
  map.addEventListener("keydown", ({ key, target }) => {
    const step = STEPS[key];
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
    if (all.at(-1).isIntersecting) load();
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
