// Shared by all explorers (base.py puts this in front of each one's own module).
// Text reaches the page through textContent only: tokens are never read as markup.

/**
 * The traits of the explorer in Python, as anywidget hands them over.
 * @typedef {object} WidgetModel
 * @property {(name: string) => any} get
 * @property {(name: string, value: any) => void} set
 * @property {(events: string, callback: (...said: any[]) => void) => void} on
 * @property {(events: string, callback: (...said: any[]) => void) => void} off
 * @property {(callbacks?: object) => void} save_changes
 * @property {(message: object) => void} [send]
 * @property {(file: string) => Promise<Uint8Array>} [weights] in the book only
 */

const isShown = (child) => child || child === 0;
const SVG = new Set("svg g line path circle rect text polygon polyline".split(" "));

/** An element: h("button", { class: "x", onclick: f }, "text", child). */
function h(tag, attributes = {}, ...children) {
  const node = SVG.has(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  put(node, attributes);
  if (children.length) node.append(...children.flat(Infinity).filter(isShown));
  return node;
}

/** Gives a node these attributes and listeners: true stands for one without a value, false and null for none. */
function put(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === false || value == null) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : value);
  }
}

const PARTS =
  /<\/([\w-]+)>|<([\w-]+)((?:\s+(?:\.{3}\0|[\w-]+(?:="[^"]*"|=\0)?))*)\s*(\/?)>|\0|[^<\0]+|</g;
const EDGES_OF_TEXT = /^\s*\n\s*|\s*\n\s*$/g;
const ATTRIBUTES = /\.{3}(\0)|([\w-]+)(?:="([^"]*)"|=(\0))?/g;
const kept = new WeakMap(); // the strings of a template → its parts
function partsOf(strings) {
  if (!kept.has(strings)) {
    const parts = [...strings.join("\0").matchAll(PARTS)].map(([all, end, tag, given, empty]) => {
      const text = all.replace(EDGES_OF_TEXT, "").replace(/\s*\n\s*/g, " ");
      return { text, end, tag, given: tag && [...given.matchAll(ATTRIBUTES)], empty };
    });
    kept.set(strings, parts);
  }
  return kept.get(strings);
}

/** Elements as they are written: html`<button class="x" onclick=${f}>text ${child}</button>`. A value is an
    attribute's (...${object}: several), or a child or a list of them: nodes and text, never markup.
    Elements without children end in />. White space with a line break in it is left out beside a tag
    or a value. More than one element come as a list. */
function html(strings, ...values) {
  let n = 0;
  const next = () => values[n++];
  const open = [{ tag: "", attributes: {}, children: [] }];
  for (const { text, end, tag, given, empty } of partsOf(strings)) {
    if (tag) {
      const attributes = {};
      for (const [, several, name, words, value] of given)
        if (several) Object.assign(attributes, next());
        else if (value) attributes[name] = next();
        else
          attributes[name] = words?.includes("\0") ? words.replace(/\0/g, next) : (words ?? true);
      open.push({ tag, attributes, children: [] });
    }
    if (end || empty) {
      const made = open.pop();
      if (end && end !== made.tag) throw new Error(`</${end}> ends <${made.tag}>`);
      open.at(-1).children.push(h(made.tag, made.attributes, ...made.children));
    } else if (text === "<") throw new Error(`not a tag: <${strings.join("…").split("<").at(-1)}`);
    else if (text === "\0") open.at(-1).children.push(next());
    else if (!tag) open.at(-1).children.push(text);
  }
  if (open.length > 1) throw new Error(`<${open.at(-1).tag}> has no end`);
  const nodes = open[0].children.flat(Infinity).filter(isShown);
  return nodes.length === 1 ? nodes[0] : nodes;
}

/** The explorer's root, a group of its own. */
function root(el, name, label) {
  const node = h("div", { class: `d2g ${name}`, role: "group", "aria-label": label });
  node.classList.toggle("dark", darkPage());
  el.append(node);
  return node;
}

/** Is the page dark, as VS Code's may be? (Of JupyterLab's and the book's, base.css knows by itself.) */
function darkPage() {
  const { jpThemeLight } = document.body.dataset;
  const paper =
    cssColor(document.body, "jp-layout-color0") ||
    cssColor(document.body, "vscode-editor-background");
  if (jpThemeLight !== undefined || !paper) return false;
  const ctx = document.createElement("canvas").getContext("2d");
  ctx.fillStyle = paper;
  ctx.fillRect(0, 0, 1, 1);
  const [r, g, b] = ctx.getImageData(0, 0, 1, 1).data;
  return 0.299 * r + 0.587 * g + 0.114 * b < 128;
}

/** What anywidget wants of a module: `render` and, around it, the keyboard (see `keyboard`). What listens to
    the model is undone at the end. */
const live = (render) => ({
  render({ model: given, el }) {
    saveStills(given.widget_manager?.context?.model);
    const heard = [];
    const on = (...said) => {
      heard.push(said);
      given.on(...said);
    };
    let node; // below: this hears of a new theme before what `render` tells to paint
    const untheme = onTheme(() => node.classList.toggle("dark", darkPage()));
    const undo = render({ model: { ...given, on }, el });
    node = el.querySelector(".d2g");
    const forget = keyboard(node);
    let first; // when it was first shown: for three seconds its size may still change
    const shown = new ResizeObserver(() => {
      if (!node.getClientRects().length) return;
      first ??= performance.now();
      if (performance.now() - first > 3000) shown.disconnect();
      else if (nearestAbove(node)) node.scrollIntoView({ block: "nearest" });
    });
    shown.observe(node);
    return () => {
      untheme();
      shown.disconnect();
      forget();
      undo?.();
      for (const said of heard) given.off(...said);
    };
  },
});

/**
 * An explorer. name: its class; title: what it is; traits: after whose change it is painted anew; asks: does
 * the kernel answer it (see withAck)? build(tools) makes it once. Of what it gives, page: its nodes; paint():
 * shows the present state, at most once a frame if soon() asks for it; lay(n): before that, when the width
 * has reached n of the edges (see onBreakpoint); theme(): when the page has turned light or dark; stop(): at
 * the end.
 */
const explorer = ({ name, title, traits, edges = [760], asks = false, build }) =>
  live(({ model: given, el }) => {
    const node = root(el, name, title);
    const model = asks ? withAck(given, node) : given;
    const soon = throttleToFrame(() => paint());
    const { page, paint, lay, theme, stop } = build({
      model,
      node,
      soon,
      get: (trait) => model.get(trait),
      set: (changes) => setAndSave(model, changes),
      slider: (trait, label, [min, max, step], show) =>
        slider(model, trait, { label, min, max, step, show }),
      stops: (trait, label, values, show) => slider(model, trait, { label, values, show }),
      checkbox: (trait, label) => checkbox(model, trait, label),
      choice: (trait, options, label) => choice(model, trait, options, label),
    });
    node.append(...[page].flat());
    for (const trait of traits) model.on(`change:${trait}`, soon);
    const layOut = (reached) => {
      lay(reached);
      paint();
    };
    const unlay = lay && onBreakpoint(node, layOut, edges);
    if (!lay) paint();
    const retheme = () => {
      theme();
      soon();
    };
    const untheme = theme && onTheme(retheme); // what is no canvas follows by CSS
    return () => [unlay, untheme, stop].forEach((undo) => undo?.());
  });

/** JupyterLab prefers the view of a widget to the picture beside it, and shows neither once its kernel has
    ended ("model not found"). So what is saved keeps the picture alone, as with the course's own
    configuration (tools/jupyter), unless the states of widgets are saved with it. */
function saveStills(notebook) {
  if (typeof notebook?.toJSON !== "function" || notebook.savesStills) return;
  const whole = notebook.toJSON.bind(notebook);
  const still = ({
    data: { "application/vnd.jupyter.widget-view+json": view, ...data },
    ...output
  }) => ({ ...output, data });
  const kept = (cell) =>
    !cell.outputs
      ? cell
      : {
          ...cell,
          outputs: cell.outputs.map((output) =>
            output.data?.["image/png"] ? still(output) : output,
          ),
        };
  Object.assign(notebook, {
    savesStills: true,
    toJSON() {
      const saved = whole();
      return saved.metadata?.widgets ? saved : { ...saved, cells: saved.cells.map(kept) };
    },
  });
}

const CONTROLS = "button, input, textarea, [tabindex='0']";
const SCROLLING = /^( |Home|End|Page(Up|Down)|Arrow(Up|Down|Left|Right))$/;

/** Keys: E in the explorer's cell (or the cell after it, where Shift+Enter leads) enters, Escape
    leaves, and in between no key reaches JupyterLab or scrolls the page. Returns the undo. */
function keyboard(node) {
  let last; // where the focus was when Escape left
  const enter = (event) => {
    if (event.key.toLowerCase() !== "e" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (
      event.target.closest?.("input, textarea, select, .cm-editor, .d2g, .lm-Menu") ||
      !nearestAbove(node)
    )
      return;
    event.preventDefault();
    event.stopPropagation();
    const shown = [...node.querySelectorAll(CONTROLS)].filter(
      (c) => !c.disabled && c.getClientRects().length,
    );
    (shown.includes(last) ? last : (shown.find((c) => "entry" in c.dataset) ?? shown[0]))?.focus({
      preventScroll: true,
    });
    node.scrollIntoView({ block: "nearest" });
  };
  node.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey) return;
    event.stopPropagation();
    if (key === "Escape") {
      last = target;
      leave(node);
    } else if (SCROLLING.test(key) && !usesKey(target, key)) event.preventDefault();
  });
  document.addEventListener("keydown", enter, { capture: true });
  node.append(html`<p class="keys quiet">
    Keyboard: <kbd>E</kbd> to enter, <kbd>Tab</kbd> for the next control, <kbd>Esc</kbd> to leave
  </p>`);
  return () => document.removeEventListener("keydown", enter, { capture: true });
}

