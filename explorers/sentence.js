// One text through the whole model. gpt.js computes here; its weights come when they are first needed,
// from the kernel or, in the book, from a file. Only then are the stages after the tokens open.
const MOST = 32, EACH = 16, EDGE = 14; // tokens that are read; the size of a small map, and room for numbers beside all of them
const ROOM = { small: { keys: 6, next: 5 }, large: { keys: 9, next: 10 } }; // rows of keys, and of next tokens

const STAGES = [
  { name: "tokens", title: "tokens", links: ["12_byte_pair_encoding"], say: ({ T, V }) =>
    `The text is cut into ${T} ${T === 1 ? "token" : "tokens"}. Each has an id below ${V.toLocaleString("en")}; from here on, the model sees only numbers.` },
  { name: "vectors", title: "vectors", links: ["01_words_as_vectors"], say: ({ C }) =>
    `Each id selects a row of the embedding table: ${C} numbers, learned in training. The same token starts as the same row wherever it occurs.` },
  { name: "scores", title: "scores", links: ["04_queries_keys_values", "05_scaling", "07_position"], say: ({ hs }) =>
    `In every head, each token has a query q and a key k (${hs} numbers each), rotated by their positions. A score is q · k ÷ ${Math.sqrt(hs).toFixed(0)}.` },
  { name: "weights", title: "weights", links: ["03_causal_averaging", "04_queries_keys_values"], say: () =>
    "The mask hides later tokens. Softmax turns the remaining scores into positive weights that add up to 1." },
  { name: "values", title: "values", links: ["04_queries_keys_values", "06_multi_head"], say: ({ hs }) =>
    `Each token offers a value v (${hs} numbers). The head’s output is their weighted sum.` },
  { name: "sum", title: "sum", links: ["08_transformer_block", "09_gpt"], say: ({ L, H }) =>
    `In each of the ${L} layers, ${H} attention heads add to the token’s vector, then a feed-forward network that sees only this token.` },
  { name: "next", title: "next", links: ["02_language_modelling", "11_generation"], say: ({ V }) =>
    `The last vector · one row for each of ${V.toLocaleString("en")} tokens gives the logits. Softmax turns logits ÷ temperature into probabilities.` },
];

const share = (p) => (p === 0 ? "0%" : p < 0.0005 ? "< 0.1%" : `${(100 * p).toFixed(1)}%`);
const numbers = (v, n) => `${Array.from(v.slice(0, n), (x) => fixed(x)).join("  ")}${v.length > n ? "  …" : ""}`;

/** softmax of the logits ÷ the temperature. */
function softmax(logits, temperature) {
  let most = -Infinity, sum = 0;
  for (const v of logits) if (v > most) most = v;
  const p = Float64Array.from(logits, (v) => Math.exp((v - most) / temperature));
  for (const v of p) sum += v;
  return p.map((v) => v / sum);
}

/** Keys in a row or a table of buttons, of which one is chosen and only that one is a stop of Tab.
    columns: of the table; choose(n): the n-th is chosen. */
function walk(box, columns, choose) {
  box.addEventListener("keydown", (event) => {
    const all = [...box.querySelectorAll("[data-n]")], at = all.indexOf(event.target), wide = columns();
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - wide, ArrowDown: at + wide, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    if (!all[to]) return;
    all[to].focus();
    choose(Number(all[to].dataset.n));
  });
  box.addEventListener("click", ({ target }) => { const one = target.closest("[data-n]"); if (one) choose(Number(one.dataset.n)); });
}
function mark(box, chosen, attribute) {
  for (const one of box.querySelectorAll("[data-n]")) {
    const on = String(Number(one.dataset.n) === chosen);
    if (one.getAttribute(attribute) === on) continue; // what is written is laid out anew, equal or not
    one.setAttribute(attribute, on);
    one.tabIndex = on === "true" ? 0 : -1;
  }
}

