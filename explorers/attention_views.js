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

/** Draws what stage(0), stage(1) and stage(2) give, faded into each other as far as the phase has come. */
function fade(ctx, phase, stage, width, height) {
  const before = Math.floor(phase);
  ctx.globalAlpha = 1 - (phase - before);
  ctx.drawImage(stage(before), 0, 0, width, height);
  if (phase > before) {
    ctx.globalAlpha = phase - before;
    ctx.globalCompositeOperation = "lighter"; // the sum of both shares: halfway, nothing is paler
    ctx.drawImage(stage(before + 1), 0, 0, width, height);
    ctx.globalCompositeOperation = "source-over";
  }
  ctx.globalAlpha = 1;
}

/** The tokens in a line, with an arc from the query to each key. Where all may attend to all, two
    lines with threads between them: keys above, queries below. Under (over) a key stands its value. */
function sentenceView(s) {
  const { T, tokens, masked, get, two } = s;
  const cell = 20; // the height of the values
  let line = 26; // and of the tokens
  const word = ({ short, full }) => {
    const [, space, rest] = /^(␣?)(.*)$/s.exec(short); // the space before a word is paler than the word
    return html`<span title=${full}>${rest && space && html`<small>${space}</small>`}${rest || space}</span>`;
  };
  const area = canvas(1, 1, "");
  const rows = html`<div class="tokens">${tokens.map(word)}</div>`;
  const keys = two ? html`<div class="tokens">${tokens.map(word)}</div>` : rows;
  const lines = two ? [keys, rows] : [rows];
  const node = html`<div class="sentence">${area}${lines}</div>`;
  let at = []; // the middle of each token
  let wide = 0;
  let high = 0;
  let free = 0; // from where to where the arcs reach
  let marked = null;

  function resize(room, tall) {
    const pen = area.getContext("2d");
    let widths = [];
    for (const size of [21, 18, 16, 14]) {
      node.style.setProperty("--size", `${size}px`);
      pen.font = `${size}px ${getComputedStyle(node).fontFamily}`;
      widths = tokens.map(({ short }) => Math.max(size, 16, pen.measureText(short).width + 8));
      if (widths.reduce((a, b) => a + b) <= room) break;
    }
    let sum = widths.reduce((a, b) => a + b);
    const turned = sum > room && 16 * T <= room; // on a phone, words stand on end
    node.classList.toggle("turned", turned);
    line = turned ? Math.max(...widths) : 26;
    if (turned) widths.fill((sum = room) / T);
    const more = clamp(0, (room - sum) / T, 22);
    wide = Math.max(room, sum);
    let x = Math.max(0, (room - sum - T * more) / 2);
    at = widths.map((width) => (x += width + more) - (width + more) / 2);
    s.edges = at.map((middle, i) => middle + (widths[i] + more) / 2);
    high = tall;
    free = tall - cell - line * lines.length;
    fit(area, room, high);
    Object.assign(node.style, { width: `${wide}px`, height: `${high}px` });
    for (const row of lines) {
      row.style.top = `${two ? (row === keys ? cell : cell + line + free) : free}px`;
      tokens.forEach((_, i) => (row.children[i].style.left = `${at[i]}px`));
    }
  }
  /** From a query to a key: x and the places of both ends, and how far the curve bends. */
  function arc(ctx, i, j, v, strong) {
    const size = Math.min(1, Math.abs(v));
    ctx.globalAlpha = strong ? 0.15 + 0.85 * size : 0.75 * size;
    ctx.strokeStyle = v < 0 ? s.theme.red : s.theme.blue;
    ctx.lineWidth = (strong ? 1 : 0.5) + (strong ? 8 : 4) * size;
    ctx.setLineDash(v < 0 ? [5, 4] : []);
    ctx.beginPath();
    if (two) {
      const [top, bottom] = [cell + line, cell + line + free];
      const bend = (top + bottom) / 2;
      ctx.moveTo(at[i], bottom);
      ctx.bezierCurveTo(at[i], bend, at[j], bend, at[j], top);
    } else if (i === j) ctx.ellipse(at[i], free - 11, 7, 10, 0, 0, 2 * Math.PI);
    else {
      const half = Math.abs(at[i] - at[j]) / 2;
      const rise = 18 + (free - 26) * ((2 * half) / (at[T - 1] - at[0])) ** 0.7;
      ctx.ellipse((at[i] + at[j]) / 2, free, half, rise, 0, Math.PI, 2 * Math.PI);
    }
    ctx.stroke();
  }
  function paint() {
    const one = get("query");
    const ctx = area.getContext("2d");
    const over = s.scrolled;
    const room = parseFloat(area.style.width);
    ctx.clearRect(0, 0, room, high);
    ctx.save();
    ctx.translate(-over, 0);
    ctx.lineCap = "round";
    for (let i = Math.max(0, one); i < (one < 0 ? T : one + 1); i++)
      for (let j = 0; j < T; j++) {
        const [v] = s.between(i, j);
        if (Math.abs(v) > (one < 0 ? 0.1 : 0.01)) arc(ctx, i, j, v, one >= 0);
      }
    ctx.globalAlpha = 1;
    ctx.setLineDash([]);
    const y = two ? 0 : free + line;
    ctx.font = `11px ${s.theme.mono}`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    for (let j = 0; j < T; j++) {
      const left = j ? s.edges[j - 1] : 2 * at[0] - s.edges[0];
      const span = s.edges[j] - left - 2;
      if (s.edges[j] < over || left > over + room) continue;
      const ink = s.between(one, j)[1];
      ctx.fillStyle = rgb(ink);
      ctx.fillRect(left + 1, y, span, cell);
      ctx.fillStyle = s.theme.line;
      ctx.fillRect(left + 1, two ? y : y + cell - 1, span, 1);
      ctx.fillStyle = readableOn(ink);
      const shut = one >= 0 && masked[one * T + j];
      ctx.fillText(s.number(one, j, (span + 2.5) / 6.6), left + 1 + span / 2, y + cell / 2 + 1);
      keys.children[j].classList.toggle("shut", Boolean(shut) && s.phase > 0.5);
    }
    ctx.restore();
    marked?.classList.remove("on");
    marked = rows.children[one];
    marked?.classList.add("on");
  }
  /** Scrolls so far that the query is in sight. */
  const reveal = (i) => {
    const scroller = node.parentElement;
    if (wide > scroller.clientWidth) scroller.scrollLeft = at[i] - scroller.clientWidth / 2;
  };
  /** The token at a place of the line. */
  const find = (x) =>
    Math.max(
      0,
      s.edges.findIndex((edge) => x < edge),
    );
  return { node, paint, reveal, resize, find };
}

