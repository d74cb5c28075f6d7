// One text through the whole model. gpt.js computes here; its weights come when they are first needed,
// from the kernel or, in the book, from a file. Only then are the stages after the tokens open.
// sentence_state.js holds what is computed and chosen, sentence_stages.js draws the open stage.
const SMALL_MAP = 16;
const EDGE = 14; // the size of a small map, and room for numbers beside all of them

/** A row or a table of buttons of which one is chosen: only that one is a stop of Tab, arrow keys move.
    columns: of the table; choose(n): the n-th is chosen. */
function rovingFocus(box, columns, choose) {
  box.addEventListener("keydown", (event) => {
    const all = [...box.querySelectorAll("[data-n]")];
    const at = all.indexOf(event.target);
    const to = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at - columns,
      ArrowDown: at + columns,
      Home: 0,
      End: all.length - 1,
    }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    if (!all[to]) return;
    all[to].focus();
    choose(Number(all[to].dataset.n));
  });
  box.addEventListener("click", ({ target }) => {
    const one = target.closest("[data-n]");
    if (one) choose(Number(one.dataset.n));
  });
}
function markChosen(box, chosen) {
  for (const one of box.querySelectorAll("[data-n]")) {
    const on = String(Number(one.dataset.n) === chosen);
    if (one.getAttribute("aria-selected") === on) continue; // what is written is laid out anew, equal or not
    one.setAttribute("aria-selected", on);
    one.tabIndex = on === "true" ? 0 : -1;
  }
}

/** The text field, and texts to choose from. */
function textRow(s) {
  const { model, get } = s;
  const type = () => {
    s.key = -1;
    s.load();
    s.change({ text: field.value.replaceAll("⏎", "\n"), position: -1 });
  };
  const keep = () => {
    if (!s.isAblated()) s.anchor = get("text");
  };
  const field = html`<input type="text" aria-label="text" maxlength=${MOST_LETTERS} spellcheck="false"
    autocomplete="off" autocapitalize="off" data-entry="" onfocus=${keep} oninput=${type} />`;
  const chip = (text) =>
    html`<button type="button" title=${text} onclick=${() => s.begin(text)}>${truncate(text, 15)}</button>`;
  const asLine = (text) => text.replaceAll("\n", "⏎"); // which a field of one line would lose
  field.value = asLine(get("text"));
  const read = () => {
    const text = get("text");
    if (field.value === asLine(text)) return;
    field.value = asLine((s.anchor = text));
    field.scrollLeft = field.scrollWidth; // what was appended is seen
  };
  model.on("change:text", read);
  return html`<div class="given">
    <label>text${field}</label><span class="chips">${get("examples").map(chip)}</span>
  </div>`;
}

/** The tokens, one of them followed. */
function tokenStrip(s) {
  const node = html`<div class="strip" role="listbox" aria-label="tokens: choose the one to follow"
    aria-orientation="horizontal" />`;
  rovingFocus(node, 1, (n) => {
    s.key = -1;
    s.change({ position: n === s.ids.length - 1 ? -1 : n });
  });
  const button = (id, n) => html`<button type="button" role="option" data-n=${n}
    aria-label="token ${n + 1}: ${s.name(id)}, number ${id}">
    <span>${truncate(s.name(id), 14)}</span><small>${id}</small>
  </button>`;
  function paint() {
    if (node.dataset.ids !== s.ids.join()) {
      node.dataset.ids = s.ids.join();
      node.replaceChildren(...s.ids.map(button));
    }
    markChosen(node, s.position());
  }
  return { node, paint };
}

/** The seven stages, one open. */
function stageTabs(s) {
  const tab = ({ name }, n) => html`<button type="button" role="tab" data-n=${n}>
    <b>${n + 1}</b><span>${name}</span><small />
  </button>`;
  const node = html`<div class="road" role="tablist" aria-label="stages">${STAGES.map(tab)}</div>`;
  rovingFocus(node, 1, (n) => {
    if (n > 0) s.load();
    s.change({ stage: STAGES[n].name });
  });
  /** What each stage does, or what comes out of it for the chosen token and head. */
  function results() {
    const { ids, gpt, probs } = s;
    const { L, C, hs } = s.shape;
    const T = ids.length;
    const lines = [
      `${T} ${T === 1 ? "token" : "tokens"}`,
      `${C} numbers`,
      "q · k",
      "softmax",
      `${hs} numbers`,
      `${L} layers`,
      "",
    ];
    if (probs.length) {
      const [best] = largest(probs, 1);
      lines[6] = `${truncate(s.name(best), 7)} ${(100 * probs[best]).toFixed(0)}%`;
    }
    if (T && gpt) {
      const i = s.position();
      const l = s.get("layer");
      const n = s.get("head");
      const [most] = largest(
        Float32Array.from(ids, (_, j) => (s.isOpen(i, j) ? gpt.score(l, n, i, j) : -Infinity)),
        1,
      );
      lines[2] = `up to ${fixed(gpt.score(l, n, i, most))}`;
      lines[3] = `up to ${(100 * s.weight(l, n, i, most)).toFixed(0)}%`;
      lines[5] = `length ${norm(gpt.last.subarray(i * C, i * C + C)).toFixed(1)}`;
    }
    return lines;
  }
  function paint() {
    const lines = results();
    node.querySelectorAll("small").forEach((line, n) => setText(line, lines[n]));
    markChosen(
      node,
      STAGES.findIndex(({ name }) => name === s.get("stage")),
    );
  }
  return { node, paint };
}

