// The seven stages: what is said about each, which chapters explain it, and what it shows.
// draw(s, i, j, l, n): the nodes for query (or token) i, key j, layer l, head n. s: sentence_state.js.
// explain(size): a sentence; size: { T, L, H, C, V, hs }.
const LINES = { small: { keys: 6, next: 5 }, large: { keys: 9, next: 10 } }; // lines of keys, and of next tokens
const linesShown = (s) => (s.narrow ? LINES.small : LINES.large);
const grouped = (n) => n.toLocaleString("en");
const parenthesised = (v) => (v < 0 ? `(${fixed(v)})` : fixed(v));

/** How a token was built, merge after merge. */
function drawTokens(s, i) {
  const id = s.ids[i];
  const { bpe } = s;
  const byteIds = new Map(bpe.pieces.slice(0, bpe.first).map(([byte], n) => [byte, n]));
  let parts = [...bpe.pieces[id]].map((byte) => byteIds.get(byte));
  const lines = [
    { parts, what: `${parts.length} ${parts.length === 1 ? "byte" : "bytes"}`, at: -1 },
  ];
  while (parts.length > 1) {
    // as byteLevel does: the merge that was learned first
    const made = parts.slice(1).map((right, n) => bpe.pair(parts[n], right) ?? Infinity);
    const best = Math.min(...made);
    const at = made.indexOf(best);
    parts = [...parts.slice(0, at), best, ...parts.slice(at + 2)];
    lines.push({ parts, what: `merge ${grouped(best - bpe.first + 1)}`, at });
  }
  const part = (line) => (id, k) =>
    html`<span class="token${k === line.at ? " on" : ""}">${s.name(id)}</span>`;
  const row = (line, n) => html`<tr>
    <td>${line.parts.map(part(line))}</td>
    <td class="quiet">${line.what}</td>
    <td class="quiet">${n === lines.length - 1 ? `→ id ${id}` : ""}</td>
  </tr>`;
  return html`
    <p class="sub">
      How “${token(s.word(i, 20))}” was built: frequent neighbouring letters are merged, the most frequent pair first.
    </p>
    <table class="merging"><tbody>${lines.map(row)}</tbody></table>`;
}

/** The rows of the embedding table that the ids select. */
function drawVectors(s, i) {
  const { ids, gpt, inks } = s;
  const { C, V } = s.shape;
  const T = ids.length;
  const high = Math.max(6, Math.min(16, Math.floor(190 / T)));
  const vector = gpt.token.slice(ids[i] * C, ids[i] * C + C);
  const most = 0.6 * maxAbs(vector);
  const cells = tile(inks, T, C, (t, n) => gpt.token[ids[t] * C + n] / most);
  const label = `the ${C} numbers of each token, the chosen one framed`;
  const { picture, ctx } = tilePicture(cells, 512, high * T, label);
  ctx.strokeStyle = inks.ink;
  ctx.lineWidth = 2;
  ctx.strokeRect(1, i * high, 510, high);
  picture.addEventListener("click", ({ offsetY }) => {
    const t = Math.floor((offsetY * T * high) / picture.clientHeight / high);
    s.change({ position: Math.min(T - 1, t) });
  });
  return html`
    <p class="sub">
      ${token(s.word(i, 20))} has id ${ids[i]}, so its vector is row ${ids[i]} of ${grouped(V)}:
    </p>
    <p class="value wrap">(${vectorText(vector, 9)})</p>
    <p class="sub quiet">
      All tokens, one per line, ${C} numbers across: blue above 0, orange below.
    </p>
    ${picture}`;
}

/** q · k ÷ √hs of one head. */
function drawScores(s, i, j, l, n) {
  const { gpt } = s;
  const { C, hs } = s.shape;
  const T = s.ids.length;
  const scores = Float32Array.from({ length: T * T }, (_, k) =>
    gpt.score(l, n, Math.floor(k / T), k % T),
  );
  const most = maxAbs(scores);
  const row = scores.subarray(i * T, i * T + T);
  const ofHead = (all, position) => all.subarray(position * C + n * hs, position * C + n * hs + hs);
  const q = ofHead(gpt.layers[l].q, i);
  const k = ofHead(gpt.layers[l].k, j);
  const biggest = largest(
    q.map((v, m) => Math.abs(v * k[m])),
    3,
  );
  const products = biggest.map((m) => `${fixed(q[m])} × ${parenthesised(k[m])}`).join(" + ");
  const dot = fixed(row[j] * Math.sqrt(hs));
  const cells = (m) => [fixed(row[m]), bar(row[m], most, row[m] < 0 ? "red" : "blue")];
  const shade = (a, b) => scores[a * T + b] / most;
  return html`
    <div class="pair">
      ${squareMap(s, shade, "scores of all queries and keys", i, j)}
      <div>
        <div class="sub">q of ${token(s.word(i))} times the k of</div>
        ${keyList(s, largest(row, linesShown(s).keys), ["key", "score", ""], cells, j)}
      </div>
    </div>
    <p class="value wrap">
      q · k = ${products} + … (${hs} products) = ${dot};  ÷ ${Math.sqrt(hs)} = ${fixed(row[j])}
    </p>`;
}

