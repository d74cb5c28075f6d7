// All happens here: the merges come once, and the text is cut at every slider position. It plays the merges
// that change the text, in the order in which they were learned.
const PACE = 900; // milliseconds for a merge
const GLUE = 550; // of them, until its boxes are one
const INKS = 5; // the colours of tokens, in base.css
const WIDEST = 40;
const BYTES = 10; // of a token, shown at most

function build({ model, node, get, slider, soon }) {
  const bytes = (name) => bytesOf(get(name));
  const bpe = byteLevel(bytes("alphabet"), new Int32Array(bytes("merges").buffer));
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
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
  const before = html`<ol class="before" />`;
  const counts = html`<p class="counts" />`;
  const list = html`<div class="list" role="listbox" aria-label="tokens" tabindex="0"
    aria-orientation="horizontal" />`;
  const detail = html`<div class="detail" role="status" aria-live="polite" />`;
  const merges = slider("used", "merges used", [0, bpe.count], (n) => `${n} of ${bpe.count}`);
  merges.className = "merges";

  let waited = 0; // milliseconds, for the next merge
  let glues = false; // do the boxes move to their new places?
  function move(ms) {
    const to = learnt(bpe.cut(cuttable(), bpe.count));
    if (ms && get("used") >= (to.at(-1) ?? 0)) model.set("used", 0);
    waited = ms && waited + ms;
    const next = to.find((n) => n > get("used"));
    if (next && waited >= PACE) {
      waited = 0;
      glues = true;
      model.set("used", next);
    }
    return get("used") < to.at(-1);
  }
  const page = html`
    <label class="typed">text${field}</label>
    ${warning}
    <div class="row">${player(model, move, PACE)}${merges}</div>
    <div class="board">
      ${list}
      <div>${last}${before}</div>
    </div>
    ${counts}${detail}`;

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
    frame.classList.toggle("made", id === bpe.first + get("used") - 1 && get("used") > 0);
    frame.setAttribute("role", "option");
    frame.textContent = named(id, WIDEST);
    if (frame.textContent !== name(id)) frame.title = inFull(name(id));
    return name(id).includes("⏎") ? html`<span role="presentation">${frame}${"\n"}</span>` : frame;
  }

  /** The merges that made these tokens, numbered from 1, as they were learned. */
  function learnt(ids) {
    const found = new Set();
    for (const todo = [...ids]; todo.length;) {
      const k = todo.pop() - bpe.first;
      if (k < 0 || found.has(k + 1)) continue;
      found.add(k + 1);
      todo.push(...merge(k));
    }
    return [...found].sort((a, b) => a - b);
  }
  /** Where the boxes are, and where in the text their bytes begin. */
  function places() {
    let end = 0;
    return spans.map((span, i) => {
      const box = frameOf(span).getBoundingClientRect();
      const begin = end;
      end += bpe.pieces[shown[i]].length;
      return { frame: frameOf(span), box, begin, end };
    });
  }
  /** Boxes slide from their old places to the new ones; two that became one slide over it, and go. */
  function glue(old) {
    const home = list.getBoundingClientRect();
    for (const { frame, box: now, end } of places()) {
      const parts = [];
      while (old[0]?.begin < end) parts.push(old.shift());
      const style = { duration: GLUE, easing: "ease-in-out" };
      parts.forEach(({ frame: ghost, box }, n) => {
        const x = n ? now.right - box.right : now.left - box.left;
        const [there, here] = [`translate(${x}px, ${now.top - box.top}px)`, "none"];
        if (parts.length === 1) {
          const from = `translate(${-x}px, ${box.top - now.top}px)`;
          if (x || box.top !== now.top)
            frame.animate([{ transform: from }, { transform: here }], style);
          return;
        }
        const [left, top] = [
          box.left - home.left + list.scrollLeft,
          box.top - home.top + list.scrollTop,
        ];
        ghost.removeAttribute("role");
        put(ghost, {
          "aria-hidden": "true",
          style: `position:absolute;margin:0;left:${left}px;top:${top}px`,
        });
        list.append(ghost);
        ghost.animate([{ transform: here }, { transform: there }], style).onfinish = () =>
          ghost.remove();
      });
      if (parts.length > 1) frame.animate([{ opacity: 0 }, { opacity: 0 }], { duration: GLUE });
    }
  }

  /** The text that is cut: its beginning, if it is too long. */
  const cuttable = () =>
    Array.from(get("text").toWellFormed?.() ?? get("text"))
      .slice(0, longest)
      .join("");
  function paint() {
    const [text, n, size] = [cuttable(), get("used"), Array.from(get("text")).length];
    setText(
      warning,
      size > longest
        ? `The text has ${size} characters. Only the first ${longest} are tokenised.`
        : "",
    );
    const old = glues ? places() : null;
    choose(-1);
    shown = bpe.cut(text, n);
    spans = shown.map(framed);
    list.replaceChildren(...spans);
    if (old && !calm) glue(old);
    glues = false;
    const [bytes, signs] = [new TextEncoder().encode(text).length, Array.from(text).length];
    const each = shown.length ? (signs / shown.length).toFixed(2) : "–";
    counts.replaceChildren(
      `${signs} characters · ${bytes} bytes · `,
      html`<b><span class="tokens">${shown.length}</span> tokens</b>`,
      ` · ${each} characters per token · ${bpe.first + n} tokens in the vocabulary`,
    );
    const done = learnt(shown);
    const line = (k) => {
      const [left, right] = merge(k - 1);
      return `${k}: ${named(left, 12)} + ${named(right, 12)} → ${named(bpe.first + k - 1)}`;
    };
    setText(last, n ? line(n) : "no merges: every byte is a token");
    last.title = last.textContent;
    last.classList.toggle("unused", n > 0 && !done.includes(n));
    const earlier = done.filter((k) => k < n).reverse();
    before.replaceChildren(...earlier.slice(0, 12).map((k) => html`<li>${line(k)}</li>`));
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