/** Does the browser do something of its own with this key here? */
function usesKey(target, key) {
  if (target.matches("button, input[type=checkbox]")) return key === " ";
  if (target.matches("input[type=range]")) return key !== " ";
  return target.matches("input, textarea") && !key.startsWith("Page");
}

/** Gives the focus back to the explorer's cell, in command mode. */
function leave(node) {
  const cell = node.closest(".jp-Cell");
  /** @type {HTMLElement} */ (document.activeElement).blur();
  if (!cell) return;
  if (!cell.hasAttribute("tabindex")) cell.tabIndex = -1;
  cell.focus({ preventScroll: true });
}

/** Is it the explorer of the active cell, or else of the cell just above it? */
function nearestAbove(node) {
  const active = node.closest(".jp-Notebook")?.querySelector(".jp-Cell.jp-mod-active");
  if (!active || !node.getClientRects().length) return false;
  const above = [active, active.previousElementSibling].find((cell) => cell?.querySelector(".d2g"));
  return above?.querySelector(".d2g") === node;
}

/** A token with its white space made visible (the same signs as helpers.plots.visible), and with no
    sign that would turn the text after it round. */
const visible = (token) =>
  token
    .replaceAll(" ", "␣")
    .replaceAll("\n", "⏎")
    .replaceAll("\t", "⇥")
    .replace(/[\u202a-\u202e\u2066-\u2069]/g, "�");

