// A GPT in plain JavaScript, as helpers.gpt.fast_gpt builds it with norm=nn.RMSNorm and without
// convolutions: RMSNorm before each part, rotary positions, queries and keys of one length, squared ReLU, no biases. It reads what packed.py writes.

/** Dot products of one row of a matrix with four tokens: all that takes time. Addresses are in bytes:
    the row begins at w and ends at `end`, the tokens begin at x and every `step` after it, the four
    sums go to `out` and every `stride` after it. In WebAssembly, written as its bytes: with four
    numbers at a time it is some ten times as fast. */
function dot4(memory) {
  const [w, x, end, step, out, stride, row, sum, x1] = [0, 1, 2, 3, 4, 5, 6, 7, 11];
  const tokens = [x, x1, x1 + 1, x1 + 2];
  const get = (n) => [0x20, n];
  const set = (n) => [0x21, n];
  const sum32 = 0x6a;
  const load4 = [0xfd, 0, 0, 0];
  const times4 = [0xfd, 0xe6, 1];
  const sum4 = [0xfd, 0xe4, 1];
  const lane = (n, k) => [get(n), [0xfd, 0x1f, k], k ? 0x92 : []]; // number k of four, added to what was before
  const further = (n) => [get(n), [0x41, 16], sum32, set(n)];
  const steps = [
    [1, 2, 3].map((n) => [get(tokens[n - 1]), get(step), sum32, set(tokens[n])]),
    [0x03, 0x40], // again and again:
    [get(w), load4, set(row)],
    tokens.map((token, n) => [
      get(sum + n),
      get(row),
      get(token),
      load4,
      times4,
      sum4,
      set(sum + n),
    ]),
    [w, ...tokens].map(further),
    [get(w), get(end), 0x49, [0x0d, 0], 0x0b], // while w < end
    [0, 1, 2, 3].map((n) => [
      get(out),
      [0, 1, 2, 3].map((k) => lane(sum + n, k)),
      [0x38, 2, 0],
      get(out),
      get(stride),
      sum32,
      set(out),
    ]),
    [0x0b],
  ].flat(Infinity);
  // Its own variables: row and four sums of four numbers each, three addresses.
  return wasmFunction(memory, [2, 5, 0x7b, 3, 0x7f, ...steps]);
}

/** The function of six addresses with this body, in WebAssembly. */
function wasmFunction(memory, body) {
  const sized = (bytes) => [0x80 | (bytes.length & 127), bytes.length >> 7, ...bytes];
  const letters = (word) => [...new TextEncoder().encode(word)];
  const text = (word) => [word.length, ...letters(word)];
  const module = [
    [0, ...letters("asm"), 1, 0, 0, 0],
    [1, ...sized([1, 0x60, 6, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0])], // takes six addresses, returns nothing
    [2, ...sized([1, ...text("page"), ...text("memory"), 2, 0, 1])],
    [3, ...sized([1, 0])],
    [7, ...sized([1, ...text("four"), 0, 0])],
    [10, ...sized([1, ...sized(body)])],
  ].flat();
  const compiled = new WebAssembly.Module(Uint8Array.from(module));
  return /** @type {any} */ (new WebAssembly.Instance(compiled, { page: { memory } }).exports.four);
}

/** Where the numbers of a model lie: take(n) gives the next n of them, `product` multiplies. */
function allocator(size) {
  const memory = new WebAssembly.Memory({ initial: Math.ceil((4 * size) / 65536) });
  const four = dot4(memory);
  let at = 0;
  return {
    take: (n) => {
      at += 4 * n;
      return new Float32Array(memory.buffer, at - 4 * n, n);
    },
    /** For tokens t from `first` to `end` − 1: out[t] = W · x[t], where W has `rows` rows of n numbers.
        Up to three tokens after those are computed, too: every table has room for them. */
    product(W, rows, n, x, out, first, end) {
      for (let t = first; t < end; t += 4) {
        const from = x.byteOffset + 4 * n * t;
        const to = out.byteOffset + 4 * rows * t;
        for (let r = 0, w = W.byteOffset; r < rows; r++, w += 4 * n)
          four(w, from, w + 4 * n, 4 * n, to + 4 * r, 4 * rows);
      }
    },
  };
}

