"""Shannon's guessing game without a browser: fair passages, a code, and the measured numbers."""

import pytest
import torch

from explorers import guessing
from helpers import data
from helpers.text import CharTokenizer


def test_the_passages_are_new_to_the_model_short_and_long_enough():
    for passage in guessing.PASSAGES:
        text = guessing.text_of(passage)
        assert f"\n\n{text}\n\n" in data.shakespeare("validation") and len(text) <= 120
        assert text.splitlines()[-1] not in data.shakespeare("train")
        assert 40 <= len(guessing.places(passage)) <= 75


def test_only_letters_and_the_spaces_after_them_are_asked():
    assert guessing.places("A B|c, d\n'tis e") == [3, 6, 9, 10, 11, 12, 13]


def test_the_model_bets_on_keys_and_its_guesses_are_their_order():
    tokenizer = CharTokenizer("\n" + guessing.KEYS + guessing.KEYS[:26].upper())
    p = torch.zeros(1, 54)
    p[0, tokenizer.encode("AaBb \n")] = torch.tensor([0.1, 0.2, 0.05, 0.05, 0.1, 0.5])
    bets = guessing.folded(p, tokenizer)
    assert torch.allclose(bets[0, [0, 1, 26]], torch.tensor([0.6, 0.2, 0.2]))
    for passage, rank in (("x|A", 1), ("x|b", 2), ("x| ", 3)):
        ranks, right = guessing.scored(passage, bets)
        assert ranks == [rank] and right[0] == bets[0, guessing.KEYS.index(passage[2:].lower())]


def test_a_text_can_be_sent_in_the_code_and_a_later_guess_costs_more():
    assert len(guessing.CODE) == 27 and list(guessing.CODE) == sorted(guessing.CODE)
    assert sum(2**-bits for bits in guessing.CODE) <= 1


def test_the_numbers_of_the_opponents_are_measured():
    counted = torch.tensor(guessing.measure_counts(list(guessing.CODE)))
    assert torch.allclose(counted, torch.tensor(guessing.COUNTED), atol=0.011)
    assert guessing.measure_gzip() == pytest.approx(guessing.GZIP, abs=0.011)
