// All happens here: the merges come once, and the text is cut at every slider position. It plays the merges
// that change the text, in the order in which they were learned.
const INKS = 5; // the colours of tokens, in base.css
const WIDEST = 40;
const MOVING = 300; // boxes that slide, at most
const PACE = 900; // milliseconds for a merge
const GLUE = 550; // of them, until its boxes are one

function build({ model, node, get, slider, soon }) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const pairs = new Int32Array(bytesOf(get("merges")).buffer);
  const merge = (k) => [pairs[2 * k], pairs[2 * k + 1]];
  const bpe = byteLevel(bytesOf(get("alphabet")), pairs);
  const names = new Map();
  const longest = get("longest");
  const name = (id) => {
    if (!names.has(id)) names.set(id, readable(bpe.pieces[id]));
    return names.get(id);
  };
  const named = (id, most = 24) => truncate(name(id), most);
  // For tests: the ids of a text after n merges.
  node.cut = (text, n) => bpe.cut(text, n);

  const typed = () => set({ text: field.value.toWellFormed?.() ?? field.value });
  const field = html`<textarea rows="2" aria-label="text" spellcheck="false" autocomplete="off"
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

  let [of, to] = ["", []]; // a text, and the merges that change it
  let waited = 0; // milliseconds, for the next merge
  let glues = false; // do the boxes move to their new places?
  function move(ms) {
    if (cuttable() !== of) [of, to] = [cuttable(), learnt(bpe.cut(cuttable(), bpe.count))];
    if (ms && get("used") >= (to.at(-1) ?? 0)) model.set("used", 0);
    waited = ms && waited + ms;
    if (waited >= PACE && to.length) {
      waited = 0;
      glues = !calm && shown.length <= MOVING;
      model.set(
        "used",
        to.find((n) => n > get("used")),
      );
    }
    return get("used") < to.at(-1);
  }
  const page = html`
    <label class="typed">text${field}</label>
    ${warning}
    <div class="row">${player(model, move, PACE)}${merges}</div>
    ${counts}
    <div class="board">${list}<div>${last}${before}</div></div>
    ${detail}`;

  let shown = [];
  let spans = [];
  let active = -1;

  function tell() {
    const id = shown[active];
    const made = (k) => {
      const [left, right] = merge(k);
      return `merge ${k + 1}: ${named(left, 14)} + ${named(right, 14)}`;
    };
    setText(
      detail,
      active < 0
        ? "Each box is one token (colours repeat). Hover over one, or use the arrow keys. " +
            "␣ space · ⏎ line break · ‹F0› a byte that is not a whole character"
        : `token ${active + 1} of ${shown.length}: ${named(id, 14)} · id ${id} · ` +
            (id < bpe.first
              ? "a single byte, part of the vocabulary from the start"
              : made(id - bpe.first)),
    );
  }
  const frameOf = (span) => span?.firstElementChild ?? span;

  function choose(i, scroll) {
    const mark = (span, on) => {
      const frame = frameOf(span);
      frame?.classList.toggle("on", on);
      if (frame) put(frame, { "aria-selected": on && "true", id: on && list.dataset.name });
      return Boolean(frame);
    };
    mark(spans[active], false);
    active = i;
    put(list, { "aria-activedescendant": mark(spans[i], true) && list.dataset.name });
    if (scroll) frameOf(spans[i]).scrollIntoView({ block: "nearest" });
    tell();
  }
  list.dataset.name = `token-${Math.random().toString(36).slice(2)}`;
  list.addEventListener("keydown", ({ key }) => {
    const all = shown.length - 1;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -all, End: all };
    if (step[key] !== undefined && shown.length)
      choose(Math.max(0, Math.min(all, active + step[key])), true);
  });
  list.addEventListener("focus", () => {
    if (active < 0 && shown.length && list.matches(":focus-visible")) choose(0, true);
  });
  list.addEventListener("pointerover", ({ target }) => {
    const i = spans.findIndex((span) => frameOf(span) === target);
    if (i >= 0 && i !== active) choose(i, false);
  });

  /** A frame for a token; a line break in it breaks the line behind the frame. */
  function framed(id) {
    const frame = document.createElement("span"); // by hand: there may be thousands
    const isNew = id === bpe.first + get("used") - 1 && get("used") > 0;
    frame.className = `piece k${id % INKS}${isNew ? " made" : ""}`;
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
      const begin = end;
      end += bpe.pieces[shown[i]].length;
      return { frame: frameOf(span), box: frameOf(span).getBoundingClientRect(), begin, end };
    });
  }
  /** Boxes slide from their old places to the new ones; two that become one slide together, and go. */
  function glue(old) {
    const home = list.getBoundingClientRect();
    const style = { duration: GLUE, easing: "ease-in-out" };
    for (const { frame, box: now, end } of places()) {
      const parts = [];
      while (old[0]?.begin < end) parts.push(old.shift());
      const slide = (one, x, y, way) =>
        one.animate({ transform: ["none", `translate(${x}px, ${y}px)`] }, { ...style, ...way });
      if (parts.length === 1) {
        const { box } = parts[0];
        slide(frame, box.left - now.left, box.top - now.top, { direction: "reverse" });
        continue;
      }
      frame.animate({ opacity: [0, 0] }, style);
      parts.forEach(({ frame: ghost, box }, n) => {
        const [left, top] = [box.left - home.left, box.top - home.top + list.scrollTop];
        ghost.removeAttribute("role");
        ghost.classList.add("ghost", "made");
        Object.assign(ghost.style, { left: `${left}px`, top: `${top}px` });
        list.append(ghost);
        const x = n ? now.right - box.right : now.left - box.left;
        slide(ghost, x, now.top - box.top, {}).onfinish = () => ghost.remove();
      });
    }
  }

  const wellFormed = () => Array.from(get("text").toWellFormed?.() ?? get("text"));
  /** The text that is cut: its beginning, if it is too long. */
  const cuttable = () => wellFormed().slice(0, longest).join("");
  function paint() {
    const [text, n, size] = [cuttable(), get("used"), wellFormed().length];
    const tooLong = `The text has ${size} characters. Only the first ${longest} are tokenised.`;
    setText(warning, size > longest ? tooLong : "");
    const old = glues && places();
    choose(-1);
    shown = bpe.cut(text, n);
    spans = shown.map(framed);
    list.replaceChildren(...spans);
    if (old) glue(old);
    glues = false;
    const [bytes, signs] = [new TextEncoder().encode(text).length, Math.min(size, longest)];
    const each = shown.length ? (signs / shown.length).toFixed(2) : "–";
    counts.replaceChildren(
      `${signs} characters · ${bytes} bytes · `,
      html`<b><span class="tokens">${shown.length}</span> tokens</b>`,
      ` · ${each} characters per token · ${bpe.first + n} tokens in the vocabulary`,
    );
    const line = (k) => {
      const [left, right] = merge(k - 1);
      return `${k}: ${named(left, 12)} + ${named(right, 12)} → ${named(bpe.first + k - 1)}`;
    };
    setText(last, n ? line(n) : "no merges: every byte is a token");
    const earlier = learnt(shown).filter((k) => k < n);
    before.replaceChildren(
      ...earlier
        .slice(-12)
        .map((k) => html`<li>${line(k)}</li>`)
        .reverse(),
    );
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
