// Two typewriters write the same text, one without a cache and one with it (cache.py). What they compute is
// counted, not timed: `work` is how many tokens each has processed, as long as it has more to write.
const FAST = 1000; // tokens a second, once only the slow one writes
const SLOW = 20;
const LETTER = 20; // the height of a line's letters, under their columns of cells

function build({ model, node, get, set, slider, stops, soon }) {
  const signs = Array.from(get("text"), (sign) => (sign === "\n" ? "⏎" : sign));
  const [given, blocks] = [get("prompt"), get("blocks")];
  const letters = signs.length - given; // to be written
  /** The tokens that are processed for n letters without a cache: the whole text for each of them. */
  const without = (n) => n * given + (n * (n - 1)) / 2;
  const [most, least] = [without(letters), signs.length - 1];
  /** How many letters are written after so much work, and how many columns of cells are in use. */
  function slowAt(work) {
    const b = given - 0.5;
    const n = Math.min(letters, Math.floor(Math.sqrt(b * b + 2 * work) - b + 1e-9));
    return { n, columns: work - without(n), work };
  }
  function fastAt(work) {
    const columns = Math.min(least, work);
    return { n: Math.max(0, Math.floor(columns - given + 1)), columns, work: columns };
  }

  const sheets = ["Without a cache", "With a cache"].map((title, n) => {
    const picture = canvas(10, 10, `${title}: above each letter the cells that compute it`);
    const [count, written] = html`<b class="count number" /><span class="quiet" />`;
    const [first, rest] = html`<span class="quiet" /><span />`;
    const paper = html`<div class="sheet">${picture}<p class="text">${first}${rest}</p></div>`;
    const section = html`<section class=${n ? "with" : "without"}>
      <p class="heading"><b>${title}</b>${written}</p>
      <p>${count}<span class="quiet">tokens processed</span></p>
      ${paper}
    </section>`;
    return { section, picture, count, written, first, rest, paper, at: [slowAt, fastAt][n] };
  });
  const verdict = summary();

  let now = get("work"); // the same with its fraction
  function move(ms) {
    if (ms && now >= most) set({ work: (now = 0), speed: SLOW });
    const before = now;
    now = Math.min(most, now + (ms * get("speed")) / 1000);
    if (before < least && now >= least) set({ speed: Math.max(FAST, get("speed")) });
    model.set("work", Math.floor(now));
    soon();
    return now < most;
  }
  const scrub = Array.from({ length: least }, (_, k) => k);
  for (let n = slowAt(least).n + 1; n <= letters; n++) scrub.push(without(n));
  const page = html`
    <div class="sheets">${sheets.map(({ section }) => section)}</div>
    <div class="row">
      ${player(model, move, 1000)}
      ${stops("work", "work", scrub, (v) => `${v.toLocaleString("en")} tokens`)}
      ${stops("speed", "speed", [10, SLOW, 50, 100, 200, 500, FAST, 2000], (v) => `${v} a second`)}
    </div>${verdict}`;

  function paint() {
    const work = get("work");
    if (Math.floor(now) !== work) now = work; // it was moved
    const ink = cssColors(node, "blue red masked");
    for (const { picture, count, written, first, rest, paper, at } of sheets) {
      const { n, columns, work: done } = at(now);
      const style = getComputedStyle(paper.lastElementChild);
      const ctx = picture.getContext("2d");
      ctx.font = style.font;
      const wide = ctx.measureText("0".repeat(100)).width / 100;
      const across = Math.max(1, Math.floor((paper.clientWidth + 0.5) / wide));
      const lines = (from, to) =>
        signs
          .slice(from, to)
          .map((sign, k) => ((from + k) % across || from + k === 0 ? sign : `\n${sign}`))
          .join("");
      setText(first, lines(0, given));
      setText(rest, lines(given, given + n));
      setText(count, Math.floor(done).toLocaleString("en"));
      setText(written, `${n} of ${letters} letters`);
      const row = Number.parseFloat(style.lineHeight);
      draw(picture, { n, columns, across, wide, row, ink, keeps: at === fastAt });
    }
    setText(
      verdict,
      work >= most
        ? `The same ${letters} letters: ${most.toLocaleString("en")} tokens processed without a cache, ${least} with it. That is ${Math.round(most / least)} times the work.`
        : work >= least
          ? `The one with a cache has finished; by then, the one without had written ${slowAt(least).n} of ${letters} letters. It goes on alone.`
          : "Both compute columns at the same pace, so the one without a cache falls behind exactly as far as it has more to compute.",
    );
  }
  function draw(picture, { n, columns, across, wide, row, ink, keeps }) {
    const height = Math.ceil(signs.length / across) * row;
    const ctx = fit(picture, Math.ceil(across * wide), height);
    const tall = (row - LETTER) / blocks;
    const gap = Math.min(1, tall / 3);
    const column = (i, colour, alpha) => {
      ctx.fillStyle = colour;
      ctx.globalAlpha = alpha;
      const [x, y] = [(i % across) * wide, Math.floor(i / across) * row + 2];
      for (let b = 0; b < blocks; b++) ctx.fillRect(x + 0.5, y + b * tall, wide - 1.5, tall - gap);
    };
    for (let i = 0; i < given + n; i++) {
      const age = columns - i; // since it was computed, in columns
      if (age <= 0) column(i, ink.masked, 1);
      else if (age <= 1) column(i, ink.red, 1);
      else if (keeps) column(i, ink.blue, 0.55);
      else column(i, ink.red, Math.max(0.3, 1 - age / 12));
    }
    ctx.globalAlpha = 1;
  }

  const watcher = new ResizeObserver(soon);
  watcher.observe(node);
  return { page, paint, theme: () => {}, stop: () => watcher.disconnect() };
}

export default explorer({
  name: "cache-explorer",
  title: "Two typewriters: a text written without and with a KV cache",
  traits: ["work"],
  build,
});