/** At most `longest` characters, the last one an ellipsis if something is left out. */
function truncate(text, longest) {
  const signs = [...text.slice(0, 2 * longest + 2)]; // a sign may be two units of a string
  return signs.length <= longest ? text : `${signs.slice(0, longest - 1).join("")}…`;
}

/** What the pointer shows of a token that is cut; of a very long one, its beginning. */
const inFull = (token) => truncate(token, 300);

/** Calls lay(n), n: how many of the edges the node's width has reached. At once as if there were
    little room, then whenever that changes; from 760 on there is room for two columns (as .columns
    in base.css). Returns the undo. */
function onBreakpoint(node, lay, edges) {
  let reached = 0;
  const watcher = new ResizeObserver(() => {
    const now = edges.filter((edge) => node.clientWidth >= edge).length;
    if (node.clientWidth && now !== reached) lay((reached = now));
  });
  lay(reached);
  watcher.observe(node);
  return () => watcher.disconnect();
}

/** Calls `paint` at most once per frame, however often it is asked. */
function throttleToFrame(paint) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      paint();
    });
  };
}

/** Calls `update` once nothing has asked for a while: for text that is read aloud or copied, not seen. */
function debounce(update, wait) {
  let timer;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(update, wait);
  };
  soon.stop = () => clearTimeout(timer);
  return soon;
}

