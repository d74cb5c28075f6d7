/** A number in six signs at most: those of a column. */
const two = (v) =>
  Math.abs(v) < 99999.5
    ? fixed(v, [99.995, 999.95].filter((edge) => Math.abs(v) < edge).length)
    : v.toExponential(0).replaceAll("-", "−");

/** The (T, T) mixing matrix of the present choice; row i holds the weights of output i. */
function mixingMatrix(get) {
  const T = get("tokens").length;
  const how = get("weighting");
  const causal = get("causal");
  const decay = get("decay");
  const last = get("last");
  if (how === "learned") return get("learned");
  return Array.from({ length: T }, (_, i) => {
    const raw = Array.from({ length: T }, (_, j) => {
      const distance = Math.abs(i - j);
      if (causal && j > i) return 0;
      return how === "mean" ? 1 : how === "decay" ? decay ** distance : Number(distance < last);
    });
    const sum = raw.reduce((a, b) => a + b, 0);
    return raw.map((v) => v / sum);
  });
}

const LEFT = 40;
const TOP = 16;
const PAD = 7; // beside and above the matrix; inside the table's cells

const mix = (W, x) => W.map((row) => row.reduce((sum, w, j) => sum + w * x[j], 0));

/** The sizes, in CSS pixels, that depend on the room and on how many tokens there are. */
function sizes(wide, T) {
  const row = Math.min(19, Math.floor(372 / (T + 2))); // of the table
  const width = wide ? 444 : 314; // of the matrix and of the signal under it
  return {
    row,
    width,
    size: row < 17 ? 11 : 13,
    columns: wide ? [92, 112, 58, 58, 62] : [58, 48, 48, 54, 54],
    across: Math.min(36, Math.floor((width - LEFT - 4) / T)),
    down: Math.min(24, Math.floor(262 / T)),
  }; // of a square
}

