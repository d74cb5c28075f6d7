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

const STYLE = `
  .sampling-explorer .prompt { display: flex; align-items: flex-start; gap: 8px; margin: 3px 4px 0 0; }
  .sampling-explorer textarea { flex: 1; min-width: 0; box-sizing: border-box; resize: none; padding: 3px 8px;
    font-family: var(--jp-code-font-family, monospace); background: var(--paper); border: 1px solid var(--line); border-radius: 4px; }
  .sampling-explorer .slot { height: 2.9em; overflow: hidden; margin: 3px 0; }
  .sampling-explorer .slot > * { margin: 0; }
  .sampling-explorer .silence:not(:empty) ~ *, .sampling-explorer .problem:not(:empty) ~ * { display: none; }
  .sampling-explorer .reads, .sampling-explorer .problem { overflow-wrap: anywhere; }
  .sampling-explorer .reads .token { white-space: pre-wrap; unicode-bidi: isolate; }
  .sampling-explorer .token:empty { display: none; }
  .sampling-explorer .fresh { font-weight: 700; text-decoration: underline; }
  .sampling-explorer .columns { gap: 6px 12px; }
  .sampling-explorer .side { flex: 1 1 180px; min-width: 0; max-width: 330px; padding-right: 4px; display: grid; gap: 6px; }
  .sampling-explorer .side label { display: grid; grid-template-columns: 1fr auto; gap: 0 6px; }
  .sampling-explorer .side label input { grid-area: 2 / 1 / 3 / 3; width: 100%; margin: 2px 0; box-sizing: border-box; }
  .sampling-explorer .buttons { display: flex; flex-wrap: wrap; gap: 5px; }
  .sampling-explorer .buttons button { padding: 2px 7px; }
  .sampling-explorer .drawn { height: 1.45em; }
  .sampling-explorer table { width: 100%; table-layout: fixed; }
  .sampling-explorer th, .sampling-explorer td { padding: 1px 2px; font-weight: 400; }
  .sampling-explorer th { width: 50%; }
  @container explorer (max-width: 539px) { /* a phone: the buttons stand between the prompt and the bars */
    .sampling-explorer .side { display: contents; }
    .sampling-explorer .side > * { flex: 1 1 100%; }
    .sampling-explorer .buttons, .sampling-explorer .drawn { order: -1; }
  }
  @container explorer (min-width: 540px) and (max-width: 759px) { .sampling-explorer table { font-size: 12px; } .sampling-explorer th { width: 84px; } }
  .sampling-explorer td, .sampling-explorer .drawn { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; unicode-bidi: isolate; }
  .sampling-explorer .legend { margin: 0; padding: 0; list-style: none; font-size: 12px; line-height: 1.35; }
  .sampling-explorer .legend li { display: grid; grid-template-columns: 14px 1fr; gap: 6px; align-items: baseline; margin: 0; }
  .sampling-explorer .legend i { height: 9px; border: 1px solid var(--quiet); font-style: normal; text-align: center; }
  .sampling-explorer .legend .likely { background: var(--blue); border-color: var(--blue); }
  .sampling-explorer .legend .gone { background: repeating-linear-gradient(-45deg, transparent 0 2px, var(--quiet) 2px 3px); }
  .sampling-explorer .legend .own { width: 2px; height: 12px; justify-self: center; border: 0; background: var(--ink); align-self: center; }
  .sampling-explorer .legend .tip { border: 0; height: auto; line-height: 1; }`;

