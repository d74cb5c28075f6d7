// The parts of the attention explorer. Each takes the explorer's state `s` (attention_explorer.js)
// and returns { node, paint, ... }; paint shows the present state.

const STEPS = 60000; // a weight is (step + ½) / STEPS: see attention_maps.py
const packed = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0; // one pixel of ImageData
const SHADES = Uint32Array.from({ length: 256 }, (_, k) => packed(viridis(k / 255)));
const SIGNS = [[5, 48, 97], [67, 147, 195], [247, 247, 247], [214, 96, 77], [103, 0, 31]];

/** Blue for -1, white for 0, red for 1, as [r, g, b]. */
function signed(v) {
  const x = (Math.min(1, Math.max(-1, v)) + 1) * 2, i = Math.min(3, Math.floor(x));
  return SIGNS[i].map((a, k) => Math.round(a + (SIGNS[i + 1][k] - a) * (x - i)));
}
const SIGNED = Uint32Array.from({ length: 256 }, (_, k) => packed(signed(k / 127.5 - 1)));

/** Writes into the text that is there, if it is another one: new text would be styled anew, too. */
function say(node, text) {
  if (!node.firstChild) node.textContent = text;
  else if (node.firstChild.data !== text) node.firstChild.data = text;
}

/** The colour goes with the square root, so that small weights can be told apart. */
const shade = (weight) => Math.min(255, Math.round(255 * Math.sqrt(weight)));
const signedText = (v, digits = 2) => v.toFixed(digits).replace("-", "−");
/** Where masked keys are not shown, and where they are. */
const NOTHING = 0, shutGrey = () => (document.body.dataset.jpThemeLight === "false" ? [70, 70, 70] : [205, 205, 205]);

/** The layers × heads as small maps. They are drawn once, into one picture under the buttons. */
function headGrid(s) {
  const { L, H, T, N } = s, gap = 2;
  const columns = H > 1 ? H + 1 : 1; // the last one: the mean over the layer's heads
  const size = Math.max(12, Math.min(72, Math.floor(262 / columns) - gap, Math.floor(300 / L)));
  const width = columns * (size + gap), height = L * (size + gap);
  const picture = canvas(width, height, "");
  picture.setAttribute("aria-hidden", "true");
  const pen = picture.getContext("2d"), ratio = window.devicePixelRatio || 1, side = Math.min(T, Math.round(size * ratio));
  const block = Uint16Array.from({ length: T }, (_, k) => Math.floor((k * side) / T));
  const small = h("canvas", { width: side, height: side }), smallPen = small.getContext("2d");
  const image = new ImageData(side, side), pixels = new Uint32Array(image.data.buffer);
  const best = new Uint16Array(side * side), open = new Uint8Array(side * side);
  pen.imageSmoothingEnabled = false;
  for (let k = 0; k < N; k++) if (!s.masked[k]) open[block[Math.floor(k / T)] * side + block[k % T]] = 1;

  /** Of a long text, a pixel shows the largest weight of its block. */
  function draw(layer, c) {
    const first = (layer * H + (c < H ? c : 0)) * N, heads = c < H ? 1 : H;
    best.fill(0);
    for (let i = 0, k = 0; i < T; i++) {
      for (let j = 0; j < T; j++, k++) {
        let steps = 0;
        for (let n = 0; n < heads; n++) steps += s.steps[first + n * N + k];
        const p = block[i] * side + block[j];
        if (steps / heads > best[p]) best[p] = steps / heads;
      }
    }
    for (let p = 0; p < best.length; p++) pixels[p] = open[p] ? SHADES[shade(best[p] / STEPS)] : NOTHING;
    smallPen.putImageData(image, 0, 0);
    pen.drawImage(small, c * (size + gap), layer * (size + gap), size, size);
  }

  const choose = (layer, c) => s.set(c < H ? { layer, head: c, average: false } : { layer, average: true });
  const cells = [];
  const buttons = h("div", { class: "buttons", style: `grid-template-columns: repeat(${columns}, ${size}px); grid-auto-rows: ${size}px` });
  for (let layer = 0; layer < L; layer++) {
    const row = h("div", { role: "row" });
    for (let c = 0; c < columns; c++) {
      const name = `layer ${layer}, ${c < H ? `head ${c}` : `mean of ${H} heads`}`;
      cells.push(h("button", { type: "button", role: "gridcell", tabindex: -1, "aria-selected": "false",
        "aria-label": name, title: name, onclick: () => choose(layer, c) }));
      row.append(cells.at(-1));
      draw(layer, c);
    }
    buttons.append(row);
  }
  const numbers = (n, name) => Array.from({ length: n }, (_, k) => h("span", {}, name(k)));
  const node = h("div", { class: "grid", role: "grid", "aria-label": "Layers and heads. Arrow keys choose." },
    h("span", { class: "quiet across-name", "aria-hidden": "true" }, "head →"),
    h("div", { class: "quiet top", "aria-hidden": "true", style: `grid-template-columns: repeat(${columns}, ${size}px)` },
      ...numbers(columns, (c) => (c < H ? c : "mean"))),
    h("span", { class: "quiet down-name", "aria-hidden": "true" }, "layer"),
    h("div", { class: "quiet rows", "aria-hidden": "true", style: `grid-auto-rows: ${size}px` }, ...numbers(L, String)),
    h("div", { class: "maps" }, picture, buttons));
  node.addEventListener("keydown", (event) => {
    const c = s.get("average") ? H : s.get("head"), layer = s.get("layer");
    const to = { ArrowLeft: [layer, c - 1], ArrowRight: [layer, c + 1], ArrowUp: [layer - 1, c],
      ArrowDown: [layer + 1, c], Home: [layer, 0], End: [layer, columns - 1] }[event.key];
    if (!to) return;
    event.preventDefault();
    const next = [Math.min(L - 1, Math.max(0, to[0])), Math.min(columns - 1, Math.max(0, to[1]))];
    following = next[0] * columns + next[1] !== current;
    choose(...next);
  });
  let current = 0, following = false;
  /** The focus goes with the choice, once all else is painted: to move it makes the browser lay out the page. */
  function follow() {
    if (following) cells[current].focus({ preventScroll: true });
    following = false;
  }
  function paint() {
    cells[current].setAttribute("aria-selected", "false");
    cells[current].tabIndex = -1;
    current = s.get("layer") * columns + (s.get("average") && H > 1 ? H : s.get("head"));
    cells[current].setAttribute("aria-selected", "true");
    cells[current].tabIndex = 0;
  }
  return { node, paint, follow };
}

