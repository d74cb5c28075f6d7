// The text, the model that reads it, and what is chosen: shared by all parts of sentence.js.
const MOST_TOKENS = 32; // that are read: the last ones of the text
const MOST_LETTERS = 240; // of a text, as in sentence.py
const COMPUTED_FROM = ["text", "off", "masked"]; // traits after whose change the model reads again
const SHOWN_FROM = ["stage", "layer", "head", "position", "temperature"]; // traits that only choose a view

class SentenceState {
  gpt = null; // the model of gpt.js, once its weights are here
  loading = null; // the promise of its weights
  trouble = ""; // why they could not be loaded
  ids = []; // of the tokens that are read
  /** @type {number[] | Float32Array} */
  logits = []; // of the next token; empty as long as they are unknown
  /** @type {number[] | Float64Array} */
  probs = []; // of the next token, at the temperature that is set
  before = null; // what is compared with: { ids, logits }
  key = -1; // the position that was clicked as key; −1: the one with the largest weight
  stale = { answer: true, heads: true }; // what has to be drawn anew
  narrow = false; // little room, as in sentence.css
  inks = null; // the colours of the page, see readInks
  changing = false; // are traits being set by us?
  names = new Map(); // id → token as it is shown

  /**
   * @param {WidgetModel} model
   * @param {() => void} paint draws the present state
   */
  constructor(model, paint) {
    this.model = model;
    this.paint = paint;
    this.get = (name) => model.get(name);
    const [L, H, C, V] = this.get("shape");
    this.shape = { L, H, C, V, hs: C / H };
    const merges = new Int32Array(bytesOf(this.get("merges")).buffer);
    this.bpe = byteLevel(bytesOf(this.get("alphabet")), merges);
    this.inBook = Boolean(model.weights);
    this.anchor = this.get("text"); // the text before it was edited
    this.set = debouncedSet(model, [...COMPUTED_FROM, ...SHOWN_FROM], 120); // when the keys have come to rest
  }

  /** A token as it is shown. */
  name(id) {
    if (!this.names.has(id)) {
      this.names.set(id, this.bpe.pieces[id] ? readable(this.bpe.pieces[id]) : "‹end›");
    }
    return this.names.get(id);
  }
  /** The token at a position, cut. */
  word(position, longest = 12) {
    return truncate(this.name(this.ids[position]), longest);
  }
  /** The position of the token that is followed. */
  position() {
    const at = this.get("position");
    const T = this.ids.length;
    return at < 0 || at >= T ? T - 1 : at;
  }
  /** The chosen head as one number. */
  chosenHead() {
    return this.get("layer") * this.shape.H + this.get("head");
  }
  /** Is a head off, or the mask? */
  isAblated() {
    return !this.get("masked") || this.get("off").length > 0;
  }
  /** May query i attend to key j? */
  isOpen(i, j) {
    return !this.get("masked") || j <= i;
  }
  weight(layer, head, i, j) {
    const { layers, most } = this.gpt;
    return layers[layer].weights[(head * most + i) * most + j];
  }
  /** What query i gives to each key. */
  weightRow(layer, head, i) {
    return Float32Array.from(this.ids, (_, j) => this.weight(layer, head, i, j));
  }
  encode(text) {
    return this.bpe.cut(text, this.bpe.count).slice(-MOST_TOKENS);
  }

  /** Sets traits, and shows what follows from it. */
  change(changes) {
    this.changing = true;
    this.set(changes);
    this.changing = false;
    if (COMPUTED_FROM.some((trait) => trait in changes)) this.compute();
    else this.paint();
  }
  /** Starts from another text. */
  begin(text) {
    this.anchor = text;
    this.key = -1;
    this.load();
    this.change({ text, position: -1 });
  }
  /** Switches the chosen head off or on. */
  toggleHead() {
    const off = new Set(this.get("off"));
    const n = this.chosenHead();
    if (!off.delete(n)) off.add(n);
    this.load();
    this.change({ off: [...off].sort((a, b) => a - b) });
  }
  /** Appends a token, drawn from the probabilities. */
  async sample() {
    await this.load();
    const { probs, bpe } = this;
    if (!this.gpt || !probs.length) return;
    const piece = bpe.pieces[hitBy(probs, Math.random())];
    const drawn = piece ? new TextDecoder().decode(Uint8Array.from(piece)) : "";
    const letters = [...this.get("text"), ...drawn];
    const kept = letters.slice(-MOST_LETTERS).join(""); // without the beginning of a long text, ...
    this.begin(kept.length < letters.join("").length ? kept.replace(/^\S+\s/, "") : kept); // ... in whole words
  }

  /** What is said while the weights are on their way. */
  loadingText() {
    return this.loading && !this.gpt ? loadingText(this.model) : "";
  }
  /** Fetches the weights, once. late: they are here already. */
  load(late) {
    if (!this.loading) {
      this.loading = this.fetchModel(late);
      this.paint(); // which says so
    }
    return this.loading;
  }
  async fetchModel(late) {
    try {
      const bytes = late ?? (await weightsOf(this.model, (bytes) => this.load(bytes)));
      await new Promise((done) => setTimeout(done)); // what is said is seen first
      this.gpt = gptOf(bytes, MOST_TOKENS);
      this.trouble = "";
    } catch (error) {
      this.trouble = `The weights could not be loaded (${error.message}). Click any stage to retry.`;
      this.loading = null;
    }
    this.compute();
  }
  /** The model reads the text as everything is set; and for comparison as it was trained, or as it was. */
  compute() {
    const { gpt, get } = this;
    const text = get("text");
    const first = get("first");
    const ablated = this.isAblated();
    const ids = (this.ids = this.encode(text));
    if (ids.length && gpt) {
      this.compare();
      gpt.read(ids, { masked: get("masked"), off: new Set(get("off")) });
      this.logits = gpt.logits(ids.length - 1);
    } else if (ids.length && first.text === text && !ablated) {
      this.logits = floats(first.logits);
    } else this.logits = [];
    Object.assign(this.stale, { answer: true, heads: true });
    this.paint();
  }
  compare() {
    const { gpt, anchor } = this;
    const ablated = this.isAblated();
    const ids = ablated ? this.ids : this.encode(anchor);
    if (!ids.length || (!ablated && this.get("text") === anchor)) this.before = null;
    else if (this.before?.ids !== ids.join()) {
      gpt.read(ids);
      this.before = { ids: ids.join(), logits: gpt.logits(ids.length - 1) };
    }
  }
}