function render({ model: bare, el }) {
  const node = root(
    el,
    "sampling-explorer",
    "Sampling explorer: what comes next, and how it is chosen",
  );
  const model = withAck(bare, node);
  const tokens = model.get("tokens");
  const most = model.get("most_k");
  const first = model.get("prompt");
  let ranks = [];
  let ranked = [];
  let plain = null;
  let waiting = 0;
  let draws = 0;
  let last = "";
  const send = (text) => setAndSave(model, { prompt: text.toWellFormed?.() ?? text }); // half a sign cannot be sent

  const field = h("textarea", {
    rows: 2,
    "aria-label": "prompt",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    maxlength: 4000,
  });
  field.addEventListener("input", () => {
    waiting = 0;
    last = "";
    send(field.value);
  });
  const error = h("div", { class: "warning problem", role: "status", "aria-live": "polite" });
  const lead = h("span", { class: "note" });
  const seen = h("span", { class: "token seen" });
  const fresh = h("span", { class: "token fresh" });
  const drawn = h("div", { class: "drawn", role: "status", "aria-live": "polite" });
  const button = (label, act) => h("button", { type: "button", onclick: act }, label);
  const ask = (n) => () => {
    waiting = Math.min(200, waiting + n);
    step();
  };
  const cells = Object.fromEntries(
    ["entropy", "plain", "kept", "mass", "next"].map((name) => [
      name,
      h("td", { class: `number ${name}` }),
    ]),
  );
  const row = (label, cell) => h("tr", {}, h("th", { scope: "row" }, label), cell);
  const key = (name, words, sign = "") =>
    h("li", {}, h("i", { class: name, "aria-hidden": "true" }, sign), h("span", {}, words));
  const drawing = [button("Sample next token", ask(1)), button("Sample 20", ask(20))];
  const table = h(
    "table",
    {},
    h(
      "tbody",
      {},
      row("next number", cells.next),
      row("tokens kept", cells.kept),
      row("their sum", cells.mass),
      row("entropy, bits", cells.entropy),
      row("… raw model", cells.plain),
    ),
  );
  const again = button("Start again", () => {
    waiting = draws = 0;
    last = "";
    setText(drawn, "");
    send(first);
    allowAgain();
    paint();
  });
  const many = tokens.length > SHOWN;
  const height = TOP + ROW * (Math.min(SHOWN, tokens.length) + Number(many)) + 2;
  const picture = canvas(1, height, "");
  const ctx = picture.getContext("2d");

  node.append(
    h("style", {}, STYLE),
    h("label", { class: "prompt" }, "prompt", field),
    h(
      "div",
      { class: "slot" },
      node.querySelector(".silence"),
      error,
      h("div", { class: "reads" }, lead, " ", seen, fresh),
    ),
    h(
      "div",
      { class: "columns" },
      picture,
      h(
        "div",
        { class: "side" },
        slider(model, "temperature", {
          label: "temperature τ",
          min: 0,
          max: 3,
          step: 0.05,
          show: (t) => (t ? t.toFixed(2) : "0 (greedy)"),
        }),
        slider(model, "top_k", {
          label: "top-k",
          min: 1,
          max: most,
          show: (k) => (k >= most ? "off" : String(k)),
        }),
        slider(model, "top_p", {
          label: "top-p",
          min: 0.01,
          max: 1,
          step: 0.01,
          show: (p) => (p >= 1 ? "off" : p.toFixed(2)),
        }),
        h("div", { class: "buttons" }, ...drawing, again),
        drawn,
        table,
        h(
          "ul",
          { class: "legend quiet" },
          key("likely", "probability of being sampled"),
          key("gone", "removed (original probability)"),
          key("own", "raw model (τ = 1, no cuts)"),
          key("tip", "next random number, on the scale of the kept tokens", "▼"),
        ),
      ),
    ),
  );

  const now = () =>
    distribution(
      ranked,
      model.get("temperature"),
      model.get("top_k") >= most ? tokens.length : model.get("top_k"),
      model.get("top_p"),
    );
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
    inks = Object.fromEntries(
      ["ink", "quiet", "line", "blue", "orange", "paper"].map((name) => [
        name,
        cssColor(node, name),
      ]),
    );
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
    paint();
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
      ctx.fillStyle = i === target ? inks.orange : inks.blue;
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

  function draw() {
    if (!wide) return;
    if (!inks.blue) readInks(); // not before: a node has its colours when it stands in the page
    if (!inks.blue) {
      paint();
      return;
    }
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
    const u = dart(model.get("seed"), draws);
    const target = hit(final, n, u);
    ruler(final, n, u, target);
    for (let i = 0; i < shown; i++)
      line(i, nameOf(ranks[i]), final[i], hot[i], plain.final[i], i === target);
    if (many) {
      const rest = (p) => p.subarray(SHOWN).reduce((a, b) => a + b, 0);
      line(
        SHOWN,
        `${ranked.length - SHOWN} others`,
        rest(final),
        rest(hot),
        rest(plain.final),
        target >= SHOWN,
      );
    }
    writeShort(cells.next, `${u.toFixed(3)} → ${signs(tokens[ranks[target]])}`, 40);
    setText(cells.entropy, Math.abs(entropy(final)).toFixed(2));
    setText(cells.plain, plain.bits.toFixed(2));
    setText(cells.kept, `${n} of ${ranked.length}`);
    setText(cells.mass, percent(mass));
    const top = ranks
      .slice(0, 5)
      .map(
        (id, i) => `${truncate(signs(tokens[id]), 40)} ${final[i] ? percent(final[i]) : "removed"}`,
      )
      .join(", ");
    picture.setAttribute(
      "aria-label",
      `Likeliest next tokens: ${top}. ${n} of ${ranked.length} kept.`,
    );
  }
  const paint = throttleToFrame(draw);
  picture.addEventListener("pointermove", ({ offsetY }) => {
    // the whole name of what is cut
    const i = Math.floor((offsetY - TOP) / ROW);
    const id = i < SHOWN ? ranks[i] : undefined;
    const title = id !== undefined && nameOf(id).endsWith("…") ? inFull(signs(tokens[id])) : "";
    if (picture.title !== title) picture.title = title;
  });

  /** Draw a token if one is wanted and the model has answered for the present prompt. */
  function step() {
    const answer = model.get("answer");
    const prompt = model.get("prompt");
    if (!waiting || answer.prompt !== prompt) return;
    if (answer.error || prompt.length > 3990) {
      waiting = 0;
      return;
    }
    waiting -= 1;
    const u = dart(model.get("seed"), draws);
    const { final, n } = now();
    last = tokens[ranks[hit(final, n, u)]];
    draws += 1;
    writeShort(drawn, `${u.toFixed(3)} selects “${truncate(signs(last), 100)}”`, 110);
    if (last) send(prompt + last);
    else {
      // a token without signs: the prompt is the one that was answered
      allowAgain();
      paint();
      step();
    }
  }

  function read() {
    const answer = model.get("answer");
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
      draw(); // at once: the kernel sends one answer for each prompt
    else paint();
  }
  /** Is there anything to start again from? */
  const allowAgain = () => {
    again.disabled = !draws && model.get("prompt") === first;
  };
  const refill = () => {
    allowAgain();
    if (field.value === model.get("prompt")) return;
    field.value = model.get("prompt");
    field.scrollTop = field.scrollHeight; // what was written last
  };

  for (const name of ["temperature", "top_k", "top_p"]) model.on(`change:${name}`, paint);
  model.on("change:answer", read);
  model.on("change:prompt", refill);
  const undo = onTheme(() => {
    readInks();
    paint();
  });
  const unwatch = onBreakpoint(node, lay);
  refill();
  read();
  return () => {
    undo();
    unwatch();
    model.off("change:answer", read);
    model.off("change:prompt", refill);
    for (const name of ["temperature", "top_k", "top_p"]) model.off(`change:${name}`, paint);
  };
}
export default live(render);