/** The weights of all heads, in small, numbered; the chosen one is framed by its button (see the style). */
function paintHeads(s, maps) {
  const { ids, inks } = s;
  const { L, H } = s.shape;
  const T = ids.length;
  const step = SMALL_MAP + 3;
  const off = new Set(s.get("off"));
  const ctx = fit(maps, EDGE + H * step, EDGE + L * step);
  ctx.imageSmoothingEnabled = T > SMALL_MAP;
  const all = tile(inks, L * T, H * T, (y, x) =>
    Math.sqrt(s.weight(Math.floor(y / T), Math.floor(x / T), y % T, x % T)),
  );
  Object.assign(ctx, {
    strokeStyle: inks.line,
    fillStyle: inks.quiet,
    textAlign: "center",
    textBaseline: "middle",
    font: `11px ${getComputedStyle(maps.closest(".d2g")).fontFamily}`,
  });
  for (let n = 0; n < H; n++) ctx.fillText(String(n), EDGE + (n + 0.5) * step, EDGE / 2);
  for (let l = 0; l < L; l++) {
    ctx.fillText(String(l), EDGE / 2, EDGE + (l + 0.5) * step);
    for (let n = 0; n < H; n++) {
      const x = EDGE + n * step + 1.5;
      const y = EDGE + l * step + 1.5;
      ctx.strokeRect(x - 0.5, y - 0.5, SMALL_MAP + 1, SMALL_MAP + 1);
      if (off.has(l * H + n)) crossOut(ctx, x, y, SMALL_MAP);
      else ctx.drawImage(all, n * T, l * T, T, T, x, y, SMALL_MAP, SMALL_MAP);
    }
  }
}
function crossOut(ctx, x, y, size) {
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(x + size, y + size);
  ctx.moveTo(x + size, y);
  ctx.lineTo(x, y + size);
  ctx.stroke();
}

/** All heads to choose from, and what can be switched off: the chosen head, the mask. */
function headPicker(s) {
  const { L, H } = s.shape;
  const { get } = s;
  const maps = html`<canvas aria-hidden="true" />`;
  const head = (_, n) => html`<button type="button" role="option" data-n=${n}
    aria-label="layer ${Math.floor(n / H)}, head ${n % H}" />`;
  const switchOff = ({ key }) => key.toLowerCase() === "x" && s.toggleHead();
  const grid = html`<div class="heads" role="listbox" aria-label="layer and head" style="--heads: ${H};"
    title="Click or use the arrow keys to choose a head; press X to switch it off or on"
    onkeydown=${switchOff}>${Array.from({ length: L * H }, head)}</div>`;
  rovingFocus(grid, H, (n) => {
    s.key = -1;
    s.change({ layer: Math.floor(n / H), head: n % H });
  });
  const mask = () => {
    s.load();
    s.change({ masked: maskOn.checked });
  };
  const headOn = html`<input type="checkbox" onchange=${() => s.toggleHead()} />`;
  const maskOn = html`<input type="checkbox" onchange=${mask} />`;
  const which = html`<div class="which" />`;
  const node = html`<div class="machine">
    ${which}
    <div class="maps">${maps}${grid}</div>
    <div class="axes quiet">head →, layer ↓ (from 0)</div>
    <label>${headOn}this head is on</label>
    <label>${maskOn}mask</label>
  </div>`;
  function paint() {
    setText(which, `layer ${get("layer")}, head ${get("head")}`);
    markChosen(grid, s.chosenHead());
    headOn.checked = !get("off").includes(s.chosenHead());
    maskOn.checked = get("masked");
    if (s.stale.heads) paintHeads(s, maps);
    s.stale.heads = false;
  }
  return { node, paint };
}