/** Mask and softmax of one head. */
function drawWeights(s, i, j, l, n) {
  const T = s.ids.length;
  const row = s.weightRow(l, n, i);
  const score = (m) => s.gpt.score(l, n, i, m);
  const open = Array.from(s.ids.keys()).filter((m) => s.isOpen(i, m));
  const most = Math.max(...open.map(score));
  const sum = open.reduce((total, m) => total + Math.exp(score(m) - most), 0);
  const cells = (m) =>
    s.isOpen(i, m) ? [fixed(score(m)), percent(row[m]), bar(row[m], 1)] : ["−∞", "0%", ""];
  const shade = (a, b) => (s.isOpen(a, b) ? Math.sqrt(s.weight(l, n, a, b)) : NaN);
  const reckoning = s.isOpen(i, j)
    ? `e^(${fixed(score(j))} − ${fixed(most)}) = ${fixed(Math.exp(score(j) - most))};  ÷ the sum of all, ${fixed(sum)} = ${percent(row[j])}`
    : "";
  return html`
    <div class="pair">
      ${squareMap(s, shade, "weights of all queries and keys; grey is masked", i, j)}
      <div>
        <div class="sub">${token(s.word(i))} attends to</div>
        ${keyList(s, largest(row, linesShown(s).keys), ["key", "score", "weight", ""], cells, j)}
      </div>
    </div>
    <p class="value wrap">
      ${reckoning ? `${s.word(j)}: ${reckoning}` : `${s.word(j)} comes later: its score is replaced by −∞, and e^−∞ = 0`}
    </p>`;
}

/** The weighted sum of the values of one head. */
function drawValues(s, i, j, l, n) {
  const { H, C, hs } = s.shape;
  const { v } = s.gpt.layers[l];
  const T = s.ids.length;
  const row = s.weightRow(l, n, i);
  const order = largest(row, linesShown(s).keys - 2).filter((m) => s.isOpen(i, m));
  const value = (m) => v.subarray(m * C + n * hs, m * C + n * hs + hs);
  const sum = new Float32Array(hs);
  for (let m = 0; m < T; m++)
    value(m).forEach((x, k) => {
      sum[k] += row[m] * x;
    });
  const most = 0.7 * maxAbs(v, 0, T * C);
  const stripe = (vector, scale) => {
    const cells = tile(s.inks, 1, hs, (_, k) => (vector[k] * scale) / most);
    const { picture } = tilePicture(cells, 256, 12, "");
    picture.setAttribute("aria-hidden", "true");
    return picture;
  };
  const line = (m) => html`<tr>
    ${numberCell(percent(row[m]))}
    <td><span class="times">× v of </span>${token(s.word(m, 11))}</td>
    <td>${stripe(value(m), row[m])}</td>
  </tr>`;
  const rest = T - order.length;
  const isOff = s.get("off").includes(l * H + n);
  return html`
    <table class="mixing"><tbody>
      ${order.map(line)}
      ${rest > 0 && html`<tr class="quiet"><td /><td>+ ${rest} more</td><td /></tr>`}
      <tr class="total"><td /><td>the sum</td><td>${stripe(sum, 1)}</td></tr>
    </tbody></table>
    <p class="value wrap">
      ${isOff ? "The head is off: its output is 0." : `(${vectorText(sum, 8)})`}
    </p>
    <p class="sub quiet">
      The outputs of the layer’s ${H} heads (${C} numbers) go through one more matrix and are added to the token’s vector.
    </p>`;
}

const norm = (v) => Math.sqrt(v.reduce((sum, x) => sum + x * x, 0));
const distance = (a, b) => norm(Float32Array.from(a, (x, k) => x - b[k]));