/** A set(changes) whose changes the kernel hears of once they have rested. Until then they are held
    against its echo of an earlier message, which ipywidgets takes for news: a click or a letter
    made while that echo is under way would be undone. Ask before listening to these traits. */
function debouncedSet(model, names, wait) {
  const events = names.map((name) => `change:${name}`).join(" ");
  let untold = {};
  const hold = () => {
    for (const [name, value] of Object.entries(untold))
      if (model.get(name) !== value) model.set(name, value);
  };
  const tell = debounce(() => {
    untold = {};
    model.save_changes();
  }, wait);
  model.on(events, hold);
  const set = (changes) => {
    Object.assign(untold, changes);
    hold();
    tell();
  };
  set.stop = () => {
    tell.stop();
    model.off(events, hold);
  };
  return set;
}

/** Writes a text if it is another one: the browser lays out anew what is written, equal or not. */
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * A labelled slider tied to the trait `name`, both ways. Returns its <label>. values: the numbers at its
 * stops, if these are not min, min + step, …; Python may set the trait between them.
 * @param {WidgetModel} model
 * @param {string} name
 * @param {{ label?: string, min?: number, max?: number, step?: number, show?: (v: any) => string, values?: number[] }} options
 */
function slider(model, name, { label = name, min = 0, max, step = 1, show = String, values }) {
  const move = () => setAndSave(model, { [name]: values?.[input.value] ?? Number(input.value) });
  const input = html`<input type="range" min=${min} max=${max ?? values.length - 1} step=${step}
    aria-label=${label} oninput=${move} />`;
  const value = html`<span class="value" />`;
  const read = () => {
    const now = model.get(name);
    const away = values?.map((v) => Math.abs(Math.log((v + 1) / (now + 1))));
    input.value = away ? away.indexOf(Math.min(...away)) : now;
    value.textContent = show(now);
    input.setAttribute("aria-valuetext", value.textContent);
  };
  model.on(`change:${name}`, read);
  read();
  return html`<label>${label}${input}${value}</label>`;
}

/**
 * A check box tied to the boolean trait `name`.
 * @param {WidgetModel} model
 * @param {string} name
 * @param {string} label
 */
function checkbox(model, name, label) {
  const input = html`<input type="checkbox"
    onchange=${() => setAndSave(model, { [name]: input.checked })} />`;
  const read = () => (input.checked = model.get(name));
  model.on(`change:${name}`, read);
  read();
  return html`<label>${input}${label}</label>`;
}

/**
 * Buttons of which one is pressed, tied to the trait `name`. options: value → label, or [value, label].
 * @param {WidgetModel} model
 * @param {string} name
 * @param {any[][] | object} options
 * @param {string} label
 */
function choice(model, name, options, label) {
  const all = Array.isArray(options) ? options : Object.entries(options);
  const buttons = all.map(([value, text]) => {
    const choose = () => setAndSave(model, { [name]: value });
    return html`<button type="button" onclick=${choose}>${text}</button>`;
  });
  const read = () =>
    buttons.forEach((b, i) => b.setAttribute("aria-pressed", all[i][0] === model.get(name)));
  model.on(`change:${name}`, read);
  read();
  return html`<span class="row" role="group" aria-label=${label}>${buttons}</span>`;
}

/** A button that plays: move(ms) goes on by so much time and tells whether there is more to come; move(0)
    when it stops. What move sets is told to Python then. Where motion is not wanted, a press goes on by so
    many milliseconds, and stops. */
function player(model, move, step) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let frame = 0; // the frame that was asked for: it plays
  function stop() {
    cancelAnimationFrame(frame);
    frame = 0;
    move(0);
    setText(button, "Play");
    model.save_changes();
  }
  const next = (before) =>
    requestAnimationFrame((now) => {
      if (button.isConnected && move(Math.min(100, Math.max(1, now - before)))) frame = next(now);
      else stop();
    });
  function press() {
    if (calm) move(step);
    if (calm || frame) return stop();
    setText(button, "Pause");
    frame = next(performance.now());
  }
  const button = html`<button type="button" class="play" data-entry="" onclick=${press}>Play</button>`;
  return button;
}

