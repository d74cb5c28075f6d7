// Shannon's guessing game. What the model bets was computed in Python, since the passages are given.
const BOARD = "qwertyuiopasdfghjklzxcvbnm "; // as on a keyboard, ten in a row

function build({ model, node, get, set, soon }) {
  const { keys, code, passages, gzip } = get("game");
  const tried = new Set(); // the player's guesses for the present letter
  let stopped = false;
  let said = "Guess the next letter: fewer guesses are better.";

  const passage = () => passages[get("number")];
  const count = () => get("ranks").length;
  const isOver = () => stopped || count() >= passage().places.length;
  const answer = (n) => passage().text[passage().places[n]].toLowerCase();
  const mean = (values) => values.slice(0, count()).reduce((sum, v) => sum + v, 0) / count();
  const costs = (ranks) => ranks.slice(0, count()).map((rank) => code[rank - 1]);

  function guess(key) {
    if (isOver() || tried.has(key)) return;
    tried.add(key);
    said = `Not “${visible(key)}”.${tried.size > 2 ? ` Stuck? The letter costs ${fixed(code[26])} bits.` : ""}`;
    if (key === answer(count())) settle(tried.size);
    soon();
  }
  /** The letter is found or, as the last guess there is, shown. */
  function settle(rank) {
    const n = count();
    const ranks = [...get("ranks"), rank];
    const row = n - ranks.findLastIndex((rank) => rank > 1);
    const how = row > 2 ? `, ${row} in a row!` : row ? " at once." : `, guess ${rank}.`;
    const [, its, bits] = passage().players[0];
    tried.clear();
    set({ ranks });
    said = isOver()
      ? ""
      : `“${visible(answer(n))}”${how} The model gave it ${percent(2 ** -bits[n])}, guess ${its[n]}.`;
  }
  function share() {
    const spark = (ranks) => ranks.map((r) => "▁▃▅▅▅▇"[Math.min(r, 6) - 1]).join("");
    const [number, yours, its] = [get("number") + 1, get("ranks"), passage().players[0][1]];
    said =
      `Shannon's guessing game, passage ${number}: I needed ${fixed(mean(costs(yours)))} bits a ` +
      `letter, a GPT ${fixed(mean(costs(its)))}.\n${spark(yours)} I\n${spark(its.slice(0, count()))} ` +
      (model.weights ? `GPT\n${location.href.split("#")[0]}#guess=${number}` : "GPT");
    navigator.clipboard?.writeText(said).catch(() => {}); // not every page may: there it can be marked
    soon();
  }

  // --- the page
  const paper = html`<div class="paper" tabindex="0" role="group" data-entry=""
    aria-label="the passage: type the next letter" />`;
  const toPaper = () => paper.focus({ preventScroll: true });
  const button = (name, press, more = {}) =>
    html`<button type="button" onclick=${press} ...${more}>${name}</button>`;
  const board = [...BOARD].map((key) => {
    const press = () => [guess(key), toPaper()];
    return button(key.replace(" ", "space"), press, { tabindex: -1 });
  });
  const [you, its] = html`<b class="number" /><b class="number its" />`;
  const [place, status] = html`<span class="quiet" /><p class="status" role="status" />`;
  const [letters, side] = html`<div class="board">${board}</div><div />`;
  const give = button("Show the letter", () => [settle(keys.length), toPaper()]);
  const stop = button("Stop here", () => [(stopped = true), (said = ""), soon()]);
  const copy = button("Copy the result", share);
  const other = button("Another passage", () => {
    set({ number: (get("number") + 1) % passages.length, ranks: [] });
    toPaper();
  });
  const [first, second, last] = [0, 1, keys.length - 1].map((n) => fixed(code[n], 1));
  const rule =
    `Fewer guesses are better. Their prices in bits are fixed beforehand for you and the model: ${first} if ` +
    `the first is right, ${second} if the second is, … A letter shown costs as much as guess ${keys.length}: ${last}.`;
  const page = html`
    ${paper}<p class="counters">${you} you ${its} model, bits a letter${place}</p>${status}
    <div class="desk">${letters}${side}</div>
    <div class="row">${give}${stop}${copy}${other}</div><p class="quiet">${rule}</p>`;

  function paintText() {
    const { text, places, players } = passage();
    const [yours, its] = [get("ranks"), players[0][1]].map(costs);
    const signs = [...text.slice(0, isOver() ? text.length : places[count()])].map((sign, i) => {
      const n = places.indexOf(i);
      if (n < 0 || n >= count()) return html`<span class="quiet">${sign}</span>`;
      return html`<span class="bar" style="--you: ${yours[n]}; --its: ${its[n]}">${sign}</span>`;
    });
    paper.replaceChildren(...signs, isOver() ? "" : html`<span class="cursor" />`);
  }
  /** Rows of [name, share of the whole width, number, does it stand out?]. */
  function paintBars(title, rows) {
    const bars = rows.map(
      ([name, share, number, own]) => html`<p class=${own ? "guess own" : "guess"}>
        <b>${name}</b><i class="room"><i class="bar" style="width: ${100 * Math.min(1, share)}%" /></i>${number}
      </p>`,
    );
    side.replaceChildren(html`<p>${title}</p>`, ...bars);
  }
  /** The model's bets for the letter that was settled last. */
  function paintBets() {
    const n = count() - 1;
    const row = ([key, p]) => [visible(key), p, percent(p), key === answer(n)];
    if (n < 0) paintBars("The model's bets for each letter, once yours is right", []);
    else paintBars(`The model's bets for “${visible(answer(n))}”`, passage().bets[n].map(row));
  }
  function paintVerdict() {
    const { players } = passage();
    const most = Math.log2(keys.length);
    const bar = (name, bits, own) => [name, bits / most, fixed(bits), own];
    const yours = mean(costs(get("ranks")));
    paintBars("Bits a letter, by the guesses; (p): by the probabilities, −log₂ p", [
      bar("you", yours, true),
      ...players.map(([name, ranks]) => bar(name, mean(costs(ranks)))),
      ...players.map(([name, , bits]) => bar(`${name} (p)`, mean(bits))),
      bar("gzip, on all unread plays", gzip),
      bar("who knows nothing", most),
    ]);
    const its = costs(players[0][1]);
    const gaps = costs(get("ranks")).map((bits, n) => bits - its[n]);
    const gap = mean(gaps);
    const error = 2 * Math.sqrt(mean(gaps.map((v) => (v - gap) ** 2)) / (count() - 1));
    const size = `${fixed(Math.abs(gap))} bits a letter fewer than`;
    const won =
      gap < 0 ? `You win: you needed ${size} the model.` : `The model wins: it needed ${size} you.`;
    const luck = `With ${count()} letters luck alone makes up to about ${fixed(error)}`;
    return `${gap ? won : "A tie."} ${luck}${Math.abs(gap) > error ? "" : ", so this decides little"}.`;
  }
  function paint() {
    const over = isOver();
    paintText();
    const verdict = over ? paintVerdict() : paintBets();
    setText(you, count() ? fixed(mean(costs(get("ranks")))) : "–");
    setText(its, count() ? fixed(mean(costs(passage().players[0][1]))) : "–");
    setText(place, `${count()}/${passage().places.length}`);
    setText(status, over ? `${verdict}\n${said}` : said);
    board.forEach((key, i) => (key.disabled = tried.has(BOARD[i])));
    letters.hidden = give.hidden = over;
    stop.hidden = over || count() < 10; // too few for a verdict
    copy.hidden = !over;
  }

  node.addEventListener("keydown", (event) => {
    const { key, target, repeat } = event;
    const other = repeat || event.ctrlKey || event.metaKey || event.altKey || [...key].length > 1;
    if (target !== paper || other || isOver()) return;
    if (keys.includes(key.toLowerCase())) guess(key.toLowerCase());
    else said = `“${key}” is not asked: letters from a to z, and the space.`;
    soon();
  });
  const wanted = Number(new URLSearchParams(location.hash.slice(1)).get("guess")) - 1;
  if (model.weights && passages[wanted]) set({ number: wanted });
  model.on("change:number", () => {
    stopped = false;
    said = "";
    tried.clear();
  });
  return { page, paint };
}

export default explorer({
  name: "guessing-game",
  title: "Shannon's guessing game: you against a GPT",
  traits: ["number", "ranks"],
  build,
});
