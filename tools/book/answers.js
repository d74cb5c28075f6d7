// What answers in the kernel's place: for each class of explorers a function of its weights that gives
// the function from traits to the trait "answer". bpe.js and gpt.js stand above this.

/** As SamplingExplorer._answer in explorers/sampling.py. */
function SamplingExplorer(bytes) {
  const gpt = gptOf(bytes);
  const encode = encoderOf(gpt.about.tokenizer);
  return ({ prompt }) => {
    const answer = { prompt, logits: new DataView(new ArrayBuffer(0)), error: "", note: "" };
    if (!prompt)
      return { ...answer, error: "Type a prompt (at least one token) to get a continuation." };
    if (prompt.length > 4000)
      return { ...answer, error: "The prompt is longer than 4000 characters." };
    let ids;
    try {
      ids = encode(prompt);
    } catch (error) {
      return { ...answer, error: error.message };
    }
    gpt.read(ids.slice(-gpt.most));
    const note =
      ids.length > gpt.most ? `window full: the model reads the last ${gpt.most} tokens` : "";
    return {
      ...answer,
      note,
      logits: new DataView(gpt.logits(Math.min(ids.length, gpt.most) - 1).buffer),
    };
  };
}
/** As WordExplorer._answer in explorers/word.py, in a table of many words, none of them a zero vector. */
function WordExplorer(bytes) {
  const { about, view, at: first } = described(bytes);
  const { words } = about;
  const [V, d] = about.shape;
  const float16 = (bits) => {
    // sign, five bits of exponent, ten of the number
    const e = (bits >> 10) & 31;
    const m = bits & 1023;
    const v = e ? 2 ** (e - 15) * (1 + m / 1024) : 2 ** -14 * (m / 1024);
    return bits >> 15 ? -v : v;
  };
  const vectors = Float32Array.from({ length: V * d }, (_, i) =>
    float16(view.getUint16(first + 2 * i, true)),
  );
  const vector = (i) => vectors.subarray(i * d, i * d + d);
  const row = new Map(words.map((word, i) => [word, i]));
  /** The dot product of the vector of word i and another. */
  function product(i, other) {
    let sum = 0;
    for (let k = 0, at = i * d; k < d; k++) sum += vectors[at + k] * other[k];
    return sum;
  }
  const lengths = words.map((_, i) => Math.sqrt(product(i, vector(i))) || 1);
  const pairs = (word) => {
    const marked = [...("^" + word + "$")];
    return new Set(marked.slice(1).map((c, i) => marked[i] + c));
  };
  const signs = words.map((word) => [...word].length);
  const holding = new Map(); // a pair of letters → the words that hold it
  words.forEach((word, i) => {
    for (const pair of pairs(word)) {
      if (!holding.has(pair)) holding.set(pair, []);
      holding.get(pair).push(i);
    }
  });

  function suggest(word) {
    const wanted = pairs(word);
    const alike = new Float32Array(V);
    for (const pair of wanted) for (const i of holding.get(pair) ?? []) alike[i] += 1;
    for (let i = 0; i < V; i++) alike[i] *= 2 / (wanted.size + signs[i] + 1);
    return largest(alike, 5)
      .filter((i) => alike[i] > 0.3)
      .map((i) => words[i]);
  }
  return ({ mode, exclude, count, ...typed }) => {
    const asked = (mode === "neighbours" ? ["word"] : ["a", "b", "c"]).map((input) => {
      const word = row.has(typed[input])
        ? typed[input]
        : typed[input].trim().toLowerCase().slice(0, 60);
      return {
        input,
        word,
        i: row.get(word),
        shown: word.length > 30 ? `${word.slice(0, 29)}…` : word,
      };
    });
    const unknown = ({ input, word }) =>
      !word
        ? { input, text: "Type a word.", suggestions: [] }
        : {
            input,
            suggestions: suggest(word),
            text: `“${word.replaceAll(" ", "␣").replaceAll("\n", "⏎").replaceAll("\t", "⇥")}” is not among the ${V.toLocaleString("en")} words of this table.`,
          };
    const answer = {
      title: "",
      rows: [],
      messages: asked.filter(({ i }) => i === undefined).map(unknown),
      mode,
    };
    if (answer.messages.length) return answer;
    const [a, b, c] = asked.map(({ i }) => vector(i));
    const quoted = asked.map(({ shown }) => `“${shown}”`);
    const aim = mode === "neighbours" ? a : a.map((v, k) => v - b[k] + c[k]);
    const length = Math.hypot(...aim);
    const hidden = mode === "neighbours" || exclude ? asked.map(({ i }) => i) : [];
    const cosines = words.map((_, i) => product(i, aim) / lengths[i] / length);
    for (const i of hidden) cosines[i] = -Infinity;
    return {
      ...answer,
      title:
        mode === "neighbours"
          ? `nearest to ${quoted[0]} by cosine (excluding ${quoted[0]})`
          : `nearest to ${quoted[0]} − ${quoted[1]} + ${quoted[2]} by cosine`,
      rows: largest(cosines, count)
        .filter((i) => cosines[i] > -Infinity)
        .map((i) => [
          words[i],
          Math.round(1e4 * cosines[i]) / 1e4,
          asked.some((one) => one.i === i),
        ]),
    };
  };
}
export { SamplingExplorer, WordExplorer };