/** Calls `paint` when the page switches between light and dark; returns the undo. */
function onTheme(paint) {
  const watcher = new MutationObserver(paint);
  watcher.observe(document.body, {
    attributes: true,
    attributeFilter: ["data-jp-theme-light", "class"],
  });
  return () => watcher.disconnect();
}

/** A colour of base.css for a canvas: cssColor(root, "ink"). */
const cssColor = (node, name) => getComputedStyle(node).getPropertyValue(`--${name}`).trim();

const cssColors = (node, names) =>
  Object.fromEntries(names.split(" ").map((name) => [name, cssColor(node, name)]));

/** A canvas that is sharp on every screen. Sizes are in CSS pixels. */
function canvas(width, height, label) {
  const node = h("canvas", { role: "img", "aria-label": label });
  fit(node, width, height);
  return node;
}

/** Give a canvas another size, or the sharpness of a page that was zoomed. Returns the cleared context. */
function fit(node, width, height) {
  const scale = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  const ctx = node.getContext("2d");
  if (node.width !== w || node.height !== h) {
    Object.assign(node, { width: w, height: h }); // this clears it and forgets its scale
    Object.assign(node.style, { width: `${width}px`, height: `${height}px` });
    ctx.scale(scale, scale);
  } else ctx.clearRect(0, 0, width, height);
  return ctx;
}

