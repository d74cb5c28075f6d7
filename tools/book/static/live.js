// Explorers without a kernel. Each <div class="explorer" data-class="…"> shows a still picture; the
// script after it holds the state that a run of the chapter has left. Code and style come from
// _static/CLASS.js. All are classic scripts, so that a book opened from a disk works, too.
(() => {
  const folder = new URL(".", document.currentScript["src"] || location.href); // slides have it inside
  const loads = new Map();

  /** What the script NAME.js of this folder brings: the {code, style} of a class of explorers, or a file. */
  function load(name) {
    if (!loads.has(name)) {
      const it = {};
      it.loaded = new Promise((done, fail) => {
        it.done = done;
        const script = document.createElement("script");
        script.onerror = () => {
          loads.delete(name); // who asks again tries again
          fail(new Error(`cannot load ${name}.js`));
        };
        script.src = window["bookFiles"]?.[name] ?? new URL(`${name}.js`, folder).href;
        document.head.append(script);
      });
      loads.set(name, it);
    }
    return loads.get(name).loaded;
  }
  Object.assign(window, {
    bookExplorer: (name, parts) => loads.get(name).done(parts),
    bookFile: (name, base64) => loads.get(name).done(bytesOf(base64)),
  });

  function bytesOf(base64) {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  }

  /** What anywidget gives an explorer as its model, without the kernel behind it. */
  function modelOf({ traits, buffers }) {
    const listeners = [];
    for (const { path, data } of buffers) {
      // bytes, at the places where they were
      const place = path.slice(0, -1).reduce((at, key) => at[key], traits);
      place[path.at(-1)] = new DataView(bytesOf(data).buffer);
    }
    const emit = (event, ...said) =>
      listeners.filter(([name]) => name === event).forEach(([, call]) => call(...said));
    const same = (a, b) =>
      a === b || (!ArrayBuffer.isView(a) && JSON.stringify(a) === JSON.stringify(b));
    const model = {
      get: (name) => traits[name],
      set(names, value) {
        // at once, and it tells of what has changed only
        const wanted = typeof names === "string" ? { [names]: value } : names;
        const changes = Object.entries(wanted).filter(([name, to]) => !same(traits[name], to));
        for (const [name, to] of changes) traits[name] = to;
        for (const [name, to] of changes) emit(`change:${name}`, model, to, {});
        if (changes.length) emit("change", model, {});
      },
      on(names, call) {
        for (const name of names.split(/\s+/)) listeners.push([name, call]);
      },
      off(names, call) {
        const gone = names?.split(/\s+/);
        for (let i = listeners.length; i--;) {
          const [name, listener] = listeners[i];
          if ((!gone || gone.includes(name)) && (!call || call === listener))
            listeners.splice(i, 1);
        }
      },
      save_changes(said) {
        said?.iopub.status({ content: { execution_state: "idle" } });
      }, // no kernel hears of it
      send() {},
      weights: load, // a model's, by the name that its explorer holds: fetched once, when it is first touched
    };
    return model;
  }

  const onPaper =
    "slot { display: none; } @media print { div:has(+ slot) { display: none; } slot { display: contents; } }";

  async function show(host) {
    const name = host.dataset.class;
    const state = JSON.parse(host.nextElementSibling.textContent);
    const { code, style } = await load(name);
    const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    const { default: widget } = await import(url);
    URL.revokeObjectURL(url);
    const el = document.createElement("div");
    const sheet = document.createElement("style");
    sheet.textContent = style + onPaper;
    const root = host.attachShadow({ mode: "open" }); // the page's style shall not reach in
    root.append(sheet, el, document.createElement("slot")); // the slot: the still picture
    const theme = () => {
      el.dataset.jpThemeLight = document.body.dataset.jpThemeLight;
    };
    new MutationObserver(theme).observe(document.body, {
      attributes: true,
      attributeFilter: ["data-jp-theme-light"],
    });
    theme();
    const made = typeof widget === "function" ? await widget() : widget;
    const model = modelOf(state);
    await made.initialize?.({ model });
    await made.render({ model, el });
    withoutKernel[name]?.(model, el);
    host.classList.add("live");
  }

  const withoutKernel = {
    /** Answers here when the prompt changes; what computes the answer is fetched the first time. */
    SamplingExplorer(model, el) {
      if (!model.get("file"))
        for (const input of el.querySelectorAll("textarea, input[type=text]"))
          input.readOnly = true;
      let answer;
      let loading;
      const reply = () => model.set("answer", answer({ prompt: model.get("prompt") }));
      async function fetched() {
        const [{ code }, bytes] = await Promise.all([load("answers"), load(model.get("file"))]);
        const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
        answer = (await import(url)).SamplingExplorer(bytes);
        URL.revokeObjectURL(url);
      }
      model.on("change:prompt", () => {
        if (answer) {
          reply();
          return;
        }
        const note = (text) => model.set("answer", { ...model.get("answer"), note: text });
        if (!loading) note("The model is being fetched (some 6 MB, once) …");
        loading ??= fetched().then(reply, (error) => {
          loading = null;
          note(`${error.message}: type again.`);
        });
      });
    },
  };

  // One after another and all of them: what is not drawn yet would be skipped by the Tab key.
  window["bookShown"] = (async () => {
    for (const host of document.querySelectorAll(".explorer")) {
      await show(host).catch((error) => {
        console.error(error);
        host.shadowRoot?.replaceChildren(document.createElement("slot")); // the still picture
      });
    }
  })();
})();
