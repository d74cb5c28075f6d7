"""Shannon's guessing game without a browser: its passages, its code, and how guesses are scored."""

import torch

from explorers import guessing
from helpers import data


def test_the_passages_are_new_to_the_model_short_and_long_enough():
    for passage in guessing.PASSAGES:
        text = "".join(passage)
        assert f"\n\n{text}\n\n" in data.shakespeare("validation") and len(text) <= 120
        assert passage[1] not in data.shakespeare("train")
        assert 40 <= len(guessing.places(passage)) <= 75


def test_guesses_go_by_bets_on_the_keys_and_cost_what_a_code_can_say():
    p = torch.zeros(1, 69)
    p[0, guessing._gpt().tokenizer.encode("AaBb \n")] = torch.tensor([1, 2, 0.5, 0.5, 1, 5]) / 10
    bets = guessing.folded(p)
    for answer, rank, chance in (("A", 1, 0.6), ("b", 2, 0.2), (" ", 3, 0.2)):
        ranks, bits = guessing.scored(("x", answer), bets)
        assert ranks == [rank] and abs(2 ** -bits[0] - chance) < 1e-3
    assert guessing.places(("A B", "c, d\n'tis e")) == [3, 6, 9, 10, 11, 12, 13]
    assert len(guessing.CODE) == 27 and sum(2**-bits for bits in guessing.CODE) <= 1