/** The description in a file of packed.py (Uint8Array), its bytes, and where its numbers begin. */
function described(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const at = 4 + view.getInt32(0, true);
  return { about: JSON.parse(new TextDecoder().decode(bytes.subarray(4, at))), view, at };
}

/** The description in a file, and what reads its tensors, one after another. */
function unpack(bytes) {
  let { about, view, at } = described(bytes);
  const float = () => {
    at += 4;
    return view.getFloat32(at - 4, true);
  };
  /** All tensors, each in an array that take(n) gives. */
  const tensors = (take) =>
    Object.fromEntries(
      Object.entries(about.tensors).map(([name, [rows, columns]]) => {
        const out = take(rows * (columns ?? 1));
        if (!columns) for (let i = 0; i < rows; i++) out[i] = float();
        else {
          const scales = Float32Array.from({ length: rows }, float);
          for (let r = 0, i = 0; r < rows; r++)
            for (const end = i + columns, s = scales[r]; i < end; i++)
              out[i] = view.getInt8(at++) * s;
        }
        return [name, out];
      }),
    );
  return {
    about,
    tensors,
    size: Object.values(about.tensors).reduce(
      (sum, [rows, columns]) => sum + rows * (columns ?? 1),
      0,
    ),
  };
}

const EPSILON = 2 ** -23; // what PyTorch adds under the root of an RMSNorm

/** RMSNorm of n numbers of x from `at` on, times the gain if there is one, to the same place of out. */
function rmsNorm(x, out, at, n, gain) {
  let sum = 0;
  for (let i = at; i < at + n; i++) sum += x[i] * x[i];
  const scale = 1 / Math.sqrt(sum / n + EPSILON);
  for (let i = 0; i < n; i++) out[at + i] = x[at + i] * scale * (gain ? gain[i] : 1);
}

/** cos and sin of each position in the text and each pair of features. */
function rotaryTables(positions, hs, base) {
  const half = hs / 2;
  const cos = new Float32Array(positions * half);
  const sin = new Float32Array(positions * half);
  for (let n = 0; n < positions * half; n++) {
    const angle = Math.fround(Math.floor(n / half) * Math.fround(base ** ((-2 * (n % half)) / hs)));
    cos[n] = Math.cos(angle);
    sin[n] = Math.sin(angle);
  }
  return { cos, sin, half };
}

/** Turns the query or key of token t, head by head, by its position in the text. */
function rotate({ H, C, hs, rotary: { cos, sin, half } }, q, t) {
  for (let h = 0; h < H; h++) {
    const at = t * C + h * hs;
    rmsNorm(q, q, at, hs);
    for (let i = 0; i < half; i++) {
      const a = q[at + i];
      const b = q[at + half + i];
      const c = cos[t * half + i];
      const s = sin[t * half + i];
      q[at + i] = a * c - b * s;
      q[at + half + i] = a * s + b * c;
    }
  }
}

/** Queries, keys and values of a layer for the tokens from `first` on. */
function project(gpt, layer, first, T) {
  const { C, y, product } = gpt;
  const { x, q, k, v } = layer;
  for (let t = first; t < T; t++) rmsNorm(x, y, t * C, C, layer.norm);
  product(layer.query, C, C, y, q, first, T);
  product(layer.key, C, C, y, k, first, T);
  product(layer.value, C, C, y, v, first, T);
  for (let t = first; t < T; t++) {
    rotate(gpt, q, t);
    rotate(gpt, k, t);
  }
}

/** q · k / √hs, of head h in a layer, for the query of token i and the key of token j. */
function scoreOf({ C, hs }, { q, k }, h, i, j) {
  let sum = 0;
  for (let n = 0, a = i * C + h * hs, b = j * C + h * hs; n < hs; n++) sum += q[a + n] * k[b + n];
  return sum / Math.sqrt(hs);
}

