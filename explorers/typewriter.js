// A GPT writes, letter by letter, and at every letter the text can fork. Until its weights are here the
// page shows what the same model wrote earlier, in Python: the trait `recorded`.
const PACE = 1000 / 15; // milliseconds for a letter
const SLICE = 8; // milliseconds of a frame in which the model may read
const LETTERS = 1500; // in a link
const GUESSES = 6; // as in typewriter.py

/** A text as ids (token 0 is the end of a line, token i + 1 letter i) and expected[i], the logits of letter i.
    Two models read it, half a window apart: when the first is full, after base + most tokens, the second goes on. */
class Reading {
  ids = [];
  expected = [];
  readers = [];
  begin(...gpts) {
    this.readers = gpts.map((gpt, n) => ({ gpt, base: (n * gpt.most) / 2, done: 0 }));
  }
  isReady = () => this.expected.length > this.ids.length;
  /** Reads on for some milliseconds, and says whether the logits of the next letter are known. */
  ahead(blank, milliseconds) {
    const end = performance.now() + milliseconds;
    const [first, second] = this.readers;
    if (!first) return false;
    const { most } = first.gpt;
    if (first.done === most && this.ids.length >= first.base + most)
      this.readers = [second, { ...first, base: second.base + most / 2, done: 0 }];
    const tokens = [blank, ...this.ids];
    for (const reader of this.readers)
      while (reader.base + reader.done < tokens.length && reader.done < most) {
        if (performance.now() > end) return this.isReady();
        const window = tokens.slice(reader.base).slice(0, Math.min(reader.done + 4, most));
        reader.gpt.read(window);
        for (; reader.done < window.length; reader.done++)
          this.expected[reader.base + reader.done] ??= reader.gpt.logits(reader.done);
      }
    return this.isReady();
  }
  /** Forgets the letters from i on. */
  cut(i) {
    this.ids.length = i;
    this.expected.length = Math.min(this.expected.length, i + 1);
    const isBefore = i < this.readers[0]?.base;
    for (const [n, reader] of this.readers.entries()) {
      const half = reader.gpt.most / 2;
      if (isBefore) reader.base = Math.max(0, i - half) + n * half;
      reader.done = Math.max(0, Math.min(reader.done, i + 1 - reader.base));
    }
  }
}

