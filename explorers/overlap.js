const MODELS = { "124M": [124e6, 12], "1.5B": [1.5e9, 48], "7B": [7e9, 32], "70B": [70e9, 80] };
const PEAK = 989e12; // FLOP/s of an H100, for 16-bit numbers
const GPUS = Array.from({ length: 15 }, (_, i) => 2 ** i);
const TOKENS = Array.from({ length: 9 }, (_, i) => 512 * 2 ** i);
const BANDWIDTHS = [
  1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.4, 8, 10, 12.5, 16, 20, 25, 32, 40, 50, 64, 80, 100, 125, 160,
  200, 250, 320, 450,
].map((v) => v * 1e9); // equal steps on a logarithmic scale, which meet the wires that have a name:
const WIRES = [
  [1.25e9, "Ethernet 10 Gbit/s"],
  [12.5e9, "Ethernet 100 Gbit/s"],
  [50e9, "InfiniBand 400 Gbit/s"],
  [450e9, "NVLink 450 GB/s"],
];
const INKS = { forward: "blue", backward: "orange", send: "green" };

/** One step of training, as one_step in overlap.py: [{ kind, layer, start, end }]. */
function oneStep(parameters, layers, processes, tokens, speed, bandwidth, overlap) {
  const part = parameters / layers;
  const forward = (2 * part * tokens) / speed;
  const send = (((2 * (processes - 1)) / processes) * 2 * part) / bandwidth;
  const blocks = [];
  let now = 0;
  let sent = 0;
  for (let layer = 0; layer < layers; layer++) {
    blocks.push({ kind: "forward", layer, start: now, end: now + forward });
    now += forward;
  }
  for (let layer = layers - 1; layer >= 0; layer--) {
    blocks.push({ kind: "backward", layer, start: now, end: now + 2 * forward });
    now += 2 * forward;
  }
  for (const done of processes > 1 ? blocks.slice(layers) : []) {
    const start = Math.max(sent, overlap ? done.end : now);
    sent = start + send;
    blocks.push({ kind: "send", layer: done.layer, start, end: sent });
  }
  return { blocks, computed: now, seconds: Math.max(now, sent) };
}

/** As in_short and in_time in overlap.py. */
function inShort(exact, digits = 3) {
  const value = Number(exact.toPrecision(digits));
  const plain = (v) => v.toLocaleString("en-GB", { maximumFractionDigits: 9 });
  return value >= 1e9
    ? `${plain(value / 1e9)} billion`
    : value >= 1e6
      ? `${plain(value / 1e6)} million`
      : plain(value);
}
const inTime = (seconds) =>
  seconds >= 0.1 ? `${inShort(seconds)} s` : `${inShort(1000 * seconds)} ms`;