/** What the heads of a layer mix for the tokens from `first` on. isOff(h): is what head h mixes 0? */
function attend(gpt, layer, first, T, masked, isOff) {
  const { H, C, hs, most } = gpt;
  const { v, mixed, weights } = layer;
  mixed.fill(0, first * C, T * C);
  for (let h = 0; h < H; h++) {
    const off = isOff(h);
    for (let i = first; i < T; i++) {
      const at = (h * most + i) * most;
      const end = masked ? i + 1 : T;
      let largest = -Infinity;
      let sum = 0;
      for (let j = 0; j < end; j++) {
        const s = (weights[at + j] = scoreOf(gpt, layer, h, i, j));
        if (s > largest) largest = s;
      }
      for (let j = 0; j < end; j++) sum += weights[at + j] = Math.exp(weights[at + j] - largest);
      for (let j = 0; j < end; j++) weights[at + j] /= sum;
      weights.fill(0, at + end, at + most); // what was seen without a mask is forgotten
      if (off) continue;
      for (let j = 0; j < end; j++) {
        const w = weights[at + j];
        for (let n = 0, a = i * C + h * hs, b = j * C + h * hs; n < hs; n++)
          mixed[a + n] += w * v[b + n];
      }
    }
  }
}

/** x plus what attention adds, plus what the feed-forward network adds, to `out`. */
function addParts(gpt, layer, out, first, T) {
  const { C, y, wide, sum, product } = gpt;
  const { x, mixed, middle } = layer;
  product(layer.output, C, C, mixed, sum, first, T);
  for (let i = first * C; i < T * C; i++) middle[i] = x[i] + sum[i];
  for (let t = first; t < T; t++) rmsNorm(middle, y, t * C, C, layer.norm2);
  product(layer.up, 4 * C, C, y, wide, first, T);
  for (let i = first * 4 * C; i < T * 4 * C; i++) wide[i] = wide[i] > 0 ? wide[i] * wide[i] : 0;
  product(layer.down, C, 4 * C, wide, sum, first, T);
  for (let i = first * C; i < T * C; i++) out[i] = middle[i] + sum[i];
}

/** The layers: their matrices, and what was computed last, token after token. */
function layersOf({ L, H, C, most, room, tensors }) {
  return Array.from({ length: L }, (_, l) => {
    const of = (name) => tensors[`blocks.${l}.${name}.weight`];
    return {
      norm: of("attention_norm"),
      query: of("attention.query"),
      key: of("attention.key"),
      value: of("attention.value"),
      output: of("attention.output"),
      norm2: of("mlp_norm"),
      up: of("mlp.up"),
      down: of("mlp.down"),
      // x comes in, `middle` is after attention; weights (H, most, most).
      x: room(C),
      q: room(C),
      k: room(C),
      v: room(C),
      mixed: room(C),
      middle: room(C),
      weights: new Float32Array(H * most * most),
    };
  });
}

/** The memory of a model in a file of packed.py. longest: the most tokens it will be given. */
function allocate(bytes, longest) {
  const { about, tensors: fill, size } = unpack(bytes);
  const { n_layer: L, n_head: H, n_embd: C, vocab_size: V, rotary_base: base } = about.config;
  const most = Math.min(longest, about.config.block_size);
  const hs = C / H;
  const places = most + 3;
  const { take, product } = allocator(size + (7 * L + 7) * places * C + 4 * (C + V));
  const tensors = fill(take);
  const token = tensors["token.weight"];
  const room = (n) => take(places * n);
  const layers = layersOf({ L, H, C, most, room, tensors });
  return {
    about,
    L,
    H,
    C,
    V,
    hs,
    most,
    product,
    layers,
    token,
    head: tensors["lm_head.weight"] ?? token,
    finalNorm: tensors["norm.weight"],
    rotary: rotaryTables(most, hs, base),
    last: room(C),
    y: room(C),
    wide: room(4 * C),
    sum: room(C),
    row: take(4 * C),
    scores: take(4 * V),
  };
}

/** The model in a file of packed.py: read(ids, changes) computes all of it, and keeps what it saw.
    longest: the most tokens it will be given. */