/** The chosen map through a T × T picture that is scaled up; one query's row with its numbers. */
function heatMap(s) {
  const { T, N, tokens, masked, get } = s;
  const step = Math.min(56, Math.max(1, Math.floor((T > 128 ? 520 : 470) / T))), side = step * T;
  const area = canvas(side, side, ""), pen = area.getContext("2d");
  const exact = h("canvas", { width: T, height: T }), exactPen = exact.getContext("2d");
  const image = new ImageData(T, T), pixels = new Uint32Array(image.data.buffer);
  const down = h("div", { class: "down" }), across = h("div", { class: "across" });
  const corner = h("div", { class: "quiet corner", "aria-hidden": "true" }, h("div", {}, "key →"), h("div", {}, "query ↓"));
  const node = h("div", { class: "map" }, corner, across, down, area);
  const longest = Math.max(...tokens.map((token) => Array.from(token.short).length));
  node.style.setProperty("--labels", `${Math.max(56, 12 + 7 * longest)}px`);
  const put = (span, i) => {
    span.textContent = tokens[i].short;
    span.title = tokens[i].full;
    span.style.setProperty("--at", `${(i + 0.5) * step}px`);
    return span;
  };
  const marks = [down, across].map((axis) => {
    for (let i = 0; i < T; i += Math.ceil(13 / step)) axis.append(put(h("span"), i)); // as many as can be read
    const mark = h("span", { class: "mark" });
    axis.append(mark);
    return (i) => { mark.hidden = i < 0; if (i >= 0) put(mark, i); };
  });

  /** The colours of all cells, at one pixel each. */
  function colours() {
    const data = s.values(s.scoring()), hide = s.hiding(), shut = get("show_masked") ? packed(shutGrey()) : NOTHING;
    for (let k = 0; k < N; k++) {
      if (hide && masked[k]) pixels[k] = shut;
      else pixels[k] = s.scoring() ? SIGNED[Math.round(127.5 * (data[k] / s.largest + 1))] : SHADES[shade(data[k])];
    }
    exactPen.putImageData(image, 0, 0);
  }
  function paint() {
    const i = get("query");
    pen.clearRect(0, 0, side, side);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(exact, 0, 0, side, side);
    marks[0](i);
    marks[1](s.column);
    pen.lineWidth = 1;
    if (s.column >= 0) {
      pen.strokeStyle = s.theme.ink;
      pen.strokeRect(s.column * step + 0.5, 0.5, step - 1, side - 1);
    }
    if (i < 0) return;
    pen.globalAlpha = 0.8;
    pen.fillStyle = s.theme.paper;
    pen.fillRect(0, 0, side, i * step);
    pen.fillRect(0, (i + 1) * step, side, side);
    pen.globalAlpha = 1;
    pen.strokeStyle = s.theme.focus;
    pen.lineWidth = get("locked") ? 3.5 : 1.5;
    pen.strokeRect(1, i * step - 0.5, side - 2, step + 1);
    if (step >= 28) writeRow(i);
  }
  function writeRow(i) {
    const data = s.values(s.scoring());
    pen.font = `${step < 34 ? 11 : 12}px ${s.theme.mono}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let j = 0; j < T; j++) {
      const shut = s.hiding() && masked[i * T + j], v = data[i * T + j];
      if (shut && !get("show_masked")) continue;
      pen.fillStyle = inkOn(shut ? shutGrey() : s.scoring() ? signed(v / s.largest) : viridis(Math.sqrt(v)));
      const number = shut ? "−∞" : s.scoring() ? signedText(v, 1) : v.toFixed(2).replace(/^0/, "");
      pen.fillText(number, (j + 0.5) * step, (i + 0.5) * step);
    }
  }
  return { node, area, rows: area, paint, colours };
}

/** The same as lines from the queries on the left to the keys on the right; drawn where in sight. */
function lineView(s) {
  const { T, tokens, masked, get } = s;
  const tall = Math.max(16, Math.min(28, Math.floor(470 / T))), wide = 300, numbers = 52, height = Math.min(620, tall * T);
  const most = Math.min(T, Math.max(3, Math.floor(320 / T))); // to a query when all are shown: lines cost time
  const area = canvas(wide + numbers, height, ""), pen = area.getContext("2d");
  const list = (side) => h("div", { class: `list ${side}` }, ...tokens.map(({ short, full }) =>
    h("span", { title: full, style: `height:${tall}px` }, short)));
  const rows = list("left"), node = h("div", { class: "lines" }, rows, area, list("right"));
  const row = new Float32Array(T), top = new Float32Array(most);
  /** The value that `most` of the row reach, without sorting all. */
  function largest() {
    top.fill(0);
    for (const v of row) {
      let n = most;
      while (n > 0 && v > top[n - 1]) n--;
      if (n < most) { top.copyWithin(n + 1, n, most - 1); top[n] = v; }
    }
    return top[most - 1];
  }
  let marked = null;
  function paint() {
    const one = get("query"), data = s.values(s.scoring()), hide = s.hiding(), unit = s.scoring() ? s.largest : 1;
    const over = Math.min(s.scrolled, tall * T - height), y = (i) => (i + 0.5) * tall - over;
    marked?.classList.remove("on");
    marked = one < 0 ? null : rows.children[one];
    marked?.classList.add("on");
    pen.clearRect(0, 0, wide + numbers, height);
    for (let i = one < 0 ? 0 : one; i < (one < 0 ? T : one + 1); i++) {
      for (let j = 0; j < T; j++) row[j] = hide && masked[i * T + j] ? 0 : Math.abs(data[i * T + j]) / unit;
      const least = Math.max(0.01, one < 0 && most < T ? largest() : 0);
      for (let j = 0; j < T; j++) {
        const v = data[i * T + j];
        if (one >= 0) write(v, hide && masked[i * T + j], y(j));
        if (row[j] < least || Math.min(y(i), y(j)) > height || Math.max(y(i), y(j)) < 0) continue;
        pen.globalAlpha = Math.min(1, one < 0 ? row[j] : 0.25 + 0.75 * row[j]);
        pen.strokeStyle = v < 0 ? s.theme.red : s.theme.blue;
        pen.lineWidth = 0.5 + 4.5 * row[j];
        pen.setLineDash(v < 0 ? [4, 3] : []);
        pen.beginPath();
        pen.moveTo(0, y(i));
        pen.lineTo(wide, y(j));
        pen.stroke();
      }
    }
  }
  function write(v, shut, y) {
    if ((shut && !get("show_masked")) || y < -tall || y > height + tall) return;
    pen.globalAlpha = 1;
    pen.fillStyle = s.theme.ink;
    pen.font = `11px ${s.theme.mono}`;
    pen.textBaseline = "middle";
    pen.fillText(shut ? "−∞" : s.scoring() ? signedText(v) : v.toFixed(3), wide + 6, y);
  }
  /** Scrolls so far that the query is in sight. */
  const reveal = (i) => {
    const scroller = node.parentElement, slack = scroller.clientHeight - tall;
    scroller.scrollTop = Math.min(i * tall, Math.max(scroller.scrollTop, i * tall - slack));
  };
  return { node, area, rows, paint, reveal, most };
}
