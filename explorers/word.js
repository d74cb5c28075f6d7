// Words are typed here and looked up in the kernel; the answer comes back in the trait "answer".

const LONGEST = 60; // characters of a word that are read or shown
const WIDTH = 320; // of the bars

function build({ model, node, get, set, choice, checkbox }) {
  /** A text field tied to the trait `name`. */
  function field(name, label) {
    const input = html`<input type="text" aria-label=${label} data-input=${name} spellcheck="false"
      autocomplete="off" autocapitalize="off" maxlength=${LONGEST} size=${name === "word" ? 22 : 13}
      oninput=${() => set({ [name]: input.value })} />`;
    const read = () => {
      if (input.value !== get(name)) input.value = get(name);
    };
    model.on(`change:${name}`, read);
    read();
    return input;
  }
  const one = html`<div class="row"><label>word${field("word", "word")}</label></div>`;
  const three = html`<div class="row">
    <label>a${field("a", "a: start here")}</label>
    <span>−</span><label>b${field("b", "b: subtracted")}</label>
    <span>+</span><label>c${field("c", "c: added")}</label>
    ${checkbox("exclude", "exclude the query words")}
  </div>`;
  const messages = html`<div class="messages" role="status" aria-live="polite" />`;
  const caption = html`<caption />`;
  const body = html`<tbody />`;
  const table = html`<table class="answer">${caption}${body}</table>`;
  const note = html`<div class="quiet" />`;
  const modes = { neighbours: "neighbours", analogy: "a − b + c" };
  const page = html`
    <div class="row">${choice("mode", modes, "what to look up")}</div>
    ${one}${three}${messages}
    <div class="answers">${table}</div>
    ${note}`;

  /** Look up a word of the answer. Its button goes with the old answer, so the focus moves on. */
  function walk(word) {
    set({ word, mode: "neighbours" });
    one.style.display = "";
    one.querySelector("input").focus();
  }

  /** One word with its cosine, as a bar from the zero line and as a number. */
  function line([word, cosine, asked], low) {
    const zero = (-low / (1 - low)) * WIDTH;
    const end = ((cosine - low) / (1 - low)) * WIDTH;
    const look = asked
      ? { fill: "none", stroke: "var(--quiet)", "stroke-dasharray": "4 3" }
      : { fill: "var(--blue)", stroke: "var(--blue)", "stroke-dasharray": "none" };
    const title = `look up the neighbours of ${inFull(visible(word))}`;
    return html`<tr>
      <td>
        <button type="button" class="token" title=${title} aria-label=${title}
          onclick=${() => walk(word)}>${truncate(visible(word), LONGEST)}</button>
        ${asked && html`<span class="quiet"> ← query word</span>`}
      </td>
      <td>
        <svg width=${WIDTH} height="14" viewBox="0 0 ${WIDTH} 14" preserveAspectRatio="none" role="img"
          aria-label="cosine ${cosine.toFixed(3)}">
          <rect x=${Math.min(zero, end)} y="1" width=${Math.max(1, Math.abs(end - zero))} height="12"
            rx="2" ...${look} />
        </svg>
      </td>
      <td class="number">${cosine.toFixed(3).replace("-", "−")}</td>
    </tr>`;
  }

  /** What is wrong with a word that was typed, and what may have been meant. */
  function message({ input, text, suggestions }) {
    const suggestion = (word) => {
      const take = () => {
        set({ [input]: word });
        node.querySelector(`[data-input=${input}]`).focus();
      };
      return html`<button type="button" class="token suggestion" title=${inFull(visible(word))}
        onclick=${take}>${truncate(visible(word), LONGEST)}</button>`;
    };
    return html`<div class="row">
      <span class="warning">${text}</span>
      ${suggestions.length ? "Did you mean" : ""}${suggestions.map(suggestion)}
    </div>`;
  }

  function paint() {
    const { title, rows, messages: said, mode } = get("answer");
    one.style.display = mode === "neighbours" ? "" : "none";
    three.style.display = mode === "analogy" ? "" : "none";
    caption.textContent = title;
    table.style.display = rows.length ? "" : "none";
    const low = Math.min(0, ...rows.map(([, cosine]) => cosine));
    body.replaceChildren(...rows.map((row) => line(row, low)));
    messages.replaceChildren(...said.map(message));
    note.textContent = rows.length ? "Click a word to see its neighbours." : "";
  }
  model.on("change:answer", paint); // at once: the kernel sends at most one answer for each key
  return { page, paint };
}

export default explorer({
  name: "word-explorer",
  title: "Word explorer: neighbours and analogies",
  traits: [],
  asks: true,
  build,
});
