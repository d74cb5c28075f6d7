"""The exercises of the chapter on byte-pair encoding."""

import math
from collections import Counter
from itertools import pairwise

from exercises.check import checked, diagnose, exercise, expect, reported

# --- two tokenizers -----------------------------------------------------------------------------


@exercise(
    inputs=lambda draw: [
        (40.0, 1000, 1300),
        (math.e**3, 100, 150),
        (18.7, 217_646, 283_287),
        (12.5, 60, 50),
        (205.0, 40, 200),
        (1.0, 7, 9),
        *((draw.uniform(5, 300), draw.randint(50, 5000), draw.randint(50, 5000)) for _ in range(3)),
    ],
    example=(math.e**3, 100, 150),
    on_success="The same negative log-likelihood of the text, divided among other tokens.",
)
def loss_to_beat(perplexity, n_words, n_tokens):
    """loss_to_beat(perplexity, n_words, n_tokens): the loss per token that is exactly as good."""
    return math.log(perplexity) * n_words / n_tokens


loss_to_beat.slips("""
    That is the loss per word. Your model makes one prediction per token: divide the negative
    log-likelihood of the whole text by the number of tokens.
        math.log(perplexity)
    The ratio is upside down: more tokens share the same negative log-likelihood, so each has a
    smaller part of it.
        n_words / n_tokens → n_tokens / n_words
    A perplexity is e to the loss, so it cannot be divided among tokens: take the logarithm first.
        perplexity * n_words / n_tokens
    Take the logarithm of the perplexity alone. Then convert from words to tokens.
        math.log(perplexity * n_words / n_tokens)
        math.log(perplexity * n_words) / n_tokens
    That is the perplexity per token. The loss is its logarithm.
        perplexity ** (n_words / n_tokens)
    These are bits. A loss in nats has the natural logarithm, `math.log`.
        math.log → math.log2
    That is the negative log-likelihood of the whole text. Divide it by the number of your tokens.
        math.log(perplexity) * n_words
""")


# --- run the experiment and decide --------------------------------------------------------------

# Characters per token on the held-out articles and plays, by the text that was learned from.
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

    diagnose("""
        These are tokens per character. Divide the characters by the tokens.
            fits(lambda two: (1 / two[0], 1 / two[1]), 0.005)
        Articles and plays are swapped: the first number of each pair is that on the articles.
            fits(lambda two: two[::-1])
        These are numbers of tokens. Divide the characters, 100,000, by them.
            fits(lambda two: (100_000 / two[0], 100_000 / two[1]), 500)
        Nearly: give two decimals.
            fits(lambda two: (round(two[0], 1), round(two[1], 1)), 1e-6)
    """)
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
    diagnose("""
        The second of the pair should be one of the three names.
            chosen not in PER_TOKEN
        By your own numbers that one is best on its own kind of text, and about 0.3 behind on the
        other. Choose the one that needs the fewest tokens for the two texts together.
            chosen != "both"
    """)
    return "A tokenizer fits its text: train it on a sample of everything that it has to read."


# --- encode from tokens and ranks ---------------------------------------------------------------


def ranked(*pieces):
    """Single letters a to h, then these pieces, numbered."""
    return {piece: i for i, piece in enumerate([bytes([b]) for b in b"abcdefgh"] + [*pieces])}


def word_and_ranks(rng):
    """A word, and pieces that are each made of two others."""
    pieces = [b"a", b"b", b"c"]
    while len(pieces) < 9:
        if (new := rng.choice(pieces) + rng.choice(pieces)) not in pieces:
            pieces.append(new)
    return bytes(rng.choices(b"abc", k=12)), ranked(*pieces[3:])


@exercise(
    inputs=lambda draw: [
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
        *(word_and_ranks(draw) for _ in range(4)),
    ],
    example=(b"abc", {b"a": 0, b"b": 1, b"c": 2, b"bc": 3, b"ab": 4}),
    on_success="The ranks alone say which two tokens are merged.",
    tolerance=0,
)
def encode_by_rank(word, rank):
    """encode_by_rank(word, rank): the ids of a word, from tokens and their ranks alone."""
    pieces = [word[i : i + 1] for i in range(len(word))]
    while True:
        pairs = enumerate(pairwise(pieces))
        fit = [(rank[a + b], i) for i, (a, b) in pairs if a + b in rank]
        if not fit:
            return [rank[piece] for piece in pieces]
        i = min(fit)[1]
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]


