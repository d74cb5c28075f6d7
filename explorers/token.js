// All happens here: the merges come once, and the text is cut at every slider position.
const INKS = 5; // the colours of tokens, in base.css
const WIDEST = 40;
const BYTES = 10; // of a token, shown at most

function build({ model, node, get, slider, soon }) {
  const bytes = (name) => bytesOf(get(name));
  const bpe = byteLevel(bytes("alphabet"), new Int32Array(bytes("merges").buffer));
  const names = new Map();
  const longest = get("longest");
  const name = (id) => {
    if (!names.has(id)) names.set(id, readable(bpe.pieces[id]));
    return names.get(id);
  };
  // For tests: the ids of a text after n merges.
  node.cut = (text, n) => bpe.cut(text, n);

  const typed = () => set({ text: field.value.toWellFormed?.() ?? field.value });
  const field = html`<textarea rows="3" aria-label="text" spellcheck="false" autocomplete="off"
    autocapitalize="off" oninput=${typed} />`;
  const warning = html`<div class="warning" role="status" aria-live="polite" />`;
  const last = html`<div class="last" />`;
  const cells = {};
  const counted = (key, label) => {
    cells[key] = html`<span class="number ${key}" />`;
    return html`<div><span>${label}</span> ${cells[key]}</div>`;
  };
  const list = html`<div class="list" role="listbox" aria-label="tokens" tabindex="0"
    aria-orientation="horizontal" />`;
  const detail = html`<div class="detail" role="status" aria-live="polite" />`;
  const merges = slider("used", "merges used", [0, bpe.count], (n) => `${n} of ${bpe.count}`);
  merges.className = "merges";
  const page = html`<div class="columns">
    <div class="given">
      <label class="typed">text${field}</label>
      ${warning}${merges}${last}
      <div class="counts">
        ${counted("characters", "characters")}
        ${counted("bytes", "bytes")}
        ${counted("tokens", "tokens")}
        ${counted("each", "characters per token")}
        ${counted("size", "size of the vocabulary")}
      </div>
    </div>
    <div class="made">${detail}${list}</div>
  </div>`;

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
    frame.className = `piece k${id % INKS}`;
    frame.setAttribute("role", "option");
    frame.textContent = named(id, WIDEST);
    if (frame.textContent !== name(id)) frame.title = inFull(name(id));
    return name(id).includes("⏎") ? html`<span role="presentation">${frame}${"\n"}</span>` : frame;
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

  function paint() {
    let text = get("text");
    if (text.toWellFormed) text = text.toWellFormed();
    const points = Array.from(text);
    const n = get("used");
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
  const set = debouncedSet(model, ["text"], 300); // for the still picture only
  const read = () => {
    if (field.value !== get("text").replace(/\r\n?/g, "\n")) field.value = get("text");
    soon();
  };
  model.on("change:text", read);
  field.value = get("text");
  return { page, paint, stop: set.stop };
}

export default explorer({
  name: "token-explorer",
  title: "Token explorer: a text and the tokens it is cut into",
  traits: ["used"],
  build,
});
