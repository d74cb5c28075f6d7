"""Shannon's guessing game without a browser: its passages, its code, and who guesses."""

import torch

from explorers import guessing
from helpers import data
from helpers.text import NGramModel


def test_the_passages_are_new_to_the_model_short_and_long_enough():
    for passage in guessing.PASSAGES:
        text = guessing.text_of(passage)
        assert f"\n\n{text}\n\n" in data.shakespeare("validation") and len(text) <= 120
        assert text.splitlines()[-1] not in data.shakespeare("train")
        assert 40 <= len(guessing.places(passage)) <= 75
    assert guessing.places("A B|c, d\n'tis e") == [3, 6, 9, 10, 11, 12, 13]


def test_bets_are_on_keys_and_guesses_go_by_them():
    p = torch.zeros(1, 69)
    p[0, guessing._gpt().tokenizer.encode("AaBb \n")] = torch.tensor([1, 2, 0.5, 0.5, 1, 5]) / 10
    bets = guessing.folded(p)
    for passage, rank, chance in (("x|A", 1, 0.6), ("x|b", 2, 0.2), ("x| ", 3, 0.2)):
        (ranks, bits) = guessing.scored(passage, bets)
        assert ranks == [rank] and abs(2 ** -bits[0] - chance) < 1e-3
    ids = guessing._gpt().tokenizer.encode(guessing.text_of(guessing.PASSAGES[0]))
    knows = NGramModel(torch.tensor(ids), 69, max_context=4)
    model, counts = guessing.prepared(guessing.PASSAGES[0], knows)["players"]
    assert max(model[1]) > 3 and max(counts[1]) < 3  # who has read it guesses it


def test_a_text_can_be_sent_in_the_code_and_a_later_guess_costs_more():
    assert len(guessing.CODE) == 27 and list(guessing.CODE) == sorted(guessing.CODE)
    assert sum(2**-bits for bits in guessing.CODE) <= 1
