"""The exercises on byte-pair encoding beyond what their declaration says."""

import numpy as np

from exercises import byte_pair_encoding as check
from tests.answers import accepted, refused

FOUND, FAULTS = check.PER_TOKEN, check.FAULTS


def a_participle(piece):
    return piece.endswith((b"ing", b"ed"))


test_another_right_answer_is_right = accepted(
    (check.loss_to_beat, lambda p, words, tokens: np.log(p) / tokens * words),
    (check.whose_text, (FOUND, "both")),
    (check.my_question, a_participle),
)


def changed(change):
    return {name: change(*two) for name, two in FOUND.items()}


test_a_choice_that_does_not_follow = refused(
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
    (check.wrong_tokens, FAULTS | {"A": "f"}, "token by token"),
    (check.wrong_tokens, FAULTS | {"C": "d"}, "spell the whole text"),
    (check.wrong_tokens, FAULTS | {"D": "a"}, "Who has it?"),
    (check.wrong_tokens, FAULTS | {"C": "b"}, "Learned from plays"),
    (check.wrong_tokens, FAULTS | {"A": "a", "B": "b"}, "longest match never takes"),
    (check.my_question, lambda piece: b"r" in piece.lower(), "not know this well enough"),
    (check.my_question, lambda piece: piece.strip()[:1].isupper(), "asked already"),
    (check.my_question, lambda piece: piece == b" the", "at least 50"),
)
