// The model answers in the kernel, once for each prompt (trait "answer"); all else happens here.
const SHOWN = 20, ROW = 19, LABEL = 84, BAR = 380, WIDTH = 600, TOP = 58, RULER = 28;

/** The places of the logits from the largest to the smallest; equal ones in their order. */
const ranking = (logits) => Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a] || a - b);

/** From ranked logits: hot (after the temperature) and final (after the cuts), n kept, their mass. */
function distribution(ranked, temperature, topK, topP) {
  const V = ranked.length, hot = new Float64Array(V), final = new Float64Array(V);
  let sum = 0, n = V, mass = 0;
  for (let i = 0; i < V; i++) sum += hot[i] = temperature ? Math.exp((ranked[i] - ranked[0]) / temperature) : Number(i === 0);
  for (let i = 0; i < V; i++) hot[i] /= sum;
  if (!temperature) n = 1;
  n = Math.min(n, topK);
  for (let i = 0; i < n; i++) mass += hot[i];
  if (topP < 1) {  // a token stays while those before it have not reached p
    let before = 0, i = 0;
    for (; i < n && before / mass < topP; i++) before += hot[i];
    n = i;
    mass = before;
  }
  for (let i = 0; i < n; i++) final[i] = hot[i] / mass;
  return { hot, final, n, mass: Math.min(1, mass) };
}

/** Bits of uncertainty. */
const entropy = (p) => p.reduce((sum, v) => (v > 0 ? sum - v * Math.log2(v) : sum), 0);

/** The dart of draw number n: the same seed gives the same darts (mulberry32). */
function dart(seed, n) {
  let t = (Math.imul(seed + 1, 0x9E3779B1) + Math.imul(n + 1, 0x6D2B79F5)) | 0;
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}

/** The rank whose piece of the ruler the dart u hits. */
function hit(final, n, u) {
  let i = 0;
  for (let end = final[0]; i < n - 1 && end <= u; end += final[i]) i += 1;
  return i;
}

const percent = (p) => (p === 0 ? "0 %" : p < 0.0005 ? "< 0.1 %" : `${(100 * p).toFixed(1)} %`);

