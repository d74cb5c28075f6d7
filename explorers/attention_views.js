// The parts of the attention explorer. Each takes the explorer's state `s` (attention.js)
// and returns { node, paint, ... }; paint shows the present state.

const STEPS = 60000; // a weight is (step + ½) / STEPS: see attention_maps.py
/** Writes into the text that is there, if it is another one: new text would be styled anew, too. */
function setTextData(node, text) {
  if (!node.firstChild) node.textContent = text;
  else if (node.firstChild.data !== text) node.firstChild.data = text;
}

/** The colour goes with the square root, so that small weights can be told apart. */
const shade = (weight) => Math.min(255, Math.round(255 * Math.sqrt(weight)));
/** A score in at most 9 characters, so that no column overflows. */
const signedText = (v, digits = 2) =>
  (Math.abs(v) < 1000 ? v.toFixed(digits) : v.toPrecision(digits + 2)).replace("-", "−");
/** Black or white: of the two, one has a contrast of 4.5 to any colour. */
function readableOn(rgb) {
  const [r, g, b] = rgb.map((v) =>
    v / 255 > 0.04045 ? ((v / 255 + 0.055) / 1.055) ** 2.4 : v / 255 / 12.92,
  );
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}
const clamp = (low, v, high) => Math.max(low, Math.min(high, v));

/** The layers × heads as small maps of the chosen stage. They are one picture under the buttons, drawn
    once for each stage. */