/** A link to a chapter, by the stem of its file. */
function toChapter(stem, inBook) {
  const number = stem.slice(0, 2);
  if (inBook) return html`<a href="${stem}.html">${number}</a>`;
  if (!location.pathname.includes("/tree/")) return number;
  return html`<a href="${stem}.ipynb" target="_blank">${number}</a>`;
}

/** The open stage. */
function stagePanel(s) {
  const { get } = s;
  const saying = html`<p class="say" />`;
  const warning = html`<p class="warning" role="status" />`;
  const links = html`<span class="links quiet" />`;
  const heads = headPicker(s);
  const drawing = html`<div class="drawing" />`;
  rovingFocus(drawing, 1, (n) => {
    s.key = n;
    s.paint();
  });
  const node = html`<div class="panel" role="tabpanel">
    <div class="told">${saying}${links}</div>
    ${warning}
    <div class="work">${heads.node}${drawing}</div>
  </div>`;

  /** The key that is shown: the one that was clicked, or the one with the largest number. */
  function shownKey(n, i, l, head) {
    if (s.key >= 0 && s.key < s.ids.length) return s.key;
    if (n < 2 || n > 4) return -1;
    const row =
      n === 2
        ? Float32Array.from(s.ids, (_, m) => s.gpt.score(l, head, i, m))
        : s.weightRow(l, head, i);
    return largest(row, 1)[0];
  }
  function paintDrawing(stage, n) {
    const i = s.position();
    const l = get("layer");
    const head = get("head");
    const active = node.getRootNode().activeElement;
    const held = drawing.contains(active) && active.dataset.n;
    drawing.replaceChildren(...stage.draw(s, i, shownKey(n, i, l, head), l, head));
    node.dataset.stage = stage.name;
    if (held) drawing.querySelector(`[data-n="${held}"]`)?.focus();
    if (!heads.node.hidden) heads.paint();
  }
  function loadButton() {
    if (!s.ids.length || s.loading) return [];
    return html`<button type="button" onclick=${() => s.load()}>Load the weights and compute it here</button>`;
  }
  function paint() {
    const { ids, gpt, trouble } = s;
    const T = ids.length;
    const n = STAGES.findIndex(({ name }) => name === get("stage"));
    const stage = STAGES[n];
    node.setAttribute("aria-label", `stage ${n + 1}: ${stage.name}`);
    setText(
      saying,
      T
        ? stage.explain({ T, ...s.shape })
        : "Type some text (at least one token) to get a continuation.",
    );
    links.replaceChildren(
      ...stage.links.flatMap((stem, k) => [k ? ", " : "chapter ", toChapter(stem, s.inBook)]),
    );
    setText(warning, trouble || (n > 0 && T > 0 ? s.loadingText() : ""));
    const ready = T > 0 && (gpt || n === 0);
    heads.node.hidden = !ready || n < 2 || n > 5;
    if (ready) paintDrawing(stage, n);
    else drawing.replaceChildren(...[loadButton()].flat());
  }
  return { node, paint };
}

/** Bars of the likeliest next tokens, and one of all others. */
function probabilityRows(s) {
  const rows = Array.from({ length: LINES.large.next + 1 }, () => {
    const name = html`<th scope="row" />`;
    const number = html`<td class="number" />`;
    const bar = html`<i class="bar" />`;
    const tick = html`<i class="tick" />`;
    const node = html`<tr>${name}<td class="long" aria-hidden="true">${bar}${tick}</td>${number}</tr>`;
    return { name, number, bar, tick, node };
  });
  function paintRow(row, name, prob, compared) {
    setText(row.name, name);
    setText(row.number, percent(prob));
    row.bar.style.width = `${100 * prob}%`;
    row.tick.hidden = compared === undefined;
    if (compared !== undefined) row.tick.style.left = `min(calc(100% - 2px), ${100 * compared}%)`;
  }
  function clearRow(row) {
    setText(row.name, "");
    setText(row.number, "");
    row.bar.style.width = 0;
    row.tick.hidden = true;
  }
  /** compare: other probabilities, marked by ticks, or undefined. */
  function paint(compare) {
    const { probs } = s;
    const many = linesShown(s).next;
    const order = probs.length ? largest(probs, many) : [];
    const others = `${grouped(s.shape.V - many)} others`;
    const rest = (all) =>
      all &&
      Math.max(
        0,
        order.reduce((sum, id) => sum - all[id], 1),
      );
    rows.forEach((row, n) => {
      row.node.hidden = n > many;
      if (!probs.length || n > many) return clearRow(row);
      row.node.className = n === many ? "others" : "";
      if (n === many) paintRow(row, others, rest(probs), rest(compare));
      else paintRow(row, truncate(s.name(order[n]), 12), probs[order[n]], compare?.[order[n]]);
    });
  }
  return { node: html`<tbody>${rows.map((row) => row.node)}</tbody>`, paint };
}

