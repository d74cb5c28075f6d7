// Shannon's guessing game. The model's bets were computed in Python: a row of probabilities for each letter.
const BOARD = "qwertyuiopasdfghjklzxcvbnm "; // as on a keyboard, ten in a row
const LEAST = 10; // letters before there is a verdict
const SPARKS = "▁▃▅▅▅▇"; // in a result to share: 1, 2, … guesses

function build({ model, node, get, set, soon }) {
  const { keys, code, passages, gzip } = get("game");
  const rows = floats(get("bets"));
  let read = 0;
  for (const one of passages) {
    one.answers = one.places.map((i) => keys.indexOf(one.text[i].toLowerCase()));
    one.bets = one.answers.map(() => rows.subarray(read, (read += keys.length)));
  }
  const tried = new Set(); // the player's guesses for the present letter
  let stopped = false;
  let said = "";

  const passage = () => passages[get("number")];
  const isOver = () => stopped || get("ranks").length >= passage().places.length;
  const mean = (values) => values.reduce((sum, v) => sum + v, 0) / values.length;
  /** What the letters so far have cost: you, and the model, in the code; the model, by its probabilities. */
  function costs() {
    const { ranks, bets, answers } = passage();
    const you = get("ranks").map((rank) => code[rank - 1]);
    const its = you.map((_, n) => code[ranks[n] - 1]);
    return { you, its, byP: you.map((_, n) => -Math.log2(bets[n][answers[n]])) };
  }

  // --- what is done
  function begin() {
    stopped = false;
    said = "";
    tried.clear();
    soon();
  }
  function guess(key) {
    if (isOver() || tried.has(key)) return;
    const { answers, bets, ranks } = passage();
    const n = get("ranks").length;
    tried.add(key);
    said = `Not “${visible(key)}”.`;
    soon();
    if (key !== keys[answers[n]]) return;
    const all = [...get("ranks"), tried.size];
    const row = n - all.findLastIndex((rank) => rank > 1);
    const how = row > 2 ? `, ${row} in a row!` : row ? " at once." : `, guess ${tried.size}.`;
    tried.clear();
    set({ ranks: all });
    const p = percent(bets[n][answers[n]]);
    said = isOver()
      ? ""
      : `“${visible(key)}”${how} The model gave it ${p}, as its guess ${ranks[n]}.`;
  }
  async function share() {
    shared.select();
    const copied = navigator.clipboard?.writeText(shared.value);
    const done = await copied?.then(() => true).catch(() => false);
    said = `${done ? "Copied." : "Copy the text."} It gives no letter away.`;
    soon();
  }

  // --- the page
  const paper = html`<div class="paper" tabindex="0" role="group" data-entry=""
    aria-label="the passage: type the next letter" />`;
  const board = [...BOARD].map((key) => {
    const press = () => {
      guess(key);
      paper.focus({ preventScroll: true });
    };
    return html`<button type="button" tabindex="-1" onclick=${press}>${key === " " ? "space" : key}</button>`;
  });
  const [you, its] = html`<b class="number you" /><b class="number its" />`;
  const [place, status] = html`<span class="quiet" /><p class="status" role="status" />`;
  const [letters, bets] = html`<div class="board">${board}</div><div class="bets" />`;
  const shared = html`<textarea readonly rows="4" aria-label="the result, to share" />`;
  const button = (name, onclick) => html`<button type="button" onclick=${onclick}>${name}</button>`;
  const stop = button("Stop here", () => {
    stopped = true;
    soon();
  });
  const copy = button("Copy the result", share);
  const other = button("Another passage", () => {
    set({ number: (get("number") + 1) % passages.length, ranks: [] });
    paper.focus({ preventScroll: true });
  });
  const [first, second, third] = code.map((bits) => fixed(bits, 1));
  const rule =
    "Nobody can ask you for probabilities, so a letter costs you both what the number of the right " +
    `guess costs in a code that was fixed beforehand: ${first} bits for the first guess, ${second} ` +
    `for the second, ${third} for the third. Capitals do not count.`;
  const page = html`
    ${paper}<p class="counters">${you} you ${its} the model, bits a letter${place}</p>${status}
    <div class="desk">${letters}${bets}</div>
    <div class="row">${stop}${copy}${other}</div>${shared}<p class="quiet">${rule}</p>`;

  function paintText() {
    const { text, places, ranks } = passage();
    const yours = get("ranks");
    const end = isOver() ? text.length : places[yours.length];
    const signs = [...text.slice(0, end)].map((sign, i) => {
      const n = places.indexOf(i);
      if (n < 0 || n >= yours.length) return html`<span class="quiet">${sign}</span>`;
      const bars = `--you: ${code[yours[n] - 1]}; --its: ${code[ranks[n] - 1]}`;
      return html`<span class="bar" style=${bars}>${sign}</span>`;
    });
    paper.replaceChildren(...signs, isOver() ? "" : html`<span class="cursor" />`);
  }
  /** The model's bets for the letter that was settled last. */
  function paintBets() {
    const n = get("ranks").length - 1;
    const { bets: all, answers } = passage();
    const likely = [...(all[n] ?? []).keys()].sort((a, b) => all[n][b] - all[n][a]);
    const lines = likely.slice(0, 5).map(
      (id) => html`<p class=${id === answers[n] ? "guess own" : "guess"}>
        <b>${visible(keys[id])}</b><i class="bar" style="width: ${100 * all[n][id]}%" />
        <span>${percent(all[n][id])}</span>
      </p>`,
    );
    const what = n < 0 ? "each letter, once yours is right" : `“${visible(keys[answers[n]])}”`;
    bets.replaceChildren(html`<p>The model's bets for ${what}</p>`, ...lines);
  }
  function paintVerdict({ you, its, byP }) {
    const gaps = you.map((v, n) => v - its[n]);
    const gap = mean(gaps);
    const error = 2 * Math.sqrt(mean(gaps.map((v) => (v - gap) ** 2)) / (gaps.length - 1));
    const who = gap < 0 ? "You win" : gap > 0 ? "The model wins" : "A tie";
    const doubt = Math.abs(gap) > error ? "" : `, though ${gaps.length} letters decide little`;
    const line = ([name, guesses, p]) => html`<tr>
      <th>${name}</th><td class="value">${guesses}</td><td class="value">${p}</td>
    </tr>`;
    const counted = passage().counted.map((bits) => fixed(bits));
    const lines = [
      ["bits a letter", "by guesses", "by −log₂ p"],
      ["you", fixed(mean(you)), ""],
      ["the model", fixed(mean(its)), fixed(mean(byP))],
      ["counts of five letters, whole passage", ...counted],
      ["gzip, on all the unread plays", "", fixed(gzip)],
    ];
    bets.replaceChildren(html`<table>${lines.map(line)}</table>`);
    const spark = (ranks) => ranks.map((r) => SPARKS[Math.min(r, SPARKS.length) - 1]).join("");
    const number = get("number") + 1;
    const link = model.weights ? `\n${location.href.split("#")[0]}#guess=${number}` : "";
    shared.value =
      `Shannon's guessing game, passage ${number}, ${you.length} letters: I needed ` +
      `${fixed(mean(you))} bits a letter, a GPT ${fixed(mean(its))}.\n` +
      `${spark(get("ranks"))} I\n${spark(passage().ranks.slice(0, you.length))} GPT${link}`;
    return `${who}${doubt}: the difference is ${fixed(Math.abs(gap))} ± ${fixed(error)} bits a letter.`;
  }
  function paint() {
    const so = costs();
    const n = so.you.length;
    const over = isOver();
    paintText();
    const verdict = over ? paintVerdict(so) : paintBets();
    setText(you, n ? fixed(mean(so.you)) : "–");
    setText(its, n ? fixed(mean(so.its)) : "–");
    setText(place, `${n} of ${passage().places.length}`);
    setText(status, over ? `${verdict} ${said}` : said);
    board.forEach((key, i) => (key.disabled = tried.has(BOARD[i])));
    letters.hidden = over;
    stop.hidden = over || n < LEAST;
    copy.hidden = shared.hidden = !over;
  }

  node.addEventListener("keydown", ({ key, target, repeat, ctrlKey, metaKey, altKey }) => {
    if (target !== paper || repeat || ctrlKey || metaKey || altKey || [...key].length > 1) return;
    if (keys.includes(key.toLowerCase())) guess(key.toLowerCase());
    else said = `“${key}” is not asked: letters from a to z, and the space.`;
    soon();
  });
  const wanted = Number(new URLSearchParams(location.hash.slice(1)).get("guess")) - 1;
  if (model.weights && passages[wanted]) set({ number: wanted });
  model.on("change:number", begin);
  return { page, paint };
}

export default explorer({
  name: "guessing-game",
  title: "Shannon's guessing game: you against a GPT",
  traits: ["number", "ranks"],
  build,
});