function gptOf(bytes, longest = Infinity) {
  const gpt = allocate(bytes, longest);
  const { about, L, H, C, V, hs, most, layers, last, token } = gpt;
  let seen = { ids: [], masked: true, off: new Set() };

  /** How many tokens at the beginning are as the last time; none if what follows them changes them. */
  function unchanged(ids, masked) {
    let same = 0;
    while (same < Math.min(ids.length, seen.ids.length) && ids[same] === seen.ids[same]) same += 1;
    const isWhole = same === ids.length && ids.length === seen.ids.length;
    return masked === seen.masked && (masked || isWhole) ? same : 0;
  }
  /** The first layer with a head switched on or off, L if there is none. */
  function firstSwitched(off) {
    for (let n = 0; n < L * H; n++) if (off.has(n) !== seen.off.has(n)) return Math.floor(n / H);
    return L;
  }

  /** Reads the ids (one at least, block_size at most). masked: does no token see those after it?
      off: the numbers l · H + h of heads that are silent. What is as the last time is not computed again. */
  function read(ids, { masked = true, off = new Set() } = {}) {
    const T = ids.length;
    const same = unchanged(ids, masked);
    const from = firstSwitched(off);
    seen = { ids: [...ids], masked, off: new Set(off) };
    for (let t = same; t < T; t++)
      layers[0].x.set(token.subarray(ids[t] * C, ids[t] * C + C), t * C);
    layers.forEach((layer, l) => {
      const first = l < from ? same : 0;
      const onlySwitched = l === from && same === T; // queries, keys and values stay
      if (first === T) return;
      if (!onlySwitched) project(gpt, layer, first, T);
      attend(gpt, layer, first, T, masked, (h) => off.has(l * H + h));
      addParts(gpt, layer, layers[l + 1]?.x ?? last, first, T);
    });
  }

  /** The logits of the next token after token t, as they would be if the model ended after `l` layers. */
  function logits(t, l = L) {
    const { row, scores, head, product, finalNorm } = gpt;
    row.set((l === L ? last : layers[l].x).subarray(t * C, t * C + C));
    rmsNorm(row, row, 0, C, finalNorm);
    product(head, V, C, row, scores, 0, 1);
    return scores.slice(0, V);
  }
  const score = (l, h, i, j) => scoreOf(gpt, layers[l], h, i, j);
  return { about, L, H, C, V, hs, most, read, logits, score, layers, last, token };
}

/** How the model's texts are cut: text → ids. */
function encoderOf({ symbols, alphabet, merges }) {
  if (!symbols) {
    const bpe = byteLevel(Uint8Array.from(alphabet), merges);
    return (text) => bpe.cut(text, bpe.count);
  }
  const ids = new Map(symbols.map((symbol, id) => [symbol, id]));
  return (text) =>
    Array.from(text, (sign) => {
      if (!ids.has(sign))
        throw new Error(`the character “${sign}” is not among the ${symbols.length} of this model`);
      return ids.get(sign);
    });
}

/** The places of the n largest numbers, largest first, equal ones in their order. */
function largest(v, n) {
  const best = [];
  for (let i = 0; i < v.length; i++) {
    if (best.length === n && v[i] <= v[best[n - 1]]) continue;
    let at = best.length;
    while (at > 0 && v[best[at - 1]] < v[i]) at -= 1;
    best.splice(at, 0, i);
    best.length = Math.min(best.length, n);
  }
  return best;
}

/** softmax of the logits ÷ the temperature. */
function softmax(logits, temperature) {
  let most = -Infinity;
  let sum = 0;
  for (const v of logits) if (v > most) most = v;
  const p = Float64Array.from(logits, (v) => Math.exp((v - most) / temperature));
  for (const v of p) sum += v;
  return p.map((v) => v / sum);
}

/** The place in a distribution that a number u from 0 to 1 hits. */
function hitBy(p, u) {
  let i = 0;
  while (i < p.length - 1 && (u -= p[i]) >= 0) i += 1;
  return i;
}

/** What is said while the weights are on their way. A page has them in letters, 4 for 3 bytes. */
function loadingText(model) {
  const size = model.get("megabytes") * (model.weights ? 4 / 3 : 1);
  return `Loading the weights (${Math.round(size)} MB, once) …`;
}

/** The weights of an explorer's model, in the book from a file, else from the kernel. late: who takes
    them if they come after we have given up. */
async function weightsOf(model, late) {
  if (model.weights) return model.weights(model.get("file"));
  return new Promise((done, fail) => {
    let given = false;
    const slow = setTimeout(() => {
      given = true;
      fail(new Error("the kernel does not answer"));
    }, 20000);
    const take = (content, buffers) => {
      if (content.sent !== "weights") return;
      clearTimeout(slow);
      model.off("msg:custom", take);
      if (given) late(bytesOf(buffers[0]));
      else done(bytesOf(buffers[0]));
    };
    model.on("msg:custom", take);
    model.send({ wanted: "weights" });
  });
}
