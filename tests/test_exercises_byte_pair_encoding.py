"""The exercises on byte-pair encoding beyond what their declaration says."""

from itertools import pairwise

import numpy as np
import torch

from exercises import byte_pair_encoding as check
from helpers import data
from helpers.text import BPETokenizer, split_words
from tests.answers import accepted, refused

encode = check.encode_by_rank.right


def encode_with_an_index(word, rank):
    """Cuts between pieces, of which one is taken away at a time."""
    cuts = list(range(len(word) + 1))
    while True:
        best = None
        for i in range(1, len(cuts) - 1):
            new = rank.get(word[cuts[i - 1] : cuts[i + 1]])
            if new is not None and (best is None or new < best[0]):
                best = new, i
        if best is None:
            return [rank[word[start:end]] for start, end in pairwise(cuts)]
        del cuts[best[1]]


test_another_right_answer_is_right = accepted(
    (check.loss_to_beat, lambda p, words, tokens: np.log(p) / tokens * words),
    (check.encode_by_rank, encode_with_an_index),
    (check.whose_text, (check.PER_TOKEN, "both")),
    (check.whose_text, ({n: torch.tensor(x) for n, x in check.PER_TOKEN.items()}, "both")),
)


def test_ranks_are_enough():
    """As the task says: on real words the pieces with their ranks give what the merges give."""
    text = data.wikipedia()[0][1]
    tokenizer = BPETokenizer.train(text[:50_000], 800)
    rank = {tokenizer.piece(i): i for i in range(800)}
    for word in dict.fromkeys(split_words(text[50_000:])):
        assert encode(word.encode(), rank) == tokenizer.encode(word)


# --- learn from what? -------------------------------------------------------------------------

FOUND = check.PER_TOKEN


def changed(change):
    return {name: change(*two) for name, two in FOUND.items()}


test_a_choice_that_does_not_follow = refused(
    (check.whose_text, FOUND, "to a pair"),
    (check.whose_text, (changed(lambda a, b: (1 / a, 1 / b)), "both"), "tokens per character"),
    (check.whose_text, (changed(lambda a, b: (b, a)), "both"), "swapped"),
    (check.whose_text, (changed(lambda a, b: (1e5 / a, 1e5 / b)), "both"), "numbers of tokens"),
    (
        check.whose_text,
        ({**FOUND, "plays": (2.056, 2.5)}, "both"),
        "Measure again: plays on the plays",
    ),
    (check.whose_text, (changed(lambda a, b: (round(a, 1), round(b, 1))), "both"), "two decimals"),
    (check.whose_text, (FOUND, "all"), "one of the three names"),
    (check.whose_text, (FOUND, "articles"), "for the two texts together"),
)