def longest_match(word, rank):
    ids = []
    while word:
        end = max(i for i in range(1, len(word) + 1) if word[:i] in rank)
        ids.append(rank[word[:end]])
        word = word[end:]
    return ids


def through_the_ranks_once(word, rank):
    """Each piece of the dictionary has its turn once, at all places."""
    pieces = [word[i : i + 1] for i in range(len(word))]
    for piece in sorted(rank, key=rank.get):
        i = 0
        while i < len(pieces) - 1:
            if pieces[i] + pieces[i + 1] == piece:
                pieces[i : i + 2] = [piece]
            i += 1
    return [rank[piece] for piece in pieces]


encode_by_rank.slips("""
    That is the longest match, the trap of section 6. The two neighbours whose joint token has the
    smallest rank are merged first, wherever they are.
        longest_match(word, rank)
    You merge the leftmost pair, or the one that gives the longest token. The smallest rank goes
    first, wherever it is and however short its token.
        min(fit)[1] → fit[0][1]
    0 is a rank, too: check `token in rank`, or `is not None`.
        a + b in rank → rank.get(a + b)
    You take the largest rank, which was learned last. The smallest goes first.
        min → max
    You stop after one merge. A merge makes new neighbours: look again until none fit.
        not fit → not fit or len(pieces) < len(word)
    You went through the ranks once, upwards. A merge may make a pair of a smaller rank than its
    own: after each, look for the smallest of all again.
        through_the_ranks_once(word, rank)
    These are the tokens. Return their ranks, which are the ids.
        [rank[piece] for piece in pieces] → pieces
    `for b in word` gives whole numbers, not tokens: `word[i : i + 1]` is a `bytes` object.
        [rank[b] for b in word]
    At the end no neighbours can be merged, and `min` of an empty list is an error. Stop then.
        min([])
        not fit → len(pieces) == 1
""")


# --- the whole of 1994 --------------------------------------------------------------------------


@exercise(
    inputs=lambda draw: [
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
        *((draw.choices(range(4), k=n), draw.randint(5, 99)) for n in (12, 20, 30)),
    ],
    example=([1, 2, 1, 2, 1, 2], 10),
    on_success="The file compressor of 1994. Read backwards, the pairs restore the file.",
    tolerance=0,
)
def squeeze(ids, first_id):
    """squeeze(ids, first_id): the shortened list, and the pairs in the order of merging."""
    ids, pairs = list(ids), []
    while max((counts := Counter(pairwise(ids))).values(), default=0) >= 2:
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        new, i = first_id + len(pairs), 0
        pairs.append(best)
        while i < len(ids) - 1:
            if (ids[i], ids[i + 1]) == best:
                ids[i : i + 2] = [new]
            i += 1
    return ids, pairs


def counted_once(ids, first_id):
    out = [*ids]
    counts = Counter(pairwise(ids))
    order = sorted(counts, key=lambda pair: (-counts[pair], pair))
    pairs = [pair for pair in order if counts[pair] >= 2]
    for new, pair in enumerate(pairs, first_id):
        i = 0
        while i < len(out) - 1:
            if (out[i], out[i + 1]) == pair:
                out[i : i + 2] = [new]
            i += 1
    return out, pairs


squeeze.slips("""
    You counted once and went down the list. Merge one pair, then count again: a merge makes new
    pairs and removes others.
        counted_once(ids, first_id)
    You went on with pairs that occur once. That saves nothing, because the pair has to be noted.
    Stop when no pair occurs twice.
        >= 2 → >= 1
    Of equally frequent pairs you took the one that came first. Take the smaller pair.
        (-counts[pair], pair) → -counts[pair]
    Of equally frequent pairs you took the larger one. Take the smaller one: with `max` the tie goes
    the wrong way, use `min` with the count made negative.
        min → max ; -counts → counts
    You replaced only the first occurrence. Replace every one.
        = [new] → = [new]; break
    You lost the last number. It has no neighbour to its right, but it must be kept.
        i += 1 → i += 1; ids = ids[: -1 if i == len(ids) - 1 else None]
    Each merge needs a new number: first_id, then first_id + 1, and so on.
        first_id + len(pairs) → first_id
    An empty list, or one of a single number, has no pairs, and so no most frequent one. Stop then.
        right(ids, first_id) if ids[1:] else max([])
        right(ids, first_id) if ids[1:] else min([])
""")