function headGrid(s) {
  const { L, H, T, N } = s;
  const gap = 2;
  const columns = H > 1 ? H + 1 : 1; // the last one: the mean over the layer's heads
  const picture = canvas(1, 1, "");
  put(picture, { "aria-hidden": "true" });
  let size = 0;
  let ratio = 0;
  let walls = {};
  let hung = null;

  /** All small maps of a stage. Of a long text, a pixel shows the strongest value of its block. */
  function wall(stage) {
    const scoring = stage !== "softmax";
    const hiding = stage !== "scores";
    const values = scoring ? s.scores : s.steps;
    const side = Math.min(T, Math.round(size * ratio));
    const wide = columns * side;
    const block = Uint16Array.from({ length: T }, (_, k) => Math.floor((k * side) / T));
    const open = Uint32Array.from({ length: N }, (_, k) => k).filter(
      (k) => !(hiding && s.masked[k]),
    );
    const inBlock = open.map((k) => block[Math.floor(k / T)] * wide + block[k % T]); // of a map at the left top
    const blocks = Uint32Array.from(new Set(inBlock));
    const best = new Float32Array(side * wide);
    const image = new ImageData(wide, L * side);
    const { shades, signs, pixel } = s.theme.maps;
    const pixels = new Uint32Array(image.data.buffer).fill(pixel(hiding ? NaN : 0));
    function small(data, first, unit, layer, c) {
      best.fill(0);
      for (let n = 0; n < open.length; n++) {
        const v = data[first + open[n]];
        const p = inBlock[n];
        if (Math.abs(v) > Math.abs(best[p])) best[p] = v;
      }
      const at = layer * side * wide + c * side;
      let most = scoring ? 1e-6 : unit; // the colours of scores reach as far as the largest of the head
      if (scoring) for (const p of blocks) most = Math.max(most, Math.abs(best[p]));
      for (const p of blocks)
        pixels[at + p] = scoring
          ? signs[Math.round(127.5 * (best[p] / most + 1))]
          : shades[shade(best[p] / most)];
    }
    for (let layer = 0; layer < L; layer++) {
      const sum = new Float32Array(N);
      for (let c = 0, first = layer * H * N; c < H; c++, first += N) {
        small(values, first, STEPS, layer, c);
        for (const k of open) sum[k] += values[first + k];
      }
      if (H > 1) small(sum, 0, STEPS * H, layer, H);
    }
    const exact = html`<canvas width=${wide} height=${L * side} />`;
    const all = html`<canvas width=${picture.width} height=${picture.height} />`;
    exact.getContext("2d").putImageData(image, 0, 0);
    const ctx = all.getContext("2d");
    const pitch = size + gap;
    ctx.imageSmoothingEnabled = false;
    ctx.scale(ratio, ratio);
    for (let layer = 0; layer < L; layer++)
      for (let c = 0; c < columns; c++) {
        const [x, y] = [c * pitch, layer * pitch];
        ctx.drawImage(exact, c * side, layer * side, side, side, x, y, size, size);
      }
    return all;
  }

  const choose = (layer, c) =>
    s.set(c < H ? { layer, head: c, average: false } : { layer, average: true });
  const cell = (layer, c) => {
    const name = `layer ${layer}, ${c < H ? `head ${c}` : `mean of ${H} heads`}`;
    return html`<button type="button" role="gridcell" tabindex="-1" aria-selected="false"
      aria-label=${name} title=${name} onclick=${() => choose(layer, c)} />`;
  };
  const count = (n) => Array.from({ length: n }, (_, k) => k);
  const rows = count(L).map((layer) => count(columns).map((c) => cell(layer, c)));
  const cells = rows.flat();
  const numbers = (n) => count(n).map((k) => html`<span>${k}</span>`);
  const top = html`<div class="quiet top" aria-hidden="true">${numbers(columns)}</div>`;
  const node = html`<div class="grid" role="grid" aria-label="Layers and heads. Arrow keys choose."
    style="--columns: ${columns}" onkeydown=${press}>
    <span class="quiet names" aria-hidden="true">
      ${H > 1 ? "head →, layer ↓ (from 0)" : "layer ↓ (from 0)"}
    </span>
    ${top}
    <div class="quiet rows" aria-hidden="true">${numbers(L)}</div>
    <div class="maps">
      ${picture}
      <div class="buttons">${rows.map((row) => html`<div role="row">${row}</div>`)}</div>
    </div>
  </div>`;
  function press(event) {
    const c = s.get("average") ? H : s.get("head");
    const layer = s.get("layer");
    const to = {
      ArrowLeft: [layer, c - 1],
      ArrowRight: [layer, c + 1],
      ArrowUp: [layer - 1, c],
      ArrowDown: [layer + 1, c],
      Home: [layer, 0],
      End: [layer, columns - 1],
    }[event.key];
    if (!to) return;
    event.preventDefault();
    const next = [Math.min(L - 1, Math.max(0, to[0])), Math.min(columns - 1, Math.max(0, to[1]))];
    following = next[0] * columns + next[1] !== current;
    choose(...next);
  }
  let current = 0;
  let following = false;
  let room = 0;
  let seen = -1; // room: the height for the maps; seen: the layer brought into it
  /** The small maps as large as the room allows. */
  function resize(wide, tall) {
    const [across, down] = [Math.floor(wide / columns) - gap, Math.floor(tall / L) - gap];
    const next = clamp(12, down < 12 ? Math.min(across, 22) : Math.min(across, down), 64); // 22: they scroll
    const now = window.devicePixelRatio || 1;
    [room, seen] = [tall, -1];
    if (next === size && now === ratio) return;
    [size, ratio, walls, hung] = [next, now, {}, null];
    node.style.setProperty("--cell", `${size}px`);
    node.classList.toggle("long", L * (size + gap) > tall);
    if (H > 1) setTextData(top.lastChild, size < 30 ? "x̄" : "mean");
    fit(picture, columns * (size + gap) - gap, L * (size + gap) - gap);
  }
  /** The focus goes with the choice, once all else is painted: to move it makes the browser lay out the page. */
  function follow() {
    if (following) cells[current].focus({ preventScroll: true });
    following = false;
    const layer = s.get("layer");
    const pitch = size + gap;
    if (layer !== seen && L * pitch > room) {
      // with its neighbours, and no row cut
      const least = Math.ceil(((layer + 2) * pitch - room) / pitch) * pitch;
      node.scrollTop = Math.min((layer - 1) * pitch, Math.max(node.scrollTop, least));
    }
    seen = layer;
  }
  function paint() {
    cells[current].setAttribute("aria-selected", "false");
    cells[current].tabIndex = -1;
    current = s.get("layer") * columns + (s.get("average") && H > 1 ? H : s.get("head"));
    cells[current].setAttribute("aria-selected", "true");
    cells[current].tabIndex = 0;
    const stage = s.get("stage");
    const now = stage + s.theme.ink;
    if (now === hung) return;
    hung = now;
    const ctx = picture.getContext("2d");
    const wide = picture.width / ratio;
    const high = picture.height / ratio;
    ctx.clearRect(0, 0, wide, high);
    ctx.drawImage((walls[now] ??= wall(stage)), 0, 0, wide, high);
  }
  return { node, paint, follow, resize };
}