/** The layers and heads as small maps of the chosen stage: one picture under the buttons. More layers
    than heads stand side by side, else the heads do. */
function headGrid(s) {
  const { L, H, T, N, get } = s;
  const gap = 2;
  const turned = L > H;
  const [columns, lines] = turned ? [L, H] : [H, L];
  const placeOf = (column, row) => (turned ? [column, row] : [row, column]);
  const picture = canvas(1, 1, "");
  put(picture, { "aria-hidden": "true" });
  let size = 0;
  let walls = {};
  let hung = null;

  /** All small maps of a stage. Of a long text, a pixel shows the strongest value of its block. */
  function wall(stage) {
    const values = stage < 2 ? s.scores : s.steps;
    const side = Math.min(T, size);
    const block = Uint16Array.from({ length: T }, (_, k) => Math.floor((k * side) / T));
    const open = Uint32Array.from({ length: N }, (_, k) => k).filter(
      (k) => !(stage && s.masked[k]),
    );
    const inBlock = open.map((k) => block[Math.floor(k / T)] * side + block[k % T]);
    const { shades, signs, pixel } = s.theme.maps;
    const exact = html`<canvas width=${side} height=${side} />`;
    const all = html`<canvas width=${picture.width} height=${picture.height} />`;
    const ctx = all.getContext("2d");
    ctx.imageSmoothingEnabled = false;
    ctx.scale(all.width / picture.clientWidth, all.height / picture.clientHeight);
    const image = new ImageData(side, side);
    const pixels = new Uint32Array(image.data.buffer);
    const best = new Float32Array(side * side);
    for (let c = 0; c < columns; c++)
      for (let r = 0; r < lines; r++) {
        const [layer, head] = placeOf(c, r);
        const first = (layer * H + head) * N;
        best.fill(0);
        open.forEach((k, n) => {
          const v = values[first + k];
          if (Math.abs(v) > Math.abs(best[inBlock[n]])) best[inBlock[n]] = v;
        });
        // the colours of scores reach as far as the largest of the head
        const most = stage < 2 ? best.reduce((a, v) => Math.max(a, Math.abs(v)), 1e-6) : STEPS;
        pixels.fill(pixel(stage ? NaN : 0));
        for (const p of inBlock)
          pixels[p] =
            stage < 2
              ? signs[Math.round(127.5 * (best[p] / most + 1))]
              : shades[shade(best[p] / most)];
        exact.getContext("2d").putImageData(image, 0, 0);
        ctx.clearRect(c * (size + gap), r * (size + gap), size, size);
        ctx.drawImage(exact, c * (size + gap), r * (size + gap), size, size);
      }
    return all;
  }

  const choose = (layer, head) => s.set({ layer, head });
  const cell = (layer, head) => {
    const name = `layer ${layer}, head ${head}`;
    return html`<button type="button" role="gridcell" tabindex="-1" aria-selected="false"
      aria-label=${name} title=${name} onclick=${() => choose(layer, head)} />`;
  };
  const count = (n) => Array.from({ length: n }, (_, k) => k);
  const rows = count(lines).map((r) => count(columns).map((c) => cell(...placeOf(c, r))));
  const cells = rows.flat();
  const numbers = (n) => count(n).map((k) => html`<span>${k}</span>`);
  const node = html`<div class="grid" role="grid" aria-label="Layers and heads. Arrow keys choose."
    style="--columns: ${columns}" onkeydown=${press}>
    <span class="quiet names" aria-hidden="true">
      ${turned ? "layer →, head ↓" : "head →, layer ↓"} (from 0)
    </span>
    <div class="quiet top" aria-hidden="true">${numbers(columns)}</div>
    <div class="quiet rows" aria-hidden="true">${numbers(lines)}</div>
    <div class="maps">
      ${picture}
      <div class="buttons">${rows.map((row) => html`<div role="row">${row}</div>`)}</div>
    </div>
  </div>`;
  const placeNow = () => (turned ? get("head") * L + get("layer") : get("layer") * H + get("head"));
  let current = 0;
  let following = false;
  let seen = -1; // the column brought into sight
  function press(event) {
    const here = placeNow();
    const [c, r] = [here % columns, Math.floor(here / columns)];
    const to = {
      ArrowLeft: [c - 1, r],
      ArrowRight: [c + 1, r],
      ArrowUp: [c, r - 1],
      ArrowDown: [c, r + 1],
      Home: [0, r],
      End: [columns - 1, r],
    }[event.key];
    if (!to) return;
    event.preventDefault();
    following = true;
    choose(...placeOf(clamp(0, to[0], columns - 1), clamp(0, to[1], lines - 1)));
  }
  /** The small maps as large as the room allows; of too many columns, those that fit are seen whole. */
  function resize(wide, tall) {
    const fitting = Math.min(columns, Math.floor(wide / (21 + gap)));
    const [across, down] = [Math.floor(wide / fitting) - gap, Math.floor(tall / lines) - gap];
    size = clamp(21, Math.min(across, down), 72);
    node.style.width = `${21 + fitting * (size + gap)}px`;
    [walls, hung, seen] = [{}, null, -1];
    node.style.setProperty("--cell", `${size}px`);
    fit(picture, columns * (size + gap) - gap, lines * (size + gap) - gap);
  }
  /** The focus goes with the choice, once all else is painted: to move it makes the browser lay out the page. */
  function follow() {
    if (following && node.matches(":focus-within")) cells[current].focus({ preventScroll: true });
    following = false;
    const column = current % columns;
    if (column !== seen) node.scrollLeft = (column - 4) * (size + gap);
    seen = column;
  }
  function paint() {
    cells[current].setAttribute("aria-selected", "false");
    cells[current].tabIndex = -1;
    current = placeNow();
    cells[current].setAttribute("aria-selected", "true");
    cells[current].tabIndex = 0;
    const now = s.phase + s.theme.ink;
    if (now === hung) return;
    hung = now;
    const [wide, high] = [picture.clientWidth, picture.clientHeight];
    const ctx = fit(picture, wide, high);
    fade(ctx, s.phase, (stage) => (walls[stage + s.theme.ink] ??= wall(stage)), wide, high);
  }
  return { node, paint, follow, resize };
}

