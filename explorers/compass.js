// The words of a table fly to their dot products with two directions. The table comes once, as the
// weights of a model do.
const FLIGHT = 700; // milliseconds
const NAMED = 5000; // only the most frequent words are named unasked, as in compass.py
const NEIGHBOURS = 10; // as in compass.py
const CORE = 1.6; // standard deviations: nearer to the middle no word is named unasked
const REACH = 14; // pixels from the pointer to a word
const SIDES = ["left", "right", "down", "up"];
const PRESETS = {
  "love and machines": "machine animal war love dog",
  "doctor and nurse": "he she poor rich nurse",
  "kitchen to stadium": "politics football war kitchen coffee",
  "city and nature": "city nature war music piano",
  "a false friend: cold – hot": "poor rich cold hot desert",
};

/** Words with their unit vectors, and what is asked of them. */
class Words {
  size = 0;
  d = 0;
  constructor(bytes) {
    const { about, tensors } = unpack(bytes);
    this.all = about.words;
    const [size, d] = about.tensors.vectors;
    Object.assign(this, { size, d });
    this.vectors = tensors((n) => new Float32Array(n)).vectors;
    this.row = new Map(this.all.map((word, i) => [word, i]));
    this.pairs = null; // of letters → the words that hold them
  }
  vector(word) {
    const at = this.row.get(word) * this.d;
    return this.vectors.subarray(at, at + this.d);
  }
  /** The word that was meant: as typed, or else without case and blanks; undefined for an unknown one. */
  known(typed) {
    return [typed, typed.trim().toLowerCase()].find((word) => this.row.has(word));
  }
  /** The dot products of all words with a vector. */
  products(other) {
    const { vectors, size, d } = this;
    const out = new Float32Array(size);
    for (let i = 0, at = 0; i < size; i++) {
      let sum = 0;
      for (let k = 0; k < d; k++) sum += vectors[at++] * other[k];
      out[i] = sum;
    }
    return out;
  }
  /** The unit vector of the difference b − a, with how long it was. */
  direction(a, b) {
    const tail = this.vector(a);
    const step = this.vector(b).map((v, k) => v - tail[k]);
    const length = Math.hypot(...step);
    return { length, unit: step.map((v) => v / length) };
  }
  near(word) {
    const cosines = this.products(this.vector(word));
    cosines[this.row.get(word)] = -Infinity;
    const best = largest(cosines, Math.min(NEIGHBOURS, this.size - 1));
    return best.map((i) => [this.all[i], cosines[i]]);
  }
  /** Known words that share the most pairs of letters with one (Dice's coefficient). */
  suggest(word) {
    const pairs = (one) => {
      const signs = ["^", ...one, "$"];
      return new Set(signs.slice(1).map((sign, i) => signs[i] + sign));
    };
    this.pairs ??= this.all.map(pairs);
    const wanted = pairs(word);
    const alike = this.pairs.map((some) => {
      let shared = 0;
      for (const pair of some) if (wanted.has(pair)) shared += 1;
      return (2 * shared) / (wanted.size + some.size);
    });
    return largest(alike, 5).filter((i) => alike[i] > 0.3);
  }
}

