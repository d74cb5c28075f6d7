// Byte-pair encoding as helpers.text does it, and its tokens in signs that can be seen.
const WORDS =
  /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
const WHITE_SPACE = new Map([
  [" ", "␣"],
  ["\n", "⏎"],
  ["\t", "⇥"],
]);
const REMEMBERED = 20000; // words whose tokens are kept

/** Byte-pair encoding: cut(text, n) gives the ids of a text after the first n merges. */
function byteLevel(alphabet, merges) {
  const idOf = new Uint16Array(256);
  const pieces = Array.from(alphabet, (byte) => [byte]);
  const rank = new Map();
  alphabet.forEach((byte, id) => {
    idOf[byte] = id;
  });
  for (let i = 0; i < merges.length; i += 2) {
    rank.set(merges[i] * 65536 + merges[i + 1], pieces.length);
    pieces.push([...pieces[merges[i]], ...pieces[merges[i + 1]]]);
  }
  const spell = new TextEncoder();
  let known = new Map();
  let limit = -1;
  function word(text) {
    let ids = Array.from(spell.encode(text), (byte) => idOf[byte]);
    while (ids.length > 1) {
      let best = limit;
      for (let i = 0; i + 1 < ids.length; i++)
        best = Math.min(best, rank.get(ids[i] * 65536 + ids[i + 1]) ?? limit);
      if (best === limit) break;
      const left = merges[2 * (best - alphabet.length)];
      const right = merges[2 * (best - alphabet.length) + 1];
      const out = [];
      for (let i = 0; i < ids.length; i++) {
        if (ids[i] === left && ids[i + 1] === right) {
          out.push(best);
          i += 1;
        } else out.push(ids[i]);
      }
      ids = out;
    }
    return ids;
  }
  return {
    pieces,
    count: merges.length / 2,
    first: alphabet.length,
    /** The id of two tokens merged, or undefined. */
    pair: (left, right) => rank.get(left * 65536 + right),
    cut(text, n) {
      if (limit !== alphabet.length + n || known.size > REMEMBERED) {
        known = new Map();
        limit = alphabet.length + n;
      }
      const ids = [];
      for (const [one] of text.matchAll(WORDS)) {
        let some = known.get(one);
        if (!some) known.set(one, (some = word(one)));
        for (const id of some) ids.push(id);
      }
      return ids;
    },
  };
}

const hex = (bytes) =>
  Array.from(bytes, (b) => b.toString(16).toUpperCase().padStart(2, "0")).join(" ");

/** A piece in signs that can be seen: "␣the", and "‹F0›" for what is no character of its own. */
function readable(bytes) {
  try {
    return Array.from(
      new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes)),
      (c) =>
        WHITE_SPACE.get(c) ??
        (/[\p{C}\p{Z}]|^\p{M}/u.test(c) ? `‹${hex(new TextEncoder().encode(c))}›` : c),
    ).join("");
  } catch {
    return `‹${hex(bytes)}›`;
  }
}