function render({ model: bare, el }) {
  const node = root(el, "sampling-explorer", "Sampling explorer: what comes next, and how it is chosen");
  const model = promptly(bare, node);
  const tokens = model.get("tokens"), most = model.get("most_k"), first = model.get("prompt");
  let ranks = [], ranked = [], plain = null, waiting = 0, draws = 0, last = "", patience = 0;
  const send = (text) => {
    model.set("prompt", text);
    model.save_changes();
    clearTimeout(patience);
    patience = setTimeout(() => { error.textContent = "The kernel has not answered yet. Is it running, or busy?"; }, 4000);
  };

  const field = h("textarea", { rows: 3, cols: 64, "aria-label": "prompt", spellcheck: "false", autocomplete: "off",
    autocapitalize: "off", maxlength: 4000, style: "font-family:var(--jp-code-font-family, monospace);background:var(--paper);border:1px solid var(--line);border-radius:4px;padding:3px 8px;max-width:100%;box-sizing:border-box" });
  field.addEventListener("input", () => { waiting = 0; last = ""; send(field.value); });
  const error = h("div", { class: "warning", role: "status", "aria-live": "polite" });
  const note = h("div", { class: "quiet note" });
  const seen = h("span", { class: "token seen" }), fresh = h("span", { class: "token fresh", style: "font-weight:700;text-decoration:underline" });
  const drawn = h("span", { class: "drawn", role: "status", "aria-live": "polite" });
  const button = (label, act) => h("button", { type: "button", onclick: act }, label);
  const ask = (n) => () => { waiting = Math.min(200, waiting + n); step(); };
  const cells = Object.fromEntries(["entropy", "plain", "kept", "mass", "next"].map((name) => [name, h("td", { class: `number ${name}` })]));
  const row = (label, cell) => h("tr", {}, h("th", { scope: "row" }, label), cell);
  const picture = canvas(WIDTH, TOP + ROW * (Math.min(SHOWN, tokens.length) + (tokens.length > SHOWN ? 1 : 0)) + 4, "");
  const pen = picture.getContext("2d");

  node.append(
    h("label", { style: "align-items:flex-start" }, "prompt", field), error,
    h("div", { class: "row" }, "the model reads", h("span", {}, seen, fresh)), note,
    h("div", { class: "row" },
      slider(model, "temperature", { label: "temperature τ", min: 0, max: 3, step: 0.05, show: (t) => (t ? t.toFixed(2) : "0 (greedy)") }),
      slider(model, "top_k", { label: "top-k", min: 1, max: most, show: (k) => (k >= most ? "off" : String(k)) }),
      slider(model, "top_p", { label: "top-p", min: 0.01, max: 1, step: 0.01, show: (p) => (p >= 1 ? "off" : p.toFixed(2)) })),
    h("div", { class: "row" }, button("Sample once", ask(1)), button("Sample 20", ask(20)),
      button("Start again", () => { waiting = draws = 0; last = ""; drawn.textContent = ""; send(first); }), drawn),
    h("div", { class: "columns" }, picture, h("table", {}, h("tbody", {},
      row("entropy, in bits", cells.entropy), row("… of the model itself", cells.plain),
      row("tokens kept", cells.kept), row("probability kept", cells.mass),
      row("the next dart", cells.next)))),
    h("p", { class: "quiet", style: "margin:4px 0" },
      "ruler: the kept tokens side by side, and where the next dart will hit (▼) · filled: the chance to be drawn · hatched: cut off (the number is what it would have had) · upright line: the model itself (τ = 1, no cut)"));

  const now = () => distribution(ranked, model.get("temperature"),
    model.get("top_k") >= most ? tokens.length : model.get("top_k"), model.get("top_p"));
  // For tests: token → probability, as drawn from.
  node.probabilities = () => { const { final } = now(); return Array.from(tokens, (_, id) => final[ranks.indexOf(id)]); };

  let hatched = null;
  function hatch(ink) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const lines = tile.getContext("2d");
    lines.strokeStyle = ink;
    lines.beginPath();
    for (const x of [-6, 0, 6]) { lines.moveTo(x, 6); lines.lineTo(x + 6, 0); }
    lines.stroke();
    return pen.createPattern(tile, "repeat");
  }
  let inks = {};
  function readInks() {
    inks = Object.fromEntries(["ink", "quiet", "line", "blue", "orange", "paper"].map((name) => [name, colour(node, name)]));
    hatched = hatch(inks.quiet);
  }

  /** The kept tokens side by side, in order, and the next dart above them. */
  function ruler(final, n, u, target) {
    pen.textAlign = "right";
    pen.fillStyle = inks.ink;
    pen.fillText("ruler", LABEL - 8, RULER + 9);
    pen.textAlign = "center";
    let x = LABEL;
    for (let i = 0; i < n; i++) {
      const wide = final[i] * BAR;
      pen.fillStyle = i === target ? inks.orange : inks.blue;
      pen.fillRect(x, RULER, Math.max(wide - 1, 0.4), 18);
      pen.fillStyle = i === target ? "#000" : inks.paper;
      if (wide > 13) pen.fillText(visible(tokens[ranks[i]]).slice(0, wide / 8), x + wide / 2, RULER + 9);
      x += wide;
    }
    const tip = LABEL + u * BAR;
    pen.fillStyle = inks.ink;
    pen.beginPath();
    pen.moveTo(tip - 5, RULER - 9);
    pen.lineTo(tip + 5, RULER - 9);
    pen.lineTo(tip, RULER);
    pen.fill();
    pen.fillRect(tip - 0.5, RULER, 1, 18);
  }

  /** One line of the picture; others: how many tokens it stands for (0: one). */
  function line(i, name, final, hot, own, others, kept, target) {
    const y = TOP + i * ROW, cut = final === 0 && hot > 0;
    pen.textAlign = "right";
    pen.fillStyle = cut ? inks.quiet : inks.ink;
    pen.fillText(name, LABEL - 8, y + ROW / 2);
    const long = Math.max(1, (cut ? hot : final) * BAR);
    pen.fillStyle = cut ? hatched : inks.blue;
    if (final > 0 || cut) pen.fillRect(LABEL, y + 3, long, ROW - 6);
    if (cut) { pen.strokeStyle = inks.quiet; pen.strokeRect(LABEL + 0.5, y + 3.5, long, ROW - 7); }
    pen.fillStyle = inks.ink;
    pen.fillRect(LABEL + own * BAR - 1, y, 2, ROW);
    pen.textAlign = "left";
    const some = others && kept && kept < others ? ` (${kept} of ${others})` : "";
    pen.fillText(cut ? `cut (${percent(hot)})` : percent(final) + some + (target ? " ◀ dart" : ""), LABEL + BAR + 12, y + ROW / 2);
  }

  function draw() {
    if (!ranked.length) return;
    if (!inks.blue) readInks(); // not before: a node has its colours when it stands in the page
    if (!inks.blue) { paint(); return; }
    const { hot, final, n, mass } = now(), shown = Math.min(SHOWN, ranked.length);
    pen.clearRect(0, 0, WIDTH, 2000);
    pen.font = "12px " + (getComputedStyle(field).fontFamily || "monospace");
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
      pen.fillStyle = inks.line;
      pen.fillRect(LABEL + tick * BAR, TOP - 6, 1, ROW * 21 + 4);
      pen.fillStyle = inks.quiet;
      pen.fillText(`${100 * tick} %`, LABEL + tick * BAR, 9);
    }
    const u = dart(model.get("seed"), draws), target = hit(final, n, u);
    ruler(final, n, u, target);
    for (let i = 0; i < shown; i++) line(i, visible(tokens[ranks[i]]) || "(empty)", final[i], hot[i], plain.final[i], 0, 0, i === target);
    if (ranked.length > SHOWN) {
      const rest = (p) => p.subarray(SHOWN).reduce((a, b) => a + b, 0), others = ranked.length - SHOWN;
      line(SHOWN, `${others} others`, rest(final), rest(hot), rest(plain.final), others, Math.max(0, n - SHOWN), target >= SHOWN);
    }
    cells.next.textContent = `${u.toFixed(3)} → ${visible(tokens[ranks[target]])}`;
    cells.entropy.textContent = Math.abs(entropy(final)).toFixed(2);
    cells.plain.textContent = plain.bits.toFixed(2);
    cells.kept.textContent = `${n} of ${ranked.length}`;
    cells.mass.textContent = percent(mass);
    const top = ranks.slice(0, 5).map((id, i) => `${visible(tokens[id])} ${final[i] ? percent(final[i]) : "cut"}`).join(", ");
    picture.setAttribute("aria-label", `Likeliest next tokens: ${top}. ${n} of ${ranked.length} kept.`);
  }
  const paint = onceAFrame(draw);

  /** Draw a token if one is wanted and the model has answered for the present prompt. */
  function step() {
    const answer = model.get("answer"), prompt = model.get("prompt");
    if (!waiting || answer.prompt !== prompt) return;
    if (answer.error || prompt.length > 3990) { waiting = 0; return; }
    waiting -= 1;
    const u = dart(model.get("seed"), draws), { final, n } = now();
    last = tokens[ranks[hit(final, n, u)]];
    draws += 1;
    drawn.textContent = `dart ${u.toFixed(3)} hits “${visible(last)}”`;
    send(prompt + last);
  }

  function read() {
    const answer = model.get("answer");
    clearTimeout(patience);
    error.textContent = answer.error;
    note.textContent = answer.note;
    note.style.display = answer.note ? "" : "none";
    if (!answer.error) {
      const logits = floats(answer.logits);
      ranks = ranking(logits);
      ranked = ranks.map((id) => logits[id]);
      plain = distribution(ranked, 1, ranked.length, 1);
      plain.bits = entropy(plain.final);
    }
    picture.style.opacity = answer.error ? 0.35 : 1;
    const shown = answer.prompt.slice(0, answer.prompt.length - last.length);
    seen.textContent = (shown.length > 70 ? "…" : "") + visible(shown.slice(-70));
    fresh.textContent = visible(last);
    step();
    if (inks.blue) draw(); // at once: the kernel sends one answer for each prompt
    else paint();
  }
  const write = () => { if (field.value !== model.get("prompt")) field.value = model.get("prompt"); };

  for (const name of ["temperature", "top_k", "top_p"]) model.on(`change:${name}`, paint);
  model.on("change:answer", read);
  model.on("change:prompt", write);
  const undo = onTheme(() => { readInks(); paint(); });
  write();
  read();
  return () => { undo(); clearTimeout(patience); model.off("change:answer", read); model.off("change:prompt", write);
    for (const name of ["temperature", "top_k", "top_p"]) model.off(`change:${name}`, paint); };
}
export default live(render);