function render({ model, el }) {
  const node = root(el, "sentence", "One text through the whole model");
  const get = (name) => model.get(name), [L, H, C, V] = get("shape"), hs = C / H;
  const raw = (view) => new Uint8Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
  const bpe = byteLevel(raw(get("alphabet")), new Int32Array(raw(get("merges")).buffer));
  const names = new Map(), inBook = Boolean(model.weights);
  function name(id) {
    if (!names.has(id)) names.set(id, bpe.pieces[id] ? readable(bpe.pieces[id]) : "‹end›");
    return names.get(id);
  }
  const READ = ["text", "off", "masked"], SHOW = ["stage", "layer", "head", "place", "temperature"];
  const set = unhurried(model, [...READ, ...SHOW], 120); // when the keys have come to rest
  let mine = false;
  function change(changes) {
    mine = true;
    set(changes);
    mine = false;
    if (READ.some((trait) => trait in changes)) compute();
    else paint();
  }

  // --- what is computed ---------------------------------------------------------------------------
  let gpt, loading, trouble = "", ids = [], p = [], logits = [], before = null, anchor = get("text"), against = -1;
  const fresh = { answer: true, heads: true, shown: "" }; // what has to be drawn anew
  const place = () => { const at = get("place"), T = ids.length; return at < 0 || at >= T ? T - 1 : at; };
  const switches = () => ({ masked: get("masked"), off: new Set(get("off")) });
  const changed = () => !get("masked") || get("off").length > 0;
  const cut = (text) => bpe.cut(text, bpe.count).slice(-MOST);

  function load(late) {
    loading ??= (async () => {
      try {
        paint();
        const bytes = late ?? await (inBook ? model.weights(get("file")) : fromKernel());
        await new Promise((done) => setTimeout(done)); // what is said is seen first
        gpt = gptOf(bytes, MOST);
        trouble = "";
      } catch (error) {
        trouble = `The weights could not be loaded (${error.message}). Click any stage to retry.`;
        loading = null;
      }
      compute();
    })();
    return loading;
  }
  function fromKernel() {
    return new Promise((done, fail) => {
      const slow = setTimeout(() => fail(new Error("the kernel does not answer")), 20000);
      function take(content, buffers) {
        if (content.sent !== "weights") return;
        clearTimeout(slow);
        model.off("msg:custom", take);
        const bytes = raw(buffers[0]);
        done(bytes);
        load(bytes); // it was busy, and has been given up
      }
      model.on("msg:custom", take);
      model.send({ wanted: "weights" });
    });
  }

  /** The model reads the text as everything is set; and for comparison as it was trained, or as it was. */
  function compute() {
    ids = cut(get("text"));
    if (ids.length && gpt) {
      const old = changed() ? ids : cut(anchor), other = old.length > 0 && (changed() || get("text") !== anchor);
      if (!other) before = null;
      else if (before?.ids !== old.join()) {
        gpt.read(old);
        before = { ids: old.join(), logits: gpt.logits(old.length - 1) };
      }
      gpt.read(ids, switches());
      logits = gpt.logits(ids.length - 1);
    } else if (ids.length && get("first").text === get("text") && !changed()) {
      logits = new Float32Array(raw(get("first").logits).buffer);
    } else logits = [];
    Object.assign(fresh, { answer: true, heads: true });
    paint();
  }

  // --- what stands there always -------------------------------------------------------------------
  const field = h("input", { type: "text", "aria-label": "text", maxlength: 240, spellcheck: "false", autocomplete: "off", autocapitalize: "off", "data-entry": "" });
  const chips = get("examples").map((text) => h("button", { type: "button", title: text, onclick: () => begin(text) }, short(text, 15)));
  const strip = h("div", { class: "strip", role: "listbox", "aria-label": "tokens: choose the one to follow", "aria-orientation": "horizontal" });
  const road = h("div", { class: "road", role: "tablist", "aria-label": "stages" });
  STAGES.forEach((stage, n) => road.append(h("button", { type: "button", role: "tab", "data-n": n },
    h("b", {}, String(n + 1)), h("span", {}, stage.title), h("small"))));
  const panel = h("div", { class: "panel", role: "tabpanel" }), saying = h("p", { class: "say" }), warning = h("p", { class: "warning", role: "status" });
  const link = h("span", { class: "links quiet" }), maps = h("canvas", { "aria-hidden": "true" }), grid = h("div", { class: "heads", role: "listbox", "aria-label": "layer and head", title: "Click or use the arrow keys to choose a head; press X to switch it off or on" });
  for (let l = 0; l < L; l++) for (let n = 0; n < H; n++) grid.append(h("button", { type: "button", role: "option", "data-n": l * H + n, "aria-label": `layer ${l}, head ${n}` }));
  grid.style.setProperty("--heads", H);
  const which = h("div", { class: "which" }), hearing = h("input", { type: "checkbox" }), masking = h("input", { type: "checkbox" });
  const machine = h("div", { class: "machine" }, which, h("div", { class: "maps" }, maps, grid), h("div", { class: "axes quiet" }, "head →, layer ↓ (from 0)"),
    h("label", {}, hearing, "this head is on"), h("label", {}, masking, "mask"));
  const drawing = h("div", { class: "drawing" });
  panel.append(h("div", { class: "told" }, saying, link), warning, h("div", { class: "work" }, machine, drawing));

  const heading = h("div", { class: "heading" }), rows = Array.from({ length: ROOM.large.next + 1 }, () => {
    const line = { name: h("th", { scope: "row" }), bar: h("i", { class: "bar" }), tick: h("i", { class: "tick" }), share: h("td", { class: "number" }) };
    line.row = h("tr", {}, line.name, h("td", { class: "long", "aria-hidden": "true" }, line.bar, line.tick), line.share);
    return line;
  });
  const legend = h("div", { class: "legend quiet" });
  const warmth = slider(model, "temperature", { min: 0.1, max: 3, step: 0.1, show: (t) => t.toFixed(1) });
  const undoing = h("button", { type: "button", title: "all heads on, mask on, temperature 1", onclick: () => change({ off: [], masked: true, temperature: 1 }) }, "Reset");
  const writing = h("button", { type: "button", title: "Sample the next token from these probabilities and append it", onclick: draw }, "Sample next token");
  const answer = h("div", { class: "answer" }, heading, h("table", {}, h("tbody", {}, ...rows.map((line) => line.row))),
    legend, warmth, h("div", { class: "row" }, writing, undoing));
  const spoken = h("p", { class: "unseen", role: "status", "aria-live": "polite" });
  node.append(h("div", { class: "given" }, h("label", {}, "text", field), h("span", { class: "chips" }, ...chips)), strip, road,
    h("div", { class: "both" }, panel, answer), spoken);

  // --- moves --------------------------------------------------------------------------------------
  function begin(text) {
    anchor = field.value = text;
    against = -1;
    load();
    change({ text, place: -1 });
  }
  function draw() {
    load().then(() => {
      if (!gpt || !p.length || get("text").length > 225) return;
      let dart = Math.random(), id = 0;
      for (; id < p.length - 1 && (dart -= p[id]) > 0; id++);
      const text = get("text") + (bpe.pieces[id] ? new TextDecoder().decode(Uint8Array.from(bpe.pieces[id])) : "");
      begin(text);
    });
  }
  field.addEventListener("focus", () => { if (!changed()) anchor = get("text"); });
  field.addEventListener("input", () => { against = -1; load(); change({ text: field.value, place: -1 }); });
  walk(strip, () => 1, (n) => { against = -1; change({ place: n === ids.length - 1 ? -1 : n }); });
  walk(road, () => 1, (n) => { if (n > 0) load(); change({ stage: STAGES[n].name }); });
  grid.addEventListener("keydown", ({ key }) => { if (key.toLowerCase() === "x") toggle(); });
  walk(grid, () => H, (n) => { against = -1; change({ layer: Math.floor(n / H), head: n % H }); });
  const chosen = () => get("layer") * H + get("head");
  function toggle() {
    const off = new Set(get("off")), n = chosen();
    if (!off.delete(n)) off.add(n);
    load();
    change({ off: [...off].sort((a, b) => a - b) });
  }
  hearing.addEventListener("change", toggle);
  masking.addEventListener("change", () => { load(); change({ masked: masking.checked }); });
  walk(drawing, () => 1, (n) => { against = n; paint(); });

  // --- drawing ------------------------------------------------------------------------------------
  let inks = {};
  function readInks() {
    inks = Object.fromEntries(["ink", "quiet", "line", "blue", "orange", "paper", "panel", "focus"].map((ink) => [ink, colour(node, ink)]));
    const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    for (const ink of ["blue", "orange", "panel"]) { // as bytes, for images
      probe.fillStyle = inks[ink];
      probe.fillRect(0, 0, 1, 1);
      inks[`${ink}Bytes`] = [...probe.getImageData(0, 0, 1, 1).data];
    }
  }
  /** Numbers as coloured cells: v(y, x) from −1 (orange) over 0 (paper) to 1 (blue); NaN is struck out. */
  function tile(rows, columns, v) {
    const made = document.createElement("canvas");
    made.width = columns; made.height = rows;
    const pen = made.getContext("2d"), image = pen.createImageData(columns, rows);
    for (let y = 0, at = 0; y < rows; y++) {
      for (let x = 0; x < columns; x++, at += 4) {
        const value = v(y, x), [r, g, b] = Number.isNaN(value) ? inks.panelBytes : value < 0 ? inks.orangeBytes : inks.blueBytes;
        image.data[at] = r; image.data[at + 1] = g; image.data[at + 2] = b;
        image.data[at + 3] = Number.isNaN(value) ? 255 : 255 * Math.min(1, Math.abs(value));
      }
    }
    pen.putImageData(image, 0, 0);
    return made;
  }
  const peak = (v, from = 0, to = v.length) => { let most = 1e-9; for (let i = from; i < to; i++) most = Math.max(most, Math.abs(v[i])); return most; };
  const weight = (l, n, i, j) => gpt.layers[l].weights[(n * gpt.most + i) * gpt.most + j];
  const open = (i, j) => !get("masked") || j <= i;

  /** The weights of all heads, in small, numbered; the chosen one is framed by its button (see the style). */
  function paintHeads() {
    const T = ids.length, step = EACH + 3, pen = fit(maps, EDGE + H * step, EDGE + L * step), off = new Set(get("off"));
    pen.imageSmoothingEnabled = T > EACH;
    const all = tile(L * T, H * T, (y, x) => Math.sqrt(weight(Math.floor(y / T), Math.floor(x / T), y % T, x % T)));
    Object.assign(pen, { strokeStyle: inks.line, fillStyle: inks.quiet, textAlign: "center", textBaseline: "middle",
      font: `11px ${getComputedStyle(node).fontFamily}` });
    for (let n = 0; n < H; n++) pen.fillText(n, EDGE + (n + 0.5) * step, EDGE / 2);
    for (let l = 0; l < L; l++) {
      pen.fillText(l, EDGE / 2, EDGE + (l + 0.5) * step);
      for (let n = 0; n < H; n++) {
        const x = EDGE + n * step + 1.5, y = EDGE + l * step + 1.5;
        pen.strokeRect(x - 0.5, y - 0.5, EACH + 1, EACH + 1);
        if (!off.has(l * H + n)) pen.drawImage(all, n * T, l * T, T, T, x, y, EACH, EACH);
        else { pen.beginPath(); pen.moveTo(x, y); pen.lineTo(x + EACH, y + EACH); pen.moveTo(x + EACH, y); pen.lineTo(x, y + EACH); pen.stroke(); }
      }
    }
  }

  const words = (j, longest = 12) => short(name(ids[j]), longest);
  /** A square map of all queries (down) and keys (across), the chosen ones framed. */
  function square(v, label, i, j) {
    const T = ids.length, size = Math.max(Math.floor(216 / T), 6), W = size * T;
    const picture = canvas(W + 2, W + 2, label), pen = picture.getContext("2d");
    pen.imageSmoothingEnabled = false;
    pen.drawImage(tile(T, T, v), 1, 1, W, W);
    pen.strokeStyle = inks.line;
    pen.strokeRect(0.5, 0.5, W + 1, W + 1);
    pen.lineWidth = 2;
    pen.strokeStyle = inks.ink;
    pen.strokeRect(1, 1 + i * size, W, size);
    pen.strokeRect(1 + j * size, 1 + i * size, size, size);
    picture.addEventListener("click", ({ offsetX, offsetY }) => {
      const [x, y] = [offsetX, offsetY].map((at) => Math.min(T - 1, Math.floor(at / picture.clientWidth * T)));
      against = x;
      change({ place: y === T - 1 ? -1 : y });
    });
    return h("figure", { class: "square" }, picture, h("figcaption", { class: "quiet" }, "query ↓  key →"));
  }
  /** The keys of the chosen query, the first ones first; one can be chosen. cells(j): its columns. */
  function keyList(order, heads, cells, j) {
    const token = (k) => h("button", { type: "button", class: "token", "data-n": k, "aria-pressed": String(k === j), tabindex: k === j ? 0 : -1 }, words(k, 11));
    if (!order.includes(j)) order = [...order.slice(0, -1), j];
    return h("table", { class: "keys-list" }, h("thead", {}, h("tr", {}, ...heads.map((head, n) => h("th", { scope: "col", class: n ? "number" : "" }, head)))),
      h("tbody", {}, ...order.map((k) => h("tr", { class: k === j ? "on" : "" }, h("th", { scope: "row" }, token(k)), ...cells(k).map((cell) => h("td", { class: "number" }, cell))))));
  }
  const signed = (v) => (v < 0 ? `(${fixed(v)})` : fixed(v));
  let narrow = false; // little room, as in the style
  const room = () => (narrow ? ROOM.small : ROOM.large);
  const bar = (v, most, ink = "blue") => h("i", { class: "line", style: `width:${Math.max(1, Math.round(64 * Math.abs(v) / most))}px;background:var(--${ink})` });

  const draws = {
    tokens(i) {
      const id = ids[i], lines = [];
      let parts = [...bpe.pieces[id]].map((byte) => byteIds.get(byte));
      lines.push([parts, `${parts.length} ${parts.length === 1 ? "byte" : "bytes"}`]);
      while (parts.length > 1) { // as byteLevel does: the merge that was learned first
        const made = parts.slice(1).map((right, n) => bpe.pair(parts[n], right) ?? Infinity), best = Math.min(...made), at = made.indexOf(best);
        parts = [...parts.slice(0, at), best, ...parts.slice(at + 2)];
        lines.push([parts, `merge ${(best - bpe.first + 1).toLocaleString("en")}`, at]);
      }
      return [h("p", { class: "sub" }, "How “", h("span", { class: "token" }, words(i, 20)), "” was built: frequent neighbouring letters are merged, the most frequent pair first."),
        h("table", { class: "merging" }, h("tbody", {}, ...lines.map(([now, what, at], n) => h("tr", {},
          h("td", {}, ...now.map((part, k) => h("span", { class: `token${k === at ? " on" : ""}` }, name(part)))),
          h("td", { class: "quiet" }, what), h("td", { class: "quiet" }, n === lines.length - 1 ? `→ id ${id}` : "")))))];
    },
    vectors(i) {
      const T = ids.length, high = Math.max(6, Math.min(16, Math.floor(190 / T))), most = 0.6 * peak(gpt.token.subarray(ids[i] * C, ids[i] * C + C));
      const picture = canvas(512, high * T, `the ${C} numbers of each token, the chosen one framed`), pen = picture.getContext("2d");
      pen.imageSmoothingEnabled = false;
      pen.drawImage(tile(T, C, (t, n) => gpt.token[ids[t] * C + n] / most), 0, 0, 512, high * T);
      pen.strokeStyle = inks.ink;
      pen.lineWidth = 2;
      pen.strokeRect(1, i * high, 510, high);
      picture.addEventListener("click", ({ offsetY }) => { const t = Math.floor(offsetY * T * high / picture.clientHeight / high); change({ place: Math.min(T - 1, t) }); });
      const vector = gpt.token.slice(ids[i] * C, ids[i] * C + C);
      return [h("p", { class: "sub" }, h("span", { class: "token" }, words(i, 20)), ` has id ${ids[i]}, so its vector is row ${ids[i]} of ${V.toLocaleString("en")}:`),
        h("p", { class: "value wrap" }, `(${numbers(vector, 9)})`), h("p", { class: "sub quiet" }, `All tokens, one per line, ${C} numbers across: blue above 0, orange below.`), picture];
    },
    scores(i, j, l, n) {
      const T = ids.length, all = Float32Array.from({ length: T * T }, (_, k) => gpt.score(l, n, Math.floor(k / T), k % T)), most = peak(all);
      const row = all.subarray(i * T, i * T + T), order = largest(row, room().keys), { q, k } = gpt.layers[l];
      const asks = q.subarray(i * C + n * hs, i * C + n * hs + hs), tells = k.subarray(j * C + n * hs, j * C + n * hs + hs);
      const biggest = largest(asks.map((v, m) => Math.abs(v * tells[m])), 3);
      return [h("div", { class: "pair" }, square((a, b) => all[a * T + b] / most, "scores of all queries and keys", i, j),
        h("div", {}, h("div", { class: "sub" }, "q of ", h("span", { class: "token" }, words(i)), " times the k of"),
          keyList(order, ["key", "score", ""], (m) => [fixed(row[m]), bar(row[m], most, row[m] < 0 ? "orange" : "blue")], j))),
        h("p", { class: "value wrap" }, `q · k = ${biggest.map((m) => `${fixed(asks[m])} × ${signed(tells[m])}`).join(" + ")} + … (${hs} products) = ${fixed(row[j] * Math.sqrt(hs))};  ÷ ${Math.sqrt(hs)} = ${fixed(row[j])}`)];
    },
    weights(i, j, l, n) {
      const T = ids.length, row = Float32Array.from({ length: T }, (_, m) => weight(l, n, i, m)), order = largest(row, room().keys);
      const score = (m) => gpt.score(l, n, i, m), most = Math.max(...Array.from({ length: T }, (_, m) => (open(i, m) ? score(m) : -Infinity)));
      let sum = 0;
      for (let m = 0; m < T; m++) if (open(i, m)) sum += Math.exp(score(m) - most);
      return [h("div", { class: "pair" }, square((a, b) => (open(a, b) ? Math.sqrt(weight(l, n, a, b)) : NaN), "weights of all queries and keys; grey is masked", i, j),
        h("div", {}, h("div", { class: "sub" }, h("span", { class: "token" }, words(i)), " attends to"),
          keyList(order, ["key", "score", "weight", ""], (m) => (open(i, m) ? [fixed(score(m)), share(row[m]), bar(row[m], 1)] : ["−∞", "0%", ""]), j))),
        h("p", { class: "value wrap" }, open(i, j) ? `${words(j)}: e^(${fixed(score(j))} − ${fixed(most)}) = ${fixed(Math.exp(score(j) - most))};  ÷ the sum of all, ${fixed(sum)} = ${share(row[j])}`
          : `${words(j)} comes later: its score is replaced by −∞, and e^−∞ = 0`)];
    },
    values(i, j, l, n) {
      const T = ids.length, { v } = gpt.layers[l], row = Float32Array.from({ length: T }, (_, m) => weight(l, n, i, m)), order = largest(row, room().keys - 2).filter((m) => open(i, m));
      const of = (m) => v.subarray(m * C + n * hs, m * C + n * hs + hs), sum = new Float32Array(hs);
      for (let m = 0; m < T; m++) of(m).forEach((x, k) => { sum[k] += row[m] * x; });
      const most = 0.7 * peak(v, 0, T * C), silent = get("off").includes(l * H + n);
      const stripe = (numbers_, scale) => { const picture = canvas(256, 12, ""); picture.setAttribute("aria-hidden", "true"); const pen = picture.getContext("2d"); pen.imageSmoothingEnabled = false; pen.drawImage(tile(1, hs, (_, k) => numbers_[k] * scale / most), 0, 0, 256, 12); return picture; };
      const rest = T - order.length;
      return [h("table", { class: "mixing" }, h("tbody", {},
        ...order.map((m) => h("tr", {}, h("td", { class: "number" }, share(row[m])), h("td", {}, h("span", { class: "times" }, "× v of "), h("span", { class: "token" }, words(m, 11))), h("td", {}, stripe(of(m), row[m])))),
        ...(rest > 0 ? [h("tr", { class: "quiet" }, h("td", {}), h("td", {}, `+ ${rest} more`), h("td", {}))] : []),
        h("tr", { class: "total" }, h("td", {}), h("td", {}, "the sum"), h("td", {}, stripe(sum, 1))))),
      h("p", { class: "value wrap" }, silent ? "The head is off: its output is 0." : `(${numbers(sum, 8)})`),
      h("p", { class: "sub quiet" }, `The outputs of the layer’s ${H} heads (${C} numbers) go through one more matrix and are added to the token’s vector.`)];
    },
    sum(i, j, layer) {
      const length = (v) => Math.sqrt(v.reduce((total, x) => total + x * x, 0)), of = (v) => v.subarray(i * C, i * C + C);
      const less = (a, b) => Float32Array.from(a, (x, k) => x - b[k]);
      const lines = gpt.layers.map(({ x, between }, l) => {
        const after = of(gpt.layers[l + 1]?.x ?? gpt.last), guess = softmax(gpt.logits(i, l + 1), 1), [best] = largest(guess, 1);
        return { heads: length(less(of(between), of(x))), alone: length(less(after, of(between))), whole: length(after), best, sure: guess[best] };
      });
      const most = Math.max(...lines.flatMap(({ heads, alone }) => [heads, alone]));
      const start = length(of(gpt.layers[0].x));
      return [h("table", { class: "adding" }, h("thead", {}, h("tr", {}, ...["layer", "attention adds", "feed-forward adds", "length", "prediction so far"].map((head, n) => h("th", { scope: "col", class: n === 3 ? "number" : "" }, head)))),
        h("tbody", {}, h("tr", { class: "quiet" }, h("th", { scope: "row" }, "–"), h("td", { colspan: 2 }, "the embedding"), h("td", { class: "number" }, start.toFixed(1)), h("td", {})),
          ...lines.map(({ heads, alone, whole, best, sure }, l) => h("tr", { class: l === layer ? "on" : "" }, h("th", { scope: "row" }, String(l)),
            h("td", { class: "nowrap" }, bar(heads, most), ` ${heads.toFixed(1)}`), h("td", { class: "nowrap" }, bar(alone, most, "orange"), ` ${alone.toFixed(1)}`),
            h("td", { class: "number" }, whole.toFixed(1)), h("td", { class: "nowrap" }, h("span", { class: "token" }, short(name(best), 11)), ` ${share(sure)}`))))),
      h("p", { class: "sub quiet" }, `Layer by layer for “${words(i, 20)}”: the size of each update, and the prediction if the model stopped there.`)];
    },
    next() {
      const t = get("temperature"), order = largest(logits, 8), top = logits[order[0]];
      let sum = 0;
      for (const v of logits) sum += Math.exp((v - top) / t);
      return [h("table", { class: "ending" }, h("thead", {}, h("tr", {}, ...["token", "logit", `÷ ${t.toFixed(1)}`, "e^(… − largest)", "÷ sum"].map((head, n) => h("th", { scope: "col", class: n ? "number" : "" }, head)))),
        h("tbody", {}, ...order.map((id) => h("tr", {}, h("th", { scope: "row" }, h("span", { class: "token" }, short(name(id), 14))), ...[fixed(logits[id]), fixed(logits[id] / t),
          fixed(Math.exp((logits[id] - top) / t), 3), share(p[id])].map((cell) => h("td", { class: "number" }, cell)))),
        h("tr", { class: "total" }, h("th", { scope: "row" }, `all ${V.toLocaleString("en")}`), h("td", {}), h("td", {}), h("td", { class: "number" }, fixed(sum, 3)), h("td", { class: "number" }, "100%")))),
      h("p", { class: "sub quiet" }, "A low temperature makes the likeliest token even likelier, a high one evens them out. “Sample next token” appends one to the text, and everything starts again.")];
    },
  };
  const byteIds = new Map(bpe.pieces.slice(0, bpe.first).map(([byte], id) => [byte, id]));

  /** Below the name of each stage what it does, or what comes out of it for the chosen token and head. */
  function paintRoad() {
    const T = ids.length, told = [`${T} ${T === 1 ? "token" : "tokens"}`, `${C} numbers`, "q · k", "softmax", `${hs} numbers`, `${L} layers`, ""];
    if (p.length) { const [best] = largest(p, 1); told[6] = `${short(name(best), 7)} ${(100 * p[best]).toFixed(0)}%`; }
    if (T && gpt) {
      const i = place(), l = get("layer"), n = get("head"), x = gpt.last.subarray(i * C, i * C + C);
      const [most] = largest(Float32Array.from(ids, (_, j) => (open(i, j) ? gpt.score(l, n, i, j) : -Infinity)), 1);
      told[2] = `up to ${fixed(gpt.score(l, n, i, most))}`;
      told[3] = `up to ${(100 * weight(l, n, i, most)).toFixed(0)}%`;
      told[5] = `length ${Math.sqrt(x.reduce((sum, v) => sum + v * v, 0)).toFixed(1)}`;
    }
    road.querySelectorAll("small").forEach((line, n) => write(line, told[n]));
  }

  function paintPanel() {
    const n = STAGES.findIndex(({ name: one }) => one === get("stage")), stage = STAGES[n], i = place(), l = get("layer"), head = get("head");
    mark(road, n, "aria-selected");
    panel.setAttribute("aria-label", `stage ${n + 1}: ${stage.title}`);
    write(saying, ids.length ? stage.say({ T: ids.length, L, H, C, V, hs }) : "Type some text (at least one token) to get a continuation.");
    link.replaceChildren(...stage.links.flatMap((stem, k) => [k ? ", " : "chapter ", toChapter(stem)]));
    const ready = ids.length > 0 && (gpt || n === 0);
    machine.hidden = !ready || n < 2 || n > 5;
    write(warning, trouble || (n > 0 && !gpt && ids.length ? (loading ? `Loading the weights (${get("megabytes")} MB, once) …` : "") : ""));
    if (!ready) {
      drawing.replaceChildren(...(ids.length && !loading ? [h("button", { type: "button", onclick: () => load() }, `Compute it here (loads ${get("megabytes")} MB, once)`)] : []));
      return;
    }
    let j = against >= 0 && against < ids.length ? against : -1;
    if (n >= 2 && n <= 4 && j < 0) [j] = largest(Float32Array.from(ids, (_, m) => (n === 2 ? gpt.score(l, head, i, m) : weight(l, head, i, m))), 1);
    const active = node.getRootNode().activeElement, held = drawing.contains(active) && active.dataset.n;
    drawing.replaceChildren(...draws[stage.name](i, j, l, head));
    panel.dataset.stage = stage.name;
    if (held) drawing.querySelector(`[data-n="${held}"]`)?.focus();
    if (machine.hidden) return;
    write(which, `layer ${l}, head ${head}`);
    mark(grid, chosen(), "aria-selected");
    hearing.checked = !get("off").includes(chosen());
    masking.checked = get("masked");
    if (fresh.heads) paintHeads();
    fresh.heads = false;
  }
  function toChapter(stem) {
    const number = stem.slice(0, 2);
    if (inBook) return h("a", { href: `${stem}.html` }, number);
    return location.pathname.includes("/tree/") ? h("a", { href: `${stem}.ipynb`, target: "_blank" }, number) : number;
  }

  function paintStrip() {
    if (strip.dataset.ids !== ids.join()) {
      strip.dataset.ids = ids.join();
      strip.replaceChildren(...ids.map((id, n) => h("button", { type: "button", role: "option", "data-n": n, "aria-label": `token ${n + 1}: ${name(id)}, number ${id}` },
        h("span", {}, short(name(id), 14)), h("small", {}, String(id)))));
    }
    mark(strip, place(), "aria-selected");
  }

  function paintAnswer() {
    const t = get("temperature"), none = !logits.length;
    p = none ? [] : softmax(logits, t);
    const compare = t !== 1 || changed() ? softmax(before?.logits ?? logits, 1) : before && softmax(before.logits, 1);
    const many = room().next, order = none ? [] : largest(p, many), rest = (all) => order.reduce((sum, id) => sum - all[id], 1);
    write(heading, none ? "next token" : `next token, after “${words(ids.length - 1)}”`);
    rows.forEach((line, n) => {
      line.row.hidden = n > many;
      if (none || n > many) { write(line.name, ""); write(line.share, ""); line.bar.style.width = 0; line.tick.hidden = true; return; }
      const others = n === many, of = (all) => Math.max(0, others ? rest(all) : all[order[n]]);
      write(line.name, others ? `${(V - many).toLocaleString("en")} others` : short(name(order[n]), 12));
      write(line.share, share(of(p)));
      line.row.className = others ? "others" : "";
      line.bar.style.width = `${100 * of(p)}%`;
      line.tick.hidden = !compare;
      if (compare) line.tick.style.left = `min(calc(100% - 2px), ${100 * of(compare)}%)`;
    });
    write(legend, compare ? `│ ${t !== 1 || changed() ? "as trained, temperature 1" : `before: “…${anchor.slice(-18)}”`}` : "");
    undoing.disabled = t === 1 && !changed();
    writing.disabled = none;
    answer.style.opacity = none ? 0.4 : 1;
    tellSoon();
  }
  const tellSoon = onceQuiet(() => {
    write(spoken, p.length ? `Most likely next: ${largest(p, 3).map((id) => `${name(id)} ${share(p[id])}`).join(", ")}.` : "");
  }, 400);

  function paint() {
    if (!node.isConnected) { requestAnimationFrame(paint); return; } // a node has its colours when it stands in the page
    if (!inks.ink) readInks();
    paintStrip();
    const shown = `${get("temperature")} ${room().next}`; // the answer changes with what is computed, and with these
    if (fresh.answer || fresh.shown !== shown) paintAnswer();
    Object.assign(fresh, { answer: false, shown });
    paintRoad();
    paintPanel();
  }
  const heard = () => { // what Python, or the slider, has set
    if (mine) return;
    if (field.value !== get("text")) field.value = anchor = get("text");
    compute();
  };
  const shown = () => { if (!mine) paint(); };
  const events = (names) => names.map((one) => `change:${one}`).join(" ");
  model.on(events(READ), heard);
  model.on(events(SHOW), shown);
  const sizes = new ResizeObserver(() => {
    const now = node.clientWidth < 560;
    if (node.clientWidth && narrow !== now) { narrow = now; paint(); }
  });
  sizes.observe(node);
  field.value = get("text");
  compute();
  if (!inBook) load();
  const undo = onTheme(() => { readInks(); fresh.heads = true; paint(); });
  // For tests: what is computed, and how long it took.
  Object.assign(node, { gpt: () => gpt, ids: () => ids, probabilities: () => Array.from(p), loaded: () => loading });
  return () => { undo(); sizes.disconnect(); tellSoon.stop(); set.stop(); model.off(events(READ), heard); model.off(events(SHOW), shown); };
}
export default live(render);