/** What each layer's two parts add to the vector of a token. */
function drawSum(s, i, j, layer) {
  const { gpt } = s;
  const { C } = s.shape;
  const ofToken = (all) => all.subarray(i * C, i * C + C);
  const lines = gpt.layers.map(({ x, middle }, l) => {
    const [start, mid, end] = [x, middle, gpt.layers[l + 1]?.x ?? gpt.last].map(ofToken);
    const guess = softmax(gpt.logits(i, l + 1), 1);
    const [best] = largest(guess, 1);
    const [attention, mlp] = [distance(mid, start), distance(end, mid)];
    return { attention, mlp, length: norm(end), best, prob: guess[best] };
  });
  const most = Math.max(...lines.flatMap(({ attention, mlp }) => [attention, mlp]));
  const added = (v, ink) => html`<td class="nowrap">${bar(v, most, ink)} ${v.toFixed(1)}</td>`;
  const row = (
    { attention, mlp, length, best, prob },
    l,
  ) => html`<tr class=${l === layer ? "on" : ""}>
    <th scope="row">${l}</th>
    ${added(attention, "blue")}${added(mlp, "green")}${numberCell(length.toFixed(1))}
    <td class="nowrap">${token(truncate(s.name(best), 11))} ${percent(prob)}</td>
  </tr>`;
  const titles = ["layer", "attention adds", "feed-forward adds", "length", "prediction so far"];
  return html`
    <table class="adding">
      ${tableHead(titles, (n) => n === 3)}
      <tbody>
        <tr class="quiet">
          <th scope="row">–</th><td colspan="2">the embedding</td>
          ${numberCell(norm(ofToken(gpt.layers[0].x)).toFixed(1))}<td />
        </tr>
        ${lines.map(row)}
      </tbody>
    </table>
    <p class="sub quiet">
      Layer by layer for “${s.word(i, 20)}”: the size of each update, and the prediction if the model stopped there.
    </p>`;
}

/** From the logits to the probabilities of the next token. */
function drawNext(s) {
  const { logits, probs } = s;
  const t = s.get("temperature");
  const order = largest(logits, 8);
  const top = logits[order[0]];
  const power = (v) => Math.exp((v - top) / t);
  let sum = 0;
  for (const v of logits) sum += power(v);
  const row = (id) => {
    const powered = fixed(power(logits[id]), 3);
    const cells = [fixed(logits[id]), fixed(logits[id] / t), powered, percent(probs[id])];
    return html`<tr>
      <th scope="row">${token(truncate(s.name(id), 14))}</th>${cells.map(numberCell)}
    </tr>`;
  };
  return html`
    <table class="ending">
      ${tableHead(["token", "logit", `÷ ${t.toFixed(1)}`, "e^(… − largest)", "÷ sum"])}
      <tbody>
        ${order.map(row)}
        <tr class="total">
          <th scope="row">all ${grouped(s.shape.V)}</th><td /><td />
          ${numberCell(fixed(sum, 3))}${numberCell("100%")}
        </tr>
      </tbody>
    </table>
    <p class="sub quiet">
      A low temperature makes the likeliest token even likelier, a high one evens them out. “Sample next token” appends one to the text, and everything starts again.
    </p>`;
}

const STAGES = [
  {
    name: "tokens",
    links: ["14_byte_pair_encoding"],
    draw: drawTokens,
    explain: ({ T, V }) =>
      `The text is cut into ${T} ${T === 1 ? "token" : "tokens"}. Each has an id below ${grouped(V)}; from here on, the model sees only numbers.`,
  },
  {
    name: "vectors",
    links: ["01_words_as_vectors"],
    draw: drawVectors,
    explain: ({ C }) =>
      `Each id selects a row of the embedding table: ${C} numbers, learned in training. The same token starts as the same row wherever it occurs.`,
  },
  {
    name: "scores",
    links: ["04_queries_keys_values", "05_scaling", "07_position"],
    draw: drawScores,
    explain: ({ hs }) =>
      `In every head, each token has a query q and a key k (${hs} numbers each), rotated by their positions. A score is q · k ÷ ${Math.sqrt(hs).toFixed(0)}.`,
  },
  {
    name: "weights",
    links: ["03_causal_averaging", "04_queries_keys_values"],
    draw: drawWeights,
    explain: () =>
      "The mask hides later tokens. Softmax turns the remaining scores into positive weights that add up to 1.",
  },
  {
    name: "values",
    links: ["04_queries_keys_values", "06_multi_head"],
    draw: drawValues,
    explain: ({ hs }) =>
      `Each token offers a value v (${hs} numbers). The head’s output is their weighted sum.`,
  },
  {
    name: "sum",
    links: ["08_transformer_block", "09_gpt"],
    draw: drawSum,
    explain: ({ L, H }) =>
      `In each of the ${L} layers, ${H} attention heads add to the token’s vector, then a feed-forward network that sees only this token.`,
  },
  {
    name: "next",
    links: ["02_language_modelling", "12_generation"],
    draw: drawNext,
    explain: ({ V }) =>
      `The last vector · one row for each of ${grouped(V)} tokens gives the logits. Softmax turns logits ÷ temperature into probabilities.`,
  },
];
