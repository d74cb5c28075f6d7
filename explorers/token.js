// All happens here: the merges come once, and the text is cut at every slider position.
const INKS = ["blue", "orange", "green", "pink", "ink"];
const WIDEST = 40;
const BYTES = 10; // of a token, shown at most

/** A stroke that stands out from the paper at least 3:1, in both themes. */
const stroke = (ink) => `color-mix(in srgb, var(--${ink}) 75%, var(--ink))`;

const STYLE = `
  .token-explorer .columns { gap: 4px 16px; }
  .token-explorer .columns > div { flex: 1 1 100%; min-width: 0; display: grid; grid-template-columns: minmax(0, 1fr); gap: 5px; }
  .token-explorer .typed { align-items: flex-start; margin: 3px 4px 0 0; }
  .token-explorer textarea { flex: 1; min-width: 0; height: 68px; box-sizing: border-box; resize: none; overscroll-behavior: contain; padding: 3px 8px;
    font-family: var(--jp-code-font-family, monospace); background: var(--paper); border: 1px solid var(--line); border-radius: 4px; }
  .token-explorer .warning:empty { display: none; }
  .token-explorer .merges { margin-right: 4px; }
  .token-explorer .merges input { flex: 1; min-width: 0; margin: 2px 0; }
  .token-explorer .last { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; unicode-bidi: isolate; }
  .token-explorer .counts { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 2px 12px; }
  .token-explorer .counts span { display: block; }
  .token-explorer .number { font-family: var(--jp-code-font-family, monospace); font-variant-numeric: tabular-nums; }
  .token-explorer .detail { height: 2.9em; overflow: hidden; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
  .token-explorer .list { font-family: var(--jp-code-font-family, monospace); white-space: pre-wrap; line-height: 1.9; padding: 4px; margin: 0 5px 5px;
    border: 1px solid var(--line); border-radius: 4px; min-height: 28px; max-height: 260px; overflow: auto; contain: content; }
  .token-explorer .piece { border: 1px solid; border-bottom-width: 3px; border-radius: 4px; padding: 1px 2px; margin: 0 1px; cursor: default;
    display: inline-block; max-width: 100%; box-sizing: border-box; overflow-wrap: anywhere; line-height: 1.35; }
  ${INKS.map((ink, i) => `.token-explorer .k${i} { border-color: ${stroke(ink)}; background: color-mix(in srgb, var(--${ink}) 16%, transparent); }`).join("\n  ")}
  .token-explorer .piece.on { outline: 3px solid var(--focus); outline-offset: 1px; font-weight: 700; }
  @container explorer (max-width: 480px) { .token-explorer .detail { height: 4.35em; } }
  @container explorer (min-width: 760px) {
    .token-explorer .columns > .given { flex: 0 0 330px; }
    .token-explorer .columns > .made { flex: 1 1 0; }
    .token-explorer .typed { display: grid; gap: 3px; }
    .token-explorer textarea { height: 172px; }
    .token-explorer .merges { display: grid; grid-template-columns: 1fr auto; gap: 0 6px; }
    .token-explorer .merges input { grid-area: 2 / 1 / 3 / 3; width: 100%; box-sizing: border-box; }
    .token-explorer .counts { display: grid; justify-content: stretch; }
    .token-explorer .counts > div { display: flex; justify-content: space-between; border-bottom: 1px solid var(--panel); }
    .token-explorer .list { max-height: 420px; }
  }`;