/** The chosen map through a T × T picture that is scaled up; one query's row with its numbers. */
function heatMap(s) {
  const { T, N, tokens, masked, get } = s;
  let step = 0;
  let side = 0;
  const area = canvas(1, 1, "");
  const exact = html`<canvas width=${T} height=${T} />`;
  const exactPen = exact.getContext("2d");
  const image = new ImageData(T, T);
  const pixels = new Uint32Array(image.data.buffer);
  const down = html`<div class="down" />`;
  const across = html`<div class="across" />`;
  const node = html`<div class="map">
    <div class="quiet corner" aria-hidden="true"><div>key →</div><div>query ↓</div></div>
    ${across}${down}${area}
  </div>`;
  const upright = s.longest === 1; // single characters stand, words are turned
  const before = Math.max(52, 14 + 7 * s.longest);
  const above = upright ? 30 : Math.max(30, 12 + 7 * s.longest);
  node.style.setProperty("--before", `${before}px`);
  node.style.setProperty("--above", `${above}px`);
  const label = (span, i) => {
    setTextData(span, tokens[i].short);
    span.title = tokens[i].full;
    span.classList.toggle("upright", tokens[i].letters === 1);
    span.classList.toggle("space", tokens[i].space);
    span.style.setProperty("--at", `${(i + 0.5) * step}px`);
    return span;
  };
  let marks = [];

  /** As large as the room allows, in whole pixels for a cell unless there are too many tokens. */
  function resize(wide, tall) {
    const room = Math.min(wide - before - 4, tall - above - 4) / T;
    const next = clamp(1, room > 3 ? Math.floor(room) : room, 56);
    if (next === step) return fit(area, side, side);
    step = next;
    side = Math.round(step * T);
    fit(area, side, side);
    marks = [down, across].map((axis) => {
      const every = Math.ceil((axis === across && upright ? 10 : 11) / step); // as many as can be read
      const mark = html`<span class="mark" />`;
      axis.replaceChildren();
      for (let i = 0; i < T; i += every) axis.append(label(html`<span />`, i));
      axis.append(mark);
      return (i) => {
        mark.hidden = i < 0;
        if (i >= 0) label(mark, i);
      };
    });
  }

  /** The colours of all cells, at one pixel each. */
  function colours() {
    const data = s.values(s.scoring());
    const hide = s.hiding();
    const { shades, signs, pixel } = s.theme.maps;
    const shut = pixel(NaN);
    for (let k = 0; k < N; k++) {
      if (hide && masked[k]) pixels[k] = shut;
      else
        pixels[k] = s.scoring()
          ? signs[Math.round(127.5 * (data[k] / s.largest + 1))]
          : shades[shade(data[k])];
    }
    exactPen.putImageData(image, 0, 0);
  }
  function paint() {
    const i = get("query");
    const ctx = area.getContext("2d");
    ctx.clearRect(0, 0, side, side);
    ctx.imageSmoothingEnabled = step < 3; // else some rows would be twice as thick as others
    ctx.drawImage(exact, 0, 0, side, side);
    marks[0](i);
    marks[1](s.column);
    ctx.lineWidth = 1;
    if (s.column >= 0) {
      ctx.strokeStyle = s.theme.ink;
      ctx.strokeRect(s.column * step + 0.5, 0.5, step - 1, side - 1);
    }
    if (i < 0) return;
    const thick = get("locked") ? 3.5 : 1.5;
    const out = step < 8 ? thick : 1; // the frame of a thin row stands around it, not on it
    for (const [ink, width] of [
      ["paper", thick + 2.5],
      ["red", thick],
    ]) {
      // seen on dark colours and on bright ones
      ctx.strokeStyle = s.theme[ink];
      ctx.lineWidth = width;
      ctx.strokeRect(1, i * step - out / 2, side - 2, step + out);
    }
    if (step >= 28) writeRow(ctx, i);
  }
  function writeRow(ctx, i) {
    const data = s.values(s.scoring());
    ctx.font = `${step < 34 ? 11 : 12}px ${s.theme.mono}`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    for (let j = 0; j < T; j++) {
      const shut = s.hiding() && masked[i * T + j];
      const v = data[i * T + j];
      if (shut && !get("show_masked")) continue;
      ctx.fillStyle = readableOn(
        s.theme.maps.seen(shut ? NaN : s.scoring() ? v / s.largest : Math.sqrt(v)),
      );
      const number = shut ? "−∞" : s.scoring() ? signedText(v, 1) : v.toFixed(2).replace(/^0/, "");
      ctx.fillText(number, (j + 0.5) * step, (i + 0.5) * step, step - 2);
    }
  }
  return { node, area, rows: area, paint, colours, resize };
}

/** The same as lines from the queries on the left to the keys on the right, with the numbers of one
    query beyond them. Of a long text the lists scroll, and what is in sight is drawn. */