/** The colours of all maps, as the theme has them: 0 is the paper (a clear pixel), more is blue, less is red. */
function mapInks(node) {
  const probe = h("canvas", { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const [paper, blue, red, shut] = ["paper", "blue", "red", "masked"].map((name) => {
    probe.fillStyle = cssColor(node, name);
    probe.fillRect(0, 0, 1, 1);
    return [...probe.getImageData(0, 0, 1, 1).data];
  });
  const most = (v) => Math.min(1, Math.abs(v));
  /** v from −1 to 1 as a pixel of ImageData, NaN as what may not be attended to. */
  const pixel = (v) => {
    const [r, g, b] = Number.isNaN(v) ? shut : v < 0 ? red : blue;
    const alpha = Number.isNaN(v) ? 255 : Math.round(255 * most(v));
    return ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0;
  };
  const table = (value) => Uint32Array.from({ length: 256 }, (_, k) => pixel(value(k)));
  /** The same as it is seen on the paper: [r, g, b]. */
  const seen = (v) =>
    Number.isNaN(v)
      ? shut.slice(0, 3)
      : [0, 1, 2].map((c) => paper[c] + most(v) * ((v < 0 ? red : blue)[c] - paper[c]));
  return { pixel, seen, shades: table((k) => k / 255), signs: table((k) => k / 127.5 - 1) };
}

/** @param {number[]} color */
const rgb = (color) => `rgb(${color.map(Math.round)})`;

/** A copy of a trait of bytes (a DataView), aligned for every kind of number. */
const bytesOf = (view) =>
  new Uint8Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
const floats = (view) => new Float32Array(bytesOf(view).buffer);

/** The model, with a save_changes() whose answer does not wait, and `node` telling when it does.

    Jupyter's server sends its first message ("busy") at once but keeps the next one, our answer,
    until the browser has acknowledged the first (Nagle's algorithm), and the browser puts that off
    for 40 ms or more unless it has something to say. So we say something: an empty message, which
    the kernel ignores.
    @param {WidgetModel} model
    @param {HTMLElement} node
    @returns {WidgetModel} */
function withAck(model, node) {
  const silence = h("p", { class: "warning silence", role: "status" });
  let timer;
  let asked = false;
  node.append(silence);
  return {
    get: (name) => model.get(name),
    set(name, value) {
      asked ||= model.get(name) !== value;
      model.set(name, value);
    },
    on: (name, callback) => model.on(name, callback),
    off: (name, callback) => model.off(name, callback),
    save_changes() {
      if (!asked) return; // nothing would be sent, and nothing come back
      asked = false;
      clearTimeout(timer);
      timer = setTimeout(
        () =>
          setText(
            silence,
            "The kernel has not answered yet: it is busy with another " +
              "cell, or it has stopped. You still see the previous answer.",
          ),
        1500,
      );
      model.save_changes({
        iopub: {
          status: ({ content }) => {
            if (content.execution_state === "busy") model.send({});
            if (content.execution_state !== "idle") return;
            clearTimeout(timer);
            setText(silence, "");
          },
        },
      });
    },
  };
}

/** A number as people write it: with a real minus, and no −0. */
const fixed = (v, digits = 2) =>
  (Math.abs(v) < 0.5 * 10 ** -digits ? 0 : v).toFixed(digits).replace("-", "−");

const percent = (p) => (p === 0 ? "0%" : p < 0.0005 ? "< 0.1%" : `${(100 * p).toFixed(1)}%`);

/** Sets traits and tells the kernel. */
function setAndSave(model, changes) {
  for (const [name, value] of Object.entries(changes)) model.set(name, value);
  model.save_changes();
}

/** Round places from low to high with at least so many gaps, and the words for them. */
function roundPlaces(low, high, gaps, write = fixed) {
  const least = (high - low) / gaps;
  const ten = 10 ** Math.floor(Math.log10(least));
  const gap = ten * [5, 2, 1].find((s) => s * ten <= least);
  const first = Math.ceil(low / gap - 1e-9);
  const count = Math.floor(high / gap + 1e-9) - first + 1;
  const values = Array.from({ length: count }, (_, i) => (first + i) * gap);
  return values.map((v) => [v, write(v, gap < 1 ? Math.ceil(-Math.log10(gap)) : 0)]);
}

/** A captioned picture with two axes. pick(v): a click at the place v of the x-axis. */
function chart(name, sizes = {}) {
  const size = { width: 440, height: 190, left: 48, right: 14, bottom: 34, top: 10, pick: null };
  const { width: W, height: H, left: L, right: R, bottom: B, top: T, pick } = { ...size, ...sizes };
  const svg = html`<svg viewBox="0 0 ${W} ${H}" width=${W} role="img" class=${name} />`;
  const caption = html`<figcaption style="font-weight:600" />`;
  const text = (x, y, words, more = {}) =>
    html`<text x=${x} y=${y} text-anchor="middle" font-size="11" fill="var(--quiet)" ...${more}>${words}</text>`;
  const line = (x1, y1, x2, y2, more = {}) =>
    html`<line x1=${x1} y1=${y1} x2=${x2} y2=${y2} stroke="var(--line)" ...${more} />`;
  let across = [0, 1];
  if (pick) {
    svg.style.cursor = "pointer";
    svg.addEventListener("pointerdown", (event) => {
      const box = svg.getBoundingClientRect();
      const share = (((event.clientX - box.left) * W) / box.width - L) / (W - L - R);
      pick(across[0] + share * (across[1] - across[0]));
    });
  }
  /** x, y: [low, high]; ticks: [value, words]; marks(x, y): what is drawn; at: where the dashed line stands. */
  function paint({ x: xs, y: ys, xticks, yticks, xlabel, title, label = title, at, marks }) {
    const floor = H - B;
    const x = (v) => L + ((v - xs[0]) / (xs[1] - xs[0])) * (W - L - R);
    const y = (v) => floor - ((v - ys[0]) / (ys[1] - ys[0])) * (floor - T);
    across = xs;
    const parts = [
      line(L, floor, W - R, floor),
      yticks.map(([v, words]) => [
        line(L, y(v), W - R, y(v), { stroke: v ? "var(--panel)" : "var(--line)" }),
        text(L - 6, y(v) + 4, words, { "text-anchor": "end" }),
      ]),
      xticks.map(([v, words]) => text(x(v), floor + 14, words)),
      text((L + W - R) / 2, H - 4, xlabel),
      marks(x, y, text),
      at !== undefined && line(x(at), T, x(at), floor, { "stroke-dasharray": "2 3" }),
    ];
    svg.replaceChildren(...parts.flat(Infinity).filter(isShown));
    caption.textContent = title;
    svg.setAttribute("aria-label", label);
  }
  return { svg, paint, figure: html`<figure style="margin:0">${caption}${svg}</figure>` };
}

/** A curve through [x, y] points, and a dot. */
const curve = (points, ink, more = {}) =>
  html`<polyline points=${points.join(" ")} fill="none" stroke="var(--${ink})" stroke-width="3" ...${more} />`;
const dot = (cx, cy, r = 6) => html`<circle cx=${cx} cy=${cy} r=${r} fill="var(--ink)" />`;

/** The sentence that says what the picture shows. */
const summary = () => html`<p class="verdict" role="status" />`;
