// What the stages of sentence.js are drawn with: tiles of coloured cells, the square map, lists of keys.

const vectorText = (v, n) =>
  `${Array.from(v.slice(0, n), (x) => fixed(x)).join("  ")}${v.length > n ? "  …" : ""}`;
const token = (text) => html`<span class="token">${text}</span>`;
const numberCell = (text) => html`<td class="number">${text}</td>`;

/** The head of a table. isNumber(n): does the n-th column hold numbers? */
function tableHead(titles, isNumber = (n) => n > 0) {
  const cell = (title, n) =>
    html`<th scope="col" class=${isNumber(n) ? "number" : ""}>${title}</th>`;
  return html`<thead><tr>${titles.map(cell)}</tr></thead>`;
}

/** The largest of the numbers, without their signs. */
function maxAbs(v, from = 0, to = v.length) {
  let most = 1e-9;
  for (let i = from; i < to; i++) most = Math.max(most, Math.abs(v[i]));
  return most;
}

/** The colours of the page, by name, and those of maps. */
const readInks = (node) => ({ ...cssColors(node, "ink quiet line red"), maps: mapInks(node) });

/** Numbers as coloured cells: v(y, x) from −1 to 1; NaN is masked. */
function tile({ maps }, rows, columns, v) {
  const made = document.createElement("canvas");
  made.width = columns;
  made.height = rows;
  const ctx = made.getContext("2d");
  const image = ctx.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let y = 0, at = 0; y < rows; y++)
    for (let x = 0; x < columns; x++) pixels[at++] = maps.pixel(v(y, x));
  ctx.putImageData(image, 0, 0);
  return made;
}

/** A tile as a picture of its own, scaled up. Returns the <canvas> and its ctx. */
function tilePicture(cells, width, height, label) {
  const picture = canvas(width, height, label);
  const ctx = picture.getContext("2d");
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(cells, 0, 0, width, height);
  return { picture, ctx };
}

/** A square map of all queries (down) and keys (across), query i and key j framed. */
function squareMap(s, v, label, i, j) {
  const { inks } = s;
  const T = s.ids.length;
  const size = Math.max(Math.floor(216 / T), 6);
  const W = size * T;
  const picture = canvas(W + 2, W + 2, label);
  const ctx = picture.getContext("2d");
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(tile(inks, T, T, v), 1, 1, W, W);
  ctx.strokeStyle = inks.line;
  ctx.strokeRect(0.5, 0.5, W + 1, W + 1);
  ctx.lineWidth = 2;
  ctx.strokeStyle = inks.ink;
  ctx.strokeRect(1, 1 + i * size, W, size);
  ctx.strokeRect(1 + j * size, 1 + i * size, size, size);
  picture.addEventListener("click", ({ offsetX, offsetY }) => {
    const cell = (at) => Math.min(T - 1, Math.floor((at / picture.clientWidth) * T));
    const [x, y] = [cell(offsetX), cell(offsetY)];
    s.key = x;
    s.change({ position: y === T - 1 ? -1 : y });
  });
  return html`<figure class="square">
    ${picture}<figcaption class="quiet">query ↓  key →</figcaption>
  </figure>`;
}

/** The keys of the chosen query in this order; one, j, is chosen. cells(k): the columns of key k. */
function keyList(s, order, heads, cells, j) {
  if (!order.includes(j)) order = [...order.slice(0, -1), j];
  const row = (k) => html`<tr class=${k === j ? "on" : ""}>
    <th scope="row">
      <button type="button" class="token" data-n=${k} aria-pressed=${String(k === j)}
        tabindex=${k === j ? 0 : -1}>${s.word(k, 11)}</button>
    </th>
    ${cells(k).map(numberCell)}
  </tr>`;
  return html`<table class="keys-list">${tableHead(heads)}<tbody>${order.map(row)}</tbody></table>`;
}

/** A bar in a line of text. */
function bar(v, most, ink = "blue") {
  const width = Math.max(1, Math.round((64 * Math.abs(v)) / most));
  return html`<i class="line" style="width:${width}px;background:var(--${ink})" />`;
}