function lineView(s) {
  const { T, tokens, masked, get } = s;
  const most = Math.min(T, Math.max(3, Math.floor(320 / T))); // to a query when all are shown: lines cost time
  const numbersWide = s.scores ? 70 : 46;
  const heading = 18;
  const area = canvas(1, 1, "");
  const numbers = canvas(1, 1, "");
  const word = ({ short, full, space }) =>
    html`<span title=${full} class=${space && "space"}>${short}</span>`;
  const rows = html`<div class="list left">${tokens.map(word)}</div>`;
  const keys = html`<div class="list right">${tokens.map(word)}</div>`;
  const column = (name, content, head = name) =>
    html`<div><div class="quiet head ${name}">${head}</div>${content}</div>`;
  const seen = html`<div />`; // which tokens are in sight, if not all
  const node = html`<div class="lines">
    ${column("query", rows)}${column("seen", area, seen)}${column("key", keys)}${column("", numbers)}
  </div>`;
  const row = new Float32Array(T);
  const top = new Float32Array(most);
  let tall = 0;
  let wide = 0;
  let height = 0;
  let marked = null;

  function resize(room, high) {
    tall = clamp(13, Math.floor((high - heading - 2) / T), 28);
    height = tall * Math.min(T, Math.floor((high - heading - 2) / tall)); // whole rows: the last one is not cut
    const bar = tall * T > height ? 16 : 0; // the scroll bar
    wide = clamp(60, room - 2 * Math.max(46, 10 + 7 * s.longest) - numbersWide - bar, 300);
    node.style.setProperty("--tall", `${tall}px`);
    fit(area, wide, height);
    fit(numbers, numbersWide, height);
  }
  /** The value that `most` of the row reach, without sorting all. */
  function largest() {
    top.fill(0);
    for (const v of row) {
      let n = most;
      while (n > 0 && v > top[n - 1]) n--;
      if (n < most) {
        top.copyWithin(n + 1, n, most - 1);
        top[n] = v;
      }
    }
    return top[most - 1];
  }
  function paint() {
    const one = get("query");
    const data = s.values(s.scoring());
    const hide = s.hiding();
    const unit = s.scoring() ? s.largest : 1;
    const over = Math.min(s.scrolled, tall * T - height);
    const y = (i) => (i + 0.5) * tall - over;
    const ctx = area.getContext("2d");
    const writer = numbers.getContext("2d");
    ctx.clearRect(0, 0, wide, height);
    writer.clearRect(0, 0, numbersWide, height);
    writer.fillStyle = s.theme.ink;
    writer.font = `11px ${s.theme.mono}`;
    writer.textAlign = "right";
    writer.textBaseline = "middle";
    for (let i = one < 0 ? 0 : one; i < (one < 0 ? T : one + 1); i++) {
      for (let j = 0; j < T; j++)
        row[j] = hide && masked[i * T + j] ? 0 : Math.abs(data[i * T + j]) / unit;
      const least = Math.max(0.01, one < 0 && most < T ? largest() : 0);
      for (let j = 0; j < T; j++) {
        const v = data[i * T + j];
        const shut = hide && masked[i * T + j];
        if (one >= 0 && !(shut && !get("show_masked")) && y(j) > -tall && y(j) < height + tall) {
          writer.fillText(
            shut ? "−∞" : s.scoring() ? signedText(v) : v.toFixed(3),
            numbersWide - 4,
            y(j),
          );
        }
        if (row[j] < least || Math.min(y(i), y(j)) > height || Math.max(y(i), y(j)) < 0) continue;
        ctx.globalAlpha = Math.min(1, one < 0 ? row[j] : 0.25 + 0.75 * row[j]);
        ctx.strokeStyle = v < 0 ? s.theme.red : s.theme.blue;
        ctx.lineWidth = 0.5 + 4.5 * row[j];
        ctx.setLineDash(v < 0 ? [4, 3] : []);
        ctx.beginPath();
        ctx.moveTo(0, y(i));
        ctx.lineTo(wide, y(j));
        ctx.stroke();
      }
    }
    const first = Math.round(over / tall);
    const last = first + height / tall - 1;
    setTextData(seen, height < tall * T ? `${first}–${last} of ${T} tokens: scroll` : "");
    marked?.classList.remove("on");
    marked = one < 0 ? null : rows.children[one];
    marked?.classList.add("on");
  }
  /** Scrolls so far that the query is in sight. */
  const reveal = (i) => {
    const scroller = node.parentElement;
    scroller.scrollTop = Math.min(i * tall, Math.max(scroller.scrollTop, (i + 1) * tall - height));
  };
  return { node, area, rows, paint, reveal, resize, most, high: () => height + heading };
}
