// The search, in place of Sphinx's: it leads to sections and shows the line in which a word stands.
// searchindex.js holds [title of the page, address, title of the section, text] of each section.
Search.query = (query) => {
  const typed = splitQuery(query.toLowerCase());
  const telling = typed.filter((word) => !stopwords.has(word));
  const words = telling.length ? telling : typed;
  const stemmer = new Stemmer();
  const patterns = words.map((word) => {
    // at the beginning of a word: "query" finds "queries"; one letter or two: as they are
    const stem = stemmer.stemWord(word).replace(/[iy]$/, "[iy]");
    return `(?<![\\p{L}\\p{N}])${word.length > 2 ? `(?:${word}|${stem})` : `${word}(?![\\p{L}\\p{N}])`}`;
  });
  const any = new RegExp(patterns.join("|"), "giu");
  const all = patterns.map((pattern) => new RegExp(pattern, "iu"));
  const phrase = query.trim().toLowerCase();

  function score([, , title, text]) {
    if (!words.length || !all.every((one) => one.test(title) || one.test(text))) return 0;
    const has = (where) => where.toLowerCase().includes(phrase);
    const titled = all.filter((one) => one.test(title)).length;
    return (
      1 +
      (40 * titled) / words.length +
      40 * has(title) +
      20 * has(text) +
      Math.min(text.match(any)?.length ?? 0, 20)
    );
  }
  /** A part of the text around the phrase or the first of the words, in which the words are marked. */
  function context(text) {
    const whole = text.toLowerCase().indexOf(phrase);
    const at = Math.max(0, whole < 0 ? text.search(any) : whole);
    const from = at < 60 ? 0 : text.indexOf(" ", at - 60) + 1;
    const rest = text.slice(from, at + 140);
    const cut = at + 140 < text.length;
    return marked(`${from ? "… " : ""}${cut ? rest.replace(/ \S*$/, " …") : rest}`, "p", "context");
  }
  function marked(text, tag, name) {
    const node = document.createElement(tag);
    node.className = name;
    let done = 0;
    for (const { 0: word, index } of text.matchAll(any)) {
      const mark = document.createElement("span");
      mark.className = "highlighted";
      mark.textContent = word;
      node.append(text.slice(done, index), mark);
      done = index + word.length;
    }
    node.append(text.slice(done));
    return node;
  }

  const found = Search._index
    .map((section) => ({ section, points: score(section) }))
    .filter(({ points }) => points);
  found.sort((a, b) => b.points - a.points);
  for (const {
    section: [page, address, title, text],
  } of found.slice(0, 60)) {
    const item = document.createElement("li");
    const link = marked(title, "a", "title");
    link.href = address;
    item.append(link);
    if (page !== title) item.append(` · ${page}`);
    item.append(context(text));
    Search.output.append(item);
  }
  Search.stopPulse();
  Search.title.textContent = "Search results";
  Search.status.textContent = found.length
    ? `${found.length} section${found.length > 1 ? "s" : ""}, the best first`
    : "No section holds all of these words.";
};
