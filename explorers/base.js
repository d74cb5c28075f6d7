// Shared by all explorers (base.py puts this in front of each one's own module).
// Text reaches the page through textContent only: tokens are never read as markup.

/** An element: h("button", { class: "x", onclick: f }, "text", child). */
function h(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "line", "path", "circle", "rect", "text", "polygon", "polyline"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** The explorer's root. JupyterLab acts on keys pressed anywhere in a cell; ours stay ours. */
function root(el, name, label) {
  const node = h("div", { class: `d2g ${name}`, role: "group", "aria-label": label });
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" && !(event.ctrlKey || event.metaKey)) event.stopPropagation();
  });
  el.append(node);
  return node;
}

/** A token with its white space made visible (the same signs as helpers.plots.visible). */
const visible = (token) => token.replaceAll(" ", "␣").replaceAll("\n", "⏎").replaceAll("\t", "⇥");

/** Calls `paint` at most once per frame, however often it is asked. */
function onceAFrame(paint) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; paint(); });
  };
}

/** Calls `update` once nothing has asked for a while: for text that is read aloud or copied, not seen. */
function onceQuiet(update, wait = 150) {
  let timer;
  const soon = () => { clearTimeout(timer); timer = setTimeout(update, wait); };
  soon.stop = () => clearTimeout(timer);
  return soon;
}

/** Writes a text if it is another one: the browser lays out anew what is written, equal or not. */
function write(node, text) { if (node.textContent !== text) node.textContent = text; }

/** A labelled slider tied to the trait `name`, both ways. Returns its <label>. */
function slider(model, name, { label = name, min, max, step = 1, show = String }) {
  const input = h("input", { type: "range", min, max, step, "aria-label": label });
  const value = h("span", { class: "value" });
  const read = () => {
    input.value = model.get(name);
    value.textContent = show(model.get(name));
    input.setAttribute("aria-valuetext", value.textContent);
  };
  input.addEventListener("input", () => { model.set(name, Number(input.value)); model.save_changes(); });
  model.on(`change:${name}`, read);
  read();
  return h("label", {}, label, input, value);
}

/** A check box tied to the boolean trait `name`. */
function checkbox(model, name, label) {
  const input = h("input", { type: "checkbox" });
  const read = () => { input.checked = model.get(name); };
  input.addEventListener("change", () => { model.set(name, input.checked); model.save_changes(); });
  model.on(`change:${name}`, read);
  read();
  return h("label", {}, input, label);
}

/** Buttons of which one is pressed, tied to the string trait `name`. options: [value, label]. */
function choice(model, name, options, label) {
  const buttons = options.map(([value, text]) => h("button", { type: "button",
    onclick: () => { model.set(name, value); model.save_changes(); } }, text));
  const read = () => buttons.forEach((b, i) => b.setAttribute("aria-pressed", options[i][0] === model.get(name)));
  model.on(`change:${name}`, read);
  read();
  return h("span", { class: "row", role: "group", "aria-label": label }, ...buttons);
}

/** Calls `paint` when JupyterLab switches between light and dark; returns the undo. */
function onTheme(paint) {
  const watcher = new MutationObserver(paint);
  watcher.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  return () => watcher.disconnect();
}

/** A colour of base.css for a canvas: colour(root, "ink"). */
const colour = (node, name) => getComputedStyle(node).getPropertyValue(`--${name}`).trim();

/** A canvas that is sharp on every screen. Sizes are in CSS pixels. */
function canvas(width, height, label) {
  const node = h("canvas", { role: "img", "aria-label": label });
  fit(node, width, height);
  return node;
}

/** Give a canvas another size, or the sharpness of a page that was zoomed. Returns the cleared pen. */
function fit(node, width, height) {
  const scale = window.devicePixelRatio || 1, [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  const pen = node.getContext("2d");
  if (node.width !== w || node.height !== h) {
    Object.assign(node, { width: w, height: h }); // this clears it and forgets its scale
    Object.assign(node.style, { width: `${width}px`, height: `${height}px` });
    pen.scale(scale, scale);
  } else pen.clearRect(0, 0, width, height);
  return pen;
}

const VIRIDIS = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [253, 231, 37]];

/** viridis at v in [0, 1] as [r, g, b]. */
function viridis(v) {
  const x = Math.min(1, Math.max(0, v)) * (VIRIDIS.length - 1), i = Math.min(VIRIDIS.length - 2, Math.floor(x));
  return VIRIDIS[i].map((a, k) => Math.round(a + (VIRIDIS[i + 1][k] - a) * (x - i)));
}

const rgb = ([r, g, b]) => `rgb(${r},${g},${b})`;

/** Black or white, whichever can be read on the colour. */
const inkOn = ([r, g, b]) => (0.3 * r + 0.59 * g + 0.11 * b > 128 ? "#000" : "#fff");

/** A trait of bytes (DataView) as Float32Array. */
function floats(view) {
  return new Float32Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}

/** The model, with a save_changes() whose answer does not wait.

    Jupyter's server sends its first message ("busy") at once but keeps the next one, our answer,
    until the browser has acknowledged the first (Nagle's algorithm), and the browser puts that off
    for 40 ms or more unless it has something to say. So we say something: an empty message, which
    the kernel ignores. */
const promptly = (model) => ({
  get: (name) => model.get(name),
  set: (name, value) => model.set(name, value),
  on: (name, callback) => model.on(name, callback),
  off: (name, callback) => model.off(name, callback),
  save_changes: () => model.save_changes({ iopub: { status: ({ content }) => {
    if (content.execution_state === "busy") model.send({});
  } } }),
});
