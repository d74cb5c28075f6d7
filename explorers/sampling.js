// The model answers in the kernel, once for each prompt (trait "answer"); all else happens here.
const SHOWN = 20;
const ROW = 16;
const TOP = 56;
const RULER = 27;
const SIGNS = 70; // SIGNS: characters of the prompt that are shown

/** The places of the logits from the largest to the smallest; equal ones in their order. */
const ranking = (logits) =>
  Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a] || a - b);

/** From ranked logits: hot (after the temperature) and final (after the cuts), n kept, their mass. */
function distribution(ranked, temperature, topK, topP) {
  const V = ranked.length;
  const hot = new Float64Array(V);
  const final = new Float64Array(V);
  let sum = 0;
  let n = V;
  let mass = 0;
  for (let i = 0; i < V; i++)
    sum += hot[i] = temperature ? Math.exp((ranked[i] - ranked[0]) / temperature) : Number(i === 0);
  for (let i = 0; i < V; i++) hot[i] /= sum;
  if (!temperature) n = 1;
  n = Math.min(n, topK);
  for (let i = 0; i < n; i++) mass += hot[i];
  if (topP < 1) {
    // a token stays while those before it have not reached p
    let before = 0;
    let i = 0;
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
  let t = (Math.imul(seed + 1, 0x9e3779b1) + Math.imul(n + 1, 0x6d2b79f5)) | 0;
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

/** A token in signs that can be seen: "␣the", and "‹200B›" for a sign of no width. */
const signs = (token) =>
  visible(token).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (c) => `‹${c.codePointAt(0).toString(16).toUpperCase().padStart(2, "0")}›`,
  ) || "(empty)";

/** Writes a text cut to `longest` signs, all of it (up to a length) where the pointer rests. */
function writeShort(node, text, longest) {
  const said = truncate(text, longest);
  setText(node, said);
  node.title = said === text ? "" : inFull(text);
}

function build({ model, node, get, set, slider, soon }) {
  const tokens = get("tokens");
  const most = get("most_k");
  const first = get("prompt");
  let ranks = [];
  let ranked = [];
  let plain = null;
  let waiting = 0;
  let draws = 0;
  let last = "";
  const send = (text) => set({ prompt: text.toWellFormed?.() ?? text }); // half a sign cannot be sent

  const typed = () => {
    waiting = 0;
    last = "";
    send(field.value);
  };
  const field = html`<textarea rows="2" aria-label="prompt" spellcheck="false" autocomplete="off"
    autocapitalize="off" maxlength="4000" oninput=${typed} />`;
  const error = html`<div class="warning problem" role="status" aria-live="polite" />`;
  const lead = html`<span class="note" />`;
  const seen = html`<span class="token seen" />`;
  const fresh = html`<span class="token fresh" />`;
  const drawn = html`<div class="drawn" role="status" aria-live="polite" />`;
  const button = (label, act) => html`<button type="button" onclick=${act}>${label}</button>`;
  const ask = (n) => () => {
    waiting = Math.min(200, waiting + n);
    step();
  };
  const drawing = [button("Sample next token", ask(1)), button("Sample 20", ask(20))];
  const again = button("Start again", () => {
    waiting = draws = 0;
    last = "";
    setText(drawn, "");
    send(first);
    allowAgain();
    soon();
  });
  const cells = {};
  const row = (name, label) => {
    cells[name] = html`<td class="number ${name}" />`;
    return html`<tr><th scope="row">${label}</th>${cells[name]}</tr>`;
  };
  const table = html`<table><tbody>
    ${row("next", "next number")}
    ${row("kept", "tokens kept")}
    ${row("mass", "their sum")}
    ${row("entropy", "entropy, bits")}
    ${row("plain", "… raw model")}
  </tbody></table>`;
  const many = tokens.length > SHOWN;
  const height = TOP + ROW * (Math.min(SHOWN, tokens.length) + Number(many)) + 2;
  const picture = canvas(1, height, "");
  const ctx = picture.getContext("2d");
  const key = (name, words, sign = "") =>
    html`<li><i class=${name} aria-hidden="true">${sign}</i><span>${words}</span></li>`;
  const heat = (t) => (t ? t.toFixed(2) : "0 (greedy)");
  const page = html`
    <label class="prompt">prompt${field}</label>
    <div class="slot">
      ${node.querySelector(".silence")}${error}
      <div class="reads">${lead} ${seen}${fresh}</div>
    </div>
    <div class="columns">
      ${picture}
      <div class="side">
        ${slider("temperature", "temperature τ", [0, 3, 0.05], heat)}
        ${slider("top_k", "top-k", [1, most], (k) => (k >= most ? "off" : String(k)))}
        ${slider("top_p", "top-p", [0.01, 1, 0.01], (p) => (p >= 1 ? "off" : p.toFixed(2)))}
        <div class="buttons">${drawing}${again}</div>
        ${drawn}${table}
        <ul class="legend quiet">
          ${key("likely", "probability of being sampled")}
          ${key("gone", "removed (original probability)")}
          ${key("own", "raw model (τ = 1, no cuts)")}
          ${key("tip", "next random number, on the scale of the kept tokens", "▼")}
        </ul>
      </div>
    </div>`;

  const now = () => {
    const k = get("top_k") >= most ? tokens.length : get("top_k");
    return distribution(ranked, get("temperature"), k, get("top_p"));
  };
  // For tests: token → probability, as drawn from.
  node.probabilities = () => {
    const { final } = now();
    return Array.from(tokens, (_, id) => final[ranks.indexOf(id)]);
  };

  let hatched = null;
  function hatch(ink) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const lines = tile.getContext("2d");
    lines.strokeStyle = ink;
    lines.beginPath();
    for (const x of [-6, 0, 6]) {
      lines.moveTo(x, 6);
      lines.lineTo(x + 6, 0);
    }
    lines.stroke();
    return ctx.createPattern(tile, "repeat");
  }
  let inks = {};
  function readInks() {
    inks = cssColors(node, "ink quiet line blue red paper");
    inks.font = getComputedStyle(field).fontFamily || "monospace";
    hatched = hatch(inks.quiet);
  }

  let wide;
  let label;
  let bar; // in pixels: the picture, its names, its longest bar
  const fitting = new Map();
  /** The name of a token, cut where `room` pixels end. */
  function fitted(text, room) {
    if (ctx.measureText(text).width <= room) return text;
    let cut = [...text.slice(0, 40)];
    while (cut.length > 1 && ctx.measureText(`${cut.join("")}…`).width > room) cut.pop();
    return `${cut.join("")}…`;
  }
  function nameOf(id) {
    if (!fitting.has(id)) fitting.set(id, fitted(signs(tokens[id].slice(0, 80)), label - 8));
    return fitting.get(id);
  }
  function lay(roomy) {
    fitting.clear();
    wide = roomy ? 500 : 360;
    const longest = Math.max(
      ...tokens.slice(0, 5000).map((token) => Math.min(16, token.length)),
      many ? `${tokens.length} others`.length : 0,
    );
    label = Math.min(roomy ? 120 : 104, 14 + 7.3 * Math.max(5, longest));
    bar = wide - label - 112;
  }

  /** The kept tokens side by side, in order, and the next dart above them. */
  function ruler(final, n, u, target) {
    ctx.textAlign = "right";
    ctx.fillStyle = inks.ink;
    ctx.fillText("kept", label - 8, RULER + 9);
    ctx.textAlign = "center";
    let x = label;
    for (let i = 0; i < n; i++) {
      const long = final[i] * bar;
      ctx.fillStyle = i === target ? inks.red : inks.blue;
      ctx.fillRect(x, RULER, Math.max(long - 1, 0.4), 18);
      ctx.fillStyle = i === target ? "#000" : inks.paper;
      if (long > 13) ctx.fillText(fitted(nameOf(ranks[i]), long - 2), x + long / 2, RULER + 9);
      x += long;
    }
    const tip = label + u * bar;
    ctx.fillStyle = inks.ink;
    ctx.beginPath();
    ctx.moveTo(tip - 5, RULER - 9);
    ctx.lineTo(tip + 5, RULER - 9);
    ctx.lineTo(tip, RULER);
    ctx.fill();
    ctx.fillRect(tip - 0.5, RULER, 1, 18);
  }

  /** One line of the picture. */
  function line(i, name, final, hot, own, target) {
    const y = TOP + i * ROW;
    const cut = final === 0 && hot > 0;
    ctx.textAlign = "right";
    ctx.fillStyle = cut ? inks.quiet : inks.ink;
    ctx.fillText(name, label - 8, y + ROW / 2);
    const long = Math.max(1, (cut ? hot : final) * bar);
    ctx.fillStyle = cut ? hatched : inks.blue;
    if (final > 0 || cut) ctx.fillRect(label, y + 2, long, ROW - 4);
    if (cut) {
      ctx.strokeStyle = inks.quiet;
      ctx.strokeRect(label + 0.5, y + 2.5, long, ROW - 5);
    }
    ctx.fillStyle = inks.ink;
    ctx.fillRect(label + own * bar - 1, y, 2, ROW);
    ctx.textAlign = "left";
    ctx.fillText(
      cut ? `removed ${percent(hot)}` : percent(final) + (target ? " ◀ next" : ""),
      label + bar + 8,
      y + ROW / 2,
    );
  }

  function paint() {
    if (!wide) return;
    if (!inks.blue) readInks(); // not before: a node has its colours when it stands in the page
    if (!inks.blue) return soon();
    fit(picture, wide, height);
    if (!ranked.length) return;
    const { hot, final, n, mass } = now();
    const shown = Math.min(SHOWN, ranked.length);
    ctx.font = `12px ${inks.font}`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "center";
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
      ctx.fillStyle = inks.line;
      ctx.fillRect(label + tick * bar, TOP - 6, 1, height - TOP + 4);
      ctx.fillStyle = inks.quiet;
      ctx.fillText(`${100 * tick}%`, label + tick * bar, 8);
    }
    const u = dart(get("seed"), draws);
    const target = hit(final, n, u);
    ruler(final, n, u, target);
    for (let i = 0; i < shown; i++)
      line(i, nameOf(ranks[i]), final[i], hot[i], plain.final[i], i === target);
    if (many) {
      const rest = (p) => p.subarray(SHOWN).reduce((a, b) => a + b, 0);
      const others = [final, hot, plain.final].map(rest);
      line(SHOWN, `${ranked.length - SHOWN} others`, ...others, target >= SHOWN);
    }
    writeShort(cells.next, `${u.toFixed(3)} → ${signs(tokens[ranks[target]])}`, 40);
    setText(cells.entropy, Math.abs(entropy(final)).toFixed(2));
    setText(cells.plain, plain.bits.toFixed(2));
    setText(cells.kept, `${n} of ${ranked.length}`);
    setText(cells.mass, percent(mass));
    const top = ranks.slice(0, 5).map((id, i) => {
      return `${truncate(signs(tokens[id]), 40)} ${final[i] ? percent(final[i]) : "removed"}`;
    });
    const said = `Likeliest next tokens: ${top.join(", ")}. ${n} of ${ranked.length} kept.`;
    put(picture, { "aria-label": said });
  }
  picture.addEventListener("pointermove", ({ offsetY }) => {
    // the whole name of what is cut
    const i = Math.floor((offsetY - TOP) / ROW);
    const id = i < SHOWN ? ranks[i] : undefined;
    const title = id !== undefined && nameOf(id).endsWith("…") ? inFull(signs(tokens[id])) : "";
    if (picture.title !== title) picture.title = title;
  });

  /** Draw a token if one is wanted and the model has answered for the present prompt. */
  function step() {
    const answer = get("answer");
    const prompt = get("prompt");
    if (!waiting || answer.prompt !== prompt) return;
    if (answer.error || prompt.length > 3990) {
      waiting = 0;
      return;
    }
    waiting -= 1;
    const u = dart(get("seed"), draws);
    const { final, n } = now();
    last = tokens[ranks[hit(final, n, u)]];
    draws += 1;
    writeShort(drawn, `${u.toFixed(3)} selects “${truncate(signs(last), 100)}”`, 110);
    if (last) send(prompt + last);
    else {
      // a token without signs: the prompt is the one that was answered
      allowAgain();
      soon();
      step();
    }
  }

  function read() {
    const answer = get("answer");
    writeShort(error, answer.error, 150);
    setText(lead, answer.note || "model input:");
    if (!answer.error) {
      const logits = floats(answer.logits);
      ranks = ranking(logits);
      ranked = ranks.map((id) => logits[id]);
      plain = distribution(ranked, 1, ranked.length, 1);
      plain.bits = entropy(plain.final);
    }
    picture.style.opacity = table.style.opacity = answer.error ? 0.35 : 1;
    for (const one of drawing) one.disabled = Boolean(answer.error);
    allowAgain();
    const shown = answer.prompt.slice(0, answer.prompt.length - last.length);
    writeShort(fresh, last && signs(last), 30);
    const tail = [...(shown && signs(shown.slice(-3 * SIGNS).replace(/^[\udc00-\udfff]/, "")))];
    const room = SIGNS - fresh.textContent.length;
    setText(
      seen,
      (tail.length > room || shown.length > 3 * SIGNS ? "…" : "") + tail.slice(-room).join(""),
    );
    step();
    if (inks.blue)
      paint(); // at once: the kernel sends one answer for each prompt
    else soon();
  }
  /** Is there anything to start again from? */
  const allowAgain = () => {
    again.disabled = !draws && get("prompt") === first;
  };
  const refill = () => {
    allowAgain();
    if (field.value === get("prompt")) return;
    field.value = get("prompt");
    field.scrollTop = field.scrollHeight; // what was written last
  };

  model.on("change:answer", read);
  model.on("change:prompt", refill);
  refill();
  read();
  return { page, paint, lay, theme: readInks };
}

export default explorer({
  name: "sampling-explorer",
  title: "Sampling explorer: what comes next, and how it is chosen",
  traits: ["temperature", "top_k", "top_p"],
  asks: true,
  build,
});
