"""The character tokenizer: there and back, and what it says about what it cannot take."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.text import CharTokenizer, NGramModel

SYMBOLS = st.lists(st.characters(), min_size=1, max_size=40, unique=True)


@given(SYMBOLS)
def test_ids_are_places_in_the_given_order_and_back(symbols):
    tokenizer = CharTokenizer(symbols)
    assert tokenizer.symbols == tuple(symbols)
    text, ids = "".join(symbols), list(range(len(symbols)))
    assert tokenizer.encode(text) == ids and tokenizer.decode(ids) == text
    assert tokenizer == CharTokenizer(text)
    assert CharTokenizer.from_text(text + text).symbols == tuple(sorted(symbols))


def test_an_unknown_character_is_named():
    with pytest.raises(ValueError, match=r"'d' \(U\+0064\) at position 3 is not among"):
        CharTokenizer("abc").encode("abcdab")


def test_counted_tables_by_hand():
    """0 1 0 1 1: after 0 always 1 (twice), after 1 once 0 and once 1."""
    tables = NGramModel(torch.tensor([0, 1, 0, 1, 1]), vocab_size=3, max_context=1)
    none, one = tables.nll(torch.tensor([0, 1, 0, 2])).neg().exp().tolist()
    uniform = 1 / 3
    p = [(2 + 2 * uniform) / 7, (3 + 2 * uniform) / 7, 2 * uniform / 7]  # n = 5, t = 2
    assert none == pytest.approx([p[0], p[1], p[0], p[2]])
    after_zero_one, after_one_zero = (2 + p[1]) / (2 + 1), (1 + 2 * p[0]) / (2 + 2)
    assert one == pytest.approx([p[0], after_zero_one, after_one_zero, p[2] / 3])


@given(st.lists(st.integers(0, 4), min_size=4, max_size=60), st.integers(0, 3))
def test_counted_tables_are_distributions(ids, reach):
    tables = NGramModel(torch.tensor(ids), vocab_size=5, max_context=reach)
    past = ids[-reach:] if reach else []
    for smoothing in (None, 0.5):
        ends = [tables.nll(torch.tensor([*past, c]), smoothing)[:, -1] for c in range(5)]
        total = torch.stack(ends).neg().exp().sum(0)
        assert torch.allclose(total, torch.ones(reach + 1, dtype=torch.float64))


def test_entropies_are_the_surprises_of_the_counted_text():
    ids = torch.randint(4, (500,), generator=torch.Generator().manual_seed(0))
    tables = NGramModel(ids, vocab_size=4, max_context=3)
    rows = tables.nll(ids, smoothing=0)
    means = [rows[k, k:].mean().item() for k in range(4)]
    assert tables.entropies == pytest.approx(means)