function render({ model, el }) {
  const node = root(el, "token-explorer", "Token explorer: a text and the tokens it is cut into");
  const bytes = (name) => bytesOf(model.get(name));
  const bpe = byteLevel(bytes("alphabet"), new Int32Array(bytes("merges").buffer));
  const names = new Map();
  const longest = model.get("longest");
  const name = (id) => {
    if (!names.has(id)) names.set(id, readable(bpe.pieces[id]));
    return names.get(id);
  };
  // For tests: the ids of a text after n merges.
  node.cut = (text, n) => bpe.cut(text, n);

  const field = h("textarea", {
    rows: 3,
    "aria-label": "text",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
  });
  const warning = h("div", { class: "warning", role: "status", "aria-live": "polite" });
  const last = h("div", { class: "last" });
  const cells = {};
  const counted = (key, label) =>
    h("div", {}, h("span", {}, label), " ", (cells[key] = h("span", { class: `number ${key}` })));
  const list = h("div", {
    class: "list",
    role: "listbox",
    "aria-label": "tokens",
    tabindex: 0,
    "aria-orientation": "horizontal",
  });
  const detail = h("div", { class: "detail", role: "status", "aria-live": "polite" });
  const sliding = slider(model, "used", {
    label: "merges used",
    min: 0,
    max: bpe.count,
    show: (n) => `${n} of ${bpe.count}`,
  });
  sliding.className = "merges";

  node.append(
    h("style", {}, STYLE),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "given" },
        h("label", { class: "typed" }, "text", field),
        warning,
        sliding,
        last,
        h(
          "div",
          { class: "counts" },
          counted("characters", "characters"),
          counted("bytes", "bytes"),
          counted("tokens", "tokens"),
          counted("each", "characters per token"),
          counted("size", "size of the vocabulary"),
        ),
      ),
      h("div", { class: "made" }, detail, list),
    ),
  );

  let shown = [];
  let spans = [];
  let active = -1;

  const named = (id, longest = 24) => truncate(name(id), longest);
  function spelt(id) {
    const piece = bpe.pieces[id];
    return piece.length > BYTES ? `${hex(piece.slice(0, BYTES))} … (${piece.length})` : hex(piece);
  }
  function tell() {
    if (active < 0) {
      setText(
        detail,
        "Each box is one token (colours repeat). Hover over one, or use the arrow keys. " +
          "␣ space · ⏎ line break · ‹F0› a byte that is not a whole character",
      );
      return;
    }
    const id = shown[active];
    const k = id - bpe.first;
    const [left, right] = k < 0 ? [] : merge(k);
    setText(
      detail,
      `token ${active + 1} of ${shown.length}: ${named(id, 14)} · id ${id} · bytes ${spelt(id)} · ` +
        (k < 0
          ? "a single byte, part of the vocabulary from the start"
          : `merge ${k + 1}: ${named(left, 14)} + ${named(right, 14)}`),
    );
  }
  const pairs = new Int32Array(bytes("merges").buffer);
  const merge = (k) => [pairs[2 * k], pairs[2 * k + 1]];

  const frameOf = (span) => span?.firstElementChild ?? span;
  const under = ({ target }) => spans.findIndex((span) => frameOf(span) === target);

  function choose(i, scroll) {
    const old = frameOf(spans[active]);
    if (old) {
      old.classList.remove("on");
      old.removeAttribute("aria-selected");
      old.removeAttribute("id");
    }
    active = i;
    const now = frameOf(spans[active]);
    if (now) {
      now.classList.add("on");
      now.setAttribute("aria-selected", "true");
      now.id = `${list.dataset.name}-on`;
      list.setAttribute("aria-activedescendant", now.id);
      if (scroll) now.scrollIntoView({ block: "nearest" });
    } else list.removeAttribute("aria-activedescendant");
    tell();
  }
  list.dataset.name = `tokens-${Math.random().toString(36).slice(2)}`;
  list.addEventListener("keydown", (event) => {
    const to = {
      ArrowRight: active + 1,
      ArrowDown: active + 1,
      ArrowLeft: active - 1,
      ArrowUp: active - 1,
      Home: 0,
      End: shown.length - 1,
    }[event.key];
    if (to === undefined || !shown.length) return;
    event.preventDefault();
    choose(Math.max(0, Math.min(shown.length - 1, to)), true);
  });
  list.addEventListener("focus", () => {
    if (active < 0 && shown.length && list.matches(":focus-visible")) choose(0, true);
  });
  list.addEventListener("pointerover", (event) => {
    const i = under(event);
    if (i >= 0 && i !== active) choose(i, false);
  });
  list.addEventListener("click", (event) => {
    const i = under(event);
    if (i >= 0) choose(i, false);
  });

  /** A frame for a token; a line break in it breaks the line behind the frame. */
  function framed(id) {
    const frame = document.createElement("span"); // by hand: there may be thousands
    frame.className = `piece k${id % INKS.length}`;
    frame.setAttribute("role", "option");
    frame.textContent = named(id, WIDEST);
    if (frame.textContent !== name(id)) frame.title = inFull(name(id));
    return name(id).includes("⏎") ? h("span", { role: "presentation" }, frame, "\n") : frame;
  }

  /** Bring the frames up to the new ids; a token that stays where it was keeps its frame. */
  function update(ids) {
    let a = 0;
    let b = 0;
    const less = Math.min(ids.length, shown.length);
    const size = (id) => bpe.pieces[id].length;
    while (a < less && ids[a] === shown[a]) a += 1;
    while (b < less - a && ids[ids.length - 1 - b] === shown[shown.length - 1 - b]) b += 1;
    const oldEnd = shown.length - b;
    const newEnd = ids.length - b;
    const middle = [];
    // Between, tokens that begin at the same byte are compared: a merge changes few of them.
    for (let i = a, j = a, ahead = 0; i < oldEnd || j < newEnd;) {
      // ahead: bytes of new minus of old
      if (i < oldEnd && j < newEnd && ahead === 0 && shown[i] === ids[j]) {
        middle.push(spans[i]);
        i += 1;
        j += 1;
      } else if (j < newEnd && (ahead <= 0 || i >= oldEnd)) {
        middle.push(framed(ids[j]));
        list.insertBefore(middle.at(-1), spans[i] ?? null);
        ahead += size(ids[j]);
        j += 1;
      } else {
        spans[i].remove();
        ahead -= size(shown[i]);
        i += 1;
      }
    }
    return [...spans.slice(0, a), ...middle, ...spans.slice(oldEnd)];
  }

  function draw() {
    let text = model.get("text");
    if (text.toWellFormed) text = text.toWellFormed();
    const points = Array.from(text);
    const n = model.get("used");
    setText(
      warning,
      points.length > longest
        ? `The text has ${points.length} characters. Only the first ${longest} are tokenised.`
        : "",
    );
    if (points.length > longest) text = points.slice(0, longest).join("");
    const ids = bpe.cut(text, n);
    choose(-1);
    spans = update(ids);
    shown = ids;
    const size = Math.min(points.length, longest);
    setText(cells.characters, String(size));
    setText(cells.bytes, String(new TextEncoder().encode(text).length));
    setText(cells.tokens, String(ids.length));
    setText(cells.each, ids.length ? (size / ids.length).toFixed(2) : "–");
    setText(cells.size, String(bpe.first + n));
    const [left, right] = n ? merge(n - 1) : [];
    setText(
      last,
      n
        ? `last merge (number ${n}): ${named(left)} + ${named(right)} → ${named(bpe.first + n - 1)}`
        : "no merges: every byte is a token",
    );
    last.title = n
      ? inFull(`${named(left, 90)} + ${named(right, 90)} → ${named(bpe.first + n - 1, 90)}`)
      : "";
  }
  const paint = throttleToFrame(draw);
  const set = debouncedSet(model, ["text"], 300); // for the still picture only
  field.addEventListener("input", () => set({ text: field.value.toWellFormed?.() ?? field.value }));
  const read = () => {
    if (field.value !== model.get("text").replace(/\r\n?/g, "\n")) field.value = model.get("text");
    paint();
  };
  model.on("change:text", read);
  model.on("change:used", paint);
  field.value = model.get("text");
  draw();
  return () => {
    set.stop();
    model.off("change:text", read);
    model.off("change:used", paint);
  };
}
export default live(render);