/** What the bars are compared with: [probabilities, words], or nothing. */
function comparison(s) {
  const { before, logits, anchor } = s;
  if (s.get("temperature") !== 1 || s.isAblated())
    return [softmax(before?.logits ?? logits, 1), "as trained, temperature 1"];
  return before ? [softmax(before.logits, 1), `before: “…${anchor.slice(-18)}”`] : [];
}

/** The next token: its probabilities, what they are compared with, and what can be done. */
function answerPanel(s) {
  const rows = probabilityRows(s);
  const heading = html`<div class="heading" />`;
  const legend = html`<div class="legend quiet" />`;
  const calm = () => s.change({ off: [], masked: true, temperature: 1 });
  const sample = html`<button type="button" onclick=${() => s.sample()}
    title="Sample the next token from these probabilities and append it">Sample next token</button>`;
  const reset = html`<button type="button" onclick=${calm}
    title="all heads on, mask on, temperature 1">Reset</button>`;
  const saying = html`<span />`;
  const loading = html`<div class="loading quiet">${saying}<progress /></div>`;
  const node = html`<div class="answer">
    ${heading}<table>${rows.node}</table>${legend}
    ${slider(s.model, "temperature", { min: 0.1, max: 3, step: 0.1, show: (t) => t.toFixed(1) })}
    <div class="row">${sample}${reset}</div>
    ${loading}
  </div>`;
  const spoken = html`<p class="unseen" role="status" aria-live="polite" />`;
  const speak = debounce(() => {
    const best = largest(s.probs, 3).map((id) => `${s.name(id)} ${percent(s.probs[id])}`);
    setText(spoken, best.length ? `Most likely next: ${best.join(", ")}.` : "");
  }, 400);

  let shown = "";
  function paint() {
    setText(saying, s.loadingText());
    loading.hidden = !s.loadingText();
    const t = s.get("temperature");
    const now = `${t} ${linesShown(s).next}`; // all that changes what was computed into a picture
    if (!s.stale.answer && shown === now) return;
    s.stale.answer = false;
    shown = now;
    const none = !s.logits.length;
    s.probs = none ? [] : softmax(s.logits, t);
    const [compare, words] = comparison(s);
    setText(heading, none ? "next token" : `next token, after “${s.word(s.ids.length - 1)}”`);
    rows.paint(compare);
    setText(legend, compare ? `│ ${words}` : "");
    reset.disabled = t === 1 && !s.isAblated();
    sample.disabled = none;
    node.style.opacity = none ? 0.4 : 1;
    speak();
  }
  return { node, spoken, paint, stop: speak.stop };
}

function build({ model, node, soon }) {
  const s = new SentenceState(model, paint);
  const strip = tokenStrip(s);
  const tabs = stageTabs(s);
  const panel = stagePanel(s);
  const answer = answerPanel(s);
  const page = html`
    ${textRow(s)}${strip.node}${tabs.node}
    <div class="both">${panel.node}${answer.node}</div>
    ${answer.spoken}`;

  function paint() {
    if (!strip.node.isConnected) return soon(); // a node has its colours when it stands in the page
    s.inks ??= readInks(node);
    for (const part of [strip, answer, tabs, panel]) part.paint(); // the tabs name the answer
  }
  // What Python, or the slider, has set.
  for (const trait of COMPUTED_FROM) model.on(`change:${trait}`, () => s.changing || s.compute());
  for (const trait of SHOWN_FROM) model.on(`change:${trait}`, () => s.changing || paint());
  const lay = (wide) => (s.narrow = wide < 1);
  s.compute();
  const seen = new IntersectionObserver((all) => all.some((one) => one.isIntersecting) && s.load());
  if (s.inBook) seen.observe(node);
  else s.load();
  const theme = () => {
    s.inks = null;
    s.stale.heads = true;
  };
  // For tests: what is computed.
  Object.assign(node, {
    gpt: () => s.gpt,
    ids: () => s.ids,
    probabilities: () => Array.from(s.probs),
  });
  const stop = () => {
    seen.disconnect();
    answer.stop();
    s.set.stop();
  };
  return { page, paint, lay, theme, stop };
}

export default explorer({
  name: "sentence",
  title: "One text through the whole model",
  traits: [],
  edges: [560],
  build,
});