/** The chosen map through a T × T picture that is scaled up; one query's row with its numbers. */
function heatMap(s) {
  const { T, N, tokens, masked, get } = s;
  let step = 0;
  let side = 0;
  const area = canvas(1, 1, "");
  const exact = [0, 1, 2].map(() => html`<canvas width=${T} height=${T} />`);
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
    step = clamp(1, room > 3 ? Math.floor(room) : room, 40);
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

  /** The colours of all cells in each stage, at one pixel each. */
  function colours() {
    const image = new ImageData(T, T);
    const pixels = new Uint32Array(image.data.buffer);
    const { shades, signs, pixel } = s.theme.maps;
    const weights = s.values(false);
    const scores = s.scores && s.values(true);
    for (let stage = scores ? 0 : 2; stage < 3; stage++) {
      for (let k = 0; k < N; k++) {
        if (stage && masked[k]) pixels[k] = pixel(NaN);
        else if (stage === 2) pixels[k] = shades[shade(weights[k])];
        else pixels[k] = signs[Math.round(127.5 * (scores[k] / s.largest + 1))];
      }
      exact[stage].getContext("2d").putImageData(image, 0, 0);
    }
  }
  function paint() {
    const i = get("query");
    const ctx = area.getContext("2d");
    ctx.clearRect(0, 0, side, side);
    ctx.imageSmoothingEnabled = step < 3; // else some rows would be twice as thick as others
    fade(ctx, s.phase, (stage) => exact[stage], side, side);
    marks[0](i);
    marks[1](s.column);
    ctx.lineWidth = 1;
    if (s.column >= 0) {
      ctx.strokeStyle = s.theme.ink;
      ctx.strokeRect(s.column * step + 0.5, 0.5, step - 1, side - 1);
    }
    if (i < 0) return;
    const thick = get("locked") ? 3 : 1.5;
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
  }
  return { node, area, paint, colours, resize };
}
