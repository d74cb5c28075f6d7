"""The exercises of the chapter on byte-pair encoding."""

import math
from collections import Counter
from functools import partial
from itertools import pairwise

from exercises.check import checked, exercise, expect, reported

# --- 12.1: two tokenizers ---------------------------------------------------------------------


@exercise(
    inputs=[
        (40.0, 1000, 1300),
        (math.e**3, 100, 150),
        (18.7, 217_646, 283_287),
        (12.5, 60, 50),
        (205.0, 40, 200),
        (1.0, 7, 9),
    ],
    praise="The surprise of the whole text, divided among other tokens.",
)
def loss_to_beat(perplexity, n_words, n_tokens):
    """loss_to_beat(perplexity, n_words, n_tokens): the loss per token that is exactly as good."""
    return math.log(perplexity) * n_words / n_tokens


loss_to_beat.mistakes = {
    "That is the loss per word. Your model makes one prediction per token: divide the surprise of "
    "the whole text among them.": lambda p, words, tokens: math.log(p),
    "The ratio is upside down: more tokens share the same surprise, so each has less.":
        lambda p, words, tokens: math.log(p) * tokens / words,
    "A perplexity is e to the loss, so it cannot be divided among tokens: take the logarithm "
    "first.":
        lambda p, words, tokens: p * words / tokens,
    "Take the logarithm of the perplexity alone. Then divide the surprise among the tokens.": (
        lambda p, words, tokens: math.log(p * words / tokens),
        lambda p, words, tokens: math.log(p * words) / tokens,
    ),
    "That is the perplexity per token. The loss is its logarithm.":
        lambda p, words, tokens: p ** (words / tokens),
    "These are bits. A loss in nats has the natural logarithm, `math.log`.": (
        lambda p, words, tokens: math.log2(p) * words / tokens,
        lambda p, words, tokens: math.log2(p) / words * tokens),
    "That is the logarithm to the base 10. A loss in nats has the natural one, `math.log`.":
        lambda p, words, tokens: math.log10(p) * words / tokens,
    "That is the surprise of the whole text. Divide it by the number of your tokens.":
        lambda p, words, tokens: math.log(p) * words,
    "The paper's loss is a mean over words: multiply it by their number for the whole text.":
        lambda p, words, tokens: math.log(p) / tokens,
    "You cut off the decimals: divide with `/`.": (
        lambda p, words, tokens: math.log(p) * words // tokens,
        lambda p, words, tokens: math.log(p) * (words // tokens),
    ),
    "The sign is wrong: a surprise is never negative.":
        lambda p, words, tokens: -math.log(p) * words / tokens,
}  # fmt: skip


# --- 12.2: run the experiment and decide ------------------------------------------------------

# Characters per token on the held-out articles and plays, by what was learnt from.
PER_TOKEN = {"articles": (2.328, 1.973), "plays": (2.056, 2.273), "both": (2.220, 2.199)}


@checked
def whose_text(answer):
    """whose_text: characters per token of three tokenizers, and which to take for both texts."""
    found, chosen = reported(
        answer,
        (PER_TOKEN, "both"),
        "Set whose_text to a pair: two numbers for each name, {name: (on articles, on plays), …}, "
        "and a name.",
    )

    def fits(change, tolerance=0.01):
        return all(
            abs(got - want) < tolerance
            for name, two in found.items()
            for got, want in zip(two, change(PER_TOKEN[name]), strict=True)
        )

    expect(
        not fits(lambda two: (1 / two[0], 1 / two[1]), 0.005),
        "These are tokens per character. Divide the characters by the tokens.",
    )
    expect(
        not fits(lambda two: two[::-1]),
        "Articles and plays are swapped: the first number of each pair is that on the articles.",
    )
    expect(
        not fits(lambda two: (100_000 / two[0], 100_000 / two[1]), 500),
        "These are numbers of tokens. Divide the characters, 100,000, by them.",
    )
    expect(
        not fits(lambda two: (round(two[0], 1), round(two[1], 1)), 1e-6),
        "Nearly: give two decimals.",
    )
    wrong = [
        f"{name} on the {text}"
        for name, two in found.items()
        for text, got, want in zip(("articles", "plays"), two, PER_TOKEN[name], strict=True)
        if abs(got - want) >= 0.01
    ]
    expect(
        not wrong,
        f"Measure again: {', '.join(wrong)}. Learn V = 1024 from 200,000 characters "
        "(both: the first 100,000 of each), and encode 100,000 held-out ones of each text.",
    )
    expect(chosen in PER_TOKEN, "The second of the pair should be one of the three names.")
    expect(
        chosen == "both",
        "By your own numbers that one is best on its own kind of text, and about 0.3 behind on the "
        "other. Choose the one that needs the fewest tokens for the two texts together.",
    )
    return "A tokenizer fits its text: train it on a sample of everything that it has to read."


# --- 12.3: encode from pieces and ranks -------------------------------------------------------


def ranked(*pieces):
    """Single letters a to h, then these pieces, numbered."""
    return {piece: i for i, piece in enumerate([bytes([b]) for b in b"abcdefgh"] + [*pieces])}


def ids_of(pieces, rank):
    return [rank[piece] for piece in pieces]


def single_bytes(word):
    return [word[i : i + 1] for i in range(len(word))]


def merging(
    choose=min, times=99, then=ids_of, by=lambda rank, a, b: rank[a + b], known=dict.__contains__,
    cut=single_bytes,
):  # fmt: skip
    """Merge the place that `choose` takes of all (rank, place), again and again."""

    def encode(word, rank):
        pieces = cut(word)
        for _ in range(times):
            pairs = enumerate(pairwise(pieces))
            fit = [(by(rank, a, b), i) for i, (a, b) in pairs if known(rank, a + b)]
            if not fit:
                break
            _, i = choose(fit)
            pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
        return then(pieces, rank)

    return encode


def encode_longest(word, rank, backwards=False):
    ids = []
    while word:
        ends = [
            i for i in range(1, len(word) + 1) if (word[-i:] if backwards else word[:i]) in rank
        ]
        end = max(ends)
        piece, word = (word[-end:], word[:-end]) if backwards else (word[:end], word[end:])
        ids.append(rank[piece])
    return ids[::-1] if backwards else ids


def encode_fewest(word, rank):
    best = [[]]
    for end in range(1, len(word) + 1):
        starts = [i for i in range(end) if word[i:end] in rank]
        best.append(min(([*best[i], rank[word[i:end]]] for i in starts), key=len))
    return best[-1]


def encode_in_one_walk(word, rank):
    pieces = []
    for i in range(len(word)):
        pieces.append(word[i : i + 1])
        if len(pieces) > 1 and pieces[-2] + pieces[-1] in rank:
            pieces[-2:] = [pieces[-2] + pieces[-1]]
    return ids_of(pieces, rank)


def encode_in_one_sweep(word, rank):
    """Each piece of the dictionary has its turn once, at all places."""
    pieces = single_bytes(word)
    for piece in sorted(rank, key=rank.get):
        i = 0
        while i < len(pieces) - 1:
            if pieces[i] + pieces[i + 1] == piece:
                pieces[i : i + 2] = [piece]
            i += 1
    return ids_of(pieces, rank)


def encode_letters_only(word, rank):
    """Joins two single letters only, those of the smallest rank first."""
    single = {piece: i for piece, i in rank.items() if len(piece) < 3}
    return merging()(word, single)


@exercise(
    inputs=[
        # pieces that make many orders differ
        (b"abcdabcab", ranked(b"bc", b"cd", b"ab", b"abc", b"da", b"dabc", b"abcd")),
        (b"abc", ranked(b"bc", b"ab")),
        (b"abc", ranked(b"ab", b"bc")),
        (b"aaaaa", ranked(b"aa", b"aaaa")),
        (b"abab", ranked(b"ba", b"ab", b"abab")),
        (b"hgfedcba", ranked(b"gf", b"ed", b"hg", b"edc", b"fe", b"gfedc", b"ba", b"cb")),
        (b"abcdefgh", ranked(b"gh", b"fgh", b"efgh", b"ab", b"bc", b"cde", b"de", b"abcd", b"cd")),
        (b"abcde", ranked(b"bc", b"ab", b"abc", b"cd", b"cde")),
        (b"abcde", ranked(b"bc", b"abc", b"de", b"cde")),
        (b"abcdab", ranked(b"ab", b"cd", b"abcd")),
        (b"abcde", ranked(b"bc", b"de", b"bcde", b"abcde", b"ab", b"cd")),
        (b"abcde", ranked(b"cd", b"ab", b"abcd", b"abcde", b"de", b"bc")),
        (b"fed", ranked(b"ab", b"cd")),
        (b"ccabcc", ranked(b"ab", b"cc", b"cab", b"abc", b"ccab")),
        (b"ab", {b"ab": 0, b"a": 1, b"b": 2}),
        # in no order, with gaps, and a word of six bytes that are four characters
        (b"abcab", {b"ab": 60, b"c": 3, b"bc": 44, b"b": 71, b"a": 9, b"abc": 80, b"cab": 57}),
        ("baéé".encode(), {b"b": 8, b"a": 7, b"\xa9": 6, b"\xc3": 5, b"\xc3\xa9": 4, b"a\xc3": 2}),
        (b"a", ranked(b"ab")),
        (b"", ranked(b"ab")),
    ],
    praise="The ranks alone say which two pieces belong together.",
    tolerance=0,
)
def encode_by_rank(word, rank):
    """encode_by_rank(word, rank): the ids of a word, from pieces and their ranks alone."""
    return merging()(word, rank)


encode_by_rank.mistakes = {
    "That is the longest match, the trap of section 7. The two neighbours whose joint piece has "
    "the smallest rank go first, wherever they are.":
        (encode_longest, partial(encode_longest, backwards=True)),
    "That is the cut with the fewest pieces. BPE does not ask how many there are: the smallest "
    "rank goes first.": encode_fewest,
    "You merge the leftmost pair, or the one that gives the longest piece. The smallest rank goes "
    "first, wherever it is and however short its piece.":
        (encode_in_one_walk, merging(lambda fit: fit[0]),
         merging(by=lambda rank, a, b: -len(a + b))),
    "You merge the rightmost pair. The smallest rank goes first, wherever it is.":
        merging(lambda fit: fit[-1]),
    "You merged the rightmost of equal ranks. The leftmost goes first.":
        merging(lambda fit: min(fit, key=lambda one: (one[0], -one[1]))),
    "The rank of what two neighbours make *together* counts, not the ranks that they have.":
        (merging(by=lambda rank, a, b: rank[a] + rank[b]),
         merging(by=lambda rank, a, b: (rank[a], rank[b]))),
    "0 is a rank, too: check `piece in rank`, or `is not None`.": merging(known=dict.get),
    "You take the largest rank, which was learnt last. The smallest goes first.": merging(max),
    "You stop after one merge. A merge makes new neighbours: look again until none fit.":
        merging(times=1),
    "You join single bytes only. A merge makes new neighbours: look again after each.":
        encode_letters_only,
    "You went through the ranks once, upwards. A merge may make a pair of a smaller rank than its "
    "own: after each, look for the smallest of all again.": encode_in_one_sweep,
    "The id of a piece is its rank, `rank[piece]`, not its index in the dictionary.":
        merging(then=lambda pieces, rank: [[*rank].index(piece) for piece in pieces]),
    "The word is bytes, not characters: *é* is two of them. Begin with single bytes.":
        merging(cut=lambda word: [character.encode() for character in word.decode()]),
    "You take a whole word at once if it has a rank. It must arise from merges of neighbours.":
        lambda word, rank: [rank[word]] if word in rank else encode_by_rank.right(word, rank),
    "Nothing was merged: every byte is a piece of its own.": merging(times=0),
    "These are the pieces. Return their ranks, which are the ids.":
        merging(then=lambda pieces, rank: pieces),
    "`for b in word` gives whole numbers, not pieces: `word[i : i + 1]` is a `bytes` object.":
        lambda word, rank: [rank[b] for b in word],
    "Not all neighbours make a piece: look only at those for which `left + right in rank` is true.":
        lambda word, rank: [rank[word[i : i + 2]] for i in range(len(word) - 1)],
    "At the end no neighbours can be merged, and `min` of an empty list is an error. Stop then.":
        (lambda word, rank: min([]),
         lambda word, rank: ids if len(ids := merging()(word, rank)) == 1 else min([])),
}  # fmt: skip


# --- 12.4: the whole of 1994 ------------------------------------------------------------------


def smaller_of_equals(counts):
    """The most frequent pair, of equals the smaller."""
    return min(counts, key=lambda pair: (-counts[pair], pair))


def every_place(ids):
    return Counter(pairwise(ids))


def without_overlaps(ids):
    counts, i = Counter(), 0
    while i < len(ids) - 1:
        counts[ids[i], ids[i + 1]] += 1
        i += 2 if ids[i : i + 3] == [ids[i]] * 3 else 1
    return counts


def from_the_left(ids, pair, new, end=0):
    """Walks through the ids, or to the last but `end` and forgets what is left."""
    out, i = [], 0
    while i < len(ids) - end:
        here = tuple(ids[i : i + 2]) == pair
        out.append(new if here else ids[i])
        i += 2 if here else 1
    return out


def from_the_right(ids, pair, new):
    return from_the_left(ids[::-1], pair[::-1], new)[::-1]


def first_place(ids, pair, new):
    i = list(pairwise(ids)).index(pair)
    return [*ids[:i], new, *ids[i + 2 :]]


def either_way(ids, pair, new):
    return from_the_left(from_the_left(ids, pair, new), pair[::-1], new)


def squeezing(
    choose=smaller_of_equals, count=every_place, replace=from_the_left, least=2, step=1, most=999,
    start=0,
):  # fmt: skip
    """Gage's loop, with a mistake in one part."""

    def squeeze(ids, first_id):
        ids, pairs = list(ids), []
        while len(pairs) < most:
            counts = count(ids)
            if max(counts.values(), default=0) < least:
                break
            best = choose(counts)
            ids = replace(ids, best, first_id + start + step * len(pairs))
            pairs.append(best)
        return ids, pairs

    return squeeze


def count_once(ids, first_id):
    pairs = []
    counts = every_place(ids)
    for best in sorted(counts, key=lambda pair: (-counts[pair], pair)):
        if counts[best] >= 2:
            ids = from_the_left(ids, best, first_id + len(pairs))
            pairs.append(best)
    return ids, pairs


squeeze_it = squeezing()


@exercise(
    inputs=[
        ([3, 1, 2, 1, 2, 3, 1, 2, 4, 4, 4, 3, 1, 2, 1, 4, 4], 300),  # most mistakes differ here
        ([1, 2, 1, 2, 1, 2], 10),
        ([*b"aaabdaaabac"], 256),
        ([9, 8, 9, 8, 5, 7, 5, 7, 5, 6, 5, 6], 30),
        ([2, 1, 1, 9, 0, 2, 0, 1, 9, 2, 1], 100),
        ([2, 0, 2, 0, 7, 1, 9, 1, 9], 40),
        ([5, 5, 5, 5, 5, 5, 5, 6, 6], 20),
        ([*b"low lowest newer newer wider lower"], 256),
        ([4, 4, 4], 50),
        ([1, 2, 1, 2, 7, 2, 1], 50),
        ([7], 256),
        ([], 256),
    ],
    praise="The file compressor of 1994. Read backwards, the pairs restore the file.",
    tolerance=0,
)
def squeeze(ids, first_id):
    """squeeze(ids, first_id): the shortened row, and the pairs in the order of merging."""
    return squeeze_it(ids, first_id)


squeeze.mistakes = {
    "You counted once and went down the list. Merge one pair, then count again: a merge makes new "
    "pairs and removes others.": count_once,
    "You went on with pairs that occur once. That saves nothing, because the pair has to be noted. "
    "Stop when no pair occurs twice.": squeezing(least=1),
    "You stopped too early. Go on until no pair occurs twice.":
        (squeezing(least=3), squeezing(most=1)),
    "Of equally frequent pairs you took the one that came first. Take the smaller pair.":
        squeezing(lambda counts: max(counts, key=counts.get)),
    "Of equally frequent pairs you took the larger one. Take the smaller one: with `max` the tie "
    "goes the wrong way, use `min` with the count made negative.":
        squeezing(lambda counts: max(counts, key=lambda pair: (counts[pair], pair))),
    "You took the rarest pair. The most frequent one goes first.": (
        squeezing(lambda counts: min(counts, key=counts.get)),
        squeezing(lambda counts: min(counts, key=lambda pair: (counts[pair], pair))),
    ),
    "Of equally frequent pairs the left numbers are compared first, then the right ones.": (
        squeezing(lambda counts: min(counts, key=lambda pair: (-counts[pair], sum(pair), pair))),
        squeezing(lambda counts: min(counts, key=lambda pair: (-counts[pair], pair[::-1]))),
    ),
    "You took the smallest pair, however frequent it is. The most frequent goes first.":
        squeezing(min),
    "You skipped overlapping pairs when you counted. In 5, 5, 5 the pair (5, 5) occurs twice, and "
    "both count.": squeezing(count=without_overlaps),
    "You replaced from right to left: then 5, 5, 5 becomes 5, 9, not 9, 5.":
        squeezing(replace=from_the_right),
    "You replaced only the first occurrence. Replace every one.":
        squeezing(replace=first_place),
    "You lost the last number. It has no neighbour to its right, but it must be kept.":
        squeezing(replace=partial(from_the_left, end=1)),
    "You replaced (2, 1), too, where the pair is (1, 2). The order counts.":
        squeezing(replace=either_way),
    "Each merge needs a new number: first_id, then first_id + 1, and so on.": squeezing(step=0),
    "The first new number is first_id itself.": squeezing(start=1),
    "The two are swapped: the shortened row comes first, then the pairs.":
        lambda ids, first_id: squeeze_it(ids, first_id)[::-1],
    "Return both, the shortened row and the pairs: without them nobody can restore the file.":
        tuple(lambda *given, i=i: squeeze_it(*given)[i] for i in (0, 1)),
    "The pairs should be a list in the order of merging, without the new numbers: (left, right).":
        tuple(
        lambda ids, first_id, noted=noted: (
            (found := squeeze_it(ids, first_id))[0],
            noted(zip(found[1], range(first_id, 999), strict=False)),
        ) for noted in (dict, list)),
    "You squeezed nothing.": lambda ids, first_id: (ids, []),
    "An empty row, or one of a single number, has no pairs, and so no most frequent one. Stop "
    "then.":
        (
        lambda ids, first_id: squeeze_it(ids, first_id) if ids[1:] else max([]),
        lambda ids, first_id: squeeze_it(ids, first_id) if ids[1:] else min([]),
    ),
}  # fmt: skip