function build({ node, get, set, soon, slider, checkbox, choice }) {
  const tokens = get("tokens").map(visible);
  const values = get("values");
  const T = tokens.length;
  const name = get("values_name");
  const named = (i) => `${i} ${truncate(tokens[i], 14)}`;
  const longest = Math.max(...tokens.map((token) => [...token].length));
  const label = (i, room) => (longest <= Math.max(1, room) ? tokens[i] : String(i)); // beside a drawing
  let hovered = null; // the row under the pointer, shown until the pointer leaves
  let at = sizes(false, T);

  // Controls.
  const kinds = {
    mean: "mean",
    decay: "exponential decay",
    last: "last k",
    ...(get("learned").length && { learned: "learned" }),
  };
  const decay = slider("decay", "decay", [0.05, 1, 0.05], two);
  const last = slider("last", "k", [1, T]);
  const mask = checkbox("causal", "causal mask");
  const changed = (t) => (t < 0 ? "none" : named(t));

  // The matrix.
  const rowAt = (event) => {
    const i = Math.floor((event.offsetY * (heatHeight() / heat.clientHeight) - TOP) / at.down);
    return i >= 0 && i < T ? i : null;
  };
  const heatHeight = () => TOP + at.down * T + 4;
  const hover = (i) => {
    hovered = i;
    soon();
  };
  const press = (event) => rowAt(event) !== null && set({ row: rowAt(event) });
  const heat = html`<canvas role="img" style="cursor:pointer;touch-action:manipulation" onclick=${press}
    onpointermove=${(event) => hover(rowAt(event))} onpointerleave=${() => hover(null)} />`;

  // The chosen row: a table.
  const caption = html`<caption />`;
  const number = (kind = "") => html`<td class="number ${kind}" />`;
  const lines = tokens.map((token) => {
    const bar = html`<i class="bar" />`;
    const cells = [number("weight"), number(), number()];
    const line = html`<tr>
      <td title=${inFull(token)}><span class="token">${truncate(token, 14)}</span></td>
      <td>${bar}</td>${cells}
    </tr>`;
    return { bar, cells, line };
  });
  const total = number("total");
  const output = number("output");
  const head = (text) => html`<th scope="col" title=${inFull(text)}>${truncate(text, 14)}</th>`;
  const columns = at.columns.map(() => html`<col />`);
  const table = html`<table>
    ${caption}<colgroup>${columns}</colgroup>
    <thead><tr>${["token", "", "weight", name, "product"].map(head)}</tr></thead>
    <tbody>
      ${lines.map(({ line }) => line)}
      <tr style="font-weight:600"><td>sum</td><td />${total}<td />${output}</tr>
    </tbody>
  </table>`;

  // The values before and after, each under its token's column of the matrix.
  const H = 104;
  const plot = html`<canvas role="img" class="signal" />`;
  const x = (t) => LEFT + (t + 0.5) * (at.across < 36 ? at.across : (at.width - LEFT - 4) / T);
  const says = summary();
  const page = html`
    <div class="row">${choice("weighting", kinds, "Weighting")}${mask}${decay}${last}</div>
    <div class="row places">
      ${slider("row", "output (row)", [0, T - 1], named)}
      ${slider("changed", "add 1 to token", [-1, T - 1], changed)}
    </div>
    <div class="columns">
      <div>
        <figure style="margin:0">
          <figcaption>Weights: row = output, column = token</figcaption>${heat}
        </figure>
        ${plot}
      </div>
      <div class="board">${table}</div>
    </div>
    <p class="quiet note">
      blue: large weight, grey: masked · ○ ${truncate(name, 12)} · ● after mixing · ◆ selected output · ┆ effect of the change
    </p>
    ${says}`;

  // The squares of the matrix change seldom: they are kept, and only the frame of the row moves.
  const squares = h("canvas");
  let drawn = "";
  function paintMatrix({ weights, chosen }, ink) {
    const { width, across, down } = at;
    const height = heatHeight();
    const causal = get("causal") || get("weighting") === "learned";
    const first = weights.map((row) => row[0]);
    const key = [first, weights[0], get("weighting"), ink.ink, devicePixelRatio, width].join();
    if (key !== drawn) {
      drawn = key;
      const ctx = fit(squares, width, height);
      ctx.font = `${Math.min(12, down)}px monospace`;
      ctx.fillStyle = ink.ink;
      ctx.textBaseline = "middle";
      tokens.forEach((_, i) => {
        ctx.textAlign = "right";
        ctx.fillText(label(i, 4), LEFT - 5, TOP + (i + 0.5) * down);
        ctx.textAlign = "center";
        const middle = LEFT + (i + 0.5) * across;
        ctx.fillText(label(i, Math.floor(across / 8)), middle, TOP - 8, across - 1);
      });
      weights.forEach((line, i) =>
        line.forEach((w, j) => {
          ctx.fillStyle = rgb(ink.maps.seen(j > i && causal ? NaN : w));
          ctx.fillRect(LEFT + j * across, TOP + i * down, across - 1, down - 1);
        }),
      );
    }
    const ctx = fit(heat, width, height);
    ctx.drawImage(squares, 0, 0, width, height);
    ctx.strokeStyle = ink.red;
    ctx.lineWidth = 3;
    ctx.strokeRect(LEFT - 1, TOP + chosen * down - 1, across * T + 1, down + 1);
  }

  function paintRow({ weights, inputs, chosen, after }) {
    setText(caption, `What output ${named(chosen)} is made of`);
    weights[chosen].forEach((w, j) => {
      const { bar, cells, line } = lines[j];
      line.classList.toggle("quiet", Math.abs(w) < 0.005);
      bar.style.width = `${100 * Math.min(1, Math.abs(w))}%`;
      [w, inputs[j], w * inputs[j]].forEach((v, k) => setText(cells[k], two(v)));
    });
    setText(total, two(weights[chosen].reduce((a, b) => a + b, 0)));
    setText(output, two(after[chosen]));
  }

  function paintSignal({ inputs, chosen, t, before, after }, ink) {
    const all = [...values, ...inputs, ...before, ...after, 0];
    const low = Math.min(...all);
    const high = Math.max(...all, low + 1e-6);
    const y = (v) => 12 + (H - 36) * (1 - (v - low) / (high - low));
    const W = at.width;
    const ctx = fit(plot, W, H);
    const pitch = x(1) - x(0);
    const fits = Math.floor(pitch / 8);
    const path = (points) => {
      ctx.beginPath();
      points.forEach((point) => ctx.lineTo(...point));
    };
    const line = (points, stroke, width, dash = []) => {
      Object.assign(ctx, { strokeStyle: stroke, lineWidth: width });
      ctx.setLineDash(dash);
      path(points);
      ctx.stroke();
    };
    const circle = (i, v, r) => {
      ctx.beginPath();
      ctx.arc(x(i), y(v), r, 0, 7);
    };
    const upright = (i, from, to) => [from, to].map((v) => [x(i), y(v)]);
    Object.assign(ctx, { font: `11px ${ink.ui}`, textAlign: "right", fillStyle: ink.quiet });
    for (const v of [low, high]) {
      line(
        [LEFT, W].map((at) => [at, y(v)]),
        ink.panel,
        1,
      );
      ctx.fillText(two(v), LEFT - 5, y(v) + 4, LEFT - 6);
    }
    line(
      after.map((v, i) => [x(i), y(v)]),
      ink.blue,
      2,
    );
    Object.assign(ctx, { font: `12px ${ink.ui}`, textAlign: "center" });
    tokens.forEach((_, i) => {
      if (Math.abs(after[i] - before[i]) > 1e-9)
        line(upright(i, before[i], after[i]), i < t ? ink.red : ink.green, 3, [3, 2]);
      ctx.setLineDash([]);
      Object.assign(ctx, { strokeStyle: i === t ? ink.red : ink.quiet, lineWidth: 2 });
      circle(i, inputs[i], 5);
      ctx.stroke();
      ctx.fillStyle = i === chosen ? ink.red : ink.blue;
      const [cx, cy] = [x(i), y(after[i])];
      if (i === chosen)
        path([[cx, cy - 7], [cx + 7, cy], [cx, cy + 7], [cx - 7, cy]]); // prettier-ignore
      else circle(i, after[i], 3.5);
      ctx.fill();
      ctx.fillStyle = ink.ink;
      ctx.fillText(label(i, fits), cx, H - 6, pitch);
    });
    const moved = after
      .map((v, i) => (Math.abs(v - before[i]) > 1e-9 ? i : -1))
      .filter((i) => i >= 0);
    const early = moved.filter((i) => i < t);
    says.className = `verdict ${early.length ? "warning" : "quiet"}`;
    setText(
      says,
      t < 0
        ? "Add 1 to a token to see which outputs change."
        : early.length
          ? `✘ Leak: ${early.length} output${early.length > 1 ? "s" : ""} before token ${named(t)} changed: information from the future.`
          : `✔ Causal: adding 1 to token ${named(t)} changed ${moved.length} output${moved.length === 1 ? "" : "s"}, none of them earlier.`,
    );
  }

  /** What is shown: the matrix, the chosen row, the changed token, and the signal. */
  function view() {
    const t = get("changed");
    const weights = mixingMatrix(get);
    const inputs = values.map((v, i) => v + Number(i === t));
    return {
      t,
      weights,
      inputs,
      chosen: hovered ?? get("row"),
      before: mix(weights, values),
      after: mix(weights, inputs),
    };
  }

  function paint() {
    const how = get("weighting");
    const now = view();
    decay.style.display = how === "decay" ? "" : "none";
    last.style.display = how === "last" ? "" : "none";
    mask.style.display = how === "learned" ? "none" : ""; // those weights were learned under the mask
    const ink = {
      ...cssColors(node, "ink quiet panel blue green red"),
      maps: mapInks(node),
      ui: getComputedStyle(node).fontFamily,
    };
    paintMatrix(now, ink);
    paintRow(now);
    paintSignal(now, ink);
    const chosen = named(now.chosen);
    put(heat, { "aria-label": `Mixing matrix of ${T} tokens, ${how}; row ${chosen} is chosen` });
    const said = `${name} before and after mixing; output ${chosen} is ${output.textContent}`;
    put(plot, { "aria-label": said });
  }
  function lay(wide) {
    at = sizes(wide, T);
    node.style.cssText = `--row: ${at.row}px; --size: ${at.size}px; --pad: ${PAD}px`;
    table.style.width = `${at.columns.reduce((a, b) => a + b, 0)}px`;
    columns.forEach((column, k) => (column.style.width = `${at.columns[k]}px`));
  }
  const theme = () => (drawn = "");
  return { page, paint, lay, theme };
}

export default explorer({
  name: "averaging-explorer",
  title: "Averaging the past: weights, one row of them, and the result",
  traits: ["weighting", "decay", "last", "row", "changed", "causal"],
  build,
});
