// Words are typed here and looked up in the kernel; the answer comes back in the trait "answer".

const LONGEST = 60; // characters of a word that are read or shown
const STYLE = `
.word-explorer .row { gap: 4px 12px; }
.word-explorer .messages { overflow-wrap: anywhere; }
.word-explorer .answers { max-height: 330px; overflow-y: auto; padding: 0 4px; }
.word-explorer .answer { min-width: min(640px, 100%); }
.word-explorer caption { text-align: left; font-weight: 600; padding: 4px 8px; overflow-wrap: anywhere; }
.word-explorer button.token { max-width: 24ch; overflow: hidden; text-overflow: ellipsis; }
@container explorer (max-width: 759px) { .word-explorer .answer svg { width: 230px; } }
`;

function render({ model: plain, el }) {
  const node = root(el, "word-explorer", "Word explorer: neighbours and analogies");
  const model = withAck(plain, node);
  const send = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };

  /** A text field tied to the trait `name`. */
  function field(name, label) {
    const input = h("input", {
      type: "text",
      "aria-label": label,
      "data-input": name,
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      maxlength: LONGEST,
      size: name === "word" ? 22 : 13,
    });
    const read = () => {
      if (input.value !== model.get(name)) input.value = model.get(name);
    };
    input.addEventListener("input", () => send(name, input.value));
    model.on(`change:${name}`, read);
    read();
    return input;
  }
  const one = h("div", { class: "row" }, h("label", {}, "word", field("word", "word")));
  const three = h(
    "div",
    { class: "row" },
    h("label", {}, "a", field("a", "a: start here")),
    h("span", {}, "−"),
    h("label", {}, "b", field("b", "b: subtracted")),
    h("span", {}, "+"),
    h("label", {}, "c", field("c", "c: added")),
    checkbox(model, "exclude", "exclude the query words"),
  );
  const messages = h("div", { class: "messages", role: "status", "aria-live": "polite" });
  const caption = h("caption");
  const body = h("tbody");
  const table = h("table", { class: "answer" }, caption, body);
  const note = h("div", { class: "quiet" });
  node.append(
    h("style", {}, STYLE),
    h(
      "div",
      { class: "row" },
      choice(
        model,
        "mode",
        [
          ["neighbours", "neighbours"],
          ["analogy", "a − b + c"],
        ],
        "what to look up",
      ),
    ),
    one,
    three,
    messages,
    h("div", { class: "answers" }, table),
    note,
  );

  /** Look up a word of the answer. Its button goes with the old answer, so the focus moves on. */
  function walk(word) {
    model.set("word", word);
    model.set("mode", "neighbours");
    model.save_changes();
    one.style.display = "";
    one.querySelector("input").focus();
  }

  /** One word with its cosine, as a bar from the zero line and as a number. */
  function line([word, cosine, asked], low) {
    const width = 320;
    const zero = (-low / (1 - low)) * width;
    const end = ((cosine - low) / (1 - low)) * width;
    const bar = h(
      "svg",
      {
        width,
        height: 14,
        viewBox: `0 0 ${width} 14`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": `cosine ${cosine.toFixed(3)}`,
      },
      h("rect", {
        x: Math.min(zero, end),
        y: 1,
        width: Math.max(1, Math.abs(end - zero)),
        height: 12,
        rx: 2,
        fill: asked ? "none" : "var(--blue)",
        stroke: asked ? "var(--quiet)" : "var(--blue)",
        "stroke-dasharray": asked ? "4 3" : "none",
      }),
    );
    const name = h(
      "button",
      {
        type: "button",
        class: "token",
        title: `look up the neighbours of ${inFull(visible(word))}`,
        "aria-label": `look up the neighbours of ${inFull(visible(word))}`,
        onclick: () => walk(word),
      },
      truncate(visible(word), LONGEST),
    );
    return h(
      "tr",
      {},
      h("td", {}, name, asked ? h("span", { class: "quiet" }, " ← query word") : ""),
      h("td", {}, bar),
      h("td", { class: "number" }, cosine.toFixed(3).replace("-", "−")),
    );
  }

  function paint() {
    const { title, rows, messages: said, mode } = model.get("answer");
    one.style.display = mode === "neighbours" ? "" : "none";
    three.style.display = mode === "analogy" ? "" : "none";
    caption.textContent = title;
    table.style.display = rows.length ? "" : "none";
    const low = Math.min(0, ...rows.map(([, cosine]) => cosine));
    body.replaceChildren(...rows.map((row) => line(row, low)));
    messages.replaceChildren(
      ...said.map(({ input, text, suggestions }) =>
        h(
          "div",
          { class: "row" },
          h("span", { class: "warning" }, text),
          suggestions.length ? "Did you mean" : "",
          ...suggestions.map((word) =>
            h(
              "button",
              {
                type: "button",
                class: "token suggestion",
                title: inFull(visible(word)),
                onclick: () => {
                  send(input, word);
                  node.querySelector(`[data-input=${input}]`).focus();
                },
              },
              truncate(visible(word), LONGEST),
            ),
          ),
        ),
      ),
    );
    note.textContent = rows.length ? "Click a word to see its neighbours." : "";
  }
  model.on("change:answer", paint); // at once: the kernel sends at most one answer for each key
  paint();
  return () => model.off("change:answer", paint);
}
export default live(render);