function build({ model, node, get, set, soon }) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let words = null;
  let loading = null;
  let said = ""; // about the loading, or what was copied
  let trouble = null; // { text, side, suggestions } about what was typed
  let at = []; // the dot products of all words: [across, up]
  let angle = 0; // between the directions, in degrees
  let half = [1, 1]; // the largest dot product of each, which reaches the edge
  let from = null; // where words are, as shares of `half`: x, y, x, y …
  let now = null;
  let to = null;
  let began = 0; // when they set out; 0: at the next frame
  let flies = false;
  let asked = false; // is a frame asked for?
  let far = new Uint8Array(0); // is a word farther out than 99% of all?
  let ranked = []; // words to be named, the first ones first
  let names = []; // what is named: { i, x, y, width, height, left }
  let near = []; // neighbours of the word that is looked at: [word, cosine]
  let shownFor = ["", ""]; // the axes and the word of all this
  let hover = "";
  let image = null; // the pixels of the cloud
  let ink = null;

  const looked = () => hover || get("word");
  const short = (word, longest = 16) => truncate(visible(word), longest);

  // --- where words are
  function aim() {
    const [left, right, down, up] = get("axes");
    const [x, y] = [words.direction(left, right), words.direction(down, up)];
    at = [words.products(x.unit), words.products(y.unit)];
    const cosine = x.unit.reduce((sum, v, k) => sum + v * y.unit[k], 0);
    angle = Math.round((Math.acos(Math.max(-1, Math.min(1, cosine))) * 180) / Math.PI);
    half = at.map((values) => 1.04 * values.reduce((most, v) => Math.max(most, Math.abs(v)), 1e-9));
    to = Float32Array.from({ length: 2 * words.size }, (_, n) => at[n % 2][n >> 1] / half[n % 2]);
    now ??= new Float32Array(to.length); // at first all stand at 0
    from = now.slice();
    const spread = at.map((v) => Math.sqrt(v.reduce((sum, one) => sum + one * one, 0) / v.length));
    const out = Float32Array.from(at[0], (v, i) => Math.hypot(v / spread[0], at[1][i] / spread[1]));
    const limit = out.slice().sort()[Math.floor(0.99 * out.length)];
    far = Uint8Array.from(out, (v) => Number(v > limit));
    const score = (i) => out[i] - 0.2 * Math.log(i + 30);
    ranked = [...out.keys()].filter(
      (i) => i < NAMED && out[i] > CORE && /^\p{L}{3,}$/u.test(words.all[i]),
    );
    ranked.sort((a, b) => score(b) - score(a));
    began = 0;
    flies = true;
  }
  /** Brings everything to the present traits. */
  function update() {
    const [axes, word] = [JSON.stringify(get("axes")), get("word")];
    if (axes !== shownFor[0]) aim();
    if (word !== shownFor[1]) near = word ? words.near(word) : [];
    if (axes !== shownFor[0] || word !== shownFor[1]) layNames();
    shownFor = [axes, word];
  }

  // --- the map
  const board = canvas(10, 10, "");
  const poles = SIDES.map((side, k) => {
    const input = html`<input type="text" aria-label="the word ${side}" maxlength="60" spellcheck="false"
      size="8" autocomplete="off" autocapitalize="off" onchange=${() => typed(side, input.value)} />`;
    return { input, label: html`<label class="pole ${side}">${"←→↓↑"[k]}${input}</label>` };
  });
  const map = html`<div class="map" tabindex="0" role="group" data-entry=""
    aria-label="the map: arrow keys move from word to word">
    ${board}${poles.map(({ label }) => label)}
  </div>`;
  const room = () => [map.clientWidth, map.clientHeight];
  /** The place of word i in pixels. */
  function place(i, of = now) {
    const [W, H] = room();
    return [(0.5 + of[2 * i] / 2) * W, (0.5 - of[2 * i + 1] / 2) * H];
  }
  const isPole = (i) => get("axes").includes(words.all[i]);
  const sizeOf = (i) => (isPole(i) || i < 400 ? 17 : i < 1500 ? 15 : 13);
  const font = (i, weight = isPole(i) ? 700 : 400) =>
    `${weight} ${sizeOf(i)}px "Source Serif 4", Georgia, "Times New Roman", serif`;

  /** Chooses which words are named where they will be: the asked ones first, then the outer and frequent ones. */
  function layNames() {
    const [W, H] = room();
    if (!words || !W) return;
    const ctx = board.getContext("2d");
    const taken = poles.map(({ label: l }) => {
      const [w, h] = [l.offsetWidth, l.offsetHeight];
      const middle = /down|up/.test(l.className); // moved by half its width
      return { x: l.offsetLeft - (middle ? w / 2 : 0), y: l.offsetTop, width: w, height: h };
    });
    const i = words.row.get(get("word"));
    if (i !== undefined) {
      const [x, y] = place(i, to); // its numbers stand at the feet of its shadows
      taken.push({ x: x - 18, y: y < H / 2 ? H / 2 : H / 2 - 22, width: 36, height: 22 });
      taken.push({ x: x < W / 2 ? W / 2 : W / 2 - 44, y: y - 9, width: 44, height: 18 });
    }
    const first = [get("word"), ...get("axes"), ...near.map(([word]) => word)].filter(Boolean);
    const most = (W * H) / 4500;
    names = [];
    for (const i of new Set([...first.map((word) => words.row.get(word)), ...ranked])) {
      ctx.font = font(i, 700);
      const [x, y] = place(i, to);
      const [width, height] = [ctx.measureText(short(words.all[i])).width + 8, sizeOf(i) + 3];
      const left = x + width > W;
      const box = { i, left, x: left ? x - width : x, y: y - height / 2, width, height };
      const hits = (o) =>
        box.x < o.x + o.width &&
        o.x < box.x + box.width &&
        box.y < o.y + o.height &&
        o.y < box.y + box.height;
      if (box.x < 0 || box.y < 0 || box.y + height > H || taken.some(hits)) continue;
      taken.push(box);
      if (names.push(box) > most) break;
    }
  }
  function drawCloud(ctx) {
    const { width, height } = board;
    if (image?.width !== width || image.height !== height)
      image = ctx.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(0);
    const scale = window.devicePixelRatio || 1;
    const dot = (i, color, alpha, size) => {
      const x = Math.round((0.5 + now[2 * i] / 2) * width - size / 2);
      const y = Math.round((0.5 - now[2 * i + 1] / 2) * height - size / 2);
      if (x < 0 || y < 0 || x + size > width || y + size > height) return;
      for (let v = y; v < y + size; v++)
        for (let p = v * width + x, end = p + size; p < end; p++)
          pixels[p] = color | (Math.min(255, (pixels[p] >>> 24) + alpha) << 24);
    };
    const [W, H] = room();
    const alpha = Math.max(14, Math.min(40, (W * H) / 8000)); // on a phone they lie closer together
    const [small, large] = [Math.round(1.5 * scale), Math.round(3 * scale)];
    for (let i = words.size; i--;) if (!far[i]) dot(i, ink.grey, alpha, i < 500 ? large : small);
    for (let i = words.size; i--;) if (far[i]) dot(i, ink.far, 150, i < NAMED ? large : small);
    ctx.putImageData(image, 0, 0);
  }
  function draw() {
    const [W, H] = room();
    if (!W) return;
    ink ??= readInks();
    const ctx = fit(board, W, H);
    if (words) drawCloud(ctx);
    ctx.lineWidth = 1;
    ctx.strokeStyle = ink.quiet;
    ctx.globalAlpha = 0.6;
    ctx.beginPath();
    for (const end of [
      [W, 0],
      [0, H],
    ]) {
      ctx.moveTo((W - end[0]) / 2, (H - end[1]) / 2);
      ctx.lineTo((W + end[0]) / 2, (H + end[1]) / 2);
    }
    ctx.stroke();
    ctx.globalAlpha = 1;
    if (!words) return;
    ctx.textBaseline = "middle";
    const kin = new Set(near.map(([word]) => words.row.get(word)));
    const chosen = words.row.get(looked());
    for (const { i, left } of names) {
      if (i === chosen) continue;
      const color = isPole(i) || kin.has(i) ? ink.blue : ink.ink;
      write(ctx, i, left, color, isPole(i) || kin.has(i) ? 700 : 400);
    }
    if (chosen !== undefined) drawShadows(ctx, chosen);
  }
  /** The name of a word beside its place, with a rim of paper. */
  function write(ctx, i, left, color, weight) {
    const [x, y] = place(i);
    ctx.font = font(i, weight);
    ctx.textAlign = left ? "right" : "left";
    rimmed(ctx, short(words.all[i]), x + (left ? -5 : 5), y, color);
    ctx.beginPath();
    ctx.arc(x, y, color === ink.ink ? 1.5 : 3, 0, 7);
    ctx.fill();
  }
  function rimmed(ctx, text, x, y, color) {
    Object.assign(ctx, {
      lineWidth: 4,
      lineJoin: "round",
      strokeStyle: ink.paper,
      fillStyle: color,
    });
    ctx.strokeText(text, x, y);
    ctx.fillText(text, x, y);
  }
  /** A word with its projections: lines at right angles to both axes, and the numbers at their feet. */
  function drawShadows(ctx, i) {
    const [W, H] = room();
    const [x, y] = place(i);
    ctx.strokeStyle = ink.red;
    for (const [dash, width, to] of [
      [[5, 4], 1.5, [x, y, x, H / 2]],
      [[5, 4], 1.5, [x, y, W / 2, y]],
      [[], 3, [W / 2, H / 2, x, H / 2]],
      [[], 3, [W / 2, H / 2, W / 2, y]],
    ]) {
      ctx.setLineDash(dash);
      ctx.lineWidth = width;
      ctx.beginPath();
      ctx.moveTo(to[0], to[1]);
      ctx.lineTo(to[2], to[3]);
      ctx.stroke();
    }
    ctx.setLineDash([]);
    ctx.font = "700 13px system-ui, sans-serif";
    ctx.textAlign = "center";
    const below = y < H / 2 ? 12 : -12;
    rimmed(ctx, fixed(at[0][i]), x, H / 2 + below, ink.text);
    ctx.textAlign = x < W / 2 ? "left" : "right";
    rimmed(ctx, fixed(at[1][i]), W / 2 + (x < W / 2 ? 7 : -7), y, ink.text);
    ctx.font = font(i, 700);
    const wide = ctx.measureText(short(words.all[i])).width + 8;
    write(ctx, i, x + wide > W || (x < W / 2 && x > wide), ink.text, 700);
  }
  function readInks() {
    const found = cssColors(node, "ink quiet blue red paper red-text");
    const probe = h("canvas", { width: 1, height: 1 }).getContext("2d", {
      willReadFrequently: true,
    });
    const bits = (color) => {
      probe.fillStyle = color;
      probe.fillRect(0, 0, 1, 1);
      const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
      return (b << 16) | (g << 8) | r;
    };
    return { ...found, text: found["red-text"], grey: bits(found.quiet), far: bits(found.blue) };
  }

  // --- time
  function frame(time) {
    asked = false;
    began ||= time;
    const t = calm ? 1 : Math.min(1, (time - began) / FLIGHT);
    const share = t < 0.5 ? 4 * t ** 3 : 1 - 4 * (1 - t) ** 3;
    for (let n = 0; n < now.length; n++) now[n] = from[n] + share * (to[n] - from[n]);
    flies = t < 1;
    draw();
    if (flies) go();
  }
  function go() {
    if (!asked) requestAnimationFrame(frame);
    asked = true;
  }
  function load(late) {
    said = loadingText(model);
    loading ??= Promise.resolve(late ?? weightsOf(model, load))
      .then((bytes) => {
        said = "";
        words = new Words(bytes);
        fromLink();
      })
      .catch((error) => {
        loading = null;
        said = `The words could not be loaded (${error.message}): click the map to retry.`;
      })
      .finally(soon);
    soon();
  }

  // --- what is done
  /** A word was typed at one of the sides, or into the field beside the map. */
  function typed(side, text) {
    if (!words) return;
    const word = words.known(text);
    const axes = get("axes").with(SIDES.indexOf(side), word);
    trouble = null;
    if (word === undefined && (text.trim() || side !== "word")) {
      const meant = text.trim().toLowerCase().slice(0, 60);
      const size = words.size.toLocaleString("en");
      trouble = {
        side,
        text: `“${short(meant, 30)}” is not among the ${size} words of this table.`,
        suggestions: words.suggest(meant).map((i) => words.all[i]),
      };
    } else if (side === "word") set({ word: word ?? "" });
    else if (words.direction(...axes.slice(side === "left" || side === "right" ? 0 : 2)).length)
      set({ axes });
    else trouble = { side, text: "A direction needs two different words.", suggestions: [] };
    soon();
  }
  function walk(word) {
    trouble = null;
    hover = "";
    set({ word });
    soon();
  }
  function show(left, right, down, up, word) {
    trouble = null;
    set({ axes: [left, right, down, up], word });
    soon();
  }
  // In the book the address can hold the axes and the word.
  function link() {
    const [left, right, down, up] = get("axes");
    const state = new URLSearchParams({ left, right, down, up, word: get("word") });
    history.replaceState(null, "", `#${state}`);
    navigator.clipboard?.writeText(location.href).catch(() => {}); // not every page may
    said = "The address of this page is a link to this compass now.";
    soon();
  }
  function fromLink() {
    const state = new URLSearchParams(location.hash.slice(1));
    const axes = SIDES.map((side) => state.get(side) ?? "");
    if (!model.weights || !words || !axes.every((word) => words.row.has(word))) return;
    if (axes[0] === axes[1] || axes[2] === axes[3]) return;
    show(...axes, words.known(state.get("word") ?? "") ?? "");
    node.scrollIntoView({ block: "center" });
  }

  // --- beside the map
  const field = html`<input type="text" aria-label="word" maxlength="60" size="10" spellcheck="false"
    placeholder="a word" autocomplete="off" autocapitalize="off" oninput=${() => typed("word", field.value)} />`;
  const [messages, says] =
    html`<div class="messages" role="status" /><p class="says" role="status" />`;
  const [heading, list] = html`<p class="heading quiet" /><div class="near" />`;
  const [caption, note] = html`<span /><span role="status" />`;
  const presets = Object.entries(PRESETS).map(([name, some]) => {
    const five = some.split(" ");
    const go = () => show(...five);
    return { five, button: html`<button type="button" onclick=${go}>${name}</button>` };
  });
  const page = html`
    <div class="desk">${map}<div class="side">
      <label class="asked">${field}</label>${messages}${says}${heading}${list}
    </div></div>
    <div class="row">
      ${presets.map(({ button }) => button)}
      ${model.weights && html`<button type="button" onclick=${link}>Copy a link</button>`}
    </div>
    <p class="quiet">${caption} ${note}</p>`;

  const line = (axis, i) => {
    const v = at[axis][i];
    const [low, high] = get("axes").slice(2 * axis);
    const beyond = at[axis].reduce((n, other) => n + Number(v < 0 ? other > v : other < v), 0);
    const share = Math.floor((100 * beyond) / words.size);
    const pole = short(v < 0 ? low : high);
    return html`<span><b>${fixed(v)}</b>${` ${axis ? "up" : "across"}: nearer to ${pole} than ${share}% of all words`}</span>`;
  };
  function message({ side, text, suggestions }) {
    const [left, ...others] = suggestions;
    const take = (word) => {
      typed(side, word);
      (side === "word" ? field : poles[SIDES.indexOf(side)].input).focus();
    };
    const buttons = [left, ...others]
      .filter(Boolean)
      .map(
        (word) =>
          html`<button type="button" class="token" onclick=${() => take(word)}>${short(word, 30)}</button>`,
      );
    return html`<div class="row"><span class="warning">${text}</span>
      ${buttons.length ? "Did you mean" : ""}${buttons}</div>`;
  }
  function paintSide() {
    const i = words.row.get(looked());
    if (document.activeElement !== field && node.getRootNode().activeElement !== field)
      field.value = looked();
    says.replaceChildren(...(i === undefined ? [] : [line(0, i), line(1, i)]));
    setText(
      heading,
      near.length ? `Nearest to ${short(get("word"))} by cosine, in all ${words.d} numbers:` : "",
    );
    if (list.dataset.of !== get("word"))
      list.replaceChildren(
        ...near.map(([word, cosine]) => {
          const name = `walk to ${inFull(visible(word))}`;
          return html`<button type="button" title=${name} aria-label=${name} onclick=${() => walk(word)}>
            <span class="name">${short(word, 30)}</span><span class="number">${fixed(cosine)}</span>
          </button>`;
        }),
      );
    list.dataset.of = get("word");
  }
  function paint() {
    const axes = get("axes");
    const [left, right, down, up] = axes.map((word) => short(word));
    poles.forEach(({ input }, k) => {
      if (trouble?.side !== SIDES[k]) input.value = axes[k];
      input.size = Math.max(2, Math.min(12, input.value.length));
    });
    messages.replaceChildren(...(trouble ? [message(trouble)] : []));
    setText(note, said);
    if (words) {
      update();
      paintSide();
      setText(
        caption,
        `Each dot is one of ${words.size.toLocaleString("en")} words, as a unit vector: across is its dot product with the unit ` +
          `vector of ${right} − ${left}, its shadow on that direction; up, with that of ${up} − ${down} ` +
          `(${angle}° from the first, drawn at 90°). Blue: the 1% farthest out.`,
      );
      board.setAttribute("aria-label", `${caption.textContent} ${says.textContent}`);
      for (const { five, button } of presets) {
        button.disabled = !five.every((word) => words.row.has(word));
        button.setAttribute(
          "aria-pressed",
          JSON.stringify(five.slice(0, 4)) === JSON.stringify(axes),
        );
      }
    }
    if (flies) go();
    else draw();
  }

  // --- pointer and keys
  /** The word at the pointer: of those near it, the most frequent. */
  function under({ clientX, clientY }) {
    const box = map.getBoundingClientRect();
    const [x, y] = [clientX - box.left, clientY - box.top];
    let best = -1;
    let least = REACH;
    const isNamed = new Set(names.map(({ i }) => i));
    for (let i = 0; i < words.size; i++) {
      const [u, v] = place(i);
      const away = Math.hypot(u - x, v - y) + (isNamed.has(i) ? -6 : i / 4000);
      if (away < least) [best, least] = [i, away];
    }
    const on = names.find((n) => x > n.x && x < n.x + n.width && y > n.y && y < n.y + n.height);
    return on && least > 0 ? words.all[on.i] : (words.all[best] ?? "");
  }
  const look = (event) => {
    const word = words && !flies && event.target === board ? under(event) : "";
    if (word === hover) return;
    hover = word;
    soon();
  };
  board.addEventListener("pointermove", look);
  board.addEventListener("pointerleave", look);
  board.addEventListener("click", (event) => {
    if (!words) load();
    else if (!flies && under(event)) walk(under(event));
  });
  map.addEventListener("keydown", ({ key, target }) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[
      key
    ];
    if (!step || !words || target !== map) return;
    const here = place(words.row.get(looked()) ?? 0, to);
    let least = Infinity;
    let next = "";
    for (const { i } of names) {
      const [dx, dy] = place(i, to).map((v, k) => v - here[k]);
      const along = dx * step[0] + dy * step[1];
      const beside = Math.abs(dx * step[1]) + Math.abs(dy * step[0]);
      if (along > 1 && along + 2 * beside < least)
        [least, next] = [along + 2 * beside, words.all[i]];
    }
    if (next) walk(next);
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
  const theme = () => (ink = null);
  const stop = () => {
    seen.disconnect();
    sized.disconnect();
    removeEventListener("hashchange", fromLink);
  };
  return { page, paint, theme, stop };
}

export default explorer({
  name: "compass",
  title: "Compass of words: two words for each axis, and every word at its dot products",
  traits: ["axes", "word"],
  build,
});