function build({ node, get, checkbox, choice, stops }) {
  const whole = (v) => v.toLocaleString("en-GB");
  const says = summary();
  const board = html`<div />`;
  const bandwidth = (v) => `${inShort(v / 1e9)} GB/s`;
  const sizes = Object.keys(MODELS).map((name) => [name, name]);
  const inks = {
    blue: "forward, first layer first",
    orange: "backward, last layer first",
    green: "the layer's gradient, averaged over all GPUs",
    panel: "idle",
  };
  const sample = ([ink, words]) => html`<span>
    <svg width="12" height="10"><rect width="12" height="10" fill="var(--${ink})" /></svg>${words}
  </span>`;
  const page = html`
    <div class="row">
      <span class="row">parameters${choice("size", sizes, "Model size")}</span>
      ${stops("processes", "GPUs", GPUS, whole)}
      ${stops("tokens", "tokens per GPU", TOKENS, whole)}
      ${checkbox("overlap", "send while computing")}
    </div>
    <div class="row">
      ${stops("bandwidth", "bandwidth", BANDWIDTHS, bandwidth)}
      ${choice("bandwidth", WIRES, "Links by name")}
    </div>
    ${board}
    <p class="quiet key">
      ${Object.entries(inks).map(sample)}<span>one block per layer, the last in full colour</span>
    </p>
    ${says}`;

  let picture;
  let width;
  function layOut(wide) {
    width = wide;
    picture = chart("step", { width, height: 186, left: 62, right: 12, bottom: 34, top: 32 });
    board.replaceChildren(picture.figure);
  }
  layOut(320);
  const watcher = new ResizeObserver(() => {
    const wide = Math.min(960, node.clientWidth - 4); // as wide as there is room
    if (wide <= 0 || wide === width) return;
    layOut(wide);
    paint();
  });
  watcher.observe(node);

  const step = (overlap) =>
    oneStep(
      ...MODELS[get("size")],
      ...["processes", "tokens", "speed", "bandwidth"].map(get),
      overlap,
    );

  function paint() {
    const overlap = get("overlap");
    const now = step(overlap);
    const apart = step(false).seconds;
    const gpus = get("processes");
    const layers = MODELS[get("size")][1];
    const waits = now.seconds - now.computed;
    const computing = now.computed / now.seconds;
    const [unit, times] = apart < 0.1 ? ["milliseconds", 1000] : ["seconds", 1];
    const title =
      `one step ${inTime(now.seconds)}, ${inShort(100 * computing)}% of it computing · ` +
      `MFU ${inShort((100 * computing * get("speed")) / PEAK)}% · ` +
      `${gpus === 1 ? "1 GPU processes" : `${whole(gpus)} GPUs process`} ${inShort((gpus * get("tokens")) / now.seconds, 2)} tokens per second`;
    picture.paint({
      x: [0, 1.01 * apart],
      y: [0.4, 2.6],
      xticks: roundPlaces(0, apart, 4, (v) => inShort(v * times)),
      yticks: [
        [2, "computes"],
        [1, "sends"],
      ],
      xlabel: unit,
      title,
      label: `A step in time, computing above and sending below: ${title}`,
      marks: (x, y, text) => {
        const bar = (row, start, end, more) =>
          html`<rect x=${x(start)} y=${y(row + 0.35)} height=${y(row - 0.35) - y(row + 0.35)}
            width=${Math.max(0.3, x(end) - x(start) - (x(end) - x(start) > 3 ? 0.8 : 0))} ...${more} />`;
        const block = ({ kind, layer, start, end }) =>
          bar(kind === "send" ? 1 : 2, start, end, {
            class: kind,
            fill: `var(--${INKS[kind]})`,
            "fill-opacity": (0.5 + (0.5 * (layer + 1)) / layers).toFixed(3),
          });
        const line = (at, more) =>
          html`<line x1=${x(at)} x2=${x(at)} y1=${y(2.6)} y2=${y(0.4)} ...${more} />`;
        const atEnd = (at, top, words, more) =>
          text(Math.min(x(at), width - 12 - 3.2 * words.length), top, words, more); // inside the picture
        const between = (start, end, top, words, more) =>
          x(end) - x(start) > 6.5 * words.length && // if there is room
          text((x(start) + x(end)) / 2, top, words, more);
        const ink = { fill: "var(--ink)" };
        const forward = now.computed / 3;
        const sends = now.blocks.filter(({ kind }) => kind === "send");
        const first = sends[0]?.start ?? now.seconds;
        return [
          bar(2, 0, now.seconds, { fill: "var(--panel)" }),
          bar(1, 0, now.seconds, { fill: "var(--panel)" }),
          now.blocks.map(block),
          between(0, forward, y(2.35) - 3, `forward 0 → ${layers - 1}`),
          between(forward, now.computed, y(2.35) - 3, `backward ${layers - 1} → 0`),
          between(first, now.seconds, y(1.35) - 3, `gradients ${layers - 1} → 0`),
          between(now.computed, now.seconds, y(2) + 4, `idle for ${inTime(waits)}`, ink),
          between(0, first, y(1) + 4, `nothing to send${sends.length ? " yet" : ""}`, ink),
          now.seconds < apart && [
            line(apart, { stroke: "var(--quiet)", "stroke-dasharray": "2 3" }),
            atEnd(apart, 24, `without overlap ${inTime(apart)}`),
          ],
          line(now.seconds, { class: "end", stroke: "var(--ink)", "stroke-width": 2 }),
          atEnd(now.seconds, 11, inTime(now.seconds), { ...ink, "font-weight": 600 }),
        ];
      },
    });
    says.textContent = judge(overlap, waits);
  }

  function judge(overlap, waits) {
    const gpus = get("processes");
    const wait = `the GPU is idle for ${inTime(waits)}`;
    if (gpus === 1) return "● one GPU has nothing to send and is never idle.";
    if (!overlap)
      return `▲ no overlap: the gradients are sent after the backward pass, and ${wait}.`;
    // A layer's gradient is sent in the time of its backward: 4(n − 1)/n · part / bandwidth = 4 · part · tokens / speed.
    const needed = (((gpus - 1) / gpus) * get("speed")) / get("bandwidth");
    return get("tokens") >= needed
      ? `● sending is hidden behind the backward pass: ${wait}, only for the first block's gradient, which comes last.`
      : `▼ sending a gradient takes longer than computing one: they queue, and ${wait}. This link keeps up from ${inShort(needed)} tokens per GPU.`;
  }

  return { page, paint, stop: () => watcher.disconnect() };
}

export default explorer({
  name: "overlap-explorer",
  title: "A training step on many GPUs: what is computed and what is sent",
  traits: ["size", "processes", "tokens", "bandwidth", "overlap", "speed"],
  build,
});