function build({ model, node, get, set, slider, soon }) {
  const symbols = [...get("symbols")];
  const blank = symbols.indexOf("\n");
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches; // it writes a line on a button
  const reading = new Reading();
  const letters = []; // the node of each
  let recorded = []; // ids that are still to be shown
  let start = get("text"); // what "Start again" begins with
  let hover = -1; // the letter under the pointer
  let loading = null;
  let inView = false;
  let due = 0; // when the next letter is
  let asked = false; // is a frame asked for?
  let said = "";

  const words = (from, to) => reading.ids.slice(from, to).map((id) => symbols[id]);
  const text = () => words(0).join("");
  const idsOf = (some) => [...some].map((sign) => symbols.indexOf(sign)).filter((id) => id >= 0);
  /** The letter that is looked at. */
  function place() {
    const chosen = hover >= 0 ? hover : get("at");
    return letters[chosen] ? chosen : letters.length - 1;
  }
  /** The likeliest letters there, as [id, probability], and how likely the letter was that came. */
  function guesses() {
    const logits = reading.expected[place()];
    const p = logits ? softmax(logits, get("temperature")) : [];
    return { best: largest(p, GUESSES).map((id) => [id, p[id]]), came: p[reading.ids[place()]] };
  }

  // --- the page
  const paper = html`<div class="paper" tabindex="0" role="group"
    aria-label="the text: arrow keys choose a letter, 1 to ${GUESSES} another one" />`;
  function newLine() {
    const line = html`<div class="line" />`;
    line.hidden = calm && get("playing"); // until it is whole
    paper.append(line);
    return line;
  }
  function put(id, kind) {
    const line = paper.lastElementChild ?? newLine();
    const letter = html`<span class=${kind}>${id === blank ? "" : symbols[id]}</span>`;
    line.append(letter);
    letters.push(letter);
    reading.ids.push(id);
    if (id !== blank) return;
    letter.classList.add("end");
    line.hidden = false;
    newLine();
  }
  function cut(i) {
    for (const letter of letters.splice(i)) letter.remove();
    const last = letters.at(-1);
    while (paper.lastElementChild && paper.lastElementChild !== last?.parentElement)
      paper.lastElementChild.remove();
    if (last?.matches(".end")) newLine();
    reading.cut(i);
    recorded = [];
    hover = -1;
  }
  const toEnd = () => paper.scrollTo(0, paper.scrollHeight);

  // --- what is done
  /** Sets traits, and tells Python what is on the page. */
  function tell(changes) {
    set({ text: text(), recorded: "", ...changes });
    go();
    soon();
  }
  function lay(some) {
    cut(0);
    for (const id of idsOf(some)) put(id, "given");
  }
  function begin(some, playing = true) {
    lay(some);
    tell({ playing, at: -1 });
    toEnd();
  }
  /** Another letter at the place that is looked at: what follows is written anew. */
  function fork(n) {
    const { best } = guesses();
    if (!best[n]) return;
    cut(place());
    put(best[n][0], "fork");
    tell({ at: -1, playing: true });
  }
  function choose(at) {
    if (letters[at]) tell({ at, playing: false });
  }
  /** A letter: drawn from what the model expects or, as long as that is unknown, from the record. */
  function write(ready) {
    const [next] = recorded.splice(0, 1);
    if (ready) {
      const p = softmax(reading.expected[letters.length], get("temperature"));
      put(hitBy(p, Math.random()), "");
    } else if (next !== undefined) put(next, "");
    else return;
    toEnd();
    while (paper.childElementCount > 60) paper.firstElementChild.remove();
    if (calm && letters.at(-1).matches(".end")) tell({ playing: false });
  }
  function frame(now) {
    asked = false;
    const ready = reading.ahead(blank, SLICE);
    const writes = get("playing") && inView;
    if (writes && (calm || now >= due)) {
      due = now - due > 4 * PACE ? now + PACE : due + PACE;
      write(ready);
    }
    if (writes || (reading.readers.length && !ready)) go();
    paint();
  }
  function go() {
    if (!asked) requestAnimationFrame(frame);
    asked = true;
  }
  function load(late) {
    loading ??= Promise.resolve(late ?? weightsOf(model, load))
      .then((bytes) => reading.begin(gptOf(bytes), gptOf(bytes)))
      .catch((error) => {
        loading = null;
        said = `The weights could not be loaded (${error.message}): press Pause and Go on to retry.`;
      })
      .finally(go);
    go();
  }

  // --- in the book the address can hold the text
  function link() {
    const forks = letters.flatMap((letter, i) => (letter.matches(".fork") ? [String(i)] : []));
    const state = { play: text(), t: String(get("temperature")), forks: forks.join() };
    history.replaceState(null, "", `#${new URLSearchParams(state)}`);
    navigator.clipboard?.writeText(location.href).catch(() => {}); // not every page may
    said = "The address of this page is a link to this text now.";
    soon();
  }
  function fromLink() {
    const state = new URLSearchParams(location.hash.slice(1));
    if (!model.weights || !state.get("play")) return false;
    const t = Number(state.get("t"));
    if (t >= 0.1 && t <= 2) set({ temperature: t });
    begin(state.get("play").slice(0, LETTERS), false);
    for (const i of state.get("forks")?.split(",") ?? [])
      letters[i]?.classList.replace("given", "fork");
    return true;
  }

  // --- around the page
  const rows = Array.from({ length: GUESSES }, (_, n) => {
    const [name, bar, number] = html`<b /><i class="bar" /><span class="number" />`;
    const button = html`<button type="button" class="guess" onclick=${() => fork(n)}>
      ${name}<span class="room">${bar}</span>${number}
    </button>`;
    return { name, bar, number, button };
  });
  const [hint, heading, verdict] = html`<p /><p class="heading" /><p class="quiet" />`;
  const touch = matchMedia("(pointer: coarse)").matches ? "Tap" : "Click";
  const spoken = html`<p class="unseen" role="status" aria-live="polite" />`;
  const [note, progress] = html`<span role="status" /><progress />`;
  const press = () => {
    said = "";
    load();
    tell({ at: -1, playing: !get("playing") });
  };
  const main = html`<button type="button" class="main" data-entry="" onclick=${press} />`;
  const field = html`<input type="text" aria-label="your own first line" maxlength="200"
    placeholder="your own first line" spellcheck="false" autocomplete="off" />`;
  const own = (event) => {
    event.preventDefault();
    const strange = [...field.value].find((sign) => !symbols.includes(sign));
    said = strange
      ? `“${strange}” is not among the ${symbols.length} characters of this model.`
      : "";
    if (strange || !field.value) soon();
    else begin((start = `${field.value}\n`));
  };
  const page = html`
    <div class="desk">${paper}<div class="side">
      ${hint}${heading}${verdict}<div class="guesses">${rows.map((row) => row.button)}</div>
    </div></div>
    <div class="row">
      ${main}<button type="button" onclick=${() => begin(start)}>Start again</button>
      ${slider("temperature", "temperature", [0.1, 2, 0.1], (t) => t.toFixed(1))}
      <form class="row" onsubmit=${own}>${field}<button>Write on</button></form>
      ${model.weights && html`<button type="button" onclick=${link}>Copy a link</button>`}
    </div>
    <p class="state quiet">${note}${progress}</p>${spoken}`;
  const speak = debounce(() => {
    const line = text().trimEnd().split("\n").at(-1); // what was written last, or what is looked at
    const looked = `${heading.textContent} ${verdict.textContent}`;
    if (!get("playing")) setText(spoken, get("at") < 0 ? line : looked);
  }, 400);

  function paint() {
    setText(main, get("playing") ? "Pause" : calm ? "Write a line" : "Go on");
    if (calm && get("playing")) return; // the bars are of what is shown
    setText(hint, get("at") < 0 ? `${touch} a letter to change the text.` : "Choose another:");
    const i = place();
    const { best, came } = guesses();
    rows.forEach(({ name, bar, number, button }, n) => {
      const [id, p] = best[n] ?? [-1, 0];
      setText(name, best[n] ? visible(symbols[id]) : "");
      setText(number, best[n] ? percent(p) : "");
      bar.style.width = `${100 * p}%`;
      button.disabled = !best[n];
      button.classList.toggle("own", id === reading.ids[i]);
    });
    const before = words(Math.max(0, i - 12), Math.max(0, i))
      .join("")
      .replaceAll("\n", "⏎");
    setText(heading, i < 0 ? "" : `after “${i > 12 ? "…" : ""}${before}”`);
    const bits = came && `: ${percent(came)}, a surprise of ${fixed(-Math.log2(came), 1)} bits`;
    setText(verdict, i < 0 ? "" : `came “${visible(symbols[reading.ids[i]])}”${bits ?? ""}`);
    paper.querySelector(".at")?.classList.remove("at");
    if (hover >= 0 || get("at") >= 0) letters[i]?.classList.add("at");
    paper.classList.toggle("writing", get("playing"));
    progress.hidden = reading.readers.length > 0 || !loading;
    const earlier = "Until then you see what this model wrote earlier.";
    setText(note, progress.hidden ? said : `${loadingText(model)} ${earlier}`);
    speak();
  }

  // --- pointer and keys
  const look = ({ target }) => {
    hover = letters.indexOf(target);
    soon();
  };
  paper.addEventListener("pointermove", look);
  paper.addEventListener("pointerleave", look);
  paper.addEventListener("click", ({ target }) => choose(letters.indexOf(target)));
  paper.addEventListener("keydown", ({ key }) => {
    if (/^[1-9]$/.test(key)) fork(Number(key) - 1);
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -40, ArrowDown: 40 }[key];
    if (!step) return;
    hover = -1;
    const least = letters.indexOf(paper.querySelector("span")); // older lines have left
    choose(Math.max(least, Math.min(letters.length - 1, place() + step)));
    letters[place()]?.scrollIntoView({ block: "nearest" });
  });

  // --- from the beginning
  if (calm) set({ playing: false });
  if (!fromLink()) {
    lay(start);
    recorded = idsOf(get("recorded"));
    if (!get("playing")) for (const id of recorded.splice(0)) put(id, "");
  }
  model.on("change:text", () => {
    if (get("text") !== text()) begin((start = get("text")), false);
  });
  model.on("change:playing", go);
  addEventListener("hashchange", fromLink);
  const seen = new IntersectionObserver((all) => {
    inView = all.at(-1).isIntersecting;
    if (inView) load();
    if (inView && get("at") < 0) toEnd();
  });
  seen.observe(node);
  // For tests.
  const chances = () => guesses().best.map(([id, p]) => [symbols[id], p]);
  Object.assign(node, { text, chances, ready: reading.isReady });
  const stop = () => {
    inView = false;
    seen.disconnect();
    speak.stop();
    removeEventListener("hashchange", fromLink);
  };
  return { page, paint, stop };
}

export default explorer({
  name: "typewriter",
  title: "Typewriter: a GPT writes, and its text can fork at every letter",
  traits: ["temperature", "at", "playing"],
  build,
});
